"""Client for a metastore with one or more servers: it connects, retries, and detects what the server supports."""

from __future__ import annotations

import math
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

from acidctl.acid.compaction_kind import Hive
from acidctl.base.deadline import Deadline
from acidctl.base.errors import AcidctlError
from acidctl.metastore import interface
from acidctl.metastore.connection import Connection
from acidctl.metastore.errors import (
    LostTransaction,
    MetastoreError,
    NoAnswer,
    NotAsked,
    UnknownMethod,
    Unreachable,
    Unreadable,
)
from acidctl.metastore.settings import Login, MetastoreSettings
from acidctl.metastore.wire import Method

_T = TypeVar("_T")

_ROUNDS = 3
_PAUSE = 1.0
"""Average seconds between two rounds over all servers."""

_CLOSING = 30.0
"""Seconds that all calls within :func:`releasing` together may take after the run's deadline."""

_is_releasing: ContextVar[bool] = ContextVar("_is_releasing", default=False)

PATIENCE = 10.0
"""Seconds in which a server either does what it was asked for, or never will."""

_CHECK_PAUSES = (0.0, 0.03, 0.07, 0.2)
"""Pauses before each check, as parts of the patience."""


@dataclass(frozen=True, slots=True)
class Features:
    """Abilities of a server, found out by calling it: distributions backport parts of later versions.

    Attributes:
        version: as the server reports it; wrong before Hive 4.
        write_ids: whether writes are numbered per table (Hive 3).
        txn_types: whether transactions have types (Hive 4), which separate readers from compactions.
    """

    version: str
    write_ids: bool
    txn_types: bool

    @property
    def hive(self) -> Hive:
        """The version of Hive, judged by the methods it offers, not by the version it reports."""
        return Hive.HIVE4 if self.txn_types else Hive.HIVE3 if self.write_ids else Hive.HIVE2


@contextmanager
def releasing() -> Iterator[None]:
    """Let calls of the block take some seconds after the run's deadline: they end transactions and release locks."""
    token = _is_releasing.set(True)
    try:
        yield
    finally:
        _is_releasing.reset(token)


