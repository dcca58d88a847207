"""A table or a partition that is dropped while a command goes through many: the others are none the worse."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from support.command_line import Result
from support.files.acid_files import insert, write_acid
from support.metastore.fake_hive import FakeHive
from support.tables import age

from acidctl.acid.listing import Listing
from acidctl.storage.local.filesystem import LocalFileSystem

Ask = Callable[..., Result]
LINES = [
    ("clean", "--dry-run"),
    ("clean", "--yes"),
    ("ls",),
    ("compact", "--auto", "--engine", "local"),
    ("validate",),
    ("status",),
    ("report", "-o", "json"),
    ("why",),
    ("nightly", "--yes", "--engine", "local"),
]


@dataclass
class Dropping:
    """Removes a directory when somebody begins to list it, and whatever else `also` does."""

    path: Path
    also: Callable[[], object] = lambda: None
    was_there: bool = field(default=False, init=False)

    def instead(self, asked: str) -> None:
        if not self.was_there and Path(asked) == self.path:
            self.was_there = True
            shutil.rmtree(self.path)
            self.also()


@pytest.fixture
def dropping(monkeypatch: pytest.MonkeyPatch) -> Callable[[Dropping], Dropping]:
    def begin(one: Dropping) -> Dropping:
        list_tree = LocalFileSystem.list_tree

        def listed(self: LocalFileSystem, path: str, top: Listing | None = None) -> Listing:
            one.instead(path)
            return list_tree(self, path, top)

        monkeypatch.setattr(LocalFileSystem, "list_tree", listed)
        return one

    return begin


@pytest.fixture(params=[3, 4], ids=["hive-3", "hive-4"])
def fake(request: pytest.FixtureRequest) -> Iterator[FakeHive]:
    with FakeHive(request.param) as one:
        yield one


def lived(root: Path) -> Path:
    for number in (1, 2, 3):
        write_acid(root / f"delta_{number:07}_{number:07}_0000" / "bucket_00000", insert(number, 0, (number,)))
    write_acid(root / "base_0000003" / "bucket_00000", *(insert(number, 0, (number,)) for number in (1, 2, 3)))
    (root / "base_0000003" / "_metadata_acid").write_text('{"thisFileVersion":"0","dataFormat":"compacted"}')
    age(root, 50)
    return root


def three_tables(fake: FakeHive, folder: Path) -> None:
    for name in ("a", "gone", "z"):
        fake.table("db", name, f"file:{lived(folder / name)}", [], {})
        fake.write_ids[f"db.{name}"] = [1, 2, 3]


def drop_table(fake: FakeHive) -> None:
    for known in (fake.tables, fake.partitions):
        known.pop(("db", "gone"))


def three_partitions(fake: FakeHive, folder: Path) -> None:
    fake.table("db", "t", f"file:{folder / 't'}", ["day"], {})
    fake.write_ids["db.t"] = [1, 2, 3]
    for name in ("day=a", "day=gone", "day=z"):
        lived(folder / "t" / name)
        fake.partition("db", "t", name)


def require_told_of_two(found: Result, line: tuple[str, ...]) -> None:
    assert found.status == 0, found.err
    assert "error" not in found.err
    assert "no such file" not in found.err + found.out
    if line != ("nightly", "--yes", "--engine", "local"):
        assert "was dropped meanwhile" in found.out + found.err
    if line == ("clean", "--yes"):
        assert "2 cleaned" in found.err
        assert "failed" not in found.err


@pytest.mark.sampled(5)
@pytest.mark.parametrize("line", LINES, ids=" ".join)
def test_a_table(
    acidctl: Ask, fake: FakeHive, dropping: Callable[[Dropping], Dropping], tmp_path: Path, line: tuple[str, ...]
) -> None:
    three_tables(fake, tmp_path)
    one = dropping(Dropping(tmp_path / "gone", lambda: drop_table(fake)))
    found = acidctl(*line, "--metastore", fake.address, "hive:db.*")
    assert one.was_there
    require_told_of_two(found, line)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("line", LINES, ids=" ".join)
def test_a_partition(
    acidctl: Ask, fake: FakeHive, dropping: Callable[[Dropping], Dropping], tmp_path: Path, line: tuple[str, ...]
) -> None:
    three_partitions(fake, tmp_path)
    one = dropping(Dropping(tmp_path / "t/day=gone", lambda: fake.partitions["db", "t"].pop("day=gone")))
    found = acidctl(*line, "--metastore", fake.address, "hive:db.t")
    assert one.was_there
    require_told_of_two(found, line)


@pytest.mark.parametrize("line", LINES, ids=" ".join)
def test_a_directory_of_a_tree(
    acidctl: Ask, dropping: Callable[[Dropping], Dropping], tmp_path: Path, line: tuple[str, ...]
) -> None:
    for name in ("a", "gone", "z"):
        lived(tmp_path / "w" / name)
    one = dropping(Dropping(tmp_path / "w/gone"))
    by = [] if line[0] in ("validate", "ls", "status", "report") else ["--assume-committed=1h"]
    found = acidctl(*line, *by, tmp_path / "w")
    assert one.was_there
    require_told_of_two(found, line)


@pytest.mark.parametrize("line", LINES[:5], ids=" ".join)
def test_what_the_metastore_still_has_should_be_there(
    acidctl: Ask, fake: FakeHive, dropping: Callable[[Dropping], Dropping], tmp_path: Path, line: tuple[str, ...]
) -> None:
    three_partitions(fake, tmp_path)
    dropping(Dropping(tmp_path / "t/day=gone"))
    found = acidctl(*line, "--metastore", fake.address, "hive:db.t")
    assert found.status == (15 if line == ("validate",) else 3)
    assert "no such file" in found.err + found.out


@pytest.mark.parametrize("line", LINES[:5], ids=" ".join)
def test_what_was_named_itself_should_be_there(
    acidctl: Ask, fake: FakeHive, dropping: Callable[[Dropping], Dropping], tmp_path: Path, line: tuple[str, ...]
) -> None:
    three_tables(fake, tmp_path)
    dropping(Dropping(tmp_path / "gone", lambda: drop_table(fake)))
    assert acidctl(*line, "--metastore", fake.address, "hive:db.gone").status in (3, 15)


@pytest.mark.parametrize("line", LINES[:5], ids=" ".join)
def test_a_tree_that_goes_as_a_whole(
    acidctl: Ask, dropping: Callable[[Dropping], Dropping], tmp_path: Path, line: tuple[str, ...]
) -> None:
    """As when its disk is taken away: nobody says that it was dropped."""
    for name in ("a", "gone", "z"):
        lived(tmp_path / "w" / name)
    dropping(Dropping(tmp_path / "w/gone", lambda: shutil.rmtree(tmp_path / "w")))
    by = ["--assume-committed=1h"] if line[0] in ("clean", "compact") else []
    assert acidctl(*line, *by, tmp_path / "w").status == (15 if line == ("validate",) else 3)


def test_programs_are_told(
    acidctl: Ask, fake: FakeHive, dropping: Callable[[Dropping], Dropping], tmp_path: Path
) -> None:
    three_tables(fake, tmp_path)
    dropping(Dropping(tmp_path / "gone", lambda: drop_table(fake)))
    found = acidctl("clean", "--dry-run", "-o", "json", "--metastore", fake.address, "hive:db.*")
    (gone,) = [one for one in found.json() if one["location"].endswith("/gone")]
    assert (gone["result"], gone["reasonCodes"]) == ("nothing-to-do", ["dropped-meanwhile"])


def test_the_initiator_goes_on(
    acidctl: Ask, fake: FakeHive, dropping: Callable[[Dropping], Dropping], tmp_path: Path
) -> None:
    three_tables(fake, tmp_path)
    one = dropping(Dropping(tmp_path / "gone", lambda: drop_table(fake)))
    found = acidctl("hive", "initiator", "--once", "--metastore", fake.address, "hive:db.*")
    assert one.was_there
    assert found.status == 0, found.err
    assert "2 locations checked" in found.err
