"""Rows about which Hive's own readers do not agree: a compaction would decide for one of them, and for good."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acidctl.acid.compaction_kind import Hive
from acidctl.acid.names import Kind
from acidctl.acid.writeids import ValidWriteIds
from acidctl.compaction.proof.keys import Key, is_sorted, key_range
from acidctl.compaction.tasks import FileTask, Input
from acidctl.errors import RefusedError
from acidctl.orc.read.id_runs import RowIdRun
from acidctl.rows.read.bucket_numbers import is_among, numbers
from acidctl.rows.read.delete_set import DELETE, INSERT, Bools, DeleteSet, Keys
from acidctl.rows.read.events import EventFile, Ids
from acidctl.rows.read.visibility import live_rows, visible_events

_TWINS_HINT = (
    "move away the file that is too many, if one is; or run `INSERT OVERWRITE TABLE t SELECT * FROM t` in Hive, "
    "vectorized, which gives every row a ROW__ID of its own"
)
_OVERWRITE_HINT = "`INSERT OVERWRITE TABLE t SELECT * FROM t` in Hive writes what Hive sees"
_V1_HINT = "if Hive 2 reads the table, say so: `reader='hive2'`"
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


class DeleteCheck:
    """Refuses delete events that Hive passes over: a compaction would apply them for good."""

    def __init__(self) -> None:
        self._last: dict[str, Key] = {}

    def see(self, source: EventFile, ids: Ids | RowIdRun) -> None:
        """Look at the events of the next stripe of a file; files of rows are nothing to it.

        Raises:
            RefusedError: one is no delete (V12), is of another bucket than its file (V21), or comes after one with a
                greater key (V26).
        """
        if not source.is_delete:
            return
        if isinstance(ids, RowIdRun):
            is_apart = int(numbers(np.array([ids.first[1]]))[0]) != source.file.bucket
            self._require(source, np.array([ids.operation]), is_apart=is_apart, ends=(ids.first, ids.last))
        elif len(ids.keys):
            is_apart = is_among(ids.keys.bucket, frozenset((source.file.bucket,))) is not None
            ends = key_range(ids.keys, ascends=True) if is_sorted(ids.keys) else None
            self._require(source, ids.operation, is_apart=is_apart, ends=ends)

    def _require(
        self, source: EventFile, operation: NDArray[Any], *, is_apart: bool, ends: tuple[Key, Key] | None
    ) -> None:
        if not (operation == DELETE).all():
            raise _passed_over(source, "holds events that are no deletes", "Hive's readers disagree on them (V12)")
        if is_apart:
            raise _passed_over(source, "holds deletes of another bucket", "Hive 4 does not apply them (V21)")
        if ends is None or ends[0] < self._last.get(source.path, ends[0]):
            raise _passed_over(source, "holds deletes that are not sorted", "Hive overlooks some of them (V26)")
        self._last[source.path] = ends[1]


def live_in_hive(
    source: EventFile, ids: Ids, task: FileTask, write_ids: ValidWriteIds, dead: DeleteSet
) -> Bools | None:
    """Which events of a stripe are rows that every reader of the table returns; None when all are.

    Raises:
        RefusedError: as for :func:`require_agreement`, :func:`refuse_changes` and :func:`refuse_elsewhere`.
    """
    require_agreement(source, ids, write_ids, dead)
    refuse_changes(source, ids, task.reader)
    live = live_rows(source, ids, write_ids, dead)
    if live is not None:
        refuse_elsewhere(source, ids, ~live)
    return live


def refuse_changes(source: EventFile, ids: Ids, reader: Hive | None) -> None:
    """Refuse updates and deletes among the rows of a delta for whoever takes them for rows: every Hive since 3.

    Raises:
        RefusedError: there is one, and Hive 2 is not known to read the table.
    """
    if reader is Hive.HIVE2 or not source.may_hold_changes or (ids.operation == INSERT).all():
        return
    error = _passed_over(source, "holds updates or deletes", "Hive 3 and 4 read all of them as rows (V12)")
    if source.tail.acid_version is None and reader is None:
        error.hint = _V1_HINT
    raise error


def refuse_elsewhere(source: EventFile, ids: Ids, dead: Bools) -> None:
    """Refuse to drop rows in the file of another bucket than their own: Hive 4 finds no deletes for them.

    Args:
        dead: which of the rows are deleted.

    Raises:
        RefusedError: such a row is deleted.
    """
    own = is_among(ids.keys.bucket, frozenset((source.file.bucket,)))
    if own is not None and bool((dead & ~own).any()):
        raise _passed_over(source, "holds deleted rows of another bucket", "Hive 4 shows them (V21)")


def _passed_over(source: EventFile, what: str, why: str) -> RefusedError:
    return RefusedError(f"{source.fs.display(source.path)} {what}", why, _OVERWRITE_HINT)


def _shown(keys: Keys, place: int) -> str:
    return ":".join(str(int(column[place])) for column in (keys.original, keys.bucket, keys.row_id))
