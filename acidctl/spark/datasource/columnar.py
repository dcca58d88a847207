"""Batches of columns for Spark's plans: Spark hands over the rows of a source in Python one by one, although Python
sends columns.

``ArrowColumns.java`` beside this file gives a plan what Python sent.  Executors must know its classes, so they are
compiled in the driver and added to the application as a jar.  Where that cannot be done, or Spark is of a version whose
reader nobody has looked at, rows are handed over as ever, and results are the same.
"""

from __future__ import annotations

import hashlib
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from acidctl.spark.datasource.java_classes import compile_java, java_source

KNOWN_SPARKS = ("4.0", "4.1", "4.2", "4.3")
"""The versions whose reader of Python sources has the parts that ``ArrowColumns.java`` looks for."""

_NAME = "acidctl.ArrowColumns"


def ship_columns(spark: Any) -> Any:
    """Make the executors know the classes; the Java function from a scan's plan to one that hands over columns.

    Raises:
        ValueError: nothing is known of this version of Spark.
        Exception: whatever Java says.
    """
    if ".".join(spark.version.split(".")[:2]) not in KNOWN_SPARKS:
        raise ValueError(f"Spark {spark.version} may read Python sources in another way")
    classes = compile_java(spark, java_source("ArrowColumns.java"))
    _ship(spark.sparkContext, classes.files())
    return classes.new(f"{_NAME}$OfBatch")


def _ship(context: Any, files: dict[str, bytes]) -> None:
    """Add a jar to the application, once; it is gone with Spark's own temporary folder."""
    digest = hashlib.sha256(repr(sorted(files.items())).encode()).hexdigest()[:16]
    name = f"acidctl-columns-{digest}.jar"
    known = context._jsc.sc().listJars()
    if any(known.apply(place).endswith(name) for place in range(known.size())):
        return
    path = Path(tempfile.mkdtemp(dir=context._temp_dir)) / name
    with zipfile.ZipFile(path, "w") as jar:
        for entry, data in files.items():
            jar.writestr(entry, data)
    context._jsc.addJar(str(path))


def try_on_executor(spark: Any, function: Any) -> None:
    """Send a class to an executor, without Python.

    Raises:
        Exception: Java's, where the executor does not know it.
    """
    objects = spark.sparkContext._gateway.jvm.java.util.ArrayList()
    objects.add(function.sample())
    spark.sparkContext._jsc.parallelize(objects, 1).count()
