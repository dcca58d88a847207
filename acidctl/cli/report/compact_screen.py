"""What `acidctl compact` shows: plans, and what became of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from acidctl.cli.output.console import note, warn
from acidctl.cli.report.compaction_text import compaction_counts, compaction_kind, compaction_text
from acidctl.cli.report.verb_screen import VerbScreen
from acidctl.compaction.run import Compacted
from acidctl.outcome import Outcome
from acidctl.wording import text_of

if TYPE_CHECKING:
    from acidctl.cli.report.run_report import RunReport
    from acidctl.location.coverage import Looked
    from acidctl.location.snapshot import Snapshot


class CompactScreen(VerbScreen):
    """Shows outcomes of compactions, and the line that cleans what they left.

    Args:
        clean_line: makes the line that cleans a location, from its path and its name in a metastore.
        is_plan: nothing is done: plans are what the command gives.
    """

    def __init__(self, output: str, run: RunReport, clean_line: Callable[[str, str], str], *, is_plan: bool) -> None:
        super().__init__(output, run, compaction_text, compaction_counts, is_plan=is_plan)
        self._clean_line = clean_line
        self._to_clean: list[str] = []
        self._noted: set[str] = set()

    def saw(self, snapshot: Snapshot) -> None:
        super().saw(snapshot)
        for text in map(text_of, snapshot.state.notes):
            if text not in self._noted:
                note(text)
            self._noted.add(text)

    def looked_through(self, on_record: Callable[[str], int | None] = lambda _: None) -> Looked:
        looked = super().looked_through(on_record)
        self.tell_strangers()
        return looked

    def put(self, outcome: Outcome, *, is_last: bool = True) -> None:
        super().put(outcome, is_last=is_last)
        if not isinstance(outcome, Compacted):
            return
        if outcome.staging_kept:
            warn(f"the evidence is kept in {outcome.plan.snapshot.fs.display(outcome.staging_kept)}")
        if outcome.is_changed and self.is_table:
            self._to_clean.append(self._clean_line(outcome.location, outcome.hive_name))

    def kind_of(self, outcome: Outcome) -> str:
        return compaction_kind(outcome) or super().kind_of(outcome)

    def exit_status(self, speaks: bool) -> int:
        self.tell()
        if self._to_clean:
            more = f" (and {len(self._to_clean) - 1} more)" if len(self._to_clean) > 1 else ""
            note(f"the inputs are obsolete now and stay until: {self._to_clean[0]}{more}")
        return super().exit_status(speaks)
