"""PyPI `hdfs` as this project needs it: paths taken literally, errors told apart, uploads that hold little memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from urllib.parse import parse_qs, quote, urlencode, urlsplit, urlunsplit

import requests
from hdfs.client import _Request
from hdfs.util import HdfsError

from acidctl.errors import AccessError, AcidctlError, NotFoundError, StorageError
from acidctl.storage.hdfs.errors import from_remote
from acidctl.storage.hdfs.kerberos import KINIT
from acidctl.storage.hdfs.upload import Upload
from acidctl.storage.hdfs.webhdfs_auth import log_in, login_problem
from acidctl.storage.hdfs.webhdfs_quick import QuickGet
from acidctl.storage.os_errors import is_a_directory, printable
from acidctl.storage.port import FileSystemSpec
from acidctl.storage.retry import PassingError, Patience

_CHUNK = 1 << 20
_SMALL = 64 * 1024
"""Bytes: of longer reads, the bytes are what takes the time."""

_BAD_REQUEST = 400
_SERVER_TROUBLE = 500
# The package's own follows the redirect to the DataNode at once, before the path in it can be put right.
_OPEN = _Request("GET", stream=True, allow_redirects=False).to_method("OPEN")
_GET_TOKEN = _Request("GET").to_method("GETDELEGATIONTOKEN")

_PROBE = "/acidctl-no-such-file-%41"
_PROBE_DECODED = "/acidctl-no-such-file-A"

_PORT_HINT = "check host and port: WebHDFS is on the NameNode's web port, 9870 or, before Hadoop 3, 50070"


class WebHdfsClient:
    """The WebHDFS operations, each with its errors mapped.

    A percent sign in a path needs care: DataNodes (2.7.3 among them) and some NameNodes decode a path twice, so that
    Hive's ``p=a%3Ab`` would be read from, or silently written to, ``p=a:b``.  Whether a server does is asked once, by
    the name it says it cannot find, before the first such path goes to it.
    """

    def __init__(self, spec: FileSystemSpec) -> None:
        self.authority = spec.authority
        self._url = f"{spec.protocol}://{spec.authority}"
        self._options = dict(spec.options)
        self._patience = Patience.of(self._options)
        self._client = log_in(spec, self._patience)
        self._client.resolve = self._for_name_node  # the package's own expands "#LATEST" in names
        self._quick = QuickGet(self._client._session, self._client._timeout, has_several="," in spec.authority)
        self._decodes_twice: dict[str, bool] = {}

    def status(self, path: str, doing: str) -> dict[str, Any]:
        """GETFILESTATUS."""
        return dict(self._ask(doing, path, "_get_file_status", "FileStatus"))

    def list_status(self, path: str) -> list[dict[str, Any]]:
        """LISTSTATUS: the children of a directory, or the one status, without `pathSuffix`, of a file."""

        def ask() -> list[dict[str, Any]]:
            with self._mapped("list", path):
                answer = self._quick.ask(self._for_name_node(path), "LISTSTATUS")
                if answer is None:
                    answer = _checked(self._client._list_status(path, strict=False))
                    self._quick.learn(answer)
                return list(answer.json()["FileStatuses"]["FileStatus"])

        return self._patience.call(ask)

    def make_dirs(self, path: str) -> None:
        """MKDIRS; may be done twice."""
        if not self._ask("create", path, "_mkdirs", "boolean"):
            raise StorageError(f"cannot create {self._shown(path)}", "HDFS said no without a reason")

    def delete(self, path: str, *, recursive: bool = True) -> bool:
        """DELETE; False when nothing was there."""
        return bool(self._call("remove", path, "_delete", "boolean", recursive=str(recursive).lower()))

    def rename(self, source: str, target: str) -> bool:
        """RENAME with renameoptions=NONE, which fails when the target exists, where the plain one nests.

        Returns:
            False when the server did the plain one: HttpFS does not know the option.
        """
        doing = f"rename {self._shown(source)} to"
        with self._mapped(doing, target):
            # The package has no public call for this option.
            answer = _checked(self._client._rename(source, strict=False, destination=target, renameoptions="NONE"))
            done = answer.json()["boolean"] if answer.content.strip() else None
        if done is None:
            return True
        if not done:
            raise StorageError(f"cannot {doing} {self._shown(target)}", "the server said no without a reason")
        return False

    def replace(self, source: str, target: str) -> None:
        """RENAME with renameoptions=OVERWRITE: the NameNode takes the old file away and puts the new one in at once.

        HttpFS does not know the option and refuses, as the target exists.
        """
        doing = f"rename {self._shown(source)} to"
        with self._mapped(doing, target):
            answer = _checked(self._client._rename(source, strict=False, destination=target, renameoptions="OVERWRITE"))
            done = answer.json()["boolean"] if answer.content.strip() else True
        if not done:
            raise StorageError(
                f"cannot {doing} {self._shown(target)}",
                "the server cannot replace a file in one step",
                "use the NameNode's WebHDFS instead of HttpFS",
            )

    def trash_root(self, path: str) -> str | None:
        """GETTRASHROOT; None from a server that does not know it, as before Hadoop 2.9."""

        def ask() -> str | None:
            with self._mapped("ask for the trash of", path):
                answer = self._client._get_trash_root(path, strict=False)
                return None if answer.status_code == _BAD_REQUEST else str(_checked(answer).json()["Path"])

        return self._patience.call(ask)

    def read(self, path: str, offset: int, length: int) -> bytes:
        """OPEN: bytes from `offset` on; the server may answer with fewer at the end of the file."""

        def read() -> bytes:
            with self._mapped("read", path):
                if length <= _SMALL and (data := self._read_quickly(path, offset, length)) is not None:
                    return data
                answer = _checked(_OPEN(self._client, path, strict=False, offset=offset, length=length))
                self._quick.learn(answer)
                if location := answer.headers.get("location"):  # HttpFS answers by itself
                    answer.close()
                    answer = self._follow("GET", path, location)
                with answer:
                    return b"".join(answer.iter_content(_CHUNK))  # `content` reads in pieces of 10 KB

        return self._patience.call(read)

    def _read_quickly(self, path: str, offset: int, length: int) -> bytes | None:
        answer = self._quick.ask(self._for_name_node(path), "OPEN", offset=offset, length=length)
        if answer is not None and (location := answer.headers.get("location")):
            answer = self._quick.follow(self._for_data_node(path, location))
        return None if answer is None else bytes(answer.data)

    def open_reader(self, path: str) -> tuple[int, Callable[[int, int], bytes]]:
        """The size of a file, and ``fetch(start, end)`` for ranges of it; NotFoundError for a directory."""
        status = self.status(path, "read")
        if status["type"] == "DIRECTORY":
            raise is_a_directory("read", self._url + path)
        return int(status["length"]), lambda start, end: self.read(path, start, end - start)

    def open_output(self, path: str, mode: int | None = None) -> Upload:
        """A new file to write from start to end."""
        return Upload(partial(self.create, mode=mode), path, self._url + path)

    def user(self) -> str:
        """Who the server takes us for: the name of our home directory."""
        return str(self._ask("ask who we are at", "/", "_get_home_directory", "Path")).rpartition("/")[2]

    def acl(self, path: str) -> tuple[str, ...]:
        """GETACLSTATUS."""
        return tuple(self._ask("look at the ACL of", path, "_get_acl_status", "AclStatus", "entries"))

    def set_owner(self, path: str, owner: str, group: str) -> None:
        """SETOWNER."""
        names = {key: value for key, value in (("owner", owner), ("group", group)) if value}
        with self._mapped("set the owner of", path):
            _checked(self._client._set_owner(path, strict=False, **names))

    def set_permission(self, path: str, mode: int) -> None:
        """SETPERMISSION."""
        with self._mapped("set the mode of", path):
            _checked(self._client._set_permission(path, strict=False, permission=f"{mode:o}"))

    def set_acl(self, path: str, entries: tuple[str, ...]) -> None:
        """SETACL, or REMOVEACL."""
        with self._mapped("set the ACL of", path):
            if entries:
                _checked(self._client._set_acl(path, strict=False, aclspec=",".join(entries)))
            else:
                _checked(self._client._remove_acl(path, strict=False))

    def content_summary(self, path: str) -> dict[str, Any]:
        """GETCONTENTSUMMARY."""
        return dict(self._call("ask for the quota of", path, "_get_content_summary", "ContentSummary"))

    def create(self, path: str, data: Any, mode: int | None = None) -> None:
        """CREATE with overwrite=false, in two steps as WebHDFS wants it: ask where, then send the bytes there.

        Servers before Hadoop 2.8 make missing parents all the same.
        """
        given = {} if mode is None else {"permission": f"{mode:o}"}
        with self._mapped("create", path):
            answer = _checked(
                self._client._create(path, strict=False, overwrite="false", createparent="false", **given)
            )
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

    def delegation_token(self) -> str:
        """GETDELEGATIONTOKEN: what stands for this user's ticket where there is none."""
        with self._mapped("get a delegation token from", "/"):
            token = _checked(_GET_TOKEN(self._client, "/", strict=False)).json()["Token"]
        if not token:  # as a server without Kerberos answers
            raise AccessError(f"cannot get a delegation token from {self._url}", "the server gives none", KINIT)
        return str(token["urlString"])

    def _follow(self, method: str, path: str, location: str, data: Any = None) -> Any:
        url = self._for_data_node(path, location)
        return _checked(self._client._request(method, url, data=data, stream=method == "GET"))

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
            value = _checked(getattr(self._client, operation)(path, strict=False, **parameters)).json()
            for key in keys:
                value = value[key]
            return value

    def _ask(self, doing: str, path: str, operation: str, *keys: str) -> Any:
        """The same for what may be asked again."""
        return self._patience.call(lambda: self._call(doing, path, operation, *keys))

    def _shown(self, path: str) -> str:
        return printable(self._url + path)

    @contextmanager
    def _mapped(self, doing: str, path: str) -> Iterator[None]:
        what = f"cannot {doing} {self._shown(path)}"
        try:
            yield
        except UnicodeEncodeError as error:
            raise NotFoundError(what, "names in HDFS are UTF-8", "rename it on the disk it comes from") from error
        except HdfsError as error:
            if error.exception is None:  # what it makes of a 401
                raise login_problem(what, self._options) from error
            raise from_remote(what, error.exception, str(error)) from error
        except _RemoteError as error:
            raise self._remote(what, error) from error
        except requests.exceptions.Timeout as error:
            raise PassingError(
                what, f"{_host(error, self.authority)} did not answer in time", _reach_hint(error, self.authority)
            ) from error
        except requests.exceptions.SSLError as error:
            raise StorageError(what, f"TLS failed: {error}", "check the certificate, or use webhdfs://") from error
        except (requests.exceptions.ConnectionError, requests.exceptions.ChunkedEncodingError) as error:
            raise PassingError(
                what, f"no connection to {_host(error, self.authority)}", _reach_hint(error, self.authority)
            ) from error
        except (requests.exceptions.RequestException, KeyError, TypeError, ValueError) as error:
            if type(error).__name__ == "MutualAuthenticationError":  # of requests-kerberos: an answer without proof
                raise login_problem(what, self._options) from error
            raise StorageError(
                what,
                f"{self.authority} does not answer as WebHDFS does: {printable(str(error))}",
                _PORT_HINT,
            ) from error

    def _remote(self, what: str, error: _RemoteError) -> AcidctlError:
        if error.status == 401:
            return login_problem(what, self._options)
        if error.exception is not None:
            return from_remote(what, error.exception, error.message)
        kind = PassingError if error.status >= _SERVER_TROUBLE else StorageError
        return kind(what, f"the answer is not WebHDFS's: {error.message}", _PORT_HINT)


class _RemoteError(Exception):
    """What a server answered, before it is known what was being done."""

    def __init__(self, exception: str | None, message: str, status: int) -> None:
        super().__init__(message)
        self.exception, self.message, self.status = exception, message, status


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


def _checked(answer: Any) -> Any:
    """The answer when it is a good one."""
    if answer:
        return answer
    with answer:
        try:
            remote = answer.json()["RemoteException"]
            raise _RemoteError(remote["exception"], remote["message"], answer.status_code)
        except (ValueError, KeyError, TypeError):
            raise _RemoteError(None, f"HTTP status {answer.status_code}", answer.status_code) from None


def _host(error: requests.exceptions.RequestException, authority: str) -> str:
    request = error.request
    host = urlsplit(request.url).netloc if request is not None and isinstance(request.url, str) else ""
    return host or authority


def _reach_hint(error: requests.exceptions.RequestException, authority: str) -> str:
    host = _host(error, authority)
    if host not in authority.split(","):
        return f"the NameNode sends clients to the DataNode {host}: this machine must resolve and reach it"
    return "check that the NameNode runs, the host and its web port (9870; 50070 before Hadoop 3), and the firewall"
