"""FLOAT and DOUBLE as text, the way ``Float.toString`` and ``Double.toString`` of Java 8 to 18 write them.

They write the fewest digits that distinguish a number from its neighbours, like Arrow, with exceptions: powers of two,
large whole numbers, and numbers with one digit and an exponent. These go through the JDK's algorithm
(``FloatingDecimal.dtoa``) step by step, once for each distinct value.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

# Java writes no exponent between these bounds.
_FIRST, _BEHIND = 1e-3, 1e7
# Java writes whole numbers of up to this many bits as integers.
_EXACT_BITS = 62
_PARTS = r"^(?P<sign>-?)(?P<whole>\d+)\.?(?P<rest>\d*)(?:e(?P<exponent>[-+]\d+))?$"


def java_texts(column: pa.Array) -> pa.Array:
    """Return the numbers of a column of FLOAT or DOUBLE as text; NULL stays NULL."""
    values = column.drop_null().to_numpy(zero_copy_only=False)
    texts = column.drop_null().cast(pa.string())
    is_whole = pc.match_substring_regex(texts, r"^-?\d+$")
    texts = pc.if_else(is_whole, pc.binary_join_element_wise(texts, ".0", ""), texts)
    size = np.abs(values.astype(np.float64))
    is_finite = np.isfinite(size) & (size > 0)
    texts = _replaced(texts, is_finite & ((size < _FIRST) | (size >= _BEHIND)), _with_exponents)
    bits = 24 if column.type == pa.float32() else 53
    fraction, _ = np.frexp(np.where(is_finite, size, 1))
    one_digit = pc.match_substring_regex(texts, r"^-?\d\.0E").to_numpy(zero_copy_only=False)
    odd = (fraction == 0.5) | (size >= 2.0 ** (bits - 3)) | (size < np.finfo(values.dtype).smallest_normal) | one_digit
    unique, places = np.unique(values[is_finite & odd], return_inverse=True)
    one_by_one = pa.array([java_text(float(value), bits) for value in unique], pa.string()).take(pa.array(places))
    texts = _replaced(texts, is_finite & odd, lambda _: one_by_one)
    signs = np.signbit(values[~is_finite])
    zero, infinite = np.where(signs, "-0.0", "0.0"), np.where(signs, "-Infinity", "Infinity")
    special = np.where(np.isnan(values[~is_finite]), "NaN", np.where(values[~is_finite] == 0, zero, infinite))
    texts = _replaced(texts, ~is_finite, lambda _: pa.array(special.tolist(), pa.string()))
    if not column.null_count:
        return texts
    there = column.is_valid().to_numpy(zero_copy_only=False)
    return texts.take(pa.array(np.cumsum(there) - 1, pa.int64(), mask=~there))


def _replaced(texts: pa.Array, where: Any, made: Any) -> pa.Array:
    mask = pa.array(where)
    return pc.replace_with_mask(texts, mask, made(texts.filter(mask))) if where.any() else texts


def _with_exponents(texts: pa.Array) -> pa.Array:
    """Convert Arrow's texts of numbers to Java's exponent form: one digit before the point, at least one after it."""
    parts = pc.extract_regex(texts, _PARTS)
    sign, whole, rest, exponent = (parts.field(name) for name in ("sign", "whole", "rest", "exponent"))
    digits = pc.binary_join_element_wise(whole, rest, "")
    shown = pc.utf8_ltrim(digits, characters="0")
    zeros = pc.subtract(pc.utf8_length(digits), pc.utf8_length(shown))
    power = pc.if_else(pc.equal(exponent, ""), "0", exponent)
    power = pc.add(pc.replace_substring(power, "+", "").cast(pa.int32()), pc.utf8_length(whole))
    power = pc.subtract(pc.subtract(power, zeros), 1).cast(pa.string())
    behind = pc.utf8_rtrim(pc.utf8_slice_codeunits(shown, 1), characters="0")
    behind = pc.if_else(pc.equal(behind, ""), "0", behind)
    first = pc.utf8_slice_codeunits(shown, 0, 1)
    mantissa = pc.binary_join_element_wise(sign, first, "")
    return pc.binary_join_element_wise(pc.binary_join_element_wise(mantissa, behind, "."), power, "E")


def java_text(value: float, bits: int) -> str:
    """Return one finite number other than 0 as Java writes it.

    Args:
        bits: of its fraction: 24 for FLOAT, 53 for DOUBLE.
    """
    sign, (digits, point) = "-" if value < 0 else "", _digits(abs(value), bits)
    if 0 < point < 8:
        return f"{sign}{digits[:point].ljust(point, '0')}.{digits[point:] or '0'}"
    if -3 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{point - 1}"


def _digits(value: float, bits: int) -> tuple[str, int]:
    """Return the digits of a number, and how many of them are before the point (``FloatingDecimal.dtoa``)."""
    number, denominator = value.as_integer_ratio()
    exponent = number.bit_length() - denominator.bit_length()  # of two; the denominator is a power of two
    least = -149 if bits == 24 else -1074
    significant = min(bits, exponent - least + 1)
    if denominator == 1 and exponent <= _EXACT_BITS:
        return _whole(number, exponent - significant - 1)
    # value = b / s * 10 ** power, and m is half of the distance to the next number, scaled like b.
    fraction, binary = np.frexp(value)
    # The power of ten of the first digit, or one more (``estimateDecExp``).
    estimate = (2 * float(fraction) - 1.5) * 0.289529654 + 0.176091259 + (int(binary) - 1) * 0.301029995663981
    power = int(np.floor(estimate))
    up, down = max(0, -power), max(0, power)
    b, s = number * 10**up, denominator * 10**down
    # m = 2 ** (exponent - significant) * 10 ** up * denominator, halved again for powers of two.
    shift = exponent - significant - (number & (number - 1) == 0)
    b, s, m = b << max(0, -shift), s << max(0, -shift), (denominator * 10**up) << max(0, shift)
    return _developed(b, s, m, power)


def _developed(b: int, s: int, m: int, power: int) -> tuple[str, int]:
    digits: list[int] = []
    tens = 10 * s
    digit, b = b // s, 10 * (b % s)
    m *= 10
    low, high = b < m, b + m > tens
    if digit == 0 and not high:
        power -= 1
    else:
        digits.append(digit)
    if power < -3 or power >= 8:
        low = high = False
    while not (low or high):
        digit, b = b // s, 10 * (b % s)
        m *= 10
        low, high = b < m, b + m > tens
        digits.append(digit)
    if high and (not low or 2 * b > tens or (2 * b == tens and digits[-1] & 1)):
        return _rounded_up(digits, power + 1)
    return "".join(map(str, digits)), power + 1


def _rounded_up(digits: list[int], point: int) -> tuple[str, int]:
    """Add one to the last digit; digits that become 0 are not dropped before the carry, as in the JDK."""
    place = len(digits) - 1
    while place and digits[place] == 9:
        digits[place] = 0
        place -= 1
    if digits[place] == 9:
        digits[0], point = 1, point + 1
    else:
        digits[place] += 1
    return "".join(map(str, digits)).rstrip("0"), point


def _whole(number: int, insignificant_bits: int) -> tuple[str, int]:
    """Return the digits of a whole number, without those beyond its precision."""
    dropped = len(str(1 << insignificant_bits)) - 1 if insignificant_bits > 1 else 0
    number, rest = divmod(number, 10**dropped)
    number += dropped > 0 and 2 * rest >= 10**dropped
    text = str(number)
    return text.rstrip("0"), len(text) + dropped
