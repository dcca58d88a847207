"""Columns of simple types as columns of text, with Arrow kernels and NumPy; only texts with escapes have a loop.

Every function takes one Arrow array and returns a :class:`Text` of the same length; null stays null. Texts are
``binary`` arrays, because kernels for strings may check every character again. Hive may store
bytes that are not UTF-8: :func:`cleaned` replaces them, and must be called before the functions for strings.
"""

from __future__ import annotations

import json.encoder
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from acidctl.base.printable import RANGES, printable, printable_json
from acidctl.orc.arrow import validity
from acidctl.orc.read.wide_timestamps import TICKS_PER_SECOND

Ints = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.bool_]

# The characters that need an escape, for RE2, which has no surrogates.
_UNSAFE = "[" + "".join(f"\\x{{{first:x}}}-\\x{{{last:x}}}" for first, last in RANGES if first != 0xD800) + "]"

# The first bytes of those beyond ASCII: most texts have none of them, which is faster to see than by RE2.
_LEADS = [
    bytes([lead])
    for lead in sorted({chr(last).encode()[0] for first, last in RANGES if last > 0x7F and first != 0xD800})
]

# From this magnitude on Arrow writes 1e+10; below it a whole number has neither point nor exponent.
_FIRST_EXPONENT = 1e10

# Arrow writes a decimal whose leading digit stands more than six places behind the point as 1E-7.
_FIRST_DECIMAL_EXPONENT = 6

# Arrow's own texts of dates end at years -32767 and 32767; these bounds are about the years -27,000 and 30,000.
_ARROW_DAYS = 10_000_000
_ARROW_SECONDS = _ARROW_DAYS * 86_400


@dataclass(frozen=True, slots=True)
class Text:
    """The texts of a column, with constant bytes before and after each of them except nulls.

    Keeping the constants apart lets the row be joined in one pass: they merge with the field names.

    Attributes:
        values: binary array.
    """

    values: pa.Array
    before: bytes = b""
    after: bytes = b""


def constant(value: bytes) -> pa.Scalar:
    return pa.scalar(value, pa.binary())


def raw(strings: pa.Array) -> pa.Array:
    """Return a string array as binary, without looking at the bytes."""
    return strings.view(pa.binary()) if pa.types.is_string(strings.type) else strings


def plain(array: pa.Array) -> pa.Array:
    """Return Arrow's own text of every value."""
    return raw(pc.cast(array, pa.string()))


def join(*pieces: Any, null: bytes | None = None) -> pa.Array:
    """Join the pieces, arrays or constants, row by row; a null makes the row null, or becomes the text `null`."""
    # The last argument is the separator.
    if null is None:
        return pc.binary_join_element_wise(*pieces, constant(b""))
    return pc.binary_join_element_wise(*pieces, constant(b""), null_handling="replace", null_replacement=null.decode())


def wrapped(text: Text) -> pa.Array:
    """Return the texts including their constant bytes; null stays null."""
    if not text.before and not text.after:
        return text.values
    return join(constant(text.before), text.values, constant(text.after))


def complete(text: Text, null: bytes = b"null") -> pa.Array:
    """Return the texts including their constant bytes, and `null` for null."""
    values = wrapped(text)
    return pc.fill_null(values, constant(null)) if values.null_count else values


def where(flags: Flags, yes: bytes, no: bytes = b"") -> pa.Array:
    """Return a column with `yes` if the flag is set, else `no`."""
    return pc.if_else(pa.array(flags), constant(yes), constant(no))


def floats(array: pa.Array, quote: bytes = b'"') -> Text:
    """Return the texts of floats: shortest digits, always a point or an exponent; NaN and infinities in `quote`."""
    values = fixed_width(array, np.dtype(f"f{array.type.byte_width}"))
    texts = plain(array)
    finite = np.isfinite(values)
    with np.errstate(invalid="ignore"):  # a NaN may be a signalling one, also in the slot of a NULL
        whole = finite & (values == np.trunc(values)) & (np.abs(values) < _FIRST_EXPONENT)
    count = int(np.count_nonzero(whole))
    if len(array) and count == len(array):
        return Text(texts, after=b".0")
    if count:
        texts = join(texts, where(whole, b".0"))
    odd = ~finite & ~nulls(array)
    if odd.any():
        names = pa.array([quote + name + quote for name in (b"NaN", b"Infinity", b"-Infinity")], pa.binary())
        which = np.where(np.isnan(values), 0, np.where(values > 0, 1, 2))[odd]
        texts = pc.replace_with_mask(texts, pa.array(odd), names.take(pa.array(which)))
    return Text(texts)


