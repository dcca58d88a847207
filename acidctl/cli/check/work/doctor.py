"""What `acidctl doctor` does: gather what this machine has, and try Spark and a metastore where that was asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from acidctl.cli.options.engine_choice import check_engine
from acidctl.cli.options.shared import refuse_unused
from acidctl.cli.output.console import put_json, put_text
from acidctl.cli.output.redact import hidden
from acidctl.errors import AcidctlError, EnvironmentProblem
from acidctl.orc.read.zones import native_problem
from acidctl.spark.probe import Facts, gather, spark_check
from acidctl.spark.shipping import problems_of
from acidctl.spark.worker import FOR_SOME, PACKAGES, ExecutorFacts
from acidctl.verbs.engine import EngineOptions

_MARGIN = 11


def work(
    *,
    spark: bool,
    engine: EngineOptions,
    metastore: str | None,
    metastore_option: tuple[str, ...],
    output: str,
) -> None:
    """Show what there is.

    Raises:
        AcidctlError: the time zone database is missing, Spark fails, an executor lacks something, or a metastore server
            cannot be used. It is raised after everything was shown.
    """
    check_engine(engine)
    if metastore is None and metastore_option:
        refuse_unused("doctor without --metastore", "metastore_option")
    is_table = output == "table"
    zones = native_problem()
    record = _record(gather()) | {"timezones": zones.why if zones else "found"}
    for line in _lines(record) if is_table else ():
        put_text(line, _MARGIN)
    problems: list[AcidctlError] = [zones] if zones else []
    if spark or engine.master or engine.conf or engine.queue or engine.name:
        problems += _spark(engine, record, is_table=is_table)
    if metastore is not None:
        problems += _metastore(metastore, metastore_option, record, is_table=is_table)
    if not is_table:
        put_json(record, lines=False)
    if problems:
        raise problems[0]


def _lines(record: dict[str, Any]) -> Iterator[str]:
    for label, lines in record.items():
        if isinstance(lines, list):
            for place, line in enumerate(lines):
                yield f"{label if not place else '':10} {' '.join(str(v) for v in line.values())}"
        else:
            yield f"{label:10} {lines}"


def _spark(engine: EngineOptions, record: dict[str, Any], *, is_table: bool) -> tuple[EnvironmentProblem, ...]:
    """Start it; what is wrong there."""
    check = spark_check(engine.spark("acidctl doctor"))
    first = "looked around in" if check.problems else "first task after"
    record["spark"] = f"{check.spark} on {check.master}, Java {check.java}: {first} {check.seconds:.1f} s"
    record["nodes"] = [_node(node) for node in check.nodes]
    record["pruning"] = None if check.problems else check.pruning or "on"
    record["columnar"] = None if check.problems else check.columnar or "on"
    if is_table:
        put_text(f"{'spark':10} {record['spark']}", _MARGIN)
        if not check.problems:
            reads = f"every column ({check.pruning})" if check.pruning else "the columns that a query uses"
            gives = f"rows one by one ({check.columnar})" if check.columnar else "batches of columns"
            put_text(f"{'':10} the data source hive_acid reads {reads}, and gives Spark {gives}", _MARGIN)
        for node in check.nodes:
            _show_node(node)
    return check.problems


def _metastore(
    metastore: str, pairs: tuple[str, ...], record: dict[str, Any], *, is_table: bool
) -> Sequence[AcidctlError]:
    """Ask it; what is wrong there."""
    from acidctl.cli.check.work.metastore_check import check_metastore, lines_of  # noqa: PLC0415 - only for --metastore

    record["metastore"], problems = check_metastore(metastore, pairs)
    for line in lines_of(record["metastore"]) if is_table else ():
        put_text(line, 2 * _MARGIN)
    return problems


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
    put_text(f"{'node':10} {node.host}: Python {node.python} ({node.executable})", _MARGIN)
    installed = dict(node.versions)
    for name in (*(distribution for _, distribution in PACKAGES), *FOR_SOME):
        use = "" if name in installed or name not in FOR_SOME else ", which only some stores and checks need"
        put_text(f"{'':10} {name} {installed.get(name, f'not installed{use}')}", _MARGIN)
    for problem in _problems(node):
        put_text(f"{'':10} {problem}", _MARGIN)


def _record(facts: Facts) -> dict[str, Any]:
    return {
        "python": facts.python,
        "java": [{"candidate": candidate, "verdict": verdict} for candidate, verdict in facts.java],
        "packages": [{"name": name, "version": version or "not installed"} for name, version in facts.packages],
        "environment": [{"name": name, "value": hidden(value)} for name, value in facts.variables],
    }
