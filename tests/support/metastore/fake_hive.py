"""A metastore in this process that does what Hive's does: it keeps tables, transactions, locks and a queue of
compactions, and goes wrong when it is told to.

    with FakeHive(4) as fake:
        fake.table("sales", "orders", str(path))
        txn = fake.begin(user="etl", ago=3600)
        acidctl("hive", "txns", "--metastore", fake.address)
"""

from __future__ import annotations

import fnmatch
import struct
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from acidctl.acid.names import MAXL, partition_name, unescape
from acidctl.metastore import interface as wire
from acidctl.metastore.interface import CompactionType, LockState, LockType, TxnState, TxnType
from acidctl.metastore.lossless import RawStruct
from acidctl.metastore.wire import Method
from support.metastore.fake_metastore import METHODS, Failed, FakeMetastore, Refused, java_bits

_ONLY_4 = {
    "get_max_allocated_table_write_id",
    "add_write_ids_to_min_history", "seed_txn_id",
    "get_open_txns_req", "abort_Compactions", "find_next_compact2", "update_compactor_state", "set_hadoop_jobid",
    "get_latest_txnid_in_conflict", "create_table_req", "alter_table_req", "alter_partitions_req",
    "mark_compacted", "mark_failed", "mark_refused", "update_compaction_metrics_data",
}  # fmt: skip
_ONLY_3 = {"get_valid_write_ids"}
_BITS = {"i": "initiated", "w": "working", "r": "ready for cleaning", "s": "succeeded", "f": "failed", "c": "refused",
         "x": "aborted"}  # fmt: skip


def _exclude(one: int, other: int) -> bool:
    """Whether the second of two locks waits for the first."""
    if LockType.EXCL_WRITE in (one, other):
        return LockType.SHARED_READ not in (one, other)
    return LockType.EXCLUSIVE in (one, other)


def _write_id(raw: RawStruct, number: int) -> int:
    sent = raw.fields.get(number)
    return sent.payload if sent else 0


@dataclass
class Txn:
    """A transaction; times are seconds of the server's clock."""

    id: int
    user: str
    host: str
    agent: str
    type: int
    started: float
    heartbeat: float
    state: int = TxnState.OPEN
    query: str | None = None


@dataclass
class Fault:
    """What goes wrong, so many times, with calls of one method."""

    method: str
    kind: str
    times: int


