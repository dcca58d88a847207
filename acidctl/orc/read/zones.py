"""Compute the offsets of a file writer's time zone for whole arrays of instants.

A TIMESTAMP is wall-clock time, but ORC stores seconds since 2015-01-01 00:00:00 *in the writer's zone*, so that its
reader needs that zone.  Hive has written UTC since 3.1; before, it wrote the zone of the machine.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import pyarrow as pa

from acidctl.base.errors import AcidctlError, BadDataError, no_time_zones
from acidctl.orc.byte_source import native_errors

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_CYCLE = 146_097 * 86_400
"""Seconds of 400 years, after which the Gregorian calendar, its weekdays, and the rules of a zone repeat."""
_FIRST = int((datetime(1800, 1, 1, tzinfo=UTC) - _EPOCH).total_seconds())
_LAST = int((datetime(2038, 1, 1, tzinfo=UTC) - _EPOCH).total_seconds())
YEAR_1900 = -2_208_988_800
"""1900-01-01 00:00:00 UTC."""
_STEP = 7 * 86_400

_FIXED = re.compile(r"(?:GMT|UTC|UT)?([+-])(\d{1,2})(?::?(\d\d))?", re.ASCII)
# Java's three-letter names that the zone database does not have, from the table in java.util.TimeZone's documentation.
_JAVA_NAMES = {
    "ACT": "Australia/Darwin", "AET": "Australia/Sydney", "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo", "AST": "America/Anchorage", "BET": "America/Sao_Paulo", "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare", "CNT": "America/St_Johns", "CST": "America/Chicago", "CTT": "Asia/Shanghai",
    "EAT": "Africa/Addis_Ababa", "ECT": "Europe/Paris", "IET": "America/Indiana/Indianapolis", "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo", "MIT": "Pacific/Apia", "NET": "Asia/Yerevan", "NST": "Pacific/Auckland",
    "PLT": "Asia/Karachi", "PNT": "America/Phoenix", "PRT": "America/Puerto_Rico", "PST": "America/Los_Angeles",
    "SST": "Pacific/Guadalcanal", "VST": "Asia/Ho_Chi_Minh",
}  # fmt: skip
_UTC_NAMES = ("", "UTC", "GMT", "Etc/UTC", "Etc/GMT", "UCT", "Zulu", "Universal", "Greenwich", "Z", "Etc/UCT")


@dataclass(frozen=True, slots=True)
class Zone:
    """A writer's time zone.

    Attributes:
        starts: ascending instants (seconds since 1970, UTC) from which an offset holds.
        offsets: the offset in seconds from each start, preceded by the offset before the first start.
        ancient: the offset before 1900.
    """

    starts: Any
    offsets: Any
    ancient: int

    def offset(self, instants: Any, *, local_mean: bool = False) -> Any:
        """Return the seconds to add to UTC for local time, an int64 array like `instants` (seconds since 1970 in UTC).

        Before 1900 this is the zone's present standard offset, as in java.util.TimeZone, or, if `local_mean` is set,
        the local mean time, as in java.time.
        """
        # After the last change on record the rules repeat with the calendar: look the instant up in the first cycle.
        late = instants >= _LAST
        looked_up = np.where(late, _LAST + (instants - _LAST) % _CYCLE, instants)
        offsets = self.offsets[np.searchsorted(self.starts, looked_up, side="right")]
        return offsets if local_mean else np.where(instants < YEAR_1900, self.ancient, offsets)


def native_problem() -> AcidctlError | None:
    """Return why the native reader, which has its own zone database, cannot read a timestamp here; None if it can."""
    from pyarrow import orc  # noqa: PLC0415 - with Arrow's file systems: only for `doctor`

    sink = pa.BufferOutputStream()
    try:
        with native_errors("a file in memory"):
            orc.write_table(pa.table({"t": pa.array([0], pa.timestamp("ns"))}), sink)
            orc.ORCFile(pa.BufferReader(sink.getvalue())).read()
    except AcidctlError as error:
        return error
    return None


def is_utc(name: str) -> bool:
    """Return whether `name` means UTC.  So does no name at all: old files do not say, and hold wall-clock time."""
    return name in _UTC_NAMES


@lru_cache(maxsize=32)
def zone(name: str) -> Zone:
    """Return a zone of the zone database, a zone with a name of Java's own, or a fixed offset such as ``GMT+08:00``.

    The first call for a zone with daylight saving time takes about 0.1 s.

    Raises:
        BadDataError: there is no such zone.
        EnvironmentProblem: the machine has no time zone database.
    """
    info = _info(name)
    if isinstance(info, timezone):
        fixed = int(info.utcoffset(None).total_seconds())
        return Zone(np.zeros(0, np.int64), np.array([fixed], np.int64), fixed)

    def at(instant: int) -> int:
        offset = (_EPOCH + timedelta(seconds=instant)).astimezone(info).utcoffset()
        assert offset is not None
        return round(offset.total_seconds())

    # Sample the time before the last change on record, where changes may be weeks apart, and one cycle after it.
    samples = [*range(_FIRST, _LAST, _STEP), *range(_LAST, _LAST + _CYCLE + 1, 4 * _STEP)]
    starts: list[int] = []
    offsets = [at(_FIRST)]
    for low, high in pairwise(samples):
        here = at(high)
        if here != offsets[-1]:
            changed = bisect_left(range(low + 1, high + 1), True, key=lambda instant: at(instant) == here)
            starts.append(low + 1 + changed)
            offsets.append(here)
    standard = min(at(_LAST), at(_LAST + 26 * _STEP))
    return Zone(np.array(starts, np.int64), np.array(offsets, np.int64), standard)


def _info(name: str) -> tzinfo:
    fixed = _FIXED.fullmatch(name)
    if is_utc(name):
        return UTC
    if fixed:
        sign, hours, minutes = fixed.groups()
        offset = timedelta(hours=int(hours), minutes=int(minutes or 0))
        if offset < timedelta(hours=24):
            return timezone(-offset if sign == "-" else offset)
    try:
        return ZoneInfo(_JAVA_NAMES.get(name, name))
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        try:
            ZoneInfo("Europe/London")
        except ZoneInfoNotFoundError:
            raise no_time_zones(f"timestamps written in the zone {name} cannot be read") from error
        what, why = f"unknown time zone {name[:60]!r}", "the stripe names it as its writer's"
        raise BadDataError(what, why, "the file is damaged") from error
