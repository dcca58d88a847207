"""Tables that Hive 3.1.3 and 4.0.1 make otherwise: loaded, converted, of a changing schema, insert-only.

Rows and ROW__IDs are compared with Hive's before and after a compaction by acidctl, and Hive goes on with them.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from support.engines.hive_histories import History, as_text
from support.servers.hive_server import HiveServer
from support.tables import json_rows

from acidctl import Location
from acidctl.acid.compaction_kind import CompactionKind
from acidctl.acid.listing import TableType
from acidctl.base.errors import RefusedError
from acidctl.compaction.run import Compacted
from acidctl.rows.scan.scan import Scan
from acidctl.verbs.compact_options import CompactOptions, WriteOptions
from acidctl.verbs.options import LockOptions

pytestmark = [pytest.mark.server, pytest.mark.timeout(900), pytest.mark.in_turn("real_hive")]

ACID = "tblproperties('transactional'='true')"
INSERT_ONLY = "tblproperties('transactional'='true', 'transactional_properties'='insert_only')"


def compact(history: History, kind: CompactionKind, **options: object) -> Compacted:
    """By acidctl, under Hive's own lists."""
    asked = CompactOptions(**{kind.value: True}, offline=True, locks=LockOptions(lock=False), **options)  # type: ignore[arg-type]
    done = history.location().compact(asked)
    assert isinstance(done, Compacted)
    return done


def go_on(history: History) -> None:
    """Hive updates and deletes rows of the compacted table, and both read the same."""
    history.run(f"update {history.name} set score = -1 where id % 2 = 1")
    history.run(f"delete from {history.name} where id % 5 = 0")
    history.judge()


@pytest.mark.parametrize("kind", list(CompactionKind))
@pytest.mark.sampled(3)
def test_loaded_files_are_read_and_compacted(real_hive: HiveServer, tmp_path: Path, kind: CompactionKind) -> None:
    name = f"loaded_{kind.value}"
    real_hive.sql(f"create table plain_{name} (id int, name string, score double) stored as orc")
    real_hive.sql(f"insert into plain_{name} values (1, 'a', 0.5), (2, null, 1.5), (3, 'c', 2.5)")
    (source,) = [path for path in plain_folder(real_hive, f"plain_{name}").iterdir() if path.name[0].isdigit()]
    history = History(real_hive, name, 31)
    for number in range(2):
        file = tmp_path / f"file_{number}.orc"
        file.write_bytes(source.read_bytes())
        history.run(f"load data local inpath '{file}' into table {name}")
        history.judge()
    history.run(f"insert into {name} values (7, 'i', 3.5)")
    history.run(f"update {name} set name = 'u' where id = 2")
    before = history.judge()
    assert len(before) == 7
    if kind is CompactionKind.MAJOR:
        compact(history, kind)
        assert history.judge() == before
    go_on(history)
    file.write_bytes(source.read_bytes())
    history.run(f"load data local inpath '{file}' overwrite into table {name}")
    assert len(history.judge()) == 3


def plain_folder(hive: HiveServer, table: str) -> Path:
    """Hive 4 makes tables that are not transactional external ones."""
    return next(path for root in ("warehouse", "external") if (path := hive.warehouse.parent / root / table).exists())


@pytest.mark.parametrize("buckets", [0, 2], ids=["plain", "bucketed"])
@pytest.mark.sampled(3)
def test_a_converted_table_is_read_and_compacted(real_hive: HiveServer, buckets: int) -> None:
    name = f"converted_{buckets}"
    extra = f"clustered by (id) into {buckets} buckets" if buckets else ""
    managed = "" if real_hive.version == 3 else "'EXTERNAL'='FALSE', "
    real_hive.sql(f"create table {name} (id int, name string, score double) {extra} stored as orc")
    for number in range(3):
        rows = ", ".join(f"({number * 10 + row}, 'n{row}', {row}.5)" for row in range(4))
        real_hive.sql(f"insert into {name} values {rows}")
    folder = plain_folder(real_hive, name)
    assert [path for path in folder.iterdir() if "_copy_" in path.name]
    real_hive.sql(f"alter table {name} set tblproperties({managed}'transactional'='true')")
    history = History(real_hive, name, 32, folder=folder)
    history.judge()
    history.run(f"insert into {name} values (100, 'later', 9.5)")
    history.run(f"update {name} set name = 'u' where id % 10 = 2")
    history.run(f"delete from {name} where id = 11")
    before = history.judge()
    compact(history, CompactionKind.MAJOR)
    assert history.judge() == before
    go_on(history)


