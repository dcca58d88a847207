"""A slip of the finger does no harm: what was not meant is refused, and what is printed can be run unread."""

from __future__ import annotations

import shlex
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import click
import pytest
from support.command_line import Result
from support.files.acid_files import delete, insert, write_acid
from support.metastore.fake_hive import FakeHive
from support.tables import age

import acidctl as library
from acidctl.base.errors import RefusedError
from acidctl.cleaning.trash import TRASH
from acidctl.cli.command_table import walk
from acidctl.location.change import lock

Call = Callable[..., Result]
MAJOR = ("compact", "--major", "--engine", "local")
CLEAN = ("clean", "--yes", "--assume-committed=1h")
STAGING = "_tmp_12345678-1234-4234-8234-123456789abc"


def fill(table: Path) -> Path:
    """A table that is worth a compaction, and holds an obsolete directory."""
    for number in (1, 2, 3):
        write_acid(table / f"delta_{number:07d}_{number:07d}_0000" / "bucket_00000", insert(number, 0, (number,)))
    write_acid(table / "delete_delta_0000004_0000004_0000" / "bucket_00000", delete(1, 0, 4))
    write_acid(table / "base_0000004" / "bucket_00000", *(insert(number, 0, (number,)) for number in (2, 3)))
    write_acid(table / "delta_0000005_0000005_0000" / "bucket_00000", insert(5, 0, (5,)))
    age(table, 72)
    return table


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return fill(tmp_path / "warehouse" / "s.db" / "t")


@pytest.fixture
def fake(table: Path) -> Iterator[FakeHive]:
    """Knows the table; the transaction of its newest delta was aborted."""
    with FakeHive(4) as one:
        one.table("s", "t", f"file:{table}")
        for number in range(1, 6):
            one.write_ids.setdefault("s.t", []).append(one.begin())
            one.end(number, commit=number != 5)
        yield one


def names(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if not path.name.startswith(".acidctl-log")}


# --- options ----------------------------------------------------------------------------------------------------------


def _commands() -> Iterator[tuple[str, click.Command]]:
    yield from ((" ".join(path), command) for path, command in walk())


def test_no_option_of_a_changing_command_has_a_value_that_may_be_left_out() -> None:
    found = {
        (name, option.opts[0])
        for name, command in _commands()
        for option in command.params
        if getattr(option, "_flag_needs_value", False)
    }
    assert found == {("doctor", "--metastore")}


@pytest.mark.parametrize("form", [["--assume-committed", "6h"], ["--assume-committed=6h"]])
def test_a_blank_before_an_age_means_the_same(acidctl: Call, table: Path, form: list[str]) -> None:
    for command in ((*MAJOR, "-n"), ("nightly", "-n"), ("clean", "-n"), ("ls",)):
        found = acidctl(*command, *form, table)
        assert found.status == 0, found.err
        assert "older than 6 h" in found.err


@pytest.mark.parametrize("words", [["{t}"], ["--yes", "{t}"], ["", "{t}"]])
def test_an_age_that_is_left_out_is_a_mistake(acidctl: Call, table: Path, words: list[str]) -> None:
    before = names(table)
    for command in (MAJOR, ("nightly",), ("clean", "--yes")):
        found = acidctl(*command, "--assume-committed", *(word.format(t=table) for word in words))
        assert (found.status, names(table)) == (2, before)


# --- several places ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [
        (*MAJOR, "--assume-committed=1h"), ("nightly", "--yes", "--engine", "local", "--assume-committed=1h"),
        ("clean", "--yes", "--snapshot", "txns=5:5::"),
        ("purge", "--yes"), ("restore", "--yes"),
        ("repair", "--yes"),
    ],
    ids=lambda words: " ".join(words[:2]),
)  # fmt: skip
def test_one_place_that_cannot_be_used_stops_all(
    acidctl: Call, tmp_path: Path, table: Path, command: tuple[str, ...]
) -> None:
    if command[0] in ("purge", "restore"):
        assert acidctl(*CLEAN, table).status == 0
    other = fill(tmp_path / "other")
    before = names(tmp_path)
    listed = tmp_path / "list"
    for wrong, status in ((tmp_path / "6h", 3), ("nfs://host/t", 2)):
        for places in ([table, wrong, other], [wrong, table]):
            found = acidctl(*command, *places)
            assert (found.status, names(tmp_path)) == (status, before), found.err
        listed.write_text(f"{table}\n{wrong}\n")
        found = acidctl(*command, "--tables", listed)
        listed.unlink()
        assert (found.status, f"{listed}, line 2" in found.err) == (status, True)
        assert names(tmp_path) == before


