"""`acidctl compact` on Spark, as a user runs it: here, and on a cluster of two workers that share one big bucket."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.compacting import run_compaction
from support.made.big_tables import big_table
from support.spark.cluster import Cluster
from support.tables import read_rows

from acidctl.acid.compaction_kind import CompactionKind

pytestmark = pytest.mark.spark

ENVIRON = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}


FINE = (
    "import acidctl.compaction.plan_tasks as plan, acidctl.compaction.split as split; plan.FINEST = split.FINEST = 1; "
    "from acidctl.cli.main import main; main()"
)
"""The command line, with segments as small as there can be."""


def acidctl(*arguments: str, program: tuple[str, ...] = ("-m", "acidctl")) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=400, env=ENVIRON)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse: two tables of two buckets, ten deltas with deletes."""
    folder = tmp_path_factory.mktemp("warehouse")
    for name in ("one", "two"):
        big_table(folder / name, rows=20_000, write_ids=4, deletes=50, buckets=2)
    return folder


@pytest.fixture(scope="module", params=["here", pytest.param("cluster", marks=pytest.mark.slow)])
def outcome(
    request: pytest.FixtureRequest, tables: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """A copy of the warehouse after one command over both tables, every bucket in as many segments as there can be."""
    folder = tmp_path_factory.mktemp("spark")
    copy = shutil.copytree(tables, folder / "warehouse")
    arguments = [
        "compact",
        "--assume-committed=0s",
        "--major",
        "--verify",
        "full",
        "-o",
        "jsonl",
        str(copy),
    ]
    if request.param == "here":
        return copy, acidctl(
            *arguments, "--master", "local[2]", "--conf", "spark.speculation=true", program=("-c", FINE)
        )
    cluster: Cluster = request.getfixturevalue("cluster")
    conf = [*("=".join(pair) for pair in cluster.conf), "spark.speculation=true"]
    settings = [part for item in conf for part in ("--conf", item)]
    return copy, acidctl(*arguments, "--master", cluster.master, *settings, program=("-c", FINE))


def test_every_location_is_compacted(outcome: tuple[Path, subprocess.CompletedProcess[str]], tables: Path) -> None:
    warehouse, run = outcome
    assert run.returncode == 0, run.stderr
    results = [json.loads(line) for line in run.stdout.splitlines()]
    assert sorted(Path(result["location"]).name for result in results) == ["one", "two"]
    for result in results:
        assert result["result"] == "compacted"
        assert_like_one_task(warehouse, tables, Path(result["location"]).name, result)


def assert_like_one_task(warehouse: Path, tables: Path, name: str, result: dict[str, Any]) -> None:
    """The rows of before, and files like those of a compaction in this process."""
    rows = read_rows(tables / name)
    assert read_rows(warehouse / name) == rows
    alone = shutil.copytree(tables / name, warehouse.parent / "alone" / name)
    expected = run_compaction(alone, CompactionKind.MAJOR)
    assert expected
    assert (result["rows"], result["rowsDropped"]) == (expected.rows, expected.rows_dropped)
    (published,) = result["outputs"]
    kinds = {path.name for path in (warehouse / name / published).iterdir()}
    assert kinds == {"_metadata_acid", "_orc_acid_version", "bucket_00000", "bucket_00001"}
    shutil.rmtree(warehouse.parent / "alone")
    assert not list((warehouse / name).glob("_tmp*"))


@pytest.mark.slow
def test_a_deadline_cancels_the_job(tables: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(tables, tmp_path / "warehouse")
    before = sorted(copy.rglob("*"))
    run = acidctl(
        "compact", "--assume-committed=0s", "--major", "--deadline", "0.01s", "--exit-code", "-o", "jsonl", str(copy)
    )
    assert run.returncode == 13, run.stderr
    assert {json.loads(line)["result"] for line in run.stdout.splitlines()} == {"postponed"}
    assert sorted(copy.rglob("*")) == before
