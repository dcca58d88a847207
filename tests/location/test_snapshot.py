"""A location from which a cleaner removes something while it is looked at."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from support.tables import make

from acidctl.acid.listing import Listing
from acidctl.base.errors import AcidctlError, NotFoundError
from acidctl.location.snapshot import list_location, take_snapshot
from acidctl.storage.local.filesystem import LocalFileSystem


class Cleaned(LocalFileSystem):
    """Of which a cleaner takes a base away each time that somebody wants to know how it was made."""

    def __init__(self, table: Path, gone: Sequence[str]) -> None:
        super().__init__()
        self._table, self._gone = table, list(gone)
        self.listed = 0

    def list_tree(self, path: str, top: Listing | None = None) -> Listing:
        self.listed += 1
        return super().list_tree(path, top)

    def read_bytes(self, path: str, start: int, length: int) -> bytes:
        if self._gone:
            shutil.rmtree(self._table / self._gone.pop(0))
        return super().read_bytes(path, start, length)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Four bases by compactions, each of which replaces the one before it, and a delta."""
    made = make(tmp_path / "t", *(f"base_{number:07}" for number in (1, 2, 3, 4)), "delta_0000005_0000005")
    for number in (1, 2, 3, 4):
        text = '{"thisFileVersion":"0","dataFormat":"compacted"}'
        (made / f"base_{number:07}" / "_metadata_acid").write_text(text)
    return made


@pytest.mark.parametrize("gone", [["base_0000001"], ["base_0000001", "base_0000002", "base_0000003"]])
def test_a_base_that_vanishes_meanwhile_is_looked_for_no_more(table: Path, gone: list[str]) -> None:
    found = take_snapshot(Cleaned(table, gone), str(table))
    assert found.state.current_names == {"base_0000004", "delta_0000005_0000005"}
    assert not any(entry.path.startswith(tuple(gone)) for entry in found.listing.entries)


def test_what_is_listed_and_never_there_is_told_once(table: Path) -> None:
    (table / "base_0000001" / "_metadata_acid").unlink()
    (table / "base_0000001" / "_metadata_acid").symlink_to("nothing")
    told: dict[str, AcidctlError] = {}
    fs = Cleaned(table, ())
    look = list_location(fs, str(table), on_unreadable=told.__setitem__)
    assert fs.listed <= 2
    assert set(look.bad_metadata) | set(told) == {"base_0000001/_metadata_acid"}
    with pytest.raises(AcidctlError):
        take_snapshot(LocalFileSystem(), str(table))


def test_a_look_from_before_is_not_taken_twice(table: Path) -> None:
    """The location's own children, listed a moment ago, still name what is gone by now."""
    fs = LocalFileSystem()
    top = fs.list_dir(str(table))
    shutil.rmtree(table / "base_0000001")
    assert not list_location(fs, str(table), top).bad_metadata


def test_a_location_that_goes_altogether(table: Path) -> None:
    with pytest.raises(NotFoundError):
        take_snapshot(Cleaned(table, ["."]), str(table))
