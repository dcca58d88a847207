"""The process that holds the transaction of ``df.write`` or of a stream's epoch: it publishes and commits.

Spark calls the writer of a data source in one process and its commit in another, and each may end right afterwards.
So the first starts this process, which sends the heartbeats, and the second finds it by a socket that only this user
can open. It ends with the commit or the abort, or when the driver has ended.
"""

from __future__ import annotations

import os
import pickle
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Client, Connection
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from acidctl.base.errors import AcidctlError, ConflictError
from acidctl.base.imports import child_environment, import_path
from acidctl.metastore.txn.transaction import UnknownOutcome
from acidctl.spark.worker import as_acidctl_error
from acidctl.spark.writing.insert import FrameInsert
from acidctl.spark.writing.share import Attempt, InsertTask
from acidctl.spark.writing.sink import require_last
from acidctl.spark.writing.target import Address, log_by_spark, open_table
from acidctl.writing.once import AlreadyLoaded, Once
from acidctl.writing.rows.files import StagedFile
from acidctl.writing.transaction import Seen, WriteTransaction
from acidctl.writing.write import Written

_Wanted = tuple[Sequence[Attempt], Once | None] | None
"""The files to publish, and the load that they are; None for an abort."""

_LOOK_SECONDS = 1.0
_LONGEST_FOLDER = 70
"""The path of a socket has at most about a hundred bytes."""


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """An INSERT for a keeper to carry out.

    Attributes:
        table: ``hive:db.table``.
        schema: the columns of the rows.
        overwrite: the rows replace others.
        storage: options of the store.
        wait: seconds to wait for a conflicting lock.
        driver: a process that ends with the driver, and with which the keeper ends.
    """

    table: str
    metastore: Address = field(repr=False)
    schema: pa.Schema
    overwrite: bool
    storage: Mapping[str, str] = field(repr=False)
    wait: float
    driver: int


@dataclass(frozen=True, slots=True)
class Kept:
    """A transaction that a keeper holds.

    Attributes:
        task: the pickled :class:`acidctl.spark.writing.share.InsertTask` of all tasks.
        address: the path of the keeper's socket.
    """

    task: bytes = field(repr=False)
    address: str

    @classmethod
    def begin(cls, request: WriteRequest) -> Kept:
        """Start a keeper, and wait until its transaction has a lock.

        Raises:
            AcidctlError: the table cannot be written to; see :func:`acidctl.spark.insert`.
        """
        line = [sys.executable, "-c", f"from {__name__} import main; main()"]  # -m would give its classes another name
        environ = child_environment() | {"PYTHONPATH": os.pathsep.join(import_path())}
        pipe = subprocess.PIPE
        keeper = subprocess.Popen(line, stdin=pipe, stdout=pipe, env=environ, cwd="/", start_new_session=True)
        assert keeper.stdin
        assert keeper.stdout
        with keeper.stdin, keeper.stdout:
            pickle.dump(request, keeper.stdin)
            keeper.stdin.close()
            try:
                answer = pickle.load(keeper.stdout)
            except EOFError:
                raise AcidctlError("the process for a transaction ended at its start", "", "see its errors") from None
        if isinstance(answer, AcidctlError):
            raise answer
        assert isinstance(answer, Kept)
        return answer

    def commit(self, attempts: Sequence[Attempt], once: Once | None = None) -> Written | None:
        """Publish the files of these attempts, and commit.

        Args:
            once: the load that they are, if that must not be made twice.

        Returns:
            What was written; None if the load is in the table.

        Raises:
            ConflictError: the transaction is lost, or a later load is in the table.
            UnknownOutcome: whether it was committed is not known.
        """
        answer = self._ask((attempts, once))
        if isinstance(answer, AlreadyLoaded):
            return None
        if isinstance(answer, AcidctlError):
            raise answer
        assert isinstance(answer, Written)
        return answer

    def abort(self) -> None:
        """Remove all files, and abort the transaction; do nothing if it has ended."""
        with suppress(AcidctlError):
            self._ask(None)

    def _ask(self, wanted: _Wanted) -> object:
        with ExitStack() as close:
            try:
                connection = close.enter_context(Client(self.address, "AF_UNIX"))
                connection.send(wanted)
            except OSError as error:
                why = "the process that held it has ended"
                raise ConflictError("the transaction is lost", why, "nothing was written; run it again") from error
            try:
                return connection.recv()
            except (EOFError, OSError) as error:
                what = "whether the rows were committed is not known"
                raise UnknownOutcome(
                    what, "the process that held the transaction has ended", "read the table"
                ) from error


class _KeptInsert(FrameInsert):
    """An INSERT that learns with its files which load it is, if that must not be made twice."""

    once: Once | None = None

    def stage(self, transaction: Seen) -> list[StagedFile]:
        files = super().stage(transaction)
        if self.once:
            assert isinstance(transaction, WriteTransaction)
            try:
                transaction.load_once(self.once)
            except AlreadyLoaded:
                require_last(self.metastore, self.table, self.once, self.storage)
                raise
        return files


class _GivenUpError(Exception):
    """The driver or the query has ended, or wants the transaction to be aborted."""


class _Keeper:
    def __init__(self, request: WriteRequest, answer: BinaryIO) -> None:
        self._request, self._answer = request, answer
        self._connection: Connection | None = None

    def run(self) -> None:
        request = self._request
        try:
            metastore, table = open_table(request.table, request.metastore)
            insert = _KeptInsert(metastore, table, request.schema, self._attempts, overwrite=request.overwrite)
            self._insert = insert
            written = insert.run(wait=request.wait, storage=request.storage)
            log_by_spark("insert", table, written, request.storage, insert.once)
            self._tell(written)
        except _GivenUpError:
            self._tell(None)
        except Exception as error:  # noqa: BLE001 - the process that waits for the answer raises it
            self._tell(as_acidctl_error(error))

    def _tell(self, value: object) -> bool:
        """Send an answer, and return whether somebody waited for it."""
        with suppress(OSError):
            if self._connection:
                self._connection.send(value)
                return True
            if not self._answer.closed:
                pickle.dump(value, self._answer)
                self._answer.close()
                return True
        return False

    def _attempts(self, task: InsertTask) -> Sequence[Attempt]:
        """Hand out the task, and wait for the attempts that Spark accepts."""
        usual = tempfile.gettempdir()
        place = usual if len(usual) <= _LONGEST_FOLDER else "/tmp"
        with tempfile.TemporaryDirectory(prefix="acidctl-", dir=place) as folder, socket.socket(socket.AF_UNIX) as door:
            address = f"{folder}/keeper"
            door.bind(address)
            door.listen()
            door.settimeout(_LOOK_SECONDS)
            if not self._tell(Kept(pickle.dumps(task), address)):
                raise _GivenUpError  # the query ended while this process waited for a lock
            while self._connection is None:
                with suppress(TimeoutError):
                    self._connection = Connection(door.accept()[0].detach())
                if self._connection is None and has_ended(self._request.driver):
                    raise _GivenUpError
            wanted: _Wanted = self._connection.recv()
        if wanted is None:
            raise _GivenUpError
        attempts, self._insert.once = wanted
        return attempts


def has_ended(process: int) -> bool:
    """Return whether a process of this machine has ended, though perhaps nobody has asked for its status yet."""
    try:
        os.kill(process, 0)
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except ProcessLookupError:
        return True
    except OSError:  # it belongs to another user, or the system has no /proc
        return False


def main() -> None:
    """Carry out the request on standard input; the answer goes to standard output."""
    request = pickle.load(sys.stdin.buffer)
    answer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # libraries may print
    _Keeper(request, answer).run()
