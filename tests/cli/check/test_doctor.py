"""`acidctl doctor`: whether stores can be reached."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.command_line import Result

from acidctl.base.errors import StorageError
from acidctl.storage.local.filesystem import LocalFileSystem
from acidctl.storage.trial import try_out


def test_stores_are_shown_with_whether_they_can_be_reached(acidctl: Callable[..., Result], tmp_path: Path) -> None:
    done = acidctl("doctor", tmp_path)
    assert (done.status, f"{tmp_path}: can be reached" in " ".join(done.out.split())) == (0, True)
    done = acidctl("doctor", tmp_path, tmp_path / "none", "webhdfs://127.0.0.1:1/t", "--set", "storage.retries=0")
    assert done.status == 3
    assert "check that the NameNode runs" in done.out
    found = acidctl("doctor", tmp_path / "none", tmp_path, "-o", "json").json()["stores"]
    assert [one["problem"] and one["problem"]["code"] for one in found] == ["not-found", None]


def test_a_label_stands_once_and_no_line_has_keys_of_json(acidctl: Callable[..., Result], tmp_path: Path) -> None:
    lines = acidctl("doctor", tmp_path).out.splitlines()
    labels = [line.split()[0] for line in lines if not line.startswith(" ")]
    assert len(labels) == len(set(labels)), labels
    assert {"configuration", "python", "packages", "store"} <= set(labels)
    assert not any(key in line for line in lines for key in ("isUsed", "isReachable", "file="))


def test_a_store_is_tried_out_and_left_as_it_was(acidctl: Callable[..., Result], tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    (found,) = acidctl("doctor", "--write", tmp_path / "t", "-o", "json").json()["stores"]
    assert found["worked"] == ["list", "create", "lock", "rename", "remove"]
    assert abs(found["clockAhead"]) < 60
    assert not list((tmp_path / "t").iterdir())
    assert acidctl("doctor", tmp_path / "t", "-o", "json").json()["stores"][0]["worked"] == ["list"]
    assert acidctl("doctor", "--write").status == 2


def test_a_store_in_which_a_rename_fails_or_is_interrupted_is_left_as_it_was(
    acidctl: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(error: BaseException) -> Callable[..., None]:
        def rename(*_: object) -> None:
            raise error

        return rename

    monkeypatch.setattr(LocalFileSystem, "rename", fail(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        try_out(LocalFileSystem(), str(tmp_path), write=True)
    assert not list(tmp_path.iterdir())
    monkeypatch.setattr(LocalFileSystem, "rename", fail(StorageError("cannot rename", "it is full")))
    done = acidctl("doctor", "--write", tmp_path, "-o", "json")
    (found,) = done.json()["stores"]
    assert (done.status, found["worked"], found["problem"]["why"]) == (6, ["list", "create", "lock"], "it is full")
    assert not list(tmp_path.iterdir())


def test_a_store_whose_locks_or_clock_do_not_hold(
    acidctl: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(LocalFileSystem, "create_exclusive", lambda _, path, data: Path(path).write_bytes(data))
        assert "created twice" in acidctl("doctor", "--write", tmp_path).out
    monkeypatch.setattr("acidctl.storage.trial.time.time", lambda: 1_000_000_000.0)
    done = acidctl("doctor", "--write", tmp_path)
    assert done.status and "ages of directories and locks are wrong" in " ".join(done.out.split())
    assert not list(tmp_path.iterdir())
