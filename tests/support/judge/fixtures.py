"""The judges as fixtures; what they are made of is loaded when one is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from support.judge.hive import Hive
    from support.judge.java_writer import Java


@pytest.fixture(scope="session")
def hive(spark: Any) -> Hive:
    """Hive 2.3's own classes in the session's JVM."""
    from support.judge.hive import Hive

    return Hive(spark)


@pytest.fixture(scope="session")
def java(spark: Any) -> Java:
    """Java ORC in the session's JVM, as a reader and a writer."""
    from support.judge.java_writer import Java

    return Java(spark)
