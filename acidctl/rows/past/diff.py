"""The rows that appeared and disappeared between two snapshots of a table.

A row is identified by its key and the write id of its event: compactions keep both. In a file that both snapshots read,
only the stripes are read whose live rows may differ. Rows of files that one snapshot reads are looked up in the files
that only the other reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from acidctl.acid.reasons import Code
from acidctl.base.errors import HistoryError, NotFoundError, UsageProblem
from acidctl.location.snapshot import Snapshot
from acidctl.orc.types import OrcType
from acidctl.rows.convert.matching import table_row_type
from acidctl.rows.read.delete_set import Bools, DeleteSet, DeleteSetBuilder, StripeRange
from acidctl.rows.read.events import EventFile, EventReader, Ids
from acidctl.rows.read.key_ranges import KeyRanges
from acidctl.rows.read.past_snapshot import require_same_ids
from acidctl.rows.read.visibility import live_rows, load_deletes, open_sources
from acidctl.rows.scan.columns import FileColumns, PartitionColumn, ScanColumn
from acidctl.rows.scan.scan import Scan
from acidctl.rows.scan.table import Table
from acidctl.rows.scan.table_scan import Part, Summary, one_table

GONE, NEW, CHANGED = "-", "+", "~"


@dataclass(frozen=True, slots=True)
class _Version:
    """One location in one snapshot."""

    snapshot: Snapshot
    sources: Sequence[EventFile]

    @property
    def paths(self) -> frozenset[str]:
        return frozenset(source.file.path for source in self.sources)


class _Pair:
    """The files that two snapshots of a location share, and the keys whose state differs."""

    def __init__(self, before: _Version, after: _Version) -> None:
        self.shared = before.paths & after.paths
        self.low_watermark = min(before.snapshot.write_ids.high_watermark, after.snapshot.write_ids.high_watermark)
        self._versions = before, after

    @cached_property
    def changed(self) -> DeleteSet:
        """Return the keys that events of only one of the snapshots delete or replace."""
        builder = DeleteSetBuilder()
        for number, version in enumerate(self._versions):
            for source in version.sources:
                is_shared = source.file.path in self.shared
                if (is_shared and number) or not (source.is_delete or source.may_hold_changes):
                    continue
                self._add(builder, source, is_shared=is_shared)
        return builder.build()

    def _add(self, builder: DeleteSetBuilder, source: EventFile, *, is_shared: bool) -> None:
        with source.open() as events:
            for stripe, keys in enumerate(source.ranges):
                if is_shared and keys is not None and keys.current[1] <= self.low_watermark:
                    continue
                ids = events.ids(stripe)
                wanted = np.ones(len(ids.current), np.bool_)
                if not source.is_delete:
                    wanted = ids.operation != 0
                if is_shared:
                    wanted &= ids.current > self.low_watermark
                builder.add(ids.keys.take(wanted))


class _Side(Scan):
    """The rows of one location that are in one snapshot but not in the other."""

    def __init__(self, own: _Version, other: _Version, pair: _Pair, **options: Any) -> None:
        super().__init__(own.snapshot, sources=own.sources, **options)
        self._other = other
        self._pair = pair
        self._has_own = any(not source.is_delete and source.file.path not in pair.shared for source in own.sources)

    def _stripes(self, columns: Sequence[ScanColumn]) -> Iterator[tuple[EventReader, int, FileColumns]]:
        for events, stripe, files in super()._stripes(columns):
            source = events.source
            if self._is_simple(source):
                yield events, stripe, files
                continue
            keys = source.ranges[stripe]
            if source.file.path in self._pair.shared and not (
                keys is None or keys.current[1] > self._pair.low_watermark or self._pair.changed.may_hit(keys)
            ):
                continue
            # Read the id columns first: in most stripes no row differs.
            if self._live(source, events.ids(stripe)).any():
                yield events, stripe, files

    def _is_simple(self, source: EventFile) -> bool:
        """Return whether all its live rows are in the result: the other snapshot has no files that could hold them."""
        return source.file.path not in self._pair.shared and self._theirs is None

    @cached_property
    def _theirs(self) -> KeyRanges | None:
        """Return the live rows of the files that only the other snapshot reads; None if there are none."""
        sources = [s for s in self._other.sources if not s.is_delete and s.file.path not in self._pair.shared]
        if not sources or not self._has_own:
            return None
        ranges = KeyRanges()
        for source in sources:
            for ids in source.stripe_ids():
                ranges.add(ids.take(live_rows(source, ids, self._other.snapshot.write_ids, self._their_deletes)))
        return ranges

    @cached_property
    def _their_deletes(self) -> DeleteSet:
        return load_deletes(self._other.sources, self._other.snapshot.write_ids)

    def _is_out(self, keys: StripeRange | None) -> bool:  # noqa: ARG002 - `_stripes` has decided
        return False

    def _all_live(self, source: EventFile, keys: StripeRange | None) -> bool:
        return self._is_simple(source) and super()._all_live(source, keys)

    def _dead_places(self, source: EventFile, keys: StripeRange | None) -> NDArray[np.intp] | None:
        return super()._dead_places(source, keys) if self._is_simple(source) else None

    def _live(self, source: EventFile, ids: Ids) -> Bools:
        live = super()._live(source, ids)
        ours = np.ones(len(ids.current), np.bool_) if live is None else live
        if source.file.path in self._pair.shared:
            theirs = live_rows(source, ids, self._other.snapshot.write_ids, self._their_deletes)
            return ours & ~theirs if theirs is not None else np.zeros(len(ours), np.bool_)
        return ours if self._theirs is None else ours & ~self._theirs.holds(ids)


@dataclass(frozen=True, slots=True)
class _Versions:
    """All locations of a table in two snapshots; the parts are unpacked while they are iterated over."""

    starts: Sequence[Part]
    ends: Sequence[Part]

    def __len__(self) -> int:
        return len(self.starts)

    def __iter__(self) -> Iterator[tuple[_Version, _Version, tuple[PartitionColumn, ...]]]:
        for start, end in zip(self.starts, self.ends, strict=True):
            yield _Version(start.snapshot, start.sources), _Version(end.snapshot, end.sources), end.partition


class Difference:
    """The changed rows of a table between two write ids; made by :func:`table_difference`.

    Attributes:
        output_type, schema: of the rows, without the ``change`` column.
        source: where the write-id list came from; it is the same for all locations.
        notes: the assumptions of the snapshots.
        warnings: those of both snapshots; see :attr:`TableScan.warnings`.
    """

    def __init__(self, versions: _Versions, summary: Summary, columns: Sequence[str] | None, *, row_id: bool) -> None:
        self._versions = versions
        self._options = {"columns": columns, "row_type": summary.row_type, "row_id": row_id}
        first, _ = next(self._sides())
        self.output_type: OrcType = first.output_type
        self.schema: pa.Schema = first.schema
        self.source, self.notes = first.snapshot.source, list(summary.notes)
        self.warnings = list(dict.fromkeys(summary.warnings))

    def __repr__(self) -> str:
        return f"<acidctl difference of ({', '.join(self.output_type.names)}), locations: {len(self._versions)}>"

    def _sides(self) -> Iterator[tuple[_Side, _Side]]:
        """Yield the rows that disappeared and appeared in each location; the deletes of one location are in memory."""
        for before, after, partition in self._versions:
            yield _sides(before, after, partition=partition, **self._options)

    def gone(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows that disappeared. Raises BadDataError or NotFoundError if a file cannot be read."""
        for gone, _ in self._sides():
            yield from gone.batches()

    def new(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows that appeared; for errors see :meth:`gone`."""
        for _, new in self._sides():
            yield from new.batches()

    def count(self) -> tuple[int, int]:
        """Return how many rows disappeared, and how many appeared, reading as few columns as possible."""
        gone_rows = new_rows = 0
        for gone, new in self._sides():
            gone_rows += gone.count()
            new_rows += new.count()
        return gone_rows, new_rows

    @property
    def listed_type(self) -> OrcType:
        """Return the type of the rows of :meth:`listed`."""
        rows = self.output_type
        return OrcType("struct", children=(OrcType("string"), *rows.children), names=("change", *rows.names))

    def listed(self) -> Iterator[pa.RecordBatch]:
        """Yield all changes with ``change`` as the first column, for each location first the rows that disappeared."""
        for pair in self._sides():
            for mark, side in zip((GONE, NEW), pair, strict=True):
                for batch in side.batches():
                    marks = pa.repeat(pa.scalar(mark), batch.num_rows)
                    yield pa.RecordBatch.from_arrays([marks, *batch.columns], names=["change", *batch.schema.names])

    @property
    def paired_type(self) -> OrcType:
        """Return the type of the rows of :meth:`paired`."""
        rows = self.output_type
        return OrcType("struct", children=(OrcType("string"), rows, rows), names=("change", "old", "new"))

    def paired(self, keys: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield changes as `old` and `new`: the n-th removed and the n-th added row of a key are one update.

        All changed rows are held in memory.

        Args:
            keys: names of columns, whatever their case. NULL is equal to NULL.

        Raises:
            NotFoundError: a column does not exist.
            UsageProblem: a key's type cannot be compared.
        """
        spelled = {name.lower(): name for name in reversed(self.schema.names)}
        for name in keys:
            if name.lower() not in spelled:
                raise NotFoundError(f"no column {name!r} for --key", f"there are {', '.join(self.schema.names)}")
        names = [spelled[name.lower()] for name in keys]
        old_rows, new_rows = list[pa.RecordBatch](), list[pa.RecordBatch]()
        for old_side, new_side in self._sides():
            old_rows += old_side.batches()
            new_rows += new_side.batches()
        gone, new = one_table(old_rows, self.schema), one_table(new_rows, self.schema)
        try:
            yield from pair_by_key(gone, new, names)
        except (pa.ArrowNotImplementedError, pa.ArrowTypeError, pa.ArrowInvalid) as error:
            what = f"--key {','.join(keys)} cannot be compared"
            raise UsageProblem(what, str(error), "name columns of simple types") from error


def table_difference(
    table: Table,
    start: int | datetime,
    end: int | datetime | None,
    columns: Sequence[str] | None = None,
    *,
    row_id: bool = False,
) -> Difference:
    """Compare the table as it was at two write ids; `start` may be the greater one.

    Args:
        start, end: see ``at`` of :meth:`Table.scan`; `end` is None for the newest.
        columns, row_id: see :meth:`Table.scan`.

    Raises:
        HistoryError: compactions destroyed one of the snapshots, or the ids of an insert-only table's rows, or gave
            rows new ids.
        NotFoundError: a column does not exist.
        BadDataError: a file cannot be read.
    """
    scans, summary = (table.scan(at=start), table.scan(at=end)), Summary()
    versions = _Versions(scans[0].parts, scans[1].parts)
    summary.notes |= dict.fromkeys(note for scan in scans for note in scan.notes if note.code is Code.AT_MOMENT)
    for a, b, _ in versions:
        require_same_ids(*sorted((a.snapshot, b.snapshot), key=lambda snapshot: snapshot.write_ids.high_watermark))
        _require_ids(a, b)
        for version in (a, b):
            summary.add(version.snapshot, version.sources, is_wanted=True)
    if problem := summary.stray_text:
        raise problem
    summary.row_type = table_row_type(table.found[0].declared, summary.types())
    return Difference(versions, summary, columns, row_id=row_id)


def compare_locations(
    before: Snapshot, after: Snapshot, columns: Sequence[str] | None = None, **options: Any
) -> tuple[Scan, Scan]:
    """Return the rows of one location that disappeared between two snapshots, and those that appeared.

    Args:
        before, after: snapshots that passed :func:`acidctl.rows.read.past_snapshot.require_same_ids`.
        columns, options: see :class:`acidctl.rows.scan.scan.Scan`.

    Raises:
        HistoryError: a compaction merged rows of an insert-only table, which have no ids.
        BadDataError: a file cannot be read.
    """
    versions = _Version(before, open_sources(before)), _Version(after, open_sources(after))
    _require_ids(*versions)
    return _sides(*versions, columns=columns, **options)


def _sides(before: _Version, after: _Version, **options: Any) -> tuple[_Side, _Side]:
    pair = _Pair(before, after)
    return _Side(before, after, pair, **options), _Side(after, before, pair, **options)


def _require_ids(before: _Version, after: _Version) -> None:
    """Refuse merged files of an insert-only table, since their rows have no ids to compare."""
    shared = before.paths & after.paths
    unshared = [
        [source for source in version.sources if not source.is_delete and source.file.path not in shared]
        for version in (before, after)
    ]
    if not all(unshared):
        return
    for source in (*unshared[0], *unshared[1]):
        directory = source.file.directory
        if source.synthetic is None or directory is None:
            continue
        if directory.visibility_txn or directory.min_write_id != directory.max_write_id:
            raise HistoryError(
                f"rows of {source.shown} cannot be compared with those of older files",
                "a compaction of an insert-only table merged them, and its rows have no row ids",
                "choose two write ids on the same side of the compaction",
            )


def pair_by_key(gone: pa.Table, new: pa.Table, keys: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of two tables of the same columns in pairs; see :meth:`Difference.paired`."""
    codes = _codes(pa.concat_tables([gone.select(keys), new.select(keys)]))
    _, old, now = np.intersect1d(*_ranked(codes, gone.num_rows), assume_unique=True, return_indices=True)
    for mark, olds, news in (
        (CHANGED, old, now),
        (GONE, np.setdiff1d(np.arange(gone.num_rows), old), None),
        (NEW, None, np.setdiff1d(np.arange(new.num_rows), now)),
    ):
        count = len(olds if olds is not None else news if news is not None else ())
        if count:
            arrays = [pa.repeat(pa.scalar(mark), count), _structs(gone, olds, count), _structs(new, news, count)]
            yield pa.RecordBatch.from_arrays(arrays, names=["change", "old", "new"])


def _structs(table: pa.Table, places: NDArray[np.intp] | None, count: int) -> pa.Array:
    if places is None:
        return pa.nulls(count, pa.struct(list(table.schema)))
    taken = table.take(pa.array(places)).combine_chunks()
    columns = [column.chunk(0) for column in taken.columns]
    return pa.StructArray.from_arrays(columns, fields=list(table.schema))


def _codes(table: pa.Table) -> NDArray[np.int64]:
    """Return equal numbers for equal rows."""
    codes = np.zeros(table.num_rows, np.int64)
    for column in table.columns:
        indices = column.combine_chunks().dictionary_encode(null_encoding="encode").indices
        values = indices.to_numpy(zero_copy_only=False).astype(np.int64)
        _, codes = np.unique(codes * (int(values.max(initial=0)) + 1) + values, return_inverse=True)
    return codes


def _ranked(codes: NDArray[np.int64], first: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Number the rows so that the n-th of equal rows has the same number in both parts, and no other row has it."""
    parts = []
    for part in (codes[:first], codes[first:]):
        order = np.argsort(part, kind="stable")
        starts = np.searchsorted(part[order], part[order], side="left")
        rank = np.empty(len(part), np.int64)
        rank[order] = np.arange(len(part)) - starts
        parts.append(part * (len(codes) + 1) + rank)
    return parts[0], parts[1]
