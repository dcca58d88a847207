"""Refuse streams with which a file can crash ORC's C++ reader, end the process, or keep it busy for ever.

The reader uses any tag of a union as an index into its alternatives, without a check, and crashes. It brings a decimal
from its own scale to that of the column in steps of 18 digits: a scale of 2^62 takes years. Arrow cannot hold a map
with a NULL key and ends the whole process at one, so the PRESENT stream of a key column is read first.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pyarrow.compute as pc

from acidctl.base.errors import BadDataError
from acidctl.orc import orc_pb2 as pb
from acidctl.orc.byte_source import damaged
from acidctl.orc.codecs import ChunkError, TooLarge, decompress
from acidctl.orc.limits import STRIPE_MEMORY, TAIL
from acidctl.orc.read.integer_runs import bound_of_runs, unsigned_runs
from acidctl.orc.read.memory_file import read_column
from acidctl.orc.read.stripe_size import sum_of_lengths
from acidctl.orc.tail import Tail, placed_streams
from acidctl.orc.types import OrcType
from acidctl.orc.varint import TooLongError

KINDS = frozenset(("uniontype", "decimal"))
"""Types of columns that :func:`check_streams` checks."""

_LITERALS = 128
"""The first byte of a run of tags is below this for repeats of the next byte (it is their number minus 3), else it is
256 minus the number of literals."""
_HIGHEST_SCALE = 128  # the highest scale that is let through: Hive's are 0 to 38, and a little more costs nothing


def check_streams(
    tail: Tail, i: int, footer: pb.StripeFooter, tree: OrcType, read: Callable[[int, int], bytes]
) -> None:
    """Refuse a stripe that would crash ORC's reader or keep it busy for ever.

    Args:
        tree: the root struct of the columns to read, with the file's column ids.
        read: returns the bytes at an offset of the file.

    Raises:
        BadDataError: a union has a tag that names none of its alternatives, a decimal has an impossible scale, or
            these streams cannot be decompressed.
    """
    unions = {node.column_id: len(node.children) for node in tree.walk() if node.kind == "uniontype"}
    decimals = {node.column_id for node in tree.walk() if node.kind == "decimal"}

    def content(at: int, length: int, what: str) -> bytes:
        try:
            return decompress(read(at, length), tail.compression, tail.block_size)
        except TooLarge as error:
            raise TAIL.error(f"stripe {i} of {tail.path}", f"size of the {what}") from error
        except ChunkError as error:
            raise damaged(tail.path, f"in stripe {i} the {what}: {error}") from error

    for stream, at in placed_streams(footer, tail.stripes[i].offset):
        why = ""
        if stream.length and stream.kind == pb.Stream.DATA and stream.column in unions:
            count, highest = unions[stream.column], highest_byte(content(at, stream.length, "tags of a union"))
            if highest >= count:
                why = f"a union, column {stream.column}, has the tag {highest}, and {count} alternatives"
        elif stream.length and stream.kind == pb.Stream.SECONDARY and stream.column in decimals:
            encoding = footer.columns[stream.column].kind if stream.column < len(footer.columns) else None
            version = 2 if encoding == pb.ColumnEncoding.DIRECT_V2 else 1
            scale = highest_scale(content(at, stream.length, "scales of a decimal"), version)
            if scale > _HIGHEST_SCALE:
                why = f"a decimal, column {stream.column}, has a scale of up to {scale:.0f}"
        if why:
            raise BadDataError(f"stripe {i} of {tail.path} cannot be read", why, "the file is damaged")


def highest_byte(data: bytes) -> int:
    """Return the greatest value of a stream of run-length encoded bytes; 0 if it is empty."""
    at, end, highest = 0, len(data), 0
    while at < end:
        head = data[at]
        after = at + 2 if head < _LITERALS else at + 257 - head
        highest = max(highest, max(data[at + 1 : after], default=0))
        at = after
    return highest


def highest_scale(data: bytes, version: int) -> float:
    """Return an upper bound of the absolute values in a stream of signed integers, up to where it is damaged.

    A negative scale counts as a large scale if it is in a run with a slope, which no writer makes.

    Args:
        version: the version of the encoding, 1 or 2.
    """
    if version == 2 and (bound := bound_of_runs(data, float("inf"))[1] / 2) <= _HIGHEST_SCALE:
        return bound
    highest = 0.0
    with suppress(IndexError, TooLongError):
        for values, _ in unsigned_runs(data, version=version):
            highest = max(highest, float(values.max()) / 2)
    return highest


_DECODED = 8  # bytes that Arrow's reader takes for one bit


class NullMapKey(BadDataError):
    """A map has a NULL key, which is legal in Hive but not in Arrow."""


def check_map_keys(tail: Tail, i: int, footer: pb.StripeFooter, tree: OrcType) -> None:
    """Refuse a stripe with a NULL map key, which would end the process.

    Args:
        tree: the root struct of the columns to read, with the file's column ids.

    Raises:
        NullMapKey: a map in these columns has a NULL key.
        BadDataError: the stripe is damaged.
    """
    maps = {node.children[0].column_id: node.column_id for node in tree.walk() if node.kind == "map"}
    for stream, at in placed_streams(footer, tail.stripes[i].offset):
        if stream.kind == pb.Stream.PRESENT and stream.length and stream.column in maps:
            keys = int(sum_of_lengths(tail, i, footer, maps[stream.column]))
            if not keys:
                continue
            STRIPE_MEMORY.check(keys * _DECODED, f"stripe {i} of {tail.path}", "number of the keys of its maps")
            # PRESENT streams are stored like the values of a BOOLEAN.
            streams = {pb.Stream.DATA: tail.source.read(at, stream.length)}
            is_present = read_column(tail, i, "boolean", streams, keys)
            if len(is_present) != keys or not pc.all(is_present).as_py():
                raise NullMapKey(
                    f"stripe {i} of {tail.path} holds a map with a NULL key",
                    f"column {stream.column} of the file is the key",
                    "leave that column out, or rewrite the rows in Hive",
                )
