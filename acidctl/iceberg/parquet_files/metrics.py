"""The metrics that Iceberg's manifests have of a Parquet file, from its footer.

Bounds are left out where the footer does not say them for sure: readers skip files by them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from acidctl.iceberg.fields import Field
from acidctl.iceberg.orc_files.metrics import Metrics, packed, text_bounds
from acidctl.iceberg.parquet_files.schema import Leaf, leaves_of

_SHAPES = {
    "int": "<i", "date": "<i", "long": "<q", "timestamp": "<q", "timestamptz": "<q", "float": "<f", "double": "<d",
}  # fmt: skip


def metrics_of(footer: Any, length: int, fields: Sequence[Field]) -> Metrics:
    """Return the metrics of a file.

    Args:
        footer: pyarrow's metadata of the file.
        length: of the file in bytes.
        fields: its columns.
    """
    groups = [footer.row_group(at) for at in range(footer.num_row_groups)]
    found = Metrics(footer.num_rows, length, [_start(group.column(0)) for group in groups])
    for at, leaf in enumerate(leaves_of(fields)):
        chunks, id_ = [group.column(at) for group in groups], leaf.field.id
        found.sizes[id_] = sum(chunk.total_compressed_size for chunk in chunks)
        statistics = [chunk.statistics for chunk in chunks]
        if leaf.is_repeated or not all(one is not None and one.has_null_count for one in statistics):
            continue
        found.values[id_] = footer.num_rows
        found.nulls[id_] = sum(one.null_count for one in statistics)
        if bounds := _bounds(leaf, [one for one in statistics if one.num_values]):
            found.lower[id_] = bounds[0]
            if bounds[1] is not None:
                found.upper[id_] = bounds[1]
    return found


def _start(chunk: Any) -> int:
    """Return the offset of the first page of a column."""
    first = chunk.dictionary_page_offset if chunk.has_dictionary_page else None
    return int(chunk.data_page_offset if first is None else min(first, chunk.data_page_offset))


def _bounds(leaf: Leaf, statistics: Sequence[Any]) -> tuple[bytes, bytes | None] | None:
    """Return a lower and an upper bound; None if the footer does not say them."""
    kind = leaf.field.kind
    if not statistics or kind == "binary" or not all(one.has_min_max for one in statistics):
        return None
    lows, highs = [one.min_raw for one in statistics], [one.max_raw for one in statistics]
    if kind == "decimal" and isinstance(lows[0], bytes):
        lows, highs = ([int.from_bytes(raw, "big", signed=True) for raw in side] for side in (lows, highs))
    low, high = min(lows), max(highs)
    if kind == "boolean":
        return bytes([low]), bytes([high])
    if kind == "string":
        return text_bounds(low, high)
    if kind == "decimal":
        return _decimal(low), _decimal(high)
    return packed(_SHAPES[kind], low, high)  # Arrow's zeros are -0.0 below and 0.0 above


def _decimal(number: int) -> bytes:
    return number.to_bytes((number.bit_length() + 8) // 8, "big", signed=True)
