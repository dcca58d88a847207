"""Rows that the executors of a cluster write, whose tasks die and are run twice at the same time."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from support.paths import PYTHONPATH
from support.spark.cluster import standalone_cluster

pytest.importorskip("pyspark.sql.datasource", reason="PySpark older than 4.0")

CODE = "from support.spark import writing_scenarios; writing_scenarios.main()"


@pytest.mark.slow
@pytest.mark.spark
def test_retried_and_speculative_tasks_add_no_row_twice(tmp_path: Path) -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_", "PYTHON"))}
    for name in ("cluster", "tables"):
        (tmp_path / name).mkdir()
    target = tmp_path / "outcomes"
    with standalone_cluster(tmp_path / "cluster", environ=kept, apart=True) as cluster:
        line = [sys.executable, "-c", CODE, cluster.master, str(tmp_path / "tables"), str(target)]
        environ = kept | {"PYTHONPATH": PYTHONPATH}
        run = subprocess.run(line, check=False, env=environ, capture_output=True, text=True, timeout=500)
    assert run.returncode == 0, run.stderr[-4000:]
    for found in pickle.loads(target.read_bytes()).values():
        assert found["rows"] == sorted(((n, f"n{n}") for n in range(4000)), key=str)
        assert len(found["files"]) == 5
        assert found["attempts"][1] > 1
        assert found["attempts"][2] > 1
