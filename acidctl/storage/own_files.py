"""Files of acidctl's own: on the local disk, put in place in one step, and in the hidden runs of a location."""

from __future__ import annotations

import os
import uuid
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from acidctl.errors import RefusedError
from acidctl.storage.arrival import require_content
from acidctl.storage.port import FileSystem, join, parent_of
from acidctl.storage.problems import printable

MOST_BYTES = 64 << 20
"""No manifest or note of ours is longer."""

TORN = "_torn.json"
"""In a hidden run: a small file that is being written."""


def replace_file(path: Path, data: bytes) -> None:
    """Put content at a path in one step; what is no file (a pipe, /dev/stdout) is just written to.

    Raises:
        OSError: it cannot be done; what was there is there still.
    """
    if path.exists() and not path.is_file():
        path.write_bytes(data)
        return
    path = path.resolve()
    staged = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with staged.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        staged.replace(path)
    except BaseException:
        with suppress(OSError):
            staged.unlink()
        raise


def new_run_id() -> str:
    """``<UTC time>-<id>``, in milliseconds: the runs of a moment keep their order, since they are undone backwards."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%S.%f}"[:-3] + f"Z-{uuid.uuid4().hex[:8]}"


def read_note(fs: FileSystem, path: str) -> bytes:
    """A manifest or note that should be ours.

    Raises:
        ValueError: it is longer than any of ours.
        NotFoundError: it is not there.
    """
    data = fs.read_bytes(path, 0, MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise ValueError("longer than any of ours")
    return data


def not_ours(fs: FileSystem, parent: str, name: str) -> str:
    """Why a hidden directory that acidctl could have made does not count as its own; empty where it does.

    Whoever may write into a table may plant one: it has to be a directory of who runs this, or of the superuser.

    Raises:
        NotFoundError: there is no such parent.
    """
    found = fs.access_below(parent).get(name)
    if found is None or (found.is_own and not found.is_link):
        return ""
    return "it is a symbolic link" if found.is_link else f"it belongs to the user {found.owner}"


def require_ours(fs: FileSystem, parent: str, name: str) -> None:
    """Raises RefusedError where such a directory is somebody else's: what goes into it would be his."""
    if why := not_ours(fs, parent, name):
        raise RefusedError(
            f"will not use {printable(fs.display(join(parent, name)))}",
            f"{why}, and acidctl uses directories of its own only",
            "look who made it; run as that user, or move it away",
        )


def write_checked(fs: FileSystem, path: str, content: bytes) -> None:
    """A small file that something is about to depend on: read again, and removed when it is not whole.

    Raises:
        ConflictError: it exists.
        StorageError: the store took it, and gives something else back.
    """
    fs.write_bytes(path, content)
    require_content(fs, path, content)


def write_whole(fs: FileSystem, path: str, content: bytes) -> None:
    """A small file in a location, whole or not at all: torn, it would look like damage; read again before it appears.

    Raises:
        ConflictError: it exists.
        StorageError: the store took it, and gives something else back.
    """
    torn = f"{parent_of(path)}/{TORN}"
    if fs.exists(torn):
        fs.remove_tree(torn)
    write_checked(fs, torn, content)
    fs.rename(torn, path)
