"""A metastore as one object for Python: its tables, transactions, locks and compactions, and what ends them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import TYPE_CHECKING, Self

from acidctl.cleaning.retention import FLOOR_SECONDS, Policy
from acidctl.deadline import Duration, as_seconds
from acidctl.errors import AcidctlError, UsageProblem
from acidctl.hive.blocking import Blocker, find_blockers
from acidctl.hive.waiting import OnError, Waiting, find_waiting, ready_entries
from acidctl.location.given import HIVE, at_its_line, is_hive_name
from acidctl.location.hive_names import HiveName
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
    """What waits for cleaning, and for whom.

    Attributes:
        blockers: the one first that holds back most bytes.
        waiting: everything that waits, held back or not.
        known, switches: the transactions and the settings of the server that this was told from.
    """

    blockers: tuple[Blocker, ...]
    waiting: tuple[Waiting, ...]
    known: KnownTxns
    switches: Switches


@dataclass(frozen=True, slots=True)
class StuckQueue:
    """Entries of a queue that do not go on by themselves.

    Attributes:
        known, switches: as of :class:`HeldBack`.
    """

    entries: tuple[Stuck, ...]
    known: KnownTxns
    switches: Switches


class Hive:
    """A metastore. Nothing is asked before the first call; :meth:`close`, or a ``with``, ends its connection.

    Args:
        metastore: its address, several separated by commas, or settings by their names; None for what
            ``hive-site.xml`` says.
        storage: options of stores, for sizes of what waits for cleaning.

    Raises:
        UsageProblem: nothing names a metastore.
        EnvironmentProblem: the package that it takes is not installed.
    """

    def __init__(
        self, metastore: str | Mapping[str, str] | None = None, storage: Mapping[str, str] | None = None
    ) -> None:
        warehouse = open_warehouse(metastore)
        if warehouse is None:
            raise UsageProblem("no metastore is known", "", "give `metastore`, or set HIVE_CONF_DIR")
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
        """What asks it."""
        return self._warehouse.metastore

    def close(self) -> None:
        """End its connection."""
        self.metastore.close()

    def tables(self, *names: str, exclude: Sequence[str] = ()) -> list[HiveTable]:
        """Its transactional tables: all, or those of some names, ``db.table`` or ``db.*``.

        Raises:
            NotFoundError: there is no such table.
            UsageProblem: one that is named is not transactional.
            MetastoreError: the metastore cannot be reached, or failed. (So for all other methods.)
        """
        found = Warehouse(self.metastore, tuple(exclude))
        return [table for name in as_hive_names(names or ["*.*"]) for table in found.tables(HiveName.parse(name))]

    def transactions(self) -> KnownTxns:
        """Its transactions that are open, and those that were aborted and are not forgotten yet."""
        return find_transactions(self.metastore)

    def locks(self, table: str = "") -> tuple[Lock, ...]:
        """The locks that are held and that wait; all, or those on one table, ``db.table``."""
        database, _, name = table.partition(".")
        return find_locks(self.metastore, database or None, name or None)

    def compactions(
        self, *, state: str | None = None, pool: str | None = None, table: str | None = None
    ) -> list[Compaction]:
        """The queue of compactions, and its history behind it."""
        database, _, name = (table or "").partition(".")
        return find_compactions(self.metastore, state=state, pool=pool, database=database or None, table=name or None)

    def stuck(self) -> StuckQueue:
        """Entries of the queue that do not go on by themselves, with what keeps them."""
        return look_for_stuck(self.metastore)

    def held_back(self, *tables: str, sizes: bool = True, on_error: OnError = lambda _, __: None) -> HeldBack:
        """Which transactions and locks hold back which cleanings, of the whole queue or of some tables.

        Args:
            sizes: list the locations, for the bytes.
            on_error: told of a location that cannot be listed.
        """
        names = as_hive_names(tables)
        return look_for_blockers(self._warehouse, names, self._storage, sizes=sizes, on_error=on_error)

    def request(
        self, *names: str, kind: str = "major", pool: str = "", exclude: Sequence[str] = ()
    ) -> list[tuple[Wish, QueueAnswer]]:
        """Ask Hive's workers for a compaction of every location of some tables.

        Args:
            kind: major, minor or rebalance.

        Raises:
            UsageProblem: the server cannot be asked for that.
            Unreachable: no answer: what was asked for last may have been taken nevertheless.
        """
        asked = Wish("", "", "", kind, pool)
        check_wish(self.metastore, asked)
        wishes = list(wishes_for(Warehouse(self.metastore, tuple(exclude)), names, asked))
        return [(wish, request_compaction(self.metastore, wish)) for wish in wishes]

    def abort_transactions(self, *ids: int) -> list[int]:
        """Abort transactions; those that were open until then."""
        return [id_ for id_ in ids if abort_txn(self.metastore, id_)]

    def abort_compactions(self, *ids: int) -> dict[int, tuple[bool, str]]:
        """Take entries that wait for a worker out of the queue (Hive 4); whether that was done, and its words."""
        return dict(abort_compactions(self.metastore, ids))

    def find_dead(self, older_than: Duration | None = None) -> Dead:
        """Transactions and locks whose clients gave no sign of life for so many seconds, or for its time-out."""
        return find_dead(self.metastore, silent_for(_seconds(older_than), find_switches(self.metastore)))

    def end_dead(self, dead: Dead, older_than: Duration | None = None, *, force: bool = False) -> Dead:
        """End them: those of them that are still dead.

        Args:
            force: although a server keeps house itself.

        Raises:
            RefusedError: a server keeps house itself.
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
        """Ask for the compactions that are due, as Hive's initiator does: one look over all tables, or some.

        Args:
            pool: for the workers of this pool; without it that of the table or database.
            most: ask for so many, those first whose readers gain most.
            dry_run: only say what would be asked for.
            on_error: told of what cannot be looked at, by its name.

        Raises:
            ConflictError: another initiator is at work.
        """
        from acidctl.hive.initiator import Initiation, Initiator  # noqa: PLC0415 - with compactions

        found: list[Initiated] = []
        names = as_hive_names(tables or ("*.*",))
        asked = Initiation(names, exclude, pool, most, changes_nothing=dry_run, storage=self._storage)
        Initiator(self.metastore, asked, found.append, on_error).once()
        return found

    def work(
        self,
        *,
        pool: str = "",
        at_once: int = 1,
        max_bytes: int | None = None,
        jobs: int | None = None,
        on_error: Callable[[AcidctlError], None] = lambda _: None,
    ) -> list[Worked]:
        """Compact what waits in the queue, as Hive's workers do, in processes of this machine; until nothing waits.

        Args:
            pool: of which entries are taken; without it those that have none.
            at_once: entries.
            max_bytes: of their inputs at once; one that is larger waits until it is alone.
            jobs: processes; None for one per core.
            on_error: told what goes wrong with the metastore itself; then it is tried again.

        Raises:
            UsageProblem: the server has no queue for others (before Hive 4).
        """
        from acidctl.compaction.local_engine import LocalEngine  # noqa: PLC0415 - with compactions
        from acidctl.hive.worker import Work, Worker  # noqa: PLC0415 - with compactions

        found: list[Worked] = []
        asked = Work(pool, at_once, max_bytes, once=True, job="acidctl.Hive", storage=self._storage)
        worker = Worker(
            self.metastore, asked, lambda until, told: LocalEngine(jobs, until, told), found.append, on_error
        )
        worker.free_dead()
        worker.run()
        return found

    def clean(
        self,
        *tables: str,
        exclude: Sequence[str] = (),
        older_than: Duration = FLOOR_SECONDS,
        unsafe_retention: bool = False,
        dry_run: bool = False,
    ) -> list[CleanedEntry]:
        """Move to the trash what entries of the queue leave obsolete that are ready for cleaning, and mark them done.

        Args:
            older_than: seconds; what was superseded later stays.
            unsafe_retention: nobody reads the tables meanwhile, so `older_than` may be less than an hour.
            dry_run: only say what would be removed.

        Raises:
            RefusedError: `older_than` is too short.
            UsageProblem: the server has no queue for others (before Hive 4).
            ConflictError: another cleaner is at work.
        """
        from acidctl.hive.cleaner import Cleaner, CleanerWork  # noqa: PLC0415 - with cleanings

        policy = Policy(as_seconds(older_than, "older_than"))
        if not (dry_run or unsafe_retention):
            policy.require_safe()
        found: list[CleanedEntry] = []
        names = as_hive_names(tables or ("*.*",))
        asked = CleanerWork(names, exclude, policy, changes_nothing=dry_run, storage=self._storage)

        def failed(error: AcidctlError) -> None:
            raise error

        Cleaner(self.metastore, asked, found.append, failed).once()
        return found


