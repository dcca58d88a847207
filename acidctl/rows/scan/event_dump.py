"""The events of some data files with their synthetic columns, deleted and aborted ones included."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from acidctl.base.errors import AcidctlError, BadDataError, NotFoundError
from acidctl.base.nearest import did_you_mean
from acidctl.orc.types import OrcType, row_of
from acidctl.rows.convert.conform import How, select_fields
from acidctl.rows.convert.matching import merge_row_types
from acidctl.rows.foreign.format import Format
from acidctl.rows.read.bucket_numbers import decode_all
from acidctl.rows.read.events import ID_COLUMNS, EventFile, ids_batch, read_ids

_KINDS = dict(zip(ID_COLUMNS, ("int", "bigint", "int", "bigint", "bigint"), strict=True))
_DECODED = {"operationName": "string", "bucketId": "int", "statementId": "int"}


class EventDump:
    """The events of some files in one row type.

    Args:
        columns: synthetic columns, ``row``, or ``row.NAME``; None for all.
        where: a condition in SQL over the synthetic columns.
        decode: add the operation's name, and the bucket and statement id of `bucket`.
        on_error: receives the error of each file that cannot be read, if there are several.

    Attributes:
        types: the row type of the batches.
        files: how many there are.

    Raises:
        NotFoundError: a column does not exist.
        UsageProblem: the condition cannot be used.
    """

    def __init__(
        self,
        sources: Sequence[EventFile],
        columns: Sequence[str] | None,
        where: str | None,
        *,
        decode: bool,
        on_error: Callable[[AcidctlError], None],
    ) -> None:
        self._sources, self._decode, self._on_error = sources, decode, on_error
        self.files = len(sources)
        self._rows = merge_row_types([source.row_type for source in sources] or [OrcType("struct")])
        kinds = {name: OrcType(kind) for name, kind in (_KINDS | (_DECODED if decode else {})).items()}
        self._ids, self._fields = _chosen(columns, list(kinds), self._rows)
        self._predicate = None
        if where is not None:
            from acidctl.rows.scan.condition import parse_condition  # noqa: PLC0415 - it imports sqlglot, which is slow

            self._predicate = parse_condition(where, row_of(kinds.items()))
        fields = [(name, kinds[name]) for name in self._ids]
        wanted = self._rows.names if self._fields is None else self._fields
        self._has_row = self._fields is None or bool(self._fields)
        if self._has_row:
            fields.append(("row", row_of((n, t) for n, t in self._rows.fields() if n in wanted)))
        self.types = row_of(fields)

    def batches(self, limit: int | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the events, stripe by stripe, at least `limit` of them if there are that many.

        The first `limit` events are read without the rest of their stripe if the first file has that many.

        Raises:
            BadDataError: the only file cannot be read.
        """
        for number, source in enumerate(self._sources):
            try:
                with source.open() as events:
                    first = events.first(limit) if limit and number == 0 and self._predicate is None else None
                    if first is not None:
                        if not self._has_row:
                            first = ids_batch(read_ids(first, source.fs.display(source.path)))  # checks the ids
                        yield self._projected(_decoded(first) if self._decode else first, source)
                        return
                    for stripe in range(events.stripes):
                        batch = events.batch(stripe) if self._has_row else ids_batch(events.ids(stripe))
                        batch = _decoded(batch) if self._decode else batch
                        yield self._projected(self._predicate.apply(batch) if self._predicate else batch, source)
            except BadDataError as error:
                if len(self._sources) == 1:
                    raise
                self._on_error(error)

    def _projected(self, batch: pa.RecordBatch, source: EventFile) -> pa.RecordBatch:
        columns = {name: batch.column(name) for name in self._ids}
        if self._fields is None:
            columns["row"] = batch.column("row")  # as the file has it
        elif self._fields:
            how, path = How(parquet=source.format is Format.PARQUET), source.fs.display(source.path)
            rows = batch.column("row")
            columns["row"] = select_fields(rows, source.row_type, self._fields, self._rows, path, how=how)
        return pa.RecordBatch.from_pydict(columns)


def _chosen(columns: Sequence[str] | None, names: Sequence[str], rows: OrcType) -> tuple[list[str], list[str] | None]:
    """Return the chosen synthetic columns and fields of `row`; None for the whole row."""
    if columns is None:
        return list(names), None
    known = {name.lower(): name for name in (*names, "row", *(f"row.{name}" for name in rows.names))}
    chosen = []
    for column in columns:
        if column.lower() not in known:
            what = f"no column {column!r} in these files"
            raise NotFoundError(what, f"there are {', '.join(known.values())}", did_you_mean(column, known.values()))
        chosen.append(known[column.lower()])
    fields = None if "row" in chosen else [name for name in rows.names if f"row.{name}" in chosen]
    return [name for name in chosen if name in names], fields


def _decoded(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch with the decoded columns before `row`; they are -1 if the codec is unknown."""
    parts = decode_all(batch.column("bucket").to_numpy(zero_copy_only=False))
    operation = batch.column("operation").to_numpy(zero_copy_only=False)
    names = pa.array(["INSERT", "UPDATE", "DELETE", "UNKNOWN"])
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    row = columns.pop("row", None)
    columns["operationName"] = names.take(pa.array(np.where((operation >= 0) & (operation <= 2), operation, 3)))
    columns |= {"bucketId": pa.array(parts.bucket, pa.int32()), "statementId": pa.array(parts.statement, pa.int32())}
    return pa.RecordBatch.from_pydict(columns if row is None else {**columns, "row": row})
