"""Hive 3.1.3 and 4.0.1 as judges of types: what they store of each is read as they read it, compacted or not.

Values come from text tables, which hold more than literals in SQL can say.  Java's default time zone is not UTC.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence

import pytest
from support.command_line import Result
from support.compacting import run_compaction
from support.engines.hive_text import printed, type_of
from support.engines.hive_values import (
    LEAVES,
    NESTED,
    PUSHED,
    conditions,
    fill_pushed,
    leaves,
    load,
    load_leaves,
    nested,
)
from support.engines.real_hive import HiveTable, Rows, our_rows, same
from support.files.orc_bytes import local_tail
from support.servers.hive_server import HiveError, HiveServer
from support.tables import json_rows, snapshot_of

from acidctl.acid.compaction_kind import CompactionKind, Hive
from acidctl.base.errors import RefusedError
from acidctl.compaction.output_settings import Writing
from acidctl.rows.scan.scan import Scan

pytestmark = [pytest.mark.server, pytest.mark.timeout(900), pytest.mark.in_turn("real_hive")]

SESSION_ZONE = "Pacific/Apia"
"""Of the session that writes."""


@pytest.fixture
def hives(real_hives: Callable[[int], HiveServer]) -> Callable[[int], HiveServer]:
    return real_hives


@pytest.fixture
def hive(real_hive: HiveServer) -> HiveServer:
    return real_hive


def live_through(table: HiveTable, name: str, asked: str, others: str, change: str) -> None:
    """Insert, replace rows by others, update one column, delete."""
    table.hive.sql(f"set hive.local.time.zone={SESSION_ZONE}")
    # In batches Hive 3 takes a NULL list inside of a map for [null] in text, which its results cannot tell apart.
    table.hive.sql("set hive.vectorized.execution.enabled=false")
    for part in range(3):
        table.run(f"insert into {table.name} select {asked} from {name} where id % 3 = {part}")
    if any("uniontype" in kind for kind in table.columns.values()):  # a MERGE of them fails in Hive 3
        table.run(f"delete from {table.name} where id % 2 = 0")
        table.run(f"insert into {table.name} select {asked} from {others} where id % 2 = 0")
    else:
        changes = ", ".join(f"{column} = source.{column}" for column in table.columns if column != "id")
        table.run(
            f"merge into {table.name} as target using (select {asked} from {others}) as source on target.id = source.id"
            f" when matched and source.id % 2 = 0 then update set {changes}"
        )
    table.hive.sql("set hive.vectorized.execution.enabled=true")
    table.run(f"update {table.name} set {change} where id % 4 = 1")
    table.run(f"delete from {table.name} where id % 7 = 3")


def both_ways(table: HiveTable) -> Rows:
    """Hive's rows, the same when a job reads them in batches, in single rows, and without a job."""
    hive = table.hive
    rows = table.judge()
    hive.sql("set hive.fetch.task.conversion=none")
    try:
        for vectorized in ("true", "false"):
            hive.sql(f"set hive.vectorized.execution.enabled={vectorized}")
            same(table.rows(), rows, vectorized)
        hive.sql("set hive.local.time.zone=LOCAL")
        same(table.rows(), rows, "another session's zone")
    finally:
        hive.sql("set hive.fetch.task.conversion=more", "set hive.vectorized.execution.enabled=true")
    return rows


def test_leaves_of_every_type(hive: HiveServer) -> None:
    table = HiveTable(hive, "leaves", LEAVES)
    asked = load_leaves(table, "leaves_text", leaves(1))
    load_leaves(table, "leaves_other", leaves(2))
    live_through(table, "leaves_text", asked, "leaves_other", "ti = null")
    rows = both_ways(table)
    assert len(rows) > 20
    for kind in CompactionKind:
        table.compacted(kind)
        same(both_ways(table), rows, kind)
    table.run("update leaves set i = 7 where id % 3 = 2")
    table.compacted(CompactionKind.MAJOR)


def test_nested_types(hive: HiveServer) -> None:
    table = HiveTable(hive, "nested", NESTED)
    load(table, "nested_text", NESTED, nested(3, 40, hive))
    load(table, "nested_other", NESTED, nested(4, 40, hive))
    live_through(table, "nested_text", "*", "nested_other", "a = array(id)")
    rows = both_ways(table)
    assert len(rows) > 20
    for kind in CompactionKind:
        table.compacted(kind)
        same(both_ways(table), rows, kind)
    table.run("update nested set a = array(id) where id % 3 = 2")
    table.compacted(CompactionKind.MAJOR)


