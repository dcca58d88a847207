"""Expand patterns in paths and URLs that no shell expanded: ``s3://bucket/sales.db/*/dt=2026-*``.

``*``, ``?`` and ``[...]`` stand for characters of one name, as in a shell, and never for a dot or an underscore at its
beginning: such names are hidden from Hive, too. A name that exists as it is written, ``odd[1].db``, means itself.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping

from acidctl.acid.names import is_hidden
from acidctl.base.errors import NotFoundError
from acidctl.base.nearest import asked, near_names
from acidctl.base.printable import printable
from acidctl.storage.options import StorageOptions
from acidctl.storage.port import FileSystem, join
from acidctl.storage.registry import naming_near, open_location, split_url

_WILD = frozenset("*?[")


def expanded(place: str, options: Mapping[str, str]) -> tuple[str, ...]:
    """Return the directories that a path or URL with wildcards means, sorted; the place itself if it has none.

    A place that exists as it is written means itself.

    Args:
        options: of the store.

    Raises:
        NotFoundError: nothing matches; the hint has similar names.
        AccessError, StorageError, UsageProblem: the store cannot be used, or a directory cannot be listed.
    """
    parts = split_url(place)
    if not _WILD & set(place if parts is None else parts[2]):
        return (place,)
    # Protection against links needs a root that exists. Each directory found here is opened with it later.
    if isinstance(options, StorageOptions):
        options = StorageOptions(options, options.below)
    fs, path = open_location(place, options)
    if fs.exists(path):
        return (place,)
    names = path.strip("/").split("/")
    first = next(number for number, name in enumerate(names) if _WILD & set(name))
    found = [join("/", *names[:first]) if first else "/"]
    for number, name in enumerate(names[first:], first):
        if not _WILD & set(name):
            found = [below for above in found if fs.exists(below := join(above, name))]
        else:
            found = _matching(fs, found, name, is_first=number == first)
        if not found:
            raise NotFoundError(f"nothing matches {printable(place)}", f"no directory is there for {printable(name)}")
    return tuple(fs.display(one) for one in sorted(found))


def _matching(fs: FileSystem, directories: list[str], pattern: str, *, is_first: bool) -> list[str]:
    """Return the directories below some others that match; NotFoundError if there are none."""
    found, others = list[str](), list[str]()
    for directory in directories:
        with naming_near(fs, directory):
            try:
                entries = fs.list_dir(directory).entries
            except NotFoundError:  # removed meanwhile, or a file
                if is_first:
                    raise
                continue
        if any(entry.is_dir and entry.path == pattern for entry in entries):
            found.append(join(directory, pattern))
            continue
        for entry in entries:
            if entry.is_dir and not (is_hidden(entry.path) and not is_hidden(pattern)):
                matches = fnmatch.fnmatchcase(entry.path, pattern)
                (found if matches else others).append(join(directory, entry.path))
    if not found:
        near = near_names(pattern.strip("*"), {path.rpartition("/")[2] for path in others})
        what = f"nothing matches {printable(pattern)} in {printable(fs.display(directories[0]))}"
        raise NotFoundError(what, f"directories there: {len(others)}", asked(list(map(printable, near))))
    return found
