"""Findings for people and for programs: grouped by location and rule, each rule's hint once."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from acidctl.cli.output.console import Records, console, human_count
from acidctl.cli.output.redact import hidden
from acidctl.cli.report.failures import Failures
from acidctl.errors import AcidctlError, ExitStatus
from acidctl.printable import printable
from acidctl.validation.findings import Finding, Severity, Unchecked
from acidctl.validation.model import Report
from acidctl.validation.registry import RULES
from acidctl.validation.rules import Rule

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from acidctl.cli.report.run_report import RunReport

SCHEMA_VERSION = 1
STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "yellow", Severity.INFO: "cyan"}
_MOST_LINES = 5
"""Findings of one rule that are shown of a location; ``--verbose`` shows all."""
_MOST_TEXT = 500


class Printer:
    """Prints reports as they come, and sums them up."""

    def __init__(self, output: str, run: RunReport, *, verbose: bool) -> None:
        self._output = output
        self._records = Records(output)
        self._run = run
        self._verbose = verbose
        self._failures = Failures(run)
        self._given: set[str] = set()
        self._hinted: set[str] = set()
        self._counts = dict.fromkeys(Severity, 0)
        self._unchecked = self._locations = self._files = self._rows = 0
        self._began = time.monotonic()
        self._screen: Console | None = None

    def begun(self, location: str, *, is_given: bool) -> None:
        """A location is about to be checked."""
        if is_given:
            self._given.add(location)

    def cannot_list(self, error: AcidctlError) -> None:
        """A path below a location that was given cannot be listed."""
        self._failures.add(error)

    def report(self, report: Report) -> None:
        """Print one."""
        for severity in Severity:
            self._counts[severity] += report.count(severity)
        self._run.add(
            report.location,
            "findings" if report.findings else "unchecked" if report.unchecked else "nothing-found",
            read=report.bytes,
            findings={severity.value: report.count(severity) for severity in Severity},
            unchecked=len(report.unchecked),
            rows=report.rows,
        )
        self._unchecked += len(report.unchecked)
        self._locations += 1
        self._files += report.files
        self._rows += report.rows
        if self._output == "json":
            self._records.put(as_json(report))
        elif self._output == "jsonl":
            for line in _json_lines(report):
                self._records.put(line)
        else:
            self._show(report)

    def close(self) -> None:
        """The summary line."""
        if self._output != "table":
            return
        looked = [human_count(self._locations, "location")]
        if self._files:
            looked.append(human_count(self._files, "file"))
        if self._rows:
            looked.append(human_count(self._rows, "row"))
        found = [
            human_count(self._counts[severity], noun)
            for severity, noun in ((Severity.ERROR, "error"), (Severity.WARNING, "warning"))
            if self._counts[severity]
        ]
        if self._counts[Severity.INFO] and not self._verbose:
            found.append(f"{human_count(self._counts[Severity.INFO], 'remark')} (-v shows them)")
        if self._unchecked or self._failures.worst:
            found.append(f"{self._unchecked or 'some'} could not be checked")
        seconds = time.monotonic() - self._began
        spent = f" in {seconds:.1f} s" if seconds >= 1 else ""
        self._line(f"{', '.join(looked)} checked{spent}: {', '.join(found) or 'nothing found'}", "bold")

    def exit_status(self, fail_on: str) -> int:
        """Findings that are bad enough, else what could not be checked, else 0."""
        bad = self._counts[Severity.ERROR] + (self._counts[Severity.WARNING] if fail_on == "warning" else 0)
        if bad:
            return ExitStatus.FINDINGS
        return ExitStatus.UNCHECKED if self._unchecked or self._failures.worst else 0

    # --- for people ---

    def _show(self, report: Report) -> None:
        shown = [f for f in report.findings if self._verbose or f.severity is not Severity.INFO]
        if not shown and not report.unchecked:
            if self._verbose or report.location in self._given:
                self._line(f"{report.location}: nothing found", "green")
            return
        self._line(report.location, "bold")
        groups: dict[tuple[str, Severity], list[Finding]] = {}
        for finding in shown:
            groups.setdefault((finding.rule, finding.severity), []).append(finding)
        for (rule_id, severity), findings in groups.items():
            self._group(RULES[rule_id], severity, findings)
        for one in report.unchecked:
            self._indented(f"not checked: {one.path}: {_told(one)}" if one.path else f"not checked: {_told(one)}", 2)
        self._line("")

    def _group(self, rule: Rule, severity: Severity, findings: list[Finding]) -> None:
        from rich.text import Text  # noqa: PLC0415 - only for people

        heading = Text("  ")
        heading.append(f"{severity.value:7} ", STYLES[severity])
        heading.append(f"{rule.id:3} ", "bold")
        self._wrapped(heading, rule.what, 14)
        most = len(findings) if self._verbose else _MOST_LINES
        for finding in findings[:most]:
            self._indented(f"{_clipped(finding.path)}: {finding.message}" if finding.path else finding.message, 14)
        if len(findings) > most:
            self._indented(f"and {len(findings) - most:,} more (-v shows them)", 14, "dim")
        if rule.id not in self._hinted:
            self._hinted.add(rule.id)
            self._indented(f"{rule.why} {rule.hint}", 14, "dim")

    def _wrapped(self, heading: Text, text: str, indent: int) -> None:
        """Text behind a heading of `indent` columns."""
        first, *rest = self._broken(text, indent)
        heading.append(first)
        self._console.print(heading, soft_wrap=True)
        for line in rest:
            self._line(" " * indent + line)

    def _indented(self, text: str, indent: int, style: str = "") -> None:
        for place, line in enumerate(self._broken(text, indent + 2)):
            self._line(" " * (indent + 2 * bool(place)) + line, style)

    def _broken(self, text: str, indent: int) -> list[str]:
        width = max(30, self._console.width - indent)
        return textwrap.wrap(printable(text), width, break_long_words=False, break_on_hyphens=False) or [""]

    def _line(self, text: str, style: str = "") -> None:
        from rich.text import Text  # noqa: PLC0415 - only for people

        self._console.print(Text(printable(text), style), soft_wrap=True)

    @property
    def _console(self) -> Console:
        if self._screen is None:
            self._screen = console()
        return self._screen


def as_json(report: Report) -> dict[str, Any]:
    """One location as an object; docs/reference/json.md has the meaning of every key."""
    return {
        "schema_version": SCHEMA_VERSION,
        "location": report.location,
        "depth": report.depth.value,
        "findings": [_finding(finding) for finding in report.findings],
        "unchecked": [_unchecked(one) for one in report.unchecked],
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


def _json_lines(report: Report) -> Iterator[dict[str, Any]]:
    """A line a finding, and one for each thing that was not checked."""
    where = {"schema_version": SCHEMA_VERSION, "location": report.location}
    for finding in report.findings:
        yield where | _finding(finding)
    for one in report.unchecked:
        yield where | {"rule": None, "severity": "unchecked"} | _unchecked(one)


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "rule": finding.rule,
        "severity": finding.severity.value,
        "path": finding.path,
        "message": finding.message,
        "evidence": dict(finding.evidence),
        "hint": RULES[finding.rule].hint,
    }


def _unchecked(one: Unchecked) -> dict[str, Any]:
    error = one.error
    return {"path": one.path, "message": hidden(str(error)), "code": error.code, "hint": error.hint}


def _told(one: Unchecked) -> str:
    return _clipped(hidden(str(one.error)))


def _clipped(text: str) -> str:
    return text if len(text) <= _MOST_TEXT else text[:_MOST_TEXT] + "..."
