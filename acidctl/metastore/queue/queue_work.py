"""What a worker tells Hive's queue of compactions: that it takes an entry, and what became of it (Hive 4).

The server checks neither who says so nor, mostly, whether the entry is still his: a worker looks first.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from acidctl import __version__
from acidctl.acid.names import Kind, acid_directory
from acidctl.errors import AcidctlError, ConflictError
from acidctl.metastore import interface
from acidctl.metastore.client import Metastore
from acidctl.metastore.errors import Unreachable
from acidctl.metastore.interface import CompactionType, DeltaFigure
from acidctl.metastore.queue.compactions import WORKING, Compaction, find_compactions
from acidctl.metastore.wire import Method
from acidctl.printable import printable

_MOST_MESSAGE = 512


def claim(metastore: Metastore, worker: str, pool: str = "") -> interface.QueueEntry | None:
    """Take the oldest entry that waits in a pool; without a pool one that has none, or has waited for half a day.

    Returns:
        None where nothing waits.

    Raises:
        UnknownMethod: the server is older than Hive 4.
        Unreachable: no answer: one may have been taken nevertheless, in this worker's name.
        MetastoreError: the metastore failed.
    """
    request = interface.FindNextCompactRequest(worker, __version__, pool or None)
    entry: interface.QueueEntry | None = metastore.call(interface.FIND_NEXT_COMPACT, request).entry
    return entry


def record_state(
    metastore: Metastore, entry: interface.QueueEntry, highest_write_id: int, run_as: str, txn: int
) -> interface.QueueEntry:
    """Say up to which write id an entry compacts, as whom, and in which transaction.

    Without it the commit would not tell the cleaner whom to wait for.

    Returns:
        The entry with it.

    Raises:
        MetastoreError: the metastore cannot be reached, or does not have the entry any more.
    """
    entry = replace(entry, highest_write_id=highest_write_id, run_as=run_as)
    metastore.call(interface.UPDATE_COMPACTOR_STATE, entry, txn)
    return entry


def record_job(metastore: Metastore, entry: interface.QueueEntry, job: str) -> None:
    """Say as what it runs in the cluster.

    Raises:
        MetastoreError: the metastore cannot be reached, or failed.
    """
    metastore.call(interface.SET_HADOOP_JOBID, job, entry.id)


def require_worked_on_by(metastore: Metastore, entry: interface.QueueEntry, worker: str) -> Compaction:
    """The entry as the queue has it now.

    Raises:
        ConflictError: it is not there any more, not worked on, or given to another worker.
        MetastoreError: the metastore cannot be reached, or failed.
    """
    found = find_compactions(metastore, id=entry.id)
    if found and found[0].state == WORKING and found[0].worker == worker:
        return found[0]
    why = (
        f"it is {found[0].state}, by {found[0].worker or 'nobody'}" if found else "the queue does not have it any more"
    )
    raise ConflictError(f"the compaction {entry.id} of Hive's queue was taken from {worker}", why, "run it again")


def mark_compacted(metastore: Metastore, entry: interface.QueueEntry) -> None:
    """Hand an entry to the cleaner; the commit of its transaction must follow.

    Raises:
        MetastoreError: the metastore cannot be reached, or does not have the entry any more.
    """
    metastore.call(interface.MARK_COMPACTED, entry)


def mark_failed(metastore: Metastore, entry: interface.QueueEntry, why: str) -> bool:
    """Take an entry out of the queue, as failed; whether that is known to be done."""
    return _mark(metastore, interface.MARK_FAILED, entry, why)


def mark_refused(metastore: Metastore, entry: interface.QueueEntry, why: str) -> bool:
    """Take an entry out of the queue, as refused; whether that is known to be done."""
    return _mark(metastore, interface.MARK_REFUSED, entry, why)


def mark_cleaned(metastore: Metastore, entry: Compaction) -> None:
    """Take an entry out of the queue, as succeeded; the metastore forgets aborted write ids up to its highest one.

    Nothing may be left in the location that holds rows of those.

    Raises:
        ValueError: an entry without id, type or highest write id: the metastore would forget all of the location.
        Unreachable: no answer: it may have been done nevertheless; asked again it does no harm.
        MetastoreError: the metastore failed.
    """
    kind = CompactionType.__members__.get(entry.kind.upper(), 0)
    if entry.id <= 0 or entry.highest_write_id <= 0 or not kind:
        raise ValueError(f"not an entry to be marked: {entry}")
    struct = interface.QueueEntry(
        entry.id,
        entry.database,
        entry.table,
        entry.partition or None,
        kind,
        highest_write_id=entry.highest_write_id,
        pool=entry.pool or None,
    )
    metastore.call(interface.MARK_CLEANED, struct)


def _mark(metastore: Metastore, method: Method, entry: interface.QueueEntry, why: str) -> bool:
    if not entry.id:
        return False  # the server would make a new row of it
    message = printable(" ".join(why.split()))[:_MOST_MESSAGE]  # a name may have bytes that no database takes
    for _ in range(2):
        try:
            metastore.call(method, replace(entry, error=message))
        except Unreachable:
            continue
        except AcidctlError:
            return False  # it is gone
        return True
    return False


@dataclass(frozen=True, slots=True)
class DeltaThresholds:
    """From how many on the server keeps a figure of a location, and shows it.

    Attributes:
        obsolete: deltas that wait for a cleaner.
        deltas: that are read.
    """

    obsolete: int = 100
    deltas: int = 100


def find_delta_thresholds(metastore: Metastore) -> DeltaThresholds | None:
    """Ask a server; None where it wants no such figures.

    Raises:
        MetastoreError: it cannot be reached.
    """
    if metastore.configured("metastore.metrics.enabled", "false").strip().lower() != "true":
        return None
    if metastore.configured("metastore.acidmetrics.thread.on", "true").strip().lower() != "true":
        return None

    def number(name: str) -> int:
        text = metastore.configured(f"metastore.deltametrics.{name}.num.threshold", "100").strip()
        return int(text) if text.isdecimal() else 100

    return DeltaThresholds(number("obsolete.delta"), number("delta"))


def tell_figures(
    metastore: Metastore,
    thresholds: DeltaThresholds,
    entry: interface.QueueEntry,
    replaced: Iterable[str],
    made: Iterable[str],
) -> None:
    """Tell what a compaction replaced, and what there is instead; which of these are small nobody asks, as in Hive.

    Args:
        replaced, made: names of directories.

    Raises:
        MetastoreError: the metastore cannot be reached, or failed.
    """
    counts = (
        (DeltaFigure.NUM_OBSOLETE_DELTAS, _deltas(replaced), thresholds.obsolete),
        (DeltaFigure.NUM_SMALL_DELTAS, 0, thresholds.deltas),
        (DeltaFigure.NUM_DELTAS, _deltas(made), thresholds.deltas),
    )
    for figure, count, threshold in counts:  # one that is below its threshold is taken out
        data = interface.DeltaFigureData(
            entry.database, entry.table, entry.partition, int(figure), count, 0, max(threshold, 1)
        )
        metastore.call(interface.UPDATE_COMPACTION_METRICS_DATA, data)


def _deltas(names: Iterable[str]) -> int:
    found = map(acid_directory, names)
    return sum(one is not None and one.kind is not Kind.BASE for one in found)
