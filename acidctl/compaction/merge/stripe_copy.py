"""Which stripes may be taken byte for byte: clean ones that the output can hold without a lie.

A copied stripe costs about what `cp` costs; encoding it again costs a hundred times that. What must agree between
the input and the output's tail:

* compression kind, or the bytes cannot be read;
* row index stride: full scans would look right, but seeks go silently wrong, and 0 crashes readers;
* types and calendar, which the one footer states for all stripes;
* columns with bloom filters: rows would be right, but readers would skip less than they did.

The compression block size may differ as long as the postscript states the largest; writer, writer's time zone and
file version are kept a stripe or claimed at the lowest.
"""

from __future__ import annotations

import numpy as np

from acidctl.compaction.proof.keys import KeyFacts
from acidctl.compaction.tasks import JULIAN_GREGORIAN, FileTask, StripeCopy
from acidctl.orc import orc_pb2 as pb
from acidctl.orc.tail import KNOWN_VERSIONS, RecordKey, Tail, stripe_length
from acidctl.orc.types import OrcType
from acidctl.orc.write.acid_writer import CopiedStripe
from acidctl.orc.write.bloom import bloom_columns
from acidctl.rows.read.events import EventFile, Ids

SMALL_STRIPE = 1 << 20
"""Neighbouring stripes of fewer bytes are encoded again, together: five hundred copied stripes of twenty rows read
eight times slower than one."""

Counts = tuple[int, int, int]
"""Inserts, updates and deletes."""


def agrees(source: EventFile, task: FileTask, tree: OrcType) -> bool:
    """Whether stripes of an ORC file may stand in the output of a task.

    Args:
        tree: of the output, the root, numbered from 0.
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
    """Whether a stripe is better encoded again, together with its neighbours."""
    return stripe_length(info) < SMALL_STRIPE


def has_large_stripe(source: EventFile) -> bool:
    """Whether a stripe may be worth copying; files with small ones only are encoded again, together."""
    return not all(map(is_small, source.tail.stripes))


def counts_of(ids: Ids) -> Counts | None:
    """How many events are inserts, updates and deletes; None when there are others."""
    counts = np.bincount(ids.operation, minlength=3).tolist()
    return (counts[0], counts[1], counts[2]) if len(counts) == 3 else None


def describe(tail: Tail, path: str, stripe: int, counts: Counts, facts: KeyFacts) -> StripeCopy:
    """A stripe of a file that has its statistics, as the writer of another file takes it.

    Args:
        path: absolute.
        counts: of its events.
        facts: of their keys.
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
