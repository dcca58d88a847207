"""Write-id lists and transaction lists: Hive's string forms and their meaning (format section 7)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, StrEnum
from itertools import chain

from acidctl.acid.names import MAXL
from acidctl.base.errors import UsageProblem

_MAX_EXPANDED = 10_000_000


class WriteIdListError(UsageProblem):
    """A string that is not a list of Hive's."""


class Range(Enum):
    """The part of a range of ids that an answer covers."""

    NONE = "none"
    SOME = "some"
    ALL = "all"


class ListReader(Enum):
    """The component that reads a list: Hive's three judge ranges differently (sections 7.2 to 7.4)."""

    READER = "reader"
    COMPACTOR = "compactor"
    CLEANER = "cleaner"


@dataclass(frozen=True, slots=True)
class _Ids:
    """The common part of both lists: ids up to a high watermark, except open and aborted ones."""

    high_watermark: int = MAXL
    min_open: int = MAXL
    open: tuple[int, ...] = ()
    aborted: tuple[int, ...] = ()
    exceptions: tuple[int, ...] = field(init=False, repr=False, compare=False)
    """Open and aborted ids, ascending."""

    def __post_init__(self) -> None:
        exceptions = self.open or self.aborted
        if self.open and self.aborted:
            exceptions = tuple(sorted({*self.open, *self.aborted}))
        object.__setattr__(self, "exceptions", exceptions)

    def exceptions_in(self, low: int, high: int) -> tuple[int, ...]:
        """Return the open and aborted ids from `low` to `high`."""
        return ids_between(self.exceptions, low, high)

    def is_valid(self, id_: int) -> bool:
        """Return whether the id is committed in this snapshot."""
        return id_ <= self.high_watermark and not _has(self.open, id_) and not _has(self.aborted, id_)

    def is_aborted(self, id_: int) -> bool:
        """Return whether the id is listed as aborted; Hive tests no high watermark here (section 7.2)."""
        return _has(self.aborted, id_)

    def is_open(self, id_: int) -> bool:
        """Return whether the id is listed as open; ids above the high watermark are unknown instead."""
        return _has(self.open, id_)

    @property
    def is_everything(self) -> bool:
        """Return whether no id is excluded, as if no list was given."""
        return self.high_watermark == MAXL and not self.open and not self.aborted


@dataclass(frozen=True, slots=True)
class ValidTxns(_Ids):
    """The transactions a snapshot sees; decides which ``_v`` directories are visible."""

    @classmethod
    def parse(cls, text: str) -> ValidTxns:
        """Parse ``hwm:minOpen:open:aborted``; runs ``a-b`` are accepted.

        Raises:
            WriteIdListError: the string is malformed, or a part is missing.
        """
        return cls(*_parse_ids(text.split(":"), text, "hwm:minOpen:open:aborted"))

    def __str__(self) -> str:
        return f"{self.high_watermark}:{self.min_open}:{_join(self.open)}:{_join(self.aborted)}"