def as_hive_names(names: Sequence[str]) -> list[str]:
    """Names of tables, each with ``hive:`` before it.

    Raises:
        UsageProblem: one is not the name of a table.
    """
    found = [name if is_hive_name(name) else HIVE + name for name in names]
    for name in found:
        HiveName.parse(name)
    return found


def look_for_stuck(metastore: Metastore) -> StuckQueue:
    """Ask for all that shows which entries of the queue are stuck.

    Raises:
        MetastoreError: the metastore cannot be reached, or failed.
    """
    # In this order: what the queue says of a transaction that had ended before is certain.
    switches = find_switches(metastore)
    known = find_transactions(metastore)
    entries = find_compactions(metastore)
    locks = () if switches.is_hive4 else find_locks(metastore)
    return StuckQueue(tuple(find_stuck(entries, known, switches, locks)), known, switches)


def look_for_blockers(
    warehouse: Warehouse, names: Sequence[str], storage: Mapping[str, str], *, sizes: bool, on_error: OnError
) -> HeldBack:
    """Ask for all that shows who holds back which cleaning.

    Args:
        names, storage, sizes, on_error: as of :func:`acidctl.hive.waiting.find_waiting`.

    Raises:
        NotFoundError: a table that is named is not there.
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
    asked: Wish,
    on_sorted: Callable[[HiveTable], None] = lambda _: None,
) -> Iterator[Wish]:
    """One wish for each location that is named, once.

    Args:
        asked: what is asked for, of no table.
        on_sorted: told of tables that Hive's workers refuse.

    Raises:
        NotFoundError: there is no such table, or no such partition.
        UsageProblem: one that is named is not transactional.
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
                wish = replace(asked, database=table.database, table=table.name, partition=part)
                if wish.name not in seen:
                    seen.add(wish.name)
                    yield wish


def _seconds(older_than: Duration | None) -> float | None:
    return None if older_than is None else as_seconds(older_than, "older_than")
