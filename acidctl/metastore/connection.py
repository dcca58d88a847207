"""A connection to one metastore server, and calls over it."""

from __future__ import annotations

import math
import re
import ssl
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from thrift.protocol.TBinaryProtocol import TBinaryProtocol, TBinaryProtocolAccelerated
from thrift.protocol.TCompactProtocol import TCompactProtocol, TCompactProtocolAccelerated
from thrift.protocol.TProtocol import TProtocolException
from thrift.Thrift import TApplicationException, TMessageType, TType
from thrift.transport.TTransport import TTransportException

from acidctl.base.errors import out_of_memory
from acidctl.base.printable import printable
from acidctl.metastore import interface
from acidctl.metastore.errors import MetastoreError, NoAnswer, UnknownMethod, Unreachable, Unreadable, refusal_of
from acidctl.metastore.settings import Address, MetastoreSettings
from acidctl.metastore.transport.stream import MOST_BYTES, not_trusted
from acidctl.metastore.transport.transports import transport_of
from acidctl.metastore.wire import Method, Reply

_UNREADABLE = (
    TProtocolException, TypeError, ValueError, LookupError, ArithmeticError, AssertionError, RecursionError,
    struct.error,
)  # fmt: skip
"""Errors that Thrift's library raises for malformed bytes: it does not check all of its input."""

_OF_ACID = re.compile("txn|lock|compact", re.IGNORECASE)
"""In the names of methods of transactions, which a metastore may lack because ACID is switched off (HIVE-29520)."""

_MOST_NUMBER = 2**31 - 1
"""Largest sequence number of a call; its answer repeats the number."""

_MOST_ITEMS = 10_000_000
"""Items of one list: memory is allocated before they are read."""


class _Loose:
    """Reads a set as a list: Hive 2.3 sends one where Hive 3 sends the other, in the same bytes."""

    def readFieldBegin(self) -> tuple[Any, int, int]:  # noqa: N802 - Thrift's name
        name, code, number = super().readFieldBegin()  # type: ignore[misc]
        return name, TType.LIST if code == TType.SET else code, number


class _LooseBinary(_Loose, TBinaryProtocol):  # type: ignore[misc]
    pass


class _LooseCompact(_Loose, TCompactProtocol):  # type: ignore[misc]
    pass


