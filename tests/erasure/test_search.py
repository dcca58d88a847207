"""Rows planted anywhere in a location are found, file by file, and none is after delete, compact, clean and purge."""

from __future__ import annotations

import gc
import gzip
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from support.files.acid_files import AB, delete, insert, struct, write_acid, write_plain

from acidctl.acid.writeids import ValidWriteIds
from acidctl.api import Location
from acidctl.base.errors import UsageProblem
from acidctl.erasure import search
from acidctl.erasure.report import ErasureReport, TableErasure
from acidctl.erasure.searched_file import SearchedFile
from acidctl.location.snapshot_resolver import SnapshotResolver
from acidctl.location.table_location import TableLocation
from acidctl.orc.types import OrcType
from acidctl.orc.write.writer_settings import WriterSettings
from acidctl.verbs.events import Events
from acidctl.verbs.reading.erasure import ErasureOptions, erasure
from acidctl.verbs.selection import Selection

CONDITIONS: dict[str, Callable[[int | None, int | None], bool | None]] = {
    "a = 3": lambda a, b: None if a is None else a == 3,
    "a > 5": lambda a, b: None if a is None else a > 5,
    "a IS NULL": lambda a, b: a is None,
    "NOT (a < 4)": lambda a, b: None if a is None else a >= 4,
    "a IN (1, 2) AND b IS NOT NULL": lambda a, b: a in (1, 2) and b is not None,
    "a <=> b": lambda a, b: a == b,
}
NAMES = (
    "base_0000001", "base_0000004", "delta_0000002_0000002_0000", "delta_0000005_0000005_0000",
    "delta_0000006_0000006_0000", "delta_0000009_0000009_0000", "_tmp_space/base_0000009",
    ".acidctl-trash/20260101T000000.000Z-aa/delta_0000001_0000001_0000",
    ".acidctl-backup/20260101T000000.000Z-bb/old/delta_0000003_0000003_0000", ".hive-staging_1/-ext-10000/000000_0",
    "folder/000000_0", "delta_0000002_0000002_0000/delta_0000002_0000002_0000",
)  # fmt: skip
"""Of every state by the list below, and of none."""
LISTS = ValidWriteIds.parse("db.t:8:8:8:6")

Rows = list[tuple[int | None, int | None]]
small = st.one_of(st.none(), st.integers(0, 8))
rows_of = st.lists(st.tuples(small, small), min_size=1, max_size=12)


def plant(table: Path, name: str, rows: Rows, luck: random.Random) -> Path:
    """A file of inserts, or one without ids, with some stripes."""
    path = table / name
    if name.endswith("000000_0"):
        return write_plain(path, *rows, row=AB)
    events = [insert(1, place, row) for place, row in enumerate(rows)]
    return write_acid(path / "bucket_00000", *events, row=AB, settings=WriterSettings(stride=luck.choice((1000, 2000))))


def found_by(result: TableErasure) -> dict[str, int]:
    return {file.path: file.matched.events for report in result.reports for file in report.files if file.matched.events}


@settings(max_examples=25, deadline=None, phases=[Phase.generate])
@given(st.dictionaries(st.sampled_from(NAMES), rows_of, min_size=1), st.sampled_from(sorted(CONDITIONS)), st.data())
def test_rows_in_any_place_are_found(
    tmp_path_factory: pytest.TempPathFactory, planted: dict[str, Rows], condition: str, data: st.DataObject
) -> None:
    luck = data.draw(st.randoms(use_true_random=False))
    table = tmp_path_factory.mktemp("database") / "db.db" / "t"
    expected = {}
    planted.setdefault("delta_0000005_0000005_0000", [(0, 0)])
    for name, rows in planted.items():
        path = plant(table, name, rows, luck)
        count = sum(CONDITIONS[condition](*row) is True for row in rows)
        if count:
            expected[str(path)] = count
    # Delete events hold no row, whatever the condition says of NULL.
    write_acid(table / "delete_delta_0000007_0000007_0000" / "bucket_00000", delete(1, 0, 7), row=AB)
    result = Location(table, snapshot=LISTS).erasure(condition)
    assert found_by(result) == expected
    assert result.events == sum(expected.values())
    assert result.is_known
    shutil.rmtree(table)


