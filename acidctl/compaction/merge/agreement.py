"""Refusals of rows that Hive's own readers read differently: a compaction would settle that permanently."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from acidctl.acid.compaction_kind import Hive
from acidctl.acid.layout import DataFile
from acidctl.acid.names import Kind
from acidctl.acid.writeids import ValidWriteIds
from acidctl.base.errors import RefusedError
from acidctl.compaction.proof.checksum import Key, is_sorted, key_range
from acidctl.compaction.tasks import BucketTask, CountTask
from acidctl.orc.read.integer_runs import RowIdRun
from acidctl.rows.read.bucket_numbers import is_among, numbers
from acidctl.rows.read.delete_set import DELETE, INSERT, UPDATE, Bools, DeleteSet, Keys
from acidctl.rows.read.events import EventFile, Ids
from acidctl.rows.read.visibility import dead_rows, live_rows, load_deletes, visible_events

_TWINS_HINT = (
    "move away the surplus file, if there is one; or run `INSERT OVERWRITE TABLE t SELECT * FROM t` in Hive, "
    "vectorized, which gives every row a ROW__ID of its own"
)
_OVERWRITE_HINT = "`INSERT OVERWRITE TABLE t SELECT * FROM t` in Hive writes what Hive sees"
_ALL = f"{_OVERWRITE_HINT}; a major compaction with --apply-all-deletes applies every delete"
_V1_HINT = "if Hive 2 reads the table, say so: --for hive2"
_DELETES_HINT = (
    "find out whether the rows should exist: `INSERT OVERWRITE TABLE t SELECT * FROM t` in Hive settles it, as the "
    "reader that runs it sees them"
)


def refuse_twins(ids: Ids, one: EventFile, other: EventFile) -> None:
    """Refuse to make rows with the same ROW__ID adjacent if they are not adjacent in one file.

    Hive's row reader shows only one of adjacent rows with the same ROW__ID, but all of them if they lie apart.

    Args:
        ids: the ids of one of the rows.
        one, other: the files of the rows.
    """
    paths = sorted({file.shown for file in (one, other)})
    raise RefusedError(
        f"rows of {' and '.join(paths)} share the ROW__ID {_shown(ids.keys, 0)}, and are not adjacent",
        "in one sorted file some of Hive's readers would show only one of them (V27)",
        _TWINS_HINT,
    )


def require_agreement(source: EventFile, ids: Ids, write_ids: ValidWriteIds, dead: DeleteSet) -> None:
    """Raise RefusedError if Hive 4's readers disagree whether a row of a stripe is deleted (section 4.2)."""
    disputed = dead.disputed(ids.keys, ids.bound(source.file.statement_id), source.file.begins)
    if disputed is None:
        return
    visible = visible_events(ids, write_ids)
    if visible is not None:
        disputed &= visible
    if disputed.any():
        raise RefusedError(
            f"Hive's readers do not agree whether {int(np.count_nonzero(disputed))} rows of "
            f"{source.shown} are deleted; first: {_shown(ids.keys, int(np.argmax(disputed)))}",
            "their delete events have neither a later write id nor a later statement (V35)",
            _DELETES_HINT,
        )


def refuse_moved(source: EventFile, ids: Ids, deletes: DeleteSet) -> None:
    """Refuse a minor compaction of rows with a later write id than their key, and than a delete event for that key.

    In the wider directory Hive 4's vectorized reader, which compares only keys, would apply the event.

    Args:
        deletes: all delete events, each with its write id.
    """
    named = deletes.dead(ids.keys)
    if named is None:
        return
    dead = deletes.dead(ids.keys, ids.bound(source.file.statement_id))
    if dead is None or (named & ~dead).any():
        raise RefusedError(
            f"delete events are older than rows of {source.shown} that they name",
            "a minor compaction would put both into one directory, where Hive applies them",
            "use `acidctl compact --major`, which keeps these rows",
        )


def without_effect(source: EventFile, ids: Ids, rows: Sequence[DataFile]) -> Bools | None:
    """Return which delete events of a stripe delete nothing now, but would in the wider result of a minor compaction.

    Args:
        rows: the files of the bucket's rows.

    Raises:
        RefusedError: an event deletes rows in one of the directories and not in another.
    """
    early: Bools = ids.current < ids.keys.original
    if not early.any():
        return None
    for original in np.unique(ids.keys.original[early]).tolist():
        first_ids = {
            file.begins[0]
            for file in rows
            if (d := file.directory) and d.kind is Kind.DELTA and d.min_write_id <= original <= d.max_write_id
        }
        reached = {first < source.file.max_write_id for first in first_ids}
        if len(reached) > 1:
            raise RefusedError(
                f"delete events of {source.shown} are older than rows of write id {original}",
                "Hive applies them to some of these rows only (V35)",
                _DELETES_HINT,
            )
        if reached != {False}:
            early &= ids.keys.original != original
    return early