def decimals(array: pa.Array) -> pa.Array:
    """Return the texts of decimals like Hive's HiveDecimal: no exponent, no trailing zeros after the point."""
    scale: int = array.type.scale
    if scale < 0:  # not in ORC
        array = pc.cast(array, pa.decimal256(76, 0))
        scale = 0
    texts = pc.cast(array, pa.string())
    if scale > _FIRST_DECIMAL_EXPONENT:
        exponents = pc.fill_null(pc.match_substring(texts, "E"), False)
        if exponents.true_count:
            texts = pc.replace_with_mask(texts, exponents, _point_inserted(array.filter(exponents), scale))
    if scale > 0:
        texts = pc.ascii_rtrim(pc.ascii_rtrim(texts, "0"), ".")
    return raw(texts)


def _point_inserted(array: pa.Array, scale: int) -> pa.Array:
    """Return the plain text of decimals between -1 and 1, which Arrow writes with an exponent."""
    kind = pa.decimal256 if pa.types.is_decimal256(array.type) else pa.decimal128
    if not (pa.types.is_decimal128(array.type) or pa.types.is_decimal256(array.type)):
        array = pc.cast(array, pa.decimal128(38, scale))
    digits = pc.cast(array.view(kind(array.type.precision, 0)), pa.string())
    negative = pc.starts_with(digits, "-")
    fraction = pc.ascii_lpad(pc.ascii_ltrim(digits, "-"), width=scale, padding="0")
    empty = pa.scalar("", pa.string())
    sign = pc.if_else(negative, pa.scalar("-0.", pa.string()), pa.scalar("0.", pa.string()))
    return pc.binary_join_element_wise(sign, fraction, empty)


def char_padded(array: pa.Array, length: int) -> pa.Array:
    """Pad UTF-8 texts with blanks to `length` characters; longer texts are not cut."""
    return raw(pc.utf8_rpad(array.view(pa.string()), width=length))


def escaped(array: pa.Array) -> pa.Array:
    """Return UTF-8 texts with JSON's escapes, also for characters that a terminal would act on or hide."""
    quoted = json.encoder.encode_basestring
    return _with_escapes(array, b'"\\', lambda text: printable_json(quoted(text)[1:-1]))


def printable_texts(array: pa.Array) -> pa.Array:
    """Return UTF-8 texts as :func:`acidctl.base.printable.printable` would make them."""
    return _with_escapes(array, b"", printable)


def _with_escapes(array: pa.Array, more: bytes, escape: Callable[[str], str]) -> pa.Array:
    """Escape the values that have a control character, an unsafe one beyond ASCII, or one of `more`: usually few."""
    offsets, data = text_spans(array)
    # C0, DEL and everything beyond ASCII: the subtraction wraps around.
    special = (data - np.uint8(0x20)) >= 0x5F
    is_ascii = data.max(initial=0) < 0x80
    if not is_ascii:
        special &= data < 0x80
    for byte in more:
        special |= data == byte
    unsafe = np.zeros(len(array), np.bool_)
    # The last offset not after the byte is the start of its value: equal offsets are empty values before it.
    unsafe[np.searchsorted(offsets, np.flatnonzero(special), side="right") - 1] = True
    text = b"" if is_ascii else data.tobytes()
    if any(lead in text for lead in _LEADS):
        matches = pc.match_substring_regex(array.view(pa.string()), _UNSAFE)
        unsafe |= pc.fill_null(matches, False).to_numpy(zero_copy_only=False)
    unsafe &= ~nulls(array)
    if not unsafe.any():
        return array
    mask = pa.array(unsafe)
    texts = [escape(value.decode()).encode() for value in array.filter(mask).to_pylist()]
    return pc.replace_with_mask(array, mask, pa.array(texts, pa.binary()))


def byte_lists(array: pa.Array) -> Text:
    """Return binary values as JSON arrays of byte values."""
    offsets, data = text_spans(array)
    numbers = pa.array([b"%d" % n for n in range(256)], pa.binary()).take(pa.array(data))
    return Text(comma_joined(offsets, numbers, nulls(array)), b"[", b"]")


def comma_joined(offsets: Ints, texts: pa.Array, missing: Flags) -> pa.Array:
    """Join the texts between each two offsets with commas; null if `missing`."""
    mask = pa.array(missing) if missing.any() else None
    lists = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), texts, mask=mask)
    return pc.binary_join(lists, constant(b","))


