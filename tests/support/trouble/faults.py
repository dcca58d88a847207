"""A store with a will of its own: a file system that goes wrong by rule, at chosen calls."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from acidctl.acid.listing import Listing
from acidctl.base.errors import AccessError, AcidctlError, StorageError
from acidctl.storage import registry
from acidctl.storage.port import FileSystem, FileSystemSpec
from support.trouble.crash import CHANGING, READING

LISTS = ("list_tree", "list_dir")
HINT = "the store's own hint"


def _trouble(what: str) -> StorageError:
    return StorageError(what, "HTTP status 500", HINT)


def _denied(what: str) -> AccessError:
    return AccessError(what, "permission denied", HINT)


def _reset(what: str) -> StorageError:
    return StorageError(what, "connection reset by peer", HINT)


def _full(what: str) -> StorageError:
    return StorageError(what, "no space left on the device", HINT)


@dataclass
class Rule:
    """What goes wrong, and when.

    Attributes:
        kind: ``trouble`` (a 500, nothing done), ``lost`` (done, but the answer is an error), ``reset`` (in the middle
            of a read), ``cut`` (a listing without its last page), ``stale`` (a listing as it was at the beginning),
            ``denied`` (the permission is gone for good), ``full`` (no space, from the middle of a write on), ``slow``,
            ``short`` and ``garbled`` (half of what was to be written, or other bytes, and the answer is that all is
            well).
        calls: names of methods.
        skip: so many matching calls go well first.
        times: so many go wrong; None for all that follow.
    """

    kind: str
    calls: tuple[str, ...]
    skip: int = 0
    times: int | None = 1
    met: int = 0

    def strikes(self, name: str) -> bool:
        """Whether this call goes wrong."""
        if name not in self.calls:
            return False
        turn = self.met - self.skip
        self.met += 1
        return turn >= 0 and (self.times is None or turn < self.times)


@dataclass
class Faults:
    """The rules of one run, and what was called.

    Attributes:
        before: whole trees, as they were when the run began, for ``stale``.
    """

    rules: list[Rule] = field(default_factory=list)
    calls: list[tuple[str, str]] = field(default_factory=list)
    before: dict[tuple[str, str], Listing] = field(default_factory=dict)
    slept: int = 0

    def install(self, patch: pytest.MonkeyPatch) -> None:
        """Every file system that is opened from now on has them."""
        real = registry.open_file_system
        patch.setattr(registry, "open_file_system", lambda spec: FaultyFileSystem(real(spec), self))

    def kind_of(self, name: str, path: str) -> str:
        self.calls.append((name, path))
        return next((rule.kind for rule in self.rules if rule.strikes(name)), "")


class FaultyFileSystem:
    """The port over another store, with faults."""

    def __init__(self, inner: FileSystem, faults: Faults) -> None:
        self._inner, self._faults = inner, faults
        self.url, self.spec = inner.url, inner.spec
        self.can_rename, self.can_copy, self.can_lock = inner.can_rename, inner.can_copy, inner.can_lock
        self.is_local = inner.is_local

    def display(self, path: str) -> str:
        return self._inner.display(path)

    def local_path(self, path: str) -> None:
        """All bytes go through here."""
        return

    def open_input(self, path: str) -> Any:
        kind = self._faults.kind_of("open_input", path)
        self._raise(kind, "read", path)
        file = self._inner.open_input(path)
        return _Breaking(file, lambda: _reset(self._what("read", path))) if kind == "reset" else file

    def open_output(self, path: str, *, private: bool = False) -> Any:
        kind = self._faults.kind_of("open_output", path)
        self._raise(kind, "create", path)
        file = self._inner.open_output(path, private=private)
        if kind == "full":
            return _Full(file, lambda: _full(self._what("write", path)))
        if kind in ("short", "garbled"):
            return _Lying(file, kind)
        return _Unanswered(file, lambda: _trouble(self._what("write", path))) if kind == "lost" else file

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._inner, name)
        if name not in CHANGING + READING + ("write_bytes",):
            return real

        def call(path: str, *more: Any, **options: Any) -> Any:
            kind = self._faults.kind_of(name, path)
            self._raise(kind, name.replace("_", " "), path)
            if kind in ("reset", "full"):
                raise (_reset if kind == "reset" else _full)(self._what(name, path))
            told = [_untrue(kind, data) for data in more] if kind in ("short", "garbled") else more
            result = real(path, *told, **options)
            if kind == "lost":
                raise _trouble(self._what(name, path))
            return self._listed(kind, name, path, result) if name in LISTS else result

        return call

    def _listed(self, kind: str, name: str, path: str, now: Listing) -> Listing:
        first = self._faults.before.setdefault((name, path), now)
        if kind == "stale":
            return first
        return replace(now, entries=now.entries[: len(now.entries) // 2]) if kind == "cut" else now

    def _raise(self, kind: str, doing: str, path: str) -> None:
        if kind == "trouble":
            raise _trouble(self._what(doing, path))
        if kind == "denied":
            raise _denied(self._what(doing, path))
        if kind == "slow":
            self._faults.slept += 1

    def _what(self, doing: str, path: str) -> str:
        return f"cannot {doing} {self.display(path)}"

    def __reduce__(self) -> tuple[Callable[[FileSystemSpec], FileSystem], tuple[FileSystemSpec]]:
        return registry.open_file_system, (self.spec,)


class _Breaking(io.RawIOBase):
    """A file whose connection is reset after some of its bytes."""

    def __init__(self, file: Any, error: Callable[[], AcidctlError]) -> None:
        super().__init__()
        self._file, self._error, self._left = file, error, 100

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        return int(self._file.seek(offset, whence))

    def tell(self) -> int:
        return int(self._file.tell())

    def read(self, size: int | None = -1) -> bytes:
        data: bytes = self._file.read(size)
        self._left -= len(data)
        if self._left < 0:
            raise self._error()
        return data


class _Unanswered(io.RawIOBase):
    """A new file that arrives, while its writer is told that it did not."""

    def __init__(self, file: Any, error: Callable[[], AcidctlError]) -> None:
        super().__init__()
        self._file, self._error = file, error

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return int(self._file.tell())

    def write(self, data: Any) -> int:
        return int(self._file.write(data))

    def close(self) -> None:
        if not self.closed:
            super().close()
            self._file.close()
            raise self._error()


def _untrue(kind: str, data: bytes) -> bytes:
    """What a lying store keeps."""
    return data[: len(data) // 2] if kind == "short" else data[:-1] + bytes([data[-1] ^ 1])


class _Lying(io.BytesIO):
    """A new file of which half is kept, or other bytes."""

    def __init__(self, file: Any, kind: str) -> None:
        super().__init__()
        self._file, self._kind = file, kind

    def close(self) -> None:
        if not self.closed:
            self._file.write(_untrue(self._kind, self.getvalue()))
            self._file.close()
            super().close()


class _Full(_Unanswered):
    """A new file that takes some bytes and no more."""

    def write(self, data: Any) -> int:
        self._file.write(bytes(data)[:50])
        raise self._error()

    def close(self) -> None:
        if not self.closed:
            io.RawIOBase.close(self)
            self._file.close()


def rules_for(calls: Iterable[tuple[str, str]]) -> list[Rule]:
    """Every kind of fault at every method that a run without faults called: at its first and its last call."""
    names = [name for name, _ in calls]
    found = []
    for name in dict.fromkeys(names):
        count = names.count(name)
        for skip in sorted({0, count - 1}):
            found += [Rule(kind, (name,), skip) for kind in _kinds(name)]
            if name in CHANGING or name == "write_bytes":
                found.append(Rule("denied", (*CHANGING, "write_bytes"), _place(names, name, skip), None))
    return found


def _place(names: list[str], name: str, skip: int) -> int:
    """How many changing calls come before that one."""
    at = [index for index, one in enumerate(names) if one == name][skip]
    return sum(one in CHANGING or one == "write_bytes" for one in names[:at])


def _kinds(name: str) -> tuple[str, ...]:
    if name in LISTS:
        return ("trouble", "cut", "stale", "denied")
    if name in READING:
        return ("trouble", "reset") if name in ("open_input", "read_bytes") else ("trouble",)
    if name in ("open_output", "write_bytes"):
        return ("trouble", "lost", "full", "short", "garbled")
    return ("trouble", "lost")
