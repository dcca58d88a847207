"""Rows of an earlier write id beside newer bases, against a model that writes down what every directory ever held."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from acidctl.acid.listing import Entry, Listing
from acidctl.acid.names import Kind, format_directory
from acidctl.acid.sidefiles import BaseFormat
from acidctl.acid.state import AcidState, EntryKind, State, select
from acidctl.acid.time_travel import CONVERTED_FROM, OBSOLETE_READ, Comparison, Past, bases_between, state_at
from acidctl.acid.writeids import MAXL, ValidWriteIds
from acidctl.wording import text_of

Key = tuple[int, int]
"""Write id and number of a row."""


@dataclass
class Held:
    """Events of one directory: keys with the write id that inserted or deleted them."""

    inserts: dict[Key, int] = field(default_factory=dict)
    deletes: set[tuple[Key, int]] = field(default_factory=set)


@dataclass
class World:
    """A location and its past.

    Attributes:
        held: what every entry holds that is there, by name.
        formats: of bases with `_metadata_acid`.
        inserted, deleted: keys by write id, those of aborted ones left out.
        gaps: how many write ids wrote nothing.
        of_hive_2: Hive 2 wrote all so far: its directories have no marker, its compactions no transaction.
        began_with_hive_2: it did so at first.
        marked: directories with a marker.
    """

    first: int = 1
    full: bool = True
    held: dict[str, Held] = field(default_factory=dict)
    formats: dict[str, BaseFormat] = field(default_factory=dict)
    inserted: dict[int, set[Key]] = field(default_factory=dict)
    deleted: dict[int, set[Key]] = field(default_factory=dict)
    overwritten: list[int] = field(default_factory=list)
    aborted: list[int] = field(default_factory=list)
    last: int = 0
    gaps: int = 0
    of_hive_2: bool = False
    began_with_hive_2: bool = False
    marked: set[str] = field(default_factory=set)

    def listing(self) -> Listing:
        file = "bucket_00000" if self.full else "000000_0"
        paths = [name if name[0].isdigit() else f"{name}/{file}" for name in self.held]
        paths += [f"{name}/_orc_acid_version" for name in sorted(self.marked & self.held.keys())]
        return Listing("t", tuple(Entry(path, 1, None, False) for path in paths))

    def write_ids(self) -> ValidWriteIds:
        return ValidWriteIds(self.last, MAXL, (), tuple(self.aborted))

    def rows_at(self, at: int) -> set[Key]:
        """What readers saw when `at` was the newest write id."""
        live: set[Key] = set()
        for write_id in sorted({*self.inserted, *self.deleted, *self.overwritten}):
            if write_id > at:
                break
            if write_id in self.overwritten:
                live = set()
            live = (live | self.inserted.get(write_id, set())) - self.deleted.get(write_id, set())
        return live

    def read(self, state: AcidState, write_ids: ValidWriteIds) -> set[Key]:
        inserts, deletes = self.events(state, write_ids)
        return set(inserts) - {key for key, _ in deletes}

    def events(self, state: AcidState, write_ids: ValidWriteIds) -> tuple[dict[Key, int], set[tuple[Key, int]]]:
        names = [v.name for v in (state.base, *state.deltas) if v] + [e.path for e in state.originals]
        valid = write_ids.is_valid
        if not self.full:
            valid = lambda _: True  # noqa: E731 - rows without ids count or not as a whole
        inserts = {k: by for name in names for k, by in self.held[name].inserts.items() if valid(by)}
        return inserts, {(k, by) for name in names for k, by in self.held[name].deletes if valid(by)}

    def same(self, one: Comparison) -> bool:
        """The comparison as its promise has it."""
        if not one.marked:
            return True
        merged, parts = (self.read(state, one.write_ids) for state in (one.merged, one.parts))
        if not one.full:
            return len(merged) == len(parts)
        inserts, deletes = self.events(one.parts, one.write_ids)
        return merged == parts and all(key in inserts or key[0] == by for key, by in deletes)


class Builder:
    """Steps of a history, each drawn."""

    def __init__(self, draw: st.DrawFn, full: bool = True) -> None:
        self.draw = draw
        self.world = World(full=full)
        converted = draw(st.sampled_from(["no", "no", "hive 2", "hive 3"]))
        if converted != "no":
            self.world.of_hive_2 = self.world.began_with_hive_2 = converted == "hive 2"
            if not self.world.of_hive_2:
                self.world.first = CONVERTED_FROM + 1
                self.world.last = CONVERTED_FROM
            for number in range(draw(st.integers(0, 2))):
                keys = {(0, number * 2), (0, number * 2 + 1)}
                self.world.held[f"{number:06}_0"] = Held(dict.fromkeys(keys, 0))
                self.world.inserted.setdefault(0, set()).update(keys)

    def step(self, kind: str) -> None:
        world = self.world
        if kind == "overwrite" and world.of_hive_2:
            kind = "delete"  # it was forbidden then
        if kind in ("major", "minor"):
            if any(not name[0].isdigit() for name in world.held):
                getattr(self, kind)()
            return
        world.last += 1
        if kind == "gap":
            world.gaps += 1
            return
        write_id = world.last
        new = {(write_id, number) for number in range(self.draw(st.integers(1, 2)))} if kind != "delete" else set()
        if kind == "aborted":
            world.aborted.append(write_id)
            self.put(Kind.DELTA, write_id, write_id, Held(dict.fromkeys(new, write_id)), 0)
            return
        if kind == "overwrite":
            world.overwritten.append(write_id)
            world.inserted[write_id] = new
            self.put(Kind.BASE, write_id, write_id, Held(dict.fromkeys(new, write_id)))
            return
        dead = set()
        live = sorted(world.rows_at(world.last))
        if kind in ("update", "delete") and live and world.full:
            dead = set(self.draw(st.lists(st.sampled_from(live), min_size=1, max_size=3)))
        world.inserted[write_id], world.deleted[write_id] = new, dead
        world.gaps += not (new or dead)
        if new:
            self.put(Kind.DELTA, write_id, write_id, Held(dict.fromkeys(new, write_id)), 0)
        if dead:
            self.put(Kind.DELETE_DELTA, write_id, write_id, Held({}, {(key, write_id) for key in dead}), 0)

    def put(self, kind: Kind, low: int, high: int, held: Held, statement: int = -1, txn: int = 0) -> str:
        name = format_directory(kind, low, high, statement, txn)
        self.world.held[name] = held
        if self.world.full and not self.world.of_hive_2:
            self.world.marked.add(name)
        return name

    def transaction(self) -> int:
        """Of a compaction; Hive 4 has one, Hive 3 and 2 none."""
        return 0 if self.world.of_hive_2 else self.draw(st.sampled_from([0, 900 + len(self.world.held)]))

    def state(self) -> AcidState:
        return select(self.world.listing(), self.world.write_ids(), None, self.world.formats)

    def major(self) -> None:
        world, state = self.world, self.state()
        top = max([state.max_write_id, *(v.directory.max_write_id for v in state.deltas if v.directory)])
        if self.draw(st.booleans()):
            top = world.last  # as compactions by query name it
        inserts, deletes = world.events(state, world.write_ids())
        dead = {key for key, _ in deletes}
        held = Held({key: by for key, by in inserts.items() if key not in dead})
        txn = self.transaction()
        name = format_directory(Kind.BASE, top, top, -1, txn)
        if name in world.held or top == 0:
            return
        self.put(Kind.BASE, top, top, held, -1, txn)
        if not txn:
            world.formats[name] = BaseFormat.COMPACTED
        # "Any transactional tables created by a Hive version prior to Hive 3 require Major Compaction to be run".
        world.of_hive_2 = world.of_hive_2 and self.draw(st.booleans())

    def minor(self) -> None:
        world, state = self.world, self.state()
        deltas = [v for v in state.deltas if v.directory]
        if len(deltas) < 2:
            return
        low = min(v.directory.min_write_id for v in deltas if v.directory)
        high = max(v.directory.max_write_id for v in deltas if v.directory)
        txn = self.transaction()
        valid = world.write_ids().is_valid
        both = Held()
        for verdict in deltas:
            one = world.held[verdict.name]
            both.inserts |= {key: by for key, by in one.inserts.items() if valid(by)}
            both.deletes |= {(key, by) for key, by in one.deletes if valid(by)}
        if low < high:
            self.put(Kind.DELTA, low, high, Held(both.inserts), -1, txn)
            if both.deletes:
                self.put(Kind.DELETE_DELTA, low, high, Held({}, both.deletes), -1, txn)


STEPS = ("insert", "insert", "update", "delete", "gap", "aborted", "minor", "major", "major", "overwrite")


@st.composite
def worlds(draw: st.DrawFn, steps: tuple[str, ...] = STEPS, full: bool = True) -> World:
    built = Builder(draw, full)
    for kind in draw(st.lists(st.sampled_from(steps), min_size=2, max_size=9)):
        built.step(kind)
    return built.world


def obsolete(world: World) -> list[str]:
    state = select(world.listing(), world.write_ids(), None, world.formats)
    return [verdict.name for verdict in state.in_state(State.OBSOLETE)]


def units(names: list[str]) -> list[list[str]]:
    """What goes together: the directories of one range of write ids; original files."""
    found: dict[str, list[str]] = {}
    for name in names:
        parts = name.removeprefix("delete_").split("_")
        found.setdefault("_".join(parts[1:3]) if parts[0] == "delta" else "", []).append(name)
    return list(found.values())


def readable(world: World, past: Past) -> bool:
    return past.gone is None and (past.comparison is None or world.same(past.comparison))


def check(world: World, at: int, known: ValidWriteIds | None) -> bool:
    """The rows at a write id are right, or gone; returns whether they were read."""
    past = state_at(world.listing(), at, known, None, world.formats)
    if past.gone or not readable(world, past):
        return False
    lowered = (known or ValidWriteIds()).at(at)
    assert world.read(past.state, lowered) == world.rows_at(at), (sorted(world.held), at, past)
    return True


def write_ids_of(world: World) -> range:
    return range(0 if world.first == 1 else CONVERTED_FROM, world.last + 2)


@settings(max_examples=400, deadline=None)
@given(worlds(), st.data())
def test_what_is_left_after_any_cleaning_is_right_or_gone(world: World, data: st.DataObject) -> None:
    """Write ids go as a whole, but for one at which the cleaning was interrupted; older bases go first.

    An interruption is not told where nothing can be compared: beside an INSERT OVERWRITE.

    Format section 10: "Directories of one range go delta first, delete delta second, so that a cleaning that is
    interrupted brings no deleted row back".
    """
    going = obsolete(world)
    bases = [name for name in going if name.startswith("base_")]
    parts = units([name for name in going if name not in bases])
    gone = [part for part in parts if data.draw(st.booleans())]
    if gone:
        for name in bases:
            del world.held[name]
    if gone and not world.overwritten:
        torn = data.draw(st.sampled_from(gone))
        gone = [part for part in gone if part is not torn] + [torn[: data.draw(st.integers(1, len(torn)))]]
    for name in (name for part in gone for name in part):
        del world.held[name]
    for at in write_ids_of(world):
        check(world, at, world.write_ids())


@settings(max_examples=200, deadline=None)
@given(worlds(tuple(step for step in STEPS if step not in ("gap", "aborted", "overwrite"))))
def test_as_long_as_nothing_is_cleaned_nothing_is_gone(world: World) -> None:
    """Format section 8: "The inputs are never changed"."""
    assume(not world.gaps and (world.first == 1 or 0 in world.inserted))
    assume(not world.began_with_hive_2 or 0 in world.inserted)  # that there were none, nothing of Hive 2's tells
    for at in write_ids_of(world):
        assert check(world, at, world.write_ids()), (sorted(world.held), at)
        assert check(world, at, None)


@settings(max_examples=200, deadline=None)
@given(worlds(("insert", "insert", "gap", "minor", "major", "aborted"), full=False), st.data())
def test_compacted_insert_only_deltas_count_wholly_or_not(world: World, data: st.DataObject) -> None:
    """Rows do not say of which write id they are: what a compaction merged counts as a whole or not at all.

    Format section 11: "Directories have the same names and the same snapshot rules; a file counts as a whole".
    """
    for name in obsolete(world):
        if data.draw(st.booleans()):
            del world.held[name]
    for at in write_ids_of(world):
        check(world, at, world.write_ids())


def listed(*names: str, full: bool = True, marked: bool = True) -> Listing:
    """A location; its full-ACID directories have the marker of Hive 3 unless they are not to be marked."""
    files = ["bucket_00000", "_orc_acid_version"][: 1 + marked] if full else ["000000_0"]
    paths = [path for n in names for path in ([n] if n[0].isdigit() else [f"{n}/{file}" for file in files])]
    return Listing("t", tuple(Entry(path, 1, None, False) for path in paths))


TEN = [f"delta_{i}_{i}_0" for i in range(1, 11)]
LIST: Callable[[str], ValidWriteIds] = ValidWriteIds.parse


@pytest.mark.parametrize(
    ("names", "at", "lists", "why"),
    [
        ([*TEN, "base_10_v5"], 4, None, None),
        ([*TEN, "base_10_v5"], 0, None, None),
        ([*TEN[2:], "base_10_v5"], 4, None, "write ids 1 and 2"),
        ([*TEN[2:], "base_10_v5"], 4, "t:10:9223372036854775807::1,2", None),
        ([*TEN[:2], *TEN[3:], "base_10_v5"], 4, None, "write id 3"),
        ([*TEN[:2], *TEN[3:], "base_10_v5"], 4, "t:10:9223372036854775807::3", None),
        ([*TEN[:4], "base_10_v5"], 4, None, "write ids 5 to 10"),
        (["base_10_v5"], 4, None, "write ids 1 to 10"),
        (["000000_0", *TEN, "base_10_v5"], 4, None, None),
        (["000000_0", *TEN[1:], "base_10_v5"], 4, None, "write id 1"),
        (["delta_1_5", "delta_6_10_v3", "base_10_v5"], 7, None, None),
        (["base_3_v2", "delta_5_5_0", "base_10_v5"], 6, None, None),  # an older base: nothing was cleaned yet
        (["base_3_v2", "base_10_v5"], 3, None, None),
        ([*TEN, "base_10"], 4, None, None),  # INSERT OVERWRITE
        ([*TEN[:4], "base_10"], 4, None, None),
        ([*TEN[1:], "base_10"], 4, None, "write id 1"),
        (["base_10"], 4, None, "write ids 1 to 4"),
        (["000000_0", *TEN, "base_10"], 4, None, "original files"),
        (["000000_0", "delta_10000001_10000001_0", "base_10000001_v5"], 10_000_000, None, None),
        (["delta_10000001_10000001_0", "base_10000001_v5"], 10_000_000, None, "original files"),
        (["000000_0", "delta_10000002_10000002_0", "base_10000003_v5"], 10_000_002, None, "10000001 and 10000003"),
    ],
)
def test_past_write_id_is_readable_or_gone_by_the_names_alone(
    names: list[str], at: int, lists: str | None, why: str | None
) -> None:
    known = None if lists is None else LIST(lists)
    past = state_at(listed(*names), at, known)
    if why is None:
        assert past.gone is None
    else:
        assert past.gone is not None and why in text_of(past.gone), past.gone


def test_a_cleaning_of_hive_2_that_was_interrupted_leaves_no_trace() -> None:
    """Write id 1 updated all original rows; Hive's cleaner takes the originals first, then delete deltas."""
    past = state_at(listed("delta_1_1_0", "base_1", marked=False), 0, None, None, {"base_1": BaseFormat.COMPACTED})
    assert past.gone is not None and past.gone.code == "past-not-proven"


