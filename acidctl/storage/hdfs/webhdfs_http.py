"""Send HTTP requests for WebHDFS; answers are held in memory, and redirects are returned, not followed.

`requests` handles logins, cookies, proxies and certificates, which takes most of the time of a small request.  So the
headers and connections of one request to a host are used for later requests without `requests`.
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
"""Seconds: one of some hundred thousand requests may never be answered.  A server that is only slow gets the request
once more, with the user's timeout."""

_CONNECTIONS = 32
"""The most connections to one host that are kept between requests."""

_HOSTS = 100
"""The most hosts to which connections are kept: one for each DataNode."""

_SETTLED = (200, 307, 404)
"""After any other status of a quick request the login may have to be repeated."""


class HttpAnswer(NamedTuple):
    """The answer of a server; names of headers may be in any case."""

    status: int
    headers: Mapping[str, str]
    data: bytes


class NoAnswerError(Exception):
    """A host did not answer.

    Attributes:
        host: the host with its port.
        is_late: the answer did not come in time.
        tls: the problem with the encryption or the certificate; else empty.
    """

    def __init__(self, url: str, cause: Exception) -> None:
        super().__init__(str(cause))
        self.host = urlsplit(url).netloc
        self.is_late = isinstance(cause, (requests.exceptions.Timeout, urllib3.exceptions.TimeoutError))
        is_tls = isinstance(cause, (requests.exceptions.SSLError, urllib3.exceptions.SSLError))
        self.tls = str(cause) if is_tls else ""


class Http:
    """Sends requests; may be shared by threads.

    Args:
        session: holds the login of all requests.
        timeout: seconds to wait for an answer.
    """

    def __init__(self, session: requests.Session, timeout: float) -> None:
        for prefix in ("http://", "https://"):
            session.mount(prefix, HTTPAdapter(pool_connections=_HOSTS, pool_maxsize=_CONNECTIONS))
        self._session = session
        self._timeout = (min(timeout, _CONNECT_TIMEOUT), timeout)
        self._first_timeout = urllib3.Timeout(connect=self._timeout[0], read=min(timeout, _FIRST_TIMEOUT))
        self._known: dict[str, tuple[Any, dict[str, str]]] = {}

    def send(self, verb: str, url: str, data: Any = None) -> HttpAnswer:
        """Send one request and return its answer, whatever its status.

        Args:
            url: a URL with a path.
            data: the body of a PUT, bytes or an iterator of bytes.

        Raises:
            NoAnswerError: there is no connection, it broke, or it took too long.
            requests.exceptions.RequestException: the login failed, or the URL is not valid.
        """
        host = "/".join(url.split("/", 3)[:3])
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
            ) as response:
                # `content` would read in pieces of 10 KB.
                answer = HttpAnswer(response.status_code, response.raw.headers, response.raw.read(decode_content=True))
        except (
            requests.exceptions.ConnectionError,
            requests.exceptions.Timeout,
            requests.exceptions.ChunkedEncodingError,
            urllib3.exceptions.HTTPError,
        ) as error:
            raise NoAnswerError(url, error) from error
        if verb == "GET" and answer.status in _SETTLED:
            self._learn(host, response.request)
        return answer

    def _quickly(self, host: str, url: str, pool: Any, headers: dict[str, str]) -> HttpAnswer | None:
        """Return None if no answer came, or `requests`, which keeps only some connections, has closed these."""
        target, timeout = url[len(host) :], self._first_timeout
        try:
            response = pool.urlopen("GET", target, headers=headers, timeout=timeout, retries=False, redirect=False)
            return HttpAnswer(response.status, response.headers, response.data)
        except (urllib3.exceptions.ClosedPoolError, urllib3.exceptions.ReadTimeoutError):
            return None
        except urllib3.exceptions.HTTPError as error:
            self._known.pop(host, None)
            raise NoAnswerError(url, error) from error

    def _learn(self, host: str, request: requests.PreparedRequest) -> None:
        """Keep headers and connections of a request that was answered well, if `requests` connects directly."""
        # Kerberos' own token is valid for one request; later requests have a cookie.
        if "Negotiate" in str(request.headers.get("Authorization")):
            return
        url = str(request.url)
        settings = self._session.merge_environment_settings(url, {}, None, None, None)
        adapter = self._session.get_adapter(url)
        if not isinstance(adapter, HTTPAdapter) or select_proxy(url, settings["proxies"]):
            return
        headers = {key: str(value) for key, value in request.headers.items()}
        if cookies := get_cookie_header(self._session.cookies, request):  # including those of this answer
            headers["Cookie"] = cookies
        pool = adapter.get_connection_with_tls_context(request, settings["verify"], cert=settings["cert"])
        self._known[host] = pool, headers
