"""The folder of nightly runs: one run at a time, and how many locations there were."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path

import pytest

from acidctl.base.errors import AccessError, AcidctlError, ConflictError
from acidctl.location.coverage import Looked
from acidctl.verbs.nightly_state import NAME, NightlyState, usual_folder


def test_what_was_found_is_recalled_place_by_place(tmp_path: Path) -> None:
    state = NightlyState(tmp_path / "state" / "deep")
    with state.alone():
        assert state.looked("a") is None
        state.keep(Looked("a", 3))
        state.keep(Looked("b", 4))
    with (again := NightlyState(state.folder)).alone():
        assert (again.looked("a"), again.looked("b")) == (3, 4)
        again.keep(Looked("a", 5))
    assert NightlyState(state.folder).looked("a") == 5
    assert (state.folder / NAME).stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"looked": 3}', b'{"looked": {"a": "x"}}', b"\xff", b"[" * 100_000]
)
def test_a_file_that_cannot_be_used_stops_no_run(tmp_path: Path, content: bytes) -> None:
    (tmp_path / NAME).write_bytes(content)
    state = NightlyState(tmp_path)
    with state.alone():
        assert state.looked("a") is None
        state.keep(Looked("a", 1))
    assert state.looked("a") == 1


def hold(folder: Path, held: multiprocessing.synchronize.Event, done: multiprocessing.synchronize.Event) -> None:
    with NightlyState(folder).alone():
        held.set()
        done.wait(60)


def test_one_night_at_a_time_and_a_killed_one_is_no_matter(tmp_path: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    held, done = spawn.Event(), spawn.Event()
    other = spawn.Process(target=hold, args=(tmp_path, held, done))
    other.start()
    try:
        assert held.wait(60)
        with (
            pytest.raises(ConflictError, match=f"another nightly run.*process {other.pid} of"),
            NightlyState(tmp_path).alone(),
        ):
            pass
    finally:
        other.kill()
        other.join()
    with NightlyState(tmp_path).alone():
        pass


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(AccessError), NightlyState(tmp_path / "x").alone():
        pass


def test_a_file_in_the_place_of_the_folder_is_said(tmp_path: Path) -> None:
    (tmp_path / "x").touch()
    with pytest.raises(AcidctlError), NightlyState(tmp_path / "x").alone():
        pass


def test_systemd_says_where(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("STATE_DIRECTORY", f"{tmp_path}:/other")
    assert usual_folder() == tmp_path
    monkeypatch.delenv("STATE_DIRECTORY")
    assert usual_folder().name == "acidctl"