@pytest.mark.parametrize(
    ("proof", "readable"),
    [
        ((), False),
        (("delta_1_1_0/_orc_acid_version",), True),
        (("delta_2_2_0/_orc_acid_version",), False),
        (("delta_1_1_0/000000_0",), True),  # LOAD DATA
        (("delta_1_1_0/_orc_acid_version", "delete_delta_1_1_0/bucket_00000"), False),
        (("delta_1_2_v9/bucket_00000",), False),
    ],
)
def test_what_tells_that_a_table_never_had_original_files(proof: tuple[str, ...], readable: bool) -> None:
    entries = listed("delta_1_1_0", "delta_2_2_0", "base_2_v7", marked=False).entries
    found = Listing("t", (*entries, *(Entry(path, 1, None, False) for path in proof)))
    assert (state_at(found, 1).gone is None) == readable


def test_what_is_read_and_compared() -> None:
    past = state_at(listed(*TEN, "base_10_v5"), 4)
    assert [verdict.name for verdict in past.state.deltas] == TEN[:4]
    assert past.state.history_problem is None and OBSOLETE_READ in past.state.notes
    comparison = past.comparison
    assert comparison and comparison.full and comparison.marked
    assert comparison.merged.current_names == {"base_10_v5"}
    assert comparison.parts.current_names == set(TEN)
    assert state_at(listed(*TEN, "base_10_v5"), 10) == Past(select(listed(*TEN, "base_10_v5"), ValidWriteIds(10)))


