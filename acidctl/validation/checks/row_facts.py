"""The facts about the rows of a file: plain values, sent from the process that read them, and added up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from acidctl.acid.layout import DataFile, Role
from acidctl.acid.names import NO_STATEMENT, Kind
from acidctl.rows.read.delete_set import Bools
from acidctl.rows.read.events import Ids
from acidctl.validation.checks.key_order import shown_event, shown_key
from acidctl.validation.checks.spans import Spans, united
from acidctl.validation.findings import DEEP, ERROR, Rule, Severity, Unchecked


@dataclass(slots=True)
class Tally:
    """The count of one violation in a file; the parts of a file are added up.

    Attributes:
        text: follows the count in messages.
        example: describes the first case, for people.
    """

    rule: Rule
    text: str
    count: int
    example: str
    severity: Severity | None = None


@dataclass(slots=True)
class RowFacts:
    """The facts about some stripes of one file.

    Attributes:
        first, last: the first and the last event.
        keys: number of rows whose ids are in `inserts`, which holds each id once.
        inserts: ids of rows; deletes: of delete events; changes: of updates and deletes of ACID v1.
        is_complete: the ids of every stripe were read.
    """

    rows: int = 0
    tallies: list[Tally] = field(default_factory=list)
    counts: tuple[int, int, int] = (0, 0, 0)
    first: Ids | None = None
    last: Ids | None = None
    keys: int = 0
    inserts: Spans = field(default_factory=dict)
    deletes: Spans = field(default_factory=dict)
    changes: Spans = field(default_factory=dict)
    is_complete: bool = True
    unchecked: list[Unchecked] = field(default_factory=list)


def tally_where(rule: Rule, text: str, where: Bools, events: Ids, severity: Severity | None = None) -> Iterator[Tally]:
    """Yield a tally of the events that a mask selects, if there are any."""
    if where.any():
        yield Tally(rule, text, int(np.count_nonzero(where)), shown_event(events, int(np.argmax(where))), severity)


def added_up(tallies: Iterable[Tally]) -> list[Tally]:
    """Merge tallies of one rule and text into one, with the first example."""
    sums: dict[tuple[Rule, str], Tally] = {}
    for tally in tallies:
        sums.setdefault((tally.rule, tally.text), replace(tally, count=0)).count += tally.count
    return list(sums.values())


Between = Callable[[Ids, Ids], Iterable[Tally]]
"""Returns the violations between an event and the one after it."""


def facts_of_file(parts: Sequence[RowFacts], between: Between) -> RowFacts:
    """Return the facts of a file from those of its parts, in order."""
    if len(parts) == 1:
        return parts[0]
    whole = RowFacts()
    tallies: list[Tally] = []
    for part in parts:
        if whole.last is not None and part.first is not None:
            tallies += between(whole.last, part.first)
        tallies += part.tallies
        whole.last = part.last or whole.last
        whole.unchecked += part.unchecked
    whole.tallies = added_up(tallies)
    whole.rows = sum(part.rows for part in parts)
    whole.keys = sum(part.keys for part in parts)
    inserts, updates, deletes = (sum(counts) for counts in zip(*(part.counts for part in parts), strict=True))
    whole.counts = inserts, updates, deletes
    whole.is_complete = all(part.is_complete for part in parts)
    whole.inserts = united([part.inserts for part in parts])
    whole.deletes = united([part.deletes for part in parts])
    whole.changes = united([part.changes for part in parts])
    return whole


V29 = Rule(
    "V29", ERROR, DEEP, "An event has a NULL or negative id, or the row ids of a new delta have gaps.",
    "A row without an id cannot be deleted or merged; gaps mean that rows were lost.",
    "Restore the file.", "4",
)  # fmt: skip


def gaps(file: DataFile, spans: Spans) -> Tally | None:
    """Return a tally of the gaps in the row ids of a new delta, which begin at 0 and ascend by 1 (rule V29)."""
    directory = file.directory
    fresh = (
        directory is not None
        and directory.kind is Kind.DELTA
        and directory.min_write_id == directory.max_write_id
        and directory.statement_id != NO_STATEMENT
        and not directory.visibility_txn
    )
    if not fresh or file.role is not Role.INSERT:
        return None
    holed = {group: runs for group, runs in sorted(spans.items()) if len(runs[0]) > 1 or runs[0][0] != 0}
    if not holed:
        return None
    (original, bucket), (first, last) = next(iter(holed.items()))
    missing = sum(int(f[0]) + int((f[1:] - e[:-1] - 1).sum()) for f, e in holed.values())
    hole = 0 if first[0] else int(last[0]) + 1
    text = "a row id is missing between 0 and the last"
    return Tally(V29, text, missing, shown_key((original, bucket, hole)), Severity.WARNING)
