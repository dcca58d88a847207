"""Access HDFS by its own protocol, through PyPI `hdfs-native`, without Java and without an HTTP gateway.

The package does what the port promises (its rename and create fail if the target exists), except for three things that
this module adds: its calls have no timeout, it panics if a range reaches behind the end of a file, and it takes the
user's name only from the environment.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

from acidctl.base.errors import AccessError, NotFoundError, StorageError, UsageProblem, importing
from acidctl.base.printable import printable
from acidctl.hadoop.kerberos import KINIT, ticket_problem
from acidctl.storage import os_errors
from acidctl.storage.hdfs.cluster import is_a_job, rpc_address, wants_kerberos
from acidctl.storage.hdfs.errors import from_remote
from acidctl.storage.hdfs.new_file import NewFile
from acidctl.storage.pace import pace_of
from acidctl.storage.port import FileSystemSpec
from acidctl.storage.retry import PassingError, RetryPolicy

_PIECE = 32 << 20  # bytes of one read or write, to which the timeout applies
_DIRECTORY_MODE = 0o755

_ACL_BIT = 1 << 12
_USER = "HADOOP_USER_NAME"
_RPC_ERROR = re.compile(r'(?:Fatal)?RPCError\("([^"]*)", "(.*)"\)', re.DOTALL)
_PORT_HINT = (
    "check that the NameNode runs, the host and its RPC port (8020 or 9000), and the firewall; "
    "its web port (9870) is for webhdfs://"
)
_KEYS_HINT = (
    "name it (`hadoop.security.key.provider.path`) in core-site.xml of HADOOP_CONF_DIR; else use webhdfs://, "
    "whose DataNodes decrypt"
)
_TOKEN_HINT = "this job has no token for it: have Spark fetch one, --conf spark.kerberos.access.hadoopFileSystems={}"
_DATA_NODE_HINT = "this machine must reach the DataNodes; hdfs dfsadmin -report says which ones live"

_Result = TypeVar("_Result")
# The package takes the user from the environment, so that a process has one.
_user_lock = threading.Lock()
_users: set[str] = set()


class NativeClient:
    """The operations of :class:`~acidctl.storage.hdfs.webhdfs.WebHdfsClient` by RPC."""

    def __init__(self, spec: FileSystemSpec) -> None:
        self._url = f"hdfs://{spec.authority}"
        options = dict(spec.options)
        self._retry_policy, self._pace = RetryPolicy.of(options), pace_of(spec)
        hadoop = {key: value for key, value in options.items() if "." in key}
        names = hadoop.get(f"dfs.ha.namenodes.{spec.authority}", "")
        # The package asks each NameNode once in a call; RetryPolicy decides how often a call is repeated.
        hadoop.setdefault("dfs.client.failover.max.attempts", str(names.count(",")))
        instead = "pip install 'acidctl[hdfs]', or use webhdfs://NAMENODE:9870/path"
        with importing(f"cannot open {self._url}", instead, "its Python package is missing: "):
            from hdfs_native import Client, WriteOptions  # noqa: PLC0415 - optional
        if wants_kerberos(options):
            hadoop.setdefault("hadoop.security.authentication", "kerberos")
        else:
            _be(options["user"])
        address = rpc_address(spec.authority) if wants_kerberos(options) else None
        self._user = options.get("principal") or options.get("user", "")
        self._write_options = WriteOptions
        if options.get("keytab") and not options.get("principal"):
            raise UsageProblem("a keytab without a principal", "hdfs:// needs both", "give principal=NAME@REALM too")
        # With a token neither is needed, and on an executor the keytab need not exist.
        login = {f"kerberos_{key}": options[key] for key in ("principal", "keytab") if options.get(key) and not address}
        try:
            self._client: Any = Client(f"hdfs://{address or spec.authority}", hadoop, **login)
        except (RuntimeError, ValueError, OSError) as error:
            raise UsageProblem(f"cannot open {printable(self._url)}", printable(str(error)), _PORT_HINT) from error

    def status(self, path: str, doing: str) -> dict[str, Any]:
        return self._ask(doing, path, lambda: _status(self._client.get_file_info(path)))

    def list_status(self, path: str) -> list[dict[str, Any]]:
        infos = self._ask("list", path, lambda: list(self._client.list_status(path)))
        prefix = path.rstrip("/") + "/"
        return [
            _status(info) | {"pathSuffix": info.path.removeprefix(prefix) if info.path != path else ""}
            for info in infos
        ]

    def make_dirs(self, path: str) -> None:
        self._ask("create", path, lambda: self._client.mkdirs(path, _DIRECTORY_MODE, True))

    def delete(self, path: str, *, recursive: bool = True) -> bool:
        return bool(self._within("remove", path, lambda: self._client.delete(path, recursive)))

    def rename(self, source: str, target: str) -> bool:
        """Rename with the call that fails if the target exists, and return True."""
        doing = f"rename {printable(self._url + source)} to"
        self._within(doing, target, lambda: self._client.rename(source, target, False))
        return True

    def replace(self, source: str, target: str) -> None:
        doing = f"rename {printable(self._url + source)} to"
        self._within(doing, target, lambda: self._client.rename(source, target, True))

    def trash_root(self, path: str) -> str | None:  # noqa: ARG002 - the package cannot ask for zones
        """Return None: only WebHDFS can tell the trash."""
        return None

    def read(self, path: str, offset: int, length: int) -> bytes:
        size, fetch = self.open_reader(path)
        start, end = min(offset, size), min(offset + length, size)
        return fetch(start, end) if start < end else b""

    def open_reader(self, path: str) -> tuple[int, Callable[[int, int], bytes]]:
        reader = self._ask("read", path, lambda: self._client.read(path))

        def fetch(start: int, end: int) -> bytes:
            pieces = []
            for at in range(start, end, _PIECE):
                length = min(_PIECE, end - at)
                pieces.append(self._ask("read", path, partial(reader.read_range, at, length)))
                self._pace.passed(length)
            return b"".join(pieces)

        return len(reader), fetch

    def create(self, path: str, data: bytes) -> None:
        with _Output(self, path) as output:
            output.write(data)

    def open_output(self, path: str, mode: int | None = None) -> NewFile:
        return _Output(self, path, mode)

    def user(self) -> str:
        """Return the name that we gave; of a Kerberos principal its first part."""
        return re.split("[/@]", self._user)[0]

    def acl(self, path: str) -> tuple[str, ...]:
        status = self._ask("look at the ACL of", path, lambda: self._client.get_acl_status(path))
        scopes = {"default": "default:"}
        return tuple(
            f"{scopes.get(entry.scope, '')}{entry.type}:{entry.name or ''}:{entry.permissions}"
            for entry in status.entries
        )

    def set_owner(self, path: str, owner: str, group: str) -> None:
        self._within("set the owner of", path, lambda: self._client.set_owner(path, owner or None, group or None))

    def set_permission(self, path: str, mode: int) -> None:
        self._within("set the mode of", path, lambda: self._client.set_permission(path, mode))

    def set_acl(self, path: str, entries: tuple[str, ...]) -> None:
        if not entries:
            self._within("set the ACL of", path, lambda: self._client.remove_acl(path))
            return
        from hdfs_native import AclEntry  # noqa: PLC0415 - optional

        acl = []
        for entry in entries:
            parts: list[Any] = entry.removeprefix("default:").split(":")
            scope: Any = "default" if entry.startswith("default:") else "access"
            acl.append(AclEntry(parts[0], scope, parts[2], parts[1] or None))
        self._within("set the ACL of", path, lambda: self._client.set_acl(path, acl))

    def begin(self, path: str, mode: int | None = None) -> Any:
        """Return the package's writer of a new file."""
        options = self._write_options(permission=mode, create_parent=False)
        return self._within("create", path, lambda: self._client.create(path, options))

    def _ask(self, doing: str, path: str, question: Callable[[], _Result]) -> _Result:
        return self._retry_policy.call(lambda: self._within(doing, path, question))

    def _within(self, doing: str, path: str, function: Callable[[], _Result]) -> _Result:
        """Call the package in a thread that is left behind if it does not return in time."""
        if sys.is_finalizing():  # a thread that is begun now never runs
            raise StorageError(f"cannot {doing} {printable(self._url + path)}", "the program is ending")
        self._pace.begin()
        with self._mapped(doing, path):
            return call_within(self._retry_policy.timeout, function)

    @contextmanager
    def _mapped(self, doing: str, path: str) -> Iterator[None]:
        shown = self._url + path
        what = f"cannot {doing} {printable(shown)}"
        try:
            yield
        except UnicodeEncodeError as error:
            raise NotFoundError(what, "names in HDFS are UTF-8", "rename it on the disk it comes from") from error
        except FileExistsError as error:
            raise os_errors.already_exists(doing, shown) from error
        except (FileNotFoundError, IsADirectoryError) as error:
            if "is not a file" in str(error) or isinstance(error, IsADirectoryError):
                raise os_errors.is_a_directory(doing, shown) from error
            raise os_errors.missing(doing, shown) from error
        except TimeoutError as error:
            why = f"{self._url} did not answer within {self._retry_policy.timeout:g} s"
            raise PassingError(what, why, _PORT_HINT) from error
        except OSError as error:
            raise self._connection(what, printable(str(error))) from error
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # the package's own errors are RuntimeErrors, its panics are not Exceptions
            raise self._other(what, str(error)) from error

    def _connection(self, what: str, text: str) -> StorageError:
        if "lookup address" in text:
            return StorageError(what, f"no such host: {text}", _PORT_HINT)
        hint = _PORT_HINT
        if "disconnected" in text:  # a server with Kerberos does this to clients without
            hint += "; where Kerberos is wanted, give the option kerberos=true"
        return PassingError(what, f"no connection to {self._url}: {text}", hint)

    def _other(self, what: str, text: str) -> Exception:
        if match := _RPC_ERROR.match(text):
            return from_remote(what, match[1], match[2].encode().decode("unicode_escape", "replace"))
        if "GSSAPI" in text or "SASL" in text or "Kerberos" in text:
            return AccessError(what, ticket_problem(), _TOKEN_HINT.format(self._url) if is_a_job() else KINIT)
        if "encryption zone" in text and "KMS" in text:
            return StorageError(what, "it lies in an encryption zone, and no server of its keys is known", _KEYS_HINT)
        if "DataTransferError" in text:
            return PassingError(what, "no DataNode that it is on does its work", _DATA_NODE_HINT)
        return PassingError(what, f"hdfs-native: {printable(text)[:300]}", "try again; else use webhdfs://")


