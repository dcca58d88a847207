"""HTTP for WebHDFS: one request, one answer, held in memory; redirects are told, not followed.

`requests` knows logins, cookies, proxies and certificates, and takes most of the time of a small question for it.  So
what one question sent to a host, its headers and its connections, serves the ones after it without `requests`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import requests
import urllib3
from requests.adapters import HTTPAdapter
from requests.cookies import get_cookie_header
from requests.utils import select_proxy

_CONNECT_TIMEOUT = 10.0
_FIRST_TIMEOUT = 10.0
"""Seconds: of some hundred thousand questions one may never be answered.  Who is only slow is asked once more, and
waited for as long as the user says."""

_CONNECTIONS = 32
"""To one host, kept between requests."""

_HOSTS = 100
"""That connections are kept to: one for each DataNode."""

_SETTLED = (200, 307, 404)
"""After any other status of a quick question the login may have to be made anew."""


class HttpAnswer(NamedTuple):
    """What a server answered; the names of headers may be asked for in any case."""

    status: int
    headers: Mapping[str, str]
    data: bytes


class NoAnswerError(Exception):
    """No answer came from a host.

    Attributes:
        host: with its port.
        is_late: it did not come in time.
        tls: what is wrong with the encryption or the certificate; else empty.
    """

    def __init__(self, url: str, cause: Exception) -> None:
        super().__init__(str(cause))
        self.host = urlsplit(url).netloc
        self.is_late = isinstance(cause, (requests.exceptions.Timeout, urllib3.exceptions.TimeoutError))
        is_tls = isinstance(cause, (requests.exceptions.SSLError, urllib3.exceptions.SSLError))
        self.tls = str(cause) if is_tls else ""


class Http:
    """May be used by several threads.

    Args:
        session: with the login that every request of this object is sent with.
        timeout: seconds that the user waits for an answer.
    """

    def __init__(self, session: requests.Session, timeout: float) -> None:
        for prefix in ("http://", "https://"):
            session.mount(prefix, HTTPAdapter(pool_connections=_HOSTS, pool_maxsize=_CONNECTIONS))
        self._session = session
        self._timeout = (min(timeout, _CONNECT_TIMEOUT), timeout)
        self._first_timeout = urllib3.Timeout(connect=self._timeout[0], read=min(timeout, _FIRST_TIMEOUT))
        self._known: dict[str, tuple[Any, dict[str, str]]] = {}

    def send(self, verb: str, url: str, data: Any = None) -> HttpAnswer:
        """One request and its answer, whatever its status.

        Args:
            url: with a path.
            data: bytes, or an iterator of them, of a PUT.

        Raises:
            NoAnswerError: there is no connection, it broke, or it took too long.
            requests.exceptions.RequestException: the login failed, or this is not an URL.
        """
        host = _host(url)
        if verb == "GET" and (known := self._known.get(host)):
            answer = self._quickly(host, url, *known)
            if answer is not None and answer.status in _SETTLED:
                return answer
            self._known.pop(host, None)
        try:
            with self._session.request(
                verb,
                url,
                data=data,
                timeout=self._timeout,
                headers={"content-type": "application/octet-stream"},  # HttpFS wants it
                stream=True,
                allow_redirects=False,
            ) as found:
                # `content` would read in pieces of 10 KB.
                answer = HttpAnswer(found.status_code, found.raw.headers, found.raw.read(decode_content=True))
        except (
            requests.exceptions.ConnectionError,
            requests.exceptions.Timeout,
            requests.exceptions.ChunkedEncodingError,
            urllib3.exceptions.HTTPError,
        ) as error:
            raise NoAnswerError(url, error) from error
        if verb == "GET" and answer.status in _SETTLED:
            self._learn(host, found.request)
        return answer

    def _quickly(self, host: str, url: str, pool: Any, headers: dict[str, str]) -> HttpAnswer | None:
        """None when the answer did not come, or `requests`, which keeps only so many, has closed the connections."""
        target, timeout = url[len(host) :], self._first_timeout
        try:
            found = pool.urlopen("GET", target, headers=headers, timeout=timeout, retries=False, redirect=False)
            return HttpAnswer(found.status, found.headers, found.data)
        except (urllib3.exceptions.ClosedPoolError, urllib3.exceptions.ReadTimeoutError):
            return None
        except urllib3.exceptions.HTTPError as error:
            self._known.pop(host, None)
            raise NoAnswerError(url, error) from error

    def _learn(self, host: str, request: requests.PreparedRequest) -> None:
        """From a request that was answered well, where `requests` connects directly."""
        # Kerberos' own token is good for one request; what comes after it has a cookie.
        if "Negotiate" in str(request.headers.get("Authorization")):
            return
        url = str(request.url)
        settings = self._session.merge_environment_settings(url, {}, None, None, None)
        adapter = self._session.get_adapter(url)
        if not isinstance(adapter, HTTPAdapter) or select_proxy(url, settings["proxies"]):
            return
        headers = {key: str(value) for key, value in request.headers.items()}
        if cookies := get_cookie_header(self._session.cookies, request):  # those of this answer are among them
            headers["Cookie"] = cookies
        pool = adapter.get_connection_with_tls_context(request, settings["verify"], cert=settings["cert"])
        self._known[host] = pool, headers


def _host(url: str) -> str:
    return "/".join(url.split("/", 3)[:3])
