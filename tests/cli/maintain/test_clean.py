"""`clean`, `restore` and `purge` by their options: retention, saved plans, locks, budgets, signals."""

from __future__ import annotations

import csv
import io
import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.tables import CLEAN_NOW, age, make, on_terminal, without_log

from acidctl.location.change.lock import LOCK
from acidctl.location.change.own_files import Owner

TRASH = ".acidctl-trash"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """One delta is obsolete since 30 hours, one since 2."""
    table = make(tmp_path / "t", "base_5", "base_9", "delta_4_4_0", "delta_8_8_0", "_tmp_1/x", "delta_10_10_0")
    age(table, 30)
    age(table, 2, "base_9")
    return table


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Twenty partitions with one obsolete delta each."""
    tree = tmp_path / "sales.db" / "orders"
    for day in range(20):
        make(tree / f"day={day:02}", "base_5", "delta_4_4_0")
        age(tree / f"day={day:02}", 30)
    return tree


def names(table: Path) -> set[str]:
    return without_log(path.name for path in table.iterdir())


def left(tree: Path) -> int:
    return len(list(tree.glob("*/delta_4_4_0")))


def test_young_obsolete_entries_are_kept_back_and_leftovers_go_when_asked(acidctl, table: Path) -> None:  # type: ignore[no-untyped-def]
    shown = acidctl("clean", "--dry-run", table)
    assert shown.status == 0
    assert "1 to remove" in shown.out
    assert "kept back: base_5, delta_8_8_0: obsolete since" in shown.err
    assert "may go after" in shown.err
    found = acidctl("clean", "--dry-run", "--leftovers", "-o", "json", table).one()
    assert [(r["name"], r["state"], r["kind"]) for r in found["removals"]] == [
        ("delta_4_4_0", "obsolete", "delta"), ("_tmp_1", "ignored", "staging"),
    ]  # fmt: skip
    assert [one["name"] for one in found["waiting"]] == ["base_5", "delta_8_8_0"]
    assert all(one["since"] < one["until"] for one in found["waiting"])
    assert {one["code"] for one in found["waiting"]} == {"too-young"}
    assert acidctl("clean", "--dry-run", "--older-than", "3h", "-o", "json", table).one()["files"] == 2
    assert acidctl("clean", "--dry-run", "--older-than", "90m", "-o", "json", table).one()["files"] == 7
    assert acidctl("clean", "--dry-run", "--older-than", "0", "-o", "json", table).one()["files"] == 7
    assert acidctl("clean", "--older-than", "soon", table).status == 2
    assert acidctl("clean", "--yes", "--leftovers", table).status == 0
    assert names(table) == {"base_5", "base_9", "delta_8_8_0", "delta_10_10_0", TRASH}
    assert acidctl("clean", "--yes", "--exit-code", table).status == 12


def test_what_is_held_back_is_said_where_nothing_may_go_yet(acidctl, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    table = make(tmp_path / "t", "base_5", "delta_4_4_0", "delta_3_3_0")
    of_hive4 = make(tmp_path / "v", "base_5_v9", "delta_4_4_0", "delta_3_3_0")
    nothing = make(tmp_path / "u", "base_5")

    def said(place: Path, *options: str) -> str:
        shown, found = acidctl("clean", "-n", *options, place), acidctl("clean", "-n", "-o", "json", *options, place)
        done = acidctl("clean", "--yes", "--exit-code", *options, place)
        assert (shown.status, found.one()["result"], done.status) == (0, "nothing-to-do", 12)
        assert done.out == shown.out
        text: str = shown.out.removeprefix(f"{place}: nothing to clean").removesuffix("\n")
        return text

    assert said(nothing) == ""
    age(table, 2)
    until = acidctl("ls", table).out.splitlines()[-1].rpartition("; ")[2]
    size, _, when = until.partition(" free after ")
    assert (size[-2:], when[-4:]) == (" B", " UTC")
    assert said(table) == f" yet: {until}"
    age(of_hive4, 48)
    running = ("--snapshot", "txns=20:8:8:")
    for options, words in ((running, "transaction 8"), ((), "transaction 9")):
        reason = acidctl("clean", "-n", "-o", "json", *options, of_hive4).one()["keptBack"][0]["reason"]
        assert words in reason
        assert said(of_hive4, *options) == f" yet: {size} kept back: {reason}"
        assert reason in acidctl("status", *options, of_hive4).out
    age(table, 48)
    assert acidctl("clean", "-n", table).out.startswith(f"{table}: 2 to remove")
    doubted = make(tmp_path / "w", "delta_1_3_v7", "delta_1_1_0", "delta_4_6_v8", "delta_4_4_0")
    age(doubted, 48)
    assert said(doubted).count("whether transaction") == 1
    assert ", and 1 more like it" in said(doubted)
    few = acidctl("clean", "-n", "--max-bytes", "3", table)
    assert few.out == f"{table}: nothing to clean yet: {size} are more than --max-bytes\n"
    for path in table.rglob("delta_*/*"):
        path.write_bytes(b"")
    age(table, 2)
    assert said(table).startswith(" yet: 0 B free after ")


def test_where_a_delta_lies_across_the_base_nothing_is_removed(acidctl, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    table = make(tmp_path / "t", "base_5", "delta_1_1", "delta_4_8")
    age(table, 48)
    found = acidctl("clean", "--yes", table)
    assert (found.status, "(V9)" in found.err) == (7, True)
    assert names(table) == {"base_5", "delta_1_1", "delta_4_8"}
    assert " free " not in acidctl("ls", table).out


def test_why_agrees_with_clean(acidctl, table: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    other = make(tmp_path / "u", "base_5_v9", "delta_4_4_0", "base_2", "delta_1_1_0", "_tmp.delta_6_6/x", "delta_6_6")
    third = make(tmp_path / "v", "delta_2_3", "delete_delta_2_2_0", "delta_2_2_0", "backup/notes", "base_1")
    for one in (other, third):
        age(one, 30)
    for lists in (
        (),
        ("--snapshot", "txns=20:9223372036854775807::"),
        ("--snapshot", "txns=20:8:8:"),
        ("--snapshot", "\n".join(f"db.{name}:9:9:9:8" for name in "tuv")),
    ):
        for place in (table, other, third):
            proofs = {p["name"]: p for p in acidctl("why", "-o", "json", *lists, place).one()["proofs"]}
            plain = acidctl("clean", "--dry-run", "-o", "json", *lists, place).one()
            full = acidctl("clean", "--dry-run", "--leftovers", "-o", "json", *lists, place).one()
            may = {name: proof["cleaning"]["may"] for name, proof in proofs.items()}
            assert {n for n in may if may[n] == "yes"} == {removal["name"] for removal in plain["removals"]}
            held = {one["name"] for one in plain["waiting"] + plain["keptBack"]}
            assert {n for n in may if may[n] == "kept-back"} == held
            staging = {removal["name"] for removal in full["removals"]} - {r["name"] for r in plain["removals"]}
            for name in staging:
                assert proofs[name]["cleaning"]["next"] == "`acidctl clean --leftovers` takes it"
    assert "may go after" in acidctl("why", table, "delta_8_8_0").out
    age(table, 1, "_tmp_1")
    assert "takes it then" in acidctl("why", table, "_tmp_1").out


def test_saved_plan_changes_nothing_until_it_is_applied(acidctl, table: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    file = tmp_path / "plan.json"
    saved = acidctl("clean", "--plan", file, table)
    assert saved.status == 0
    assert f"acidctl clean --apply={file}" in saved.err
    assert "delta_4_4_0" in names(table)
    assert "1 to remove" in acidctl("clean", "--dry-run", "--apply", file).out
    refused = acidctl("clean", "--apply", file)
    assert (refused.status, "--yes" in refused.err) == (7, True)
    make(table, "delta_11_11_0")
    changed = acidctl("clean", "--yes", "-o", "json", "--apply", file)
    assert changed.status == 9
    assert "delta_11_11_0 came" in changed.err
    assert changed.one()["result"] == "failed"
    assert acidctl("clean", "--plan", file, table).status == 0
    done = acidctl("clean", "--yes", "-o", "json", "--apply", file)
    assert done.status == 0
    assert done.one()["result"] == "cleaned"
    assert "delta_4_4_0" not in names(table)
    assert acidctl("clean", "--yes", "--apply", file).status == 9
    assert acidctl("restore", table).status == 0
    assert acidctl("clean", "--yes", "--apply", table / "base_9" / "bucket_00000").status == 4
    assert acidctl("clean", "--yes", "--apply", tmp_path / "none").status == 3
    assert acidctl("clean", "--plan", tmp_path / "no" / "plan", table).status == 3
    assert acidctl("clean", "--plan", table / "plan", table).status == 7, "readers would take it for data"
    (tmp_path / "precious").write_text("precious")
    assert acidctl("clean", "--plan", tmp_path / "precious", table).status == 7
    assert (tmp_path / "precious").read_text() == "precious"
    assert acidctl("clean", "--plan", file, "--older-than", "0", table).status == 7
    assert acidctl("clean", "--plan", file, "--older-than", "0", "--unsafe-retention", table).status == 0
    assert acidctl("clean", "--yes", "--apply", file).status == 7
    assert acidctl("clean", "--yes", "--unsafe-retention", "--apply", file).status == 0
    assert names(table) == {"base_9", "delta_10_10_0", "delta_11_11_0", "_tmp_1", TRASH}


def test_csv_has_a_row_for_each_location(acidctl, tree: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    rows = list(csv.DictReader(io.StringIO(acidctl("clean", "--yes", "-o", "csv", tree).out)))
    assert [(row["location"], row["result"], row["bytes"]) for row in rows] == [
        (str(tree / f"day={day:02}"), "cleaned", "11") for day in range(20)
    ]
    assert len({row["run"] for row in rows}) == 1
    assert acidctl("purge", "--yes", tree).status == 0
    empty = acidctl("purge", "--yes", "-o", "csv", tree)
    assert empty.out.splitlines() == ["location,part,result,run,kind,bytes,error,reason"]


def test_a_saved_plan_of_nothing(acidctl, table: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    assert acidctl("clean", "--plan", tmp_path / "plan", "--older-than", "365d", table).status == 0
    for options, status in ((("--yes",), 0), (("--dry-run",), 0), (("--yes", "--exit-code"), 12)):
        done = acidctl("clean", *options, "--apply", tmp_path / "plan")
        assert done.status == status
        assert "nothing to clean" in done.err


def test_one_changed_location_does_not_stop_the_others(acidctl, tree: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    file = tmp_path / "plan.json"
    assert acidctl("clean", "--plan", file, tree).status == 0
    make(tree / "day=07", "delta_9_9_0")
    done = acidctl("clean", "--yes", "--apply", file)
    assert done.status == 9
    assert left(tree) == 1
    assert "failed: " in done.err
    assert "day=07" in done.err.splitlines()[-1]


def lock_by(table: Path, owner: Owner) -> None:
    (table / LOCK).write_bytes(owner.to_bytes())


@pytest.fixture
def dead() -> Owner:
    process = subprocess.Popen(["true"])
    process.wait()
    return Owner(Owner.this().host, process.pid, 1, "etl", 0.0)


@pytest.mark.parametrize("lock", [[], ["--lock"]], ids=["without", "with"])
def test_a_locked_location_is_left_alone(acidctl, crud: Path, tmp_path: Path, lock: list[str]) -> None:  # type: ignore[no-untyped-def]
    assert acidctl("compact", "--assume-committed=0s", "--major", "--engine", "local", crud).status == 0
    file = tmp_path / "plan"
    assert acidctl(*CLEAN_NOW, "--plan", file, crud).status == 0
    owner = Owner("elsewhere", 4711, 1, "etl", 0.0)
    lock_by(crud, owner)
    before = sorted(str(path) for path in crud.rglob("*"))
    for command in (
        (*CLEAN_NOW, *lock, crud), ("clean", "--yes", "--unsafe-retention", *lock, "--apply", file),
        ("compact", "--assume-committed=0s", "--major", "--engine", "local", *lock, crud),
    ):  # fmt: skip
        if command[0] == "compact":
            (crud / LOCK).unlink()
            assert acidctl(*CLEAN_NOW, "--no-trash", crud).status == 0
            make(crud, "delta_4_4_0/x")  # something to compact
            (crud / "delta_4_4_0" / "x").unlink()
            (crud / "delta_4_4_0" / "bucket_00000").write_bytes((crud / "base_0000003" / "bucket_00000").read_bytes())
            lock_by(crud, owner)
            before = sorted(str(path) for path in crud.rglob("*"))
        found = acidctl(*command)
        assert found.status == 9, command
        assert "process 4711 of etl on elsewhere" in found.err
        assert "1970-01-01" in found.err
        assert sorted(str(path) for path in crud.rglob("*")) == before, command


def test_restore_and_purge_mind_the_lock(acidctl, table: Path, dead: Owner) -> None:  # type: ignore[no-untyped-def]
    assert acidctl("clean", "--yes", "--lock", table).status == 0
    assert LOCK not in names(table)
    lock_by(table, Owner("elsewhere", 4711, 1, "etl", 0.0))
    for command in (("restore",), ("restore", "--lock"), ("purge", "--yes"), ("purge", "--yes", "--no-lock")):
        found = acidctl(*command, table)
        assert found.status == 9, command
        assert "only that machine can tell" in found.err
        assert "--break-lock" in found.err
    assert LOCK in names(table)
    assert acidctl("restore", "--no-lock", "--break-lock", table).status == 2
    assert "the lock of a run of acidctl" in acidctl("ls", "-a", table).out
    assert "the lock of a run of acidctl that changes the location" in acidctl("why", table, LOCK).out
    lock_by(table, dead)
    broken = acidctl("restore", table)
    assert broken.status == 0
    assert "took over the lock of process" in broken.err
    assert LOCK not in names(table)
    assert "delta_4_4_0" in names(table)


def test_budget_ends_a_cleaning_and_says_what_is_left(acidctl, table: Path, tree: Path) -> None:  # type: ignore[no-untyped-def]
    everything = ("--older-than", "1h")
    found = acidctl("clean", "--yes", *everything, "--max-bytes", "27", "-o", "json", "--exit-code", table)
    assert found.status == 13
    assert [removal["name"] for removal in found.one()["removals"]] == ["delta_4_4_0", "delta_8_8_0"]
    assert found.one()["postponed"] == ["base_5"]
    assert "kept back: base_5: 59 bytes are more than is left of --max-bytes" in found.err
    nothing = acidctl("clean", "--yes", *everything, "--max-bytes", "5", "--exit-code", table)
    assert nothing.status == 13
    assert "nothing to clean yet" in nothing.out
    assert "base_5" in names(table)
    assert acidctl("clean", "--yes", *everything, "--max-bytes", "80", "--exit-code", table).status == 0
    assert "base_5" not in names(table)

    some = acidctl("clean", "--yes", "--max-bytes", "80", "-o", "jsonl", "--exit-code", tree)
    assert some.status == 13
    assert left(tree) == 13
    late = acidctl("clean", "--yes", "--deadline", "0", "-o", "jsonl", "--exit-code", tree)
    assert late.status == 13
    assert {line["result"] for line in late.lines()} == {"postponed"}
    assert len(late.lines()) == 20
    assert left(tree) == 13
    assert acidctl("clean", "--yes", "--deadline", "1h", tree).status == 0
    assert left(tree) == 0


def test_jobs_change_nothing_but_the_time(acidctl, tree: Path) -> None:  # type: ignore[no-untyped-def]
    outs = [acidctl("clean", "--dry-run", "--jobs", jobs, "-o", "jsonl", tree).out for jobs in ("1", "3", "50")]
    assert outs[0] == outs[1] == outs[2]
    done = acidctl("clean", "--yes", "--jobs", "8", "-o", "jsonl", tree)
    assert done.status == 0
    assert [line["location"][-6:] for line in done.lines()] == [f"day={day:02}" for day in range(20)]
    assert left(tree) == 0
    assert len({line["trashRun"] for line in done.lines()}) == 1  # one cleaning, one id
    purged = acidctl("purge", "--yes", "--jobs", "8", "-o", "jsonl", tree)
    assert [line["result"] for line in purged.lines()] == ["purged"] * 20
    assert not list(tree.glob(f"*/{TRASH}"))


def test_a_failing_location_does_not_stop_the_others(acidctl, tree: Path) -> None:  # type: ignore[no-untyped-def]
    make(tree / "day=03", "_tmp_7/delete_delta_1_5/x", "_tmp_7/_publish.json", "delta_1_5")
    lock_by(tree / "day=11", Owner("elsewhere", 1, 1, "etl", 0.0))
    done = acidctl("clean", "--yes", tree)
    assert done.status == 9
    assert left(tree) == 2
    assert "18 cleaned" in done.err
    assert "2 failed" in done.err
    last = [line for line in done.err.splitlines() if "failed: " in line][-1]
    assert "day=03" in last
    assert "day=11" in last


def test_what_many_locations_keep_is_told_by_reason(acidctl, tree: Path) -> None:  # type: ignore[no-untyped-def]
    for day in range(20, 25):
        make(tree / f"day={day:02}", "base_5", "delta_4_4_0")
    age(tree.parent, 2)
    for partition in tree.iterdir():
        age(partition, 2)
    found = acidctl("clean", "--dry-run", "-o", "jsonl", tree)
    assert found.err.count("kept back: ") == 1
    assert "kept back: 25 entries in 25 locations, as in " in found.err
    folded = acidctl("clean", "--dry-run", tree)
    assert folded.out == "nothing to clean yet in 25 locations: too young\n"
    assert "may go after" in folded.err
    assert [len(line["waiting"]) for line in found.lines()] == [1] * 25
    assert acidctl("clean", "--dry-run", "-v", tree).err.count("kept back: delta_4_4_0") == 25


def test_a_plan_over_two_hundred_tables_is_one_screen(acidctl, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    for number in range(200):
        make(tmp_path / f"t{number:03}", "base_2", "delta_1_1", "delta_2_2")
        age(tmp_path / f"t{number:03}", 48)
    make(tmp_path / "t007", "delta_1_2")
    age(tmp_path / "t007", 48)
    found = acidctl("clean", "--dry-run", tmp_path)
    lines = found.out.splitlines()
    assert len(lines) + len(found.err.splitlines()) < 50
    assert lines[0].startswith("to remove: 200 tables, 401 entries, 802 files, ")
    assert lines[2].startswith(str(tmp_path / "t007")), "the largest first"
    assert "and 160 tables more, 320 entries" in lines[-1]
    every = acidctl("clean", "--dry-run", "-v", tmp_path).out
    assert every.count("delta_1_1") == every.count("delta_2_2") == 200
    done = acidctl("clean", "--yes", tmp_path)
    assert "200 locations: 200 cleaned" in done.err
    assert len(done.out.splitlines()) < 90
    assert acidctl("clean", "--yes", tmp_path).out == "nothing to clean in 200 locations\n"


def test_many_entries_of_a_plan_are_told_by_reason(acidctl, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    table = make(tmp_path / "t", "base_30", *(f"delta_{i}_{i}" for i in range(1, 31)))
    age(table, 48)
    shown = acidctl("clean", "--dry-run", table).out.splitlines()
    assert shown[2].split("  ")[0] == "delta 1-30"
    assert "delta_17_17" in acidctl("clean", "--dry-run", "-v", table).out
    plan = tmp_path / "plan.json"
    assert acidctl("clean", "--plan", plan, table).status == 0
    assert "delta_17_17" in plan.read_text()


@pytest.mark.parametrize(
    ("options", "typed", "is_done"),
    [
        (("--no-trash",), "y\n", False),
        (("--no-trash",), "t\n", True),
        ((), "y\n", True),
        (("-q",), "y\n", False),
    ],
)
def test_for_good_the_name_is_typed(  # type: ignore[no-untyped-def]
    terminal, tmp_path: Path, options: tuple[str, ...], typed: str, is_done: bool
) -> None:
    table = make(tmp_path / "t", "base_2", "delta_1_1")
    age(table, 48)
    status, shown = terminal.run("clean", *options, table, typed=typed)
    assert (status == 0, not (table / "delta_1_1").exists()) == (is_done, is_done), shown


def test_of_many_tables_the_number_is_typed(terminal, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    for number in range(21):
        age(make(tmp_path / f"t{number}", "base_2", "delta_1_1"), 48)
    assert terminal.run("clean", tmp_path, typed="y\n")[0] != 0
    assert (tmp_path / "t0" / "delta_1_1").exists()
    status, shown = terminal.run("clean", tmp_path, typed="21\n")
    assert (status, (tmp_path / "t0" / "delta_1_1").exists()) == (0, False), shown
    assert terminal.run("purge", tmp_path, typed="y\n")[0] != 0
    assert terminal.run("purge", tmp_path, typed="21\n")[0] == 0


def test_restore_proves_the_state(acidctl, table: Path) -> None:  # type: ignore[no-untyped-def]
    assert acidctl("clean", "--yes", table).status == 0
    found = acidctl("restore", table)
    assert found.status == 0
    assert "the state is as before the cleaning" in found.out
    assert acidctl("clean", "--yes", table).status == 0
    make(table, "delta_11_11_0", "base_10")
    found = acidctl("restore", "-o", "json", table)
    assert found.status == 0
    assert found.one()["changes"] == [
        "base_10 came", "base_9 was current and is obsolete", "delta_10_10_0 was current and is obsolete",
        "delta_11_11_0 came",
    ]  # fmt: skip


def test_restore_refuses_what_was_altered(acidctl, table: Path) -> None:  # type: ignore[no-untyped-def]
    assert acidctl("clean", "--yes", "--older-than", "1h", table).status == 0
    (run,) = (table / TRASH).iterdir()
    (run / "base_5" / "bucket_00000").unlink()
    found = acidctl("restore", table)
    assert found.status == 9
    assert "other files" in found.err
    assert "base_5" not in names(table)


def test_purge_takes_only_runs_older_than_asked(acidctl, table: Path) -> None:  # type: ignore[no-untyped-def]
    assert acidctl("clean", "--yes", table).status == 0
    (run,) = (table / TRASH).iterdir()
    run.rename(run.with_name("20200101T000000.000Z-0badc0de"))
    age(table, 24 * 365, TRASH)
    assert acidctl("clean", "--yes", "--older-than", "1h", table).status == 0
    found = acidctl("purge", "--dry-run", "--older-than", "7d", "-o", "jsonl", table)
    assert [line["trashRun"] for line in found.lines()] == ["20200101T000000.000Z-0badc0de"]
    assert acidctl("purge", "--older-than", "7d", table).status == 7
    assert acidctl("purge", "--yes", "--older-than", "7d", table).status == 0
    assert len(list((table / TRASH).iterdir())) == 1
    assert "nothing that old to purge" in acidctl("purge", "--yes", "--older-than", "7d", table).err


def test_a_damaged_run_does_not_stop_the_others(acidctl, table: Path) -> None:  # type: ignore[no-untyped-def]
    acidctl(*CLEAN_NOW, table)
    (sound,) = (path.name for path in (table / TRASH).iterdir())
    damaged = table / TRASH / "29991231T000000.000Z-00000000"
    (damaged / "base_1").mkdir(parents=True)
    (damaged / "manifest.json").write_text("[")
    assert "not a manifest of acidctl" in acidctl("restore", "--list", table).out
    refused = acidctl("restore", table)  # the newest is meant: it may have taken something away
    assert (refused.status, damaged.name in refused.err) == (4, True)
    assert acidctl("restore", "--run", sound, table).status == 0
    assert {"base_5", "delta_8_8_0"} <= names(table)
    acidctl(*CLEAN_NOW, table)
    purged = acidctl("purge", "--yes", table)
    assert (purged.status, damaged.name in purged.err) == (4, True)
    assert [path.name for path in (table / TRASH).iterdir()] == [damaged.name]
    assert (damaged / "base_1").is_dir()


SLOW = """
import sys, time
from acidctl.storage.local.filesystem import LocalFileSystem
rename = LocalFileSystem.rename

