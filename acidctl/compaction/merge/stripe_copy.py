"""The stripes that may be copied byte for byte, because the output's footer describes them correctly.

Copying a stripe costs about as much as `cp`; encoding it again costs a hundred times that. These must agree between the
input and the output's footer:

* compression kind, or the bytes cannot be read;
* row index stride: full scans would look right, but seeks would silently go wrong, and 0 crashes readers;
* types and calendar, which one footer states for all stripes;
* columns with bloom filters: rows would be right, but readers would skip less than before.

The compression block size may differ if the postscript states the largest; the writer's time zone is kept per stripe,
and the lowest writer and file version are stated.
"""

from __future__ import annotations

import numpy as np

from acidctl.compaction.proof.checksum import KeyFacts
from acidctl.compaction.tasks import JULIAN_GREGORIAN, FileTask, StripeCopy
from acidctl.orc import orc_pb2 as pb
from acidctl.orc.tail import KNOWN_VERSIONS, RecordKey, Tail, stripe_length
from acidctl.orc.types import OrcType
from acidctl.orc.write.acid_writer import CopiedStripe
from acidctl.orc.write.bloom import bloom_columns
from acidctl.rows.read.events import EventFile, Ids

SMALL_STRIPE = 1 << 20
"""Neighbouring stripes of fewer bytes are encoded again, together: reading five hundred copied stripes of twenty rows
takes eight times as long as reading one stripe."""

Counts = tuple[int, int, int]
"""Numbers of inserts, updates and deletes."""


def agrees(source: EventFile, task: FileTask, tree: OrcType) -> bool:
    """Say if stripes of an ORC file may be copied to the output of a task.

    Args:
        tree: the root of the output's type, numbered from 0.
    """
    settings = task.settings
    tail = source.tail
    return (
        not tail.encrypted
        and tail.version in KNOWN_VERSIONS
        and tail.compression == settings.compression
        and tail.stride == settings.stride
        and tail.stride > 0
        and source.is_hybrid is (task.calendar == JULIAN_GREGORIAN)
        and len(tail.metadata.stripeStats) == len(tail.stripes)
        and tail.type_tree == tree
        and (not has_large_stripe(source) or bloom_columns(tail) == tuple(sorted(settings.bloom_columns)))
    )


def is_small(info: pb.StripeInformation) -> bool:
    """Say if a stripe should be encoded again, together with its neighbours."""
    return stripe_length(info) < SMALL_STRIPE


def has_large_stripe(source: EventFile) -> bool:
    """Say if a stripe may be worth copying; files with small stripes only are encoded again, together."""
    return not all(map(is_small, source.tail.stripes))


def counts_of(ids: Ids) -> Counts | None:
    """Return the numbers of inserts, updates and deletes; None if there are other operations."""
    counts = np.bincount(ids.operation, minlength=3).tolist()
    return (counts[0], counts[1], counts[2]) if len(counts) == 3 else None


def describe(tail: Tail, path: str, stripe: int, counts: Counts, facts: KeyFacts) -> StripeCopy:
    """Describe a stripe, which must have statistics, for a copy to another file.

    Args:
        path: absolute.
    """
    info = tail.stripes[stripe]
    statistics = pb.StripeStatistics()
    statistics.CopyFrom(tail.metadata.stripeStats[stripe])
    copied = CopiedStripe(
        info,
        statistics,
        RecordKey(*facts.first),
        RecordKey(*facts.last),
        counts,
        (tail.footer.writer, tail.writer_version),
    )
    return StripeCopy(path, info.offset, copied, facts.checksum, tail.block_size)
