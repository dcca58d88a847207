"""Access HDFS over HTTP (WebHDFS), by a NameNode, HttpFS, or a gateway such as Knox.

PyPI `hdfs` does the logins; the requests are our own, since its public calls expand names with ``#LATEST``, follow
redirects with the login, and do not distinguish a failing server from a refusal.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.cookiejar import DefaultCookiePolicy
from typing import Any
from urllib.parse import SplitResult, parse_qs, quote, urlencode, urlsplit

import requests
from hdfs import InsecureClient, TokenClient

from acidctl.base.errors import AccessError, NotFoundError, StorageError, importing
from acidctl.base.printable import printable
from acidctl.hadoop.kerberos import KINIT, ticket_problem
from acidctl.storage.hdfs.cluster import wants_kerberos, web_token
from acidctl.storage.hdfs.errors import from_remote
from acidctl.storage.hdfs.new_file import Upload
from acidctl.storage.hdfs.webhdfs_http import Http, HttpAnswer, NoAnswerError
from acidctl.storage.os_errors import is_a_directory
from acidctl.storage.pace import pace_of
from acidctl.storage.port import FileSystemSpec
from acidctl.storage.retry import PassingError, RetryPolicy

# The packages log errors that they also raise; without a handler Python would print them on stderr.
for _name in ("hdfs", "requests_kerberos", "spnego"):
    logging.getLogger(_name).addHandler(logging.NullHandler())

_ROOT = "/webhdfs/v1"
_PUT = ("CREATE", "MKDIRS", "REMOVEACL", "RENAME", "SETACL", "SETOWNER", "SETPERMISSION")
_VERBS = {"DELETE": "DELETE", **dict.fromkeys(_PUT, "PUT")}
"""HTTP verbs of the operations that change something; all others are GET."""

_LEAD_ON = ("CREATE", "OPEN")  # operations whose answer names a DataNode
_NOT_THIS_ONE = ("RetriableException", "StandbyException")  # exceptions after which another NameNode is asked
_PROBE = "/acidctl-no-such-file-%41"
_PROBE_DECODED = b"/acidctl-no-such-file-A"
_WRITE_PARAMETERS = {
    "op", "overwrite", "createflag", "createparent", "permission", "replication", "blocksize", "offset",
}  # fmt: skip
_REDIRECT, _BAD_REQUEST, _UNAUTHORIZED, _SERVER_TROUBLE = 300, 400, 401, 500

_PORT_HINT = "check host and port: WebHDFS is on the NameNode's web port, 9870 or, before Hadoop 3, 50070"
_REACH_HINT = "check that the NameNode runs, the host and its web port (9870; 50070 before Hadoop 3), and the firewall"

_CLIENT_KEYTAB = "KRB5_CLIENT_KTNAME"
"""The variable with the keytab from which MIT Kerberos gets a ticket by itself if there is none."""


class WebHdfsClient:
    """The operations of HDFS over HTTP, with mapped errors, a timeout and, if they may be repeated, retries.

    The login is sent only to the hosts that the user named, wherever a redirect leads: the URL of a DataNode already
    holds the access right.

    A percent sign in a path needs care: DataNodes (2.7.3 among them) and some NameNodes decode a path twice, so that
    Hive's ``p=a%3Ab`` would be read from, or silently written to, ``p=a:b``.  Before the first such path goes to a
    server, a request for a missing file shows, by the name in the server's error, whether it decodes twice.
    """

    def __init__(self, spec: FileSystemSpec) -> None:
        self.authority = spec.authority
        self._url = f"{spec.protocol}://{spec.authority}"
        self._options = dict(spec.options)
        self._retry_policy, self._pace = RetryPolicy.of(self._options), pace_of(spec)
        session, parameters = log_in(spec)
        self._login = urlencode(parameters)
        self._own = Http(session, self._retry_policy.timeout, self._pace)
        self._others = Http(anonymous(), self._retry_policy.timeout, self._pace)
        scheme = "https" if spec.protocol == "swebhdfs" else "http"
        gateway = self._options.get("gateway", "").strip("/")
        hosts = [f"{scheme}://{host}" for host in spec.authority.split(",")]
        self._own_hosts = {_place(urlsplit(host)) for host in hosts}
        self._name_nodes = tuple(f"{host}/{gateway}" if gateway else host for host in hosts)
        self._decodes_twice: dict[str, bool] = {}

    def status(self, path: str, doing: str) -> dict[str, Any]:
        """Return the status of an entry under the keys of WebHDFS.

        These are ``type``, ``length``, ``modificationTime`` (milliseconds), ``owner``, ``group``, ``permission``
        (octal) and ``aclBit``.
        """
        return dict(self._ask(doing, path, "GETFILESTATUS", "FileStatus"))

    def list_status(self, path: str) -> list[dict[str, Any]]:
        """Return the children of a directory, each with its ``pathSuffix``; for a file, its status."""
        return list(self._ask("list", path, "LISTSTATUS", "FileStatuses", "FileStatus"))

    def make_dirs(self, path: str) -> None:
        if not self._ask("create", path, "MKDIRS", "boolean"):  # may be repeated
            raise StorageError(f"cannot create {self._shown(path)}", "HDFS said no without a reason")

    def delete(self, path: str, *, recursive: bool = True) -> bool:
        """Delete an entry; return False if nothing was there."""
        return bool(self._call("remove", path, "DELETE", "boolean", recursive=str(recursive).lower()))

    def rename(self, source: str, target: str) -> bool:
        """Rename with renameoptions=NONE, which fails if the target exists; the plain rename nests.

        HttpFS ignores the option, does the plain rename, and its answer shows that: the result is False if the server
        may have nested the source into an existing target.
        """
        doing = f"rename {self._shown(source)} to"
        done = self._rename(doing, source, target, "NONE")
        if done is False:
            raise StorageError(f"cannot {doing} {self._shown(target)}", "the server said no without a reason")
        return done is None

    def replace(self, source: str, target: str) -> None:
        """Rename with renameoptions=OVERWRITE: the NameNode exchanges the files in one step.

        HttpFS ignores the option and refuses, as the target exists.
        """
        doing = f"rename {self._shown(source)} to"
        if self._rename(doing, source, target, "OVERWRITE") is False:
            why, hint = "the server cannot replace a file in one step", "use the NameNode's WebHDFS instead of HttpFS"
            raise StorageError(f"cannot {doing} {self._shown(target)}", why, hint)

    def _rename(self, doing: str, source: str, target: str, option: str) -> bool | None:
        """Return None if a NameNode did it; HttpFS returns a boolean."""
        with self._mapped(doing, target):
            answer = self._to_name_node("RENAME", source, destination=target, renameoptions=option)
            return bool(json.loads(answer.data)["boolean"]) if answer.data.strip() else None

    def trash_root(self, path: str) -> str | None:
        """Return the trash directory; None from a server without this call (before Hadoop 2.9)."""

        def ask() -> str | None:
            with self._mapped("ask for the trash of", path):
                try:
                    return str(_value(self._to_name_node("GETTRASHROOT", path), "Path"))
                except _RefusedError as error:
                    if error.status == _BAD_REQUEST:
                        return None
                    raise

        return self._retry_policy.call(ask)

    def read(self, path: str, offset: int, length: int) -> bytes:
        """Return bytes from `offset` on; fewer at the end of the file."""

        def read() -> bytes:
            with self._mapped("read", path):
                answer = self._to_name_node("OPEN", path, offset=offset, length=length)
                if answer.status < _REDIRECT:  # HttpFS returns the bytes itself
                    return answer.data
                return self._follow("GET", path, answer).data

        return self._retry_policy.call(read)

    def open_reader(self, path: str) -> tuple[int, Callable[[int, int], bytes]]:
        """Return the size of a file, and ``fetch(start, end)`` for its ranges; NotFoundError for a directory."""
        status = self.status(path, "read")
        if status["type"] == "DIRECTORY":
            raise is_a_directory("read", self._url + path)
        return int(status["length"]), lambda start, end: self.read(path, start, end - start)

    def open_output(self, path: str, mode: int | None = None) -> Upload:
        """Create a file without a buffer, with the server's default mode if no mode is given."""
        return Upload(partial(self.create, mode=mode), path, self._url + path)

    def user(self) -> str:
        """Return the name of our home directory."""
        return str(self._ask("ask who we are at", "/", "GETHOMEDIRECTORY", "Path")).rpartition("/")[2]

    def acl(self, path: str) -> tuple[str, ...]:
        """Return the ACL entries beyond the mode, ``user:bob:r--``; called only if a status has its ``aclBit``."""
        return tuple(self._ask("look at the ACL of", path, "GETACLSTATUS", "AclStatus", "entries"))

    def set_owner(self, path: str, owner: str, group: str) -> None:
        """Set owner and group; an empty name leaves the present one."""
        names = {key: value for key, value in (("owner", owner), ("group", group)) if value}
        self._call("set the owner of", path, "SETOWNER", **names)

    def set_permission(self, path: str, mode: int) -> None:
        self._call("set the mode of", path, "SETPERMISSION", permission=f"{mode:o}")

    def set_acl(self, path: str, entries: tuple[str, ...]) -> None:
        """Set all entries of the ACL, including those of the mode; no entries remove it."""
        if entries:
            self._call("set the ACL of", path, "SETACL", aclspec=",".join(entries))
        else:
            self._call("set the ACL of", path, "REMOVEACL")

    def create(self, path: str, data: Any, mode: int | None = None) -> None:
        """Create a file in WebHDFS's two steps: ask for a DataNode, then send the bytes to it.

        Servers before Hadoop 2.8 create missing parents in spite of the parameter.
        """
        permission = {} if mode is None else {"permission": f"{mode:o}"}
        with self._mapped("create", path):
            answer = self._to_name_node("CREATE", path, overwrite="false", createparent="false", **permission)
            self._follow("PUT", path, answer, data)
        if "%" in path:
            try:
                self.status(path, "create")
            except NotFoundError as error:
                why = "the server took the percent sign for an escape and stored it under another name"
                hint = "this server's WebHDFS cannot write such names"
                raise StorageError(f"cannot create {self._shown(path)}", why, hint) from error

    def delegation_token(self) -> str:
        """Return a token that replaces this user's ticket in other processes."""
        token = self._call("get a delegation token from", "/", "GETDELEGATIONTOKEN", "Token")
        if not token:  # the answer of a server without Kerberos
            raise AccessError(f"cannot get a delegation token from {self._url}", "the server gives none", KINIT)
        return str(token["urlString"])

    def _ask(self, doing: str, path: str, operation: str, *keys: str) -> Any:
        """Do the same as :meth:`_call` for requests that may be repeated."""
        return self._retry_policy.call(lambda: self._call(doing, path, operation, *keys))

    def _call(self, doing: str, path: str, operation: str, *keys: str, **parameters: str) -> Any:
        """Return the value under these keys in the JSON of the answer; without keys the answer is not parsed."""
        with self._mapped(doing, path):
            return _value(self._to_name_node(operation, path, **parameters), *keys)

    def _to_name_node(self, operation: str, path: str, **parameters: str | int) -> HttpAnswer:
        """Return the answer of the first NameNode that accepts the request; the next call starts with it.

        A NameNode that did not answer may have done it; :class:`HdfsFileSystem` finds that out.
        """
        verb = _VERBS.get(operation, "GET")
        query = "&".join(filter(None, (f"op={operation}", urlencode(parameters), self._login)))
        target = f"{_ROOT}{quote(self._for_name_node(path), '/=')}?{query}"
        name_nodes = self._name_nodes
        for index, name_node in enumerate(name_nodes):
            try:
                return _checked(self._own.send(verb, name_node + target), operation in _LEAD_ON)
            except (NoAnswerError, _RefusedError) as error:
                is_the_one = isinstance(error, _RefusedError) and error.exception not in _NOT_THIS_ONE
                if is_the_one or index == len(name_nodes) - 1:
                    raise
            self._name_nodes = (*name_nodes[index + 1 :], *name_nodes[: index + 1])
        raise AssertionError("there is at least one NameNode")

    def _follow(self, verb: str, path: str, answer: HttpAnswer, data: Any = None) -> HttpAnswer:
        url = self._for_data_node(path, urlsplit(answer.headers["location"]))
        if not (url.netloc and url.path):
            raise ValueError(f"it leads to {url.geturl()!r}")
        reply = self._http_of(url).send(verb, url.geturl(), data)
        if reply.status == _UNAUTHORIZED and _place(url) not in self._own_hosts:
            raise _NoLoginError(url.netloc)
        return _checked(reply)

    def _http_of(self, url: SplitResult) -> Http:
        return self._own if _place(url) in self._own_hosts else self._others

    def _for_name_node(self, path: str) -> str:
        if "%" not in path or path == _PROBE:
            return path
        key = "NameNode"
        if key not in self._decodes_twice:
            try:
                answer = self._to_name_node("GETFILESTATUS", _PROBE).data
            except _RefusedError as error:
                answer = error.data
            self._decodes_twice[key] = _PROBE_DECODED in answer
        return quote(path, "/") if self._decodes_twice[key] else path

    def _for_data_node(self, path: str, url: SplitResult) -> SplitResult:
        if "%" not in path:
            return url
        prefix = url.path.partition(_ROOT)[0] + _ROOT
        if url.netloc not in self._decodes_twice:
            query = {key: values[0] for key, values in parse_qs(url.query).items() if key not in _WRITE_PARAMETERS}
            probe = url._replace(path=prefix + quote(_PROBE), query=urlencode(query | {"op": "OPEN"}))
            self._decodes_twice[url.netloc] = _PROBE_DECODED in self._http_of(url).send("GET", probe.geturl()).data
        encoded = quote(path, "/")
        return url._replace(path=prefix + (quote(encoded, "/") if self._decodes_twice[url.netloc] else encoded))

    def _shown(self, path: str) -> str:
        return printable(self._url + path)

    @contextmanager
    def _mapped(self, doing: str, path: str) -> Iterator[None]:
        what = f"cannot {doing} {self._shown(path)}"
        try:
            yield
        except UnicodeEncodeError as error:
            raise NotFoundError(what, "names in HDFS are UTF-8", "rename it on the disk it comes from") from error
        except _RefusedError as error:
            if error.status == _UNAUTHORIZED:
                raise login_problem(what, self._options) from error
            if error.exception is not None:
                raise from_remote(what, error.exception, str(error)) from error
            kind = PassingError if error.status >= _SERVER_TROUBLE else StorageError
            raise kind(what, f"the answer is not WebHDFS's: {error}", _PORT_HINT) from error
        except _NoLoginError as error:
            why = f"the server sends us on to {error}, where no login is sent that was given for {self.authority}"
            raise AccessError(what, why, f"name {error} in the location if it may have the login") from error
        except NoAnswerError as error:
            if error.tls:
                hint = "check the certificate, or use webhdfs://"
                raise StorageError(what, f"TLS failed: {printable(error.tls)}", hint) from error
            is_known = error.host in self.authority.split(",")
            hint = f"the NameNode sends clients to the DataNode {error.host}: this machine must resolve and reach it"
            late, lost = f"{error.host} did not answer in time", f"no connection to {error.host}"
            raise PassingError(what, late if error.is_late else lost, _REACH_HINT if is_known else hint) from error
        except (requests.exceptions.RequestException, KeyError, TypeError, ValueError) as error:
            if type(error).__name__ == "MutualAuthenticationError":  # from requests-kerberos: no proof in the answer
                raise login_problem(what, self._options) from error
            why = f"{self.authority} does not answer as WebHDFS does: {printable(str(error))}"
            raise StorageError(what, why, _PORT_HINT) from error


