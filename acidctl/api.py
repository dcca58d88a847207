"""The verbs: what the command line can do with a location, Python can do.

A :class:`Location` holds nothing open; every verb lists the location again. Verbs that read return values. Verbs that
change it return an :class:`acidctl.outcome.Outcome`, and with ``dry_run=True`` their plan. Nothing here prints or asks.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from acidctl.acid.assumed_commits import Assumption
from acidctl.acid.listing import TableType
from acidctl.acid.triggers import Advice, advise
from acidctl.acid.writeids import ValidWriteIds
from acidctl.base.arguments import as_path, require_type, unusable
from acidctl.base.deadline import Duration, as_seconds
from acidctl.base.errors import NotFoundError, RefusedError, UsageProblem
from acidctl.base.nearest import member
from acidctl.cleaning.apply import RefusedCleaning
from acidctl.cleaning.explain import VerdictProof, proof_inputs, prove_all
from acidctl.cleaning.outcomes import Cleaned, InTrash, PlannedCleaning, Restored
from acidctl.compaction.local_engine import LocalEngine
from acidctl.compaction.proof.values import RowDigest, row_digest
from acidctl.compaction.request import Mode, NoWork, Planned, PlanRefused
from acidctl.compaction.run import Compacted, Engine
from acidctl.erasure.report import TableErasure
from acidctl.location.arguments import HiveName, is_hive_name
from acidctl.location.change.work_log import LogEntry, read_log
from acidctl.location.evidence import Evidence, not_known
from acidctl.location.find import find, found_again
from acidctl.location.other_formats import FormatDetector
from acidctl.location.snapshot import Snapshot
from acidctl.location.snapshot_resolver import SnapshotResolver, SnapshotSpec, open_warehouse
from acidctl.location.table_location import TableLocation
from acidctl.outcome import Outcome, Result
from acidctl.overview.location_state import state_table
from acidctl.repair.backup import InBackup, RepairRun
from acidctl.repair.plan import RepairPlan
from acidctl.rows.past.blame import Blame, RowId
from acidctl.rows.past.diff import Difference
from acidctl.rows.past.history import History, read_history
from acidctl.rows.scan.table import Table
from acidctl.validation.findings import Depth
from acidctl.validation.report import Report
from acidctl.verbs.clean import clean
from acidctl.verbs.compact import compact
from acidctl.verbs.compact_options import CompactOptions
from acidctl.verbs.events import Events
from acidctl.verbs.iceberg import migrate as verb
from acidctl.verbs.iceberg.options import MigrateOptions
from acidctl.verbs.maintain_options import CleanOptions, PurgeOptions, RestoreOptions
from acidctl.verbs.purge import purge
from acidctl.verbs.reading.cat import table_of
from acidctl.verbs.reading.diff import DiffOptions, diff
from acidctl.verbs.reading.erasure import ErasureOptions, erasure
from acidctl.verbs.reading.past import BlameOptions, blame
from acidctl.verbs.reading.validate import ValidateOptions, validate
from acidctl.verbs.repair import RepairOptions, repair
from acidctl.verbs.restore import KeptRun, kept_runs, restore
from acidctl.verbs.selection import Selection

if TYPE_CHECKING:
    import pyarrow as pa

    from acidctl.location.warehouse import Warehouse
    from acidctl.metastore.tables import HiveTable
    from acidctl.verbs.iceberg.options import Migrated

DAY = 86400.0
"""Seconds."""


class Location:
    """One location of a transactional table: an unpartitioned table, or a partition.

    Args:
        url: a path, of any kind that Python knows, a URL of any supported store, or the name of a table or partition
            that a metastore has: ``hive:db.table/key=value``.
        storage_options: for the store, by their fsspec names.
        metastore: resolves names, and decides which write ids count unless `snapshot` or `assume_committed` is
            given: an address such as ``thrift://host:9083``, several separated by commas, or settings by their names
            (docs/how-to/metastore.md); None for what ``hive-site.xml`` says, ``none`` for none. Every verb asks again.
        snapshot: Hive's valid write-id lists, as for :func:`acidctl.open_table`.
        assume_committed: without lists, whatever was last written longer ago than this counts as committed: seconds,
            ``"1h"`` or a timedelta. If neither is given, methods that only read count everything, and others refuse.

    Raises:
        NotFoundError, AccessError, StorageError: nothing there, or it cannot be listed.
        UsageProblem: the lists cannot be parsed, or there are several locations at or below `url`.
    """

    def __init__(
        self,
        url: str | os.PathLike[str],
        *,
        storage_options: Mapping[str, str] | None = None,
        metastore: str | Mapping[str, str] | None = None,
        snapshot: str | ValidWriteIds | SnapshotSpec | None = None,
        assume_committed: Duration | None = None,
    ) -> None:
        self._storage = storage_of(storage_options)
        resolver = resolver_of(snapshot, assume_committed, open_warehouse(metastore))
        path = as_path(url)
        found = list(find([path], self._storage, resolver, looks=False))
        if len(found) != 1:
            raise UsageProblem(
                f"{path} holds {len(found) or 'no'} locations",
                f"the first is {found[0].shown}" if found else "",
                "give one of them, or take all from acidctl.find",
            )
        self._found = found[0]

    @classmethod
    def of(cls, found: TableLocation, storage: Mapping[str, str]) -> Location:
        one = cls.__new__(cls)
        one._storage, one._found = dict(storage), found
        return one

    def __repr__(self) -> str:
        name = f"{self.hive_name} at " if self.hive else ""
        return f"<acidctl location {name}{self.path}>"

    @property
    def path(self) -> str:
        """The path, as a user would type it."""
        return self._found.shown

    @property
    def table(self) -> str:
        """The name of its table, with the database where the path shows it."""
        return self._found.location.table

    @property
    def partition(self) -> dict[str, str]:
        """The values in its path by their keys, as they are spelled there."""
        return dict(self._found.location.partition)

    @property
    def hive(self) -> HiveTable | None:
        """Its table as the metastore had it when the location was found: columns, owner, properties; None where no
        metastore is asked, or where that does not know it.
        """
        return self._found.hive

    @property
    def hive_name(self) -> str:
        """The name that the metastore has for it, ``hive:db.table/key=value``; empty where that does not know it."""
        return self._found.hive_name

    def _now(self) -> TableLocation:
        """Return the location for a verb that begins now: a metastore is asked before anything is listed."""
        return self._found.reload(self._found.resolver.refreshed().opened())

    # -- what is there -----------------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """Return the location, listed now, and its state by the lists that were given.

        Raises:
            RefusedError: the lists are not for its table.
            BadDataError: a ``_metadata_acid`` that Hive would refuse too.
        """
        return self._now().snapshot()

    def evidence(self) -> Evidence:
        """Return whether its table is known to be transactional, and the table's type."""
        return self._found.reload().evidence

    def state(self) -> pa.Table:
        """Return a row for every directory and file at its top level, with its state and the reason.

        The columns are those of :data:`acidctl.overview.location_state.SCHEMA`.
        """
        return state_table(self.snapshot())

    def why(self) -> tuple[VerdictProof, ...]:
        """Return the proof of every verdict, and what must happen before cleaning may take an entry.

        :func:`acidctl.wording.text_of` makes sentences of their reasons.
        """
        return prove_all(proof_inputs(self.snapshot()))

    def rows(self) -> Table:
        """Return the rows that a reader sees; see :func:`acidctl.open_table`."""
        return table_of(self._found_now())

    def history(self) -> History:
        """Return what every write id did, as far as the files still show it."""
        return read_history(self.snapshot())

    def log(self) -> list[LogEntry]:
        """Return the runs of acidctl that changed it, newest first."""
        return read_log(self._found.fs, self._found.location.path)

    def blame(self, row: str | RowId) -> Blame:
        """Return the life of one row.

        Args:
            row: ``writeid:bucketid:rowid``, or ROW__ID as JSON.
        """
        return blame(self._found_now(), BlameOptions(row=str(row))).blame

    def diff(
        self, start: int, end: int | None = None, columns: Sequence[str] | None = None, **options: Any
    ) -> Difference:
        """Return the rows that disappeared and appeared between two write ids; without `end` until now.

        Args:
            options: further ones of :class:`acidctl.verbs.reading.diff.DiffOptions`.

        Raises:
            HistoryError: a compaction has destroyed one of the two.
        """
        chosen: Any = {"start": start, "end": end, "columns": columns, **options}
        return diff(self._found_now(), DiffOptions(**chosen))

    def advise(self) -> Advice:
        """Return what reading it costs, and what a compaction would save."""
        snapshot = self.snapshot()
        return advise(snapshot.listing, snapshot.state)

    def validate(self, options: ValidateOptions | Depth | str = "listing", **more: Any) -> Report:
        """Check it against the rules of the format; what is wrong is in the report, not raised.

        Args:
            options: how deep: listing, footers or deep; or all options.
            more: single options of :class:`acidctl.verbs.reading.validate.ValidateOptions`, such as ``readers``.

        Raises:
            UsageProblem: an option cannot be used.
            RefusedError: the lists are not for its table.
            NotFoundError: it is gone.
        """
        events = _Strict()
        report = self._only(validate(self._found_now(), validate_options(options, more), events), events)
        assert isinstance(report, Report)
        return report

    def erasure(self, condition: str, **options: Any) -> TableErasure:
        """Return which files still hold rows that meet a condition, deleted ones included, and what removes them.

        Args:
            condition: in SQL, as for :meth:`acidctl.rows.scan.table.Table.scan`.
            options: further ones of :class:`acidctl.verbs.reading.erasure.ErasureOptions`.

        Raises:
            UsageProblem: it is not a condition.
        """
        (table,) = erasure(self._found_now(), ErasureOptions(where=condition, **options), _Strict())
        return table

    def row_digest(self) -> RowDigest:
        """Return a checksum of its rows, with ROW__IDs and without, that no order of rows or files changes."""
        return row_digest(self.rows().scan(row_id=True))

    # -- what changes it -----------------------------------------------------------------------------------------

    def compact(
        self,
        options: CompactOptions | str = "auto",
        engine: Engine | None = None,
        *,
        table_type: TableType | str | None = None,
        dry_run: bool = False,
    ) -> Compacted | NoWork | Planned | PlanRefused:
        """Compact it: finished, planned, run, proven and published as ``acidctl compact`` does it.

        Args:
            options: major, minor, rebalance, or auto for what the thresholds ask for; or all options.
            engine: where the tasks run; by default in this process. See
                :class:`acidctl.compaction.local_engine.LocalEngine` and
                :func:`acidctl.spark.compaction_engine.spark_engine`.
            table_type: what the table is, full-acid or insert-only, if its files do not show it.
            dry_run: change nothing, and return the plan, or why there is nothing to do or it is refused.

        Raises:
            RefusedError: nobody said which write ids are committed, or it is not known to be transactional.
            AcidctlError: it was refused or failed, and nothing was changed.
        """
        if engine is not None and not (callable(engine) and hasattr(engine, "cores")):
            raise unusable(engine, "engine", "give a LocalEngine of acidctl.compaction.local_engine, or Spark's")
        chosen = compact_options(options)
        chosen = replace(chosen, dry_run=dry_run or chosen.dry_run)
        answer = self._compacted(chosen, table_type, engine)
        if answer.error and not chosen.dry_run:
            raise answer.error
        assert isinstance(answer, Compacted | NoWork | Planned | PlanRefused)
        return answer

    def _compacted(
        self, options: CompactOptions, table_type: TableType | str | None, engine: Engine | None = None
    ) -> Outcome:
        if not self._found.resolver.decides:
            raise RefusedError(
                "a compaction must be told which write ids are committed",
                "",
                "give metastore, snapshot or assume_committed",
            )
        events, where = _Strict(), self._selection()
        if table_type is not None:
            where = replace(where, table_type=member(TableType, table_type, "type of table"))
        return self._only(compact(where, options, events, engine or LocalEngine(1)), events)

    def clean(self, older_than: Duration = DAY, **options: Any) -> Cleaned | PlannedCleaning | RefusedCleaning:
        """Remove what is obsolete or aborted, as ``acidctl clean`` does it.

        Args:
            older_than: seconds, ``"24h"`` or a timedelta; anything superseded or written more recently stays.
            options: further ones of :class:`CleanOptions`; with ``dry_run=True`` nothing is changed, and the plan is
                returned, or why it is refused.

        Raises:
            RefusedError: it is not known to be transactional.
            AcidctlError: it was refused or failed; the hint says what was removed before.
        """
        _refuse_elsewhere("clean", options, "plan", "apply")
        chosen, events = CleanOptions(**{**options, "older_than": older_than}), _Strict()
        outcomes = clean(self._selection(), chosen, events)
        last = self._only(outcomes, events) if chosen.dry_run else _done(outcomes, events)[-1]
        assert isinstance(last, PlannedCleaning | RefusedCleaning)
        if chosen.dry_run or isinstance(last, Cleaned | RefusedCleaning):
            return last
        return Cleaned.after(last.plan)

    def trash(self) -> list[KeptRun]:
        """Return the cleanings and repairs that are kept, oldest first; the state of each shows if it can be undone."""
        return kept_runs(self._found)

    def restore(self, run_id: str | None = None, **options: Any) -> Restored | InBackup:
        """Undo a cleaning or a repair.

        Args:
            run_id: the id of the run, or how it begins; by default the newest.
            options: further ones of :class:`RestoreOptions`.

        Raises:
            NotFoundError: there is none.
            AcidctlError: it cannot be restored, and nothing was moved.
        """
        _refuse_elsewhere("restore", options, "list", "dry_run")
        events = _Strict()
        *_, last = _done(restore(self._path_alone(), RestoreOptions(run_id=run_id, **options), events), events)
        assert isinstance(last, Restored | InBackup)
        return last

    def purge(self, run_id: str | None = None, **options: Any) -> list[InTrash | InBackup]:
        """Delete the trash of cleanings and the backups of repairs permanently; runs that cannot be used stay.

        Args:
            run_id: the id of the only run to delete, or how it begins.
            options: further ones of :class:`PurgeOptions`.

        Raises:
            NotFoundError: the location keeps no run with this id.
        """
        _refuse_elsewhere("purge", options, "dry_run")
        events = _Strict()
        done = _done(purge(self._path_alone(), PurgeOptions(run_id=run_id, **options), events), events)
        return [run for run in done if isinstance(run, InTrash | InBackup) and run.result is Result.PURGED]

    def repair(self, *kinds: str, **options: Any) -> RepairRun | RepairPlan | None:
        """Mend what is wrong, with a backup; None if there is nothing to mend. :meth:`restore` takes it back.

        Args:
            kinds: empty-result, nested, flush-length, key-index or version-file; all by default.
            options: further ones of :class:`RepairOptions`; with ``dry_run=True`` nothing is changed, and the plan is
                returned.

        Raises:
            RefusedError: a directory would be missing for a moment.
            AcidctlError: it failed; what was begun is finished by the next repair.
        """
        chosen, events = RepairOptions(**{**options, "only": kinds}), _Strict()
        known = found_again(self._found, self._storage, FormatDetector())
        selection = replace(self._path_alone(), known=(known,))
        outcome = _done(repair(selection, chosen, events), events)[-1]
        assert isinstance(outcome, RepairPlan)
        return outcome if chosen.dry_run else outcome.run

    # -- selections of it ----------------------------------------------------------------------------------------

    def _only(self, outcomes: Iterator[Outcome], events: Events) -> Outcome:
        """Return the last outcome of a verb that only plans, or compacts; raises why there is none."""
        if done := list(outcomes):
            return done[-1]
        for _, error in events.errors:
            raise error
        raise NotFoundError(f"{self.path} is gone", "", "see whether its table was dropped")

    def _selection(self) -> Selection:
        """Return the location by its name, or its path, for a verb that begins now."""
        return Selection((self.hive_name or self.path,), self._storage, self._found.resolver.refreshed())

    def _found_now(self) -> Selection:
        """Return the location as it is now, for a verb that reads."""
        found = self._now()
        return Selection((self.hive_name or self.path,), self._storage, found.resolver, known=(found,))

    def _path_alone(self) -> Selection:
        """Return the location for a verb that takes no snapshot."""
        return Selection((self.path,), self._storage)


