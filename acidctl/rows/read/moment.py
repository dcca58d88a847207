"""The write id that was the newest one at a moment, by the times at which directories were written.

A directory that one write id wrote gives the time of that write id; the commit follows it. A directory of several write
ids, and every base, only shows that its write ids existed at its own time. If such a base is newer than the moment,
:func:`acidctl.rows.read.past_snapshot.seen_at` proves, or refuses, that the directories below it are complete.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Container, Iterable, Mapping
from datetime import datetime

from acidctl.acid.listing import Ages
from acidctl.acid.names import Kind, acid_directory, is_hidden
from acidctl.acid.reasons import Code, Reason, reason
from acidctl.base.errors import HistoryError
from acidctl.wording import iso_time

_Range = tuple[int, int, float]
"""The first and the last write id of a directory, 0 and the last one of a base, and its time."""

_HINT = "give the write id; `acidctl history` lists them with their times"


def newest_at(shown: str, ages: Iterable[Ages], moment: datetime) -> Reason:
    """Return the newest write id at a moment, the only one in the ``ids`` of a reason that says how it was found.

    Args:
        shown: the table, for errors.
        ages: of all locations of the table. Original files have write id 0.
        moment: with its zone.

    Raises:
        HistoryError: the times do not decide: there are none, nothing is that old, an older write id was written later
            (in copies of tables, times may run backwards), a delta merged write ids from both sides, or a stream wrote
            into a delta of older write ids later.
    """
    limit = moment.timestamp()
    own: dict[int, float] = {}
    streams: set[_Range] = set()  # deltas that a stream may have written; Hive 3's compactions look alike
    merged: list[_Range] = []
    for location in ages:
        for name, time in location.times.items():
            if is_hidden(name):
                continue
            directory = acid_directory(name)
            low, high = directory.range if directory else (0, 0)
            if time is None:
                raise _undecided(shown, moment, f"the store has no time for {name}")
            if directory and (low < high or directory.visibility_txn or directory.kind is Kind.BASE):
                merged.append((0 if directory.kind is Kind.BASE else low, high, time))
                if directory.kind is Kind.DELTA and not directory.visibility_txn:
                    streams.add(merged[-1])
            else:
                own[high] = max(time, own.get(high, time))
    times = [*own.items(), *((high, time) for _, high, time in merged)]
    newest, written = max(((high, time) for high, time in times if time <= limit), default=(None, 0.0))
    if newest is None:
        why = f"its oldest directory is of {iso_time(min(time for _, time in times))}" if times else "it holds nothing"
        raise _undecided(shown, moment, why)
    later = {write_id: time for write_id, time in own.items() if time > limit}
    if (first := min(later, default=newest)) < newest:
        why = (
            f"times run backwards: write id {first} was written at {iso_time(later[first])}, later than write id "
            f"{newest}, {iso_time(written)}, as when writers overlap or a table was copied"
        )
        raise _undecided(shown, moment, why)
    following = min(later, default=None)
    if why := _undecided_by_ranges(newest, following, own, [one for one in merged if one[2] > limit], streams):
        raise _undecided(shown, moment, why)
    at, last = iso_time(limit), iso_time(written)
    if following is None:
        return reason(Code.AT_MOMENT, ids=(newest,), how="last", moment=at, written=last)
    then = iso_time(later[following])
    return reason(
        Code.AT_MOMENT, ids=(newest,), how="between", moment=at, written=last, following=following, later=then
    )


def _undecided_by_ranges(
    newest: int, following: int | None, own: Mapping[int, float], later: Iterable[_Range], streams: Container[_Range]
) -> str:
    """Return why directories of several write ids that were written after the moment leave it undecided, or nothing."""
    ids = sorted(own)
    for low, high, time in later:
        start, end = max(low, newest + 1), high if following is None else min(high, following - 1)
        if low and start <= end:
            return f"write ids {start} to {end} are only left in a delta of several, written at {iso_time(time)}"
        has_inputs = bisect_left(ids, low) < bisect_right(ids, high)
        if (low, high, time) in streams and high <= newest and not has_inputs:
            return f"a stream or a compaction wrote the delta of write ids {low} to {high} at {iso_time(time)}"
    return ""


def _undecided(shown: str, moment: datetime, why: str) -> HistoryError:
    return HistoryError(f"the newest write id of {shown} at {iso_time(moment.timestamp())} is not known", why, _HINT)
