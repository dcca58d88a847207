"""`acidctl repair`: what it shows, whom it asks, what it refuses, how it ends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.files.acid_files import insert, write_by_pyorc
from support.repairing import interrupted, streamed, tree
from support.tables import age
from support.validating import healthy

from acidctl.orc.tail import KEY_INDEX
from acidctl.repair.backup import BACKUP
from acidctl.storage.local.filesystem import LocalFileSystem

DELTA = "delta_0000001_0000001_0000"
KINDS = ("key-index", "flush-length", "nested", "version-file")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    write_by_pyorc(tmp_path / "t" / DELTA, [insert(1, 0)], metadata={KEY_INDEX: None})
    return tmp_path / "t"


@pytest.mark.parametrize("kind", KINDS)
def test_healthy_table_has_nothing_to_repair(kind: str, acidctl: Any, tmp_path: Path) -> None:
    table = healthy(tmp_path / "t")
    found = acidctl("repair", kind, "--yes", table)
    assert (found.status, "nothing to repair" in found.out) == (0, True)
    assert not (table / BACKUP).exists()


@pytest.mark.parametrize("kind", KINDS)
def test_the_demo_needs_no_repair(kind: str, acidctl: Any, tmp_path: Path) -> None:
    assert acidctl("demo", tmp_path / "demo").status == 0
    force = () if kind == "key-index" else ("--force",)
    assert (
        acidctl("repair", kind, "--dry-run", *force, tmp_path / "demo", "-o", "json").one()["result"] == "nothing-to-do"
    )


def test_json_tells_plan_result_and_undo(acidctl: Any, table: Path) -> None:
    planned = acidctl("repair", "key-index", "-n", "-o", "json", table).one()
    assert (planned["result"], planned["repair"]) == ("planned", "key-index")
    assert planned["fixes"][0]["path"] == f"{DELTA}/bucket_00000"
    done = acidctl("repair", "key-index", "-y", "-o", "jsonl", table)
    assert [line["result"] for line in done.lines()] == ["repaired"]
    assert [line["run"] for line in acidctl("repair", "undo", "--list", "-o", "jsonl", table).lines()] == [
        done.lines()[0]["run"]
    ]
    assert acidctl("repair", "undo", "-o", "json", table).one()["result"] == "undone"
    assert acidctl("repair", "nested", "-y", "-o", "json", table).one()["result"] == "nothing-to-do"


@pytest.mark.parametrize("below", ["", f"/{DELTA}", f"/{DELTA}/bucket_00000"])
def test_a_table_a_directory_or_a_file(below: str, acidctl: Any, table: Path) -> None:
    done = acidctl("repair", "key-index", "-y", "-o", "json", f"{table}{below}")
    assert (done.status, done.one()["location"]) == (0, str(table))
    assert (table / BACKUP).is_dir()


def test_every_location_of_a_warehouse_is_repaired(acidctl: Any, table: Path, tmp_path: Path) -> None:
    healthy(tmp_path / "u")
    write_by_pyorc(tmp_path / "v" / "p=1" / DELTA, [insert(1, 0)], metadata={KEY_INDEX: None})
    done = acidctl("repair", "key-index", "-y", "-o", "jsonl", tmp_path)
    assert [(line["location"], line["result"]) for line in done.lines()] == [
        (str(tmp_path / "u"), "nothing-to-do"),
        (str(table), "repaired"),
        (str(tmp_path / "v" / "p=1"), "repaired"),
    ]


def test_what_is_refused_is_said(acidctl: Any, table: Path) -> None:
    (table / DELTA / "bucket_00001").write_bytes(b"torn")
    found = acidctl("repair", "key-index", "-y", table)
    assert found.status == 7
    assert "bucket_00001 cannot be repaired safely" in found.err
    assert "1 repair done" in found.out
    found = acidctl("repair", "key-index", "-y", "-o", "json", table)
    assert found.one()["result"] == "refused"
    assert found.one()["refused"][0]["path"] == f"{DELTA}/bucket_00001"


def test_file_of_a_living_writer_is_refused(acidctl: Any, tmp_path: Path) -> None:
    table = tmp_path / "t"
    streamed(table / "delta_0000001_0000003" / "bucket_00000", [insert(1, 0)], [insert(2, 0)])
    before = tree(table)
    found = acidctl("repair", "flush-length", "-y", table)
    assert (found.status, tree(table)) == (7, before)
    assert "its writer may be at work" in found.err
    age(table, 2)
    assert acidctl("repair", "flush-length", "-y", table).status == 0
    assert acidctl("repair", "undo", table).status == 0
    age(table, 0)
    assert acidctl("repair", "flush-length", "-y", "--force", table).status == 0


def test_a_gap_asks_for_offline(acidctl: Any, tmp_path: Path) -> None:
    table, base = tmp_path / "t", "base_0000002"
    write_by_pyorc(table / base / base, [insert(1, 0)])
    age(table, 2)
    before = tree(table)
    found = acidctl("repair", "nested", "-y", table)
    assert (found.status, tree(table)) == (7, before)
    assert "give --offline" in found.err
    assert acidctl("repair", "nested", "-y", "--offline", table / base).status == 0
    assert (table / base / "bucket_00000").is_file()
    assert "V17" not in acidctl("validate", table).out


def test_what_was_interrupted_is_told_and_finished(acidctl: Any, table: Path) -> None:
    interrupted(table)
    (table / BACKUP / "lock.json").unlink(missing_ok=True)
    shown = acidctl("repair", "key-index", "-n", table)
    assert "was interrupted: it is finished first" in shown.err
    done = acidctl("repair", "version-file", "-y", table)
    assert (done.status, "finished" in done.out) == (0, True)
    assert "nothing to repair" in acidctl("repair", "key-index", "-y", table).out
    assert acidctl("repair", "undo", table).status == 0


def test_forget_keeps_what_is_not_done(acidctl: Any, table: Path) -> None:
    interrupted(table)
    found = acidctl("repair", "forget", "-y", table)
    assert "it stays" in found.out
    assert (table / BACKUP).exists()


def test_forget_finishes_what_an_interrupted_one_began(acidctl: Any, table: Path) -> None:
    """The manifest goes first; what is left has none, and its size counts no less."""
    assert acidctl("repair", "key-index", "-y", table).status == 0
    (manifest,) = table.glob(f"{BACKUP}/*/manifest.json")
    manifest.unlink()
    assert "what an interrupted run left" in acidctl("repair", "forget", "-n", table).out
    assert "1 backup deleted" in acidctl("repair", "forget", "-y", table).out
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
        assert acidctl("repair", "flush-length", "-y", table).status == 130
    done = acidctl("repair", "flush-length", "-y", table)
    assert (done.status, "finished" in done.out, "writer may be at work" in done.err) == (0, True, False)


def test_path_that_is_no_table_is_told_with_status_3(acidctl: Any, table: Path, tmp_path: Path) -> None:
    assert acidctl("repair", "key-index", tmp_path / "nowhere").status == 3
    (tmp_path / "file").write_text("x")
    assert acidctl("repair", "key-index", tmp_path / "file").status == 3
    found = acidctl("repair", "key-index", "-y", tmp_path / "nowhere", table)
    assert (found.status, "1 repair done" in found.out) == (3, False)
    assert acidctl("repair").status == 2
    assert acidctl("repair", "everything", table).status == 2


def test_hostile_names_are_escaped(acidctl: Any, tmp_path: Path) -> None:
    table = tmp_path / "a\x1b[31mb\nc"
    write_by_pyorc(table / DELTA, [insert(1, 0)], metadata={KEY_INDEX: None})
    found = acidctl("repair", "key-index", "-y", table)
    assert found.status == 0
    assert "\x1b[31m" not in found.out + found.err
    assert "\x1b[31m" not in acidctl("repair", "undo", table).out


def test_denied_staging_fails_and_changes_nothing(acidctl: Any, table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from acidctl.base.errors import AccessError
    from acidctl.storage.local.filesystem import LocalFileSystem

    def denied(self: object, path: str, *, below: str = "") -> None:
        raise AccessError(f"cannot create {path}", "permission denied")

    monkeypatch.setattr(LocalFileSystem, "make_dirs", denied)
    before = tree(table)
    assert acidctl("repair", "key-index", "-y", table).status == 5
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
    assert acidctl("repair", "key-index", "-y", table).status == 6
    assert tree(table) == before
    assert not (table / BACKUP).exists()


def test_the_manifest_names_what_was_done(acidctl: Any, table: Path) -> None:
    acidctl("repair", "key-index", "-y", table)
    (manifest,) = (table / BACKUP).glob("*/manifest.json")
    assert json.loads(manifest.read_text())["paths"] == [f"{DELTA}/bucket_00000"]
