"""What ZooKeeper knows of metastores: whatever stands in its nodes."""

from __future__ import annotations

from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

kazoo = pytest.importorskip("kazoo.client")
from kazoo.exceptions import ConnectionLoss, NoAuthError, NoNodeError  # noqa: E402
from kazoo.handlers.threading import KazooTimeoutError  # noqa: E402

from acidctl.base.errors import UsageProblem  # noqa: E402
from acidctl.metastore.client import server_addresses  # noqa: E402
from acidctl.metastore.errors import MetastoreError, Unreachable  # noqa: E402
from acidctl.metastore.settings import MetastoreSettings, find_settings  # noqa: E402


class Zoo:
    """In place of kazoo's client."""

    nodes: ClassVar[dict[str, bytes | Exception]] = {}
    fails: ClassVar[dict[str, Exception]] = {}
    closed = 0

    def __init__(self, quorum: str, timeout: float, read_only: bool) -> None:
        assert quorum == "zoo:2181"
        assert read_only

    def start(self, seconds: float) -> None:
        self._fail("start")

    def get_children(self, folder: str) -> list[str]:
        assert folder == "/hive_metastore"
        self._fail("get_children")
        return list(self.nodes)

    def get(self, path: str) -> tuple[bytes, None]:
        found = self.nodes[path.removeprefix("/hive_metastore/")]
        if isinstance(found, Exception):
            raise found
        return found, None

    def stop(self) -> None:
        type(self).closed += 1

    def close(self) -> None:
        pass

    def _fail(self, name: str) -> None:
        if name in self.fails:
            raise self.fails[name]


@pytest.fixture(autouse=True)
def _zoo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kazoo, "KazooClient", Zoo)
    Zoo.nodes, Zoo.fails, Zoo.closed = {}, {}, 0


def settings() -> MetastoreSettings:
    found = find_settings({"uris": "zoo", "discovery": "zookeeper"}, {})
    assert found
    return found


def test_servers_are_those_that_wrote_their_address_and_are_still_there() -> None:
    Zoo.nodes = {"b-1": b"two:9084", "a-1": b"one:9083\n", "gone": NoNodeError()}
    assert [one.url for one in server_addresses(settings())] == ["thrift://one:9083", "thrift://two:9084"]
    assert Zoo.closed == 1


def test_strange_nodes_are_left_out() -> None:
    Zoo.nodes = {
        "empty": b"", "binary": b"\xff\xfe\0", "user": b"u:p@h:1", "file": b"file:///etc/passwd", "long": b"x" * 10**6,
        "port": b"h:99999", "json": b'{"host": "h"}', "good": b"one:9083",
    }  # fmt: skip
    assert "thrift://one:9083" in [one.url for one in server_addresses(settings())]
    assert all(len(one.host) < 5000 and one.host != "" for one in server_addresses(settings()))


@given(st.lists(st.binary(max_size=30), max_size=4))
def test_whatever_stands_in_the_nodes_the_error_is_ours(data: list[bytes]) -> None:
    Zoo.nodes = {str(at): one for at, one in enumerate(data)}
    try:
        assert server_addresses(settings())
    except MetastoreError as error:
        assert "knows no metastore" in str(error)


def test_a_million_nodes_are_not_all_asked_for() -> None:
    Zoo.nodes = {f"{at:07}": b"one:9083" for at in range(5000)}
    assert len(server_addresses(settings())) == 1000


@pytest.mark.parametrize(
    ("name", "error", "kind", "said"),
    [
        ("start", KazooTimeoutError("late"), Unreachable, "does not answer"),
        ("start", OSError("refused \x1b[2J"), Unreachable, "does not answer"),
        ("get_children", ConnectionLoss(), Unreachable, "does not answer"),
        ("get_children", NoAuthError(), Unreachable, "does not answer"),
        ("get_children", NoNodeError(), MetastoreError, "knows no metastore"),
    ],
)
def test_a_zookeeper_that_fails_is_told_and_closed(
    name: str, error: Exception, kind: type[Exception], said: str
) -> None:
    Zoo.fails = {name: error}
    with pytest.raises(kind, match=said) as failed:
        server_addresses(settings())
    assert "\x1b" not in str(failed.value)
    assert Zoo.closed == 1


@pytest.mark.parametrize("quorum", ["zoo/path", "u:p@zoo", "zoo\x1b"])
def test_a_quorum_is_hosts(quorum: str) -> None:
    try:
        found = find_settings({"uris": quorum, "discovery": "zookeeper"}, {})
    except UsageProblem as error:
        assert "\x1b" not in str(error)
        return
    assert found
    assert "\x1b" in found.quorum
