"""Copy a table to Iceberg, keep the copy up to date, and prove that both have the same rows."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from acidctl.base.errors import NotFoundError, RefusedError, UsageProblem
from acidctl.location.arguments import HIVE, HiveName, is_hive_name
from acidctl.outcome import Outcome, Remark, Result
from acidctl.verbs.events import Events, Question
from acidctl.verbs.options import REQUIRED, Kind, Options, option
from acidctl.verbs.reading.cat import table_of
from acidctl.wording import human_bytes, human_count

if TYPE_CHECKING:
    from acidctl.iceberg.request import CopyRequest
    from acidctl.iceberg.target import Target
    from acidctl.verbs.selection import Selection

_CATCH_UPS = 3
"""Catch-ups in a row before a cut-over: each has less to copy than the one before."""

_RATE = 10_000_000
"""Bytes a second that a catch-up certainly copies: more than that may not be left when writers wait."""


@dataclass(frozen=True, kw_only=True)
class MigrateOptions(Options):
    """The options of `acidctl migrate`."""

    to: str = option(
        REQUIRED,
        "--to",
        metavar="TARGET",
        help="The Iceberg table: iceberg:CATALOG/db.table, hive:db.table or a directory.",
    )
    catch_up: bool = option(False, "--catch-up", help="Bring a copy that was made before up to date.")
    drop_column: tuple[str, ...] = option(
        (), "--drop-column", kind=Kind.LIST, help="Leave out this column. Repeatable."
    )
    target_location: str | None = option(
        None, "--target-location", metavar="URL", help="Directory of the new table. Default: the catalog's choice."
    )
    catalog_option: tuple[tuple[str, str], ...] = option(
        (), "--catalog-option", kind=Kind.PAIRS, help="A setting of PyIceberg's catalog. Repeatable."
    )
    cut_over: bool = option(
        False, "--cut-over", help="Catch up, then give the name of the Hive table to the copy, while writers wait."
    )
    back: bool = option(False, "--back", help="Give its name back to the Hive table, and to the copy its own.")
    window: float = option(
        60.0,
        "--window",
        kind=Kind.SECONDS,
        help="Cut over only if the last catch-up and the wait for statements take at most this long each.",
    )
    discard_snapshots: bool = option(
        False, "--discard-snapshots", typed=True, help="With --back: give up what was written to the Iceberg table."
    )
    dry_run: bool = option(False, "-n", "--dry-run", help="Show what would be copied, then stop.")
    proof: bool = option(
        True, "--proof/--no-proof", typed=True, help="Compare all rows of both tables before the commit (default)."
    )
    jobs: int = option(4, "--jobs", kind=Kind.COUNT, help="Files at a time.")


@dataclass(frozen=True, kw_only=True)
class Migrated(Outcome):
    """The copy of a table: planned, written, or up to date already.

    Attributes:
        target: the Iceberg table, as the user named it.
        rows, deleted: rows that the copy gets, and rows of the copy that are gone.
        files, bytes: to copy, or copied.
        encoded: columns that are encoded again, with the reason.
        columns: the columns of the copy with Iceberg's types.
        notes: changes of columns, and what Iceberg does not keep, in words.
        snapshot: the id of the new snapshot; None if there is none.
        proof: how the rows of both were compared; empty if they were not.
        names: who has which name, after a cut-over or the way back; empty if no name changes.
    """

    target: str
    rows: int = 0
    deleted: int = 0
    files: int = 0
    bytes: int = 0
    encoded: Mapping[str, str]
    columns: Mapping[str, str]
    notes: tuple[str, ...] = ()
    snapshot: int | None = None
    proof: str = ""
    names: str = ""

    @property
    def heading(self) -> str:
        return "to copy" if self.result is Result.PLANNED else super().heading

    def line(self) -> str:
        if self.names:
            return f"{self.location}: {self.names}"
        proof = f"; {self.proof}" if self.proof else ""
        if self.result is Result.NOTHING_TO_DO:
            return f"{self.location}: {self.target} has the same rows already{proof}"
        amounts = [human_count(self.rows, "new row")] * bool(self.rows or not self.deleted)
        amounts += [human_count(self.deleted, "row") + " less"] * bool(self.deleted)
        planned = " (planned)" if self.result is Result.PLANNED else ""
        size = f"{human_count(self.files, 'file')}, {human_bytes(self.bytes)}"
        return f"{self.location}: copy to {self.target}{planned}: {', '.join(amounts)} ({size}){proof}"

    def remarks(self) -> Iterator[Remark]:
        for name, why in self.encoded.items():
            yield Remark(f"column {name} is encoded again: {why}")
        for text in self.notes:
            yield Remark(text)

    def amounts(self) -> Mapping[str, int]:
        return {"inserted": self.rows, "deleted": self.deleted, "files": self.files}

    def bytes_by_use(self) -> Mapping[str, int]:
        return {"written": self.bytes}

    def facts(self) -> Mapping[str, Any]:
        return {
            "verb": "migrate",
            "target": self.target,
            "snapshotId": self.snapshot,
            "filesCopied": self.files,
            "bytesCopied": self.bytes,
            "rowsAdded": self.rows,
            "positionDeletes": self.deleted,
            "columnsEncoded": dict(self.encoded),
            "columns": dict(self.columns),
            "proof": self.proof or None,
            "names": self.names or None,
        }


def migrate(selection: Selection, options: MigrateOptions, events: Events) -> Iterator[Migrated]:
    """Yield the plan of a copy if it is a dry run or has to be confirmed, then what was copied.

    Raises:
        UsageProblem: the target cannot be used in this way.
        RefusedError: nobody says which write ids are committed, a column or a file cannot be copied, the last catch-up
            would take too long, or it was not confirmed.
        ConflictError: somebody else changed the copy meanwhile, or holds a lock.
        VerifyError: the rows would differ, and nothing was committed.
        EnvironmentProblem: PyIceberg is not installed.
    """
    if options.cut_over or options.back:
        yield from _CutOver(selection, options, events).run()
        return
    place = selection.places[0]
    if is_hive_name(place):
        selection.resolver.require_warehouse(place).read_lock = True  # no cleaner takes files away meanwhile
    request = _request_of(selection, options)
    yield from _copied(request, place if is_hive_name(place) else request.path, options, events)


def _request_of(selection: Selection, options: MigrateOptions) -> CopyRequest:
    from acidctl.iceberg.catalogs.open_target import open_target

    table = table_of(selection)
    if not selection.resolver.decides:
        raise RefusedError(
            "migrate must be told which write ids are committed",
            "no list of Hive's was given",
            "name the table in its metastore, hive:db.t; or give --snapshot, or --assume-committed 1h if all that is "
            "older is committed",
        )
    metastore = selection.resolver.require_warehouse(options.to).metastore if is_hive_name(options.to) else None
    settings = dict(options.catalog_option)
    opened = open_target(options.to, settings, options.target_location, selection.storage, metastore)
    from acidctl.iceberg.request import CopyRequest  # it needs PyIceberg, which open_target() has asked for

    return CopyRequest(table, opened, options.drop_column, selection.storage)


def _copied(
    request: CopyRequest,
    shown: str,
    options: MigrateOptions,
    events: Events,
    *,
    asks: bool = True,
    most: float = math.inf,
) -> Iterator[Migrated]:
    """Yield the plan and the outcome of one copy.

    Args:
        shown: the source as the user named it.
        asks: have the plan confirmed, if somebody can be asked.
        most: bytes to copy.

    Raises:
        AcidctlError: see :func:`migrate`.
    """
    request.require_state(is_again=options.catch_up)
    plan = request.plan()

    def outcome(result: Result, snapshot: int | None = None, proof: str = "") -> Migrated:
        return Migrated(
            location=shown,
            result=result,
            target=options.to,
            rows=plan.rows,
            deleted=plan.deleted,
            files=len(plan.files),
            bytes=plan.bytes,
            encoded=plan.encoded,
            columns=request.columns,
            notes=request.notes,
            snapshot=snapshot,
            proof=proof,
        )

    if plan.is_empty and request.target is not None and not request.changes:
        if not options.dry_run:
            request.note_seen()
        yield outcome(Result.NOTHING_TO_DO)
        return
    if options.dry_run or (asks and events.shows_plans):
        yield outcome(Result.PLANNED)
        if options.dry_run:
            return
        what = f"{human_count(plan.rows, 'row')} of {shown} to {options.to}"
        events.confirm(Question(f"{what} would be copied", f"Copy {what}?", "nothing was copied", (shown,)))
    if plan.bytes > most:
        what, why = f"{shown} would be locked for too long", f"{human_bytes(plan.bytes)} are still to be copied"
        raise RefusedError(what, why, "run it again when less is written, or with a longer --window")
    with events.progress("copying", plan.bytes, is_bytes=True) as progress:
        snapshot, proof = request.carry_out(plan, options.jobs, progress.advance, proves=options.proof)
    yield outcome(Result.WRITTEN, snapshot, proof)


# --- cut-over and the way back ----------------------------------------------------------------------------------------


class _CutOver:
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
        if not selection.resolver.asks_metastore:
            raise UsageProblem("a cut-over takes no snapshot", "the metastore says what is committed", "leave it out")

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
            yield self._outcome(Result.WRITTEN, names)
            if options.back:
                return
        elif options.back:
            if state is State.BEFORE:
                raise RefusedError(f"{swap.source} was not cut over", f"there is no {swap.kept} that says so", "")
            yield from self._back()
            return
        elif state is State.AFTER:
            names = f"{swap.source} is the Iceberg table already, and the Hive table is {swap.kept}"
            yield self._outcome(Result.NOTHING_TO_DO, names)
            return
        yield from self._forward()

    def _forward(self) -> Iterator[Migrated]:
        swap, options = self._swap, replace(self._options, catch_up=True)
        names = f"{swap.source} becomes the Iceberg table, and the Hive table {swap.kept}"
        if options.dry_run or self._events.shows_plans:
            yield from self._caught_up(replace(options, dry_run=True), self._events)
            yield from self._ask(
                f"{names}; statements that wait for it then fail, and for a moment no table is so called"
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
                hint = "give a longer --window, or --no-proof"
                raise RefusedError(f"{self._place} would be locked for too long", why, hint)
        with swap.locked(swap.source, wait=options.window) as held:
            seen = swap.write_ids(swap.source)
            yield from self._caught_up(options, self._events, most=_RATE * options.window)
            target = self._target(swap.copy)
            target.tag()
            swap.forward(held, seen, self._made, target.metadata)
            is_late = swap.wrote_too_late()
        if is_late:
            self._events.warn(
                f"a statement that had begun before wrote to {swap.source} after the renaming: its rows are in neither "
                "table, and its files where the Hive table was"
            )
        yield self._outcome(Result.WRITTEN, names, target.snapshot_id)

    def _back(self) -> Iterator[Migrated]:
        swap = self._swap
        names = f"the Hive table {swap.kept} becomes {swap.source} again, and the Iceberg table {swap.copy}"
        self._has_news()
        yield from self._ask(names)
        if self._options.dry_run:
            return
        with swap.locked(swap.kept, swap.source, wait=self._options.window) as held:
            discards = self._has_news()
            swap.back(held)
        if discards:
            self._target(swap.copy).return_to_tag()
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
            question = Question(names, f"Change the names: {names}?", "no name was changed", (self._place,))
            self._events.confirm(question)

    def _caught_up(
        self, options: MigrateOptions, events: Events, *, locks: bool = False, most: float = math.inf
    ) -> Iterator[Migrated]:
        """Yield the outcome of one catch-up, by the metastore's lists as they are now.

        Args:
            locks: keep the cleaner away meanwhile.
            most: bytes to copy.
        """
        from acidctl.location.warehouse import Warehouse

        old = self._selection.resolver.require_warehouse(self._place)
        warehouse = Warehouse(old.metastore, old.exclude, read_lock=locks)
        with closing(warehouse):
            fresh = replace(self._selection, resolver=replace(self._selection.resolver, warehouse=warehouse))
            request = _request_of(fresh, options)
            self._made = request.made
            self._require_renames(request)
            yield from _copied(request, self._place, options, events, asks=False, most=most)

    def _target(self, name: str) -> Target:
        """Return the Iceberg table that has a name now.

        Raises:
            NotFoundError: there is none.
        """
        from acidctl.iceberg.catalogs.open_target import open_target

        metastore = self._selection.resolver.require_warehouse(self._place).metastore
        found = open_target(f"{HIVE}{name}", {}, None, self._selection.storage, metastore).find()
        if found is None:
            raise NotFoundError(f"there is no table {name}", "", "look at the metastore")
        return found

    def _has_news(self) -> bool:
        """Return whether the Iceberg table has snapshots since the cut-over.

        Raises:
            RefusedError: it has, and they are not to be given up.
        """
        if self._target(self._swap.source).is_as_tagged:
            return False
        if not self._options.discard_snapshots:
            why = "somebody wrote to the Iceberg table since the cut-over, and the Hive table does not have these rows"
            raise RefusedError("will not change the names back", why, "give --discard-snapshots to give them up")
        return True

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
    parsed = HiveName.parse(name) if is_hive_name(name) else None
    if parsed is None or parsed.is_pattern or parsed.partition:
        what = "a cut-over is for a table and its copy in the same metastore"
        raise UsageProblem(what, f"{name} is no such table", "give hive:db.table --to hive:db.copy")
    return f"{parsed.database}.{parsed.table}"