OLD = {"id": "int", "dt": "date", "ts": "timestamp"}
OLD_DAYS = ("0001-01-01", "0100-03-01", "1000-02-28", "1500-03-01", "1582-10-04", "1582-10-15", "1600-02-29")
BY_HIVE_4 = ("0001-01-03", "0100-03-02", "1000-02-23", "1500-02-20", "1582-09-24", "1582-10-15", "1600-02-29")
"""As Hive 4 reads OLD_DAYS that Hive 3.1 wrote."""


def old_days(table: HiveTable) -> None:
    rows = ", ".join(f"({i}, '{day}', '{day} 12:34:56.789')" for i, day in enumerate(OLD_DAYS))
    table.run(f"insert into {table.name} values {rows}", f"insert into {table.name} values (99, null, null)")
    table.run(f"delete from {table.name} where id = 99")


def days_of(rows: Rows) -> list[tuple[str, ...]]:
    return sorted(values for _, values in rows)


def old_rows(days: Sequence[str]) -> list[tuple[str, ...]]:
    return [(str(i), day, f"{day} 12:34:56.789") for i, day in enumerate(days)]


def adopted(table: HiveTable, hive: HiveServer) -> HiveTable:
    """A table of another Hive, with the files of this one."""
    other = HiveTable(hive, f"{table.name}_of_{table.hive.version}", table.columns)
    for _ in range(4):  # so many write ids
        other.run(f"insert into {other.name} (id) values (0)")
    shutil.rmtree(other.path)
    shutil.copytree(table.path, other.path)
    return other


def test_days_before_1582_are_as_hive_4_takes_them(hives: Callable[[int], HiveServer]) -> None:
    table = HiveTable(hives(4), "old_days", OLD)
    old_days(table)
    assert days_of(both_ways(table)) == old_rows(OLD_DAYS)
    for kind in CompactionKind:
        table.compacted(kind)
        assert days_of(both_ways(table)) == old_rows(OLD_DAYS)


def test_old_days_of_hive_3_are_shown_as_hive_4_shows_them(hives: Callable[[int], HiveServer]) -> None:
    """HIVE-22589: Hive 3.1 counts days of the Gregorian calendar, does not say so, and Hive 4 takes them for Julian."""
    table = HiveTable(hives(3), "old_days_3", OLD)
    old_days(table)
    for kind in (None, *CompactionKind):
        if kind:
            run_compaction(table.path, kind)
        assert days_of(table.rows()) == old_rows(OLD_DAYS), "Hive 3 goes on to see what was meant"
        assert days_of(table.ours()) == old_rows(BY_HIVE_4)
    assert days_of(adopted(table, hives(4)).judge()) == old_rows(BY_HIVE_4)


def test_files_of_both_calendars_are_put_together(hives: Callable[[int], HiveServer]) -> None:
    table = HiveTable(hives(4), "calendars", OLD)
    old_days(table)
    table.run("set orc.proleptic.gregorian=true", "insert into calendars select id + 10, dt, ts from calendars")
    table.run("update calendars set id = id + 20 where id in (1, 11)", "set orc.proleptic.gregorian=false")
    found = {local_tail(path).calendar for path in table.path.glob("delta_*/bucket*")}
    assert found == {"julian_gregorian", "proleptic_gregorian"}
    rows = both_ways(table)
    with pytest.raises(RefusedError):
        run_compaction(table.path, CompactionKind.MINOR)  # Hive 3 would see other days than before
    for kind in CompactionKind:
        run_compaction(table.path, kind, writing=Writing(reader=Hive.HIVE4))
        same(both_ways(table), rows, kind)


@pytest.mark.parametrize(("writer", "reader"), [(3, 4), (4, 3)])
def test_a_table_moves_between_hives(hives: Callable[[int], HiveServer], writer: int, reader: int) -> None:
    """What acidctl has compacted either Hive reads; types that they disagree on (days before 1582) are left out."""
    table = HiveTable(hives(writer), "moving", LEAVES)
    asked = load_leaves(table, "moving_text", leaves(5))
    table.run(f"insert into moving select {asked} from moving_text", "update moving set i = 4 where id % 3 = 1")
    table.run("delete from moving where id % 7 = 3")
    rows = table.compacted(CompactionKind.MAJOR)
    other = adopted(table, hives(reader))
    same(both_ways(other), rows)
    other.run(f"update {other.name} set s = 'moved' where id % 2 = 0")
    other.compacted(CompactionKind.MINOR)