class _Strict(Events):
    """The events of a verb on one location, which is not passed over."""

    def skipped(self, found: TableLocation, evidence: Evidence) -> None:
        raise not_known(found.shown, evidence)


def _done(outcomes: Iterator[Outcome], events: Events) -> list[Outcome]:
    """Return what became of one location; raises its error, or the first that belongs to no outcome."""
    done = list(outcomes)
    for error in (*(outcome.error for outcome in done), *(error for _, error in events.errors)):
        if error:
            raise error
    return done


_ELSEWHERE = {
    "dry_run": ("in Python another method lists the runs", "call trash"),
    "list": ("in Python another method lists the runs", "call trash"),
    "plan": ("plans in files are for the command line", "run `acidctl clean --plan`, or give dry_run"),
    "apply": ("plans in files are for the command line", "run `acidctl clean --apply`"),
}
"""Options of commands that verbs of Python do not take: why, and what to do."""


def migrate(
    url: str | os.PathLike[str],
    to: str | os.PathLike[str],
    *,
    storage_options: Mapping[str, str] | None = None,
    metastore: str | Mapping[str, str] | None = None,
    snapshot: str | ValidWriteIds | SnapshotSpec | None = None,
    assume_committed: Duration | None = None,
    **options: Any,
) -> Migrated:
    """Copy the rows of a table to an Iceberg table, and compare both, as ``acidctl migrate --yes`` does.

    Args:
        url, storage_options, metastore, snapshot: see :func:`acidctl.open_table`; without a metastore and lists,
            `assume_committed` is the age at which directories count as committed.
        to: ``iceberg:CATALOG/db.table``, ``hive:db.table`` or a directory.
        options: further ones of :class:`acidctl.verbs.iceberg.options.MigrateOptions`; with ``catch_up=True`` the copy
            exists and is brought up to date.

    Returns:
        The last step: the copy, or its plan with ``dry_run=True``; with ``cut_over=True`` or ``back=True`` the names.

    Raises:
        UsageProblem: an option has a wrong type or value, or two of them contradict each other.
        AcidctlError: a column or file cannot be copied, or the copy was changed by somebody else; nothing new is
            visible in it.
        VerifyError: the rows would differ, and nothing was committed.
    """
    if is_hive_name(text := as_path(url)) and HiveName.parse(text).is_pattern:
        raise UsageProblem("migrate() copies one table", f"{text} is a pattern", "call it for each table")
    chosen = MigrateOptions(to=as_path(to), **options)
    warehouse = open_warehouse(metastore)
    with closing(warehouse) if warehouse else nullcontext():
        resolver = resolver_of(snapshot, assume_committed, warehouse)
        selection = Selection((as_path(url),), storage_of(storage_options), resolver)
        return list(verb.migrate(selection, chosen, Events()))[-1]