def test_a_folder_that_is_no_table_stops_those_beside_it(acidctl: Call, tmp_path: Path, table: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "README.md").write_text("notes")
    before = names(tmp_path)
    for command in ((*MAJOR, "--assume-committed=1h"), ("nightly", "--yes", "--assume-committed=1h"), ("clean", "-y")):
        found = acidctl(*command, table, tmp_path / "notes")
        assert (found.status, names(tmp_path)) == (7, before), found.err


def test_what_was_not_named_stops_nothing_else(acidctl: Call, tmp_path: Path, table: Path) -> None:
    bad = fill(table.parent / "bad")
    (bad / "base_0000004" / "_metadata_acid").write_text("{torn")
    found = acidctl(*MAJOR, "--assume-committed=1h", table.parent, fill(tmp_path / "other"))
    assert found.status == 4
    assert (table / "base_0000005").is_dir()
    assert (tmp_path / "other" / "base_0000005").is_dir()


# --- what a metastore knows -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [MAJOR, ("compact", "--auto", "--min-deltas=1", "--engine=local"), ("nightly", "--yes"), ("clean", "--yes"),
     ("cat",), ("erasure", "--where", "a = 1")],
    ids=lambda words: " ".join(words[:2]),
)  # fmt: skip
def test_nothing_is_assumed_of_what_a_metastore_knows(
    acidctl: Call, fake: FakeHive, table: Path, command: tuple[str, ...]
) -> None:
    before = names(table)
    assumed = (*command, "--assume-committed=1h", "--metastore", fake.address)
    for place in (table, "hive:s.t"):
        found = acidctl(*assumed, place)
        assert (found.status, names(table)) == (15 if command[0] == "erasure" else 7, before), found.err
        assert "hive:s.t" in found.err + found.out
    assert not fake.locks
    assert not fake.queue