@dataclass(frozen=True, slots=True)
class ValidWriteIds(_Ids):
    """The write ids of one table that a snapshot sees.

    Attributes:
        table: ``db.table``, or None if the string has ``null``.
        mode: the component that reads the list.
    """

    table: str | None = None
    mode: ListReader = ListReader.READER

    @classmethod
    def parse(cls, text: str, mode: ListReader = ListReader.READER) -> ValidWriteIds:
        """Parse ``db.table:hwm:minOpen:open:aborted``.

        Hive's own parser accepts a string whose end is missing, and misreads one whose name is missing. Hive writes all
        five parts, so a string with fewer was cut or mistyped, and is refused.

        Raises:
            WriteIdListError: the string is malformed, or a part is missing.
        """
        if "$" in text:
            raise WriteIdListError(
                "several write-id lists given", f"{_short(text)!r} has a '$'", "give the list of the one table"
            )
        name, *ids = text.split(":")
        if len(ids) != 4 or not name or name.isdigit():
            raise _not_a_list(text, f"it has {_parts(len(ids) + 1, name)}", _EXAMPLE)
        return cls(*_parse_ids(ids, text, _EXAMPLE), table=None if name == "null" else name, mode=mode)

    def __str__(self) -> str:
        table = "null" if self.table is None else self.table
        return f"{table}:{self.high_watermark}:{self.min_open}:{_join(self.open)}:{_join(self.aborted)}"

    def is_valid_base(self, write_id: int) -> bool:
        """Return whether a *compacted* base of this id destroys no history that the snapshot may still need."""
        return write_id < self.min_open and write_id <= self.high_watermark

    def is_aborted(self, id_: int) -> bool:
        if self.mode is ListReader.CLEANER and id_ > self.high_watermark:
            return False  # HIVE-29601: a cleaner must not touch ids above the compaction being cleaned
        return _has(self.aborted, id_)

    def first_lost(self, now: ValidWriteIds) -> int | None:
        """Return a write id that is committed in this list and not in a list of a later time; None if there is none."""
        above = range(now.high_watermark + 1, self.high_watermark + 1)
        return next((id_ for id_ in chain(now.exceptions, above) if self.is_valid(id_) and not now.is_valid(id_)), None)

    def range_valid(self, low: int, high: int) -> Range:
        """Return how many of the ids low..high (inclusive) are committed."""
        if high <= self.high_watermark and not self.open and not self.aborted:
            return Range.ALL  # as without any list
        if self.mode is ListReader.COMPACTOR:
            # A compactor skips directories that reach past the first open id; it drops aborted rows one by one.
            return Range.ALL if self.high_watermark >= high else Range.NONE
        if self.mode is ListReader.CLEANER and high > self.high_watermark:
            return Range.NONE
        if low > self.high_watermark:
            return Range.NONE
        # An id listed both as open and as aborted would count twice; the parser never lets that happen.
        missing = max(0, high - self.high_watermark) + _count(self.open, low, min(high, self.high_watermark))
        missing += _count(self.aborted, low, min(high, self.high_watermark))
        return _share(missing, low, high, full=Range.NONE, empty=Range.ALL)

    def range_aborted(self, low: int, high: int) -> Range:
        """Return how many of the ids low..high (inclusive) are aborted."""
        if not self.aborted:
            return Range.NONE
        if self.high_watermark < low or (self.mode is ListReader.CLEANER and high > self.high_watermark):
            return Range.NONE
        return _share(_count(self.aborted, low, high), low, high, full=Range.ALL, empty=Range.NONE)

    def for_compactor(self) -> ValidWriteIds:
        """Return the list a compactor uses: below the first open id everything is resolved (section 7.3)."""
        first_open = min((self.min_open, *self.open[:1]))
        hwm = self.high_watermark if first_open == MAXL else min(self.high_watermark, first_open - 1)
        aborted = tuple(id_ for id_ in self.aborted if id_ <= hwm)
        least = first_open if aborted else MAXL  # as Hive writes it; it is above the high watermark
        return replace(self, high_watermark=hwm, min_open=least, open=(), aborted=aborted, mode=ListReader.COMPACTOR)

    def for_cleaner(self, highest_write_id: int = MAXL) -> ValidWriteIds:
        """Return the list a cleaner uses, lowered to the highest write id of the compaction (section 7.4)."""
        return replace(self, high_watermark=min(self.high_watermark, highest_write_id), mode=ListReader.CLEANER)

    def at(self, write_id: int) -> ValidWriteIds:
        """Return the list with its high watermark lowered to `write_id`."""
        hwm = min(self.high_watermark, write_id)
        return replace(self, high_watermark=hwm)


def _has(ids: tuple[int, ...], id_: int) -> bool:
    index = bisect_left(ids, id_)
    return index < len(ids) and ids[index] == id_


def _count(ids: tuple[int, ...], low: int, high: int) -> int:
    return max(0, bisect_right(ids, high) - bisect_left(ids, low))


def _share(count: int, low: int, high: int, *, full: Range, empty: Range) -> Range:
    if count == 0:
        return empty
    return full if count == high - low + 1 else Range.SOME


_EXAMPLE = f"db.table:hwm:minOpen:open:aborted, for example sales.orders:10:{MAXL}::7,8"


def _not_a_list(text: str, why: str, form: str) -> WriteIdListError:
    hint = f"take the whole string from hive.txn.valid.writeids or hive.txn.valid.txns: {form}"
    return WriteIdListError(f"not a list of Hive's: {_short(text)!r}", why, hint)


def _parts(count: int, name: str) -> str:
    """Return what is wrong with the number of parts of a string that begins with `name`."""
    if count == 5:
        return "no name of a table at its beginning"
    missing = ": the table's name is missing" if name.isdigit() else ""
    return f"{count} part{'' if count == 1 else 's'}, not 5{missing}"


def _parse_ids(parts: list[str], text: str, form: str) -> tuple[int, int, tuple[int, ...], tuple[int, ...]]:
    if len(parts) != 4:
        raise _not_a_list(text, f"it has {len(parts)} part{'' if len(parts) == 1 else 's'}, not 4", form)
    hwm, min_open = _number(parts[0], text), _number(parts[1], text)
    open_ids, aborted = _expand(parts[2], text), _expand(parts[3], text)
    if both := open_ids & aborted:
        raise _not_a_list(text, f"{min(both)} is both open and aborted", form)
    return hwm, min((min_open, *open_ids)), tuple(sorted(open_ids)), tuple(sorted(aborted))


