"""Removal of files that a killed run left beside those of the copy."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from contextlib import suppress

from acidctl.base.errors import AcidctlError
from acidctl.storage.port import FileSystem, base_name, join

_UUID = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_OURS = re.compile(rf"acidctl-{_UUID}-\d+-({_UUID}|deletes)\.(orc|parquet)")
_OLD_SECONDS = 3600.0


def remove_orphans(fs: FileSystem, folder: str, new: Collection[str], listed: Callable[[], Collection[str]]) -> int:
    """Remove files of acidctl that no snapshot lists and that are an hour older than this run's; return how many.

    It must follow the commit: then no run that began before can commit its files, because another snapshot came first,
    and the files of a run that begins later are not older than this run's.

    Args:
        folder: the directory of the data files.
        new: the names of the files of this run, whose age is the store's time.
        listed: returns the names of the files of all snapshots; called only if there are candidates.
    """
    found = fs.list_dir(folder).entries
    times = [entry.modified for entry in found if entry.path in new and entry.modified is not None]
    old = [
        entry.path
        for entry in found
        if times and entry.modified is not None and max(times) - entry.modified > _OLD_SECONDS
        if not entry.is_dir and entry.path not in new and _OURS.fullmatch(entry.path)
    ]
    if not old:
        return 0
    kept = {base_name(url) for url in listed()}
    count = 0
    for name in old:
        with suppress(AcidctlError):  # somebody else may have removed it
            if name not in kept:
                fs.remove_tree(join(folder, name))
                count += 1
    return count
