"""Compactions of many locations are planned and carried out in portions: nothing is kept of all of them but names."""

from __future__ import annotations

import shutil
import weakref
from pathlib import Path

import pytest
from support.files.acid_files import insert, write_acid
from support.tables import read_rows

from acidctl.acid.listing import Listing

LOCATIONS, PORTION = 14, 2
PLAIN = ("--engine", "local", "--jobs", "1", "--min-deltas", "2", "--assume-committed=0s")


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Partitions, of each of which a compaction is due, to be taken by fours."""
    table = tmp_path / "w" / "t"
    for write_id in (1, 2):
        write_acid(table / "day=00" / f"delta_{write_id:07}_{write_id:07}_0000" / "bucket_00000", insert(write_id, 0))
    for number in range(1, LOCATIONS):
        shutil.copytree(table / "day=00", table / f"day={number:02}")
    monkeypatch.setattr("acidctl.verbs.compact.PORTION", PORTION)
    monkeypatch.setattr("acidctl.verbs.nightly._PORTION", PORTION)
    return tmp_path / "w"


@pytest.fixture
def most_listings(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Of how many locations there were listings at once, each time that one is listed."""
    counted: list[int] = []
    alive: list[weakref.ref[Listing]] = []
    usual = Listing.__init__

    def counting(self: Listing, location: str, *args: object, **named: object) -> None:
        usual(self, location, *args, **named)  # type: ignore[arg-type]
        if "/day=" in location:
            alive.append(weakref.ref(self))
            alive[:] = [one for one in alive if one() is not None]
            counted.append(len({listing.location for one in alive if (listing := one())}))

    monkeypatch.setattr(Listing, "__init__", counting)
    return counted


@pytest.mark.parametrize(
    "options", [(), ("--max-bytes", "1G"), ("--dry-run",), ("--dry-run", "--max-bytes", "1G")], ids=" ".join
)
def test_compact_keeps_plans_of_a_portion(  # type: ignore[no-untyped-def]
    acidctl, tree: Path, most_listings: list[int], options: tuple[str, ...]
) -> None:
    found = acidctl("compact", "--auto", *PLAIN, *options, "-o", "jsonl", tree)
    assert found.status == 0, found.err
    assert len(found.out.splitlines()) == LOCATIONS
    is_done = "--dry-run" not in options
    assert len(list(tree.glob("t/*/base_*"))) == LOCATIONS * is_done
    assert all(len(read_rows(location)) == 2 for location in tree.glob("t/*"))
    assert max(most_listings) < LOCATIONS - PORTION


@pytest.mark.parametrize("options", [("--yes",), ("--dry-run",)], ids=" ".join)
def test_a_night_keeps_plans_of_a_portion(  # type: ignore[no-untyped-def]
    acidctl, tree: Path, tmp_path: Path, most_listings: list[int], options: tuple[str, ...]
) -> None:
    line = ("nightly", *PLAIN, "--state", tmp_path / "state")
    found = acidctl(*line, *options, "-o", "jsonl", tree)
    assert found.status == 0, found.err
    assert found.out.count('"part":"compact"') == LOCATIONS
    assert len(list(tree.glob("t/*/base_*"))) == LOCATIONS * ("--yes" in options)
    assert max(most_listings) < LOCATIONS - PORTION


@pytest.mark.parametrize("said", [("--snapshot", "t:2:9223372036854775807::"), ("--table-type", "full-acid")])
def test_what_is_good_for_one_table_changes_none_of_several(  # type: ignore[no-untyped-def]
    acidctl, tree: Path, said: tuple[str, ...]
) -> None:
    shutil.copytree(tree / "t", tree / "u")
    assumed = () if said[0] == "--snapshot" else ("--assume-committed=0s",)
    refused = acidctl("compact", "--major", "--engine", "local", *said, *assumed, tree)
    assert refused.status != 0
    assert not list(tree.rglob("base_*"))
