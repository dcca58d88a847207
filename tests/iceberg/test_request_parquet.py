"""Copies in Parquet: when they are, their catch-ups, and readers in Rust and Python."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.table import StaticTable
from support.command_line import Result as Run
from support.files.acid_files import delete, insert, struct, write_acid, write_delta, write_plain

import acidctl
from acidctl.base.errors import NoSpaceError, RefusedError, UsageProblem, VerifyError
from acidctl.iceberg import file_tasks
from acidctl.iceberg.parquet_files import encode
from acidctl.orc.types import OrcType
from acidctl.outcome import Result
from acidctl.verbs.iceberg.options import Migrated

pytestmark = pytest.mark.filterwarnings("ignore:Iceberg scan planning")  # polars looks for a plugin

Acidctl = Callable[..., Run]
D1 = "delta_0000001_0000001_0000"


def copy(table: Path, to: Path, **options: Any) -> Migrated:
    """Copy a table, or bring the copy up to date if there is one."""
    options = {"catch_up": (to / "metadata").exists(), **options}
    return acidctl.migrate(table, to, assume_committed=0, metastore="none", **options)


def rows(to: Path) -> list[tuple[Any, ...]]:
    """The rows as PyIceberg and polars find them, which must agree."""
    arrow = StaticTable.from_metadata(str(to)).scan().to_arrow()
    newest = max((to / "metadata").glob("v*.json"), key=lambda path: int(path.name[1:].partition(".")[0]))
    other = polars.scan_iceberg(str(newest), reader_override="native").collect()
    found = sorted((tuple(row.values()) for row in arrow.to_pylist()), key=str)
    assert found == sorted(other.rows(), key=str)
    return found


def files(to: Path) -> list[Path]:
    return sorted((to / "data").iterdir())


@pytest.mark.parametrize("kind", ["date", "timestamp", "array<date>"])
def test_old_days_are_for_parquet(kind: str, tmp_path: Path) -> None:
    """Iceberg's readers miss them in ORC files."""
    table, old = tmp_path / "t", pa.array([date(1582, 10, 14)]).cast(pa.date32())
    column = OrcType(kind) if "<" not in kind else OrcType("array", children=(OrcType("date"),))
    times = pa.array([-12_300_000_000], pa.timestamp("s"))
    values = {"date": old, "timestamp": times}.get(kind) or pa.ListArray.from_arrays([0, 1], old)
    batch = pa.RecordBatch.from_arrays([values], names=["d"])
    write_plain(table / "000000_0", batch, row=struct(d=column), calendar=2)
    done = copy(table, tmp_path / "copy", dry_run=True)
    assert (done.result, done.format) == (Result.PLANNED, "parquet")
    assert "d may have days before 1582-10-15" in done.why
    asked = copy(table, tmp_path / "orc", format="orc")
    assert (asked.format, asked.why) == ("orc", f"the copy has ORC files: {done.why.partition(': ')[2]}")


def test_young_days_and_columns_that_are_left_out_are_for_orc(tmp_path: Path) -> None:
    row = struct(d=OrcType("date"), old=OrcType("date"), a=OrcType("int"))
    batch = pa.RecordBatch.from_pydict(
        {"d": [date(1582, 10, 15), None], "old": [date(1, 1, 1)] * 2, "a": pa.array([1, 2], pa.int32())}
    )
    write_plain(tmp_path / "t" / "000000_0", batch, row=row, calendar=2)
    done = copy(tmp_path / "t", tmp_path / "copy", drop_column=("old",))
    assert (done.format, done.rows) == ("orc", 2)
    assert any("--format parquet" in one.text for one in done.remarks())


def test_dead_rows_are_not_written_and_later_ones_are_position_deletes(tmp_path: Path) -> None:
    table, to = tmp_path / "t", tmp_path / "copy"
    write_acid(table / D1 / "bucket_00000", *(insert(1, at, (at, f"{at}")) for at in range(5)))
    write_acid(table / "delete_delta_0000002_0000002_0000" / "bucket_00000", delete(1, 1, 2))
    first = copy(table, to, format="parquet")
    assert (first.rows, first.format) == (4, "parquet")
    (data,) = files(to)
    assert pq.read_table(data)["a"].to_pylist() == [0, 2, 3, 4]
    write_acid(table / "delete_delta_0000003_0000003_0000" / "bucket_00000", delete(1, 3, 3))
    write_acid(table / "delta_0000003_0000003_0000" / "bucket_00000", insert(3, 0, (9, "new")))
    again = copy(table, to)
    assert (again.rows, again.deleted, again.format, again.why) == (1, 1, "parquet", "")
    assert rows(to) == [(0, "0"), (2, "2"), (4, "4"), (9, "new")]
    shutil.rmtree(table / "delete_delta_0000002_0000002_0000")
    shutil.rmtree(table / D1)
    kept = (insert(1, at, (at, f"{at}")) for at in (0, 2, 4))
    write_acid(table / "base_0000003" / "bucket_00000", *kept, insert(3, 0, (9, "new")))
    assert copy(table, to).result is Result.NOTHING_TO_DO


