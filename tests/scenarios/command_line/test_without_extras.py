"""What the package is installed with is enough for every command on paths: optional packages are not asked for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.paths import PYTHONPATH, REPO

OPTIONAL = ("thrift", "gssapi", "requests_gssapi", "s3fs", "gcsfs", "adlfs", "hdfs_native", "pandas", "polars")
WITHOUT = f"""
import sys

class Absent:
    def find_spec(self, name, *_):
        if name in {OPTIONAL!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent())
"""
CODE = f"{WITHOUT}from acidctl.cli.main import main\nmain(sys.argv[1:])"
OF_METASTORES = {"acidctl.cli.report.waits"}
"""Modules that only commands of the folder ``hive`` import, and others once a metastore is known."""


def run(*words: object, code: str = CODE) -> subprocess.CompletedProcess[str]:
    environ = os.environ | {"PYTHONPATH": PYTHONPATH}
    line = [sys.executable, "-c", code, *map(str, words)]
    return subprocess.run(line, env=environ, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    "line",
    [
        "status {}", "status -o json {}", "report -o md {}", "report -o json {}", "ls {}", "why {}",
        "ls {}", "history {}", "cat {}", "validate {}", "log {}", "doctor",
        "erasure --where id=9 {}", "compact -n --major --assume-committed=0s {}", "clean -n {}", "purge -n {}",
        "nightly -n --assume-committed=1h {}", "compact --major --engine local --assume-committed=0s {}",
    ],
)  # fmt: skip
def test_commands_on_paths_need_none(crud: Path, line: str, tmp_path: Path) -> None:
    done = run(*line.format(crud).split(), *(("--state", tmp_path / "state") if line.startswith("nightly") else ()))
    assert "is not installed" not in done.stderr
    assert (done.returncode in (0, 14), "Error" in done.stderr) == (True, False), done.stderr


@pytest.mark.parametrize(
    "line",
    [
        "insert hive:d.t x.csv", "update hive:d.t --set a=1 --where true", "delete hive:d.t --where true",
        "merge hive:d.t x.csv --key a", "truncate hive:d.t", "create hive:d.t --schema a:int",
        "erase hive:d.t --where a=1",
    ],
)  # fmt: skip
@pytest.mark.parametrize("address", [[], ["--metastore", "thrift://127.0.0.1:1"]])
def test_statements_say_that_thrift_is_missing(line: str, address: list[str]) -> None:
    done = run(*line.split(), *address)
    assert (done.returncode, "acidctl[metastore]" in done.stderr) == (8, True), done.stderr


def test_no_module_of_such_a_command_imports_any() -> None:
    folder = REPO / "acidctl/cli"
    parts = [path.relative_to(REPO).with_suffix("").parts for path in folder.rglob("*.py") if path.stem != "__init__"]
    names = {".".join(one) for one in parts if one[2] != "hive"} - OF_METASTORES
    code = (
        CODE.partition("from acidctl")[0] + "import importlib\nfor name in sys.argv[1:]: importlib.import_module(name)"
    )
    line = [sys.executable, "-c", code, *sorted(names)]
    environ = os.environ | {"PYTHONPATH": PYTHONPATH}
    done = subprocess.run(line, env=environ, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr[-1500:]
