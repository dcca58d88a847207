"""The Python API for a metastore: list and end its transactions, locks and compactions, and run Hive's services."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import TYPE_CHECKING, Self

from acidctl.base.deadline import Duration, as_seconds
from acidctl.base.errors import AcidctlError, UsageProblem
from acidctl.cleaning.retention import FLOOR_SECONDS, Policy
from acidctl.hive.blocking import Blocker, find_blockers
from acidctl.hive.ready_entries import OnError, Waiting, find_waiting, ready_entries
from acidctl.location.arguments import HIVE, HiveName, at_its_line, is_hive_name
from acidctl.location.named_metastore import open_warehouse
from acidctl.location.warehouse import Warehouse
from acidctl.metastore.activity import KnownTxns, Lock, find_locks, find_transactions
from acidctl.metastore.client import Metastore
from acidctl.metastore.housekeeping import Dead, abort_txn, end_dead, find_dead, refuse_where_it_is_done, silent_for
from acidctl.metastore.queue.compactions import (
    Compaction,
    QueueAnswer,
    Wish,
    abort_compactions,
    check_wish,
    find_compactions,
    request_compaction,
)
from acidctl.metastore.queue.stuck import Stuck, find_stuck
from acidctl.metastore.server import Switches, find_switches
from acidctl.metastore.tables import HiveTable, partition_names

if TYPE_CHECKING:
    from acidctl.hive.cleaner import CleanedEntry
    from acidctl.hive.initiator import Initiated
    from acidctl.hive.worker import Worked


@dataclass(frozen=True, slots=True)
class HeldBack:
    """Locations that wait for cleaning, and what holds them back.

    Attributes:
        blockers: those that hold back the most bytes first.
        waiting: all waiting locations, held back or not.
        known, switches: the server's transactions and configuration that the result is based on.
    """

    blockers: tuple[Blocker, ...]
    waiting: tuple[Waiting, ...]
    known: KnownTxns
    switches: Switches


@dataclass(frozen=True, slots=True)
class StuckQueue:
    """Entries of a queue that do not proceed by themselves.

    Attributes:
        known, switches: as in :class:`HeldBack`.
    """

    entries: tuple[Stuck, ...]
    known: KnownTxns
    switches: Switches


class Hive:
    """A metastore. The first call connects; :meth:`close`, or a ``with``, closes the connection.

    Args:
        metastore: one or more addresses, separated by commas, or settings by their names; default: those of
            ``hive-site.xml``.
        storage: options of stores, for the sizes of locations.

    Raises:
        UsageProblem: nothing names a metastore.
        EnvironmentProblem: a required package is not installed.
    """

    def __init__(
        self, metastore: str | Mapping[str, str] | None = None, storage: Mapping[str, str] | None = None
    ) -> None:
        warehouse = open_warehouse(metastore)
        if warehouse is None:
            raise UsageProblem("no metastore is known", "", "give --metastore, or set HIVE_CONF_DIR")
        self._warehouse, self._storage = warehouse, dict(storage or {})

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Hive({self.metastore.shown!r})"

    @property
    def metastore(self) -> Metastore:
        """The client of the metastore."""
        return self._warehouse.metastore

    def close(self) -> None:
        """Close the connection."""
        self.metastore.close()

    def tables(self, *names: str, exclude: Sequence[str] = ()) -> list[HiveTable]:
        """Return the transactional tables, all or those that match names such as ``db.table`` or ``db.*``.

        Raises:
            NotFoundError: a named table does not exist.
            UsageProblem: a named table is not transactional.
            MetastoreError: the metastore cannot be reached, or failed; all other methods raise this, too.
        """
        warehouse = Warehouse(self.metastore, tuple(exclude))
        return [table for name in as_hive_names(names or ["*.*"]) for table in warehouse.tables(HiveName.parse(name))]

    def transactions(self) -> KnownTxns:
        """Return the open transactions, and the aborted ones that are still listed."""
        return find_transactions(self.metastore)

    def locks(self, table: str = "") -> tuple[Lock, ...]:
        """Return the held and waiting locks, all or those on one table, ``db.table``."""
        database, _, name = table.partition(".")
        return find_locks(self.metastore, database or None, name or None)

    def compactions(
        self, *, state: str | None = None, pool: str | None = None, table: str | None = None
    ) -> list[Compaction]:
        """Return the queue of compactions, followed by its history."""
        database, _, name = (table or "").partition(".")
        return find_compactions(self.metastore, state=state, pool=pool, database=database or None, table=name or None)

    def stuck(self) -> StuckQueue:
        """Return the entries of the queue that do not proceed by themselves, with the cause."""
        return look_for_stuck(self.metastore)

    def held_back(self, *tables: str, sizes: bool = True, on_error: OnError = lambda _, __: None) -> HeldBack:
        """Return the transactions and locks that hold back cleanings, of the whole queue or of some tables.

        Args:
            sizes: list the locations, to count bytes.
            on_error: called for each location that cannot be listed.
        """
        names = as_hive_names(tables)
        return look_for_blockers(self._warehouse, names, self._storage, sizes=sizes, on_error=on_error)

    def request(
        self, *names: str, kind: str = "major", pool: str = "", exclude: Sequence[str] = ()
    ) -> list[tuple[Wish, QueueAnswer]]:
        """Request a compaction by Hive's workers for every location of some tables.

        Args:
            kind: major, minor or rebalance.

        Raises:
            UsageProblem: the server does not support the request.
            Unreachable: no answer; the server may have accepted the last request.
        """
        template = Wish("", "", "", kind, pool)
        check_wish(self.metastore, template)
        wishes = list(wishes_for(Warehouse(self.metastore, tuple(exclude)), names, template))
        return [(wish, request_compaction(self.metastore, wish)) for wish in wishes]

    def abort_transactions(self, *ids: int) -> list[int]:
        """Abort transactions, and return the ids of those that were open."""
        return [id_ for id_ in ids if abort_txn(self.metastore, id_)]

    def abort_compactions(self, *ids: int) -> dict[int, tuple[bool, str]]:
        """Remove entries that wait for a worker from the queue (Hive 4); see :func:`abort_compactions`."""
        return dict(abort_compactions(self.metastore, ids))

    def find_dead(self, older_than: Duration | None = None) -> Dead:
        """Return transactions and locks without a heartbeat for a time, by default the server's time-out."""
        return find_dead(self.metastore, silent_for(_seconds(older_than), find_switches(self.metastore)))

    def end_dead(self, dead: Dead, older_than: Duration | None = None, *, force: bool = False) -> Dead:
        """End those of `dead` that are still dead, and return them.

        Args:
            force: end them even if a server runs its own housekeeping.

        Raises:
            RefusedError: a server runs its own housekeeping.
        """
        if not force:
            refuse_where_it_is_done(self.metastore)
        return end_dead(self.metastore, dead, silent_for(_seconds(older_than), find_switches(self.metastore)))

    def initiate(
        self,
        *tables: str,
        exclude: Sequence[str] = (),
        pool: str = "",
        most: int | None = None,
        dry_run: bool = False,
        on_error: OnError = lambda _, __: None,
    ) -> list[Initiated]:
        """Check all tables, or some, and request the compactions that are due, like Hive's initiator.

        Args:
            pool: pool of the requests; default: that of the table or database.
            most: request at most this many, those with the most benefit for readers first.
            dry_run: only report what would be requested.
            on_error: called with the name of each location that cannot be checked.

        Raises:
            ConflictError: another initiator is running.
        """
        from acidctl.hive.initiator import Initiation, Initiator  # noqa: PLC0415 - with compactions

        outcomes: list[Initiated] = []
        names = as_hive_names(tables or ("*.*",))
        settings = Initiation(names, exclude, pool, most, changes_nothing=dry_run, storage=self._storage)
        Initiator(self.metastore, settings, outcomes.append, on_error).once()
        return outcomes

    def work(
        self,
        *,
        pool: str = "",
        at_once: int = 1,
        max_bytes: int | None = None,
        jobs: int | None = None,
        on_error: Callable[[AcidctlError], None] = lambda _: None,
    ) -> list[Worked]:
        """Run the waiting compactions of the queue, like Hive's workers, on this machine until nothing waits.

        Args:
            pool: pool of the entries; default: entries without a pool.
            at_once: entries to work on at the same time.
            max_bytes: of all their inputs; an entry with more bytes runs alone.
            jobs: processes; None for one per core.
            on_error: called for each error of the metastore itself, after which the call is repeated.

        Raises:
            UsageProblem: the server has no queue for external workers (before Hive 4).
        """
        from acidctl.compaction.local_engine import LocalEngine  # noqa: PLC0415 - with compactions
        from acidctl.hive.worker import Work, Worker  # noqa: PLC0415 - with compactions

        outcomes: list[Worked] = []
        settings = Work(pool, at_once, max_bytes, once=True, job="acidctl.Hive", storage=self._storage)
        worker = Worker(
            self.metastore, settings, lambda until, told: LocalEngine(jobs, until, told), outcomes.append, on_error
        )
        worker.free_dead()
        worker.run()
        return outcomes

    def clean(
        self,
        *tables: str,
        exclude: Sequence[str] = (),
        older_than: Duration = FLOOR_SECONDS,
        unsafe_retention: bool = False,
        dry_run: bool = False,
    ) -> list[CleanedEntry]:
        """Clean the entries of the queue that are ready: move obsolete files to the trash, and mark the entries.

        Args:
            older_than: seconds for which a directory must have been obsolete.
            unsafe_retention: allow less than an hour for `older_than`, as no one reads the tables at the moment.
            dry_run: only report what would be removed.

        Raises:
            RefusedError: `older_than` is too short.
            UsageProblem: the server has no queue for external cleaners (before Hive 4).
            ConflictError: another cleaner is running.
        """
        from acidctl.hive.cleaner import Cleaner, CleanerWork  # noqa: PLC0415 - with cleanings

        policy = Policy(as_seconds(older_than, "older_than"))
        if not (dry_run or unsafe_retention):
            policy.require_safe()
        outcomes: list[CleanedEntry] = []
        names = as_hive_names(tables or ("*.*",))
        settings = CleanerWork(names, exclude, policy, changes_nothing=dry_run, storage=self._storage)

        def failed(error: AcidctlError) -> None:
            raise error

        Cleaner(self.metastore, settings, outcomes.append, failed).once()
        return outcomes