def test_bases_between_two_snapshots_are_each_compared_with_what_is_below() -> None:
    def between(older: int, newer: int, *more: str, full: bool = True) -> list[tuple[str, set[str]]]:
        listing = listed(*TEN, "base_4_v5", "base_8_v6", "base_8_v7", *more, full=full)
        found = bases_between(listing, older, ValidWriteIds(newer))
        return [(one.name, set(one.parts.current_names)) for one in found]

    first, second = ("base_4_v5", set(TEN[:4])), ("base_8_v6", {"base_4_v5", *TEN[4:8]})
    again = ("base_8_v7", {"base_8_v6"})
    assert between(2, 10) == [first, second, again]
    assert between(2, 7) == [first]
    assert between(4, 8) == [second, again]
    assert between(8, 10) == []
    assert between(2, 10, "base_6") == [("base_8_v6", {"base_6", *TEN[6:8]}), again], "above an overwrite only"
    assert between(2, 10, full=False) == []
    listing = listed("delta_1_1_0", "delta_2_2_0", "delta_3_3_0", "base_2_v5", "base_3")
    (found,) = bases_between(listing, 1, ValidWriteIds(2), base_formats={"base_3": BaseFormat.COMPACTED})
    assert found.parts.history_problem is None, "a compaction above both snapshots says nothing of them"
    assert found.parts.current_names == {"delta_1_1_0", "delta_2_2_0"}


def test_an_open_write_id_below_the_base_is_another_matter() -> None:
    """The list itself may not use the base: that is what Hive refuses, whatever the write id."""
    past = state_at(listed(*TEN, "base_10_v5", "delta_11_11_0"), 11, LIST("t:11:7:7:"))
    assert past.gone is not None and past.gone.code == "not-enough-history"


def test_a_wide_delta_of_an_insert_only_table_is_read_whole_or_not_at_all() -> None:
    past = state_at(listed("delta_1_1_0", "delta_2_2_0", "delta_1_2_v7", full=False), 1)
    assert past.state.current_names == {"delta_1_1_0"}
    comparison = past.comparison
    assert comparison and not comparison.full and comparison.write_ids.high_watermark == 2
    assert {one.kind for one in past.state.verdicts} == {EntryKind.DELTA}
    assert state_at(listed("delta_1_1_0", "delta_2_2_0", "delta_1_2_v7", full=False), 2).comparison is None
