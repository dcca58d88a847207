"""A real Trino 476 beside Hive 3.1.3 and 4.0.1: it reads what they wrote and acidctl compacted, and changes it.

Where Trino or a Hive is wrong, a test shows both sides; docs/explanation/trino.md has them all.
"""

from __future__ import annotations

import os
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from support.command_line import Result
from support.compacting import compact_location, run_compaction
from support.engines.hive_values import (
    LEAVES,
    MANY,
    NESTED,
    PUSHED,
    conditions,
    fill_pushed,
    leaves,
    load,
    load_leaves,
    nested,
)
from support.engines.random_history import RandomHistory
from support.engines.real_hive import HiveTable
from support.engines.trino_judge import Engines, engines, warned_of
from support.files.acid_files import insert, write_by_pyorc
from support.servers.hdfs_server import ServerUnavailable
from support.servers.hive_server import HiveError, HiveServer
from support.servers.trino_server import TrinoError
from support.tables import CLEAN_NOW
from support.validating import check, found

import acidctl
from acidctl import Location
from acidctl.acid.bucket import decode
from acidctl.acid.compaction_kind import CompactionKind
from acidctl.acid.listing import TableType
from acidctl.compaction.output_settings import Writing
from acidctl.compaction.request import CompactionRequest, Mode
from acidctl.compaction.run import Compacted
from acidctl.verbs.compact_options import CompactOptions
from acidctl.verbs.options import LockOptions

pytestmark = [pytest.mark.server, pytest.mark.timeout(900), pytest.mark.in_turn("hive")]

MAJOR, MINOR = CompactionKind.MAJOR, CompactionKind.MINOR
COUNT = int(os.environ.get("ACIDCTL_TRINO_HISTORIES", "1"))
FIRST = int(os.environ.get("ACIDCTL_HIVE_SEED", "1"))
EARLY = ("1600-01-01 00:00:00.000001",)
"""Moments that Trino takes for others, as a test below shows."""
COLUMNS = {"id": "int", "name": "string", "score": "double"}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engines]:
    try:
        with engines(tmp_path_factory.mktemp("trino")) as started:
            yield started
    except ServerUnavailable as error:
        pytest.skip(f"no Trino to judge: {error}")


@pytest.fixture
def judge(running: Engines) -> Iterator[Engines]:
    """Trino and both Hives, with the settings that they have at first."""
    yield running
    running.reset()


@pytest.fixture(params=[3, 4], ids=["hive-3.1", "hive-4.0"])
def hive(request: pytest.FixtureRequest, judge: Engines) -> HiveServer:
    """Each of the Hives in turn."""
    return judge.hives[request.param]


@pytest.fixture
def hive_3(judge: Engines) -> HiveServer:
    return judge.hives[3]


@pytest.fixture
def hive_4(judge: Engines) -> HiveServer:
    return judge.hives[4]


def changed(hive: HiveServer, name: str, extra: str = "") -> HiveTable:
    """A table of Hive's with rows inserted, updated and deleted."""
    table = HiveTable(hive, name, COLUMNS, extra)
    day = ", concat('d ', cast(pos % 2 as string))" if "partitioned" in extra else ""
    into = f"{name} partition (day)" if day else name
    table.run(
        f"insert into {into} select pos, concat('n', cast(pos as string)), pos / 4{day}"
        " from (select posexplode(split(space(59), ' '))) as t"
    )
    table.run(f"update {name} set name = 'u' where id % 5 = 1", f"delete from {name} where id % 7 = 2")
    return table


def compact(table: HiveTable, kind: CompactionKind = MAJOR) -> None:
    for path in table.locations().values():
        run_compaction(path, kind, table.write_ids)


# --- what Hive wrote and acidctl compacted, Trino reads ---------------------------------------------------------------


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_what_happens_by_chance_is_read_alike(judge: Engines, hive: HiveServer, seed: int) -> None:
    """After every step Trino reads the rows of Hive, or ``validate --for trino`` says why not."""

    class Watched(RandomHistory):
        def judge(self):
            rows = super().judge()
            told = warned_of(self)
            if told <= {"R2"}:
                seen, wanted = judge.rows(self), sorted(values for _, values in rows)
                assert seen == wanted if not told else not Counter(wanted) - Counter(seen)
            return rows

        def _kinds(self):
            """Without Hive's own compactor, which runs in the metastore of a whole Hive; test_real_hive has it."""
            return [kind for kind in super()._kinds() if kind not in (self._compact_by_hive, self._clean_by_hive)]

    history = Watched(hive, seed)
    history.live(5)
    compact(history)
    told = warned_of(history)
    assert told <= {"R19"}, "a base of Hive's own may be empty; ours have a file"
    judge.judge(history)


