"""Shared parts of the services of Hive's queue: options, figures over HTTP, and shutdown."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from acidctl.base.errors import EnvironmentProblem, UsageProblem
from acidctl.cli.options.param_types import DURATION
from acidctl.cli.options.shared import together
from acidctl.cli.output.console import note

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

_PORT = re.compile(r"[0-9]{1,5}")

round_options = together(
    click.option("--every", type=DURATION, default="5m", show_default=True, help="Begin a look so often."),
    click.option("--once", is_flag=True, help="End after one look."),
)
listen_option = click.option(
    "--listen", metavar="[HOST:]PORT", help="Serve /metrics and /healthz there, on 127.0.0.1 without HOST."
)


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of a service, as Prometheus' library collects them.

    Attributes:
        collect: returns the current figures.
        is_well: returns whether the service is healthy.
    """

    collect: Callable[[], Iterable[Metric]]
    is_well: Callable[[], bool]


def counter(name: str, text: str, value: float | Mapping[str, float], label: str = "result") -> Metric:
    """Return a figure that only grows, or several by the value of a label."""
    from prometheus_client.metrics_core import CounterMetricFamily

    if not isinstance(value, Mapping):
        return CounterMetricFamily(name, text, value)
    metric = CounterMetricFamily(name, text, labels=[label])
    for of, count in sorted(dict(value).items()):
        metric.add_metric([of], count)
    return metric


def gauge(name: str, text: str, value: float) -> Metric:
    """Return a figure that may fall."""
    from prometheus_client.metrics_core import GaugeMetricFamily

    return GaugeMetricFamily(name, text, value)


@contextmanager
def ended_by_signal(left: Callable[[], str]) -> Iterator[None]:
    """Run a block that Ctrl-C or SIGTERM may end, which is not a failure of a service.

    Args:
        left: returns what happened to unfinished work.
    """
    try:
        yield
    except KeyboardInterrupt:
        note(f"told to end: {left()}")


@contextmanager
def serve(listen: str | None, figures: Figures) -> Iterator[str]:
    """Serve the figures and the health of a service during a block.

    Args:
        listen: ``PORT`` or ``HOST:PORT``; None serves nothing.

    Yields:
        ``HOST:PORT``; empty if nothing is served.

    Raises:
        UsageProblem: the address is invalid.
        EnvironmentProblem: the port cannot be used.
    """
    from prometheus_client import CollectorRegistry, make_wsgi_app

    if listen is None:
        yield ""
        return
    host, _, port = listen.rpartition(":")
    if not _PORT.fullmatch(port) or int(port) > 65535:
        raise UsageProblem(f"not an address: {listen}", "", "write PORT or HOST:PORT")
    registry = CollectorRegistry()
    registry.register(figures)
    metrics = make_wsgi_app(registry)

    def answer(environment: dict[str, Any], start: Any) -> Iterable[bytes]:
        path = environment.get("PATH_INFO", "")
        if path == "/metrics":
            body: Iterable[bytes] = metrics(environment, start)
            return body
        if path != "/healthz":
            start("404 Not Found", [("Content-Type", "text/plain")])
            return [b"/metrics and /healthz are here\n"]
        well = figures.is_well()
        start("200 OK" if well else "503 Service Unavailable", [("Content-Type", "text/plain")])
        return [b"ok\n" if well else b"the metastore does not answer\n"]

    host = host.strip("[]") or "127.0.0.1"
    try:
        server = _quiet_server(host, int(port), answer)
    except OSError as error:
        raise EnvironmentProblem(
            f"cannot listen at {listen}", (error.strerror or str(error)).lower(), "give another port"
        ) from error
    thread = threading.Thread(target=server.serve_forever, name="acidctl-listen", daemon=True)
    thread.start()
    try:
        address = f"{f'[{host}]' if ':' in host else host}:{server.server_port}"
        note(f"metrics are at http://{address}/metrics")
        yield address
    finally:
        server.shutdown()
        server.server_close()


def _quiet_server(host: str, port: int, answer: Callable[..., Iterable[bytes]]) -> Any:
    from socketserver import ThreadingMixIn
    from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

    class Server(ThreadingMixIn, WSGIServer):
        daemon_threads = True
        address_family = socket.AF_INET6 if ":" in host else socket.AF_INET

        def handle_error(self, *_: Any) -> None:
            pass

    class Quiet(WSGIRequestHandler):
        timeout = 30.0

        def log_message(self, *_: Any) -> None:
            pass

    return make_server(host, port, answer, Server, Quiet)
