"""The folder of nights: one at a time, and what was left for later."""

from __future__ import annotations

import json
import multiprocessing
import os
from pathlib import Path

import pytest

from acidctl.errors import AccessError, AcidctlError, ConflictError
from acidctl.night.memory import NAME, Memory, usual_folder


def test_what_was_left_is_recalled_until_it_is_settled(tmp_path: Path) -> None:
    with Memory(tmp_path / "state" / "deep").alone():
        pass
    memory = Memory(tmp_path / "state" / "deep")
    with memory.alone():
        memory.keep({"/a": 2.0, "/b": 1.5})
    with (again := Memory(memory.folder)).alone():
        assert again.recalled() == {"/a": 2.0, "/b": 1.5}
        again.keep({"/b": 3.0}, settled={"/a"})
    assert Memory(memory.folder).recalled() == {"/b": 3.0}
    assert (memory.folder / NAME).stat().st_mode & 0o077 == 0


def test_what_no_night_met_for_long_is_forgotten(tmp_path: Path) -> None:
    memory = Memory(tmp_path)
    memory.keep({"/old": 1.0})
    record = json.loads((tmp_path / NAME).read_text())
    record["postponed"][0]["since"] -= 40 * 86400
    (tmp_path / NAME).write_text(json.dumps(record))
    again = Memory(tmp_path)
    assert again.recalled() == {"/old": 1.0}
    again.keep({"/new": 1.0})
    assert Memory(tmp_path).recalled() == {"/new": 1.0}


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"postponed": 3}', b'{"postponed": [{"location": "/a", "gain": "x", "since": 1}]}',
                b'{"postponed": [{"location": "/a", "gain": NaN, "since": 1}]}', b"\xff", b"[" * 100_000]
)  # fmt: skip
def test_a_file_that_cannot_be_used_stops_no_night(tmp_path: Path, content: bytes) -> None:
    (tmp_path / NAME).write_bytes(content)
    told: list[str] = []
    memory = Memory(tmp_path, told.append)
    with memory.alone():
        assert memory.recalled() == {}
    assert len(told) == (b"NaN" not in content)


def hold(folder: Path, held: multiprocessing.synchronize.Event, done: multiprocessing.synchronize.Event) -> None:
    with Memory(folder).alone():
        held.set()
        done.wait(60)


def test_one_night_at_a_time_and_a_killed_one_is_no_matter(tmp_path: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    held, done = spawn.Event(), spawn.Event()
    other = spawn.Process(target=hold, args=(tmp_path, held, done))
    other.start()
    try:
        assert held.wait(60)
        with pytest.raises(ConflictError, match=f"another night.*process {other.pid} of"), Memory(tmp_path).alone():
            pass
    finally:
        other.kill()
        other.join()
    with Memory(tmp_path).alone():
        pass


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(AccessError), Memory(tmp_path / "x").alone():
        pass


def test_a_file_in_the_place_of_the_folder_is_said(tmp_path: Path) -> None:
    (tmp_path / "x").touch()
    with pytest.raises(AcidctlError), Memory(tmp_path / "x").alone():
        pass


def test_systemd_says_where(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("STATE_DIRECTORY", f"{tmp_path}:/other")
    assert usual_folder() == tmp_path
    monkeypatch.delenv("STATE_DIRECTORY")
    assert usual_folder().name == "acidctl"