def test_leaves_of_every_type(judge: Engines, hive: HiveServer) -> None:
    table = HiveTable(hive, "leaves", LEAVES)
    rows = leaves(1)
    for row in rows:
        row[-2] = None if row[-2] in EARLY else row[-2]
    asked = load_leaves(table, "leaves_text", rows)
    table.run(f"insert into leaves select {asked} from leaves_text")
    judge.judge(table)
    table.run("update leaves set i = 7 where id % 3 = 2", "delete from leaves where id % 7 = 3")
    for kind in (MINOR, MAJOR):
        compact(table, kind)
        assert not warned_of(table)
        assert len(judge.judge(table)) > 15


def test_nested_types(judge: Engines, hive: HiveServer) -> None:
    columns = {name: kind for name, kind in NESTED.items() if "uniontype" not in kind}
    table = HiveTable(hive, "nested", columns)
    load(table, "nested_text", NESTED, nested(3, 40, hive))
    table.run(f"insert into nested select {', '.join(columns)} from nested_text")
    judge.judge(table)
    table.run("update nested set a = array(id) where id % 3 = 2", "delete from nested where id % 7 = 3")
    compact(table)
    assert not warned_of(table)
    assert len(judge.judge(table)) > 15


@pytest.mark.parametrize(("version", "kind"), [(3, MAJOR), (4, MINOR)])
def test_conditions_leave_out_what_they_may(judge: Engines, version: int, kind: CompactionKind) -> None:
    """Trino finds the same rows by the indices, statistics and bloom filters that acidctl wrote."""
    bloom = "s,i,bi,dt,c,d,n18,ts"
    more = f", 'orc.row.index.stride'='1000', 'orc.stripe.size'='65536', 'orc.bloom.filter.columns'='{bloom}'"
    table = HiveTable(judge.hives[version], "pushed", PUSHED, properties=more)
    fill_pushed(table)
    table.run("update pushed set si = si + 1 where id % 17 = 3", "delete from pushed where id % 13 = 4")
    run_compaction(table.path, kind, writing=Writing(overrides={"stripe_size": 1 << 16, "batch_rows": 500}))
    assert judge.sql(table.hive, "select count(*) from pushed") == [[len(table.ours())]]
    asked = list(conditions())
    for first in range(0, len(asked), 30):
        some = asked[first : first + 30]
        parts = " union all ".join(f"select {n} as n, id from pushed where {one}" for n, one in enumerate(some))
        counted = f"select n, count(*), sum(id) from ({parts}) as u group by n"
        answers = {n: (count, total) for n, count, total in judge.sql(table.hive, counted)}
        for number, one in enumerate(some):
            if "timestamp '196" in one:
                continue  # with nanoseconds before 1970, as in EARLY
            ids = [int(values[0]) for _, values in table.ours(where=one)]
            assert answers.get(number, (0, 0)) == (len(ids), sum(ids)), one
    judge.sql(table.hive, "select id from pushed where s = 'k01700ü'")
    assert judge.trino.stats["processedRows"] < MANY / 2, "row groups are left out"


@pytest.mark.parametrize(("version", "form"), [(3, "orc"), (4, "parquet")])
def test_insert_only_tables(judge: Engines, version: int, form: str) -> None:
    hive = judge.hives[version]
    name = f"insert_only_{form}"
    properties = "'transactional'='true', 'transactional_properties'='insert_only'"
    hive.sql(f"create table {name} (id int, name string) stored as {form} tblproperties({properties})")
    for number in range(3):
        hive.sql(f"insert into {name} values ({number}, 'n{number}'), ({number + 10}, null)")
    asked = f"select id, name from {name} order by id"
    wanted = judge.sql(hive, asked)
    assert [[str(number), text or "NULL"] for number, text in wanted] == hive.sql(asked)
    request = CompactionRequest(Mode.MAJOR, table_type=TableType.INSERT_ONLY, offline=True)
    assert compact_location(str(hive.warehouse / name), request)
    assert judge.sql(hive, asked) == wanted
    paths = judge.sql(hive, f'select distinct "$path" from {name}')
    assert {Path(str(path)).parent.name for (path,) in paths} == {"base_0000003"}
    hive.sql(f"insert into {name} values (99, 'after')")
    assert judge.sql(hive, asked) == [*wanted, [99, "after"]]


