"""Which stripes may be taken byte for byte: clean ones that the output can hold without a lie.

A copied stripe costs about what `cp` costs; encoding it again costs a hundred times that. What must agree between
the input and the output's tail:

* compression kind, or the bytes cannot be read;
* row index stride: full scans would look right, but seeks go silently wrong, and 0 crashes readers;
* types and calendar, which the one footer states for all stripes.

The compression block size may differ as long as the postscript states the largest; writer, writer's time zone and
file version are kept a stripe or claimed at the lowest.
"""

from __future__ import annotations

import numpy as np

from acidctl.compaction.checksum import key_checksum
from acidctl.compaction.merge import StripeCopy, is_sorted, key_range
from acidctl.compaction.plan import JULIAN_GREGORIAN, BucketTask
from acidctl.orc import orc_pb2 as pb
from acidctl.orc.acid_writer import CopiedStripe
from acidctl.orc.tail import KNOWN_VERSIONS, RecordKey
from acidctl.orc.types import acid_tree
from acidctl.rows.events import EventFile, Ids

SMALL_STRIPE = 1 << 20
"""Stripes of fewer bytes are encoded again, together: five hundred copied stripes of twenty rows read eight times
slower than one."""


def fits(source: EventFile, task: BucketTask) -> bool:
    """Whether the stripes of a file may stand in the output of a task as they are."""
    tail = source.tail
    return (
        source.synthetic is None
        and not tail.encrypted
        and tail.version in KNOWN_VERSIONS
        and tail.compression == task.settings.compression
        and tail.stride == task.settings.stride
        and tail.stride > 0
        and source.is_hybrid is (task.calendar == JULIAN_GREGORIAN)
        and len(tail.metadata.stripeStats) == len(tail.stripes)
        and tail.type_tree == acid_tree(task.row)
    )


def stripe_copy(source: EventFile, stripe: int, ids: Ids) -> StripeCopy | None:
    """What the writer needs to copy a stripe of a file that :func:`fits`; None for a small or unordered stripe.

    Args:
        ids: of all its events, every one of which is kept.
    """
    info = source.tail.stripes[stripe]
    length = info.indexLength + info.dataLength + info.footerLength
    if length < SMALL_STRIPE or not is_sorted(ids.keys, strictly=True):
        return None
    operations = np.bincount(ids.operation, minlength=3)
    if len(operations) > 3:
        return None
    first, last = key_range(ids.keys)
    statistics = pb.StripeStatistics()
    statistics.CopyFrom(source.tail.metadata.stripeStats[stripe])
    copied = CopiedStripe(
        info,
        statistics,
        RecordKey(*first),
        RecordKey(*last),
        (int(operations[0]), int(operations[1]), int(operations[2])),
        (source.tail.footer.writer, source.tail.writer_version),
    )
    return StripeCopy(source.fs, source.path, info.offset, copied, key_checksum(ids.keys))
