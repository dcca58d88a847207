"""Which rows count: a command that changes a table is told, or asks; what is young, open or aborted stays out."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.files.acid_files import insert, write_by_pyorc
from support.tables import CLEAN_NOW, age, read_rows

from acidctl.acid.names import MAXL
from acidctl.acid.writeids import ValidWriteIds
from acidctl.location.change import lock

Call = Callable[..., Any]
COMPACT = ("compact", "--engine", "local")
MAJOR = (*COMPACT, "--major")


def names(table: Path) -> set[str]:
    return {path.name for path in table.iterdir() if path.name[0] not in "._"}


def ids_of(table: Path, write_ids: ValidWriteIds | None = None) -> list[int]:
    """The write ids of the rows that a reader sees."""
    return [key[0] for key, _ in read_rows(table, write_ids)]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Five inserts of a row each, two hours old."""
    table = tmp_path / "sales.db" / "orders"
    for write_id in range(1, 6):
        write_by_pyorc(table / f"delta_{write_id:07}_{write_id:07}_0000", [insert(write_id, 0)])
    age(table, 2)
    return table


def listed(table: Path, text: str) -> tuple[str, str]:
    return "--snapshot", f"sales.{table.name}:{text}"


def test_a_command_that_changes_is_told_or_refuses(acidctl: Call, table: Path) -> None:
    before = names(table)
    for options in (
        ("--major",),
        ("--minor", "--offline"),
        ("--auto",),
        ("--major", "--dry-run"),
        ("--auto", "--force"),
    ):
        refused = acidctl(*COMPACT, *options, table)
        assert (refused.status, "must be told which write ids are committed" in refused.err) == (7, True)
    refused = acidctl(*MAJOR, "--snapshot", f"txns=9:{MAXL}::", table)
    assert refused.status == 7, "a list of transactions says nothing of write ids"
    assert names(table) == before
    assert acidctl(*MAJOR, "--assume-committed=1h", table).status == 0
    assert names(table) == before | {"base_0000005"}


def test_the_age_stands_behind_an_equals_sign(acidctl: Call, table: Path) -> None:
    """A word that follows is a location, not an age."""
    shown = acidctl(*MAJOR, "--assume-committed=1h", "--dry-run", table)
    assert "5 inputs" in shown.out
    assert acidctl(*MAJOR, "--dry-run", "--assume-committed=3h", table).out.count("nothing to do") == 1
    assert acidctl(*MAJOR, "--dry-run", "--assume-committed=never", table).status == 2
    assert acidctl(*MAJOR, "--dry-run", "--assume-committed=1h", "--", table).status == 0


def test_nothing_young_and_nothing_above_it(acidctl: Call, table: Path) -> None:
    age(table, 0, "delta_0000004_0000004_0000")
    done = acidctl(*MAJOR, "--assume-committed=1h", table)
    assert done.status == 0
    assert names(table) >= {"base_0000003"}
    assert ids_of(table) == [1, 2, 3, 4, 5]
    assert "delta_0000004_0000004_0000 was written 0 s ago, so no write id from 4 on counts" in done.err


def test_the_empty_directory_of_an_open_writer(acidctl: Call, table: Path) -> None:
    """It was folded in, and the rows that the writer wrote then were never seen."""
    (table / "delta_0000004_0000004_0001").mkdir()
    age(table, 2)
    assert acidctl(*MAJOR, "--assume-committed=0s", table).status == 0
    assert names(table) >= {"base_0000003"}
    write_by_pyorc(table / "delta_0000004_0000004_0001", [insert(4, 7)])
    assert ids_of(table) == [1, 2, 3, 4, 4, 5]


def test_rows_of_an_aborted_transaction_stay_gone(acidctl: Call, table: Path) -> None:
    snapshot = ValidWriteIds.parse(f"sales.orders:5:{MAXL}::2,4")
    assert acidctl(*MAJOR, *listed(table, f"5:{MAXL}::2,4"), table).status == 0
    assert ids_of(table, snapshot) == [1, 3, 5]
    assert acidctl(*CLEAN_NOW, *listed(table, f"5:{MAXL}::2,4"), table).status == 0
    assert names(table) == {"base_0000005"}
    assert ids_of(table) == [1, 3, 5]


def test_what_is_open_is_left_alone(acidctl: Call, table: Path) -> None:
    assert acidctl(*MAJOR, *listed(table, "5:3:3:"), table).status == 0
    assert names(table) >= {"base_0000002"}
    assert ids_of(table) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    "options",
    [
        ("--snapshot", "12:9:9:7"),
        ("--snapshot", "12:9:9:7:"),
        ("--snapshot", "sales.orders:12:9:9"),
        ("--snapshot", ""),
        ("--snapshot", f"sales.items:5:{MAXL}::"),
        ("--snapshot", f"old.orders:5:{MAXL}::"),
        ("--snapshot", f"42$sales.items:5:{MAXL}::"),
        ("--snapshot", f"{MAXL}:{MAXL}::"),
        ("--snapshot", f"null:5:{MAXL}::"),
    ],
)
@pytest.mark.parametrize(
    "command", [MAJOR, ("clean", "--yes"), ("cat",), ("ls",), ("diff", "--from", "1")], ids=lambda c: c[0]
)
def test_lists_of_another_kind_or_table_are_refused(
    acidctl: Call, table: Path, command: tuple[str, ...], options: tuple[str, ...]
) -> None:
    before = names(table)
    refused = acidctl(*command, *options, table)
    assert refused.status in (2, 7)
    assert refused.out == ""
    assert names(table) == before


