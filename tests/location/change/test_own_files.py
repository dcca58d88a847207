"""Files for the user: no link on the way is trusted that somebody else may have put there."""

from __future__ import annotations

import os
import secrets
import stat
import threading
from pathlib import Path

import pytest
from support.trouble.retries import asked_again_at_once  # noqa: F401  (the fixture)

from acidctl.base.errors import RefusedError
from acidctl.location.change import own_files
from acidctl.location.change.own_files import replace_file

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")


@pytest.fixture(autouse=True)
def usual_mask() -> None:
    os.umask(0o022)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_staged_file_is_nobody_elses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even where its name is known before."""
    monkeypatch.setattr(secrets, "token_hex", lambda _: "known")
    victim = tmp_path / "victim"
    victim.write_text("mine")
    staged = tmp_path / ".acidctl-known.tmp"
    staged.symlink_to(victim)
    with pytest.raises(FileExistsError):
        replace_file(tmp_path / "report", b"new")
    assert victim.read_text() == "mine"
    assert staged.is_symlink(), "it is not ours to remove"
    staged.unlink()
    staged.symlink_to(tmp_path / "nothing")
    with pytest.raises(FileExistsError):
        replace_file(tmp_path / "report", b"new")
    assert not (tmp_path / "nothing").exists()


def test_replaced_file_keeps_the_mode_of_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    real = os.replace
    monkeypatch.setattr(
        own_files.os,
        "replace",
        lambda source, target, **more: (
            seen.append(mode(next(tmp_path.glob(".acidctl*")))), real(source, target, **more)
        ),
    )  # fmt: skip
    path = tmp_path / "report"
    replace_file(path, b"1")
    assert mode(path) == 0o644
    path.chmod(0o660)
    replace_file(path, b"2")
    assert mode(path) == 0o660, "it has the mode of what was there"
    path.chmod(0o6777)
    replace_file(path, b"3")
    assert mode(path) == 0o666
    replace_file(path, b"4", is_private=True)
    assert (mode(path), path.read_bytes()) == (0o600, b"4")
    assert seen == [0o644, 0o660, 0o666, 0o600]
    assert os.listdir(tmp_path) == ["report"]  # noqa: PTH208


def test_nobody_reads_what_is_not_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def look(descriptor: int, _: int) -> None:
        assert stat.S_IMODE(os.fstat(descriptor).st_mode) == 0o600
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(own_files.os, "fchmod", look)
    with pytest.raises(OSError, match="No space"):
        replace_file(tmp_path / "report", b"new")
    assert not list(tmp_path.iterdir())


def test_links_of_ones_own_are_followed(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to(tmp_path / "far" / "report")
    replace_file(tmp_path / "one", b"new")
    assert (tmp_path / "far" / "report").read_bytes() == b"new"
    assert (tmp_path / "one").is_symlink()
    (tmp_path / "circle").symlink_to("circle")
    with pytest.raises(OSError, match="symbolic links"):
        replace_file(tmp_path / "circle", b"new")


@needs_root
@pytest.mark.parametrize("kind", ["to a file", "to nothing", "behind one of ours", "pipe", "to a device"])
def test_what_another_user_put_there(tmp_path: Path, kind: str) -> None:
    victim, path = tmp_path / "victim", tmp_path / "report"
    link = tmp_path / "theirs" if kind == "behind one of ours" else path
    if kind == "pipe":
        os.mkfifo(path)
    else:
        link.symlink_to("/dev/null" if kind == "to a device" else victim)
    if link != path:
        path.symlink_to(link)
    if kind != "to nothing":
        victim.write_text("mine")
    os.chown(link, 65534, 65534, follow_symlinks=False)
    with pytest.raises(RefusedError, match="another user"):
        replace_file(path, b"new")
    assert (victim.read_text() if victim.exists() else "mine") == "mine"
    assert victim.exists() == (kind != "to nothing")


@needs_root
def test_a_file_of_another_user_is_replaced(tmp_path: Path) -> None:
    """It gets neither what is written, nor the rights that it had."""
    path = tmp_path / "report"
    path.write_text("theirs")
    path.chmod(0o666)
    os.chown(path, 65534, 65534)
    with path.open() as theirs:
        replace_file(path, b"new")
        assert theirs.read() == "theirs"
    assert (path.read_bytes(), path.stat().st_uid, mode(path)) == (b"new", 0, 0o644)


def test_a_pipe_of_ones_own(tmp_path: Path) -> None:
    path, got = tmp_path / "pipe", []
    os.mkfifo(path)
    reader = threading.Thread(target=lambda: got.append(path.read_bytes()))
    reader.start()
    replace_file(path, b"new")
    reader.join(30)
    assert got == [b"new"]
    replace_file(Path("/dev/null"), b"new")
    assert not Path("/dev/null").is_file()


def test_what_became_a_file_is_not_emptied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "report"
    path.write_text("mine")
    monkeypatch.setattr("acidctl.location.change.own_files._is_stream", lambda *_: True)
    with pytest.raises(FileExistsError):
        replace_file(path, b"new")
    assert path.read_text() == "mine"


def test_of_several_writers_at_once_one_file_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "report"
    contents = [bytes([65 + i]) * 100_000 for i in range(8)]
    threads = [threading.Thread(target=replace_file, args=(path, content)) for content in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert path.read_bytes() in contents
    assert os.listdir(tmp_path) == ["report"]  # noqa: PTH208


def test_name_of_255_characters_is_written(tmp_path: Path) -> None:
    replace_file(tmp_path / ("r" * 255), b"new")
    assert len(list(tmp_path.iterdir())) == 1
