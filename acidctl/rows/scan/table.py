"""``acidctl.open_table`` and the table that it returns: all its locations, partition columns and one row type."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from itertools import islice
from typing import TypeVar

import pyarrow as pa

from acidctl.acid.listing import Ages, TableType
from acidctl.acid.names import DEFAULT_PARTITION
from acidctl.acid.reasons import Reason
from acidctl.acid.time_travel import doubts_of_table, with_doubts
from acidctl.acid.writeids import ValidWriteIds
from acidctl.base import parallel
from acidctl.base.arguments import as_flag, as_path, as_texts, as_write_id_or_time, require_type
from acidctl.base.errors import AcidctlError, BadDataError, NotFoundError, UsageProblem
from acidctl.base.nearest import did_you_mean
from acidctl.base.packed import Packed
from acidctl.location.arguments import is_hive_name
from acidctl.location.find import find_table, require_any
from acidctl.location.snapshot import Snapshot
from acidctl.location.snapshot_resolver import SnapshotResolver, SnapshotSpec, open_warehouse
from acidctl.location.table_location import TableLocation, Unseen, ever_changing, is_any_stale
from acidctl.orc.types import OrcType
from acidctl.rows.convert.matching import table_row_type
from acidctl.rows.read.moment import newest_at
from acidctl.rows.read.past_snapshot import seen_at
from acidctl.rows.read.visibility import Loss, OnLoss, loss_of, open_sources
from acidctl.rows.scan.columns import PartitionColumn
from acidctl.rows.scan.partition_values import PartitionValue, declared_type, partition_type, typed
from acidctl.rows.scan.predicate import Predicate, RowCondition
from acidctl.rows.scan.scan import Scan
from acidctl.rows.scan.table_scan import ArrowRows, Part, Summary, TableScan, may_be_skipped
from acidctl.storage.registry import open_location

# The locations may change between listing them and getting the write-id list: they are listed at most this often.
_ATTEMPTS = 3
# The snapshots of more locations are held as bytes, to save memory.
_FEW_LOCATIONS = 100

_T = TypeVar("_T")


def open_table(
    url: str | os.PathLike[str],
    *,
    storage_options: Mapping[str, str] | None = None,
    metastore: str | Mapping[str, str] | None = None,
    snapshot: str | ValidWriteIds | SnapshotSpec | None = None,
) -> Table:
    """Find a table: one location, the partitions below a directory, or a name in a metastore.

    Args:
        url: a path, a URL of any supported store, or a name in the metastore: ``hive:db.table`` or
            ``hive:db.table/key=value``.
        storage_options: for the store, by their fsspec names.
        metastore: gives names, columns and their types, and the write-id list if `snapshot` does not: an address
            such as ``thrift://host:9083``, several separated by commas, or settings by their names
            (docs/how-to/metastore.md). None reads ``hive-site.xml``, ``none`` turns it off.
        snapshot: Hive's valid write-id list (``db.t:hwm:minOpen:open:aborted``), one a line or those of several
            tables together (``txn$list$list``). A line ``txns=hwm:minOpen:open:aborted`` is Hive's valid transaction
            list, which decides which ``_v`` directories count. By default everything on disk counts as committed.

    Raises:
        NotFoundError, AccessError, StorageError: the table does not exist, or cannot be listed.
        NotLookedAtError: there is no location at all.
        UsageProblem: the lists cannot be parsed, or `url` holds several tables.
        RefusedError: the lists are not for this table; raised by the first scan.
        BadDataError: the partitions have different keys.
    """
    resolver = SnapshotResolver(SnapshotSpec.of(snapshot), open_warehouse(metastore))
    return table_at(url, storage_options, resolver)


def table_at(
    url: str | os.PathLike[str],
    storage_options: Mapping[str, str] | None,
    resolver: SnapshotResolver,
    table_type: TableType | None = None,
) -> Table:
    """Find a table of a given type, if the user gave one, whose snapshots `resolver` takes; see :func:`open_table`."""
    path = given = as_path(url)
    storage = {} if storage_options is None else storage_options  # a mapping of options by prefix may look empty
    found = find_table(path, storage, resolver, table_type)
    if not is_hive_name(path):
        fs, root = open_location(path, storage)
        path = fs.display(root)
    return Table(path, found, resolver, lambda newer: find_table(given, storage, newer, table_type))


@dataclass(frozen=True, slots=True)
class PartitionLocation:
    """One location of a table.

    Attributes:
        path: as a user would type it.
        partition: typed values by the names of the partition columns; empty without partitions.
    """

    path: str
    partition: dict[str, PartitionValue]


class Table(ArrowRows):
    """A table; made by :func:`open_table`. It holds no files open, and every scan lists the directories again.

    A table can be read like a scan of all its columns; the snapshot is taken when the rows are read.

    If the write-id list comes from a metastore, the first scan uses the list from when the table was opened. Every
    later scan gets a new list, and the partitions again.

    Args:
        find: finds the current locations by new lists.

    Attributes:
        found: the locations with their listings, sorted by path.
        path: as a user would type it.
    """

    def __init__(
        self,
        path: str,
        found: Sequence[TableLocation],
        resolver: SnapshotResolver,
        find: Callable[[SnapshotResolver], Sequence[TableLocation]] | None = None,
    ) -> None:
        self.path = path
        self._resolver = resolver
        self._is_new = True
        self._find = find
        self._set(found)

    def _set(self, found: Sequence[TableLocation]) -> None:
        self.found: Sequence[TableLocation] = found if isinstance(found, Packed) else tuple(found)
        self._types = [self._type(position, key) for position, key in enumerate(self._keys())]

    def __repr__(self) -> str:
        return f"<acidctl table {self.path}, locations: {len(self.found)}>"

    @property
    def locations(self) -> tuple[PartitionLocation, ...]:
        """Return the locations, sorted by path, with their partition values."""
        return tuple(self._locations())

    def _locations(self) -> Iterator[PartitionLocation]:
        for found in self.found:
            yield PartitionLocation(found.shown, {column.name: column.value for column in self.partition_of(found)})

    @cached_property
    def schema(self) -> pa.Schema:
        """Return the Arrow schema of all columns, the partition columns last; it reads the footers of all files."""
        return self.scan().schema

    def to_batches(self, limit: int | None = None, *, threads: int = 1) -> Iterator[pa.RecordBatch]:
        """Read all columns; see :meth:`TableScan.to_batches`."""
        return self.scan().to_batches(limit, threads=threads)

    def _rows(self) -> ArrowRows:
        return self.scan()

    def scan(
        self,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        *,
        at: int | datetime | None = None,
        row_id: bool = False,
        deleted: bool = False,
        partition: Mapping[str, PartitionValue] | None = None,
        on_loss: OnLoss | None = None,
        skip_hint: str = "on_loss reads the rest",
    ) -> TableScan:
        """Take a snapshot of the table and return its rows.

        Args:
            columns: names in the order wanted, dotted for fields inside structs; None for all.
            where: a condition in SQL, see :mod:`acidctl.rows.scan.predicate`. It may use ``ROW__ID.writeid`` and
                partition columns that are not in `columns`.
            at: read the table as it was when this write id was the newest; this reads obsolete directories that newer
                bases replaced, see :mod:`acidctl.acid.time_travel`. At a time (without a zone: in UTC) it was the one
                that the notes of the result name, see :mod:`acidctl.rows.read.moment`.
            row_id: put ``ROW__ID`` first, a struct of writeid, bucketid and rowid.
            deleted: return the rows that deletes and updates removed, instead of the live rows.
            partition: read only the partitions with these values.
            on_loss: called for everything that cannot be read, which is then skipped; by default that is an error.
            skip_hint: the hint of such an error.

        Raises:
            NotFoundError: a column or partition does not exist; the hint has similar names.
            UsageProblem: the condition or `at` cannot be used.
            HistoryError: compactions have destroyed the history that `at`, or the write-id list, needs.
            BadDataError: a file cannot be read.
        """
        names = None if columns is None else as_texts(columns, "columns")
        row_id, deleted = as_flag(row_id, "row_id"), as_flag(deleted, "deleted")
        require_type(partition, Mapping, "partition", "give a dict of values by the names of partition columns")
        require_type(on_loss, Callable, "on_loss", "give a function")  # type: ignore[arg-type]
        require_type(where, (str, Predicate), "where", "write a condition in SQL: 'id = 2'")
        at = None if at is None else as_write_id_or_time(at, "at")
        chosen = self._newest_at(at) if isinstance(at, datetime) else None
        write_id = None if isinstance(at, datetime) else at
        write_id = chosen.ids[0] if chosen else write_id
        try:
            summary, parts = self._opened(write_id, partition or {}, on_loss, skip_hint)
        except NotFoundError:
            if not self._resolver.asks_metastore or on_loss:
                raise
            # A cleaner removed a directory of this snapshot: try again with a new list from the metastore.
            self._renew(self._resolver.refreshed(is_retry=True))
            summary, parts = self._opened(write_id, partition or {}, on_loss, skip_hint)
        summary.notes |= {chosen: None} if chosen else {}
        if not parts:
            existing = [_partition_path(location.partition) for location in islice(self._locations(), 10)]
            more = ", ..." if len(self.found) > len(existing) else ""
            what = f"no partition {_partition_path(partition or {})} in {self.path}"
            raise NotFoundError(what, f"there are {', '.join(existing)}{more}")

        def scan_of(part: Part, where: str | RowCondition | None) -> Scan:
            return Scan(
                part.snapshot,
                names,
                row_id=row_id,
                where=where,
                deleted=deleted,
                partition=part.partition,
                row_type=summary.row_type,
                sources=[source for source in part.sources if not summary.stray(source)],
                on_loss=on_loss,
            )

        return TableScan(parts, summary, scan_of, where, skip_hint)

    def _newest_at(self, moment: datetime) -> Reason:
        """Return the newest write id at a moment; for errors see :func:`acidctl.rows.read.moment.newest_at`."""
        # Snapshots list again: they need the write id first, and the listings of many partitions are not kept.
        listings = parallel.results(lambda found: found.reload().look.listing, self.found)
        return newest_at(self.path, map(Ages.of, listings), moment)

    def _opened(
        self, at: int | None, partition: Mapping[str, PartitionValue], on_loss: OnLoss | None, skip_hint: str
    ) -> tuple[Summary, Packed[Part]]:
        """Open the files of the locations with these partition values, in the order of `found`."""

        def parts(snapshots: Iterable[Snapshot], summary: Summary, losses: list[Loss]) -> Iterator[Part]:
            for snapshot, found, location in zip(snapshots, self.found, self._locations(), strict=True):
                with may_be_skipped(skip_hint, "nothing in it can be read"):
                    sources = open_sources(snapshot, losses.append if on_loss else None)
                is_wanted = self._matches(location, partition)
                summary.add(snapshot, sources, is_wanted=is_wanted)
                if is_wanted:
                    yield Part(snapshot, tuple(self.partition_of(found)), sources)

        def opened(snapshots: Iterable[Snapshot]) -> tuple[Summary, Packed[Part], list[Loss]]:
            summary, losses = Summary(), list[Loss]()
            packed = self.packed(parts(snapshots, summary, losses), lambda part: shared_by(part.snapshot))
            for part in packed if summary.stray_text else ():
                for source in part.sources:
                    if problem := summary.stray(source):
                        losses.append(loss_of(source, None, problem))
                        if not on_loss:
                            with may_be_skipped(skip_hint):
                                raise problem
            return summary, packed, losses

        summary, packed, losses = self._made_of_snapshots(at, opened)
        for loss in losses:
            assert on_loss
            on_loss(loss)
        summary.row_type = table_row_type(self.found[0].declared, summary.types())
        return summary, packed

    def packed(self, values: Iterable[_T], shared: Callable[[_T], Iterable[object]]) -> Packed[_T]:
        """Return a value of each location as bytes if there are many; see :class:`acidctl.base.packed.Packed`."""
        return Packed(values, shared, is_needed=len(self.found) > _FEW_LOCATIONS)

    def partition_of(self, found: TableLocation) -> list[PartitionColumn]:
        """Return the partition columns with their values in one location."""
        return [
            PartitionColumn(name, kind, typed(text, kind, name))
            for (name, text), kind in zip(found.location.partition, self._types, strict=True)
        ]

    def _type(self, position: int, key: str) -> OrcType:
        """Return the type of a partition column from the metastore, else guess it from the values."""
        hive = self.found[0].hive
        declared = {column.name: column.type for column in hive.partition_keys} if hive else {}
        if key.lower() in declared:
            return declared_type(declared[key.lower()])
        return partition_type([found.location.partition[position][1] for found in self.found])

    def _keys(self) -> tuple[str, ...]:
        """Return the partition keys that all locations share."""
        tables = sorted({found.location.table for found in self.found})
        require_any(self.path, self.found)
        if len(tables) != 1:
            raise UsageProblem(
                f"{self.path} holds {len(tables)} tables",
                ", ".join(tables[:5]) + (", ..." if len(tables) > 5 else ""),
                "give the path of one table, or of one partition",
            )
        layouts = sorted({tuple(key for key, _ in found.location.partition) for found in self.found})
        if len(layouts) > 1:
            raise BadDataError(
                f"{self.path} is not one partitioned table",
                "its locations have the partition keys " + " and ".join(f"({', '.join(keys)})" for keys in layouts[:3]),
                "move away what does not belong to the table, or give one location of it",
            )
        return layouts[0]

    def _matches(self, location: PartitionLocation, wanted: Mapping[str, PartitionValue]) -> bool:
        actual = {name.lower(): value for name, value in location.partition.items()}
        for name, value in wanted.items():
            if name.lower() not in actual:
                raise NotFoundError(
                    f"no partition column {name!r} in {self.path}",
                    f"its partition columns are {', '.join(location.partition)}" if actual else "it has no partitions",
                    did_you_mean(name, location.partition),
                )
            actual_value = actual[name.lower()]
            if value in (None, DEFAULT_PARTITION):
                if actual_value is not None:
                    return False
            elif actual_value is None or (actual_value != value and str(actual_value) != str(value)):
                return False
        return True

    def snapshots_at(self, at: int | None) -> Sequence[Snapshot]:
        """Return a snapshot of every location, in the order of `found`; see :meth:`scan` for `at` and the errors."""
        return self._made_of_snapshots(at, lambda snapshots: self.packed(snapshots, shared_by))

    def _made_of_snapshots(self, at: int | None, make: Callable[[Iterable[Snapshot]], _T]) -> _T:
        """Return what `make` makes of the snapshots of all locations; it is called again if the lists were too old."""
        if not self._is_new:
            self._renew()
        self._is_new = False
        for _ in range(_ATTEMPTS):
            unseen: list[Unseen] = []
            problem = None
            try:
                made = make(self._snapshots(at, unseen))
            except AcidctlError as error:
                problem = error
            newer = self._resolver.refreshed(is_retry=True)
            if not is_any_stale(unseen, newer):
                if problem:
                    raise problem
                return made
            self._renew(newer)
        raise ever_changing(self.path)

    def _snapshots(self, at: int | None, unseen: list[Unseen]) -> Iterator[Snapshot]:
        """Yield a snapshot of every location, and add to `unseen` what :func:`is_any_stale` needs to know of it."""
        taken = self._taken(at, unseen)
        if at is None or len(self.found) == 1:
            yield from taken
            return
        snapshots = self.packed(taken, shared_by)
        doubts = doubts_of_table((snapshot.state for snapshot in snapshots), at, snapshots[0].write_ids)
        for snapshot in snapshots:
            yield replace(snapshot, state=with_doubts(snapshot.state, doubts))

    def _taken(self, at: int | None, unseen: list[Unseen]) -> Iterator[Snapshot]:
        resolver = self._resolver.opened()

        def take(found: TableLocation) -> tuple[Snapshot, Unseen]:
            now = found.reload(resolver)  # it holds its listing, so it is not kept
            return seen_at(now, at), (now.hive, now.unseen())

        write_ids = None
        for snapshot, of_location in parallel.results(take, self.found):
            if of_location[1]:
                unseen.append(of_location)
            snapshot.require_history()
            if snapshot.write_ids != write_ids:
                write_ids = snapshot.write_ids
            yield replace(snapshot, write_ids=write_ids)  # equal lists are held once

    def _renew(self, resolver: SnapshotResolver | None = None) -> None:
        """Get new lists first, then the locations: older locations would lack what a transaction has added."""
        self._resolver = resolver or self._resolver.refreshed()
        self._is_new = True
        if self._find and self._resolver.asks_metastore:
            self._set(self._find(self._resolver))


def _partition_path(values: Mapping[str, PartitionValue]) -> str:
    return "/".join(f"{name}={value}" for name, value in values.items())


def shared_by(snapshot: Snapshot) -> Iterable[object]:
    """Return the objects that the snapshots of a table share."""
    return snapshot.fs, snapshot.write_ids, snapshot.txns, snapshot.declared, snapshot.source, snapshot.assumed