def test_changes_of_the_schema_are_followed(real_hive: HiveServer) -> None:
    name = "evolved"
    real_hive.sql(f"create table {name} (id int, name string, score float) stored as orc {ACID}")
    real_hive.sql(f"insert into {name} values (1, 'a', 0.5), (2, 'b', 1.5)")
    folder = real_hive.warehouse / name

    def judge() -> list[tuple[str, ...]]:
        columns = ", ".join(row[0] for row in real_hive.sql(f"describe {name}"))
        wanted = sorted(map(tuple, real_hive.sql(f"select {columns} from {name}")))
        lists = {"snapshot": f"{real_hive.write_ids(name)}\ntxns={real_hive.transactions()}"}
        location = Location(folder, **lists)
        got = sorted(tuple(map(as_text, row.values())) for row in json_rows(Scan(location.snapshot())))
        assert got == wanted
        return wanted

    changes = [
        f"alter table {name} change id id bigint",
        f"alter table {name} change score score double",
        f"alter table {name} add columns (another string)",
        f"alter table {name} add columns (last decimal(5,1))",
    ]
    for number, change in enumerate(changes):
        real_hive.sql(change)
        empty = ", cast(null as decimal(5,1))" if number == 3 else ""
        more = ", 'm'" if number >= 2 else ""
        real_hive.sql(f"insert into {name} select {10 + number}, 'n', 2.5{more}{empty}")
        real_hive.sql(f"update {name} set score = score + 1 where id = {10 + number}")
        before = judge()
    options = CompactOptions(major=True, offline=True, locks=LockOptions(lock=False))
    Location(folder, snapshot=f"{real_hive.write_ids(name)}\ntxns={real_hive.transactions()}").compact(options)
    assert judge() == before
    real_hive.sql(f"update {name} set name = 'u' where id = 1")
    judge()


@pytest.mark.parametrize("how", ["cascade", "restrict"])
@pytest.mark.sampled(3)
def test_changes_of_the_schema_reach_partitions(real_hive: HiveServer, how: str) -> None:
    """What the metastore says of the columns of a partition makes no difference: Hive goes by those of the table."""
    name = f"evolved_{how}"
    real_hive.sql(f"create table {name} (a int, b string) partitioned by (p int) stored as orc {ACID}")
    real_hive.sql(f"insert into {name} partition (p) values (1, 'b1', 1), (2, 'b2', 2), (3, 'b3', 1)")
    columns = ["a", "b"]

    def judge() -> dict[int, list[tuple[str, ...]]]:
        found = {}
        for part in (1, 2):
            wanted = sorted(map(tuple, real_hive.sql(f"select {', '.join(columns)} from {name} where p = {part}")))
            lists = {"snapshot": f"{real_hive.write_ids(name)}\ntxns={real_hive.transactions()}"}
            location = Location(real_hive.warehouse / name / f"p={part}", **lists)
            rows = json_rows(Scan(location.snapshot()))
            assert sorted(tuple(as_text(row.get(column)) for column in columns) for row in rows) == wanted
            found[part] = wanted
        return found

    def in_all_ways() -> dict[int, list[tuple[str, ...]]]:
        found = judge()
        real_hive.set("hive.fetch.task.conversion", "none")
        for batches in ("true", "false"):
            real_hive.set("hive.vectorized.execution.enabled", batches)
            assert judge() == found
        real_hive.set("hive.fetch.task.conversion", "more")
        real_hive.set("hive.vectorized.execution.enabled", "true")
        return found

    replaced = "replace columns (a bigint, b string, x string, y int)"
    for number, change in enumerate(("add columns (x string)", "change a a bigint", replaced)):
        real_hive.sql(f"alter table {name} {change} {how}")
        columns = ["a", "b", "x", "y"][: 4 if change is replaced else 3]
        values = {"a": "1" + "0" * 5 * number, "b": "'new'", "x": "'x'", "y": "7"}
        asked = ", ".join(values[column] for column in columns)
        real_hive.sql(f"insert into {name} partition (p = 1) select {asked}")
    before = in_all_ways()
    assert before == {1: in_all_ways()[1], 2: [("2", "b2", "NULL", "NULL")]} and len(before[1]) == 5
    options = CompactOptions(major=True, offline=True, locks=LockOptions(lock=False))
    for part in (1, 2):
        lists = {"snapshot": f"{real_hive.write_ids(name)}\ntxns={real_hive.transactions()}"}
        Location(real_hive.warehouse / name / f"p={part}", **lists).compact(options)
    assert in_all_ways() == before
    real_hive.sql(f"update {name} set y = 8, b = 'u' where a < 3")
    real_hive.sql(f"delete from {name} where x = 'x' and a > 1")
    after = in_all_ways()
    assert [len(after[part]) for part in (1, 2)] == [3, 1] and after[2] == [("2", "u", "NULL", "8")]


