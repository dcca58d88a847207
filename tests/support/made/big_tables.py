"""Large tables with a known history, made from a seed, for tests and benchmarks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from acidctl.acid import bucket as codec
from acidctl.acid.names import METADATA_ACID, Kind, format_directory
from acidctl.acid.sidefiles import METADATA_ACID_COMPACTED
from acidctl.demo.walkthrough import write_directory
from acidctl.orc.types import OrcType, arrow_type, row_of
from acidctl.orc.write.writer_settings import WriterSettings
from acidctl.rows.read.delete_set import Keys
from acidctl.rows.read.events import Ids, with_ids
from acidctl.storage.port import FileSystem
from acidctl.storage.registry import open_location

_COLUMNS: tuple[tuple[str, OrcType], ...] = (
    ("id", OrcType("bigint")),
    ("customer", OrcType("string")),
    ("city", OrcType("string")),
    ("amount", OrcType("decimal", precision=10, scale=2)),
    ("score", OrcType("double")),
    ("day", OrcType("date")),
    ("updated", OrcType("timestamp")),
)
ROW = row_of(_COLUMNS)
_CITIES = ("Lisbon", "Oslo", "Zürich", "Kraków", "Reykjavík", "Nairobi", "大阪", "Montréal", "Tbilisi", "São Paulo")
_BATCH = 250_000


@dataclass(frozen=True, kw_only=True)
class BigOptions:
    """The shape of a large table; the same options give the same rows.

    Attributes:
        rows: of each location.
        write_ids: how many insert, one delta each.
        delete_write_ids: how many delete, one delete delta each.
        base: put the rows of the first write id into a compacted base.
    """

    rows: int = 1_000_000
    write_ids: int = 10
    deletes: int = 1_000
    delete_write_ids: int = 1
    buckets: int = 1
    partitions: int = 0
    seed: int = 0
    base: bool = False
    compression: str = "zlib"


def big_table(path: Path | str, **shape: int | bool) -> None:
    """Write a table of a shape, whose fields are those of BigOptions."""
    write_big(*open_location(str(path)), BigOptions(**shape))  # type: ignore[arg-type]


def write_big(fs: FileSystem, path: str, options: BigOptions) -> list[str]:
    """Write a table, and return the paths of its locations."""
    assert options.deletes <= options.rows
    locations = [f"{path}/p={partition}" for partition in range(options.partitions)] or [path]
    for number, location in enumerate(locations):
        _write_location(fs, location, options, np.random.default_rng(options.seed + number))
    return locations


def _write_location(fs: FileSystem, path: str, options: BigOptions, random: np.random.Generator) -> None:
    made = 0
    for place, count in enumerate(_spread(options.rows, options.write_ids)):
        write_id = place + 1
        per_bucket = _spread(count, options.buckets)
        firsts = np.concatenate([[0], np.cumsum(per_bucket)])[:-1] + made
        batches = {
            number: _insert_batches(random, write_id, number, rows, int(first))
            for number, (rows, first) in enumerate(zip(per_bucket, firsts, strict=True))
            if rows
        }
        in_base = options.base and place == 0
        if in_base:
            name = format_directory(Kind.BASE, write_id, write_id)
            settings = WriterSettings.for_base(options.compression)
        else:
            name = format_directory(Kind.DELTA, write_id, write_id, 0)
            settings = WriterSettings.for_delta(options.compression)
        write_directory(fs, f"{path}/{name}", batches, ROW, settings)
        if in_base:
            fs.write_bytes(f"{path}/{name}/{METADATA_ACID}", METADATA_ACID_COMPACTED)
        made += count
    _write_deletes(fs, path, options, random)


def _spread(total: int, parts: int) -> list[int]:
    share, left = divmod(total, parts)
    return [share + (place < left) for place in range(parts)]


def _keys(write_id: int, bucket: int, first: int, count: int) -> Keys:
    value = codec.encode(bucket, 0)
    return Keys(
        np.full(count, write_id, np.int64),
        np.full(count, value, np.int64),
        np.arange(first, first + count, dtype=np.int64),
    )


def _insert_batches(
    random: np.random.Generator, write_id: int, bucket: int, rows: int, first_id: int
) -> Iterator[pa.RecordBatch]:
    for start in range(0, rows, _BATCH):
        count = min(_BATCH, rows - start)
        keys = _keys(write_id, bucket, start, count)
        ids = Ids(np.zeros(count, np.int64), keys, keys.original)
        yield with_ids(ids, _rows(random, first_id + start, count))


def _rows(random: np.random.Generator, first: int, count: int) -> pa.StructArray:
    ids = np.arange(first, first + count, dtype=np.int64)
    customers = random.integers(0, max(2, count // 4), count)
    names = pa.array([f"customer-{n:07d}" for n in range(max(2, count // 4))])
    nulls = random.random(count) < 0.01
    amounts = _decimals(random.integers(0, 10_000_000, count))
    columns = [
        pa.array(ids),
        names.take(pa.array(customers)),
        pa.array(_CITIES).take(pa.array(random.integers(0, len(_CITIES), count), mask=nulls)),
        amounts,
        pa.array(random.normal(100.0, 15.0, count).round(3)),
        pa.array(random.integers(15_000, 20_000, count).astype(np.int32)).cast(pa.date32()),
        pa.array(random.integers(1_400_000_000_000, 1_700_000_000_000, count) * 1_000_000).cast(pa.timestamp("ns")),
    ]
    return pa.StructArray.from_arrays(columns, names=list(ROW.names))


def _decimals(cents: NDArray[np.int64]) -> pa.Array:
    """decimal(10,2) from its unscaled values: 128-bit little-endian integers, not negative here."""
    words = np.zeros((len(cents), 2), np.int64)
    words[:, 0] = cents
    return pa.Array.from_buffers(pa.decimal128(10, 2), len(cents), [None, pa.py_buffer(words)])


def _keys_at(places: NDArray[np.int64], starts: NDArray[np.int64], buckets: int) -> Keys:
    """Return the keys of rows by their places.

    Args:
        starts: the place of the first row of each bucket of each write id.
    """
    at = np.searchsorted(starts, places, side="right") - 1
    values = np.array([codec.encode(number, 0) for number in range(buckets)], np.int64)
    return Keys(at // buckets + 1, values[at % buckets], places - starts[at])


def _write_deletes(fs: FileSystem, path: str, options: BigOptions, random: np.random.Generator) -> None:
    # Positions of rows, counting all of them by write id and bucket.
    chosen = random.permutation(np.arange(options.deletes) * options.rows // max(1, options.deletes))
    per_bucket = [_spread(count, options.buckets) for count in _spread(options.rows, options.write_ids)]
    starts = np.cumsum([0, *(rows for one in per_bucket for rows in one)])
    for place, part in enumerate(np.array_split(chosen, max(1, options.delete_write_ids))):
        if not len(part):
            continue
        write_id = options.write_ids + place + 1
        deleted = _keys_at(np.sort(part), starts, options.buckets)
        order = np.lexsort((deleted.row_id, deleted.original, deleted.bucket))
        deleted = deleted.take(order)
        name = format_directory(Kind.DELETE_DELTA, write_id, write_id, 0)
        batches: dict[int, Iterator[pa.RecordBatch]] = {}
        for number in range(options.buckets):
            first, end = np.searchsorted(deleted.bucket, codec.encode(number, 0) + np.arange(2))
            if first < end:
                batches[number] = _delete_batches(deleted.take(slice(int(first), int(end))), write_id)
        write_directory(fs, f"{path}/{name}", batches, ROW, WriterSettings.for_delta(options.compression))


def _delete_batches(keys: Keys, write_id: int) -> Iterator[pa.RecordBatch]:
    for start in range(0, len(keys), _BATCH):
        own = keys.take(slice(start, start + _BATCH))
        count = len(own)
        ids = Ids(np.full(count, 2, np.int64), own, np.full(count, write_id, np.int64))
        yield with_ids(ids, pa.nulls(count, arrow_type(ROW)))
