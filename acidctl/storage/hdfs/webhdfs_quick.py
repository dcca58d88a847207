"""Very many small questions to WebHDFS, without what `requests` does around each, which takes most of the time.

What an ordinary request sent, its query, headers and cookies, serves the ones after it, over the same connections.
Whatever is not answered well is asked again in the ordinary way, which knows logins, other NameNodes and errors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import requests
import urllib3
from requests.adapters import HTTPAdapter
from requests.cookies import get_cookie_header
from requests.utils import select_proxy

_ROOT = "/webhdfs/v1"
_OF_ONE_QUESTION = ("op", "offset", "length")
_CREDENTIALS = ("authorization", "cookie")
_PATIENCE = 10.0
"""Seconds to wait for an answer at most: of some hundred thousand, one may never come.  Who is only slow is then asked
in the ordinary way, which waits as long as it was told to."""


@dataclass(frozen=True, slots=True)
class _Model:
    """An ordinary request that was answered well; `start` is its URL in front of the path."""

    pool: Any
    start: str
    query: str
    headers: dict[str, str]


class QuickGet:
    """May be used by several threads.

    Args:
        session: of the ordinary requests.
        timeout: seconds to connect and to wait for an answer.
        has_several: NameNodes, so that another one is to be asked when there is no answer.
    """

    def __init__(self, session: requests.Session, timeout: tuple[float, float], *, has_several: bool) -> None:
        self._has_several = has_several
        self._session = session
        self._timeout = urllib3.Timeout(connect=timeout[0], read=min(timeout[1], _PATIENCE))
        self._model: _Model | None = None
        self._elsewhere: dict[str, Any] = {}

    def learn(self, answer: requests.Response) -> None:
        """From a good ordinary answer of a NameNode to a GET."""
        request = answer.request
        # A login's own token is good for one request; what comes after it has a cookie.
        if self._model or answer.history or "Negotiate" in str(request.headers.get("Authorization")):
            return
        url = str(request.url)
        pool = self._pool(request)
        if pool is None:
            return
        parts = urlsplit(url)
        query = urlencode([pair for pair in parse_qsl(parts.query) if pair[0] not in _OF_ONE_QUESTION])
        headers = {key: str(value) for key, value in request.headers.items()}
        if cookies := get_cookie_header(self._session.cookies, request):  # this answer's are among them
            headers["Cookie"] = cookies
        self._model = _Model(pool, url.partition(_ROOT)[0] + _ROOT, query, headers)

    def ask(self, path: str, operation: str, **parameters: int) -> Any:
        """The NameNode's answer, `urllib3`'s, whose status is 200 or 307; None when the ordinary way must be gone.

        Raises:
            requests.exceptions.ConnectTimeout, requests.exceptions.ConnectionError: no connection, or it broke.
        """
        model = self._model
        if model is None:
            return None
        query = "&".join((f"op={operation}", *(f"{key}={value}" for key, value in parameters.items()), model.query))
        try:
            answer = self._get(model.pool, f"{model.start}{quote(path, '/=')}?{query}", model.headers)
        except requests.exceptions.RequestException:
            self._model = None
            if self._has_several:
                return None
            raise
        if answer is None:
            self._model = None
            return None
        if answer.status in (200, 307):
            return answer
        if answer.status != 404:
            self._model = None
        return None

    def follow(self, url: str) -> Any:
        """The answer of a DataNode, whose URL holds what lets one in; as :meth:`ask`."""
        model = self._model
        place = urlsplit(url)._replace(path="", query="").geturl()
        if model is None:
            return None
        pool = self._elsewhere.get(place) or self._pool(requests.Request("GET", url).prepare())
        if pool is None:
            return None
        self._elsewhere[place] = pool
        headers = {key: value for key, value in model.headers.items() if key.lower() not in _CREDENTIALS}
        answer = self._get(pool, url, headers)
        if answer is None:
            self._model = None
        return answer if answer is not None and answer.status == 200 else None

    def _get(self, pool: Any, url: str, headers: dict[str, str]) -> Any:
        """The answer with its body; None when it did not come, or `requests`, which keeps only so many, has closed the
        connections.
        """
        parts = urlsplit(url)
        target = f"{parts.path}?{parts.query}"
        try:
            return pool.urlopen("GET", target, headers=headers, timeout=self._timeout, retries=False, redirect=False)
        except urllib3.exceptions.ClosedPoolError:
            self._elsewhere.clear()
            return None
        except urllib3.exceptions.ReadTimeoutError:
            return None
        except urllib3.exceptions.HTTPError as error:
            is_late = isinstance(error, urllib3.exceptions.TimeoutError)
            kind = requests.exceptions.ConnectTimeout if is_late else requests.exceptions.ConnectionError
            raise kind(error, request=requests.Request("GET", url).prepare()) from error

    def _pool(self, request: requests.PreparedRequest) -> Any:
        """The connections that `requests` itself would use; None where they are not direct."""
        url = str(request.url)
        settings = self._session.merge_environment_settings(url, {}, None, None, None)
        adapter = self._session.get_adapter(url)
        if not isinstance(adapter, HTTPAdapter) or select_proxy(url, settings["proxies"]):
            return None
        return adapter.get_connection_with_tls_context(request, settings["verify"], cert=settings["cert"])
