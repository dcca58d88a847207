"""`acidctl repair`: what it shows, whom it asks, what it refuses, how it ends."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from support.files.acid_files import insert, write_by_pyorc
from support.repairing import interrupted, streamed, tree
from support.tables import CLEAN_NOW, age
from support.validating import healthy

from acidctl.base.errors import StorageError
from acidctl.orc.tail import KEY_INDEX
from acidctl.repair.backup import BACKUP
from acidctl.storage.local.filesystem import LocalFileSystem

DELTA = "delta_0000001_0000001_0000"
KINDS = ("key-index", "flush-length", "nested", "empty-result", "version-file")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    write_by_pyorc(tmp_path / "t" / DELTA, [insert(1, 0)], metadata={KEY_INDEX: None})
    return tmp_path / "t"


def test_repair_is_shown_then_done_then_undone_then_purged(acidctl: Any, table: Path) -> None:
    before = tree(table)
    shown = acidctl("repair", "--dry-run", table)
    assert (shown.status, tree(table)) == (0, before)
    assert "1 repair" in shown.out
    assert "it is missing" in shown.out
    assert not (table / BACKUP).exists()
    done = acidctl("repair", "--yes", table)
    assert done.status == 0
    assert "acidctl restore --run" in done.err
    assert acidctl("validate", "--deep", table).status == 0
    assert "key-index" in acidctl("restore", "--list", table).out
    assert acidctl("restore", table).status == 0
    assert tree(table) == before
    assert acidctl("restore", table).status == 3
    acidctl("repair", "--yes", table)
    assert "purged: " in acidctl("purge", "--yes", table).out
    assert not (table / BACKUP).exists()


def test_one_run_mends_all_kinds(acidctl: Any, table: Path) -> None:
    (table / DELTA / "_orc_acid_version").unlink()
    streamed(table / "delta_0000002_0000004" / "bucket_00000", [insert(2, 0)], [insert(3, 0)])
    age(table, 2)
    before = tree(table)
    done = acidctl("repair", "-y", "-o", "json", table).one()
    assert {fix["kind"] for fix in done["fixes"]} == {"key-index", "flush-length", "version-file"}
    assert acidctl("restore", "--list", "-o", "json", table).one()["repairRun"] == done["run"]
    assert acidctl("repair", "-y", "-o", "json", table).one()["result"] == "nothing-to-do"
    assert acidctl("restore", "--run", done["run"], table).status == 0
    assert tree(table) == before


def test_locations_of_a_warehouse_share_one_run(acidctl: Any, table: Path, tmp_path: Path) -> None:
    write_by_pyorc(tmp_path / "v" / "p=1" / DELTA, [insert(1, 0)], metadata={KEY_INDEX: None})
    before = tree(tmp_path)
    runs = {line["run"] for line in acidctl("repair", "-y", "-o", "jsonl", tmp_path).lines()}
    assert len(runs) == 1
    assert acidctl("restore", "--yes", "--run", *runs, tmp_path).status == 0
    assert tree(tmp_path) == before


def test_a_repair_that_needs_offline_stops_no_other(acidctl: Any, table: Path, tmp_path: Path) -> None:
    gap = tmp_path / "gap" / "delta_0000002_0000002_0000"
    write_by_pyorc(gap / gap.name, [insert(2, 0)])
    age(tmp_path / "gap", 2)
    done = acidctl("repair", "-y", "-o", "jsonl", table, tmp_path / "gap")
    results = {line["location"]: line["result"] for line in done.lines() if line["result"] != "planned"}
    assert results[str(table)] == "repaired"
    assert acidctl("validate", "--deep", table).status == 0


def test_a_damaged_backup_takes_no_answer_of_a_purge(acidctl: Any, table: Path) -> None:
    (repaired,) = [line["run"] for line in acidctl("repair", "-y", "-o", "jsonl", table).lines()]
    write_by_pyorc(table / "base_0000001", [insert(1, 0)])
    cleaned = acidctl(*CLEAN_NOW, "--assume-committed=0s", "-o", "json", table).one()["trashRun"]
    damaged = table / BACKUP / "20200101T000000.000Z-aaaaaaaa"
    damaged.mkdir()
    (damaged / "manifest.json").write_text("{")
    purged = acidctl("purge", "-y", "-o", "jsonl", table)
    lines = [line for line in purged.lines() if line["result"] == "purged"]
    gone = {line.get("trashRun") or line["repairRun"] for line in lines}
    assert gone == {repaired, cleaned}
    assert purged.status != 0, "the damaged one is named"
    assert [path.name for path in (table / BACKUP).iterdir()] == [damaged.name]


def test_an_interrupted_repair_that_is_to_be_purged_stays(acidctl: Any, table: Path) -> None:
    interrupted(table)
    (run,) = (table / BACKUP).iterdir()
    kept = acidctl("purge", "-y", "--run", run.name, table)
    assert kept.status == 0, kept.err
    assert f"{run.name} stays" in kept.err
    assert run.is_dir()


def test_a_cleaning_and_a_repair_are_undone_by_their_ids(acidctl: Any, table: Path) -> None:
    (repaired,) = [line["run"] for line in acidctl("repair", "-y", "-o", "jsonl", table).lines()]
    write_by_pyorc(table / "base_0000001", [insert(1, 0)])
    cleaned = acidctl(*CLEAN_NOW, "--assume-committed=0s", "-o", "json", table).one()["trashRun"]
    listed = acidctl("restore", "--list", "-o", "json", table).json()
    assert [line.get("trashRun") or line["repairRun"] for line in listed] == [repaired, cleaned]
    assert acidctl("restore", "--run", cleaned, table).status == 0
    assert acidctl("restore", "--run", repaired, table).status == 0
    assert acidctl("restore", "--list", "-o", "json", table).json() == []


def test_without_a_terminal_nothing_is_done(acidctl: Any, table: Path) -> None:
    before = tree(table)
    refused = acidctl("repair", "--only", "key-index", table)
    assert (refused.status, tree(table)) == (7, before)
    assert "give --yes" in refused.err
    acidctl("repair", "--only", "key-index", "-y", table)
    assert acidctl("purge", table).status == 7
    assert (table / BACKUP).exists()


@pytest.mark.parametrize("kind", KINDS)
def test_healthy_table_has_nothing_to_repair(kind: str, acidctl: Any, tmp_path: Path) -> None:
    table = healthy(tmp_path / "t")
    found = acidctl("repair", "--only", kind, "--yes", table)
    assert (found.status, "nothing to repair" in found.out) == (0, True)
    assert not (table / BACKUP).exists()


@pytest.mark.parametrize("kind", KINDS)
def test_the_demo_needs_no_repair(kind: str, acidctl: Any, tmp_path: Path) -> None:
    assert acidctl("demo", tmp_path / "demo").status == 0
    found = acidctl("repair", "--only", kind, "--dry-run", "--force", "-o", "json", tmp_path / "demo")
    assert found.one()["result"] == "nothing-to-do"


def test_json_tells_plan_result_and_undo(acidctl: Any, table: Path) -> None:
    planned = acidctl("repair", "--only", "key-index", "-n", "-o", "json", table).one()
    assert planned["result"] == "planned"
    assert (planned["fixes"][0]["kind"], planned["fixes"][0]["path"]) == ("key-index", f"{DELTA}/bucket_00000")
    done = acidctl("repair", "--only", "key-index", "-y", "-o", "jsonl", table)
    assert [line["result"] for line in done.lines()] == ["repaired"]
    (kept,) = acidctl("restore", "--list", "-o", "jsonl", table).lines()
    assert kept["repairRun"] == done.lines()[0]["run"]
    assert acidctl("restore", "-o", "json", table).one()["result"] == "restored"
    assert acidctl("repair", "--only", "nested", "-y", "-o", "json", table).one()["result"] == "nothing-to-do"


@pytest.mark.parametrize("below", [f"/{DELTA}", f"/{DELTA}/bucket_00000"])
def test_a_directory_or_a_file_is_not_a_location(below: str, acidctl: Any, table: Path) -> None:
    before = tree(table)
    done = acidctl("repair", "--only", "key-index", "-y", f"{table}{below}")
    assert (done.status in (2, 3), tree(table)) == (True, before)
    assert not (table / BACKUP).exists()


def test_every_location_of_a_warehouse_is_repaired(acidctl: Any, table: Path, tmp_path: Path) -> None:
    healthy(tmp_path / "u")
    write_by_pyorc(tmp_path / "v" / "p=1" / DELTA, [insert(1, 0)], metadata={KEY_INDEX: None})
    done = acidctl("repair", "--only", "key-index", "-y", "-o", "jsonl", tmp_path)
    assert [(line["location"], line["result"]) for line in done.lines()] == [
        (str(tmp_path / "u"), "nothing-to-do"),
        (str(table), "repaired"),
        (str(tmp_path / "v" / "p=1"), "repaired"),
    ]


def test_what_is_refused_is_said(acidctl: Any, table: Path) -> None:
    (table / DELTA / "bucket_00001").write_bytes(b"torn")
    found = acidctl("repair", "--only", "key-index", "-y", table)
    assert found.status == 7
    assert "bucket_00001 cannot be repaired safely" in found.err
    assert "1 repair done" in found.out
    found = acidctl("repair", "--only", "key-index", "-y", "-o", "json", table)
    assert found.one()["result"] == "refused"
    assert found.one()["refused"][0]["path"] == f"{DELTA}/bucket_00001"


def test_file_of_a_living_writer_is_refused(acidctl: Any, tmp_path: Path) -> None:
    table = tmp_path / "t"
    streamed(table / "delta_0000001_0000003" / "bucket_00000", [insert(1, 0)], [insert(2, 0)])
    before = tree(table)
    found = acidctl("repair", "--only", "flush-length", "-y", table)
    assert (found.status, tree(table)) == (7, before)
    assert "its writer may be at work" in found.err
    age(table, 2)
    assert acidctl("repair", "--only", "flush-length", "-y", table).status == 0
    assert acidctl("restore", table).status == 0
    age(table, 0)
    assert acidctl("repair", "--only", "flush-length", "-y", "--force", table).status == 0


def test_a_gap_asks_for_offline(acidctl: Any, tmp_path: Path) -> None:
    table, base = tmp_path / "t", "base_0000002"
    write_by_pyorc(table / base / base, [insert(1, 0)])
    age(table, 2)
    before = tree(table)
    found = acidctl("repair", "--only", "nested", "-y", table)
    assert (found.status, tree(table)) == (7, before)
    assert "give --offline" in found.err
    assert acidctl("repair", "--only", "nested", "-y", "--offline", table).status == 0
    assert (table / base / "bucket_00000").is_file()
    assert "V17" not in acidctl("validate", table).out


def test_what_was_interrupted_is_told_and_finished(acidctl: Any, table: Path) -> None:
    interrupted(table)
    (table / BACKUP / "lock.json").unlink(missing_ok=True)
    shown = acidctl("repair", "--only", "key-index", "-n", table)
    assert "was interrupted: it is finished first" in shown.err
    done = acidctl("repair", "--only", "version-file", "-y", table)
    assert (done.status, "finished" in done.out) == (0, True)
    assert acidctl("repair", "--only", "key-index", "-y", "-o", "json", table).one()["result"] == "nothing-to-do"
    assert acidctl("restore", table).status == 0


def test_purge_keeps_an_interrupted_repair(acidctl: Any, table: Path) -> None:
    interrupted(table)
    found = acidctl("purge", "-y", table)
    assert "stays" in found.err
    assert (table / BACKUP).exists()


def test_purge_finishes_what_an_interrupted_purge_began(acidctl: Any, table: Path) -> None:
    """The manifest goes first; what is left has none, and its size counts no less."""
    assert acidctl("repair", "--only", "key-index", "-y", table).status == 0
    (manifest,) = table.glob(f"{BACKUP}/*/manifest.json")
    manifest.unlink()
    assert "incomplete" in acidctl("purge", "-n", table).out
    assert "purged: " in acidctl("purge", "-y", table).out
    assert not (table / BACKUP).exists()


def test_what_is_finished_first_is_not_refused(acidctl: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed between its two renames, a repair leaves a file that was just written, as by a writer at work."""
    table = tmp_path / "streamed"
    streamed(table / "delta_0000001_0000003" / "bucket_00000", [insert(1, 0)], [insert(2, 0)])
    age(table, 2)
    rename = LocalFileSystem.rename

    def dies(fs: LocalFileSystem, source: str, target: str) -> None:
        if source.endswith("_flush_length"):
            raise KeyboardInterrupt
        rename(fs, source, target)

    with monkeypatch.context() as patch:
        patch.setattr(LocalFileSystem, "rename", dies)
        assert acidctl("repair", "--only", "flush-length", "-y", table).status == 130
    done = acidctl("repair", "--only", "flush-length", "-y", table)
    assert (done.status, "finished" in done.out, "writer may be at work" in done.err) == (0, True, False)


