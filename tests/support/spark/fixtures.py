"""What the Spark tests share: how to run Python in a process of its own."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.paths import PYTHONPATH
from support.spark.cluster import Cluster, standalone_cluster


@pytest.fixture
def child_environ(tmp_path: Path) -> dict[str, str]:
    """The environment for a process that imports this repository, with a mark to find it by."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    return environ | {
        "PYTHONPATH": PYTHONPATH,
        "ACIDCTL_TEST_MARK": f"{os.getpid()}-{tmp_path.name}-{id(tmp_path)}",
    }


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two workers, for tests that leave them alive."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    with standalone_cluster(tmp_path_factory.mktemp("cluster"), environ=environ) as running:
        yield running


@pytest.fixture
def python() -> str:
    """This Python."""
    return sys.executable


@pytest.fixture(scope="session")
def played(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the scenarios gave, with what the process printed and left behind."""
    folder = tmp_path_factory.mktemp("scenarios")
    # A module of the current folder must not be picked up by the workers.
    (folder / "random.py").write_text("raise RuntimeError('the wrong random')\n")
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    environ |= {
        "PYTHONPATH": PYTHONPATH,
        "PYTHONSAFEPATH": "1",
        "SCENARIO_FOLDER": str(folder),
        "TMPDIR": str(folder),
        "ACIDCTL_TEST_MARK": str(folder),
    }
    target = folder / "outcomes"
    run = subprocess.run(
        [sys.executable, "-c", "from support.spark import scenarios; scenarios.main()", str(target)],
        check=False,
        env=environ,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
    )
    outcomes: dict[str, Any] = pickle.loads(target.read_bytes()) if target.exists() else {}
    return outcomes | {"run": run, "folder": folder}
