"""Texts of dates and timestamps; see :mod:`acidctl.rows.export.text`, whose kernels these functions use.

The days of a column are usually in a short range: then each day is formatted once, and the rows take its text.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acidctl.orc.read.wide_timestamps import TICKS_PER_SECOND
from acidctl.rows.export.escapes import Flags, Ints
from acidctl.rows.export.text import Kernels, Text, fixed_width, nulls

# Arrow's own texts of dates end at years -32767 and 32767; these bounds are about the years -27,000 and 30,000.
_ARROW_DAYS = 10_000_000
_ARROW_SECONDS = _ARROW_DAYS * 86_400


def dates(kernels: Kernels, array: pa.Array) -> pa.Array:
    """Return the texts of date32: yyyy-MM-dd, for any number of days."""
    days = fixed_width(array, np.int32).astype(np.int64)
    missing = nulls(array)
    bounds = _range(days, missing)
    if bounds is not None and max(abs(bounds[0]), abs(bounds[1])) <= _ARROW_DAYS:
        first, last = bounds
        places = (days - first).astype(np.int32)
        spelled = pc.cast(pa.array(np.arange(first, last + 1, dtype=np.int32)).cast(pa.date32()), kernels.string)
        return kernels.raw(spelled).take(pa.array(places, mask=missing if missing.any() else None))
    far = (np.abs(days) > _ARROW_DAYS) & ~missing
    texts = pc.cast(array, kernels.string)
    if far.any():
        texts = pc.replace_with_mask(texts, pa.array(far), _civil_dates(kernels, days[far]))
    return kernels.raw(texts)


def timestamps(kernels: Kernels, array: pa.Array) -> Text:
    """Return the texts of timestamps of any unit, in UTC if there is a zone: yyyy-MM-dd HH:mm:ss.f."""
    unit: str = array.type.unit
    array = array.view(pa.timestamp(unit))
    per_second = TICKS_PER_SECOND[unit]
    ticks = fixed_width(array, np.int64)
    if unit != "ns":
        missing = nulls(array)
        far = (np.abs(ticks // per_second) > _ARROW_SECONDS) & ~missing
        if far.any():
            nanos = ticks % per_second * (TICKS_PER_SECOND["ns"] // per_second)
            return wide_timestamps(kernels, ticks // per_second, nanos, missing)
    if unit == "s":
        return Text(kernels.plain(array), after=b".0")
    whole = ticks % per_second == 0
    count = int(np.count_nonzero(whole))
    if count == len(array):
        return Text(kernels.plain(pc.cast(array, pa.timestamp("s"), safe=False)), after=b".0")
    texts = kernels.raw(pc.ascii_rtrim(pc.cast(array, kernels.string), "0"))
    return Text(kernels.join(texts, kernels.where(whole, b"0")) if count else texts)


def _range(numbers: Ints, missing: Flags) -> tuple[int, int] | None:
    """Return the least and the greatest number, if fewer lie between them than half of the rows."""
    if missing.any():
        numbers = numbers[~missing]
    if not len(numbers):
        return None
    least, most = int(numbers.min()), int(numbers.max())
    return (least, most) if most - least < len(numbers) // 2 else None


def wide_timestamps(kernels: Kernels, seconds: Ints, nanos: Ints, missing: Flags) -> Text:
    """Return the texts of seconds since 1970 and nanoseconds (0 to 999,999,999) of any year: yyyy-MM-dd HH:mm:ss.f."""
    near = np.abs(seconds) <= _ARROW_SECONDS
    # abs() of the least 64-bit number is itself, negative.
    near &= seconds != np.iinfo(np.int64).min
    near |= missing
    in_range = np.where(near & ~missing, seconds, 0)
    texts = pc.cast(pa.array(in_range, mask=missing).cast(pa.timestamp("s")), kernels.string)
    if not near.all():
        far = seconds[~near]
        time = pc.cast(pa.array(far % 86_400).cast(pa.timestamp("s")), kernels.string)
        time = pc.utf8_slice_codeunits(time, len("1970-01-01"))
        date = _civil_dates(kernels, far // 86_400)
        joined = pc.binary_join_element_wise(date, time, pa.scalar("", kernels.string))
        texts = pc.replace_with_mask(texts, pa.array(~near), joined)
    if not (nanos[~missing] != 0).any():
        return Text(kernels.raw(texts), after=b".0")
    # 1000000000 + nanoseconds has ten digits: "." replaces the first.
    digits = pc.utf8_slice_codeunits(pc.cast(pa.array(np.where(missing, 0, nanos) + 10**9), kernels.string), 1)
    digits = pc.ascii_rtrim(digits, "0")
    digits = pc.if_else(pc.equal(digits, ""), pa.scalar("0", kernels.string), digits)
    return Text(kernels.join(kernels.raw(texts), kernels.constant(b"."), kernels.raw(digits)))


def _civil_dates(kernels: Kernels, days: Ints) -> pa.Array:
    """Return yyyy-MM-dd of days since 1970-01-01 in the proleptic Gregorian calendar, for any year."""
    dates = days.astype("M8[D]")
    months = dates.astype("M8[M]")
    year, month = np.divmod(months.astype(np.int64) + 1970 * 12, 12)
    day = (dates - months.astype("M8[D]")).astype(np.int64) + 1

    def padded(numbers: Ints, width: int) -> pa.Array:
        return pc.ascii_lpad(pc.cast(pa.array(numbers), kernels.string), width=width, padding="0")

    empty = pa.scalar("", kernels.string)
    sign = pc.if_else(pa.array(year < 0), pa.scalar("-", kernels.string), empty)
    date = pc.binary_join_element_wise(
        padded(np.abs(year), 4), padded(month + 1, 2), padded(day, 2), pa.scalar("-", kernels.string)
    )
    return pc.binary_join_element_wise(sign, date, empty)
