"""What a stripe's statistics say of its keys, so that the id columns are read only where they matter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from acidctl.acid.writeids import ValidWriteIds
from acidctl.orc import orc_pb2 as pb
from acidctl.orc.tail import RecordKey, Tail

_ORIGINAL, _BUCKET, _ROW_ID, _CURRENT = 2, 3, 4, 5
"""ORC column ids of a full-ACID file (format section 3.1)."""


@dataclass(frozen=True, slots=True)
class StripeRange:
    """Least and greatest value of the id columns in one stripe, inclusive.

    Attributes:
        is_dense: the stripe holds one (originalTransaction, bucket) and every rowId from the first to the last, in
            order: then the place of a row follows from its rowId.
    """

    original: tuple[int, int]
    bucket: tuple[int, int]
    row_id: tuple[int, int]
    current: tuple[int, int]
    is_dense: bool

    def is_all_valid(self, write_ids: ValidWriteIds) -> bool:
        """Whether the snapshot sees every event of the stripe."""
        low, high = self.current
        if high > write_ids.high_watermark:
            return False
        return not write_ids.exceptions_in(low, high)


def stripe_ranges(tail: Tail) -> list[StripeRange | None]:
    """The ranges of every stripe of a native file; None where statistics are missing or cannot be meant.

    Files without a row index may claim the whole range of 64 bits (format section 3.4): such a range excludes
    nothing, so it needs no special case.

    Raises:
        BadDataError: the stripe statistics are damaged.
    """
    index = tail.key_index() or []
    ranges: list[StripeRange | None] = []
    for number, stripe in enumerate(tail.stripes):
        statistics = tail.stripe_statistics(number)
        last = index[number] if number < len(index) else None
        ranges.append(_range(statistics, stripe.numberOfRows, last) if statistics else None)
    return ranges


def _range(statistics: Sequence[pb.ColumnStatistics], rows: int, last: RecordKey | None) -> StripeRange | None:
    found = []
    for column in (_ORIGINAL, _BUCKET, _ROW_ID, _CURRENT):
        if column >= len(statistics) or not statistics[column].HasField("intStatistics"):
            return None
        integers = statistics[column].intStatistics
        if not (integers.HasField("minimum") and integers.HasField("maximum") and integers.minimum <= integers.maximum):
            return None
        if statistics[column].numberOfValues != rows:
            return None
        found.append((integers.minimum, integers.maximum))
    original, bucket, row_id, current = found
    single = original[0] == original[1] and bucket[0] == bucket[1]
    # The last key of the key index must be the greatest: a hint that rows ascend, as they must (section 4.2).
    ascends = last == (original[1], bucket[1], row_id[1])
    dense = single and ascends and row_id[1] - row_id[0] + 1 == rows
    return StripeRange(original, bucket, row_id, current, dense)
