"""What `acidctl compact` does and says: plan every location, show and ask where it must, and carry the plans out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

import click

from acidctl.acid.assumption import Assumption
from acidctl.acid.compaction_kind import Hive
from acidctl.acid.listing import TableType
from acidctl.acid.reasons import Code, Reason, reason
from acidctl.acid.triggers import NO_AUTO, Thresholds, is_auto_off
from acidctl.cli.options.engine_choice import EngineChoice
from acidctl.cli.options.key_value import key_and_value
from acidctl.cli.options.many_locations import Procedure
from acidctl.cli.options.param_types import DailyWindow
from acidctl.cli.options.shared import other_line, refuse_unused
from acidctl.cli.output.console import can_ask, note, say, warn
from acidctl.cli.output.progress import Bar, progress
from acidctl.cli.report.asking import to_be_typed
from acidctl.cli.report.compaction_text import compaction_counts, compaction_kind, compaction_text
from acidctl.cli.report.folding import MANY
from acidctl.cli.report.outcomes import Outcomes
from acidctl.cli.report.run_report import RunReport
from acidctl.compaction.local_engine import LocalEngine
from acidctl.compaction.output_settings import Writing
from acidctl.compaction.proof.verify import Verify
from acidctl.compaction.request import (
    PORTION,
    Answer,
    CompactionRequest,
    Mode,
    Planned,
    Refused,
    Waiting,
    of_changed_tables,
    plan_location,
    refused_before_work,
    within_budget,
)
from acidctl.compaction.run import Compacted, Engine
from acidctl.compaction.tasks import BucketTask, JoinTask, Task
from acidctl.deadline import Deadline
from acidctl.errors import RefusedError
from acidctl.hive.compacting import compact_locations
from acidctl.location.change.lock import Locking
from acidctl.location.find import Found, find, once, refuse_unusable
from acidctl.location.lists import SnapshotLists
from acidctl.location.neighbours import Surroundings
from acidctl.night.night import portions
from acidctl.orc.write.writer_settings import WriterSettings
from acidctl.outcome import TIME_IS_UP, Outcome
from acidctl.storage.port import FileSystemSpec
from acidctl.wording import duration, human_count, text_of

_DECIDING = ("compactorthreshold.", "hive.compactor.")
_SHOWN = 3


def work(
    *,
    locations: tuple[str, ...],
    major: bool,
    minor: bool,
    rebalance: bool,
    auto: bool,
    buckets: int | None,
    order_by: str | None,
    dry_run: bool,
    offline: bool,
    visibility_txn: int | None,
    table_type: TableType | None,
    force: bool,
    properties: tuple[str, ...],
    min_deltas: int | None,
    max_ratio: float | None,
    window: DailyWindow | None,
    deadline: float | None,
    max_bytes: int | None,
    engine: EngineChoice,
    jobs: int | None,
    task_bytes: int | None,
    reader: str | None,
    apply_all_deletes: bool,
    verify: str,
    check_inputs: bool,
    compression: str | None,
    stripe_size: int | None,
    row_index_stride: int | None,
    bloom_filter: str | None,
    locking: Locking,
    take_over: bool,
    wait: float | None,
    exit_code: bool,
    lists: SnapshotLists,
    storage: dict[str, str],
    output: str,
    run: RunReport,
) -> int:
    """Compact as asked; the exit status."""
    mode = _mode(major, minor, rebalance, auto)
    asks = not lists.is_told
    if asks:
        lists = _assuming(lists)
    if force and lists.assumption:
        lists = replace(lists, assumption=replace(lists.assumption, force=True))
    table_properties = dict(key_and_value(item, "--property") for item in properties)
    until, closed = end_of_work(window, deadline)
    lists.end_by(until)
    engine.check("--jobs", jobs)
    request = CompactionRequest(
        mode,
        _thresholds(table_properties, min_deltas, max_ratio),
        is_auto_off(table_properties),
        min_deltas or 0,
        visibility_txn or 0,
        table_type,
        force,
        offline,
        dry_run,
        take_over=take_over,
        wait=wait or 0.0,
        writing=replace(
            writing_of(compression, stripe_size, row_index_stride, bloom_filter, task_bytes, verify, reader),
            apply_all_deletes=apply_all_deletes,
        ),
        locking=replace(locking, age=lists.age),
        buckets=buckets or 0,
        order_by=order_by or "",
    )
    printer, around = CompactionPrinter(output, run), Surroundings()
    refuse_unusable(locations, storage, lists, request.table_type, surroundings=around)
    check = None
    if check_inputs:
        from acidctl.cli.maintain.work.check_inputs import sound  # noqa: PLC0415 - only for --check-inputs

        check = partial(sound, jobs=jobs, printer=printer)
    # What is good for one table alone is known to be so when all locations were met.
    is_held = asks or max_bytes is not None or table_type is not None or lists.is_of_one_table
    with closing(_Portions(lists, request, printer, _Engines(engine, jobs, until, lists), check)) as doing:
        waiting: list[Waiting] = []
        places = once(find(locations, storage, lists, printer.observer, surroundings=around))
        for found in printer.changeable(places, request.table_type):
            if closed or until.is_over:
                printer.postponed(found.shown, closed or TIME_IS_UP)
                continue
            answer = plan_location(found, lists, request, is_table_checked=False)
            printer.answered(answer)
            if isinstance(answer, Planned):
                printer.hive_names[answer.location] = found.hive_name
                waiting.append(Waiting.of(found, answer, is_kept=len(waiting) < PORTION))
            if len(waiting) == PORTION and not is_held:
                doing.carry_out(waiting, is_last=False)
                waiting = []
        if max_bytes is not None:
            waiting, left = within_budget(sorted(waiting, key=lambda one: one.rank), max_bytes)
            for one in left:
                printer.postponed(one.location, reason(Code.BUDGET_IS_USED, bytes=one.input_bytes))
        printer.looked_through()
        printer.tell_strangers()
        if asks and not dry_run:
            waiting = doing.shown(waiting)
            if waiting:
                _agree(waiting)
        doing.carry_out(waiting, is_last=True)
    return printer.exit_status(exit_code)


def _mode(major: bool, minor: bool, rebalance: bool, auto: bool) -> Mode:
    all_modes = (Mode.MAJOR, major), (Mode.MINOR, minor), (Mode.REBALANCE, rebalance), (Mode.AUTO, auto)
    modes = [mode for mode, given in all_modes if given]
    if len(modes) != 1:
        raise click.UsageError("Say which compaction: one of --major, --minor, --rebalance and --auto.")
    unused = [] if auto else ["properties", "max_ratio"]  # they are for the decision
    unused += ["apply_all_deletes"] if minor else []
    refuse_unused(f"--{modes[0]}", *unused, *([] if rebalance else ["buckets", "order_by"]))
    return modes[0]


def _assuming(lists: SnapshotLists) -> SnapshotLists:
    """What is asked about, where nobody said which write ids are committed.

    Raises:
        RefusedError: nobody can be asked.
    """
    if not can_ask():
        raise RefusedError(
            "compact must be told which write ids are committed",
            "no list of Hive's was given, and there is no terminal to ask at",
            "name the metastore, --metastore URI or uris below [metastore] of the configuration; or give --write-ids, "
            "--write-ids-from, or --assume-committed 1h if all that is older is committed",
        )
    return lists.assuming(Assumption(0))


def _agree(waiting: Sequence[Waiting]) -> None:
    """Ask whether everything on disk is committed.

    Raises:
        RefusedError: the answer is no.
    """
    say("", "No list of Hive's write ids was given, so everything on disk would count as committed:")
    for plan in [one.planned.plan for one in waiting if one.planned][:_SHOWN]:
        newest = plan.snapshot.assumed and plan.snapshot.assumed.newest
        ago = duration(max(0.0, time.time() - newest[1])) if newest else ""
        when = f", the last of it written {ago} ago: {newest[0]}" if newest else ""
        say("", f"  {plan.shown}: up to write id {max(0, plan.max_write_id)}{when}")
    if len(waiting) > _SHOWN:
        say("", f"  and {human_count(len(waiting) - _SHOWN, 'more location')}")
    say(
        "", "Rows of a transaction that was aborted would be there for good, and what an open one writes would be lost."
    )
    count = human_count(len(waiting), "location")
    Procedure().confirm(
        f"{count} would be compacted",
        f"Compact {count}?",
        "nothing was compacted",
        severe=to_be_typed(one.location for one in waiting),
        instead="give --write-ids, or --assume-committed=AGE",
    )


def end_of_work(window: DailyWindow | None, deadline: float | None) -> tuple[Deadline, Reason | None]:
    """When to end; and why nothing may be done now, if so."""
    ends = [] if deadline is None else [deadline]
    if window is not None:
        now = datetime.now()
        left = window.seconds_left(now)
        if left is None:
            return Deadline(), reason(Code.OUT_OF_HOURS, window=str(window), now=f"{now:%H:%M}")
        ends.append(left)
    return (Deadline(time.monotonic() + min(ends)) if ends else Deadline()), None


def _thresholds(properties: dict[str, str], min_deltas: int | None, max_ratio: float | None) -> Thresholds:
    unknown = [key for key in properties if not (key in NO_AUTO or key.startswith(_DECIDING))]
    if unknown:
        raise click.UsageError(
            f"--property {unknown[0]} decides nothing: known are compactorthreshold.<key> and {NO_AUTO[0]}."
        )
    limits = Thresholds().with_properties(properties)
    if min_deltas is not None:
        limits = replace(limits, delta_count=min_deltas - 1)
    return limits if max_ratio is None else replace(limits, delta_ratio=max_ratio)


def writing_of(
    compression: str | None,
    stripe_size: int | None,
    stride: int | None,
    bloom_filter: str | None,
    task_bytes: int | None,
    verify: str,
    reader: str | None,
) -> Writing:
    bloom = tuple(column.strip() for column in (bloom_filter or "").split(",") if column.strip())
    if bloom_filter is not None and not bloom:
        raise click.UsageError("--bloom-filter names no column.")
    given = {"compression": compression, "stripe_size": stripe_size, "stride": stride, "bloom_columns": bloom or None}
    overrides: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    WriterSettings(**overrides)  # says what cannot be written before anything is planned
    return Writing(overrides, task_bytes, verify=Verify(verify), reader=Hive(reader) if reader else None)


@contextmanager
def open_engine(
    choice: EngineChoice, jobs: int | None, until: Deadline, waiting: Sequence[Waiting]
) -> Iterator[tuple[Working, Engine]]:
    """Where tasks run, on Spark or in processes of this machine, and what shows how far they are.

    Args:
        until: when what still runs is ended.
        waiting: what is done there; more may follow.
    """
    with working(waiting) as bar:
        if choice.kind == "local":
            yield bar, LocalEngine(jobs, until, bar.bytes)
            return
        from acidctl.spark.compaction_engine import application_name, spark_engine  # noqa: PLC0415 - py4j, PySpark

        paths = [one.found.location.path for one in waiting]
        wanted = choice.spark(application_name(paths), [one.found.fs.spec for one in waiting])
        with spark_engine(wanted, until, note) as engine:
            yield bar, engine


class _Engines:
    """One engine for all portions; a new one if a portion needs another YARN queue or other stores."""

    def __init__(self, choice: EngineChoice, jobs: int | None, until: Deadline, lists: SnapshotLists) -> None:
        self._choice, self._jobs, self._until, self._lists = choice, jobs, until, lists
        self._open = ExitStack()
        self._of: tuple[EngineChoice, frozenset[FileSystemSpec]] | None = None
        self._running: tuple[Working, Engine] | None = None

    def of(self, waiting: Sequence[Waiting]) -> tuple[Working, Engine]:
        """The engine for a portion, opened when the first one comes."""
        choice = self._choice.in_queue_of([self._lists.wishes_of(one.found.hive).queue for one in waiting])
        stores = frozenset(one.found.fs.spec for one in waiting)
        if self._running and self._of and self._of[0] == choice and stores <= self._of[1]:
            self._running[0].begin(waiting)
            return self._running
        self.close()
        self._running = self._open.enter_context(open_engine(choice, self._jobs, self._until, waiting))
        self._of = choice, stores
        return self._running

    def close(self) -> None:
        """End what runs."""
        self._running = None
        self._open.close()


Check = Callable[[Sequence[Planned]], Iterable[Planned]]


class _Portions:
    """Carries out plans a few hundred at a time, so that no more listings are in memory."""

    def __init__(
        self,
        lists: SnapshotLists,
        request: CompactionRequest,
        printer: CompactionPrinter,
        engines: _Engines,
        check: Check | None,
    ) -> None:
        self._lists, self._request, self._printer = lists, request, printer
        self._engines, self._check = engines, check

    def shown(self, waiting: Sequence[Waiting]) -> list[Waiting]:
        """Show all plans before any is carried out, and return the locations that still have one."""
        left: list[Waiting] = []
        for some in portions(waiting, PORTION):
            for one, planned in self._ready(some):
                self._printer.put(planned, is_last=self._request.changes_nothing)
                left.append(one)
        self._check = None
        self._printer.tell()
        return left

    def carry_out(self, waiting: Sequence[Waiting], *, is_last: bool) -> None:
        """Carry out the plans, or only show them in a dry run."""
        if self._request.changes_nothing:
            self.shown(waiting)
            return
        self._printer.tell(len(waiting) if is_last else MANY)
        for some in portions(waiting, PORTION):
            if ready := self._ready(some):
                bar, engine = self._engines.of([one for one, _ in ready])
                pairs = [(one.found.afresh(), planned) for one, planned in ready]
                _carry_out(pairs, self._lists, self._request, engine, bar, self._printer)

    def _ready(self, waiting: Sequence[Waiting]) -> list[tuple[Waiting, Planned]]:
        """The plans, made again if they were not kept; the other locations are printed with the reason."""
        ready: list[tuple[Waiting, Planned]] = []
        for one in waiting:
            answer = one.planned or plan_location(
                one.found.afresh(), self._lists, self._request, is_table_checked=False
            )
            if isinstance(answer, Planned):
                ready.append((one, answer))
            else:
                self._printer.answered(answer)
        planned = [planned for _, planned in ready]
        changed = of_changed_tables([(one.found, planned) for one, planned in ready], self._lists)
        planned = self._printer.that_are_the_same(planned, changed)
        if self._check:
            planned = list(self._check(planned))
        if self._request.changes_nothing:
            planned = self._printer.that_would_run(planned, self._request)
        kept = {one.location for one in planned}
        return [(one, planned) for one, planned in ready if one.location in kept]

    def close(self) -> None:
        """End the engines."""
        self._engines.close()


def _carry_out(
    planned: Sequence[tuple[Found, Planned]],
    lists: SnapshotLists,
    request: CompactionRequest,
    engine: Engine,
    bar: Working,
    printer: CompactionPrinter,
) -> None:
    # Closed at once when interrupted: that removes what was staged.
    with closing(compact_locations(planned, lists, request, engine, bar.ended)) as outcomes:
        for outcome in outcomes:
            if not isinstance(outcome, Compacted):
                printer.answered(outcome)
                continue
            if outcome.error:
                for task in outcome.plan.tasks:  # of a location that somebody else holds none has begun
                    bar.ended(task)
            printer.done(outcome)


# --- what it says ---


class Working:
    """How far the tasks of a compaction are, in bytes of their inputs: what is told while they run, and the rest of it
    at their end; on a cluster all of it then.
    """

    def __init__(self, bar: Bar) -> None:
        self._bar = bar
        self._told: dict[int, int] = {}

    def begin(self, waiting: Sequence[Waiting]) -> None:
        """Start on further locations, after all earlier ones have ended."""
        self._told.clear()
        self._bar.grow(sum(one.weight for one in waiting))

    def bytes(self, task: Task, count: int) -> None:
        """So many more of one task are done."""
        is_new = isinstance(task, JoinTask) or (isinstance(task, BucketTask) and task.is_spread)
        if id(task) not in self._told and is_new:  # which nobody knew of before
            self._bar.grow(task.weight)
        told = self._told.get(id(task), 0)
        count = min(count, task.weight - told)
        self._told[id(task)] = told + count
        self._bar.advance(count)

    def ended(self, task: Task) -> None:
        """All of its bytes."""
        self.bytes(task, task.weight)


@contextmanager
def working(waiting: Sequence[Waiting]) -> Iterator[Working]:
    """A bar over the input bytes, on standard error and only on a terminal."""
    doing = f"compacting {human_count(sum(one.tasks for one in waiting), 'bucket')}"
    with progress(doing, sum(one.weight for one in waiting), is_bytes=True) as bar:
        yield Working(bar)


class CompactionPrinter(Outcomes):
    """Outcomes of compactions.

    Attributes:
        hive_names: the names that a metastore has for locations, by their paths; empty where none knows them.
    """

    def __init__(self, output: str, run: RunReport) -> None:
        super().__init__(output, run, compaction_text, compaction_counts)
        self._to_clean: list[str] = []
        self.hive_names: dict[str, str] = {}
        self._noted: set[str] = set()

    def answered(self, answer: Answer) -> None:
        """What planning said of a location; plans that are to be shown are shown later."""
        if answer.finished:
            note(f"{answer.location}: finished an interrupted compaction: {', '.join(answer.finished)}")
        if answer.snapshot:
            self.run.saw(answer.snapshot)
            for text in map(text_of, answer.snapshot.state.notes):
                if text not in self._noted:
                    note(text)
                self._noted.add(text)
        if not isinstance(answer, Planned):
            self.put(answer)

    def that_are_the_same(self, planned: Sequence[Planned], changed: Sequence[Refused]) -> list[Planned]:
        """Those whose table is still the one that was listed."""
        for refused in changed:
            self.put(refused)
        gone = {one.location for one in changed}
        return [one for one in planned if one.location not in gone]

    def that_would_run(self, planned: Sequence[Planned], request: CompactionRequest) -> list[Planned]:
        """What the run itself would refuse is refused by its dry run."""
        errors = [(one, refused_before_work(one, request)) for one in planned]
        for one, error in errors:
            if error:
                self.failed(one.location, error)
        return [one for one, error in errors if not error]

    def done(self, outcome: Compacted) -> None:
        """A plan was carried out, or not."""
        self.put(outcome)
        if outcome.staging_kept:
            warn(f"the evidence is kept in {outcome.plan.snapshot.fs.display(outcome.staging_kept)}")
        if outcome.is_changed and self.is_table:
            at = outcome.location
            self._to_clean.append(other_line("clean", path=at, hive_name=self.hive_names.get(at, "")))

    def kind_of(self, outcome: Outcome) -> str:
        return compaction_kind(outcome) or super().kind_of(outcome)

    def exit_status(self, speaks: bool) -> int:
        """Of the whole run, after a word on what to do next."""
        self.tell()
        if self._to_clean:
            more = f" (and {len(self._to_clean) - 1} more)" if len(self._to_clean) > 1 else ""
            note(f"the inputs are obsolete now and stay until: {self._to_clean[0]}{more}")
        return super().exit_status(speaks)
