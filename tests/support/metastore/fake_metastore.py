"""A metastore in this process that says what a test wants it to: for bad days, and for sizes that no real one is given.

What a real one says is judged elsewhere; this one knows acidctl's own definitions of the interface, and Thrift.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from typing import Any

from thrift.protocol.TBase import TBase
from thrift.protocol.TBinaryProtocol import TBinaryProtocol, TBinaryProtocolAccelerated
from thrift.protocol.TCompactProtocol import TCompactProtocol, TCompactProtocolAccelerated
from thrift.Thrift import TApplicationException, TMessageType
from thrift.transport.TTransport import TBufferedTransport, TFramedTransport, TMemoryBuffer, TTransportBase

from acidctl.metastore import interface
from acidctl.metastore.client import Metastore
from acidctl.metastore.settings import MetastoreSettings, find_settings
from acidctl.metastore.wire import Method, Refusal

_DECLARED = [getattr(interface, name) for name in reversed(interface.INTERFACE.declarations)]
METHODS = {one.name: one for one in _DECLARED if isinstance(one, Method)}
"""By name; of two that read one answer differently the first."""


class Refused(Exception):
    """One of a method's own exceptions, by its name in Hive's interface."""

    def __init__(self, kind: str, message: str = "") -> None:
        super().__init__(message)
        self.kind = kind


class Failed(Exception):
    """Something went wrong in the server."""


def answer_bytes(method: Method, result: Any, number: int = 0, *, protocol: type = TBinaryProtocolAccelerated) -> bytes:
    """The message that a server sends with a result, or with an exception of Python's.

    Args:
        number: of the question.
    """
    buffer = TMemoryBuffer()
    out = protocol(TBufferedTransport(buffer))
    if isinstance(result, TApplicationException):
        out.writeMessageBegin(method.name, TMessageType.EXCEPTION, number)
        result.write(out)
    else:
        answer = method.answer()
        if isinstance(result, Refused):
            at = method.raises.index(result.kind)
            setattr(answer, f"raised{at + 1}", Refusal(str(result)))
        elif method.answer.thrift_spec and method.answer.thrift_spec[0]:
            answer.success = result
        out.writeMessageBegin(method.name, TMessageType.REPLY, number)
        answer.write(out)
    out.writeMessageEnd()
    out.trans.flush()
    return bytes(buffer.getvalue())


def _arguments_of(method: Method) -> type[TBase]:
    rows: list[Any] = [None]
    for number, wire_type in enumerate(method.arguments, 1):
        rows.append((number, wire_type.code, f"a{number}", wire_type.detail, None))
    slots = tuple(row[2] for row in rows[1:])
    return type("Arguments", (TBase,), {"__slots__": slots, "thrift_spec": tuple(rows) if slots else ()})


class LastWords(EOFError):
    """What a method raises to have these bytes sent, on its own connection, which ends then."""


class FakeMetastore:
    """A server on loopback, a thread for each connection; ended by :meth:`stop`.

    Args:
        answers: what is done for each method, by its name: called with the arguments, gives the result; methods that
            are not there are unknown to the server.

    Attributes:
        calls: the names of the methods that were called, in their order.
        address: ``thrift://127.0.0.1:PORT``.
    """

    def __init__(
        self, answers: Mapping[str, Callable[..., Any]], *, compact: bool = False, framed: bool = False
    ) -> None:
        self.answers = {"set_ugi": lambda user, groups: (), "getVersion": lambda: "4.0.1", **answers}
        self.calls: list[str] = []
        self._protocol = TCompactProtocolAccelerated if compact else TBinaryProtocolAccelerated
        self._raw = TCompactProtocol if compact else TBinaryProtocol
        self._framed = framed
        self._open: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"thrift://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def stop(self) -> None:
        """End it, and every connection."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for one in list(self._open):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def client(self, **given: str) -> Metastore:
        """acidctl's client of it."""
        return Metastore(self.settings(**given))

    def settings(self, **given: str) -> MetastoreSettings:
        """With which acidctl reaches it."""
        settings = find_settings({"uris": self.address, **given}, {})
        assert settings
        return settings

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._open.add(connection)
            threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        transport: Any = _Socket(connection)
        transport = TFramedTransport(transport) if self._framed else TBufferedTransport(transport, 64 << 10)
        source, raw = self._protocol(transport), self._raw(transport)
        with closing(connection), suppress(OSError, EOFError):
            try:
                while question := self._question(source, raw):
                    transport.write(self._answer(*question))
                    transport.flush()
            except LastWords as words:
                connection.sendall(words.args[0])
        self._open.discard(connection)

    def _question(self, source: Any, raw: Any) -> tuple[Method, list[Any], int] | None:
        """None for what is none, or the end: the connection is closed then, as by Java's server."""
        try:
            name, _, number = source.readMessageBegin()
            method = METHODS[name]
            arguments = _arguments_of(method)()
            arguments.read(raw if method.raw else source)
            source.readMessageEnd()
            given = [getattr(arguments, slot) for slot in arguments.__slots__]
        except Exception:  # noqa: BLE001 - Thrift's library raises a dozen of them
            return None
        self.calls.append(name)
        return method, given, number

    def _answer(self, method: Method, arguments: list[Any], number: int) -> bytes:
        do = self.answers.get(method.name)
        result: Any
        if do is None:
            result = TApplicationException(TApplicationException.UNKNOWN_METHOD, f"Invalid method name: {method.name}")
        else:
            try:
                result = do(*arguments)
            except Refused as error:
                result = error
            except Failed as error:
                result = TApplicationException(TApplicationException.INTERNAL_ERROR, str(error))
        if isinstance(result, bytes):
            return result  # as it is to go over the wire
        return answer_bytes(method, result, number, protocol=self._raw if method.raw_answer else self._protocol)


