"""Fixtures of the tests that Hive judges."""

from __future__ import annotations

import os

import pytest


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