class Pieces:
    """The parts of a row's text: columns of texts, and the bytes between two of them.

    A null's text is part of the bytes around it, and so are the quotes of other values. So values are not copied just
    to quote them, and the join meets no nulls, which would slow it down.

    Attributes:
        literal: bytes after the last value, in all rows; callers append to it.
    """

    def __init__(self) -> None:
        self.literal = b""
        self._pieces: list[Any] = []
        # The bytes after the last value, and a mask of the rows in which it is null.
        self._after = b""
        self._missing: Flags | None = None

    def add(self, text: Text) -> None:
        """Add a column of values."""
        absent = nulls(text.values) if text.values.null_count else None
        self._pieces += [self._between(text.before, absent), present(text.values)]
        self.literal, self._after, self._missing = b"", text.after, absent

    def joined(self, rows: int) -> pa.Array:
        """Return the rows' texts, none of them null."""
        if not self._pieces:
            return pa.repeat(constant(self.literal), rows)
        return join(*self._pieces, self._between(b"", None))

    def _between(self, before: bytes, absent: Flags | None) -> pa.Scalar | pa.Array:
        missing = self._missing
        if missing is None and absent is None:
            return constant(self._after + self.literal + before)
        ends = [self._after] if missing is None else [self._after, b"null"]
        starts = [before] if absent is None else [before, b""]
        forms = pa.array([end + self.literal + start for end in ends for start in starts], pa.binary())
        which = np.int8(0) if missing is None else missing.astype(np.int8) * np.int8(len(starts))
        return forms.take(pa.array(which if absent is None else which + absent))


def nulls(array: pa.Array) -> Flags:
    """Return a mask of the nulls."""
    if not array.null_count:
        return np.zeros(len(array), np.bool_)
    flags: Flags = array.is_null().to_numpy(zero_copy_only=False)
    return flags


def present(array: pa.Array) -> pa.Array:
    """Return a binary array with empty values instead of nulls."""
    if not array.null_count:
        return array
    offsets = _offsets(array)
    if np.diff(offsets)[nulls(array)].any():
        # A null may hide bytes, unless the array comes from a kernel.
        return pc.fill_null(array, pa.scalar(b"", array.type))
    buffers = array.buffers()
    return pa.Array.from_buffers(array.type, len(array), [None, *buffers[1:]], 0, array.offset)


def fixed_width(array: pa.Array, dtype: Any) -> npt.NDArray[Any]:
    """Return the values of a fixed-width array without a copy; values of nulls are undefined."""
    data = array.buffers()[1]
    if data is None or not len(array):
        return np.zeros(len(array), dtype)
    return np.frombuffer(data, dtype, count=array.offset + len(array))[array.offset :]


def text_spans(array: pa.Array) -> tuple[Ints, Bytes]:
    """Return the offsets from 0, one more than there are values, and the bytes of a binary or string array."""
    offsets = _offsets(array)
    first, end = int(offsets[0]), int(offsets[-1])
    data = np.frombuffer(array.buffers()[2], np.uint8, count=end)[first:] if end > first else np.zeros(0, np.uint8)
    return offsets.astype(np.int64) - first, data


def data_length(array: pa.Array) -> int:
    """Return the number of bytes between the first and the last offset of a binary or string array."""
    offsets = _offsets(array)
    return int(offsets[-1]) - int(offsets[0])


def _offsets(array: pa.Array) -> npt.NDArray[Any]:
    """Return the stored offsets, one more than there are values."""
    if not len(array):
        return np.zeros(1, np.int32)
    return np.frombuffer(array.buffers()[1], np.int32, count=array.offset + len(array) + 1)[array.offset :]


def is_utf8(array: pa.Array) -> bool:
    """Return whether all values of a binary or string array are UTF-8."""
    if text_spans(array)[1].max(initial=0) < 0x80:
        return True
    try:
        array.view(pa.string()).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def cleaned(array: pa.Array) -> pa.Array:
    """Replace bytes that are not UTF-8 with U+FFFD; return the argument itself if there are none."""
    if is_utf8(array):
        return array
    offsets, data = text_spans(array)
    # A line feed in front of every value keeps the values apart while all of them are decoded at once. Values may
    # contain line feeds, so the one in front of a value is found by counting those before it.
    marks = offsets[:-1] + np.arange(len(array))
    inner = np.ones(len(data) + len(array), np.bool_)
    inner[marks] = False
    marked = np.full(len(inner), 0x0A, np.uint8)
    marked[inner] = data
    text = np.frombuffer(str(marked.data, "utf-8", "replace").encode(), np.uint8)
    feeds_before = np.concatenate(([0], np.cumsum(data == 0x0A)))[offsets[:-1]]
    new_marks = np.flatnonzero(text == 0x0A)[feeds_before + np.arange(len(array))]
    keep = np.ones(len(text), np.bool_)
    keep[new_marks] = False
    new_offsets = np.append(new_marks, len(text)) - np.arange(len(array) + 1)
    parts = [validity(array), pa.py_buffer(new_offsets.astype(np.int32)), pa.py_buffer(text[keep])]
    return pa.Array.from_buffers(array.type, len(array), parts)


