"""Retention: histories with a clock, readers that began at every moment of them; what is old goes, and no sooner."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support.made.listings import cases
from support.memory_store import MemoryFileSystem
from support.tables import age, make, snapshot_of
from support.work import calls_of

from acidctl.acid.layout import straddles
from acidctl.acid.listing import CLOCKS_SECONDS, Ages, Entry, Listing
from acidctl.acid.names import MAXL, MINL, AcidDirectory, Kind, format_directory, is_hidden
from acidctl.acid.reasons import Code, reason
from acidctl.acid.sidefiles import BaseFormat
from acidctl.acid.state import AcidState, State, select
from acidctl.acid.writeids import ValidTxns, ValidWriteIds
from acidctl.base.errors import HistoryError, RefusedError, UsageProblem
from acidctl.cleaning.plan import CleaningPlan, plan_cleaning
from acidctl.cleaning.readers import what_is_read
from acidctl.cleaning.retention import AT_ONCE, FLOOR_SECONDS, Policy
from acidctl.location.snapshot import Snapshot
from acidctl.wording import text_of

HOUR = 3600.0


def plan_of(
    listing: Listing,
    ids: ValidWriteIds,
    txns: ValidTxns | None,
    formats: dict[str, BaseFormat],
    policy: Policy,
    now: float,
) -> CleaningPlan:
    state = select(listing, ids, txns, formats)
    return plan_cleaning(Snapshot(MemoryFileSystem(), "/t", listing, state, ids, txns, formats), policy, now)


@dataclass
class Write:
    id: int
    begins: int
    ends: int
    aborts: bool


@dataclass
class History:
    """What happened to a table: when each directory appeared, and when each write id was given out and resolved."""

    writes: list[Write] = field(default_factory=list)
    appeared: dict[str, int] = field(default_factory=dict)
    removed: dict[str, int] = field(default_factory=dict)
    formats: dict[str, BaseFormat] = field(default_factory=dict)

    def ids_at(self, moment: int) -> ValidWriteIds:
        """What a reader that begins then is told."""
        known = [write for write in self.writes if write.begins <= moment]
        open_ids = tuple(write.id for write in known if write.ends > moment)
        aborted = tuple(write.id for write in known if write.ends <= moment and write.aborts)
        return ValidWriteIds(max((w.id for w in known), default=0), min(open_ids, default=MAXL), open_ids, aborted)

    def listing_at(self, moment: int) -> Listing:
        there = [
            name
            for name, time in self.appeared.items()
            if time <= moment and self.removed.get(name, moment + 1) > moment
        ]
        return Listing(
            "t", tuple(Entry(f"{name}/bucket_00000", 1, self.appeared[name], False) for name in sorted(there))
        )

    def state(self, moment: int, listing: Listing) -> AcidState:
        """Of a reader that began at a moment."""
        return select(listing, self.ids_at(moment), ValidTxns(), self.formats)


@st.composite
def histories(draw: st.DrawFn) -> tuple[History, int]:
    """A table of some hours: writers side by side, compactions and overwrites; and the hour it is now."""
    history = History()
    hour = 0
    for _ in range(draw(st.integers(2, 14))):
        hour += draw(st.integers(0, 4))
        kind = draw(st.sampled_from(["write", "write", "write", "minor", "major", "major", "overwrite"]))
        resolved = history.ids_at(hour).for_compactor()
        if kind in ("write", "overwrite"):
            # An overwrite waits for other writers, and they for it: it takes an exclusive lock.
            lasts = draw(st.integers(0, 6)) if kind == "write" and not _is_overwritten(history, hour) else 0
            write = Write(len(history.writes) + 1, hour, hour + lasts, draw(st.integers(0, 5)) == 0)
            if kind == "overwrite" and history.ids_at(hour).open:
                continue
            history.writes.append(write)
            kinds = [Kind.BASE] if kind == "overwrite" else draw(st.sampled_from([[Kind.DELTA], [*Kind][1:]]))
            for one in kinds:
                statement = -1 if one is Kind.BASE else 0
                history.appeared[format_directory(one, write.id, write.id, statement)] = write.ends
            continue
        state = select(history.listing_at(hour), resolved, ValidTxns(), history.formats)
        inputs = [v.directory for v in state.deltas if v.directory]
        if not inputs:
            continue
        low, high = min(d.min_write_id for d in inputs), max(d.max_write_id for d in inputs)
        txn = draw(st.sampled_from([0, hour + 1]))
        if kind == "major":
            name = format_directory(Kind.BASE, high, high, -1, txn)
            history.appeared.setdefault(name, hour)
            history.formats |= {} if txn else {name: BaseFormat.COMPACTED}
        elif len({(d.min_write_id, d.max_write_id, d.statement_id) for d in inputs}) > 1:  # as Hive has it
            for one in {d.kind for d in inputs}:
                history.appeared.setdefault(format_directory(one, low, high, -1, txn), hour)
    return history, hour + draw(st.integers(0, 12))


def _is_overwritten(history: History, hour: int) -> bool:
    return any(
        name.startswith("base_") and "_v" not in name and name not in history.formats for name in history.appeared
    )


@settings(max_examples=150, deadline=None)
@given(histories(), st.integers(1, 8), st.booleans())
def test_a_running_reader_finds_what_its_snapshot_selects(made: tuple[History, int], keep: int, twice: bool) -> None:
    """A model of readers: one began in every hour within the retention; it lists at once, or after the cleaning.

    Format section 10: "seen by a list in which nobody's queries are older than what takes their place".
    """
    history, now = made
    assume(not history.ids_at(now).open or keep)
    for when in (now - 3, now) if twice else (now,):
        listing = history.listing_at(when)
        ids = history.ids_at(when)
        state = select(listing, ids, ValidTxns(), history.formats)
        assume(state.history_problem is None)
        gone = set(plan_of(listing, ids, ValidTxns(), history.formats, Policy(keep), when).names)
        for name in gone:
            history.removed[name] = when
        after = history.listing_at(when)
        for began in range(when - keep, when + 1):
            at_once = history.state(began, history.listing_at(began) if began < when else listing)
            if at_once.history_problem is None:
                assert not gone & at_once.current_names, began
            late = history.state(began, listing)
            assert what_is_read(late)[:3] == what_is_read(history.state(began, after))[:3], began
            assert late.history_problem == history.state(began, after).history_problem


@settings(max_examples=120, deadline=None)
@given(histories(), st.integers(1, 8))
def test_what_every_running_reader_does_without_goes(made: tuple[History, int], keep: int) -> None:
    """And nothing more is kept than that: however often the table was compacted since.

    Format section 10: "Without the metastore nobody knows the queries that still run, so age takes their place:
    `--older-than` (default: 24h) is counted from the directory that hides the other".
    """
    history, now = made
    listing, ids = history.listing_at(now), history.ids_at(now)
    state = select(listing, ids, ValidTxns(), history.formats)
    assume(state.history_problem is None)
    plan = plan_of(listing, ids, ValidTxns(), history.formats, Policy(keep), now)
    cleaner = ids.for_cleaner()
    then = select(history.listing_at(now - keep), cleaner, ValidTxns(), history.formats)
    assume(then.history_problem is None)
    unneeded = [{v.name for v in one.verdicts if v.state in (State.OBSOLETE, State.ABORTED)} for one in (then, state)]
    kept = {name for name, _ in plan.kept_back}
    assert set(plan.names) == (unneeded[0] & unneeded[1]) - kept
    assert {one.name for one in plan.waiting} == unneeded[1] - unneeded[0] - kept
    for one in plan.waiting:
        assert one.until is not None
        assert one.until > now
        sooner = plan_of(listing, ids, ValidTxns(), history.formats, Policy(keep), one.until - 0.5)
        later = plan_of(listing, ids, ValidTxns(), history.formats, Policy(keep), one.until)
        assert one.name not in sooner.names
        assert one.name in later.names


def _deltas(state: AcidState) -> list[AcidDirectory]:
    return [verdict.directory for verdict in state.deltas if verdict.directory]


@settings(max_examples=200, deadline=None)
@given(cases(), st.lists(st.integers(0, 10), min_size=20, max_size=20), st.integers(0, 10))
def test_any_listing_with_any_times(case, times: list[int], keep: int) -> None:  # type: ignore[no-untyped-def]
    """Nothing but what is obsolete or aborted for readers goes, and more goes only with time.

    Format section 10: "Never: what is current; what belongs to an open transaction, or lies above the high
    watermark; a delta of which only some write ids are aborted".
    """
    listing, ids, txns, formats = case
    entries = tuple(Entry(e.path, e.size, float(t), False) for e, t in zip(listing.entries, times, strict=False))
    listing = Listing("t", entries)
    state = select(listing, ids, txns, formats)
    try:
        plan = plan_of(listing, ids, txns, formats, Policy(keep), 10.0)
        at_once = plan_of(listing, ids, txns, formats, AT_ONCE, 10.0)
    except (HistoryError, RefusedError) as error:
        overlaps = state.base and any(straddles(delta, state.base.directory.max_write_id) for delta in _deltas(state))
        assert isinstance(error, HistoryError) or "still" in str(error) or overlaps
        return
    unneeded = {v.name for v in state.verdicts if v.state in (State.OBSOLETE, State.ABORTED)}
    assert set(plan.names) <= set(at_once.names) <= unneeded
    assert {*plan.names, *(name for name, _ in plan.kept_back), *(w.name for w in plan.waiting)} == unneeded
    assert not at_once.waiting
    aborted = {verdict.name for verdict in state.in_state(State.ABORTED)}
    gone = Ages.of(listing).times.items()
    assert keep == 0 or all(time <= 10 - keep for name, time in gone if name in aborted & set(plan.names) and time)


def planned(table: Path, hours: float = 24, **lists: ValidTxns) -> tuple[list[str], list[str]]:
    plan = plan_cleaning(snapshot_of(table, **lists), Policy(hours * HOUR))
    return list(plan.names), [one.name for one in plan.waiting]


def test_the_age_is_that_of_what_supersedes(tmp_path: Path) -> None:
    table = make(tmp_path / "t", "base_5", "delta_3_3_0", "delta_6_6_0")
    age(table, 100, "delta_3_3_0", "delta_6_6_0")
    age(table, 23, "base_5")
    assert planned(table) == ([], ["delta_3_3_0"])
    age(table, 25, "base_5")
    assert planned(table) == (["delta_3_3_0"], [])
    # A file that came later, as Hive's MapReduce compactor adds one, makes the base younger.
    (table / "base_5" / "_orc_acid_version").write_bytes(b"2")
    assert planned(table) == ([], ["delta_3_3_0"])


def test_a_newer_compaction_does_not_start_it_anew(tmp_path: Path) -> None:
    """Else a table that is compacted every night would never be cleaned."""
    table = make(tmp_path / "t", "base_5", "base_10", "delta_3_3_0", "delta_7_7_0")
    age(table, 100, "delta_3_3_0", "delta_7_7_0")
    age(table, 28, "base_5")
    age(table, 4, "base_10")
    assert planned(table) == (["delta_3_3_0"], ["base_5", "delta_7_7_0"])


def test_a_removal_that_was_interrupted_goes_on(tmp_path: Path) -> None:
    """Half of a directory is gone, so its time is new; no reader needs it the more for that."""
    table = make(tmp_path / "t", "base_5", "delta_3_3_0")
    age(table, 30)
    (table / "delta_3_3_0" / "bucket_00000").unlink()
    assert planned(table) == (["delta_3_3_0"], [])
    age(table, 20, "base_5")
    plan = plan_cleaning(snapshot_of(table))
    (waiting,) = plan.waiting
    assert waiting.since == (table / "base_5").stat().st_mtime


def test_aborted_ones_by_their_own_age(tmp_path: Path) -> None:
    table = make(tmp_path / "t", "delta_1_1_0", "delta_2_2_0")
    age(table, 25, "delta_1_1_0")
    age(table, 1, "delta_2_2_0")
    ids = ValidWriteIds(2, aborted=(1, 2))
    plan = plan_cleaning(snapshot_of(table, ids, ValidTxns()))
    assert (plan.names, [one.name for one in plan.waiting]) == (("delta_1_1_0",), ["delta_2_2_0"])
    assert "last written" in text_of(plan.waiting[0].reason)


def test_originals_go_when_the_base_above_them_is_old_enough(tmp_path: Path) -> None:
    table = make(tmp_path / "t", f"base_{MINL}")
    (table / "000000_0").write_bytes(b"x")
    age(table, 30)
    assert planned(table) == (["000000_0"], [])
    age(table, 3, f"base_{MINL}")
    assert planned(table) == ([], ["000000_0"])


def test_a_time_of_the_future_is_not_believed(tmp_path: Path) -> None:
    table = make(tmp_path / "t", "base_5", "delta_3_3_0")
    age(table, 30)
    age(table, -5, "base_5")
    plan = plan_cleaning(snapshot_of(table))
    assert plan.removals == ()
    assert plan.waiting[0].reason.value("how") == "future"
    assert plan_cleaning(snapshot_of(table), AT_ONCE).removals == ()
    age(table, -CLOCKS_SECONDS / 2 / HOUR, "base_5")
    assert plan_cleaning(snapshot_of(table), AT_ONCE).names == ("delta_3_3_0",)


@pytest.mark.parametrize("when", [-1e18, 1e18, 2.0**62])
def test_times_that_no_calendar_has(when: float) -> None:
    entries = (Entry("base_5/bucket_00000", 1, when, False), Entry("delta_3_3/bucket_00000", 1, 5.0, False))
    formats = {"base_5": BaseFormat.COMPACTED}
    plan = plan_of(Listing("t", entries), ValidWriteIds(), None, formats, Policy(), 1e6)
    assert (len(plan.removals), len(plan.waiting)) == ((1, 0) if when < 0 else (0, 1))
    never = plan_of(Listing("t", entries), ValidWriteIds(), None, formats, Policy(1e18), 1e6)
    assert [one.until for one in never.waiting] == [None]
    assert "never" in text_of(never.waiting[0].reason)


def test_without_times_only_at_once() -> None:
    entries = (Entry("base_5/bucket_00000", 1, None, False), Entry("delta_3_3/bucket_00000", 1, None, False))
    formats = {"base_5": BaseFormat.COMPACTED}
    plan = plan_of(Listing("t", entries), ValidWriteIds(), None, formats, Policy(), 1e6)
    assert (plan.removals, plan.waiting[0].reason.code) == ((), Code.AGE_UNKNOWN)
    assert plan_of(Listing("t", entries), ValidWriteIds(), None, formats, AT_ONCE, 1e6).names == ("delta_3_3",)


def test_a_transaction_that_is_open_may_not_see_the_compaction(tmp_path: Path) -> None:
    """Hive's TestCleaner: a query that began before the compaction was committed keeps everything."""
    table = make(tmp_path / "t", "base_20", "delta_21_22", "delta_23_24", "base_25_v26")
    age(table, 30)
    assert planned(table, txns=ValidTxns(30)) == (["delta_21_22", "delta_23_24", "base_20"], [])
    plan = plan_cleaning(snapshot_of(table, txns=ValidTxns(30, 25, (25,))))
    assert plan.removals == ()
    assert {(why.code, why.ids) for _, why in plan.kept_back} == {(Code.READER_HOLDS, (25,))}
    assert planned(table, txns=ValidTxns(30, 27, (27,))) == (["delta_21_22", "delta_23_24", "base_20"], [])


