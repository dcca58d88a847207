"""Lists that are older than a listing: when what is listed may lack what they count."""

from __future__ import annotations

import pytest

from acidctl.acid.listing import Entry, Listing
from acidctl.acid.unfinished import is_overtaken, unseen_results
from acidctl.acid.writeids import ValidTxns, ValidWriteIds

_NONE = 2**63 - 1


@pytest.mark.parametrize(
    ("names", "before", "after", "overtaken"),
    [
        pytest.param("base_9_v25", "9:20", "9:26", True, id="compacted and committed meanwhile"),
        pytest.param("delta_1_9_v25", "9:20", "9:26", True, id="a minor compaction"),
        pytest.param("base_9_v25", "9:20", "9:26:25", False, id="still at work"),
        pytest.param("base_9_v25", "9:26:25", "9:26", True, id="at work first, then committed"),
        pytest.param("base_9_v25", "9:26", "9:27", False, id="seen from the first"),
        pytest.param("base_10", "9:20", "12:26", True, id="Hive 3, which has no visibility"),
        pytest.param("base_10", "12:26", "12:26", False, id="Hive 3, seen from the first"),
        pytest.param("delta_10_10_0", "9:20", "12:26", False, id="a write of later replaces nothing"),
        pytest.param("base_x delta_a_b_v7 base_9_v25/x", "9:20", "9:26", False, id="no directories of a table's top"),
    ],
)
def test_a_result_that_came_to_count_after_the_lists(names: str, before: str, after: str, overtaken: bool) -> None:
    listing = Listing("/t", tuple(Entry(name, 0, 1.0, True) for name in names.split()))
    unseen = unseen_results(listing, *_lists(before))
    assert is_overtaken(unseen, *_lists(after)) is overtaken


def test_a_compaction_that_was_aborted_is_nothing_to_ask_about() -> None:
    listing = Listing("/t", (Entry("base_9_v25", 0, 1.0, True),))
    assert not unseen_results(listing, ValidWriteIds(9), ValidTxns(30, _NONE, (), (25,)))


def test_an_open_write_keeps_a_later_base_from_being_taken_for_news() -> None:
    listing = Listing("/t", (Entry("base_9", 0, 1.0, True),))
    unseen = unseen_results(listing, ValidWriteIds(9, 4, (4,)), ValidTxns(20, 12, (12,)))
    assert unseen
    assert not is_overtaken(unseen, ValidWriteIds(12, 4, (4,)), ValidTxns(30, 12, (12,)))
    assert is_overtaken(unseen, ValidWriteIds(12), ValidTxns(30))


def _lists(text: str) -> tuple[ValidWriteIds, ValidTxns]:
    """``write ids:transactions:open transaction``, both high watermarks."""
    ids, txns, *still_open = map(int, text.split(":"))
    return ValidWriteIds(ids), ValidTxns(txns, min(still_open, default=_NONE), tuple(still_open))
