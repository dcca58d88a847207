"""Tables on a real NameNode, by the commands that a user types: compacted, cleaned, restored, raced."""

from __future__ import annotations

import json
import uuid

import pytest
from support.servers.hdfs_server import HdfsServer
from support.servers.hdfs_tables import acidctl, names_of, rows_of, start
from support.tables import CLEAN_NOW

from acidctl.storage.registry import open_location

pytestmark = [pytest.mark.server, pytest.mark.in_turn("hdfs", "table")]


@pytest.fixture(params=["webhdfs", "hdfs"])
def table(request: pytest.FixtureRequest, hdfs: HdfsServer) -> str:
    """The walk-through table on HDFS, by either of its ways."""
    if request.param == "hdfs":
        pytest.importorskip("hdfs_native", reason="hdfs-native is not installed")
    authority = hdfs.rpc_authority if request.param == "hdfs" else hdfs.authority
    url = f"{request.param}://root@{authority}/test-{uuid.uuid4().hex}/orders"
    status, _, err = acidctl("demo", url)
    assert status == 0, err
    return url


def test_walkthrough_on_hdfs_is_compacted_cleaned_and_restored(table: str) -> None:
    rows, before = rows_of(table), names_of(table)
    status, out, err = acidctl(
        "compact", "--assume-committed=0s", "--major", "--engine", "local", "--verify", "full", "-o", "jsonl", table
    )
    assert status == 0, err
    assert json.loads(out)["outputs"] == ["base_0000003"]
    assert rows_of(table) == rows
    assert acidctl(*CLEAN_NOW, table)[0] == 0
    assert {name for name in names_of(table) if name[0] != "."} == {"base_0000003"}
    assert rows_of(table) == rows
    assert acidctl("restore", table)[0] == 0
    assert names_of(table) >= before
    assert rows_of(table) == rows


@pytest.mark.parametrize("kind", [("--major",), ("--minor", "--offline")], ids=["major", "minor"])
@pytest.mark.sampled(7)
def test_of_several_compactions_at_once_one_wins(table: str, kind: tuple[str, ...]) -> None:
    """One wins; the others say so, or find nothing left to do; no directory is nested in another."""
    rows = rows_of(table)
    racers = [
        start("compact", "--assume-committed=0s", *kind, "--engine", "local", "-o", "jsonl", table) for _ in range(3)
    ]
    ended = [(*racer.communicate(timeout=300), racer.returncode) for racer in racers]
    results = [json.loads(out)["result"] for out, _, _ in ended]
    assert results.count("compacted") == 1, ended
    for (_, err, status), result in zip(ended, results, strict=True):
        assert status == {"compacted": 0, "nothing-to-do": 0, "failed": 9}[result], err
    assert rows_of(table) == rows
    fs, path = open_location(table)
    nested = [e.path for e in fs.list_tree(path).entries if e.is_dir and e.path.count("/") and "_tmp_" not in e.path]
    assert nested == []


def test_a_compaction_and_a_cleaning_at_once(table: str) -> None:
    rows = rows_of(table)
    assert acidctl("compact", "--assume-committed=0s", "--major", "--engine", "local", table)[0] == 0
    racers = [start(*CLEAN_NOW, "-o", "jsonl", table) for _ in range(2)]
    racers.append(start("compact", "--assume-committed=0s", "--major", "--engine", "local", table))
    ended = [(*racer.communicate(timeout=300), racer.returncode) for racer in racers]
    assert all(status in (0, 3, 9) for *_, status in ended), ended
    assert rows_of(table) == rows
    assert acidctl(*CLEAN_NOW, table)[0] == 0
    assert {name for name in names_of(table) if name[0] != "."} == {"base_0000003"}
    assert rows_of(table) == rows


@pytest.mark.spark
def test_spark_reads_and_writes_the_same_hdfs(table: str) -> None:
    rows = rows_of(table)
    status, out, err = acidctl(
        "compact", "--assume-committed=0s", "--major", "--master", "local[2]", "--verify", "full", "-o", "jsonl", table
    )
    assert status == 0, err
    assert json.loads(out)["outputs"] == ["base_0000003"]
    assert rows_of(table) == rows