class Connection:
    """A connection that its constructor opens, for one thread at a time.

    Raises:
        AccessError: the server refuses the login, or its certificate is not trusted.
        EnvironmentProblem: a package for this kind of login is missing.
    """

    def __init__(self, settings: MetastoreSettings, address: Address) -> None:
        self.address = address
        self._settings = settings
        self._number = 0
        self._carrier = transport_of(settings, address)
        self._transport = transport = self._carrier.thrift
        limits = {"string_length_limit": MOST_BYTES, "container_length_limit": _MOST_ITEMS}
        fast, loose, raw = (
            (TCompactProtocolAccelerated, _LooseCompact, TCompactProtocol)
            if settings.compact
            else (TBinaryProtocolAccelerated, _LooseBinary, TBinaryProtocol)
        )
        if not settings.compact:
            limits["strictRead"] = True  # else any four bytes count as the length of a name
        self._protocol = fast(transport, **limits)
        self._loose = loose(transport, **limits)
        self._raw = raw(transport, **limits)
        with self._mapped("connect"):
            self._carrier.stream.begin(settings.connect_timeout)
            transport.open()

    @property
    def login(self) -> str:
        """Description of the login: ``as alice@REALM to hive/host@REALM, privacy``."""
        return self._carrier.login()

    @property
    def encryption(self) -> str:
        """The version of TLS; empty without TLS."""
        return self._carrier.stream.encryption

    def call(self, method: Method, *arguments: Any, most: float = math.inf) -> Any:
        """Call a method and return its result; None if it has no result.

        Args:
            most: seconds until the whole answer must have arrived, if the settings allow more.

        Raises:
            AcidctlError: the server refused, by one of its exceptions.
        """
        settings = self._settings
        is_hello = method is interface.SET_UGI
        with self._mapped(method.name):
            self._carrier.stream.begin(min(most, settings.connect_timeout if is_hello else settings.timeout))
            self._send(method, arguments)
            answer = self._receive(method)
        if raised := answer.raised:
            at, refusal = raised
            raise refusal_of(method.raises[at], printable(refusal.message or ""), method.name, self.address.url)
        if answer.success is None and method.answer.thrift_spec and method.answer.thrift_spec[0]:
            raise Unreadable(
                f"the metastore {self.address.url} gave no answer to {method.name}",
                "the message has no result",
                "check that it is a metastore of Hive",
            )
        return answer.success

    def is_lost(self) -> bool:
        """Return whether the server has hung up, or sent unexpected data, since the last answer."""
        return self._carrier.stream.has_come()

    def close(self) -> None:
        """Close the connection, and ignore errors."""
        with suppress(OSError, TTransportException):
            self._transport.close()

    def _send(self, method: Method, arguments: tuple[Any, ...]) -> None:
        out = self._raw if method.raw else self._protocol
        self._number = self._number % _MOST_NUMBER + 1
        out.writeMessageBegin(method.name, TMessageType.CALL, self._number)
        out.writeStructBegin("")
        for number, (wire_type, value) in enumerate(zip(method.arguments, arguments, strict=True), 1):
            out.writeFieldBegin("", wire_type.code, number)
            out.writeFieldByTType(wire_type.code, value, wire_type.detail)
            out.writeFieldEnd()
        out.writeFieldStop()
        out.writeStructEnd()
        out.writeMessageEnd()
        self._transport.flush()

    def _receive(self, method: Method) -> Reply:
        source = self._raw if method.raw_answer else self._loose if method.loose else self._protocol
        name, kind, number = source.readMessageBegin()
        if kind == TMessageType.EXCEPTION:
            problem = TApplicationException()
            problem.read(source)
            source.readMessageEnd()
            raise problem
        if name != method.name or number != self._number:
            message = f"an answer to {printable(str(name)[:60])!r}, number {number} and not {self._number}"
            raise TProtocolException(TProtocolException.INVALID_DATA, message)
        answer = method.answer()
        answer.read(source)
        source.readMessageEnd()
        return answer

    @contextmanager
    def _mapped(self, doing: str) -> Iterator[None]:
        """Convert errors of Thrift, sockets and TLS to acidctl's; close the connection unless the server refused."""
        server = self.address.url
        try:
            yield
        except TApplicationException as error:
            message = printable(str(error.message or ""))
            if error.type == TApplicationException.UNKNOWN_METHOD:
                hint = "see whether Hive's ACID is switched off there" if _OF_ACID.search(doing) else ""
                raise UnknownMethod(f"the metastore {server} does not have {doing}", message, hint) from error
            raise MetastoreError(
                f"the metastore {server} failed in {doing}", message, "see the metastore's log"
            ) from error
        except ssl.SSLCertVerificationError as error:
            self.close()
            raise not_trusted(server, error, self._settings.tls) from error
        except MemoryError as error:
            self.close()
            raise out_of_memory(f"what the metastore {server} answers to {doing}") from error
        except (TTransportException, OSError, EOFError) as error:
            self.close()
            inner = getattr(error, "inner", None) or error.__cause__ or error.__context__
            cause = inner if isinstance(inner, OSError) else error  # Thrift wraps errors of sockets and of TLS
            if isinstance(cause, ssl.SSLCertVerificationError):
                raise not_trusted(server, cause, self._settings.tls) from error
            raise _unreachable(server, doing, cause) from error
        except _UNREADABLE as error:
            self.close()
            raise Unreadable(
                f"the metastore {server} sent something that cannot be read, to {doing}",
                printable(str(error)),
                "check that it is a metastore, and how one talks to it: framed, compact, tls, auth",
            ) from error
        except BaseException:
            self.close()  # an answer may still be on the way
            raise


def _unreachable(server: str, doing: str, cause: BaseException) -> Unreachable:
    if isinstance(cause, TimeoutError) or getattr(cause, "type", None) == TTransportException.TIMED_OUT:
        setting = "connect-timeout" if doing in ("connect", "set_ugi") else "timeout"
        return NoAnswer(
            f"the metastore {server} does not answer",
            f"time ran out in {doing}",
            f"try again, or give it more time: the setting {setting}",
        )
    if doing == "connect":
        why = printable(getattr(cause, "strerror", None) or getattr(cause, "message", None) or str(cause))
        return Unreachable(f"the metastore {server} cannot be reached", why, "check its address, and that it runs")
    return Unreachable(
        f"the connection to the metastore {server} was lost in {doing}",
        printable(str(cause)),
        "see the metastore's log; a server that wants TLS, Kerberos or framed messages hangs up, too",
    )
