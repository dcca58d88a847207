"""What Hive's own workers tell a metastore of deltas: its figures of locations with too many of them (Hive 4).

Nobody asks for them but where the server's metrics are switched on, which they are not at first.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from acidctl.acid.names import Kind, acid_directory
from acidctl.metastore import interface
from acidctl.metastore.client import Metastore
from acidctl.metastore.interface import DeltaFigure


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
