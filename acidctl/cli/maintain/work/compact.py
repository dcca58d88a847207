"""What `acidctl compact` does: plan every location, show and ask where it must, and carry the plans out."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from acidctl.acid.assumption import Assumption
from acidctl.acid.layout import TableType
from acidctl.acid.triggers import NO_AUTO, Thresholds, is_auto_off
from acidctl.cli.maintain.work.compact_engine import EngineOptions, open_engine
from acidctl.cli.maintain.work.compact_results import Printer, working
from acidctl.cli.options.many_locations import TIME_IS_UP
from acidctl.cli.options.shared import can_ask, key_and_value, refuse_unused
from acidctl.cli.output.console import human_bytes, human_count, say
from acidctl.cli.output.strangers import Strangers
from acidctl.compaction.output_settings import Writing
from acidctl.compaction.proof.verify import Verify
from acidctl.compaction.request import CompactionRequest, Mode, Planned, carry_out, plan_location, refusal, within
from acidctl.errors import RefusedError
from acidctl.location.find import find, once
from acidctl.location.neighbours import Surroundings
from acidctl.orc.write.writer_settings import WriterSettings
from acidctl.wording import duration

if TYPE_CHECKING:
    from acidctl.cli.options.amounts import Window
    from acidctl.cli.options.engine import EngineChoice
    from acidctl.cli.report.run_report import RunReport
    from acidctl.location.lists import SnapshotLists
    from acidctl.location.lock import Locking

_DECIDING = ("compactorthreshold.", "hive.compactor.")
_SHOWN = 3


def work(
    *,
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
    """Compact as asked; the exit status."""
    mode = _mode(major, minor, auto)
    asks = not lists.is_told
    if asks:
        lists = _assuming(lists)
    if force and lists.assumption:
        lists = replace(lists, assumption=replace(lists.assumption, force=True))
    table_properties = dict(key_and_value(item, "--property") for item in properties)
    until, closed = _until(window, deadline)
    options = EngineOptions(engine, jobs, until)
    options.check()
    request = CompactionRequest(
        mode,
        _thresholds(table_properties, min_deltas, max_ratio),
        is_auto_off(table_properties),
        min_deltas or 0,
        visibility_txn or 0,
        TableType(table_type) if table_type else None,
        force,
        offline,
        dry_run,
        _writing(compression, stripe_size, row_index_stride, bloom_filter, task_bytes, verify),
        replace(locking, age=lists.age),
    )
    printer = Printer(output, run)
    planned: list[Planned] = []
    strangers = Strangers(lambda error: printer.failed("", error), printer.skipped)
    places = once(find(locations, storage, lists, strangers.observer, surroundings=Surroundings()))
    for found in strangers.changeable(places, request.table_type):
        if closed or _is_past(until):
            printer.postponed(found.shown, closed or TIME_IS_UP)
            continue
        answer = plan_location(found, lists, request)
        printer.answered(answer)
        if isinstance(answer, Planned):
            planned.append(answer)
    planned = _within(planned, max_bytes, printer)
    strangers.tell()
    if check_inputs:
        planned = _sound(planned, jobs, printer)
    if dry_run:
        planned = _that_would_run(planned, request, printer)
    if dry_run or asks:
        for one in planned:
            printer.put(one, is_last=dry_run)
    if planned and not dry_run:
        if asks:
            _agree(planned)
        _carry_out(planned, request, options, printer)
    return printer.exit_status(exit_code)


def _mode(major: bool, minor: bool, auto: bool) -> Mode:
    modes = [mode for mode, given in ((Mode.MAJOR, major), (Mode.MINOR, minor), (Mode.AUTO, auto)) if given]
    if len(modes) != 1:
        raise click.UsageError("Say which compaction: one of --major, --minor and --auto.")
    if not auto:
        refuse_unused(f"--{modes[0]}", "properties", "max_ratio")  # they are for the decision
    return modes[0]


def _sound(planned: Sequence[Planned], jobs: int | None, printer: Printer) -> list[Planned]:
    """Those in whose inputs `acidctl validate --deep` finds no error."""
    from acidctl.cli.maintain.work.check_inputs import sound  # noqa: PLC0415 - only for --check-inputs

    return list(sound(planned, jobs, printer))


def _that_would_run(planned: Sequence[Planned], request: CompactionRequest, printer: Printer) -> list[Planned]:
    """What the run itself would refuse is refused by its dry run."""
    would = []
    for one in planned:
        if error := refusal(one, request):
            printer.failed(one.location, error)
        else:
            would.append(one)
    return would


def _assuming(lists: SnapshotLists) -> SnapshotLists:
    """What is asked about, where nobody said which write ids are committed.

    Raises:
        RefusedError: nobody can be asked.
    """
    if not can_ask():
        raise RefusedError(
            "compact must be told which write ids are committed",
            "no list of Hive's was given, and there is no terminal to ask at",
            "give --write-ids or --write-ids-from, or --assume-committed[=AGE] if all older than AGE (1h) is committed",
        )
    return lists.assuming(Assumption(0))


def _agree(planned: Sequence[Planned]) -> None:
    """Ask whether everything on disk is committed.

    Raises:
        RefusedError: the answer is no.
    """
    say("", "No list of Hive's write ids was given, so everything on disk would count as committed:")
    for one in planned[:_SHOWN]:
        newest = one.plan.snapshot.assumed and one.plan.snapshot.assumed.newest
        ago = duration(max(0.0, time.time() - newest[1])) if newest else ""
        when = f", the last of it written {ago} ago: {newest[0]}" if newest else ""
        say("", f"  {one.location}: up to write id {max(0, one.plan.max_write_id)}{when}")
    if len(planned) > _SHOWN:
        say("", f"  and {human_count(len(planned) - _SHOWN, 'more location')}")
    say(
        "", "Rows of a transaction that was aborted would be there for good, and what an open one writes would be lost."
    )
    if not click.confirm(f"Compact {human_count(len(planned), 'location')}?", err=True):
        raise RefusedError(
            "nothing was compacted", "it was not confirmed", "give --write-ids, or --assume-committed=AGE"
        )


def _until(window: Window | None, deadline: float | None) -> tuple[float | None, str]:
    """When to end, by ``time.monotonic()``; and why nothing may be done now, if so."""
    ends = [] if deadline is None else [deadline]
    if window is not None:
        now = datetime.now()
        left = window.seconds_left(now)
        if left is None:
            return None, f"outside the window {window} (it is {now:%H:%M})"
        ends.append(left)
    return (time.monotonic() + min(ends) if ends else None), ""


def _is_past(until: float | None) -> bool:
    return until is not None and time.monotonic() >= until


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


def _writing(
    compression: str | None,
    stripe_size: int | None,
    stride: int | None,
    bloom_filter: str | None,
    task_bytes: int,
    verify: str,
) -> Writing:
    bloom = tuple(column.strip() for column in (bloom_filter or "").split(",") if column.strip())
    if bloom_filter is not None and not bloom:
        raise click.UsageError("--bloom-filter names no column.")
    given = {"compression": compression, "stripe_size": stripe_size, "stride": stride, "bloom_columns": bloom or None}
    overrides: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    WriterSettings(**overrides)  # says what cannot be written before anything is planned
    return Writing(overrides, task_bytes, verify=Verify(verify))


def _within(planned: list[Planned], budget: int | None, printer: Printer) -> list[Planned]:
    """As many as the budget of input bytes allows."""
    if budget is None:
        return planned
    chosen, left = within(planned, budget)
    for one in left:
        printer.postponed(one.location, f"{human_bytes(one.plan.input_bytes)} are more than is left of --max-bytes")
    return chosen


def _carry_out(
    planned: Sequence[Planned], request: CompactionRequest, options: EngineOptions, printer: Printer
) -> None:
    with (
        working([one.plan for one in planned]) as bar,
        open_engine(options, [one.plan for one in planned], bar.bytes) as engine,
        # Closed at once when interrupted: that removes what was staged.
        closing(carry_out(planned, request, engine, bar.ended)) as outcomes,
    ):
        for outcome in outcomes:
            if outcome.error:
                for task in outcome.plan.tasks:  # of a location that somebody else holds none has begun
                    bar.ended(task)
            printer.done(outcome)
