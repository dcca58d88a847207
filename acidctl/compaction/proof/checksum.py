"""Proofs of results: their levels, the checksums of keys, and the comparison of bytes.

The checksum of keys does not depend on their order. Bytes that were written to the store are compared with what the
store returns.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import BinaryIO, Final

import numpy as np
from isal.isal_zlib import crc32
from numpy.typing import NDArray

from acidctl.base.errors import StorageError, VerifyError
from acidctl.base.task_progress import through
from acidctl.orc.read.integer_runs import RowIdRun
from acidctl.orc.write.acid_writer import ascending
from acidctl.rows.read.delete_set import Bools, Keys, Longs
from acidctl.storage.port import FileSystem
from acidctl.storage.ranged import pieces

_MASK = (1 << 64) - 1
SEEDS: Final[tuple[int, int]] = (0x9E3779B97F4A7C15, 0xD1B54A32D192ED03)
"""Seeds of the two lanes."""

_BLOCK = 1 << 16
"""Number of rows whose intermediate results stay in the processor's cache."""


class Crc:
    """The CRC-32 of the bytes that have passed through it, in `value`."""

    def __init__(self) -> None:
        self.value = 0

    def through(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the same chunks."""
        for chunk in chunks:
            self.value = crc32(chunk, self.value)
            yield chunk


def crc_of(chunks: Iterable[bytes | memoryview]) -> int:
    """Return the CRC-32 of all chunks, one after another."""
    value = 0
    for chunk in chunks:
        value = crc32(chunk, value)
    return value


def key_checksum(keys: Keys) -> int:
    """Return 128 bits: the sums of two independent 64-bit values of each (originalTransaction, bucket, rowId).

    By :func:`add` the checksums of stripes and files can be added in any order. Unlike an exclusive or, a sum changes
    if a row appears twice.

    A key's value is the hash of the key with the next row id, less its own hash. For consecutive row ids all hashes but
    the first and last cancel out, so that a million keys cost no more than one. Sums of different keys still differ as
    surely as sums of hashes do, because the count of each hash in the sum determines which keys there are.
    """
    total = 0
    for start in range(0, len(keys), _BLOCK):
        block = keys.take(slice(start, start + _BLOCK))
        follows = np.diff(block.row_id) == 1
        for column in (block.original, block.bucket):
            if not is_constant(column):
                follows &= column[1:] == column[:-1]
        ends = np.flatnonzero(~follows)
        firsts, lasts = np.append(0, ends + 1), np.append(ends, len(block) - 1)
        total = add(total, runs_checksum(block.take(firsts), block.take(lasts)))
    return total


def run_checksum(first: tuple[int, int, int], count: int) -> int:
    """Return the :func:`key_checksum` of `count` keys with consecutive row ids."""
    original, bucket, row_id = first
    after = (original, bucket, row_id + count)
    low, high = (_key_hash(after, seed) - _key_hash(first, seed) & _MASK for seed in SEEDS)
    return high << 64 | low


def runs_checksum(firsts: Keys, lasts: Keys) -> int:
    """Return the :func:`key_checksum` of runs of consecutive row ids, given by their first and last keys."""
    after = Keys(lasts.original, lasts.bucket, lasts.row_id + 1)
    low, high = (
        int((key_hashes(after, seed) - key_hashes(firsts, seed)).sum(dtype=np.uint64)) & _MASK for seed in SEEDS
    )
    return high << 64 | low


def is_constant(column: NDArray[np.int64]) -> bool:
    """Say if a column has at most one value."""
    return not len(column) or bool((column == column[0]).all())


def add(one: int, other: int) -> int:
    """Return the checksum of the union of two disjoint sets of rows."""
    return ((one >> 64) + (other >> 64) & _MASK) << 64 | ((one & _MASK) + (other & _MASK) & _MASK)


def subtract(whole: int, part: int) -> int:
    """Return the checksum of the rows of `whole` that are not in `part`."""
    return ((whole >> 64) - (part >> 64) & _MASK) << 64 | ((whole & _MASK) - (part & _MASK) & _MASK)


@dataclass(frozen=True, slots=True)
class RowProof:
    """The figures in which the rows of a file must agree with the rows that it should hold.

    Attributes:
        keys: their :func:`key_checksum`.
        values: the checksum over all their columns; 0 if values are not compared.
    """

    rows: int = 0
    keys: int = 0
    values: int = 0

    def __add__(self, other: RowProof) -> RowProof:
        return RowProof(self.rows + other.rows, add(self.keys, other.keys), add(self.values, other.values))

    def __sub__(self, other: RowProof) -> RowProof:
        return RowProof(self.rows - other.rows, subtract(self.keys, other.keys), subtract(self.values, other.values))


def key_hashes(keys: Keys, seed: int) -> NDArray[np.uint64]:
    """Return 64 bits for each row's key."""
    mixed: NDArray[np.uint64] = np.full(1, seed, np.uint64)
    for column in (keys.original, keys.bucket, keys.row_id):
        # These columns mostly have one value for the whole stripe, which is then mixed only once.
        part = column[:1] if len(mixed) == 1 and is_constant(column) else column
        mixed = mix(mixed ^ part.view(np.uint64) * np.uint64(0xBF58476D1CE4E5B9))
    return mixed if len(mixed) == len(keys) else np.full(len(keys), mixed[0] if len(keys) else 0, np.uint64)


def _key_hash(key: tuple[int, int, int], seed: int) -> int:
    """Return :func:`key_hashes` of a single key, ten times faster than NumPy would for an array of one."""
    mixed = seed
    for part in key:
        mixed ^= (part & _MASK) * 0xBF58476D1CE4E5B9 & _MASK
        mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 & _MASK
        mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & _MASK
        mixed ^= mixed >> 31
    return mixed


def mix(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Apply the finisher of splitmix64: every bit of the result depends on every bit of the value, modulo 2**64."""
    mixed = values >> np.uint64(30)
    mixed ^= values
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(27)
    mixed *= np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return mixed


Key = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class KeyFacts:
    """The facts about a stripe's keys, at least one, computed together because every stripe needs them twice.

    Attributes:
        first, last: the least and the greatest key.
        ascends: whether they are in order; equal keys may be adjacent.
        repeats: whether a key equals the key before it.
        checksum: see :func:`key_checksum`.
    """

    first: Key
    last: Key
    ascends: bool
    repeats: bool
    checksum: int

    @classmethod
    def of(cls, keys: Keys) -> KeyFacts:
        """Compute the facts about keys."""
        if is_constant(keys.original) and is_constant(keys.bucket) and (np.diff(keys.row_id) == 1).all():
            first, last = key_range(keys, True)  # one writer's rows without gaps: nothing else to compute
            return cls(first, last, True, False, run_checksum(first, len(keys)))
        ascends = is_sorted(keys)
        first, last = key_range(keys, ascends)
        return cls(first, last, ascends, bool(repeats(keys).any()), key_checksum(keys))

    @classmethod
    def of_run(cls, run: RowIdRun) -> KeyFacts:
        """Compute the facts about one writer's rows without gaps."""
        return cls(run.first, run.last, True, False, run_checksum(run.first, run.count))


def key_range(keys: Keys, ascends: bool | None = None) -> tuple[Key, Key]:
    """Return the least and the greatest key; `ascends` if it is known."""
    low, high = 0, len(keys) - 1
    if not (is_sorted(keys) if ascends is None else ascends):
        order = np.lexsort((keys.row_id, keys.bucket, keys.original))
        low, high = int(order[0]), int(order[-1])
    return _key(keys, low), _key(keys, high)


def _key(keys: Keys, at: int) -> Key:
    return int(keys.original[at]), int(keys.bucket[at]), int(keys.row_id[at])


def is_sorted(keys: Keys) -> bool:
    """Say if keys ascend; equal keys may be adjacent."""
    varying = [column for column in (keys.original, keys.bucket) if not is_constant(column)]
    return ascending([*varying, keys.row_id])


def ascending_runs(keys: Keys) -> Longs:
    """Return for each key the number of its run of ascending keys, counted from 0."""
    if is_sorted(keys):
        return np.zeros(len(keys), np.int64)
    original, bucket, row_id = (np.diff(column) for column in (keys.original, keys.bucket, keys.row_id))
    falls = (original < 0) | ((original == 0) & ((bucket < 0) | ((bucket == 0) & (row_id < 0))))
    return np.concatenate([[0], np.cumsum(falls)]).astype(np.int64)


def repeats(keys: Keys) -> Bools:
    """Return which keys equal the key before, for all keys but the first."""
    same: Bools = keys.row_id[1:] == keys.row_id[:-1]
    if same.any():
        same &= (np.diff(keys.original) == 0) & (np.diff(keys.bucket) == 0)
    return same


class Verify(StrEnum):
    """The level of proof; each includes those before it.

    ``keys``: the ids of all rows are those that were read, less those that were deleted, in order and indexed.
    ``bytes``: the store returns every byte that was written to it; copied stripes equal their inputs.
    ``full``: every stripe is decoded, and all values equal those of the inputs, which are read a second time for that,
    so that a fault of one read is noticed.
    """

    KEYS = "keys"
    BYTES = "bytes"
    FULL = "full"

    @property
    def compares_bytes(self) -> bool:
        """Say if written files are read again as a whole."""
        return self is not Verify.KEYS

    @property
    def compares_values(self) -> bool:
        """Say if every column is decoded."""
        return self is Verify.FULL

    @property
    def told(self) -> str:
        """Return the words for a result that passed this level."""
        return {Verify.KEYS: "ids", Verify.BYTES: "bytes", Verify.FULL: "values"}[self] + " verified"


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
            raise mismatch(
                fs.display(path), f"a part differs from the one that was copied from {fs.display(copy.source)}"
            )
        at = copy.end
    _pass(whole.through(pieces(fs, path, at, sink.count - at)))
    if whole.value != sink.value:
        raise mismatch(fs.display(path), "its bytes are not those that were written")


def _pass(chunks: Iterable[bytes]) -> None:
    deque(chunks, maxlen=0)


def mismatch(shown: str, why: str) -> VerifyError:
    """Return the error for a file that differs from what was written."""
    return VerifyError(f"the written file {shown} is wrong", why, "nothing was published; report this")