def test_partitions_and_columns_that_come_later(tmp_path: Path) -> None:
    table, to = tmp_path / "t", tmp_path / "copy"
    for day in ("2026-01-01", "__HIVE_DEFAULT_PARTITION__"):
        write_acid(table / f"day={day}" / D1 / "bucket_00000", insert(1, 0, (1, "a")))
    copy(table, to, format="parquet")
    batch = pa.RecordBatch.from_pydict({"a": pa.array([1 << 40]), "b": ["b"], "c": [0.5]})
    row = struct(a=OrcType("bigint"), b=OrcType("string"), c=OrcType("double"))
    write_delta(table / "day=2026-01-01", 2, batch, row=row)
    done = copy(table, to)
    assert done.notes == ("a is long now", "c double is new")
    newest = date(2026, 1, 1)
    found = [{"a": 1, "b": "a", "c": None, "day": newest}, {"a": 1, "b": "a", "c": None, "day": None}]
    arrow = StaticTable.from_metadata(str(to)).scan().to_arrow().to_pylist()
    assert sorted(arrow, key=str) == sorted([*found, {"a": 1 << 40, "b": "b", "c": 0.5, "day": newest}], key=str)


@pytest.mark.parametrize("kind", ["parquet", "text"])
def test_insert_only_tables_of_other_formats(kind: str, tmp_path: Path, acidctl: Acidctl) -> None:
    table, to = tmp_path / "t", tmp_path / "copy"
    (table / D1).mkdir(parents=True)
    if kind == "parquet":
        pq.write_table(pa.table({"a": pa.array([1, 2], pa.int32()), "b": ["x", None]}), table / D1 / "000000_0")
    else:
        (table / D1 / "000000_0").write_bytes(b"1\x01x\n2\x01\\N\n")
    line = ("migrate", "--assume-committed=0s", "--table-type=insert-only", table, "--to", to, "--yes")
    refused = acidctl(*line, "--format=orc")
    assert (refused.status, to.exists()) == (RefusedError.exit_status, False)
    assert f"it is {'Parquet' if kind == 'parquet' else 'text'}" in refused.err
    done = acidctl(*line)
    assert done.status == 0, done.err
    assert "000000_0 is " in done.err
    assert [row[-1] for row in rows(to)] == (["x", None] if kind == "parquet" else ["1\x01x", "2\x01\\N"])
    assert acidctl(*line, "--catch-up").status in (0, RefusedError.exit_status)


def test_the_format_of_a_copy_stays(tmp_path: Path) -> None:
    table, to = tmp_path / "t", tmp_path / "copy"
    write_acid(table / D1 / "bucket_00000", insert(1, 0, (1, "a")))
    copy(table, to)
    with pytest.raises(UsageProblem, match="the files of the copy are orc"):
        copy(table, to, format="parquet")
    assert copy(table, to, format="orc").result is Result.NOTHING_TO_DO


def test_rows_that_would_differ_are_not_committed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, to = tmp_path / "t", tmp_path / "copy"
    write_acid(table / D1 / "bucket_00000", insert(1, 0, (1, "a")), insert(1, 1, (2, "b")))
    stored = encode.stored_values

    def other(column: pa.Array, *parts: Any) -> pa.Array:
        return stored(column.take(pa.array([0] * len(column))), *parts)

    with monkeypatch.context() as patched:
        patched.setattr(encode, "stored_values", other)
        with pytest.raises(VerifyError, match="would differ"):
            copy(table, to, format="parquet")
    assert not files(to)
    assert len(StaticTable.from_metadata(str(to)).snapshots()) == 0
    assert copy(table, to, catch_up=False).rows == 2


def test_a_copy_that_failed_leaves_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, to = tmp_path / "t", tmp_path / "copy"
    write_acid(table / D1 / "bucket_00000", insert(1, 0, (1, "a")))

    def full(*_: Any, **__: Any) -> Any:
        raise NoSpaceError("cannot write", "no space left on the device", "")

    with monkeypatch.context() as patched:
        patched.setattr(file_tasks, "write_parquet", full)
        with pytest.raises(NoSpaceError):
            copy(table, to, format="parquet")
    assert not files(to)
    copy(table, to, catch_up=False)
    assert rows(to) == [(1, "a")]
