"""The change of names at the end of a migration, and the way back."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

from acidctl.base.errors import AcidctlError, ConflictError, NotFoundError, RefusedError, UsageProblem
from acidctl.location.arguments import HIVE, HiveName, is_hive_name
from acidctl.outcome import Result
from acidctl.verbs.events import Events, Question
from acidctl.verbs.iceberg.copying import copy_table
from acidctl.verbs.iceberg.options import Migrated, MigrateOptions

if TYPE_CHECKING:
    from acidctl.iceberg.request import CopyRequest
    from acidctl.iceberg.target import Target
    from acidctl.verbs.selection import Selection

_CATCH_UPS = 3
"""Catch-ups in a row before a cut-over: each has less to copy than the one before."""

_RATE = 10_000_000
"""Bytes a second that a catch-up certainly copies: more than that may not be left when writers wait."""


class CutOver:
    """A cut-over or the way back.

    Raises:
        UsageProblem: the source and the copy are not tables of one metastore.
    """

    def __init__(self, selection: Selection, options: MigrateOptions, events: Events) -> None:
        from acidctl.iceberg.catalogs.open_target import require_pyiceberg

        require_pyiceberg()
        from acidctl.iceberg.cut_over import Swap

        self._selection, self._options, self._events = selection, options, events
        self._place = selection.places[0]
        source, copy = _whole_table(self._place), _whole_table(options.to)
        self._swap = Swap(selection.resolver.require_warehouse(self._place).metastore, source, copy)
        if options.back and (options.cut_over or options.catch_up):
            raise UsageProblem("--back goes with neither --cut-over nor --catch-up", "", "give one of them")
        if options.prove:
            raise UsageProblem("--prove changes no names", "", "give it without --cut-over and --back")
        if not selection.resolver.asks_metastore:
            hint = "leave out --snapshot and --assume-committed"
            raise UsageProblem("names are changed by the metastore's own list", "", hint)

    def run(self) -> Iterator[Migrated]:
        """Yield the plan, the copies before a cut-over, and who has which name then."""
        from acidctl.iceberg.cut_over import State

        swap, options, state = self._swap, self._options, self._swap.state()
        if state is State.HALF:
            names = f"a run ended between two renamings: {swap.kept} becomes {swap.source} again"
            yield from self._ask(names)
            if options.dry_run:
                return
            swap.recover()
            self._log("undone cut-over", names, swap.kept, swap.source)
            yield self._outcome(Result.WRITTEN, names)
            if options.back:
                return
        elif options.back:
            if state is State.BEFORE:
                raise RefusedError(
                    f"{swap.source} was not cut over",
                    f"a cut-over would have left a table {swap.kept}",
                    "check both names",
                )
            yield from self._back()
            return
        elif state is State.UNCHECKED:
            yield from self._finish()
            return
        elif state is State.AFTER:
            names = f"{swap.source} is the Iceberg table already, and the Hive table is {swap.kept}"
            yield self._outcome(Result.NOTHING_TO_DO, names)
            return
        yield from self._forward()

    def _finish(self) -> Iterator[Migrated]:
        """Make the check of a run that ended after the renamings; another run may make it while this one waits."""
        from acidctl.iceberg.cut_over import State

        swap = self._swap
        names = f"{swap.source} is the Iceberg table, and the Hive table is {swap.kept}"
        more = (
            "a run ended before it looked for late commits: this is done now, and the names change back if there is one"
        )
        yield from self._ask(f"{names}; {more}")
        if self._options.dry_run:
            return
        with swap.locked(swap.kept, swap.source, wait=self._options.window) as held:
            if (state := swap.state()) is State.UNCHECKED:
                current = self._target(swap.source)
                swap.finish(held, current.metadata if current.is_as_tagged else "")
                self._warn_of_late_statements()
            elif state is not State.AFTER:
                raise ConflictError("another run has changed the names meanwhile", "", "run it again")
        if state is State.UNCHECKED:
            self._log("cut-over", names, swap.source, swap.kept, current.snapshot_id)
        yield self._outcome(Result.WRITTEN if state is State.UNCHECKED else Result.NOTHING_TO_DO, names)

    def _log(
        self, kind: str, names: str, before: str, after: str, snapshot: int | None = None, *, is_tagged: bool = True
    ) -> None:
        """Log a change of names in the directory of the Hive table.

        Args:
            before, after: its names.
            snapshot: of the Iceberg table; one that is not tagged is given up.
        """
        from acidctl.iceberg.target import TAG
        from acidctl.location.change.work_log import Fact, LogEntry, log_done
        from acidctl.storage.registry import open_location

        try:
            fs, path = open_location(self._swap.directory_of(after), self._selection.storage)
        except AcidctlError as error:  # the names have changed all the same
            self._events.warn(f"the {kind} is not in the log: {error}")
            return
        facts: dict[str, Fact] = {"kind": kind, "renamed": names, "from": before, "to": after, "copy": self._swap.copy}
        if snapshot is not None:
            facts |= {"tag": TAG, "snapshotId": snapshot} if is_tagged else {"discardedSnapshotId": snapshot}
        log_done(fs, path, LogEntry("migrate", Result.WRITTEN.value, facts=facts), self._events.warn)

    def _forward(self) -> Iterator[Migrated]:
        swap, options = self._swap, replace(self._options, catch_up=True)
        names = f"{swap.source} becomes the Iceberg table, and the Hive table becomes {swap.kept}"
        if options.dry_run or self._events.shows_plans:
            yield from self._caught_up(replace(options, dry_run=True), self._events)
            yield from self._ask(
                f"{names}; statements that wait for it fail, and for a moment no table has its name"
                + "; rows are not compared" * (options.proof == "none")
            )
            if options.dry_run:
                return
        for attempt in range(_CATCH_UPS):
            begun = time.monotonic()
            yield from self._caught_up(options, self._events, locks=True)
            if (took := time.monotonic() - begun) <= options.window:
                break
            if attempt == _CATCH_UPS - 1:
                why = f"the last catch-up took {took:.0f} s, and --window is {options.window:g} s"
                hint = "give a longer --window, or --proof none"
                raise RefusedError(f"{self._place} would be locked for too long", why, hint)
        with swap.locked(swap.source, wait=options.window) as held:
            seen = swap.write_ids(swap.source)
            # Nobody takes time to read an outcome while writers wait.
            last = list(self._caught_up(options, self._events, most=_RATE * options.window))
            target = self._target(swap.copy)
            target.tag()
            swap.forward(held, seen, self._made, target.metadata)
            self._warn_of_late_statements()
        self._log("cut-over", names, swap.source, swap.kept, target.snapshot_id)
        yield from last
        yield self._outcome(Result.WRITTEN, names, target.snapshot_id)

    def _warn_of_late_statements(self) -> None:
        try:
            is_late = self._swap.wrote_too_late()
        except AcidctlError as error:  # the names have changed all the same
            self._events.warn(f"cannot tell whether a statement wrote to {self._swap.source} after it: {error}")
            return
        if is_late:
            self._events.warn(
                f"a statement that had begun before wrote to {self._swap.source} after the renaming: its rows are in "
                "neither table, and its files where the Hive table was"
            )

    def _back(self) -> Iterator[Migrated]:
        swap = self._swap
        names = f"the Hive table {swap.kept} becomes {swap.source} again, and the Iceberg table {swap.copy}"
        self._current()
        yield from self._ask(names)
        if self._options.dry_run:
            return
        with swap.locked(swap.kept, swap.source, wait=self._options.window) as held:
            current = self._current()
            swap.back(held, current.metadata)
        if not current.is_as_tagged:
            try:
                self._target(swap.copy).return_to_tag()
            except AcidctlError as error:
                self._events.warn(f"{swap.copy} keeps what was written to it, and cannot catch up any more: {error}")
        is_tagged = current.is_as_tagged
        self._log("back", names, swap.kept, swap.source, current.snapshot_id, is_tagged=is_tagged)
        yield self._outcome(Result.WRITTEN, names)

    def _outcome(self, result: Result, names: str, snapshot: int | None = None) -> Migrated:
        to = self._options.to
        return Migrated(
            location=self._place, result=result, target=to, encoded={}, columns={}, snapshot=snapshot, names=names
        )

    def _ask(self, names: str) -> Iterator[Migrated]:
        if self._options.dry_run or self._events.shows_plans:
            yield self._outcome(Result.PLANNED, names)
        if self._events.shows_plans and not self._options.dry_run:
            question = Question(
                f"the names would change: {names}", f"Change the names: {names}?", "no name was changed", (self._place,)
            )
            self._events.confirm(question)

    def _caught_up(
        self, options: MigrateOptions, events: Events, *, locks: bool = False, most: float = math.inf
    ) -> Iterator[Migrated]:
        """Yield the outcome of one catch-up if there is something to copy, by the metastore's lists as they are now.

        Args:
            locks: keep the cleaner away meanwhile.
            most: bytes to copy.
        """
        from acidctl.location.warehouse import Warehouse

        def check(request: CopyRequest) -> None:
            self._made = request.made
            self._require_renames(request)

        old = self._selection.resolver.require_warehouse(self._place)
        with closing(Warehouse(old.metastore, old.exclude)) as warehouse:
            fresh = replace(self._selection, resolver=replace(self._selection.resolver, warehouse=warehouse))
            for one in copy_table(fresh, options, events, asks=False, locks=locks, check=check, most=most):
                if one.result is not Result.NOTHING_TO_DO:
                    yield one

    def _target(self, name: str) -> Target:
        """Return the Iceberg table that has a name now.

        Raises:
            NotFoundError: there is none.
        """
        from acidctl.iceberg.catalogs.open_target import open_target

        metastore = self._selection.resolver.require_warehouse(self._place).metastore
        found = open_target(f"{HIVE}{name}", {}, None, self._selection.storage, metastore).find()
        if found is None:
            raise NotFoundError(f"the metastore has no table {name}", "", "see acidctl hive tables")
        return found

    def _current(self) -> Target:
        """Return the Iceberg table that has the name.

        Raises:
            RefusedError: it has snapshots since the cut-over, and they are not to be given up.
        """
        current = self._target(self._swap.source)
        if not current.is_as_tagged and not self._options.discard_snapshots:
            why = "somebody wrote to the Iceberg table since the cut-over, and the Hive table does not have these rows"
            if not current.is_tagged:
                why = "the Iceberg table has no tag of the cut-over any more: perhaps somebody has written to it since"
            raise RefusedError("will not change the names back", why, "give --discard-snapshots to give them up")
        return current

    def _require_renames(self, request: CopyRequest) -> None:
        """Refuse a store where the metastore would copy the directory of the Hive table to rename it.

        Raises:
            RefusedError: see above.
        """
        if not request.can_rename:
            swap = self._swap
            first = f"ALTER TABLE {swap.source} RENAME TO {swap.kept}"
            second = f"ALTER TABLE {swap.copy} RENAME TO {swap.source}"
            why = "its store cannot rename a directory, so that the metastore would copy all files"
            hint = f"stop all writers, run --catch-up, and let Hive do it: {first}; {second}"
            raise RefusedError(f"will not rename {swap.source}", why, hint)


def _whole_table(name: str) -> str:
    """Return ``db.table``.

    Raises:
        UsageProblem: the name is not that of one table of a metastore.
    """
    if is_hive_name(name) and (table := HiveName.parse(name).whole_table):
        return table
    what, why = "a cut-over is for a table and its copy in the same metastore", f"{name} is not the name of one table"
    raise UsageProblem(what, why, "give hive:db.table --to hive:db.copy")
