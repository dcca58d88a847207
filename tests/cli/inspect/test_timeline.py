"""The timeline on a terminal: at any width, in any encoding, and never a wall."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from support.command_line import Result
from support.made.listings import cases
from support.tables import make, snapshot_of

from acidctl.acid.listing import Entry, Listing
from acidctl.acid.sidefiles import BaseFormat
from acidctl.acid.state import EntryKind, select
from acidctl.acid.writeids import ValidTxns, ValidWriteIds
from acidctl.cli.inspect.timeline import (
    BLOCKS,
    STEP,
    STEPS,
    Lane,
    Lanes,
    LaneState,
    heights,
    ids_of,
    lanes,
    lanes_of,
    timeline,
)
from acidctl.location.snapshot import Amount, Child

Acidctl = Callable[..., Result]
MANY = [f"delta_{n:07d}_{n:07d}_0000" for n in range(1, 78)]


@pytest.fixture
def found(tmp_path: Path) -> Lanes:
    """77 deltas, three of them aborted, two open, some deletes."""
    deletes = [f"delete_{name}" for name in MANY[2::3]]
    table = make(tmp_path / "t", "base_0000005", *MANY, *deletes)
    (table / MANY[20] / "bucket_00000").write_bytes(b"x" * 5000)
    return lanes_of(snapshot_of(table, ValidWriteIds.parse("db.t:77:50:50,60:12,13,40")))


@pytest.mark.parametrize("width", [80, 120, 200])
def test_77_deltas_are_ten_lines(found: Lanes, width: int) -> None:
    lines = [line.plain for line in timeline(found, width)]
    assert len(lines) == 12
    assert all(cell_len(line) <= width for line in lines)
    rows = [line.split()[:3] for line in lines[1:10]]
    assert rows == [
        ["base", "1", "current"], ["deltas", "67", "current"], ["deltas", "5", "obsolete"], ["deltas", "3", "aborted"],
        ["deltas", "2", "open"], ["deletes", "22", "current"], ["deletes", "1", "obsolete"],
        ["deletes", "1", "aborted"], ["deletes", "1", "open"],
    ]  # fmt: skip
    assert "50 is open: blocks compaction" in lines[10]
    at = lines[10].index("▲")
    assert lines[5][at] != " ", "it points at the open delta"
    assert lines[-1].strip() == "█ 4.9 KiB; a step lower is 4 times less"


def test_heights_are_those_of_bytes(found: Lanes) -> None:
    deltas = next(line.plain for line in timeline(found, 200) if line.plain.startswith("deltas   67"))
    assert deltas.count("█") in (2, 3), "the one that is much larger than the others"
    assert set(deltas.partition("KiB")[2]) <= {" ", "█", "▃", "▄"}


def test_where_blocks_cannot_be_shown_it_is_ascii(found: Lanes) -> None:
    text = "\n".join(line.plain for line in timeline(found, 120, "ascii"))
    assert text.isascii()
    assert "#" in text
    assert "^" in text
    assert not set(text) & set(BLOCKS[1:])


@given(cases(), st.integers(1, 260), st.sampled_from(["utf-8", "ascii", "latin-1", "nonsense"]))
def test_any_location_at_any_width(case: tuple, width: int, encoding: str) -> None:  # type: ignore[type-arg]
    children = [Child(verdict, Amount(1, number * 1000, None)) for number, verdict in enumerate(select(*case).verdicts)]
    found = lanes(children, case[1].min_open)
    lines = list(timeline(found, width, encoding))
    assert bool(lines) == bool(found.rows)
    if width >= 80:
        assert all(cell_len(line.plain) <= width for line in lines)


def test_what_blocks_is_named_where_there_is_room() -> None:
    files = ("base_0000000/bucket_00000", "base_0000006/bucket_00000", "000000_0")
    listing = Listing("t", tuple(Entry(path, 1, None, is_dir=False) for path in files))
    verdicts = select(listing, ValidWriteIds(7, 6, open=(6, 7), aborted=(1,)), None, {}).verdicts
    found = lanes([Child(verdict, Amount(1, number * 1000, None)) for number, verdict in enumerate(verdicts)], 6)
    for width in range(80, 120):
        lines = [line.plain for line in timeline(found, width)]
        assert max(map(cell_len, lines)) <= width
        assert any("6 is open: blocks compaction" in line for line in lines)


def test_ls_is_never_a_wall(acidctl: Acidctl, tmp_path: Path) -> None:
    shown = acidctl("ls", "--timeline", make(tmp_path / "t", "base_0000002", *MANY))
    assert shown.status == 0
    assert len(shown.out.splitlines()) < 15


def test_an_empty_location_has_no_picture(acidctl: Acidctl, tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    assert "write ids" not in acidctl("ls", "--timeline", tmp_path / "t").out


# --- lanes and heights ---

DRAWN = {EntryKind.BASE, EntryKind.DELTA, EntryKind.DELETE_DELTA, EntryKind.ORIGINAL}


Case = tuple[Listing, ValidWriteIds, ValidTxns | None, dict[str, BaseFormat]]


def drawn_of(case: Case) -> tuple[list[Child], Lanes]:
    children = [Child(verdict, Amount(1, 10, None)) for verdict in select(*case).verdicts]
    return children, lanes(children, case[1].min_open)


@given(cases())
def test_every_directory_is_in_one_row(case: Case) -> None:
    children, found = drawn_of(case)
    names = Counter(child.verdict.name for row in found.rows for child in row.children)
    wanted = {c.verdict.name for c in children if c.verdict.kind in DRAWN}
    unnamed = {c.verdict.name for c in children if c.verdict.kind is not EntryKind.ORIGINAL and not c.verdict.directory}
    assert names == Counter(wanted - unnamed)
    assert len({(row.lane, row.state) for row in found.rows}) == len(found.rows)
    assert sum(len(row.children) for row in found.rows) == names.total()


@given(cases())
def test_a_row_is_in_the_order_of_write_ids_and_lies_on_the_axis(case: Case) -> None:
    _, found = drawn_of(case)
    for row in found.rows:
        ids = [ids_of(child, found.low) for child in row.children]
        assert all(found.low <= low <= high <= found.high for low, high in ids)
        assert ids == sorted(ids)


@given(cases(), st.integers(1, 300))
def test_every_child_has_columns_and_no_column_is_beyond_the_picture(case: Case, width: int) -> None:
    _, found = drawn_of(case)
    columns = found.columns(width)
    assert 1 <= columns <= width
    for row in found.rows:
        amounts = found.amounts(row, columns)
        assert len(amounts) == columns
        for child in row.children:
            start, end = found.span(*ids_of(child, found.low), columns)
            assert 0 <= start < end <= columns
            assert all(size is not None for size in amounts[start:end])


@given(st.lists(st.none() | st.integers(0, 1 << 50), min_size=1, max_size=20))
def test_a_step_lower_is_so_many_times_less(sizes: list[int | None]) -> None:
    (found,), largest = heights([sizes])
    assert largest == max((size for size in sizes if size is not None), default=0)
    for size, height in zip(sizes, found, strict=True):
        assert (height == 0) == (size is None)
        if size is not None and height < STEPS:
            assert size * STEP ** (STEPS - height) <= largest
        if size is not None and height > 1:
            assert size * STEP ** (STEPS - height + 1) > largest - STEP**STEPS


def test_lanes_and_states_of_a_location(tmp_path: Path) -> None:
    table = make(
        tmp_path / "t", "base_5", "delta_3_3", "delta_6_6", "delta_7_7", "delta_9_9", "delete_delta_7_7",
        "delta_10_10", "000000_0", "_tmp_x", "notes",
    )  # fmt: skip
    found = lanes_of(snapshot_of(table, ValidWriteIds.parse("db.t:10:9:9:10")))
    shown = {(row.lane, row.state): [ids_of(child, found.low) for child in row.children] for row in found.rows}
    assert shown == {
        (Lane.BASE, LaneState.CURRENT): [(2, 5)],
        (Lane.BASE, LaneState.OBSOLETE): [(2, 2), (2, 2)],
        (Lane.DELTAS, LaneState.CURRENT): [(6, 6), (7, 7)],
        (Lane.DELTAS, LaneState.OBSOLETE): [(3, 3)],
        (Lane.DELTAS, LaneState.ABORTED): [(10, 10)],
        (Lane.DELTAS, LaneState.OPEN): [(9, 9)],
        (Lane.DELETES, LaneState.CURRENT): [(7, 7)],
    }
    assert (found.low, found.high, found.blocking) == (2, 10, 9)


def test_nothing_blocks_where_no_list_says_what_is_open(tmp_path: Path) -> None:
    assert lanes_of(snapshot_of(make(tmp_path / "t", "delta_1_1", "delta_2_2"))).blocking is None


def test_an_empty_location_has_no_rows() -> None:
    assert lanes([]).rows == ()


def test_the_largest_ids_of_hive_fit() -> None:
    names = ("base_-9223372036854775808", "delta_1_9223372036854775807", "delta_7_3")
    listing = Listing("/t", tuple(Entry(name, 0, 0.0, True) for name in names))
    _, found = drawn_of((listing, ValidWriteIds(), None, {}))
    assert (found.low, found.high) == (0, (1 << 63) - 1)
    assert found.columns(80) == 80
    assert all(found.amounts(row, 80) for row in found.rows)
