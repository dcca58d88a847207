"""Findings for people, grouped by location and rule with the hint of a rule once, and for programs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

import click

from acidctl.base.errors import AcidctlError, ExitStatus
from acidctl.base.printable import printable
from acidctl.cli.options.shared import refuse_unused
from acidctl.cli.output.console import Records, broken, console, put_json, put_line, put_text
from acidctl.cli.output.redact import hidden
from acidctl.cli.report.outcomes import RunReporter
from acidctl.location.snapshot import SnapshotSource
from acidctl.location.snapshot_resolver import ResolvedSnapshot
from acidctl.location.table_location import TableLocation
from acidctl.validation.findings import Finding, Rule, Severity, Unchecked
from acidctl.validation.model import Report
from acidctl.validation.registry import RULES
from acidctl.wording import human_count, text_of

if TYPE_CHECKING:
    from rich.console import Console

    from acidctl.cli.report.run_report import RunReport

STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "yellow", Severity.INFO: "cyan"}
_MOST_LINES = 5
"""The most findings of a rule that are shown for a location without ``--verbose``."""
_MOST_TEXT = 500
_MARGIN, _WIDTH = 14, 96
_ITS_OWN = ("list_rules", "output")


class FindingsPrinter(RunReporter):
    """Prints reports as they come, and sums them up.

    Attributes:
        given: locations that the user named, which get a line even if nothing was found.
        unlisted: locations with a directory that may not be listed, which their reports show.
        sources: the sources of the snapshots by location.
    """

    def __init__(self, output: str, run: RunReport, *, verbose: bool) -> None:
        super().__init__(run)
        self._report = run
        self._output = output
        self._records = Records(output)
        self._verbose = verbose
        self.given: set[str] = set()
        self.unlisted: set[str] = set()
        self.sources: dict[str, SnapshotSource] = {}
        self._hinted: set[str] = set()
        self._counts = dict.fromkeys(Severity, 0)
        self._unchecked = self._locations = self._files = self._rows = 0
        self._began = time.monotonic()

    def closed(self, found: TableLocation, error: AcidctlError) -> None:
        self.unlisted.add(found.shown)

    def counted(self, found: TableLocation, resolved: ResolvedSnapshot) -> None:
        """Keep the source of the snapshot of a location that is to be validated."""
        self.sources[found.shown] = resolved.source
        if resolved.note and self._output == "table":
            self.remember([text_of(resolved.note)])

    def report(self, report: Report) -> None:
        """Print the report of a location."""
        for severity in Severity:
            self._counts[severity] += report.count(severity)
        self._report.add(
            report.location,
            "findings" if report.findings else "unchecked" if report.unchecked else "nothing-found",
            bytes_by_use={"read": report.bytes},
            findings={severity.value: report.count(severity) for severity in Severity},
            unchecked=len(report.unchecked),
            rows=report.rows,
        )
        self._unchecked += len(report.unchecked)
        self._locations += 1
        self._files += report.files
        self._rows += report.rows
        if self._output == "table":
            self._show(report)
        source = self.sources.pop(report.location, SnapshotSource())
        for record in (as_json(report, source),) if self._output == "json" else _json_lines(report, source):
            self._records.put(record)

    def close(self) -> None:
        """Print the summary line."""
        if self._output != "table":
            return
        counts = ((self._files, "file"), (self._rows, "row"))
        looked = [
            human_count(self._locations, "location"),
            *(human_count(count, noun) for count, noun in counts if count),
        ]
        found = [
            human_count(self._counts[severity], noun)
            for severity, noun in ((Severity.ERROR, "error"), (Severity.WARNING, "warning"))
            if self._counts[severity]
        ]
        if self._counts[Severity.INFO] and not self._verbose:
            found.append(f"{human_count(self._counts[Severity.INFO], 'remark')} (-v shows them)")
        if self._unchecked or self.status:
            found.append(f"{self._unchecked or 'some'} could not be checked")
        seconds = time.monotonic() - self._began
        spent = f" in {seconds:.1f} s" if seconds >= 1 else ""
        self._line(f"{', '.join(looked)} checked{spent}: {', '.join(found) or 'nothing found'}", "bold")

    def exit_status(self, fail_on: str) -> int:
        """Return the status for findings of this severity, else for what could not be checked, else 0."""
        bad = self._counts[Severity.ERROR] + (self._counts[Severity.WARNING] if fail_on == "warning" else 0)
        if bad:
            return ExitStatus.FINDINGS
        if self.status == ExitStatus.NOT_LOOKED_AT and not self._unchecked:
            return self.status
        return ExitStatus.UNCHECKED if self._unchecked or self.status else 0

    # --- for people ---

    def _show(self, report: Report) -> None:
        shown = [f for f in report.findings if self._verbose or f.severity is not Severity.INFO]
        if not shown and not report.unchecked:
            if self._verbose or report.location in self.given:
                self._line(f"{report.location}: nothing found", "green")
            return
        self._line(report.location, "bold")
        groups: dict[tuple[str, Severity], list[Finding]] = {}
        for finding in shown:
            groups.setdefault((finding.rule, finding.severity), []).append(finding)
        for (rule_id, severity), findings in groups.items():
            self._group(RULES[rule_id], severity, findings)
        for missed in report.unchecked:
            parts = ("not checked", missed.path, _clipped(hidden(str(missed.error))))
            self._indented(": ".join(filter(None, parts)), 2)
        self._line("")

    def _group(self, rule: Rule, severity: Severity, findings: list[Finding]) -> None:
        from rich.text import Text  # noqa: PLC0415 - only for people

        first, *rest = broken(printable(rule.what), self._width(_MARGIN))
        styled = (f"{severity.value:7} ", STYLES[severity]), (f"{rule.id:3} ", "bold")
        self._console.print(Text.assemble("  ", *styled, first), soft_wrap=True)
        for line in rest:
            self._line(" " * _MARGIN + line)
        most = len(findings) if self._verbose else _MOST_LINES
        for finding in findings[:most]:
            self._indented(f"{_clipped(finding.path)}: {finding.message}" if finding.path else finding.message)
        if len(findings) > most:
            self._indented(f"and {len(findings) - most:,} more (-v shows them)", style="dim")
        if rule.id not in self._hinted:
            self._hinted.add(rule.id)
            self._indented(f"{rule.why} {rule.hint}", style="dim")

    def _indented(self, text: str, indent: int = _MARGIN, style: str = "") -> None:
        for place, line in enumerate(broken(printable(text), self._width(indent + 2))):
            self._line(" " * (indent + 2 * bool(place)) + line, style)

    def _width(self, indent: int) -> int:
        return max(30, self._console.width - indent)

    def _line(self, text: str, style: str = "") -> None:
        self._console.print(printable(text), style=style or None, soft_wrap=True)

    @cached_property
    def _console(self) -> Console:
        return console()


def as_json(report: Report, source: SnapshotSource) -> dict[str, Any]:
    """Return a report as an object; docs/reference/json.md has the meaning of every key."""
    return {
        "location": report.location,
        "depth": report.depth.value,
        "snapshotSource": source.record,
        "findings": [_finding(finding) for finding in report.findings],
        "unchecked": [_unchecked(unchecked) for unchecked in report.unchecked],
        "summary": {
            "errors": report.count(Severity.ERROR),
            "warnings": report.count(Severity.WARNING),
            "remarks": report.count(Severity.INFO),
            "unchecked": len(report.unchecked),
            "files": report.files,
            "bytes": report.bytes,
            "rows": report.rows,
        },
    }


def _json_lines(report: Report, source: SnapshotSource) -> Iterator[dict[str, Any]]:
    where = {"location": report.location, "snapshotSource": source.record}
    for finding in report.findings:
        yield where | _finding(finding)
    for unchecked in report.unchecked:
        yield where | {"rule": None, "severity": "unchecked"} | _unchecked(unchecked)


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "rule": finding.rule,
        "severity": finding.severity.value,
        "path": finding.path,
        "message": finding.message,
        "evidence": dict(finding.evidence),
        "hint": RULES[finding.rule].hint,
    }


def _unchecked(unchecked: Unchecked) -> dict[str, Any]:
    error = unchecked.error
    return {"path": unchecked.path, "message": hidden(str(error)), "code": error.code, "hint": error.hint}


def _clipped(text: str) -> str:
    return text if len(text) <= _MOST_TEXT else text[:_MOST_TEXT] + "..."


def print_rules(output: str) -> int:
    """Print all rules: a table for people, an object or lines for programs."""
    refuse_unused("--list-rules", *(name for name in click.get_current_context().params if name not in _ITS_OWN))
    if output == "json":
        put_json({"rules": [_rule(rule) for rule in RULES.values()]}, lines=False)
        return 0
    if output == "jsonl":
        for rule in RULES.values():
            put_json(_rule(rule), lines=True)
        return 0
    for rule in RULES.values():
        where = f"--{rule.depth.value}" if rule.depth.rank else "always"
        readers = f", --for {' '.join(rule.readers)}" if rule.readers else ""
        put_line(f"{rule.id:4}{rule.severity.value} ({where}{readers})")
        for text in (rule.what, rule.why, rule.hint):
            put_text(f"    {text}", most=_WIDTH)
    return 0


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "severity": rule.severity.value,
        "depth": rule.depth.value,
        "what": rule.what,
        "why": rule.why,
        "hint": rule.hint,
        "section": rule.section,
        "readers": list(rule.readers),
    }
