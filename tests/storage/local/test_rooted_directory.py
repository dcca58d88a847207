"""Changing commands go through nobody's links on the local disk: whatever leads elsewhere, whenever it is planted."""

from __future__ import annotations

import gc
import os
import shutil
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from acidctl.base.errors import AcidctlError, NotFoundError, RefusedError
from acidctl.storage.local.rooted_directory import ForeignLinkError, RootedDirectory
from acidctl.storage.options import StorageOptions
from acidctl.storage.port import FileSystem
from acidctl.storage.registry import open_location

OTHER = 65534
IS_ROOT = os.geteuid() == 0
needs_root = pytest.mark.skipif(not IS_ROOT, reason="only root can make links of somebody else")


def guarded(path: Path) -> FileSystem:
    return open_location(str(path), StorageOptions(own_links=True))[0]


def foreign(link: Path, target: Path | str) -> Path:
    """A link of somebody else's to what is ours."""
    link.symlink_to(target)
    os.lchown(link, OTHER, OTHER)
    return link


def open_descriptors(below: Path) -> int:
    """How many of this process lead to a folder or to what is in it; others may be closed at any moment."""
    count = 0
    for link in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            count += link.readlink().is_relative_to(below)
    return count


@pytest.fixture
def table(tmp_path: Path) -> Path:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_bytes(b"secret")
    (tmp_path / "table" / "delta").mkdir(parents=True)
    (tmp_path / "table" / "delta" / "file").write_bytes(b"data")
    return tmp_path / "table"


ACTS: dict[str, Callable[[FileSystem, str], object]] = {
    "open": lambda fs, path: fs.open_input(path),
    "read": lambda fs, path: fs.read_bytes(path),
    "stat": lambda fs, path: fs.stat(path),
}
CHANGES: list[Callable[[FileSystem, str], object]] = [
    lambda fs, path: fs.remove_tree(path),
    lambda fs, path: fs.remove_empty(path),
    lambda fs, path: fs.write_bytes(path, b""),
    lambda fs, path: fs.rename(path, f"{path}2"),
]
BELOW: dict[str, Callable[[FileSystem, str], object]] = {
    "list": lambda fs, path: fs.list_dir(path),
    "tree": lambda fs, path: fs.list_tree(path),
    "open": lambda fs, path: fs.open_input(f"{path}/secret"),
    "read": lambda fs, path: fs.read_bytes(f"{path}/secret"),
    "stat": lambda fs, path: fs.stat(f"{path}/secret"),
    "exists": lambda fs, path: fs.exists(f"{path}/secret"),
    "write": lambda fs, path: fs.write_bytes(f"{path}/new", b"x"),
    "create": lambda fs, path: fs.create_exclusive(f"{path}/new", b"x"),
    "output": lambda fs, path: fs.open_output(f"{path}/new").close(),
    "mkdir": lambda fs, path: fs.make_dirs(f"{path}/a/b"),
    "rename from": lambda fs, path: fs.rename(f"{path}/secret", f"{Path(path).parent}/taken"),
    "rename to": lambda fs, path: fs.rename(f"{Path(path).parent}/delta/file", f"{path}/given"),
    "replace": lambda fs, path: fs.replace(f"{Path(path).parent}/delta/file", f"{path}/secret"),
    "remove": lambda fs, path: fs.remove_tree(f"{path}/secret"),
    "remove empty": lambda fs, path: fs.remove_empty(f"{path}/empty"),
}


def state(path: Path) -> list[tuple[str, bytes | None]]:
    return sorted((str(one), one.read_bytes() if one.is_file() else None) for one in path.rglob("*"))


@needs_root
@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)
def test_a_file_that_is_a_foreign_link(table: Path, act: Callable[[FileSystem, str], object]) -> None:
    link = foreign(table / "delta" / "bucket_00000", table.parent / "outside" / "secret")
    with pytest.raises(ForeignLinkError, match="will not follow the symbolic link") as refused:
        act(guarded(table), str(link))
    assert refused.value.hint
    act(open_location(str(table))[0], str(link))  # as was typed


@needs_root
@pytest.mark.parametrize("act", BELOW.values(), ids=BELOW)
def test_a_directory_that_is_a_foreign_link(table: Path, act: Callable[[FileSystem, str], object]) -> None:
    (table.parent / "outside" / "empty").mkdir()
    before = state(table.parent)
    link = foreign(table / "base_0000005", table.parent / "outside")
    with pytest.raises(ForeignLinkError):
        act(guarded(table), str(link))
    link.unlink()
    assert state(table.parent) == before


