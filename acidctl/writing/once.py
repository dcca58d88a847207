"""Load rows once: a name and a value are committed in one step with the rows.

Hive 4 keeps the value in a table of its own, a view without data, because `commit_txn` stores a parameter of a table.
Hive 3 has no such call: a file beside the rows says, before the commit, which transaction is about to be committed,
and a second commit of a committed transaction is not an error there, so that a later run learns the outcome.
"""

from __future__ import annotations

import hashlib
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import quote

from acidctl.acid.compaction_kind import Hive
from acidctl.base.errors import (
    AcidctlError,
    BadDataError,
    ConflictError,
    ExitStatus,
    NotFoundError,
    RefusedError,
    UsageProblem,
)
from acidctl.base.printable import printable
from acidctl.location.change.own_files import MOST_BYTES, require_ours, write_checked
from acidctl.metastore import interface
from acidctl.metastore.activity import open_txns_info
from acidctl.metastore.client import Metastore
from acidctl.metastore.errors import LostTransaction
from acidctl.metastore.interface import LockType
from acidctl.metastore.tables import HiveTable
from acidctl.metastore.transactions import Transactions
from acidctl.metastore.txn.transaction import LockedTransaction
from acidctl.storage.port import join, parent_of
from acidctl.storage.ranged import read_small
from acidctl.storage.registry import open_location

NOTHING = -1
"""The value before anything is loaded."""

_MOST_NAME, _MOST_VALUE = 200, (1 << 63) - 1
_PREFIX, _PARAMETER = "acidctl_once_", "_meta.acidctl"
_FOLDER = "_acidctl_once"
_FILE = re.compile(r"([0-9]{20})(?:-([0-9]+)\.intent|\.loaded)")


@dataclass(frozen=True, slots=True)
class Once:
    """One load of a series: everything of `name` up to `value` is in the table once it is committed.

    A job has a name of its own for each load and leaves the value alone. A stream has one name, and its value rises
    from load to load: the number of an epoch, or an offset. Names belong to one table: other tables may have the same.

        with WriteTransaction(metastore, table, statement, once=Once("orders", epoch)) as transaction:
            ...  # AlreadyLoaded if the epoch is in the table

    Two processes with one name run one after the other, since the transaction holds a lock on the name. If one dies,
    either all of its load is in the table or nothing, and :func:`loaded_value` and the next transaction know it.

    Args:
        name: any text of 1 to 200 bytes.
        value: 0 or more.
        after: the value that must be the last one loaded, for a stream whose loads are not cut at fixed values;
            None if any lower value will do.
        owner: the id of what counts the values, such as a stream's checkpoint; another owner may not go on with the
            name. Empty if it has none, or if it is not known.

    Raises:
        UsageProblem: the name or the value cannot be used.
    """

    name: str
    value: int = 0
    after: int | None = None
    owner: str = ""

    def __post_init__(self) -> None:
        if not 0 < len(self.name.encode(errors="surrogatepass")) <= _MOST_NAME:
            why = f"it needs 1 to {_MOST_NAME} bytes"
            raise UsageProblem(f"cannot remember a load as {printable(self.name[:40])!r}", why, "give another key")
        if not 0 <= self.value <= _MOST_VALUE:
            why = f"values are 0 to {_MOST_VALUE}"
            raise UsageProblem(f"cannot remember {self.value} as loaded", why, "give another value")


class AlreadyLoaded(AcidctlError, status=ExitStatus.NOTHING_TO_DO):
    """The value, or a higher one, is in the table: nothing was written."""


def loaded_value(
    metastore: Metastore, table: HiveTable, name: str, storage: Mapping[str, str] | None = None, *, settle: bool = True
) -> int:
    """Return the highest value that is loaded under a name; NOTHING if there is none.

    Args:
        name: as in :class:`Once`.
        storage: options of the stores.
        settle: commit what a killed process was about to commit (Hive 3), so that its outcome is known. Without it the
            result may be too low.

    Raises:
        RefusedError: nobody knows whether a killed process committed its load.
    """
    return Ledger.of(metastore, table, name, storage).value(settle=settle)


