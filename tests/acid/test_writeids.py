"""Write-id and transaction lists: published cases, the examples of the format, and a model by sets."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.paths import DATA

from acidctl.acid.names import MAXL
from acidctl.acid.writeids import (
    ListReader,
    Range,
    ValidTxns,
    ValidWriteIds,
    WriteIdListError,
    holes,
    joined_ranges,
    write_id_runs,
)

CASES = json.loads((DATA / "valid-write-id-cases.json").read_text())


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_published_lists_are_parsed_as_hive_does(case) -> None:  # type: ignore[no-untyped-def]
    parsed = ValidWriteIds.parse(case["text"], mode=ListReader(case["mode"]))
    expect = case["expect"]
    assert set(expect) <= {
        "valid", "invalid", "ranges_valid", "ranges_aborted", "table", "high_watermark", "min_open",
        "invalid_write_ids",
    }  # fmt: skip
    assert all(parsed.is_valid(i) for i in expect.get("valid", []))
    assert not any(parsed.is_valid(i) for i in expect.get("invalid", []))
    for low, high, share in expect.get("ranges_valid", []):
        assert parsed.range_valid(low, high) is Range[share]
    for low, high, share in expect.get("ranges_aborted", []):
        assert parsed.range_aborted(low, high) is Range[share]
    if "table" in expect:
        assert parsed.table == expect["table"]
    if "high_watermark" in expect:
        assert parsed.high_watermark == expect["high_watermark"]
    if "min_open" in expect:
        assert parsed.min_open == (expect["min_open"] or MAXL)
    assert all(not parsed.is_valid(i) for i in expect.get("invalid_write_ids", []))


def test_examples_of_section_7_give_its_ranges() -> None:
    ids = ValidWriteIds.parse("db.t:10:6:6:7,8")
    assert [ids.range_valid(a, b) for a, b in ((1, 5), (5, 7), (6, 8), (9, 12), (11, 12))] == [
        Range.ALL, Range.SOME, Range.NONE, Range.SOME, Range.NONE,
    ]  # fmt: skip
    assert [ids.range_aborted(a, b) for a, b in ((7, 8), (6, 8), (9, 10))] == [Range.ALL, Range.SOME, Range.NONE]
    assert [ids.is_valid_base(i) for i in (5, 6, 9)] == [True, False, False]
    assert ids.is_valid(9)
    compactor = ValidWriteIds.parse("t:20:12:12,15:9").for_compactor()
    assert str(compactor) == "t:11:12::9"
    assert str(ValidWriteIds.parse("t:20:12:12,15:").for_compactor()) == f"t:11:{MAXL}::"
    assert compactor.range_valid(10, 11) is Range.ALL
    assert compactor.range_valid(11, 13) is Range.NONE
    assert compactor.range_aborted(9, 9) is Range.ALL
    cleaner = ids.for_cleaner(7)
    assert cleaner.range_valid(5, 8) is Range.NONE
    assert cleaner.is_aborted(7) and not cleaner.is_aborted(8)


def test_lists_as_text_give_their_parts() -> None:
    assert ValidWriteIds.parse("default.t:5:9223372036854775807::").table == "default.t"
    assert ValidWriteIds.parse("null:5:9223372036854775807::").table is None
    assert ValidWriteIds.parse("db.t:9:7:5,7:").min_open == 5, "what is listed as open counts"
    assert ValidTxns.parse("100:3:3-7,9:1").open == (3, 4, 5, 6, 7, 9)
    assert ValidTxns.parse("100:3:3-7,9:1").aborted == (1,)


@pytest.mark.parametrize(
    "text",
    [
        "x", "t:5", "t:a:b", "t:1:2:3:4:5:6", "t:5:-1", "t:5:9:1-", "t:5:9:5-1", "t:5:1:1-99999999999", "t:5:4:4:4",
        "a:1:2$b:1:2", "t:5:99999999999999999999", "t: 5:6", "t:5:6:\u0661", "1100:::",
        "t:a:b::", "t:5:-1::", "t:5:9:1-:", "t:5:9:5-1:", "t:5:1:1-99999999999:", "t:5:99999999999999999999::",
        "t: 5:6::", "t:5:6:\u0661:", "a:1:2::$b:1:2::",
        # Lists that Hive's own parser takes for other ones: the name, or the end, is missing.
        "", "12:9:9:7", "12:9:9:7:", "t:12:9:9", "t:12:9", ":12:9:9:7", "12:9:9:7:8:9",
    ],
)  # fmt: skip
def test_malformed_lists_are_refused(text: str) -> None:
    with pytest.raises(WriteIdListError) as caught:
        ValidWriteIds.parse(text)
    assert caught.value.exit_status == 2


@st.composite
def lists(draw: st.DrawFn) -> ValidWriteIds:
    hwm = draw(st.integers(0, 20))
    exceptions = sorted(draw(st.sets(st.integers(1, max(hwm, 1)), max_size=8))) if hwm else []
    flags = [draw(st.booleans()) for _ in exceptions]
    open_ids = tuple(i for i, flag in zip(exceptions, flags, strict=True) if flag)
    aborted = tuple(i for i, flag in zip(exceptions, flags, strict=True) if not flag)
    return ValidWriteIds(hwm, open_ids[0] if open_ids else MAXL, open_ids, aborted, table="db.t")


@given(lists(), st.integers(0, 25), st.integers(0, 25))
def test_shares_of_ranges_are_those_of_sets(ids: ValidWriteIds, one: int, other: int) -> None:
    """Format section 7.2: "A range is ALL, SOME or NONE valid by its ids"."""
    low, high = sorted((one, other))
    span = set(range(low, high + 1))
    valid = {i for i in span if i <= ids.high_watermark and i not in ids.exceptions}
    aborted = span & set(ids.aborted)

    def share(part: set[int]) -> Range:
        return Range.NONE if not part else Range.ALL if part == span else Range.SOME

    assert ids.range_valid(low, high) is share(valid)
    assert ids.range_aborted(low, high) is (Range.NONE if ids.high_watermark < low else share(aborted))
    assert ValidWriteIds.parse(str(ids)) == ids
    compactor = ids.for_compactor()
    assert all(i <= ids.high_watermark and i not in ids.open for i in range(1, compactor.high_watermark + 1))
    assert compactor.range_valid(low, high) in (Range.ALL, Range.NONE)


@given(lists())
def test_transaction_lists_round_trip(ids: ValidWriteIds) -> None:
    """Format section 7.1: "Lists of transactions are the same without the table"."""
    txns = ValidTxns(ids.high_watermark, ids.min_open, ids.open, ids.aborted)
    assert ValidTxns.parse(str(txns)) == txns


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 5)), max_size=6), st.integers(0, 30), st.integers(-1, 12))
def test_holes_are_the_ids_of_no_range_in_runs_that_do_not_touch(
    starts: list[tuple[int, int]], low: int, length: int
) -> None:
    ranges = [(first, first + more) for first, more in starts]
    taken = {id_ for first, last in ranges for id_ in range(first, last + 1)}
    found = list(holes(ranges, low, low + length))
    ids = [id_ for first, last in found for id_ in range(first, last + 1)]
    assert ids == [id_ for id_ in range(low, low + length + 1) if id_ not in taken]
    assert all(later > last + 1 for (_, last), (later, _) in pairwise(found))
    joined = joined_ranges(ranges)
    assert [id_ for first, last in joined for id_ in range(first, last + 1)] == sorted(taken)
    assert all(later > last + 1 for (_, last), (later, _) in pairwise(joined))


def test_runs_of_write_ids_are_of_one_status_and_end_above_the_high_watermark() -> None:
    runs = write_id_runs(ValidWriteIds(9, 3, (3, 4), (5, 8)), 2, MAXL)
    assert [(run.first, run.last, run.status.value) for run in runs] == [
        (2, 2, "committed"), (3, 4, "open"), (5, 5, "aborted"), (6, 7, "committed"), (8, 8, "aborted"),
        (9, 9, "committed"), (10, MAXL, "above"),
    ]  # fmt: skip
