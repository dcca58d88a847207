"""What `acidctl doctor` does: gather what this machine has, and start Spark where that was asked for."""

from __future__ import annotations

from typing import Any

from acidctl.cli.options.engine_choice import EngineChoice
from acidctl.cli.output.console import put_json, put_line
from acidctl.cli.output.redact import hidden
from acidctl.errors import EnvironmentProblem
from acidctl.spark.probe import Facts, gather, prepare, spark_check
from acidctl.spark.shipping import problems_of
from acidctl.spark.worker import FOR_SOME, PACKAGES, ExecutorFacts


def work(
    *,
    spark: bool,
    faster_start: bool,
    engine: EngineChoice,
    output: str,
) -> None:
    """Show what there is.

    Raises:
        EnvironmentProblem: Spark does not work, or an executor lacks something, once all of it is shown.
    """
    engine.check()
    if faster_start:
        prepare()
    facts = gather()
    record = _record(facts)
    if output == "table":
        for label, lines in record.items():
            if isinstance(lines, list):
                for place, line in enumerate(lines):
                    put_line(f"{label if not place else '':10} {' '.join(str(v) for v in line.values())}")
            else:
                put_line(f"{label:10} {lines}")
    problems: tuple[EnvironmentProblem, ...] = ()
    if spark or engine.master or engine.conf or engine.queue or engine.name:
        check = spark_check(engine.spark("acidctl doctor"))
        problems = check.problems
        first = "looked around in" if problems else "first task after"
        record["spark"] = f"{check.spark} on {check.master}, Java {check.java}: {first} {check.seconds:.1f} s"
        record["nodes"] = [_node(node) for node in check.nodes]
        if output == "table":
            put_line(f"{'spark':10} {record['spark']}")
            for node in check.nodes:
                _show_node(node)
    if output == "json":
        put_json(record, lines=False)
    if problems:
        raise problems[0]


def _node(node: ExecutorFacts) -> dict[str, Any]:
    return {
        "host": node.host,
        "python": f"{node.python} ({node.executable})",
        "packages": [{"name": name, "version": version} for name, version in node.versions],
        "problems": _problems(node),
    }


def _problems(node: ExecutorFacts) -> list[str]:
    return [": ".join(filter(None, (problem.what, problem.why))) for problem in problems_of(node)]


def _show_node(node: ExecutorFacts) -> None:
    put_line(f"{'node':10} {node.host}: Python {node.python} ({node.executable})")
    installed = dict(node.versions)
    for name in (*(distribution for _, distribution in PACKAGES), *FOR_SOME):
        use = "" if name in installed or name not in FOR_SOME else ", which only some stores and checks need"
        put_line(f"{'':10} {name} {installed.get(name, f'not installed{use}')}")
    for problem in _problems(node):
        put_line(f"{'':10} {problem}")


def _record(facts: Facts) -> dict[str, Any]:
    return {
        "python": facts.python,
        "java": [{"candidate": candidate, "verdict": verdict} for candidate, verdict in facts.java],
        "packages": [{"name": name, "version": version or "not installed"} for name, version in facts.packages],
        "environment": [{"name": name, "value": hidden(value)} for name, value in facts.variables],
        "archive": facts.archive or "none: `acidctl doctor --faster-start` makes it",
    }
