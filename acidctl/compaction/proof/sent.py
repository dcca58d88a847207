"""What the store was given for a file, and whether it gives the same back."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO

from isal.isal_zlib import crc32

from acidctl.compaction.proof.checksum import Crc, crc_of
from acidctl.compaction.working import through
from acidctl.errors import StorageError, VerifyError
from acidctl.storage.port import FileSystem
from acidctl.storage.ranged import pieces


class SummedSink:
    """A file that is being written, and what went into it.

    Attributes:
        value: the CRC-32 of all bytes so far.
        count: so many they are.
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
    """Bytes that were copied: the CRC-32 of its bytes as they were read, and where they lie in the written file.

    Attributes:
        source: the file that it was read from, absolute.
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
    """Pass a part of an input to `append`, which writes it to `sink`, and notices when it is not whole.

    Args:
        twice: read it a second time, and compare.

    Raises:
        StorageError: the second time something else came.
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
        sink: what the store was given.
        taken: what was copied, in order.

    Raises:
        VerifyError: the store has other bytes, or a copy is not what was read.
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
    """The error for a file that is not what was to be written."""
    return VerifyError(f"the written file {shown} is wrong", why, "nothing was published; report this")
