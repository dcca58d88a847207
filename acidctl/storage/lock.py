"""One at a time: a hidden file of a location that names who works there.

Whoever takes the lock creates the file, which only one can; every command that changes a location looks for it, as it
lists the location anyway.  Nothing depends on it: without a lock a race is noticed, and ends in an error.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime

from acidctl.errors import AcidctlError, ConflictError, NotFoundError, StorageError
from acidctl.storage.owner import Owner
from acidctl.storage.port import FileSystem, join
from acidctl.storage.snapshot import Snapshot

LOCK = ".acidctl-lock"
_TORN_SECONDS = 60
"""A lock that cannot be read is being written, unless it is older than this."""


@contextmanager
def locked(
    fs: FileSystem,
    location: str,
    *,
    break_dead: bool = False,
    break_stale: bool = False,
    on_break: Callable[[str], None] | None = None,
) -> Iterator[None]:
    """Hold the lock of a location.

    Args:
        break_dead: remove the lock of a process that certainly ended: for locks that nobody asked for.
        break_stale: remove the lock of a process that ended, or that runs on another machine; that of a process that
            still runs on this one stays, whatever is said here.
        on_break: called with a sentence on the lock that was removed.

    Raises:
        ConflictError: somebody else holds it; the message names who, since when, and what to do.
        StorageError: the store has no create that only one of several wins.
        AccessError: the location cannot be written.
    """
    path = join(location, LOCK)
    mine = Owner.this().to_bytes()
    fs.stat(location)  # a store that makes parents would make the location
    if (break_dead or break_stale) and fs.exists(path):
        removed = _break(fs, location, path, foreign=break_stale, torn=break_stale)
        if removed and on_break:
            on_break(removed)
    try:
        fs.create_exclusive(path, mine)
    except ConflictError:
        raise _explained(fs, location, path) from None
    except StorageError as error:
        raise type(error)(
            f"cannot lock {fs.display(location)}", str(error), "leave out --lock, and see to it that runs never meet"
        ) from error
    try:
        yield
    finally:
        # Not one that took its place: after somebody broke ours.
        with suppress(NotFoundError):
            if fs.read_bytes(path) == mine:
                fs.remove_tree(path)


def require_locked(fs: FileSystem, location: str) -> None:
    """Raises ConflictError unless this process holds the lock of the location: somebody may have broken it."""
    try:
        owner = Owner.from_bytes(fs.read_bytes(join(location, LOCK)))
    except NotFoundError:
        owner = None
    if owner is None or not _is_this(owner):
        raise ConflictError(
            f"the lock of {fs.display(location)} is gone",
            f"{owner} holds it now" if owner else "somebody removed it",
            "nothing was changed; see to it that runs never meet, and run it again",
        )


def _is_this(owner: Owner) -> bool:
    this = Owner.this()
    return (owner.host, owner.pid, owner.started) == (this.host, this.pid, this.started)


def refuse_locked(snapshot: Snapshot) -> None:
    """Raises ConflictError when another process holds the lock of the location; costs nothing where there is none."""
    if any(entry.path == LOCK for entry in snapshot.listing.entries):
        refuse_locked_at(snapshot.fs, snapshot.path)


def refuse_locked_at(fs: FileSystem, location: str) -> None:
    """The same where nothing was listed yet."""
    path = join(location, LOCK)
    try:
        owner = Owner.from_bytes(fs.read_bytes(path))
    except NotFoundError:  # or it ended since
        return
    if owner is None or not _is_this(owner):
        raise _explained(fs, location, path)


def _explained(fs: FileSystem, location: str, path: str) -> ConflictError:
    what = f"{fs.display(location)} is locked"
    try:
        owner = Owner.from_bytes(fs.read_bytes(path))
    except AcidctlError as error:
        return ConflictError(what, f"the lock cannot be read: {error.why or error.what}", "try again")
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
            f"{owner} took the lock, {since}, and was killed: it has ended",
            "give --break-lock to remove the lock",
        )
    if owner.is_alive():
        return ConflictError(what, f"{owner} works there {since}", "try again when it has ended")
    return ConflictError(
        what,
        f"{owner} took the lock, {since}; whether it still runs only that machine can tell",
        "try again when it has ended; if it has, give --break-lock to remove the lock",
    )


def _break(fs: FileSystem, location: str, path: str, *, foreign: bool, torn: bool) -> str:
    """Take a stale lock away, and say whose; empty when there is none that may go.

    Whoever does first creates a file that is named after this very lock, so that of several who try one does, and
    none ever removes the lock that the winner takes then.

    Args:
        foreign: that of a process on another machine may go, too.
        torn: one that cannot be read may go, too, when it is old enough.
    """
    try:
        data, modified = fs.read_bytes(path), fs.stat(path).modified
    except NotFoundError:
        return ""
    owner = Owner.from_bytes(data)
    if owner:
        may_go = not owner.is_alive() if foreign else owner.is_dead()
    else:
        may_go = torn and modified is not None and time.time() - modified >= _TORN_SECONDS
    if not may_go:
        return ""
    claim = f"{path}-{hashlib.sha256(data).hexdigest()[:12]}"
    _claim(fs, location, claim)
    try:
        if fs.read_bytes(path) != data:
            return ""
        fs.remove_tree(path)
    except NotFoundError:
        return ""
    finally:
        fs.remove_tree(claim)
    whose = f"of {owner}, {_since(owner)}" if owner else "that was torn"
    return f"{fs.display(location)}: removed the lock {whose}"


def _claim(fs: FileSystem, location: str, claim: str) -> None:
    """Create a claim; one that a killed process left is taken away first, as a lock is: by a claim on it."""
    mine = Owner.this().to_bytes()
    try:
        fs.create_exclusive(claim, mine)
    except ConflictError:
        if not _break(fs, location, claim, foreign=False, torn=True):
            raise _claimed(fs, location, claim) from None
        try:
            fs.create_exclusive(claim, mine)
        except ConflictError:
            raise _claimed(fs, location, claim) from None


def _claimed(fs: FileSystem, location: str, claim: str) -> ConflictError:
    try:
        owner = Owner.from_bytes(fs.read_bytes(claim))
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
    except (ValueError, OverflowError, OSError):  # no time that a calendar has
        return "since nobody knows when"