@pytest.mark.parametrize(
    "command", [("cat", "--count"), ("diff", "--from", "0", "--count"), ("history",), ("why",), ("ls",)]
)
def test_every_reader_takes_the_lists_of_several_tables(
    acidctl: Call, table: Path, command: tuple[str, ...], tmp_path: Path
) -> None:
    lists = f"42$sales.items:9:{MAXL}::$sales.orders:3:2:2:"
    (tmp_path / "lists").write_text(f"sales.items:9:{MAXL}::\nsales.orders:3:2:2:\n")
    one = acidctl(*command, *listed(table, "3:2:2:"), table)
    assert one.status == 0
    for given in (("--snapshot", lists), ("--snapshot", f"@{tmp_path / 'lists'}")):
        assert acidctl(*command, *given, table).out == one.out


def test_clean_without_lists_takes_only_what_a_compaction_replaced(acidctl: Call, table: Path) -> None:
    """The base of an aborted INSERT OVERWRITE took the whole table away."""
    write_by_pyorc(table / "base_0000006", [insert(6, 0)])
    age(table, 48)
    for options in ((), ("--older-than", "0", "--unsafe-retention")):
        done = acidctl("clean", "--yes", *options, table)
        assert done.status == 0
        assert len(names(table)) == 6
        assert "whether the INSERT OVERWRITE of write id 6 is committed is not known" in done.err
    aborted = listed(table, f"6:{MAXL}::6")
    assert acidctl(*CLEAN_NOW, *aborted, table).status == 0
    assert "base_0000006" not in names(table)
    assert ids_of(table) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("written", ["base_0000004", "base_0000004_v0000006"])
def test_of_two_that_prove_nothing_neither_does(acidctl: Call, table: Path, written: str) -> None:
    """Without the upper one the lower one is read: delta_1_1 went, for an INSERT OVERWRITE that was aborted."""
    for name in (written, "base_0000005_v0000007"):
        write_by_pyorc(table / name, [insert(4, 0)])
    age(table, 48)
    before = names(table)
    for txns in ((), ("--snapshot", f"txns=7:7:7:{6 if '_v' in written else ''}")):
        done = acidctl(*CLEAN_NOW, *txns, table)
        assert done.status == 0
        assert names(table) == before - ({written} if txns and "_v" in written else set())


def test_clean_takes_what_the_user_says_is_committed(acidctl: Call, table: Path) -> None:
    write_by_pyorc(table / "base_0000006", [insert(6, 0)])
    age(table, 48)
    assert acidctl("clean", "--yes", "--assume-committed=1h", table).status == 0
    assert names(table) == {"base_0000006"}
    assert ids_of(table) == [6]


def test_a_snapshot_that_ends_inside_a_compacted_delta(acidctl: Call, table: Path) -> None:
    """A base up to 2 beside `delta_1_3`: rows came twice for every reader."""
    assert acidctl(*COMPACT, "--minor", *listed(table, "3:4:4:"), table).status == 0
    assert "delta_0000001_0000003" in names(table)
    before = names(table)
    refused = acidctl(*MAJOR, *listed(table, f"2:{MAXL}::"), table)
    assert refused.status == 7
    assert "delta_0000001_0000003 begins at or below write id 2 and ends above it" in refused.err
    assert names(table) == before
    assert ids_of(table) == [1, 2, 3, 4, 5]


def test_what_lies_across_is_left_out(acidctl: Call, table: Path) -> None:
    write_by_pyorc(table / "delta_0000004_0000006", [insert(write_id, 1) for write_id in (4, 5, 6)])
    shutil.rmtree(table / "delta_0000004_0000004_0000")
    shutil.rmtree(table / "delta_0000005_0000005_0000")
    write_by_pyorc(table / "delta_0000004_0000004_0000", [insert(4, 1)])
    done = acidctl(*MAJOR, *listed(table, f"5:{MAXL}::"), table)
    assert done.status == 0, done.err
    assert "base_0000003" in names(table)
    assert "nothing above write id 3 is compacted: delta_0000004_0000006 begins" in done.err
    assert ids_of(table) == [1, 2, 3, 4, 5, 6]


