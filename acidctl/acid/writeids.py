"""Write-id lists and transaction lists: Hive's string forms and what they answer (format section 7)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum, StrEnum

from acidctl.acid.names import MAXL
from acidctl.errors import UsageProblem

_MAX_EXPANDED = 10_000_000


class WriteIdListError(UsageProblem):
    """A string that is not a list of Hive's."""


class Range(Enum):
    """How much of a range of ids an answer covers."""

    NONE = "none"
    SOME = "some"
    ALL = "all"


class Mode(Enum):
    """Whose list it is: the three of Hive differ in how they judge ranges (sections 7.2 to 7.4)."""

    READER = "reader"
    COMPACTOR = "compactor"
    CLEANER = "cleaner"


class Form(StrEnum):
    """The string forms. The old ones are ambiguous with the new, so the form is never guessed (section 7.1)."""

    HIVE3 = "hive3"
    HIVE2 = "hive2"
    HIVE1 = "hive1"


@dataclass(frozen=True, slots=True)
class _Ids:
    """What both kinds of list share: ids up to a high watermark, less the exceptions."""

    high_watermark: int = MAXL
    min_open: int = MAXL
    open: tuple[int, ...] = ()
    aborted: tuple[int, ...] = ()

    @property
    def exceptions(self) -> tuple[int, ...]:
        """Open and aborted ids, ascending."""
        return tuple(sorted({*self.open, *self.aborted}))

    def is_valid(self, id_: int) -> bool:
        """Committed in this snapshot."""
        return id_ <= self.high_watermark and not _has(self.open, id_) and not _has(self.aborted, id_)

    def is_aborted(self, id_: int) -> bool:
        """Listed as aborted; Hive tests no high watermark here (section 7.2)."""
        return _has(self.aborted, id_)

    def is_open(self, id_: int) -> bool:
        """Listed as open; ids above the high watermark are neither open nor aborted but unknown."""
        return _has(self.open, id_)

    @property
    def is_everything(self) -> bool:
        """No id is excluded: what holds when no list is given."""
        return self.high_watermark == MAXL and not self.open and not self.aborted


@dataclass(frozen=True, slots=True)
class ValidTxns(_Ids):
    """The transactions a snapshot sees; decides which ``_v`` directories are visible."""

    @classmethod
    def parse(cls, text: str) -> ValidTxns:
        """Parse ``hwm:minOpen:open:aborted``; runs ``a-b`` are accepted. An empty string means all.

        Raises:
            WriteIdListError: not such a string.
        """
        return cls(*_parse_ids(text, _drop_trailing(text.split(":")), text))

    def __str__(self) -> str:
        return f"{self.high_watermark}:{self.min_open}:{_join(self.open)}:{_join(self.aborted)}"


