"""Read the deletes of a load once in each Python process, whose tasks come one after the other.

A task names the delete files whose keys may hit its stripes; those of one bucket mostly name the same.  Spark gives the
next task to a process that has ended one (``spark.python.worker.reuse``), and ends one that had none for a minute.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from acidctl.location.snapshot import Snapshot
from acidctl.rows.read.delete_set import DeleteSet
from acidctl.rows.read.events import EventFile
from acidctl.rows.read.visibility import load_deletes

MOST_BYTES, MOST_SETS = 64 << 20, 64
"""Limits on the sets that are kept besides the last one, since a session may live for days."""

_Key = tuple[str, bool, tuple[str, ...]]
_held: OrderedDict[_Key, DeleteSet] = OrderedDict()


def deletes_of(load: str, snapshot: Snapshot, sources: Sequence[EventFile]) -> DeleteSet:
    """Return the deletes of a task's share, from an earlier task of the same load, or read now.

    Args:
        load: the name of the load, which no other one has: in one load a file is one file, and a snapshot one snapshot.
        snapshot: of the share.
        sources: its files, opened; those that kill nothing do not count.

    Raises:
        BadDataError, NotFoundError: a file cannot be read.
    """
    killers = [source for source in sources if source.is_delete or source.may_hold_changes]
    if not killers:
        return load_deletes((), snapshot.write_ids)
    # With their stores: partitions may lie on several, at the same paths.
    moved = any(source.may_hold_moved for source in sources)
    key = load, moved, tuple(sorted(source.fs.display(source.path) for source in killers))
    found = _held.pop(key, None)
    if found is None:
        found = load_deletes(killers, snapshot.write_ids, rows=sources)
    _held[key] = found
    others = sum(one.nbytes for one in _held.values()) - found.nbytes
    while others > MOST_BYTES or len(_held) > MOST_SETS:
        others -= _held.popitem(last=False)[1].nbytes
    return found
