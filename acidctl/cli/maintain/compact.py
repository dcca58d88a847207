"""`acidctl compact`: minor and major compaction, on Spark or in processes of this machine."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from acidctl.cli.options.amounts import DURATION, SIZE, WINDOW, Window
from acidctl.cli.options.engine import engine_options
from acidctl.cli.options.shared import (
    can_ask,
    changed_storage_options,
    examples,
    exit_code_option,
    key_and_value,
    locations_argument,
    lock_options,
    output_option,
    refuse_unused,
    report_options,
    snapshot_options,
    table_type_option,
    together,
)

if TYPE_CHECKING:
    from acidctl.acid.triggers import Thresholds
    from acidctl.cli.maintain.compact_engine import EngineOptions
    from acidctl.cli.maintain.compact_results import Printer
    from acidctl.cli.options.engine import EngineChoice
    from acidctl.cli.report.run_report import RunReport
    from acidctl.compaction.output_settings import Writing
    from acidctl.compaction.plan import CompactionPlan
    from acidctl.location.lists import SnapshotLists
    from acidctl.location.lock import Locking

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
        type=click.Choice(["keys", "bytes", "full"]),
        default="bytes",
        show_default=True,
        help="What is compared with what was read before a result is shown: the ids of all rows; all bytes too, which "
        "reads the result once more; or all column values too, which decodes all of it twice.",
    ),
    click.option(
        "--check-inputs",
        is_flag=True,
        help="First read all rows as `acidctl validate --deep` does; where it finds errors nothing is done.",
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
@table_type_option
@click.option("--force", is_flag=True, help="Go on although a writer seems to be at work.")
@_when_options
@_engine_options
@_writing_options
@lock_options
@exit_code_option
@snapshot_options
@changed_storage_options
@output_option("table", "json", "jsonl", default="table")
def command(
    locations: tuple[str, ...],
    major: bool,
    minor: bool,
    auto: bool,
    dry_run: bool,
    offline: bool,
    visibility_txn: int | None,
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
    check_inputs: bool,
    compression: str | None,
    stripe_size: int | None,
    row_index_stride: int | None,
    bloom_filter: str | None,
    locking: Locking,
    exit_code: bool,
    lists: SnapshotLists,
    storage: dict[str, str],
    output: str,
    run: RunReport,
) -> int:
    """Compact every location at or below LOCATION: one Spark session, one task a bucket.

    The inputs stay until `acidctl clean`. The result is written to a hidden directory, read back and compared, and
    appears by a rename; whatever fails before that leaves the table as it was.

    It must be told which write ids are committed: by Hive's lists, or by --assume-committed, with which nothing counts
    that is younger than AGE, empty, or above the first such directory. On a terminal it asks.

    A minor compaction with both kinds of delta appears by two renames, and a reader between them would see wrong rows:
    it needs --offline, or --visibility-txn; --major appears at once.

    On S3 and Google Cloud Storage, which cannot rename, the result is copied to its place, and the location is locked
    meanwhile. One bucket appears at once there too; several need --offline, or --visibility-txn.
    """
    mode = _mode(major, minor, auto)
    asks = not lists.is_told
    if asks:
        lists = _assuming(lists)
    if force and lists.assumption:
        lists = replace(lists, assumption=replace(lists.assumption, force=True))
    locking = replace(locking, age=lists.age)
    from acidctl.acid.layout import TableType
    from acidctl.acid.triggers import is_auto_off
    from acidctl.cli.maintain.compact_engine import EngineOptions
    from acidctl.cli.maintain.compact_plan import Wanted
    from acidctl.cli.maintain.compact_results import Printer
    from acidctl.cli.output.strangers import Strangers
    from acidctl.location.find import find, once
    from acidctl.location.neighbours import Surroundings

    table_properties = dict(key_and_value(item, "--property") for item in properties)
    until, closed = _until(window, deadline)
    options = EngineOptions(engine, jobs, until)
    options.check()
    writing = _writing(compression, stripe_size, row_index_stride, bloom_filter, task_bytes, verify)
    wanted = Wanted(
        mode,
        _thresholds(table_properties, min_deltas, max_ratio),
        is_auto_off(table_properties),
        min_deltas or 0,
        visibility_txn or 0,
        TableType(table_type) if table_type else None,
        force,
        dry_run,
        writing,
        locking,
    )
    printer = Printer(output, dry_run, run)
    plans: list[CompactionPlan] = []
    strangers = Strangers(printer.cannot_list, printer.skipped)
    places = once(find(locations, storage, lists, strangers.observer, surroundings=Surroundings()))
    for found in strangers.changeable(places, wanted.table_type):
        if closed or _is_past(until):
            printer.postponed(found.shown, closed or _TIME_IS_UP)
            continue
        plan = wanted.plan(found, lists, printer)
        if plan:
            plans.append(plan)
    plans = _within(plans, max_bytes, printer)
    strangers.tell()
    if check_inputs:
        plans = _sound(plans, jobs, printer)
    if dry_run:
        plans = _that_would_run(plans, offline, printer)
    if dry_run or asks:
        for plan in plans:
            printer.would_compact(plan, is_last=dry_run)
    if plans and not dry_run:
        if asks:
            _agree(plans)
        with ExitStack() as stack:
            _run(_unlocked(plans, stack, locking, printer), options, offline, printer)
    return printer.exit_status(exit_code)


def _mode(major: bool, minor: bool, auto: bool) -> str:
    modes = [name for name, given in (("major", major), ("minor", minor), ("auto", auto)) if given]
    if len(modes) != 1:
        raise click.UsageError("Say which compaction: one of --major, --minor and --auto.")
    if not auto:
        refuse_unused(f"--{modes[0]}", "properties", "max_ratio")  # they are for the decision
    return modes[0]


def _sound(plans: Sequence[CompactionPlan], jobs: int | None, printer: Printer) -> list[CompactionPlan]:
    from acidctl.cli.maintain.check_inputs import sound

    return list(sound(plans, jobs, printer))


def _that_would_run(plans: Sequence[CompactionPlan], offline: bool, printer: Printer) -> list[CompactionPlan]:
    """What the run itself would refuse is refused by its dry run."""
    from acidctl.compaction.run import refuse_before_work
    from acidctl.errors import AcidctlError

    would = []
    for plan in plans:
        try:
            refuse_before_work(plan, offline)
            would.append(plan)
        except AcidctlError as error:
            printer.failed(plan.snapshot.fs.display(plan.snapshot.path), error)
    return would


_DECIDING = ("compactorthreshold.", "hive.compactor.")
_TIME_IS_UP = "the time is up"
_SHOWN = 3


def _assuming(lists: SnapshotLists) -> SnapshotLists:
    """What is asked about, where nobody said which write ids are committed.

    Raises:
        RefusedError: nobody can be asked.
    """
    from acidctl.acid.assumption import Assumption
    from acidctl.errors import RefusedError

    if not can_ask():
        raise RefusedError(
            "compact must be told which write ids are committed",
            "no list of Hive's was given, and there is no terminal to ask at",
            "give --write-ids or --write-ids-from, or --assume-committed[=AGE] if all older than AGE (1h) is committed",
        )
    return lists.assuming(Assumption(0))


def _agree(plans: Sequence[CompactionPlan]) -> None:
    """Ask whether everything on disk is committed.

    Raises:
        RefusedError: the answer is no.
    """
    import time

    from acidctl.cli.output.console import human_count, say
    from acidctl.errors import RefusedError
    from acidctl.wording import duration

    say("", "No list of Hive's write ids was given, so everything on disk would count as committed:")
    for plan in plans[:_SHOWN]:
        snapshot, newest = plan.snapshot, plan.snapshot.assumed and plan.snapshot.assumed.newest
        ago = duration(max(0.0, time.time() - newest[1])) if newest else ""
        when = f", the last of it written {ago} ago: {newest[0]}" if newest else ""
        say("", f"  {snapshot.fs.display(snapshot.path)}: up to write id {max(0, plan.max_write_id)}{when}")
    if len(plans) > _SHOWN:
        say("", f"  and {human_count(len(plans) - _SHOWN, 'more location')}")
    say(
        "", "Rows of a transaction that was aborted would be there for good, and what an open one writes would be lost."
    )
    if not click.confirm(f"Compact {human_count(len(plans), 'location')}?", err=True):
        raise RefusedError(
            "nothing was compacted", "it was not confirmed", "give --write-ids, or --assume-committed=AGE"
        )


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

    from acidctl.acid.triggers import NO_AUTO, Thresholds

    unknown = [key for key in properties if not (key in NO_AUTO or key.startswith(_DECIDING))]
    if unknown:
        raise click.UsageError(
            f"--property {unknown[0]} decides nothing: known are compactorthreshold.<key> and {NO_AUTO[0]}."
        )
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
    from acidctl.compaction.output_settings import Writing
    from acidctl.compaction.proof.verify import Verify
    from acidctl.orc.write.settings import WriterSettings

    bloom = tuple(column.strip() for column in (bloom_filter or "").split(",") if column.strip())
    if bloom_filter is not None and not bloom:
        raise click.UsageError("--bloom-filter names no column.")
    given = {"compression": compression, "stripe_size": stripe_size, "stride": stride, "bloom_columns": bloom or None}
    overrides: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    WriterSettings(**overrides)  # says what cannot be written before anything is planned
    return Writing(overrides, task_bytes, verify=Verify(verify))


def _within(plans: list[CompactionPlan], budget: int | None, printer: Printer) -> list[CompactionPlan]:
    """As many as the budget of input bytes allows, those with most deltas a byte first."""
    from acidctl.cli.output.console import human_bytes

    if budget is None:
        return plans
    chosen = []
    for plan in sorted(plans, key=lambda plan: (-len(plan.inputs) / (plan.input_bytes + 1), plan.snapshot.path)):
        if plan.input_bytes <= budget:
            budget -= plan.input_bytes
            chosen.append(plan)
        else:
            shown = plan.snapshot.fs.display(plan.snapshot.path)
            printer.postponed(shown, f"{human_bytes(plan.input_bytes)} are more than is left of --max-bytes")
    return chosen


def _unlocked(
    plans: list[CompactionPlan], stack: ExitStack, locking: Locking, printer: Printer
) -> list[CompactionPlan]:
    """Those plans whose location nobody else holds; we do from here on."""
    from acidctl.errors import AcidctlError
    from acidctl.location.publication import shows_by_copies

    free = []
    for plan in plans:
        snapshot = plan.snapshot
        try:
            stack.enter_context(locking.at(snapshot.fs, snapshot.path, always=shows_by_copies(snapshot.fs)))
            free.append(plan)
        except AcidctlError as error:
            printer.failed(snapshot.fs.display(snapshot.path), error)
    return free


def _run(plans: Sequence[CompactionPlan], options: EngineOptions, offline: bool, printer: Printer) -> None:
    from acidctl.cli.maintain.compact_engine import open_engine
    from acidctl.cli.maintain.compact_results import working
    from acidctl.compaction.run import compact

    if not plans:
        return
    with (
        working(plans) as work,
        open_engine(options, plans, work.bytes) as engine,
        # Closed at once when interrupted: that removes what was staged.
        closing(compact(plans, engine, offline=offline, on_task=work.ended)) as outcomes,
    ):
        for outcome in outcomes:
            printer.done(outcome)