def _expand(text: str, label: str) -> set[int]:
    ids: set[int] = set()
    for part in filter(None, text.split(",")):
        first, dash, last = part.partition("-")
        low = _number(first, label)
        high = _number(last, label) if dash else low
        if high < low or high - low + len(ids) > _MAX_EXPANDED:
            raise WriteIdListError(
                f"not a list of Hive's: {_short(label)!r}", f"{_short(part)!r} is not a usable run of ids"
            )
        ids.update(range(low, high + 1))
    return ids


def _number(text: str, label: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 19 and int(text) <= MAXL):
        raise WriteIdListError(
            f"not a list of Hive's: {_short(label)!r}", f"{_short(text)!r} is not a number of 64 bits"
        )
    return int(text)


def _join(ids: Iterable[int]) -> str:
    return ",".join(map(str, ids))


def _short(text: str) -> str:
    return text if len(text) <= 120 else text[:117] + "..."


# --- runs of ids: never iterate over a range, since `delta_1_9223372036854775807` is a valid name -------------------


class IdStatus(StrEnum):
    """The state of one id in a snapshot."""

    COMMITTED = "committed"
    OPEN = "open"
    ABORTED = "aborted"
    ABOVE = "above"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class IdRun:
    """Neighbouring ids of one status.

    Attributes:
        first, last: inclusive.
    """

    first: int
    last: int
    status: IdStatus


def holes(ranges: Iterable[tuple[int, int]], low: int, high: int) -> Iterator[tuple[int, int]]:
    """Yield the runs of low..high (inclusive) that lie in no range, ascending."""
    for first, last in sorted(ranges):
        if first > high:
            break
        if first > low:
            yield low, first - 1
        low = max(low, last + 1)
    if low <= high:
        yield low, high


def joined_ranges(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the fewest ranges (inclusive) that hold the same ids, ascending."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = joined[-1][0], max(joined[-1][1], last)
        else:
            joined.append((first, last))
    return joined


def write_id_runs(ids: ValidWriteIds, low: int, high: int) -> tuple[IdRun, ...]:
    """Return the write ids low..high (inclusive) as runs, ascending."""
    top = min(high, ids.high_watermark)
    runs = [
        *id_list_runs(ids_between(ids.open, low, top), IdStatus.OPEN),
        *id_list_runs(ids_between(ids.aborted, low, top), IdStatus.ABORTED),
    ]
    marked = [(run.first, run.last) for run in runs]
    runs += [IdRun(first, last, IdStatus.COMMITTED) for first, last in holes(marked, low, top)]
    if high > ids.high_watermark:
        runs.append(IdRun(max(low, ids.high_watermark + 1), high, IdStatus.ABOVE))
    return tuple(sorted(runs, key=lambda run: run.first))


def txn_status(txns: ValidTxns | None, txn: int) -> IdStatus:
    """Return the status of one transaction; unknown without a list."""
    if txns is None:
        return IdStatus.UNKNOWN
    if txns.is_valid(txn):
        return IdStatus.COMMITTED
    if txns.is_aborted(txn):
        return IdStatus.ABORTED
    return IdStatus.ABOVE if txn > txns.high_watermark else IdStatus.OPEN


def of_status(runs: Iterable[IdRun], *statuses: IdStatus) -> tuple[IdRun, ...]:
    """Return the runs of these statuses."""
    return tuple(run for run in runs if run.status in statuses)


def count_of(runs: Iterable[IdRun]) -> int:
    """Return how many ids the runs hold."""
    return sum(run.last - run.first + 1 for run in runs)


def id_list_runs(ids: Sequence[int], status: IdStatus) -> tuple[IdRun, ...]:
    """Return ascending ids as runs."""
    runs: list[IdRun] = []
    for id_ in ids:
        if runs and runs[-1].last == id_ - 1:
            runs[-1] = IdRun(runs[-1].first, id_, status)
        else:
            runs.append(IdRun(id_, id_, status))
    return tuple(runs)


def ids_between(ids: tuple[int, ...], low: int, high: int) -> tuple[int, ...]:
    """Return the ids from `low` to `high`, inclusive, of sorted ids."""
    return ids[bisect_left(ids, low) : max(bisect_left(ids, low), bisect_right(ids, high))]
