"""What the Spark tests share: how to run Python in a process of its own."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]


@pytest.fixture
def child_environ(tmp_path: Path) -> dict[str, str]:
    """The environment for a process that imports this repository, with a cache of its own and a mark to find it by."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    return environ | {
        "PYTHONPATH": os.pathsep.join([str(REPO), str(REPO / "tests")]),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "ACIDCTL_TEST_MARK": f"{os.getpid()}-{tmp_path.name}-{id(tmp_path)}",
    }


@pytest.fixture
def python() -> str:
    """This Python."""
    return sys.executable
