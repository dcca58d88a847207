"""`restore` over trees: one cleaning is undone as a whole, and what fails does not stop the rest."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.tables import age, make, on_terminal, without_log

RUN = "20990101T000000.000Z-deadbeef"


def left(tree: Path) -> int:
    return len(list(tree.glob("*/delta_4_4_0")))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Four partitions with one obsolete delta each."""
    tree = tmp_path / "sales.db" / "orders"
    for day in range(4):
        make(tree / f"day={day:02}", "base_5", "delta_4_4_0")
        age(tree / f"day={day:02}", 30)
    return tree


@pytest.fixture
def cleaned(acidctl, tree: Path) -> Path:  # type: ignore[no-untyped-def]
    done = acidctl("clean", "--yes", tree)
    assert done.status == 0
    assert left(tree) == 0
    (run,) = {path.name for path in tree.glob("*/.acidctl-trash/*")}  # one cleaning, one id
    assert f"acidctl restore --run {run} {tree}" in done.err
    return tree


def test_a_cleaning_is_undone_as_a_whole(acidctl, cleaned: Path) -> None:  # type: ignore[no-untyped-def]
    tree = cleaned
    for options, status in ((("--dry-run",), 0), ((), 7)):
        shown = acidctl("restore", *options, tree.parent)
        assert shown.status == status
        assert shown.out.count("1 entry, 11 B: delta_4_4_0") == 4
        assert left(tree) == 0
    assert "4 locations (44 B) would be restored" in shown.err
    planned = acidctl("restore", "--dry-run", "-o", "jsonl", tree)
    assert [line["result"] for line in planned.lines()] == ["planned"] * 4
    done = acidctl("restore", "--yes", "--lock", "--jobs", "2", tree.parent)
    assert done.status == 0
    assert "4 locations: 4 restored (44 B)" in done.err
    assert left(tree) == 4
    assert not without_log(map(str, tree.rglob(".acidctl*")))
    again = acidctl("restore", "--yes", tree)
    assert again.status == 3
    assert "nothing to restore" in again.err


def test_the_last_cleaning_goes_first(acidctl, cleaned: Path) -> None:  # type: ignore[no-untyped-def]
    tree = cleaned
    (first,) = {path.name for path in tree.glob("*/.acidctl-trash/*")}
    for day in ("day=01", "day=02"):
        make(tree / day, "delta_3_3_0")
        age(tree / day, 30, "delta_3_3_0")
    assert acidctl("clean", "--yes", tree).status == 0
    ids = {path.name for path in tree.glob("*/.acidctl-trash/*")}
    (second,) = ids - {first}
    listed = acidctl("restore", "--list", tree).out.splitlines()
    runs = [line.partition("day=")[2].split(": ") for line in listed]
    assert [(day, run) for day, run, *_ in runs] == [
        *((f"0{day}", first) for day in range(4)), ("01", second), ("02", second),
    ]  # fmt: skip
    assert len(acidctl("restore", "--list", "-o", "jsonl", tree).lines()) == 6
    assert acidctl("restore", "--run", "2000", tree).status == 3
    done = acidctl("restore", "--yes", "-o", "jsonl", tree)
    assert done.status == 0
    assert {line["location"][-6:]: line["trashRun"] for line in done.lines()} == {"day=01": second, "day=02": second}
    assert "2 locations hold other runs" in done.err
    assert acidctl("restore", "--yes", "--run", first[:12], tree).status == 0
    assert left(tree) == 4


def test_what_fails_does_not_stop_the_rest(acidctl, cleaned: Path) -> None:  # type: ignore[no-untyped-def]
    tree = cleaned
    make(tree / "day=01", "delta_4_4_0")
    done = acidctl("restore", "--yes", "-o", "jsonl", tree)
    assert done.status == 9
    assert [line["result"] for line in done.lines()] == ["restored", "failed", "restored", "restored"]
    assert f"failed: {tree / 'day=01'}" in done.err
    assert left(tree) == 4
    shutil.rmtree(tree / "day=01" / "delta_4_4_0")
    # The one that is left is below what was named, so it is shown and asked about.
    assert acidctl("restore", tree).status == 7
    assert acidctl("restore", tree / "day=01").status == 0


