"""`acidctl validate --engine spark`: the same findings in the same order as without Spark, here and on a cluster."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.spark.cluster import Cluster
from support.spark.validation_scenarios import plant

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def outcome(played: dict[str, Any]) -> dict[str, Any]:
    """What the scenarios gave."""
    found: dict[str, Any] = played["validated"]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("depth", ["footers", "deep"])
def test_the_same_findings_in_the_same_order(outcome: dict[str, Any], depth: str) -> None:
    here, there = outcome[depth]["here"], outcome[depth]["spark"]
    assert len(here) == outcome["locations"]
    assert there == here
    assert sum(len(report["findings"]) for report in here) > 30
    (whole,) = [report for report in there if report["location"].endswith("/whole")]
    assert {finding["rule"][0] for finding in whole["findings"]} == {"R"}
    assert not whole["unchecked"]


@pytest.mark.slow
def test_a_crash_is_a_finding(outcome: dict[str, Any]) -> None:
    (report,) = outcome["crash"]["spark"]
    assert [report] == outcome["crash"]["here"]
    told = [finding["message"] for finding in report["findings"] if finding["rule"] == "V24"]
    assert told == ["stripe 1: the reader's process was ended by SIGABRT"]
    assert report["summary"]["rows"] == 30_000 + 5 + 1


@pytest.mark.slow
def test_findings_on_a_cluster_are_those_of_this_machine(tmp_path: Path, cluster: Cluster) -> None:
    plant(tmp_path)

    def validate(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "acidctl", "validate", "--deep", "-o", "jsonl", *arguments, str(tmp_path)]
        environ = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, env=environ)

    settings = [part for pair in cluster.conf for part in ("--conf", "=".join(pair))]
    there = validate("--engine", "spark", "--master", cluster.master, *settings)
    here = validate("--jobs", "2")
    assert (there.returncode, there.stderr) == (14, "")
    assert here.returncode == 14
    assert there.stdout == here.stdout
    assert len(here.stdout.splitlines()) > 10
