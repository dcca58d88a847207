"""The ways in which a metastore and the files of a table disagree, told apart by a listing and the answers after it.

The listing comes first and the metastore is asked afterwards: a writer has its write id before its directory, and a
compactor has its transaction before the name that holds it. So nothing that is at work can look like a disagreement.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from acidctl.acid.names import MINL, AcidDirectory, Kind, format_directory
from acidctl.acid.reasons import Reason
from acidctl.acid.writeids import ValidTxns, ValidWriteIds
from acidctl.wording import human_count, some_of

FIRST_CONVERTED = 10_000_001
"""The first write id of a table with original files, which Hive 3 made transactional."""

_DAY = 86400.0
_NAMED = 3


class Disagreement(StrEnum):
    """The kinds of disagreement, in the order of their danger."""

    OLDER_METASTORE = "older-metastore"
    RECREATED_TABLE = "recreated-table"
    OTHER_CLUSTER = "other-cluster"
    FUTURE_TRANSACTION = "future-transaction"
    ABORTED_TRANSACTION = "aborted-transaction"
    OPEN_TRANSACTION = "open-transaction"
    LOST_PARTITION = "lost-partition"
    NO_FOLDER = "no-folder"
    FORGOTTEN_ABORT = "forgotten-abort"
    USED_TWICE = "used-twice"
    OLDER_FILES = "older-files"
    MISSING_BASE = "missing-base"

    @property
    def is_hint(self) -> bool:
        """Whether healthy tables may look like this, too."""
        return self in (Disagreement.NO_FOLDER, Disagreement.USED_TWICE, Disagreement.MISSING_BASE)


_ADVICE = {
    Disagreement.OLDER_METASTORE: "let nobody write: the next write takes a number again and destroys its files",
    Disagreement.RECREATED_TABLE: "let nobody write: the first write takes number 1 and destroys its files",
    Disagreement.OTHER_CLUSTER: "let nobody write: the numbers of these files were given by another metastore",
    Disagreement.FUTURE_TRANSACTION: "let nobody write: once that transaction is aborted here, Hive removes the rows",
    Disagreement.ABORTED_TRANSACTION: "let Hive's cleaner rest and copy the directory: the next cleaning removes it, "
    "and it holds the rows alone; the rows count if its name loses the end _vN",
    Disagreement.OPEN_TRANSACTION: "see `acidctl hive txns`: the rows are read once that transaction is committed",
    Disagreement.LOST_PARTITION: "the rows are read once the partition is added",
    Disagreement.NO_FOLDER: "an empty partition looks like this, too",
    Disagreement.FORGOTTEN_ABORT: "the metastore counts them as committed: nothing but taking them aside helps",
    Disagreement.USED_TWICE: "copies of files look like this, too; look for rows of two lives with `acidctl history`",
    Disagreement.OLDER_FILES: "restore newer files if there are any: the rows that were compacted are lost",
    Disagreement.MISSING_BASE: "a truncated table looks like this, too; restore the base if it was lost",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One disagreement of a table.

    Attributes:
        directories: relative to the table: ``ds=1/delta_0000004_0000004_0000``.
        why: the sentence for people.
    """

    kind: Disagreement
    directories: tuple[str, ...]
    why: str

    @property
    def advice(self) -> str:
        """Say in a sentence what a user does about it."""
        return _ADVICE[self.kind]


@dataclass(frozen=True)
class Folder:
    """One location of a table, as it was listed.

    Attributes:
        name: its path relative to the table's, ``ds=1``; empty for an unpartitioned table.
        known: the metastore has it as a location of the table.
        has_rows: of an unknown folder, whether current directories hold files, and no partition elsewhere has its name.
        has_originals: files from before the table was transactional lie in it.
        times: when the directories were changed, in seconds since the epoch, by name, where the store has times.
        ahead: the reasons of :meth:`acidctl.location.metastore_state.AllocatedIds.exceeded_by`.
    """

    name: str
    directories: tuple[AcidDirectory, ...]
    known: bool = True
    has_rows: bool = True
    has_originals: bool = False
    times: Mapping[str, float] = field(default_factory=dict)
    ahead: tuple[Reason, ...] = ()

    def path(self, name: str) -> str:
        """Return the path of a directory, relative to the table."""
        return f"{self.name}/{name}" if self.name else name

    def above(self, what: str) -> tuple[str, ...]:
        """Return the paths of the directories whose ``write id`` or ``transaction`` was never given."""
        return tuple(self.path(name) for why in self.ahead if why.value("what") == what for name in why.by)

    @property
    def base(self) -> int:
        """Return the highest id of a base; 0 without one."""
        return max([0, *(d.max_write_id for d in self.directories if d.kind is Kind.BASE)])

    @property
    def has_base(self) -> bool:
        """Return whether there is any base."""
        return any(d.kind is Kind.BASE for d in self.directories)


