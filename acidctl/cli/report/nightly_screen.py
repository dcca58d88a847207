"""The screen of `acidctl nightly`: the steps of a run, and how to undo it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from acidctl.cleaning.outcomes import InTrash
from acidctl.cli.output.console import note
from acidctl.cli.report.clean_screen import cleaning_counts, cleaning_kind, cleaning_text
from acidctl.cli.report.compact_screen import compaction_counts, compaction_kind, compaction_text
from acidctl.cli.report.trash_screen import MOST_NOTES, trash_counts
from acidctl.cli.report.verb_screen import VerbScreen
from acidctl.outcome import Outcome, Result
from acidctl.verbs.nightly import Part, Step
from acidctl.wording import human_bytes, human_count, text_of

if TYPE_CHECKING:
    from acidctl.cli.report.run_report import RunReport
    from acidctl.location.coverage import Looked
    from acidctl.location.snapshot import Snapshot

_WORST_FIRST = (
    Result.FAILED, Result.STOPPED, Result.POSTPONED, Result.COMPACTED, Result.CLEANED, Result.PURGED, Result.PLANNED,
    Result.NOTHING_TO_DO, Result.SKIPPED,
)  # fmt: skip
_VERBS = {
    (Part.COMPACT, True): "compacted",
    (Part.CLEAN, True): "cleaned",
    (Part.PURGE, True): "purged",
    (Part.COMPACT, False): "to compact",
    (Part.CLEAN, False): "to clean",
    (Part.PURGE, False): "to purge",
}


class NightlyScreen(VerbScreen):
    """Shows each step that is done, planned, postponed or failed on a line, and counts the idle locations.

    Args:
        undo_line: makes the command that undoes a run, from its id and locations.
        given: the locations on the command line.
    """

    def __init__(
        self,
        output: str,
        run: RunReport,
        undo_line: Callable[[str, Sequence[str]], str],
        *,
        given: Sequence[str],
        yes: bool,
        is_plan: bool,
    ) -> None:
        super().__init__(output, run, _text_of, _counts_of, yes=yes, is_plan=is_plan)
        self._given, self._undo_line = given, undo_line
        self._run_id = ""
        self._count: Counter[tuple[Part, bool]] = Counter()
        self._bytes: Counter[str] = Counter()
        self._steps: dict[str, dict[str, Any]] = {}
        self._result: dict[str, Result] = {}
        self._seconds: dict[str, float] = {}
        self._results_of: Counter[Result] = Counter()

    def begins(self, run_id: str) -> None:
        """Take the id of the run that begins."""
        self._run_id = run_id
        self.run.facts["run"] = run_id

    def looked_through(self, on_record: Callable[[str], int | None] = lambda _: None) -> Looked:
        looked = super().looked_through(on_record)
        self.tell_strangers()
        return looked

    def saw(self, snapshot: Snapshot) -> None:
        super().saw(snapshot)
        self.remember(map(text_of, snapshot.state.notes))

    def put(self, outcome: Outcome, *, is_last: bool = True) -> None:
        if self.is_table and outcome.result in (Result.NOTHING_TO_DO, Result.SKIPPED):
            self._seen.add(outcome.result)
        else:
            super().put(outcome, is_last=is_last)
        if is_last and isinstance(outcome, Step):
            self._counted(outcome)
            self._reported(outcome)

    def kind_of(self, outcome: Outcome) -> str:
        if not isinstance(outcome, Step):
            return super().kind_of(outcome)
        kind = compaction_kind(outcome.of) or cleaning_kind(outcome.of) or super().kind_of(outcome)
        return f"{outcome.part.value}: {kind}"

    def end(self) -> None:
        done = [f"{self._count[part, not self.is_plan]} {_VERBS[part, not self.is_plan]}" for part in Part]
        others = [
            f"{count} {what}"
            for what, count in (
                ("failed", self._results_of[Result.FAILED]),
                ("left for later", self._results_of[Result.POSTPONED] + self._results_of[Result.STOPPED]),
                ("excluded", self._results_of[Result.SKIPPED]),
            )
            if count
        ]
        self.tell()
        self.tell_notes()
        freed = f", {human_bytes(self._bytes['purged'])} freed" if self._bytes["purged"] else ""
        note(f"run {self._run_id}: {', '.join([*done, *others])}{freed}")
        if self._bytes["removed"] and not self.is_plan and self.is_table:
            where = self._given if len(self._given) <= MOST_NOTES else ("LOCATION...",)
            note(f"undo the cleaning: {self._undo_line(self._run_id, where)}")

    def _counted(self, step: Step) -> None:
        is_done = step.result in (Result.COMPACTED, Result.CLEANED, Result.PURGED, Result.STOPPED)
        if is_done or step.result is Result.PLANNED:
            self._count[step.part, is_done] += 1
        if not is_done:
            self._results_of[step.result] += 1
        self._bytes.update(step.bytes_by_use())

    def _reported(self, step: Step) -> None:
        if not self.run.is_wanted:
            return
        location = step.location
        worst = min(self._result.get(location, Result.SKIPPED), step.result, key=_WORST_FIRST.index)
        self._result[location] = worst
        record: dict[str, Any] = {"result": step.result.value, **step.of.reported()}
        if step.error:
            record |= {"error": step.error.code, "reason": str(step.error)}
        self._steps.setdefault(location, {})[step.part.value] = record
        self._seconds[location] = self._seconds.get(location, 0.0) + (step.seconds or 0.0)
        self.run.add(location, worst.value, seconds=self._seconds[location], parts=self._steps[location])


def _counts_of(outcome: Outcome) -> dict[str, int]:
    if not isinstance(outcome, Step):
        return {}
    return compaction_counts(outcome.of) or cleaning_counts(outcome.of) or trash_counts(outcome.of)


def _text_of(outcome: Outcome) -> str:
    if not isinstance(outcome, Step):
        return ""
    of = outcome.of
    text = ""
    if isinstance(of, InTrash):
        what = f"{human_count(len(of.run.names), 'entry', 'entries')}, {human_bytes(of.run.bytes)}"
        text = f"{of.location}: {of.run.id}: {what}{' deleted' if of.result is Result.PURGED else ''}"
    elif of.result not in (Result.FAILED, Result.POSTPONED):
        text = compaction_text(of) or cleaning_text(of)
    elif of.result is Result.POSTPONED:
        text = f"{of.location}: left for later: {of.reason}"
    return f"{outcome.part.value}: {text}" if text else ""
