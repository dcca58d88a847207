"""Shared parts of the services of Hive's queue: their commands, figures over HTTP, and shutdown."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

import click

from acidctl.base.errors import AcidctlError, EnvironmentProblem, UsageProblem
from acidctl.cli.options import shared
from acidctl.cli.options.asked_metastore import asked_metastore
from acidctl.cli.options.metastore import exclude_option
from acidctl.cli.options.verb_command import verb_command
from acidctl.cli.output.console import note

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

    from acidctl.hive.blocking import QueueView
    from acidctl.metastore.client import Metastore
    from acidctl.verbs.hive.service import Counts

_PORT = re.compile(r"[0-9]{1,5}")
_LOOK_SECONDS = 60.0
_STALE_SECONDS = 300.0
"""Age of the last answer of the metastore from which a worker without entries counts as unhealthy."""


def service_command(
    name: str, options: type[Any], *, has_names: bool = True, asks: bool = False, changes: bool = True
) -> Callable[[Callable[..., Any]], click.Command]:
    """Make the command of a service, whose body gets a :class:`Call`, `metastore`, `listen`, and the names of tables.

    Args:
        has_names: take tables (`names`), and patterns of tables to leave out (`exclude`).
    """
    names = shared.places_argument("names", "[TABLE...]", required=False, only_names=True)
    listen = click.option(
        "--listen", metavar="[HOST:]PORT", help="Serve /metrics and /healthz here, on 127.0.0.1 without HOST."
    )
    return verb_command(
        name,
        options,
        place=names if has_names else shared.together(),
        source=asked_metastore,
        extras=(listen, exclude_option) if has_names else (listen,),
        forms=("table", "jsonl"),
        changes=changes,
        asks=asks,
        isolates=True,  # a file that crashes its native reader is a damaged file
    )


_Figure = tuple[str, str, str]
"""Name and help of a series, and the counter, or the attribute of one, that it shows."""

_FIGURES: dict[str, tuple[_Figure, ...]] = {
    "worker": (
        ("entries", "Compactions that it took, by their result.", "results"),
        ("bytes", "Bytes of inputs and outputs.", "bytes"),
        ("seconds", "Time between taking entries and their ends.", "seconds"),
        ("running", "Entries that it works on.", "running"),
        ("last_look_timestamp_seconds", "When the metastore last answered it.", "checked"),
    ),
    "initiator": (
        ("locations", "Locations that it checked, by their result.", "results"),
        ("rounds", "Checks of the whole warehouse.", "rounds"),
        ("leading", "1 while it holds the lock.", "leading"),
        ("round_seconds", "Duration of the last check.", "seconds"),
        ("last_round_timestamp_seconds", "When the last check ended.", "checked"),
    ),
    "cleaner": (
        ("entries", "Entries ready for cleaning, by their result.", "results"),
        ("marked", "Entries that the metastore has as done.", "marked"),
        ("bytes", "Bytes that were removed.", "removed"),
        ("rounds", "Checks of the queue.", "rounds"),
        ("last_round_timestamp_seconds", "When the last check ended.", "checked"),
    ),
}
_GAUGES = ("running", "leading", "round_seconds", "last_look_timestamp_seconds", "last_round_timestamp_seconds")
"""The series that may fall; all others are counters."""


class QueueWatch:
    """Hive's queue and what holds back cleaning, looked at every minute for Prometheus.

    A page is made from the last look: it must come at once, above all when the metastore does not answer. Nothing is
    shown of a queue that could not be looked at.
    """

    def __init__(self, metastore: Metastore) -> None:
        self._metastore, self._ended = metastore, Event()
        self._view: QueueView | None = None

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Look again and again during a block."""
        thread = Thread(target=self._watch, name="queue-watch", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()

    def look(self) -> None:
        """Look once; an error of the metastore is the worker's to report."""
        from acidctl.hive.blocking import find_held_back_or_stuck
        from acidctl.location.warehouse import Warehouse

        view = None
        try:
            view = find_held_back_or_stuck(Warehouse(self._metastore), (), lambda _: True, ())
        except AcidctlError:
            pass
        finally:  # an unexpected error ends the thread: old figures would lie
            self._view = view

    def collect(self) -> Iterator[Metric]:
        """Yield what the last look saw."""
        from prometheus_client.metrics_core import GaugeMetricFamily

        from acidctl.cli.report.state_metrics import QUEUE, queue_samples

        view = self._view
        families = {name: GaugeMetricFamily(name, text, labels=labels) for name, (text, labels) in QUEUE.items()}
        for name, values, value in queue_samples(view) if view else ():
            families[name].add_metric(values, value)
        yield from families.values() if view else ()

    def _watch(self) -> None:
        with closing(self._metastore):
            while not self._ended.is_set():
                self.look()
                self._ended.wait(_LOOK_SECONDS)


@dataclass(frozen=True, eq=False)
class Figures:
    """The figures of a service, as Prometheus' library collects them, and those of the queue if it is watched."""

    service: str
    counts: Counts
    queue: QueueWatch | None = None

    def collect(self) -> Iterator[Metric]:
        """Yield the current figures."""
        from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily

        yield from self.queue.collect() if self.queue else ()
        for name, text, source in _FIGURES[self.service]:
            series = f"acidctl_{self.service}_{name}"
            value = self.counts.bytes[source] if source == "removed" else getattr(self.counts, source)
            if name in _GAUGES:
                yield GaugeMetricFamily(series, text, float(value))
            elif isinstance(value, dict):
                metric = CounterMetricFamily(series, text, labels=["kind" if name == "bytes" else "result"])
                for key, count in sorted(dict(value).items()):
                    metric.add_metric([key], count)
                yield metric
            else:
                yield CounterMetricFamily(series, text, value)

    def is_well(self) -> bool:
        """Return whether the metastore answers, or an entry is in work."""
        counts = self.counts
        is_stale = self.service == "worker" and time.time() - counts.checked >= _STALE_SECONDS
        return counts.running > 0 or not (counts.failing or is_stale)


@contextmanager
def ended_by_signal(unfinished: Callable[[], str]) -> Iterator[None]:
    """Run a block that Ctrl-C or SIGTERM may end, which is not a failure of a service."""
    try:
        yield
    except KeyboardInterrupt:
        note(f"shutting down: {unfinished()}")


@contextmanager
def serve(listen: str | None, figures: Figures) -> Iterator[str]:
    """Serve the figures and the health of a service during a block.

    Args:
        listen: ``PORT`` or ``HOST:PORT``; None serves nothing.
    """
    if listen is None:
        yield ""
        return
    from prometheus_client import CollectorRegistry, make_wsgi_app, start_http_server

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
        status, body = "200 OK", [b"ok\n"]
        if path != "/healthz":
            status, body = "404 Not Found", [b"/metrics and /healthz are here\n"]
        elif not figures.is_well():
            status, body = "503 Service Unavailable", [b"the metastore does not answer\n"]
        start(status, [("Content-Type", "text/plain")])
        return body

    host = host.strip("[]") or "127.0.0.1"
    try:
        server, _ = start_http_server(int(port), host, registry)
    except OSError as error:
        raise EnvironmentProblem(
            f"cannot listen at {listen}", (error.strerror or str(error)).lower(), "give another port"
        ) from error
    server.set_app(answer)
    # A client that sends nothing must not hold its thread for ever.
    server.RequestHandlerClass = type("Handler", (server.RequestHandlerClass,), {"timeout": 30.0})  # type: ignore[arg-type]
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  # clients may hang up
    try:
        address = f"{f'[{host}]' if ':' in host else host}:{server.server_port}"
        note(f"metrics are at http://{address}/metrics")
        with figures.queue.watching() if figures.queue else nullcontext():
            yield address
    finally:
        server.shutdown()
        server.server_close()
