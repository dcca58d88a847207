"""The one way to write Hive's files in tests: with ids and without, whole deltas, and files with odd insides.

An *event* is ``(operation, original write id, bucket property, row id, current write id, row)``; :func:`insert` and
:func:`delete` make the ordinary ones. A *row* is a tuple (its columns are ``a, b, c``) or a dict; a delete has None.
The types of columns follow from the first row (``int`` or ``string``), unless ``row=struct(...)`` says otherwise::

    write_acid(table / "delta_0000001_0000001_0000" / "bucket_00000", insert(1, 0), insert(1, 1, (7, "x")))
    write_acid(table / "delete_delta_0000002_0000002_0000" / "bucket_00000", delete(1, 0, 2))
    write_plain(table / "000000_0", (1, 2), (3, 4))

======================  ==========================================================================================
:func:`write_acid`      a file with ids by acidctl's writer, from events, or a stripe for each batch of events
:func:`write_plain`     a file without ids (originals, raw files, insert-only tables), from rows or batches
:func:`write_delta`     a directory of inserts whose rows are numbered on, a stripe for each batch of rows
:func:`write_deletes`   a delete delta that kills rows of one write id
:func:`acid_file`       the bytes of such a file, and what the writer says of it
:func:`write_by_pyorc`  a file with ids by a library that shares nothing with acidctl: any schema, metadata, disorder
:func:`write_orc`       an ORC file of anything by that library
:func:`damage_stripe`   the data of a stripe overwritten
======================  ==========================================================================================

Nothing here adds more than was asked for: the side files of Hive 3 are :func:`support.tables.mark`'s.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyorc
from pyarrow import orc

from acidctl.acid.bucket import encode
from acidctl.orc.byte_source import ByteSource
from acidctl.orc.tail import read_tail
from acidctl.orc.types import ACID_COLUMNS, OrcType, arrow_type, renumbered, to_proto
from acidctl.orc.write.acid_writer import AcidFileResult, AcidWriter
from acidctl.orc.write.file_assembler import OrcAssembler
from acidctl.orc.write.stripe_encoder import encode_stripes
from acidctl.orc.write.writer_settings import WHOLE, WriterSettings
from acidctl.storage.registry import open_location

B0, B1 = encode(0), encode(1)
"""The bucket property of buckets 0 and 1, statement 0."""

INSERT, UPDATE, DELETE = 0, 1, 2

Row = tuple[Any, ...] | dict[str, Any]
Event = tuple[Any, Any, Any, Any, Any, Any]

SMALL_GROUPS = WriterSettings(stripe_size=WHOLE, stride=1000)
"""A row group is 1,000 rows, a stripe is a batch."""


def struct(**kinds: OrcType) -> OrcType:
    """The type of rows: ``struct(a=OrcType("int"))``."""
    return OrcType("struct", children=tuple(kinds.values()), names=tuple(kinds))


AB = struct(a=OrcType("int"), b=OrcType("int"))
ID = struct(id=OrcType("int"))


def insert(write_id: int, row_id: int, row: Row | None = None, bucket: int = B0, current: int | None = None) -> Event:
    """An insert event; its row is ``(row id, "row <row id>")`` unless it is given."""
    values = (row_id, f"row {row_id}") if row is None else row
    return INSERT, write_id, bucket, row_id, write_id if current is None else current, values


def delete(original: int, row_id: int, current: int, bucket: int = B0) -> Event:
    """An event of write id `current` that deletes a row of write id `original`."""
    return DELETE, original, bucket, row_id, current, None


def inserts(write_id: int, *rows: Row, bucket: int = B0, current: int | None = None) -> list[Event]:
    """An insert event for every row, with row ids from 0 on."""
    return [insert(write_id, row_id, row, bucket, current) for row_id, row in enumerate(rows)]


def ids(*numbers: int) -> pa.RecordBatch:
    """Rows of one column, ``id`` (the type :data:`ID`)."""
    return pa.RecordBatch.from_pydict({"id": pa.array(numbers, pa.int32())})


def batch_of(row: OrcType, *rows: Row) -> pa.RecordBatch:
    """Rows as a batch with a column for every field of `row`."""
    array = pa.array(_dicts(rows, row), arrow_type(row))
    return pa.RecordBatch.from_arrays([array.field(i) for i in range(array.type.num_fields)], names=list(row.names))


def events_batch(row: OrcType, *events: Event) -> pa.RecordBatch:
    """Events as the batch that an AcidWriter takes."""
    kinds = (pa.int32(), pa.int64(), pa.int32(), pa.int64(), pa.int64())
    columns = [pa.array([event[i] for event in events], kind) for i, kind in enumerate(kinds)]
    rows = pa.array(_dicts([event[5] for event in events], row), arrow_type(row))
    return pa.RecordBatch.from_arrays([*columns, rows], names=list(ACID_COLUMNS))


def acid_batch(
    row: pa.Array | pa.RecordBatch,
    first: int | Sequence[int] = 0,
    *,
    operation: int = INSERT,
    write_id: int = 7,
    bucket: int = B0,
    current: int | None = None,
) -> pa.RecordBatch:
    """An array of rows (or the columns of a batch) as events of one write id, with row ids from `first` on."""
    if isinstance(row, pa.RecordBatch):
        row = pa.StructArray.from_arrays(row.columns, fields=list(row.schema))
    n = len(row)
    row_ids = np.arange(first, first + n) if isinstance(first, int) else np.asarray(first, "i8")
    columns = [
        pa.array(np.full(n, operation, "i4")),
        pa.array(np.full(n, write_id, "i8")),
        pa.array(np.full(n, bucket, "i4")),
        pa.array(row_ids),
        pa.array(np.full(n, write_id if current is None else current, "i8")),
        row,
    ]
    return pa.RecordBatch.from_arrays(columns, names=list(ACID_COLUMNS))


def acid_file(
    row: OrcType,
    batches: Sequence[pa.RecordBatch],
    settings: WriterSettings | None = None,
    *,
    a_stripe_each: bool = False,
    **options: Any,
) -> tuple[bytes, AcidFileResult]:
    """The file that an AcidWriter makes of batches of events."""
    sink = io.BytesIO()
    writer = AcidWriter(sink, row, settings, **options)
    for batch in batches:
        writer.write(batch)
        if a_stripe_each:
            writer.flush()
    result = writer.close()
    return sink.getvalue(), result


def write_acid(
    path: Path,
    *events: Event | pa.RecordBatch,
    row: OrcType | None = None,
    settings: WriterSettings | None = None,
    **options: Any,
) -> Path:
    """A file with ids, as acidctl's own writer makes it.

    Args:
        path: of the file; its directory is made.
        events: events in one stripe, or batches of events with a stripe for each.
        row: the type of rows, where it does not follow from the first of them.
        settings, options: of the AcidWriter.
    """
    if any(isinstance(event, pa.RecordBatch) for event in events):
        batches, kind = list(events), row or AB
    else:
        kind = row or _type_of([event[5] for event in events])
        batches = [events_batch(kind, *events)] if events else []
    return _put(path, acid_file(kind, batches, settings, a_stripe_each=True, **options)[0])


def write_delta(
    table: Path, write_id: int, *batches: pa.RecordBatch, row: OrcType = ID, first_row: int = 0, base: bool = False
) -> Path:
    """A delta (or a base) of inserts in bucket 0 with a stripe for every batch; the rows are numbered on."""
    name = f"base_{write_id:07}" if base else f"delta_{write_id:07}_{write_id:07}_0000"
    events = []
    for batch in batches:
        events.append(acid_batch(batch, first_row, write_id=write_id))
        first_row += batch.num_rows
    settings = WriterSettings(stripe_size=8 << 20, stride=1000)
    return write_acid(_new(table / name) / "bucket_00000", *events, row=row, settings=settings)


def write_deletes(table: Path, write_id: int, original: int, row_ids: Sequence[int], row: OrcType = ID) -> Path:
    """A delete delta that kills rows of one write id."""
    directory = _new(table / f"delete_delta_{write_id:07}_{write_id:07}_0000")
    events = acid_batch(pa.nulls(len(row_ids)), sorted(row_ids), operation=DELETE, write_id=original, current=write_id)
    return write_acid(directory / "bucket_00000", events, row=row)


def write_plain(
    path: Path,
    *rows: Row | pa.RecordBatch,
    row: OrcType | None = None,
    settings: WriterSettings | None = None,
    metadata: dict[str, bytes] | None = None,
    calendar: int = 2,
) -> Path:
    """A file without ids, as a table has it that is not (or was not yet) full-ACID.

    Args:
        path: of the file; its directory is made.
        rows: rows, which Arrow's own ORC writer writes, or batches: then there is a stripe for each of them, by
            acidctl's encoder.
        row: the type of rows, where it does not follow from the first of them.
        settings, metadata, calendar: of a file made from batches.
    """
    if rows and not isinstance(rows[0], pa.RecordBatch):
        kind = row or _type_of(rows)
        path.parent.mkdir(parents=True, exist_ok=True)
        orc.write_table(pa.Table.from_struct_array(pa.array(_dicts(rows, kind), arrow_type(kind))), path)
        return path
    kind, settings, sink = row or ID, settings or WriterSettings(), io.BytesIO()
    assembler = OrcAssembler(
        sink, compression=settings.compression, block_size=settings.block_size, stride=settings.stride
    )
    for batch in rows:
        for stripe in encode_stripes(batch, settings, renumbered(kind)):
            assembler.append_stripe(stripe.data, stripe.info, stripe.statistics)
    assembler.finish(to_proto(renumbered(kind)), metadata or {}, calendar=calendar)
    return _put(path, sink.getvalue())


# --- by another library ----------------------------------------------------------------------------------------------

IDS = "operation:int,originalTransaction:bigint,bucket:int,rowId:bigint,currentTransaction:bigint"
ACID = f"struct<{IDS},row:struct<a:int,b:string>>"


def write_orc(path: Path, schema: str, rows: Iterable[Any], metadata: dict[str, str] | None = None, **kw: Any) -> Path:
    """An ORC file of anything, by pyorc."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as out, pyorc.Writer(out, schema, **kw) as writer:
        for row in rows:
            writer.write(row)
        if metadata:
            writer.set_user_metadata(**{key: value.encode() for key, value in metadata.items()})
    return path


