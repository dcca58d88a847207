"""One connection to one metastore, and the calls over it."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from thrift.protocol.TBinaryProtocol import TBinaryProtocol, TBinaryProtocolAccelerated
from thrift.protocol.TCompactProtocol import TCompactProtocol, TCompactProtocolAccelerated
from thrift.protocol.TProtocol import TProtocolException
from thrift.Thrift import TApplicationException, TMessageType, TType
from thrift.transport.THttpClient import THttpClient
from thrift.transport.TSocket import TSocket
from thrift.transport.TSSLSocket import TSSLSocket
from thrift.transport.TTransport import TBufferedTransport, TFramedTransport, TTransportException

from acidctl.errors import AccessError, EnvironmentProblem, out_of_memory
from acidctl.metastore.errors import MetastoreError, UnknownMethod, Unreachable, refusal_of
from acidctl.metastore.settings import Address, Login, MetastoreSettings, Tls
from acidctl.metastore.wire import Answer, Method
from acidctl.printable import printable

MOST_BYTES = 256 << 20
"""Of one text, and of one frame; Hive's own server sends at most 100 MB a message unless it is told otherwise."""

_MOST_ITEMS = 50_000_000
_BUFFER = 64 << 10


class _LooseBinary(TBinaryProtocol):  # type: ignore[misc]
    """Reads a set as a list: they are the same bytes, and Hive 2.3 sends the one where Hive 3 sends the other."""

    def readFieldBegin(self) -> tuple[Any, int, int]:  # noqa: N802 - Thrift's name
        return _as_list(super().readFieldBegin())


class _LooseCompact(TCompactProtocol):  # type: ignore[misc]
    """The same of the other protocol."""

    def readFieldBegin(self) -> tuple[Any, int, int]:  # noqa: N802 - Thrift's name
        return _as_list(super().readFieldBegin())


def _as_list(field: tuple[Any, int, int]) -> tuple[Any, int, int]:
    name, code, number = field
    return name, TType.LIST if code == TType.SET else code, number


class Connection:
    """Opened by the constructor; used by one thread at a time.

    Raises:
        Unreachable: nobody answers there.
        AccessError: the server does not take the login, or its certificate is not to be trusted.
        EnvironmentProblem: a package for this way of logging in is missing.
    """

    def __init__(self, settings: MetastoreSettings, address: Address) -> None:
        self.address = address
        self._transport = transport = _transport(settings, address)
        limits = {"string_length_limit": MOST_BYTES, "container_length_limit": _MOST_ITEMS}
        fast, loose = (
            (TCompactProtocolAccelerated, _LooseCompact)
            if settings.compact
            else (TBinaryProtocolAccelerated, _LooseBinary)
        )
        self._protocol = fast(transport, **limits)
        self._loose = loose(transport, **limits)
        with self._mapped("connect"):
            transport.open()

    def call(self, method: Method, *arguments: Any) -> Any:
        """Call a method, and give what comes back; None of one that gives nothing.

        Raises:
            Unreachable: the connection was lost; it cannot be used any more.
            UnknownMethod: this server does not have it.
            AcidctlError: the server refused, by one of its exceptions.
        """
        with self._mapped(method.name):
            self._send(method, arguments)
            answer = self._receive(method)
        if raised := answer.raised:
            at, refusal = raised
            raise refusal_of(method.raises[at], printable(refusal.message or ""), method.name, self.address.url)
        if answer.success is None and method.answer.thrift_spec and method.answer.thrift_spec[0]:
            raise MetastoreError(
                f"the metastore {self.address.url} gave no answer to {method.name}",
                "the message has no result",
                "check that it is a metastore of Hive",
            )
        return answer.success

    def close(self) -> None:
        """Close it; what goes wrong there is of no interest any more."""
        with suppress(OSError, TTransportException, AttributeError):  # THttpClient may have nothing to close
            self._transport.close()

    def _send(self, method: Method, arguments: tuple[Any, ...]) -> None:
        out = self._protocol
        out.writeMessageBegin(method.name, TMessageType.CALL, 0)
        out.writeStructBegin("")
        for number, (wire_type, value) in enumerate(zip(method.arguments, arguments, strict=True), 1):
            out.writeFieldBegin("", wire_type.code, number)
            out.writeFieldByTType(wire_type.code, value, wire_type.detail)
            out.writeFieldEnd()
        out.writeFieldStop()
        out.writeStructEnd()
        out.writeMessageEnd()
        self._transport.flush()

    def _receive(self, method: Method) -> Answer:
        source = self._loose if method.loose else self._protocol
        name, kind, _ = source.readMessageBegin()
        if kind == TMessageType.EXCEPTION:
            problem = TApplicationException()
            problem.read(source)
            source.readMessageEnd()
            raise problem
        if name != method.name:
            raise TProtocolException(TProtocolException.INVALID_DATA, f"an answer to {printable(str(name)[:60])!r}")
        answer = method.answer()
        answer.read(source)
        source.readMessageEnd()
        return answer

    @contextmanager
    def _mapped(self, doing: str) -> Iterator[None]:
        """From the errors of Thrift, sockets and TLS to acidctl's own; but for a refusal, the connection is closed."""
        server = self.address.url
        try:
            yield
        except TApplicationException as error:
            message = printable(str(error.message or ""))
            if error.type == TApplicationException.UNKNOWN_METHOD:
                raise UnknownMethod(f"the metastore {server} does not have {doing}", message) from error
            raise MetastoreError(
                f"the metastore {server} failed in {doing}", message, "see the metastore's log"
            ) from error
        except ssl.SSLCertVerificationError as error:
            self.close()
            raise _not_trusted(server, error) from error
        except MemoryError as error:
            self.close()
            raise out_of_memory(f"what the metastore {server} answers to {doing}") from error
        except (TTransportException, OSError, EOFError) as error:
            self.close()
            cause = _cause(error)
            if isinstance(cause, ssl.SSLCertVerificationError):
                raise _not_trusted(server, cause) from error
            raise _unreachable(server, doing, cause) from error
        except (TProtocolException, UnicodeDecodeError, TypeError, ValueError, OverflowError) as error:
            self.close()
            raise MetastoreError(
                f"the metastore {server} sent something that cannot be read, to {doing}",
                printable(str(error)),
                "check that it is a metastore, and how one talks to it: framed, compact, tls, auth",
            ) from error
        except BaseException:
            self.close()  # an answer may still be on the way
            raise


