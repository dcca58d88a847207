"""PyPI `hdfs` as this project needs it: paths taken literally, errors told apart, uploads that hold little memory."""

from __future__ import annotations

import io
import logging
import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, quote, urlencode, urlsplit, urlunsplit

import requests
from hdfs import InsecureClient, TokenClient
from hdfs.client import _Request
from hdfs.util import HdfsError
from requests.adapters import HTTPAdapter
from urllib3.util.retry import Retry

from acidctl.errors import (
    AccessError,
    AcidctlError,
    ConflictError,
    EnvironmentProblem,
    NotFoundError,
    StorageError,
    UsageProblem,
)
from acidctl.storage.port import FileSystemSpec
from acidctl.storage.problems import printable

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

# The package logs what it also raises; without a handler Python would print that on stderr.
logging.getLogger("hdfs").addHandler(logging.NullHandler())

_TIMEOUT = 60.0
_CONNECT_TIMEOUT = 10.0
_CHUNK = 1 << 20
_CHUNKS_WAITING = 4
# The package's own follows the redirect to the DataNode at once, before the path in it can be put right.
_OPEN = _Request("GET", stream=True, allow_redirects=False).to_method("OPEN")

_PROBE = "/acidctl-no-such-file-%41"
_PROBE_DECODED = "/acidctl-no-such-file-A"

_PORT_HINT = "check host and port: WebHDFS is on the NameNode's web port, 9870 or, before Hadoop 3, 50070"

_Row = tuple[type[AcidctlError], str, str]

_BY_EXCEPTION: dict[str, _Row] = {
    "FileNotFoundException": (NotFoundError, "no such file or directory", "check the spelling of the path"),
    "PathNotFoundException": (NotFoundError, "no such file or directory", "check the spelling of the path"),
    "FileAlreadyExistsException": (ConflictError, "it exists already", "something else made it, or an earlier run did"),
    "AlreadyBeingCreatedException": (ConflictError, "somebody else is writing it", "try again when that is done"),
    "RecoveryInProgressException": (ConflictError, "somebody else is writing it", "try again when that is done"),
    "LeaseExpiredException": (ConflictError, "somebody else removed or took it over", "list the location again"),
    "ParentNotDirectoryException": (NotFoundError, "a parent of it is a file, not a directory", "check the path"),
    "AccessControlException": (AccessError, "permission denied", "name another user: webhdfs://USER@host:port/path"),
    "AuthorizationException": (AccessError, "this user may not act for that one", "check hadoop.proxyuser settings"),
    "SecurityException": (AccessError, "the server wants another kind of login", "kinit, and the option kerberos=true"),
    "InvalidToken": (AccessError, "the delegation token is not valid (any more)", "get a new token"),
    "StandbyException": (
        StorageError,
        "this NameNode is on standby",
        "name the active one, or both: webhdfs://nn1:9870,nn2:9870/path",
    ),
    "SafeModeException": (
        StorageError,
        "HDFS is in safe mode, nothing can be written",
        "wait until the NameNode has started, or ask for `hdfs dfsadmin -safemode leave`",
    ),
    "RetriableException": (StorageError, "the NameNode is not ready yet", "try again in a minute"),
    "InvalidPathException": (StorageError, "HDFS does not allow such a name", "use a name without ':' and '//'"),
    "DSQuotaExceededException": (StorageError, "the space quota is used up", "free some space or raise the quota"),
    "NSQuotaExceededException": (StorageError, "the quota of names is used up", "remove files or raise the quota"),
    "SnapshotException": (StorageError, "a snapshot protects it", "delete the snapshots of the directory first"),
    "UnsupportedOperationException": (StorageError, "the server does not know this operation", ""),
}