def test_runs_that_never_began_are_passed_over(acidctl, cleaned: Path) -> None:  # type: ignore[no-untyped-def]
    tree = cleaned
    (tree / "day=02" / ".acidctl-trash" / RUN).mkdir()
    refused = acidctl("restore", "--run", RUN, "--yes", tree)
    assert refused.status == 3
    assert "interrupted" in refused.err
    done = acidctl("restore", "--yes", tree)
    assert done.status == 0
    assert f"day=02: passed over {RUN}" in done.err
    assert left(tree) == 4


def test_the_time_may_run_out(acidctl, cleaned: Path) -> None:  # type: ignore[no-untyped-def]
    late = acidctl("restore", "--yes", "--deadline", "0", "-o", "jsonl", cleaned)
    assert late.status == 0
    assert {line["result"] for line in late.lines()} == {"postponed"}
    assert left(cleaned) == 0


def test_restored_table_that_others_changed_is_told(acidctl, cleaned: Path) -> None:  # type: ignore[no-untyped-def]
    make(cleaned / "day=03", "base_6")
    done = acidctl("restore", "--yes", cleaned)
    assert done.status == 0
    assert "day=03: the state is not as before the cleaning" in done.err


def test_of_several_restores_at_once_one_wins(cleaned: Path) -> None:
    command = [sys.executable, "-m", "acidctl", "restore", "--yes", "-o", "jsonl", str(cleaned)]
    racers = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(3)]
    ended = [(*racer.communicate(timeout=60), racer.returncode) for racer in racers]
    assert all(status in (0, 3, 9) for *_, status in ended), ended
    assert left(cleaned) == 4
    assert not list(cleaned.rglob("_torn.json"))


def test_a_terminal_is_asked(cleaned: Path) -> None:
    command = [sys.executable, "-m", "acidctl", "restore", str(cleaned)]
    status, text = on_terminal(command, "n\n")
    assert status == 7
    assert text.count("delta_4_4_0") == 4
    assert left(cleaned) == 0
    assert on_terminal(command, "y\n")[0] == 0
    assert left(cleaned) == 4


def test_hostile_names_are_restored_and_escaped(acidctl, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    table = make(tmp_path / "a\x1b[31m b.db" / "t\n", "base_5", "delta_4_4_0")
    other = make(tmp_path / "a\x1b[31m b.db" / "u v", "base_5", "delta_4_4_0")
    age(table, 30)
    age(other, 30)
    done = acidctl("clean", "--yes", table.parent)
    assert done.status == 0
    assert "\x1b" not in done.out + done.err
    assert "t\\n" in done.out
    done = acidctl("restore", "--yes", table.parent)
    assert done.status == 0
    assert "\x1b" not in done.out + done.err
    assert (table / "delta_4_4_0").exists()


def test_what_comes_back_is_shown_before_it_is_asked_for(acidctl, terminal, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    for day in range(7):
        age(make(tmp_path / "t" / f"day={day}", "base_2", "delta_1_1"), 48)
    assert acidctl("clean", "--yes", tmp_path).status == 0
    status, shown = terminal.run("restore", tmp_path, typed="n\n")
    assert status != 0
    assert shown.index("to restore: 1 table, 7 locations, 7 runs, 7 entries") < shown.index("Restore: 7 locations")
    status, shown = terminal.run("purge", "--older-than", "0", tmp_path, typed="n\n")
    assert shown.index("to purge: 1 table, 7 locations") < shown.index("Delete 7 runs permanently?")
    done = acidctl("restore", "--yes", tmp_path)
    assert "restored: 1 table, 7 locations" in done.out
    assert acidctl("clean", "--yes", "-v", tmp_path).out.count("moved to the trash as") == 7


def test_an_empty_id_is_no_run(acidctl, cleaned: Path) -> None:  # type: ignore[no-untyped-def]
    """A variable of a script that is not set must not purge everything."""
    assert acidctl("purge", "--yes", "--run", "", cleaned).status == 2
    assert len(list(cleaned.glob("*/.acidctl-trash/*"))) == 4
