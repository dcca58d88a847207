"""A Hive table and its copy in the same metastore change names, under locks that keep writers of both away.

A metastore renames the locks and the write ids of a table along with it (3.1.3, 4.0.1).  So a statement that waits for
the table would go on after the renaming, and write to the directory that the table had before: it is aborted instead.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from enum import Enum

from acidctl.acid.writeids import ValidWriteIds
from acidctl.base.errors import AcidctlError, BadDataError, ConflictError, NotFoundError, RefusedError
from acidctl.iceberg.catalogs.hive_metastore import METADATA, alter, expecting, locked, locks_on
from acidctl.metastore import interface
from acidctl.metastore.activity import find_locks
from acidctl.metastore.client import Metastore
from acidctl.metastore.errors import LostTransaction, MetastoreError, Unreachable, Unreadable
from acidctl.metastore.lossless import text_value
from acidctl.metastore.tables import HiveTable, get_table
from acidctl.metastore.transactions import Transactions
from acidctl.metastore.txn.transaction import LockedTransaction
from acidctl.writing.transaction import newest_valid, raw_table

MIGRATED_TO = "acidctl.migrated-to"
"""The parameter of a Hive table that was cut over: the name under which its copy was made."""

_UNCHECKED = "acidctl.unchecked"
"""Its parameter until the check after the renamings: the write ids that the copy shows, see :func:`_seen_in`."""

_KEPT = "_acid"
"""The end of the name of a Hive table that was cut over."""

_NAME = 1
"""Number of the field of a table with its name."""

_WAIT = 60.0
"""Seconds to wait for a lock that is only held for a moment."""

_GRACE = 2.0
"""Seconds for statements that found the table before it was renamed, and ask for its lock only now."""

_ATTEMPTS = 5


def is_cut_over(table: HiveTable) -> bool:
    """Return whether a Hive table has given its name to its copy."""
    return MIGRATED_TO in table.parameters and table.name.endswith(_KEPT)


class State(Enum):
    """The states of the two names."""

    BEFORE = "before"
    HALF = "half"
    """A run ended between the two renamings: no table has the name."""
    UNCHECKED = "unchecked"
    """As after; a run ended before it looked for commits without a lock, or is about to do so."""
    AFTER = "after"


class Swap:
    """The names of a Hive table and of its copy.

    Args:
        source, copy: ``db.table``, as they are called before a cut-over.

    Attributes:
        kept: ``db.table``, as the Hive table is called after it.

    Raises:
        RefusedError: the names are of two databases.
    """

    def __init__(self, metastore: Metastore, source: str, copy: str) -> None:
        self._metastore, self._marks = metastore, dict[str, str]()
        self.source, self.copy, self.kept = source, copy, f"{source}{_KEPT}"
        if source.partition(".")[0] != copy.partition(".")[0]:
            why = f"{source} and {copy} are in different databases"
            raise RefusedError("will not swap their names", why, "make the copy in the database of the table")

    def state(self) -> State:
        """Return who has which name.

        Raises:
            RefusedError: the name that the Hive table would get is that of another table.
        """
        kept, named = self._find(self.kept), self._find(self.source)
        if kept and kept.parameters.get(MIGRATED_TO) == self.copy:
            if named is None:
                return State.HALF
            if not named.table_type and METADATA in named.parameters:
                return State.UNCHECKED if _UNCHECKED in kept.parameters else State.AFTER
        if kept:
            why, hint = f"there is a table {self.kept}", f"rename {self.kept}, if it is needed"
            if (other := kept.parameters.get(MIGRATED_TO, self.copy)) != self.copy:
                why, hint = f"{self.kept} was cut over to {other}", f"give --to hive:{other}"
            raise RefusedError(f"will not change the name of {self.source}", why, hint)
        return State.BEFORE

    def locked(self, *names: str, wait: float) -> AbstractContextManager[LockedTransaction]:
        """Hold exclusive locks on tables, see :func:`acidctl.iceberg.catalogs.hive_metastore.locked`."""
        return locked(self._metastore, map(_pair, names), wait)

    def write_ids(self, name: str) -> ValidWriteIds:
        """Return the write ids of a table as they are now."""
        return Transactions(self._metastore).write_ids(name)

    def forward(self, held: LockedTransaction, seen: ValidWriteIds, made: tuple[int, int], metadata: str) -> None:
        """Give the name of the Hive table to the copy.  If it fails, both have their names as before.

        Args:
            held: has the lock of the Hive table.
            seen: the write ids that the copy shows.
            made: of the Hive table that was copied, see :class:`acidctl.metastore.tables.HiveTable`.
            metadata: the place of the metadata of the copy.

        Raises:
            ConflictError: somebody wrote to one of them meanwhile.
            MetastoreError: it refuses to rename a table, or nobody knows whether it did.
        """
        held.lock(locks_on([_pair(self.copy)]), _WAIT)
        if get_table(self._metastore, *_pair(self.source)).made != made:
            raise ConflictError(f"{self.source} is another table now", "", "nothing was renamed; look who made it")
        self._require_metadata(self.copy, metadata)
        self._require_unchanged(self.source, seen)
        held.beat()
        done: list[tuple[str, str]] = []
        self._marks = {MIGRATED_TO: self.copy, _UNCHECKED: _text_of(seen)}
        try:
            self._rename(self.source, self.kept, self._marks, done)
            self._fence(held)
            self._rename(self.copy, self.source, {}, done)
            self._require_no_late_commit(held, seen)
        except BaseException as error:
            self._undo(done, error)
            raise
        self._forget_unchecked()

    def finish(self, held: LockedTransaction, metadata: str) -> None:
        """Make the check of a run that ended after the renamings.  If it fails, both get their names of before.

        Args:
            held: has the locks of both.
            metadata: the place of the metadata of the copy; empty if somebody has written to it since.

        Raises:
            ConflictError: the Hive table has rows that the copy has not.
            MetastoreError: see :meth:`forward`.
        """
        kept = get_table(self._metastore, *_pair(self.kept))
        try:
            self._require_no_late_commit(held, _seen_in(kept.parameters.get(_UNCHECKED, "")))
        except ConflictError as error:
            if not metadata:
                error.hint = "both have new rows: copy those of one by hand; --back --discard-snapshots keeps Hive's"
                raise
            self._require_metadata(self.source, metadata)
            self._undo([(self.source, self.kept), (self.copy, self.source)], error)
            raise
        self._forget_unchecked()

    def _require_no_late_commit(self, held: LockedTransaction, seen: ValidWriteIds) -> None:
        """Give statements that found the table before the renaming a moment, end them, and look what was committed.

        Raises:
            ConflictError: the Hive table has rows that the copy has not.
        """
        time.sleep(_GRACE)
        self._end_others(held)
        self._require_unchanged(self.kept, seen)

    def _forget_unchecked(self) -> None:
        table = get_table(self._metastore, *_pair(self.kept))
        try:
            self._alter(table, table.name, {MIGRATED_TO: self.copy})
        except AcidctlError as error:
            error.hint = "the names have changed; run it again, which looks for late commits once more"
            raise

    def back(self, held: LockedTransaction, metadata: str) -> None:
        """Give its name back to the Hive table.  If it fails, both are called as before.

        Args:
            held: has the locks of both.
            metadata: the place of the metadata of the copy.

        Raises:
            ConflictError, MetastoreError: see :meth:`forward`.
        """
        self._require_metadata(self.source, metadata)
        kept = get_table(self._metastore, *_pair(self.kept)).parameters
        self._marks = {key: kept[key] for key in (MIGRATED_TO, _UNCHECKED) if key in kept}
        done: list[tuple[str, str]] = []
        held.beat()
        try:
            self._rename(self.source, self.copy, {}, done)
            self._fence(held)
            self._rename(self.kept, self.source, {}, done)
        except BaseException as error:
            self._undo(done, error)
            raise

    def recover(self) -> None:
        """Give its name back to the Hive table after a run that ended between the two renamings.

        Raises:
            ConflictError: that run is still at work.
        """
        with self.locked(self.kept, wait=_WAIT):
            if self.state() is State.HALF:
                self._rename(self.kept, self.source, {}, [])

    def directory_of(self, name: str) -> str:
        """Return the URL of the directory of a table."""
        return get_table(self._metastore, *_pair(name)).location or ""

    def wrote_too_late(self) -> bool:
        """Return whether a statement wrote under the name after it was the copy's: its rows are in neither table."""
        return newest_valid(self.write_ids(self.source)) > 0

    def _find(self, name: str) -> HiveTable | None:
        try:
            return get_table(self._metastore, *_pair(name))
        except NotFoundError:
            return None

    def _require_metadata(self, name: str, metadata: str) -> None:
        """Require that an Iceberg table has this metadata still.

        Raises:
            ConflictError: see above.
        """
        if get_table(self._metastore, *_pair(name)).parameters.get(METADATA) != metadata:
            why = "somebody else has just committed"
            raise ConflictError(f"{name} has changed", why, "nothing was renamed; run it again")

    def _require_unchanged(self, name: str, seen: ValidWriteIds) -> None:
        """Require that no write id was committed since `seen`: the copy would not have its rows.

        Raises:
            ConflictError: see above.
        """
        now = self.write_ids(name)
        if newest_valid(now) != newest_valid(seen) or any(now.is_valid(id_) for id_ in seen.open):
            why = "a statement without a lock has committed meanwhile"
            raise ConflictError(f"{name} has rows that the copy has not", why, "run it again when nobody writes so")

    def _fence(self, held: LockedTransaction) -> None:
        """Lock the name, which has no table now, and end the statements that came too late.

        Raises:
            ConflictError: there is always another one.
        """
        for attempt in range(_ATTEMPTS):
            self._end_others(held)
            try:
                held.lock(locks_on([_pair(self.source)]), 1.0)
                return
            except ConflictError:
                if attempt == _ATTEMPTS - 1:
                    raise

    def _end_others(self, held: LockedTransaction) -> None:
        """Abort the statements that wait for the Hive table, and all that have a lock on the name that was its own."""
        for table in (self.kept, self.source):
            for lock in find_locks(self._metastore, *_pair(table)):
                if lock.txn and lock.txn != held.id and (lock.is_waiting or table == self.source):
                    with suppress(LostTransaction):  # it has ended
                        self._metastore.call(interface.ABORT_TXN, interface.AbortTxnRequest(lock.txn))

    def _alter(self, table: HiveTable, name: str, marks: Mapping[str, str]) -> None:
        """Give a table a name, and these marks alone."""
        raw = raw_table(self._metastore, table)
        raw.fields[_NAME] = text_value(name)
        found = raw.texts(interface.TABLE_PARAMETERS).items()
        parameters = {key: value for key, value in found if key not in (MIGRATED_TO, _UNCHECKED)}
        raw.set_texts(interface.TABLE_PARAMETERS, {**parameters, **marks})
        context = expecting(parameters.get(METADATA, ""), parameters)
        alter(self._metastore, (table.database, table.name), raw, context)

    def _rename(self, old: str, new: str, marks: Mapping[str, str], done: list[tuple[str, str]]) -> None:
        """Rename a table, and note it in `done`.

        Args:
            marks: its parameters of a table that was cut over; it loses others of them.

        Raises:
            MetastoreError: it was not renamed, or nobody knows.
        """
        table = get_table(self._metastore, *_pair(old))
        try:
            self._alter(table, _pair(new)[1], marks)
        except AcidctlError as error:
            found = None
            with suppress(AcidctlError):
                found = self._find(new)
            if not found or _identity(found) != _identity(table):  # else it was renamed, and the answer was lost
                if isinstance(error, (Unreachable, Unreadable)):
                    what = f"nobody knows whether {old} was renamed to {new}"
                    raise MetastoreError(what, str(error), "run it again: it finds out, and goes on") from error
                raise MetastoreError(f"cannot rename {old} to {new}", error.why or error.what, error.hint) from error
        done.append((old, new))

    def _undo(self, done: list[tuple[str, str]], error: BaseException) -> None:
        """Rename tables back after an error; its hint says what to do if they cannot be renamed now."""
        try:
            for old, new in reversed(done):
                self._rename(new, old, self._marks if old == self.kept else {}, [])
        except AcidctlError as failed:
            if isinstance(error, AcidctlError):
                error.hint = f"the names could not be changed back ({failed}): give --back to do it"


def _pair(name: str) -> tuple[str, str]:
    """Return database and table of ``db.table``."""
    database, _, table = name.partition(".")
    return database, table


def _text_of(seen: ValidWriteIds) -> str:
    """Return what :meth:`Swap.finish` needs of a list: its newest committed write id, and the open ones."""
    return f"{newest_valid(seen)} {','.join(map(str, seen.open))}"


def _seen_in(text: str) -> ValidWriteIds:
    """Return a list with the newest committed and the open write ids of a text of :func:`_text_of`.

    Raises:
        BadDataError: somebody has changed it.
    """
    newest, _, ids = text.partition(" ")
    try:
        return ValidWriteIds(int(newest), open=tuple(int(one) for one in ids.split(",") if one))
    except ValueError as error:
        hint = "compare both tables; then remove the parameter, or give --back"
        raise BadDataError(f"{_UNCHECKED} holds no write ids", f"it is {text[:80]!r}", hint) from error


def _identity(table: HiveTable) -> tuple[object, ...]:
    """Return what a table has under any name; Hive 3 knows only the second in which it was made."""
    return table.made, table.table_type, table.parameters.get(METADATA)
