"""A lock of a location: a hidden file that names the process that works on it.

Only one process can create the file; every command that changes a location holds it, and without it checks that no
other process does. A lock whose process has ended on this machine is taken over; only the user can break one from
another machine, or from another container of this machine.
"""

from __future__ import annotations

import hashlib
import json
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from acidctl.base.errors import (
    AcidctlError,
    BadDataError,
    ConflictError,
    EnvironmentProblem,
    NotFoundError,
    RefusedError,
    StorageError,
)
from acidctl.location.change.own_files import Owner, owner_at, write_checked
from acidctl.storage.port import FileSystem, join

LOCK = ".acidctl-lock"
_TORN_SECONDS = 60
"""A lock that cannot be read is being written, unless it is older than this."""

_POLL_SECONDS = 0.5, 10.0
"""The first and the longest pause between two checks of a lock that is waited for."""

_held: set[bytes] = set()
"""The content of every lock and claim that this process holds, or is about to take."""

_OF_AGE, _CLOCK_SECONDS = 0.1, 5.0
"""How much the store's clock may be behind ours: a fraction of the age that decides, or this many seconds."""

_TRIES = 3
"""How many times to try to remove our lock."""

_MOST_BYTES = 4096
"""Locks of acidctl are never longer."""


@dataclass(frozen=True, slots=True)
class Locking:
    """The options by which a command keeps other processes away from a location.

    Attributes:
        hold: True holds the lock; False only checks that no other process does; None holds it if the store can.
        wait: seconds to wait for another holder.
        break_stale: remove an unreadable lock, or one of a process on another machine or in another container.
        tell: called with a sentence about a lock that was taken over, is waited for, or cannot be held.
        age: the age in seconds that decided what is done under the lock; 0 if no age decided.
    """

    hold: bool | None = None
    wait: float = 0.0
    break_stale: bool = False
    tell: Callable[[str], None] | None = None
    age: float = 0.0

    @contextmanager
    def at(self, fs: FileSystem, location: str, *, always: bool = False) -> Iterator[None]:
        """Hold the lock of a location, or check that no other process holds it.

        Args:
            always: hold the lock even if `hold` is False, because nothing else keeps two processes apart.

        Raises:
            ConflictError: another process holds it until the end of the wait.
            StorageError: it must be held, and the store cannot.
            AccessError: the location cannot be written.
            EnvironmentProblem: the store's clock is so far behind that ages are meaningless.
        """
        if self.hold is False and not always:
            refuse_locked(fs, location)
            yield
            return
        if not (fs.can_lock or always or self.hold):
            where = fs.display(location)
            self._say(f"{where} is not locked, because its store cannot: make sure that no two runs work on it at once")
            yield
            return
        with _content() as mine:
            self._take(fs, location, mine)
            try:
                self._require_same_clock(fs, location)
                yield
            finally:
                if not _release(fs, join(location, LOCK), mine):
                    self._say(
                        f"the lock of {fs.display(location)} could not be removed: the next run on this machine takes"
                        f" it over, one on another needs --break-lock"
                    )

    def _require_same_clock(self, fs: FileSystem, location: str) -> None:
        """Refuse a store whose clock is behind ours: everything in it seems older than it is."""
        modified = fs.stat(join(location, LOCK)).modified if self.age > 0 else None
        behind = 0.0 if modified is None else time.time() - modified
        if behind > max(self.age * _OF_AGE, _CLOCK_SECONDS):
            raise EnvironmentProblem(
                f"nobody can tell how old the files of {fs.display(location)} are",
                f"the clock of their store is {behind:,.0f} seconds behind this machine's: what was just written seems"
                " to be old",
                "set the clocks right, and run it again",
            )

    def _take(self, fs: FileSystem, location: str, mine: bytes) -> None:
        until, pause = time.monotonic() + self.wait, _POLL_SECONDS[0]
        while True:
            try:
                return self._try(fs, location, mine)
            except ConflictError as error:
                seconds_left = until - time.monotonic()
                if seconds_left <= 0:
                    raise
                if pause == _POLL_SECONDS[0]:
                    self._say(f"{error.what}: {error.why}; waiting")
                time.sleep(min(pause, seconds_left))
                pause = min(2 * pause, _POLL_SECONDS[1])

    def _try(self, fs: FileSystem, location: str, mine: bytes) -> None:
        path = join(location, LOCK)
        fs.stat(location)  # a store that makes parents would make the location
        if fs.exists(path) and (removed := _break(fs, location, path, foreign=self.break_stale, torn=self.break_stale)):
            self._say(removed)
        try:
            _create_whole(fs, path, mine)
        except ConflictError:
            raise _explained(fs, location, path) from None
        except StorageError as error:
            _release(fs, path, mine)  # if only the answer was lost
            raise type(error)(
                f"cannot lock {fs.display(location)}",
                str(error),
                error.hint or "give --no-lock, and make sure that no two runs work on it at once",
            ) from error

    def _say(self, text: str) -> None:
        if self.tell:
            self.tell(text)