def test_none_must_be_typed_beside_an_assumption(
    acidctl: Call, fake: FakeHive, table: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    before = names(table)
    config = tmp_path / "config.toml"
    config.write_text('[metastore]\nuris = "none"\n')
    found = acidctl("--config", config, *MAJOR, "--assume-committed=1h", table)
    assert (found.status, "--metastore none" in found.err) == (7, True)
    monkeypatch.setenv("ACIDCTL_COMPACT_METASTORE", "none")
    assert acidctl(*MAJOR, "--assume-committed=1h", table).status == 7
    config.write_text(f'[metastore]\nuris = "{fake.address}"\n')
    monkeypatch.delenv("ACIDCTL_COMPACT_METASTORE")
    assert acidctl("--config", config, *MAJOR, "--assume-committed=1h", table).status == 7
    assert names(table) == before
    typed = ("--assume-committed=1h", "--metastore", "none", table)
    assert acidctl("--config", config, *MAJOR, *typed).status == 0


def test_what_a_metastore_does_not_know_may_be_assumed(acidctl: Call, fake: FakeHive, tmp_path: Path) -> None:
    copy = fill(tmp_path / "copy")
    found = acidctl(*MAJOR, "--assume-committed=1h", "--metastore", fake.address, copy)
    assert found.status == 0, found.err


def test_a_partition_that_lies_elsewhere_is_known_too(acidctl: Call, fake: FakeHive, tmp_path: Path) -> None:
    fake.table("s", "p", f"file:{tmp_path / 'p'}", ["day"])
    fake.partition("s", "p", "day=1")
    part = fake.partitions["s", "p"]["day=1"]
    assert part.storage
    away_there = replace(part.storage, location=f"file:{tmp_path}/away")
    fake.partitions["s", "p"]["day=1"] = replace(part, storage=away_there)
    away = fill(tmp_path / "away")
    found = acidctl(*MAJOR, "--assume-committed=1h", "--metastore", fake.address, away)
    assert (found.status, "hive:s.p/day=1" in found.err) == (7, True), found.err


@pytest.mark.parametrize(
    ("at", "typed"),
    [
        (
            "s.db/t",
            ["s.db/t/", "s.db//t", "s.db/../s.db/./t", "link/t", "file:{w}/s.db/t", "file://localhost{w}/s.db/t"],
        ),
        ("s.db/k=v", ["s.db/k=v", "s.db"]),
        ("s.db/k=v/l=w", ["s.db/k=v/l=w", "s.db/k=v"]),
        ("s.db/a#b?c", ["s.db/a#b?c", "file:{w}/s.db/a#b?c"]),
        ("s.db/a%20b", ["s.db/a%20b"]),
    ],
)
def test_a_table_is_known_however_its_path_is_spelled(
    acidctl: Call, fake: FakeHive, tmp_path: Path, at: str, typed: list[str]
) -> None:
    warehouse = tmp_path / "warehouse"
    fake.table("s", "odd", f"file:{warehouse}//{at}/")
    if at != "s.db/t":
        fill(warehouse / at)
    else:
        del fake.tables["s", "t"]
    (warehouse / "link").symlink_to("s.db")
    for spelling in typed:
        place = spelling.format(w=warehouse) if spelling.startswith("file:") else f"{warehouse}/{spelling}"
        found = acidctl(*MAJOR, "--assume-committed=1h", "--metastore", fake.address, place)
        assert (found.status, "hive:s.odd and" in found.err.replace(",", " and")) == (7, True), (place, found.err)


def test_a_name_that_differs_behind_a_hash_is_another_table(acidctl: Call, fake: FakeHive, tmp_path: Path) -> None:
    fake.table("s", "odd", f"file:{tmp_path}/a#b")
    found = acidctl(*MAJOR, "--assume-committed=1h", "--metastore", fake.address, fill(tmp_path / "a#c"))
    assert found.status == 0, found.err


def test_the_library_assumes_nothing_of_it_either(fake: FakeHive, table: Path) -> None:
    place = library.Location(table, metastore=fake.address, assume_committed=3600)
    with pytest.raises(RefusedError):
        place.compact("major")
    with pytest.raises(RefusedError):
        place.snapshot()


# --- printed lines ----------------------------------------------------------------------------------------------------


def printed(acidctl: Call, *told: str | Path) -> list[str]:
    """The lines of compactions that commands print."""
    searched = acidctl("erasure", "--where", "a = 5", "-o", "json", *told).json()["locations"]
    steps = [step["command"] for one in searched for step in one["steps"]]
    return [line for line in steps if line and line.startswith("acidctl")]


def test_printed_lines_name_the_table_and_assume_nothing(acidctl: Call, fake: FakeHive, table: Path) -> None:
    write_acid(table / "delta_0000006_0000006_0000" / "bucket_00000", *(insert(6, row, (5,)) for row in range(3)))
    fake.write_ids["s.t"].append(fake.begin())
    fake.end(6)
    age(table, 72)
    lines = printed(acidctl, "--metastore", fake.address, table)
    assert lines
    for line in lines:
        assert "assume" not in line
        assert line.endswith(" hive:s.t")
        words = shlex.split(line)[1:]
        more = {"compact": ["--engine", "local"], "clean": ["--yes"], "purge": ["--yes"]}[words[0]]
        done = acidctl(*words, *more)
        assert done.status in (0, 7), (line, done.err)  # 7: what the line before it did holds it back
    found = acidctl("cat", "--metastore", fake.address, "hive:s.t")
    assert sorted(row["a"] for row in found.lines()) == [2, 3, 5, 5, 5], "the aborted row stays away"


@pytest.mark.parametrize("command", [("clean", "--yes"), ("nightly", "--yes", "--engine", "local")])
def test_the_line_that_takes_back_can_be_run(
    acidctl: Call, fake: FakeHive, table: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    fake.table("s", "u", f"file:{fill(tmp_path / 'u')}")
    fake.write_ids["s.u"] = fake.write_ids["s.t"]
    before = names(tmp_path)
    done = acidctl(*command, "--metastore", fake.address, "hive:s.*")
    assert done.status == 0, done.err
    assert names(tmp_path) != before
    line = next(line for line in done.err.splitlines() if "acidctl restore" in line)
    back = acidctl(*shlex.split(line.partition("acidctl ")[2]), "--yes")
    assert (back.status, names(tmp_path)) == (0, before), back.err


def test_without_a_metastore_lines_repeat_what_was_typed(acidctl: Call, table: Path) -> None:
    assert all("assume" not in line for line in printed(acidctl, table))
    typed = printed(acidctl, "--assume-committed", "2h", "--metastore", "none", table)
    assert any("--assume-committed=7200s" in line and "--metastore=none" in line for line in typed)


@pytest.mark.parametrize("command", [CLEAN, ("repair", "--only", "version-file", "--yes")])
def test_undo_is_printed_without_its_opposite(acidctl: Call, table: Path, command: tuple[str, ...]) -> None:
    (table / "delta_0000005_0000005_0000" / "_orc_acid_version").unlink(missing_ok=True)
    found = acidctl(*command, table)
    assert (found.status, "undo: acidctl" in found.err) == (0, True), found.err
    assert "purge" not in found.err


# --- purge ------------------------------------------------------------------------------------------------------------


def test_purge_takes_the_run_that_is_named(acidctl: Call, table: Path) -> None:
    for number in (1, 2, 3):
        write_acid(table / f"delta_{number:07d}_{number:07d}_0000" / "bucket_00000", insert(number, 0, (number,)))
        age(table, 72)
        assert acidctl(*CLEAN, table).status == 0

    def runs() -> list[str]:
        return [one["trashRun"] for one in acidctl("restore", "--list", "-o", "json", table).json()]

    oldest, middle, newest = sorted(runs())
    logged = [one["run"] for one in acidctl("log", "-o", "jsonl", table).lines()]
    assert {oldest, middle, newest} == set(logged)
    for wrong, status in (("20", 2), ("nothing", 3), ("", 2)):
        assert acidctl("purge", "--yes", "--run", wrong, table).status == status
    assert len(runs()) == 3
    found = acidctl("purge", "--yes", "--run", middle, table)
    assert found.status == 0, found.err
    assert sorted(runs()) == [oldest, newest]
    place = library.Location(table)
    assert [one.run.id for one in place.purge(newest)] == [newest]
    assert runs() == [oldest]


AGES = {
    "purge": ("purge", "--older-than=7d"),
    "nightly": ("nightly", "--engine=local", "--assume-committed=1h"),
    "nightly with a policy": ("nightly", "--engine=local", "--assume-committed=1h", "--purge-older-than=0"),
}
"""Lines by which an age of seven days decides what is purged for good."""


@pytest.mark.parametrize("name", AGES)
def test_no_purge_by_age_believes_a_clock_that_clean_refuses(
    acidctl: Call, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    shutil.rmtree(table / "delta_0000005_0000005_0000")  # nothing is to be compacted
    assert acidctl(*CLEAN, table).status == 0
    before, now = names(table), time.time
    ahead = SimpleNamespace(time=lambda: now() + 30 * 86400, monotonic=time.monotonic)
    monkeypatch.setattr(lock, "time", ahead)
    monkeypatch.setattr("acidctl.verbs.purge.time", ahead)
    (tmp_path / "policy.toml").write_text('[policy."*"]\npurge-older-than = "7d"\n')
    by_policy = ("--config", tmp_path / "policy.toml") if "policy" in name else ()
    found = acidctl(*by_policy, *AGES[name], "--yes", table)
    assert (found.status, names(table)) == (8, before), found.err
    assert acidctl("purge", "--yes", table).status == 0, "no age decides here"


@pytest.mark.parametrize(
    "command",
    [("purge", "--older-than=7d"), ("nightly", "--purge-older-than=7d", "--engine=local", "--assume-committed=1h")],
)
def test_a_run_that_is_dated_wrongly_is_as_old_as_its_store_says(
    acidctl: Call, table: Path, command: tuple[str, ...]
) -> None:
    shutil.rmtree(table / "delta_0000005_0000005_0000")  # nothing is to be compacted
    assert acidctl(*CLEAN, table).status == 0
    (run,) = (table / TRASH).iterdir()
    old = run.rename(run.with_name("20200101T000000.000Z-0badc0de"))
    for _ in range(2):
        found = acidctl(*command, "--yes", table)
        assert (found.status, old.exists()) == (0, True), found.err
    age(old, 24 * 30)
    assert (acidctl(*command, "--yes", table).status, old.exists()) == (0, False)


# --- staging ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("inside", [[], ["_attempts/"], ["_attempts/", "_owner.json"]])
def test_staging_of_a_run_that_was_killed_before_it_was_named_goes(
    acidctl: Call, table: Path, inside: list[str]
) -> None:
    (table / STAGING).mkdir()
    for name in inside:
        (table / STAGING / name).mkdir() if name.endswith("/") else (table / STAGING / name).write_text('{"ho')
    night = ("nightly", "--yes", "--engine", "local", "--assume-committed=1h", table)
    assert acidctl(*night).status == 0
    assert (table / STAGING).is_dir(), "somebody may be about to name it"
    age(table, 72)
    assert acidctl(*night).status == 0
    assert not (table / STAGING).exists()


@pytest.mark.parametrize("name", [f"{STAGING}/base_0000006/bucket_00000", "_tmp_mine/x", f"{STAGING}/x"])
def test_what_holds_data_is_no_nameless_staging(acidctl: Call, table: Path, name: str) -> None:
    path = table / name
    path.parent.mkdir(parents=True)
    path.write_bytes(b"rows")
    age(table, 72)
    assert acidctl(*MAJOR, "--assume-committed=1h", table).status == 0
    assert path.exists()
    assert path.stat().st_size == 4