class Ledger(ABC):
    """The record of what is loaded under one name.

    Attributes:
        lock: the part of a writer's lock that keeps other processes with the same name away.
        owner: the owner of the value that was read last; empty if it has none.
    """

    owner = ""

    def __init__(self, metastore: Metastore, table: HiveTable, name: str) -> None:
        self._metastore, self._table, self._name = metastore, table, name
        identity = table.made[1] or table.full_name.lower()  # a number remains if the table is renamed
        self._key = _PREFIX + _digest(f"{identity}\n{name}")
        self.lock = interface.LockComponent(LockType.EXCLUSIVE, database=table.database, table=self._key)

    @classmethod
    def of(cls, metastore: Metastore, table: HiveTable, name: str, storage: Mapping[str, str] | None) -> Ledger:
        """Return the kind of record that the metastore allows."""
        before_4 = _IntentLedger(metastore, table, name, storage or {})
        return _ParameterLedger(metastore, table, name, before_4) if metastore.features.hive is Hive.HIVE4 else before_4

    def require_new(self, once: Once) -> None:
        """Refuse a load that is in the table, or that does not follow the last one.

        Raises:
            AlreadyLoaded: it is loaded.
            ConflictError: something else was loaded since, or the name has another owner.
        """
        value = self.value()
        if once.owner and self.owner and once.owner != self.owner:
            what = f"{printable(once.name)!r} is the name of another query in {self._table.full_name}"
            why = f"the query {printable(self.owner)} has loaded up to {value}, and this one is {once.owner}"
            raise ConflictError(what, why, "give this query another name, or its old checkpoint; nothing was written")
        if once.after is not None and value != once.after:
            what = f"another process has loaded {printable(once.name)!r} up to {value}"
            raise ConflictError(what, f"this one went on from {once.after}", "end one of them; nothing was written")
        if value >= once.value:
            up_to = f" up to {value}" if value else ""
            what = f"{printable(once.name)!r} is loaded{up_to}"
            raise AlreadyLoaded(what, f"{self._table.full_name} has its rows", "nothing was written")

    @abstractmethod
    def prepare(self) -> None:
        """Make the record if it is not there; before the transaction."""

    @abstractmethod
    def value(self, *, settle: bool = True) -> int:
        """Return the highest value that is loaded; see :func:`loaded_value`."""

    @abstractmethod
    def intend(
        self, once: Once, held: LockedTransaction, write_id: int, evidence: str
    ) -> interface.CommitKeyValue | None:
        """Prepare the commit of a transaction, and return what the commit has to store.

        Args:
            evidence: the URL of a directory with rows of the transaction; empty if it has none.
        """

    def settle(self, value: int, owner: str) -> None:  # noqa: B027 - Hive 4 has nothing to do
        """Record that a value is loaded, after the commit."""


class _ParameterLedger(Ledger):
    """Hive 4: the value is a parameter of a view, which `commit_txn` stores with the transaction.

    Each name has a view, which is never altered: an alteration would put old values of other names back.
    """

    _id = 0

    def __init__(self, metastore: Metastore, table: HiveTable, name: str, before: _IntentLedger) -> None:
        super().__init__(metastore, table, name)
        self._before = before

    def prepare(self) -> None:
        if self._find() is None:
            with suppress(AcidctlError):  # another process made it meanwhile, or the next line says why not
                self._metastore.call(interface.CREATE_TABLE_BEFORE_4, self._view())
            if self._find() is None:
                self._metastore.call(interface.CREATE_TABLE_BEFORE_4, self._view())

    def value(self, *, settle: bool = True) -> int:
        text = self._find()
        try:
            number, _, rest = (str(NOTHING) if text is None else text).partition(":")
            value, self.owner = int(number), rest.partition(":")[2]
            if value == NOTHING:  # the last load may have been before an upgrade from Hive 3
                value = self._before.value(settle=settle)
                self.owner = self._before.owner
            return value
        except ValueError:
            what = f"{self._table.database}.{self._key} does not say what is loaded"
            why = f"its parameter {_PARAMETER} is {printable(str(text)[:40])!r}"
            raise BadDataError(what, why, "look who changed it") from None

    def intend(self, once: Once, _: LockedTransaction, write_id: int, _evidence: str) -> interface.CommitKeyValue:
        self._find()
        owner = f":{once.owner}" * bool(once.owner)
        return interface.CommitKeyValue(self._id, _PARAMETER, f"{once.value}:{write_id}{owner}")

    def _find(self) -> str | None:
        """Return the stored text; None without the view."""
        settings = self._metastore.settings
        request = interface.GetTableRequest(self._table.database, self._key, **settings.translation)
        found = None
        with suppress(NotFoundError):
            found = self._metastore.call(interface.GET_TABLE, request).table
        if found is None:
            return None
        self._id = found.id
        return str(found.parameters.get(_PARAMETER, ""))

    def _view(self) -> interface.NewTable:
        text = "SELECT 'what acidctl has loaded once: see the table properties' AS note"
        parameters = {
            _PARAMETER: str(NOTHING),
            "acidctl.table": self._table.full_name,
            "acidctl.name": quote(self._name, safe=" /:=,+@", errors="surrogatepass"),
        }
        return interface.NewTable(
            self._key,
            self._table.database,
            self._metastore.settings.user_name,
            interface.NewStorage((interface.FieldSchema("note", "string"),), serde=interface.SerDeInfo()),
            parameters=parameters,
            view_text=text,
            view_expanded_text=text,
            table_type="VIRTUAL_VIEW",
        )


