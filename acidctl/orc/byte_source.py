"""Read ranges of one file, up to a length that may be shorter than the file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import pyarrow as pa

from acidctl.base.errors import BadDataError, MemoryProblem, NotFoundError, no_time_zones, out_of_memory
from acidctl.base.guardian import NOTES
from acidctl.base.memory_growth import GROWTH
from acidctl.orc.limits import STRIPE_MEMORY
from acidctl.storage.port import FileSystem
from acidctl.storage.ranged import RangedReader

_NO_MEMORY = ("bad_alloc", "Memory error", "Cannot allocate memory")
"""Words in native readers' other errors that mean that memory ran out."""

_NO_ZONES = "Time zone file"
"""Words in native readers' errors if UTC, or a zone that acidctl has found before, is missing."""

_GROWTH = 3  # reading takes two to three times as much memory as the rows have bytes
_GAP = 256 * 1024  # remote ranges that lie closer than this are fetched as one


class ByteSource:
    """The first `length` bytes of the file `path`; readers see nothing behind them.

    A streaming writer's file is read up to its flush length (format section 12), so the length is part of the source.
    Nothing is held open: each read is one ranged read of the file system.

    Args:
        length: the logical length in bytes; None for the whole file.
        size: the size of the whole file if it is known; otherwise the file system is asked.
    """

    __slots__ = ("_length", "_logical", "fs", "path")

    def __init__(self, fs: FileSystem, path: str, length: int | None = None, size: int | None = None) -> None:
        self.fs = fs
        self.path = path
        self._length = size if length is None else length
        self._logical = length is not None

    @property
    def size(self) -> int:
        """Return the length in bytes; the file system is asked once if it was not given."""
        if self._length is None:
            entry = self.fs.stat(self.path)
            if entry.is_dir:
                why = "an ORC file was expected"
                raise NotFoundError(f"{self.path} is a directory", why, "give the path of a file")
            self._length = entry.size
        return self._length

    def read(self, offset: int, count: int) -> bytes:
        """Return exactly `count` bytes from `offset`.

        Raises BadDataError if the range is not inside the source, or the file is shorter than the source claims.
        """
        if offset < 0 or count < 0 or offset + count > self.size:
            raise damaged(self.path, f"it refers to {count} bytes at {offset}, but is {self.size} bytes long")
        if count == 0:
            return b""
        data = self.fs.read_bytes(self.path, offset, count)
        if len(data) != count:
            why = f"{count} bytes at {offset} were asked for, {len(data)} came; {self.size} bytes were expected"
            hint = "the file was cut short, or its flush length is greater than the file"
            raise BadDataError(f"{self.path} is shorter than expected", why, hint)
        return data

    def read_end(self, count: int) -> bytes:
        """Return the last `count` bytes, or the whole file if it is shorter."""
        size = self.size
        return self.read(max(0, size - count), min(count, size))

    def local_whole(self) -> str | None:
        """Return the path on the local disk if the source is a whole local file."""
        local = self.fs.local_path(self.path)
        if local is not None and self._logical and self.fs.stat(self.path).size != self.size:
            return None
        return local


def damaged(path: str, why: str) -> BadDataError:
    """Return the error for a file that contradicts itself."""
    return BadDataError(f"{path} is damaged", why, "the file was cut short or overwritten; restore it from its source")


@contextmanager
def native_errors(path: str, stripe: int | None = None) -> Iterator[None]:
    """Translate Arrow's errors into acidctl's, with the file and the stripe; acidctl's own errors pass through.

    Raises:
        BadDataError: the file is damaged.
        MemoryProblem, EnvironmentProblem: memory, or the time zone database, is missing on this machine.
    """
    where = path if stripe is None else f"stripe {stripe} of {path}"
    try:
        yield
    except MemoryError as error:  # pa.ArrowMemoryError is one
        raise out_of_memory(where, " ".join(str(error).split())[:300]) from error
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())[:300] or type(error).__name__
        if any(words in reason for words in _NO_MEMORY):
            raise out_of_memory(where, reason) from error
        if _NO_ZONES in reason:
            raise no_time_zones(f"the timestamps of {where} cannot be read", reason) from error
        hint = "the file is damaged, or uses a part of ORC that is not supported"
        raise BadDataError(f"{where} cannot be read", reason, hint) from error


@contextmanager
def native_read(path: str, part: int | str | None = None) -> Iterator[None]:
    """Let a native reader work on a file within the block, and limit how much memory this process may take for it.

    Args:
        part: the number of a stripe, or the name of a part of the file, with its path, for messages.

    Raises:
        LimitError: the reader needed more memory.
        BadDataError, MemoryProblem, EnvironmentProblem: as :func:`native_errors`.
    """
    where = part if isinstance(part, str) else path if part is None else f"stripe {part} of {path}"
    most = _GROWTH * STRIPE_MEMORY.value
    with NOTES.reading(path), GROWTH.limited(most) as is_limited:
        try:
            with native_errors(where):
                yield
        except MemoryProblem as error:
            if not is_limited:
                raise
            pa.default_memory_pool().release_unused()
            what = f"{where} needs more memory than {STRIPE_MEMORY.shown(most)} to be read"
            raise STRIPE_MEMORY.explained(what) from error


class ReadAheadFile(RangedReader):
    """A source as a file object for Arrow, which reads many small pieces: ranges fetched ahead come from memory.

    It is never a memory map: if someone truncates a mapped file the process dies.
    """

    def __init__(self, source: ByteSource, end: bytes = b"") -> None:
        """Keep `end`, the last bytes of the source, all the time."""
        super().__init__(lambda start, end: source.read(start, end - start), source.size, source.path, read_ahead=0)
        self._source = source
        self._end = (source.size - len(end), memoryview(end))
        self._ahead = [self._end]

    def fetch(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Read these (start, end) ranges ahead, close ranges as one, and forget those read before."""
        merged: list[tuple[int, int]] = []
        for start, end in sorted(ranges):
            if merged and start - merged[-1][1] <= _GAP:
                merged[-1] = (merged[-1][0], max(merged[-1][1], end))
            else:
                merged.append((start, end))
        ahead = [(start, memoryview(self.piece(start, end - start))) for start, end in merged]
        self._ahead[:] = [self._end, *ahead]

    def sibling(self) -> ReadAheadFile:
        """Return a file object for the same source with a position of its own and the same ranges in memory."""
        other = ReadAheadFile(self._source)
        other._end, other._ahead = self._end, self._ahead
        return other

    def size(self) -> int:
        """Return the length of the source in bytes, under the name that Arrow calls."""
        return self._source.size

    def _fill(self, start: int, end: int) -> bytes:
        return self.piece(start, end - start)

    def piece(self, offset: int, count: int) -> bytes:
        """Return bytes of the source, from memory if they were kept."""
        for start, data in self._ahead:
            if start <= offset and offset + count <= start + len(data):
                return bytes(data[offset - start : offset - start + count])
        return self._source.read(offset, count)
