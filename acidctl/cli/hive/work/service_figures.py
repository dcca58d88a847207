"""The figures of a worker, an initiator and a cleaner, as Prometheus' library collects them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric

from acidctl.hive.cleaner import CleanerCounts
from acidctl.hive.initiator import InitiatorCounts
from acidctl.hive.worker import Counts

_STALE_SECONDS = 300.0


class WorkerFigures:
    """Of a worker."""

    def __init__(self, counts: Counts) -> None:
        self._counts = counts

    def collect(self) -> Iterable[Metric]:
        """All of them, now."""
        counts = self._counts
        yield _by_result(
            "acidctl_worker_entries", "Compactions of the queue that it took, by what became of them.", counts.results
        )
        size = CounterMetricFamily("acidctl_worker_bytes", "Bytes of inputs and outputs.", labels=["kind"])
        size.add_metric(["read"], counts.bytes_read)
        size.add_metric(["written"], counts.bytes_written)
        yield size
        yield CounterMetricFamily(
            "acidctl_worker_seconds", "Time between taking entries and their ends.", counts.seconds
        )
        yield GaugeMetricFamily("acidctl_worker_running", "Entries that it works on.", counts.running)
        yield GaugeMetricFamily(
            "acidctl_worker_last_look_timestamp_seconds", "When the metastore last answered it.", counts.looked
        )

    @property
    def is_well(self) -> bool:
        """Whether the metastore answers, or some slot is at work."""
        counts = self._counts
        return counts.running > 0 or (not counts.failing and time.time() - counts.looked < _STALE_SECONDS)


class InitiatorFigures:
    """Of an initiator."""

    def __init__(self, counts: InitiatorCounts) -> None:
        self._counts = counts

    def collect(self) -> Iterable[Metric]:
        """All of them, now."""
        counts = self._counts
        yield _by_result(
            "acidctl_initiator_locations", "Locations that it looked at, by what became of them.", counts.results
        )
        yield CounterMetricFamily("acidctl_initiator_rounds", "Looks over the whole warehouse.", counts.rounds)
        yield GaugeMetricFamily("acidctl_initiator_leading", "1 while no other one is at work.", int(counts.leading))
        yield GaugeMetricFamily("acidctl_initiator_round_seconds", "How long the last one took.", counts.seconds)
        yield GaugeMetricFamily(
            "acidctl_initiator_last_round_timestamp_seconds", "When the last one ended.", counts.looked
        )

    @property
    def is_well(self) -> bool:
        """Whether its last round came to its end."""
        return not self._counts.failing


class CleanerFigures:
    """Of a cleaner."""

    def __init__(self, counts: CleanerCounts) -> None:
        self._counts = counts

    def collect(self) -> Iterable[Metric]:
        """All of them, now."""
        counts = self._counts
        yield _by_result(
            "acidctl_cleaner_entries", "Entries ready for cleaning, by what became of them.", counts.results
        )
        yield CounterMetricFamily("acidctl_cleaner_marked", "Entries that the metastore has as done.", counts.marked)
        yield CounterMetricFamily("acidctl_cleaner_bytes", "Bytes that were removed.", counts.bytes)
        yield CounterMetricFamily("acidctl_cleaner_rounds", "Looks through the queue.", counts.rounds)
        yield GaugeMetricFamily(
            "acidctl_cleaner_last_round_timestamp_seconds", "When the last one ended.", counts.looked
        )

    @property
    def is_well(self) -> bool:
        """Whether its last round came to its end."""
        return not self._counts.failing


def _by_result(name: str, text: str, results: Mapping[str, int]) -> CounterMetricFamily:
    metric = CounterMetricFamily(name, text, labels=["result"])
    for result, count in sorted(dict(results).items()):
        metric.add_metric([result], count)
    return metric
