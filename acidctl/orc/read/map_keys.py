"""Maps with a NULL key, which Arrow cannot hold: its reader ends the whole process when it meets one.

So where a stripe says that keys may be NULL (the key column has a PRESENT stream), that stream is looked at first.
"""

from __future__ import annotations

import pyarrow.compute as pc

from acidctl.errors import BadDataError
from acidctl.orc import orc_pb2 as pb
from acidctl.orc.limits import STRIPE_MEMORY
from acidctl.orc.read.memory_file import read_column
from acidctl.orc.read.stripe_size import sum_of_lengths
from acidctl.orc.tail import Tail, placed_streams
from acidctl.orc.types import OrcType

_DECODED = 8
"""Bytes that Arrow's reader takes for one bit."""


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
            if keys and _has_null(tail, i, tail.source.read(at, stream.length), keys):
                raise NullMapKey(
                    f"stripe {i} of {tail.path} holds a map with a NULL key",
                    f"column {stream.column} of the file is the key",
                    "leave that column out, or rewrite the rows in Hive",
                )


def _has_null(tail: Tail, i: int, present: bytes, keys: int) -> bool:
    """Return whether one of `keys` keys is NULL, by their PRESENT stream: it is stored like the values of a BOOLEAN."""
    STRIPE_MEMORY.check(keys * _DECODED, f"stripe {i} of {tail.path}", "number of the keys of its maps")
    bits = read_column(tail, i, "boolean", {pb.Stream.DATA: present}, keys)
    return len(bits) != keys or not pc.all(bits).as_py()
