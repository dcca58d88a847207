"""A new file for rows, which appears under its name only when it is complete."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

from acidctl.base.errors import AcidctlError, ConflictError, NotFoundError
from acidctl.base.guardian import NOTES
from acidctl.cli.report.run_files import refuse_in_table
from acidctl.location.change.own_files import open_folder
from acidctl.storage.port import FileSystem, base_name, join, parent_of
from acidctl.storage.registry import open_location


@contextmanager
def new_file(name: str) -> Iterator[BinaryIO]:
    """Open a hidden sibling for writing, which is renamed at the end and removed on failure.

    Raises:
        NotFoundError: the directory of the file does not exist, or the name is that of a directory.
        ConflictError: the file exists.
    """
    fs, path = open_location(name)
    _refuse_target(fs, path, name)
    part = join(parent_of(path), f".{base_name(path)}.{uuid4().hex[:8]}.part")
    NOTES["unfinished"] = fs.display(part)
    try:
        stream = fs.open_output(part)
    except AcidctlError as error:
        raise type(error)(f"cannot create {fs.display(path)}", error.why, error.hint) from error
    try:
        with stream as out:
            yield out
        fs.rename(part, path)
        NOTES["unfinished"] = ""
    except BaseException:
        with suppress(AcidctlError):
            fs.remove_tree(part)
        raise


def remove_unfinished(name: str) -> None:
    """Remove the part of a new file that a crashed process left."""
    with suppress(AcidctlError):
        fs, path = open_location(name)
        fs.remove_tree(path)


def _refuse_target(fs: FileSystem, path: str, name: str) -> None:
    is_dir = False
    with suppress(NotFoundError):
        is_dir = fs.stat(path).is_dir
        if not is_dir:
            raise ConflictError(f"{fs.display(path)} exists already", "", "choose another name, or remove it first")
    if is_dir or name.endswith("/"):
        raise NotFoundError(
            f"{name if name.endswith('/') else fs.display(path)} is a directory",
            "rows are written to one file",
            "give the name of a new file",
        )
    if fs.local_path(path) is not None and not fs.exists(parent_of(path)):
        folder = fs.display(parent_of(path))
        raise NotFoundError(f"cannot create {fs.display(path)}", f"there is no directory {folder}", "make it first")
    if (local := fs.local_path(path)) is not None:
        os.close(open_folder(Path(local).parent))
        refuse_in_table(Path(local), "rows")
