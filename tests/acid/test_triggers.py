"""The initiator's decision: the examples of format section 9, strict comparisons, their order."""

from __future__ import annotations

import pytest

from acidctl.acid.triggers import CompactionKind, Figures, Thresholds, decide
from acidctl.errors import UsageProblem

MAJOR, MINOR = CompactionKind.MAJOR, CompactionKind.MINOR


@pytest.mark.parametrize(
    ("figures", "kind"),
    [
        (Figures(1000, 101, 2), MAJOR),
        (Figures(1000, 100, 2), None),
        (Figures(0, 5000, 11), MAJOR),
        (Figures(0, 5000, 10), None),
        (Figures(10**9, 100, 11), MINOR),
        (Figures(10**9, 100, 10), None),
        (Figures(10**9, 100, 11, minor_supported=False), MAJOR),
        (Figures(10**9, 0, 0, aborted_txns=1001), MAJOR),
        (Figures(10**9, 0, 0, aborted_txns=1000), None),
        (Figures(0, 0, 0), None),
    ],
)
def test_decisions(figures: Figures, kind: CompactionKind | None) -> None:
    decision = decide(figures)
    assert decision.kind is kind
    assert decision.text


def test_hive4_asks_for_major_on_an_obsolete_base() -> None:
    figures = Figures(1000, 0, 0, has_obsolete_base=True)
    assert decide(figures).kind is None
    assert decide(figures, hive4=True).kind is MAJOR


def test_properties_override() -> None:
    limits = Thresholds().with_properties(
        {"compactorthreshold.hive.compactor.delta.num.threshold": "4", "orc.compress": "ZLIB"}
    )
    assert limits == Thresholds(delta_count=4)
    assert decide(Figures(10**9, 1, 5), limits).kind is MINOR
    with pytest.raises(UsageProblem):
        Thresholds().with_properties({"compactorthreshold.hive.compactor.delta.pct.threshold": "lots"})
