"""Check that the store still has a file after a write: servers have reported success and kept nothing."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from acidctl.acid.listing import Entry
from acidctl.base.errors import AcidctlError, NotFoundError, StorageError
from acidctl.base.printable import printable
from acidctl.storage.port import FileSystem


def require_length(fs: FileSystem, path: str, written: int, look: Callable[[str], Entry] | None = None) -> None:
    """Check the length of a file that this process has just created, and remove an incomplete file.

    Args:
        written: the number of bytes written.
        look: a replacement for `stat` that waits for new files.

    Raises:
        StorageError: the file has another length, or does not exist.
    """
    try:
        entry = (look or fs.stat)(path)
    except NotFoundError:
        raise _not_shown(fs, path) from None
    if entry.is_dir or entry.size != written:
        if not entry.is_dir and entry.size < written:
            _remove(fs, path)
        raise incomplete(fs.display(path), written, entry.size)


def require_content(fs: FileSystem, path: str, data: bytes) -> None:
    """Read a small file again that this process has just created, and remove an incomplete file.

    Raises StorageError if the file has other content, or does not exist.
    """
    try:
        content = fs.read_bytes(path)
    except NotFoundError:
        raise _not_shown(fs, path) from None
    if content == data:
        return
    if len(content) == len(data):
        hint = "look at it with the store's own tool, and at the health of its disks"
        raise _not_created(fs.display(path), "other bytes are there than were written", hint)
    if data.startswith(content):
        _remove(fs, path)
    raise incomplete(fs.display(path), len(data), len(content))


def incomplete(shown: str, written: int, present: int) -> StorageError:
    """Return the error for a file that is not as long as the store has confirmed."""
    why = f"the store confirmed {written:,} bytes, and {present:,} are there"
    return _not_created(shown, why, "look whether the store is full or a quota is used up, then run it again")


def _not_shown(fs: FileSystem, path: str) -> StorageError:
    hint = "look whether somebody else removes files there, then run it again"
    return _not_created(fs.display(path), "the store confirmed it and does not show it", hint)


def _not_created(shown: str, why: str, hint: str) -> StorageError:
    return StorageError(f"cannot create {printable(shown)}", why, hint)


def _remove(fs: FileSystem, path: str) -> None:
    # Half a file must not look like a whole one.
    with suppress(AcidctlError):
        fs.remove_tree(path)
