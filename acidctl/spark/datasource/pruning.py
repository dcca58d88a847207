"""Column pruning for the data source ``hive_acid``: Spark's API for Python sources has none.

An optimizer rule in Java, ``Pruning.java`` beside this file, is compiled in the driver by Janino, which is among
Spark's own jars, and put behind Spark's rules (``spark.experimental.extraOptimizations``).  It changes the scans of
this source and nothing else.  Where it cannot be compiled (Spark Connect, a Spark whose classes are others) or fails at
a plan, plans stay as they are: every column is read, and results are the same.
"""

from __future__ import annotations

import importlib.resources
from typing import Any

RULE = "acidctl.Pruning"
"""The rule's name; where ``spark.sql.optimizer.excludedRules`` names it, nothing is pruned."""


def install_rule(spark: Any) -> str | None:
    """Put the rule into a session, once; None when it is there, or why it cannot be."""
    try:
        experimental = spark._jsparkSession.experimental()
        rules = experimental.extraOptimizations()
        if _found(rules) is None:
            getattr(experimental, "extraOptimizations_$eq")(rules.appended(_compiled(spark)))
    except Exception as error:  # noqa: BLE001 - a private door of PySpark's: whatever is behind it, reading works without
        return _short(error)
    return None


def why_not_pruned(spark: Any) -> str | None:
    """None when the rule prunes in this session, tried on a plan that reads nothing; else why it does not."""
    try:
        plan = spark.read.format("hive_acid").schema("a int, b int").load("/").select("b")._jdf.queryExecution()
        if plan.optimizedPlan().collectLeaves().head().output().size() == 1:
            return None
        rule = _found(spark._jsparkSession.experimental().extraOptimizations())
        return (rule.problem() if rule is not None else install_rule(spark)) or "Spark does not apply the rule"
    except Exception as error:  # noqa: BLE001 - as above
        return _short(error)


def _found(rules: Any) -> Any | None:
    return next((rules.apply(i) for i in range(rules.size()) if rules.apply(i).getClass().getName() == RULE), None)


def _compiled(spark: Any) -> Any:
    gateway = spark.sparkContext._gateway
    compiler = gateway.jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(spark._jsparkSession.getClass().getClassLoader())
    compiler.cook(_source())
    made = compiler.getClassLoader().loadClass(RULE)
    none = gateway.new_array(gateway.jvm.Class, 0), gateway.new_array(gateway.jvm.Object, 0)
    return made.getDeclaredConstructor(none[0]).newInstance(none[1])


def _source() -> str:
    return (importlib.resources.files("acidctl.spark.datasource") / "Pruning.java").read_text("utf-8")


def _short(error: Exception) -> str:
    java = getattr(error, "java_exception", None)
    lines = str(java if java is not None else error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else ''}"
