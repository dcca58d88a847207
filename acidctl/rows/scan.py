"""Merge-on-read: the rows a reader of one snapshot sees in one location (format sections 4 to 6)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from acidctl.acid.layout import Role
from acidctl.acid.writeids import ValidWriteIds
from acidctl.errors import BadDataError, NotFoundError
from acidctl.orc.types import OrcType, arrow_type
from acidctl.rows.deletes import DELETE, Bools, DeleteSet, DeleteSetBuilder, valid_mask
from acidctl.rows.events import EventFile, Events, Ids, open_event_files
from acidctl.rows.schema import children_of, conform, merge_row_types
from acidctl.storage.snapshot import Snapshot

ROW_ID = "ROW__ID"
ROW_ID_TYPE = pa.struct([("writeid", pa.int64()), ("bucketid", pa.int32()), ("rowid", pa.int64())])
"""Hive's virtual column; the bucket id is the encoded one (format section 4)."""


SLICE_ROWS = 8192
"""Fewer rows than this between two deleted ones, on average, are filtered rather than sliced."""


def load_deletes(files: Iterable[EventFile], write_ids: ValidWriteIds, *, same_write_id: bool = False) -> DeleteSet:
    """Every key that an event of the snapshot kills or replaces.

    Args:
        same_write_id: only delete events of the write id that inserted the row, as a minor compaction needs them
            (format section 8.2); updates and deletes of ACID v1 are left out.

    Delete events count from whatever bucket file they lie in (section 4.2: Hive 3 wrote them anywhere for tables
    without buckets). Events of write ids that the snapshot does not see kill nothing.
    """
    builder = DeleteSetBuilder()
    for source in files:
        is_delete = source.file.role is Role.DELETE
        if not is_delete and (same_write_id or not source.may_hold_changes):
            continue
        with source.open() as events:
            for stripe in range(events.stripes):
                ids = events.ids(stripe)
                kept = visible_events(ids, write_ids)
                wanted = None
                if same_write_id:
                    wanted = ids.current == ids.keys.original
                elif not is_delete:
                    wanted = ids.operation != 0
                if wanted is not None:
                    kept = wanted if kept is None else kept & wanted
                if kept is not None:
                    ids = ids.take(kept)
                builder.add(ids.keys, None if is_delete else ids.bound(source.file.statement_id))
    return builder.build()


def visible_events(ids: Ids, write_ids: ValidWriteIds) -> Bools | None:
    """Which events the snapshot sees by their current write id; None for all."""
    return valid_mask(ids.current, write_ids.high_watermark, write_ids.exceptions)


def live_rows(source: EventFile, ids: Ids, write_ids: ValidWriteIds, deletes: DeleteSet) -> Bools | None:
    """Which events of a stripe are rows that a reader returns; None when all are."""
    live = visible_events(ids, write_ids)
    bound = None
    if source.may_hold_changes:
        rows = ids.operation != DELETE
        live = rows if live is None else live & rows
        bound = ids.bound(source.file.statement_id)
    elif not deletes.is_absolute:
        bound = ids.bound(source.file.statement_id)
    dead = deletes.dead(ids.keys, bound)
    if dead is not None:
        live = ~dead if live is None else live & ~dead
    return None if live is None or live.all() else live


