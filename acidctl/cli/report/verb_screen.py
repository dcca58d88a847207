"""The outcomes of any verb: on the screen, folded if they are many, or as records; questions, remarks and totals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING

import click

from acidctl.base.errors import AcidctlError, DeadlineError, ExitStatus, RefusedError
from acidctl.base.printable import printable
from acidctl.cleaning.freeable import Freeable, freeable_together
from acidctl.cli.output.command_lines import line_for
from acidctl.cli.output.console import Records, can_ask, end_question, note, put_text, warn
from acidctl.cli.output.progress import progress
from acidctl.cli.output.screen import Column, Layout, print_table
from acidctl.cli.output.terminal import VERBOSITY
from acidctl.cli.report.folding import HANDFUL, Totals, folder_of_table, put_folded, put_idle
from acidctl.cli.report.outcomes import RunReporter, show_failure
from acidctl.outcome import Outcome, Result
from acidctl.storage.port import base_name
from acidctl.wording import human_bytes, human_count, names_in_short, some_of, text_of

if TYPE_CHECKING:
    from acidctl.acid.reasons import Reason
    from acidctl.cli.report.run_figures import RunFigures
    from acidctl.location.evidence import Evidence
    from acidctl.location.snapshot import Snapshot
    from acidctl.location.table_location import TableLocation
    from acidctl.verbs.events import Progress, Question

NAMES_SHOWN = 8
"""Names of directories in one line."""
_NAMED, _REMARKS, _GIVEN = 20, 20, 3
"""The most locations that are named because they failed, notes on single locations, and places in a command line."""
_MOST_TABLES_BY_YES = 20
"""The most tables for which a `y` is enough."""
_CSV_COLUMNS = ("location", "part", "result", "run", "kind", "bytes", "error", "reason")
_IDLE = frozenset({Result.NOTHING_TO_DO, Result.POSTPONED, Result.SKIPPED})


@dataclass(slots=True)
class _Gathered:
    """Outcomes that are printed together: a handful line by line, more of them as totals."""

    first: list[Outcome] = field(default_factory=list)
    totals: Totals | None = None


class Screen(RunReporter):
    """Shows the outcomes of a verb as they come, asks before changes, and sums up.

    More than a handful of locations with the same result are folded into a line for each table; `-v` shows all.

    Args:
        output: table, json, jsonl, or csv for the most important values of each record.
        yes: do not ask.
        is_plan: the command changes nothing.
        exit_code: no work and postponed work have exit statuses of their own.
        given: the places on the command line; empty if only a file was named.
        nothing: the note if there was nothing at all.

    Attributes:
        shows_next: name the commands that come next; False if the verb goes on itself.
    """

    run: RunFigures
    shows_next = True

    def __init__(
        self,
        output: str,
        run: RunFigures,
        *,
        yes: bool = False,
        is_plan: bool = False,
        exit_code: bool = False,
        given: Sequence[str] = (),
        nothing: str = "",
    ) -> None:
        super().__init__(run)
        self.is_table, self._is_csv = output == "table", output == "csv"
        self.shows_plans = not yes
        self._yes, self._is_plan, self._exit_code, self._nothing = yes, is_plan, exit_code, nothing
        self._given = given
        self._records = Records(output, _CSV_COLUMNS)
        self._gathers = self._folds = not VERBOSITY.is_verbose
        click.get_current_context().call_on_close(self._before_end)  # also when the run fails or is interrupted
        self._gathered: dict[tuple[Result, str], _Gathered] = {}
        self._kept = KeptBack()
        self._remarked: dict[str, None] = {}
        self._next: dict[tuple[str, tuple[str, ...]], list[tuple[str, str]]] = {}
        self._title = ""
        self._counts: Counter[str] = Counter()
        self._bytes: Counter[str] = Counter()
        self._locations: set[str] = set()
        self._unsuccessful: dict[str, list[str]] = {"failed": [], "left for later": []}
        self._seen: set[Result] = set()
        self._refused = 0  # the status of what stays as it is, which hides no failure of another location

    def show(self, outcomes: Iterable[Outcome]) -> int:
        """Show what a verb yields, and return the exit status."""
        for outcome in outcomes:
            self.put(outcome, is_last=self._is_plan or outcome.result is not Result.PLANNED)
        self._records.put_header()
        self._before_end()
        if self._nothing and not self._seen and self.is_whole:
            note(self._nothing)
        if self.is_table:
            self._put_next_commands()
        self._sum_up()
        if self.status in (0, ExitStatus.NOT_LOOKED_AT):
            self.raise_status(self._refused)
        if self.status or not self._exit_code or (self._is_plan and Result.PLANNED in self._seen):
            return self.status
        if self._unsuccessful["left for later"]:
            return ExitStatus.POSTPONED
        return 0 if self._seen - {Result.NOTHING_TO_DO, Result.SKIPPED} else ExitStatus.NOTHING_TO_DO

    def put(self, outcome: Outcome, *, is_last: bool = True) -> None:
        """Show the outcome of a location.

        Args:
            is_last: False for a plan that will be carried out: only people see it.
        """
        self._kept.add(outcome)
        if outcome.error:
            self.raise_status(outcome.exit_status)
        else:
            self._refused = max(self._refused, outcome.exit_status)
        if is_last:
            self._count(outcome)
            self.run.take(outcome)
        if self.is_table:
            if self._gathers and (outcome.result in _IDLE or outcome.amounts()):
                self._gather(outcome)
            else:
                _show(outcome)
        elif is_last:
            record = outcome.record()
            run = record.get("run") or record.get("trashRun") or record.get("repairRun")
            self._records.put(record if not self._is_csv else {**dict.fromkeys(_CSV_COLUMNS), **record, "run": run})
        self._remark(outcome)
        if outcome.error:
            self.tell_notes()  # what was assumed may explain it
            show_failure(outcome.location, outcome.error)
        if self.shows_next and (after := outcome.next_command()):
            places = self._next.setdefault((after.purpose, after.words), [])
            places.append((outcome.location, after.hive_name))

    def _count(self, outcome: Outcome) -> None:
        self._seen.add(outcome.result)
        is_planned = outcome.part and outcome.result is Result.PLANNED
        self._counts[f"to {outcome.part}" if is_planned else outcome.result.words] += 1
        self._bytes.update(outcome.bytes_by_use())
        self._locations.add(outcome.location)
        if outcome.location and outcome.error:
            self._unsuccessful["failed"].append(outcome.location)
        elif outcome.is_unfinished:
            self._unsuccessful["left for later"].append(outcome.location)

    def _gather(self, outcome: Outcome) -> None:
        """Keep a handful of outcomes for :meth:`tell`; of more only the totals, as plans hold large listings."""
        if not outcome.line():
            return
        heading = outcome.heading
        if heading == Result.PLANNED.words:
            heading = f"to {click.get_current_context().info_name}"
        together = self._gathered.setdefault((outcome.result, heading), _Gathered())
        together.first.append(outcome)
        if together.totals is None and len(together.first) > HANDFUL:
            together.totals = Totals()
        if together.totals is not None:
            for each in together.first:
                together.totals.add(each.location, each.amounts(), each.code)
            together.first.clear()

    def tell(self, coming: int | None = None) -> None:
        """Print what was gathered: a line for each location, or for more than a handful a line for each table.

        Args:
            coming: the number of outcomes that follow; up to a handful are printed as they come.
        """
        gathered, self._gathered = self._gathered, {}
        for (result, heading), together in gathered.items():
            if together.totals is None:
                for outcome in together.first:
                    _show(outcome)
            elif result in _IDLE:
                put_idle(heading, together.totals.codes)
            else:
                put_folded(heading, together.totals)
        if coming is not None:
            self._gathers = self._folds and coming > HANDFUL

    def _remark(self, outcome: Outcome) -> None:
        """Print remarks that were not printed yet; of notes only the first ones."""
        for remark in outcome.remarks():
            if remark.text in self._remarked:
                continue
            self._remarked[remark.text] = None
            if remark.is_warning:
                warn(remark.text)
            elif len(self._remarked) <= _REMARKS or VERBOSITY.is_verbose:
                note(remark.text)

    def _before_end(self) -> None:
        """Print what stands between the plans and the question, or at the end."""
        self.tell()
        self._kept.tell()
        self.tell_notes()
        self.tell_strangers()

    def _put_next_commands(self) -> None:
        # Runs on the same location are undone from the newest back.
        for (purpose, words), places in reversed(self._next.items()):
            given = self._given
            if len(places) == 1:
                given = tuple(location for location, _ in places)
            if not 0 < len(given) <= _GIVEN:
                given = ("LOCATION...",)
            note(f"{purpose}: {line_for(words, given, places[0][1] if len(places) == 1 else '')}")

    def _sum_up(self) -> None:
        """Print the totals of all locations, and name those that failed or were postponed."""
        is_idle = self._seen <= {Result.NOTHING_TO_DO, Result.SKIPPED}
        if not self._title and (self._is_plan or is_idle or len(self._locations) < 2):
            return
        counts = [f"{self._counts[words]:,} {words}" for words in self._counts if words != Result.NOTHING_TO_DO.words]
        uses = {use: human_bytes(size) for use, size in self._bytes.items() if size}
        sizes = [f"{size} {use}" for use, size in uses.items()] if len(uses) > 1 else list(uses.values())
        whole = f"{self._title}{human_count(len(self._locations), 'location')}"
        more = f" ({', '.join(sizes)})" if sizes else ""
        note(f"{whole}: {', '.join(counts) or 'nothing to do'}{more}")
        for what, names in self._unsuccessful.items():
            if names:
                warn(f"{what}: {some_of(names, _NAMED)}", is_failure=what == "failed")

    @property
    def is_whole(self) -> bool:
        """Whether nothing has failed or was postponed so far."""
        return not (self.status or self._unsuccessful["left for later"])

    # --- events of a verb ---

    def begins(self, run_id: str) -> None:
        """Take the id of the nightly run that begins."""
        self._title = f"run {run_id}: "

    def failed(self, location: str, error: AcidctlError) -> None:
        if isinstance(error, DeadlineError) and not location:  # nobody knows what is left for another run
            super().failed(location, error)
            return
        self.put(Outcome(location=location, result=Result.FAILED, error=error))

    def skipped(self, found: TableLocation, evidence: Evidence) -> None:
        super().skipped(found, evidence)
        self.put(Outcome(location=found.shown, result=Result.SKIPPED, reasons=(evidence.reason,)))

    def confirm(self, question: Question) -> None:
        self.tell(len(question.locations))
        self._before_end()
        severe = to_be_typed(question.locations, is_for_good=question.is_for_good)
        confirm(question.what, question.text, question.undone, yes=self._yes, severe=severe)

    @contextmanager
    def progress(
        self, doing: str, total: int, *, is_bytes: bool = False, coming: int | None = None
    ) -> Iterator[Progress]:
        self.tell(total if coming is None else coming)
        self.tell_notes()
        with progress(doing, total, is_bytes=is_bytes) as bar:
            yield bar

    def saw(self, snapshot: Snapshot) -> None:
        self.run.saw(snapshot)
        self.remember(map(text_of, snapshot.state.notes))


def _show(outcome: Outcome) -> None:
    """Print the line of an outcome, and the table below it."""
    if line := outcome.line():
        put_text(line)
    if details := outcome.details(every=VERBOSITY.is_verbose):
        *names, remark = details.columns
        numbers = ("size", "entries")
        columns = tuple(Column(name, itemgetter(i), right=name in numbers) for i, name in enumerate(names))
        print_table(Layout(columns, remark, itemgetter(-1)), details.rows)
        if details.is_folded:
            note("-v names every entry")


class KeptBack:
    """Gathers what stays: a handful of locations are printed one by one, more of them one line for each reason."""

    def __init__(self) -> None:
        self._first: dict[str, list[tuple[str, Reason]]] = {}
        self._by_code: dict[str, tuple[str, Counter[str]]] = {}
        self._young = Freeable()

    def add(self, outcome: Outcome) -> None:
        """Take what an outcome keeps; with `-v` it is printed at once."""
        kept = list(outcome.kept())
        if VERBOSITY.is_verbose:
            _tell_kept(outcome.location, kept)
            return
        if kept and len(self._first) <= HANDFUL:
            self._first[outcome.location] = kept
        self._young = freeable_together((self._young, Freeable(0, *outcome.waiting())))
        for _, why in kept:
            example = f"as in {outcome.location}: {text_of(why)}" if why.code not in self._by_code else ""
            self._by_code.setdefault(why.code, (example, Counter()))[1][outcome.location] += 1

    def tell(self) -> None:
        """Print what was gathered."""
        if len(self._first) <= HANDFUL:
            for location, kept in self._first.items():
                _tell_kept(location, kept)
        else:
            for example, entries in self._by_code.values():
                count = human_count(entries.total(), "entry", "entries")
                note(f"kept back: {count} in {human_count(len(entries), 'location')}, {example}")
            if self._young.later:
                note(f"together {self._young.text}")
        self._first, self._by_code, self._young = {}, {}, Freeable()


def _tell_kept(location: str, kept: Sequence[tuple[str, Reason]]) -> None:
    by_reason: dict[str, list[str]] = {}
    for name, why in kept:
        by_reason.setdefault(text_of(why), []).append(name)
    for text, names in by_reason.items():
        named = ", ".join(names) if VERBOSITY.is_verbose or len(names) <= NAMES_SHOWN else names_in_short(names)
        note(f"{location}: kept back: {named}: {text}")


def confirm(what: str, question: str, undone: str, *, yes: bool, severe: str = "") -> None:
    """Ask for confirmation unless `yes` is set.

    Args:
        what: the action, for the error message.
        undone: the first line of the error after a no.
        severe: the text that the user must type if a `y` is not enough: see :func:`to_be_typed`.

    Raises:
        RefusedError: the answer was no, or nobody can answer.
    """
    if yes:
        return
    if not can_ask():
        raise RefusedError(what, "nobody can be asked without a terminal", "look at the plan, then give --yes")
    if VERBOSITY.is_quiet:
        raise RefusedError(what, "-q shows no plan to say yes to", "leave -q out, or give --yes")
    if not _is_agreed(question, severe):
        raise RefusedError(undone, "it was not confirmed", "")


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


def to_be_typed(locations: Iterable[str], *, is_for_good: bool = False) -> str:
    """Return what the user must type if a `y` is not enough; empty if it is.

    An action on many tables asks for their number; an action that cannot be undone also asks for the name of a
    single table.
    """
    tables = dict.fromkeys(map(folder_of_table, locations))
    if len(tables) > _MOST_TABLES_BY_YES or (is_for_good and len(tables) > 1):
        return str(len(tables))
    return printable(base_name(next(iter(tables)))) if tables and is_for_good else ""