@dataclass
class FakeHive:
    """Started by the ``with`` statement, ended with it.

    Args:
        version: 2, 3 or 4: which methods and which rules it has.
        clock: so many seconds its clock is ahead of ours.
        config: what get_config_value says.

    Attributes:
        calls: the names of the methods that were called, in their order.
        address: ``thrift://127.0.0.1:PORT``.
        queue: entries of compactions, history and all; tests may put their own there.
        txns: by id.
        locks: components, in their order.
        wishes: compactions that were asked for, in their order.
        given: the highest write id that was ever given, where that is not the last of `write_ids`.
        min_history: the least write ids of tables that a transaction may read, by its id.
        more_of_entry: what workers learn of an entry, and the queue does not show, by its id.
    """

    version: int = 4
    clock: float = 0.0
    config: dict[str, str] = field(default_factory=dict)
    queue: list[wire.CompactionInfo] = field(default_factory=list)
    txns: dict[int, Txn] = field(default_factory=dict)
    locks: list[wire.LockInfo] = field(default_factory=list)
    databases: dict[str, wire.Database] = field(default_factory=dict)
    tables: dict[tuple[str, str], wire.Table] = field(default_factory=dict)
    partitions: dict[tuple[str, str], dict[str, wire.Partition]] = field(default_factory=dict)
    write_ids: dict[str, list[int]] = field(default_factory=dict)
    given: dict[str, int] = field(default_factory=dict)
    wishes: list[wire.CompactionRequest] = field(default_factory=list)
    more_of_entry: dict[int, dict[str, Any]] = field(default_factory=dict)
    min_history: dict[int, dict[str, int]] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    conflict: int = 0
    remembers: bool = False
    """Whether a second commit of a transaction is no error, as for transactions that wrote."""
    committed: set[int] = field(default_factory=set)
    components: list[tuple[int, tuple[str, ...], int]] = field(default_factory=list)
    not_null: tuple[wire.NotNull, ...] = ()
    defaults: tuple[wire.ColumnConstraint, ...] = ()
    checks: tuple[wire.ColumnConstraint, ...] = ()
    """What writers said of their partitions: transaction, names, operation."""
    created: list[wire.NewTable] = field(default_factory=list)
    wanted_locks: list[wire.LockComponent] = field(default_factory=list)
    puts_at: str = ""
    """Where new tables go, instead of their database's location."""
    before: dict[str, Callable[[], None]] = field(default_factory=dict)
    """Called before a method is: somebody else does something in this very moment."""
    at_call: Callable[[str, bool], None] = lambda _name, _is_done: None
    """Called before each call and after it, which then counts as done; with an EOFError the connection breaks there."""

    def __post_init__(self) -> None:
        self._next_txn = 0
        self._next_lock = 0
        self._seconds = 0
        self._mutex = threading.RLock()
        self._server = FakeMetastore(self._answers())
        self.address, self.calls = self._server.address, self._server.calls

    def __enter__(self) -> FakeHive:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop()

    @property
    def answers(self) -> dict[str, Callable[..., Any]]:
        """What is done for each method; may be changed."""
        return self._server.answers

    # -- what tests say ------------------------------------------------------------------------------------------

    @property
    def now(self) -> float:
        """Its time."""
        return time.time() + self.clock

    def fault(self, method: str, kind: str, times: int = 1) -> None:
        """Let calls go wrong: ``lost`` breaks the connection before it is done, ``done`` after it is, ``late`` before,
        and it is done a little later; ``failed`` is an error of the server, ``refused`` a MetaException, ``garbage`` an
        answer that cannot be read.
        """
        self.faults.append(Fault(method, kind, times))

    def table(
        self,
        database: str,
        name: str,
        location: str,
        keys: Sequence[str] = (),
        parameters: Mapping[str, str] | None = None,
        **storage: Any,
    ) -> None:
        """A transactional table."""
        self.databases.setdefault(database, wire.Database(database))
        orc = wire.SerDeInfo(serialization_lib="org.apache.hadoop.hive.ql.io.orc.OrcSerde")
        self.tables[database, name] = wire.Table(
            name,
            database,
            "hive",
            created=self._made(),
            storage=wire.StorageDescriptor(
                (wire.FieldSchema("a", "int"),), location, **{"serde": orc, "buckets": -1, **storage}
            ),
            partition_keys=tuple(wire.FieldSchema(key, "string") for key in keys),
            parameters={"transactional": "true", **(parameters or {})},
            table_type="MANAGED_TABLE",
        )
        self.partitions[database, name] = {}

    def _made(self) -> int:
        """When a table is created: no two in one second."""
        self._seconds += 1
        return int(self.now) - 10**6 + self._seconds

    def partition(self, database: str, table: str, name: str) -> None:
        """One of its partitions, ``day=1``, in its directory."""
        storage = self.tables[database, table].storage
        assert storage
        values = tuple(unescape(part.partition("=")[2]) for part in name.split("/"))
        self.partitions[database, table][name] = wire.Partition(
            values, wire.PartitionStorage(f"{storage.location}/{name}")
        )

    def begin(
        self,
        user: str = "etl",
        host: str = "host7",
        *,
        ago: float = 0.0,
        silent: float | None = None,
        type: int = TxnType.DEFAULT,  # noqa: A002
        query: str | None = None,
        agent: str = "Unknown",
    ) -> int:
        """A transaction that is open.

        Args:
            ago, silent: seconds since it began, and since its last sign of life.
        """
        self._next_txn += 1
        begun = self.now - ago
        heartbeat = self.now - (ago if silent is None else silent)
        self.txns[self._next_txn] = Txn(self._next_txn, user, host, agent, type, begun, heartbeat, query=query)
        return self._next_txn

    def begin_many(self, count: int, *, ago: float = 0.0, aborted: bool = False) -> range:
        """So many transactions at once."""
        first = self._next_txn + 1
        for _ in range(count):
            id_ = self.begin(ago=ago)
            if aborted:
                self.txns[id_].state = TxnState.ABORTED
        return range(first, self._next_txn + 1)

    def end(self, txn: int, *, commit: bool = True) -> None:
        """End a transaction, and with it its locks."""
        if commit:
            del self.txns[txn]
        else:
            self.txns[txn].state = TxnState.ABORTED
        self.locks = [lock for lock in self.locks if lock.txn != txn]

    def lock(
        self,
        database: str,
        table: str,
        partition: str | None = None,
        *,
        txn: int = 0,
        type: int = LockType.SHARED_READ,  # noqa: A002
        ago: float = 0.0,
        user: str = "etl",
        host: str = "host7",
        agent: str = "",
        blocked_by: int = 0,
    ) -> int:
        """A lock that is held; one that is blocked waits."""
        self._next_lock += 1
        self.locks.append(
            wire.LockInfo(
                self._next_lock, database, table, partition,
                LockState.WAITING if blocked_by else LockState.ACQUIRED, type, txn,
                0 if txn else self._ms(self.now - ago),
                None if blocked_by else self._ms(self.now - ago), user, host, agent=agent,
                blocked_by=blocked_by or None, blocked_by_part=1 if blocked_by else None, part=1,
            )
        )  # fmt: skip
        return self._next_lock

    def entry(self, database: str, table: str, state: str, partition: str | None = None, **more: Any) -> int:
        """An entry of the queue or of its history; times are seconds ago."""
        times = {"enqueued", "started", "ended", "committed", "cleaner_start"}
        given = {key: self._ms(self.now - value) if key in times else value for key, value in more.items()}
        id_ = max((one.id or 0 for one in self.queue), default=0) + 1
        values: dict[str, Any] = {
            "database": database,
            "table": table,
            "state": state,
            "partition": partition,
            "id": id_,
            "type": 2,
        }
        self.queue.append(wire.CompactionInfo(**{**values, **given}))
        return id_

    def set_entry(self, id_: int, **changes: Any) -> None:
        """Change an entry of the queue."""
        self.queue = [replace(one, **changes) if one.id == id_ else one for one in self.queue]

    @staticmethod
    def _ms(seconds: float) -> int:
        return int(seconds * 1000)

    # -- the wire ------------------------------------------------------------------------------------------------

    def _answers(self) -> Mapping[str, Callable[..., Any]]:
        """What each method does that this version has."""
        lacking = (_ONLY_4 if self.version < 4 else set()) | (_ONLY_3 if self.version < 3 else set())
        return {
            name: partial(self._call, method)
            for name, method in METHODS.items()
            if hasattr(self, f"_do_{name}") and name not in lacking
        }

    def _call(self, method: Method, *arguments: Any) -> Any:
        with self._mutex:
            fault = next((one for one in self.faults if one.method == method.name and one.times > 0), None)
            kind = fault.kind if fault else ""
            if fault:
                fault.times -= 1
            if kind == "late":
                threading.Timer(0.1, self._late, (method, *arguments)).start()
            if kind in ("lost", "late"):
                raise EOFError
            if kind == "failed" or (kind == "refused" and not method.raises):  # some calls declare no exception
                raise Failed("Internal error processing " + method.name)
            if kind == "refused":
                raise Refused(method.raises[0], "it does not want to")
            if kind == "garbage":
                return struct.pack(">I", 0x7FFFFFFF) + b"\xff" * 64
            if then := self.before.pop(method.name, None):
                then()
            self.at_call(method.name, False)
            try:
                result = getattr(self, f"_do_{method.name}")(*arguments)
            except Refused as error:
                if error.kind in method.raises:
                    raise
                raise Failed(str(error)) from error
            if kind == "done":
                raise EOFError
            self.at_call(method.name, True)
            return result

    def _late(self, method: Method, *arguments: Any) -> None:
        with suppress(Refused, Failed):
            self._call(method, *arguments)

    # -- the server itself ---------------------------------------------------------------------------------------

    def _do_set_ugi(self, user: str, _: Sequence[str]) -> tuple[str, ...]:
        return (user,)

    def _do_getVersion(self) -> str:
        return "4.0.1" if self.version > 3 else "3.0"

    def _do_get_config_value(self, name: str, default: str) -> str:
        if self.version < 3 and name.startswith("metastore."):
            raise Refused(
                "ConfigValSecurityException", f"For security reasons, the config key {name} cannot be accessed"
            )
        return self.config.get(name, default)

    # -- tables --------------------------------------------------------------------------------------------------

    def _do_get_all_databases(self) -> tuple[str, ...]:
        return tuple(self.databases)

    def _do_get_database(self, name: str) -> wire.Database:
        if name not in self.databases:
            raise Refused("NoSuchObjectException", f"database {name} not found")
        return self.databases[name]

    def _do_get_table_names_by_filter(self, database: str, condition: str, _: int) -> tuple[str, ...]:
        wanted = condition.split('"')[1]
        return tuple(
            table.name
            for (where, _), table in self.tables.items()
            if where == database and table.parameters.get("transactional") == wanted
        )

    def _do_get_table_meta(self, databases: str, names: str, _: Sequence[str]) -> tuple[wire.TableMeta, ...]:
        return tuple(
            wire.TableMeta(database, name, "MANAGED_TABLE")
            for database, name in self.tables
            if fnmatch.fnmatch(database, databases) and fnmatch.fnmatch(name, names)
        )

    def _do_get_table_req(self, request: wire.GetTableRequest) -> wire.GetTableResult:
        key = (request.database.lower(), request.name.lower())
        if key not in self.tables:
            raise Refused("NoSuchObjectException", f"hive.{request.database}.{request.name} table not found")
        return wire.GetTableResult(self.tables[key])

    def _do_get_table_objects_by_name_req(self, request: wire.GetTablesRequest) -> wire.GetTablesResult:
        found = (self.tables.get((request.database, name)) for name in request.names)
        return wire.GetTablesResult(tuple(one for one in found if one))

    def _partitions_of(self, database: str, table: str) -> Mapping[str, wire.Partition]:
        if (database, table) not in self.tables:
            raise Refused("NoSuchObjectException", f"{database}.{table} table not found")
        return self.partitions[database, table]

    def _do_get_partition_names(self, database: str, table: str, _: int) -> tuple[str, ...]:
        return tuple(self._partitions_of(database, table))

    def _do_get_partition_names_ps(self, database: str, table: str, values: Sequence[str], _: int) -> tuple[str, ...]:
        return tuple(
            name
            for name, one in self._partitions_of(database, table).items()
            if all(not value or value == own for value, own in zip(values, one.values, strict=False))
        )

    def _do_get_partitions_by_names(
        self, database: str, table: str, names: Sequence[str]
    ) -> tuple[wire.Partition, ...]:
        found = self._partitions_of(database, table)
        return tuple(found[name] for name in names if name in found)

    # -- transactions --------------------------------------------------------------------------------------------

    def _do_open_txns(self, request: wire.OpenTxnRequest) -> wire.OpenTxnsResponse:
        kind = request.txn_type if self.version > 3 and request.txn_type is not None else TxnType.DEFAULT
        made = [self.begin(request.user, request.host, type=kind, agent=request.agent) for _ in range(request.count)]
        return wire.OpenTxnsResponse(tuple(made))

    def _do_seed_txn_id(self, request: wire.SeedTxnIdRequest) -> None:
        if request.id <= self._next_txn:
            raise Refused("MetaException", "Invalid txn id")
        self._next_txn = request.id - 1

    def _do_add_write_ids_to_min_history(self, txn: int, write_ids: Mapping[str, int]) -> None:
        self._open_txn(txn)
        self.min_history[txn] = dict(write_ids)

    def _open_txn(self, id_: int) -> Txn:
        txn = self.txns.get(id_)
        if txn is None:
            raise Refused("NoSuchTxnException", f"No such transaction txnid:{id_}")
        return txn

    def _do_abort_txn(self, request: wire.AbortTxnRequest) -> None:
        if self._open_txn(request.txn).state == TxnState.OPEN:
            self.end(request.txn, commit=False)

    def _do_abort_txns(self, request: wire.AbortTxnsRequest) -> None:
        for id_ in request.txns:
            if id_ in self.txns and self.txns[id_].state == TxnState.OPEN:
                self.end(id_, commit=False)

    def _do_commit_txn(self, request: wire.CommitTxnRequest) -> None:
        if request.txn in self.committed:
            return  # Hive 4 remembers it, and Hive 3 its components
        if self._open_txn(request.txn).state != TxnState.OPEN:
            raise Refused("TxnAbortedException", f"Transaction txnid:{request.txn} already aborted")
        if request.key_value and self.version > 3:
            self._store(request.key_value)
        for one in self.queue:
            if one.txn == request.txn and one.type != CompactionType.REBALANCE:  # as 4.0 does
                self.set_entry(one.id or 0, committed=self._ms(self.now), next_txn=self._next_txn)
        self.end(request.txn)
        if self.remembers:
            self.committed.add(request.txn)

    def _store(self, pair: wire.CommitKeyValue) -> None:
        key = next((key for key, table in self.tables.items() if table.id == pair.table and pair.table), None)
        if key is None or pair.key not in self.tables[key].parameters or not pair.key.startswith("_meta"):
            raise Failed("Internal error processing commit_txn")
        parameters = {**self.tables[key].parameters, pair.key: pair.value}
        self.tables[key] = replace(self.tables[key], parameters=parameters)

    def _do_heartbeat(self, request: wire.HeartbeatRequest) -> None:
        if request.txn:
            if request.txn in self.txns and self.txns[request.txn].state == TxnState.ABORTED:
                raise Refused("TxnAbortedException", f"transaction {request.txn} was aborted")
            self._open_txn(request.txn).heartbeat = self.now

    def _do_heartbeat_txn_range(self, request: wire.HeartbeatTxnRangeRequest) -> wire.HeartbeatTxnRangeResponse:
        asked = set(range(request.first, request.last + 1))
        aborted = {id_ for id_ in asked & set(self.txns) if self.txns[id_].state == TxnState.ABORTED}
        return wire.HeartbeatTxnRangeResponse(frozenset(aborted), frozenset(asked - set(self.txns)))

    def _listed(self, without: Sequence[int]) -> wire.OpenTxns:
        ids = [id_ for id_, txn in sorted(self.txns.items()) if txn.type not in without]
        aborted = java_bits([self.txns[id_].state == TxnState.ABORTED for id_ in ids])
        return wire.OpenTxns(self._next_txn, tuple(ids), None, aborted)

    def _do_get_open_txns(self) -> wire.OpenTxns:
        return self._listed((TxnType.READ_ONLY,) if self.version > 3 else ())

    def _do_get_open_txns_req(self, request: wire.GetOpenTxnsRequest) -> wire.OpenTxns:
        return self._listed(request.excluded_types)

    def _do_get_open_txns_info(self) -> wire.OpenTxnsInfo:
        return wire.OpenTxnsInfo(
            self._next_txn,
            tuple(
                wire.TxnInfo(
                    one.id, one.state, one.user, one.host, one.agent, meta_info=one.query,
                    started=self._ms(one.started), last_heartbeat=self._ms(one.heartbeat),
                )
                for _, one in sorted(self.txns.items())
            ),
        )  # fmt: skip

    def _given(self, table: str) -> int:
        return self.given.get(table.lower(), len(self.write_ids.get(table.lower(), [])))

    def _do_get_max_allocated_table_write_id(self, request: wire.MaxAllocatedRequest) -> wire.MaxAllocated:
        return wire.MaxAllocated(self._given(f"{request.database}.{request.table}"))

    def _do_get_valid_write_ids(self, request: wire.ValidWriteIdsRequest) -> wire.ValidWriteIdsResponse:
        """A table has the write ids 1 to N of transactions in `write_ids`; those that are known are not committed."""
        found = []
        for name in request.tables:
            txns = self.write_ids.get(name, [])
            invalid = [at for at, txn in enumerate(txns, 1) if txn in self.txns]
            aborted = [self.txns[txns[at - 1]].state == TxnState.ABORTED for at in invalid]
            least = next((at for at, is_aborted in zip(invalid, aborted, strict=True) if not is_aborted), None)
            is_endless = (request.txns or "").startswith(f"{MAXL}:")
            highest = self._given(name) if is_endless else len(txns)
            found.append(wire.TableWriteIds(name, highest, tuple(invalid), least, java_bits(aborted)))
        return wire.ValidWriteIdsResponse(tuple(found))

    def _do_allocate_table_write_ids(self, request: wire.AllocateWriteIdsRequest) -> wire.AllocateWriteIdsResponse:
        table = f"{request.database}.{request.table}".lower()
        given = self.write_ids.setdefault(table, [])
        for txn in request.txns:
            self._open_txn(txn)
            if txn in given and request.reallocate:
                given[given.index(txn)] = 0  # belongs to nobody, and counts as committed
            if txn not in given:
                given.append(txn)
        ids = (wire.TxnToWriteId(txn, given.index(txn) + 1) for txn in request.txns)
        return wire.AllocateWriteIdsResponse(tuple(ids))

    def _do_get_latest_txnid_in_conflict(self, txn: int) -> int:
        self._open_txn(txn)
        return self.conflict

    def _do_add_dynamic_partitions(self, request: wire.DynamicPartitions) -> None:
        self._open_txn(request.txn)
        self.components.append((request.txn, request.partitions, request.operation))

    def _do_alter_table_req(self, request: wire.AlterTableRequest) -> wire.AlterTableResponse:
        assert request.table
        raw, key = request.table, (request.database, request.name)
        if key not in self.tables:
            raise Refused("InvalidOperationException", f"Unable to alter table. {'.'.join(key)} doesn't exist")
        new, old = (raw.text(2), raw.text(1)), self.tables[key]
        if new != key and new in self.tables:
            raise Refused("InvalidOperationException", f"new table {'.'.join(new)} already exists")
        columns = tuple(wire.FieldSchema(one.text(1), one.text(2)) for one in raw.struct(7).structs(1))
        storage = old.storage and replace(old.storage, columns=columns)
        parameters, write_id = raw.texts(wire.TABLE_PARAMETERS), _write_id(raw, 19)
        if new != key:
            self._rename(key, new)
        self.tables[new] = replace(
            old, name=new[1], storage=storage and self._moved(old, storage, new[1]), parameters=parameters,
            write_id=write_id,
        )  # fmt: skip
        return wire.AlterTableResponse()

    def _moved(self, table: wire.Table, storage: wire.StorageDescriptor, name: str) -> wire.StorageDescriptor:
        """The storage of a table that is called so: the directory of a managed one moves along."""
        location = storage.location or ""
        if table.table_type != "MANAGED_TABLE" or name == table.name or not location.endswith(f"/{table.name}"):
            return storage
        to = f"{location.rpartition('/')[0]}/{name}"
        Path(location.removeprefix("file:")).rename(to.removeprefix("file:"))
        return replace(storage, location=to)

    def _rename(self, key: tuple[str, str], new: tuple[str, str]) -> None:
        """Write ids and locks have the new name, as those of Hive 3.1.3 and 4.0.1 do."""
        del self.tables[key]
        if key in self.partitions:
            self.partitions[new] = self.partitions.pop(key)
        for ids in (self.write_ids, self.given):
            if ".".join(key) in ids:
                ids[".".join(new)] = ids.pop(".".join(key))  # type: ignore[attr-defined]
        self.locks = [
            replace(one, database=new[0], table=new[1]) if (one.database, one.table) == key else one
            for one in self.locks
        ]

    def _do_alter_table_with_environment_context(
        self, database: str, name: str, table: RawStruct, context: wire.EnvironmentContext
    ) -> None:
        self._do_alter_table_req(wire.AlterTableRequest(database, name, table, context))

    def _do_alter_partitions_req(self, request: wire.AlterPartitionsRequest) -> wire.AlterTableResponse:
        for raw in request.partitions:
            values = tuple(text.decode() for text in raw.fields[1].payload[1])
            known = self.partitions[request.database, request.table]
            name = next(name for name, one in known.items() if one.values == values)
            parameters = raw.texts(wire.PARTITION_PARAMETERS)
            known[name] = replace(known[name], parameters=parameters, write_id=_write_id(raw, 10))
        return wire.AlterTableResponse()

    def _do_alter_partitions_with_environment_context(
        self, database: str, name: str, partitions: Sequence[RawStruct], context: wire.EnvironmentContext
    ) -> None:
        self._do_alter_partitions_req(wire.AlterPartitionsRequest(database, name, tuple(partitions), context))

    def _do_add_partitions_req(self, request: wire.AddPartitionsRequest) -> wire.AddPartitionsResult:
        added = []
        keys = [one.name for one in self.tables[request.database, request.table].partition_keys]
        for raw in request.partitions:
            values = tuple(text.decode() for text in raw.fields[1].payload[1])
            name = "/".join(map(partition_name, keys, values))
            location = raw.fields[6].payload.fields[2].payload.decode()
            made = wire.Partition(values, wire.PartitionStorage(location), raw.texts(wire.PARTITION_PARAMETERS))
            if self.partitions[request.database, request.table].setdefault(name, made) is made:
                added.append(made)
        return wire.AddPartitionsResult(tuple(added))

    def _do_create_table_req(self, request: wire.CreateTableRequest) -> None:
        assert request.table
        able = {"HIVEFULLACIDWRITE", "HIVEMANAGEDINSERTWRITE"} <= set(request.capabilities)
        if "transactional" in request.table.parameters and not able:
            raise Refused("MetaException", "Processor has no capabilities, cannot create an ACID table.")
        self._do_create_table(request.table)

    def _do_create_table(self, new: wire.NewTable) -> None:
        """As Hive does it: the server makes the directory, chooses it where none is given, and notes the time."""
        key = (new.database, new.name)
        if key in self.tables:
            raise Refused("AlreadyExistsException", f"Table hive.{new.database}.{new.name} already exists")
        assert new.storage
        self.created.append(new)
        database = self._do_get_database(new.database)
        location = new.storage.location or f"{self.puts_at or database.location}/{new.name}"
        if new.table_type != "VIRTUAL_VIEW":
            Path(location.removeprefix("file:")).mkdir(parents=True, exist_ok=True)
        added = {"transactional_properties": "default"} if "transactional" in new.parameters else {}
        stored = {name: getattr(new.storage, name) for name in ("columns", "input_format", "buckets", "serde")}
        storage = wire.StorageDescriptor(location=location, bucket_columns=new.storage.bucket_columns, **stored)
        self.tables[key] = wire.Table(
            new.name, new.database, new.owner, self._made(), storage, new.partition_keys,
            {**added, **new.parameters}, new.table_type, id=len(self.tables) + 1000,
        )  # fmt: skip
        self.partitions[key] = {}

    def _do_drop_table_with_environment_context(
        self, database: str, name: str, with_data: bool, _: wire.EnvironmentContext
    ) -> None:
        assert not with_data
        del self.tables[database, name]

    def _do_get_not_null_constraints(self, _: wire.ConstraintsRequest) -> wire.NotNullResponse:
        return wire.NotNullResponse(self.not_null)

    def _do_get_default_constraints(self, _: wire.ConstraintsRequest) -> wire.ConstraintsResponse:
        return wire.ConstraintsResponse(self.defaults)

    def _do_get_check_constraints(self, _: wire.ConstraintsRequest) -> wire.ConstraintsResponse:
        return wire.ConstraintsResponse(self.checks)

    # -- locks ---------------------------------------------------------------------------------------------------

    def _do_show_locks(self, request: wire.ShowLocksRequest) -> wire.ShowLocksResponse:
        return wire.ShowLocksResponse(
            tuple(
                one
                for one in self.locks
                if request.database in (None, one.database)
                and request.table in (None, one.table)
                and request.partition in (None, one.partition)
            )
        )

    def _do_lock(self, request: wire.LockRequest) -> wire.LockResponse:
        """A shared one is held at once; an exclusive one waits for who is there before it."""
        if request.txn and self._open_txn(request.txn).state != TxnState.OPEN:
            raise Refused("TxnAbortedException", f"Transaction txnid:{request.txn} already aborted")
        assert request.components, "Hive refuses a lock of nothing"
        self.wanted_locks += request.components
        id_ = self._next_lock = self._next_lock + 1
        state = LockState.ACQUIRED
        for at, part in enumerate(request.components, 1):
            there = next(
                (
                    one
                    for one in self.locks
                    if one.lock != id_ and (one.database, one.table) == (part.database, part.table)
                    and (one.partition == part.partition or None in (one.partition, part.partition))
                    and _exclude(one.type, part.type)
                ),
                None,
            )  # fmt: skip
            own = LockState.WAITING if there else LockState.ACQUIRED
            state = max(state, own)
            now = self._ms(self.now)
            self.locks.append(
                wire.LockInfo(
                    id_, part.database, part.table, part.partition, own, part.type, request.txn or 0,
                    0 if request.txn else now, None if there else now, request.user, request.host,
                    agent=request.agent, blocked_by=there.lock if there else None,
                    blocked_by_part=there.part if there else None, part=at,
                )
            )  # fmt: skip
        return wire.LockResponse(id_, state)

    def _do_check_lock(self, request: wire.CheckLockRequest) -> wire.LockResponse:
        there = {one.lock for one in self.locks}
        self.locks = [
            replace(one, state=LockState.ACQUIRED, blocked_by=None)
            if one.lock == request.lock and one.blocked_by and one.blocked_by not in there
            else one
            for one in self.locks
        ]
        own = [one for one in self.locks if one.lock == request.lock]
        if not own:
            raise Refused("NoSuchLockException", f"No such lock lockid:{request.lock}")
        return wire.LockResponse(request.lock, max(one.state for one in own))

    def _do_unlock(self, request: wire.UnlockRequest) -> None:
        own = [one for one in self.locks if one.lock == request.lock]
        if not own:
            raise Refused("NoSuchLockException", f"No such lock lockid:{request.lock}")
        if own[0].txn:
            raise Refused(
                "TxnOpenException", f"Unlocking locks associated with transaction not permitted. {own[0].txn}"
            )
        self.locks = [one for one in self.locks if one.lock != request.lock]

    # -- compactions ---------------------------------------------------------------------------------------------

    def _do_compact2(self, request: wire.CompactionRequest) -> wire.CompactionResponse:
        self.wishes.append(request)
        there = next(
            (
                one
                for one in self.queue
                if (one.database, one.table, one.partition) == (request.database, request.table, request.partition)
                and one.state in ("initiated", "working")
            ),
            None,
        )
        if there and self.version > 3:
            message = f"Compaction is already scheduled with state='{there.state}' and id={there.id}"
            return wire.CompactionResponse(-1, "refused", False, message)
        if there:
            return wire.CompactionResponse(there.id or 0, there.state, False)
        more = {"enqueued": 0, "pool": request.pool, "initiator": request.initiator} if self.version > 3 else {}
        id_ = self.entry(
            request.database, request.table, "initiated", request.partition, type=int(request.type), **more
        )
        return wire.CompactionResponse(id_, "initiated", True)

    def _do_show_compact(self, request: wire.ShowCompactRequest) -> wire.ShowCompactResponse:
        if self.version < 4:
            return wire.ShowCompactResponse(tuple(self.queue))
        return wire.ShowCompactResponse(
            tuple(
                replace(one, pool=one.pool or "default")  # what has none
                for one in self.queue
                if request.id in (None, one.id)
                and request.pool in (None, one.pool)
                and request.database in (None, one.database)
                and request.table in (None, one.table)
                and request.partition in (None, one.partition)
                and (request.state is None or _BITS.get(request.state) == one.state)
            )
        )

    def _do_abort_Compactions(self, request: wire.AbortCompactionsRequest) -> wire.AbortCompactionsResponse:
        done = {}
        for id_ in request.ids:
            one = next((one for one in self.queue if one.id == id_), None)
            if one and one.state == "initiated":
                self.set_entry(id_, state="aborted", ended=self._ms(self.now))
                done[id_] = wire.AbortedCompaction(id_, "Success", "Successfully aborted compaction")
            else:
                state = f"in {one.state} state" if one else "not there"
                done[id_] = wire.AbortedCompaction(id_, "Error", f"Compaction is {state}, so it cannot be aborted")
        return wire.AbortCompactionsResponse(done)

    # -- what workers say --------------------------------------------------------------------------------------------

    def _do_find_next_compact2(self, request: wire.FindNextCompactRequest) -> wire.MaybeQueueEntry:
        waiting = [one for one in self.queue if one.state == "initiated" and one.pool == request.pool]
        if not waiting:
            return wire.MaybeQueueEntry()
        one = min(waiting, key=lambda entry: entry.id or 0)
        self.set_entry(one.id or 0, state="working", worker=request.worker, started=self._ms(self.now))
        return wire.MaybeQueueEntry(
            wire.QueueEntry(
                one.id or 0, one.database, one.table, one.partition, one.type, one.run_as, state="w",
                worker=request.worker, **self.more_of_entry.get(one.id or 0, {}),
            )
        )  # fmt: skip

    def _do_update_compactor_state(self, entry: wire.QueueEntry, txn: int) -> None:
        self._queued(entry.id)
        self.set_entry(entry.id, highest_write_id=entry.highest_write_id, run_as=entry.run_as, txn=txn)

    def _do_set_hadoop_jobid(self, job: str, id_: int) -> None:
        self.set_entry(id_, job=job)

    def _do_mark_compacted(self, entry: wire.QueueEntry) -> None:
        """Whoever says so, and whatever state it is in."""
        self._queued(entry.id)
        self.set_entry(entry.id, state="ready for cleaning", worker=None)

    def _do_mark_failed(self, entry: wire.QueueEntry) -> None:
        self._queued(entry.id)
        self.set_entry(entry.id, state="failed", error=entry.error, ended=self._ms(self.now))

    def _do_mark_refused(self, entry: wire.QueueEntry) -> None:
        self._queued(entry.id)
        self.set_entry(entry.id, state="refused", error=entry.error, ended=self._ms(self.now))

    def _do_mark_cleaned(self, entry: wire.QueueEntry) -> None:
        """Aborted write ids of the table are forgotten up to its highest one: readers take them for committed."""
        if any(one.id == entry.id for one in self.queue):
            self.set_entry(entry.id, state="succeeded", ended=self._ms(self.now))
        ids = self.write_ids.get(f"{entry.database}.{entry.table}", [])
        for txn in ids[: entry.highest_write_id or len(ids)]:
            if txn in self.txns and self.txns[txn].state == TxnState.ABORTED:
                del self.txns[txn]

    def _queued(self, id_: int) -> wire.CompactionInfo:
        for one in self.queue:
            if one.id == id_ and one.state in ("initiated", "working", "ready for cleaning"):
                return one
        raise Refused("IllegalStateException", f"No record with CQ_ID={id_} found in COMPACTION_QUEUE")
