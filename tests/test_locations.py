"""Many locations in Python: a loop, the verbs, and one row for each."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from support.made.due import write_deltas
from support.tables import age, read_rows

import acidctl
from acidctl.base.errors import NotFoundError, RefusedError, UsageProblem
from acidctl.cleaning.outcomes import Cleaned
from acidctl.locations import SCHEMA
from acidctl.outcome import Result
from acidctl.verbs.maintain_options import CleanOptions, PurgeOptions


@pytest.fixture
def sales(tmp_path: Path) -> Path:
    found = tmp_path / "sales.db"
    write_deltas(found / "orders", 1, 12)
    for day in (1, 2):
        write_deltas(found / "days" / f"day={day}", 1, 2)
    age(found, 30)
    return found


def test_each_location_of_several_places_comes_in_turn(sales: Path) -> None:
    tables = acidctl.find(sales / "orders", sales / "days")
    for _ in range(2):  # they are looked for again
        assert [one.path.rpartition("/")[2] for one in tables] == ["orders", "day=1", "day=2"]
    assert "sales.db/orders" in repr(tables)
    with pytest.raises(UsageProblem):
        acidctl.find([sales])  # type: ignore[arg-type]


def test_verbs_go_through_all_of_them(sales: Path) -> None:
    tables = acidctl.find(sales, assume_committed=0)
    before = {one.path: len(read_rows(Path(one.path))) for one in tables}
    results = {outcome.location.rpartition("/")[2]: outcome.result for outcome in tables.compact("auto")}
    assert results == {"orders": "compacted", "day=1": "nothing-to-do", "day=2": "nothing-to-do"}
    assert {outcome.result for outcome in tables.compact("major")} == {"compacted", "nothing-to-do"}
    cleaned = [
        one for one in tables.clean(CleanOptions(older_than=0, unsafe_retention=True)) if isinstance(one, Cleaned)
    ]
    assert len(cleaned) == 3
    assert {one.result for one in tables.restore()} >= {Result.RESTORED}
    again = [*tables.clean(CleanOptions(older_than=0, unsafe_retention=True))]
    assert Result.CLEANED in {one.result for one in again}
    assert Result.PURGED in {one.result for one in tables.purge(PurgeOptions())}
    with pytest.raises(NotFoundError):
        list(tables.restore())
    assert {one.result for one in tables.validate("deep")} == {Result.NOTHING_FOUND}
    assert {one.path: len(read_rows(Path(one.path))) for one in tables} == before


def test_nothing_is_assumed_and_an_empty_place_is_no_success(sales: Path, tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="must be told which write ids"):
        list(acidctl.find(sales).compact("major"))
    (tmp_path / "empty").mkdir()
    *_, one = acidctl.find(tmp_path / "empty", assume_committed=0).compact("major")
    assert one.error
    assert one.error.exit_status == 17
    with pytest.raises(UsageProblem):
        list(acidctl.find(sales, assume_committed=0).compact("majour"))


def test_there_is_a_row_for_each(sales: Path) -> None:
    (sales / "days" / "day=2" / "_metadata_acid").write_text("{}")
    (sales / "days" / "day=2" / "base_0000009").mkdir()
    (sales / "days" / "day=2" / "base_0000009" / "_metadata_acid").write_text("{")
    tables = acidctl.find(sales)
    table = pa.table(tables)
    assert table.schema == SCHEMA
    rows = {row["location"].rpartition("/")[2]: row for row in table.to_pylist()}
    assert set(rows) == {"orders", "day=1", "day=2"}
    assert (rows["orders"]["compaction"], rows["orders"]["deltas"]) == ("major", 12)
    assert rows["orders"]["gain"] > 0
    assert rows["day=1"]["problem"] is None
    assert rows["day=2"]["problem"]
    assert rows["day=2"]["table"] == rows["day=1"]["table"]
    assert tables.head(1).num_rows == 1
    assert tables.to_pandas()["bytes"].sum() > 0


def test_a_place_that_cannot_be_looked_at_is_no_missing_row(sales: Path, tmp_path: Path) -> None:
    tables = acidctl.find(sales / "orders", tmp_path / "missing")
    with pytest.raises(NotFoundError):
        list(tables.status())
    with pytest.raises(NotFoundError):
        tables.to_table()
    assert tables.head(1).num_rows == 1


def test_a_check_takes_its_options_by_name(sales: Path) -> None:
    (sales / "orders" / "delta_0000001_0000001_0000" / "bucket_00000").write_bytes(b"")
    tables = acidctl.find(sales)
    found = {one.location.rpartition("/")[2]: one.result for one in tables.validate("footers", rules=["V46"])}
    assert found == {"orders": Result.FINDINGS, "day=1": Result.NOTHING_FOUND, "day=2": Result.NOTHING_FOUND}