class WebHdfsClient:
    """The WebHDFS operations, each with its errors mapped.

    A percent sign in a path needs care: DataNodes (2.7.3 among them) and some NameNodes decode a path twice, so that
    Hive's ``p=a%3Ab`` would be read from, or silently written to, ``p=a:b``.  Whether a server does is asked once, by
    the name it says it cannot find, before the first such path goes to it.
    """

    def __init__(self, spec: FileSystemSpec) -> None:
        self.authority = spec.authority
        self._client = _make_client(spec, dict(spec.options))
        self._client.resolve = self._for_name_node  # the package's own expands "#LATEST" in names
        self._decodes_twice: dict[str, bool] = {}

    def status(self, path: str, doing: str) -> dict[str, Any]:
        """GETFILESTATUS."""
        return dict(self._call(doing, path, "_get_file_status", "FileStatus"))

    def list_status(self, path: str) -> list[dict[str, Any]]:
        """LISTSTATUS: the children of a directory, or the one status, without `pathSuffix`, of a file."""
        return list(self._call("list", path, "_list_status", "FileStatuses", "FileStatus"))

    def make_dirs(self, path: str) -> None:
        """MKDIRS."""
        if not self._call("create", path, "_mkdirs", "boolean"):
            raise StorageError(f"cannot create {self._shown(path)}", "HDFS said no without a reason")

    def delete(self, path: str) -> bool:
        """DELETE, recursively; False when nothing was there."""
        return bool(self._call("remove", path, "_delete", "boolean", recursive="true"))

    def rename(self, source: str, target: str) -> bool:
        """RENAME with renameoptions=NONE, which fails when the target exists, where the plain one nests.

        Returns:
            False when the server did the plain one: HttpFS does not know the option.
        """
        doing = f"rename {self._shown(source)} to"
        with self._mapped(doing, target):
            # The package has no public call for this option.
            answer = self._client._rename(source, destination=target, renameoptions="NONE")
            done = answer.json()["boolean"] if answer.content.strip() else None
        if done is None:
            return True
        if not done:
            raise StorageError(f"cannot {doing} {self._shown(target)}", "the server said no without a reason")
        return False

    def read(self, path: str, offset: int, length: int | None) -> bytes:
        """OPEN: bytes from `offset` on; the server may answer with fewer at the end of the file.

        A connection that breaks within the bytes is tried twice more.
        """
        with self._mapped("read", path):
            for _ in range(2):
                try:
                    return self._read_once(path, offset, length)
                except requests.exceptions.ChunkedEncodingError:
                    continue
            return self._read_once(path, offset, length)

    def _read_once(self, path: str, offset: int, length: int | None) -> bytes:
        answer = _OPEN(self._client, path, offset=offset, length=length)
        if location := answer.headers.get("location"):  # HttpFS answers by itself
            answer.close()
            answer = self._follow("GET", path, location)
        with answer:
            return b"".join(answer.iter_content(_CHUNK))  # `content` reads in pieces of 10 KB

    def create(self, path: str, data: Any) -> None:
        """CREATE with overwrite=false, in two steps as WebHDFS wants it: ask where, then send the bytes there."""
        with self._mapped("create", path):
            answer = self._client._create(path, overwrite="false")
            self._follow("PUT", path, answer.headers["location"], data)
        if "%" in path:
            try:
                self.status(path, "create")
            except NotFoundError as error:
                raise StorageError(
                    f"cannot create {self._shown(path)}",
                    "the server took the percent sign for an escape and stored it under another name",
                    "this server's WebHDFS cannot write such names",
                ) from error

    def _follow(self, method: str, path: str, location: str, data: Any = None) -> Any:
        url = self._for_data_node(path, location)
        answer = self._client._request(method, url, data=data, stream=method == "GET")
        if not answer:
            with answer:
                raise _RemoteError(*_remote_exception(answer))
        return answer

    def _for_name_node(self, path: str) -> str:
        if "%" not in path or path == _PROBE:
            return path
        key = "NameNode"
        if key not in self._decodes_twice:
            answer = self._client._get_file_status(_PROBE, strict=False)
            self._decodes_twice[key] = _PROBE_DECODED in answer.text
        return quote(path, "/") if self._decodes_twice[key] else path

    def _for_data_node(self, path: str, location: str) -> str:
        if "%" not in path:
            return location
        parts = urlsplit(location)
        prefix = parts.path.partition("/webhdfs/v1")[0] + "/webhdfs/v1"
        if parts.netloc not in self._decodes_twice:
            query = {key: values[0] for key, values in parse_qs(parts.query).items() if key not in _WRITE_PARAMETERS}
            probe = parts._replace(path=prefix + quote(_PROBE), query=urlencode(query | {"op": "OPEN"}))
            with self._client._request("GET", urlunsplit(probe), stream=True) as answer:
                self._decodes_twice[parts.netloc] = _PROBE_DECODED in answer.text
        encoded = quote(path, "/")
        if self._decodes_twice[parts.netloc]:
            encoded = quote(encoded, "/")
        return urlunsplit(parts._replace(path=prefix + encoded))

    def _call(self, doing: str, path: str, operation: str, *keys: str, **parameters: str) -> Any:
        """What the JSON of the answer has under these keys."""
        with self._mapped(doing, path):
            value = getattr(self._client, operation)(path, **parameters).json()
            for key in keys:
                value = value[key]
            return value

    def _shown(self, path: str) -> str:
        return printable(f"webhdfs://{self.authority}{path}")

    @contextmanager
    def _mapped(self, doing: str, path: str) -> Iterator[None]:
        what = f"cannot {doing} {self._shown(path)}"
        try:
            yield
        except UnicodeEncodeError as error:
            raise NotFoundError(what, "names in HDFS are UTF-8", "rename it on the disk it comes from") from error
        except HdfsError as error:
            raise _from_remote(what, error.exception, str(error)) from error
        except _RemoteError as error:
            raise _from_remote(what, error.exception, error.message) from error
        except requests.exceptions.Timeout as error:
            raise StorageError(
                what, f"{_host(error, self.authority)} did not answer in time", _reach_hint(error, self.authority)
            ) from error
        except requests.exceptions.SSLError as error:
            raise StorageError(what, f"TLS failed: {error}", "check the certificate, or use webhdfs://") from error
        except (requests.exceptions.ConnectionError, requests.exceptions.ChunkedEncodingError) as error:
            raise StorageError(
                what, f"no connection to {_host(error, self.authority)}", _reach_hint(error, self.authority)
            ) from error
        except (requests.exceptions.RequestException, KeyError, TypeError, ValueError) as error:
            raise StorageError(
                what,
                f"{self.authority} does not answer as WebHDFS does: {printable(str(error))}",
                _PORT_HINT,
            ) from error


