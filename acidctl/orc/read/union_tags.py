"""A check for union tags that name no alternative: ORC's C++ reader would crash the process on them.

So the tags are read before the unions: one byte per value, run-length encoded.
"""

from __future__ import annotations

from collections.abc import Callable

from acidctl.errors import BadDataError
from acidctl.orc import orc_pb2 as pb
from acidctl.orc.byte_source import damaged
from acidctl.orc.codecs import ChunkError, TooLarge, decompress
from acidctl.orc.limits import TAIL
from acidctl.orc.tail import Tail, placed_streams
from acidctl.orc.types import OrcType

_LITERALS = 128
"""The first byte of a run: below this, the repeats of the next byte minus 3; else 256 minus the number of literals."""


def check_union_tags(
    tail: Tail, i: int, footer: pb.StripeFooter, tree: OrcType, read: Callable[[int, int], bytes]
) -> None:
    """Refuse a stripe that would crash ORC's reader.

    Args:
        tree: the root struct of the columns that are to be read, with the file's column ids.
        read: gives the bytes at an offset of the file.

    Raises:
        BadDataError: a union has a tag that names none of its alternatives, or its tags cannot be decompressed.
    """
    unions = {node.column_id: len(node.children) for node in tree.walk() if node.kind == "uniontype"}
    for stream, at in placed_streams(footer, tail.stripes[i].offset):
        if stream.kind != pb.Stream.DATA or stream.column not in unions or not stream.length:
            continue
        try:
            tags = decompress(read(at, stream.length), tail.compression, tail.block_size)
        except TooLarge as error:
            raise TAIL.error(f"stripe {i} of {tail.path}", "size of the tags of a union") from error
        except ChunkError as error:
            raise damaged(tail.path, f"in stripe {i} the tags of a union: {error}") from error
        count, highest = unions[stream.column], highest_byte(tags)
        if highest >= count:
            raise BadDataError(
                f"stripe {i} of {tail.path} cannot be read",
                f"a union, column {stream.column}, has the tag {highest}, and {count} alternatives",
                "the file is damaged",
            )


def highest_byte(data: bytes) -> int:
    """The greatest value of a stream of run-length encoded bytes; 0 where there is none."""
    at, end, highest = 0, len(data), 0
    while at < end:
        head = data[at]
        after = at + 2 if head < _LITERALS else at + 257 - head
        highest = max(highest, max(data[at + 1 : after], default=0))
        at = after
    return highest
