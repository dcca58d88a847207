"""Tables as DataFrames in one call, as a script has them that starts Spark itself."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyspark
import pytest
from support.files.acid_files import write_deletes, write_delta
from support.paths import PYTHONPATH

from acidctl.base.errors import EnvironmentProblem
from acidctl.spark.driver.session_plan import choose_java

CODE = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
from acidctl.spark import read, read_changes
usual = spark.sparkContext.pythonExec
print([row.id for row in read(spark, sys.argv[1]).orderBy("id").collect()])
print([tuple(row) for row in read_changes(spark, sys.argv[1], 0).orderBy("_write_id", "id").collect()])
assert spark.sparkContext.pythonExec == usual
"""


@pytest.mark.slow
@pytest.mark.spark
def test_the_python_of_a_script_reads_whatever_python3_is_called_on_the_path(tmp_path: Path) -> None:
    write_delta(tmp_path / "t", 1, pa.RecordBatch.from_pydict({"id": pa.array([1, 2], pa.int32())}))
    write_deletes(tmp_path / "t", 2, 1, [0])
    try:
        java = choose_java(os.environ)
    except EnvironmentProblem as problem:
        pytest.skip(f"no Java: {problem}")
    other = tmp_path / "bin"
    other.mkdir()
    (other / "python3").write_text("#!/bin/sh\nexit 9\n")
    (other / "python3").chmod(0o755)
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    environ |= {
        "PATH": f"{other}:{environ['PATH']}",
        "JAVA_HOME": java.home_for_spark(tmp_path),
        "PYTHONPATH": PYTHONPATH,
    }
    line = [sys.executable, "-c", CODE, str(tmp_path / "t")]
    done = subprocess.run(line, env=environ, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines()[-2:] == ["[2]", "[('insert', 1, 1), ('insert', 1, 2), ('delete', 2, 1)]"]


def test_a_spark_without_sources_in_python_is_told_what_runs_there(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("acidctl.spark.datasource")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(pyspark, "__version__", "3.5.9")
    monkeypatch.setitem(sys.modules, "pyspark.sql.datasource", None)
    with pytest.raises(EnvironmentProblem) as refused:
        importlib.import_module("acidctl.spark.datasource")
    assert "this is PySpark 3.5.9" in refused.value.why
    assert "'pyspark>=4'" in refused.value.hint