def test_what_reaches_above_the_high_watermark_supersedes_nothing(tmp_path: Path) -> None:
    table = make(tmp_path / "t", "delta_1_1_0", "delta_2_2_0", "delta_1_5")
    age(table, 30)
    plan = plan_cleaning(snapshot_of(table, ValidWriteIds(3)))
    assert plan.removals == ()
    assert dict(plan.kept_back)["delta_2_2_0"] == reason(Code.ABOVE_CLEANER, high_watermark=3)


def test_policy_below_the_floor_is_refused() -> None:
    for bad in (-1, float("nan")):
        with pytest.raises(UsageProblem):
            Policy(bad)
    Policy(FLOOR_SECONDS).require_safe()
    with pytest.raises(RefusedError, match="below 1h"):
        Policy(FLOOR_SECONDS - 1).require_safe()
    assert not is_hidden("base_1")


@pytest.mark.parametrize("name", ["base_{0}", "delta_1_{0}_v{0}", "delta_{0}_{0}_0000"])
def test_the_work_grows_as_directories_do(name: str) -> None:
    """Each came at a time of its own, half of them within the retention; a wide one hides them all."""

    def work(size: int) -> int:
        names = [name.format(number) for number in range(1, size + 1)] + [f"delta_1_{size}_v{size + 1}"]
        paths = (f"{one}/{file}" for one in names for file in ("_orc_acid_version", "bucket_00000"))
        times = {one: float(place) for place, one in enumerate(names)}
        entries = tuple(sorted(Entry(path, 1, times[path.partition("/")[0]], False) for path in paths))
        ids, found = ValidWriteIds(size), list[CleaningPlan]()
        calls = calls_of(
            lambda: found.append(plan_of(Listing("t", entries), ids, ValidTxns(), {}, Policy(size / 2), float(size)))
        )
        assert len(found[0].removals) + len(found[0].waiting) >= size - 1
        return calls

    assert work(200) < 6 * work(50)