def test_buckets_partitions_and_joins(judge: Engines, hive: HiveServer) -> None:
    if hive.version == 3:
        pytest.skip("Hive 3 does not choose partitions through this metastore: its serialiser fails on Java 17")
    table = changed(hive, "bucketed", "partitioned by (day string) clustered by (id) into 3 buckets")
    compact(table)
    table.run("insert into bucketed partition (day) values (100, 'x', 0.5, 'd 0'), (101, 'y', 0.5, 'd 1')")
    compact(table, MINOR)
    judge.judge(table)
    ours = {}
    for where, path in table.locations().items():
        day = where.split("'")[1]
        ours |= {int(values[0]): (day, decode(bucket).bucket) for (_, bucket, _), values in table.ours(path)}
    seen = judge.sql(hive, 'select id, day, "$bucket" from bucketed')
    assert {number: (day, bucket) for number, day, bucket in seen} == ours
    paths = judge.sql(hive, 'select distinct "$path" from bucketed where id < 60')
    assert {Path(str(path)).parent.name for (path,) in paths} == {"base_0000003"}
    hive.sql("create table chosen as select id from (select explode(array(3, 50, 100, 1000)) as id) t")
    join = "select b.id from bucketed b join chosen c on b.id = c.id where b.day = 'd 0' order by b.id"
    assert judge.sql(hive, join) == [[50], [100]]
    assert hive.sql(join) == [["50"], ["100"]]


def test_a_result_with_a_visibility_id(judge: Engines, hive_4: HiveServer) -> None:
    """Trino does not ask whether its transaction is committed: rule R6. The rows are the same."""
    table = changed(hive_4, "visible")
    transaction = hive_4.open_transaction()
    location = Location(table.path, snapshot=f"{hive_4.write_ids('visible')}\ntxns={hive_4.transactions()}")
    options = CompactOptions(major=True, visibility_txn=transaction, locks=LockOptions(lock=False))
    assert isinstance(location.compact(options), Compacted)
    wanted = sorted(values for _, values in table.rows())
    asked = 'select distinct "$path" from visible'
    (report,) = check(table.path, readers=("trino",), txns=hive_4.transactions())
    assert "R6 warning" in found(report)
    assert {Path(str(path)).parent.name for (path,) in judge.sql(hive_4, asked)} == {f"base_0000003_v{transaction:07d}"}
    assert judge.rows(table) == wanted
    hive_4.end_transaction(transaction, True)
    assert judge.judge(table) == wanted
    Location(table.path, snapshot=f"{hive_4.write_ids('visible')}\ntxns={hive_4.transactions()}").clean(
        0, unsafe_retention=True
    )
    assert len(table.locations()) == 1 < len(wanted)
    assert judge.judge(table) == wanted


# --- what acidctl compacted, Trino changes ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [MAJOR, MINOR])
@pytest.mark.sampled(3)
def test_trino_goes_on_with_what_was_compacted(judge: Engines, hive: HiveServer, kind: CompactionKind) -> None:
    table = changed(hive, f"going_on_{kind.value}")
    compact(table, kind)
    assert not warned_of(table)
    judge.judge(table)
    judge.sql(
        hive,
        f"update {table.name} set name = 't' where id % 4 = 0",
        f"delete from {table.name} where id % 6 = 5",
        f"merge into {table.name} t using (values (1, 'm'), (4, 'm'), (200, 'new')) as s (id, name) on t.id = s.id"
        " when matched and s.id = 4 then delete when matched then update set name = s.name"
        " when not matched then insert values (s.id, s.name, 0.5)",
    )
    after = judge.judge(table)
    names = {values[0]: bytes.fromhex(values[1]).decode() for values in after}
    ids = {i for i in range(60) if i % 7 != 2 and i % 6 != 5 and i != 4} | {200}
    model = {i: "t" if i % 4 == 0 else "u" if i % 5 == 1 else f"n{i}" for i in ids} | {1: "m", 200: "new"}
    assert names == {str(i): name for i, name in model.items()}
    for again in (MINOR, MAJOR):
        compact(table, again)
        assert judge.judge(table) == after
    Location(table.path).clean(0, unsafe_retention=True)
    assert judge.judge(table) == after
    table.run(f"update {table.name} set name = 'h' where id = 200")
    compact(table)
    assert len(judge.judge(table)) == len(after)


