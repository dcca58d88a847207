"""Writers that change one row at the same time, Hive and Trino among them, on PostgreSQL: no change is lost."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
from support.paths import PYTHONPATH
from support.servers.hdfs_server import ServerUnavailable
from support.servers.hive_server import HiveError, HiveServer
from support.servers.metastore_server import MetastoreServer
from support.servers.postgres_server import PostgresServer
from support.servers.trino_server import TrinoServer

from acidctl import Hive
from acidctl.base.errors import ExitStatus
from acidctl.writing.change import Change
from acidctl.writing.rows.files import StagedFile
from acidctl.writing.transaction import Seen

pytestmark = [pytest.mark.server, pytest.mark.timeout(900), pytest.mark.in_turn("hive")]

WRITERS = int(os.environ.get("ACIDCTL_COMPETING_WRITERS", "3"))
TIMES = int(os.environ.get("ACIDCTL_COMPETING_TIMES", "4"))


@pytest.fixture(scope="module", params=[3, 4], ids=["hive-3.1", "hive-4.0"])
def hive(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HiveServer]:
    """A Hive whose metastore is a process of its own, on PostgreSQL."""
    directory = tmp_path_factory.mktemp(f"competing{request.param}")
    with ExitStack() as running:
        try:
            postgres = PostgresServer()
            running.callback(postgres.stop)
            metastore = MetastoreServer(request.param, directory, postgres=postgres)
            running.callback(metastore.stop)
            server = HiveServer(request.param, directory, metastore.address)
            running.callback(server.stop)
        except ServerUnavailable as reason:
            pytest.skip(str(reason))
        server.address = metastore.address
        yield server


def acidctl(hive: HiveServer, *words: str) -> int:
    """Run acidctl in a process of its own, and return its status."""
    command = [sys.executable, "-m", "acidctl", *words, f"--metastore={hive.address}", "--yes"]
    environment = {**os.environ, "PYTHONPATH": PYTHONPATH}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode in (0, ExitStatus.REFUSED), done.stderr
    return done.returncode


def by_hive(hive: HiveServer, statement: str) -> int:
    try:
        hive.sql(statement)
    except HiveError:
        return ExitStatus.REFUSED
    return 0


@pytest.fixture(scope="module")
def trino(hive: HiveServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TrinoServer]:
    try:
        server = TrinoServer(tmp_path_factory.mktemp("trino") / "trino", {"hive": hive.address})
    except ServerUnavailable as reason:
        pytest.skip(str(reason))
    yield server
    server.stop()


STATEMENTS = {
    "update": ("--set", "n = n + 1", "--where", "id = 1"),
    "delete": ("--where", "id = 1"),
}


def test_increments_of_one_counter_are_never_lost(hive: HiveServer) -> None:
    hive.sql(
        "drop table if exists counter",
        "create table counter (id int, n int) stored as orc tblproperties('transactional'='true')",
        "insert into counter values (1, 0), (2, 0)",
    )

    def ours(_: int) -> int:
        return acidctl(hive, "update", "hive:default.counter", *STATEMENTS["update"])

    with ThreadPoolExecutor(WRITERS + 1) as pool:
        hives = pool.submit(lambda: [by_hive(hive, "update counter set n = n + 1 where id = 1") for _ in range(TIMES)])
        statuses = Counter(pool.map(ours, range(WRITERS * TIMES))) + Counter(hives.result())
    done = statuses[0]
    print(hive.version, dict(statuses))
    assert done > TIMES, statuses
    assert hive.sql("select id, n from counter order by id") == [["1", str(done)], ["2", "0"]]
    assert hive.sql("select count(*), sum(n) from counter") == [["2", str(done)]]
    assert len(hive.sql("show locks")) == 1


def test_a_row_is_deleted_once_and_inserts_stay(hive: HiveServer) -> None:
    """Deletes of the same row, updates of another one, and inserts compete."""
    hive.sql(
        "drop table if exists mixed",
        "create table mixed (id int, n int) stored as orc tblproperties('transactional'='true')",
        "insert into mixed values (1, 0), (2, 0)",
    )
    lines = hive.warehouse / "line.jsonl"
    lines.write_text('{"id": 3, "n": 1}\n')
    each = [
        ("delete", *STATEMENTS["delete"]),
        ("insert", str(lines)),
        ("update", "--set", "n = n + 1", "--where", "id = 2"),
    ]

    def ours(place: int) -> tuple[str, int]:
        verb, *words = each[place % len(each)]
        target = ["hive:default.mixed", *words]
        return verb, acidctl(hive, verb, *target)

    with ThreadPoolExecutor(WRITERS) as pool:
        done = Counter(verb for verb, status in pool.map(ours, range(len(each) * TIMES)) if status == 0)
    found = Counter(tuple(row) for row in hive.sql("select id, n from mixed"))
    expected = {("2", str(done["update"])): 1, ("3", "1"): done["insert"]}
    assert done["insert"] == TIMES, "an insert waits for nobody"
    assert found == expected if done["delete"] else found == {**expected, ("1", "0"): 1}
    assert hive.sql("select count(*) from mixed") == [[str(found.total())]]


@pytest.mark.parametrize("hive", [4], ids=["hive-4.0"], indirect=True)  # it changes no table of Hive 3's metastore
def test_an_update_of_trino_that_commits_first_is_kept(
    hive: HiveServer, trino: TrinoServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trino locks as a reader does and commits unchecked, so that only the check at our own commit can see it.

    The other way round Trino loses: what it commits over our commit shows both versions of a row. So its statements
    run in the middle of ours here, and not at any time.
    """
    hive.sql(
        "drop table if exists shared",
        "create table shared (id int, n int) stored as orc tblproperties('transactional'='true')",
        "insert into shared values (1, 0), (2, 0)",
    )
    assert trino.sql("hive", "select count(*) from shared") == [[2]]
    staged: list[int] = []
    stage = Change.stage

    def beside_trino(self: Change, transaction: Seen) -> list[StagedFile]:
        files = stage(self, transaction)
        staged.append(transaction.write_id)
        if len(staged) % 2:  # the first attempt of each statement is overtaken, the second one is not
            trino.sql("hive", "update shared set n = n + 100 where id = 1")
        return files

    monkeypatch.setattr(Change, "stage", beside_trino)
    table = Hive(hive.address).table("default.shared")
    for _ in range(TIMES):
        table.update("n = n + 1", "id = 1")
    assert len(staged) == 2 * TIMES, "each update was made again"
    rows = [["1", str(101 * TIMES)], ["2", "0"]]
    assert hive.sql("select id, n from shared order by id") == rows
    assert [[str(value) for value in row] for row in trino.sql("hive", "select id, n from shared order by id")] == rows
    assert len(hive.sql("show locks")) == 1