class Upload(io.RawIOBase):
    """A new file being sent while it is written; at most a few megabytes wait in memory."""

    def __init__(self, client: WebHdfsClient, path: str) -> None:
        super().__init__()
        self._client, self._path = client, path
        self._chunks: queue.Queue[bytes | None] = queue.Queue(_CHUNKS_WAITING)
        self._error: BaseException | None = None
        self._position = 0
        self._thread = threading.Thread(target=self._send, name="acidctl-upload", daemon=True)
        self._thread.start()

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def write(self, data: ReadableBuffer, /) -> int:
        if self.closed:
            raise ValueError("I/O operation on closed file.")
        chunk = bytes(data)
        if chunk:  # an empty chunk would end the request
            self._put(chunk)
            self._position += len(chunk)
        return len(chunk)

    def close(self) -> None:
        if self.closed:
            return
        super().close()
        self._put(None, report=False)
        self._thread.join()
        if self._error is not None:
            raise self._error

    def _put(self, chunk: bytes | None, report: bool = True) -> None:
        while self._thread.is_alive():
            try:
                self._chunks.put(chunk, timeout=0.2)
            except queue.Full:  # the sender may have died meanwhile
                continue
            return
        if report:
            raise self._error or StorageError(f"cannot write {printable(self._path)}", "the connection was closed")

    def _send(self) -> None:
        try:
            self._client.create(self._path, iter(self._chunks.get, None))
        except BaseException as error:  # noqa: BLE001 - raised in the writer's thread
            self._error = error


