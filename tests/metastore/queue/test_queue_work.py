"""Figures of deltas, which a server is told that wants them."""

from __future__ import annotations

import pytest
from support.metastore.fake_hive import FakeHive

from acidctl.metastore.client import Metastore
from acidctl.metastore.interface import DeltaFigure, QueueEntry
from acidctl.metastore.queue.queue_work import DeltaThresholds, find_delta_thresholds, tell_figures
from acidctl.metastore.settings import find_settings


def metastore_at(fake: FakeHive) -> Metastore:
    settings = find_settings({"uris": fake.address}, {})
    assert settings
    return Metastore(settings)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, None),
        ({"metastore.metrics.enabled": "true"}, DeltaThresholds()),
        ({"metastore.metrics.enabled": "true", "metastore.acidmetrics.thread.on": "false"}, None),
        (
            {
                "metastore.metrics.enabled": "TRUE",
                "metastore.deltametrics.delta.num.threshold": "3",
                "metastore.deltametrics.obsolete.delta.num.threshold": "many",
            },
            DeltaThresholds(100, 3),
        ),
    ],
)
def test_a_server_says_whether_it_wants_them(config: dict[str, str], expected: DeltaThresholds | None) -> None:
    with FakeHive(4, config=config) as fake:
        assert find_delta_thresholds(metastore_at(fake)) == expected


def test_they_count_deltas_and_what_is_below_its_threshold_goes() -> None:
    entry = QueueEntry(1, "s", "t", "day=1")
    old = ["base_0000001", "delta_0000002_0000002_0000", "delete_delta_0000003_0000003_0000", "000000_0"]
    with FakeHive(4) as fake:
        metastore = metastore_at(fake)
        tell_figures(metastore, DeltaThresholds(2, 1), entry, old, ["delta_0000002_0000003_v0000009"])
        at = "t", "day=1"
        assert fake.figures == {(*at, DeltaFigure.NUM_OBSOLETE_DELTAS): 2, (*at, DeltaFigure.NUM_DELTAS): 1}
        tell_figures(metastore, DeltaThresholds(2, 1), entry, old[:2], ["base_0000003_v0000010"])
        assert fake.figures == {}
