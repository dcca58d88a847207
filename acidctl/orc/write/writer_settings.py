"""Check settings for writing ORC files, and find the columns that get bloom filters.

This is the one module that knows each setting: its default, the table property that sets it, its limits, and the
argument of the ORC library that it becomes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final, Self

from acidctl.base.errors import UsageProblem
from acidctl.base.nearest import did_you_mean
from acidctl.orc import orc_pb2 as pb
from acidctl.orc.tail import Tail
from acidctl.orc.types import KINDS, OrcType, hive_type, row_type

_KIB, _MIB = 1 << 10, 1 << 20

BLOCK_UNIT: Final = 64 * _KIB
"""ORC C++ accepts only multiples of this as compression block size."""

MAX_BLOCK: Final = 8 * _MIB - BLOCK_UNIT
"""The largest block size: ORC C++ ends the whole process for 8 MiB or more."""

WHOLE: Final = 1 << 40
"""A stripe size that no batch reaches: all rows in one stripe."""

CODECS: Final = ("none", "zlib", "snappy", "lz4", "zstd")
"""Compression that can be written."""

ANY_STRIDE: Final = 10_000
"""The stride for encoding stripes whose row index is dropped afterwards."""

_MAX_STRIDE: Final = (1 << 31) - 1
_MAX_BLOOM: Final = 16 * _MIB  # the most bytes of one bloom filter; at 10000 rows and a rate of 0.05 a filter has 8 KiB

_WITHOUT: Final = ("boolean", "array", "map", "struct", "uniontype")
BLOOM_KINDS: Final = tuple(kind for kind in KINDS if kind not in _WITHOUT)
"""Types of columns for which the ORC library writes bloom filters."""


def _columns(text: str) -> tuple[str, ...]:
    columns = tuple(column.strip() for column in text.split(",") if column.strip())
    if not columns:
        raise ValueError("it names no column")
    return columns


def _set_by(property_: str, read: Callable[[str], Any], default: Any) -> Any:
    """Return a field with the table property that sets it; `read` takes the property's text."""
    return field(default=default, metadata={"property": property_, "read": read})


