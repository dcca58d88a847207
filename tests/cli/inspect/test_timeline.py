"""The timeline on a terminal: at any width, in any encoding, and never a wall."""

from __future__ import annotations

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
from acidctl.acid.state import select
from acidctl.acid.writeids import ValidWriteIds
from acidctl.cli.inspect.timeline import BLOCKS, timeline
from acidctl.location.snapshot import Amount, Child
from acidctl.overview.timeline import Lanes, lanes, lanes_of

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
