"""Values that a version of Hive converts in another way: statements refuse them, and say what to write instead."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from support.command_line import Result
from support.writing import WrittenTable, written_table

from acidctl.base.errors import UsageProblem

COLUMNS = {
    "id": "int",
    "f": "float",
    "n": "decimal(5,2)",
    "s": "string",
    "day": "date",
    "ts": "timestamp",
    "b": "boolean",
}
REFUSED = [
    ("f = 1.1", "CAST(1.1 AS FLOAT)"), ("f <> '1.1'", "FLOAT"), ("f = 16777217", "FLOAT"), ("NOT (f < 1.1)", "FLOAT"),
    ("b = 'true'", "TRUE"), ("b <> 'false'", "FALSE"), ("day < '2020-01-01 12:00:00'", "TIMESTAMP"),
    ("id = 1 OR ts = '2020-01-01 12:00'", "'2020-01-01 12:00:00'"), ("id IN (1, ' 3')", "3"), ("n = '1.5 '", "1.5"),
    ("s = 3", "id = 2"), ("s = DATE '2020-01-01'", "id = 2"), ("id = '3x'", "id = 2"), ("day = 'x'", "id = 2"),
]  # fmt: skip
TAKEN = [
    "f = CAST(1.1 AS FLOAT)", "f = 2.5", "f = '2.5'", "b = TRUE", "day = '2020-01-01'", "day = '2020-01-01 00:00:00'",
    "day < TIMESTAMP '2020-01-01 12:00:00'", "ts = '2020-01-01 12:00:00'", "ts > '2020-01-01'", "id = '3'", "s = '3'",
    "s = s", "f = f", "b IS TRUE", "id = 3.0", "n = '1.5'", "f IS NULL", "day = NULL",
]  # fmt: skip


@pytest.fixture
def table(tmp_path: Path) -> Iterator[WrittenTable]:
    with written_table(tmp_path / "t", COLUMNS) as made:
        made.door.table("db.t").insert(pa.table({"id": [1], "s": ["x"]}))
        yield made


@pytest.mark.parametrize(("where", "instead"), REFUSED)
def test_a_condition_that_hive_reads_otherwise_is_refused(table: WrittenTable, where: str, instead: str) -> None:
    for change in (
        lambda: table.door.table("db.t").delete(where),
        lambda: table.door.table("db.t").update("id = 2", where),
    ):
        with pytest.raises(UsageProblem) as refusal:
            change()
        assert refusal.value.why
        assert instead in refusal.value.hint
    assert len(table.rows()) == 1
    assert table.is_quiet


@pytest.mark.parametrize("where", TAKEN)
def test_a_condition_that_all_read_alike_is_taken(table: WrittenTable, where: str) -> None:
    assert table.door.table("db.t").delete(where, dry_run=True).written.deleted == (where in ("s = s", "f IS NULL"))


def test_an_erasure_refuses_the_same_before_it_searches(
    table: WrittenTable, acidctl: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("acidctl.verbs.writing.erase.erasure", None)
    done = acidctl("erase", "--yes", "hive:db.t", "--where", "f = 1.1", f"--metastore={table.hive.address}")
    assert (done.status, "CAST(1.1 AS FLOAT)" in done.err) == (2, True)


@pytest.mark.parametrize(
    "assignment",
    ["id = '3'", "id = '3x'", "id = 3.7", "s = 3", "s = id", "n = '1.5'", "n = 1.005", "n = f", "f = '1.1'", "ts = 5",
     "day = ts", "ts = '2020-05-05 12:00'", "day = 'x'", "day = '2020-05-05 12:00:00'", "b = 1", "b = 'x'", "id = b"],
)  # fmt: skip
def test_a_new_value_that_hive_would_convert_is_refused(table: WrittenTable, assignment: str) -> None:
    before = table.rows()
    with pytest.raises(Exception, match=r"cannot|does not fit"):
        table.door.table("db.t").update(assignment, "true")
    assert table.rows() == before
    assert table.is_quiet or not table.hive.locks