@dataclass(frozen=True)
class Answers:
    """The answers of the metastore about one table, given after its folders were listed.

    Attributes:
        given: the highest write id that it ever gave.
        sequence: the highest transaction id that it ever gave.
        compacting: the transactions of compactions at work.
        succeeded: the highest write id of succeeded major compactions, by the names of their partitions.
        missing: the partitions whose folder does not exist.
        unfinished: open transactions of a rescue that was interrupted; their write ids are open, too.
    """

    given: int
    sequence: int
    write_ids: ValidWriteIds
    txns: ValidTxns
    compacting: frozenset[int] = frozenset()
    succeeded: Mapping[str, int] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    unfinished: tuple[int, ...] = ()


@dataclass(frozen=True)
class Look:
    """A table's folders, and the answers about it: all that findings and plans are made of.

    Attributes:
        before: an earlier look, if there was one; only what both show is found.
    """

    folders: tuple[Folder, ...]
    answers: Answers
    before: Look | None = None

    @cached_property
    def highest(self) -> int:
        """Return the highest write id in a name; 0 without any."""
        return max([0, *(d.max_write_id for f in self.folders for d in f.directories)])

    @cached_property
    def highest_txn(self) -> int:
        """Return the highest visibility transaction in a name; 0 without any."""
        return max([0, *(d.visibility_txn for f in self.folders for d in f.directories)])

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """Return the disagreements, the most dangerous first."""
        order, found = list(Disagreement), _findings(self)
        if self.before:
            earlier = {(f.kind, path) for f in self.before.findings for path in f.directories}
            found = (f for f in found if any((f.kind, path) in earlier for path in f.directories))
        return tuple(sorted(found, key=lambda finding: order.index(finding.kind)))

    def above(self, what: str) -> tuple[str, ...]:
        """Return the directories, relative to the table, with a ``write id`` or ``transaction`` never given."""
        return tuple(path for folder in self.folders for path in folder.above(what))

    def lost_partitions(self) -> tuple[Folder, ...]:
        """Return the folders of partitions that the metastore does not have, and no writer is about to add.

        A dynamic insert at work has folders that the metastore does not know yet; all their ids are open.
        """
        ids = self.answers.write_ids
        return tuple(
            folder
            for folder in self.folders
            if not folder.known
            and folder.has_rows
            and any(ids.is_valid(d.max_write_id) or d.max_write_id > self.answers.given for d in folder.directories)
        )


def is_held_elsewhere(directory: AcidDirectory, others: Iterable[AcidDirectory], txns: ValidTxns) -> bool:
    """Return whether another directory that readers may see has ids of this one.

    A compaction that failed always has its inputs beside it; one whose inputs were cleaned holds its rows alone.
    """
    low = MINL if directory.kind is Kind.BASE else directory.min_write_id
    return any(
        other is not directory
        and (not other.visibility_txn or txns.is_valid(other.visibility_txn))
        and (MINL if other.kind is Kind.BASE else other.min_write_id) <= directory.max_write_id
        and other.max_write_id >= low
        for other in others
    )


def _findings(look: Look) -> Iterator[Finding]:
    answers = look.answers
    yield from _of_write_ids(look)
    if future := look.above("transaction"):
        what = f"transaction {answers.sequence} is the newest, and names hold {look.highest_txn}"
        yield Finding(Disagreement.FUTURE_TRANSACTION, future, f"{what}: {_some(future)}")
    for folder in look.folders:
        yield from _of_ended_transactions(folder, answers)
        yield from _of_times(folder)
        yield from _of_lost_files(folder, answers)
    if lost := tuple(folder.name for folder in look.lost_partitions()):
        yield Finding(Disagreement.LOST_PARTITION, lost, f"the metastore does not have {_some(lost)}")
    if answers.missing:
        why = f"the metastore has partitions without a folder: {_some(answers.missing)}"
        yield Finding(Disagreement.NO_FOLDER, answers.missing, why)