def _refuse_elsewhere(verb: str, options: Mapping[str, Any], *names: str) -> None:
    """Refuse options with which a command does something else than the verb of its name in Python."""
    for name in names:
        if name in options:
            raise UsageProblem(f"{verb} takes no {name}", *_ELSEWHERE[name])


def compact_options(options: CompactOptions | str) -> CompactOptions:
    if isinstance(options, CompactOptions):
        return options
    chosen: dict[str, Any] = {member(Mode, options, "type of compaction").value: True}
    return CompactOptions(**chosen)


def validate_options(options: ValidateOptions | Depth | str, more: Mapping[str, Any]) -> ValidateOptions:
    if isinstance(options, ValidateOptions):
        return replace(options, **more)
    depth = member(Depth, options, "depth")
    return ValidateOptions(**{"footers": depth is Depth.FOOTERS, "deep": depth is Depth.DEEP, **more})


def storage_of(options: Mapping[str, str] | None) -> dict[str, str]:
    require_type(options, Mapping, "storage_options", "give a dict with the options of the store")
    return dict(options or {})


def resolver_of(
    snapshot: str | ValidWriteIds | SnapshotSpec | None, assume_committed: Duration | None, warehouse: Warehouse | None
) -> SnapshotResolver:
    spec = SnapshotSpec.of(snapshot)
    if assume_committed is not None:
        spec = replace(spec, assumption=Assumption(as_seconds(assume_committed, "assume_committed")))
    return SnapshotResolver(spec, warehouse)
