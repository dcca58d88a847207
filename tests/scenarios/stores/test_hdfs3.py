"""What HDFS 3 has: encryption zones with a trash of their own, erasure-coded directories, snapshots, a failover."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from hdfs import InsecureClient
from support.served import served
from support.servers.hdfs_server import HaHdfsServer, HdfsServer, ZonesHdfsServer
from support.servers.hdfs_tables import acidctl, names_of, rows_of, start
from support.tables import CLEAN_NOW

from acidctl.storage.registry import open_location

pytestmark = pytest.mark.server

MAJOR = ("compact", "--assume-committed=0s", "--major", "--engine", "local")


@pytest.fixture(scope="module")
def zones(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HdfsServer]:
    """A server in which /zone is encrypted, and what is below /coded is erasure-coded."""
    with served(lambda: ZonesHdfsServer(tmp_path_factory.mktemp("zones"), hadoop=3)) as server:
        fs, _ = open_location(f"webhdfs://root@{server.authority}/")
        fs.make_dirs("/zone")
        fs.make_dirs("/coded")
        server.encrypt("/zone")
        server.erasure_code("/coded")
        yield server


def demo(server: HdfsServer, folder: str, way: str = "webhdfs") -> str:
    """The walk-through table."""
    authority = server.authority if way == "webhdfs" else server.rpc_authority
    url = f"{way}://root@{authority}/{folder}/{uuid.uuid4().hex}/orders"
    assert done("demo", url)
    return url


def done(*arguments: str) -> str:
    """What acidctl prints, where nothing went wrong."""
    status, out, err = acidctl(*arguments)
    assert status == 0, err
    return out


def raw(server: HdfsServer) -> InsecureClient:
    """What acidctl does not ask for."""
    return InsecureClient(f"http://{server.authority}", user="root")


# hdfs-native cannot restore a block of the policy of these servers, so it fails where a DataNode is slow.
PLACES = [("zone", "webhdfs"), ("coded", "webhdfs"), pytest.param("coded", "hdfs", marks=pytest.mark.by_hand)]


@pytest.mark.parametrize(("folder", "way"), PLACES)
def test_a_table_is_compacted_cleaned_and_restored(zones: HdfsServer, folder: str, way: str) -> None:
    if way == "hdfs":
        pytest.importorskip("hdfs_native", reason="hdfs-native is not installed")
    table = demo(zones, folder, way)
    rows, before = rows_of(table), names_of(table)
    done(*MAJOR, table)
    assert rows_of(table) == rows
    after = names_of(table)
    assert after > before
    done(*CLEAN_NOW, table)
    assert {name for name in names_of(table) if name[0] != "."} == after - before
    assert rows_of(table) == rows
    done("restore", "--yes", table)
    assert {name for name in names_of(table) if name[0] != "."} == after
    assert rows_of(table) == rows
    assert done("validate", "--deep", table)


def test_what_is_written_is_coded_like_its_directory(zones: HdfsServer) -> None:
    table = demo(zones, "coded")
    done(*MAJOR, table)
    _, path = open_location(table)
    assert raw(zones).status(f"{path}/base_0000003/bucket_00000")["ecBit"]
    plain = demo(zones, "plain")
    done(*MAJOR, plain)
    assert not raw(zones).status(f"{open_location(plain)[1]}/base_0000003/bucket_00000").get("ecBit")


def test_a_zone_without_its_keys_is_told(zones: HdfsServer) -> None:
    pytest.importorskip("hdfs_native", reason="hdfs-native is not installed")
    table = demo(zones, "zone").replace(f"webhdfs://root@{zones.authority}", f"hdfs://root@{zones.rpc_authority}")
    status, _, err = acidctl("cat", table)
    assert status == 6, err
    assert "it lies in an encryption zone" in err
    assert "hadoop.security.key.provider.path" in err


def test_snapshots_are_never_entered(zones: HdfsServer) -> None:
    table = demo(zones, "plain")
    _, path = open_location(table)
    zones.admin("-allowSnapshot", path)
    raw(zones).create_snapshot(path, "before")
    rows, before = rows_of(table), names_of(table)
    done(*MAJOR, table)
    done(*CLEAN_NOW, "--no-trash", table)
    assert {name for name in names_of(table) if name[0] != "."} == {"base_0000003"}
    assert rows_of(table) == rows
    assert ".snapshot" not in done("ls", "-o", "json", table)
    whole = done("ls", "-o", "json", table.rpartition("/")[0])
    assert [one["location"] for one in json.loads(whole)] == [table.replace("root@", "")]
    kept = f"{table}/.snapshot/before"
    assert names_of(kept) == before
    assert done("cat", "--row-id", "-o", "jsonl", kept).splitlines()
    assert rows_of(kept) == rows
    for command in (MAJOR, CLEAN_NOW):
        status, _, err = acidctl(*command, kept)
        assert status == 7, err
        assert "is not a table of its own" in err
    assert names_of(kept) == before


def test_a_quota_of_names_leaves_the_table_as_it_was(zones: HdfsServer) -> None:
    table = demo(zones, "names")
    rows, before = rows_of(table), names_of(table)
    _, path = open_location(table)
    summary = raw(zones).content(path)
    zones.admin("-setQuota", str(summary["directoryCount"] + summary["fileCount"] + 1), path)
    status, _, err = acidctl(*MAJOR, table)
    assert status == 6, err
    assert "the quota of names is used up" in err
    assert names_of(table) == before
    assert rows_of(table) == rows
    zones.admin("-clrQuota", path)
    done(*MAJOR, table)
    assert rows_of(table) == rows


def test_a_quota_of_space_leaves_a_coded_table_as_it_was(zones: HdfsServer) -> None:
    """Of a coded file a first stripe takes a block on each of three DataNodes."""
    table = demo(zones, "coded")
    rows, before = rows_of(table), names_of(table)
    _, path = open_location(table)
    zones.admin("-setSpaceQuota", str(raw(zones).content(path)["spaceConsumed"] + 1000), path)
    status, _, err = acidctl(*MAJOR, table)
    assert status == 6, err
    assert "quota" in err
    assert names_of(table) == before
    assert rows_of(table) == rows
    zones.admin("-clrSpaceQuota", path)
    done(*MAJOR, table)
    assert rows_of(table) == rows


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HaHdfsServer]:
    with served(lambda: HaHdfsServer(tmp_path_factory.mktemp("pair"), hadoop=3)) as server:
        yield server


def test_a_failover_in_the_middle_takes_no_row_along(
    pair: HaHdfsServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HADOOP_CONF_DIR", str(pair.conf))
    local = tmp_path / "orders"
    done("demo", str(local))
    active = ["nn1", "nn2"]
    for turn, (way, command) in enumerate([("webhdfs", MAJOR), ("hdfs", MAJOR), ("webhdfs", CLEAN_NOW)]):
        folder = f"/turn-{turn}"
        fs, _ = open_location(f"webhdfs://root@acid{folder}")
        partitions = [f"day={number}" for number in range(4)]
        for partition in partitions:
            for file in local.rglob("*"):
                if file.is_file():
                    target = f"{folder}/t/{partition}/{file.relative_to(local)}"
                    fs.make_dirs(target.rpartition("/")[0])
                    fs.write_bytes(target, file.read_bytes())
        table = f"{way}://root@acid{folder}/t"
        rows = rows_of(f"{table}/day=0")
        if command is CLEAN_NOW:
            done(*MAJOR, table)
        process = start(*command, table)
        pair.fail_over((active[0], active[1]))
        active.reverse()
        process.communicate(timeout=300)
        done(*command, table)  # what was not done then
        for partition in partitions:
            assert rows_of(f"{table}/{partition}") == rows, (way, command, partition)
            left = {name for name in names_of(f"{table}/{partition}") if name[0] != "."}
            assert "base_0000003" in left
            assert (len(left) == 1) == (command is CLEAN_NOW)
