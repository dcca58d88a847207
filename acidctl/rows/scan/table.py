"""A table as one thing: all its locations, partition columns, one row type; what ``acidctl.open_table`` gives."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from numbers import Integral
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import pyarrow as pa

from acidctl.acid.names import DEFAULT_PARTITION
from acidctl.acid.past import of_one_table
from acidctl.acid.reasons import Reason
from acidctl.acid.writeids import ValidTxns, ValidWriteIds
from acidctl.arguments import as_path, require_type
from acidctl.errors import BadDataError, NotFoundError, UsageProblem, importing
from acidctl.location.find import Found, ever_changing, find_table, is_any_overtaken
from acidctl.location.given import is_hive_name
from acidctl.location.lists import SnapshotLists, lists_of, read_lists
from acidctl.location.named_metastore import open_warehouse
from acidctl.location.snapshot import Snapshot
from acidctl.nearest import did_you_mean
from acidctl.orc.types import OrcType
from acidctl.rows.read.events import EventFile
from acidctl.rows.read.past_snapshot import seen_at
from acidctl.rows.read.schema_evolution import table_row_type
from acidctl.rows.read.selection import limited
from acidctl.rows.read.visibility import OnLoss, Unreadable, open_sources, with_loss
from acidctl.rows.scan.arrow_rows import ArrowRows, has_union, one_table, polars_frame
from acidctl.rows.scan.arrow_types import Needs, look, of_schema, varies
from acidctl.rows.scan.columns import PartitionColumn
from acidctl.rows.scan.odd_layout import odd_layout
from acidctl.rows.scan.packed import Packed
from acidctl.rows.scan.partition_values import PartitionValue, declared_type, partition_type, typed
from acidctl.rows.scan.predicate import Predicate
from acidctl.rows.scan.scan import Scan
from acidctl.storage.registry import open_location

if TYPE_CHECKING:
    import polars

_PARALLEL = 8
_ROUNDS = 3
"""So often the locations are listed and their metastore asked, where the one overtakes the other."""

_T = TypeVar("_T")

_FEW_LOCATIONS = 500
"""What is known of more is held as bytes."""


def open_table(
    url: str | os.PathLike[str],
    *,
    storage_options: Mapping[str, str] | None = None,
    metastore: str | Mapping[str, str] | None = None,
    write_ids: str | ValidWriteIds | None = None,
    valid_txns: str | ValidTxns | None = None,
    table: str | None = None,
) -> Table:
    """Find a table: one location, the partitions below a directory, or what a metastore has under a name.

    Args:
        url: a path, of any kind that Python knows, a URL of any supported store, or a name of a metastore's,
            ``hive:db.table`` or ``hive:db.table/key=value``.
        storage_options: for the store, by their fsspec names.
        metastore: who knows names, columns and their types, and says what counts where `write_ids` does not: an address
            such as ``thrift://host:9083``, several separated by commas, or settings by their names
            (docs/how-to/metastore.md); None for what ``hive-site.xml`` says, ``none`` for none.
        write_ids: Hive's valid write-id list (``db.t:hwm:minOpen:open:aborted``), or those of several tables
            (``txn$list$list``); without it all on disk is committed.
        valid_txns: Hive's valid transaction list, which decides which ``_v`` directories count.
        table: the name that the list has for the table, where the path does not show it.

    Raises:
        NotFoundError, AccessError, StorageError: nothing there, or it cannot be listed.
        UsageProblem: the lists cannot be parsed, or `url` holds several tables.
        RefusedError: the lists are not for this table; raised by the first scan.
        BadDataError: the partitions have different keys.
    """
    txns = ValidTxns.parse(valid_txns) if isinstance(valid_txns, str) else valid_txns

    lists = lists_of(write_ids, table) if isinstance(write_ids, ValidWriteIds) else read_lists(write_ids, table=table)
    return table_at(url, storage_options, replace(lists, txns=txns, warehouse=open_warehouse(metastore)))


def table_at(url: str | os.PathLike[str], storage_options: Mapping[str, str] | None, lists: SnapshotLists) -> Table:
    """Find a table, to be read by what was said of the snapshot; see :func:`open_table`."""
    path = given = as_path(url)
    storage = {} if storage_options is None else storage_options  # which may look empty, and hold options by prefix
    found = find_table(path, storage, lists)
    if not is_hive_name(path):
        fs, root = open_location(path, storage)
        path = fs.display(root)
    return Table(path, found, lists, lambda renewed: find_table(given, storage, renewed))


@dataclass(frozen=True, slots=True)
class TableLocation:
    """One location of a table.

    Attributes:
        path: as a user would type it.
        partition: values by the names of the partition columns, as their types; empty without partitions.
    """

    path: str
    partition: dict[str, PartitionValue]


class Table(ArrowRows):
    """A table; made by :func:`open_table`. It holds nothing open, and every scan lists the directories anew.

    It is rows itself: of all columns, by a snapshot that is taken when they are asked for.

    Where a metastore says what counts, the first scan goes by what it said when the table was opened, and every later
    one asks it anew, for the partitions as well.

    Args:
        find: the locations as they are now, by new lists.

    Attributes:
        locations: with their partition values, by path.
        found: the same as they were found.
        path: as a user would type it.
    """

    def __init__(
        self,
        path: str,
        found: Sequence[Found],
        lists: SnapshotLists,
        find: Callable[[SnapshotLists], Sequence[Found]] | None = None,
    ) -> None:
        self.path = path
        self._lists = lists
        self._is_new = True
        self._find = find
        self._set(found)

    def _set(self, found: Sequence[Found]) -> None:
        self.found = tuple(found)
        self._types = [self._type(place, key) for place, key in enumerate(self._keys())]
        self.locations: tuple[TableLocation, ...] = tuple(
            TableLocation(one.shown, {column.name: column.value for column in self.partition_of(one)}) for one in found
        )

    def __repr__(self) -> str:
        return f"<acidctl table {self.path}, locations: {len(self.locations)}>"

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of the rows, then those of the partitions, as Arrow's types: :attr:`TableScan.schema` of a scan
        of all of them. Reads the tails of all files.
        """
        return self.scan().schema

    def to_batches(self, limit: int | None = None, *, threads: int = 1) -> Iterator[pa.RecordBatch]:
        """All columns of the rows, as :meth:`TableScan.to_batches` gives them."""
        return self.scan().to_batches(limit, threads=threads)

    def to_lazyframe(self, *, threads: int = 1) -> polars.LazyFrame:
        """The table for a query of polars, which then reads the columns that it uses, and no more rows than it shows.

        Conditions of the query are met by polars; `where` of :meth:`scan` leaves stripes out as well.

        Args:
            threads: as of :meth:`TableScan.to_batches`.

        Raises:
            EnvironmentProblem: polars is not installed.
        """
        with importing("cannot import polars", "pip install polars"):
            import polars  # noqa: PLC0415 - optional
            from polars.io.plugins import register_io_source  # noqa: PLC0415 - optional

        def read(
            columns: list[str] | None, predicate: polars.Expr | None, rows: int | None, _: int | None
        ) -> Iterator[polars.DataFrame]:
            left = rows
            for batch in self.scan(columns).to_batches(rows if predicate is None else None, threads=threads):
                found = polars_frame(batch)
                found = found if predicate is None else found.filter(predicate)
                found = found if left is None else found.head(left)
                yield found
                if left is not None and (left := left - found.height) <= 0:
                    return

        whole = self.schema
        plain = pa.schema([field for field in whole if not has_union(field.type)])
        known = polars.DataFrame(one_table([], plain)).schema
        # A column that polars cannot hold is refused only if a query reads it.
        types = polars.Schema({name: known.get(name, polars.Unknown()) for name in whole.names})
        return register_io_source(read, schema=types, is_pure=True)

    def _rows(self) -> ArrowRows:
        return self.scan()

    def scan(
        self,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        *,
        at: int | None = None,
        row_id: bool = False,
        deleted: bool = False,
        partition: Mapping[str, PartitionValue] | None = None,
        on_loss: OnLoss | None = None,
        skip_hint: str = "on_loss reads the rest",
    ) -> TableScan:
        """Take a snapshot of the table, to read rows from.

        Args:
            columns: names in the order wanted, dotted for fields inside structs; None for all.
            where: a condition in SQL, see :mod:`acidctl.rows.scan.predicate`; ``ROW__ID.writeid`` and partition columns
                may be used whether or not they are wanted.
            at: the table as it was when this write id was the newest one; obsolete directories are read where newer
                bases took their place, see :mod:`acidctl.acid.past`.
            row_id: put ``ROW__ID`` first, a struct of writeid, bucketid and rowid.
            deleted: the rows that deletes and updates removed, in place of those that are left.
            partition: only the partitions with these values.
            on_loss: called for what cannot be read, which is then left out; without it, that is an error.
            skip_hint: what such an error says of how to go on.

        Raises:
            NotFoundError: no such column or partition; the hint has near names.
            UsageProblem: the condition or `at` cannot be used.
            HistoryError: compactions have destroyed what `at`, or the write-id list, asks for.
            BadDataError: a file cannot be read.
        """
        require_type(columns, Iterable, "columns", "give a list of names")
        require_type(where, (str, Predicate), "where", "write a condition in SQL: 'id = 2'")
        require_type(at, Integral, "at", "give a write id")
        if at is not None and at < 0:
            raise UsageProblem(f"there is no write id {at}", "write ids are 0 (before any of them) and up")
        try:
            told, opened = self._opened(at, partition or {}, on_loss, skip_hint)
        except NotFoundError:
            if not self._lists.asks_metastore or on_loss:
                raise
            # A cleaner was faster: once more, by what the metastore says now.
            self._renew(asked_again=True)
            told, opened = self._opened(at, partition or {}, on_loss, skip_hint)
        if not opened:
            known = ["/".join(f"{k}={v}" for k, v in one.partition.items()) for one in self.locations[:10]]
            wanted = "/".join(f"{k}={v}" for k, v in (partition or {}).items())
            more = ", ..." if len(self.locations) > len(known) else ""
            raise NotFoundError(f"no partition {wanted} in {self.path}", f"there are {', '.join(known)}{more}")

        def scan_of(part: Part, where: str | Predicate | None) -> Scan:
            return Scan(
                part.snapshot,
                columns,
                row_id=row_id,
                where=where,
                deleted=deleted,
                partition=part.partition,
                row_type=told.row_type,
                sources=part.sources,
                on_loss=on_loss,
            )

        return TableScan(opened, told, scan_of, where, skip_hint)

    def _opened(
        self, at: int | None, partition: Mapping[str, PartitionValue], on_loss: OnLoss | None, skip_hint: str
    ) -> tuple[_Told, Packed[Part]]:
        """What is read of the locations with these values, in the order of `found`, and what all of them tell."""
        snapshots = self.snapshots_at(at)
        told = _Told()

        def parts() -> Iterator[Part]:
            for snapshot, found, shown in zip(snapshots, self.found, self.locations, strict=True):
                with _may_be_skipped(skip_hint, "nothing in it can be read"):
                    sources = open_sources(snapshot, on_loss)
                is_wanted = self._matches(shown, partition)
                told.look(snapshot, sources, is_wanted=is_wanted)
                if is_wanted:
                    yield Part(snapshot, tuple(self.partition_of(found)), sources)

        opened = self._packed(parts(), lambda part: _shared(part.snapshot))
        told.row_type = table_row_type(snapshots[0].declared, told.types())
        return told, opened

    def _packed(self, values: Iterable[_T], shared: Callable[[_T], Iterable[object]]) -> Packed[_T]:
        return Packed(values, shared, is_needed=len(self.found) > _FEW_LOCATIONS)

    def partition_of(self, found: Found) -> list[PartitionColumn]:
        """The partition columns with their values in one location."""
        return [
            PartitionColumn(name, kind, typed(text, kind, name))
            for (name, text), kind in zip(found.location.partition, self._types, strict=True)
        ]

    def _type(self, place: int, key: str) -> OrcType:
        """Of a partition column: as the metastore has it, else by its values."""
        hive = self.found[0].hive
        known = {column.name: column.type for column in hive.partition_keys} if hive else {}
        if key.lower() in known:
            return declared_type(known[key.lower()])
        return partition_type([one.location.partition[place][1] for one in self.found])

    def _keys(self) -> tuple[str, ...]:
        """The partition keys that all locations share."""
        tables = sorted({one.location.table for one in self.found})
        if len(tables) != 1:
            raise UsageProblem(
                f"{self.path} holds {len(tables) or 'no'} tables",
                ", ".join(tables[:5]) + (", ..." if len(tables) > 5 else ""),
                "give the path of one table, or of one partition",
            )
        layouts = sorted({tuple(key for key, _ in one.location.partition) for one in self.found})
        if len(layouts) > 1:
            raise BadDataError(
                f"{self.path} is not one partitioned table",
                "its locations have the partition keys " + " and ".join(f"({', '.join(keys)})" for keys in layouts[:3]),
                "move away what does not belong to the table, or give one location of it",
            )
        return layouts[0]

    def _matches(self, location: TableLocation, wanted: Mapping[str, PartitionValue]) -> bool:
        own = {name.lower(): value for name, value in location.partition.items()}
        for name, value in wanted.items():
            if name.lower() not in own:
                raise NotFoundError(
                    f"no partition column {name!r} in {self.path}",
                    f"its partition columns are {', '.join(location.partition)}" if own else "it has no partitions",
                    did_you_mean(name, location.partition),
                )
            found = own[name.lower()]
            if value in (None, DEFAULT_PARTITION):
                if found is not None:
                    return False
            elif found is None or (found != value and str(found) != str(value)):
                return False
        return True

    def snapshots_at(self, at: int | None) -> Sequence[Snapshot]:
        """A snapshot of every location, in the order of `found`; see :meth:`scan` for `at` and what is raised."""
        if not self._is_new:
            self._renew()
        self._is_new = False
        for _ in range(_ROUNDS):
            places = [found.afresh() for found in self.found]
            snapshots = self._taken(places, at)
            newer = self._lists.renewed(asked_again=True)
            if not is_any_overtaken(places, self._lists, newer):
                break
            self._renew(newer)
        else:
            raise ever_changing(self.path)
        for snapshot in snapshots:
            snapshot.require_history()
        return snapshots

    def _taken(self, places: Sequence[Found], at: int | None) -> Sequence[Snapshot]:
        take = partial(seen_at, lists=self._lists.begun(), at=at)
        if len(places) == 1:
            return [take(places[0])]
        with ThreadPoolExecutor(_PARALLEL) as pool:
            taken = self._packed(pool.map(take, places), _shared)
        if at is None:
            return taken
        states = of_one_table([one.state for one in taken], at, taken[0].write_ids)
        return self._packed((replace(one, state=state) for one, state in zip(taken, states, strict=True)), _shared)

    def _renew(self, lists: SnapshotLists | None = None, asked_again: bool = False) -> None:
        """Lists of now, and then the locations of now: older ones would lack what a transaction has added."""
        self._lists = lists or self._lists.renewed(asked_again)
        self._is_new = True
        if self._find and self._lists.asks_metastore:
            self._set(self._find(self._lists))


