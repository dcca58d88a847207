"""Send HTTP requests for WebHDFS; answers are held in memory, and redirects are returned, not followed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import requests
import urllib3
from requests.adapters import HTTPAdapter

from acidctl.storage.pace import Pace

_CONNECT_TIMEOUT = 10.0
_FIRST_TIMEOUT = 10.0
"""Seconds: one of some hundred thousand requests may never be answered.  A server that is only slow gets a GET once
more, with the user's timeout."""

_CONNECTIONS = 32  # the most connections to one host that are kept between requests
_HOSTS = 100  # the most hosts to which connections are kept: one for each DataNode
_LATE = (requests.exceptions.Timeout, urllib3.exceptions.TimeoutError)
_NO_ANSWER = (
    requests.exceptions.ConnectionError,
    requests.exceptions.Timeout,
    requests.exceptions.ChunkedEncodingError,
    urllib3.exceptions.HTTPError,
)


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
        self.is_late = isinstance(cause, _LATE)
        is_tls = isinstance(cause, (requests.exceptions.SSLError, urllib3.exceptions.SSLError))
        self.tls = str(cause) if is_tls else ""


class Http:
    """Sends requests; may be shared by threads.

    Args:
        session: holds the login of all requests.
        timeout: seconds to wait for an answer.
        pace: counts every request, and the bytes of its answer.
    """

    def __init__(self, session: requests.Session, timeout: float, pace: Pace) -> None:
        for prefix in ("http://", "https://"):
            session.mount(prefix, HTTPAdapter(pool_connections=_HOSTS, pool_maxsize=_CONNECTIONS))
        self._session = session
        self._timeout, self._pace = timeout, pace

    def send(self, verb: str, url: str, data: Any = None) -> HttpAnswer:
        """Send one request and return its answer, whatever its status.

        Args:
            url: a URL with a path.
            data: the body of a PUT, bytes or an iterator of bytes.

        Raises:
            NoAnswerError: there is no connection, it broke, or it took too long.
            requests.exceptions.RequestException: the login failed, or the URL is not valid.
        """
        try:
            if verb == "GET" and self._timeout > _FIRST_TIMEOUT:
                try:
                    return self._send(verb, url, data, _FIRST_TIMEOUT)
                except (requests.exceptions.ReadTimeout, urllib3.exceptions.ReadTimeoutError):
                    pass
            return self._send(verb, url, data, self._timeout)
        except _NO_ANSWER as error:
            raise NoAnswerError(url, error) from error

    def _send(self, verb: str, url: str, data: Any, timeout: float) -> HttpAnswer:
        self._pace.begin()
        with self._session.request(
            verb,
            url,
            data=data,
            timeout=(min(timeout, _CONNECT_TIMEOUT), timeout),
            headers={"content-type": "application/octet-stream"},  # HttpFS wants it
            stream=True,
            allow_redirects=False,
        ) as response:
            # `content` would read in pieces of 10 KB.
            body = response.raw.read(decode_content=True)
            self._pace.passed(len(body))
            return HttpAnswer(response.status_code, response.raw.headers, body)