class Metastore:
    """A client that connects at its first call. Threads may share it; their calls run one after another.

    Attributes:
        until: the deadline of the run; no call lasts longer, except within :func:`releasing`.
    """

    def __init__(
        self, settings: MetastoreSettings, connect: Callable[..., Connection] = Connection, rounds: int = _ROUNDS
    ) -> None:
        self.settings = settings
        self.until = Deadline()
        self._closing = _CLOSING
        self._rounds = rounds
        self._connect = connect
        self._connection: Connection | None = None
        self._lock = threading.RLock()

    @property
    def shown(self) -> str:
        """The address of the connected server, else of the first."""
        return self._connection.address.url if self._connection else self.settings.shown

    def connection(self) -> Connection:
        """Return the open connection, else a new one."""
        with self._lock:
            return self._connection or self._open()

    def call(self, method: Method, *arguments: Any) -> Any:
        """Call a method; if the connection is lost, repeat the call on another server if that does no harm.

        Raises:
            Unreachable: no server answers, or the answer to a call that must not be repeated was lost.
            NotAsked: the deadline of the run has passed.
            UnknownMethod: the server does not have it.
        """
        with self._lock:
            is_late, begun = self.until.is_over, time.monotonic()
            try:
                return self._call(method, arguments)
            finally:
                self._closing -= time.monotonic() - begun if is_late else 0.0

    def _call(self, method: Method, arguments: Sequence[Any]) -> Any:
        ends = Deadline(time.monotonic() + self._most(self.settings.timeout))
        for attempt in range(self._rounds):
            if self._connection and not method.repeatable and self._connection.is_lost():
                self.close()  # reconnect before sending a request that cannot be repeated
            connection = self._connection or self._open()
            # Connecting has its own time limit; all attempts share the time limit of the call.
            most = self._most(self.settings.timeout if not attempt else ends.at - time.monotonic())
            try:
                return connection.call(method, *arguments, most=most)
            except (Unreachable, Unreadable) as error:
                self._connection = None
                self._explain(error)
                if not method.repeatable:
                    done = "it may have been done nevertheless: look before you ask for it again"
                    hint = "; ".join(filter(None, (done, error.hint)))
                    raise type(error)(error.what, error.why, hint) from error
                is_last = attempt == self._rounds - 1 or ends.is_over
                if not isinstance(error, Unreachable) or isinstance(error, NoAnswer) or is_last:
                    raise
            except MetastoreError:  # the connection is still there, but a new one costs little
                self.close()
                raise
        raise AssertionError("the last attempt returns or raises")

    def insist(self, method: Method, *arguments: Any, after: type[AcidctlError] = Unreachable) -> Any:
        """Call a method, and call it once more if it fails: the connection may just be lost, and a second call is safe.

        Args:
            after: the errors after which it is called once more, but for LostTransaction.

        Raises:
            LostTransaction: the transaction or the lock has ended.
        """
        try:
            return self.call(method, *arguments)
        except LostTransaction:
            raise
        except after:
            return self.call(method, *arguments)

    def another(self, patience: float = math.inf, rounds: int | None = None) -> Metastore:
        """Return a client for the same servers with its own connection, whose calls do not wait for this client's.

        Args:
            patience: seconds that a call, or a connection, may take at most, if the settings allow more.
            rounds: as in the constructor; default: that of this client.
        """
        settings = self.settings
        most, to_connect = min(settings.timeout, patience), min(settings.connect_timeout, patience)
        settings = replace(settings, timeout=most, connect_timeout=to_connect)
        other = Metastore(settings, self._connect, rounds or self._rounds)
        other.until = self.until
        if "features" in self.__dict__:
            other.__dict__["features"] = self.features  # saves calls
        return other

    def each_server(self) -> Iterator[Metastore]:
        """Yield a client for each single server: their answers may differ."""
        for address in self.settings.addresses:
            yield Metastore(replace(self.settings, addresses=(address,)), self._connect, 1)

    @contextmanager
    def limited(self, until: Deadline) -> Iterator[None]:
        """Limit the calls of the block to a deadline instead of the one before."""
        before = self.until, self._closing
        self.until, self._closing = until, _CLOSING
        try:
            yield
        finally:
            self.until, self._closing = before

    def close(self) -> None:
        """Close the connection; the next call opens a new one."""
        with self._lock:
            if self._connection:
                self._connection.close()
            self._connection = None

    def _most(self, seconds: float) -> float:
        """Return the seconds that are left for a call or a connection, at most those given.

        Raises:
            NotAsked: the deadline of the run has passed.
        """
        seconds_left = self.until.at - time.monotonic()
        if _is_releasing.get():
            seconds_left = max(seconds_left, self._closing)
        if seconds_left <= 0:
            hint = "run it again, with a later --deadline"
            raise NotAsked(f"the metastore {self.shown} was not asked", "the deadline of the run has passed", hint)
        return min(seconds, seconds_left)

    def _open(self) -> Connection:
        """Connect to the first server that answers; like Hive's own client, try several rounds with a pause.

        A server that accepts a connection and does not answer is tried once: a second try would take as long.
        """
        settings, last = self.settings, None
        silent: set[str] = set()
        for attempt in range(self._rounds):
            if attempt:
                time.sleep(_PAUSE * random.uniform(0.5, 1.5))
            addresses = [address for address in settings.addresses if address.url not in silent]
            for address in addresses if settings.in_order else random.sample(addresses, len(addresses)):
                try:
                    patience = self._most(settings.connect_timeout)
                    connection = self._connect(replace(settings, connect_timeout=patience), address)
                    if settings.login is Login.NONE and address.path is None:  # the first call names the user
                        connection.call(interface.SET_UGI, settings.user_name, ())
                except Unreachable as error:
                    last = error
                    if isinstance(error, NoAnswer):
                        silent.add(address.url)
                else:
                    self._connection = connection
                    return connection
            if self.until.is_over or silent.issuperset(address.url for address in addresses):
                break
        assert last
        self._explain(last)
        raise last

    def _explain(self, error: AcidctlError) -> None:
        if isinstance(error, NoAnswer) and self.until.is_over:
            error.hint = "see the metastore's log; a later --deadline gives it more time"

    @cached_property
    def features(self) -> Features:
        """The abilities of the server; cached."""
        request = interface.ValidWriteIdsRequest((), f"1:{2**63 - 1}::")
        return Features(
            version=str(self.call(interface.GET_VERSION)),
            write_ids=self._has(interface.GET_VALID_WRITE_IDS, request),
            txn_types=self._has(interface.GET_OPEN_TXNS_REQ, interface.GetOpenTxnsRequest()),
        )

    def _has(self, method: Method, *arguments: Any) -> bool:
        try:
            self.call(method, *arguments)
        except UnknownMethod:
            return False
        except Unreachable:
            raise
        except AcidctlError:
            return True  # the server has the method, and refuses its arguments
        return True

    def configured(self, name: str, default: str) -> str:
        """Return a property of the server's configuration; the default if it is not set, or not readable."""
        try:
            return str(self.call(interface.GET_CONFIG_VALUE, name, default))
        except Unreachable:
            raise
        except AcidctlError:
            return default


def batches(items: Sequence[_T], size: int) -> Iterator[Sequence[_T]]:
    """Split items into batches, in their order."""
    return (items[start : start + size] for start in range(0, len(items), size))


def retry_until(check: Callable[[], object], patience: float | None = None) -> None:
    """Call `check` until it returns something true, a few times: a server may still carry out a lost request."""
    for pause in _CHECK_PAUSES:
        time.sleep(pause * (PATIENCE if patience is None else patience))
        if check():
            return
