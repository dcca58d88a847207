"""``--metrics-file``: a run in Prometheus' text format, for the textfile collector of the node exporter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

from prometheus_client import Metric, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from acidctl.base.printable import printable
from acidctl.cli.output.console import warn
from acidctl.cli.output.redact import hidden
from acidctl.cli.report.run_figures import LocationFigures, RunFigures
from acidctl.cli.report.state_metrics import STATE, Sample
from acidctl.location.change.own_files import alone_in, followed, replace_file

MOST_LOCATIONS = 1000
"""Series are expensive: beyond this many, only the locations with the most obsolete directories have their own."""

_SUCCESS = "acidctl_last_success_timestamp_seconds"
_LOOKED = "acidctl_locations_looked_at"
_HELP = {
    "acidctl_last_run_timestamp_seconds": "When the command ended last.",
    _SUCCESS: "When the command last ended well.",
    "acidctl_run_duration_seconds": "How long the last run took.",
    "acidctl_exit_status": "Exit status of the last run.",
    "acidctl_failures": "Locations that failed in the last run; 1 when the run failed as a whole.",
    "acidctl_locations": "Locations of the last run, by what became of them.",
    _LOOKED: "Locations that the command found at these places; later runs expect as many.",
    "acidctl_bytes": "Bytes of the last run, by what was done with them.",
    "acidctl_findings": "Findings of the last validation, by severity.",
    "acidctl_directories": "Directories of a location after the last run; small ones are deltas among the current.",
    "acidctl_oldest_obsolete_age_seconds": "How long ago, at the last run, its oldest obsolete entry was superseded.",
    "acidctl_locations_left_out": "Locations of the last run without series of their own.",
    **{name: text for name, (text, _) in STATE.items()},
}
_LABELS = {
    "acidctl_locations": ("result",),
    _LOOKED: ("where",),
    "acidctl_bytes": ("kind",),
    "acidctl_findings": ("severity",),
    "acidctl_directories": ("location", "state"),
    "acidctl_oldest_obsolete_age_seconds": ("location",),
    **{name: labels for name, (_, labels) in STATE.items()},
}


def write_metrics(run: RunFigures, path: Path) -> None:
    """Write the series of a run, and keep the series of other commands that are in the file.

    The time of the last success is kept when this run had none.

    Raises:
        OSError: the file cannot be written; it is unchanged.
    """
    with alone_in(followed(path).parent):
        earlier = path.read_text("utf-8", "replace") if path.is_file() else ""  # not a pipe or /dev/stdout
        families = _families(run, earlier)
        collector = SimpleNamespace(collect=lambda: families)
        replace_file(path, generate_latest(collector))


def looked_in(path: Path, command: str) -> dict[str, int]:
    """Return how many locations a command found before, by places; empty if the file does not say."""
    counts: dict[str, int] = {}
    with suppress(OSError, ValueError, KeyError, IndexError):  # writing the file reports what is wrong with it
        for family in text_string_to_metric_families(path.read_text("utf-8", "replace") if path.is_file() else ""):
            for sample in family.samples:
                if sample.name == _LOOKED and sample.labels.get("command") == command:
                    counts[sample.labels.get("where", "")] = int(sample.value)
    return counts


def samples_of(run: RunFigures) -> Iterator[Sample]:
    """Yield the name, the values of its own labels, and the value of every series."""
    ended = run.ended or run.started
    yield "acidctl_last_run_timestamp_seconds", (), ended
    if run.is_good:
        yield _SUCCESS, (), ended
    yield "acidctl_run_duration_seconds", (), run.seconds
    yield "acidctl_exit_status", (), float(run.exit_status or 0)
    yield "acidctl_failures", (), float(run.all_failures)
    for name, count in run.counts().items():
        yield "acidctl_locations", (name,), float(count)
    for kind, size in run.bytes.items():
        yield "acidctl_bytes", (kind,), float(size)
    if run.record:
        yield _LOOKED, (run.record.where,), float(run.record.locations)
    for severity, count in run.findings.items():
        yield "acidctl_findings", (severity,), float(count)
    yield from run.state
    yield from _of_locations(run.results)


def _of_locations(results: Mapping[str, LocationFigures]) -> Iterator[Sample]:
    listed = [(name, figures.standing) for name, figures in results.items() if figures.standing]
    listed.sort(key=lambda item: (-item[1].directories["obsolete"], -item[1].directories["small"], item[0]))
    for name, standing in listed[:MOST_LOCATIONS]:
        # Escaped: the collector accepts UTF-8 only, and names may be any bytes.
        location = printable(hidden(name))
        for state in ("current", "obsolete", "aborted", "small"):
            yield "acidctl_directories", (location, state), float(standing.directories[state])
        yield "acidctl_oldest_obsolete_age_seconds", (location,), float(round(standing.oldest_obsolete or 0))
    if len(listed) > MOST_LOCATIONS:
        yield "acidctl_locations_left_out", (), float(len(listed) - MOST_LOCATIONS)


def _families(run: RunFigures, earlier: str) -> list[Metric]:
    families = {name: Metric(name, text, "gauge") for name, text in _HELP.items()}
    for name, labels, value in _kept(run, earlier):
        families[name].add_sample(name, labels, value)
    for name, values, value in samples_of(run):
        labels = {"command": run.command, **dict(zip(_LABELS.get(name, ()), values, strict=True))}
        families[name].add_sample(name, labels, value)
    return [family for family in families.values() if family.samples]


def _kept(run: RunFigures, earlier: str) -> Iterator[tuple[str, dict[str, str], float]]:
    try:
        for family in text_string_to_metric_families(earlier):
            for sample in family.samples:
                is_own = sample.labels.get("command") == run.command
                is_success = sample.name == _SUCCESS and not run.is_good
                where = run.record and run.record.where
                is_elsewhere = sample.name == _LOOKED and sample.labels.get("where") != where
                if sample.name in _HELP and (not is_own or is_success or is_elsewhere):
                    yield sample.name, sample.labels, sample.value
    except (ValueError, KeyError, IndexError):
        warn("the metrics file was damaged: what earlier runs wrote there is lost")
