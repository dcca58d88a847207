"""After a rescue Hive reads exactly the wanted rows, and its next statements collide with no file."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from support.command_line import Result
from support.engines.real_hive import started
from support.servers.hdfs_server import ServerUnavailable
from support.servers.hive_server import HiveServer
from support.servers.metastore_server import MetastoreServer

from acidctl.location import metastore_state
from acidctl.location.snapshot_resolver import open_warehouse
from acidctl.metastore.client import Metastore
from acidctl.metastore.queue import Wish, request_compaction
from acidctl.metastore.tables import get_table
from acidctl.metastore.wire import Method
from acidctl.rescue import look
from acidctl.rescue.look import Place, look_at, look_twice

pytestmark = [pytest.mark.server, pytest.mark.xdist_group("rescues"), pytest.mark.in_turn("hive")]

ABORTED = 4
"""The write id of :func:`filled` whose transaction was aborted."""

_ORC = "stored as orc tblproperties ('transactional'='true')"


@pytest.fixture(scope="module", params=[3, 4, 41])
def hive(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HiveServer]:
    """Start a Hive with its own metastore; 41 means Hive 4.0.1 on a metastore of 4.1.0, whose housekeeping runs."""
    folder = tmp_path_factory.mktemp("rescues")
    with ExitStack() as running:
        if request.param == 41:
            try:
                metastore = MetastoreServer(41, folder, keeps_house=True)
                running.callback(metastore.stop)
                server = HiveServer(4, folder, metastore.address)
            except ServerUnavailable as error:
                pytest.skip(f"no metastore 4.1.0 to judge: {error}")
            server.__dict__["metastore"] = metastore.address
        else:
            server = started(request.param, folder)
        running.callback(server.stop)
        yield server


@pytest.fixture(autouse=True)
def in_haste(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metastore_state, "_WAIT", 0.0)
    monkeypatch.setattr(look, "_PAUSE", 0.0)


def create(hive: HiveServer, name: str, *, partitioned: bool) -> None:
    hive.sql(f"drop table if exists {name}")
    hive.sql(f"create table {name} (a int, b string) {'partitioned by (p string)' if partitioned else ''} {_ORC}")


def insert(hive: HiveServer, name: str, a: int, *, partitioned: bool) -> None:
    where = f" partition (p='{a % 2}')" if partitioned else ""
    hive.sql(f"insert into {name}{where} values ({a}, 'x')")


def filled(hive: HiveServer, name: str, *, partitioned: bool) -> None:
    """A table with the write ids 1 to 7, the fourth of which is aborted."""
    create(hive, name, partitioned=partitioned)
    for a in (1, 2, 3):
        insert(hive, name, a, partitioned=partitioned)
    with hive.aborting():
        insert(hive, name, 44, partitioned=partitioned)
    hive.sql(f"update {name} set b = 'y' where a = 2")
    hive.sql(f"delete from {name} where a = 1")
    insert(hive, name, 7, partitioned=partitioned)


def rows(hive: HiveServer, name: str) -> list[list[str]]:
    return sorted(hive.sql(f"select a, b from {name}"))


def put_files(hive: HiveServer, source: str, target: str) -> None:
    """The files of one table in the place of those of another."""
    shutil.rmtree(hive.warehouse / target, ignore_errors=True)
    shutil.copytree(hive.warehouse / source, hive.warehouse / target)


def rescue(acidctl: Callable[..., Result], hive: HiveServer, name: str, *words: object) -> Result:
    return acidctl("hive", "rescue", "--metastore", hive.metastore, *words, f"default.{name}")


def found(acidctl: Callable[..., Result], hive: HiveServer, name: str) -> set[str]:
    (record,) = rescue(acidctl, hive, name, "-n", "-o", "jsonl").lines()
    return {one["kind"] for one in record["disagreements"]}


def content(table: Path) -> dict[str, bytes]:
    return {str(p.relative_to(table)): p.read_bytes() for p in table.rglob("bucket_*") if p.is_file()}


def write_on(hive: HiveServer, *names: str, partitioned: bool) -> None:
    """Twenty statements on tables that have equal rows."""
    for name in names:
        for a in range(100, 107):
            insert(hive, name, a, partitioned=partitioned)
        for a in range(100, 106):
            hive.sql(f"update {name} set b = 'z' where a = {a}")
        for a in (2, 3, 7, 101, 102, 103, 104):
            hive.sql(f"delete from {name} where a = {a}")


def is_as_hive_wants(hive: HiveServer, name: str, truth: list[list[str]], *, partitioned: bool) -> None:
    """The rows are right, now and after twenty statements, which leave every file of before as it is."""
    table = hive.warehouse / name
    assert rows(hive, name) == truth
    assert hive.sql(f"select count(*) from {name}") == [[str(len(truth))]]
    before = content(table)
    write_on(hive, name, partitioned=partitioned)
    left = {row[0]: row[1] for row in truth} | {str(a): "z" for a in range(100, 106)} | {"106": "x"}
    for a in (2, 3, 7, 101, 102, 103, 104):
        left.pop(str(a), None)
    assert rows(hive, name) == sorted([a, b] for a, b in left.items())
    after = content(table)
    assert {path: after.get(path) for path in before} == before


@pytest.mark.parametrize("partitioned", [False, True])
@pytest.mark.parametrize("given", [2, 0])
def test_an_older_metastore_gets_the_ids_of_its_files(
    hive: HiveServer, acidctl: Callable[..., Result], given: int, partitioned: bool
) -> None:
    filled(hive, "source", partitioned=partitioned)
    truth = rows(hive, "source")
    create(hive, "t", partitioned=partitioned)
    for a in range(given):
        insert(hive, "t", a + 1, partitioned=partitioned)
    put_files(hive, "source", "t")
    kind = "older-metastore" if given else "recreated-table"
    lost = {"lost-partition"} if partitioned and not given else set()
    assert found(acidctl, hive, "t") == {kind} | lost
    done = rescue(acidctl, hive, "t", "--yes", "--aborted", ABORTED)
    assert done.status == 0, done.err
    is_as_hive_wants(hive, "t", truth, partitioned=partitioned)
    assert found(acidctl, hive, "t") == set()


def test_a_lost_partition_is_added(hive: HiveServer, acidctl: Callable[..., Result]) -> None:
    filled(hive, "t", partitioned=True)
    truth, table = rows(hive, "t"), hive.warehouse / "t"
    shutil.copytree(table / "p=1", table.parent / "kept")
    hive.sql("alter table t drop partition (p='1')")
    shutil.rmtree(table / "p=1", ignore_errors=True)
    assert found(acidctl, hive, "t") == set()
    shutil.move(table.parent / "kept", table / "p=1")
    assert found(acidctl, hive, "t") == {"lost-partition"}
    done = rescue(acidctl, hive, "t", "--yes")
    assert done.status == 0, done.err
    is_as_hive_wants(hive, "t", truth, partitioned=True)


@pytest.mark.parametrize("partitioned", [False, True])
def test_a_base_of_a_transaction_that_is_yet_to_come_is_read(
    hive: HiveServer, acidctl: Callable[..., Result], partitioned: bool
) -> None:
    if hive.version == 3:
        pytest.skip("Hive 3 fails on names with a transaction")
    filled(hive, "t", partitioned=partitioned)
    truth = rows(hive, "t")
    warehouse = open_warehouse(hive.metastore)
    assert warehouse is not None
    for part in (0, 1) if partitioned else ("",):
        # By thrift: Hive 4.0's ALTER TABLE asks no metastore of another version.
        wish = Wish("default", "t", f"p={part}" if partitioned else "", "major")
        assert request_compaction(warehouse.metastore, wish).accepted
        hive.round("Worker")
    assert rows(hive, "t") == truth
    future = int(hive.transactions().partition(":")[0]) + 1000
    for base in list((hive.warehouse / "t").glob("**/base_*")):
        for other in base.parent.glob("de*_*"):
            shutil.rmtree(other)
        base.rename(base.with_name(f"{base.name.partition('_v')[0]}_v{future:07}"))
    assert rows(hive, "t") == []
    assert found(acidctl, hive, "t") == {"future-transaction"}
    done = rescue(acidctl, hive, "t", "--yes")
    assert done.status == 0, done.err
    is_as_hive_wants(hive, "t", truth, partitioned=partitioned)


def test_nothing_is_said_of_tables_at_work(hive: HiveServer) -> None:
    hive.set("hive.exec.dynamic.partition.mode", "nonstrict")
    for name, partitioned in (("t", False), ("u", True)):
        create(hive, name, partitioned=partitioned)
    warehouse = open_warehouse(hive.metastore)
    assert warehouse is not None
    places = [Place.of(get_table(warehouse.metastore, "default", name), {}) for name in ("t", "u")]

    def work() -> None:
        for a in range(3):
            insert(hive, "t", a, partitioned=False)
            hive.sql(f"insert into u partition (p) values ({a}, 'x', 'one-{a}'), ({a}, 'x', 'two-{a}')")
        with hive.aborting():
            hive.sql("insert into u partition (p) values (9, 'x', 'never')")
            insert(hive, "t", 9, partitioned=False)
        hive.sql("update t set b = 'y' where a = 1", "delete from u where a = 1")
        hive.sql("alter table t compact 'major'", "alter table u partition (p='one-0') compact 'minor'")
        for thread in ("Worker", "Worker", "Cleaner"):
            hive.round(thread)
        hive.sql("alter table u drop partition (p='two-0')", "insert overwrite table t values (5, 'x')")

    thread, looks = threading.Thread(target=work), 0
    thread.start()
    while thread.is_alive():
        for place in places:
            found = look_at(warehouse.metastore, place).findings
            assert [finding for finding in found if not finding.kind.is_hint] == []
            looks += 1
    thread.join()
    assert looks > 2
    assert [look_twice(warehouse.metastore, place).findings for place in places] == [(), ()]
    warehouse.close()


class Died(BaseException):
    """The process is dead."""


@pytest.mark.parametrize("after", [False, True])
def test_a_rescue_that_died_at_any_call_is_finished_by_the_next(
    hive: HiveServer, acidctl: Callable[..., Result], after: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(hive, "source", partitioned=False)
    truth, real = rows(hive, "source"), Metastore.call
    for at in range(2, 1000, 5):
        create(hive, "t", partitioned=False)
        put_files(hive, "source", "t")
        calls = 0

        def call(self: Metastore, method: Method, *arguments: object, at: int = at) -> object:
            nonlocal calls
            calls += 1
            if calls > at or (calls == at and not after):
                raise Died
            answer = real(self, method, *arguments)
            if calls == at:
                raise Died
            return answer

        monkeypatch.setattr(Metastore, "call", call)
        try:
            rescue(acidctl, hive, "t", "--yes", "--aborted", ABORTED)
            is_dead = False
        except Died:
            is_dead = True
        monkeypatch.setattr(Metastore, "call", real)
        done = rescue(acidctl, hive, "t", "--yes", "--aborted", ABORTED)
        assert done.status == 0, (at, done.err)
        assert rows(hive, "t") == truth, at
        if not is_dead:
            break
    else:
        pytest.fail("it never ended")
