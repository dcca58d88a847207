"""`acidctl compact`: minor and major compaction, on Spark or in processes of this machine."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any

import click

from acidctl.cli.amounts import DURATION, SIZE, WINDOW, Window
from acidctl.cli.engine import engine_options
from acidctl.cli.options import (
    assume_committed_option,
    examples,
    exit_code_option,
    key_and_value,
    locations_argument,
    lock_options,
    output_option,
    report_options,
    snapshot_options,
    storage_options,
    together,
)

if TYPE_CHECKING:
    from acidctl.acid.triggers import Thresholds
    from acidctl.cli.compact_engine import EngineOptions
    from acidctl.cli.compact_plan import Locks
    from acidctl.cli.compact_results import Printer
    from acidctl.cli.engine import EngineChoice
    from acidctl.cli.locations import SnapshotLists
    from acidctl.cli.run_report import RunReport
    from acidctl.compaction.plan import CompactionPlan
    from acidctl.compaction.writing import Writing

_engine_options = together(
    engine_options("spark", "<host>-compactor-<database>.<table>"),
    click.option(
        "--jobs",
        type=click.IntRange(min=1),
        metavar="N",
        help="Processes of --engine local; without it one a core.",
    ),
    click.option(
        "--task-bytes",
        type=SIZE,
        default="1g",
        show_default=True,
        metavar="SIZE",
        help="Cut larger buckets into segments of this size, so that several executors share one.",
    ),
)


_when_options = together(
    click.option(
        "--property",
        "properties",
        multiple=True,
        metavar="KEY=VALUE",
        help="A table property for --auto, e.g. compactorthreshold.hive.compactor.delta.num.threshold=4. Repeatable.",
    ),
    click.option(
        "--min-deltas",
        type=click.IntRange(min=1),
        metavar="N",
        help="Leave locations with fewer deltas alone; with --auto instead of Hive's count (more than 10).",
    ),
    click.option(
        "--max-ratio",
        type=click.FloatRange(min=0),
        metavar="R",
        help="With --auto: major when the deltas have more than R of the base's bytes, instead of 0.1.",
    ),
    click.option(
        "--window",
        type=WINDOW,
        metavar="FROM-TO",
        help="Work only in these hours, e.g. 01:00-05:00, local time.",
    ),
    click.option("--deadline", type=DURATION, metavar="TIME", help="End after this long, e.g. 2h or 30m."),
    click.option(
        "--max-bytes",
        type=SIZE,
        metavar="SIZE",
        help="Read at most so much: those with most deltas a byte first.",
    ),
)


_writing_options = together(
    click.option(
        "--verify",
        type=click.Choice(["keys", "full"]),
        default="keys",
        show_default=True,
        help="Compare the keys of all rows with what was read, or all column values and copied bytes too.",
    ),
    click.option(
        "--compression",
        type=click.Choice(["none", "zlib", "snappy", "lz4", "zstd"]),
        help="Codec of the result; without it that of the newest input. Any of these settings, given, has "
        "every row encoded again.",
    ),
    click.option("--stripe-size", type=SIZE, metavar="SIZE", help="Without it 64m, and 8m for deltas."),
    click.option(
        "--row-index-stride",
        type=click.IntRange(min=0),
        metavar="ROWS",
        help="Without it that of the newest input.",
    ),
    click.option("--bloom-filter", metavar="COLUMNS", help="Columns that get bloom filters, by commas."),
)


@click.command(
    "compact",
    epilog=examples(
        "acidctl compact --major orders",
        "acidctl compact --auto --dry-run /warehouse/sales.db",
        "acidctl compact --major --master yarn --queue etl --conf spark.executor.memory=4g orders",
        "acidctl compact --minor --offline --engine local orders/day=2026-11-20",
        "acidctl compact --auto --window 01:00-05:00 --max-bytes 500g hdfs://nn/warehouse/sales.db",
    ),
)
@report_options
@locations_argument()
@click.option("--major", is_flag=True, help="Merge base and deltas into a new base, deletes applied.")
@click.option("--minor", is_flag=True, help="Merge deltas into one delta and one delete delta.")
@click.option("--auto", is_flag=True, help="What Hive's thresholds ask for, location by location.")
@click.option("-n", "--dry-run", is_flag=True, help="Show the plan and stop.")
@click.option(
    "--offline",
    is_flag=True,
    help="Nothing reads the tables meanwhile: lets a minor compaction rename twice, and an object store show several "
    "buckets.",
)
@click.option(
    "--visibility-txn",
    type=click.IntRange(min=1),
    metavar="TXN",
    help="Name the results _v<TXN>, the compaction's own transaction (Hive 4): visible when it is committed.",
)
@assume_committed_option
@click.option(
    "--table-type",
    type=click.Choice(["full-acid", "insert-only"]),
    help="What the table is, where its files do not show it: ORC without ACID columns may be either.",
)
@click.option("--force", is_flag=True, help="Go on although a writer seems to be at work.")
@_when_options
@_engine_options
@_writing_options
@lock_options
@exit_code_option
@snapshot_options
@storage_options
@output_option("table", "json", "jsonl", default="table")
def command(
    locations: tuple[str, ...],
    major: bool,
    minor: bool,
    auto: bool,
    dry_run: bool,
    offline: bool,
    visibility_txn: int | None,
    assume_committed: bool,
    table_type: str | None,
    force: bool,
    properties: tuple[str, ...],
    min_deltas: int | None,
    max_ratio: float | None,
    window: Window | None,
    deadline: float | None,
    max_bytes: int | None,
    engine: EngineChoice,
    jobs: int | None,
    task_bytes: int,
    verify: str,
    compression: str | None,
    stripe_size: int | None,
    row_index_stride: int | None,
    bloom_filter: str | None,
    lock: bool,
    break_lock: bool,
    exit_code: bool,
    lists: SnapshotLists,
    storage: dict[str, str],
    output: str,
    run: RunReport,
) -> int:
    """Compact every location at or below LOCATION: one Spark session, one task a bucket.

    The inputs stay until `acidctl clean`. The result is written to a hidden directory, read back and compared, and
    appears by a rename; whatever fails before that leaves the table as it was.

    Without --write-ids everything on disk counts as committed: run it while nobody writes, or give Hive's list.

    A minor compaction with both kinds of delta appears by two renames, and a reader between them would see wrong rows:
    it needs --offline, or --visibility-txn; --major appears at once.

    On S3 and Google Cloud Storage, which cannot rename, the result is copied to its place, and the location is locked
    meanwhile. One bucket appears at once there too; several need --offline, or --visibility-txn.
    """
    modes = [name for name, given in (("major", major), ("minor", minor), ("auto", auto)) if given]
    if len(modes) != 1:
        raise click.UsageError("Say which compaction: one of --major, --minor and --auto.")
    from acidctl.acid.triggers import is_auto_off
    from acidctl.cli.compact_engine import EngineOptions
    from acidctl.cli.compact_plan import Locks, Wanted
    from acidctl.cli.compact_results import Printer
    from acidctl.cli.locations import find
    from acidctl.compaction.table_type import TableType

    table_properties = dict(key_and_value(item, "--property") for item in properties)
    until, closed = _until(window, deadline)
    options = EngineOptions(engine, jobs, until)
    options.check()
    writing = _writing(compression, stripe_size, row_index_stride, bloom_filter, task_bytes, verify)
    wanted = Wanted(
        modes[0],
        _thresholds(table_properties, min_deltas, max_ratio),
        is_auto_off(table_properties),
        min_deltas or 0,
        visibility_txn or 0,
        TableType(table_type) if table_type else None,
        force,
        dry_run,
        writing,
        Locks(lock, break_lock),
    )
    if assume_committed:
        lists = lists.assuming_committed()
    printer = Printer(output, dry_run, run)
    plans: list[CompactionPlan] = []
    for found in find(locations, storage, lists, printer.cannot_list):
        if closed or _is_past(until):
            printer.postponed(found.shown, closed or _TIME_IS_UP)
            continue
        plan = wanted.plan(found, lists, printer)
        if plan:
            plans.append(plan)
    if max_bytes is not None:
        plans = _within(plans, max_bytes, printer)
    if dry_run:
        for plan in plans:
            printer.would_compact(plan)
    elif plans:
        with ExitStack() as stack:
            _run(_unlocked(plans, stack, wanted.locks, printer), options, offline, printer)
    return printer.exit_status(exit_code)


_TIME_IS_UP = "the time is up"


def _until(window: Window | None, deadline: float | None) -> tuple[float | None, str]:
    """When to end, by ``time.monotonic()``; and why nothing may be done now, if so."""
    import time
    from datetime import datetime

    ends = [] if deadline is None else [deadline]
    if window is not None:
        now = datetime.now()
        left = window.seconds_left(now)
        if left is None:
            return None, f"outside the window {window} (it is {now:%H:%M})"
        ends.append(left)
    return (time.monotonic() + min(ends) if ends else None), ""


def _is_past(until: float | None) -> bool:
    import time

    return until is not None and time.monotonic() >= until


def _thresholds(properties: dict[str, str], min_deltas: int | None, max_ratio: float | None) -> Thresholds:
    from dataclasses import replace

    from acidctl.acid.triggers import Thresholds

    limits = Thresholds().with_properties(properties)
    if min_deltas is not None:
        limits = replace(limits, delta_count=min_deltas - 1)
    return limits if max_ratio is None else replace(limits, delta_ratio=max_ratio)


def _writing(
    compression: str | None,
    stripe_size: int | None,
    stride: int | None,
    bloom_filter: str | None,
    task_bytes: int,
    verify: str,
) -> Writing:
    from acidctl.compaction.writing import Writing
    from acidctl.orc.settings import WriterSettings

    bloom = tuple(column.strip() for column in (bloom_filter or "").split(",") if column.strip())
    given = {"compression": compression, "stripe_size": stripe_size, "stride": stride, "bloom_columns": bloom or None}
    overrides: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    WriterSettings(**overrides)  # says what cannot be written before anything is planned
    return Writing(overrides, task_bytes, verify_values=verify == "full")


def _within(plans: list[CompactionPlan], budget: int, printer: Printer) -> list[CompactionPlan]:
    """As many as the budget of input bytes allows, those with most deltas a byte first."""
    from acidctl.cli.output import human_bytes

    chosen = []
    for plan in sorted(plans, key=lambda plan: (-len(plan.inputs) / (plan.input_bytes + 1), plan.snapshot.path)):
        if plan.input_bytes <= budget:
            budget -= plan.input_bytes
            chosen.append(plan)
        else:
            shown = plan.snapshot.fs.display(plan.snapshot.path)
            printer.postponed(shown, f"{human_bytes(plan.input_bytes)} are more than is left of --max-bytes")
    return chosen


def _unlocked(plans: list[CompactionPlan], stack: ExitStack, locks: Locks, printer: Printer) -> list[CompactionPlan]:
    """Those plans whose location nobody else holds; we do from here on, where that is needed."""
    from acidctl.errors import AcidctlError

    free = []
    for plan in plans:
        snapshot = plan.snapshot
        try:
            stack.enter_context(locks.of(snapshot))
            free.append(plan)
        except AcidctlError as error:
            printer.failed(snapshot.fs.display(snapshot.path), error)
    return free


def _run(plans: Sequence[CompactionPlan], options: EngineOptions, offline: bool, printer: Printer) -> None:
    from acidctl.cli.compact_engine import open_engine
    from acidctl.cli.compact_results import progress
    from acidctl.compaction.run import compact

    if not plans:
        return
    with (
        open_engine(options, plans) as engine,
        progress(plans) as advance,
        # Closed at once when interrupted: that removes what was staged.
        closing(compact(plans, engine, offline=offline, on_task=advance)) as outcomes,
    ):
        for outcome in outcomes:
            printer.done(outcome)
