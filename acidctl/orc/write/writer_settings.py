"""Settings for writing ORC files; values that the ORC library cannot use are refused."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Self

from acidctl.base.errors import UsageProblem

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
_MAX_BLOOM: Final = 16 * _MIB
"""The most bytes of one bloom filter; at 10000 rows and a rate of 0.05 a filter has 8 KiB."""


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

    compression: str = "zlib"
    block_size: int = 256 * _KIB
    stripe_size: int = 64 * _MIB
    stride: int = 10_000
    dictionary_threshold: float = 0.8
    batch_rows: int = 4096
    bloom_columns: tuple[str, ...] = ()
    bloom_fpp: float = 0.05

    def __post_init__(self) -> None:
        if self.compression not in CODECS:
            raise UsageProblem(
                f"ORC compression {self.compression} cannot be written", f"known are {', '.join(CODECS)}"
            )
        if not BLOCK_UNIT <= self.block_size <= MAX_BLOCK or self.block_size % BLOCK_UNIT:
            raise UsageProblem(
                f"a compression block size of {self.block_size} bytes cannot be written",
                f"it must be a multiple of {BLOCK_UNIT} and at most {MAX_BLOCK}",
            )
        limits: dict[str, tuple[float, float, float]] = {
            "stripe size": (1, self.stripe_size, WHOLE),
            "row index stride": (0, self.stride, _MAX_STRIDE),
            "dictionary threshold": (0, self.dictionary_threshold, 1),
            "batch size": (1, self.batch_rows, _MIB),
        }
        for name, (least, value, most) in limits.items():
            if not least <= value <= most:
                raise UsageProblem(f"a {name} of {value} cannot be written", f"it must be from {least} to {most}")
        self._check_bloom()

    def _check_bloom(self) -> None:
        if not 0 < self.bloom_fpp < 1:
            raise UsageProblem(
                f"a bloom filter cannot have a false positive rate of {self.bloom_fpp}",
                "it is a share between 0 and 1, both excluded",
            )
        if not self.bloom_columns:
            return
        if self.stride == 0:
            raise UsageProblem(
                "bloom filters cannot be written with a row index stride of 0",
                "there is one filter for every entry of the row index",
                "choose a row index stride, Hive's is 10000",
            )
        size = self.stride * -math.log(self.bloom_fpp) / math.log(2) ** 2 / 8
        if size > _MAX_BLOOM:
            raise UsageProblem(
                f"bloom filters of {size / _MIB:.0f} MiB for every {self.stride} rows cannot be written",
                f"the row index stride is {self.stride} and the false positive rate {self.bloom_fpp}",
                f"choose them so that a filter has at most {_MAX_BLOOM // _MIB} MiB",
            )

    @classmethod
    def for_base(cls, compression: str = "zlib") -> Self:
        """Return Hive's settings for a base: stripes of 64 MiB, blocks of 256 KiB (format section 3.5)."""
        return cls(compression=compression)

    @classmethod
    def for_delta(cls, compression: str = "zlib") -> Self:
        """Return Hive's settings for a delta: an eighth of a base's stripe; blocks of 32 KiB become ORC C++'s least."""
        return cls(compression=compression, block_size=BLOCK_UNIT, stripe_size=8 * _MIB)
