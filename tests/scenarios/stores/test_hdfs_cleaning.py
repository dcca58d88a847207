"""Cleaning on a real NameNode: its trash, locks between processes, and what is told of times."""

from __future__ import annotations

import json
import time
import uuid

import pytest
from support.servers.hdfs_server import HdfsServer
from support.servers.hdfs_tables import acidctl, names_of, rows_of, start
from support.tables import CLEAN_NOW

from acidctl.acid.sidefiles import METADATA_ACID_COMPACTED
from acidctl.location.change.lock import LOCK
from acidctl.location.change.own_files import Owner
from acidctl.location.walk import is_log
from acidctl.storage.port import base_name
from acidctl.storage.registry import open_location

pytestmark = [pytest.mark.server, pytest.mark.in_turn("hdfs", "table")]

FOUR = {
    "delta_0000001_0000001_0000", "delta_0000002_0000002_0000", "delete_delta_0000002_0000002_0000",
    "delete_delta_0000003_0000003_0000",
}  # fmt: skip


@pytest.fixture(params=["webhdfs", "hdfs"])
def table(hdfs: HdfsServer, request: pytest.FixtureRequest) -> str:
    """The walk-through table, compacted."""
    if request.param == "hdfs":
        pytest.importorskip("hdfs_native", reason="hdfs-native is not installed")
    authority = hdfs.authority if request.param == "webhdfs" else hdfs.rpc_authority
    url = f"{request.param}://root@{authority}/test-{uuid.uuid4().hex}/orders"
    for command in (("demo", url), ("compact", "--assume-committed=0s", "--major", "--engine", "local", "--lock", url)):
        status, _, err = acidctl(*command)
        assert status == 0, err
    assert LOCK not in names_of(url)
    return url


def test_a_tree_is_cleaned_and_restored(hdfs: HdfsServer) -> None:
    url = f"webhdfs://root@{hdfs.authority}/test-{uuid.uuid4().hex}/orders"
    fs, path = open_location(url)
    for day in range(3):
        for name in ("base_5", "delta_4_4_0"):
            fs.make_dirs(f"{path}/day={day}/{name}")
            fs.write_bytes(f"{path}/day={day}/{name}/bucket_00000", b"x")
            fs.write_bytes(f"{path}/day={day}/{name}/_orc_acid_version", b"2")
        fs.write_bytes(f"{path}/day={day}/base_5/_metadata_acid", METADATA_ACID_COMPACTED)
    before = [entry[:2] for entry in fs.list_tree(path).entries]
    status, out, err = acidctl(*CLEAN_NOW, "-o", "jsonl", url)
    assert status == 0, err
    assert len({json.loads(line)["trashRun"] for line in out.splitlines()}) == 1
    status, out, err = acidctl("restore", "--yes", "--lock", "-o", "jsonl", url)
    assert status == 0, err
    assert [json.loads(line)["changes"] for line in out.splitlines()] == [[], [], []]
    after = [entry[:2] for entry in fs.list_tree(path).entries if not is_log(base_name(entry.path))]
    assert after == before


def test_a_user_who_may_not(hdfs: HdfsServer, table: str) -> None:
    before = names_of(table)
    status, _, err = acidctl(*CLEAN_NOW, table.replace("root@", "alice@"))
    assert status == 5, err
    assert "permission denied" in err
    assert names_of(table) == before


def test_retention_by_the_server_s_times(table: str) -> None:
    status, out, _ = acidctl("clean", "--dry-run", "-o", "jsonl", table)
    assert status == 0
    plan = json.loads(out)
    assert plan["removals"] == []
    assert {one["name"] for one in plan["waiting"]} == FOUR
    fs, path = open_location(table)
    base = max(e.modified or 0 for e in fs.list_tree(f"{path}/base_0000003").entries)
    since = {one["since"] for one in plan["waiting"]}
    assert since == {
        time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(max(base, fs.stat(f"{path}/base_0000003").modified or 0)))
    }


def test_runs_at_once_wait_for_locks_and_foreign_ones_stop_all(table: str) -> None:
    """Of three that begin at once none disturbs another; a foreign lock stops all of them."""
    rows = rows_of(table)
    racers = [start(*CLEAN_NOW, "--lock", "-o", "jsonl", table) for _ in range(3)]
    racers.append(
        start("compact", "--assume-committed=0s", "--major", "--engine", "local", "--lock", "-o", "jsonl", table)
    )
    ended = [(*racer.communicate(timeout=300), racer.returncode) for racer in racers]
    results = [json.loads(out)["result"] for out, *_ in ended if out]
    assert results.count("cleaned") == 1, ended
    assert all(status in (0, 9) for *_, status in ended), ended
    assert rows_of(table) == rows
    assert {name for name in names_of(table) if name != ".acidctl-trash"} == {"base_0000003"}
    fs, path = open_location(table)
    fs.create_exclusive(f"{path}/{LOCK}", Owner("elsewhere", 1, 1, "etl", 0.0).to_bytes())
    for command in (("restore", table), ("purge", "--yes", table), ("restore", "--lock", table)):
        status, _, err = acidctl(*command)
        assert (status, "process 1 of etl on elsewhere" in err) == (9, True), err
    status, out, err = acidctl("restore", "--break-lock", table)
    assert status == 0, err
    assert "the state is as before the cleaning" in out
    assert names_of(table) == {"base_0000003", *FOUR}
    assert rows_of(table) == rows


def test_saved_plan_is_applied_to_hdfs(table: str, tmp_path) -> None:  # type: ignore[no-untyped-def]
    file = str(tmp_path / "plan.json")
    user = ("--set", "storage.user=root")  # the URL in the file has none
    status, _, err = acidctl("clean", "--plan", file, "--older-than", "0", "--unsafe-retention", table)
    assert status == 0, err
    assert "root" not in (tmp_path / "plan.json").read_text()
    status, _, err = acidctl("clean", "--yes", "--unsafe-retention", *user, "--apply", file)
    assert status == 0, err
    assert names_of(table) == {"base_0000003", ".acidctl-trash"}
