"""Fixtures of the tests that Hive judges."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache

import pytest
from support.engines.real_hive import started
from support.engines.time_zones import java_zone
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


@pytest.fixture(scope="session", params=["a few", pytest.param("the rest", marks=pytest.mark.slow)])
def history_seeds(pytestconfig: pytest.Config, request: pytest.FixtureRequest) -> range:
    """The random histories to play: the first three in quick tests, the others in slow ones."""
    chosen = pytestconfig.getoption("--histories", default=None)
    count = int(os.environ.get("ACIDCTL_HISTORIES", "15")) if chosen is None else int(chosen)
    first = pytestconfig.getoption("--first-history", default=0)
    few = min(count, 3)
    if request.param == "a few":
        return range(first, first + few)
    if count == few:
        pytest.skip(f"the quick tests play all {count} histories")
    return range(first + few, first + count)


SEEDS = ("ACIDCTL_HIVE_SEED", "ACIDCTL_STORY_SEED")
"""Variables with the first seed of random histories, which chooses the time zones of their Javas, too."""


@pytest.fixture(scope="session")
def real_hives(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[int], HiveServer]]:
    """``real_hives(3)``: Hive 3.1.3, ``(4)``: 4.0.1, ``(42)``: 4.2.1, each started once, when it is needed."""
    with ExitStack() as running:

        @cache
        def one(version: int) -> HiveServer | str:
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("TZ", java_zone(version, next(filter(None, map(os.environ.get, SEEDS)), None)))
                try:
                    server = started(version, tmp_path_factory.mktemp(f"hive{version}"))
                except pytest.skip.Exception as reason:
                    return str(reason)
            running.callback(server.stop)
            return server

        def asked(version: int) -> HiveServer:
            server = one(version)
            return pytest.skip(server) if isinstance(server, str) else server

        yield asked


@pytest.fixture(params=[3, 4], ids=["hive-3.1", "hive-4.0"])
def real_hive(request: pytest.FixtureRequest, real_hives: Callable[[int], HiveServer]) -> Iterator[HiveServer]:
    """Each of the two in turn, with the settings that it has at first."""
    server = real_hives(request.param)
    yield server
    server.reset()
