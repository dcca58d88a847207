"""Turn a file's footer into a plain dictionary, which ``acidctl meta`` prints and other programs may read."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from acidctl.base.errors import BadDataError
from acidctl.orc import orc_pb2 as pb
from acidctl.orc.tail import ACID_STATS, ACID_VERSION, KEY_INDEX, RecordKey, Tail, as_text
from acidctl.orc.types import OrcType, hive_type, quoted_name

SCHEMA_VERSION = 1

_ACID_KEYS = (KEY_INDEX, ACID_STATS, ACID_VERSION)


def tail_document(tail: Tail, *, with_streams: bool = False) -> dict[str, Any]:
    """Return the whole footer, ready for JSON: strings, numbers, booleans, None, lists and dictionaries only.

    Args:
        with_streams: read the stripes' footers as well, for the writer's time zone and the streams of each stripe.

    Returns:
        A dictionary with ``schema_version``; keys are only ever added within a version.  Values that cannot be decoded
        are named under ``problems``, never raised.

    Raises:
        BadDataError: the types make no tree, or a section that the tail points to cannot be read.
    """
    problems: list[str] = []
    acid = _acid(tail, problems)
    return {
        "schema_version": SCHEMA_VERSION,
        "path": tail.path,
        "fileLength": tail.file_length,
        "rows": tail.rows,
        "type": hive_type(tail.type_tree),
        "isAcid": tail.is_acid,
        "encrypted": tail.encrypted,
        "compression": tail.compression,
        "compressionBlockSize": tail.block_size,
        "rowIndexStride": tail.stride,
        "formatVersion": ".".join(map(str, tail.version)),
        "writer": tail.writer,
        "writerVersion": tail.writer_version,
        "softwareVersion": tail.software_version,
        "calendar": tail.calendar,
        "acid": acid,
        "stripes": [_stripe(tail, i, acid, with_streams=with_streams) for i in range(len(tail.stripes))],
        "columns": list(_columns(tail)),
        "userMetadata": {key: _value(raw) for key, raw in tail.user_metadata.items() if key not in _ACID_KEYS},
        "notes": list(tail.notes),
        "problems": problems,
    }


def _acid(tail: Tail, problems: list[str]) -> dict[str, Any] | None:
    """Return the ``hive.acid.*`` entries; None if the file has none of them and is not an ACID file."""
    if not tail.is_acid and not any(key in tail.user_metadata for key in _ACID_KEYS):
        return None
    entries: dict[str, Any] = {}
    for name, read in (("index", tail.key_index), ("stats", tail.acid_stats), ("version", lambda: tail.acid_version)):
        try:
            entries[name] = read()
        except BadDataError as error:
            problems.append(error.why)
    index, stats = entries.get("index"), entries.get("stats")
    if index is not None and len(index) != len(tail.stripes):
        problems.append(f"{KEY_INDEX} has {len(index)} entries for {len(tail.stripes)} stripes")
    return {
        "version": entries.get("version"),
        "stats": None if stats is None else dict(zip(("inserts", "updates", "deletes"), stats, strict=True)),
        "keyIndex": None if index is None else [_key(key) for key in index],
    }


def _key(key: RecordKey | None) -> dict[str, int] | None:
    if key is None:
        return None
    return {"originalTransaction": key.original_write_id, "bucket": key.bucket, "rowId": key.row_id}


def _stripe(tail: Tail, i: int, acid: dict[str, Any] | None, *, with_streams: bool) -> dict[str, Any]:
    stripe = tail.stripes[i]
    index = (acid or {}).get("keyIndex") or []
    document: dict[str, Any] = {
        "stripe": i,
        "offset": stripe.offset,
        "indexLength": stripe.indexLength,
        "dataLength": stripe.dataLength,
        "footerLength": stripe.footerLength,
        "rows": stripe.numberOfRows,
        "lastKey": index[i] if i < len(index) else None,
    }
    if with_streams:
        footer = tail.stripe_footer(i)
        document["writerTimezone"] = as_text(footer.writerTimezone) or None
        document["encodings"] = [pb.ColumnEncoding.Kind.Name(encoding.kind) for encoding in footer.columns]
        document["streams"] = [
            {
                "column": stream.column,
                "kind": pb.Stream.Kind.Name(stream.kind) if stream.HasField("kind") else "UNKNOWN",
                "length": stream.length,
            }
            for stream in footer.streams
        ]
    return document


def _columns(tail: Tail) -> Iterator[dict[str, Any]]:
    """Yield every column by its id, with its dotted name, its type and the file's statistics of it."""
    for name, node in _named(tail.type_tree, ""):
        statistics = tail.column_statistics(node.column_id)
        yield {
            "id": node.column_id,
            "name": name,
            "type": hive_type(node) if not node.children else node.kind,
            "statistics": None if statistics is None else _statistics(statistics),
        }


def _named(node: OrcType, name: str) -> Iterator[tuple[str, OrcType]]:
    """Yield (dotted name, node) by pre-order; children of lists, maps and unions have the names that ORC gives them."""
    yield name, node
    labels = {"struct": tuple(map(quoted_name, node.names)), "array": ("_elem",), "map": ("_key", "_value")}.get(
        node.kind, tuple(map(str, range(len(node.children))))
    )
    for label, child in zip(labels, node.children, strict=True):
        yield from _named(child, f"{name}.{label}" if name else label)


def _statistics(column: pb.ColumnStatistics) -> dict[str, Any]:
    document: dict[str, Any] = {"values": column.numberOfValues}
    for field, value in column.ListFields():
        if field.name in ("hasNull", "bytesOnDisk"):
            document[field.name] = value
        elif field.name == "bucketStatistics":  # there is one bucket in practice, the number of true values
            document["true"] = sum(value.count)
        elif field.name == "timestampStatistics":
            document |= _timestamps(value)
        elif field.name == "dateStatistics":
            document |= {inner.name: str(np.datetime64(days, "D")) for inner, days in value.ListFields()}
        elif field.message_type:
            document |= {inner.name: _plain(bound) for inner, bound in value.ListFields()}
    return document


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return _value(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def _timestamps(block: pb.TimestampStatistics) -> dict[str, Any]:
    """Return bounds as wall-clock text, from the older fields (in the writer's zone) only if the newer are missing."""
    bounds = {}
    for name, utc, nanos in (("minimum", "minimumUtc", "minimumNanos"), ("maximum", "maximumUtc", "maximumNanos")):
        field = utc if block.HasField(utc) else name
        if not block.HasField(field):
            continue
        text = str(np.datetime64(getattr(block, field), "ms")).replace("T", " ")
        # The nanoseconds of the millisecond are stored plus one, so that none and 0 differ.
        rest = getattr(block, nanos) - 1 if block.HasField(nanos) else 0
        bounds[name] = f"{text}{rest:06d}" if 0 < rest < 1_000_000 else text
    return bounds


def _value(raw: bytes) -> Any:
    """Return UTF-8 as text, other bytes as ``{"base64": ...}``."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(raw).decode("ascii")}