@contextmanager
def _may_be_skipped(hint: str, lost: str = "") -> Iterator[None]:
    """An error in it says what is lost, and by `hint` how to get the rest."""
    try:
        yield
    except Unreadable as error:
        whole = with_loss(error, lost)
        raise type(error)(whole.what, whole.why, "; ".join(filter(None, (whole.hint, hint)))) from error


def _shared(snapshot: Snapshot) -> Iterable[object]:
    """What the snapshots of a table have in common."""
    return snapshot.fs, snapshot.write_ids, snapshot.txns, snapshot.declared, snapshot.source, snapshot.assumed


class _Told:
    """What the locations of a table tell together, gathered while each of them is at hand.

    Attributes:
        row_type: of the table.
        notes: of the snapshots that are read, each once.
        newest: the greatest write id in the names of their directories, read or not; 0 without any.
        warnings: what Hive never writes but somebody did there.
    """

    def __init__(self) -> None:
        self.row_type = OrcType("struct")
        self.notes: dict[Reason, None] = {}
        self.newest = 0
        self.warnings: list[str] = []
        self._types: list[tuple[int, OrcType]] = []
        self._known: dict[OrcType, OrcType] = {}  # most files have the same

    def look(self, snapshot: Snapshot, sources: Iterable[EventFile], *, is_wanted: bool) -> None:
        """Add a location; of one that is not wanted only the types of its files count."""
        rows = (source for source in sources if not source.is_delete)
        self._types += [(s.file.max_write_id, self._known.setdefault(s.row_type, s.row_type)) for s in rows]
        if is_wanted:
            self.notes |= dict.fromkeys(snapshot.state.notes)
            ids = (v.directory.max_write_id for v in snapshot.state.verdicts if v.directory)
            self.newest = max(self.newest, max(ids, default=0))
            self.warnings += odd_layout(snapshot)

    def types(self) -> list[OrcType]:
        """The row types of all files, oldest first."""
        return [kind for _, kind in sorted(self._types, key=itemgetter(0))]


