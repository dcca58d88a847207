"""Erase rows: delete them, compact, clean, purge, and prove that no file holds one any more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from acidctl.base.errors import ExitStatus, UsageProblem
from acidctl.cleaning.retention import Policy
from acidctl.erasure.report import ErasureReport, TableErasure
from acidctl.erasure.steps import Remedy
from acidctl.outcome import Outcome, Result
from acidctl.verbs.clean import clean
from acidctl.verbs.compact import compact
from acidctl.verbs.compact_options import CompactOptions
from acidctl.verbs.events import Events, Question
from acidctl.verbs.maintain_options import CleanOptions, PurgeOptions
from acidctl.verbs.purge import purge
from acidctl.verbs.reading.erasure import ErasureOptions, erasure
from acidctl.verbs.selection import Selection
from acidctl.verbs.writing.options import DeleteOptions, EraseOptions
from acidctl.verbs.writing.statements import delete, held_keys, require_table, table_of
from acidctl.wording import human_count, some_of
from acidctl.writing.rows.key_filter import KeyFilter
from acidctl.writing.rows.sources import RowSource
from acidctl.writing.targets import condition_of

if TYPE_CHECKING:
    from acidctl.erasure.search import MakeCondition

_TEXTS = {
    Remedy.DELETE: "delete the rows that readers see",
    Remedy.DECIDE: "wait for open transactions",
    Remedy.WRITE: "write any row, since one directory alone is not compacted",
    Remedy.COMPACT: "compact",
    Remedy.CLEAN: "delete what the compaction replaces",
    Remedy.CLEAN_LEFTOVERS: "delete stale staging files",
    Remedy.PURGE: "purge the trash and the backups",
    Remedy.EMPTY_HDFS_TRASH: "empty the trash of HDFS by hand",
    Remedy.REMOVE: "remove unknown files by hand",
    Remedy.LOOK: "check files that cannot be read",
}


@dataclass(frozen=True, kw_only=True)
class Erased(Outcome):
    """The files that hold matching rows, before an erasure or after it.

    Attributes:
        table: the result of the search.
    """

    table: TableErasure

    @property
    def exit_status(self) -> int:
        if self.result is Result.PLANNED:
            return ExitStatus.DONE
        if self.table.events:
            return ExitStatus.FINDINGS
        return ExitStatus.DONE if self.table.is_known else ExitStatus.UNCHECKED

    def line(self) -> str:
        reports = self.table.reports
        events = human_count(self.table.events, "event")
        files = human_count(sum(len(report.files) for report in reports), "file")
        if self.result is Result.PLANNED:
            return f"{self.location}: {events} in {files} searched: {_plan(reports)}"
        if self.table.events:
            held = [holder.name for report in reports for holder in report.holdings]
            when = "run it again when readers of the old files have ended (--older-than)"
            return f"{self.location}: {events} left in {some_of(held, 4)}; {when}"
        is_known = self.table.is_known
        proof = "no file holds such a row" if is_known else "no such row was found, but not all files could be read"
        return f"{self.location}: {proof}: {files} read whole"

    def facts(self) -> Mapping[str, Any]:
        return {
            "verb": "erase",
            "events": self.table.events,
            "isKnown": self.table.is_known,
            "steps": [remedy.value for remedy in Remedy if remedy in _remedies(self.table.reports)],
            "files": [file.record for report in self.table.reports for file in report.files],
        }


class _Agreed(Events):
    """Passes on the events of one step, and agrees to its questions: the user has confirmed the whole erasure."""

    def __init__(self, outer: Events) -> None:
        super().__init__()
        for name in ("note", "warn", "line_for", "failed", "skipped", "progress"):  # the coverage is that of the step
            setattr(self, name, getattr(outer, name))


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows to erase: those that meet a condition, or have one of some keys."""

    where: str | None = None
    keys: pa.Table | None = None
    condition: MakeCondition | None = None

    @classmethod
    def of(cls, selection: Selection, options: EraseOptions, events: Events, keys: RowSource | None) -> _Rows:
        _, table = table_of(selection)
        if keys is None:
            condition_of(table, options.where or "")  # what a delete refuses, before any file is searched
            return cls(options.where)
        held = held_keys(keys, table, options, events)
        return cls(None, held, KeyFilter.of(table, held).bound_to)


