"""A real cluster: two workers, the package shipped to executors, one of them lost."""

from __future__ import annotations

import os
import pickle
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.paths import PYTHONPATH
from support.spark.cluster import standalone_cluster
from support.spark.processes import marked, wait_until

CODE = "from support.spark import cluster_scenarios; cluster_scenarios.main()"
GONE = "from support.spark import cluster_scenarios; cluster_scenarios.gone()"

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """What the driver found, and the cluster's master after its end."""
    folder = tmp_path_factory.mktemp("cluster")
    bare = folder / "bare-python"
    # Without its site-packages this Python has nothing but what Spark itself puts on the path.
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    bare.chmod(0o755)
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_", "PYTHON"))}
    clean["ACIDCTL_TEST_MARK"] = str(folder)
    with standalone_cluster(folder, environ=clean) as cluster:
        target = folder / "outcomes"
        run = subprocess.run(
            [sys.executable, "-c", CODE, cluster.master, str(target), str(bare), *map(str, cluster.worker_pids)],
            check=False,
            env=clean | {"PYTHONPATH": PYTHONPATH},
            capture_output=True,
            text=True,
            timeout=400,
        )
        master = cluster.master
    outcomes = pickle.loads(target.read_bytes()) if target.exists() else {}
    yield outcomes | {"run": run, "master": master, "folder": folder}


def test_runs_on_a_cluster_print_nothing(outcome: dict[str, Any]) -> None:
    run = outcome["run"]
    assert run.stderr == ""
    assert (run.returncode, run.stdout) == (0, "")


def test_both_executors_take_part(outcome: dict[str, Any]) -> None:
    facts = outcome["plain"]["facts"]
    assert sorted(facts) == list(range(8))
    assert len({folder for folder, _ in facts.values()}) == 2


def test_the_package_comes_with_the_job(outcome: dict[str, Any]) -> None:
    codes = {Path(file).parents[1].name for _, file in outcome["plain"]["facts"].values()}
    assert len(codes) == 1
    assert re.fullmatch(r"acidctl-[0-9a-f]{12}\.zip", codes.pop())
    assert not [entry for entry in outcome["plain"]["path"] if entry.endswith(".zip") and "acidctl" in entry]


def test_a_lost_executor_loses_no_task(outcome: dict[str, Any]) -> None:
    after = outcome["plain"]["after"]
    assert sorted(after) == list(range(6))
    assert all(len(result) == 2 for result in after.values())
    assert [notice for notice in outcome["plain"]["notices"] if notice.startswith("Lost executor")]


def test_a_package_that_executors_miss_is_named(outcome: dict[str, Any]) -> None:
    kind, what, why, hint, _ = outcome["bare python"]
    assert kind == "EnvironmentProblem"
    assert what.startswith("The Python of the executor on ")
    assert what.endswith("cannot import pyarrow")
    assert "No module named 'pyarrow'" in why
    assert "-m pip install pyarrow" in hint


def test_a_cluster_without_room_is_told(outcome: dict[str, Any]) -> None:
    kind, what, why, hint, seconds = outcome["no room"]
    assert kind == "EnvironmentProblem"
    assert what == f"The cluster {outcome['master']} gave no executor within 20 seconds"
    assert why == "it has no free resources, or fewer than were asked for"
    assert "spark.executor.memory" in hint
    assert seconds < 60


def test_a_cluster_that_loses_every_executor_is_told(outcome: dict[str, Any]) -> None:
    kind, what, _, hint, seconds = outcome["plain"]["deserted"]
    assert kind == "EnvironmentProblem"
    assert what == f"The cluster {outcome['master']} gave no executor within 6 seconds"
    assert hint
    assert seconds < 60


def test_a_master_that_is_gone(child_environ: dict[str, str], tmp_path: Path) -> None:
    """In a process of its own: where another test left a session open, that one would be used or in the way."""
    target = tmp_path / "outcome"
    with socket.socket() as kept:
        # Nobody listens here, and nobody else can for as long as the port is taken.
        kept.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{kept.getsockname()[1]}"
        run = subprocess.run(
            [sys.executable, "-c", GONE, f"spark://{address}", str(target)],
            check=False,
            env=child_environ,
            capture_output=True,
            text=True,
            timeout=120,
        )
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")
    kind, what, why, hint, _ = pickle.loads(target.read_bytes())
    assert kind == "EnvironmentProblem"
    assert what == f"Spark's master spark://{address} cannot be reached"
    assert why == f"{address}: Connection refused"
    assert hint


def test_no_process_of_a_run_is_left(outcome: dict[str, Any]) -> None:
    assert wait_until(lambda: not marked(f"ACIDCTL_TEST_MARK={outcome['folder']}"), 15)
