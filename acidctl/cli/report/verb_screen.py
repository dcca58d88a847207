"""The outcomes of a verb on the screen or as records, and the question before it changes anything."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from acidctl.base.errors import RefusedError
from acidctl.base.printable import printable
from acidctl.cli.output.console import can_ask, end_question, note, say, warn
from acidctl.cli.output.progress import progress
from acidctl.cli.output.verbosity import VERBOSITY
from acidctl.cli.report.folding import folder_of_table
from acidctl.cli.report.outcomes import Outcomes
from acidctl.outcome import Outcome, Result
from acidctl.storage.port import base_name

if TYPE_CHECKING:
    from acidctl.cli.report.run_report import RunReport
    from acidctl.location.snapshot import Snapshot
    from acidctl.verbs.events import Progress, Question


def confirm(what: str, question: str, undone: str, *, yes: bool, severe: str = "", instead: str = "") -> None:
    """Ask for confirmation unless `yes` is set.

    Args:
        what: the action, for the error message.
        undone: the first line of the error after a no.
        severe: the text that the user must type if a `y` is not enough: see :func:`to_be_typed`.
        instead: the hint of the error, if the command has another way than --yes.

    Raises:
        RefusedError: the answer was no, or nobody can answer.
    """
    if yes:
        return
    if not can_ask():
        raise RefusedError(what, "there is no terminal to ask at", instead or "look at the plan, then give --yes")
    if VERBOSITY.is_quiet:
        raise RefusedError(what, "-q shows no plan to say yes to", instead or "leave -q out, or give --yes")
    if not _is_agreed(question, severe):
        raise RefusedError(undone, "it was not confirmed", instead)


def _is_agreed(question: str, severe: str) -> bool:
    """Return whether the user agreed; the end of the input is a no."""
    try:
        if not severe:
            return click.confirm(question, err=True)
        typed = click.prompt(f"{question} Type {severe} to go on", default="", show_default=False, err=True)
    except click.Abort as end:
        if not isinstance(end.__context__, EOFError):
            raise
        end_question()
        return False
    return bool(typed.strip() == severe)


NAMES_SHOWN = 8
"""Names of directories in one line."""
MOST_TABLES_BY_YES = 20
"""The most tables for which a `y` is enough."""


def to_be_typed(locations: Iterable[str], *, is_for_good: bool = False) -> str:
    """Return what the user must type if a `y` is not enough; empty if it is.

    An action on many tables asks for their number; an action that cannot be undone also asks for the name of a
    single table.
    """
    tables = dict.fromkeys(map(folder_of_table, locations))
    if len(tables) > MOST_TABLES_BY_YES or (is_for_good and len(tables) > 1):
        return str(len(tables))
    return printable(base_name(next(iter(tables)))) if tables and is_for_good else ""


_PLANS = frozenset({Result.PLANNED, Result.IN_TRASH})


class VerbScreen(Outcomes):
    """Shows outcomes as they come, and asks before changes.

    Args:
        output: table, json or jsonl.
        yes: do not ask.
        is_plan: the command only plans.
        text_of, counts_of: as for :class:`~acidctl.cli.report.outcomes.Outcomes`.
    """

    def __init__(
        self,
        output: str,
        run: RunReport,
        text_of: Callable[[Outcome], str],
        counts_of: Callable[[Outcome], Mapping[str, int]] | None,
        *,
        yes: bool = False,
        is_plan: bool = False,
    ) -> None:
        super().__init__(output, run, text_of, counts_of)
        self._yes, self.is_plan = yes, is_plan
        self.can_ask, self.shows_plans = can_ask(), not yes

    def show(self, outcomes: Iterable[Outcome]) -> int:
        """Show what a verb yields, and return the exit status."""
        for outcome in outcomes:
            self.put(outcome, is_last=self.is_plan or outcome.result not in _PLANS)
        self.end()
        return self.status

    def end(self) -> None:
        """Print the totals; a subclass may override it."""

    def plans_are_shown(self) -> None:
        """Print what stands between the plans and the question; a subclass may override it."""

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
