"""A location as planners see it: its listing, its snapshots and its metastore's answers, as one value.

Everything that a plan needs is asked for here, once and before the planning: planners are functions of this value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from acidctl.acid.compaction_kind import Hive
from acidctl.base.errors import AccessError, AcidctlError, BadDataError, RefusedError, StorageError
from acidctl.location.evidence import Evidence
from acidctl.location.metastore_schema import TableProperties
from acidctl.location.snapshot import DirectoryListing, Snapshot
from acidctl.location.table_location import TableLocation
from acidctl.location.walk import WalkedLocation
from acidctl.storage.port import FileSystem

if TYPE_CHECKING:
    from acidctl.metastore.interface import CompactionInfo
    from acidctl.metastore.tables import HiveTable


@dataclass(frozen=True, slots=True)
class MetastoreFacts:
    """The answers of a metastore about a location and its table; empty without one.

    Attributes:
        properties: those of the table and of its database.
        hive: the metastore's version of Hive.
        entry: the entry of Hive's queue for the location, if it was asked for.
        has_pools: the metastore is of Hive 4, in which an entry can be in a pool, and can be removed.
        decides: the metastore, and not the user, decides which write ids count.
        open_write_ids: the open write ids of the table, if the metastore decides.
    """

    table: HiveTable | None = None
    properties: TableProperties = field(default_factory=TableProperties)
    hive: Hive | None = None
    entry: CompactionInfo | None = None
    has_pools: bool = False
    decides: bool = False
    open_write_ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ResolvedLocation:
    """One location, listed once, with all that planners need to know of it.

    Attributes:
        shown: the path, as a user would type it.
        reader: the state as a reader sees it, with the readers that hold locks; None if it was not asked for.
        compactor: the state as a compaction sees it (format section 7.3), or why there is none; None if it was not
            asked for.
        evidence: whether it is known to be transactional; None if that was not asked for.
    """

    fs: FileSystem
    location: WalkedLocation
    shown: str
    listing: DirectoryListing
    metastore: MetastoreFacts
    reader: Snapshot | None = None
    compactor: Snapshot | BadDataError | RefusedError | None = None
    evidence: Evidence | None = None

    def for_reader(self) -> Snapshot:
        """Return the state as a reader sees it."""
        assert self.reader  # it was asked for
        return self.reader

    def for_compactor(self) -> Snapshot:
        """Return the state as a compaction sees it.

        Raises:
            BadDataError, RefusedError: nobody says what is committed, or the files are newer than the metastore.
        """
        assert self.compactor  # it was asked for
        if isinstance(self.compactor, Snapshot):
            return self.compactor
        raise self.compactor


def resolve(
    found: TableLocation,
    *,
    reader: bool = False,
    compactor: bool = False,
    queue: bool = False,
    evidence: bool = False,
    on_unknown_readers: Callable[[AcidctlError], None] | None = None,
) -> ResolvedLocation:
    """List a location, and ask its metastore for what a plan needs; lists that are too old are taken again.

    Args:
        reader: resolve the snapshot of a reader.
        compactor: resolve the snapshot of a compaction.
        queue: ask for the location's entry in Hive's queue.
        evidence: see whether it is known to be transactional, which may read the end of a file or two.
        on_unknown_readers: receives the error of a metastore that does not say who holds locks, or what may be cleaned;
            None raises it.

    Raises:
        GoneError: it was dropped meanwhile.
        NotFoundError, AccessError, StorageError, UsageProblem: it cannot be listed.
        ConflictError: compactions end faster than it can be listed.
        RefusedError, BadDataError: its snapshot as a reader is not known.
        MetastoreError: the metastore cannot be reached, or failed.
    """
    facts = metastore_facts(found, queue=queue)
    found = found.refresh_if_stale()
    if facts.decides and facts.table and found.resolver.warehouse:
        facts = replace(facts, open_write_ids=found.resolver.warehouse.lists(facts.table, may_clean=False)[0].open)
    as_compactor: Snapshot | BadDataError | RefusedError | None = None
    with found.unless_dropped():
        as_reader = _as_reader(found, on_unknown_readers) if reader else None
        counts_all = as_reader and as_reader.write_ids.is_everything and not as_reader.ahead
        if compactor and counts_all and not found.resolver.asks_metastore:  # a compaction sees what a reader sees
            as_compactor = as_reader
        elif compactor:
            try:
                as_compactor = found.snapshot(compactor=True, refresh=False)
            except (BadDataError, RefusedError) as error:
                as_compactor = error
        return ResolvedLocation(
            found.fs,
            found.location,
            found.shown,
            found.look,
            facts,
            as_reader,
            as_compactor,
            found.evidence if evidence else None,
        )


def _as_reader(found: TableLocation, on_unknown_readers: Callable[[AcidctlError], None] | None) -> Snapshot:
    snapshot = found.snapshot(refresh=False)
    try:
        return found.with_readers(snapshot)
    except (StorageError, AccessError) as error:
        if on_unknown_readers is None:
            raise
        on_unknown_readers(error)
        return snapshot


def metastore_facts(found: TableLocation, *, queue: bool = False) -> MetastoreFacts:
    """Ask the metastore about a location's table.

    Args:
        queue: ask for the location's entry in Hive's queue, too.

    Raises:
        MetastoreError: the metastore cannot be reached, or failed.
    """
    warehouse = found.resolver.warehouse
    if found.hive is None or warehouse is None:
        return MetastoreFacts(found.hive)
    features = warehouse.metastore.features
    return MetastoreFacts(
        found.hive,
        warehouse.table_properties(found.hive),
        features.hive,
        warehouse.compaction_of(found.hive, found.location.partition) if queue else None,
        features.txn_types,
        found.resolver.asks_metastore,
    )