def test_local_timestamps_are_nothing_that_hive_can_store(hive: HiveServer) -> None:
    """HIVE-30020: Hive 4 writes 1970 for every value and cannot read the file; Hive 3 does not write it."""
    table = HiveTable(hive, "instants", {"id": "int", "at": "timestamp with local time zone"})
    insert = (
        "insert into instants select 1, cast('2020-07-01 12:34:56 Europe/Berlin' as timestamp with local time zone)"
    )
    if hive.version == 3:
        with pytest.raises(HiveError):
            table.run(insert)
        return
    table.run(insert)
    with pytest.raises(HiveError, match="TIMESTAMP_INSTANT"):
        table.rows()
    kinds = [type_of("int"), type_of("timestamp")]
    wanted = [("1", "1970-01-01 00:00:00")]
    assert days_of(our_rows(table.path, kinds)) == wanted
    run_compaction(table.path, CompactionKind.MAJOR)
    assert days_of(our_rows(table.path, kinds)) == wanted


@pytest.mark.parametrize("kind", ["interval_day_time", "interval_year_month", "void"])
def test_intervals_are_no_columns(hive: HiveServer, kind: str) -> None:
    with pytest.raises(HiveError):
        HiveTable(hive, "no_columns", {"id": "int", "x": kind})


def test_text_that_is_not_utf_8_keeps_its_bytes(hive: HiveServer) -> None:
    table = HiveTable(hive, "bytes", {"id": "int", "s": "string"})
    load(table, "bytes_text", table.columns, [])
    (hive.warehouse.parent / "external/bytes_text.d/data").write_bytes(b"1\x01a\xffb\n2\x01\xed\xa0\x80\n3\x01\xc3\n")
    table.run("insert into bytes select * from bytes_text", "update bytes set id = 4 where id = 3")
    wanted = [("1", "61FF62"), ("2", "EDA080"), ("4", "C3")]
    assert days_of(table.rows()) == wanted
    assert [row["s"] for row in json_rows(Scan(snapshot_of(table.path)))] == [
        "a\ufffdb",
        "\ufffd\ufffd\ufffd",
        "\ufffd",
    ]
    for kind in CompactionKind:
        run_compaction(table.path, kind)
        assert days_of(table.rows()) == wanted


def test_dump_has_the_same_rows(hive: HiveServer, acidctl: Callable[..., Result]) -> None:
    table = HiveTable(hive, "dumped", LEAVES)
    asked = load_leaves(table, "dumped_text", leaves(6))
    table.run(f"insert into dumped select {asked} from dumped_text", "update dumped set i = 4 where id % 3 = 1")
    table.run("delete from dumped where id % 7 = 3")
    kinds = table.types.values()
    inserted: dict[tuple[int, int, int], tuple[str, ...]] = {}
    deleted = set()
    for event in acidctl("dump", table.path).lines():
        key = (event["originalTransaction"], event["bucket"], event["rowId"])
        if event["operation"] == 2:
            deleted.add(key)
        else:
            inserted[key] = tuple(
                printed(kind, value) for kind, value in zip(kinds, event["row"].values(), strict=True)
            )
    assert deleted
    same(sorted((key, row) for key, row in inserted.items() if key not in deleted), table.rows())


def test_conditions_leave_out_what_they_may(hive: HiveServer) -> None:
    """Hive finds the same rows by the indices, statistics and bloom filters that acidctl wrote."""
    # By its own bloom filters of timestamps Hive 3 misses rows wherever Java's zone is not UTC.
    bloom = "s,i,bi,dt,c,d,n18" + ",ts" * (hive.version > 3)
    more = f", 'orc.row.index.stride'='1000', 'orc.stripe.size'='65536', 'orc.bloom.filter.columns'='{bloom}'"
    table = HiveTable(hive, "pushed", PUSHED, properties=more)
    fill_pushed(table)
    table.run("update pushed set si = si + 1 where id % 17 = 3", "delete from pushed where id % 13 = 4")
    asked = list(conditions())
    hive.sql("set hive.optimize.index.filter=false")
    wanted = met(table, asked)
    assert [found(table, one) for one in asked[::4]] == wanted[::4]
    assert len({len(one) for one in wanted}) > 10
    hive.sql("set hive.optimize.index.filter=true")
    for kind in (None, *CompactionKind):
        if kind:
            run_compaction(table.path, kind, writing=Writing(overrides={"stripe_size": 1 << 16, "batch_rows": 500}))
        for one, rows in zip(asked, wanted, strict=True):
            if kind:  # by its own indices Hive may miss what it likes
                assert found(table, one) == rows, (kind, one)
            assert sorted(int(values[0]) for _, values in table.ours(where=one)) == rows, (kind, one)
        assert summed(table, asked[::4]) == [(len(rows), sum(rows)) for rows in wanted[::4]], kind
    stripes = local_tail(next(table.path.glob("base_*/bucket_00000"))).stripes
    assert len(stripes) > 3, "there is something to leave out"