def as_hive_names(names: Sequence[str]) -> list[str]:
    """Return names of tables with the prefix ``hive:``.

    Raises:
        UsageProblem: a name is not that of a table.
    """
    prefixed = [name if is_hive_name(name) else HIVE + name for name in names]
    for name in prefixed:
        HiveName.parse(name)
    return prefixed


def look_for_stuck(metastore: Metastore) -> StuckQueue:
    """Return the stuck entries of the queue.

    Raises:
        MetastoreError: the metastore cannot be reached, or failed.
    """
    # The queue comes after the transactions: for those that had ended by then, it is up to date.
    switches = find_switches(metastore)
    known = find_transactions(metastore)
    entries = find_compactions(metastore)
    locks = () if switches.is_hive4 else find_locks(metastore)
    return StuckQueue(tuple(find_stuck(entries, known, switches, locks)), known, switches)


def look_for_blockers(
    warehouse: Warehouse, names: Sequence[str], storage: Mapping[str, str], *, sizes: bool, on_error: OnError
) -> HeldBack:
    """Return the blockers of cleanings.

    Args:
        names, storage, sizes, on_error: as in :func:`acidctl.hive.ready_entries.find_waiting`.

    Raises:
        NotFoundError: a named table does not exist.
        MetastoreError: the metastore cannot be reached, or failed.
    """
    metastore = warehouse.metastore
    switches = find_switches(metastore)
    ready = ready_entries(find_compactions(metastore))
    waiting = find_waiting(warehouse, ready, names, storage, sizes=sizes, on_error=on_error)
    known, locks = find_transactions(metastore), find_locks(metastore)
    return HeldBack(tuple(find_blockers(waiting, known, locks, switches)), tuple(waiting), known, switches)


def wishes_for(
    warehouse: Warehouse,
    names: Sequence[str],
    template: Wish,
    on_sorted: Callable[[HiveTable], None] = lambda _: None,
) -> Iterator[Wish]:
    """Yield a request for each named location, without duplicates.

    Args:
        template: supplies all fields but the names.
        on_sorted: called for each sorted table: Hive's workers refuse these.

    Raises:
        NotFoundError: a named table or partition does not exist.
        UsageProblem: a named table is not transactional.
    """
    seen: set[str] = set()
    for text in names:
        try:
            name = HiveName.parse(text if is_hive_name(text) else HIVE + text)
            tables = list(warehouse.tables(name))
        except AcidctlError as error:
            raise at_its_line(error, text) from error
        for table in tables:
            parts = [""]
            if table.partition_keys or name.partition:
                parts = partition_names(warehouse.metastore, table, name.partition)
            if table.sort_columns:
                on_sorted(table)
            for part in parts:
                wish = replace(template, database=table.database, table=table.name, partition=part)
                if wish.name not in seen:
                    seen.add(wish.name)
                    yield wish


def _seconds(older_than: Duration | None) -> float | None:
    return None if older_than is None else as_seconds(older_than, "older_than")
