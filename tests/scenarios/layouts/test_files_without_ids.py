"""Originals and raw files: the worked examples of format sections 5.1, 5.2 and 8.7."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyarrow import orc
from support.compacting import run_compaction
from support.files.acid_files import B0, B1, insert, struct, write_acid, write_plain
from support.tables import ids_in, pairs_of, read_rows, snapshot_of

from acidctl.acid.bucket import encode
from acidctl.acid.compaction_kind import CompactionKind, Hive
from acidctl.acid.writeids import ValidWriteIds
from acidctl.base.errors import AcidctlError
from acidctl.compaction.output_settings import Writing
from acidctl.compaction.proof.checksum import Verify
from acidctl.orc.types import OrcType
from acidctl.rows.scan.event_dump import event_files_at
from acidctl.storage.registry import open_location


@pytest.fixture
def converted(tmp_path: Path) -> Path:
    """The table of TestTxnNoBuckets.testToAcidConversionMultiBucket."""
    table = tmp_path / "t"
    write_plain(table / "000000_0", (12, 12))
    write_plain(table / "HIVE_UNION_SUBDIR_1" / "000000_0", (1, 2), (2, 4))
    write_plain(table / "HIVE_UNION_SUBDIR_15" / "000000_0", (10, 20), (20, 40))
    write_plain(table / "HIVE_UNION_SUBDIR_16" / "000000_0", (50, 60))
    write_plain(table / "HIVE_UNION_SUBDIR_16" / "000001_0", (60, 80))
    write_plain(table / "HIVE_UNION_SUBDIR_2" / "000000_0", (5, 6))
    write_plain(table / "HIVE_UNION_SUBDIR_2" / "000001_0", (6, 8))
    write_plain(table / "HIVE_UNION_SUBDIR_3" / "000000_0", (9, 10))
    return table


CONVERTED = {
    (0, B0, 0): (12, 12), (0, B0, 1): (1, 2), (0, B0, 2): (2, 4), (0, B0, 3): (10, 20), (0, B0, 4): (20, 40),
    (0, B0, 5): (50, 60), (0, B1, 0): (60, 80), (0, B0, 6): (5, 6), (0, B1, 1): (6, 8), (0, B0, 7): (9, 10),
}  # fmt: skip


def test_originals_are_numbered_by_path(converted: Path) -> None:
    assert pairs_of(converted) == CONVERTED


def test_originals_with_update_delete_and_major(converted: Path) -> None:
    first, second = 10000001, 10000002
    write_acid(converted / f"delete_delta_{first:07}_{first:07}_0000" / "bucket_00001_0", (2, 0, B1, 0, first, None))
    write_acid(
        converted / f"delta_{first}_{first}_0001" / "bucket_00000_0", (0, first, encode(0, 1), 0, first, (60, 88))
    )
    write_acid(converted / f"delete_delta_{second:07}_{second:07}_0000" / "bucket_00001_0", (2, 0, B1, 1, second, None))
    wanted = {key: row for key, row in CONVERTED.items() if key[1] == B0} | {(first, encode(0, 1), 0): (60, 88)}
    assert pairs_of(converted) == wanted
    outcome = run_compaction(converted, CompactionKind.MAJOR)
    assert outcome
    assert outcome.published == (f"base_{second}",)
    assert [path.name for path in (converted / f"base_{second}").glob("bucket*")] == ["bucket_00000"]
    assert pairs_of(converted) == wanted


def test_copies_go_on_counting(tmp_path: Path) -> None:
    table = tmp_path / "t"
    write_plain(table / "000000_0", (1, 1), (2, 2))
    write_plain(table / "000000_0_copy_1", (3, 3), (4, 4), (5, 5), (6, 6))
    write_plain(table / "000000_0_copy_2", (7, 7))
    (table / "000001_0").write_bytes(b"")
    assert pairs_of(table) == {(0, B0, i): (i + 1, i + 1) for i in range(7)}
    outcome = run_compaction(table, CompactionKind.MAJOR)
    assert outcome
    assert outcome.published == ("base_-9223372036854775808",)
    assert pairs_of(table) == {(0, B0, i): (i + 1, i + 1) for i in range(7)}


def test_rows_of_raw_directories_are_numbered_over_their_files(tmp_path: Path) -> None:
    table = tmp_path / "t"
    for name in ("000000_0", "000000_0_copy_1", "000000_0_copy_2"):
        write_plain(table / "delta_0000024_0000024_0003" / name, (1, 2), (3, 4))
    value = encode(0, 3)
    assert set(pairs_of(table)) == {(24, value, i) for i in range(6)}
    write_plain(table / "base_0000030" / "000000_0", (1, 1), (2, 2))
    write_plain(table / "base_0000030" / "000000_0_copy_1", (3, 3))
    assert pairs_of(table) == {(30, B0, i): (i + 1, i + 1) for i in range(3)}
    assert pairs_of(table, ValidWriteIds(29)) == {(24, value, i): ((1, 2), (3, 4))[i % 2] for i in range(6)}


@pytest.fixture
def loaded(tmp_path: Path) -> Path:
    """The table of section 8.7: LOAD DATA, an update, an insert, a delete."""
    table = tmp_path / "loaded"
    write_plain(table / "delta_0000020_0000020_0000" / "000000_0", (1, 2), (3, 4))
    write_acid(table / "delete_delta_0000023_0000023_0000" / "bucket_00000", (2, 20, B0, 0, 23, None))
    write_acid(table / "delta_0000023_0000023_0000" / "bucket_00000", (0, 23, B0, 0, 23, (1, 17)))
    write_acid(table / "delta_0000026_0000026_0000" / "bucket_00000", (0, 26, B0, 0, 26, (2, 2)))
    write_acid(table / "delete_delta_0000027_0000027_0000" / "bucket_00000", (2, 20, B0, 1, 27, None))
    return table


def test_minor_stores_the_ids_of_raw_rows(loaded: Path) -> None:
    wanted = {(23, B0, 0): (1, 17), (26, B0, 0): (2, 2)}
    assert pairs_of(loaded) == wanted
    outcome = run_compaction(loaded, CompactionKind.MINOR)
    assert outcome
    assert outcome.published == ("delta_0000020_0000027", "delete_delta_0000020_0000027")
    assert ids_in(loaded / "delta_0000020_0000027" / "bucket_00000") == [
        (0, 20, B0, 0, 20), (0, 20, B0, 1, 20), (0, 23, B0, 0, 23), (0, 26, B0, 0, 26),
    ]  # fmt: skip
    assert ids_in(loaded / "delete_delta_0000020_0000027" / "bucket_00000") == [
        (2, 20, B0, 0, 23), (2, 20, B0, 1, 27),
    ]  # fmt: skip
    assert pairs_of(loaded) == wanted


def test_major_compaction_of_raw_rows_keeps_their_ids(loaded: Path) -> None:
    outcome = run_compaction(loaded, CompactionKind.MAJOR)
    assert outcome
    assert outcome.published == ("base_0000027",)
    assert pairs_of(loaded) == {(23, B0, 0): (1, 17), (26, B0, 0): (2, 2)}


def test_minor_collapses_only_within_one_write_id(tmp_path: Path) -> None:
    """Pitfall 8: insert and delete in one write id leave the delete; a later delete leaves both."""
    table = tmp_path / "t"
    write_acid(
        table / "delta_1_1_0000" / "bucket_00000",
        (0, 1, B0, 0, 1, (1, 1)),
        (0, 1, B0, 1, 1, (2, 2)),
        (0, 1, B0, 2, 1, (3, 3)),
    )
    write_acid(table / "delete_delta_0000001_0000001_0001" / "bucket_00000", (2, 1, B0, 0, 1, None))
    write_acid(table / "delete_delta_0000002_0000002_0000" / "bucket_00000", (2, 1, B0, 1, 2, None))
    write_acid(table / "delete_delta_0000003_0000003_0000" / "bucket_00000", (2, 1, B0, 2, 3, None))
    aborted = ValidWriteIds(3, aborted=(3,))
    outcome = run_compaction(table, CompactionKind.MINOR, aborted)
    assert outcome
    assert ids_in(table / "delta_0000001_0000002" / "bucket_00000") == [(0, 1, B0, 1, 1), (0, 1, B0, 2, 1)]
    assert ids_in(table / "delete_delta_0000001_0000002" / "bucket_00000") == [(2, 1, B0, 0, 1), (2, 1, B0, 1, 2)]
    assert pairs_of(table, aborted) == {(1, B0, 2): (3, 3)}


@pytest.mark.parametrize("verify", list(Verify))
def test_an_emptied_table_gets_a_base_of_one_file_without_rows(tmp_path: Path, verify: Verify) -> None:
    """Trino takes no notice of a directory without data files, and would read on what the base hides."""
    table = tmp_path / "t"
    write_acid(table / "delta_1_1_0000" / "bucket_00000", (0, 1, B0, 0, 1, (1, 1)))
    write_acid(table / "delta_1_1_0000" / "bucket_00001", (0, 1, B1, 0, 1, (1, 1)))
    write_acid(table / "delete_delta_0000002_0000002_0000" / "bucket_00000", (2, 1, B0, 0, 2, None))
    write_acid(table / "delete_delta_0000002_0000002_0000" / "bucket_00001", (2, 1, B1, 0, 2, None))
    outcome = run_compaction(table, CompactionKind.MAJOR, writing=Writing(verify=verify))
    assert outcome
    base = table / "base_0000002"
    assert sorted(path.name for path in base.iterdir()) == ["_metadata_acid", "_orc_acid_version", "bucket_00000"]
    file = orc.ORCFile(base / "bucket_00000")
    assert (file.nrows, len(file.schema), file.metadata[b"hive.acid.key.index"]) == (0, 6, b"")
    assert pairs_of(table) == {}
    assert run_compaction(table, CompactionKind.MAJOR) is None
    assert {verdict.name for verdict in snapshot_of(table).state.verdicts if verdict.state.value == "obsolete"} == {
        "delta_1_1_0000", "delete_delta_0000002_0000002_0000",
    }  # fmt: skip


def test_pitfall_9_the_schema_tells_not_the_key_index(tmp_path: Path) -> None:
    """A native file without user metadata, as a merge compaction leaves it, is not an original."""
    table = tmp_path / "t"
    write_acid(table / "delta_1_1_0000" / "bucket_00000", (0, 1, B0, 0, 1, (1, 1)), (0, 1, B0, 1, 1, (2, 2)))
    bare = table / "delta_1_2" / "bucket_00000"
    bare.parent.mkdir()
    orc.write_table(orc.read_table(table / "delta_1_1_0000" / "bucket_00000"), bare)
    assert not orc.ORCFile(bare).metadata
    write_acid(table / "delete_delta_0000003_0000003_0000" / "bucket_00000", (2, 1, B0, 0, 3, None))
    assert pairs_of(table) == {(1, B0, 1): (2, 2)}
    outcome = run_compaction(table, CompactionKind.MAJOR)
    assert outcome
    (name,) = outcome.published
    assert orc.ORCFile(table / name / "bucket_00000").metadata[b"hive.acid.key.index"] == f"1,{B0},1;".encode()


def test_pitfall_15_an_update_of_acid_v1_wins(tmp_path: Path) -> None:
    table = tmp_path / "t"
    write_acid(
        table / "delta_1_1" / "bucket_00000", (0, 1, 0, 0, 1, (1, 1)), (0, 1, 0, 1, 1, (2, 2)), (0, 1, 0, 2, 1, (3, 3))
    )
    write_acid(table / "delta_2_2" / "bucket_00000", (1, 1, 0, 0, 2, (1, 17)), (2, 1, 0, 1, 2, None))
    write_acid(table / "delta_3_3_0000" / "bucket_00000", (1, 1, 0, 0, 3, (1, 18)))
    write_acid(table / "delta_3_3_0001" / "bucket_00000", (1, 1, 0, 0, 3, (1, 19)))
    assert pairs_of(table) == {(1, 0, 0): (1, 19), (1, 0, 2): (3, 3)}
    assert pairs_of(table, ValidWriteIds(2)) == {(1, 0, 0): (1, 17), (1, 0, 2): (3, 3)}
    assert pairs_of(table, ValidWriteIds(3, aborted=(3,))) == {(1, 0, 0): (1, 17), (1, 0, 2): (3, 3)}
    outcome = run_compaction(table, CompactionKind.MAJOR, writing=Writing(reader=Hive.HIVE2))
    assert outcome
    assert ids_in(table / "base_0000003" / "bucket_00000") == [(1, 1, 0, 0, 3), (0, 1, 0, 2, 1)]
    assert pairs_of(table) == {(1, 0, 0): (1, 19), (1, 0, 2): (3, 3)}


def test_a_truncated_base_reads_as_empty(tmp_path: Path) -> None:
    table = tmp_path / "t"
    write_acid(table / "delta_1_1_0000" / "bucket_00000", (0, 1, B0, 0, 1, (1, 1)))
    (table / "base_0000002").mkdir()
    (table / "base_0000002" / "_metadata_acid").write_text('{"thisFileVersion":"0","dataFormat":"truncated"}')
    assert pairs_of(table) == {}
    write_acid(table / "delta_3_3_0000" / "bucket_00000", (0, 3, B0, 0, 3, (5, 5)))
    assert pairs_of(table) == {(3, B0, 0): (5, 5)}


def test_only_what_the_last_whole_flush_length_covers_is_read(tmp_path: Path) -> None:
    """Pitfall 10: only what the last complete number covers is there."""
    table = tmp_path / "t"
    file = table / "delta_1_2" / "bucket_00000"
    write_acid(file, (0, 1, B0, 0, 1, (1, 1)))
    committed = file.stat().st_size
    with file.open("ab") as more:
        more.write(b"half a stripe")
    side = Path(f"{file}_flush_length")
    side.write_bytes(bytes(8) + committed.to_bytes(8, "big") + b"\0\0")
    assert pairs_of(table) == {(1, B0, 0): (1, 1)}
    side.write_bytes(bytes(8))
    assert pairs_of(table) == {}
    side.write_bytes((committed + 100).to_bytes(8, "big"))
    with pytest.raises(AcidctlError, match="flush length"):
        pairs_of(table)


def test_names_without_a_bucket_are_read_but_not_compacted(tmp_path: Path) -> None:
    table = tmp_path / "t"
    write_plain(table / "part-00000.orc", (1, 1))
    write_plain(table / "000000_0", (2, 2))
    assert sorted(row["a"] for _, row in read_rows(table)) == [1, 2]
    with pytest.raises(AcidctlError, match=r"part-00000\.orc"):
        run_compaction(table, CompactionKind.MAJOR)


def test_rows_of_different_schemas_are_one_type(tmp_path: Path) -> None:
    table = tmp_path / "t"
    write_acid(table / "delta_1_1_0000" / "bucket_00000", (0, 1, B0, 0, 1, (1, 1)))
    wider = struct(a=OrcType("bigint"), renamed=OrcType("int"), c=OrcType("string"))
    write_acid(table / "delta_2_2_0000" / "bucket_00000", insert(2, 0, (2**40, 5, "x")), row=wider)
    wanted = [{"a": 1, "renamed": 1, "c": None}, {"a": 2**40, "renamed": 5, "c": "x"}]
    assert [row for _, row in read_rows(table)] == wanted
    assert run_compaction(table, CompactionKind.MAJOR, writing=Writing(reader=Hive.HIVE4))
    assert [row for _, row in read_rows(table)] == wanted


def test_dump_shows_the_ids_that_readers_give(converted: Path, loaded: Path, tmp_path: Path) -> None:
    from support.files.json_text import encode_json_lines

    def ids(path: Path) -> list[tuple[int, int, int, int]]:
        fs, inner = open_location(str(path))
        rows = []
        for source in event_files_at(fs, inner):
            with source.open() as events:
                for stripe in range(events.stripes):
                    rows += [json.loads(line) for line in encode_json_lines(events.batch(stripe), None).splitlines()]
        return [(r["operation"], r["originalTransaction"], r["bucket"], r["rowId"]) for r in rows]

    assert ids(converted / "HIVE_UNION_SUBDIR_2" / "000001_0") == [(0, 0, B1, 1)]
    assert ids(converted / "HIVE_UNION_SUBDIR_15") == [(0, 0, B0, 3), (0, 0, B0, 4)]
    assert len(ids(converted)) == 10
    assert ids(loaded / "delta_0000020_0000020_0000" / "000000_0") == [(0, 20, B0, 0), (0, 20, B0, 1)]
    assert len(ids(loaded)) == 6


def test_pitfall_11_stray_files_beside_a_bucket_are_no_data(tmp_path: Path) -> None:
    table = tmp_path / "t"
    bucket = table / "delta_1_1_0" / "bucket_00000"
    for path in (bucket, Path(f"{bucket}.fixacidindex"), bucket.parent / "delta_1_1_0" / "bucket_00000"):
        write_acid(path, (0, 1, B0, 0, 1, (1, 1)))
    assert read_rows(table) == [((1, B0, 0), {"a": 1, "b": 1})]


def test_originals_are_numbered_alike_in_every_snapshot(tmp_path: Path) -> None:
    """Hive 2 numbered the originals; a snapshot that sees none of the files that say so gives the same ROW__IDs."""
    write_plain(tmp_path / "000001_0", (1, 2))
    write_acid(tmp_path / "delta_0000001_0000001_0000" / "bucket_00001", (0, 1, 1, 0, 1, (3, 4)))
    write_acid(tmp_path / "delete_delta_0000002_0000002_0000" / "bucket_00001", (2, 0, 1, 0, 2, None))
    assert pairs_of(tmp_path) == {(1, 1, 0): (3, 4)}
    nothing = ValidWriteIds.parse("t:0:9223372036854775807::")
    assert pairs_of(tmp_path, nothing) == {(0, 1, 0): (1, 2)}


def test_a_damaged_file_that_is_not_read_does_not_matter(tmp_path: Path) -> None:
    write_plain(tmp_path / "000001_0", (1, 2))
    (tmp_path / "delta_0000001_0000001_0000").mkdir()
    (tmp_path / "delta_0000001_0000001_0000" / "bucket_00001").write_bytes(b"half")
    nothing = ValidWriteIds.parse("t:0:9223372036854775807::")
    assert pairs_of(tmp_path, nothing) == {(0, B1, 0): (1, 2)}


def events_at(path: Path) -> list[dict[str, object]]:
    fs, inner = open_location(str(path))
    rows = []
    for source in event_files_at(fs, inner):
        with source.open() as events:
            for stripe in range(events.stripes):
                rows += events.batch(stripe).to_pylist()
    return rows


def test_a_file_can_be_looked_at_whatever_became_of_the_others(converted: Path) -> None:
    """Only files whose rows are counted to number its rows matter: earlier ones of its bucket in its directory."""
    write_plain(converted / "delta_10000001_10000001_0000" / "000000_0", (1, 1), (2, 2))
    write_plain(converted / "delta_10000001_10000001_0000" / "000000_0_copy_1", (3, 3))
    write_plain(converted / "delta_10000001_10000001_0000" / "000001_0", (4, 4))
    write_acid(converted / "delta_10000002_10000002_0000" / "bucket_00000", (0, 10000002, B0, 0, 10000002, (9, 9)))
    (converted / "base_10000001").mkdir()
    files = [path for path in sorted(converted.rglob("*")) if path.is_file()]
    before = {path: events_at(path) for path in files}
    contents = {path: path.read_bytes() for path in files}
    needs = {path: {path} for path in files}
    for path in files:
        for other in files:
            raw = {"delta_10000001_10000001_0000"} & {path.parent.name, other.parent.name}
            native = path.name.startswith("bucket") or other.name.startswith("bucket")
            if not native and (not raw or path.parent == other.parent) and path.name[:6] == other.name[:6]:
                needs[path] |= {other} if str(other) < str(path) else set()
    (converted / "base_10000001" / "_metadata_acid").write_text("no JSON")
    for path in files:
        for other in set(files) - needs[path]:
            other.write_bytes(b"damaged" * 9)
        assert events_at(path) == before[path], path
        for other in needs[path] - {path}:
            other.write_bytes(b"damaged" * 9)
            with pytest.raises(AcidctlError):
                events_at(path)
            other.write_bytes(contents[other])
        for other in files:
            other.write_bytes(contents[other])
    assert len(before[converted / "HIVE_UNION_SUBDIR_2" / "000000_0"]) == 1
    assert sum(map(len, needs.values())) > len(files)
