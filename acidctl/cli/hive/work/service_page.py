"""``--listen``: the figures of a service in Prometheus' text form, and whether it is well, over HTTP."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from socketserver import ThreadingMixIn
from typing import Any, Protocol
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.metrics_core import Metric

from acidctl.errors import EnvironmentProblem, UsageProblem

_PORT = re.compile(r"[0-9]{1,5}")


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True

    def handle_error(self, *_: Any) -> None:
        """Whoever hangs up, or says nothing, is of no interest."""


class _Server6(_Server):
    address_family = socket.AF_INET6


class _Quiet(WSGIRequestHandler):
    timeout = 30.0

    def log_message(self, *_: Any) -> None:
        """Nothing is written for a request."""


class Collector(Protocol):
    """Figures as Prometheus' library collects them."""

    def collect(self) -> Iterable[Metric]:
        """All of them, now."""

    @property
    def is_well(self) -> bool:
        """Whether the service does what it is there for."""


@contextmanager
def serve(listen: str, collector: Collector) -> Iterator[str]:
    """Answer requests for the length of a block.

    Args:
        listen: ``PORT`` or ``HOST:PORT``.
        collector: whose figures are shown.

    Yields:
        ``HOST:PORT``.

    Raises:
        UsageProblem: it is not such an address.
        EnvironmentProblem: nothing can listen there.
    """
    host, _, port = listen.rpartition(":")
    if not _PORT.fullmatch(port) or int(port) > 65535:
        raise UsageProblem(f"not an address: {listen}", "", "write PORT or HOST:PORT")
    registry = CollectorRegistry()
    registry.register(collector)
    metrics = make_wsgi_app(registry)

    def answer(environment: dict[str, Any], start: Any) -> Iterable[bytes]:
        path = environment.get("PATH_INFO", "")
        if path == "/metrics":
            found: Iterable[bytes] = metrics(environment, start)
            return found
        if path != "/healthz":
            start("404 Not Found", [("Content-Type", "text/plain")])
            return [b"/metrics and /healthz are here\n"]
        well = collector.is_well
        start("200 OK" if well else "503 Service Unavailable", [("Content-Type", "text/plain")])
        return [b"ok\n" if well else b"the metastore does not answer\n"]

    host = host.strip("[]") or "127.0.0.1"
    try:
        server = make_server(host, int(port), answer, _Server6 if ":" in host else _Server, _Quiet)
    except OSError as error:
        raise EnvironmentProblem(
            f"cannot listen at {listen}", (error.strerror or str(error)).lower(), "give another port"
        ) from error
    thread = threading.Thread(target=server.serve_forever, name="acidctl-listen", daemon=True)
    thread.start()
    try:
        yield f"{f'[{host}]' if ':' in host else host}:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
