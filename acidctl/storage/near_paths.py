"""Suggest existing paths for one that does not exist."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from acidctl.errors import AcidctlError, NotFoundError
from acidctl.nearest import asked, near_names
from acidctl.storage.port import FileSystem, base_name, join, parent_of
from acidctl.storage.registry import open_location

_MOST_PARENTS = 3


@contextmanager
def naming_near(fs: FileSystem, path: str) -> Iterator[None]:
    """Add similar names to the hint of a NotFoundError that the block raises, if nothing exists at `path`.

    This costs one listing, of the nearest parent that exists. Object stores are not listed, as a prefix may hold
    millions of objects.
    """
    try:
        yield
    except NotFoundError as error:
        if near := _near(fs, path):
            raise type(error)(error.what, error.why, near) from error
        raise


def _near(fs: FileSystem, path: str) -> str:
    if not fs.can_rename:
        return ""
    try:
        if fs.is_local:  # it may be confined to the path itself
            fs, path = open_location(fs.display(path))
        if fs.exists(path):
            return ""
        for _ in range(_MOST_PARENTS):
            parent = parent_of(path)
            if fs.exists(parent):
                names = [entry.path for entry in fs.list_dir(parent).entries if entry.path != base_name(path)]
                return asked([fs.display(join(parent, name)) for name in near_names(base_name(path), names)])
            path = parent
    except AcidctlError:
        pass  # the error that brought us here says more
    return ""
