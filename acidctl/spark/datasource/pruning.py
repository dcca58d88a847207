"""Column pruning for the data source ``hive_acid``: Spark's API for Python sources has none.

An optimizer rule in Java, ``Pruning.java`` beside this file, is compiled in the driver by Janino, which is among
Spark's own jars, and put behind Spark's rules (``spark.experimental.extraOptimizations``).  It changes the scans of
this source and nothing else.  Where it cannot be compiled (Spark Connect, a Spark whose classes are others) or fails at
a plan, plans stay as they are: every column is read, and results are the same.

The scans that it changes hand over batches of columns, where :mod:`acidctl.spark.datasource.columnar` can have it so.
"""

from __future__ import annotations

import contextlib
from typing import Any

from acidctl.spark.datasource.columnar import ship_columns, try_on_executor
from acidctl.spark.datasource.java_classes import compile_java, java_source, short_error

RULE = "acidctl.Pruning"
"""The rule's name; where ``spark.sql.optimizer.excludedRules`` names it, nothing is pruned."""


def install_rule(spark: Any) -> str | None:
    """Put the rule into a session, once; None when it is there, or why it cannot be."""
    try:
        experimental = spark._jsparkSession.experimental()
        rules = experimental.extraOptimizations()
        if _found(rules) is None:
            rule = compile_java(spark, _source()).new(RULE)
            _hand_over_columns(spark, rule)
            getattr(experimental, "extraOptimizations_$eq")(rules.appended(rule))
    except Exception as error:  # noqa: BLE001 - a private door of PySpark's: whatever is behind it, reading works without
        return short_error(error)
    return None


def why_not_pruned(spark: Any) -> str | None:
    """Return None when the rule prunes in this session, tried on a plan that reads nothing; else why it does not."""
    try:
        plan = spark.read.format("hive_acid").schema("a int, b int").load("/").select("b")._jdf.queryExecution()
        if plan.optimizedPlan().collectLeaves().head().output().size() == 1:
            return None
        rule = _found(spark._jsparkSession.experimental().extraOptimizations())
        return (rule.problem() if rule is not None else install_rule(spark)) or "Spark does not apply the rule"
    except Exception as error:  # noqa: BLE001 - as above
        return short_error(error)


def why_rows(spark: Any) -> str | None:
    """None when scans that the rule prunes hand over columns, tried on one executor; else why they hand over rows."""
    try:
        rule = _found(spark._jsparkSession.experimental().extraOptimizations())
        if rule is None:
            return "Spark has no rule for it"
        if not rule.handsOver():
            rule.handOver(ship_columns(spark))
        try_on_executor(spark, rule.columns())
    except Exception as error:  # noqa: BLE001 - as above
        return short_error(error)
    return None


def _hand_over_columns(spark: Any, rule: Any) -> None:
    with contextlib.suppress(Exception):  # then rows; why, `why_rows` finds out where somebody asks
        rule.handOver(ship_columns(spark))


def _found(rules: Any) -> Any | None:
    return next((rules.apply(i) for i in range(rules.size()) if rules.apply(i).getClass().getName() == RULE), None)


def _source() -> str:
    return java_source("Pruning.java")