class Scan:
    """The rows of one location, in Arrow batches, a stripe at a time.

    Args:
        snapshot: what is read, and which write ids count.
        columns: top-level columns in the order wanted; None for all.
        row_id: put ``ROW__ID`` first.

    Raises:
        HistoryError: the snapshot needs history that a compaction destroyed.
        NotFoundError: a column that no file has, with the nearest names.
        BadDataError: a file cannot be read.
    """

    def __init__(self, snapshot: Snapshot, columns: Sequence[str] | None = None, *, row_id: bool = False) -> None:
        snapshot.state.require_history()
        self._snapshot = snapshot
        self._sources = open_event_files(snapshot, snapshot.files())
        self._row_id = row_id
        typed = sorted(
            (source for source in self._sources if source.file.role is not Role.DELETE),
            key=lambda s: s.file.directory.max_write_id if s.file.directory else 0,
        )
        self.row_type = merge_row_types([source.row_type for source in typed] or [OrcType("struct")])
        self._positions = self._resolve(columns)

    def _resolve(self, columns: Sequence[str] | None) -> list[int]:
        names = self.row_type.names
        if columns is None:
            return list(range(len(names)))
        folded = {name.lower(): position for position, name in reversed(list(enumerate(names)))}
        positions = []
        for column in columns:
            position = folded.get(column.lower())
            if position is None:
                near = get_close_matches(column.lower(), list(folded), 3)
                raise NotFoundError(
                    f"no column {column!r} in {self._snapshot.fs.display(self._snapshot.path)}",
                    f"its columns are {', '.join(names) or 'unknown: there is no data file'}",
                    f"did you mean {', '.join(near)}?" if near else "",
                )
            positions.append(position)
        return positions

    @cached_property
    def output_type(self) -> OrcType:
        """The type of the rows that come out, ROW__ID included."""
        children = [self.row_type.children[position] for position in self._positions]
        names = [self.row_type.names[position] for position in self._positions]
        if self._row_id:
            ids = OrcType(
                "struct",
                children=(OrcType("bigint"), OrcType("int"), OrcType("bigint")),
                names=("writeid", "bucketid", "rowid"),
            )
            children, names = [ids, *children], [ROW_ID, *names]
        return OrcType("struct", children=tuple(children), names=tuple(names))

    @cached_property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the batches."""
        return pa.schema(list(arrow_type(self.output_type)))

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows. Raises BadDataError naming the file when one cannot be read."""
        deletes = load_deletes(self._sources, self._snapshot.write_ids)
        for source in self._sources:
            if source.file.role is Role.DELETE:
                continue
            with source.open() as events:
                for stripe in range(events.stripes):
                    yield from self._stripe(events, stripe, deletes)

    def _stripe(self, events: Events, stripe: int, deletes: DeleteSet) -> Iterator[pa.RecordBatch]:
        """The visible rows of one stripe."""
        source, write_ids = events.source, self._snapshot.write_ids
        own = source.row_type.names
        wanted = None
        if len(set(self._positions)) < len(self.row_type.names):
            wanted = [own[position] for position in sorted(set(self._positions)) if position < len(own)]
        known = None
        if deletes.size or not write_ids.is_everything:
            known = events.ranges[stripe]
        plain = not (self._row_id or source.may_hold_changes)
        valid = write_ids.is_everything or (known is not None and known.is_all_valid(write_ids))
        if plain and valid and (not deletes.size or (known is not None and not deletes.may_hit(known))):
            yield from self._finish(source, None, events.rows(stripe, wanted), wanted)
        elif plain and valid and known is not None and known.is_dense and deletes.is_absolute:
            for batch in self._finish(source, None, events.rows(stripe, wanted), wanted):
                yield from _without(batch, deletes.places(known))
        else:
            ids, rows = events.ids_with_rows(stripe, wanted)
            live = live_rows(source, ids, write_ids, deletes)
            if live is not None:
                rows = rows.filter(pa.array(live))
                ids = ids.take(live) if self._row_id else ids
            yield from self._finish(source, ids, rows, wanted)

    def _finish(
        self, source: EventFile, ids: Ids | None, rows: pa.StructArray, wanted: list[str] | None
    ) -> Iterator[pa.RecordBatch]:
        """The batch that comes out, unless it is empty."""
        if not len(rows):
            return
        shown = self._snapshot.display(source.file.path)
        columns = self._columns(rows, wanted, source.row_type.names, shown)
        if self._row_id and ids is not None:
            keys = ids.keys
            parts = [pa.array(keys.original), pa.array(keys.bucket.astype(np.int32)), pa.array(keys.row_id)]
            columns = [pa.StructArray.from_arrays(parts, fields=list(ROW_ID_TYPE)), *columns]
        # Field by field: a stripe whose timestamps need the wide form has a type of its own.
        fields = [pa.field(f.name, column.type) for f, column in zip(self.schema, columns, strict=True)]
        if not fields:
            raise BadDataError(f"{shown} has no columns")
        yield pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))

    def _columns(
        self, rows: pa.StructArray, wanted: list[str] | None, own: tuple[str, ...], path: str
    ) -> list[pa.Array]:
        """The wanted columns of `rows` in the order asked for, as the location's types."""
        read = list(range(len(own))) if wanted is None else [p for p in range(len(own)) if own[p] in wanted]
        children = dict(zip(read, children_of(rows), strict=True))
        arrays = []
        for position in self._positions:
            target = pa.field(self.row_type.names[position], arrow_type(self.row_type.children[position]))
            child = children.get(position)
            if child is None:
                arrays.append(pa.nulls(len(rows), target.type))
            else:
                one = pa.StructArray.from_arrays([child], fields=[pa.field(target.name, child.type)])
                arrays.append(conform(one, pa.struct([target]), path).field(0))
        return arrays


def _without(batch: pa.RecordBatch, places: NDArray[np.intp]) -> Iterator[pa.RecordBatch]:
    """The rows but those at `places`: as slices, which copy nothing, where few go; else filtered at once."""
    if len(places) * SLICE_ROWS > batch.num_rows:
        keep = np.ones(batch.num_rows, np.bool_)
        keep[places] = False
        yield batch.filter(pa.array(keep))
        return
    start = 0
    for place in [*places.tolist(), batch.num_rows]:
        if place > start:
            yield batch.slice(start, place - start)
        start = place + 1
