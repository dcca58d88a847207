"""Written means that the store says so when it is asked again: servers have answered "done" and kept nothing."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from acidctl.acid.listing import Entry
from acidctl.errors import AcidctlError, NotFoundError, StorageError
from acidctl.storage.os_errors import printable
from acidctl.storage.port import FileSystem

Explain = Callable[[str], tuple[str, str]]
"""Why a file at a path is not whole, and what to do; two empty strings where nobody knows."""


def nobody_knows(_: str) -> tuple[str, str]:
    """The :data:`Explain` of stores that say no more."""
    return "", ""


def require_length(
    fs: FileSystem,
    path: str,
    written: int,
    explain: Explain = nobody_knows,
    look: Callable[[str], Entry] | None = None,
) -> None:
    """Ask the store for the length of a file that this process has just created.

    A shorter one is removed: half a file must not look like a whole one.

    Args:
        written: bytes.
        look: a `stat` that knows better how to ask for what is new.

    Raises:
        StorageError: it has another length, or is not there.
    """
    try:
        entry = (look or fs.stat)(path)
    except NotFoundError:
        raise gone(fs.display(path)) from None
    if entry.is_dir or entry.size != written:
        error = incomplete(fs.display(path), written, entry.size, *explain(path))
        if not entry.is_dir and entry.size < written:
            _remove(fs, path)
        raise error


def require_content(fs: FileSystem, path: str, data: bytes, explain: Explain = nobody_knows) -> None:
    """Read a small file again that this process has just created; a part of it is removed.

    Raises:
        StorageError: it holds something else, or is not there.
    """
    try:
        found = fs.read_bytes(path)
    except NotFoundError:
        raise gone(fs.display(path)) from None
    if found == data:
        return
    if len(found) == len(data):
        raise StorageError(
            f"cannot create {printable(fs.display(path))}",
            "other bytes are there than were written",
            "look at it with the store's own tool, and at the health of its disks",
        )
    error = incomplete(fs.display(path), len(data), len(found), *explain(path))
    if data.startswith(found):
        _remove(fs, path)
    raise error


def incomplete(shown: str, written: int, found: int, why: str = "", hint: str = "") -> StorageError:
    """The error for a file whose creation the store has confirmed, and that is not as long as it should be."""
    return StorageError(
        f"cannot create {printable(shown)}",
        why or f"the store confirmed {written:,} bytes, and {found:,} are there",
        hint or "look whether the store is full or a quota is used up, then run it again",
    )


def gone(shown: str) -> StorageError:
    """The error for a file whose creation the store has confirmed, and that it does not show."""
    return StorageError(
        f"cannot create {printable(shown)}",
        "the store confirmed it and does not show it",
        "look whether somebody else removes files there, then run it again",
    )


def _remove(fs: FileSystem, path: str) -> None:
    with suppress(AcidctlError):
        fs.remove_tree(path)
