"""What `acidctl doctor` does: gather what this machine has, and start Spark where that was asked for."""

from __future__ import annotations

from typing import Any

from acidctl.cli.output.console import put_json, put_line
from acidctl.cli.output.redact import hidden
from acidctl.spark.driver.session_plan import SparkOptions
from acidctl.spark.probe import Facts, gather, prepare, spark_check


def work(
    *,
    spark: bool,
    faster_start: bool,
    master: str | None,
    output: str,
) -> None:
    """Show what there is."""
    if faster_start:
        prepare()
    facts = gather()
    record = _record(facts)
    if output == "table":
        for label, lines in record.items():
            if isinstance(lines, list):
                for place, line in enumerate(lines):
                    put_line(f"{label if not place else '':10} {' '.join(str(v) for v in line.values())}")
            elif label != "schema_version":
                put_line(f"{label:10} {lines}")
    if spark or master:
        check = spark_check(SparkOptions(master=master, app_name="acidctl doctor"))
        record["spark"] = f"{check.spark} on {check.master}, Java {check.java}: first task after {check.seconds:.1f} s"
        if output == "table":
            put_line(f"{'spark':10} {record['spark']}")
    if output == "json":
        put_json(record, lines=False)


def _record(facts: Facts) -> dict[str, Any]:
    return {
        "schema_version": 1,
        "python": facts.python,
        "java": [{"candidate": candidate, "verdict": verdict} for candidate, verdict in facts.java],
        "packages": [{"name": name, "version": version or "not installed"} for name, version in facts.packages],
        "environment": [{"name": name, "value": hidden(value)} for name, value in facts.variables],
        "archive": facts.archive or "none: `acidctl doctor --faster-start` makes it",
    }
