"""Files that Hive 3 and Hive 4 read differently are compacted for the one that is named, and for no other."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyarrow import orc
from support.compacting import run_compaction
from support.files.acid_files import IDS, insert, struct, write_acid, write_by_pyorc
from support.tables import read_rows

from acidctl.acid.compaction_kind import CompactionKind, Hive
from acidctl.base.errors import RefusedError
from acidctl.compaction.output_settings import Writing
from acidctl.orc.types import OrcType

FIRST, SECOND = "delta_0000001_0000001_0000", "delta_0000002_0000002_0000"


def write(table: Path, row: str, values: Any, *, newest: str = "a:int,b:int") -> None:
    write_by_pyorc(table / FIRST, [insert(1, 0, values)], schema=f"struct<{IDS},row:struct<{row}>>")
    write_by_pyorc(table / SECOND, [insert(2, 0, (3, 4))], schema=f"struct<{IDS},row:struct<{newest}>>")


def flush_length(table: Path) -> None:
    write(table, "a:int,b:int", (1, 2))
    (table / FIRST / "bucket_00000_flush_length").write_bytes(bytes(8))


CASES: dict[str, tuple[Any, set[Hive | None]]] = {
    "the same": (lambda t: write(t, "a:int,b:int", (1, 2)), {None, Hive.HIVE3, Hive.HIVE4}),
    "numbered": (lambda t: write(t, "_col0:int,_col1:int", (1, 2)), {Hive.HIVE4}),
    "the newest numbered": (lambda t: write(t, "a:int,b:int", (1, 2), newest="_col0:int,_col1:int"), {Hive.HIVE4}),
    "all numbered": (
        lambda t: write(t, "_col0:int,_col1:int", (1, 2), newest="_col0:int,_col1:int"), {None, Hive.HIVE3, Hive.HIVE4}
    ),
    "a column less": (lambda t: write(t, "a:int", (1,)), {None, Hive.HIVE3, Hive.HIVE4}),
    "renamed": (lambda t: write(t, "a:int,c:int", (1, 2)), {Hive.HIVE4}),
    "swapped": (lambda t: write(t, "b:int,a:int", (1, 2)), {Hive.HIVE4}),
    "in capitals": (lambda t: write(t, "A:int,B:int", (1, 2)), {Hive.HIVE4}),
    "a flush length": (flush_length, {Hive.HIVE4}),
}  # fmt: skip


@pytest.mark.parametrize("kind", CompactionKind)
@pytest.mark.parametrize("reader", [None, Hive.HIVE3, Hive.HIVE4])
@pytest.mark.parametrize("name", CASES)
def test_it_is_compacted_for_whom_it_changes_nothing(
    tmp_path: Path, name: str, reader: Hive | None, kind: CompactionKind
) -> None:
    made, readers = CASES[name]
    made(tmp_path)
    before = read_rows(tmp_path)
    if reader in readers:
        assert run_compaction(tmp_path, kind, writing=Writing(reader=reader)) is not None
    else:
        with pytest.raises(RefusedError) as refused:
            run_compaction(tmp_path, kind, writing=Writing(reader=reader))
        assert ("--for hive" in refused.value.hint) == (reader is None)
    assert read_rows(tmp_path) == before


@pytest.mark.parametrize(("second", "is_same"), [("b", True), ("renamed", False)])
@pytest.mark.parametrize("reader", [None, Hive.HIVE3])
def test_numbered_beside_named_columns_by_the_names_of_the_table(
    tmp_path: Path, reader: Hive | None, second: str, is_same: bool
) -> None:
    """Hive 3 shows NULL in the named file for a column that was renamed since, and the value in the numbered one."""
    write(tmp_path, "_col0:int,_col1:int", (1, 2))
    columns = struct(a=OrcType("int"), **{second: OrcType("int")})
    if is_same:
        assert run_compaction(tmp_path, CompactionKind.MAJOR, writing=Writing(reader=reader), columns=columns)
        assert [tuple(row.values()) for _, row in read_rows(tmp_path)] == [(1, 2), (3, 4)]
    else:
        with pytest.raises(RefusedError):
            run_compaction(tmp_path, CompactionKind.MAJOR, writing=Writing(reader=reader), columns=columns)


@pytest.mark.parametrize(("day", "readers"), [(-141_427, {None, *Hive}), (-141_428, {Hive.HIVE3})])
@pytest.mark.parametrize("reader", [None, Hive.HIVE3, Hive.HIVE4])
def test_old_dates_of_a_file_without_a_calendar(
    tmp_path: Path, reader: Hive | None, day: int, readers: set[Hive | None]
) -> None:
    values = (date(1970, 1, 1) + timedelta(days=day), 1)
    for write_id, name in ((1, FIRST), (2, SECOND)):
        write_by_pyorc(tmp_path / name, [insert(write_id, 0, values)], schema=f"struct<{IDS},row:struct<a:date,b:int>>")
    if reader in readers:
        assert run_compaction(tmp_path, CompactionKind.MAJOR, writing=Writing(reader=reader)) is not None
    else:
        with pytest.raises(RefusedError):
            run_compaction(tmp_path, CompactionKind.MAJOR, writing=Writing(reader=reader))


@pytest.mark.parametrize("days", [(-141_427, 0), (-141_428, 0), (0, -141_428)])
@pytest.mark.parametrize("calendars", [(1, 1), (1, 2), (2, 2)])
@pytest.mark.parametrize("reader", [None, Hive.HIVE3, Hive.HIVE4])
def test_old_dates_keep_their_numbers_for_hive_3(
    tmp_path: Path, reader: Hive | None, calendars: tuple[int, int], days: tuple[int, int]
) -> None:
    for write_id, (calendar, day) in enumerate(zip(calendars, days, strict=True), 1):
        event = insert(write_id, 0, (date(1970, 1, 1) + timedelta(days=day),))
        path = tmp_path / f"delta_{write_id:07}_{write_id:07}_0000/bucket_00000"
        write_acid(path, event, row=struct(a=OrcType("date")), calendar=calendar)
    before = read_rows(tmp_path)
    if reader is not Hive.HIVE4 and calendars == (1, 2) and days == (-141_428, 0):
        with pytest.raises(RefusedError):
            run_compaction(tmp_path, CompactionKind.MAJOR, writing=Writing(reader=reader))
    else:
        assert run_compaction(tmp_path, CompactionKind.MAJOR, writing=Writing(reader=reader)) is not None
        (base,) = tmp_path.glob("base_*/bucket_*")
        rows = orc.ORCFile(base).read().column("row").combine_chunks()
        if reader is not Hive.HIVE4:
            assert rows.field("a").cast("int32").to_pylist() == list(days)
    assert read_rows(tmp_path) == before


@pytest.mark.parametrize("kind", CompactionKind)
@pytest.mark.parametrize(
    ("own", "value", "of_hive_3", "of_hive_4"),
    [
        ("float", 0.1, "0.1", "0.10000000149011612"),
        ("float", 0.5, "0.5", "0.5"),
        (
            "timestamp",
            datetime(2020, 1, 2, 3, 4, 5, 500_000, UTC),
            "",
            "2020-01-02 03:04:05.5",
        ),  # Hive 3 uses its time zone
        ("date", date(1970, 1, 1), "1970-01-01", "1970-01-01"),
    ],
)
def test_a_value_becomes_text_as_its_reader_has_it(
    tmp_path: Path, own: str, value: Any, of_hive_3: str, of_hive_4: str, kind: CompactionKind
) -> None:
    columns = struct(a=OrcType("string"), b=OrcType("int"))
    wanted = {Hive.HIVE3: of_hive_3, Hive.HIVE4: of_hive_4, None: of_hive_4 if of_hive_3 == of_hive_4 else ""}
    for reader, text in wanted.items():
        table = tmp_path / f"for_{reader}"
        write_by_pyorc(table / FIRST, [insert(1, 0, (value, 1))], schema=f"struct<{IDS},row:struct<a:{own},b:int>>")
        write_by_pyorc(table / SECOND, [insert(2, 0, ("x", 2))], schema=f"struct<{IDS},row:struct<a:string,b:int>>")
        with pytest.raises(RefusedError, match="type of the table is unknown"):
            run_compaction(table, kind, writing=Writing(reader=reader))
        if not text:
            with pytest.raises(RefusedError, match="Hive 3"):
                run_compaction(table, kind, writing=Writing(reader=reader), columns=columns)
            continue
        assert run_compaction(table, kind, writing=Writing(reader=reader), columns=columns) is not None
        assert [row["a"] for _, row in read_rows(table)] == [text, "x"]