def test_path_that_is_no_table_is_told_with_status_3(acidctl: Any, table: Path, tmp_path: Path) -> None:
    assert acidctl("repair", "--only", "key-index", tmp_path / "nowhere").status == 3
    (tmp_path / "file").write_text("x")
    assert acidctl("repair", "--only", "key-index", tmp_path / "file").status == 3
    found = acidctl("repair", "--only", "key-index", "-y", tmp_path / "nowhere", table)
    assert (found.status, "1 repair done" in found.out) == (3, False)
    assert acidctl("repair").status == 2
    assert acidctl("repair", "--only", "everything", table).status == 2


def test_hostile_names_are_escaped(acidctl: Any, tmp_path: Path) -> None:
    table = tmp_path / "a\x1b[31mb\nc"
    write_by_pyorc(table / DELTA, [insert(1, 0)], metadata={KEY_INDEX: None})
    found = acidctl("repair", "--only", "key-index", "-y", table)
    assert found.status == 0
    assert "\x1b[31m" not in found.out + found.err
    assert "\x1b[31m" not in acidctl("restore", table).out


def test_denied_staging_fails_and_changes_nothing(acidctl: Any, table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from acidctl.base.errors import AccessError
    from acidctl.storage.local.filesystem import LocalFileSystem

    def denied(self: object, path: str, *, below: str = "") -> None:
        raise AccessError(f"cannot create {path}", "permission denied")

    monkeypatch.setattr(LocalFileSystem, "make_dirs", denied)
    before = tree(table)
    assert acidctl("repair", "--only", "key-index", "-y", table).status == 5
    assert tree(table) == before


def test_full_disk_fails_and_changes_nothing(acidctl: Any, table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from acidctl.base.errors import StorageError
    from acidctl.storage.local.filesystem import LocalFileSystem

    real = LocalFileSystem.open_output

    def full(self: LocalFileSystem, path: str, *, private: bool = False) -> Any:
        if "/new/" in path:
            raise StorageError(f"cannot write {path}", "no space left on the device")
        return real(self, path, private=private)

    monkeypatch.setattr(LocalFileSystem, "open_output", full)
    before = tree(table)
    assert acidctl("repair", "--only", "key-index", "-y", table).status == 6
    assert tree(table) == before
    assert not (table / BACKUP).exists()


def test_the_manifest_names_what_was_done(acidctl: Any, table: Path) -> None:
    acidctl("repair", "--only", "key-index", "-y", table)
    (manifest,) = (table / BACKUP).glob("*/manifest.json")
    assert json.loads(manifest.read_text())["paths"] == [f"{DELTA}/bucket_00000"]


def test_a_repair_of_several_places_is_undone_by_its_line(acidctl: Any, table: Path, tmp_path: Path) -> None:
    other = "delta_0000002_0000002_0000"
    write_by_pyorc(tmp_path / "v" / other, [insert(2, 0)], metadata={KEY_INDEX: None})
    before = tree(tmp_path)
    done = acidctl("repair", "-y", table, tmp_path / "v")
    (line,) = (line for line in done.err.splitlines() if line.startswith("note: undo: "))
    words = shlex.split(line.partition("undo: ")[2])
    assert words[:3] == ["acidctl", "restore", "--run"]
    assert words[4:] == [str(table), str(tmp_path / "v")]
    assert acidctl(*words[1:], "--yes").status == 0
    assert tree(tmp_path) == before
    write_by_pyorc(tmp_path / "w" / other, [insert(2, 0)], metadata={KEY_INDEX: None})
    write_by_pyorc(tmp_path / "x" / other, [insert(2, 0)], metadata={KEY_INDEX: None})
    places = [tmp_path / name for name in "tvwx"]
    assert " LOCATION..." in acidctl("repair", "-y", *places).err


@pytest.mark.parametrize("names", [("t", "v"), ("v", "t")])
def test_what_stays_broken_hides_no_failure(
    acidctl: Any, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: tuple[str, str]
) -> None:
    (table / DELTA / "bucket_00001").write_bytes(b"torn")
    write_by_pyorc(tmp_path / "v" / DELTA, [insert(1, 0)], metadata={KEY_INDEX: None})
    usual = LocalFileSystem.make_dirs

    def fail(self: LocalFileSystem, path: str, **more: Any) -> None:
        if path.startswith(str(tmp_path / "v")):
            raise StorageError(f"cannot make {path}", "the disk fails")
        usual(self, path, **more)

    monkeypatch.setattr(LocalFileSystem, "make_dirs", fail)
    found = acidctl("repair", "--only", "key-index", "-y", *(tmp_path / name for name in names))
    assert "cannot be repaired safely" in found.err
    assert found.status == StorageError.exit_status
