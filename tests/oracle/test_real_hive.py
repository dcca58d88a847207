"""Hive 3.1.3 and 4.0.1 themselves as judges: what they write is read here, and what is written here they go on with.

Histories of SQL are random, and of the same statements for both. After every statement the rows, with their ids, are
compared with Hive's own, and the table is validated; after a compaction Hive reads it, updates and compacts it further.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from support.compacting import compact_location, run_compaction
from support.engines.hive_histories import History, as_text, ours
from support.servers.hive_server import HiveServer
from support.tables import json_rows, snapshot_of

from acidctl import Location
from acidctl.acid.compaction_kind import CompactionKind
from acidctl.acid.listing import TableType
from acidctl.acid.state import State
from acidctl.base.errors import BadDataError
from acidctl.compaction.request import CompactionRequest, Mode
from acidctl.compaction.run import Compacted
from acidctl.rows.scan.scan import Scan

pytestmark = [pytest.mark.server, pytest.mark.timeout(900), pytest.mark.in_turn("real_hive")]


@pytest.mark.parametrize("extra", ["", "clustered by (id) into 2 buckets"], ids=["plain", "bucketed"])
@pytest.mark.sampled(3)
def test_histories_of_sql_are_read_as_hive_reads_them(real_hive: HiveServer, extra: str) -> None:
    seed = 7 if extra else 1
    history = History(real_hive, f"history_{'bucketed' if extra else 'plain'}", seed, extra)
    for _ in range(5):
        history.step()
        history.judge()
    assert list(history.path.glob("delete_delta_*")), "rows were updated or deleted"


def changed(rows: Counter[tuple[str, ...]], low: int) -> Counter[tuple[str, ...]]:
    """What UPDATE, DELETE and MERGE of the next test make of rows."""
    found: Counter[tuple[str, ...]] = Counter({(str(low + 1000), "n", "1.5"): 1})
    for (number, name, score), count in rows.items():
        place = int(number) - low
        if place not in (5, 11, 25):
            found[number, "m" if place == 7 else name, "0.0" if 4 <= place <= 20 else score] += count
    return found


@pytest.mark.parametrize("kind", list(CompactionKind))
def test_hive_goes_on_with_what_was_compacted(real_hive: HiveServer, kind: CompactionKind) -> None:
    history = History(real_hive, f"compacted_{kind.value}", 11)
    for _ in range(4):
        history.step()
    assert list(history.path.glob("delete_delta_*")), "rows were updated or deleted"
    before = history.judge()
    run_compaction(history.path, kind)
    assert history.judge() == before
    wanted = Counter(values for _, values in before)
    for low, vectorized in ((0, "true"), (30, "false")):  # conditions go down to the files
        real_hive.set("hive.vectorized.execution.enabled", vectorized)
        history.run(f"update {history.name} set score = 0 where id between {low + 4} and {low + 20}")
        history.run(f"delete from {history.name} where id in ({low + 5}, {low + 11}, {low + 25})")
        sources = f"select {low + 7} as id union all select {low + 1000}"
        history.run(
            f"merge into {history.name} as t using ({sources}) as s on t.id = s.id"
            " when matched then update set name = 'm' when not matched then insert values (s.id, 'n', 1.5)"
        )
        wanted = changed(wanted, low)
        after = history.judge()
        assert Counter(values for _, values in after) == wanted, (vectorized, history.statements)
    run_compaction(history.path, CompactionKind.MAJOR)
    assert history.judge() == after


def test_partitions_are_read_and_compacted_one_by_one(real_hive: HiveServer) -> None:
    history = History(real_hive, "partitioned", 3, "partitioned by (day string)")
    history.run("insert into partitioned partition (day) select 1, 'a', 0.5, 'd 1' union all select 2, 'b', 1.5, 'd/2'")
    history.run("insert into partitioned partition (day) values (3, 'c', 2.5, 'd 1'), (4, null, 3.5, 'd/2')")
    history.run("update partitioned set name = 'u' where id in (1, 4)")
    history.run("delete from partitioned where id = 2")
    escaped = {"d 1": "day=d 1", "d/2": "day=d%2F2"}
    before = {day: history.rows(f"day = '{day}'") for day in escaped}
    assert sum(map(len, before.values())) == 3
    for day, name in escaped.items():
        assert ours(history.path / name) == before[day]
        run_compaction(history.path / name, CompactionKind.MAJOR)
    assert {day: history.rows(f"day = '{day}'") for day in escaped} == before
    history.run("update partitioned set score = 9 where id > 0")
    assert all(ours(history.path / name) == history.rows(f"day = '{day}'") for day, name in escaped.items())


@pytest.mark.parametrize("form", ["orc", "parquet"])
def test_insert_only_tables_are_read_and_compacted(real_hive: HiveServer, form: str) -> None:
    name = f"insert_only_{form}"
    properties = "'transactional'='true', 'transactional_properties'='insert_only'"
    real_hive.sql(f"create table {name} (id int, name string) stored as {form} tblproperties({properties})")
    for number in range(3):
        real_hive.sql(f"insert into {name} values ({number}, 'n{number}'), ({number + 10}, null)")
    wanted = sorted(map(tuple, real_hive.sql(f"select id, name from {name}")))
    path = real_hive.warehouse / name
    assert plain_rows(path) == wanted
    request = CompactionRequest(Mode.MAJOR, table_type=TableType.INSERT_ONLY, offline=True)
    assert compact_location(str(path), request)
    assert [entry.name for entry in path.iterdir() if entry.name.startswith("base_")] == ["base_0000003"]
    assert plain_rows(path) == sorted(map(tuple, real_hive.sql(f"select id, name from {name}"))) == wanted
    real_hive.sql(f"insert into {name} values (99, 'after')")
    assert plain_rows(path) == sorted([*wanted, ("99", "after")])


def test_insert_only_text_is_put_together_as_hive_reads_it(real_hive: HiveServer, tmp_path: Path) -> None:
    properties = "'transactional'='true', 'transactional_properties'='insert_only'"
    real_hive.sql(
        "create table lines (id int, name string) row format delimited fields terminated by ','"
        f" stored as textfile tblproperties({properties})"
    )
    real_hive.sql("insert into lines values (1, 'one'), (2, null), (3, '')")

    def load(*contents: bytes) -> None:
        for number, content in enumerate(contents):
            loaded = tmp_path / f"loaded_{number}"
            loaded.write_bytes(content)
            real_hive.sql(f"load data local inpath '{loaded}' into table lines")

    load(b"4,four\r\n5,five", b"\xef\xbb\xbf6,six\r")
    location = Location("hive:default.lines", metastore=real_hive.metastore)

    def theirs() -> list[tuple[str, ...]]:
        return sorted(map(tuple, real_hive.sql("select id, name from lines")))

    def compacted() -> list[str]:
        assert isinstance(location.compact("major"), Compacted)
        verdicts = location.snapshot().state.verdicts
        directories = [one.name for one in verdicts if one.state is State.CURRENT]
        return [name.partition("_v")[0] for name in directories]

    wanted = theirs()
    assert len(wanted) == 6
    assert text_rows(location) == wanted
    assert compacted() == ["base_0000003"]
    assert text_rows(location) == theirs() == wanted
    real_hive.sql("insert into lines values (8, 'after')")
    wanted = sorted([*wanted, ("8", "after")])
    assert text_rows(location) == theirs() == wanted
    load(b"9,nine\r\n\n10,ten", b"\n7,seven,more\n")  # Hive reads these lines, acidctl does not
    wanted = theirs()
    assert len(wanted) == 12
    with pytest.raises(BadDataError, match="it has empty lines among lines of several fields"):
        text_rows(location)
    assert compacted() == ["base_0000006"]
    assert theirs() == wanted


def text_rows(location: Location) -> list[tuple[str, ...]]:
    rows = [row for batch in location.rows().scan().to_batches() for row in batch.to_pylist()]
    return sorted(tuple(map(as_text, row.values())) for row in rows)


def plain_rows(path: Path) -> list[tuple[str, ...]]:
    return sorted(tuple(map(as_text, row.values())) for row in json_rows(Scan(snapshot_of(path))))


def test_an_overwritten_and_a_truncated_table_begin_anew(real_hive: HiveServer) -> None:
    history = History(real_hive, "overwritten", 5)
    for _ in range(2):
        history.step()
    history.run("insert overwrite table overwritten select id + 100, name, score from overwritten")
    assert history.judge()
    history.run("insert into overwritten values (7, 'x', 0.5)")
    history.judge()
    history.run("truncate table overwritten")
    assert history.judge() == []
