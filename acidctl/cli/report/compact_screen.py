"""Compactions for people: their texts, and the screen of `acidctl compact`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from acidctl.cli.output.console import note, warn
from acidctl.cli.report.verb_screen import VerbScreen
from acidctl.compaction.request import Planned
from acidctl.compaction.run import Compacted
from acidctl.outcome import Outcome
from acidctl.wording import human_bytes, human_count, text_of

if TYPE_CHECKING:
    from acidctl.cli.report.run_report import RunReport
    from acidctl.location.coverage import Looked
    from acidctl.location.snapshot import Snapshot


class CompactScreen(VerbScreen):
    """Shows outcomes of compactions, and the command that cleans up after them.

    Args:
        clean_line: makes the command that cleans a location, from its path and its name in a metastore.
        is_plan: the command only plans.
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


def compaction_text(outcome: Outcome) -> str:
    """Return the line for a planned or finished compaction; empty for other outcomes."""
    if isinstance(outcome, Planned):
        return _planned(outcome)
    return _compacted(outcome) if isinstance(outcome, Compacted) and outcome.is_changed else ""


def compaction_kind(outcome: Outcome) -> str:
    """Return the heading under which outcomes like this one are folded; empty for other outcomes."""
    if isinstance(outcome, Planned):
        return f"to compact, {outcome.plan.asked}"
    return "compacted" if isinstance(outcome, Compacted) and outcome.is_changed else ""


def compaction_counts(outcome: Outcome) -> dict[str, int]:
    """Return the number of inputs and the bytes read and written."""
    if not isinstance(outcome, Planned | Compacted):
        return {}
    plan = outcome.plan
    written = {"written": outcome.bytes} if isinstance(outcome, Compacted) else {}
    return {"inputs": len(plan.inputs), **written, "read": plan.input_bytes}


def _planned(outcome: Planned) -> str:
    plan = outcome.plan
    because = f" ({outcome.reason})" if outcome.is_decided else ""
    most = "" if plan.cut_buckets else "at most "
    cut = f" in {most}{human_count(outcome.segments, 'segment')}" if outcome.segments else ""
    return (
        f"{outcome.location}: {plan.asked}{because}: {human_count(len(plan.inputs), 'input')}, "
        f"{human_count(outcome.buckets, 'bucket')}{cut}, "
        f"{human_count(plan.rows, 'row')} and {human_count(plan.delete_events, 'delete event')}, "
        f"{human_bytes(plan.input_bytes)} -> {' + '.join(plan.output_names)}"
    )


def _compacted(outcome: Compacted) -> str:
    plan = outcome.plan
    return (
        f"{outcome.location}: {plan.asked}: {human_count(len(plan.inputs), 'input')} -> "
        f"{' + '.join(outcome.published)}, {human_bytes(plan.input_bytes)} -> {human_bytes(outcome.bytes)}, "
        f"{human_count(outcome.rows, 'row')}, {outcome.rows_dropped:,} dropped, "
        f"{human_count(outcome.stripes[0], 'stripe')} copied, {outcome.stripes[1]:,} encoded, "
        f"{plan.verify.told}, {outcome.seconds:.1f} s of work"
    )
