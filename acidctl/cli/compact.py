"""`acidctl compact`: minor and major compaction, on Spark or in this process."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from acidctl.cli.options import (
    assume_committed_option,
    examples,
    exit_code_option,
    locations_argument,
    output_option,
    snapshot_options,
    storage_options,
)

if TYPE_CHECKING:
    from acidctl.acid.triggers import CompactionKind
    from acidctl.cli.locations import Found, SnapshotLists
    from acidctl.compaction.kernel import BucketResult
    from acidctl.compaction.plan import BucketTask, CompactionPlan
    from acidctl.compaction.run import Engine, Outcome
    from acidctl.errors import AcidctlError
    from acidctl.storage.snapshot import Snapshot


@click.command(
    "compact",
    epilog=examples(
        "acidctl compact --major orders",
        "acidctl compact --auto --dry-run /warehouse/sales.db",
        "acidctl compact --major --master yarn --queue etl --conf spark.executor.memory=4g orders",
        "acidctl compact --minor --offline --engine local orders/day=2026-11-20",
    ),
)
@locations_argument()
@click.option("--major", is_flag=True, help="Merge base and deltas into a new base, deletes applied.")
@click.option("--minor", is_flag=True, help="Merge deltas into one delta and one delete delta.")
@click.option("--auto", is_flag=True, help="What Hive's thresholds ask for, location by location.")
@click.option("-n", "--dry-run", is_flag=True, help="Show the plan and stop.")
@click.option(
    "--engine",
    type=click.Choice(["spark", "local"]),
    default="spark",
    show_default=True,
    help="Spark, or this process without Java.",
)
@click.option("--master", metavar="URL", help="Spark master; without it Spark runs on this machine (local[*]).")
@click.option("--conf", multiple=True, metavar="KEY=VALUE", help="A Spark setting. Repeatable.")
@click.option("--queue", metavar="NAME", help="YARN queue.")
@click.option(
    "--name", metavar="NAME", help="Name of the Spark application; without it <host>-compactor-<database>.<table>."
)
@click.option(
    "--offline", is_flag=True, help="Nothing reads the tables meanwhile: lets a minor compaction rename twice."
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
    type=click.Choice(["full-acid"]),
    help="The table is full ACID although only loaded files or originals show it.",
)
@click.option("--force", is_flag=True, help="Go on although a writer seems to be at work.")
@click.option(
    "--property",
    "properties",
    multiple=True,
    metavar="KEY=VALUE",
    help="A table property for --auto, e.g. compactorthreshold.hive.compactor.delta.num.threshold=4. Repeatable.",
)
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
    engine: str,
    master: str | None,
    conf: tuple[str, ...],
    queue: str | None,
    name: str | None,
    offline: bool,
    visibility_txn: int | None,
    assume_committed: bool,
    table_type: str | None,
    force: bool,
    properties: tuple[str, ...],
    exit_code: bool,
    lists: SnapshotLists,
    storage: dict[str, str],
    output: str,
) -> int:
    """Compact every location at or below LOCATION: one Spark session, one task a bucket.

    The inputs stay until `acidctl clean`. The result is written to a hidden directory, read back and compared, and
    appears by a rename; whatever fails before that leaves the table as it was.

    Without --write-ids everything on disk counts as committed: run it while nobody writes, or give Hive's list.
    """
    modes = [name for name, given in (("major", major), ("minor", minor), ("auto", auto)) if given]
    if len(modes) != 1:
        raise click.UsageError("Say which compaction: one of --major, --minor and --auto.")
    from acidctl.cli.locations import find

    table_properties = dict(_pair(item, "--property") for item in properties)
    wanted = _Wanted(modes[0], table_properties, visibility_txn or 0, table_type == "full-acid", force, dry_run)
    if assume_committed:
        lists = lists.assuming_committed()
    printer = _Printer(output, dry_run)
    plans: list[CompactionPlan] = []
    for found in find(locations, storage, lists, printer.cannot_list):
        plan = wanted.plan(found, lists, printer)
        if plan:
            plans.append(plan)
    if not dry_run and plans:
        runner = _engine(engine, master, conf, queue, name or _application_name(plans))
        _run(plans, runner, offline, printer)
    return printer.exit_status(exit_code)


def _pair(item: str, option: str) -> tuple[str, str]:
    key, equals, value = item.partition("=")
    if not key or not equals:
        raise click.BadParameter(f"{item!r} is not KEY=VALUE", param_hint=option)
    return key, value


@dataclass(frozen=True)
class _Wanted:
    """What was asked for, the same for every location."""

    mode: str
    properties: dict[str, str]
    visibility_txn: int
    is_full_acid: bool
    force: bool
    dry_run: bool

    def plan(self, found: Found, lists: SnapshotLists, printer: _Printer) -> CompactionPlan | None:
        """The plan of one location; None, and said why, when there is none."""
        import time

        from acidctl.compaction.plan import nothing_to_do, plan_compaction, refuse_unsafe
        from acidctl.errors import AcidctlError

        try:
            snapshot = self._finished(found, lists)
            kind, why = self._kind(snapshot)
            idle = why if kind is None else nothing_to_do(snapshot, kind)
            if kind is None or idle:
                printer.nothing(found.shown, idle or "")
                return None
            refuse_unsafe(snapshot, time.time(), force=self.force)
            staging = f"_tmp_{uuid.uuid4()}"
            plan = plan_compaction(
                snapshot, kind, staging, visibility_txn=self.visibility_txn, is_full_acid=self.is_full_acid
            )
        except AcidctlError as error:
            printer.failed(found.shown, error)
            return None
        printer.planned(found.shown, plan, why, snapshot)
        return plan

    def _finished(self, found: Found, lists: SnapshotLists) -> Snapshot:
        """The snapshot, after finishing a publication that was interrupted between its renames."""
        from acidctl.cli.output import note
        from acidctl.storage.publication import finish_half_published, refuse_half_published

        snapshot = found.snapshot(lists, compactor=True)
        if self.dry_run:
            refuse_half_published(snapshot)
            return snapshot
        finished = finish_half_published(snapshot)
        if not finished:
            return snapshot
        note(f"{found.shown}: finished an interrupted compaction: {', '.join(finished)}")
        return found.snapshot(lists, compactor=True)

    def _kind(self, snapshot: Snapshot) -> tuple[CompactionKind | None, str]:
        """The type of compaction and why; None for nothing."""
        from acidctl.acid.triggers import CompactionKind, Thresholds, is_auto_off
        from acidctl.compaction.plan import choose_kind

        if self.mode != "auto":
            return CompactionKind(self.mode), ""
        if is_auto_off(self.properties):
            return None, "no_auto_compaction is set"
        decision = choose_kind(snapshot, Thresholds().with_properties(self.properties))
        return decision.kind, decision.text


def _engine(engine: str, master: str | None, conf: Sequence[str], queue: str | None, name: str) -> Engine:
    from acidctl.compaction.run import run_here

    if engine == "local":
        if master or conf or queue:
            raise click.UsageError("--master, --conf and --queue are for --engine spark.")
        return run_here
    from acidctl.cli.output import note
    from acidctl.spark.engine import run_tasks
    from acidctl.spark.session import SparkOptions

    options = SparkOptions(master, tuple(_pair(item, "--conf") for item in conf), name, queue)

    def on_spark(
        tasks: Sequence[BucketTask], function: Callable[[BucketTask], BucketResult]
    ) -> Iterator[tuple[int, BucketResult | AcidctlError]]:
        return run_tasks(tasks, function, options, [task.weight for task in tasks], on_notice=note)

    return on_spark


def _application_name(plans: Sequence[CompactionPlan]) -> str:
    """Hive's own convention: ``<host>-compactor-<db>.<table>.<partition>``."""
    import socket

    parts = [part for part in plans[0].snapshot.path.split("/") if part][-3:]
    shown = ".".join(parts[-2:]) if len(plans) == 1 else f"{len(plans)}-locations"
    return f"{socket.gethostname()}-compactor-{shown}"


