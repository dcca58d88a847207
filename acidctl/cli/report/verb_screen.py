"""What a verb yields on the screen or as records, and the question before it changes anything."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from acidctl.cli.output.console import can_ask, note, say, warn
from acidctl.cli.output.progress import progress
from acidctl.cli.report.asking import confirm, to_be_typed
from acidctl.cli.report.outcomes import Outcomes
from acidctl.outcome import Outcome, Result

if TYPE_CHECKING:
    from acidctl.cli.report.run_report import RunReport
    from acidctl.location.snapshot import Snapshot
    from acidctl.verbs.events import Progress, Question

_PLANS = frozenset({Result.PLANNED, Result.IN_TRASH})


class VerbScreen(Outcomes):
    """Shows outcomes as they come, and asks where somebody can answer.

    Args:
        output: table, json or jsonl.
        yes: do not ask.
        is_plan: nothing is done: plans are what the command gives.
        text_of, counts_of: as for :class:`~acidctl.cli.report.outcomes.Outcomes`.
    """

    def __init__(
        self,
        output: str,
        run: RunReport,
        text_of: Callable[[Outcome], str],
        counts_of: Callable[[Outcome], Mapping[str, int]],
        *,
        yes: bool = False,
        is_plan: bool = False,
    ) -> None:
        super().__init__(output, run, text_of, counts_of)
        self._yes, self.is_plan = yes, is_plan
        self.can_ask, self.shows_plans = can_ask(), not yes

    def show(self, outcomes: Iterable[Outcome]) -> int:
        """Show what a verb yields; the exit status."""
        for outcome in outcomes:
            self.put(outcome, is_last=self.is_plan or outcome.result not in _PLANS)
        self.end()
        return self.status

    def end(self) -> None:
        """Say what became of all locations together."""

    def plans_are_shown(self) -> None:
        """Say what there is to say between the plans and the question."""

    def confirm(self, question: Question) -> None:
        self.tell(len(question.locations))
        self.plans_are_shown()
        for line in question.before:
            say("", line)
        severe = to_be_typed(question.locations, is_for_good=question.is_for_good)
        confirm(question.what, question.text, question.undone, yes=self._yes, severe=severe, instead=question.instead)

    @contextmanager
    def progress(
        self, doing: str, total: int, *, is_bytes: bool = False, coming: int | None = None
    ) -> Iterator[Progress]:
        self.tell(total if coming is None else coming)
        with progress(doing, total, is_bytes=is_bytes) as bar:
            yield bar

    def saw(self, snapshot: Snapshot) -> None:
        self.run.saw(snapshot)

    def note(self, text: str) -> None:
        note(text)

    def warn(self, text: str) -> None:
        warn(text)