def test_zeros_are_found_whatever_the_sign_of_others_before_them(hive: HiveServer) -> None:
    """Both Hives order -0.0 before 0.0 where they compare with bounds, and miss what lies alone in a stripe."""
    table = HiveTable(hive, "zeros", {"id": "int", "d": "double", "f": "float"})
    load(table, "zeros_text", {"id": "int", "d": "string", "f": "string"}, [[1, "-0.0", "-0.0"], [2, "0.0", "0.0"]])
    for number in (1, 2):
        asked = f"select id, cast(d as double), cast(f as float) from zeros_text where id = {number}"
        table.run(f"insert into zeros {asked}")
    hive.sql("set hive.optimize.index.filter=true")
    assert found(table, "d = 0") == found(table, "f = 0") == [2], "it misses -0.0, which is equal"
    run_compaction(table.path, CompactionKind.MAJOR)
    assert found(table, "d = 0") == found(table, "f = 0") == [1, 2]
    signs = [values[1] for _, values in table.rows()]
    assert len(set(signs)) == 1, "it takes a batch of equal values for one value, whatever their signs"
    assert len({values[1] for _, values in table.ours()}) == 2


def test_hive_3_misses_timestamps_by_its_bloom_filters(hive: HiveServer) -> None:
    """Where Java's time zone is not UTC, as here."""
    more = ", 'orc.bloom.filter.columns'='ts'"
    table = HiveTable(hive, "bloomed", {"id": "int", "ts": "timestamp"}, properties=more)
    table.run("insert into bloomed values (1, '2020-01-01 00:00:00.7'), (2, '2020-01-02 00:00:00.5')")
    hive.sql("set hive.optimize.index.filter=true")
    where = "ts = timestamp '2020-01-01 00:00:00.7'"
    assert found(table, where) == ([1] if hive.version > 3 else [])
    assert days_of(table.ours(where=where)) == [("1", "2020-01-01 00:00:00.7")]


def test_hive_3_stores_an_empty_list_of_text_as_a_list_of_null(hive: HiveServer) -> None:
    table = HiveTable(hive, "empty_lists", {"id": "int", "a": "array<int>"})
    load(table, "empty_lists_text", table.columns, [[1, []], [2, [1, 2]]])
    table.run("insert into empty_lists select * from empty_lists_text")
    assert days_of(table.judge()) == [("1", "[]" if hive.version > 3 else "[null]"), ("2", "[1,2]")]


def found(table: HiveTable, where: str) -> list[int]:
    """Ids of the rows that meet a condition."""
    return sorted(int(row[0]) for row in table.hive.sql(f"select id from {table.name} where {where}"))


def met(table: HiveTable, asked: Sequence[str]) -> list[list[int]]:
    """The same for each of several, by what a condition is for each row: nothing can leave one out."""
    rows = table.hive.sql(f"select id, {', '.join(f'({one})' for one in asked)} from {table.name}")
    return [sorted(int(row[0]) for row in rows if row[n] == "true") for n in range(1, len(asked) + 1)]


def summed(table: HiveTable, asked: Sequence[str]) -> list[tuple[int, int]]:
    """How many rows meet each condition, and the sum of their ids, by jobs that read in batches."""
    answers: list[tuple[int, int]] = []
    for first in range(0, len(asked), 8):
        some = enumerate(asked[first : first + 8], first)
        parts = [f"select {n} as n, id from {table.name} where {one}" for n, one in some]
        inner = " union all ".join(parts)
        rows = table.hive.sql(f"select n, count(*), sum(id) from ({inner}) as u group by n")
        by_number = {int(n): (int(count), int(total)) for n, count, total in rows}
        answers += [by_number.get(first + i, (0, 0)) for i in range(len(parts))]
    return answers
