"""Prune columns, and hand over batches of columns instead of rows: Spark's API for Python sources has neither.

An optimizer rule in Java, ``Pruning.java`` beside this file, is compiled in the driver by Janino, which is among
Spark's own jars, and put behind Spark's rules (``spark.experimental.extraOptimizations``).  It changes the scans of
this source and nothing else.  Where it cannot be compiled (Spark Connect, a Spark whose classes are others) or fails at
a plan, plans stay as they are: every column is read, and results are the same.

Spark hands over the rows of a Python source one by one, although Python sends columns.  ``ArrowColumns.java`` gives the
scans that the rule changes the columns that Python sent.  Executors must have its classes, so they are compiled in the
driver and added to the application as a jar.  If that fails, rows are handed over.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.resources
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RULE = "acidctl.Pruning"
"""The rule's name; where ``spark.sql.optimizer.excludedRules`` names it, nothing is pruned."""

KNOWN_SPARKS = ("4.0", "4.1", "4.2", "4.3")
"""The versions whose reader of Python sources has the parts that ``ArrowColumns.java`` looks for."""


def install_rule(spark: Any) -> str | None:
    """Put the rule into a session, once, and return None, or the reason why that failed."""
    try:
        experimental = spark._jsparkSession.experimental()
        rules = experimental.extraOptimizations()
        if _rule_in(rules) is None:
            rule = _compiled(spark, java_source("Pruning.java")).new(RULE)
            with contextlib.suppress(Exception):  # rows are handed over then; `why_rows` finds out why
                rule.handOver(ship_columns(spark))
            getattr(experimental, "extraOptimizations_$eq")(rules.appended(rule))
    except Exception as error:  # noqa: BLE001 - PySpark's private parts: whatever fails there, reading works without
        return _short(error)
    return None


def why_not_pruned(spark: Any) -> str | None:
    """Try the rule on a plan that reads nothing; return None if it prunes in this session, else the reason."""
    try:
        plan = spark.read.format("hive_acid").schema("a int, b int").load("/").select("b")._jdf.queryExecution()
        if plan.optimizedPlan().collectLeaves().head().output().size() == 1:
            return None
        rule = _rule_in(spark._jsparkSession.experimental().extraOptimizations())
        return (rule.problem() if rule is not None else install_rule(spark)) or "Spark does not apply the rule"
    except Exception as error:  # noqa: BLE001 - as above
        return _short(error)


def why_rows(spark: Any) -> str | None:
    """Try one executor; return None if scans that the rule prunes hand over columns, else the reason."""
    try:
        rule = _rule_in(spark._jsparkSession.experimental().extraOptimizations())
        if rule is None:
            return "Spark has no rule for it"
        if not rule.handsOver():
            rule.handOver(ship_columns(spark))
        # Send a class to an executor, without Python: it fails there if the executor does not have it.
        objects = spark.sparkContext._gateway.jvm.java.util.ArrayList()
        objects.add(rule.columns().sample())
        spark.sparkContext._jsc.parallelize(objects, 1).count()
    except Exception as error:  # noqa: BLE001 - as above
        return _short(error)
    return None


def ship_columns(spark: Any) -> Any:
    """Add the classes to the application, and return the Java function from a scan's plan to one with columns.

    Raises:
        ValueError: this version of Spark may have another reader.
        Exception: whatever Java says.
    """
    if ".".join(spark.version.split(".")[:2]) not in KNOWN_SPARKS:
        raise ValueError(f"Spark {spark.version} may read Python sources in another way")
    classes = _compiled(spark, java_source("ArrowColumns.java"))
    files = classes.files()
    digest = hashlib.sha256(repr(sorted(files.items())).encode()).hexdigest()[:16]
    name = f"acidctl-columns-{digest}.jar"
    context = spark.sparkContext
    jars = context._jsc.sc().listJars()
    if not any(jars.apply(i).endswith(name) for i in range(jars.size())):
        path = Path(tempfile.mkdtemp(dir=context._temp_dir)) / name  # Spark removes it at its end
        with zipfile.ZipFile(path, "w") as jar:
            for entry, data in files.items():
                jar.writestr(entry, data)
        context._jsc.addJar(str(path))
    return classes.new("acidctl.ArrowColumns$OfBatch")


def java_source(name: str) -> str:
    """Return the text of a file beside this one."""
    return (importlib.resources.files("acidctl.spark.datasource") / name).read_text("utf-8")


def _rule_in(rules: Any) -> Any | None:
    return next((rules.apply(i) for i in range(rules.size()) if rules.apply(i).getClass().getName() == RULE), None)


@dataclass(frozen=True, slots=True)
class _JavaClasses:
    """The classes of one file, compiled by Janino in the Java behind a gateway."""

    gateway: Any
    compiler: Any

    def new(self, name: str) -> Any:
        """Return an object of a class whose constructor takes nothing."""
        gateway = self.gateway
        made = self.compiler.getClassLoader().loadClass(name)
        none = gateway.new_array(gateway.jvm.Class, 0), gateway.new_array(gateway.jvm.Object, 0)
        return made.getDeclaredConstructor(none[0]).newInstance(none[1])

    def files(self) -> dict[str, bytes]:
        """Return the bytes of each class by its name in a jar."""
        codes = self.compiler.getBytecodes()
        return {f"{name.replace('.', '/')}.class": bytes(codes[name]) for name in codes}


_COMPILED: dict[tuple[int, str], _JavaClasses] = {}
"""By gateway and text. py4j keeps methods by the name of their class: a second class of a name cannot be called."""


def _compiled(spark: Any, source: str) -> _JavaClasses:
    gateway = spark.sparkContext._gateway
    key = id(gateway), source
    if key not in _COMPILED:
        compiler = gateway.jvm.org.codehaus.janino.SimpleCompiler()
        compiler.setParentClassLoader(spark._jsparkSession.getClass().getClassLoader())
        compiler.cook(source)
        _COMPILED[key] = _JavaClasses(gateway, compiler)
    return _COMPILED[key]


def _short(error: Exception) -> str:
    java = getattr(error, "java_exception", None)
    lines = str(java if java is not None else error).strip().splitlines()
    if lines and lines[0].endswith("Trace:"):  # py4j's own first line, without a reason
        lines = lines[1:]
    return f"{type(error).__name__}: {lines[0] if lines else ''}"
