"""Fixtures of the tests that Hive judges."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from support.servers.hdfs_server import ServerUnavailable
from support.servers.hive_server import HiveServer


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--histories",
        type=int,
        default=None,
        help="random table histories to compare with Hive (default 15, or ACIDCTL_HISTORIES)",
    )
    parser.addoption(
        "--first-history", type=int, default=0, help="seed of the first one, so that several runs share a large number"
    )


@pytest.fixture(scope="session")
def history_seeds(pytestconfig: pytest.Config) -> range:
    """The random histories to play."""
    chosen = pytestconfig.getoption("--histories", default=None)
    count = int(os.environ.get("ACIDCTL_HISTORIES", "15")) if chosen is None else int(chosen)
    first = pytestconfig.getoption("--first-history", default=0)
    return range(first, first + count)


@pytest.fixture(scope="session", params=[3, 4], ids=["hive-3.1", "hive-4.0"])
def real_hive(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HiveServer]:
    try:
        server = HiveServer(request.param, tmp_path_factory.mktemp(f"hive{request.param}"))
    except ServerUnavailable as error:
        pytest.skip(f"no Hive {request.param} to judge: {error}")
    try:
        yield server
    finally:
        server.stop()
