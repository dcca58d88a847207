"""The steps that all statements share: they stage files, publish and commit them, or take them back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from acidctl.acid.compaction_kind import Hive
from acidctl.acid.listing import TableType
from acidctl.acid.names import NO_STATEMENT, Kind, format_directory
from acidctl.base import parallel
from acidctl.base.errors import AcidctlError, ConflictError
from acidctl.location.change.work_log import Fact, LogEntry, log_done
from acidctl.location.warehouse import require_same
from acidctl.metastore.client import Metastore
from acidctl.metastore.interface import Operation
from acidctl.metastore.tables import HiveTable, get_table
from acidctl.orc.types import OrcType, row_type_of
from acidctl.outcome import Result
from acidctl.storage.registry import open_location
from acidctl.writing.constraints import Constraints
from acidctl.writing.insert_only.plain_files import PlainFiles
from acidctl.writing.once import Once
from acidctl.writing.places import Places
from acidctl.writing.refusals import require_writable
from acidctl.writing.rows.files import AcidFiles, FileKind, StagedFile, StagedRows
from acidctl.writing.statistics import Growth
from acidctl.writing.transaction import Rehearsal, Seen, Statement, WriteTransaction


@dataclass(frozen=True, slots=True)
class Written:
    """The amounts that a statement is about to commit, or has committed.

    Attributes:
        txn: the transaction; 0 for a rehearsal.
        inserted, updated, deleted: numbers of rows.
        partitions: names of the partitions that get files; empty for an unpartitioned table.
        replaces: all earlier rows of the same locations are gone.
        lock: the type of the lock on the table.
    """

    txn: int
    write_id: int
    lock: str
    inserted: int
    updated: int
    deleted: int
    files: int
    bytes: int
    partitions: tuple[str, ...] = ()
    replaces: bool = False


@dataclass(frozen=True, slots=True)
class NewFiles:
    """The form of a statement's files with new rows; it can be pickled.

    Attributes:
        row: the type of the table's columns.
        hive: the version of Hive that reads them.
        replaces: they replace all rows of their locations.
    """

    table: HiveTable
    row: OrcType
    write_id: int
    hive: Hive
    replaces: bool

    def of_statement(self, statement: int) -> tuple[str, FileKind]:
        """Return the name of the files' directory, and their kind.

        Args:
            statement: the statement id; a base has none, so it takes 0 alone.
        """
        kind, number = (Kind.BASE, NO_STATEMENT) if self.replaces else (Kind.DELTA, statement)
        name = format_directory(kind, self.write_id, self.write_id, number)
        if self.table.table_type is TableType.INSERT_ONLY:
            return name, PlainFiles(self.table, self.row, self.hive)
        return name, AcidFiles(self.row, self.write_id, statement)


class Write(ABC):
    """One statement that writes rows to one table.

    Attributes:
        constraints: the table's; empty until the statement runs.
        storage: options of the stores, as :meth:`run` got them.
        updated: the number of rows that got a new version, once all files are staged.
        places: the locations that it writes to.
    """

    def __init__(self, metastore: Metastore, table: HiveTable, statement: Statement) -> None:
        self.metastore, self.table, self.statement = metastore, table, statement
        self.row = row_type_of(tuple((column.name, column.type) for column in table.columns))
        self.updated = 0
        self.constraints = Constraints()
        self.storage: Mapping[str, str] = {}
        self.places = Places(metastore, table, self.storage)

    def new_rows(self, transaction: Seen) -> StagedRows:
        """Return the writer of the rows that the statement adds: to a delta, or to a base if it replaces rows."""
        name, files = self.new_files(transaction).of_statement(0)
        return StagedRows(self.places.stage, name, files, expect=self.places.expect)

    def new_files(self, transaction: Seen) -> NewFiles:
        """Return the form of the files with the rows that the statement adds."""
        hive, replaces = self.metastore.features.hive, self.statement.replaces
        return NewFiles(self.table, self.row, transaction.write_id, hive, replaces)

    @abstractmethod
    def stage(self, transaction: Seen) -> Sequence[StagedFile]:
        """Write all files of the statement to staging directories, complete and closed."""

    def run(
        self,
        *,
        wait: float = 600.0,
        storage: Mapping[str, str] | None = None,
        once: Once | None = None,
    ) -> Written:
        """Carry out the statement.

        Args:
            wait: seconds to wait for a conflicting lock.
            storage: options of the stores.
            once: the load that the statement makes, if that must not be made twice.

        Raises:
            AlreadyLoaded: the load of `once` is in the table; nothing was changed.
            RefusedError: the table cannot be written to.
            StatementConflict: another writer holds a lock, or committed first in every attempt.
            ConflictError: the table was changed.
            LostTransaction: another writer changed the same rows and committed first; nothing was changed.
            UnknownOutcome: whether it was committed is not known.
        """
        self._prepare(storage)
        with WriteTransaction(
            self.metastore, self.table, self.statement, wait=wait, once=once, storage=self.storage
        ) as transaction:
            try:
                _require_unchanged(self.table, get_table(self.metastore, self.table.database, self.table.name))
                self.places.begin(transaction, transaction.id)
                files = self.stage(transaction)
                written = self._written(transaction, files, transaction.id)
                if files:
                    growth = Growth.of(files, replaces=self.statement.replaces)
                    self.places.publish(transaction, _directories(files), growth)
                else:
                    transaction.commit()  # if aborted, it would stay in Hive's lists until cleaned
            except BaseException:
                if not transaction.may_be_committed:
                    self.places.take_back()
                raise
            self.places.clear()
        return written

    def rehearse(self, storage: Mapping[str, str] | None = None) -> Written:
        """Return what the statement would write now: it stages the files and removes them, without a lock.

        Raises:
            RefusedError: the table cannot be written to.
        """
        self._prepare(storage)
        try:
            rehearsal = Rehearsal.of(self.metastore, self.table)
            self.places.begin(rehearsal, 0)
            return self._written(rehearsal, self.stage(rehearsal), 0)
        finally:
            self.places.take_back()

    def _prepare(self, storage: Mapping[str, str] | None) -> None:
        require_writable(self.metastore, self.table, self.statement.operation, replaces=self.statement.replaces)
        if self.statement.operation is not Operation.DELETE:
            self.constraints = Constraints.of(self.metastore, self.table)
            self.constraints.refuse_checks(self.table)
        self.storage = {} if storage is None else storage  # options of prefixes make no mapping of their own
        self.places = Places(self.metastore, self.table, self.storage)
        # Before a write id is taken: an aborted one would be that of files there. Other partitions, which only the rows
        # name, are looked at before anything is staged; and the lock may find these changed, so nothing is kept.
        before = Places(self.metastore, self.table, self.storage)
        names = self.known_locations()
        before.expect(names)
        deque(parallel.results(before.require_agreement, names), maxlen=0)
        self.check()

    def known_locations(self) -> Sequence[str]:
        """Return the names of the locations that are known before any row is read."""
        return self.statement.partitions if self.table.partition_keys else ("",)

    def check(self) -> None:  # noqa: B027 - most statements have nothing to check
        """Refuse what can be refused before a transaction is opened: an aborted one stays in the lists of Hive."""

    def _written(self, transaction: Seen, files: Sequence[StagedFile], txn: int) -> Written:
        return Written(
            txn,
            transaction.write_id,
            self.statement.lock_type(self.metastore.features.hive).name,
            sum(file.rows for file in files if not file.is_delete) - self.updated,
            self.updated,
            sum(file.rows for file in files if file.is_delete) - self.updated,
            len(files),
            sum(file.bytes for file in files),
            tuple(dict.fromkeys(file.location for file in files if file.location)),
            self.statement.replaces,
        )


def log_written(
    verb: str,
    table: HiveTable,
    written: Written,
    storage: Mapping[str, str] | None,
    tell: Callable[[str], None] | None = None,
    *,
    stream: str = "",
    **more: Fact,
) -> None:
    """Log a committed statement for the directory of its table, if it wrote anything; a failure fails nothing.

    Args:
        storage: options of the stores.
        tell: called with a sentence if the log cannot be written.
        stream: the id of the run or query whose transaction this is; they share one line.
        more: further facts.
    """
    if not written.files:
        return
    facts: dict[str, Fact] = {"table": table.full_name, "inserted": written.inserted, "bytes": written.bytes, **more}
    if stream:
        facts |= {"transactions": 1, "minWriteId": written.write_id, "maxWriteId": written.write_id}
    else:
        facts |= {
            "transaction": written.txn,
            "writeId": written.write_id,
            "updated": written.updated,
            "deleted": written.deleted,
            "replaces": written.replaces,
            "partitions": len(written.partitions),
        }
    entry = LogEntry(verb, Result.WRITTEN.value, stream, facts=facts, id=stream_line(stream))
    log_at(table, entry, storage, tell)


def stream_line(stream: str) -> str:
    """Return the id of the line of a stream in the log; empty for no stream."""
    return f"stream {stream}" if stream else ""


def log_at(
    table: HiveTable, entry: LogEntry, storage: Mapping[str, str] | None, tell: Callable[[str], None] | None
) -> None:
    """Log an operation for the directory of a table; see :func:`log_written`."""
    with suppress(AcidctlError):  # the rows are committed in any case
        fs, path = open_location(table.location, storage or {})
        log_done(fs, path, entry, tell)


def _require_unchanged(table: HiveTable, now: HiveTable) -> None:
    """Refuse to go on with a table that is another one now, or has other columns or another storage.

    Raises:
        ConflictError: it was changed since `table` was read.
    """
    require_same(table, now)
    if _form(table) != _form(now):
        what = f"{table.full_name} is not the table that it was"
        raise ConflictError(what, "its columns or its storage were changed meanwhile", "run it again")


def _form(table: HiveTable) -> tuple[object, ...]:
    buckets = table.buckets, table.bucket_columns, table.sort_columns, table.parameters.get("bucketing_version")
    return table.columns, table.partition_keys, table.table_type, table.stored_as, buckets


def _directories(files: Sequence[StagedFile]) -> dict[str, tuple[str, ...]]:
    """Return the staged directories of each location, in the order in which they appear."""
    by_location: dict[str, dict[str, None]] = {}
    for file in files:
        by_location.setdefault(file.location, {})[file.directory] = None
    return {location: tuple(directories) for location, directories in by_location.items()}
