"""Maps with a NULL key, which Arrow cannot hold: its reader ends the whole process when it meets one.

So where a stripe says that keys may be NULL (the key column has a PRESENT stream), the keys are read on their own
first, as a list, from a file in memory in which the map is declared so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
from pyarrow import orc

from acidctl.errors import BadDataError
from acidctl.orc import orc_pb2 as pb
from acidctl.orc.arrow import below
from acidctl.orc.read.wide_timestamps import memory_file
from acidctl.orc.source import native_errors
from acidctl.orc.tail import Tail
from acidctl.orc.types import OrcType, renumbered


class NullMapKey(BadDataError):
    """A map with a NULL key: legal in Hive, but not in Arrow."""


def check_map_keys(tail: Tail, i: int, footer: pb.StripeFooter, tree: OrcType) -> None:
    """Refuse a stripe that Arrow's reader would not survive.

    Args:
        tail: the file.
        i: the stripe.
        footer: of the stripe.
        tree: the root struct of the columns that are to be read, with the file's column ids.

    Raises:
        NullMapKey: a map among them has a NULL key.
        BadDataError: the stripe is damaged.
    """
    keys = {node.children[0].column_id: node for node in tree.walk() if node.kind == "map"}
    doubtful = [s.column for s in footer.streams if s.kind == pb.Stream.PRESENT and s.length and s.column in keys]
    for column in doubtful:
        if _null_keys(tail, i, footer, _towards(tree, column), column):
            raise NullMapKey(
                f"stripe {i} of {tail.path} holds a map with a NULL key",
                f"column {column} of the file is the key",
                "leave that column out with --columns, or rewrite the rows in Hive",
            )


def _null_keys(tail: Tail, i: int, footer: pb.StripeFooter, tree: OrcType, key: int) -> int:
    """How many keys are NULL; `tree` leads to the key column."""
    stripe = tail.stripes[i]
    ids = {node.column_id: place for place, node in enumerate(tree.walk())}
    made = pb.StripeFooter(writerTimezone="UTC")
    made.columns.extend(footer.columns[column] for column in ids)
    at = 0
    for stream in footer.streams:
        if at >= stripe.indexLength:
            known = stream.column in ids
            # A plain read passes over bloom filters: the other columns hide behind them.
            kind = stream.kind if known else pb.Stream.BLOOM_FILTER
            made.streams.add(kind=kind, column=ids.get(stream.column, 0), length=stream.length)
        at += stream.length
    data = tail.source.read(stripe.offset + stripe.indexLength, stripe.dataLength)
    file = memory_file(tail, renumbered(tree), [memoryview(data)], made, stripe.numberOfRows)
    with native_errors(tail.path, i):
        batch = orc.ORCFile(pa.BufferReader(pa.py_buffer(b"".join(file)))).read_stripe(0)
    return sum(array.null_count for array in _found(pa.StructArray.from_arrays(batch.columns, ["c"]), tree, key))


def _towards(node: OrcType, key: int) -> OrcType:
    """The tree with nothing but what leads to the column `key`; maps are lists of their keys or of their values."""
    if not node.column_id < key <= node.last_id:
        return _simple(node)
    children = node.children
    if node.kind in ("struct", "map"):
        children = tuple(child for child in children if child.column_id <= key <= child.last_id)
    return replace(
        node,
        kind="array" if node.kind == "map" else node.kind,
        children=tuple(_towards(child, key) for child in children),
        names=("c",) if node.kind == "struct" else (),
        attributes=(),
    )


def _simple(node: OrcType) -> OrcType:
    """A column that Arrow reads whatever its values are: no maps, and no timestamps, which may be out of range."""
    children = node.children[:1] if node.kind == "map" else node.children
    kind = "array" if node.kind == "map" else "bigint" if node.kind.startswith("timestamp") else node.kind
    return replace(
        node,
        kind=kind,
        children=tuple(_simple(child) for child in children),
        names=tuple(f"c{i}" for i in range(len(children))) if kind == "struct" else (),
        attributes=(),
    )


def _found(array: pa.Array, tree: OrcType, key: int) -> Iterator[pa.Array]:
    """The arrays of the column `key`."""
    if tree.column_id == key:
        yield array
        return
    for child, kind in zip(below(array), tree.children, strict=True):
        if kind.column_id <= key <= kind.last_id:
            yield from _found(child, kind, key)