@settings(max_examples=6, deadline=None, phases=[Phase.generate])
@given(st.lists(rows_of, min_size=1, max_size=4), st.sampled_from(sorted(CONDITIONS)))
def test_none_is_found_after_delete_compact_clean_and_purge(
    tmp_path_factory: pytest.TempPathFactory, deltas: list[Rows], condition: str
) -> None:
    table = tmp_path_factory.mktemp("t")
    truth = CONDITIONS[condition]
    left = 0
    dead = []
    for write_id, rows in enumerate(deltas, 1):
        at = table / f"delta_{write_id:07}_{write_id:07}_0000" / "bucket_00000"
        write_acid(at, *(insert(write_id, place, row) for place, row in enumerate(rows)), row=AB)
        dead += [(write_id, place) for place, row in enumerate(rows) if truth(*row) is True]
        left += sum(truth(*row) is not True for row in rows)
    last = len(deltas) + 1
    if dead:
        at = table / f"delete_delta_{last:07}_{last:07}_0000" / "bucket_00000"
        write_acid(at, *(delete(write_id, place, last) for write_id, place in dead), row=AB)
    location = Location(table, assume_committed=0)
    assert location.erasure(condition).events == len(dead)
    if dead:
        location.compact("major")
        assert location.erasure(condition).events == len(dead)
        location.clean(older_than=0, unsafe_retention=True)
        kinds = {holder.kind.value for holder in location.erasure(condition).reports[0].holdings}
        assert kinds == {"trash"}
        location.purge()
    gone = location.erasure(condition, prove=True)
    assert (gone.events, gone.is_known) == (0, True)
    assert all(len(file.sha256) == 64 for report in gone.reports for file in report.files)
    assert location.rows().scan().count() == left
    shutil.rmtree(table)


# --- what is not known is never called gone ----------------------------------------------------------------------


def only(result: TableErasure) -> ErasureReport:
    (report,) = result.reports
    return report


def test_what_cannot_be_read_is_not_known(tmp_path: Path) -> None:
    write_acid(tmp_path / "delta_0000001_0000001_0000" / "bucket_00000", insert(1, 0, (1, 1)), row=AB)
    bad = write_acid(tmp_path / "delta_0000002_0000002_0000" / "bucket_00000", insert(2, 0, (1, 1)), row=AB)
    bad.write_bytes(bad.read_bytes()[:100])
    report = only(Location(tmp_path).erasure("a = 9"))
    assert (report.events, report.is_known) == (0, False)
    assert [holder.name for holder in report.holdings] == ["delta_0000002_0000002_0000"]
    assert [step.remedy for step in report.steps] == ["look"]


def test_a_missing_column_leaves_open_only_what_it_decides(tmp_path: Path) -> None:
    write_acid(tmp_path / "delta_0000002_0000002_0000" / "bucket_00000", insert(2, 0, (1, 1)), row=AB)
    old = struct(a=OrcType("int"))
    write_acid(
        tmp_path / "delta_0000001_0000001_0000" / "bucket_00000", insert(1, 0, (3,)), insert(1, 1, (4,)), row=old
    )
    location = Location(tmp_path)
    assert not location.erasure("a = 3 AND b = 7").is_known
    assert not location.erasure("b IS NULL").is_known
    assert location.erasure("a = 5 AND b = 7").is_known
    assert not location.erasure("NOT (b = 7)").is_known
    assert location.erasure("NOT (a > 2 OR b = 9)").events == 1
    assert location.erasure("NOT (a > 2 OR b = 9)").is_known
    assert location.erasure("a = 3 OR b = 7").events == 1


