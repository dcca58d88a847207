"""What services say of their looks: counts, failures, and a sum at the end of one."""

from __future__ import annotations

from collections import Counter

from acidctl.cli.output.console import Records, note
from acidctl.cli.report.outcomes import show_failure
from acidctl.errors import AcidctlError
from acidctl.outcome import Outcome, Result


class ServiceSaid:
    """Begins with what all services say; each adds what it says of one outcome.

    Attributes:
        status: the worst exit status of all failures.
        records: for programs; None where people read.
        counts: outcomes by their results.
    """

    def __init__(self, output: str) -> None:
        self.status = 0
        self.records = None if output == "table" else Records(output)
        self.counts: Counter[Result] = Counter()

    def counted(self, one: Outcome) -> bool:
        """Count an outcome, and tell programs of it; whether people are to be told."""
        self.counts[one.result] += 1
        if self.records:
            self.records.put(one.record())
        return self.records is None

    def failed(self, location: str, error: AcidctlError) -> None:
        """One cannot be looked at, or a whole round failed: that without a location."""
        self.status = max(self.status, error.exit_status)
        if self.records:
            record = {"location": location} if location else {}
            self.records.put({**record, "result": Result.FAILED.value, "error": error.code, "reason": str(error)})
        show_failure(location, error)

    def sum_up(self, looked: str) -> None:
        """How many there were.

        Args:
            looked: what was looked at, with its number.
        """
        if self.records is None:
            parts = [f"{count:,} {result.words}" for result, count in sorted(self.counts.items())]
            note(f"{looked}{': ' if parts else ''}{', '.join(parts)}")