def _run(plans: Sequence[CompactionPlan], engine: Engine, offline: bool, printer: _Printer) -> None:
    from acidctl.compaction.run import compact

    # Closed at once when interrupted: that removes what was staged.
    with _progress(plans) as advance, closing(compact(plans, engine, offline=offline, on_bucket=advance)) as outcomes:
        for outcome in outcomes:
            printer.done(outcome)


@contextmanager
def _progress(plans: Sequence[CompactionPlan]) -> Iterator[Any]:
    """A bar over the input bytes, on standard error and only on a terminal."""
    import sys

    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    from acidctl.cli.output import human_count

    columns = (
        TextColumn("compacting {task.fields[buckets]}"),
        BarColumn(),
        DownloadColumn(binary_units=True),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        tasks = [task for plan in plans for task in plan.tasks]
        bar = progress.add_task("", total=sum(task.weight for task in tasks), buckets=human_count(len(tasks), "bucket"))

        def advance(task: BucketTask) -> None:
            progress.advance(bar, task.weight)

        yield advance


class _Printer:
    """One result a location, and the worst exit status of all."""

    def __init__(self, output: str, dry_run: bool) -> None:
        self._output = output
        self._dry_run = dry_run
        self._status = 0
        self._worked = False
        self._noted: set[str] = set()
        self._to_clean: list[str] = []

    def exit_status(self, idle_is_12: bool) -> int:
        from acidctl.cli.output import note
        from acidctl.errors import NothingToDo

        if self._to_clean:
            more = f" (and {len(self._to_clean) - 1} more)" if len(self._to_clean) > 1 else ""
            note(f"the inputs are obsolete now and stay until: acidctl clean {self._to_clean[0]}{more}")
        if self._status or self._worked or not idle_is_12:
            return self._status
        return NothingToDo.exit_status

    def nothing(self, location: str, why: str) -> None:
        record = {"location": location, "result": "nothing-to-do", "reason": why}
        self._put(record, f"{location}: nothing to do: {why}")

    def cannot_list(self, error: AcidctlError) -> None:
        """A directory of a tree cannot be listed; the others are gone on with."""
        self.failed("", error)

    def planned(self, location: str, plan: CompactionPlan, why: str, snapshot: Snapshot) -> None:
        from acidctl.cli.output import human_bytes, human_count, note

        for text in snapshot.state.notes:
            if text not in self._noted:
                self._noted.add(text)
                note(text)
        if not self._dry_run:
            return
        self._worked = True
        record = {
            "location": location,
            "result": "planned",
            "kind": plan.kind.value,
            "reason": why or "asked for",
            "inputs": list(plan.inputs),
            "outputs": list(plan.output_names),
            "buckets": len(plan.tasks),
            "inputBytes": plan.input_bytes,
        }
        inputs = human_count(len(plan.inputs), "input")
        because = f" ({why})" if why else ""
        text = (
            f"{location}: {plan.kind.value}{because}: {inputs}, {human_count(len(plan.tasks), 'bucket')}, "
            f"{human_bytes(plan.input_bytes)} -> {' + '.join(plan.output_names)}"
        )
        self._put(record, text)

    def done(self, outcome: Outcome) -> None:
        from acidctl.cli.output import human_bytes, human_count

        plan = outcome.plan
        location = plan.snapshot.fs.display(plan.snapshot.path)
        if outcome.error:
            self.failed(location, outcome.error)
            if outcome.staging_kept:
                from acidctl.cli.output import warn

                warn(f"the evidence is kept in {plan.snapshot.fs.display(outcome.staging_kept)}")
            return
        self._worked = True
        record = {
            "location": location,
            "result": "compacted",
            "kind": plan.kind.value,
            "inputs": list(plan.inputs),
            "outputs": list(outcome.published),
            "inputBytes": plan.input_bytes,
            "bytes": outcome.bytes,
            "rows": outcome.rows,
            "rowsDropped": outcome.rows_dropped,
            "stripesCopied": outcome.stripes[0],
            "stripesEncoded": outcome.stripes[1],
        }
        text = (
            f"{location}: {plan.kind.value}: {human_count(len(plan.inputs), 'input')} -> "
            f"{' + '.join(outcome.published)}, {human_bytes(plan.input_bytes)} -> {human_bytes(outcome.bytes)}, "
            f"{human_count(outcome.rows, 'row')}, {outcome.rows_dropped:,} dropped, "
            f"{human_count(outcome.stripes[0], 'stripe')} copied, {outcome.stripes[1]:,} encoded"
        )
        self._put(record, text)
        if self._output == "table":
            self._to_clean.append(location)

    def failed(self, location: str, error: Any) -> None:
        from acidctl.cli.failures import show_failure

        self._status = max(self._status, error.exit_status)
        if self._output != "table":
            record = {"location": location, "result": "failed", "error": error.code, "reason": str(error)}
            self._put(record, "")
        show_failure(location, error)

    def _put(self, record: dict[str, Any], text: str) -> None:
        from acidctl.cli.output import put_json, safe

        if self._output == "table":
            click.echo(safe(text))
        else:
            put_json({"schema_version": 1, **record}, lines=self._output == "jsonl")
