"""What `acidctl nightly` does and says: plan, ask where it must, and carry out part by part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import closing, nullcontext
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import click

from acidctl.cleaning.apply import How
from acidctl.cleaning.outcomes import InTrash
from acidctl.cli.config.policy_tables import policies_of
from acidctl.cli.maintain.work.compact import end_of_work, open_engine, writing_of
from acidctl.cli.options.engine_choice import EngineChoice
from acidctl.cli.options.many_locations import Procedure
from acidctl.cli.options.param_types import DailyWindow
from acidctl.cli.options.shared import restore_line
from acidctl.cli.output.console import note, warn
from acidctl.cli.report.asking import to_be_typed
from acidctl.cli.report.clean_screen import cleaning_counts, cleaning_kind, cleaning_text
from acidctl.cli.report.compaction_text import compaction_counts, compaction_kind, compaction_text
from acidctl.cli.report.folding import MANY, folder_of_table
from acidctl.cli.report.outcomes import Outcomes
from acidctl.cli.report.run_report import RunReport
from acidctl.cli.report.trash_screen import MOST_NOTES, trash_counts
from acidctl.compaction.request import Answer, CompactionRequest
from acidctl.errors import AcidctlError, RefusedError
from acidctl.location.change.lock import Locking
from acidctl.location.find import find, once, refuse_unusable
from acidctl.location.lists import SnapshotLists
from acidctl.location.neighbours import Surroundings
from acidctl.night.memory import Memory, usual_folder
from acidctl.night.night import Night
from acidctl.night.order import NightRequest
from acidctl.night.policy import TablePolicy
from acidctl.night.step import NightPart, NightStep
from acidctl.outcome import Outcome, Result
from acidctl.parallel import Stop
from acidctl.wording import human_bytes, human_count, text_of

_AT_ONCE = 4
"""Locations that are cleaned, or purged, at a time: stores make one wait."""


def work(
    *,
    locations: tuple[str, ...],
    dry_run: bool,
    yes: bool,
    how: str,
    min_deltas: int | None,
    max_ratio: float | None,
    older_than: float,
    purge_older_than: float,
    leftovers: bool,
    window: DailyWindow | None,
    deadline: float | None,
    max_bytes: int | None,
    state: str | None,
    offline: bool,
    engine: EngineChoice,
    jobs: int | None,
    task_bytes: int | None,
    reader: str | None,
    verify: str,
    check_inputs: bool,
    compression: str | None,
    stripe_size: int | None,
    row_index_stride: int | None,
    bloom_filter: str | None,
    locking: Locking,
    exit_code: bool,
    lists: SnapshotLists,
    storage: dict[str, str],
    output: str,
    run: RunReport,
) -> int:
    """A night as asked; the exit status."""
    _refuse_untold(lists)
    engine.check("--jobs", jobs)
    usual = TablePolicy(None, None, min_deltas, max_ratio, older_than, purge_older_than)  # refuses what is not safe
    until, closed = end_of_work(window, deadline)
    lists.end_by(until)
    printer = NightPrinter(output, run)
    if closed and not dry_run:
        for place in locations:
            printer.postponed(str(place), closed)
        return printer.exit_status(exit_code)
    compaction = CompactionRequest(
        offline=offline,
        changes_nothing=dry_run,
        writing=writing_of(compression, stripe_size, row_index_stride, bloom_filter, task_bytes, verify, reader),
        locking=replace(locking, age=lists.age),
    )
    settings = click.get_current_context().find_root().meta.get("acidctl.settings") or {}
    request = NightRequest(
        compaction=compaction,
        policies=policies_of(settings).by_default(usual),
        leftovers=leftovers,
        how=How(how),
        max_bytes=max_bytes,
        until=until,
    )
    memory = Memory(Path(state) if state else usual_folder(), warn)
    procedure = Procedure(yes, locking, _AT_ONCE, Stop(until.at))
    with nullcontext() if dry_run else memory.alone(locking.wait):
        around = Surroundings()
        refuse_unusable(locations, storage, lists, surroundings=around)
        check = None
        if check_inputs:
            from acidctl.cli.maintain.work.check_inputs import sound  # noqa: PLC0415 - only for --check-inputs

            check = partial(sound, jobs=jobs, printer=printer)
        night = Night(request, lists, locations, storage=storage, memory=memory, each=procedure.each, check=check)
        printer.begins(night.id)
        places = once(find(locations, storage, lists, printer.observer, surroundings=around))
        taken = printer.changeable(places, None)
        printer.take(night.plan(taken, changes_nothing=dry_run, on_planned=printer.answered))
        looked = printer.looked_through(memory.looked)
        printer.tell_strangers()
        if dry_run or not yes:
            printer.preview(night, is_last=dry_run)
        printer.tell(len(night.due))
        if dry_run:
            printer.summary(locations, is_planned=True)
            return printer.status
        severe = to_be_typed(printer.to_do, is_for_good=how == "delete")
        procedure.confirm("a night's work is planned", "Do all of this?", "nothing was done", severe=severe)
        parts: tuple[Callable[[], object], ...] = (
            lambda: _compact(night, engine, jobs, printer),
            lambda: printer.take(night.clean()),
            lambda: printer.take(night.purge()),
        )
        for part in parts:
            try:
                part()
            except AcidctlError as error:  # of the engine, or of the metastore: the other parts may do without
                printer.failed("", error)
            printer.tell(MANY)  # a part that ended is told of as a whole
        memory.keep_looked(looked)
    printer.summary(locations)
    return printer.exit_status(exit_code)


def _refuse_untold(lists: SnapshotLists) -> None:
    if not lists.is_told:
        raise RefusedError(
            "nightly must be told which write ids are committed",
            "no list of Hive's was given, and no metastore is known",
            "give --metastore, --write-ids-from, or --assume-committed 1h if all that is older is committed",
        )


def _compact(night: Night, engine: EngineChoice, jobs: int | None, printer: NightPrinter) -> None:
    due = night.due
    if not due:
        return
    waiting = [one.waiting for one in due]
    with (
        open_engine(engine.in_queue_of(night.queues), jobs, night.until_cleaning, waiting) as (bar, running),
        closing(night.compact(running, bar.ended)) as steps,  # at once when interrupted: that removes what was staged
    ):
        printer.take(steps)


# --- what it says ---

_WORST_FIRST = (
    Result.FAILED, Result.STOPPED, Result.POSTPONED, Result.COMPACTED, Result.CLEANED, Result.PURGED, Result.PLANNED,
    Result.NOTHING_TO_DO, Result.SKIPPED,
)  # fmt: skip
_VERBS = {
    (NightPart.COMPACT, True): "compacted",
    (NightPart.CLEAN, True): "cleaned",
    (NightPart.PURGE, True): "purged",
    (NightPart.COMPACT, False): "to compact",
    (NightPart.CLEAN, False): "to clean",
    (NightPart.PURGE, False): "to purge",
}


class NightPrinter(Outcomes):
    """Steps of a night: what is done, planned, left or failed, a line each; of what is idle the count.

    Attributes:
        to_do: the tables of a plan that was shown.
    """

    def __init__(self, output: str, run: RunReport) -> None:
        super().__init__(output, run, _text_of, _counts_of)
        self._run_id = ""
        self._count: Counter[tuple[NightPart, bool]] = Counter()
        self._bytes: Counter[str] = Counter()
        self._steps: dict[str, dict[str, Any]] = {}
        self._result: dict[str, Result] = {}
        self._seconds: dict[str, float] = {}
        self._results_of: Counter[Result] = Counter()
        self.to_do: dict[str, None] = {}

    def begins(self, run_id: str) -> None:
        """A night has this id."""
        self._run_id = run_id
        self.run.facts["run"] = run_id

    def take(self, steps: Iterable[NightStep]) -> None:
        """Steps, as they are made."""
        for step in steps:
            self.step(step)

    def answered(self, answer: Answer) -> None:
        """What planning a compaction said of a location."""
        if answer.finished:
            note(f"{answer.location}: finished an interrupted compaction: {', '.join(answer.finished)}")
        if answer.snapshot:
            self.run.saw(answer.snapshot)
            self.remember(map(text_of, answer.snapshot.state.notes))

    def step(self, step: NightStep, *, is_last: bool = True) -> None:
        """One step."""
        if step.result is Result.PLANNED:
            self.to_do.setdefault(folder_of_table(step.location))
        if isinstance(step.of, Answer):
            self.answered(step.of)
        if not (self.is_table and step.result in (Result.NOTHING_TO_DO, Result.SKIPPED)):
            self.put(step, is_last=is_last)
        else:
            self._seen.add(step.result)
        if is_last:
            self._counted(step)
            self._reported(step)

    def preview(self, night: Night, *, is_last: bool) -> None:
        """The plan of the whole night; what a part would refuse is refused here, too."""
        for step in night.planned():
            self.step(step, is_last=is_last)
        for step in chain(night.clean(changes_nothing=True), night.purge(changes_nothing=True)):
            if is_last or step.result is Result.PLANNED:
                self.step(step, is_last=is_last)

    def kind_of(self, outcome: Outcome) -> str:
        if not isinstance(outcome, NightStep):
            return super().kind_of(outcome)
        kind = compaction_kind(outcome.of) or cleaning_kind(outcome.of) or super().kind_of(outcome)
        return f"{outcome.part.value}: {kind}"

    def summary(self, given: tuple[str, ...], *, is_planned: bool = False) -> None:
        """What became of the night; how it is undone."""
        done = [f"{self._count[part, not is_planned]} {_VERBS[part, not is_planned]}" for part in NightPart]
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
        note(f"night {self._run_id}: {', '.join([*done, *others])}{freed}")
        if self._bytes["removed"] and not is_planned and self.is_table:
            where = given if len(given) <= MOST_NOTES else ("LOCATION...",)
            note(f"undo the cleaning: {restore_line(self._run_id, where)}")

    def _counted(self, step: NightStep) -> None:
        is_done = step.result in (Result.COMPACTED, Result.CLEANED, Result.PURGED, Result.STOPPED)
        if is_done or step.result is Result.PLANNED:
            self._count[step.part, is_done] += 1
        if not is_done:
            self._results_of[step.result] += 1
        self._bytes.update(step.bytes_by_use())

    def _reported(self, step: NightStep) -> None:
        """One entry of the report holds all parts of a location."""
        if not self.run.is_wanted:
            return
        place = step.location
        worst = min(self._result.get(place, Result.SKIPPED), step.result, key=_WORST_FIRST.index)
        self._result[place] = worst
        said: dict[str, Any] = {"result": step.result.value, **step.of.reported()}
        if step.error:
            said |= {"error": step.error.code, "reason": str(step.error)}
        self._steps.setdefault(place, {})[step.part.value] = said
        self._seconds[place] = self._seconds.get(place, 0.0) + (step.seconds or 0.0)
        self.run.add(place, worst.value, seconds=self._seconds[place], parts=self._steps[place])


def _counts_of(outcome: Outcome) -> dict[str, int]:
    if not isinstance(outcome, NightStep):
        return {}
    return compaction_counts(outcome.of) or cleaning_counts(outcome.of) or trash_counts(outcome.of)


def _text_of(outcome: Outcome) -> str:
    if not isinstance(outcome, NightStep):
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