@pytest.mark.parametrize("name", ["absolute", "relative", "here", "further", "theirs"])
def test_no_link_below_the_root_is_followed(table: Path, name: str) -> None:
    """Whoever made it, and wherever it leads."""
    (table / "absolute").symlink_to(table.parent / "outside")
    (table / "relative").symlink_to("../outside")
    (table / "further").symlink_to("relative/../outside/./secret")
    (table / "here").symlink_to(".")
    (table / "theirs").symlink_to("../outside")
    if IS_ROOT:
        os.lchown(table / "theirs", OTHER, OTHER)
        os.lchown(table.parent / "outside", OTHER, OTHER)
    for path in (name, f"{name}/secret", f"{name}/../delta/file"):
        with pytest.raises(RefusedError):
            guarded(table).read_bytes(str(table / path))
    with pytest.raises(ForeignLinkError):
        guarded(table).list_dir(str(table / name))
    with pytest.raises(ForeignLinkError):
        guarded(table).list_tree(str(table))


def test_removing_a_link_removes_the_link(table: Path) -> None:
    (table / "link").symlink_to("../outside")
    guarded(table).remove_tree(str(table / "link"))
    assert (table.parent / "outside" / "secret").exists()
    assert not (table / "link").is_symlink()


@needs_root
def test_a_foreign_link_itself_may_be_moved_and_removed(table: Path) -> None:
    """It is an entry of the table; what it leads to is not."""
    foreign(table / "link", table.parent / "outside")
    fs = guarded(table)
    fs.rename(str(table / "link"), str(table / "moved"))
    assert (table / "moved").is_symlink()
    fs.remove_tree(str(table / "moved"))
    assert (table.parent / "outside" / "secret").exists()


@needs_root
def test_foreign_link_is_listed_and_not_entered(table: Path) -> None:
    foreign(table / "link", table.parent / "outside")
    (entry,) = [entry for entry in guarded(table).list_dir(str(table)).entries if entry.path == "link"]
    assert entry.is_dir
    with pytest.raises(ForeignLinkError):  # what a location is planned by is whole, or nothing
        guarded(table).list_tree(str(table))
    assert {entry.path for entry in guarded(table).list_tree(str(table / "delta")).entries} == {"file"}


@pytest.mark.parametrize("path", ["/etc/passwd", "/", "..", "../outside/secret", "delta/../../outside/secret", "a/.."])
def test_paths_that_lead_outside_are_refused(table: Path, path: str) -> None:
    full = path if path.startswith("/") else f"{table}/{path}"
    for act in (*ACTS.values(), *CHANGES):
        with pytest.raises(RefusedError, match="will not"):
            act(guarded(table), full)


def test_a_neighbour_whose_name_begins_the_same(table: Path) -> None:
    (table.parent / "table2").write_bytes(b"x")
    with pytest.raises(RefusedError, match="outside"):
        guarded(table).read_bytes(str(table.parent / "table2"))


def test_dangling_links_and_loops_are_errors(table: Path) -> None:
    (table / "dangling").symlink_to("nothing")
    (table / "loop").symlink_to("loop")
    (table / "a").symlink_to("b")
    (table / "b").symlink_to("a")
    fs = guarded(table)
    for name in ("dangling", "loop", "a", "b/c"):
        with pytest.raises(AcidctlError, match="symbolic link"):
            fs.read_bytes(str(table / name))
    assert fs.exists(str(table / "dangling"))  # nothing can be created there
    assert {entry.path for entry in fs.list_dir(str(table)).entries} == {"delta", "dangling", "loop", "a", "b"}


class TestTheRoot:
    """The path that the user typed: links on the way are followed if this user or root owns them."""

    def test_link_of_our_own_to_the_root_is_followed(self, table: Path) -> None:
        (table.parent / "link").symlink_to(table)
        assert guarded(table.parent / "link").read_bytes(str(table.parent / "link" / "delta" / "file")) == b"data"

    @needs_root
    def test_foreign_link_to_the_root_is_refused(self, table: Path) -> None:
        link = foreign(table.parent / "link", table)
        with pytest.raises(ForeignLinkError):
            guarded(link).list_dir(str(link))
        os.lchown(table, OTHER, OTHER)
        with pytest.raises(ForeignLinkError):
            guarded(link).list_dir(str(link))

    def test_it_is_opened_once(self, table: Path) -> None:
        """What takes its place afterwards is nothing that was asked for."""
        fs = guarded(table)
        fs.stat(str(table))
        table.rename(table.parent / "moved")
        table.mkdir()
        (table / "planted").touch()
        assert [entry.path for entry in fs.list_dir(str(table)).entries] == ["delta"]

    def test_that_is_missing_or_a_file(self, table: Path) -> None:
        for name in ("nothing", "table/delta/file"):
            with pytest.raises(NotFoundError):
                guarded(table.parent / name).list_dir(str(table.parent / name))

    def test_root_may_be_the_whole_disk(self, table: Path) -> None:
        fs, path = open_location("/", StorageOptions(own_links=True))
        assert path == "/"
        assert fs.read_bytes(str(table / "delta" / "file")) == b"data"


