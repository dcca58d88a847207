"""Dying at a chosen storage call, as `kill -9` would have it: from then on nothing works any more."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import pytest

from acidctl.location.change.own_files import Owner
from acidctl.storage import registry
from acidctl.storage.hdfs.filesystem import HdfsFileSystem
from acidctl.storage.local.filesystem import LocalFileSystem
from acidctl.storage.port import join
from support.memory_store import MemoryFileSystem

T = TypeVar("T")

CHANGING = (
    "make_dirs", "create_exclusive", "open_output", "rename", "replace", "copy", "remove_tree", "remove_empty",
    "set_access",
)  # fmt: skip
READING = ("list_tree", "list_dir", "stat", "exists", "open_input", "read_bytes", "access", "access_below")


@pytest.fixture(autouse=True)
def a_dead_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    """For modules that import it: whoever left something behind is dead by the time of the next run, as in truth."""
    dead = subprocess.Popen(["true"])
    dead.wait()
    this = Owner.this()
    monkeypatch.setattr(Owner, "this", lambda: Owner(this.host, dead.pid, 1, this.user, this.since))


class Killed(BaseException):
    """The process is no more; no `except Exception` may catch it."""


class Death:
    """Counts the changing calls and ends the process at one of them.

    Each call has three points: before it, half-way (half of a file's bytes, half of a tree removed) and after it.
    """

    def __init__(self, at: int) -> None:
        self._at = at
        self.count = 0
        self.is_dead = False

    def point(self) -> None:
        """Another place where the process might die."""
        if self.is_dead or self.count == self._at:
            self.is_dead = True
            raise Killed
        self.count += 1

    def install(self, patch: pytest.MonkeyPatch, store: type = LocalFileSystem) -> None:
        patch.setattr(registry, "is_shared", lambda _: False)  # only calls in this process are counted
        for name in READING:
            patch.setattr(store, name, self._reading(getattr(store, name)))
        for name in CHANGING:
            patch.setattr(store, name, getattr(self, f"_{name}")(getattr(store, name)))

    def _reading(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            if self.is_dead:
                raise Killed
            return real(*args)

        return call

    def _around(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            self.point()
            result = real(*args, **options)
            self.point()
            return result

        return call

    _make_dirs = _rename = _replace = _copy = _remove_empty = _set_access = _around

    def _open_output(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(fs: LocalFileSystem, path: str, *, private: bool = False) -> Any:
            self.point()
            return _Dying(real(fs, path, private=private), path, self)

        return call

    def _create_exclusive(self, _: Callable[..., Any]) -> Callable[..., Any]:
        def call(fs: LocalFileSystem, path: str, data: bytes) -> None:
            with fs.open_output(path) as output:
                output.write(data)

        return call

    def _remove_tree(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(fs: LocalFileSystem, path: str) -> None:
            self.point()
            for child in sorted(Path(path).iterdir())[:1] if Path(path).is_dir() else []:
                real(fs, str(child))
                self.point()
            real(fs, path)
            self.point()

        return call


class ObjectDeath(Death):
    """The same over an object store: a file is there whole or not at all, and a tree is removed file by file."""

    def __init__(self, at: int) -> None:
        super().__init__(at)
        self.on_point: Callable[[], None] = lambda: None

    def point(self) -> None:
        self.on_point()
        super().point()

    def install(self, patch: pytest.MonkeyPatch, store: type = MemoryFileSystem) -> None:
        super().install(patch, store)
        patch.setattr(store, "make_dirs", lambda *_, **__: None)  # there are none
        patch.setattr(store, "write_bytes", self._around(store.write_bytes))  # type: ignore[attr-defined]

    _create_exclusive = Death._around

    def _open_output(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, private: bool = False) -> Any:
            output = real(*args, private=private)
            output.close = self._around(output.close)
            return output

        return call

    def _remove_tree(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(fs: MemoryFileSystem, path: str) -> None:
            self.point()
            entries = fs.list_tree(path).entries if fs.stat(path).is_dir else ()
            for entry in [entry for entry in entries if not entry.is_dir][:-1]:
                real(fs, join(path, entry.path))
                self.point()
            real(fs, path)
            self.point()

        return call


class HdfsDeath(Death):
    """The same on HDFS: what is being written stays an open file, to which nothing, or all, was sent."""

    _left: ClassVar[list[Any]] = []
    """Files that are never closed: their ends would be written when nobody refers to them any more."""

    def install(self, patch: pytest.MonkeyPatch, store: type = HdfsFileSystem) -> None:
        super().install(patch, store)

    _create_exclusive = Death._around

    def _open_output(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, private: bool = False) -> Any:
            self.point()
            output = real(*args, private=private)
            self._left.append(output)
            close = self._around(output.close)

            def end() -> None:
                output.flush()
                close()
                self._left.remove(output)

            self.point()
            output.close = end
            return output

        return call

    def _remove_tree(self, real: Callable[..., Any]) -> Callable[..., Any]:
        return self._around(real)  # a NameNode removes a tree at once


class _Dying:
    """A file that may be cut off in the middle."""

    def __init__(self, file: Any, path: str, death: Death) -> None:
        self._file, self._path, self._death = file, path, death

    def __enter__(self) -> _Dying:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def write(self, data: Any) -> int:
        return int(self._file.write(data))

    def close(self) -> None:
        if self._file.closed:
            return
        self._file.close()
        if self._death.is_dead:
            return
        size = Path(self._path).stat().st_size
        try:
            self._death.point()
        except Killed:
            with Path(self._path).open("rb+") as file:
                file.truncate(size // 2)
            raise
        self._death.point()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def each_death(
    work: Callable[[T], None],
    copy_of: Callable[[int], T],
    remove: Callable[[T], None],
    kind: type[Death],
    first: int = 0,
    step: int = 1,
) -> Iterator[tuple[int, T]]:
    """Do the work on a copy of something, dying at every point from `first` on; yields the point and what is left.

    Args:
        step: of so many points one, where each takes long.
    """
    for at in range(first, 10_000, step):
        copy = copy_of(at)
        death = kind(at)
        with pytest.MonkeyPatch.context() as patch:
            death.install(patch)
            with contextlib.suppress(Killed):
                work(copy)
        if not death.is_dead:
            return
        yield at, copy
        remove(copy)  # a small store is a quick one
    raise AssertionError("the work never ends")


def deaths(work: Callable[[Path], None], original: Path, scratch: Path) -> Iterator[tuple[int, Path]]:
    """:func:`each_death` on copies of a table of the local disk."""
    return each_death(work, lambda at: Path(shutil.copytree(original, scratch / str(at))), shutil.rmtree, Death)