class _RefusedError(Exception):
    """A server refused a request; `exception` is the class of its exception, None if the answer names none."""

    def __init__(self, answer: HttpAnswer) -> None:
        self.status, self.data = answer.status, answer.data
        self.exception: str | None = None
        try:
            remote = json.loads(answer.data)["RemoteException"]
            self.exception, message = str(remote["exception"]), str(remote["message"])
        except (ValueError, KeyError, TypeError):
            message = f"HTTP status {answer.status}"
            if target := answer.headers.get("location"):
                message += f", which leads to {printable(urlsplit(target).netloc)}"
        super().__init__(message)


class _NoLoginError(Exception):
    """A host that the user did not name wants a login."""


def _checked(answer: HttpAnswer, may_lead_on: bool = False) -> HttpAnswer:
    if answer.status >= (_BAD_REQUEST if may_lead_on else _REDIRECT):
        raise _RefusedError(answer)
    return answer


def _value(answer: HttpAnswer, *keys: str) -> Any:
    value: Any = json.loads(answer.data) if keys else None
    for key in keys:
        value = value[key]
    return value


def _place(url: SplitResult) -> tuple[str, str | None, int]:
    return url.scheme, url.hostname, url.port or (443 if url.scheme == "https" else 80)


def log_in(spec: FileSystemSpec) -> tuple[requests.Session, dict[str, str]]:
    """Return a session with the login of a spec, and the parameters for the query of every URL.

    The clients of PyPI `hdfs` put the login into a given session.

    Options: ``user``; ``token``, a delegation token; ``kerberos=true`` with a token of this job, else the ticket cache,
    or ``keytab``, with ``principal`` if there are several; ``doas``, the user to act for; ``gateway``, the path of a
    proxy such as Knox (``/gateway/default``), and its ``password`` if it needs one.  Raises EnvironmentProblem if the
    Kerberos packages are missing.
    """
    options = dict(spec.options)
    token = options.get("token") or (web_token(spec) if wants_kerberos(options) else "")
    session = requests.Session()
    if token:
        TokenClient(spec.authority, token, session=session)
    elif wants_kerberos(options):
        _kerberos(spec.authority, session, options)
    elif options.get("password"):
        session.auth = (options["user"], options["password"])
    else:
        InsecureClient(spec.authority, user=options["user"], session=session)
    parameters = {key: str(value) for key, value in dict(session.params or {}).items()}
    session.params = {}
    if options.get("doas") and not token:  # a token holds who acts for whom
        parameters["doas"] = options["doas"]
    return session, parameters


def anonymous() -> requests.Session:
    """Return a session that sends no login, no cookie, and no entry of ``~/.netrc``."""
    session = requests.Session()
    session.auth = lambda request: request
    session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
    return session


def _kerberos(authority: str, session: requests.Session, options: dict[str, str]) -> None:
    with importing(f"cannot log in to {authority} with Kerberos", "pip install 'acidctl[kerberos]'"):
        from hdfs.ext.kerberos import KerberosClient  # noqa: PLC0415 - optional: hdfs[kerberos]
    if options.get("keytab"):
        os.environ[_CLIENT_KEYTAB] = options["keytab"]
    principal = {"principal": options["principal"]} if options.get("principal") else {}
    KerberosClient(authority, session=session, **principal)


def login_problem(what: str, options: dict[str, str]) -> AccessError:
    """Return the error for a server's answer 401."""
    if options.get("token"):
        return AccessError(what, "the server does not take the delegation token", "get a new token")
    if options.get("password"):
        return AccessError(what, "the gateway does not take this user and password", "check user and password")
    if not wants_kerberos(options):
        return AccessError(what, "the server wants a login", "kinit, and the option kerberos=true")
    return AccessError(what, ticket_problem(), KINIT)
