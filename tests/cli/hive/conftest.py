"""A metastore for the commands that ask one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from support.metastore.fake_hive import FakeHive


@pytest.fixture(params=[3, 4], ids=["hive-3", "hive-4"])
def fake(request: pytest.FixtureRequest) -> Iterator[FakeHive]:
    """Of each version in turn."""
    with FakeHive(request.param) as one:
        yield one


@pytest.fixture
def fake4() -> Iterator[FakeHive]:
    """Of Hive 4."""
    with FakeHive(4) as one:
        yield one


@pytest.fixture
def fake3() -> Iterator[FakeHive]:
    """Of Hive 3."""
    with FakeHive(3) as one:
        yield one


@pytest.fixture
def ask(acidctl: Callable[..., Any]) -> Callable[..., Any]:
    """``ask(fake, "txns", "--open")`` for ``acidctl hive txns --open``."""
    return lambda fake, *line: acidctl("hive", *line, "--metastore", fake.address)