@dataclass(frozen=True, slots=True)
class ValidWriteIds(_Ids):
    """The write ids of one table that a snapshot sees.

    Attributes:
        table: ``db.table``, or None where the string says ``null``.
        mode: whose list it is.
    """

    table: str | None = None
    mode: Mode = Mode.READER

    @classmethod
    def parse(cls, text: str, form: Form = Form.HIVE3, mode: Mode = Mode.READER) -> ValidWriteIds:
        """Parse one list in one of Hive's forms; an empty string means that everything is committed.

        Args:
            text: ``db.table:hwm:minOpen:open:aborted`` (hive3), ``hwm:minOpen:exc:exc...`` (hive2) or
                ``hwm:exc:exc...`` (hive1). The old forms do not tell open from aborted: their exceptions count
                as open, which hides rows but never lets anything be cleaned.

        Raises:
            WriteIdListError: not such a string.
        """
        if not text:
            return cls(mode=mode)
        if form is not Form.HIVE3:
            return cls._parse_old(text, form, mode)
        if "$" in text:
            raise WriteIdListError(
                "several write-id lists given", f"{_short(text)!r} has a '$'", "give the list of the one table"
            )
        parts = _drop_trailing(text.split(":"))
        table, ids = (None if parts[0] == "null" else parts[0]), parts[1:]
        return cls(*_parse_ids(text, ids, "table:" + text), table=table, mode=mode)

    @classmethod
    def _parse_old(cls, text: str, form: Form, mode: Mode) -> ValidWriteIds:
        numbers = [_number(part, text) for part in _drop_trailing(text.split(":"))]
        if not numbers:
            raise WriteIdListError(f"not a transaction list: {_short(text)!r}")
        exceptions = tuple(sorted(set(numbers[2:] if form is Form.HIVE2 else numbers[1:])))
        min_open = numbers[1] if form is Form.HIVE2 and len(numbers) > 1 else (exceptions[0] if exceptions else MAXL)
        return cls(numbers[0], min_open, exceptions, (), mode=mode)

    @classmethod
    def parse_multi(cls, text: str) -> dict[str, ValidWriteIds]:
        """Parse ``txnId$list$list...`` into lists by table name.

        Raises:
            WriteIdListError: not such a string, or two lists for one table.
        """
        first, *lists = text.split("$")
        _number(first, text)
        tables: dict[str, ValidWriteIds] = {}
        for part in filter(None, lists):
            parsed = cls.parse(part)
            if parsed.table is None or parsed.table in tables:
                raise WriteIdListError(f"not one list a table: {_short(text)!r}")
            tables[parsed.table] = parsed
        return tables

    def __str__(self) -> str:
        table = "null" if self.table is None else self.table
        return f"{table}:{self.high_watermark}:{self.min_open}:{_join(self.open)}:{_join(self.aborted)}"

    def is_valid_base(self, write_id: int) -> bool:
        """Whether a *compacted* base of this id destroys no history that the snapshot may still need."""
        return write_id < self.min_open and write_id <= self.high_watermark

    def is_aborted(self, id_: int) -> bool:
        if self.mode is Mode.CLEANER and id_ > self.high_watermark:
            return False  # HIVE-29601: what lies beyond the compaction being cleaned is not the cleaner's
        return _has(self.aborted, id_)

    def range_valid(self, low: int, high: int) -> Range:
        """How many of the ids low..high (inclusive) are committed."""
        if high <= self.high_watermark and not self.open and not self.aborted:
            return Range.ALL  # as without any list
        if self.mode is Mode.COMPACTOR:
            # A compactor leaves alone whatever reaches past the first open id; aborted rows it drops one by one.
            return Range.ALL if self.high_watermark >= high else Range.NONE
        if self.mode is Mode.CLEANER and high > self.high_watermark:
            return Range.NONE
        if low > self.high_watermark:
            return Range.NONE
        # An id listed both as open and as aborted would count twice; the parser never lets that happen.
        missing = max(0, high - self.high_watermark) + _count(self.open, low, min(high, self.high_watermark))
        missing += _count(self.aborted, low, min(high, self.high_watermark))
        return _share(missing, low, high, full=Range.NONE, empty=Range.ALL)

    def range_aborted(self, low: int, high: int) -> Range:
        """How many of the ids low..high (inclusive) are aborted."""
        if not self.aborted:
            return Range.NONE
        if self.high_watermark < low or (self.mode is Mode.CLEANER and high > self.high_watermark):
            return Range.NONE
        return _share(_count(self.aborted, low, high), low, high, full=Range.ALL, empty=Range.NONE)

    def for_compactor(self) -> ValidWriteIds:
        """The list a compactor uses: below the first open id everything is resolved (section 7.3)."""
        first_open = min((self.min_open, *self.open[:1]))
        hwm = self.high_watermark if first_open == MAXL else min(self.high_watermark, first_open - 1)
        aborted = tuple(id_ for id_ in self.aborted if id_ <= hwm)
        return replace(self, high_watermark=hwm, min_open=MAXL, open=(), aborted=aborted, mode=Mode.COMPACTOR)

    def for_cleaner(self, highest_write_id: int = MAXL) -> ValidWriteIds:
        """The list a cleaner uses, lowered to the highest write id of the compaction (section 7.4)."""
        return replace(self, high_watermark=min(self.high_watermark, highest_write_id), mode=Mode.CLEANER)

    def at(self, write_id: int) -> ValidWriteIds:
        """The same list with its high watermark lowered to `write_id`."""
        hwm = min(self.high_watermark, write_id)
        return replace(self, high_watermark=hwm)


def _has(ids: tuple[int, ...], id_: int) -> bool:
    at = bisect_left(ids, id_)
    return at < len(ids) and ids[at] == id_


def _count(ids: tuple[int, ...], low: int, high: int) -> int:
    return max(0, bisect_right(ids, high) - bisect_left(ids, low))


def _share(count: int, low: int, high: int, *, full: Range, empty: Range) -> Range:
    if count == 0:
        return empty
    return full if count == high - low + 1 else Range.SOME


def _drop_trailing(parts: list[str]) -> list[str]:
    """Java's String.split drops empty strings at the end; the parsers of Hive count on it."""
    while parts and not parts[-1]:
        parts = parts[:-1]
    return parts


def _parse_ids(text: str, parts: list[str], label: str) -> tuple[int, int, tuple[int, ...], tuple[int, ...]]:
    if not text:
        return MAXL, MAXL, (), ()
    if not 2 <= len(parts) <= 4:
        raise WriteIdListError(
            f"not a list of Hive's: {_short(text)!r}",
            f"{len(parts)} numbers or lists where hwm:minOpen:open:aborted was expected",
            f"take the string from hive.txn.valid.writeids or hive.txn.valid.txns, for example db.t:10:{MAXL}::7,8",
        )
    hwm, min_open = _number(parts[0], label), _number(parts[1], label)
    open_ids = _expand(parts[2], label) if len(parts) > 2 else set()
    aborted = _expand(parts[3], label) if len(parts) > 3 else set()
    if both := open_ids & aborted:
        raise WriteIdListError(f"not a list of Hive's: {_short(text)!r}", f"{min(both)} is both open and aborted")
    return hwm, min_open, tuple(sorted(open_ids)), tuple(sorted(aborted))


def _expand(text: str, label: str) -> set[int]:
    ids: set[int] = set()
    for part in filter(None, text.split(",")):
        first, dash, last = part.partition("-")
        low = _number(first, label)
        high = _number(last, label) if dash else low
        if high < low or high - low + len(ids) > _MAX_EXPANDED:
            raise WriteIdListError(
                f"not a list of Hive's: {_short(label)!r}", f"{_short(part)!r} is no usable run of ids"
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
