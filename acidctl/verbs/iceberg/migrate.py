"""Copy tables to Iceberg, keep the copies up to date, and prove that both have the same rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

from acidctl.base.errors import AcidctlError, UsageProblem
from acidctl.iceberg.catalogs.open_target import require_pyiceberg
from acidctl.location.arguments import HIVE, HiveName, is_hive_name
from acidctl.outcome import Result
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
    is_pattern = name is not None and name.is_pattern
    if TABLE in options.to and not is_pattern:
        if name is None:
            raise UsageProblem(f"{TABLE} in --to is for tables of a metastore", f"{place} is a path", "write the name")
        options = replace(options, to=options.to.replace(TABLE, name.table))
    if options.cut_over or options.back:
        yield from CutOver(selection, options, events).run()
        return
    if name is None or not is_pattern:
        yield from copy_table(selection, options, events)
        return
    if TABLE not in options.to:
        hint = f"write {TABLE} for the name of the table, as in iceberg:prod/sales.{TABLE}_ice"
        raise UsageProblem("--to names one Iceberg table for several", f"{place} is a pattern", hint)
    require_pyiceberg()
    from acidctl.iceberg.cut_over import is_cut_over

    warehouse = selection.resolver.require_warehouse(place)
    found = list(warehouse.tables(name))
    tables = [table.full_name for table in found if not is_cut_over(table)]
    if left := [table.full_name for table in found if is_cut_over(table)]:
        events.note(f"not copied again, because the copy has taken the name: {some_of(left)}")
    if events.shows_plans and not (options.dry_run or options.prove):
        due: list[str] = []
        for planned in _migrate_each(tables, selection, replace(options, dry_run=True), events):
            due += [planned.location] * (planned.result is Result.PLANNED or options.proof == "full")
            yield planned
        if not due:
            return
        what = human_count(len(due), "table")
        events.confirm(Question(f"{what} would be copied", f"Copy {what}?", "nothing was copied", tuple(due)))
        tables = [name.removeprefix(HIVE) for name in due]
    yield from _migrate_each(tables, selection, options, events)


def _migrate_each(
    tables: Sequence[str], selection: Selection, options: MigrateOptions, events: Events
) -> Iterator[Migrated]:
    """Yield the outcomes of tables of the metastore, named ``db.table``; without a question."""
    for name in tables:
        target = replace(options, to=options.to.replace(TABLE, name.partition(".")[2]))
        try:
            # Lists and a lock of its own: other tables take their time.
            with closing(selection.resolver.require_warehouse(name).refreshed()) as warehouse:
                resolver = replace(selection.resolver, warehouse=warehouse)
                one = replace(selection, places=(f"{HIVE}{name}",), resolver=resolver)
                yield from copy_table(one, target, events, asks=False)
        except AcidctlError as error:
            events.failed(f"{HIVE}{name}", error)