@contextmanager
def _content() -> Iterator[bytes]:
    """Return the content of a new file: this process, and a number that identifies the file."""
    mine = json.dumps({**asdict(Owner.this()), "id": uuid.uuid4().hex}).encode()
    _held.add(mine)
    try:
        yield mine
    finally:
        _held.discard(mine)


def _create_whole(fs: FileSystem, path: str, mine: bytes) -> None:
    """Create a file that only one process can create; even if killed, none leaves a file without an owner.

    Raises:
        ConflictError: another process created it.
        StorageError: the store cannot guarantee it.
    """
    if not fs.can_rename:
        fs.create_exclusive(path, mine)
        return
    staged = f"{path}-{uuid.uuid4().hex[:12]}"
    try:
        write_checked(fs, staged, mine)
        fs.rename(staged, path)
    except BaseException:
        with suppress(AcidctlError):
            fs.remove_tree(staged)
        raise


def _release(fs: FileSystem, path: str, mine: bytes) -> bool:
    """Remove our lock; not a lock that replaced it after another process broke ours.

    A lock that cannot be removed names an ended process, and the next run on this machine takes it over.

    Returns:
        Whether it is gone.
    """
    for _ in range(_TRIES):
        with suppress(AcidctlError):
            if fs.exists(path) and fs.read_bytes(path, 0, _MOST_BYTES) == mine:
                fs.remove_tree(path)
            return True
    return False


def require_locked(fs: FileSystem, location: str) -> None:
    """Raise ConflictError unless this process holds the lock of the location: it may have been broken."""
    try:
        owner = owner_at(fs, join(location, LOCK))
    except NotFoundError:
        owner = None
    if owner is None or not _is_this(owner):
        raise ConflictError(
            f"the lock of {fs.display(location)} is gone",
            f"{owner} holds it now" if owner else "somebody removed it",
            "nothing was changed; make sure that no two runs work on it at once, and run it again",
        )


def _is_this(owner: Owner) -> bool:
    this = Owner.this()
    return owner.is_here() and (owner.pid, owner.started) == (this.pid, this.started)


def refuse_locked(fs: FileSystem, location: str) -> None:
    """Raise ConflictError if another process holds the lock of the location."""
    path = join(location, LOCK)
    try:
        owner = owner_at(fs, path)
    except NotFoundError:  # there is none, or it was released
        return
    except (BadDataError, RefusedError):
        raise _explained(fs, location, path) from None
    if owner is None or not _is_this(owner):
        raise _explained(fs, location, path)


