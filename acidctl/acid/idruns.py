"""Ranges of ids said as runs: which are committed, open, aborted, or unknown to the snapshot (format section 7).

Nothing here walks over a range: ``delta_1_9223372036854775807`` is a name like any other.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from acidctl.acid.writeids import ValidTxns, ValidWriteIds

_SHOWN_RUNS = 12
"""Runs that a sentence names; a program has them all."""


class IdStatus(StrEnum):
    """What a snapshot knows of one id."""

    COMMITTED = "committed"
    OPEN = "open"
    ABORTED = "aborted"
    ABOVE = "above the high watermark"
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

    def __str__(self) -> str:
        return f"{span(self.first, self.last)} {self.status.value}"


def span(first: int, last: int) -> str:
    """``7``, ``7 and 8`` or ``7 to 9``."""
    if first == last:
        return str(first)
    return f"{first} and {last}" if last == first + 1 else f"{first} to {last}"


def write_id_runs(ids: ValidWriteIds, low: int, high: int) -> tuple[IdRun, ...]:
    """The write ids low..high (inclusive) as runs, ascending."""
    runs: list[IdRun] = []
    top = min(high, ids.high_watermark)
    marked = sorted(
        [(id_, IdStatus.OPEN) for id_ in _between(ids.open, low, top)]
        + [(id_, IdStatus.ABORTED) for id_ in _between(ids.aborted, low, top)]
    )
    at = low
    for id_, status in marked:
        if id_ > at:
            runs.append(IdRun(at, id_ - 1, IdStatus.COMMITTED))
        if runs and runs[-1].status is status and runs[-1].last == id_ - 1:
            runs[-1] = IdRun(runs[-1].first, id_, status)
        else:
            runs.append(IdRun(id_, id_, status))
        at = id_ + 1
    if at <= top:
        runs.append(IdRun(at, top, IdStatus.COMMITTED))
    if high > ids.high_watermark:
        runs.append(IdRun(max(low, ids.high_watermark + 1), high, IdStatus.ABOVE))
    return tuple(runs)


def txn_status(txns: ValidTxns | None, txn: int) -> IdStatus:
    """What is known of one transaction; unknown where no list was given."""
    if txns is None:
        return IdStatus.UNKNOWN
    if txns.is_valid(txn):
        return IdStatus.COMMITTED
    if txns.is_aborted(txn):
        return IdStatus.ABORTED
    return IdStatus.ABOVE if txn > txns.high_watermark else IdStatus.OPEN


def of_status(runs: Iterable[IdRun], *statuses: IdStatus) -> tuple[IdRun, ...]:
    """The runs of these statuses."""
    return tuple(run for run in runs if run.status in statuses)


def spans(runs: Sequence[IdRun]) -> str:
    """``3``, ``3 and 5``, ``1 to 3, 7 and 9``, ``1 and 2, 5``; of very many the first, and how many more."""
    texts = [span(run.first, run.last) for run in runs[:_SHOWN_RUNS]]
    if len(runs) > _SHOWN_RUNS:
        return f"{', '.join(texts)} and {len(runs) - _SHOWN_RUNS} more"
    if len(texts) < 2 or " " in texts[-1] or any(" and " in text for text in texts):
        return ", ".join(texts)
    return f"{', '.join(texts[:-1])} and {texts[-1]}"


def count_of(runs: Iterable[IdRun]) -> int:
    """How many ids the runs hold."""
    return sum(run.last - run.first + 1 for run in runs)


def id_list_runs(ids: Sequence[int], status: IdStatus) -> tuple[IdRun, ...]:
    """Ascending ids as runs."""
    runs: list[IdRun] = []
    for id_ in ids:
        if runs and runs[-1].last == id_ - 1:
            runs[-1] = IdRun(runs[-1].first, id_, status)
        else:
            runs.append(IdRun(id_, id_, status))
    return tuple(runs)


def _between(ids: tuple[int, ...], low: int, high: int) -> tuple[int, ...]:
    return ids[bisect_left(ids, low) : max(bisect_left(ids, low), bisect_right(ids, high))]