def write_by_pyorc(
    directory: Path,
    events: Sequence[Event],
    name: str = "bucket_00000",
    schema: str = ACID,
    marker: bytes | None = b"2",
    metadata: dict[str, str | None] | None = None,
    **kw: Any,
) -> Path:
    """A file with ids, by pyorc, which takes whatever it is given: for faults, and for a second opinion.

    Args:
        directory: where it lies.
        events: in any order; their rows are tuples.
        schema: of the file.
        marker: the content of ``_orc_acid_version`` beside it; None writes none.
        metadata: changes the user metadata that belongs to the events; None takes an entry away.
        kw: of pyorc's Writer.
    """
    counts = [sum(event[0] == operation for event in events) for operation in (INSERT, UPDATE, DELETE)]
    last = ",".join(str(part) for part in events[-1][1:4]) + ";" if events else ""
    made: dict[str, str | None] = {
        "hive.acid.key.index": last,
        "hive.acid.stats": ",".join(map(str, counts)),
        "hive.acid.version": "2",
    }
    made |= metadata or {}
    path = write_orc(directory / name, schema, events, {k: v for k, v in made.items() if v is not None}, **kw)
    if marker is not None:
        (directory / "_orc_acid_version").write_bytes(marker)
    return path


def damage_stripe(path: Path, number: int) -> None:
    """Overwrite the data and the footer of a stripe."""
    fs, inner = open_location(str(path))
    stripe = read_tail(ByteSource(fs, inner)).stripes[number]
    data = bytearray(path.read_bytes())
    start = stripe.offset + stripe.indexLength
    length = stripe.dataLength + stripe.footerLength
    data[start : start + length] = b"\xff" * length
    path.write_bytes(data)


def _type_of(rows: Sequence[Row | None]) -> OrcType:
    first = next((row for row in rows if row), (0, 0))
    named = first if isinstance(first, dict) else dict(zip("abcdefg", first, strict=False))
    return struct(**{name: OrcType("string" if isinstance(value, str) else "int") for name, value in named.items()})


def _dicts(rows: Sequence[Row | None], row: OrcType) -> list[dict[str, Any] | None]:
    return [one if one is None or isinstance(one, dict) else dict(zip(row.names, one, strict=True)) for one in rows]


def _new(directory: Path) -> Path:
    directory.mkdir(parents=True)
    return directory


def _put(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path