class _IntentLedger(Ledger):
    """Hive 3: a file says what is about to be committed, and another one what is loaded."""

    def __init__(self, metastore: Metastore, table: HiveTable, name: str, storage: Mapping[str, str]) -> None:
        super().__init__(metastore, table, name)
        self._storage = storage
        self._fs, self._base = open_location(table.location, storage)
        self._own = _digest(name)  # the directory is the table's, and Hive moves it with a renamed table
        self._folder = join(self._base, _FOLDER, self._own)

    def prepare(self) -> None:
        self._fs.make_dirs(self._folder, below=self._base)

    def value(self, *, settle: bool = True) -> int:
        intents = []
        loaded = NOTHING
        for name, value, txn in self._files():
            if txn:
                intents.append((value, txn, name))
            else:
                loaded = max(loaded, value)
        for value, txn, name in sorted(intents) if settle else ():
            if value > loaded and self._is_committed(txn, value, join(self._folder, name)):
                self.settle(value, self.owner)
                loaded = value
        self.owner = ""  # an intent that was not committed has left its own
        if loaded != NOTHING:
            with suppress(NotFoundError):  # another process has settled a higher value
                self.owner = read_small(self._fs, self._loaded(loaded), MOST_BYTES).decode(errors="replace")
        return loaded

    def intend(self, once: Once, held: LockedTransaction, write_id: int, evidence: str) -> None:
        name = f"{once.value:020}-{held.id}.intent"
        record = {"host": held.host, "writeId": write_id, "evidence": evidence, "owner": once.owner}
        write_checked(self._fs, join(self._folder, name), json.dumps(record).encode())

    def settle(self, value: int, owner: str) -> None:
        with suppress(ConflictError):  # another process did it
            self._fs.write_bytes(self._loaded(value), owner.encode())  # no name: an erasure could search for it
        for name, old, txn in list(self._files()):  # afterwards: a death in between leaves too much, never too little
            if old < value or (txn and old == value):
                with suppress(AcidctlError):
                    self._fs.remove_tree(join(self._folder, name))

    def _loaded(self, value: int) -> str:
        return join(self._folder, f"{value:020}.loaded")

    def _files(self) -> Iterator[tuple[str, int, int]]:
        """Yield the names of the files with their values, and the transaction of an intent, else 0."""
        if not self._fs.exists(self._folder):
            return
        require_ours(self._fs, self._base, _FOLDER)  # an intent of another user could commit any transaction
        require_ours(self._fs, parent_of(self._folder), self._own)
        for entry in self._fs.list_dir(self._folder).entries:
            if not entry.is_dir and (match := _FILE.fullmatch(entry.path)):
                yield entry.path, int(match[1]), int(match[2] or 0)

    def _is_committed(self, txn: int, value: int, path: str) -> bool:
        """Commit a transaction of a process that may be dead, whose files are all in place, and return its outcome.

        Raises:
            RefusedError: the outcome is not known, or the transaction is of somebody else.
        """
        try:
            record = json.loads(read_small(self._fs, path, MOST_BYTES))
            host, write_id, evidence = str(record["host"]), int(record["writeId"]), str(record["evidence"])
            self.owner = str(record.get("owner", ""))
        except NotFoundError:  # another process has settled this value, or a higher one
            return self.value(settle=False) >= value
        except (ValueError, KeyError, TypeError):  # torn: the commit would have come after it
            return False
        listed = next((info for info in open_txns_info(self._metastore).txns if info.id == txn), None)
        if listed and listed.host != host:
            what = f"will not use {printable(self._fs.display(path))}"
            why = f"the transaction {txn} is of {printable(listed.host)}"
            raise RefusedError(what, why, "look who made the file, and remove it")
        try:
            self._metastore.call(interface.COMMIT_TXN, interface.CommitTxnRequest(txn))
        except LostTransaction:
            return self._has_rows(txn, write_id, evidence, path)
        return True

    def _has_rows(self, txn: int, write_id: int, evidence: str, path: str) -> bool:
        """Return whether a transaction that the metastore has forgotten, or has just aborted, was committed."""
        ids = Transactions(self._metastore).write_ids(self._table.full_name)
        if write_id in ids.aborted or not evidence:
            return False
        fs, place = open_location(evidence, self._storage)
        if fs.exists(place):
            return True
        shown = printable(self._fs.display(path))
        raise RefusedError(
            f"whether {printable(self._name)!r} is loaded is not known",
            f"the metastore has forgotten the transaction {txn}, and {printable(evidence)} is not there",
            f"look for rows of write id {write_id} in {self._table.full_name}: with rows rename {shown} to "
            f"{shown.rpartition('-')[0]}.loaded, without remove it",
        )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:32]
