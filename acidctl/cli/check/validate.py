"""`acidctl validate`: Check names, files and rows by the rules of the format."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from acidctl.base.errors import AcidctlError, GoneError, RefusedError
from acidctl.base.nearest import did_you_mean
from acidctl.base.worker_pool import Limits, Runner
from acidctl.cli.options import shared
from acidctl.cli.options.engine_choice import engine_options
from acidctl.cli.options.local_completion import complete_rules
from acidctl.cli.options.param_types import NumberType
from acidctl.cli.options.shared import refuse_unused
from acidctl.cli.output.console import note
from acidctl.cli.output.progress import progress
from acidctl.cli.report.run_report import RunReport
from acidctl.location.find import find
from acidctl.location.snapshot_resolver import SnapshotResolver
from acidctl.storage.port import FileSystem
from acidctl.validation.findings import Depth
from acidctl.verbs.engine import EngineOptions

if TYPE_CHECKING:
    from acidctl.cli.check.findings_printer import FindingsPrinter
    from acidctl.validation.model import Options, Place

_READERS = ("hive2", "hive3", "hive4", "trino", "impala", "spark")


@shared.command(
    "validate",
    "acidctl validate /warehouse/sales.db",
    "acidctl validate --deep orders",
    "acidctl validate --for trino --for impala webhdfs://namenode:9870/warehouse/sales.db/orders",
    "acidctl validate --footers --ignore V13 --fail-on warning -o jsonl /warehouse",
    "acidctl validate --deep --engine spark --master yarn --conf spark.yarn.queue=etl hdfs://nn/warehouse/sales.db",
    "acidctl validate --list-rules",
    main=("deep", "footers", "readers", "rules", "ignored", "fail_on", "list_rules", "jobs", "engine", "output"),
)
@shared.report_options
@shared.locations_argument(required=False)
@click.option("--footers", is_flag=True, help="Look at the tail of every current data file, too.")
@click.option("--deep", is_flag=True, help="Read every row, too: order, duplicates, write ids, deletes, statistics.")
@click.option("-a", "--all", "all_directories", is_flag=True, help="Open the files of obsolete directories, too.")
@click.option(
    "--for",
    "readers",
    multiple=True,
    type=click.Choice(_READERS),
    help="Also tell what this reader would refuse or misread; implies --footers. Repeatable.",
)
@click.option(
    "--rule",
    "rules",
    multiple=True,
    metavar="ID",
    shell_complete=complete_rules,
    help="Only this rule, V26 for example. Repeatable.",
)
@click.option(
    "--ignore", "ignored", multiple=True, metavar="ID", shell_complete=complete_rules, help="Not this rule. Repeatable."
)
@click.option(
    "--fail-on",
    type=click.Choice(["error", "warning"]),
    default="error",
    show_default=True,
    help="The least severity that ends the command with status 14.",
)
@click.option(
    "--schema", metavar="COLUMNS", help="The table's columns, 'id int, name string': files must be readable as these."
)
@shared.typed_option("--list-rules", is_flag=True, help="Print every rule with what to do, and stop.")
@click.option("-v", "--verbose", is_flag=True, help="Show remarks too, and every finding of a rule.")
@engine_options("local")
@click.option(
    "--jobs",
    type=NumberType("N", 1, 1024),
    help="Processes of --engine local that read files; as many as processors.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0.1),
    metavar="SECONDS",
    default=300.0,
    show_default=True,
    help="End a process that reads one stripe for longer: its file is a finding.",
)
@shared.reading_options("table", "json", "jsonl", default="table", more=("exclude", "read_lock"))
@shared.runs(pages=True)
def command(
    *,
    locations: tuple[str, ...],
    footers: bool,
    deep: bool,
    all_directories: bool,
    readers: tuple[str, ...],
    rules: tuple[str, ...],
    ignored: tuple[str, ...],
    fail_on: str,
    schema: str | None,
    list_rules: bool,
    verbose: bool,
    engine: EngineOptions,
    jobs: int | None,
    timeout: float,
    resolver: SnapshotResolver,
    storage: dict[str, str],
    output: str,
    run: RunReport,
) -> int:
    """Check every location at or below LOCATION against the rules of Hive's ACID format; change nothing.

    Without options only names, sizes and times are looked at, from one listing per location. --footers reads the tails
    of the current data files, --deep all of their rows.

    Files are read in processes of their own: one that ends its reader is a finding, and the rest goes on. With
    --engine spark these processes stand beside Spark's workers; locations are listed, and files compared with each
    other, here.
    """
    from acidctl.cli.check.findings_printer import FindingsPrinter, print_rules  # noqa: PLC0415 - --help does without
    from acidctl.validation.checks.column_types import parse_columns  # noqa: PLC0415 - --help does without
    from acidctl.validation.model import Options  # noqa: PLC0415 - --help does without

    if list_rules:
        return print_rules(output)
    if not locations:
        raise click.UsageError("Missing argument 'LOCATION...'.")
    engine.check("--jobs", jobs)
    if not (deep or footers or readers):
        refuse_unused("a look at names alone", "jobs", "timeout", "all_directories", "schema")
    depth = Depth.DEEP if deep else Depth.FOOTERS if footers or readers else Depth.LISTING
    only, left_out = _rule_ids(rules, "--rule"), _rule_ids(ignored, "--ignore")
    _refuse_unseen(only, left_out, depth)
    options = Options(
        depth,
        readers,
        parse_columns(schema) if schema is not None else None,
        all_directories=all_directories,
        processes=jobs or len(os.sched_getaffinity(0)),
        limits=Limits(seconds=timeout),
        only=only,
        ignored=left_out,
        now=time.time(),
    )
    printer = FindingsPrinter(output, run, verbose=verbose)
    with _runner(engine, locations, options) as runner:
        _run(locations, storage, resolver, options, printer, runner)
    printer.close()
    return printer.exit_status(fail_on)


def _refuse_unseen(rules: frozenset[str], left_out: frozenset[str], depth: Depth) -> None:
    """Refuse rules that a check of this depth cannot find broken.

    Raises:
        UsageError: there is such a rule.
    """
    from acidctl.validation.registry import RULES  # noqa: PLC0415 - --help does without

    if both := sorted(rules & left_out):
        raise click.UsageError(f"--rule {both[0]} and --ignore {both[0]} leave nothing to look for.")
    for rule in sorted(rules):
        needed = RULES[rule].depth
        if needed.rank > depth.rank:
            raise click.UsageError(f"--rule {rule} is found with --{needed.value}.")


def _rule_ids(given: tuple[str, ...], option: str) -> frozenset[str]:
    from acidctl.validation.registry import RULES  # noqa: PLC0415 - --help does without

    for rule in given:
        if rule.upper() not in RULES:
            near = did_you_mean(rule, RULES, "see --list-rules.")
            raise click.BadParameter(f"no rule is called {rule!r}: {near}", param_hint=option)
    return frozenset(rule.upper() for rule in given)


@contextmanager
def _runner(engine: EngineOptions, locations: tuple[str, ...], options: Options) -> Iterator[Runner | None]:
    """Yield what reads the files; None for processes of this machine. Spark starts with the first file."""
    if engine.is_local:
        yield None
        return
    from acidctl.spark.driver.session import start_session  # noqa: PLC0415 - only for --engine spark
    from acidctl.spark.jobs import SparkRunner  # noqa: PLC0415 - the same

    shown = locations[0].rstrip("/").rpartition("/")[2] if len(locations) == 1 else f"{len(locations)}-locations"
    name = f"{socket.gethostname()}-validator-{shown}"
    with ExitStack() as stack:
        yield SparkRunner(
            lambda stores: stack.enter_context(start_session(engine.spark(name, stores))), options.limits, note
        )


def _run(
    locations: tuple[str, ...],
    storage: dict[str, str],
    resolver: SnapshotResolver,
    options: Options,
    printer: FindingsPrinter,
    runner: Runner | None,
) -> None:
    from acidctl.validation.model import Place  # noqa: PLC0415 - --help does without
    from acidctl.validation.run import validate  # noqa: PLC0415 - --help does without

    folders: list[Place] = []

    def folder(fs: FileSystem, path: str, table: str) -> None:
        folders.append(Place(fs, path, holds=table))

    def drained() -> Iterator[Place]:
        while folders:
            yield folders.pop(0)

    def places() -> Iterator[Place]:
        for found in find(locations, storage, resolver, replace(printer.observer, container=folder)):
            yield from drained()
            at = found.location
            printer.given |= {found.shown} if found.is_given else set()
            try:
                with found.unless_dropped():
                    counted = (seen := printer.readable(found)).resolve()
            except GoneError as error:
                printer.failed(found.shown, error)
            except RefusedError as error:
                if found.is_given and len(locations) == 1:
                    raise
                printer.failed("", error)
            except AcidctlError:  # its report will show the error
                yield Place(found.fs, at.path, partition=at.partition)
            else:
                printer.counted(found, counted)
                # A directory that may not be listed is missing in the listing: a new one reports it.
                look = None if found.shown in printer.unlisted else seen.look
                ahead = seen.ids_above_metastore()
                yield Place(found.fs, at.path, counted.write_ids, counted.txns, at.partition, look, ahead=ahead)
        yield from drained()

    with progress("checking parts") as bar:
        for report in validate(places(), options, bar.reach, runner):
            printer.report(report)
    printer.looked_through()
    printer.tell_notes()
    printer.tell_strangers()
