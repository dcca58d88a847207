"""What `acidctl compact` says: one outcome per location, and a bar while it works."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from acidctl.cli.output.console import human_bytes, human_count, note, warn
from acidctl.cli.output.progress import progress
from acidctl.cli.report.outcomes import Outcomes
from acidctl.compaction.request import Answer, Planned
from acidctl.compaction.run import Compacted
from acidctl.compaction.tasks import JoinTask
from acidctl.wording import text_of

if TYPE_CHECKING:
    from acidctl.cli.output.progress import Bar
    from acidctl.cli.report.run_report import RunReport
    from acidctl.compaction.plan import CompactionPlan
    from acidctl.compaction.tasks import Task
    from acidctl.outcome import Outcome


class Working:
    """How far the tasks of a compaction are, in bytes of their inputs: what is told while they run, and the rest of it
    at their end; on a cluster all of it then.
    """

    def __init__(self, bar: Bar) -> None:
        self._bar = bar
        self._told: dict[int, int] = {}

    def bytes(self, task: Task, count: int) -> None:
        """So many more of one task are done."""
        told = self._told.get(id(task))
        if told is None:
            told = self._begun(task)
        count = min(count, task.weight - told)
        self._told[id(task)] = told + count
        self._bar.advance(count)

    def ended(self, task: Task) -> None:
        """All of its bytes."""
        self.bytes(task, task.weight)

    def _begun(self, task: Task) -> int:
        if isinstance(task, JoinTask):  # which nobody knew of before
            self._bar.grow(task.weight)
        return 0


@contextmanager
def working(plans: Sequence[CompactionPlan]) -> Iterator[Working]:
    """A bar over the input bytes, on standard error and only on a terminal."""
    tasks = [task for plan in plans for task in plan.tasks]
    doing = f"compacting {human_count(len(tasks), 'bucket')}"
    with progress(doing, sum(task.weight for task in tasks), is_bytes=True) as bar:
        yield Working(bar)


class Printer(Outcomes):
    """Outcomes of compactions."""

    def __init__(self, output: str, run: RunReport) -> None:
        super().__init__(output, run, _text_of)
        self._to_clean: list[str] = []

    def answered(self, answer: Answer) -> None:
        """What planning said of a location; plans that are to be shown are shown later."""
        if answer.finished:
            note(f"{answer.location}: finished an interrupted compaction: {', '.join(answer.finished)}")
        if answer.snapshot:
            self.run.saw(answer.snapshot)
        if not isinstance(answer, Planned):
            self.put(answer)
            return
        for text in map(text_of, answer.plan.snapshot.state.notes):
            self.note_once(text)

    def done(self, outcome: Compacted) -> None:
        """A plan was carried out, or not."""
        self.put(outcome)
        if outcome.staging_kept:
            warn(f"the evidence is kept in {outcome.plan.snapshot.fs.display(outcome.staging_kept)}")
        if outcome.is_changed and self.output == "table":
            self._to_clean.append(outcome.location)

    def exit_status(self, speaks: bool) -> int:
        """Of the whole run, after a word on what to do next."""
        if self._to_clean:
            more = f" (and {len(self._to_clean) - 1} more)" if len(self._to_clean) > 1 else ""
            note(f"the inputs are obsolete now and stay until: acidctl clean {self._to_clean[0]}{more}")
        return super().exit_status(speaks)


def _text_of(outcome: Outcome) -> str:
    if isinstance(outcome, Planned):
        return _planned(outcome)
    return _compacted(outcome) if isinstance(outcome, Compacted) and outcome.is_changed else ""


def _planned(outcome: Planned) -> str:
    plan = outcome.plan
    because = f" ({outcome.reason})" if outcome.is_decided else ""
    cut = f" in {human_count(outcome.segments, 'segment')}" if outcome.segments else ""
    return (
        f"{outcome.location}: {plan.kind.value}{because}: {human_count(len(plan.inputs), 'input')}, "
        f"{human_count(outcome.buckets, 'bucket')}{cut}, "
        f"{human_count(plan.rows, 'row')} and {human_count(plan.delete_events, 'delete event')}, "
        f"{human_bytes(plan.input_bytes)} -> {' + '.join(plan.output_names)}"
    )


def _compacted(outcome: Compacted) -> str:
    plan = outcome.plan
    return (
        f"{outcome.location}: {plan.kind.value}: {human_count(len(plan.inputs), 'input')} -> "
        f"{' + '.join(outcome.published)}, {human_bytes(plan.input_bytes)} -> {human_bytes(outcome.bytes)}, "
        f"{human_count(outcome.rows, 'row')}, {outcome.rows_dropped:,} dropped, "
        f"{human_count(outcome.stripes[0], 'stripe')} copied, {outcome.stripes[1]:,} encoded, "
        f"{plan.verify.told}, {outcome.seconds:.1f} s of work"
    )
