"""Which stripes are copied: clean ones alone, and only into a file that can hold them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.compacting import run_compaction
from support.files.acid_files import AB, B0, Event, events_batch, insert, write_acid
from support.tables import ids_in, pairs_of

from acidctl.acid.compaction_kind import CompactionKind
from acidctl.acid.writeids import ValidWriteIds
from acidctl.base.errors import VerifyError
from acidctl.compaction.merge import written
from acidctl.compaction.output_settings import Writing
from acidctl.compaction.proof.checksum import Verify
from acidctl.orc import orc_pb2 as pb
from acidctl.orc.byte_source import ByteSource
from acidctl.orc.read.integer_runs import IdBytes, id_run
from acidctl.orc.tail import read_tail
from acidctl.orc.write.acid_writer import AcidWriter, CopiedStripe
from acidctl.orc.write.writer_settings import WriterSettings, bloom_columns
from acidctl.storage.local.filesystem import LocalFileSystem
from acidctl.storage.port import FileSystem

MAJOR = CompactionKind.MAJOR


@pytest.fixture(autouse=True)
def copy_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(written, "SMALL_STRIPE", 0)


def fifty(write_id: int) -> list[Event]:
    return [insert(write_id, i, (i, write_id)) for i in range(50)]


def write_with(settings: WriterSettings, path: Path, write_id: int) -> None:
    write_acid(path, *fifty(write_id), settings=settings)


@pytest.mark.parametrize(
    ("older", "copied"),
    [
        (WriterSettings(), 2),
        (WriterSettings(stride=1000), 1),
        (WriterSettings(stride=0), 1),
        (WriterSettings(compression="snappy"), 1),
        (WriterSettings(block_size=512 * 1024), 2),
        (WriterSettings(bloom_columns=("b",)), 1),
    ],
    ids=["same", "stride", "no index", "compression", "block size", "bloom filters"],
)
def test_stripes_are_copied_only_where_settings_agree(older: WriterSettings, copied: int, tmp_path: Path) -> None:
    """A stride that differs would give silently wrong seeks, another compression unreadable bytes."""
    table = tmp_path / "t"
    write_with(older, table / "delta_1_1_0" / "bucket_00000", 1)
    write_with(WriterSettings(), table / "delta_2_2_0" / "bucket_00000", 2)
    rows = pairs_of(table)
    outcome = run_compaction(table, MAJOR)
    assert outcome
    assert outcome.stripes[0] == copied
    assert pairs_of(table) == rows


def test_a_dirty_stripe_is_encoded_and_a_clean_one_copied(tmp_path: Path) -> None:
    table = tmp_path / "t"
    for write_id in (1, 2):
        write_with(WriterSettings(), table / f"delta_{write_id}_{write_id}_0" / "bucket_00000", write_id)
    write_acid(table / "delete_delta_0000003_0000003_0000" / "bucket_00000", (2, 1, B0, 7, 3, None))
    rows = pairs_of(table)
    outcome = run_compaction(table, MAJOR)
    assert outcome
    assert outcome.stripes == (1, 1)
    assert pairs_of(table) == rows
    assert len(ids_in(table / "base_0000003" / "bucket_00000")) == 99


@pytest.mark.parametrize("kind", [MAJOR, CompactionKind.MINOR])
def test_a_stripe_of_an_aborted_write_id_is_left_out(tmp_path: Path, kind: CompactionKind) -> None:
    """Of a stream's delta, where its neighbours are copied."""
    table = tmp_path / "t"
    stripes = [events_batch(AB, *fifty(write_id)) for write_id in (1, 2, 3)]
    write_acid(table / "delta_1_3" / "bucket_00000", *stripes)
    write_with(WriterSettings(), table / "delta_4_4_0" / "bucket_00000", 4)
    outcome = run_compaction(table, kind, ValidWriteIds.parse("d.t:4:9223372036854775807::2"))
    assert outcome
    assert outcome.stripes == (3, 0)
    assert {key[0] for key in pairs_of(table)} == {1, 3, 4}


def test_stripes_whose_keys_interleave_are_merged(tmp_path: Path) -> None:
    table = tmp_path / "t"
    write_acid(table / "delta_1_3" / "bucket_00000", *((0, w, B0, 0, w, (w, w)) for w in (1, 3)))
    write_acid(table / "delta_4_4_0" / "bucket_00000", (0, 4, B0, 0, 4, (4, 4)))
    write_acid(table / "delta_1_3" / "bucket_00001", (0, 2, B0 | 1 << 16, 0, 2, (2, 2)))
    outcome = run_compaction(table, MAJOR)
    assert outcome
    assert [key[:2] for key in pairs_of(table)] == [(1, B0), (2, B0 | 1 << 16), (3, B0), (4, B0)]
    assert outcome.stripes == (3, 0)