@pytest.mark.parametrize(
    ("name", "data"),
    [("x.orc.gz", None), ("x.csv", b"1,3\n"), ("x.json", b'{"a": 3}\n'), ("x.sql", b"INSERT INTO t VALUES (3, 3)")],
)
def test_text_that_nobody_declares_is_not_known(tmp_path: Path, name: str, data: bytes | None) -> None:
    path = plant(tmp_path / "t", "base_0000001", [(1, 1)], random.Random(1))
    orc = plant(tmp_path / "other", "base_0000001", [(3, 3)], random.Random(1)).read_bytes()
    path.with_name(name).write_bytes(gzip.compress(orc) if data is None else data)
    assert not Location(tmp_path / "t", snapshot=ValidWriteIds.parse("t:1:9::")).erasure("a = 3").is_known


def test_rows_behind_a_flush_length_are_found(tmp_path: Path) -> None:
    path = write_acid(tmp_path / "delta_0000001_0000005" / "bucket_00000", insert(1, 0, (1, 1)), row=AB)
    whole = path.stat().st_size
    side = path.with_name("bucket_00000_flush_length")
    side.write_bytes((whole // 2).to_bytes(8, "big"))
    assert only(Location(tmp_path).erasure("a = 1")).events == 1
    side.write_bytes(whole.to_bytes(8, "big"))
    path.write_bytes(path.read_bytes() + b"rows of an open transaction")
    report = only(Location(tmp_path).erasure("a = 1"))
    assert (report.events, report.is_known) == (1, False)
    assert "behind byte" in report.files[0].problem


def test_a_closed_directory_is_not_known(tmp_path: Path) -> None:
    write_acid(tmp_path / "delta_0000001_0000001_0000" / "bucket_00000", insert(1, 0, (1, 1)), row=AB)
    closed = tmp_path / ".hive-staging_9"
    closed.mkdir()
    (closed / "x").write_bytes(b"x")
    closed.chmod(0)
    try:
        if list_closed(closed):
            pytest.skip("this user may look into everything")
        assert not Location(tmp_path).erasure("a = 9").is_known
    finally:
        closed.chmod(0o700)


def list_closed(path: Path) -> bool:
    try:
        return bool(list(path.iterdir()))
    except PermissionError:
        return False


def test_columns_and_conditions_that_do_not_fit(tmp_path: Path) -> None:
    location = Location(tmp_path)
    assert location.erasure("a = 1").is_known  # nothing is there at all
    write_acid(tmp_path / "delta_0000001_0000001_0000" / "bucket_00000", insert(1, 0, (1, 1)), row=AB)
    assert "no column 'nobody'" in location.erasure("nobody = 1").lacks
    assert not location.erasure("a LIKE 'x'").is_known
    with pytest.raises(UsageProblem):
        location.erasure("a = = 1")


def test_row_ids_and_partitions_may_be_asked_for(tmp_path: Path) -> None:
    day = tmp_path / "t" / "day=1"
    write_acid(day / "delta_0000001_0000001_0000" / "bucket_00000", insert(1, 0, (1, 1)), insert(1, 1, (2, 2)), row=AB)
    write_acid(day / "delete_delta_0000002_0000002_0000" / "bucket_00000", delete(1, 0, 2), row=AB)
    location = Location(day)
    assert location.erasure("ROW__ID.rowid = 1 AND ROW__ID.writeid = 1").events == 1
    assert location.erasure("day = 1").events == 2
    assert only(location.erasure("day = 1")).live == 1
    assert location.erasure("day = 2").events == 0
    assert location.erasure("day IS NULL OR a = 2").events == 1


def test_rows_of_aborted_transactions_in_the_only_directory_need_a_write(tmp_path: Path) -> None:
    table = tmp_path / "db.db" / "t"
    path = table / "delta_0000001_0000005" / "bucket_00000"
    write_acid(path, insert(1, 0, (1, 1)), insert(3, 0, (7, 7)), row=AB)
    location = Location(table, snapshot=ValidWriteIds.parse("db.t:9:9223372036854775807::3"))
    report = only(location.erasure("a = 7"))
    assert (report.events, report.live) == (1, 0)
    assert [step.remedy for step in report.steps] == ["write", "compact", "clean", "purge"]


def test_columns_of_another_name_in_some_file_are_not_called_absent(tmp_path: Path) -> None:
    renamed = struct(x=OrcType("int"), b=OrcType("int"))
    write_acid(tmp_path / "delta_0000001_0000001_0000" / "bucket_00000", insert(1, 0, (3, 3)), row=AB)
    write_acid(tmp_path / "delta_0000002_0000002_0000" / "bucket_00000", insert(2, 0, (3, 3)), row=renamed)
    result = Location(tmp_path).erasure("a = 3")
    assert (result.lacks, result.is_known) == ("", False)
    assert Location(tmp_path).erasure("x = 3").events == 2


def test_a_list_for_another_table_makes_nothing_known(tmp_path: Path) -> None:
    table = tmp_path / "db.db" / "t"
    write_acid(table / "delta_0000001_0000001_0000" / "bucket_00000", insert(1, 0, (1, 1)), row=AB)
    result = Location(table, snapshot=ValidWriteIds.parse("db.other:9:9223372036854775807::")).erasure("a = 1")
    assert not result.is_known


def test_a_delete_among_rows_holds_none_though_its_columns_are_null(tmp_path: Path) -> None:
    """As ACID v1 writes them, into one stripe."""
    table = tmp_path / "db.db" / "t"
    path = write_acid(
        table / "delta_0000005_0000005_0000" / "bucket_00000", delete(1, 0, 5), insert(5, 0, (1, 1)), row=AB
    )
    assert found_by(Location(table, snapshot=LISTS).erasure("a IS NULL")) == {}
    assert found_by(Location(table, snapshot=LISTS).erasure("a = 1")) == {str(path): 1}


@pytest.mark.parametrize(
    "name",
    [
        ".acidctl-lock", ".acidctl-log-20260101T000000.000Z-aa.jsonl", "base_0000001/_metadata_acid",
        "base_0000001/.bucket_00000.crc", "base_0000001/bucket_00000_flush_length",
        ".acidctl-trash/20260101T000000.000Z-aa/manifest.json", "_tmp_space/_owner.json",
    ],
)  # fmt: skip
def test_rows_in_a_file_that_is_called_as_a_small_one_are_found(tmp_path: Path, name: str) -> None:
    plant(tmp_path / "t", "base_0000001", [(1, 1)], random.Random(1))
    write_plain(tmp_path / "t" / name, (3, 3), row=AB)
    found = Location(tmp_path / "t", snapshot=ValidWriteIds.parse("t:1:9::")).erasure("a = 3")
    assert found_by(found) == {str(tmp_path / "t" / name): 1}


def test_rows_behind_a_flush_length_are_found_or_not_known(tmp_path: Path) -> None:
    path = plant(tmp_path / "t", "delta_0000001_0000001_0000", [(1, 1)], random.Random(1))
    first = path.read_bytes()
    other = plant(tmp_path / "other", "delta_0000001_0000001_0000", [(3, 3)], random.Random(1)).read_bytes()
    path.with_name("bucket_00000_flush_length").write_bytes(len(first).to_bytes(8, "big"))
    for behind in (other, b"\0" * 100 + other, other + b"torn", other[:-20]):
        path.write_bytes(first + behind)
        found = Location(tmp_path / "t", snapshot=ValidWriteIds.parse("t:1:9::")).erasure("a = 3")
        assert found.events == 1 or not found.is_known


def test_of_many_locations_bytes_alone_are_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "_FEW_LOCATIONS", 1)
    for day in range(5):
        name = tmp_path / "t" / f"day={day}" / "delta_0000001_0000001_0000" / "bucket_00000"
        write_acid(name, insert(1, 0, (day, 1)), row=AB)
    before = sum(isinstance(one, SearchedFile | TableLocation) for one in gc.get_objects())
    where = Selection((str(tmp_path / "t"),), {}, SnapshotResolver())
    (found,) = erasure(where, ErasureOptions(where="a = 3"), Events())
    gc.collect()
    assert sum(isinstance(one, SearchedFile | TableLocation) for one in gc.get_objects()) <= before
    assert [report.events for report in found.reports] == [0, 0, 0, 1, 0]
    assert [len(report.files) for report in found.reports] == [1] * 5