def dates(array: pa.Array) -> pa.Array:
    """Return the texts of date32: yyyy-MM-dd, for any number of days."""
    days = fixed_width(array, np.int32).astype(np.int64)
    missing = nulls(array)
    # The days of a column are usually in a short range: then each day is formatted once, and the rows take its text.
    bounds = _narrow_range(days, missing)
    if bounds is not None and max(abs(bounds[0]), abs(bounds[1])) <= _ARROW_DAYS:
        first, last = bounds
        places = (days - first).astype(np.int32)
        spelled = pc.cast(pa.array(np.arange(first, last + 1, dtype=np.int32)).cast(pa.date32()), pa.string())
        return raw(spelled).take(pa.array(places, mask=missing if missing.any() else None))
    far = (np.abs(days) > _ARROW_DAYS) & ~missing
    texts = pc.cast(array, pa.string())
    if far.any():
        texts = pc.replace_with_mask(texts, pa.array(far), _civil_dates(days[far]))
    return raw(texts)


def timestamps(array: pa.Array) -> Text:
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
            return wide_timestamps(ticks // per_second, nanos, missing)
    if unit == "s":
        return Text(plain(array), after=b".0")
    whole = ticks % per_second == 0
    count = int(np.count_nonzero(whole))
    if count == len(array):
        return Text(plain(pc.cast(array, pa.timestamp("s"), safe=False)), after=b".0")
    texts = raw(pc.ascii_rtrim(pc.cast(array, pa.string()), "0"))
    return Text(join(texts, where(whole, b"0")) if count else texts)


def _narrow_range(numbers: Ints, missing: Flags) -> tuple[int, int] | None:
    """Return the least and the greatest number, if fewer lie between them than half of the rows."""
    if missing.any():
        numbers = numbers[~missing]
    if not len(numbers):
        return None
    least, most = int(numbers.min()), int(numbers.max())
    return (least, most) if most - least < len(numbers) // 2 else None


def wide_timestamps(seconds: Ints, nanos: Ints, missing: Flags) -> Text:
    """Return the texts of seconds since 1970 and nanoseconds (0 to 999,999,999) of any year: yyyy-MM-dd HH:mm:ss.f."""
    near = np.abs(seconds) <= _ARROW_SECONDS
    # abs() of the least 64-bit number is itself, negative.
    near &= seconds != np.iinfo(np.int64).min
    near |= missing
    in_range = np.where(near & ~missing, seconds, 0)
    texts = pc.cast(pa.array(in_range, mask=missing).cast(pa.timestamp("s")), pa.string())
    if not near.all():
        far = seconds[~near]
        time = pc.cast(pa.array(far % 86_400).cast(pa.timestamp("s")), pa.string())
        time = pc.utf8_slice_codeunits(time, len("1970-01-01"))
        date = _civil_dates(far // 86_400)
        joined = pc.binary_join_element_wise(date, time, pa.scalar("", pa.string()))
        texts = pc.replace_with_mask(texts, pa.array(~near), joined)
    if not (nanos[~missing] != 0).any():
        return Text(raw(texts), after=b".0")
    # 1000000000 + nanoseconds has ten digits: "." replaces the first.
    digits = pc.utf8_slice_codeunits(pc.cast(pa.array(np.where(missing, 0, nanos) + 10**9), pa.string()), 1)
    digits = pc.ascii_rtrim(digits, "0")
    digits = pc.if_else(pc.equal(digits, ""), pa.scalar("0", pa.string()), digits)
    return Text(join(raw(texts), constant(b"."), raw(digits)))


def _civil_dates(days: Ints) -> pa.Array:
    """Return yyyy-MM-dd of days since 1970-01-01 in the proleptic Gregorian calendar, for any year."""
    texts = pa.array(np.datetime_as_string(days.astype("M8[D]")), pa.string())
    return pc.replace_substring_regex(texts, r"^-(\d{3}-)", r"-0\1")  # NumPy writes negative years with three digits
