"""Check that the store still has a file after a write: servers have reported success and kept nothing."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from acidctl.acid.listing import Entry
from acidctl.base.errors import AcidctlError, NotFoundError, StorageError
from acidctl.base.printable import printable
from acidctl.storage.port import FileSystem


def require_length(fs: FileSystem, path: str, written: int, look: Callable[[str], Entry] | None = None) -> None:
    """Check the length of a file that this process has just created.

    A file that is too short is removed: half a file must not look like a whole one.

    Args:
        written: the number of bytes written.
        look: a replacement for `stat` that waits for new files.

    Raises:
        StorageError: the file has another length, or does not exist.
    """
    try:
        entry = (look or fs.stat)(path)
    except NotFoundError:
        raise gone(fs.display(path)) from None
    if entry.is_dir or entry.size != written:
        error = incomplete(fs.display(path), written, entry.size)
        if not entry.is_dir and entry.size < written:
            _remove(fs, path)
        raise error


def require_content(fs: FileSystem, path: str, data: bytes) -> None:
    """Read a small file again that this process has just created; remove an incomplete file.

    Raises:
        StorageError: the file has other content, or does not exist.
    """
    try:
        content = fs.read_bytes(path)
    except NotFoundError:
        raise gone(fs.display(path)) from None
    if content == data:
        return
    if len(content) == len(data):
        raise StorageError(
            f"cannot create {printable(fs.display(path))}",
            "other bytes are there than were written",
            "look at it with the store's own tool, and at the health of its disks",
        )
    error = incomplete(fs.display(path), len(data), len(content))
    if data.startswith(content):
        _remove(fs, path)
    raise error


def incomplete(shown: str, written: int, present: int) -> StorageError:
    """Return the error for a file that is not as long as the store has confirmed."""
    return StorageError(
        f"cannot create {printable(shown)}",
        f"the store confirmed {written:,} bytes, and {present:,} are there",
        "look whether the store is full or a quota is used up, then run it again",
    )


def gone(shown: str) -> StorageError:
    """Return the error for a file whose creation the store has confirmed, but which it does not show."""
    return StorageError(
        f"cannot create {printable(shown)}",
        "the store confirmed it and does not show it",
        "look whether somebody else removes files there, then run it again",
    )


def _remove(fs: FileSystem, path: str) -> None:
    with suppress(AcidctlError):
        fs.remove_tree(path)