def _explained(fs: FileSystem, location: str, path: str) -> ConflictError:
    what = f"{fs.display(location)} is locked"
    try:
        owner = owner_at(fs, path)
    except AcidctlError as error:
        hint = "try again"
        if isinstance(error, NotFoundError | BadDataError | RefusedError) and fs.exists(path):
            hint = f"acidctl makes no such directory, pipe or link: find out who did, and move {fs.display(path)} away"
        return ConflictError(what, f"the lock cannot be read: {error.why or error.what}", hint)
    if owner is None:
        return ConflictError(
            what,
            "its lock is being written, or was torn when its process was killed",
            "try again in a minute; if it is still so, and nothing works there, give --break-lock",
        )
    since = _since(owner)
    if owner.is_dead():
        return ConflictError(
            what,
            f"{owner} took the lock, {since}, and has ended",
            "try again: the next run takes it over",
        )
    if owner.is_alive():
        return ConflictError(what, f"{owner} works there {since}", "try again when it has ended")
    where = "the container that it is in" if owner.host == Owner.this().host else "that machine"
    return ConflictError(
        what,
        f"{owner} took the lock, {since}; whether it still runs only {where} can tell",
        "try again when it has ended; if it has, give --break-lock to remove the lock",
    )


def _break(fs: FileSystem, location: str, path: str, *, foreign: bool, torn: bool) -> str:
    """Remove a stale lock and return a sentence about it; empty if there is none that may be removed.

    The process first creates a file named after this very lock, so that only one of several does it, and none removes
    the lock that the winner takes next.

    Args:
        foreign: a lock of a process on another machine may be removed, too.
        torn: an unreadable lock may be removed, too, when it is old enough.
    """
    try:
        data, modified = fs.read_bytes(path, 0, _MOST_BYTES), fs.stat(path).modified
    except NotFoundError:
        return ""
    except (BadDataError, RefusedError):
        raise _explained(fs, location, path) from None
    owner = Owner.from_bytes(data)
    if owner and _is_this(owner):
        may_go = data not in _held  # ours, which could not be removed
    elif owner:
        may_go = not owner.is_alive() if foreign else owner.is_dead()
    else:
        # abs: a time in the future must not protect a lock.
        may_go = torn and modified is not None and abs(time.time() - modified) >= _TORN_SECONDS
    if not may_go:
        return ""
    claim = f"{path}-{hashlib.sha256(data).hexdigest()[:12]}"
    with _content() as mine:
        _claim(fs, location, claim, mine)
        try:
            if fs.read_bytes(path, 0, _MOST_BYTES) != data:
                return ""
            fs.remove_tree(path)
        except NotFoundError:
            return ""
        finally:
            fs.remove_tree(claim)
    whose = f"of {owner}, {_since(owner)}" if owner else "that was torn"
    ended = "" if owner is None else ", which has ended" if owner.is_dead() else ", as --break-lock says"
    return f"{fs.display(location)}: took over the lock {whose}{ended}"


def _claim(fs: FileSystem, location: str, claim: str, mine: bytes) -> None:
    """Create a claim; one that a killed process left is removed first, like a lock: by a claim on it."""
    try:
        _create_whole(fs, claim, mine)
    except ConflictError:
        if not _break(fs, location, claim, foreign=False, torn=True):
            raise _claimed(fs, location, claim) from None
        try:
            _create_whole(fs, claim, mine)
        except ConflictError:
            raise _claimed(fs, location, claim) from None


def _claimed(fs: FileSystem, location: str, claim: str) -> ConflictError:
    try:
        owner = owner_at(fs, claim)
    except AcidctlError:
        owner = None
    who = str(owner) if owner else "another run"
    if owner and owner.is_alive():
        why, hint = f"{who} removes its stale lock just now", "try again"
    else:
        why = f"{who} removes its stale lock just now, or was killed while it did"
        hint = f"try again; if it stays so, remove {fs.display(claim)} by hand"
    return ConflictError(f"{fs.display(location)} is locked", why, hint)


def _since(owner: Owner) -> str:
    try:
        return f"since {datetime.fromtimestamp(owner.since, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (ValueError, OverflowError, OSError):  # not a valid time
        return "since nobody knows when"
