"""The ``bucket`` column: a 32-bit integer whose top three bits name its codec (format section 2)."""

from __future__ import annotations

from dataclasses import dataclass

from acidctl.base.errors import BadDataError

MAX_BUCKET = 4095
MAX_STATEMENT = 4095


@dataclass(frozen=True, slots=True)
class BucketProperty:
    """The parts of one value of the ``bucket`` column.

    Attributes:
        version: codec, 0 (Hive before 3.0: the plain bucket number) or 1.
        bucket: bucket (writer) id, the N of ``bucket_N``.
        statement: 0 for codec 0.
    """

    version: int
    bucket: int
    statement: int


def encode(bucket: int, statement: int = 0, version: int = 1) -> int:
    """Return the column's value; a missing statement id (-1) counts as 0.

    Raises:
        BadDataError: the bucket or the statement id does not fit the codec.
    """
    if version == 0:
        if not 0 <= bucket < 1 << 29:
            raise BadDataError(f"bucket id {bucket} does not fit the bucket column")
        return bucket
    if not 0 <= bucket <= MAX_BUCKET:
        raise BadDataError(f"bucket id {bucket} does not fit the bucket column", f"the largest is {MAX_BUCKET}")
    if statement > MAX_STATEMENT:
        raise BadDataError(
            f"statement id {statement} does not fit the bucket column", f"the largest is {MAX_STATEMENT}"
        )
    return 1 << 29 | bucket << 16 | max(statement, 0)


def decode(value: int) -> BucketProperty:
    """Split a value of the column into its parts.

    Raises:
        BadDataError: the top three bits name an unknown codec (2 to 7).
    """
    unsigned = value & 0xFFFFFFFF
    version = unsigned >> 29
    if version == 0:
        return BucketProperty(0, unsigned, 0)
    if version == 1:
        return BucketProperty(1, (unsigned >> 16) & 0xFFF, unsigned & 0xFFF)
    raise BadDataError(f"illegal bucket value {value}", f"its top bits name codec {version}; known are 0 and 1")