# --- what Trino wrote, acidctl and Hive read --------------------------------------------------------------------------


class TrinosTable(HiveTable):
    """A table that Trino made on Hive 3's metastore, and a model of its rows."""

    def __init__(self, judge: Engines, hive: HiveServer, name: str, extra: str, seed: int) -> None:
        self._judge, self._chance, self._next = judge, random.Random(seed), 0
        self.model: dict[int, tuple[str, str]] = {}
        self._days = "partitioned" in extra
        super().__init__(hive, name, {"id": "int", "name": "string"}, extra, exists=True)
        options = ["format = 'ORC'", "transactional = true"]
        options += ["partitioned_by = array['day']"] if self._days else []
        options += ["bucketed_by = array['id']", "bucket_count = 3"] if "buckets" in extra else []
        day = ", day varchar" if self._days else ""
        self.by_trino(f"create table {name} (id integer, name varchar{day}) with ({', '.join(options)})")

    def by_trino(self, statement: str) -> None:
        self.statements.append(f"{statement}  -- by Trino")
        self._judge.sql(self.hive, statement)

    def day(self, number: int) -> str:
        return f"d {number % 2}" if self._days else ""

    def insert(self, count: int) -> None:
        first, last = self._next, self._next + count - 1
        self._next = last + 1
        day = ", 'd ' || cast(n % 2 as varchar)" if self._days else ""
        self.by_trino(
            f"insert into {self.name} select cast(n as integer), 'n' || cast(n as varchar){day}"
            f" from unnest(sequence({first}, {last})) as s (n)"
        )
        self.model |= {i: (f"n{i}", self.day(i)) for i in range(first, last + 1)}

    def step(self) -> None:
        self._chance.choice([self._insert_some, self._update, self._delete, self._merge])()

    def _insert_some(self) -> None:
        self.insert(self._chance.choice([1, 3, 40]))

    def _part(self) -> tuple[str, set[int]]:
        part = self._chance.randrange(2, 7)
        rest = self._chance.randrange(part)
        return f"id % {part} = {rest}", {i for i in self.model if i % part == rest}

    def _update(self) -> None:
        where, ids = self._part()
        name = self._chance.choice(["", "ü€", "x"])
        self.by_trino(f"update {self.name} set name = '{name}' where {where}")
        self.model |= {i: (name, self.model[i][1]) for i in ids}

    def _delete(self) -> None:
        where, ids = self._part()
        self.by_trino(f"delete from {self.name} where {where}")
        for i in ids:
            del self.model[i]

    def _merge(self) -> None:
        ids = range(self._next - 12, self._next + 3)
        day = ", 'd ' || cast(s.id % 2 as varchar)" if self._days else ""
        self.by_trino(
            f"merge into {self.name} t"
            f" using (select cast(n as integer) from unnest(sequence({ids[0]}, {ids[-1]})) as u (n)) as s (id)"
            " on t.id = s.id when matched and s.id % 3 = 0 then delete when matched then update set name = 'm'"
            f" when not matched then insert values (s.id, 'new'{day})"
        )
        self._next += 3
        for i in ids:
            if i not in self.model:
                self.model[i] = ("new", self.day(i))
            elif i % 3 == 0:
                del self.model[i]
            else:
                self.model[i] = ("m", self.model[i][1])

    def agree(self) -> None:
        """Hive, acidctl and Trino see the rows of the model."""
        wanted = sorted((str(i), name.encode().hex().upper()) for i, (name, _) in self.model.items())
        assert self._judge.judge(self) == wanted, self.statements


