"""A standalone Spark cluster on loopback: one master and some workers, ended by their process ids."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from acidctl.spark.driver.session_plan import choose_java

START_SECONDS = 90


@dataclass(frozen=True, slots=True)
class Cluster:
    """A running cluster.

    Attributes:
        master: its URL, for --master.
        conf: the properties that let several executors with little memory start on this machine.
        master_pid: the process of the master.
        worker_pids: the processes of the workers; their executors are their children.
        folder: the logs (``master.log``, ``worker-0.log``, ...) and the workers' folders.
    """

    master: str
    conf: tuple[tuple[str, str], ...]
    master_pid: int
    worker_pids: tuple[int, ...]
    folder: Path


@contextlib.contextmanager
def standalone_cluster(
    folder: Path, workers: int = 2, environ: Mapping[str, str] | None = None, *, apart: bool = False
) -> Iterator[Cluster]:
    """Start a master and `workers` workers of one core each, wait until they know each other, and end them.

    Args:
        folder: an empty folder for logs and work.
        workers: how many.
        environ: the environment to start them in; their executors inherit it.
        apart: each worker has an address of its own: Spark runs a second attempt beside the first on other hosts only.

    Raises:
        TimeoutError: it did not come up; the message ends with the logs.
    """
    import pyspark

    environ = dict(os.environ if environ is None else environ)
    home = environ.get("SPARK_HOME") or str(Path(pyspark.__file__).parent)
    environ |= {
        "SPARK_HOME": home,
        "JAVA_HOME": choose_java(environ).home_for_spark(folder),
        "PYSPARK_PYTHON": environ.get("PYSPARK_PYTHON", sys.executable),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    }
    processes: list[subprocess.Popen[bytes]] = []

    def start(name: str, *arguments: str) -> Path:
        log = folder / f"{name}.log"
        with log.open("wb") as output:
            processes.append(
                subprocess.Popen(
                    [f"{home}/bin/spark-class", *arguments, "--webui-port", "0"],
                    env=environ,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            )
        return log

    deadline = time.monotonic() + START_SECONDS

    def wait_for(log: Path, pattern: str, count: int = 1) -> str:
        while time.monotonic() < deadline:
            found = re.findall(pattern, log.read_text(errors="replace"))
            if len(found) >= count:
                return str(found[0])
            if any(process.poll() is not None for process in processes):
                break
            time.sleep(0.1)
        logs = "\n".join(f"--- {p.name}\n{p.read_text(errors='replace')[-3000:]}" for p in folder.glob("*.log"))
        raise TimeoutError(f"the cluster did not come up: no {pattern!r} in {log.name}\n{logs}")

    try:
        master_log = start("master", "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", "0")
        url = wait_for(master_log, r"Starting Spark master at (spark://\S+)")
        for number in range(workers):
            work = folder / f"work-{number}"
            start(
                f"worker-{number}", "org.apache.spark.deploy.worker.Worker",
                "--host", f"127.0.0.{number + 1 if apart else 1}",
                "--cores", "1", "--memory", "1g", "--work-dir", str(work), url,
            )  # fmt: skip
        wait_for(master_log, r"Registering worker", workers)
        conf = (("spark.executor.memory", "512m"), ("spark.executor.cores", "1"))
        yield Cluster(url, conf, processes[0].pid, tuple(p.pid for p in processes[1:]), folder)
    finally:
        # Executors end with their workers.
        for process in reversed(processes):
            process.terminate()
        for process in reversed(processes):
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=15)
            if process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def children(pid: int) -> list[int]:
    """The child processes of a process."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                # The name in parentheses may hold spaces.
                if int((entry / "stat").read_text().rpartition(")")[2].split()[1]) == pid:
                    found.append(int(entry.name))
    return found