def erase(
    selection: Selection, options: EraseOptions, events: Events, keys: RowSource | None = None
) -> Iterator[Outcome]:
    """Yield the plan, then the outcome of every step, and last the result of searching all files again.

    The same call continues after an interruption, or after the retention has passed: completed steps are not repeated.

    Args:
        keys: the keys of the rows, all held in memory; without them the condition in `options` selects the rows.

    Raises:
        UsageProblem: the location is not one table of a metastore, or the table lacks a column of the condition.
        BadDataError: a key does not fit its column exactly.
        RefusedError: the erasure was not confirmed, or a step was refused.
    """
    shown = require_table(selection)
    if keys is None and options.where is None:
        raise UsageProblem("no rows are selected", "", "give --where or --keys")
    if not (options.dry_run or options.unsafe_retention):
        Policy(options.older_than).require_safe()  # before any step, and not only before the cleaning
    rows = _Rows.of(selection, options, events, keys)
    before = _search(selection, rows, events, prove=False)
    yield Erased(location=shown, result=Result.PLANNED, table=before)
    if options.dry_run:
        return
    if _remedies(before.reports):
        plan = _plan(before.reports)
        text = f"Erase permanently: {plan}?"
        events.confirm(Question(f"{shown}: {plan}", text, "nothing was erased", (shown,), is_for_good=True))
        yield from _carried_out(selection, options, rows, _Agreed(events), before.reports)
    with events.progress("searching every file", 1) as bar:
        after = _search(_refreshed(selection), rows, events, prove=True)
        bar.advance()
    is_erased = after.is_known and not after.events
    yield Erased(location=shown, result=Result.ERASED if is_erased else Result.POSTPONED, table=after)


def _carried_out(
    selection: Selection, options: EraseOptions, rows: _Rows, events: Events, reports: Sequence[ErasureReport]
) -> Iterator[Outcome]:
    wanted = _remedies(reports)
    if Remedy.DELETE in wanted:
        yield from delete(selection, DeleteOptions(where=rows.where, wait=options.wait), events, rows.keys)
    if names := _named(reports, Remedy.COMPACT):
        compaction = CompactOptions(major=True, tasks=options.tasks)
        yield from _results(compact(replace(_refreshed(selection), places=names), compaction, events))
    cleaning = CleanOptions(
        older_than=options.older_than,
        unsafe_retention=options.unsafe_retention,
        no_trash=True,
        leftovers=Remedy.CLEAN_LEFTOVERS in wanted,
    )
    if names := _named(reports, Remedy.COMPACT, Remedy.CLEAN, Remedy.CLEAN_LEFTOVERS):
        yield from _results(clean(replace(_refreshed(selection), places=names), cleaning, events))
    if Remedy.PURGE in wanted:
        paths = tuple(report.path for report in reports if Remedy.PURGE in _remedies([report]))
        yield from _results(purge(replace(_refreshed(selection), places=paths), PurgeOptions(), events))


def _named(reports: Sequence[ErasureReport], *remedies: Remedy) -> tuple[str, ...]:
    """Return the names of the locations that need at least one of some steps."""
    return tuple(
        report.hive_name for report in reports if report.hive_name and not _remedies([report]).isdisjoint(remedies)
    )


def _remedies(reports: Sequence[ErasureReport]) -> set[Remedy]:
    """Return the remaining steps; files that this command cleans skip the trash, and need no purge."""
    steps = (step for report in reports for step in report.steps)
    return {step.remedy for step in steps if step.names or step.remedy is not Remedy.PURGE}


def _search(selection: Selection, rows: _Rows, events: Events, *, prove: bool) -> TableErasure:
    reports: list[ErasureReport] = []
    searched = erasure(selection, ErasureOptions(where=rows.where or "", prove=prove), _Agreed(events), rows.condition)
    for table in searched:
        if table.lacks:
            columns = events.line_for(("cat", "--limit", "1"), selection.places)
            raise UsageProblem(f"cannot search {table.table}", table.lacks, f"see the columns: `{columns}`")
        reports += table.reports
    return TableErasure(selection.places[0], reports=tuple(reports))


def _results(outcomes: Iterable[Outcome]) -> Iterator[Outcome]:
    """Leave out plans, which were confirmed as a whole."""
    return (outcome for outcome in outcomes if outcome.result is not Result.PLANNED)


def _refreshed(selection: Selection) -> Selection:
    return replace(selection, resolver=selection.resolver.refreshed())


def _plan(reports: Sequence[ErasureReport]) -> str:
    """Return the steps in words, in their order."""
    remedies = _remedies(reports)
    words = [_TEXTS[remedy] for remedy in Remedy if remedy in remedies]
    return ", ".join(words) or "nothing to erase"