FORMS = {
    "plain": "",
    "partitioned": "partitioned by (day string)",
    "bucketed": "clustered by (id) into 3 buckets",
    "both": "partitioned by (day string) clustered by (id) into 3 buckets",
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.sampled(3)
def test_what_trino_writes_is_read_and_compacted(
    judge: Engines, hive_3: HiveServer, form: str, acidctl: Callable[..., Result]
) -> None:
    seed = FIRST + list(FORMS).index(form)
    if "partitioned" in FORMS[form]:
        pytest.skip("Hive 3 does not choose partitions through this metastore: its serialiser fails on Java 17")
    table = TrinosTable(judge, hive_3, f"by_trino_{form}", FORMS[form], seed)
    table.insert(50)
    table._update()
    table._delete()
    table._merge()
    for _ in range(3):
        table.step()
    table.agree()
    for path in table.locations().values():
        shown = acidctl("validate", "--deep", "--for", "hive3", "--for", "hive4", "--for", "trino", path)
        assert shown.status == 0, shown.out
        rows = acidctl("cat", "--row-id", path).lines()
        assert [tuple(row["ROW__ID"].values()) for row in rows] == sorted({key for key, _ in table.ours(path)})
        (told,) = acidctl("history", "-o", "jsonl", path).lines()
        events = told["writeIds"]
        assert sum(one["inserted"] - one["deleted"] for one in events) == len(rows)
        changes = Counter(one["change"] for one in acidctl("diff", path, "--from", "0").lines())
        assert changes == {"+": len(rows)}
    ids = table.rows()
    for kind in (MINOR, MAJOR):
        compact(table, kind)
        table.agree()
        assert table.rows() == ids, "ROW__IDs stay"
    for path in table.locations().values():
        assert acidctl(*CLEAN_NOW, path).status == 0
    table.step()
    table.agree()
    if "buckets" not in FORMS[form]:  # as a test below shows
        table.run(f"alter table {table.name} not clustered")
    table.run(f"update {table.name} set name = 'h' where id % 2 = 0", f"delete from {table.name} where id % 9 = 1")
    table.model = {i: ("h" if i % 2 == 0 else name, day) for i, (name, day) in table.model.items() if i % 9 != 1}
    table.agree()
    compact(table)
    table.agree()


# --- where Trino, or a Hive, is wrong ---------------------------------------------------------------------------------


def in_small_stripes(judge: Engines, hive: HiveServer) -> None:
    """Trino writes stripes of a thousand rows, where they usually have megabytes."""
    catalog = f"hive{hive.version}"
    judge.trino.set(f"{catalog}.orc_optimized_writer_max_stripe_rows", "1000")
    judge.trino.set(f"{catalog}.orc_optimized_writer_min_stripe_size", "1kB")


def in_one_way(table: HiveTable, vectorized: bool, pieces: bool = False) -> list[int] | None:
    """Ids that a job of Hive's finds, its files read as a whole or in pieces; None when it fails."""
    hive = table.hive
    hive.set("hive.fetch.task.conversion", "none")
    hive.set("hive.vectorized.execution.enabled", str(vectorized).lower())
    hive.set("hive.exec.orc.split.strategy", "ETL")
    hive.set("hive.input.format", "org.apache.hadoop.hive.ql.io.HiveInputFormat")
    hive.set("mapreduce.input.fileinputformat.split.minsize", "1")
    hive.set("mapreduce.input.fileinputformat.split.maxsize", "4000" if pieces else "256000000")
    try:
        return sorted(int(row[0]) for row in hive.sql(f"select id from {table.name}"))
    except HiveError:
        return None
    finally:
        hive.reset()


def big(judge: Engines, hive: HiveServer, name: str, rows: int) -> HiveTable:
    """A table into which Trino inserted many rows, in several stripes."""
    table = HiveTable(hive, name, {"id": "int", "name": "string"})
    in_small_stripes(judge, hive)
    numbers = f"select cast(n as integer), cast(n as varchar) from unnest(sequence(1, {rows})) as s (n)"
    judge.sql(hive, f"insert into {name} {numbers}")
    return table


def test_hive_3_does_not_update_what_trino_made_without_buckets(judge: Engines, hive_3: HiveServer) -> None:
    """Trino says that it has 0 buckets, Hive says -1: Hive 3 then plans a job with as many reducers."""
    table = TrinosTable(judge, hive_3, "no_buckets", "", 1)
    table.insert(10)
    update = "update no_buckets set name = 'h' where id % 2 = 0"
    with pytest.raises(HiveError):
        table.run(update)
    table.run("alter table no_buckets not clustered", update)
    table.model |= {i: ("h", "") for i in table.model if i % 2 == 0}
    table.agree()


def test_trino_sees_no_deletes_in_files_of_attempts(judge: Engines, hive_4: HiveServer) -> None:
    """Of Hive 4: trinodb/trino issue 31302. ``validate --for trino`` says so, and a compaction makes it see them."""
    table = HiveTable(hive_4, "attempts", COLUMNS)
    table.run("insert into attempts values (1, 'a', 0.5), (2, 'b', 0.5), (3, 'c', 0.5)")
    assert warned_of(table) == set(), "it reads the rows of such files"
    assert len(judge.judge(table)) == 3
    table.run("delete from attempts where id = 2", "update attempts set name = 'u' where id = 3")
    (file,) = table.path.glob("delete_delta_0000002_0000002_0000/bucket_*")
    assert file.name == "bucket_00000_0"
    assert warned_of(table) == {"R2"}
    assert [values[0] for values in judge.rows(table)] == ["1", "2", "3", "3"]
    assert [values[0] for _, values in table.rows()] == ["1", "3"]
    compact(table, MINOR)
    assert warned_of(table) == set()
    assert [values[0] for values in judge.judge(table)] == ["1", "3"]


def test_nobody_looks_at_the_key_index_of_delete_events(judge: Engines, hive: HiveServer) -> None:
    """Trino's names its own write id, and the number of deletes instead of a row: a remark of rule V30, no more."""
    table = HiveTable(hive, "indexed", {"id": "int", "name": "string"})
    numbers = "select cast(n as integer), cast(n as varchar) from unnest(sequence(1, 3000)) as s (n)"
    judge.sql(
        hive,
        f"insert into indexed {numbers}",
        "delete from indexed where id % 2 = 1 or id = 4",
    )
    (report,) = check(table.path)
    assert {one for one in found(report) if one.startswith("V3")} == {"V30 info"}
    assert all(one.path.startswith("delete_delta") for one in report.findings if one.rule == "V30")
    wanted = [i for i in range(1, 3001) if i % 2 == 0 and i != 4]
    for vectorized in (True, False):
        assert in_one_way(table, vectorized) == wanted
        assert in_one_way(table, vectorized, pieces=True) == wanted
    judge.judge(table)
    for where in ("id < 5", "id >= 2999", "name = '4'"):
        assert judge.rows(table, where) == sorted(values for _, values in table.rows(where))


def test_files_of_trino_with_several_stripes_have_a_false_key_index(judge: Engines, hive: HiveServer) -> None:
    """One entry for all: Hive fails where it cuts such a file into pieces. V30 says so, and a repair mends it."""
    table = big(judge, hive, "stripes", 5000)
    (report,) = check(table.path)
    assert {"V30", "V31"} <= found(report)
    wanted = list(range(1, 5001))
    assert in_one_way(table, vectorized=False) == wanted
    assert in_one_way(table, vectorized=False, pieces=True) is None
    assert [int(values[0]) for _, values in table.ours()] == wanted
    Location(table.path).repair("key-index", offline=True)
    assert "V30" not in found(check(table.path)[0])
    for vectorized in (True, False):
        assert in_one_way(table, vectorized, pieces=True) == wanted
    assert judge.sql(hive, "select count(*), sum(id) from stripes where id > 4000") == [[1000, 4500500]]


@pytest.mark.parametrize("deleted", [2500, 2000])
def test_hive_3_counts_on_the_statistics_of_delete_events(judge: Engines, hive: HiveServer, deleted: int) -> None:
    """Trino counts those of the last stripe: Hive 3 reads in batches, and fails, or shows the rows if none are left."""
    table = big(judge, hive, f"counted_{deleted}", 5000)
    judge.sql(hive, f"delete from {table.name} where id <= {deleted}")
    wanted = list(range(deleted + 1, 5001))
    seen = in_one_way(table, vectorized=True)
    if hive.version > 3:
        assert seen == wanted
    else:
        assert seen == (None if deleted % 1000 else list(range(1, 5001)))
    assert in_one_way(table, vectorized=False) == wanted
    (report,) = check(table.path)
    assert any(one.rule == "V31" and one.path.startswith("delete_delta") for one in report.findings)
    assert [int(values[0]) for _, values in table.ours()] == wanted
    compact(table)
    assert not {one for one in found(check(table.path)[0]) if not one.endswith("info")}
    for vectorized in (True, False):
        assert in_one_way(table, vectorized) == wanted
        assert in_one_way(table, vectorized, pieces=True) == wanted
    judge.judge(table)


def test_trino_does_not_see_a_base_without_files(judge: Engines, hive_4: HiveServer) -> None:
    """Hive 4 truncates so, and deletes so without a condition."""
    for name, statement in (("truncated", "truncate table truncated"), ("emptied", "delete from emptied")):
        table = HiveTable(hive_4, name, COLUMNS)
        table.run(f"insert into {name} values (1, 'a', 0.5)", statement)
        assert table.rows() == table.ours() == []
        assert len(judge.rows(table)) == 1
        assert warned_of(table) == {"R19"}
        table.run(f"insert into {name} values (2, 'b', 0.5)")
        assert warned_of(table) == {"R19"}
        compact(table)
        assert warned_of(table) == set()
        assert len(judge.judge(table)) == 1


def test_a_base_of_ours_without_rows_is_seen(judge: Engines, hive: HiveServer) -> None:
    table = HiveTable(hive, "no_rows", COLUMNS)
    table.run("insert into no_rows values (1, 'a', 0.5), (2, 'b', 0.5)", "delete from no_rows where id > 0")
    compact(table)
    assert warned_of(table) == set()
    assert judge.judge(table) == []
    for vectorized in (True, False):
        assert in_one_way(table, vectorized) == []
    shutil.rmtree(table.path / "delete_delta_0000002_0000002_0000")  # as a cleaning does that goes on
    assert judge.judge(table) == []
    table.run("insert into no_rows values (3, 'c', 0.5), (4, 'd', 0.5)")
    judge.sql(hive, "update no_rows set name = 't' where id = 3")
    assert [values[0] for values in judge.judge(table)] == ["3", "4"]


def planted(hive: HiveServer, name: str) -> HiveTable:
    """A table without files, of which three write ids are committed."""
    table = HiveTable(hive, name, {"a": "int", "b": "string"})
    for _ in range(3):
        table.run(f"insert into {name} values (0, 'z')")
    shutil.rmtree(table.path)
    table.path.mkdir()
    return table


def test_trino_refuses_what_says_no_version(judge: Engines, hive_3: HiveServer) -> None:
    unversioned = {"hive.acid.version": None}
    for directory in ("delta_0000001_0000001_0000", "base_0000001"):
        table = planted(hive_3, f"unversioned_{directory[:4]}")
        write_by_pyorc(table.path / directory, [insert(1, 0, (1, "x"))], marker=None, metadata=unversioned)
        assert warned_of(table) == {"R3"}
        with pytest.raises(TrinoError, match="NOT_SUPPORTED: Hive transactional tables are supported since"):
            judge.rows(table)
        assert len(table.rows()) == len(table.ours()) == 1
        write_by_pyorc(table.path / directory, [insert(1, 0, (1, "x"))], marker=None)
        for checksum in table.path.glob(f"{directory}/.*"):
            checksum.unlink()
        assert warned_of(table) == set()
        assert len(judge.rows(table)) == 1


def test_trino_takes_side_files_for_data(judge: Engines, hive_3: HiveServer) -> None:
    table = HiveTable(hive_3, "streamed", {"id": "int", "name": "string"})
    table.run("stream open streamed 2", "stream begin", "stream write 1,a", "stream commit")
    assert len(table.rows()) == len(table.ours()) == 1
    assert "R5" in warned_of(table)
    with pytest.raises(TrinoError, match="_flush_length"):
        judge.rows(table)
    table.run("stream close")
    assert warned_of(table) == set()
    judge.judge(table)


def test_trino_numbers_originals_as_of_one_bucket(judge: Engines, hive_3: HiveServer) -> None:
    hive_3.sql("create table originals (id int, name string) stored as orc")
    for first in (1, 3):
        hive_3.sql(f"insert into originals values ({first}, 'a'), ({first + 1}, 'b')")
    path = hive_3.warehouse / "originals"
    (path / "000000_0_copy_1").rename(path / "000001_0")
    for checksum in path.glob(".*"):
        checksum.unlink()
    hive_3.sql("alter table originals set tblproperties('transactional'='true')", "delete from originals where id = 4")
    table = HiveTable(hive_3, "originals", {"id": "int", "name": "string"}, exists=True)
    assert [values[0] for _, values in table.rows()] == ["1", "2", "3"]
    assert len(judge.rows(table)) == 4
    assert warned_of(table) == {"R9"}
    compact(table)
    assert len(judge.judge(table)) == 3


def test_an_insert_overwrite_that_was_aborted(judge: Engines, hive: HiveServer) -> None:
    """Trino, as Hive 3, refuses the table for its base; Hive 4 reads what is beside it."""
    table = HiveTable(hive, "overwritten", COLUMNS, by_lists=True)
    table.run("insert into overwritten values (1, 'a', 0.5)")
    with hive.aborting():
        table.run("insert overwrite table overwritten select id, 'o', score from overwritten")
    assert [values[0] for _, values in table.ours()] == ["1"]
    assert warned_of(table) == {"R17"}
    with pytest.raises(TrinoError, match="Not enough history available"):
        judge.rows(table)
    if hive.version > 3:
        assert table.rows() == table.ours()
    else:
        with pytest.raises(HiveError, match="Not enough history available"):
            table.rows()
    Location(table.path, snapshot=hive.write_ids("overwritten")).clean(0, unsafe_retention=True)
    assert warned_of(table) == set()
    assert len(judge.judge(table)) == 1


def test_moments_before_1970_with_less_than_a_millisecond(judge: Engines, hive: HiveServer) -> None:
    """Trino reads them a second early: trinodb/trino issue 22511."""
    table = HiveTable(hive, "early", {"id": "int", "ts": "timestamp"})
    table.run("insert into early values (1, '1969-12-01 00:00:00.000999'), (2, '1969-12-01 00:00:00.001')")
    for _ in range(2):
        assert [values[1] for _, values in table.judge()] == ["1969-12-01 00:00:00.000999", "1969-12-01 00:00:00.001"]
        assert [ts for _, ts in judge.rows(table)] == ["1969-11-30 23:59:59.000999", "1969-12-01 00:00:00.001"]
        table.run("insert into early values (3, null)", "delete from early where id = 3")
        compact(table)


def test_trino_makes_no_transactional_tables_on_hive_4(judge: Engines, hive_4: HiveServer) -> None:
    """It does not say to the metastore that it can use them; those that Hive made it changes."""
    (hive_4.warehouse.parent / "external").mkdir(exist_ok=True)
    with pytest.raises(TrinoError, match="Processor has no capabilities, cannot create an ACID table"):
        judge.sql(hive_4, "create table refused (id integer) with (format = 'ORC', transactional = true)")
    table = HiveTable(hive_4, "accepted", {"id": "int", "name": "string"})
    judge.sql(hive_4, "insert into accepted values (1, 'a'), (2, 'b')", "update accepted set name = 't' where id = 2")
    assert judge.judge(table) == [("1", "61"), ("2", "74")]


@pytest.mark.parametrize("buckets", [0, 2])
def test_statements_of_acidctl_leave_rows_that_trino_and_hive_read_alike(
    judge: Engines, hive: HiveServer, buckets: int
) -> None:
    name = f"stated_{buckets}"
    hive.sql(f"drop table if exists {name}")
    definition = {"clustered_by": "id", "buckets": buckets} if buckets else {}
    columns = ", ".join(f"{column} {kind}" for column, kind in COLUMNS.items())
    address = judge.metastores[hive.version]
    ours = acidctl.create(f"hive:default.{name}", columns, metastore=address, **definition)
    read = HiveTable(hive, name, COLUMNS, by_lists=True, exists=True)
    rows = pa.table({"id": range(8), "name": [f"n{number}" for number in range(8)], "score": [0.5] * 8})
    changes = pa.table({"id": [3, 4, 90], "name": ["merged", "gone", "new"], "op": ["u", "d", "i"]})
    steps: list[Callable[[], object]] = [
        lambda: ours.insert(rows), lambda: ours.update("name = name || 'x', score = score + 1", "id < 4"),
        lambda: ours.delete("id = 1 OR name = 'n7'"), lambda: ours.delete(keys=pa.table({"id": [2, 77]})),
        lambda: ours.merge(changes, "id", operation_column="op"), lambda: ours.update("name = NULL", "id = 90"),
        lambda: hive.sql(f"insert into {name} values (20, 'of hive', 9)"), lambda: ours.update("score = 0", "id = 20"),
        lambda: ours.insert(rows.slice(0, 2)),
        lambda: ours.insert(rows.slice(6), overwrite=True), lambda: ours.delete("id = 6"), ours.truncate,
        lambda: ours.insert(rows.slice(3, 1)),
    ]  # fmt: skip
    counts = []
    for step in steps:
        step()
        assert not warned_of(read)
        counts.append(len(judge.judge(read)))
    assert counts == [8, 8, 6, 5, 5, 5, 6, 6, 8, 2, 1, 0, 1]
