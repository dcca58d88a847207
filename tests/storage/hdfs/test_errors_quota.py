"""A space quota that is nearly used up, on a real NameNode: DataNodes of Hadoop 2 answer WebHDFS that all is well."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
import requests
from support.servers.hdfs_server import HdfsServer
from support.servers.hdfs_tables import acidctl, names_of, rows_of
from support.tables import CLEAN_NOW

from acidctl.base.errors import StorageError
from acidctl.storage.registry import open_location

pytestmark = [pytest.mark.server, pytest.mark.in_turn("hdfs", "table")]

COMPACT = ("compact", "--assume-committed=0s", "--engine", "local")


@pytest.fixture(params=["webhdfs", "hdfs"])
def table(hdfs: HdfsServer, request: pytest.FixtureRequest) -> Iterator[str]:
    """The walk-through table."""
    if request.param == "hdfs":
        pytest.importorskip("hdfs_native", reason="hdfs-native is not installed")
    authority = hdfs.authority if request.param == "webhdfs" else hdfs.rpc_authority
    url = f"{request.param}://root@{authority}/quota-{uuid.uuid4().hex}/orders"
    status, _, err = acidctl("demo", url)
    assert status == 0, err
    yield url
    hdfs.admin("-clrSpaceQuota", folder_of(url))


def folder_of(url: str) -> str:
    return "/" + url.split("/")[3]


def leave(hdfs: HdfsServer, url: str, free: int) -> None:
    """Set a quota that leaves so many bytes."""
    summary = f"http://{hdfs.authority}/webhdfs/v1{folder_of(url)}?op=GETCONTENTSUMMARY&user.name=root"
    taken = requests.get(summary, timeout=60).json()["ContentSummary"]["spaceConsumed"]
    hdfs.admin("-setSpaceQuota", str(taken + free), folder_of(url))


def test_with_a_used_up_quota_nothing_is_published(hdfs: HdfsServer, table: str) -> None:
    rows, before = rows_of(table), names_of(table)
    leave(hdfs, table, 1000)
    for kind in (("--major",), ("--minor", "--offline")):
        status, _, err = acidctl(*COMPACT, *kind, table)
        assert status == 6, err
        assert "quota is used up" in err
        assert names_of(table) == before
    assert rows_of(table) == rows
    hdfs.admin("-clrSpaceQuota", folder_of(table))
    assert acidctl(*COMPACT, "--major", table)[0] == 0
    assert rows_of(table) == rows


def test_nothing_is_promised_to_be_undone(hdfs: HdfsServer, table: str) -> None:
    assert acidctl(*COMPACT, "--major", table)[0] == 0
    rows, before = rows_of(table), names_of(table)
    leave(hdfs, table, 1000)
    status, _, err = acidctl(*CLEAN_NOW, table)
    assert status == 6, err
    assert "quota is used up" in err
    assert names_of(table) == before
    assert rows_of(table) == rows


def test_file_that_outgrows_the_quota_is_an_error(hdfs: HdfsServer, table: str) -> None:
    """The first block fits, the second does not: the server ends the transfer in the middle, or waits for the end."""
    fs, path = open_location(table)
    leave(hdfs, table, 200 << 20)
    with pytest.raises(StorageError, match="quota") as raised, fs.open_output(f"{path}/big") as output:
        for _ in range(140):
            output.write(bytes(1 << 20))
    assert fs.display(f"{path}/big") in raised.value.what
    assert not fs.exists(f"{path}/big")
