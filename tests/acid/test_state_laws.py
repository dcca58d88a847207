"""Laws of state selection as properties, and a small model of format section 6 that was written on its own."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from support.made.listings import cases

from acidctl.acid.listing import Entry, Listing
from acidctl.acid.names import Kind, format_directory
from acidctl.acid.sidefiles import BaseFormat
from acidctl.acid.state import AcidState, State, select
from acidctl.acid.writeids import ListReader, ValidTxns, ValidWriteIds
from acidctl.wording import text_of


def summary(state: AcidState) -> tuple[object, ...]:
    return (
        state.base.name if state.base else None,
        [verdict.name for verdict in state.deltas],
        state.originals,
        {verdict.name: verdict.state for verdict in state.verdicts},
        bool(state.history_problem),
    )


@given(cases(), st.randoms())
def test_the_listing_order_does_not_matter(case, random) -> None:  # type: ignore[no-untyped-def]
    """Format section 6: "the result does not depend on the order of the listing"."""
    listing, write_ids, txns, formats = case
    shuffled = list(listing.entries)
    random.shuffle(shuffled)
    one = select(listing, write_ids, txns, formats)
    other = select(Listing("t", tuple(shuffled)), write_ids, txns, formats)
    assert summary(one) == summary(other)


@given(cases())
def test_every_child_has_one_verdict(case) -> None:  # type: ignore[no-untyped-def]
    """Format section 6: "Every entry becomes one of: **current** (readers of this snapshot read it), **obsolete**
    (something current holds its rows), **aborted** (nobody reads its rows, ever), or **ignored**".
    """
    listing, write_ids, txns, formats = case
    state = select(listing, write_ids, txns, formats)
    children = {entry.path.split("/")[0] for entry in listing.entries}
    assert sorted(verdict.name for verdict in state.verdicts) == sorted(children)
    assert all(text_of(verdict.reason) for verdict in state.verdicts)
    read = {v.name for v in (state.base, *state.deltas) if v} | {e.path.split("/")[0] for e in state.originals}
    assert read == set(state.current_names)


@given(cases(), st.sampled_from(["_tmp_1/base_99/bucket_00000", ".hive-staging/x", "_SUCCESS", "p=1/base_3/bucket_0"]))
def test_hidden_entries_and_partitions_change_nothing(case, extra: str) -> None:  # type: ignore[no-untyped-def]
    """Format section 1.3: "A name that begins with `_` or `.` is invisible to readers, and so is everything below a
    directory with such a name".
    """
    listing, write_ids, txns, formats = case
    more = Listing("t", (*listing.entries, Entry(extra, 1, None, False)))
    assert summary(select(listing, write_ids, txns, formats))[:3] == summary(select(more, write_ids, txns, formats))[:3]


@given(cases(), st.integers(0, 12), st.sampled_from(["delta", "delete_delta"]))
def test_an_obsolete_entry_changes_nothing(case, write_id: int, kind: str) -> None:  # type: ignore[no-untyped-def]
    """Format section 6: "**obsolete** (something current holds its rows), **aborted** (nobody reads its rows,
    ever)".
    """
    listing, write_ids, txns, formats = case
    before = select(listing, write_ids, txns, formats)
    name = format_directory(Kind(kind), write_id, write_id, 3)
    more = Listing("t", (*listing.entries, Entry(f"{name}/bucket_00000", 1, None, False)))
    after = select(more, write_ids, txns, formats)
    added = next(verdict for verdict in after.verdicts if verdict.name == name)
    if added.state in (State.OBSOLETE, State.ABORTED, State.IGNORED):
        assert summary(after)[:3] == summary(before)[:3]


@given(cases())
def test_without_its_obsolete_and_aborted_entries_a_location_reads_the_same(case) -> None:  # type: ignore[no-untyped-def]
    """What makes cleaning possible at all.

    Format section 10: "Obsolete and aborted directories, seen by a list in which nobody's queries are older than
    what takes their place".
    """
    listing, write_ids, txns, formats = case
    state = select(listing, write_ids, txns, formats)
    gone = {v.name for v in state.verdicts if v.state in (State.OBSOLETE, State.ABORTED)}
    kept = Listing("t", tuple(e for e in listing.entries if e.path.split("/")[0] not in gone))
    after = select(kept, write_ids, txns, formats)
    assert summary(after)[:3] == summary(state)[:3]
    assert {v.name: v.state for v in after.verdicts} == {v.name: v.state for v in state.verdicts if v.name not in gone}


def model(listing: Listing, write_ids: ValidWriteIds, txns: ValidTxns | None, formats: dict[str, BaseFormat]):  # type: ignore[no-untyped-def]
    """Sections 6.1 to 6.3 by sets of ids, as plainly as they can be said; (base, current deltas, obsolete, aborted)."""
    universe = range(40)
    valid = {i for i in universe if write_ids.is_valid(i)}
    aborted_ids = set(write_ids.aborted)
    bases, deltas, obsolete, aborted = [], [], set(), set()
    for name in sorted({e.path.split("/")[0] for e in listing.entries if "delta_" in e.path or "base_" in e.path}):
        stem, _, txn_text = name.partition("_v")
        txn = int(txn_text or 0)
        if txn and txns and not txns.is_valid(txn):
            if txns.is_aborted(txn):
                aborted.add(name)
            continue
        numbers = [int(part) for part in stem.split("_") if part.isdigit()]
        if name.startswith("base"):
            compacted = bool(txn) or name in formats
            if not compacted and numbers[0] in aborted_ids:
                aborted.add(name)
                continue
            if compacted:
                usable = numbers[0] < write_ids.min_open and numbers[0] <= write_ids.high_watermark
            else:
                usable = numbers[0] in valid
            bases.append((numbers[0], compacted, txn, name, usable))
            continue
        low, high = numbers[:2]
        span = set(range(low, high + 1))
        if low <= write_ids.high_watermark and span <= aborted_ids:
            aborted.add(name)
        elif (high <= write_ids.high_watermark) if write_ids.mode is ListReader.COMPACTOR else span & valid:
            deltas.append(
                (low, -high, numbers[2] if len(numbers) > 2 else -1, not name.startswith("delete"), -txn, name)
            )
    best = max([base for base in bases if base[4]], default=None)
    if best:
        obsolete |= {b[3] for b in bases if b[0] < best[0] or (b[0] == best[0] and b[4] and b != best)}
    at, open_statement, taken = (best[0] if best else 0), False, []
    for delta in sorted(deltas):
        low, high, statement, is_insert = delta[0], -delta[1], delta[2], delta[3]
        if high > at:
            fresh = set(range(at + 1, high + 1))
            fits = high <= write_ids.high_watermark if write_ids.mode is ListReader.COMPACTOR else bool(fresh & valid)
            if not fits:
                continue
            at, open_statement = high, statement >= 0
            taken.append(delta)
        elif (high == at and open_statement) or (
            taken
            and taken[-1][:3] == delta[:3]
            and not any(t[:4] == delta[:4] and t[4] < delta[4] for t in taken)
            and is_insert in (True, False)
        ):
            taken.append(delta)
        else:
            obsolete.add(delta[5])
    return best[3] if best else None, [delta[5] for delta in taken], obsolete, aborted


@settings(max_examples=500)
@given(cases())
def test_state_is_that_of_the_model(case) -> None:  # type: ignore[no-untyped-def]
    """Format section 6.3: "a delta whose largest write id is above `current` is taken when any of the ids from
    `current + 1` on is valid, and `current` becomes its largest. If none is, it is ignored".
    """
    listing, write_ids, txns, formats = case
    state = select(listing, write_ids, txns, formats)
    base, current, obsolete, aborted = model(listing, write_ids, txns, formats)
    assert (state.base.name if state.base else None) == base
    assert [verdict.name for verdict in state.deltas] == current
    found = {v.name for v in state.in_state(State.OBSOLETE) if "_" in v.name and v.kind.value != "original"}
    assert found == obsolete
    assert {v.name for v in state.in_state(State.ABORTED)} == aborted