class _Socket(TTransportBase):  # type: ignore[misc]
    """A socket, for Thrift's transports."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def read(self, size: int) -> bytes:
        data = self._connection.recv(size)
        if not data:
            raise EOFError
        return data

    def write(self, data: bytes) -> None:
        self._connection.sendall(data)

    def flush(self) -> None:
        """Nothing is kept back."""


@contextmanager
def fake_metastore(
    answers: Mapping[str, Callable[..., Any]], *, compact: bool = False, framed: bool = False
) -> Iterator[FakeMetastore]:
    """One for the length of a block."""
    server = FakeMetastore(answers, compact=compact, framed=framed)
    try:
        yield server
    finally:
        server.stop()


class FakeTables:
    """Tables, partitions and transactions in plain Python, as the answers of a :class:`FakeMetastore`.

    Attributes:
        tables: by database and name.
        partitions: of a table, by database and name; values in the order of the keys, with their location.
        open, aborted: ids of transactions.
        written: of a table, ``db.table``: the transaction of each write id.
    """

    def __init__(self) -> None:
        self.tables: dict[tuple[str, str], interface.Table] = {}
        self.partitions: dict[tuple[str, str], dict[tuple[str, ...], str]] = {}
        self.high_watermark = 0
        self.open: set[int] = set()
        self.aborted: set[int] = set()
        self.written: dict[str, dict[int, int]] = {}

    def add(self, full_name: str, location: str, *keys: str, **parameters: str) -> None:
        """A full-ACID table, partitioned by string columns."""
        database, _, name = full_name.partition(".")
        storage = interface.StorageDescriptor(
            columns=(interface.FieldSchema("a", "int"),),
            location=location,
            serde=interface.SerDeInfo(None, "org.apache.hadoop.hive.ql.io.orc.OrcSerde"),
        )
        self.tables[database, name] = interface.Table(
            name,
            database,
            "owner",
            storage=storage,
            partition_keys=tuple(interface.FieldSchema(key, "string") for key in keys),
            parameters={"transactional": "true", **parameters},
            table_type="MANAGED_TABLE",
        )
        self.partitions.setdefault((database, name), {})

    def answers(self) -> dict[str, Callable[..., Any]]:
        """By the names of methods."""
        return {
            "get_all_databases": lambda: tuple(sorted({database for database, _ in self.tables} | {"default"})),
            "get_table_names_by_filter": lambda database, condition, most: tuple(
                name for found, name in self.tables if found == database and '"true"' in condition
            ),
            "get_table_req": lambda request: interface.GetTableResult(self._table(request.database, request.name)),
            "get_table_objects_by_name_req": lambda request: interface.GetTablesResult(
                tuple(
                    self.tables[request.database, name]
                    for name in request.names
                    if (request.database, name) in self.tables
                )
            ),
            "get_partition_names": lambda database, name, most: tuple(self._names(database, name)),
            "get_partition_names_ps": lambda database, name, values, most: tuple(self._names(database, name)),
            "get_partitions_by_names": self._partitions,
            "get_open_txns_req": lambda request: self._open_txns(),
            "get_open_txns": self._open_txns,
            "get_valid_write_ids": lambda request: interface.ValidWriteIdsResponse(
                tuple(self._write_ids(name, request.txns) for name in request.tables)
            ),
            "get_config_value": lambda name, default: default,
        }

    def _table(self, database: str, name: str) -> interface.Table:
        if (database, name) not in self.tables:
            raise Refused("NoSuchObjectException", f"hive.{database}.{name} table not found")
        return self.tables[database, name]

    def _names(self, database: str, name: str) -> Iterator[str]:
        keys = [key.name for key in self._table(database, name).partition_keys]
        for values in self.partitions[database, name]:
            yield "/".join(f"{key}={escape(value)}" for key, value in zip(keys, values, strict=True))

    def _partitions(self, database: str, name: str, names: tuple[str, ...]) -> tuple[interface.Partition, ...]:
        self._table(database, name)
        by_name = dict(zip(self._names(database, name), self.partitions[database, name].items(), strict=True))
        return tuple(
            interface.Partition(by_name[one][0], interface.PartitionStorage(by_name[one][1]))
            for one in names
            if one in by_name
        )

    def _open_txns(self) -> interface.OpenTxns:
        ids = sorted(self.open | self.aborted)
        return interface.OpenTxns(
            self.high_watermark, tuple(ids), min(self.open, default=None), java_bits([i in self.aborted for i in ids])
        )

    def _write_ids(self, name: str, txns: str) -> interface.TableWriteIds:
        high, _, still_open, aborted = txns.split(":")
        hidden = {int(one) for one in still_open.split(",") if one}
        failed = {int(one) for one in aborted.split(",") if one}
        ids = {write_id: txn for write_id, txn in self.written.get(name, {}).items() if txn <= int(high)}
        invalid = sorted(write_id for write_id, txn in ids.items() if txn in hidden | failed)
        bits = [ids[write_id] in failed for write_id in invalid]
        least = min((one for one, is_aborted in zip(invalid, bits, strict=True) if not is_aborted), default=None)
        return interface.TableWriteIds(name, max(ids, default=0), tuple(invalid), least, java_bits(bits))


def escape(value: str) -> str:
    """A value in the name of a partition, as Hive's FileUtils.escapePathName has it."""
    odd = "\"#%'*/:=?\\{[]^\x7f"
    return "".join(f"%{ord(one):02X}" if one in odd or one < " " else one for one in value)


def java_bits(bits: list[bool]) -> bytes:
    """Java's BitSet.toByteArray()."""
    data = bytearray((len(bits) + 7) // 8)
    for at, bit in enumerate(bits):
        data[at // 8] |= bit << at % 8
    return bytes(data).rstrip(b"\0")
