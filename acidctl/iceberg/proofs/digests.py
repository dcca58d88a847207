"""The proof of a copy: digests of the rows of both tables, read by acidctl.

Digests do not depend on the order of rows.  Times are cut to microseconds, as Iceberg's readers cut them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from acidctl.compaction.proof.checksum import add
from acidctl.compaction.proof.values import row_and_column_checksums
from acidctl.iceberg.copy import open_file
from acidctl.iceberg.difference import TargetFile, positions_in
from acidctl.iceberg.fields import Field
from acidctl.iceberg.file_tasks import CopyFormat
from acidctl.iceberg.keys import KeySet, Runs, ranges_outside
from acidctl.iceberg.orc_files.plain_values import plain_values
from acidctl.iceberg.parquet_files.read import read_rows
from acidctl.iceberg.proofs.columns_read import ColumnSums
from acidctl.iceberg.target import Target, Values
from acidctl.orc.arrow import below, struct_of, with_children
from acidctl.orc.read.reader import open_orc
from acidctl.orc.read.wide_timestamps import WideTimestamp, parts, wide
from acidctl.orc.types import OrcType, arrow_type
from acidctl.rows.convert.conform import all_null
from acidctl.rows.read.delete_set import Keys
from acidctl.rows.scan.columns import ColumnSource
from acidctl.rows.scan.scan import Scan


@dataclass(slots=True)
class Digest:
    """The digest of many rows.

    Attributes:
        checksum: of the rows, 128 bits.
    """

    rows: int = 0
    checksum: int = 0

    def add(self, columns: Mapping[str, pa.Array], rows: int, keys: Keys | None) -> list[int]:
        """Add rows, given by their columns in the order of the table; return the checksum of each column."""
        self.rows += rows
        values = struct_of(list(columns.values()), list(columns), rows)
        checksum, each = row_and_column_checksums(keys, values)
        self.checksum = add(self.checksum, checksum)
        return each

    def and_of(self, other: Digest) -> Digest:
        """Return the digest of the rows of both."""
        return Digest(self.rows + other.rows, add(self.checksum, other.checksum))


def source_digest(
    scans: Iterable[tuple[Scan, KeySet | None]], fields: Sequence[Field], sums: ColumnSums | None = None
) -> Digest:
    """Return the digest of rows of the Hive table; their keys count if the scans have ROW__ID as first column.

    Args:
        scans: of the columns of `fields` in their order, each with the keys of the wanted rows; None for all rows.
        sums: takes the columns of the rows too.
    """
    digest = Digest()
    for scan, wanted in scans:
        for keys, plain, rows in plain_rows(scan, fields, wanted):
            columns = {name: cut_times(column) for name, column in plain.items()}
            each = digest.add(columns, rows, keys)
            if sums is not None:
                sums.add(columns, each)
                for name, column in plain.items():
                    sums.see_times(name, column)
    return digest


def plain_rows(
    scan: Scan, fields: Sequence[Field], wanted: KeySet | None = None
) -> Iterator[tuple[Keys | None, dict[str, pa.Array], int]]:
    """Yield rows of the Hive table as Iceberg's types hold them: their keys, their columns and their number.

    Args:
        scan: see :func:`source_digest`; there are keys if it has ROW__ID as first column.
    """
    has_keys = scan.columns[0].kind is ColumnSource.ROW_ID
    kinds = scan.output_type.children[has_keys:]
    for batch in scan.batches(0):
        keys, rows = keys_of(batch.column(0)) if has_keys else None, batch
        if wanted is not None and keys is not None:
            runs = Runs.of(keys)
            inside = np.ones(len(keys), np.bool_)
            inside[positions_in(ranges_outside(runs, runs.starts, wanted))] = False
            rows, keys = batch.filter(pa.array(inside)), keys.take(inside)
        pairs = zip(rows.columns[has_keys:], kinds, fields, strict=True)
        yield keys, {into.name: plain_values(column, kind, into) for column, kind, into in pairs}, rows.num_rows


def keys_of(column: pa.StructArray) -> Keys:
    """Return the keys in a column of ROW__IDs."""
    ids = (column.field(at).to_numpy(zero_copy_only=False) for at in range(3))
    return Keys(*(np.asarray(part, np.int64) for part in ids))


def copy_digest(
    target: Target, files: Mapping[Values, Sequence[TargetFile]], storage: Mapping[str, str] | None, *, has_keys: bool
) -> Digest:
    """Return the digest of the rows of the copy, read from its files by acidctl's own reader.

    Args:
        has_keys: the keys of the rows count.
    """
    digest = Digest()
    for values, here in files.items():
        keys = dict(zip((key.name for key in target.partition), values, strict=True))
        for file in here:
            runs, start = file.keys.shown()[0], 0
            for columns, rows in _rows_of(target, file, storage):
                constants = {key.name: _constant(keys[key.name], key, rows) for key in target.partition}
                digest.add(
                    {**columns, **constants}, rows, runs.slices(start, start + rows).keys() if has_keys else None
                )
                start += rows
    return digest


def _rows_of(
    target: Target, file: TargetFile, storage: Mapping[str, str] | None
) -> Iterator[tuple[dict[str, pa.Array], int]]:
    """Yield the shown rows of a file, stripe by stripe."""
    dead = file.keys.dead
    start = 0
    with _opened(target, file, storage) as (row, batches):
        places = {_id(kind): at for at, kind in enumerate(row.children)}
        for batch in batches:
            end = start + batch.num_rows
            low, high = np.searchsorted(dead, (start, end))
            keep = np.ones(batch.num_rows, np.bool_)
            keep[dead[low:high] - start] = False
            columns = {}
            for into in target.columns:
                if (place := places.get(into.id)) is None:
                    column = all_null(batch.num_rows, arrow_type(into.stored))
                else:
                    column = _as_field(batch.column(place), row.children[place], into)
                columns[into.name] = cut_times(column if keep.all() else column.filter(pa.array(keep)))
            yield columns, int(keep.sum())
            start = end


@contextmanager
def _opened(
    target: Target, file: TargetFile, storage: Mapping[str, str] | None
) -> Iterator[tuple[OrcType, Iterator[pa.RecordBatch]]]:
    """Give the types of a file, with the ids of fields, and its rows."""
    fs, path = open_file(file.url, storage)
    if target.format != CopyFormat.ORC:
        yield read_rows(fs, path)
        return
    with open_orc(fs, path, has_ids=False) as orc:
        yield orc.row_type, map(orc.read_stripe, range(orc.stripe_count))


def _id(kind: OrcType) -> int:
    return next((int(value) for key, value in kind.attributes if key == "iceberg.id"), 0)


def _as_field(column: pa.Array, own: OrcType, into: Field) -> pa.Array:
    """Return a column of a file as the table has it: by the ids of fields, and widened."""
    if not own.children:
        stored = into.stored
        column = column.cast(pa.int32()) if own.kind == "tinyint" else column
        return column.cast(arrow_type(stored)) if own.kind == "float" and stored.kind == "double" else column
    if own.kind != "struct":
        pairs = zip(below(column), own.children, into.children, strict=True)
        return with_children(column, [_as_field(*pair) for pair in pairs])
    places = {_id(kind): at for at, kind in enumerate(own.children)}
    arrays = below(column)
    children = [
        _as_field(arrays[places[inner.id]], own.children[places[inner.id]], inner)
        if inner.id in places
        else all_null(len(column), arrow_type(inner.stored))
        for inner in into.children
    ]
    return struct_of(children, into.stored.names, len(column), column.is_null() if column.null_count else None)


def _constant(value: object, key: Field, rows: int) -> pa.Array:
    kind = arrow_type(key.stored)
    if value is None:
        return pa.nulls(rows, kind)
    if key.kind in ("date", "timestamp"):
        unit = pa.int32() if key.kind == "date" else pa.int64()
        return pa.array([value] * rows, unit).view(pa.date32() if key.kind == "date" else pa.timestamp("us"))
    return pa.array([value] * rows, kind)


def cut_times(column: pa.Array) -> pa.Array:
    """Return a column with its times cut down to microseconds."""
    kind = column.type
    if isinstance(kind, WideTimestamp) or pa.types.is_timestamp(kind):
        seconds, nanos = parts(column)
        return wide(
            seconds,
            nanos // 1000 * 1000,
            column,
            instant=kind.instant if isinstance(kind, WideTimestamp) else kind.tz is not None,
        )
    children = below(column)
    return with_children(column, [cut_times(child) for child in children]) if _has_times(kind) else column


def _has_times(kind: pa.DataType) -> bool:
    if pa.types.is_nested(kind):
        return any(_has_times(kind.field(at).type) for at in range(kind.num_fields))
    return isinstance(kind, WideTimestamp) or pa.types.is_timestamp(kind)