def slow(self, source, target):
    rename(self, source, target)
    if "delta_" in source:
        print("moved", flush=True)
        time.sleep(0.4)

LocalFileSystem.rename = slow
from acidctl.cli.main import main
main(sys.argv[1:])
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_a_signal_stops_between_two_entries(acidctl, tmp_path: Path, number: signal.Signals) -> None:  # type: ignore[no-untyped-def]
    for name in ("a", "b", "c"):
        make(tmp_path / "x.db" / name, "base_9", *(f"delta_{i}_{i}_0" for i in range(1, 9)))
    age(tmp_path / "x.db", 30)
    command = [sys.executable, "-c", SLOW, "clean", "--yes", "--lock", "--jobs", "1", str(tmp_path / "x.db")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        while process.stdout.readline() != "moved\n":
            pass
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert " of 8 moved to the trash" in out
    assert err.splitlines()[-1] == "error: interrupted; run it again: it plans what is left"
    assert not list(tmp_path.rglob(LOCK))
    assert names(tmp_path / "x.db" / "c") == names(tmp_path / "x.db" / "b") == {
        "base_9", *(f"delta_{i}_{i}_0" for i in range(1, 9)),
    }  # fmt: skip
    moved = 8 - len(list((tmp_path / "x.db" / "a").glob("delta_*")))
    assert 1 <= moved < 8
    assert acidctl("restore", tmp_path / "x.db" / "a").status == 0
    assert len(list((tmp_path / "x.db" / "a").glob("delta_*"))) == 8


def test_a_terminal_is_asked(table: Path) -> None:
    command = [sys.executable, "-m", "acidctl", "clean", str(table)]
    assert on_terminal(command, "n\n")[0] == 7
    assert "delta_4_4_0" in names(table)
    status, out = on_terminal(command, "y\n")
    assert status == 0
    assert "1 moved to the trash" in out
    assert "delta_4_4_0" not in names(table)


def test_without_a_terminal_it_never_waits(table: Path) -> None:
    command = [sys.executable, "-m", "acidctl", "clean", "-o", "json", str(table)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.wait(60) == 7  # its standard input stays open
        assert process.stderr is not None
        assert b"--yes" in process.stderr.read()


def test_two_cleanings_at_once_lose_nothing(acidctl, tree: Path) -> None:  # type: ignore[no-untyped-def]
    """With locks they never meet; without them one of two that do says so."""
    for lock in ([], ["--lock"]):
        for day in tree.iterdir():
            make(day, "delta_4_4_0")
            age(day, 30, "delta_4_4_0")
        command = [sys.executable, "-m", "acidctl", "clean", "--yes", "-o", "jsonl", *lock, str(tree)]
        racers = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(3)]
        ended = [(*racer.communicate(timeout=60), racer.returncode) for racer in racers]
        assert all(status in (0, 9) for *_, status in ended), ended
        results = [json.loads(line)["result"] for out, *_ in ended for line in out.splitlines()]
        assert results.count("cleaned") == 20
        assert left(tree) == 0
        assert all((day / "base_5" / "bucket_00000").exists() for day in tree.iterdir())
        assert not list(tree.rglob(LOCK))
        assert acidctl("purge", "--yes", tree).status == 0


def test_a_location_that_is_named_twice(acidctl, tree: Path) -> None:  # type: ignore[no-untyped-def]
    done = acidctl("clean", "--yes", "-o", "jsonl", tree, tree / "day=03", f"{tree}/../orders")
    assert done.status == 0
    assert len(done.lines()) == 20
    assert acidctl("purge", "--yes", tree, tree).status == 0


def test_the_staging_of_a_table_with_partitions(acidctl, tree: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    """Hive puts it into the table's directory, which is not a location."""
    make(tree, ".hive-staging_1/-ext-10000/000000_0", "_tmp.delta_7_7/x", "_tmp_1/x")
    age(tree, 30)
    make(tree, ".hive-staging_2/x")
    assert acidctl("clean", "--yes", tree).status == 0
    file = tmp_path / "plan"
    found = acidctl("clean", "--plan", file, "--leftovers", "-o", "jsonl", tree.parent)
    assert found.status == 0
    (record,) = (line for line in found.lines() if line["removals"])
    assert record["location"] == str(tree)
    assert [removal["name"] for removal in record["removals"]] == [".hive-staging_1"]
    assert [waiting["name"] for waiting in record["waiting"]] == [".hive-staging_2"]
    # A path below the table is no reason to touch what is above it.
    below = acidctl("clean", "--dry-run", "--leftovers", "-o", "jsonl", tree / "day=03")
    assert [line["location"] for line in below.lines()] == [str(tree / "day=03")]
    assert acidctl("clean", "--yes", "--apply", file).status == 0
    assert not (tree / ".hive-staging_1").exists()
    assert (tree / ".hive-staging_2" / "x").exists()
    assert acidctl("restore", tree).status == 0
    make(tree, ".hive-staging_1/new")
    assert acidctl("clean", "--yes", "--leftovers", "--exit-code", tree).status == 12
    age(tree, 30, ".hive-staging_1")
    assert acidctl("clean", "--yes", "--leftovers", "--lock", tree).status == 0
    assert not (tree / ".hive-staging_1").exists()
    purged = acidctl("purge", "--yes", "-o", "jsonl", tree)
    assert len(purged.lines()) == 21
    assert names(tree) == {f"day={day:02}" for day in range(20)} | {".hive-staging_2", "_tmp.delta_7_7", "_tmp_1"}


def test_entries_that_are_folded_are_said_to_have_names(acidctl, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    table = make(tmp_path / "t", "base_90", *(f"delta_{n}_{n}_0" for n in range(1, 31)))
    age(table, 48)
    assert acidctl("clean", "--dry-run", table).err.count("-v names every entry") == 1
    assert "names every entry" not in acidctl("-v", "clean", "--dry-run", table).err
    assert "names every entry" not in acidctl("clean", "--dry-run", "-o", "json", table).err


def test_what_waits_in_many_locations_is_added_up(acidctl, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    tree = tmp_path / "sales.db" / "orders"
    for day in range(20):
        make(tree / f"day={day:02}", "base_5", "delta_4_4_0")
    waits = [one for found in acidctl("clean", "--dry-run", "-o", "json", tree).json() for one in found["waiting"]]
    assert len(waits) == 20
    shown = acidctl("clean", "--dry-run", tree).err
    size = 20 * sum(file.stat().st_size for file in (tree / "day=00" / "delta_4_4_0").rglob("*"))
    assert re.search(rf"kept back: 20 entries in 20 locations, .*\n(.*\n)*note: together {size} B free after ", shown)


def test_a_purge_says_that_nothing_is_so_old(acidctl, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    table = make(tmp_path / "t", "base_5")
    assert "nothing that old to purge" in acidctl("purge", "--older-than", "7d", table).err
    assert "nothing to purge" in acidctl("purge", table).err


def test_what_is_too_young_may_go_at_the_time_that_ls_names(acidctl, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    table = make(tmp_path / "t", "base_2", "delta_1_1")
    in_list = re.search(r"11 B free after .* UTC", acidctl("ls", table).out)
    in_plan = re.search(r"11 B free after .* UTC", acidctl("clean", "-n", table).out)
    assert in_list
    assert in_plan
    assert in_list[0] == in_plan[0]