@dataclass(frozen=True, slots=True)
class WriterSettings:
    """Settings for encoding stripes.

    Attributes:
        compression: one of CODECS.
        block_size: compression block size in bytes; a multiple of 64 KiB below 8 MiB.
        stripe_size: bytes at which a stripe ends: decoded bytes while rows are gathered, encoded bytes (for zlib,
            before compression) inside a batch.
        stride: rows per row-index entry; 0 writes no row index.
        dictionary_threshold: a string column gets a dictionary if at most this share of its values is distinct.
        batch_rows: rows that ORC takes at a time; a stripe ends only at a multiple of this.
        bloom_columns: columns of the table that get bloom filters, ``a`` or ``a.b`` for a field of a struct.
        bloom_fpp: the intended rate of false positives of bloom filters; Hive's default is 0.05.
    """

    compression: str = _set_by("orc.compress", str.lower, "zlib")
    block_size: int = 256 * _KIB
    stripe_size: int = _set_by("orc.stripe.size", int, 64 * _MIB)
    stride: int = _set_by("orc.row.index.stride", int, 10_000)
    dictionary_threshold: float = 0.8
    batch_rows: int = 4096
    bloom_columns: tuple[str, ...] = _set_by("orc.bloom.filter.columns", _columns, ())
    bloom_fpp: float = _set_by("orc.bloom.filter.fpp", float, 0.05)

    def __post_init__(self) -> None:
        if self.compression not in CODECS:
            what = f"ORC compression {self.compression} cannot be written"
            raise UsageProblem(what, f"known are {', '.join(CODECS)}")
        if not BLOCK_UNIT <= self.block_size <= MAX_BLOCK or self.block_size % BLOCK_UNIT:
            what = f"a compression block size of {self.block_size} bytes cannot be written"
            raise UsageProblem(what, f"it must be a multiple of {BLOCK_UNIT} and at most {MAX_BLOCK}")
        limits: dict[str, tuple[float, float, float]] = {
            "stripe size": (1, self.stripe_size, WHOLE),
            "row index stride": (0, self.stride, _MAX_STRIDE),
            "dictionary threshold": (0, self.dictionary_threshold, 1),
            "batch size": (1, self.batch_rows, _MIB),
        }
        for name, (least, value, most) in limits.items():
            if not least <= value <= most:
                raise UsageProblem(f"a {name} of {value} cannot be written", f"it must be from {least} to {most}")
        if not 0 < self.bloom_fpp < 1:
            what = f"a bloom filter cannot have a false positive rate of {self.bloom_fpp}"
            raise UsageProblem(what, "it is a share between 0 and 1, both excluded")
        if self.bloom_columns:
            self._check_bloom()

    def _check_bloom(self) -> None:
        if self.stride == 0:
            why, hint = "there is one for every entry of the row index", "choose a row index stride, Hive's is 10000"
            raise UsageProblem("bloom filters cannot be written with a row index stride of 0", why, hint)
        size = self.stride * -math.log(self.bloom_fpp) / math.log(2) ** 2 / 8
        if size > _MAX_BLOOM:
            what = f"bloom filters of {size / _MIB:.0f} MiB for every {self.stride} rows cannot be written"
            why = f"the row index stride is {self.stride} and the false positive rate {self.bloom_fpp}"
            raise UsageProblem(what, why, f"choose them so that a filter has at most {_MAX_BLOOM // _MIB} MiB")

    @classmethod
    def parse(cls, properties: Iterable[tuple[str, str]]) -> dict[str, Any]:
        """Return the fields, by name, that table properties set, such as ``orc.compress``.

        Args:
            properties: keys with their values; those that do not begin with ``orc.`` are ignored.

        Raises:
            UsageProblem: a property is unknown, or its text has the wrong form. Ranges are checked by the constructor.
        """
        known = {one.metadata["property"]: one for one in fields(cls) if one.metadata}
        settings: dict[str, Any] = {}
        for key, text in properties:
            if not key.startswith("orc."):
                continue
            if key not in known:
                hint = did_you_mean(key, known, f"use {', '.join(known)}")
                raise UsageProblem(f"--property {key} changes nothing", "", hint)
            read = known[key].metadata["read"]
            try:
                settings[known[key].name] = read(text)
            except ValueError:
                why = "it names no column" if read is _columns else "it is not a number"
                raise UsageProblem(f"--property {key}={text} cannot be used", why, "") from None
        return settings

    def for_arrow(self, bloom_columns: Sequence[int] = ()) -> dict[str, Any]:
        """Return these settings as the keyword arguments of pyarrow's ORCWriter.

        Args:
            bloom_columns: the ids of the columns that get bloom filters, as :func:`bloom_ids` finds them.
        """
        return {
            "batch_size": self.batch_rows,
            "stripe_size": self.stripe_size,
            "compression": "uncompressed" if self.compression == "none" else self.compression,
            "compression_block_size": self.block_size,
            # With "speed" ORC C++ gives LZ4 an acceleration at which it compresses next to nothing.
            "compression_strategy": "compression" if self.compression == "lz4" else "speed",
            # pyarrow does not write stripes without an index; it is dropped afterwards.
            "row_index_stride": self.stride or ANY_STRIDE,
            "dictionary_key_size_threshold": self.dictionary_threshold,
            "bloom_filter_columns": list(bloom_columns),
            "bloom_filter_fpp": self.bloom_fpp,
        }

    @classmethod
    def for_base(cls, compression: str = "zlib") -> Self:
        """Return Hive's settings for a base: stripes of 64 MiB, blocks of 256 KiB (format section 3.5)."""
        return cls(compression=compression)

    @classmethod
    def for_delta(cls, compression: str = "zlib") -> Self:
        """Return Hive's settings for a delta: an eighth of a base's stripe; blocks of 32 KiB become ORC C++'s least."""
        return cls(compression=compression, block_size=BLOCK_UNIT, stripe_size=8 * _MIB)


def bloom_ids(names: Sequence[str], tree: OrcType) -> dict[str, int]:
    """Return the column ids of `names`.

    Args:
        names: columns of the table, ``a`` or ``a.b`` for a field of a struct; as in Hive, case does not matter.
        tree: the root of the file, ACID or not.

    Raises:
        UsageProblem: a column does not exist, or its type cannot have bloom filters.
    """
    row = row_type(tree)
    # Reversed, so that the first of equal names counts.
    columns = {path.lower(): node for path, node in reversed(list(_paths(row)))} if names else {}
    ids = {}
    for name in names:
        column = columns.get(name.lower())
        if column is None:
            what, why = f"bloom filters: the table has no column {name}", f"columns: {', '.join(row.names)}"
            raise UsageProblem(what, why, "name a column, or a field of a struct as column.field")
        if column.kind not in BLOOM_KINDS:
            what, why = f"column {name} cannot have bloom filters", f"it is of type {hive_type(column)}"
            raise UsageProblem(what, why, f"types that can are {', '.join(BLOOM_KINDS)}")
        ids[name] = column.column_id
    return ids


def bloom_columns(tail: Tail) -> tuple[str, ...]:
    """Return the columns, as :func:`bloom_ids` takes them, with bloom filters in the file's first stripe.

    Raises BadDataError if the stripe's footer is damaged.
    """
    if not tail.stripes:
        return ()
    kinds = (pb.Stream.BLOOM_FILTER, pb.Stream.BLOOM_FILTER_UTF8)
    ids = {stream.column for stream in tail.stripe_footer(0).streams if stream.kind in kinds}
    return tuple(sorted(name for name, node in _paths(row_type(tail.type_tree)) if node.column_id in ids))


def _paths(tree: OrcType, prefix: str = "") -> Iterator[tuple[str, OrcType]]:
    """Yield the columns, and fields of structs below them, by their dotted names."""
    for name, child in tree.fields():
        yield prefix + name, child
        if child.kind == "struct":
            yield from _paths(child, f"{prefix}{name}.")
