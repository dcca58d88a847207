"""From the bytes of a field of text to a value, as Hive's LazySimpleSerDe takes it: what is no value is NULL.

Where Hive 3 and 4 differ (blanks around a decimal, days that no month has, base64 with odd characters) it is as in
Hive 4. No function looks at one row after the other.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from acidctl.errors import BadDataError
from acidctl.orc.arrow import cut_text
from acidctl.orc.read.wide_timestamps import as_nanoseconds, wide
from acidctl.orc.types import OrcType, arrow_type

Bytes = NDArray[np.uint8]
Longs = NDArray[np.int64]

_BLANK = r"[\t-\r\x1c-\x20]*"
_ANY_BLANK = r"[\x00-\x20]*"
_DIGITS = r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)"
_WHOLE = rf"^[+-]?{_DIGITS}$"
_DECIMAL = rf"^{_BLANK}[+-]?{_DIGITS}(?:[eE][+-]?[0-9]+)?{_BLANK}$"
_LEADING_ZEROS = r"^(-?)0+([0-9])"
_SCIENTIFIC = r"^(?P<sign>-?)(?P<whole>[0-9]*)\.?(?P<rest>[0-9]*)[eE](?P<exponent>[+-]?0*[0-9]{1,2})$"
_DOUBLE = rf"^{_ANY_BLANK}[+-]?(?:NaN|Infinity|{_DIGITS}(?:[eE][+-]?[0-9]+)?[fFdD]?){_ANY_BLANK}$"
_HEXADECIMAL = rf"^{_ANY_BLANK}[+-]?0[xX][0-9a-fA-F.]*[pP][+-]?[0-9]+[fFdD]?{_ANY_BLANK}$"
_DAY = r"-(?P<month>[0-9]{1,2})-(?P<day>[0-9]{1,2})"
_DATE = rf"^{_ANY_BLANK}(?P<sign>-?)(?P<year>[0-9]{{1,4}}){_DAY}(?:[^0-9](?s:.*))?$"
_TIME = r"(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{1,2})(?::(?P<second>[0-9]{1,2})(?:\.(?P<nanos>[0-9]{0,9}))?)?"
_TIMESTAMP = rf"^{_ANY_BLANK}(?P<sign>-?)(?P<year>[0-9]{{1,9}}){_DAY}[ T]{_TIME}{_ANY_BLANK}$"
_STRICT_T = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(?:[^:0-9]|$|:[0-9]{2})"
"""Between day and hour a T may stand where no digit is left out; then seconds may be, as a whole."""
_STRICT_BLANK = r"[0-9] [0-9]+:[0-9]+:[0-9]+(?:[^.0-9]|$|\.[0-9])"
_BASE64 = r"^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}(?:==)?|[A-Za-z0-9+/]{3}=?)?$"
_LIMITS = {"tinyint": 7, "smallint": 15, "int": 31, "bigint": 63}
_EASY_DIGITS = 18
_MOST_DIGITS = 38
_LEAST_DATE = 8


def values_of(raw: pa.Array, kind: OrcType, path: str) -> pa.Array:
    """The values of fields.

    Args:
        raw: their bytes, escapes undone where the type is a text; NULL where there is none.
        kind: a primitive type.

    Raises:
        BadDataError: values that acidctl does not know how Hive reads.
    """
    read = _READERS.get(kind.kind)
    if read is None:
        raise BadDataError(
            f"{path} cannot be read", f"acidctl does not read {kind.kind} from text", "read it with Hive"
        )
    return read(raw, kind, path)


def _matching(raw: pa.Array, pattern: str) -> pa.Array:
    """The values that match, as texts; NULL for the others."""
    fits = pc.match_substring_regex(raw, pattern)
    return pc.if_else(fits, raw, pa.scalar(None, raw.type)).cast(pa.string())


def _text(raw: pa.Array, kind: OrcType, path: str) -> pa.Array:  # noqa: ARG001 - one of several
    return pa.Array.from_buffers(pa.string(), len(raw), raw.buffers(), offset=raw.offset)


def _sized_text(raw: pa.Array, kind: OrcType, path: str) -> pa.Array:
    cut = cut_text(_text(raw, kind, path), kind.max_length)
    return pc.ascii_rtrim(cut, characters=" ") if kind.kind == "char" else cut


def _integers(raw: pa.Array, kind: OrcType, path: str) -> pa.Array:  # noqa: ARG001 - one of several
    texts = _matching(raw, _WHOLE)
    whole = pc.replace_substring_regex(texts, r"\..*$", "")
    whole = pc.replace_substring_regex(whole, r"^\+", "")
    whole = pc.replace_substring_regex(whole, _LEADING_ZEROS, r"\1\2")
    whole = pc.if_else(pc.is_in(whole, pa.array(["", "-"])), "0", whole)
    lengths = pc.fill_null(pc.binary_length(whole), 0).to_numpy(zero_copy_only=False)
    if lengths.max(initial=0) > _EASY_DIGITS:
        # 64 bits have 19 digits, a sign besides.
        whole = pc.if_else(pa.array(lengths <= _EASY_DIGITS + 2), whole, pa.scalar(None, pa.string()))
        numbers = whole.cast(pa.decimal128(20, 0))
    else:
        numbers = whole.cast(pa.int64())
    half = 1 << _LIMITS[kind.kind]
    low, high = (pa.scalar(limit).cast(numbers.type) for limit in (-half, half - 1))
    fits = pc.and_(pc.greater_equal(numbers, low), pc.less_equal(numbers, high))
    return pc.if_else(fits, numbers, pa.scalar(None, numbers.type)).cast(arrow_type(kind))


def _floats(raw: pa.Array, kind: OrcType, path: str) -> pa.Array:
    raw = _maybe_numbers(raw)
    if pc.any(pc.match_substring_regex(raw, _HEXADECIMAL)).as_py():
        raise BadDataError(f"{path} cannot be read", "it has hexadecimal floating-point numbers", "read it with Hive")
    texts = pc.ascii_trim(_matching(raw, _DOUBLE), characters="".join(map(chr, range(33))))
    texts = pc.replace_substring_regex(pc.replace_substring_regex(texts, r"^\+", ""), r"([0-9.])[fFdD]$", r"\1")
    target = arrow_type(kind)
    try:
        return texts.cast(target)
    except pa.ArrowInvalid:  # some are beyond what the type holds: infinite, or zero
        bytes_ = np.asarray(pc.fill_null(texts, "0").to_numpy(zero_copy_only=False), "S")
        with np.errstate(over="ignore", under="ignore"):
            numbers = bytes_.astype(np.float64).astype(target.to_pandas_dtype())
        return pa.array(numbers, target, mask=np.asarray(texts.is_null()))


def _maybe_numbers(raw: pa.Array) -> pa.Array:
    """Without what Hive takes for no number at once, by its first bytes."""
    none = pc.match_substring_regex(raw, r"^(?:[^0-9]|[^0-9][^0-9]|[nN](?s:...))?$")
    return pc.if_else(none, pa.scalar(None, raw.type), raw)


def _booleans(raw: pa.Array, kind: OrcType, path: str) -> pa.Array:  # noqa: ARG001 - one of several
    return pc.equal(pc.ascii_lower(_matching(raw, r"^(?i:true|false)$")), "true")


def _decimals(raw: pa.Array, kind: OrcType, path: str) -> pa.Array:  # noqa: ARG001 - one of several
    texts = pc.replace_substring_regex(_matching(raw, _DECIMAL), rf"^{_BLANK}\+?|{_BLANK}$", "")
    texts = pc.replace_substring_regex(texts, _LEADING_ZEROS, r"\1\2")
    has_exponent = pc.fill_null(pc.match_substring_regex(texts, "[eE]"), False)
    if pc.any(has_exponent).as_py():
        chosen = pc.if_else(has_exponent, texts, pa.scalar(None, pa.string()))
        texts = pc.if_else(has_exponent, _without_exponent(chosen), texts)
    return _rounded(texts, kind)


def _rounded(texts: pa.Array, kind: OrcType) -> pa.Array:
    """Plain digits as decimals: rounded half up; NULL where there are too many before the point."""
    # All that matters of what is rounded away is its first digit.
    texts = pc.replace_substring_regex(texts, rf"(\.[0-9]{{{kind.scale + 1}}})[0-9]+$", r"\1")
    whole = pc.replace_substring_regex(pc.replace_substring_regex(texts, r"\..*$", ""), "^-?0*", "")
    whole = pc.binary_length(whole)
    fits = pc.less_equal(whole, _MOST_DIGITS - kind.scale)
    texts = pc.if_else(fits, texts, pa.scalar(None, pa.string()))
    numbers = texts.cast(pa.decimal256(_MOST_DIGITS + 2, kind.scale + 1))
    rounded = pc.round(numbers, kind.scale, "half_towards_infinity")
    limit = pa.scalar(Decimal(10 ** (kind.precision - kind.scale)), rounded.type)
    return pc.if_else(pc.less(pc.abs(rounded), limit), rounded, pa.scalar(None, rounded.type)).cast(arrow_type(kind))


def _without_exponent(texts: pa.Array) -> pa.Array:
    """Numbers with an exponent as plain digits; NULL where it has three digits, of which Hive makes nothing either."""
    parts = pc.extract_regex(texts, _SCIENTIFIC)
    written = pc.if_else(parts.is_valid(), parts.field("exponent"), pa.scalar(None, pa.string()))
    exponents = pc.replace_substring_regex(written, r"^\+", "").cast(pa.int64())
    sign, whole, rest = (parts.field(name) for name in ("sign", "whole", "rest"))
    found = pa.nulls(len(texts), pa.string())
    for exponent in pc.unique(exponents.drop_null()).to_pylist():  # two digits and a sign: few
        if exponent >= 0:
            padded = pc.utf8_rpad(rest, exponent, "0")
            front = pc.binary_join_element_wise(whole, pc.utf8_slice_codeunits(padded, 0, exponent), "")
            back = pc.utf8_slice_codeunits(padded, exponent)
        else:
            padded = pc.utf8_lpad(whole, -exponent, "0")
            front = pc.utf8_slice_codeunits(padded, 0, exponent)
            back = pc.binary_join_element_wise(pc.utf8_slice_codeunits(padded, exponent), rest, "")
        plain = pc.binary_join_element_wise(pc.binary_join_element_wise(sign, "0", front, ""), back, ".")
        found = pc.if_else(pc.fill_null(pc.equal(exponents, exponent), False), plain, found)
    return pc.replace_substring_regex(found, _LEADING_ZEROS, r"\1\2")


def _dates(raw: pa.Array, kind: OrcType, path: str) -> pa.Array:  # noqa: ARG001 - one of several
    found = _parts(raw, _DATE)
    days, is_day = _days(found)
    return pa.array(days.astype(np.int32), pa.int32(), mask=~is_day).cast(pa.date32())


def _timestamps(raw: pa.Array, kind: OrcType, path: str) -> pa.Array:  # noqa: ARG001 - one of several
    has_t = pc.match_substring(raw, "T")
    fits = pc.if_else(has_t, pc.match_substring_regex(raw, _STRICT_T), pc.match_substring_regex(raw, _STRICT_BLANK))
    found = _parts(pc.if_else(fits, raw, pa.scalar(None, raw.type)), _TIMESTAMP)
    days, is_valid = _days(found)
    hour, minute, second = (_number(found, name) for name in ("hour", "minute", "second"))
    is_valid &= (hour < 24) & (minute < 60) & (second < 60)
    nanos = pc.utf8_rpad(pc.if_else(found.is_valid(), found.field("nanos"), ""), 9, "0")
    seconds = days * 86_400 + hour * 3600 + minute * 60 + second
    seconds[~is_valid] = 0
    rest = np.asarray(nanos.cast(pa.int64()), np.int64)
    return as_nanoseconds(wide(seconds, rest, pa.array(seconds, mask=~is_valid), instant=False))


def _parts(raw: pa.Array, pattern: str) -> pa.Array:
    """The named groups of a pattern, as texts; NULL where it does not fit, or the value is too short for Hive."""
    long_enough = pc.greater_equal(pc.binary_length(raw), _LEAST_DATE)
    texts = _matching(pc.if_else(long_enough, raw, pa.scalar(None, raw.type)), pattern)
    return pc.extract_regex(texts, pattern)


def _number(found: pa.Array, name: str) -> Longs:
    texts = pc.if_else(found.is_valid(), found.field(name), "0")
    return np.asarray(pc.if_else(pc.equal(texts, ""), "0", texts).cast(pa.int64()), np.int64)


def _days(found: pa.Array) -> tuple[Longs, NDArray[np.bool_]]:
    """Days since 1970, and which of them there are."""
    year, month, day = (_number(found, name) for name in ("year", "month", "day"))
    year = np.where(np.asarray(pc.fill_null(pc.equal(found.field("sign"), "-"), False)), -year, year)
    is_valid = np.asarray(found.is_valid()) & (month >= 1) & (month <= 12) & (day >= 1)
    months = np.where(is_valid, (year - 1970) * 12 + month - 1, 0).astype("datetime64[M]")
    first = months.astype("datetime64[D]").astype(np.int64)
    following = (months + 1).astype("datetime64[D]").astype(np.int64)
    is_valid &= day <= following - first
    return np.where(is_valid, first + day - 1, 0), is_valid


def _binaries(raw: pa.Array, kind: OrcType, path: str) -> pa.Array:  # noqa: ARG001 - one of several
    coded = pc.fill_null(pc.match_substring_regex(raw, _BASE64), False)
    if not pc.any(coded).as_py():
        return raw
    inner = pc.replace_substring_regex(pc.if_else(coded, raw, pa.scalar(b"", pa.binary())).cast(pa.string()), "=+$", "")
    return pc.if_else(coded, _from_base64(inner), raw)


_SIX_BITS = np.zeros(256, np.uint32)
for _at, _letter in enumerate(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"):
    _SIX_BITS[_letter] = _at


def _from_base64(texts: pa.Array) -> pa.Array:
    """Without padding, NULL as the empty text."""
    texts = pc.fill_null(texts, "")
    data, starts, ends = spans_of(texts)
    lengths = ends - starts
    groups = (lengths + 3) // 4
    places = np.concatenate([[0], np.cumsum(groups)])
    padded = np.zeros(int(places[-1]) * 4, np.uint32)
    padded[places_within(places[:-1] * 4, lengths)] = _SIX_BITS[data[places_within(starts, lengths)]]
    a, b, c, d = padded.reshape(-1, 4).T
    whole = (a << 18) | (b << 12) | (c << 6) | d
    out = np.stack([whole >> 16, whole >> 8, whole], 1).astype(np.uint8).reshape(-1)
    return gathered(out, places[:-1] * 3, places[:-1] * 3 + lengths * 3 // 4, pa.binary())


_READERS: dict[str, Callable[[pa.Array, OrcType, str], pa.Array]] = {
    "string": _text,
    "char": _sized_text,
    "varchar": _sized_text,
    **dict.fromkeys(_LIMITS, _integers),
    "float": _floats,
    "double": _floats,
    "boolean": _booleans,
    "decimal": _decimals,
    "date": _dates,
    "timestamp": _timestamps,
    "binary": _binaries,
}


# --- bytes ---------------------------------------------------------------------------------------------------------


def places_within(starts: Longs, lengths: Longs) -> Longs:
    """The places of all bytes of spans, one span after the other."""
    offsets = np.cumsum(lengths) - lengths
    return np.repeat(starts - offsets, lengths) + np.arange(int(lengths.sum()), dtype=np.int64)


def gathered(data: Bytes, starts: Longs, ends: Longs, kind: pa.DataType) -> pa.Array:
    """The bytes of spans as an array of texts or binaries."""
    lengths = ends - starts
    offsets = np.zeros(len(starts) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    picked = data[places_within(starts, lengths)]
    return pa.Array.from_buffers(kind, len(starts), [None, pa.py_buffer(offsets), pa.py_buffer(picked)])


def spans_of(texts: pa.Array) -> tuple[Bytes, Longs, Longs]:
    """The bytes of an array of texts, and where each begins and ends."""
    _, offsets, data = texts.buffers()
    all_offsets = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
    return np.frombuffer(data, np.uint8) if data else np.zeros(0, np.uint8), all_offsets[:-1], all_offsets[1:]