class _RemoteError(Exception):
    """What a DataNode answered, before it is known what was being done."""

    def __init__(self, exception: str | None, message: str) -> None:
        super().__init__(message)
        self.exception, self.message = exception, message


_WRITE_PARAMETERS = {
    "op",
    "overwrite",
    "createflag",
    "createparent",
    "permission",
    "replication",
    "blocksize",
    "offset",
}


def _make_client(spec: FileSystemSpec, options: dict[str, str]) -> Any:
    scheme = "https" if spec.protocol == "swebhdfs" else "http"
    url = ";".join(f"{scheme}://{host}" for host in spec.authority.split(","))
    try:
        timeout = float(options.get("timeout", _TIMEOUT))
    except ValueError as error:
        raise UsageProblem(f"not a number of seconds: timeout={options['timeout']}") from error
    session = requests.Session()
    # Only what changes nothing is asked again; a rename whose answer was lost may have happened.
    retry = Retry(total=3, connect=2, read=2, status=0, allowed_methods={"GET"}, backoff_factor=0.2)
    for prefix in ("http://", "https://"):
        session.mount(prefix, HTTPAdapter(pool_maxsize=32, max_retries=retry))
    settings: dict[str, Any] = {"timeout": (min(timeout, _CONNECT_TIMEOUT), timeout), "session": session}
    if options.get("token"):
        return TokenClient(url, options["token"], **settings)
    if options.get("kerberos", "").lower() in ("true", "yes", "1"):
        try:
            from hdfs.ext.kerberos import KerberosClient
        except ImportError as error:
            raise EnvironmentProblem(
                f"cannot log in to {spec.authority} with Kerberos", str(error), "pip install 'hdfs[kerberos]'"
            ) from error
        return KerberosClient(url, **settings)
    return InsecureClient(url, user=options["user"], **settings)


def _remote_exception(answer: Any) -> tuple[str | None, str]:
    try:
        remote = answer.json()["RemoteException"]
        return remote["exception"], remote["message"]
    except (ValueError, KeyError, TypeError):
        login = "Authentication failure, " if answer.status_code == 401 else ""
        return None, f"{login}HTTP status {answer.status_code}"


def _from_remote(what: str, exception: str | None, message: str) -> AcidctlError:
    """A server's exception by its class; an IPC wrapper has the class in its message."""
    first = message.strip().partition("\n")[0]
    for name in (exception, *(word for word in _BY_EXCEPTION if word in first)):
        if name in _BY_EXCEPTION:
            kind, why, hint = _BY_EXCEPTION[name]
            return kind(what, why, hint)
    if "Authentication failure" in message:
        return AccessError(what, "the server wants a login", "kinit, and the option kerberos=true")
    if "already exists" in first:
        return ConflictError(what, "it exists already", "something else made it meanwhile, or an earlier run left it")
    if "Invalid path name" in first:
        kind, why, hint = _BY_EXCEPTION["InvalidPathException"]
        return kind(what, why, hint)
    if exception is None:
        return StorageError(what, f"the answer is not WebHDFS's: {printable(first)[:200]}", _PORT_HINT)
    return StorageError(what, printable(f"{exception}: {first}"), "see the NameNode's log")


def _host(error: requests.exceptions.RequestException, authority: str) -> str:
    request = error.request
    host = urlsplit(request.url).netloc if request is not None and isinstance(request.url, str) else ""
    return host or authority


def _reach_hint(error: requests.exceptions.RequestException, authority: str) -> str:
    host = _host(error, authority)
    if host not in authority.split(","):
        return f"the NameNode sends clients to the DataNode {host}: this machine must resolve and reach it"
    return "check that the NameNode runs, the host and its web port (9870; 50070 before Hadoop 3), and the firewall"
