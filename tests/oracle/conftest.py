"""Fixtures of the tests that Hive judges."""

from __future__ import annotations

import os
from typing import Any

import pytest
from spark_session import spark  # noqa: F401  (the fixture)

from oracle.hive import Hive


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--histories",
        type=int,
        default=None,
        help="random table histories to compare with Hive (default 15, or ACIDCTL_HISTORIES)",
    )


@pytest.fixture(scope="session")
def history_count(pytestconfig: pytest.Config) -> int:
    """How many random histories to play."""
    chosen = pytestconfig.getoption("--histories", default=None)
    return int(os.environ.get("ACIDCTL_HISTORIES", "15")) if chosen is None else int(chosen)


@pytest.fixture(scope="session")
def hive(spark: Any) -> Hive:  # noqa: F811
    """Hive 2.3's own classes in the session's JVM."""
    return Hive(spark)
