"""`acidctl doctor`: which Java, Spark and packages are used, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from acidctl.cli.options.shared import examples, output_option

if TYPE_CHECKING:
    from acidctl.spark.probe import Facts


@click.command(
    "doctor",
    epilog=examples("acidctl doctor", "acidctl doctor --spark --master yarn", "acidctl doctor --faster-start"),
)
@click.option("--spark", is_flag=True, help="Start Spark too and run one task.")
@click.option(
    "--faster-start", is_flag=True, help="Make Java's class archive: later starts of Spark take half the time."
)
@click.option("--master", metavar="URL", help="Spark master; starts Spark as --spark does.")
@output_option("table", "json", default="table")
def command(spark: bool, faster_start: bool, master: str | None, output: str) -> None:
    """Show what acidctl runs on: Python, packages, every Java that was found and which one is used."""
    from acidctl.cli.output.console import put_json, put_line
    from acidctl.spark.driver.session import SparkOptions
    from acidctl.spark.probe import gather, prepare, spark_check

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
    from acidctl.cli.output.redact import hidden

    return {
        "schema_version": 1,
        "python": facts.python,
        "java": [{"candidate": candidate, "verdict": verdict} for candidate, verdict in facts.java],
        "packages": [{"name": name, "version": version or "not installed"} for name, version in facts.packages],
        "environment": [{"name": name, "value": hidden(value)} for name, value in facts.variables],
        "archive": facts.archive or "none: `acidctl doctor --faster-start` makes it",
    }