def test_what_already_lies_across_is_an_error_everywhere(acidctl: Call, table: Path) -> None:
    write_by_pyorc(table / "delta_0000001_0000003", [insert(write_id, 0) for write_id in (1, 2, 3)])
    write_by_pyorc(table / "base_0000002", [insert(write_id, 0) for write_id in (1, 2)])
    (table / "base_0000002" / "_metadata_acid").write_text('{"thisFileVersion":"0","dataFormat":"compacted"}')
    age(table, 48)
    before = names(table)
    assert "rows may come twice" in acidctl("cat", table).err
    shows = (("ls",), ("why",), ("why", "-o", "json"), ("history",), ("diff", "--from", "1"))
    for command in (*shows, ("blame", "1:536870912:0")):
        shown = acidctl(command[0], table, *command[1:])
        assert (shown.status, shown.err.count("base_0000002, and ends above it: rows may be in both: both")) == (0, 1)
    (listing,) = acidctl("ls", "-o", "jsonl", table).lines()
    assert len(listing["warnings"]) == 1
    for command in ((*MAJOR, "--assume-committed=1h"), CLEAN_NOW, (*CLEAN_NOW, "--assume-committed=1h")):
        refused = acidctl(*command, table)
        assert refused.status in (4, 7)
        assert "begins below the end of base_0000002, and ends above it" in refused.err
    assert names(table) == before
    assert any(line["rule"] == "V9" for line in acidctl("validate", "-o", "jsonl", table).lines())


LINE = [sys.executable, "-m", "acidctl", "compact", "--engine", "local", "--major"]


def test_a_file_that_is_not_text_is_no_list(acidctl: Call, table: Path, tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    refused = acidctl("ls", "--snapshot", f"@{tmp_path / 'bytes'}", table)
    assert (refused.status, refused.out) == (2, "")


def test_a_list_without_a_database_is_for_one_table(acidctl: Call, table: Path, tmp_path: Path) -> None:
    """Of two tables of one name it was used for both, whatever the numbers of either."""
    shutil.copytree(table, tmp_path / "other.db" / "orders")
    shutil.copytree(table, tmp_path / "other.db" / "lines")
    lists = tmp_path / "lists"
    lists.write_text(f"orders:5:{MAXL}::3\nother.lines:5:{MAXL}::\n")
    assert acidctl("cat", "--count", "--snapshot", f"@{lists}", table).out == "4\n"
    for command in (("ls",), (*MAJOR, "--dry-run"), ("clean", "--dry-run"), ("validate",)):
        refused = acidctl(*command, "--snapshot", f"@{lists}", tmp_path)
        assert refused.status == 7
        assert "names no database, and other.orders has that name, too" in refused.err


def test_what_is_assumed_beside_a_list(acidctl: Call, table: Path) -> None:
    """It said that no list was given."""
    done = acidctl(*MAJOR, *listed(table, f"5:{MAXL}::2"), "--assume-committed=0s", table)
    assert "no list of transactions was given: of _v directories everything on disk is committed" in done.err
    assert ids_of(table, ValidWriteIds.parse(f"sales.orders:5:{MAXL}::2")) == [1, 3, 4, 5]


def test_a_table_that_was_renamed(acidctl: Call, table: Path) -> None:
    moved = table.with_name("orders_2024")
    table.rename(moved)
    lists = ("--snapshot", f"sales.orders:5:{MAXL}::")
    refused = acidctl(*MAJOR, *lists, moved)
    assert (refused.status, "write sales.orders_2024 in it" in refused.err) == (7, True)
    assert acidctl(*MAJOR, *listed(moved, f"5:{MAXL}::"), moved).status == 0


@pytest.mark.parametrize("seconds", [-86400.0, 0.0, 300.0, 400.0])
def test_a_store_whose_clock_is_behind_makes_what_is_young_seem_old(
    acidctl: Call, table: Path, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    """By ours a new lock is so many seconds old: with a tenth of the age that decides, ages say nothing."""
    before, now = names(table), time.time
    monkeypatch.setattr(lock, "time", SimpleNamespace(time=lambda: now() + seconds, monotonic=time.monotonic))
    done = acidctl(*MAJOR, "--assume-committed=1h", table)
    told = "is 400 seconds behind this machine's" in done.err
    assert (done.status, told, names(table) == before) == ((8, True, True) if seconds == 400 else (0, False, False))
    assert not list(table.glob(".acidctl-lock*"))
    assert acidctl(*MAJOR, "--assume-committed=0s", "--force", table).status == 0, "no age decides here"


def test_ages_decide_what_is_cleaned(acidctl: Call, table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert acidctl(*MAJOR, "--assume-committed=0s", table).status == 0
    age(table, 72)
    before, now = names(table), time.time
    monkeypatch.setattr(lock, "time", SimpleNamespace(time=lambda: now() + 3 * 3600, monotonic=time.monotonic))
    refused = acidctl("clean", "--yes", "--older-than=24h", *listed(table, f"5:{MAXL}::"), table)
    assert (refused.status, names(table)) == (8, before), refused.err
    assert acidctl("clean", "--yes", "--older-than=48h", *listed(table, f"5:{MAXL}::"), table).status == 0
    assert names(table) == {"base_0000005"}