class Part(NamedTuple):
    """What is read of one location."""

    snapshot: Snapshot
    partition: tuple[PartitionColumn, ...]
    sources: Sequence[EventFile]


class TableScan(ArrowRows):
    """Rows of a snapshot of a table; made by :meth:`Table.scan`. It may be read any number of times.

    Attributes:
        parts: what is read, by location.
        notes: what the snapshots assume, each once.
        newest: the greatest write id in the names of directories, read or not; 0 without any.
        warnings: what Hive never writes but somebody did, and what it means for the rows. A sentence each; none as a
            rule.
        output_type: of the rows, as ORC's types, which tell CHAR from STRING.
        declared: the same as Arrow's types.
    """

    def __init__(
        self,
        parts: Sequence[Part],
        told: _Told,
        scan_of: Callable[[Part, str | Predicate | None], Scan],
        where: str | None,
        skip_hint: str,
    ) -> None:
        self.parts = parts
        self.notes, self.newest, self.warnings = tuple(told.notes), told.newest, told.warnings
        self._scan_of = scan_of
        self._asked = where
        self._skip_hint = skip_hint
        first = scan_of(parts[0], where)
        self._first: Scan | None = first
        self._where = first.where
        self._row_type = first.row_type
        self._deleted = first.deleted
        self.output_type = first.output_type
        self.declared: pa.Schema = first.schema

    def _scans(self) -> Iterator[Scan]:
        """The scans of the locations, in their order."""
        for place, part in enumerate(self.parts):
            first, self._first = self._first, None
            yield first if first and not place else self._scan_of(part, self._where)

    def __repr__(self) -> str:
        names = ", ".join(self.declared.names)
        where = f", where {self._asked}" if self._asked else ""
        deleted = ", deleted rows" if self._deleted else ""
        return f"<acidctl scan of ({names}){where}{deleted}, locations: {len(self.parts)}>"

    @cached_property
    def schema(self) -> pa.Schema:
        """The schema of all batches: what is declared, with wider types where values need them.

        A timestamp column is ``acidctl.wide_timestamp``, not ``timestamp[ns]``, where a file may hold a value that
        needs it; a union has one more alternative, for NULL, where a file has a NULL in it. Statistics tell;
        timestamps of files that have none are read for it.
        """
        if not self._varying:
            return self.declared
        needs = Needs()
        for scan in self._scans():
            look(needs, scan.sources, scan.columns, self._row_type)
        return needs.schema(self.output_type)

    @cached_property
    def _varying(self) -> list[int]:
        """The columns whose type depends on their values."""
        return [place for place, kind in enumerate(self.output_type.children) if varies(kind)]

    @property
    def snapshots(self) -> list[Snapshot]:
        """Of the locations that are read."""
        return [part.snapshot for part in self.parts]

    def to_batches(self, limit: int | None = None, *, threads: int = 1) -> Iterator[pa.RecordBatch]:
        """The rows, a stripe at a time, location by location; memory is bounded by a stripe and the deletes.

        Args:
            limit: at most so many rows, the first ones; for few of them little is read.
            threads: that read stripes ahead, in the same order; each needs memory for one of them.

        Returns:
            Batches of :attr:`schema`, every one.

        Raises:
            BadDataError, NotFoundError: a file is damaged or has vanished; the error says which rows are lost.
        """
        for batch in self.batches_as_read(limit) if threads < 2 else limited(self._by_threads(threads), limit):
            yield of_schema(batch, self.schema, self._varying) if self._varying else batch

    def batches_as_read(self, limit: int | None = None) -> Iterator[pa.RecordBatch]:
        """As :meth:`to_batches`, but each batch with the types that its own values need: nothing else is looked at."""
        return limited(self._batches(limit or 0), limit)

    def _batches(self, first: int) -> Iterator[pa.RecordBatch]:
        """The rows; `first`: see :meth:`Scan.batches`."""
        for scan in self._scans():
            yield from self._told(scan.batches(first))

    def _told(self, made: Iterator[_T]) -> Iterator[_T]:
        """The same; errors say what is lost, and how to go on."""
        while True:
            with _may_be_skipped(self._skip_hint):
                one = next(made, None)
            if one is None:
                return
            yield one

    def _by_threads(self, threads: int) -> Iterator[pa.RecordBatch]:
        """The rows in the same order, of which as many stripes are read at once as there are threads."""
        ahead: deque[Future[list[pa.RecordBatch]]] = deque()
        with ThreadPoolExecutor(threads, "acidctl-read") as pool:
            try:
                for scan in self._scans():
                    for piece in self._told(scan.pieces()):
                        ahead.append(pool.submit(piece))
                        if len(ahead) > threads:
                            yield from self._of(ahead.popleft())
                while ahead:
                    yield from self._of(ahead.popleft())
            finally:
                for one in ahead:
                    one.cancel()

    def _of(self, piece: Future[list[pa.RecordBatch]]) -> list[pa.RecordBatch]:
        with _may_be_skipped(self._skip_hint):
            return piece.result()

    def count(self) -> int:
        """How many rows there are: from footers where they settle it, else from the columns that do.

        Raises:
            BadDataError, NotFoundError: as :meth:`to_batches`.
        """
        return sum(self.counts())

    def counts(self) -> Iterator[int]:
        """The same in parts, as they are counted."""
        with _may_be_skipped(self._skip_hint):
            for scan in self._scans():
                yield from scan.counts()
