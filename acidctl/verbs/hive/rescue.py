"""Find where a metastore disagrees with the files of its tables, show a plan, and mend it after a yes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from acidctl.base.errors import ConflictError, UsageProblem, unexpected
from acidctl.outcome import Outcome, Result
from acidctl.verbs.options import Kind, LockOptions, Options, group, option

if TYPE_CHECKING:
    from acidctl.metastore.client import Metastore
    from acidctl.verbs.events import Events
    from acidctl.verbs.hive.service import Tables


@dataclass(frozen=True, kw_only=True)
class RescueOptions(Options):
    """The options of `acidctl hive rescue`."""

    aborted: str = option(
        "",
        "--aborted",
        metavar="IDS",
        typed=True,
        help="Write ids whose transactions were aborted, 4,9-12: their rows are never read. Of one table.",
    )
    aside: str = option(
        "",
        "--aside",
        metavar="IDS",
        typed=True,
        help="Write ids, or directories as the plan names them, to take aside: acidctl restore brings them back. Of "
        "one table.",
    )
    dry_run: bool = option(False, "-n", "--dry-run", help="Show what disagrees and the plan, and stop.")
    plan: str | None = option(
        None, "--plan", kind=Kind.NEW_FILE, typed=True, help="Save the plan for --apply, and stop."
    )
    apply: str | None = option(
        None, "--apply", kind=Kind.FILE, typed=True, help="Carry out the plan of FILE if nothing has changed since."
    )
    wait: float = option(60.0, "--wait", help="Wait this long for writers, and for the locks of the tables.")
    locks: LockOptions = group(LockOptions)


def rescue(metastore: Metastore, tables: Tables, options: RescueOptions, events: Events) -> Iterator[Outcome]:
    """Yield what disagrees and the plan of every table; then, after a yes, each table as it was mended.

    Raises:
        UsageProblem: ids are given for several tables, or cannot be aborted or taken aside; or the metastore is that of
            Hive 2.
        ConflictError: a table is being written to, or changed since it was planned.
        RefusedError: it was not confirmed.
    """
    from acidctl.rescue.carry_out import How, carry_out
    from acidctl.rescue.plan import RescuePlan
    from acidctl.rescue.saved import write_plans
    from acidctl.verbs.events import Question

    if not metastore.features.write_ids:
        why = "the metastore of Hive 2 numbers writes by its transactions"
        raise UsageProblem("there are no write ids to give", why, "upgrade it to Hive 3 or 4 first")
    due: list[RescuePlan] = []
    is_last = options.dry_run or options.plan is not None
    for outcome in _plans(metastore, tables, options):
        if isinstance(outcome, RescuePlan):
            due += [outcome] * outcome.has_work
            yield replace(outcome, only_looked=is_last)
        else:
            yield outcome
    if options.plan is not None:
        write_plans(options.plan, due)
        events.note(f"saved {len(due)}: {events.line_for(('hive', 'rescue'), [f'--apply={options.plan}'])}")
    if is_last or not due:
        return
    count, names = f"{len(due)} table{'s' if len(due) > 1 else ''}", tuple(plan.location for plan in due)
    text = f"Nobody writes, and this plan is right: rescue {count}?"
    events.confirm(Question(f"{count} would be rescued", text, "nothing was changed", names, is_for_good=True))
    yield from carry_out(metastore, due, How(options.wait, options.locks.locking(events.warn)))


def _plans(metastore: Metastore, tables: Tables, options: RescueOptions) -> Iterator[Outcome]:
    """Yield the plan of each table, or the error that came instead."""
    from acidctl.location.arguments import HiveName
    from acidctl.location.warehouse import Warehouse
    from acidctl.rescue.look import Place, look_twice, rows_of
    from acidctl.rescue.plan import Wishes, plan_rescue
    from acidctl.rescue.saved import read_plans

    wishes = Wishes.of(options.aborted, options.aside)
    saved = {one.name: one for one in read_plans(options.apply)} if options.apply is not None else {}
    if options.apply is not None and wishes != Wishes():
        raise UsageProblem("--apply says what happens to each id", "", "leave out --aborted and --aside, or plan again")
    warehouse = Warehouse(metastore, tables.exclude)
    names = tables.names if options.apply is None else saved
    found = {t.full_name: t for name in names for t in warehouse.tables(HiveName.parse(name))}
    if wishes != Wishes() and len(found) != 1:
        raise UsageProblem("write ids are those of one table", f"{len(found)} are named", "name one table")
    for full_name, table in found.items():
        location = f"hive:{full_name}"
        try:
            place = Place.of(table, tables.storage)
            wanted = saved[location].wishes if location in saved else wishes
            plan = plan_rescue(place, look_twice(metastore, place), wanted)
            if saved and (location not in saved or plan.digest != saved[location].digest):
                why = "directories, or the ids that were given, are not those of the plan"
                raise ConflictError(f"{location} changed since it was planned", why, "plan again")
            paths = [
                folder.path(d.name)
                for folder in plan.look.folders
                for d in folder.directories
                if plan.raise_to >= d.max_write_id > plan.given
            ]
            yield replace(plan, rows=rows_of(place, paths))
        except UsageProblem:
            raise
        except Exception as error:  # noqa: BLE001 - the other tables go on
            problem = unexpected(error, f"while {location} was looked at")
            yield Outcome(location=location, result=Result.FAILED, error=problem)
