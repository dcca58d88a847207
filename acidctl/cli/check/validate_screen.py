"""Findings for people, grouped by location and rule with the hint of a rule once, and for programs."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from acidctl.base.errors import AcidctlError, EnvironmentProblem, ExitStatus, UnexpectedError
from acidctl.base.printable import printable
from acidctl.cli.output.console import Records, broken, console, note, show_error, show_trace
from acidctl.cli.output.redact import hidden
from acidctl.cli.output.terminal import VERBOSITY
from acidctl.cli.report.outcomes import RunReporter
from acidctl.validation.checks import RULES
from acidctl.validation.findings import Finding, Rule, Severity
from acidctl.validation.report import SEVERITIES
from acidctl.wording import human_count

if TYPE_CHECKING:
    from acidctl.cli.report.run_figures import RunFigures
    from acidctl.validation.findings import Unchecked
    from acidctl.validation.report import Report

_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "yellow", Severity.INFO: "cyan"}
_MOST_LINES = 5
"""The most findings of a rule that are shown for a location without ``--verbose``."""
_MOST_TEXT = 500
_MARGIN = 14
_NARROWEST = 30


class ValidateScreen(RunReporter):
    """Shows reports as they come, and sums them up."""

    on_unknown = "without a table, not known to be transactional"

    def __init__(self, output: str, run: RunFigures | None) -> None:
        super().__init__(run)
        self._output = output
        self._records = Records(output)
        self._console = console()
        self._hinted: set[str] = set()
        self._counts = dict.fromkeys(Severity, 0)
        self._unchecked = 0
        self._faults: list[AcidctlError] = []
        self._looked = {"location": 0, "file": 0, "row": 0}

    def show(self, reports: Iterable[Report]) -> None:
        """Show what the verb yields, and the totals."""
        began = time.monotonic()
        for report in reports:
            self._count(report)
            if self._output == "table":
                self._show(report)
            whole = report.record() | {"unchecked": list(map(_unchecked, report.unchecked))}
            for record in [whole] if self._output == "json" else _json_lines(report):
                self._records.put(record)
        self.tell_strangers()
        if self._output == "table":
            self._sum_up(time.monotonic() - began)
        if self._faults:
            error, count = self._faults[0], human_count(len(self._faults), "location")
            what = f"{count} could not be checked, and no file is to blame: {error.what}"
            show_error(what, error.why, error.hint)

    def exit_status(self, fail_on: str) -> int:
        """Return the status for findings of this severity, else for what could not be checked, else 0.

        That of acidctl, or of this machine, if one of them is at fault, and not a file.
        """
        if self._counts[Severity.ERROR] + (self._counts[Severity.WARNING] if fail_on == "warning" else 0):
            return ExitStatus.FINDINGS
        if self.status == ExitStatus.NOT_LOOKED_AT and not self._unchecked:
            return self.status
        if self._faults:
            return self._faults[0].exit_status
        return ExitStatus.UNCHECKED if self._unchecked or self.status else 0

    def note(self, text: str) -> None:
        if self._output == "table":
            note(text)

    def _count(self, report: Report) -> None:
        if self.run:
            self.run.take(report)
        for severity in Severity:
            self._counts[severity] += report.count(severity)
        self._unchecked += len(report.unchecked)
        for missed in report.unchecked:
            if isinstance(missed.error, EnvironmentProblem | UnexpectedError):
                self._faults.append(missed.error)
            if isinstance(missed.error, UnexpectedError):
                show_trace(missed.error.trace)
        for noun, count in (("location", 1), ("file", report.files), ("row", report.rows)):
            self._looked[noun] += count

    def _sum_up(self, seconds: float) -> None:
        looked = [human_count(count, noun) for noun, count in self._looked.items() if count or noun == "location"]
        counts = {noun: self._counts[severity] for noun, severity in SEVERITIES.items()}
        found = [human_count(counts[noun], noun) for noun in ("error", "warning") if counts[noun]]
        if counts["remark"] and not VERBOSITY.is_verbose:
            found.append(f"{human_count(counts['remark'], 'remark')} (-v shows them)")
        if self._unchecked or self.status:
            found.append(f"{self._unchecked or 'some'} could not be checked")
        spent = f" in {seconds:.1f} s" if seconds >= 1 else ""
        self._line(f"{', '.join(looked)} checked{spent}: {', '.join(found) or 'nothing found'}", style="bold")

    # --- for people ---

    def _show(self, report: Report) -> None:
        findings = [f for f in report.findings if VERBOSITY.is_verbose or f.severity is not Severity.INFO]
        if not findings and not report.unchecked:
            if VERBOSITY.is_verbose or report.is_named:
                self._line(f"{report.location}: nothing found", style="green")
            return
        self._line(report.location, style="bold")
        groups: dict[tuple[str, Severity], list[Finding]] = {}
        for finding in findings:
            groups.setdefault((finding.rule, finding.severity), []).append(finding)
        for (rule_id, severity), group in groups.items():
            self._group(RULES[rule_id], severity, group)
        for missed in report.unchecked:
            parts = ("not checked", missed.path, _clipped(hidden(str(missed.error))))
            self._line(": ".join(filter(None, parts)), 2)
        self._line("")

    def _group(self, rule: Rule, severity: Severity, findings: list[Finding]) -> None:
        self._line(f"{severity.value:7} {rule.id:3} {rule.what}", 2, _MARGIN, style=_STYLES[severity])
        most = len(findings) if VERBOSITY.is_verbose else _MOST_LINES
        for finding in findings[:most]:
            parts = filter(None, (_clipped(finding.path), finding.message))
            self._line(": ".join(parts), _MARGIN, _MARGIN + 2)
        if len(findings) > most:
            self._line(f"and {len(findings) - most:,} more (-v shows them)", _MARGIN, style="dim")
        if rule.id not in self._hinted:
            self._hinted.add(rule.id)
            self._line(f"{rule.why} {rule.hint}", _MARGIN, _MARGIN + 2, style="dim")

    def _line(self, text: str, indent: int = 0, hanging: int = 4, *, style: str = "") -> None:
        """Print a text, broken between words, with all lines but the first indented further."""
        width = max(hanging + _NARROWEST, self._console.width)
        for line in broken(" " * indent + printable(text), width, hanging) if text else [""]:
            self._console.print(line, style=style or None, soft_wrap=True)


def _json_lines(report: Report) -> Iterator[dict[str, Any]]:
    where = {"location": report.location, "snapshotSource": report.source.record}
    for finding in report.findings:
        yield where | finding.record()
    for unchecked in report.unchecked:
        yield where | {"rule": None, "severity": "unchecked"} | _unchecked(unchecked)


def _unchecked(unchecked: Unchecked) -> dict[str, Any]:
    """Return the record without the passwords that an error of a store may hold."""
    record = unchecked.record()
    return record | {"message": hidden(record["message"])}


def _clipped(text: str) -> str:
    return text if len(text) <= _MOST_TEXT else text[:_MOST_TEXT] + "..."
