"""The facts about the rows of a file: plain values, sent from the process that read them, and added up.

Row ids are runs: the first and the last id of each run for every (originalTransaction, bucket), sorted and apart.
Insert files hold few long runs, so that duplicates and dangling deletes of large tables are found in little memory;
keys that do not follow each other take 16 bytes each.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from acidctl.acid.layout import DataFile, Role
from acidctl.acid.names import NO_STATEMENT, Kind
from acidctl.rows.read.delete_set import Bools, Keys, Longs
from acidctl.rows.read.events import ID_COLUMNS, Ids
from acidctl.validation.findings import DEEP, ERROR, INFO, WARNING, Finding, Rule, Severity, Unchecked

Group = tuple[int, int]
"""originalTransaction and encoded bucket."""

Spans = dict[Group, tuple[Longs, Longs]]
"""First and last row ids of the runs of each group."""


class SpanBuilder:
    """Collects keys in any order, a stripe at a time."""

    def __init__(self) -> None:
        self._parts: dict[Group, list[tuple[Longs, Longs]]] = {}

    def add(self, keys: Keys) -> None:
        """Add keys."""
        if not len(keys):
            return
        original, bucket, row = keys.original, keys.bucket, keys.row_id
        breaks = (original[1:] != original[:-1]) | (bucket[1:] != bucket[:-1]) | (row[1:] != row[:-1] + 1)
        starts = np.concatenate([[0], np.flatnonzero(breaks) + 1])
        ends = np.concatenate([starts[1:], [len(row)]]) - 1
        first, last = row[starts], row[ends]
        for low, high in keys.take(starts).runs():
            group = int(original[starts[low]]), int(bucket[starts[low]])
            self._parts.setdefault(group, []).append((first[low:high], last[low:high]))

    def build(self) -> Spans:
        """Return the runs and empty the builder."""
        spans: Spans = {}
        while self._parts:
            group, parts = self._parts.popitem()
            spans[group] = _joined(parts)
        return spans


def one_run(group: Group, first: int, last: int) -> Spans:
    """Return the runs of a file whose row ids follow each other."""
    return {group: (np.array([first], np.int64), np.array([last], np.int64))}


def _joined(parts: Sequence[tuple[Longs, Longs]]) -> tuple[Longs, Longs]:
    """Merge runs that overlap or touch."""
    first = parts[0][0] if len(parts) == 1 else np.concatenate([part[0] for part in parts])
    last = parts[0][1] if len(parts) == 1 else np.concatenate([part[1] for part in parts])
    if len(first) == 1:
        return first.copy(), last.copy()
    if not (first[1:] >= first[:-1]).all():
        order = np.argsort(first, kind="stable")
        first, last = first[order], last[order]
    reach = np.maximum.accumulate(last)
    starts = np.concatenate([[0], np.flatnonzero(first[1:] > reach[:-1] + 1) + 1])
    ends = np.concatenate([starts[1:], [len(first)]]) - 1
    return first[starts], reach[ends]


def united(many: Sequence[Spans]) -> Spans:
    """Return every key that is in any of them."""
    parts: dict[Group, list[tuple[Longs, Longs]]] = {}
    for spans in many:
        for group, runs in spans.items():
            parts.setdefault(group, []).append(runs)
    return {group: runs[0] if len(runs) == 1 else _joined(runs) for group, runs in parts.items()}


@dataclass(slots=True)
class Shared:
    """The keys that two files have in common.

    Attributes:
        first, second: positions of the files.
        count: number of common keys.
    """

    first: int
    second: int
    count: int = 0
    example: tuple[int, int, int] = (0, 0, 0)


def shared(files: Sequence[Spans]) -> list[Shared]:
    """Return the pairs of files with common keys; a key in three files is in at least two pairs."""
    holders: dict[Group, list[int]] = {}
    for index, spans in enumerate(files):
        for group in spans:
            holders.setdefault(group, []).append(index)
    pairs: dict[tuple[int, int], Shared] = {}
    for group, listed in holders.items():
        if len(listed) > 1:
            _shared_of_group(group, listed, files, pairs)
    return [pairs[pair] for pair in sorted(pairs)]


def _shared_of_group(
    group: Group, listed: Sequence[int], files: Sequence[Spans], pairs: dict[tuple[int, int], Shared]
) -> None:
    first = np.concatenate([files[index][group][0] for index in listed])
    last = np.concatenate([files[index][group][1] for index in listed])
    owner = np.concatenate([np.full(len(files[index][group][0]), index) for index in listed])
    order = np.lexsort((last, first))
    first, last, owner = first[order], last[order], owner[order]
    reach = np.maximum.accumulate(last)
    hits = np.flatnonzero(first[1:] <= reach[:-1]) + 1
    if not len(hits):
        return
    # Runs of one file lie apart, so a run that reaches into another one belongs to another file.
    position = np.arange(len(last))
    holder = owner[np.maximum.accumulate(np.where(last == reach, position, 0))]
    counts = np.minimum(last[hits], reach[hits - 1]) - first[hits] + 1
    couples = np.stack([holder[hits - 1], owner[hits]])
    couples.sort(axis=0)
    for couple in map(tuple, np.unique(couples, axis=1).T.tolist()):
        is_theirs = (couples[0] == couple[0]) & (couples[1] == couple[1])
        pair = pairs.setdefault(couple, Shared(*couple))
        if not pair.count:
            pair.example = (*group, int(first[hits[np.flatnonzero(is_theirs)[0]]]))
        pair.count += int(counts[is_theirs].sum())


def uncovered(wanted: Spans, there: Spans) -> Iterator[tuple[Group, int, int]]:
    """Yield (group, number of keys of `wanted` that are not in `there`, the row id of one of them)."""
    for group, (first, last) in wanted.items():
        runs = there.get(group)
        if runs is None:
            yield group, int((last - first + 1).sum()), int(first[0])
            continue
        covered = _count_up_to(runs, last) - _count_up_to(runs, first - 1)
        short = (last - first + 1) - covered
        incomplete = np.flatnonzero(short)
        if len(incomplete):
            yield group, int(short.sum()), _first_gap(runs, int(first[incomplete[0]]))


def _count_up_to(runs: tuple[Longs, Longs], ids: Longs) -> Longs:
    """Return for each of `ids` how many ids of the runs are at most as large."""
    first, last = runs
    before = np.concatenate([[0], np.cumsum(last - first + 1)])
    position = np.searchsorted(first, ids, "right")
    inside = np.maximum(position - 1, 0)
    counts: Longs = before[position] - np.where(position > 0, np.maximum(last[inside] - ids, 0), 0)
    return counts


def _first_gap(runs: tuple[Longs, Longs], row_id: int) -> int:
    """Return the least id from `row_id` on that is in no run."""
    first, last = runs
    at = int(np.searchsorted(first, row_id, "right")) - 1
    return int(last[at]) + 1 if at >= 0 and last[at] >= row_id else row_id


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


# --- the ids of a stripe: unlike a reader's, they may be NULL, and need not be in order ------------------------------


@dataclass(frozen=True, slots=True)
class Bounds:
    """The least and the greatest value of each column, which settle most rules."""

    operation: tuple[int, int]
    original: tuple[int, int]
    bucket: tuple[int, int]
    row_id: tuple[int, int]
    current: tuple[int, int]

    @staticmethod
    def of(events: Ids) -> Bounds:
        """Return the bounds of some events, at least one."""
        keys = events.keys
        columns = (events.operation, keys.original, keys.bucket, keys.row_id, events.current)
        return Bounds(*((int(column.min()), int(column.max())) for column in columns))


def shown_key(key: Sequence[int]) -> str:
    """Format a key for people."""
    return f"({key[0]}, {key[1]}, {key[2]})"


def shown_event(events: Ids, index: int) -> str:
    """Format one event for people."""
    key = shown_key((events.keys.original[index], events.keys.bucket[index], events.keys.row_id[index]))
    return f"{key}, operation {int(events.operation[index])}, currentTransaction {int(events.current[index])}"


def whole_events(batch: pa.RecordBatch) -> tuple[Ids | None, Bools | None]:
    """Return the events that have all ids, and a mask of them in the batch; None if it would select all.

    Without columns of integers there are no events: the check of the footer reports that.
    """
    columns = [batch.column(name) for name in ID_COLUMNS]
    if any(not pa.types.is_integer(column.type) for column in columns):
        return None, None
    there: Bools | None = None
    if any(column.null_count for column in columns):
        there = np.logical_and.reduce([column.is_valid().to_numpy(zero_copy_only=False) for column in columns])
        columns = [column.filter(pa.array(there)) for column in columns]
    operation, original, bucket, row_id, current = (
        np.asarray(column.to_numpy(zero_copy_only=False)).astype(np.int64, copy=False) for column in columns
    )
    return Ids(operation, Keys(original, bucket, row_id), current), there


def compare(before: Keys, after: Keys) -> tuple[Bools, Bools]:
    """Return masks of the keys that equal the one before, and of those that are less."""
    tied: Bools = after.original == before.original
    down: Bools = after.original < before.original
    for now, then in ((after.bucket, before.bucket), (after.row_id, before.row_id)):
        down |= tied & (now < then)
        tied = tied & (now == then)
    return tied, down


# --- the order of events ----------------------------------------------------------------------------------------------


V26 = Rule(
    "V26", ERROR, DEEP, "Events are not in ascending order of their key, or an event is there twice.",
    "Readers merge sorted files: deletes are missed, and rows appear twice.",
    "Run `INSERT OVERWRITE TABLE t SELECT * FROM t` in Hive, vectorized: it keeps what it shows, in order and with ids "
    "of its own. Where no event is there twice and the delta is not alone, `acidctl compact --major` sorts rows, too, "
    "and deletes with --apply-all-deletes.", "4.2",
)  # fmt: skip
V34 = Rule(
    "V34", WARNING, DEEP, "Several delete events name the same row.",
    "Legal after concurrent deletes; many of them point to a writer that repeats itself.",
    "Nothing; a major compaction removes them.", "4.2",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class KeyOrder:
    """The order that the events of a file must have.

    Attributes:
        is_delete: the file holds delete events; several may name one row.
        is_old: its footer has no ``hive.acid.version``: in ACID v1 updates and deletes follow the row's insert.
    """

    is_delete: bool
    is_old: bool

    def check(self, before: Ids, after: Ids) -> Iterator[Tally]:
        """Yield the violations between each event and the one after it (section 4.1)."""
        if not len(after.keys) or _ascend(before, after):
            return
        same, down = compare(before.keys, after.keys)
        yield from tally_where(V26, "events have a lower key than the one before", down, after)
        if not same.any():
            return
        if self.is_delete:
            may_repeat = same
        elif self.is_old:
            may_repeat = same & ((before.operation != 0) | (after.operation != 0))
        else:
            may_repeat = np.zeros_like(same)
        newer = after.current < before.current
        text = "events have the key of the one before and are not older"
        yield from tally_where(V26, text, may_repeat & ~newer, after)
        if self.is_delete:
            yield from tally_where(V34, "delete events name a row again", same & newer, after)


def _ascend(before: Ids, after: Ids) -> bool:
    """Return whether events certainly ascend: most stripes hold consecutive rows of one writer."""
    keys = after.keys
    for then, now in ((before.keys.original, keys.original), (before.keys.bucket, keys.bucket)):
        if now[0] != now[-1] or then[0] != now[0] or not (then == now).all():
            return False
    return bool((before.keys.row_id < keys.row_id).all())


V12 = Rule(
    "V12", ERROR, DEEP, "An event's operation does not belong in such a directory, or a delete event has a row.",
    "Hive 3 and newer ignore the operation: updates and deletes are read as rows.",
    "Before Hive 3 reads updates or deletes in deltas of ACID v1: a major compaction with --for hive2. Nothing else "
    "compacts them. Updates in a base can stay: they are rows to every Hive.", "4.2",
)  # fmt: skip


def acid_v1(paths: Sequence[str], reported: Collection[str] = ()) -> Iterator[Finding]:
    """Yield rule V12's remarks about files of ACID version 1 with updates or deletes: about deltas, and about a base.

    Args:
        reported: files that earlier remarks name; a remark of the same kind is not repeated.
    """
    texts = {
        False: "ACID v1: files hold updates or deletes; compact before Hive 3 reads them: {}",
        True: "ACID v1: rows have the operation of an update, and every Hive reads them as rows: {}",
    }
    for in_base, text in texts.items():
        if not any(_is_in_base(path) is in_base for path in reported):
            files = [path for path in paths if _is_in_base(path) is in_base]
            yield from V12.of_several(files, text=text, severity=INFO)


def _is_in_base(path: str) -> bool:
    return path.startswith("base_")
