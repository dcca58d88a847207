"""Rows about which Hive's own readers do not agree: a compaction would decide for one of them, and for good."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from acidctl.acid.names import Kind
from acidctl.acid.writeids import ValidWriteIds
from acidctl.compaction.tasks import Input
from acidctl.errors import RefusedError
from acidctl.rows.read.delete_set import Bools, DeleteSet, Keys
from acidctl.rows.read.events import EventFile, Ids
from acidctl.rows.read.visibility import visible_events

_TWINS_HINT = (
    "move away the file that is too many, if one is; or run `INSERT OVERWRITE TABLE t SELECT * FROM t` in Hive, "
    "vectorized, which gives every row a ROW__ID of its own"
)
_DELETES_HINT = (
    "find out whether the rows are to be there: `INSERT OVERWRITE TABLE t SELECT * FROM t` in Hive settles it, as the "
    "reader that runs it sees them"
)


def refuse_twins(ids: Ids, one: EventFile, other: EventFile) -> None:
    """Refuse to write rows of one ROW__ID side by side that lie in two files, or apart in one.

    Hive's row reader shows one row of those that follow each other with one ROW__ID, and every row of others.

    Args:
        ids: of one of the rows.
        one, other: the files.
    """
    paths = sorted({file.fs.display(file.path) for file in (one, other)})
    raise RefusedError(
        f"rows of {' and '.join(paths)} have one ROW__ID, {_shown(ids.keys, 0)}, and do not follow each other",
        "in one sorted file some of Hive's readers would show only one of them (V27)",
        _TWINS_HINT,
    )


def require_agreement(source: EventFile, ids: Ids, write_ids: ValidWriteIds, dead: DeleteSet) -> None:
    """Raise RefusedError where Hive 4's readers do not agree whether a row of a stripe is deleted (section 4.2)."""
    disputed = dead.disputed(ids.keys, ids.bound(source.file.statement_id), source.file.begins)
    if disputed is None:
        return
    visible = visible_events(ids, write_ids)
    if visible is not None:
        disputed &= visible
    if disputed.any():
        raise RefusedError(
            f"Hive's readers do not agree whether {int(np.count_nonzero(disputed))} rows of "
            f"{source.fs.display(source.path)} are deleted; first: {_shown(ids.keys, int(np.argmax(disputed)))}",
            "their delete events are not of a later write id, nor of a later statement (V35)",
            _DELETES_HINT,
        )


def refuse_moved(source: EventFile, ids: Ids, deletes: DeleteSet) -> None:
    """Refuse a minor compaction of rows that are of a later write id than their key, and than an event that names them.

    In the wider directory Hive 4's vectorized reader, which compares keys alone, would apply the event.

    Args:
        deletes: all delete events, each with its write id.
    """
    named = deletes.dead(ids.keys)
    if named is None:
        return
    dead = deletes.dead(ids.keys, ids.bound(source.file.statement_id))
    if dead is None or (named & ~dead).any():
        raise RefusedError(
            f"delete events are older than rows of {source.fs.display(source.path)} that they name",
            "a minor compaction would put both into one directory, where Hive applies them",
            "use `compact('major')`, which keeps these rows",
        )


def without_effect(source: EventFile, ids: Ids, inserts: Sequence[Input]) -> Bools | None:
    """Which delete events of a stripe delete nothing, and would in the wider directory of a minor compaction.

    Args:
        inserts: the files of the bucket's rows.

    Raises:
        RefusedError: an event deletes rows in one of the directories and not in another.
    """
    early: Bools = ids.current < ids.keys.original
    if not early.any():
        return None
    for original in np.unique(ids.keys.original[early]).tolist():
        first_ids = {
            item.file.begins[0]
            for item in inserts
            if (d := item.file.directory) and d.kind is Kind.DELTA and d.min_write_id <= original <= d.max_write_id
        }
        reached = {first < source.file.max_write_id for first in first_ids}
        if len(reached) > 1:
            raise RefusedError(
                f"delete events of {source.fs.display(source.path)} are older than rows of write id {original}",
                "Hive applies them to some of these rows only (V35)",
                _DELETES_HINT,
            )
        if reached != {False}:
            early &= ids.keys.original != original
    return early


def _shown(keys: Keys, place: int) -> str:
    return ":".join(str(int(column[place])) for column in (keys.original, keys.bucket, keys.row_id))
