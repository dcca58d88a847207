"""Finish publications that were interrupted, and remove the staging directories of compactions that were killed."""

from __future__ import annotations

import re
import time

from acidctl.acid.listing import Ages
from acidctl.base.errors import AcidctlError
from acidctl.location.change.lock import Locking
from acidctl.location.change.own_files import not_ours
from acidctl.location.change.owner import OWNER, owner_at
from acidctl.location.change.publication import (
    finish_half_published,
    half_published,
    remove_staging,
    shows_by_copies,
)
from acidctl.location.snapshot import Snapshot
from acidctl.location.table_location import TableLocation

_NAMELESS = re.compile(r"_tmp_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_DEAD_SECONDS = 86400.0
"""The owner's note follows a moment after a staging directory is made; Hive's directory may wait for MapReduce."""


def finish_interrupted(found: TableLocation, locking: Locking) -> tuple[Snapshot, tuple[str, ...]]:
    """Finish an interrupted publication; return the compactor's snapshot after that, and what was published."""
    snapshot = found.snapshot(compactor=True)
    remove_dead_staging(snapshot)
    if not half_published(snapshot):
        return snapshot, ()
    with locking.at(snapshot.fs, snapshot.path, always=shows_by_copies(snapshot.fs)):
        # List it again: the process that held the lock until now may have finished it.
        finished = finish_half_published(found.reload().snapshot(compactor=True))
    return found.reload().snapshot(compactor=True), finished


def remove_dead_staging(snapshot: Snapshot) -> tuple[str, ...]:
    """Remove the staging directories of killed compactions, unless they are half published, and return their names.

    Staging of this machine is removed if its process has ended. Staging without a note of its owner, from a compaction
    that was killed before it wrote any data, is removed if nothing was written to it for a day. Staging of other
    machines, and whatever cannot be removed, stays hidden and does no harm.
    """
    fs = snapshot.fs
    half = {staging for staging, _ in half_published(snapshot)}
    paths = [entry.path.partition("/") for entry in snapshot.listing.entries]
    owned = {name for name, _, rest in paths if rest == OWNER} - half
    removed = []
    for name in sorted({name for name, _, _ in paths if name.startswith("_tmp_")} - half):
        try:
            owner = owner_at(fs, snapshot.absolute(f"{name}/{OWNER}")) if name in owned else None
            is_dead = owner.is_dead() if owner else _is_nameless(snapshot, name, time.time())
            if is_dead and not not_ours(fs, snapshot.path, name):
                remove_staging(fs, snapshot.absolute(name))
                removed.append(name)
        except AcidctlError:
            continue
    return tuple(removed)


def _is_nameless(snapshot: Snapshot, name: str, now: float) -> bool:
    """Say if the compaction was killed before it noted its owner; the directory then holds no data yet."""
    files = snapshot.listing.files_by_child.get(name, ())
    is_empty = all(entry.path == f"{name}/{OWNER}" or not entry.size for entry in files)
    is_old = Ages.of(snapshot.listing).is_old(name, now - _DEAD_SECONDS)
    return bool(_NAMELESS.fullmatch(name)) and is_empty and is_old
