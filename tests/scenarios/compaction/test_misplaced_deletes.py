"""Delete events that Hive passes over: a compaction, which would apply them for good, is refused."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from support.compacting import run_compaction
from support.files.acid_files import DELETE, UPDATE, Event, acid_batch, delete, insert, write_acid, write_by_pyorc
from support.repairing import tail_of, tree
from support.tables import ids_in, read_rows

from acidctl.acid.bucket import encode
from acidctl.acid.compaction_kind import CompactionKind, Hive
from acidctl.base.errors import RefusedError
from acidctl.compaction.merge import written
from acidctl.compaction.output_settings import Writing
from acidctl.orc.types import parse_type
from acidctl.orc.write.acid_writer import AcidWriter

DELTA, DELETES = "delta_0000001_0000001_0000", "delete_delta_0000002_0000002_0000"
NEXT = "delta_0000003_0000003_0000"
ROWS, OTHER = [insert(1, row) for row in range(4)], encode(1)
REFUSED: dict[str, tuple[str, dict[str, Sequence[Event]]]] = {
    "not sorted": ("V26", {f"{DELETES}/bucket_00000": [delete(1, 2, 2), delete(1, 1, 2)]}),
    "an insert among them": ("V12", {f"{DELETES}/bucket_00000": [insert(1, 0), delete(1, 1, 2)]}),
    "a delete among the rows": ("V12", {"delta_0000002_0000002_0000/bucket_00000": [delete(1, 0, 2)]}),
}
"""By both kinds of compaction; of deletes without rows by a minor one, which writes them."""
MISPLACED: dict[str, dict[str, Sequence[Event]]] = {
    "a delete in the file of another bucket": {f"{DELETES}/bucket_00001": [delete(1, 0, 2)]},
    "a row in the file of another bucket": {
        f"{DELTA}/bucket_00001": [insert(1, 0, bucket=encode(2)), insert(1, 1, bucket=encode(2))],
        f"{DELTA}/bucket_00002": [insert(1, 7, bucket=encode(2))],
        f"{DELETES}/bucket_00002": [delete(1, 1, 2, encode(2))],
    },
}
"""Hive 4 does not apply these, and does not after a minor compaction either."""
HARMLESS: dict[str, dict[str, Sequence[Event]]] = {
    "in both files": {
        f"{DELETES}/bucket_00000": [delete(1, 0, 2), delete(1, 0, 2, OTHER)],
        f"{DELETES}/bucket_00001": [delete(1, 0, 2), delete(1, 0, 2, OTHER)],
        f"{DELTA}/bucket_00001": [insert(1, 0, bucket=OTHER), insert(1, 1, bucket=OTHER)],
    },
    "of a row that is not there": {f"{DELETES}/bucket_00005": [delete(1, 0, 2, OTHER)]},
    "beside a row in its file": {
        f"{DELTA}/bucket_00001": [insert(1, 0, bucket=encode(2)), insert(1, 1, bucket=encode(2))],
        f"{DELETES}/bucket_00001": [delete(1, 1, 2, encode(2))],
    },
}
"""Every reader applies these, or none."""


def write(table: Path, files: dict[str, Sequence[Event]]) -> None:
    write_by_pyorc(table / DELTA, ROWS)
    write_by_pyorc(table / NEXT, [insert(3, 0)])
    for path, events in files.items():
        directory, _, file = path.partition("/")
        write_by_pyorc(table / directory, events, file)


@pytest.mark.parametrize("kind", CompactionKind)
@pytest.mark.parametrize("name", REFUSED)
def test_what_hive_does_not_apply_is_not_applied_for_good(tmp_path: Path, kind: CompactionKind, name: str) -> None:
    rule, files = REFUSED[name]
    write(tmp_path, files)
    before = tree(tmp_path)
    with pytest.raises(RefusedError, match=rule):
        run_compaction(tmp_path, kind)
    assert tree(tmp_path) == before


@pytest.mark.parametrize("kind", CompactionKind)
@pytest.mark.parametrize("name", MISPLACED)
def test_what_lies_apart_stays_apart(tmp_path: Path, kind: CompactionKind, name: str) -> None:
    write(tmp_path, MISPLACED[name])
    rows = read_rows(tmp_path)
    if kind is CompactionKind.MAJOR:
        with pytest.raises(RefusedError, match="V21"):
            run_compaction(tmp_path, kind)
    else:
        events = {path.partition("/")[2]: ids_in(tmp_path / path) for path in MISPLACED[name] if "delete" in path}
        assert run_compaction(tmp_path, kind) is not None
        merged = tmp_path / "delete_delta_0000001_0000003"
        assert {path.name: ids_in(path) for path in merged.glob("bucket_*")} == events
    assert read_rows(tmp_path) == rows


@pytest.mark.parametrize("files", [*MISPLACED.values(), REFUSED["not sorted"][1]], ids=[*MISPLACED, "not sorted"])
def test_all_deletes_are_applied_where_that_is_asked_for(tmp_path: Path, files: dict[str, Sequence[Event]]) -> None:
    write(tmp_path, files)
    rows = read_rows(tmp_path)
    assert run_compaction(tmp_path, CompactionKind.MAJOR, writing=Writing(apply_all_deletes=True)) is not None
    assert read_rows(tmp_path) == rows
    assert len(rows) < sum(len(ids_in(path)) for path in tmp_path.glob("delta_*/bucket_*"))


@pytest.mark.parametrize("kind", CompactionKind)
@pytest.mark.parametrize("name", HARMLESS)
def test_what_all_readers_see_alike_is_compacted(tmp_path: Path, kind: CompactionKind, name: str) -> None:
    write(tmp_path, HARMLESS[name])
    rows = read_rows(tmp_path)
    assert run_compaction(tmp_path, kind) is not None
    assert read_rows(tmp_path) == rows


@pytest.mark.parametrize("gap", [1, 3], ids=["copied", "decoded"])
@pytest.mark.parametrize("kind", CompactionKind)
def test_stripes_that_are_not_sorted_among_themselves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: CompactionKind, gap: int
) -> None:
    """Ids that follow each other are not even decoded."""
    monkeypatch.setattr(written, "SMALL_STRIPE", 0)
    write_by_pyorc(tmp_path / DELTA, ROWS)
    write_by_pyorc(tmp_path / NEXT, [insert(3, 0)])
    halves = [list(range(first, first + 1000 * gap, gap)) for first in (50_000, 0)]
    batches = [
        acid_batch(
            pa.nulls(1000, pa.struct({"a": pa.int32(), "b": pa.string()})), ids, operation=DELETE, write_id=1, current=2
        )
        for ids in halves
    ]
    path = tmp_path / DELETES / "bucket_00000"
    path.parent.mkdir()
    with path.open("wb") as file:
        writer = AcidWriter(file, parse_type("struct<a:int,b:string>"))
        for batch in batches:
            writer.write(batch)
            writer.flush()
            writer._last = None  # it would refuse keys that do not ascend
        writer.close()
    assert [stripe.numberOfRows for stripe in tail_of(path).stripes] == [1000, 1000]
    with pytest.raises(RefusedError, match="V26"):
        run_compaction(tmp_path, kind)


@pytest.mark.parametrize("kind", CompactionKind)
def test_rows_of_another_bucket_stay_in_their_file(tmp_path: Path, kind: CompactionKind) -> None:
    write_acid(tmp_path / DELTA / "bucket_00000", insert(1, 0), insert(1, 1), insert(1, 0, bucket=OTHER))
    write_acid(tmp_path / DELETES / "bucket_00000", delete(1, 1, 2))
    write_acid(tmp_path / NEXT / "bucket_00000", insert(3, 0))
    before = read_rows(tmp_path)
    assert run_compaction(tmp_path, kind) is not None
    assert read_rows(tmp_path) == before


@pytest.mark.parametrize("reader", [None, *Hive])
def test_updates_of_version_1_are_for_hive_2(tmp_path: Path, reader: Hive | None) -> None:
    changes = [(UPDATE, *insert(1, 0, current=2)[1:]), delete(1, 1, 2)]
    for name, events in (("delta_1_1", ROWS), ("delta_2_2", changes)):
        write_by_pyorc(tmp_path / name, events, marker=None, metadata={"hive.acid.version": None})
    if reader is Hive.HIVE2:
        assert run_compaction(tmp_path, CompactionKind.MAJOR, writing=Writing(reader=reader)) is not None
        assert len(read_rows(tmp_path)) == 3
        return
    with pytest.raises(RefusedError, match="V12") as refused:
        run_compaction(tmp_path, CompactionKind.MAJOR, writing=Writing(reader=reader))
    assert ("hive2" in refused.value.hint) == (reader is None)


@pytest.mark.parametrize("reader", [None, *Hive])
@pytest.mark.parametrize("in_base", [UPDATE, DELETE])
def test_updates_in_a_base_are_rows_for_every_hive(tmp_path: Path, reader: Hive | None, in_base: int) -> None:
    """As a major compaction of Hive 2 left them; a delete is never in a base."""
    old = {"marker": None, "metadata": {"hive.acid.version": None}}
    write_by_pyorc(tmp_path / "base_2", [(in_base, *insert(1, 0, current=2)[1:])], **old)
    write_by_pyorc(tmp_path / NEXT, [insert(3, 0)])
    if in_base is DELETE and reader is not Hive.HIVE2:
        with pytest.raises(RefusedError, match="V12"):
            run_compaction(tmp_path, CompactionKind.MAJOR, writing=Writing(reader=reader))
        return
    before = read_rows(tmp_path)
    assert run_compaction(tmp_path, CompactionKind.MAJOR, writing=Writing(reader=reader)) is not None
    assert read_rows(tmp_path) == before


def test_a_minor_compaction_collapses_only_deletes_that_hive_finds(tmp_path: Path) -> None:
    write_by_pyorc(tmp_path / DELTA, ROWS)
    write_by_pyorc(tmp_path / DELTA, [insert(1, 0, bucket=OTHER)], "bucket_00001")
    write_by_pyorc(tmp_path / "delete_delta_0000001_0000001_0001", [delete(1, 0, 1)], "bucket_00001")
    write_by_pyorc(tmp_path / NEXT, [insert(3, 0)])
    assert run_compaction(tmp_path, CompactionKind.MINOR) is not None
    assert len(ids_in(tmp_path / "delta_0000001_0000003" / "bucket_00000")) == len(ROWS) + 1