def _transport(settings: MetastoreSettings, address: Address) -> Any:
    """What carries the bytes: a socket, TLS around it, a login, and messages with their length; or HTTP."""
    if address.path is not None:
        return _http(settings, address)
    if settings.tls:
        raw: Any = TSSLSocket(
            address.host, address.port, ssl_context=_context(settings.tls), server_hostname=address.host
        )
    else:
        raw = TSocket(address.host, address.port)
    raw.setTimeout(settings.timeout * 1000)
    if settings.login is not Login.NONE:
        raise EnvironmentProblem(f"acidctl cannot log in with {settings.login} yet", "", "")
    if settings.framed:
        return TFramedTransport(raw, MOST_BYTES)
    return TBufferedTransport(raw, _BUFFER)


def _http(settings: MetastoreSettings, address: Address) -> Any:
    context = _context(settings.tls or Tls()) if address.secure else None
    client = THttpClient(address.url, ssl_context=context)
    client.setTimeout(settings.timeout * 1000)
    client.setCustomHeaders({"x-actor-username": settings.user_name, **settings.headers})
    return TBufferedTransport(client, _BUFFER)


def _context(tls: Tls) -> ssl.SSLContext:
    """Raises EnvironmentProblem where a file cannot be used."""
    try:
        context = ssl.create_default_context(cafile=tls.authority or None)
        if tls.certificate:
            context.load_cert_chain(tls.certificate, tls.key or None)
    except (OSError, ssl.SSLError) as error:
        raise EnvironmentProblem(
            "the certificates for the metastore cannot be used",
            f"{printable(tls.authority or tls.certificate)}: {error}",
            "give PEM files; from a Java keystore: keytool -exportcert -rfc -keystore STORE -alias NAME",
        ) from error
    return context


def _cause(error: BaseException) -> BaseException:
    """What was underneath: Thrift wraps what sockets and TLS say."""
    inner = getattr(error, "inner", None) or error.__cause__ or error.__context__
    return inner if isinstance(inner, OSError) else error


def _not_trusted(server: str, error: ssl.SSLCertVerificationError) -> AccessError:
    return AccessError(
        f"the certificate of the metastore {server} is not to be trusted",
        error.verify_message or str(error),
        "give the certificate of who signed it: the setting ca",
    )


def _unreachable(server: str, doing: str, cause: BaseException) -> Unreachable:
    if isinstance(cause, TimeoutError) or getattr(cause, "type", None) == TTransportException.TIMED_OUT:
        return Unreachable(
            f"the metastore {server} does not answer", f"time ran out in {doing}", "try again, or give it more time"
        )
    if doing == "connect":
        why = printable(getattr(cause, "strerror", None) or getattr(cause, "message", None) or str(cause))
        return Unreachable(f"the metastore {server} cannot be reached", why, "check its address, and that it runs")
    return Unreachable(
        f"the connection to the metastore {server} was lost in {doing}",
        printable(str(cause)),
        "see the metastore's log; a server that wants TLS, Kerberos or framed messages hangs up, too",
    )