@needs_root
def test_link_exchanged_at_any_moment_leads_nowhere(table: Path) -> None:
    """A directory, and a link to what is ours, change places all the time: no byte of the latter is read or written."""
    inner, away, link = table / "delta", table / "away", table / "link"
    foreign(link, table.parent / "outside")
    (inner / "secret").write_bytes(b"theirs")
    stop = threading.Event()

    def exchange() -> None:
        while not stop.is_set():
            inner.rename(away)
            link.rename(inner)
            inner.rename(link)
            away.rename(inner)

    thread = threading.Thread(target=exchange)
    thread.start()
    fs, seen, refused = guarded(table), set(), 0
    try:
        for number in range(4000):
            try:
                if number % 3 == 0:
                    seen.add(fs.read_bytes(str(inner / "secret")))
                elif number % 3 == 1:
                    fs.write_bytes(str(inner / f"new{number}"), b"x")
                else:
                    fs.remove_tree(str(inner / f"new{number - 1}"))
            except ForeignLinkError:
                refused += 1
            except (AcidctlError, FileNotFoundError):
                pass
    finally:
        stop.set()
        thread.join()
    assert seen == {b"theirs"}
    assert refused
    assert [path.name for path in (table.parent / "outside").iterdir()] == ["secret"]


def test_descriptors_are_given_back(table: Path) -> None:
    (table / "link").symlink_to("../outside")
    if IS_ROOT:
        foreign(table / "foreign", "../outside")
        foreign(table / "secret", "../outside/secret")
    fs = guarded(table)
    fs.stat(str(table))
    gc.collect()
    before = open_descriptors(table.parent)
    for _ in range(50):
        for path in ("link/secret", "delta/file", "nothing", "delta/file/x", "link/nothing", "foreign/x", "secret"):
            with suppress(AcidctlError):
                fs.read_bytes(str(table / path))
            with suppress(AcidctlError):
                fs.exists(str(table / path))
        with suppress(AcidctlError):
            fs.list_tree(str(table))
    assert open_descriptors(table.parent) == before
    del fs
    assert open_descriptors(table.parent) == before - 1


def test_it_can_be_sent_to_another_process(table: Path) -> None:
    import pickle

    fs = pickle.loads(pickle.dumps(guarded(table)))
    with pytest.raises(RefusedError, match="outside"):
        fs.read_bytes(str(table.parent / "outside" / "secret"))


def test_long_paths_and_odd_names(table: Path) -> None:
    deep = "/".join(["d" * 200] * 20)
    fs = guarded(table)
    at = table
    fs.make_dirs(f"{table}/a/b")
    assert (table / "a" / "b").is_dir()
    for part in deep.split("/")[:15]:
        at = at / part
    fs.make_dirs(str(at))
    fs.write_bytes(str(at / "f\udcff"), b"x")
    assert fs.read_bytes(str(at / "f\udcff")) == b"x"
    shutil.rmtree(table / ("d" * 200))


def test_beneath_knows_what_is_there(table: Path) -> None:
    paths = RootedDirectory(str(table))
    assert paths.exists(str(table))
    assert not paths.exists(str(table / "delta" / "file" / "below"))


@needs_root
def test_dots_behind_links_of_others(table: Path) -> None:
    """Whoever owns the link decides by it where `..` leads."""
    theirs = table.parent / "theirs"
    (theirs / "sub").mkdir(parents=True)
    os.chown(theirs / "sub", OTHER, OTHER)
    foreign(table / "link", theirs / "sub")
    (theirs / "t").mkdir()
    for path in (table / "link" / ".." / "t", table / "link" / ".." / "nothing", table / "link" / "." / ".." / "t"):
        with pytest.raises(ForeignLinkError):
            guarded(path)
        with pytest.raises(ForeignLinkError):
            RootedDirectory(f"{path}/..").open(f"{path}/..", os.O_PATH)
    _, path = open_location(str(table / "link" / ".." / "t"))
    assert path == str(theirs / "t"), "who only reads may follow it"


def test_dots_behind_links_of_ours(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    far = table.parent / "far"
    (far / "away").mkdir(parents=True)
    (far / "t").mkdir()
    (table / "link").symlink_to("../far/away")
    (table / "over").symlink_to("link/../t")
    monkeypatch.chdir(table)
    for written in ("link/../t", f"file://{table}/link/../t", "link/../t/", "over/../t"):
        assert open_location(written, StorageOptions(own_links=True))[1] == str(far / "t"), written
    assert open_location("delta/../delta", StorageOptions(own_links=True))[1] == str(table / "delta")
    with pytest.raises(NotFoundError, match="cannot find link/"):
        open_location("link/../nothing", StorageOptions(own_links=True))