@pytest.mark.parametrize("compactor", ["acidctl", "hive"])
def test_a_renamed_column_keeps_its_values_here_and_in_hive_4_and_loses_them_in_hive_3(
    real_hive: HiveServer, compactor: str
) -> None:
    history = History(real_hive, f"renamed_{compactor}", 33)
    history.run(f"insert into {history.name} values (1, 'a', 0.5), (2, 'b', 1.5)")
    history.run(f"insert into {history.name} values (3, 'c', 0.5)")
    real_hive.sql(f"alter table {history.name} change name called string")
    real_hive.sql(f"insert into {history.name} values (4, 'd', 0.5)")

    def by_hive() -> list[str]:
        return [row[0] for row in real_hive.sql(f"select called from {history.name} order by id")]

    def by_acidctl() -> list[str]:
        return sorted(row["called"] for row in json_rows(Scan(history.location().snapshot())))

    lost = ["NULL", "NULL", "NULL", "d"] if real_hive.version == 3 else ["a", "b", "c", "d"]
    assert by_acidctl() == ["a", "b", "c", "d"] and by_hive() == lost
    if compactor == "acidctl":
        with pytest.raises(RefusedError, match="calls a column"):
            compact(history, CompactionKind.MAJOR)
        if real_hive.version > 3:
            compact(history, CompactionKind.MAJOR, writing=WriteOptions(reader="hive4"))
        assert by_acidctl() == ["a", "b", "c", "d"] and by_hive() == lost
    else:
        real_hive.sql(f"alter table {history.name} compact 'major'")
        real_hive.round("Worker")
        kept = [row["called"] for row in json_rows(Scan(history.location().snapshot()))]
        assert ["NULL" if value is None else value for value in kept] == by_hive() == lost  # for good


@pytest.mark.parametrize("form", ["orc", "parquet"])
@pytest.mark.sampled(3)
def test_insert_only_tables_that_hive_compacts_are_followed(real_hive: HiveServer, form: str) -> None:
    name = f"only_{form}"
    real_hive.sql(f"create table {name} (id int, name string) stored as {form} {INSERT_ONLY}")

    def location() -> Location:
        lists = {"snapshot": f"{real_hive.write_ids(name)}\ntxns={real_hive.transactions()}"}
        return Location(real_hive.warehouse / name, **lists)

    def judge() -> None:
        wanted = sorted(map(tuple, real_hive.sql(f"select id, name from {name}")))
        assert sorted(tuple(map(as_text, r.values())) for r in json_rows(Scan(location().snapshot()))) == wanted

    for number in range(4):
        if number == 2:
            with real_hive.aborting():
                real_hive.sql(f"insert into {name} values ({number}, 'aborted')")
        else:
            real_hive.sql(f"insert into {name} values ({number}, 'n'), ({number + 10}, null)")
        judge()
    real_hive.sql(f"alter table {name} compact 'major'")
    real_hive.round("Worker")
    judge()
    state = location().state()
    states = dict(zip(state["name"].to_pylist(), state["state"].to_pylist(), strict=True))
    # What the aborted statement wrote, Hive has removed itself.
    assert sorted(states.values()) == ["current", "obsolete", "obsolete", "obsolete"], states
    real_hive.sql(f"insert into {name} values (50, 'later')")
    judge()
    assert location().compact(CompactOptions(major=True, offline=True), table_type=TableType.INSERT_ONLY)
    judge()
