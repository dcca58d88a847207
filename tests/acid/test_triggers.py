"""The initiator's decision: the examples of format section 9, strict comparisons, their order."""

from __future__ import annotations

import pytest

from acidctl.acid.compaction_kind import CompactionKind
from acidctl.acid.layout import data_bytes_of, data_files_of
from acidctl.acid.listing import Entry
from acidctl.acid.names import parse_directory
from acidctl.acid.reasons import Code
from acidctl.acid.triggers import Figures, Thresholds, decide
from acidctl.base.errors import UsageProblem
from acidctl.wording import text_of

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
        (Figures(0, 0, 0), None),
    ],
)
def test_figures_decide_the_kind_of_compaction(figures: Figures, kind: CompactionKind | None) -> None:
    decision = decide(figures)
    assert decision.kind is kind
    assert text_of(decision.reason)


@pytest.mark.parametrize(
    ("figures", "code", "text"),
    [
        (Figures(1000, 101, 2), Code.MANY_DELTA_BYTES, "deltas are 0.10 of the base's bytes, limit 0.1"),
        (Figures(1000, 100, 1), Code.FEW_DELTAS, "1 delta <= 10, 0.10 of the base's bytes <= 0.1"),
        (Figures(0, 0, 0), Code.FEW_DELTAS, "0 deltas <= 10"),
        (Figures(0, 5000, 11), Code.MANY_DELTAS, "11 deltas, limit 10, and no base"),
        (Figures(10**9, 100, 11), Code.MANY_DELTAS, "11 deltas, limit 10"),
    ],
)
def test_a_decision_has_a_code_and_a_sentence(figures: Figures, code: Code, text: str) -> None:
    reason = decide(figures).reason
    assert (reason.code, text_of(reason)) == (code, text)


def test_table_properties_override_thresholds() -> None:
    limits = Thresholds().with_properties(
        {"compactorthreshold.hive.compactor.delta.num.threshold": "4", "orc.compress": "ZLIB"}
    )
    assert limits == Thresholds(delta_count=4)
    assert decide(Figures(10**9, 1, 5), limits).kind is MINOR
    with pytest.raises(UsageProblem):
        Thresholds().with_properties({"compactorthreshold.hive.compactor.delta.pct.threshold": "lots"})


def test_hives_threshold_for_aborted_transactions_is_accepted_and_decides_nothing() -> None:
    for key in ("compactorthreshold.hive.compactor.abortedtxn.threshold", "hive.compactor.abortedtxn.threshold"):
        assert Thresholds().with_properties({key: "5"}) == Thresholds()
        with pytest.raises(UsageProblem):
            Thresholds().with_properties({key: "lots"})


@pytest.mark.parametrize(
    ("others", "total"),
    [
        ((), 1),
        (("bucket_00000_flush_length", "_orc_acid_version"), 1),
        (("bucket_00001", "bucket_00000.fixacidindex"), 3),
        (("delta_1_1/bucket_00001", "sub/000000_0"), 1),  # renamed into this one: not data
    ],
)
def test_bytes_are_those_of_the_data_files(others: tuple[str, ...], total: int) -> None:
    files = [Entry(f"delta_1_2/{name}", 1 << i, None, False) for i, name in enumerate(("bucket_00000", *others))]
    directory = parse_directory("delta_1_2")
    assert directory
    assert data_bytes_of(files) == sum(file.size for file in data_files_of(directory, files)) == total
