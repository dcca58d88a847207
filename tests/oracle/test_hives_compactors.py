"""The compactors that only Hive 4 has, REBALANCE and the one that joins files: their results are read and gone on with.

Rows and ROW__IDs are Hive's own before and after each step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from support.compacting import run_compaction
from support.engines.hive_compactor import READY, clean_by_hive, compact_by_hive, names
from support.engines.hive_past import Past
from support.engines.real_hive import HiveTable, same
from support.servers.hive_server import HiveServer
from support.validating import check

from acidctl import Location
from acidctl.acid.bucket import encode
from acidctl.acid.compaction_kind import CompactionKind
from acidctl.base.errors import HistoryError

pytestmark = [pytest.mark.server, pytest.mark.timeout(900)]

COLUMNS = {"id": "int", "name": "string"}


@pytest.fixture
def hive(real_hives: Callable[[int], HiveServer]) -> Any:
    server = real_hives(4)
    yield server
    server.reset()


def values(rows: list[Any]) -> Counter[Any]:
    return Counter(row for _, row in rows)


def filled(hive: HiveServer, name: str, rows: int = 40) -> HiveTable:
    """A table of two inserts and a delete."""
    table = HiveTable(hive, name, COLUMNS, by_lists=True)
    for number in (0, rows // 2):
        texts = ", ".join(f"({i}, 'n{i}')" for i in range(number, number + rows // 2))
        table.run(f"insert into {name} values {texts}")
    table.run(f"delete from {name} where id % 5 = 3")
    return table


def mark(table: HiveTable) -> None:
    """These files have no marker: validate says so, repair writes it, and Hive reads the same rows."""
    (report,) = check(table.path, write_ids=str(table.write_ids))
    assert {one.rule for one in report.findings if one.severity != "info"} == {"V13"}
    before = table.rows()
    assert Location(table.path).repair("version-file", force=True, offline=True)
    same(table.judge(), before)


def go_on(table: HiveTable) -> None:
    """Both compact it, and Hive changes rows of each result."""
    table.run(f"update {table.name} set name = 'u' where id % 4 = 0")
    table.compacted(CompactionKind.MINOR)
    table.compacted(CompactionKind.MAJOR)
    table.run(f"delete from {table.name} where id % 4 = 1", f"insert into {table.name} values (900, 'later')")
    before = table.judge()
    assert compact_by_hive(table.hive, table.name, "major") == READY
    same(table.judge(), before)
    clean_by_hive(table.hive, table.name)
    assert [name for name in names(table.path) if not name.startswith("base_")] == []
    same(table.judge(), before)


@pytest.mark.parametrize("order", ["", " order by name desc"], ids=["by ids", "by a column"])
def test_rows_that_a_rebalance_gave_new_ids_are_read_and_compacted(hive: HiveServer, order: str) -> None:
    table = filled(hive, f"rebalanced_{len(order)}")
    before = table.judge()
    hive.set("hive.compactor.crud.query.based", "true")
    hive.sql(f"alter table {table.name} compact 'rebalance' clustered into 3 buckets{order}")
    hive.round("Worker")
    (base,) = (table.path / name for name in names(table.path) if name.startswith("base_"))
    assert len(list(base.iterdir())) == 3
    same(table.ours(), after := table.rows())
    assert values(after) == values(before) and {key for key, _ in after} != {key for key, _ in before}
    mark(table)
    location = Location(table.path, snapshot=f"{table.write_ids}\ntxns={hive.transactions()}")
    assert location.clean(0, unsafe_retention=True).removed
    same(table.judge(), after)
    go_on(table)


def spread(before: list[Any], buckets: int) -> list[Any]:
    """The ids and rows that a rebalance makes of rows, which are in the order of their ids: as Hive's query has it."""
    each = -(-len(before) // buckets)
    return sorted(
        ((write_id, encode(number // each, 0), number), row) for number, ((write_id, _, _), row) in enumerate(before)
    )


def rebalanced(hive: HiveServer, name: str, clauses: str) -> tuple[HiveTable, list[Any]]:
    """A table with nulls that Hive rebalanced, and its rows before."""
    table = filled(hive, name)
    table.run(f"update {name} set name = null where id % 7 = 0")
    before = table.judge()
    hive.set("hive.compactor.crud.query.based", "true")
    hive.sql(f"alter table {name} compact 'rebalance' {clauses}")
    hive.round("Worker")
    return table, before


def test_a_rebalance_fills_one_bucket_after_the_other(hive: HiveServer) -> None:
    """Each takes the quotient that is rounded up: of 32 rows in 12 buckets the last has two, and the twelfth none."""
    table, before = rebalanced(hive, "spread", "clustered into 12 buckets")
    (base,) = (table.path / name for name in names(table.path) if name.startswith("base_"))
    assert sorted(file.name for file in base.iterdir()) == [f"bucket_{number:05d}" for number in range(11)]
    same(table.rows(), spread(before, 12))


@pytest.mark.parametrize("order", ["name", "name desc"])
def test_a_sorted_rebalance_gives_all_rows_the_greatest_write_id(hive: HiveServer, order: str) -> None:
    """Nulls come last, and first where it is descending."""
    is_descending = order.endswith("desc")
    table, before = rebalanced(hive, f"sorted_{len(order)}", f"clustered into 3 buckets order by {order}")
    last = max(write_id for (write_id, _, _), _ in before)
    ordered = sorted((row for _, row in before), key=lambda row: (row[1] == "NULL", row[1]), reverse=is_descending)
    after = table.rows()
    assert [row[1] for _, row in after] == [row[1] for row in ordered]
    expected = spread([((last, 0, 0), row) for row in ordered], 3)
    assert [key for key, _ in after] == [key for key, _ in expected]
    assert values(after) == values(before)


def test_rows_before_and_after_a_rebalance_are_not_compared_by_their_ids(hive: HiveServer) -> None:
    """They have the same ids, and are others."""
    table = filled(hive, "numbered_anew")
    table.compacted(CompactionKind.MAJOR)  # so that nothing but the base is needed for what was before
    table.run("delete from numbered_anew where id < 5")
    past = Past(table, table.path, "true")
    old = table.rows()
    hive.set("hive.compactor.crud.query.based", "true")
    assert compact_by_hive(hive, table.name, "rebalance") == READY
    new = table.rows()
    assert values(new) == values(old) and {key for key, _ in new} & {key for key, _ in old}
    with pytest.raises(HistoryError, match="REBALANCE"):
        past.location().diff(3, 4)
    table.run("delete from numbered_anew where id in (7, 9)", "update numbered_anew set name = 'u' where id = 11")
    counts = past.location().diff(4, 6).count()
    assert counts == (3, 1)
    lines = {line.write_id: (line.inserted, line.deleted, line.updated) for line in past.location().history().write_ids}
    assert lines == {1: (20, 0, 0), 2: (20, 0, 0), 3: (0, 8, 0), 4: (0, 4, 0), 5: (0, 2, 0), 6: (0, 0, 1)}


@pytest.mark.parametrize("kind", list(CompactionKind))
def test_files_that_hive_joined_are_read_and_compacted(hive: HiveServer, kind: CompactionKind) -> None:
    table = HiveTable(hive, f"joined_{kind.value}", COLUMNS, by_lists=True)
    hive.set("hive.compaction.merge.enabled", "true")
    for number in range(3):
        table.run(f"insert into {table.name} values ({number}, 'a'), ({number + 10}, null)")
    before = table.judge()
    assert compact_by_hive(hive, table.name, kind.value) == READY
    (result,) = (table.path / name for name in names(table.path) if "_v" in name)
    assert result.name.startswith("base" if kind is CompactionKind.MAJOR else "delta")
    same(table.ours(), before)
    mark(table)
    same(table.judge(), before)
    clean_by_hive(hive, table.name)
    same(table.judge(), before)
    run_compaction(table.path, CompactionKind.MAJOR, table.write_ids)
    same(table.judge(), before)
    table.run(f"delete from {table.name} where id = 1", f"insert into {table.name} values (50, 'b'), (51, 'c')")
    go_on(table)