def _of_write_ids(look: Look) -> Iterator[Finding]:
    """Yield what is wrong with ids above those that were given."""
    above, given = look.above("write id"), look.answers.given
    if look.answers.unfinished:
        ids = look.answers.write_ids
        # Hive 4 lists no more than the lowest open id: its high watermark is that one.
        opened = [
            f.path(d.name)
            for f in look.folders
            for d in f.directories
            if d.max_write_id <= given and not ids.is_valid(d.max_write_id) and not ids.is_aborted(d.max_write_id)
        ]
        count = human_count(len(look.answers.unfinished), "transaction")
        why = f"an earlier rescue was interrupted: it left {count} open"
        yield Finding(Disagreement.OLDER_METASTORE, (*above, *opened) or (".",), why)
        return
    if not above:
        return
    kind = Disagreement.OLDER_METASTORE
    why = f"the metastore gave write ids up to {given}, and the files go up to {look.highest}"
    if not given:
        # One metastore's sequence only goes up: names above it are those of another metastore.
        is_foreign = bool(look.above("transaction"))
        kind = Disagreement.OTHER_CLUSTER if is_foreign else Disagreement.RECREATED_TABLE
        why = f"the metastore gave this table no write id, and the files go up to {look.highest}"
    replicated = any(reason.value("is_replica") for folder in look.folders for reason in folder.ahead)
    yield Finding(kind, above, f"{why}{' (a replica)' if replicated else ''}: {_some(above)}")


def _of_ended_transactions(folder: Folder, answers: Answers) -> Iterator[Finding]:
    """Yield directories that hold rows alone under a transaction that is aborted or open here."""
    for directory in folder.directories:
        txn = directory.visibility_txn
        if not txn or answers.txns.is_valid(txn) or txn > answers.sequence or txn in answers.compacting:
            continue
        if is_held_elsewhere(directory, folder.directories, answers.txns):
            continue
        is_aborted = answers.txns.is_aborted(txn)
        kind = Disagreement.ABORTED_TRANSACTION if is_aborted else Disagreement.OPEN_TRANSACTION
        state, path = "aborted" if is_aborted else "open", folder.path(directory.name)
        yield Finding(kind, (path,), f"transaction {txn} is {state} here, and {path} alone holds its rows")


def _of_times(folder: Folder) -> Iterator[Finding]:
    """Yield ids whose directory is older by more than a day than that of a lower id."""
    single = [d for d in folder.directories if d.kind is not Kind.BASE and d.min_write_id == d.max_write_id]
    newest, older = 0.0, []
    for directory in sorted(single, key=lambda d: d.min_write_id):
        time = folder.times.get(directory.name)
        if time is None or directory.visibility_txn:
            continue
        if time < newest - _DAY:
            older.append(folder.path(directory.name))
        newest = max(newest, time)
    if older:
        why = f"a lower write id was written more than a day later than {_some(older)}"
        yield Finding(Disagreement.USED_TWICE, tuple(older), why)


def _of_lost_files(folder: Folder, answers: Answers) -> Iterator[Finding]:
    """Yield locations whose files are older than a compaction that the metastore has as succeeded.

    After it nothing is left of what it merged. One directory alone is not merged, and stays as it is.
    """
    highest = answers.succeeded.get(folder.name, 0)
    if not highest or not folder.known:
        return
    readable = [d for d in folder.directories if not d.visibility_txn or answers.txns.is_valid(d.visibility_txn)]
    valid = [
        d
        for d in readable
        if d.kind is not Kind.BASE
        and folder.base < d.min_write_id
        and d.max_write_id <= highest
        and answers.write_ids.is_valid(d.max_write_id)
    ]
    if len(valid) + (folder.has_base or folder.has_originals) > 1:
        named = tuple(folder.path(d.name) for d in valid)
        why = f"a compaction up to write id {highest} succeeded, and what it merged is there: {_some(named)}"
        yield Finding(Disagreement.OLDER_FILES, named, why)
    elif readable and not folder.has_base and not folder.has_originals:
        lowest = min(d.min_write_id for d in readable)
        if highest < lowest and lowest != FIRST_CONVERTED:
            why = f"a compaction up to write id {highest} succeeded, and {folder.name or 'the table'} has no base"
            first = format_directory(Kind.BASE, highest, highest)
            yield Finding(Disagreement.MISSING_BASE, (folder.path(first),), why)


def _some(names: Sequence[str]) -> str:
    return some_of(names, _NAMED)