class DeleteCheck:
    """Checks delete files, stripe by stripe, for events that Hive ignores: a compaction would apply them permanently.

    Attributes:
        is_misplaced: whether an event lies in the file of another bucket, where Hive 4 does not find it.
    """

    def __init__(self, *, applies_all: bool = False) -> None:
        """Set up a check; with `applies_all` it accepts deletes that Hive overlooks."""
        self.is_misplaced = False
        self._applies_all = applies_all
        self._last: dict[str, Key] = {}

    def see(self, source: EventFile, ids: Ids | RowIdRun) -> None:
        """Check the events of the next stripe of a file; files of rows are skipped.

        Raises:
            RefusedError: an event is not a delete (V12), or follows one with a greater key (V26).
        """
        if not source.is_delete:
            return
        if isinstance(ids, RowIdRun):
            self.is_misplaced |= int(numbers(np.array([ids.first[1]]))[0]) != source.file.bucket
            self._require(source, is_delete=ids.operation == DELETE, ends=(ids.first, ids.last))
        elif len(ids.keys):
            self.is_misplaced |= is_among(ids.keys.bucket, frozenset((source.file.bucket,))) is not None
            ends = key_range(ids.keys, ascends=True) if is_sorted(ids.keys) else None
            self._require(source, is_delete=bool((ids.operation == DELETE).all()), ends=ends)

    def _require(self, source: EventFile, *, is_delete: bool, ends: tuple[Key, Key] | None) -> None:
        if not is_delete:
            raise _passed_over(source, "holds events that are not deletes", "Hive's readers disagree on them (V12)")
        if self._applies_all:
            return
        if ends is None or ends[0] < self._last.get(source.path, ends[0]):
            raise _passed_over(source, "holds deletes that are not sorted", "Hive overlooks some of them (V26)", _ALL)
        self._last[source.path] = ends[1]


class LiveRows:
    """Finds the events in the files of a major compaction that Hive's readers return as rows.

    Attributes:
        dead: all keys that the delete events name.
    """

    def __init__(self, task: BucketTask | CountTask, rows: Sequence[EventFile], kills: Sequence[EventFile]) -> None:
        """Load the deletes; for errors see :func:`load_deletes` and :class:`DeleteCheck`.

        Args:
            rows: the files of the task's rows.
            kills: the files with events that delete these rows.
        """
        self._task, self._kills = task, kills
        self._check = DeleteCheck(applies_all=task.applies_all)
        self._load = partial(load_deletes, write_ids=task.write_ids, rows=rows, buckets=task.kills_of)
        self.dead = self._load(kills, see=self._check.see)
        self._of_file: dict[int, DeleteSet] = {}

    def of(self, source: EventFile, ids: Ids) -> Bools | None:
        """Return which events of a stripe are live rows; None if all are.

        Raises:
            RefusedError: Hive's readers disagree on them, see :func:`require_agreement` and :func:`refuse_changes`; or
                a delete event lies in a file where Hive 4 does not find it (V21).
        """
        require_agreement(source, ids, self._task.write_ids, self.dead)
        refuse_changes(source, ids, self._task.reader)
        live = live_rows(source, ids, self._task.write_ids, self.dead)
        if live is not None and not self._task.applies_all:
            self._refuse_misplaced(source, ids)
        return live

    def _refuse_misplaced(self, source: EventFile, ids: Ids) -> None:
        """Refuse deletes in other files than those with the number of the rows' file: Hive 4 does not find them."""
        number = source.file.bucket
        if not self._check.is_misplaced and is_among(ids.keys.bucket, frozenset((number,))) is None:
            return
        if number not in self._of_file:
            self._of_file[number] = self._load([kill for kill in self._kills if kill.file.bucket == number])
        by_all, by_own = (dead_rows(source, ids, self._task.write_ids, s) for s in (self.dead, self._of_file[number]))
        if (by_all & ~by_own).any():
            raise _passed_over(
                source, "holds rows whose deletes lie in files of other buckets", "Hive 4 shows them (V21)", _ALL
            )


def refuse_changes(source: EventFile, ids: Ids, reader: Hive | None) -> None:
    """Refuse updates and deletes among rows unless Hive 2 reads them: newer Hives read them as rows (section 4.2).

    Updates in a base are allowed: a major compaction of Hive 2 leaves the newest event of each row as it is.

    Raises:
        RefusedError: there is an update in a delta, or a delete, and Hive 2 is not known to read the table.
    """
    if reader is Hive.HIVE2 or not source.may_hold_changes:
        return
    directory = source.file.directory
    in_base = directory is not None and directory.kind is Kind.BASE
    if ((ids.operation == INSERT) | ((ids.operation == UPDATE) & in_base)).all():
        return
    is_hint = source.tail.acid_version is None and reader is None
    why = "Hive 3 and 4 read all of them as rows (V12)"
    raise _passed_over(source, "holds updates or deletes", why, _V1_HINT if is_hint else _OVERWRITE_HINT)


def _passed_over(source: EventFile, what: str, why: str, hint: str = _OVERWRITE_HINT) -> RefusedError:
    return RefusedError(f"{source.shown} {what}", why, hint)


def _shown(keys: Keys, place: int) -> str:
    return ":".join(str(int(column[place])) for column in (keys.original, keys.bucket, keys.row_id))
