"""Copy tables to Iceberg, keep the copies up to date, and prove that both have the same rows."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import closing, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

from acidctl.base.deadline import Deadline
from acidctl.base.errors import AcidctlError, UsageProblem
from acidctl.iceberg.catalogs.open_target import require_pyiceberg
from acidctl.location.arguments import HIVE, HiveName, is_hive_name
from acidctl.outcome import TIME_IS_UP, Result
from acidctl.verbs.events import Events, Question
from acidctl.verbs.iceberg.copying import copy_table
from acidctl.verbs.iceberg.cut_over import CutOver
from acidctl.verbs.iceberg.options import Migrated, MigrateOptions
from acidctl.wording import human_count, some_of

if TYPE_CHECKING:
    from acidctl.verbs.selection import Selection

TABLE = "{table}"
"""The part of a target that stands for the name of the Hive table."""


def migrate(selection: Selection, options: MigrateOptions, events: Events) -> Iterator[Migrated]:
    """Yield the plans of copies if it is a dry run or has to be confirmed, then what was copied.

    If the place is a pattern, ``hive:sales.*``, a table that fails is reported to `events`, and the next one follows.

    Raises:
        UsageProblem: the target cannot be used in this way, or is one table for several.
        AcidctlError: the only table that was named cannot be copied; see :func:`copy_table`.
    """
    place = selection.places[0]
    name = HiveName.parse(place) if is_hive_name(place) else None
    if options.discard_snapshots and not options.back:
        raise UsageProblem("--discard-snapshots is only for --back", "", "leave it out")
    if name is None and TABLE in options.to:
        raise UsageProblem(f"--to has {TABLE}, and {place} is a path", "", "write the name of the target out")
    if name and not name.is_pattern:
        options = replace(options, to=options.to.replace(TABLE, name.table))
    if options.cut_over or options.back:
        yield from CutOver(selection, options, events).run()
        return
    is_pattern = name is not None and name.is_pattern
    if is_pattern and TABLE not in options.to:
        hint = f"write {TABLE} for the name of the table, as in iceberg:prod/sales.{TABLE}_ice"
        raise UsageProblem("--to names one Iceberg table for several", f"{place} is a pattern", hint)
    if options.every is not None:
        yield from _repeated(selection, options, events)
        return
    if not is_pattern:
        yield from copy_table(selection, options, events)
        return
    places, left = _places(selection)
    if left:
        events.note(f"not copied again, because the copy has taken the name: {some_of(left)}")
    until = Deadline.after(options.deadline)
    if events.shows_plans and not (options.dry_run or options.prove):
        due: list[str] = []
        for planned in _migrate_each(places, selection, replace(options, dry_run=True), events, until):
            due += [planned.location] * (planned.result is Result.PLANNED or options.proof == "full")
            yield planned
        if not due:
            return
        what = human_count(len(due), "table")
        events.confirm(Question(f"{what} would be copied", f"Copy {what}?", "nothing was copied", tuple(due)))
        places = due
    yield from _migrate_each(places, selection, options, events, until)


def _repeated(selection: Selection, options: MigrateOptions, events: Events) -> Iterator[Migrated]:
    """Yield what catch-ups copied, until a KeyboardInterrupt comes between two of them.

    What fails is reported to `events`, and tried again in the next round.

    Raises:
        UsageProblem: the options are not those of catch-ups.
        RefusedError: it was not confirmed.
    """
    every, place = options.every or 0.0, selection.places[0]
    if not options.catch_up or options.dry_run or options.prove or every < 1:
        raise UsageProblem(
            "--every repeats --catch-up", "", "give both, a time of 1s or more, and no --dry-run or --prove"
        )
    what = f"{place} would be caught up with every {every:g} s"
    events.confirm(Question(what, f"Catch up with {place} every {every:g} s?", "nothing was copied", (place,)))
    while True:
        start = time.monotonic()
        try:
            outcomes = _migrate_each(_places(selection)[0], selection, replace(options, every=None), events)
            yield from (outcome for outcome in outcomes if outcome.result is not Result.NOTHING_TO_DO)
        except AcidctlError as error:  # the tables cannot be listed
            events.failed(place, error)
        try:
            _pause(max(start + every - time.monotonic(), 0.0))
        except KeyboardInterrupt:
            return


def _pause(seconds: float) -> None:
    time.sleep(seconds)


def _places(selection: Selection) -> tuple[list[str], list[str]]:
    """Return the place, or the tables that it means if it is a pattern; and those that were cut over.

    Raises:
        NotFoundError: there are none.
        EnvironmentProblem: PyIceberg is not installed.
    """
    place = selection.places[0]
    if not is_hive_name(place) or not HiveName.parse(place).is_pattern:
        return [place], []
    require_pyiceberg()
    from acidctl.iceberg.cut_over import is_cut_over

    found: dict[bool, list[str]] = {False: [], True: []}
    for table in selection.resolver.require_warehouse(place).tables(HiveName.parse(place)):
        found[is_cut_over(table)].append(f"{HIVE}{table.full_name}")
    return found[False], found[True]


def _migrate_each(
    places: Sequence[str],
    selection: Selection,
    options: MigrateOptions,
    events: Events,
    until: Deadline | None = None,
) -> Iterator[Migrated]:
    """Yield the outcomes of tables, without a question; what fails is reported to `events`.

    First copies that a run before has made are left out, so that the same line goes on after it.
    """
    from acidctl.iceberg.request import CopyExists

    copied: list[str] = []
    for place in places:
        if until and until.is_over and not options.dry_run:
            yield Migrated(
                location=place,
                result=Result.POSTPONED,
                reasons=(TIME_IS_UP,),
                target=options.to,
                encoded={},
                columns={},
            )
            continue
        table = HiveName.parse(place).table if is_hive_name(place) else ""
        target = replace(options, to=options.to.replace(TABLE, table))
        resolver = selection.resolver.refreshed()  # lists and a lock of its own: other tables take their time
        try:
            with closing(resolver.warehouse) if resolver.warehouse else nullcontext():
                one = replace(selection, places=(place,), resolver=resolver)
                yield from copy_table(one, target, events, asks=False)
        except CopyExists:
            copied.append(place)
        except AcidctlError as error:
            events.failed(place, error)
    if copied:
        events.note(f"copied before: {some_of(copied)}; --catch-up brings what was copied up to date")
