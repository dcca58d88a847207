"""Copies that follow insert-only tables, against a model of what Hive does with their directories."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.files.acid_files import write_plain
from support.metastore.fake_hive import FakeHive
from support.metastore.writable import INSERT_ONLY, writable
from support.migrating import copy, rows

import acidctl
from acidctl.acid.writeids import MAXL, ValidWriteIds
from acidctl.base.errors import VerifyError
from acidctl.iceberg import copy as copying
from acidctl.iceberg.difference import Difference
from acidctl.location.snapshot_resolver import SnapshotResolver, SnapshotSpec
from acidctl.outcome import Result

Row = tuple[int, str]


@dataclass
class MadeInsertOnly:
    """An insert-only table and the rows of each write id.

    Attributes:
        rows: of the committed write ids that no overwrite hides.
        waiting: the rows of open ones.
        directories: those that readers use, with their write ids.
    """

    path: Path
    last: int = 0
    number: int = 0
    rows: dict[int, list[Row]] = field(default_factory=dict)
    waiting: dict[int, list[Row]] = field(default_factory=dict)
    aborted: list[int] = field(default_factory=list)
    directories: dict[str, list[int]] = field(default_factory=dict)
    obsolete: list[str] = field(default_factory=list)

    def resolver(self) -> SnapshotResolver:
        opened = sorted(self.waiting)
        ids = ValidWriteIds(self.last, min(opened, default=MAXL), tuple(opened), tuple(self.aborted))
        return SnapshotResolver(SnapshotSpec(of_any_table=ids))

    def write(self, name: str, *files: list[Row]) -> None:
        (self.path / name).mkdir(parents=True)
        for bucket, values in enumerate(files):
            if values:
                write_plain(self.path / name / f"{bucket:06}_0", *values)

    def new_rows(self, count: int) -> list[Row]:
        self.number += count
        return [(at, f"r{at}") for at in range(self.number - count, self.number)]

    def insert(self, choice: random.Random, *, is_open: bool = False) -> None:
        self.last += 1
        files = [self.new_rows(choice.randint(0, 3)) for _ in range(2)]
        name = f"delta_{self.last:07}_{self.last:07}_0000"
        self.write(name, *files)
        self.directories[name] = [self.last]
        (self.waiting if is_open else self.rows)[self.last] = [*files[0], *files[1]]

    def end(self, choice: random.Random) -> None:
        """Commit an open write id, or abort it."""
        if self.waiting:
            write_id = choice.choice(list(self.waiting))
            values = self.waiting.pop(write_id)
            if choice.random() < 0.6:
                self.rows[write_id] = values
            else:
                self.aborted.append(write_id)

    def overwrite(self, choice: random.Random) -> None:
        """INSERT OVERWRITE, or TRUNCATE if it writes no rows; its lock waits for open ones."""
        if self.waiting:
            return
        self.last += 1
        values = self.new_rows(choice.randint(0, 3))
        self.obsolete += self.directories
        self.write(f"base_{self.last:07}", values)
        self.directories = {f"base_{self.last:07}": [self.last]}
        self.rows = {self.last: values}

    def compact(self, choice: random.Random, *, is_major: bool) -> None:
        """As Hive: up to the first open write id, aborted ones left out."""
        limit = min(self.waiting, default=MAXL)
        used = {name: ids for name, ids in self.directories.items() if max(ids) < limit}
        if not is_major:
            used = {name: ids for name, ids in used.items() if name.startswith("delta")}
        ids = sorted(at for held in used.values() for at in held)
        if not ids:
            return
        values = [row for at in ids for row in self.rows.get(at, ())]
        choice.shuffle(values)
        span = f"base_{ids[-1]:07}" if is_major else f"delta_{ids[0]:07}_{ids[-1]:07}"
        name = f"{span}_v{len(self.obsolete) + 100:07}"
        if name in self.directories or (self.path / name).exists():
            return
        self.write(name, values)
        self.obsolete += used
        self.directories = {kept: held for kept, held in self.directories.items() if kept not in used} | {name: ids}

    def clean(self) -> None:
        for name in self.obsolete:
            shutil.rmtree(self.path / name)
        self.obsolete = []
        for at in list(self.aborted):  # Hive forgets it once its files are gone
            if f"delta_{at:07}_{at:07}_0000" not in self.directories:
                self.aborted.remove(at)

    def step(self, choice: random.Random) -> str:
        what = choice.choice(
            ["insert"] * 4 + ["open"] * 2 + ["end"] * 2 + ["overwrite", "minor", "minor", "major", "clean"]
        )
        if what in ("insert", "open"):
            self.insert(choice, is_open=what == "open")
        elif what in ("minor", "major"):
            self.compact(choice, is_major=what == "major")
        else:
            {"end": lambda: self.end(choice), "overwrite": lambda: self.overwrite(choice), "clean": self.clean}[what]()
        return what

    def expected(self) -> list[Row]:
        return sorted((row for values in self.rows.values() for row in values), key=str)


@pytest.mark.parametrize("proof", ["new", "full"])
@pytest.mark.parametrize("seed", range(12))
def test_a_copy_follows_an_insert_only_table(seed: int, proof: str, tmp_path: Path) -> None:
    choice, made, to = random.Random(seed), MadeInsertOnly(tmp_path / "t"), tmp_path / "copy"
    while not made.rows.get(1):
        made.last = 0
        shutil.rmtree(made.path, ignore_errors=True)
        made.insert(choice)
    past = []
    for _ in range(14):
        copy(made.path, to, resolver=made.resolver(), proof=proof)
        assert rows(to) == made.expected(), past
        again = copy(made.path, to, resolver=made.resolver())
        assert (again.result, again.snapshot) == (Result.NOTHING_TO_DO, None), past
        past.append(made.step(choice))


def table_of(path: Path, *ids: int) -> MadeInsertOnly:
    made, choice = MadeInsertOnly(path), random.Random(1)
    for at in ids:
        made.last = at - 1
        made.insert(choice)
        if not made.rows[at]:
            made.rows[at] = made.new_rows(1)
            write_plain(path / f"delta_{at:07}_{at:07}_0000" / "000000_0", *made.rows[at])
    return made


@pytest.mark.parametrize("is_major", [False, True])
def test_a_compaction_of_copied_rows_copies_nothing(tmp_path: Path, is_major: bool) -> None:
    made, to = table_of(tmp_path / "t", 1, 2, 3), tmp_path / "copy"
    copy(made.path, to, resolver=made.resolver())
    made.compact(random.Random(1), is_major=is_major)
    made.clean()
    assert copy(made.path, to, resolver=made.resolver()).result is Result.NOTHING_TO_DO
    made.last += 1
    made.rows[4] = made.new_rows(2)
    made.write("delta_0000004_0000004_0000", made.rows[4])
    done = copy(made.path, to, resolver=made.resolver())
    assert (done.rows, done.deleted) == (2, 0)
    assert done.proof == f"all values of 2 new rows and the number of {len(made.expected())} rows compared"


def test_a_base_with_copied_and_new_write_ids_replaces_the_copied_ones(tmp_path: Path) -> None:
    made, to = table_of(tmp_path / "t", 1, 2), tmp_path / "copy"
    copy(made.path, to, resolver=made.resolver())
    made.insert(random.Random(2))
    made.compact(random.Random(1), is_major=True)
    old = len(made.rows[1]) + len(made.rows[2])
    done = copy(made.path, to, resolver=made.resolver())
    assert (done.rows, done.deleted, rows(to)) == (old + len(made.rows[3]), old, made.expected())


def test_an_aborted_write_id_that_hive_forgets_replaces_nothing(tmp_path: Path) -> None:
    made, to = table_of(tmp_path / "t", 1, 2, 3), tmp_path / "copy"
    made.aborted.append(2)
    del made.rows[2]
    copy(made.path, to, resolver=made.resolver())
    made.compact(random.Random(1), is_major=True)
    made.clean()
    assert not made.aborted
    assert copy(made.path, to, resolver=made.resolver()).result is Result.NOTHING_TO_DO


def test_partitions_of_an_insert_only_table_come_and_go(tmp_path: Path) -> None:
    one, other, to = table_of(tmp_path / "t" / "p=1", 1), table_of(tmp_path / "t" / "p=2", 1), tmp_path / "copy"
    copy(tmp_path / "t", to)
    shutil.rmtree(one.path)
    table_of(one.path, 5)  # dropped, and added again
    done = copy(tmp_path / "t", to)
    assert done.deleted == len(one.rows[1])
    shutil.rmtree(other.path)
    assert copy(tmp_path / "t", to).deleted == len(other.rows[1])
    assert {row[2] for row in rows(to)} == {1}


def test_statements_on_a_table_of_a_metastore(tmp_path: Path) -> None:
    to = tmp_path / "copy"
    with FakeHive(4, remembers=True) as hive:
        writable(hive, tmp_path / "t", parameters=INSERT_ONLY)
        door = acidctl.Hive(hive.address).table("db.t")

        def run(*numbers: int, **options: Any) -> list[Any]:
            door.insert(pa.table({"a": pa.array(numbers, pa.int32()), "b": ["x"] * len(numbers)}), **options)
            acidctl.migrate("hive:db.t", to, metastore=hive.address, catch_up=(to / "metadata").exists())
            return [row[0] for row in rows(to)]

        assert run(1, 2) == [1, 2]
        assert run(3) == [1, 2, 3]
        assert run(4, overwrite=True) == [4]
        door.truncate()
        assert run(5) == [5]


@pytest.mark.parametrize(
    ("change", "proof"),
    [
        (lambda found: Difference(found.wanted, ()), "new"),
        (lambda found: Difference((), found.gone), "new"),
        (lambda found: Difference(found.wanted * 2, found.gone), "new"),
        (lambda found: Difference(found.wanted, ()), "full"),
    ],
)
def test_a_fault_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Difference], Difference], proof: str
) -> None:
    made, to = table_of(tmp_path / "t", 1, 2), tmp_path / "copy"
    copy(made.path, to, resolver=made.resolver())
    before = rows(to)
    made.last += 1
    made.write("base_0000003", [(77, "x")])
    real = copying.by_directories
    monkeypatch.setattr(copying, "by_directories", lambda *args: change(real(*args)))
    with pytest.raises(VerifyError):
        copy(made.path, to, resolver=made.resolver(), proof=proof)
    assert rows(to) == before


def test_an_overwrite_that_commits_late_replaces_as_many_rows(tmp_path: Path) -> None:
    made, to = table_of(tmp_path / "t", 1), tmp_path / "copy"
    made.last = 2
    made.waiting[2] = made.new_rows(len(made.rows[1]))
    made.write("base_0000002", made.waiting[2])
    copy(made.path, to, resolver=made.resolver())
    assert rows(to) == made.expected()
    made.rows = {2: made.waiting.pop(2)}
    copy(made.path, to, resolver=made.resolver())
    assert rows(to) == made.expected()


def test_a_file_that_came_without_a_write_id_is_copied(tmp_path: Path) -> None:
    table, to = tmp_path / "t", tmp_path / "copy"
    write_plain(table / "000000_0", (1, "a"))
    copy(table, to)
    write_plain(table / "000001_0", (2, "b"), (3, "c"))
    copy(table, to)
    assert rows(to) == [(1, "a"), (2, "b"), (3, "c")]


@pytest.mark.parametrize("new", ["p=1", "p=2"])
def test_partitions_without_a_metastore_have_lists_of_their_own(tmp_path: Path, new: str) -> None:
    table_of(tmp_path / "t" / "p=1", 1, 2)
    table_of(tmp_path / "t" / "p=2", 1, 5)
    copy(tmp_path / "t", tmp_path / "copy")
    write_plain(tmp_path / "t" / new / "delta_0000006_0000006_0000" / "000000_0", (77, "x"))
    done = copy(tmp_path / "t", tmp_path / "copy")
    assert (done.rows, done.deleted) == (1, 0)
