"""The notes of cleanings, repairs and publications: those of earlier versions are understood, planted ones refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from acidctl.acid.listing import Listing
from acidctl.base.errors import AcidctlError, BadDataError
from acidctl.cleaning import trash
from acidctl.cleaning.apply import delete
from acidctl.location.change import journal
from acidctl.location.change.journal import Act, RunState, Step
from acidctl.location.change.lock import Locking
from acidctl.location.change.publication import INTENT, finish_half_published, half_published
from acidctl.location.change.work_log import read_log
from acidctl.location.snapshot import take_snapshot
from acidctl.repair import backup
from acidctl.repair.backup import discard
from acidctl.storage.local.filesystem import LocalFileSystem

FS = LocalFileSystem()
ID = "20260101T000000.000Z-0123abcd"
RUN = f"{backup.BACKUP}/{ID}"


def files(table: Path) -> dict[str, str]:
    return {str(path.relative_to(table)): path.read_text() for path in table.rglob("*") if path.is_file()}


def put(table: Path, **content: str) -> None:
    for name, text in content.items():
        path = table / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def note(table: Path, run: str, content: object) -> None:
    put(table, **{f"{run}/manifest.json": content if isinstance(content, str) else json.dumps(content, indent=1)})


def cleaning(**other: object) -> dict[str, object]:
    """As version 0.1 wrote it."""
    said = {"version": 1, "names": ["base_3", "delta_4_4"], "bytes": 2, "content": "", "writeIds": None}
    return {**said, "validTxns": None, "states": {"base_3": "obsolete"}, **other}


def test_the_trash_of_an_earlier_version_is_restored(tmp_path: Path) -> None:
    """Interrupted after one of two entries."""
    put(tmp_path, **{f"{trash.TRASH}/{ID}/base_3/b": "3", "delta_4_4/b": "4"})
    note(tmp_path, f"{trash.TRASH}/{ID}", cleaning())
    (run,) = trash.trash_runs(FS, str(tmp_path))
    assert (run.names, run.bytes, run.states, run.can_be_undone) == (
        ("base_3", "delta_4_4"), 2, {"base_3": "obsolete"}, True,
    )  # fmt: skip
    assert trash.restore(FS, run) == ("base_3",)
    assert files(tmp_path) == {"base_3/b": "3", "delta_4_4/b": "4"}


@pytest.mark.parametrize(
    ("mark", "state"),
    [("restored.json", RunState.UNDONE), ("purged.json", RunState.FORGOTTEN), ("done.json", RunState.STAGED)],
)
def test_what_is_left_of_a_run_says_what_it_is(mark: str, state: RunState, tmp_path: Path) -> None:
    put(tmp_path, **{f"{trash.TRASH}/{ID}/{mark}": "{}"})
    (run,) = trash.trash_runs(FS, str(tmp_path))
    assert (run.state, run.can_be_undone) == (state, False)
    trash.purge(FS, [run])
    assert not list(tmp_path.iterdir())


def test_the_folder_of_many_runs_is_looked_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """HDFS and object stores list it to see whether it is empty."""
    for number in range(5):
        run, kept = (f"{folder}/{ID[:-1]}{number}" for folder in (trash.TRASH, backup.BACKUP))
        put(tmp_path, **{f"{run}/base_3/b": "3", f"{kept}/x": ""})
        note(tmp_path, run, cleaning(names=["base_3"]))
    asked: list[str] = []
    real, listing = LocalFileSystem.remove_empty, LocalFileSystem.list_dir

    def counting(fs: LocalFileSystem, path: str) -> None:
        asked.append(path.rpartition("/")[2])
        real(fs, path)

    def listed(fs: LocalFileSystem, path: str) -> Listing:
        asked.extend(["the location"] * (path == str(tmp_path)))
        return listing(fs, path)

    monkeypatch.setattr(LocalFileSystem, "remove_empty", counting)
    monkeypatch.setattr(LocalFileSystem, "list_dir", listed)
    runs = trash.trash_runs(FS, str(tmp_path))
    asked.clear()
    assert len(delete(FS, runs, Locking())) == 5
    assert asked.count("the location") <= 2, "for the lock, and for the log"
    (logged,) = tmp_path.glob(".acidctl-log-*")
    assert [entry.run for entry in read_log(FS, str(tmp_path))] == [run.id for run in reversed(runs)], logged
    assert len(discard(FS, str(tmp_path))) == 5
    assert (asked.count(trash.TRASH), asked.count(backup.BACKUP)) == (1, 1)
    assert {path.name.partition("-2")[0] for path in tmp_path.iterdir()} == {".acidctl-log"}


@pytest.mark.parametrize("mark", ["done.json", "undo.json"])
def test_a_cleaning_is_restored_whatever_lies_beside_its_note(mark: str, tmp_path: Path) -> None:
    put(tmp_path, **{f"{trash.TRASH}/{ID}/base_3/b": "3", f"{trash.TRASH}/{ID}/{mark}": "{}"})
    note(tmp_path, f"{trash.TRASH}/{ID}", cleaning(names=["base_3"]))
    (run,) = trash.trash_runs(FS, str(tmp_path))
    assert trash.restore(FS, run) == ("base_3",)
    assert files(tmp_path) == {"base_3/b": "3"}


def repair(*steps: dict[str, object]) -> dict[str, object]:
    return {"version": 1, "kinds": ["key-index"], "paths": ["delta_1_1/b"], "bytes": 3, "steps": list(steps)}


def replaced(table: Path) -> dict[str, object]:
    """A repair of one file, staged as version 0.1 did it, of which nothing is shown yet."""
    put(table, **{"delta_1_1/b": "old", f"{RUN}/old/delta_1_1/b": "old", f"{RUN}/new/delta_1_1/b": "newer"})
    facts = {"size": 3, "modified": (table / "delta_1_1/b").stat().st_mtime, "new_size": 5}
    paths = {"source": f"{RUN}/new/delta_1_1/b", "target": "delta_1_1/b", "kept": f"{RUN}/old/delta_1_1/b"}
    return {"act": "replace", **paths, **facts}


MOVED = {"act": "move", "source": f"{RUN}/new/v", "target": "v", "kept": "", "size": 0, "modified": None, "new_size": 0}


def test_the_backup_of_an_earlier_version_is_finished_and_undone(tmp_path: Path) -> None:
    note(tmp_path, RUN, repair(replaced(tmp_path), MOVED))
    put(tmp_path, **{f"{RUN}/new/v": "2"})
    (run,) = backup.backup_runs(FS, str(tmp_path))
    assert (run.state, run.kinds, run.paths, run.bytes) == (RunState.INTERRUPTED, ("key-index",), ("delta_1_1/b",), 3)
    backup.settle(FS, [run])
    assert (tmp_path / "delta_1_1/b").read_text() == "newer"
    assert (tmp_path / "v").read_text() == "2"
    (run,) = backup.backup_runs(FS, str(tmp_path))
    assert run.state is RunState.DONE
    backup.undo(FS, run)
    assert files(tmp_path) == {"delta_1_1/b": "old"}


def test_an_undo_of_an_earlier_version_goes_on(tmp_path: Path) -> None:
    note(tmp_path, RUN, repair(replaced(tmp_path)))
    put(tmp_path, **{f"{RUN}/undo.json": "{}", f"{RUN}/done.json": "{}"})
    (tmp_path / RUN / "new/delta_1_1/b").replace(tmp_path / "delta_1_1/b")
    backup.settle(FS, backup.backup_runs(FS, str(tmp_path)))
    assert files(tmp_path) == {"delta_1_1/b": "old"}


def test_a_publication_of_an_earlier_version_is_finished(tmp_path: Path) -> None:
    put(tmp_path, **{"delete_delta_1_5/b": "d", "_tmp_7/delta_1_5/b": "i", "_tmp_7/_owner.json": "{}"})
    put(tmp_path, **{f"_tmp_7/{INTENT}": '{"names": ["delete_delta_1_5", "delta_1_5"]}'})
    snapshot = take_snapshot(FS, str(tmp_path))
    assert half_published(snapshot) == [("_tmp_7", ("delta_1_5",))]
    assert finish_half_published(snapshot) == ("delta_1_5",)
    assert files(tmp_path) == {"delete_delta_1_5/b": "d", "delta_1_5/b": "i"}


@pytest.mark.parametrize(
    ("act", "source", "target", "kept"),
    [
        ("move", "a", "b", ""),
        ("move", f"{RUN}/a", f"{RUN}/b", ""),
        ("move", f"{RUN}/../a", "b", ""),
        ("move", f"{RUN}", "b", ""),
        ("move", f"{RUN}x/a", "b", ""),
        ("move", f"{RUN}/a", "/b", ""),
        ("move", f"{RUN}/a", ".acidctl-trash/b", ""),
        ("move", f"{RUN}/a", "b", 5),
        ("move", f"{RUN}/a", 5, ""),
        ("copy", f"{RUN}/a", "b", ""),
        ("remove", f"{RUN}/a", "b", ""),
        ("replace", "a", "b", f"{RUN}/c"),
        ("replace", f"{RUN}/a", "b", "c"),
        ("replace", f"{RUN}/a", "b", ""),
        ("replace", f"{RUN}/a", f"{RUN}/b", f"{RUN}/c"),
    ],
)
def test_a_step_that_no_repair_makes_is_refused(act: str, source: Any, target: Any, kept: Any, tmp_path: Path) -> None:
    note(tmp_path, RUN, repair({"act": act, "source": source, "target": target, "kept": kept}))
    before = files(tmp_path)
    with pytest.raises(BadDataError, match="cannot use"):
        backup.backup_runs(FS, str(tmp_path))
    assert files(tmp_path) == before


@pytest.mark.parametrize("field", ["size", "new_size", "modified"])
def test_a_step_with_a_number_of_another_type_is_refused(field: str, tmp_path: Path) -> None:
    note(tmp_path, RUN, repair({**replaced(tmp_path), field: "3"}))
    with pytest.raises(BadDataError, match="cannot use"):
        backup.backup_runs(FS, str(tmp_path))


@pytest.mark.parametrize("folder", [trash.TRASH, backup.BACKUP])
@pytest.mark.parametrize("content", ["", "[]", "nonsense", "[" * 100_000, '{"version": 1}', "\udce4", "1" * 5000])
def test_what_is_no_note_is_refused(folder: str, content: str, tmp_path: Path) -> None:
    (tmp_path / folder / ID).mkdir(parents=True)
    (tmp_path / folder / ID / "manifest.json").write_bytes(content.encode("utf-8", "surrogateescape"))
    if folder == trash.TRASH:
        (run,) = trash.trash_runs(FS, str(tmp_path))
        assert "not a manifest of acidctl" in run.problem
    else:
        with pytest.raises(BadDataError) as error:
            backup.backup_runs(FS, str(tmp_path))
        assert "not a manifest of acidctl" in error.value.why


@pytest.mark.parametrize("folder", [trash.TRASH, backup.BACKUP])
def test_a_note_that_is_too_long_is_refused_unread(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "MOST_BYTES", 10)
    note(tmp_path, f"{folder}/{ID}", cleaning() if folder == trash.TRASH else repair())
    kind: Any = trash.TrashRun if folder == trash.TRASH else backup.RepairRun
    (run,) = journal.list_runs(FS, str(tmp_path), kind, lambda run, _: run)
    assert run.state is RunState.DAMAGED


@pytest.mark.parametrize("name", ["base_3/b", "..", "", ".", 5, None, ["base_3"]])
def test_a_cleaning_that_took_no_child_is_refused(name: object, tmp_path: Path) -> None:
    note(tmp_path, f"{trash.TRASH}/{ID}", cleaning(names=[name]))
    (run,) = trash.trash_runs(FS, str(tmp_path))
    assert run.problem
    for refused in (lambda: trash.restore(FS, run), lambda: trash.purge(FS, [run])):
        with pytest.raises(AcidctlError):
            refused()


def test_the_same_record_is_read_as_was_written(tmp_path: Path) -> None:
    steps = (Step(Act.MOVE, f"{RUN}/new/v", "v"), Step(Act.REPLACE, f"{RUN}/new/b", "b", f"{RUN}/old/b", 3, 1.5, 5))
    run = backup.RepairRun(str(tmp_path), ID, steps, 7, RunState.DONE, kinds=("nested",), paths=("b",))
    journal.begin(FS, run)
    backup.write_note(FS, run)
    assert backup.backup_runs(FS, str(tmp_path)) == [run]


def test_a_removal_that_is_overtaken_is_no_error(tmp_path: Path) -> None:
    put(tmp_path, **{f"{RUN}/old/b": "b"})
    (run,) = backup.backup_runs(FS, str(tmp_path))
    journal.drop(FS, run)
    journal.drop(FS, run)
    assert not list(tmp_path.iterdir())
