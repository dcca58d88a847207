"""YARN and HDFS 3.4 with Kerberos: the driver logs in, executors have tokens; who has no ticket is told at once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.served import served
from support.servers.hdfs_tables import names_of, rows_of
from support.servers.kdc import REALM
from support.servers.kerberos_packages import python_packages
from support.servers.kerberos_server import KerberosHdfsServer
from support.servers.yarn_server import SMALL, YarnServer

from acidctl.storage.registry import open_location

pytestmark = [pytest.mark.spark, pytest.mark.server]

MAJOR = ("compact", "--major", "--assume-committed=0s")
SCENARIO = Path(__file__).parents[2] / "support/spark/secured_source.py"

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KerberosHdfsServer]:
    """HDFS, whose clients' environment is this process's."""
    pytest.importorskip("hdfs_native", reason="hdfs-native is not installed")
    with (
        served(lambda: KerberosHdfsServer(tmp_path_factory.mktemp("hdfs"), hadoop=3)) as server,
        pytest.MonkeyPatch.context() as patch,
    ):
        for name, value in server.environment.items():
            patch.setenv(name, value)
        if packages := python_packages():
            patch.setattr(sys, "path", [*sys.path, str(packages)])
            patch.setenv("PYTHONPATH", str(packages), prepend=os.pathsep)
        yield server


@pytest.fixture(scope="module")
def yarn(hdfs: KerberosHdfsServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[YarnServer]:
    with (
        served(lambda: YarnServer(tmp_path_factory.mktemp("yarn"), hdfs)) as server,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("HADOOP_CONF_DIR", str(server.conf))
        yield server


@pytest.fixture
def table(hdfs: KerberosHdfsServer, yarn: YarnServer, request: pytest.FixtureRequest) -> Iterator[str]:
    """The walk-through table, made by one who has a ticket, which is still there."""
    hdfs.kinit("root")
    url = f"hdfs://{hdfs.rpc_authority}/{request.node.name}/orders"
    assert run("demo", url)[0] == 0
    yield url
    hdfs.kdestroy()


def run(*arguments: str) -> tuple[int, str, str]:
    ended = subprocess.run(
        [sys.executable, "-m", "acidctl", *arguments], capture_output=True, text=True, check=False, timeout=300
    )
    return ended.returncode, ended.stdout, ended.stderr


def on_yarn(*arguments: str, conf: tuple[str, ...] = ()) -> tuple[int, str, str]:
    return run(*arguments, "--master", "yarn", *(part for one in (*SMALL, *conf) for part in ("--conf", one)))


def test_a_ticket_of_the_driver_is_enough(table: str) -> None:
    rows, before = rows_of(table), names_of(table)
    status, _, err = on_yarn(*MAJOR, table)
    assert status == 0, err
    assert names_of(table) - before == {"base_0000003"}
    assert rows_of(table) == rows


def test_a_keytab_is_enough_where_the_store_is_not_the_default_one(hdfs: KerberosHdfsServer, table: str) -> None:
    """Spark fetches tokens for its own default file system without being asked, and only for that."""
    rows = rows_of(table)
    hdfs.kdestroy()
    login = {"keytab": str(hdfs.kdc.keytab("root")), "principal": f"root@{REALM}"}
    options = [part for pair in login.items() for part in ("--set", "storage." + "=".join(pair))]
    status, _, err = on_yarn(*MAJOR, table, *options, conf=("spark.hadoop.fs.defaultFS=file:///",))
    assert status == 0, err
    hdfs.kinit("root")
    assert "base_0000003" in names_of(table)
    assert rows_of(table) == rows


def test_validation_and_the_source_read_on_the_executors(hdfs: KerberosHdfsServer, table: str) -> None:
    fs, path = open_location(table)
    file = f"{path}/delta_0000001_0000001_0000/bucket_00000"
    rows, whole = rows_of(table), fs.read_bytes(file)
    web = table.replace(f"hdfs://{hdfs.rpc_authority}", f"webhdfs://{hdfs.authority}")
    ended = subprocess.run(
        [sys.executable, str(SCENARIO), table, web, *SMALL], capture_output=True, text=True, check=False, timeout=300
    )
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout) == [len(rows), len(rows)]
    fs.rename(file, f"{path}-kept")
    fs.write_bytes(file, whole[:-40])
    deep = ("validate", "--deep", table, "-o", "jsonl")
    here, there = run(*deep), on_yarn(*deep, "--engine", "spark")
    assert here[0] == there[0] != 0, (here, there)
    assert here[1] == there[1]


@pytest.mark.parametrize("state", ["missing", "expired"])
def test_who_has_no_ticket_is_told_before_anything_is_done(hdfs: KerberosHdfsServer, table: str, state: str) -> None:
    before = names_of(table)
    hdfs.kdestroy()
    if state == "expired":
        hdfs.kinit("root", "-l", "1s")
        time.sleep(2)
    began = time.monotonic()
    status, _, err = on_yarn(*MAJOR, table)
    assert status == 5, err
    assert "kinit" in err
    assert ("there is no Kerberos ticket" if state == "missing" else "the Kerberos ticket has expired") in err
    assert time.monotonic() - began < 120  # Hadoop's own client tries for a quarter of an hour
    hdfs.kinit("root")
    assert names_of(table) == before
