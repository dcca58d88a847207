"""Proof of bytes: what was written to the store is compared with what the store returns."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO

from isal.isal_zlib import crc32

from acidctl.base.errors import StorageError, VerifyError
from acidctl.compaction.proof.checksum import Crc, crc_of
from acidctl.compaction.working import through
from acidctl.storage.port import FileSystem
from acidctl.storage.ranged import pieces


class SummedSink:
    """A file that is being written.

    Attributes:
        value: the CRC-32 of all bytes so far.
        count: the number of bytes so far.
    """

    def __init__(self, sink: BinaryIO) -> None:
        self._sink = sink
        self.value = self.count = 0

    def write(self, data: bytes | memoryview) -> int:
        """Pass bytes on."""
        count = self._sink.write(data)
        self.value = crc32(memoryview(data)[:count], self.value)
        self.count += count
        return count


@dataclass(frozen=True, slots=True)
class Taken:
    """A copied part of an input: the CRC-32 of the bytes that were read, and their position in the written file.

    Attributes:
        source: absolute path of the input.
    """

    source: str
    crc: int
    start: int
    end: int


def take(
    fs: FileSystem,
    path: str,
    offset: int,
    length: int,
    *,
    sink: SummedSink,
    append: Callable[[Iterator[bytes]], None],
    twice: bool,
) -> Taken:
    """Pass a part of an input to `append`, which writes it to `sink` and must notice if bytes are missing.

    Args:
        twice: read it a second time, and compare.

    Raises:
        StorageError: the second read gave other bytes.
    """
    crc = Crc()
    append(through(crc.through(pieces(fs, path, offset, length))))
    if twice and crc_of(pieces(fs, path, offset, length)) != crc.value:
        raise StorageError(
            f"cannot read {fs.display(path)}",
            f"{length:,} bytes at offset {offset:,} were read twice, and came differently",
            "look at the health of its disks and of the machine's memory and network, then run it again",
        )
    return Taken(path, crc.value, sink.count - length, sink.count)


def require_bytes(fs: FileSystem, path: str, sink: SummedSink, taken: Sequence[Taken] = ()) -> None:
    """Read all of a written file again.

    Args:
        taken: the copied parts, in order.

    Raises:
        VerifyError: the store returns other bytes, or a copy differs from its input.
    """
    whole = Crc()
    at = 0
    for copy in taken:
        _pass(whole.through(pieces(fs, path, at, copy.start - at)))
        if crc_of(whole.through(pieces(fs, path, copy.start, copy.end - copy.start))) != copy.crc:
            raise mismatch(fs.display(path), f"a part is not the one of {fs.display(copy.source)} it is to be")
        at = copy.end
    _pass(whole.through(pieces(fs, path, at, sink.count - at)))
    if whole.value != sink.value:
        raise mismatch(fs.display(path), "its bytes are not those that were written")


def _pass(chunks: Iterable[bytes]) -> None:
    deque(chunks, maxlen=0)


def mismatch(shown: str, why: str) -> VerifyError:
    """Return the error for a file that differs from what was written."""
    return VerifyError(f"the written file {shown} is wrong", why, "nothing was published; report this")