def test_bloom_filters_of_the_newest_file_stay(tmp_path: Path) -> None:
    """What is encoded again gets them like the newest file; in a minor as in a major compaction."""
    table = tmp_path / "t"
    for write_id in (1, 2):
        settings = WriterSettings(bloom_columns=("b",) if write_id == 2 else ())
        write_with(settings, table / f"delta_{write_id}_{write_id}_0" / "bucket_00000", write_id)
    outcome = run_compaction(table, MAJOR)
    assert outcome
    assert outcome.stripes[0] == 1
    tail = read_tail(ByteSource(LocalFileSystem(), str(table / "base_0000002" / "bucket_00000")))
    for stripe in range(len(tail.stripes)):
        kinds = {(stream.column, stream.kind) for stream in tail.stripe_footer(stripe).streams}
        assert (8, pb.Stream.BLOOM_FILTER_UTF8) in kinds
    assert bloom_columns(tail) == ("b",)


def the_ids(info: pb.StripeInformation, ids: IdBytes) -> int:
    return ids.start + ids.length // 2


def the_footer(info: pb.StripeInformation, ids: IdBytes) -> int:
    return info.indexLength + info.dataLength + info.footerLength // 2


def the_values(info: pb.StripeInformation, ids: IdBytes) -> int:
    return (ids.start + ids.length + info.indexLength + info.dataLength) // 2


def the_index(info: pb.StripeInformation, ids: IdBytes) -> int:
    return info.indexLength // 2


@pytest.mark.usefixtures("tasks_run_here")
@pytest.mark.parametrize(
    ("place", "verify"),
    [(the_ids, Verify.KEYS), (the_footer, Verify.KEYS)]
    + [(place, level) for place in (the_ids, the_values, the_index) for level in (Verify.BYTES, Verify.FULL)],
)
def test_a_byte_that_changes_on_the_way_is_noticed(
    place: Callable[[pb.StripeInformation, IdBytes], int],
    verify: Verify,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The ids are compared always, all bytes where that was not turned off."""
    table = tmp_path / "t"
    for write_id in (1, 2):
        write_with(WriterSettings(), table / f"delta_{write_id}_{write_id}_0" / "bucket_00000", write_id)
    before, rows = sorted(path.name for path in table.iterdir()), pairs_of(table)
    tail = read_tail(ByteSource(LocalFileSystem(), str(table / "delta_1_1_0" / "bucket_00000")))
    run = id_run(tail, 0)
    assert run
    assert run.encoded
    at = place(tail.stripes[0], run.encoded)
    changed: list[int] = []
    copy = AcidWriter.copy_stripe

    def wrong(writer: AcidWriter, stripe: CopiedStripe, chunks: Iterable[bytes]) -> None:
        data = bytearray(b"".join(chunks))
        data[at] ^= 4
        changed.append(at)
        copy(writer, stripe, [bytes(data)])

    monkeypatch.setattr(AcidWriter, "copy_stripe", wrong)
    with pytest.raises(VerifyError, match=r"differs from the one .*delta_1_1_0"):
        run_compaction(table, MAJOR, writing=Writing(verify=verify))
    assert changed
    assert sorted(path.name for path in table.iterdir() if not path.name.startswith("_tmp")) == before
    assert pairs_of(table) == rows


def test_a_current_write_id_that_was_written_wrong_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It decides who sees the row; where all is to be verified, it is."""
    table = tmp_path / "t"
    for write_id in (1, 2):
        write_acid(
            table / f"delta_{write_id}_{write_id}_0" / "bucket_00000",
            *((0, write_id, B0, i, write_id, (i, write_id)) for i in range(50)),
        )
    write = AcidWriter.write

    def wrong(writer: AcidWriter, batch: pa.RecordBatch) -> None:
        write(writer, batch.set_column(4, "currentTransaction", pa.repeat(pa.scalar(1, pa.int64()), batch.num_rows)))

    monkeypatch.setattr(written, "SMALL_STRIPE", 1 << 20)  # all are encoded
    monkeypatch.setattr(AcidWriter, "write", wrong)
    with pytest.raises(VerifyError):
        run_compaction(table, MAJOR, writing=Writing(verify=Verify.FULL))


@pytest.mark.parametrize("verify", [Verify.BYTES, Verify.FULL])
def test_a_store_that_keeps_other_bytes_is_noticed(
    verify: Verify, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of what was encoded, too: the whole file is read again."""
    table = tmp_path / "t"
    for write_id in (1, 2):
        write_acid(
            table / f"delta_{write_id}_{write_id}_0" / "bucket_00000",
            *((0, write_id, B0, i, write_id, (i, write_id)) for i in range(50)),
        )
    before, rows = sorted(path.name for path in table.iterdir()), pairs_of(table)
    require = written.require_bytes

    def spoiled(fs: FileSystem, path: str, *more: Any) -> None:
        data = bytearray(Path(path).read_bytes())
        data[len(data) // 2] ^= 1
        Path(path).write_bytes(data)
        require(fs, path, *more)

    monkeypatch.setattr(written, "SMALL_STRIPE", 1 << 20)  # all are encoded
    monkeypatch.setattr(written, "require_bytes", spoiled)
    with pytest.raises(VerifyError, match="its bytes are not those that were written"):
        run_compaction(table, MAJOR, writing=Writing(verify=verify))
    assert sorted(path.name for path in table.iterdir() if not path.name.startswith("_tmp")) == before
    assert pairs_of(table) == rows
