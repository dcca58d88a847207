"""`acidctl validate`: what is wrong with tables, told with what to do about it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from acidctl.cli.options.engine import engine_options
from acidctl.cli.options.shared import (
    examples,
    locations_argument,
    output_option,
    report_options,
    snapshot_options,
    storage_options,
    typed_option,
)

if TYPE_CHECKING:
    from acidctl.cli.options.engine import EngineChoice
    from acidctl.cli.report.run_report import RunReport
    from acidctl.location.lists import SnapshotLists
    from acidctl.storage.port import FileSystem
    from acidctl.validation.findings import Depth
    from acidctl.validation.model import Options, Place
    from acidctl.worker_pool import Runner

_READERS = ("hive2", "hive3", "hive4", "trino", "impala", "spark")


_OF_RULES = ("list_rules", "output")


@click.command(
    "validate",
    epilog=examples(
        "acidctl validate /warehouse/sales.db",
        "acidctl validate --deep orders",
        "acidctl validate --for trino --for impala webhdfs://namenode:9870/warehouse/sales.db/orders",
        "acidctl validate --footers --ignore V13 --fail-on warning -o jsonl /warehouse",
        "acidctl validate --deep --engine spark --master yarn --queue etl hdfs://nn/warehouse/sales.db",
        "acidctl validate --list-rules",
    ),
)
@report_options
@locations_argument(required=False)
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
@click.option("--rule", "only", multiple=True, metavar="ID", help="Only this rule, V26 for example. Repeatable.")
@click.option("--ignore", "ignored", multiple=True, metavar="ID", help="Not this rule. Repeatable.")
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
@typed_option("--list-rules", is_flag=True, help="Print every rule with what to do, and stop.")
@click.option("-v", "--verbose", is_flag=True, help="Show remarks too, and every finding of a rule.")
@engine_options("local", "<host>-validator-<location>")
@click.option(
    "--jobs",
    type=click.IntRange(1, 1024),
    metavar="N",
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
@snapshot_options
@storage_options
@output_option("table", "json", "jsonl", default="table")
def command(
    locations: tuple[str, ...],
    footers: bool,
    deep: bool,
    all_directories: bool,
    readers: tuple[str, ...],
    only: tuple[str, ...],
    ignored: tuple[str, ...],
    fail_on: str,
    schema: str | None,
    list_rules: bool,
    verbose: bool,
    engine: EngineChoice,
    jobs: int | None,
    timeout: float,
    lists: SnapshotLists,
    storage: dict[str, str],
    output: str,
    run: RunReport,
) -> int:
    """Check every location at or below LOCATION against the rules of Hive's ACID format; change nothing.

    Without options only names, sizes and times are looked at, from one listing a location. --footers reads the tails
    of the current data files, --deep all of their rows.

    Files are read in processes of their own: one that ends its reader is a finding, and the rest goes on. With
    --engine spark these processes stand beside Spark's workers; locations are listed, and files compared with each
    other, here.
    """
    import os
    import time

    from acidctl.cli.check.findings import Printer, print_rules
    from acidctl.cli.options.shared import refuse_unused
    from acidctl.validation.checks.column_types import parse_columns
    from acidctl.validation.findings import Depth
    from acidctl.validation.model import Options
    from acidctl.worker_pool import Limits

    if list_rules:
        refuse_unused("--list-rules", *(name for name in click.get_current_context().params if name not in _OF_RULES))
        print_rules(output)
        return 0
    if not locations:
        raise click.UsageError("Missing argument 'LOCATION...'.")
    engine.check("--jobs", jobs)
    if not (deep or footers or readers):
        refuse_unused("a look at names alone", "jobs", "timeout", "all_directories", "schema")
    depth = Depth.DEEP if deep else Depth.FOOTERS if footers or readers else Depth.LISTING
    rules, left_out = _rule_ids(only, "--rule"), _rule_ids(ignored, "--ignore")
    _refuse_unseen(rules, left_out, depth)
    options = Options(
        depth,
        readers,
        parse_columns(schema) if schema is not None else None,
        all_directories=all_directories,
        processes=jobs or len(os.sched_getaffinity(0)),
        limits=Limits(seconds=timeout),
        only=rules,
        ignored=left_out,
        now=time.time(),
    )
    printer = Printer(output, run, verbose=verbose)
    with _runner(engine, locations, options) as runner:
        _run(locations, storage, lists, options, printer, runner)
    printer.close()
    return printer.exit_status(fail_on)


def _refuse_unseen(rules: frozenset[str], left_out: frozenset[str], depth: Depth) -> None:
    """Raises UsageError for rules that were asked for and that this look cannot find broken."""
    from acidctl.validation.rules import RULES

    if both := sorted(rules & left_out):
        raise click.UsageError(f"--rule {both[0]} and --ignore {both[0]} leave nothing to look for.")
    for one in sorted(rules):
        needed = RULES[one].depth
        if needed.rank > depth.rank:
            raise click.UsageError(f"--rule {one} is found with --{needed.value}.")


def _rule_ids(given: tuple[str, ...], option: str) -> frozenset[str]:
    from acidctl.nearest import did_you_mean
    from acidctl.validation.rules import RULES

    for one in given:
        if one.upper() not in RULES:
            near = did_you_mean(one, RULES, "see --list-rules.")
            raise click.BadParameter(f"no rule is called {one!r}: {near}", param_hint=option)
    return frozenset(one.upper() for one in given)


@contextmanager
def _runner(engine: EngineChoice, locations: tuple[str, ...], options: Options) -> Iterator[Runner | None]:
    """What reads the files; None for processes of this machine. Spark starts with the first file."""
    if engine.kind == "local":
        yield None
        return
    import socket
    from contextlib import ExitStack

    from acidctl.cli.output.console import note
    from acidctl.spark.driver.session import start_session
    from acidctl.spark.isolated import SparkRunner

    shown = locations[0].rstrip("/").rpartition("/")[2] if len(locations) == 1 else f"{len(locations)}-locations"
    wanted = engine.spark(f"{socket.gethostname()}-validator-{shown}")
    with ExitStack() as stack:
        yield SparkRunner(lambda: stack.enter_context(start_session(wanted)), options.limits, note)


def _run(
    locations: tuple[str, ...],
    storage: dict[str, str],
    lists: SnapshotLists,
    options: Options,
    printer: Any,
    runner: Runner | None,
) -> None:
    import time
    from dataclasses import replace

    from acidctl.cli.output.progress import progress
    from acidctl.cli.output.readable import readable
    from acidctl.cli.output.strangers import Strangers
    from acidctl.errors import AcidctlError, RefusedError
    from acidctl.location.find import find
    from acidctl.validation.model import Place
    from acidctl.validation.run import validate

    strangers = Strangers(printer.cannot_list)
    folders: list[Place] = []
    unlisted: set[str] = set()

    def closed(_: AcidctlError, location: str) -> None:
        unlisted.add(location)

    def folder(fs: FileSystem, path: str, table: str) -> None:
        folders.append(Place(fs, path, holds=table))

    def places() -> Iterator[Place]:
        for found in find(locations, storage, lists, replace(strangers.observer, container=folder)):
            yield from _taken(folders)
            at = found.location
            printer.begun(found.shown, is_given=found.is_given)
            try:
                counted = lists.of((seen := readable(found, closed)).look, at.table, time.time())
            except RefusedError as error:
                if found.is_given and len(locations) == 1:
                    raise
                printer.cannot_list(error)
            except AcidctlError:  # its report says so
                yield Place(found.fs, at.path, partition=at.partition)
            else:
                look = None if found.shown in unlisted else seen.look  # which tells of what is closed
                yield Place(found.fs, at.path, counted.write_ids, counted.txns, at.partition, look)
        yield from _taken(folders)

    with progress("checking parts") as bar:
        for report in validate(places(), options, bar.reach, runner):
            printer.report(report)
    strangers.tell()


def _taken(folders: list[Place]) -> list[Place]:
    """What has come since it was asked last."""
    taken = list(folders)
    folders.clear()
    return taken
