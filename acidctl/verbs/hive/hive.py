"""The Python API for a metastore: list and end its transactions, locks and compactions, and run Hive's services."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from acidctl.base.errors import AcidctlError, UsageProblem
from acidctl.hive.blocking import QueueView, find_held_back, find_stuck_entries
from acidctl.hive.table_names import as_hive_names, newer_than_metastore, wishes_for
from acidctl.hive.waiting import OnError
from acidctl.location.arguments import HiveName
from acidctl.location.snapshot_resolver import SnapshotResolver, open_warehouse
from acidctl.location.warehouse import Warehouse
from acidctl.metastore import queue
from acidctl.metastore.activity import KnownTxns, Lock, find_locks, find_transactions
from acidctl.metastore.client import Metastore
from acidctl.metastore.housekeeping import Dead, abort_txn, end_dead, find_dead, refuse_where_it_is_done
from acidctl.metastore.interface import CompactionResponse
from acidctl.metastore.server import txn_timeout
from acidctl.metastore.tables import HiveTable
from acidctl.verbs.selection import Selection

if TYPE_CHECKING:
    from acidctl.verbs.hive.cleaner import CleanedEntry
    from acidctl.verbs.hive.initiator import Initiated
    from acidctl.verbs.hive.worker import Worked
    from acidctl.verbs.writing.writable_table import WritableTable


class Hive:
    """A metastore. The first call connects; :meth:`close`, or a ``with``, closes the connection.

    Args:
        metastore: one or more addresses, separated by commas, or settings by their names; default: those of
            ``hive-site.xml``.

    Raises:
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

    def __exit__(self, *_: object) -> None:
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

    def table(self, name: str) -> WritableTable:
        """Return a table, ``db.table``, whose rows can be changed; errors come with the first change."""
        from acidctl.verbs.writing.writable_table import WritableTable

        places = tuple(as_hive_names([name]))
        return WritableTable(Selection(places, self._storage, SnapshotResolver(warehouse=self._warehouse)))

    def tables(self, *names: str, exclude: Sequence[str] = ()) -> list[HiveTable]:
        """Return the transactional tables, all or those that match names such as ``db.table`` or ``db.*``.

        Raises:
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
    ) -> list[queue.Compaction]:
        """Return the queue of compactions, followed by its history, all or those of one table, ``db.table``."""
        database, _, name = (table or "").partition(".")
        return queue.find_compactions(
            self.metastore, state=state, pool=pool, database=database or None, table=name or None
        )

    def stuck(self) -> QueueView:
        """Return the entries of the queue that do not proceed by themselves, with the cause."""
        return find_stuck_entries(self.metastore)

    def held_back(self, *tables: str, sizes: bool = True, on_error: OnError = lambda _, __: None) -> QueueView:
        """Return the transactions and locks that hold back cleanings, of the whole queue or of some tables.

        Args:
            sizes: list the locations, to count bytes.
            on_error: called for each location that cannot be listed.
        """
        names = as_hive_names(tables)
        return find_held_back(self._warehouse, names, self._storage, sizes=sizes, on_error=on_error)

    def request(
        self, *names: str, kind: str = "major", pool: str = "", exclude: Sequence[str] = ()
    ) -> list[tuple[queue.Wish, CompactionResponse]]:
        """Request a major or minor compaction, or a rebalance, by Hive's workers for every location of some tables.

        Raises:
            RefusedError: the files of a location are newer than the metastore; nothing was requested.
            Unreachable: no answer; the server may have accepted the last request.
        """
        template, warehouse = queue.Wish("", "", "", kind, pool), Warehouse(self.metastore, tuple(exclude))
        queue.check_wish(self.metastore, template)
        wishes = list(wishes_for(warehouse, names, template))
        for error in newer_than_metastore(warehouse, names, self._storage, lambda _: None).values():
            raise error
        return [(wish, queue.request_compaction(self.metastore, wish)) for wish in wishes]

    def abort_transactions(self, *ids: int) -> list[int]:
        """Abort transactions, and return the ids of those that were open."""
        return [id_ for id_ in ids if abort_txn(self.metastore, id_)]

    def abort_compactions(self, *ids: int) -> dict[int, tuple[bool, str]]:
        """Remove entries that wait for a worker from the queue (Hive 4); see :func:`abort_compactions`."""
        return dict(queue.abort_compactions(self.metastore, ids))

    def find_dead(self) -> Dead:
        """Return transactions and locks without a heartbeat for the server's time-out."""
        return find_dead(self.metastore, txn_timeout(self.metastore))

    def end_dead(self, dead: Dead, *, force: bool = False) -> Dead:
        """End those of `dead` that are still dead, and return them.

        Args:
            force: end them even if a server runs its own housekeeping.

        Raises:
            RefusedError: a server runs its own housekeeping.
        """
        if not force:
            refuse_where_it_is_done(self.metastore)
        return end_dead(self.metastore, dead, txn_timeout(self.metastore))

    def initiate(
        self, *tables: str, exclude: Sequence[str] = (), on_error: OnError = lambda _, __: None, **options: Any
    ) -> list[Initiated]:
        """Check all tables, or some, and request the compactions that are due, like Hive's initiator.

        Args:
            options: fields of :class:`acidctl.verbs.hive.options.InitiatorOptions`, such as `most` and `dry_run`, but
                for those of a service that goes on.

        Raises:
            ConflictError: another initiator is running, unless `dry_run` is given.
            UsageProblem: `every`, `once` or `standby` is given.
        """
        from acidctl.verbs.hive.initiator import Initiator
        from acidctl.verbs.hive.options import InitiatorOptions
        from acidctl.verbs.hive.service import Tables

        _require_one_round(options)
        outcomes: list[Initiated] = []
        wanted, chosen = Tables(tables, exclude, self._storage), InitiatorOptions(**options)
        Initiator(self.metastore, chosen, wanted, outcomes.append, on_error).once()
        return outcomes

    def work(self, *, on_error: Callable[[AcidctlError], None] = lambda _: None, **options: Any) -> list[Worked]:
        """Run the waiting compactions of the queue, like Hive's workers, by default on this machine, and end.

        Args:
            on_error: called for each error of the metastore itself, after which the call is repeated.
            options: fields of :class:`acidctl.verbs.hive.options.WorkerOptions`.

        Raises:
            UsageProblem: the server has no queue for external workers (before Hive 4).
        """
        from acidctl.verbs.engine import EngineOptions
        from acidctl.verbs.hive.options import WorkerOptions
        from acidctl.verbs.hive.worker import worker_of

        outcomes: list[Worked] = []
        chosen = WorkerOptions(**{"once": True, "tasks": EngineOptions(engine="local"), **options})
        with worker_of(self.metastore, chosen, self._storage, outcomes.append, on_error) as worker:
            worker.free_dead()
            worker.run()
        return outcomes

    def clean(self, *tables: str, exclude: Sequence[str] = (), **options: Any) -> list[CleanedEntry]:
        """Clean the entries of the queue that are ready: move obsolete files to the trash, and mark the entries.

        Args:
            options: fields of :class:`acidctl.verbs.hive.options.CleanerOptions`, such as `older_than`, `no_trash` and
                `dry_run`, but for those of a service that goes on.

        Raises:
            RefusedError: `older_than` is too short.
            UsageProblem: `every` or `once` is given, or the server has no queue for external cleaners (before Hive 4).
        """
        from acidctl.verbs.hive.cleaner import Cleaner
        from acidctl.verbs.hive.options import CleanerOptions
        from acidctl.verbs.hive.service import Tables

        def failed(error: AcidctlError) -> None:
            raise error

        _require_one_round(options)
        outcomes: list[CleanedEntry] = []
        wanted = Tables(tables, exclude, self._storage)
        Cleaner(self.metastore, CleanerOptions(**options), wanted, outcomes.append, failed).once()
        return outcomes


def _require_one_round(options: Mapping[str, Any]) -> None:
    """Refuse, by UsageProblem, the options of services that go on: a call makes one check and ends."""
    if given := [name for name in ("every", "once", "standby") if name in options]:
        raise UsageProblem(
            f"{given[0]} has no meaning here", "a call makes one check and ends", f"leave out {given[0]}"
        )
