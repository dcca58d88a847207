"""When an entry of Hive's queue may be cleaned, and when it may be marked: against the rules one by one."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acidctl.acid.listing import Entry, Listing
from acidctl.acid.names import MAXL
from acidctl.acid.reasons import Code, Reason
from acidctl.acid.state import select
from acidctl.acid.writeids import ValidTxns, ValidWriteIds
from acidctl.hive.ready_rules import AFTER_A_FAILURE, HIVES_TURN, OPEN_TXN_GAP, why_left, why_unmarked, why_waiting
from acidctl.metastore.activity import KnownTxns, Txn, TxnStatus
from acidctl.metastore.queue import READY, Compaction

NOW = 1_800_000_000.0
ENTRY = Compaction(
    7, "s", "t", "", "major", READY, committed=NOW - 60, txn=40, next_txn=50, highest_write_id=10
)  # fmt: skip


def known(*open_ids: int, aborted: tuple[int, ...] = (), high: int = 99, now: float = NOW) -> KnownTxns:
    states = {**dict.fromkeys(open_ids, TxnStatus.OPEN), **dict.fromkeys(aborted, TxnStatus.ABORTED)}
    txns = tuple(Txn(id_, states[id_], "READ_ONLY", "", "", "", "", None, None) for id_ in sorted(states))
    return KnownTxns(high, txns, now)


def code(found: Reason | None) -> Code | None:
    return found and found.code


def unmarked(*names: str, ids: str, highest: int = 10) -> Code | None:
    """Whether an entry may be marked that left these directories."""
    entries = tuple(Entry(f"{name}/bucket_00000", 1, None, False) for name in names)
    write_ids = ValidWriteIds.parse(f"s.t:{ids}")
    listing, txns = Listing("/t", entries), ValidTxns(99)
    state, by_entry = select(listing, write_ids, txns), select(listing, write_ids.at(highest), txns)
    return code(why_unmarked(replace(ENTRY, highest_write_id=highest), state, write_ids, by_entry))


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, None),
        ({"kind": "minor"}, None),
        ({"kind": "rebalance"}, None),
        ({"kind": "abort-txn-cleanup"}, Code.LEFT_TO_HIVE),
        ({"kind": "unknown (9)"}, Code.LEFT_TO_HIVE),
        ({"highest_write_id": 0}, Code.LEFT_TO_HIVE),
        ({"next_txn": 0}, Code.COMMIT_UNKNOWN),
        ({"committed": None}, Code.COMMIT_UNKNOWN),
        ({"cleaner_start": NOW - HIVES_TURN + 1}, Code.LEFT_TO_HIVE),
        ({"cleaner_start": NOW + 5}, Code.LEFT_TO_HIVE),
        ({"cleaner_start": NOW - HIVES_TURN}, None),
        ({"cleaner_start": NOW - AFTER_A_FAILURE + 1, "error": "Not enough history"}, Code.LEFT_TO_HIVE),
        ({"cleaner_start": NOW - AFTER_A_FAILURE, "error": "Not enough history"}, None),
        ({"kind": "rebalance", "next_txn": 0, "committed": None, "txn": 7}, None),
        ({"kind": "rebalance", "next_txn": 0, "committed": None, "txn": 0}, Code.COMMIT_UNKNOWN),
    ],
)
def test_what_is_left_to_hive(changed: dict[str, object], expected: Code | None) -> None:
    assert code(why_left(replace(ENTRY, **changed), NOW)) == expected  # type: ignore[arg-type]


@given(st.sets(st.integers(1, 60)), st.sets(st.integers(1, 60)), st.integers(1, 60), st.integers(0, 40))
def test_an_entry_waits_as_long_as_a_reader_may_need_what_it_replaced(
    open_ids: set[int], aborted: set[int], next_txn: int, age: int
) -> None:
    entry = replace(ENTRY, next_txn=next_txn, committed=NOW - age)
    found = why_waiting(entry, known(*open_ids, aborted=tuple(aborted - open_ids)))
    is_held = any(id_ <= next_txn for id_ in open_ids)
    assert (found is None) == (not is_held and age > OPEN_TXN_GAP)
    assert (code(found) == Code.TRANSACTION_BELOW) == is_held


def test_a_transaction_of_a_state_that_is_not_known_is_waited_for() -> None:
    one = known(3)
    odd = replace(one, txns=tuple(replace(txn, state=TxnStatus.UNKNOWN) for txn in one.txns))
    assert code(why_waiting(ENTRY, odd)) == Code.TRANSACTION_BELOW


def test_numbers_of_another_server_are_not_compared() -> None:
    assert code(why_waiting(ENTRY, known(high=48))) == Code.COMMIT_UNKNOWN
    assert why_waiting(ENTRY, known(high=49)) is None


def test_what_an_open_transaction_hides_is_not_forgotten() -> None:
    """Were it aborted before the mark, the metastore would know nothing of it, and half a minor be seen."""
    assert unmarked("base_0000010_v0000040", ids="10:9223372036854775807::") is None
    names = ("base_0000010_v0000040", "delete_delta_0000001_0000010_v0000100")
    assert unmarked(*names, ids="10:9223372036854775807::") == Code.STILL_LEFT


@pytest.mark.parametrize(
    ("names", "aborted", "expected"),
    [
        (("base_0000010_v0000040",), "", None),
        (("base_0000010_v0000040",), "3,4", None),
        (("base_0000010_v0000040", "delta_0000011_0000011_0000"), "11", None),
        (("base_0000010_v0000040", "delta_0000009_0000009_0000"), "", Code.STILL_LEFT),
        (("base_0000010_v0000040", "delta_0000009_0000009_0000"), "9", Code.STILL_LEFT),
        (("delta_0000001_0000010_v0000040",), "3", None),
        (("delta_0000001_0000010",), "3", Code.HIDES_ABORTED),
        (("base_0000004_v0000040", "delta_0000005_0000015"), "7", Code.HIDES_ABORTED),
        (("base_0000004_v0000040", "delta_0000005_0000015"), "12", None),
    ],
)
def test_what_may_be_marked(names: tuple[str, ...], aborted: str, expected: Code | None) -> None:
    assert unmarked(*names, ids=f"20:{MAXL}::{aborted}") == expected


@pytest.mark.parametrize("ids", [f"9:{MAXL}::", "20:8:8:", f"{MAXL}:{MAXL}::"])
def test_nothing_is_marked_by_a_list_that_leaves_a_write_undecided(ids: str) -> None:
    assert unmarked("delta_0000001_0000010_v0000040", ids=ids) == Code.WRITES_UNDECIDED


RANGES = st.tuples(st.integers(1, 14), st.integers(0, 5), st.sampled_from(["", "_0000", "_v0000040"]))


@given(st.lists(RANGES, max_size=5), st.sets(st.integers(1, 20)), st.integers(1, 15))
def test_what_is_marked_hides_no_aborted_row(ranges: list[tuple[int, int, str]], ids: set[int], highest: int) -> None:
    """The model: after marking no id up to the highest is known as aborted, so no directory may hold one."""
    found = {(low, low + more, end) for low, more, end in ranges}
    names = sorted(f"delta_{low:07d}_{last:07d}{end}" for low, last, end in found)
    aborted = ",".join(map(str, sorted(ids)))
    if unmarked(*names, ids=f"20:{MAXL}::{aborted}", highest=highest) is None:
        written = [set(range(low, last + 1)) for low, last, end in found if not end.startswith("_v")]
        assert not any(one & ids & set(range(highest + 1)) for one in written)