class _Output(NewFile):
    def __init__(self, client: NativeClient, path: str, mode: int | None = None) -> None:
        super().__init__()
        self._client, self._path = client, path
        self._writer = client.begin(path, mode)

    def _send(self, chunk: bytes) -> None:
        for start in range(0, len(chunk), _PIECE):
            piece = chunk[start : start + _PIECE]
            self._client._within("write", self._path, lambda piece=piece: self._writer.write(piece))  # type: ignore[misc]

    def _finish(self) -> None:
        if not sys.is_finalizing():  # no thread runs any more; HDFS closes open files itself
            self._client._within("write", self._path, self._writer.close)


def _be(user: str) -> None:
    """Set the user of the whole process: the package reads the environment whenever it connects."""
    with _user_lock:
        if _users - {user}:
            why = f"this process is {printable(min(_users))} there already, and can be only one user"
            hint = "use webhdfs://USER@NAMENODE:9870/path"
            raise UsageProblem(f"cannot be {printable(user)} to hdfs://", why, hint)
        _users.add(user)
        os.environ[_USER] = user


def _status(info: Any) -> dict[str, Any]:
    return {
        "type": "DIRECTORY" if info.isdir else "FILE",
        "length": info.length,
        "modificationTime": info.modification_time,
        "owner": info.owner,
        "group": info.group,
        "permission": f"{info.permission & 0o777:o}",
        "aclBit": bool(info.permission & _ACL_BIT),
    }


def call_within(seconds: float, function: Callable[[], _Result]) -> _Result:
    """Return or raise the result of a function that may hang; its thread does not keep the process from ending.

    Pools wait for their threads at the end of the process, which may hang in the package.  Raises TimeoutError if the
    function did not return in time; it may still be running.
    """
    future: Future[_Result] = Future()

    def run() -> None:
        try:
            future.set_result(function())
        except BaseException as error:  # noqa: BLE001 - raised in the caller's thread
            future.set_exception(error)

    threading.Thread(target=run, name="acidctl-hdfs", daemon=True).start()
    return future.result(seconds)
