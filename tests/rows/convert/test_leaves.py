"""Every change of a column's type, value by value, as Hive 3.1.3 and 4.0.1 read it from ORC.

`type-changes.json` has for each type some values, as Hive prints them, and what they are after a change to each other
type: for `both`, or for `hive3` and `hive4` where these differ. A type that is not there nothing is converted to.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from acidctl.acid.compaction_kind import Hive
from acidctl.orc.read.wide_timestamps import WideTimestamp, as_nanoseconds, wide
from acidctl.orc.types import arrow_type, parse_type
from acidctl.rows.convert.java_floats import java_text
from acidctl.rows.convert.leaves import convert_leaf, hives_differ, require_known
from acidctl.rows.convert.times import HivesDifferError, NoConversion

FOUND: dict[str, Any] = json.loads((Path(__file__).parents[2] / "data/type-changes.json").read_text())
TEXTS = ("string", "varchar", "char")
NUMBERS = ("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal")
PARSED: dict[str, Any] = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), int),
    **dict.fromkeys(("float", "double"), float),
    "boolean": "true".__eq__,
    "decimal": Decimal,
    "binary": bytes.fromhex,
    "date": date.fromisoformat,
    "char": lambda text: text.rstrip(" "),
}


def changes() -> Iterator[tuple[str, str]]:
    return ((own, target) for own, found in FOUND.items() for target in found["targets"])


def column(kind: str, texts: list[str | None]) -> pa.Array:
    if kind == "timestamp":
        return times(texts)
    parse = PARSED.get(kind.partition("(")[0], str)
    return pa.array([None if text is None else parse(text) for text in texts], arrow_type(parse_type(kind)))


def times(texts: list[str | None]) -> pa.Array:
    pairs = [(text or "1970-01-01").partition(".")[::2] for text in texts]
    seconds = np.array([seconds_of(whole) for whole, _ in pairs])
    nanos = np.array([int(fraction.ljust(9, "0")) for _, fraction in pairs])
    return as_nanoseconds(wide(seconds, nanos, pa.array(texts), instant=False))


def seconds_of(text: str) -> int:
    """Return seconds since 1970; Hive repeats digits behind a time after 9999: `+10000-01-01 00:00:0000`."""
    day, _, time = text.removeprefix("+").partition(" ")
    return int(np.datetime64(f"{day}T{(time or '00:00:00')[:8]}", "s").astype(np.int64))


def values_of(array: pa.Array) -> list[str]:
    if isinstance(array.type, WideTimestamp):
        return list(map(repr, array.storage.to_pylist()))
    return list(map(repr, array.to_pylist()))


def in_reach(own: str, target: str, given: str | None, wanted: str | None, hive: Hive) -> bool:
    """Return whether acidctl converts a value that is or becomes a time; it refuses times in which calendars differ."""
    if given is None or "timestamp" not in (own, target):
        return True
    if own in ("timestamp", "date"):
        is_number = parse_type(target).kind in NUMBERS
        return given >= "1582-10-15" if is_number else "1678" < given < "2262"
    number = PARSED[own.partition("(")[0]](given)
    if own in ("float", "double") and not abs(number) <= 2**63 / 1000:
        return hive is Hive.HIVE4 or not np.isfinite(np.float32(number) if own == "float" else number)
    per_second = 1000 if hive is Hive.HIVE3 and isinstance(number, int) else 1
    return -12_219_292_800 * per_second <= number < 2**63 // 1000 * per_second


@pytest.mark.parametrize("hive", [Hive.HIVE3, Hive.HIVE4])
@pytest.mark.parametrize(("own", "target"), list(changes()))
def test_values_are_what_hive_reads(own: str, target: str, hive: Hive) -> None:
    kinds, by = (parse_type(own), parse_type(target)), FOUND[own]["targets"][target]
    given, wanted = FOUND[own]["values"], by.get("both", by.get(str(hive)))
    if kinds[0].kind not in TEXTS:
        kept = [i for i, text in enumerate(given) if in_reach(own, target, text, wanted and wanted[i], hive)]
        by = {name: [texts[i] for i in kept] for name, texts in by.items()}
        given, wanted = [given[i] for i in kept], wanted and [wanted[i] for i in kept]
    same = "both" in by or by.get("hive3") == by.get("hive4")
    assert same or hives_differ(*kinds), "what the two read differently is known to differ"
    is_of_numbers = kinds[0].kind in NUMBERS and target == "timestamp"
    is_known = own == "float" or is_of_numbers or (own, kinds[1].kind) == ("timestamp", "decimal")
    if hive is Hive.HIVE3 and not same and not is_known:
        with pytest.raises(HivesDifferError):
            require_known(column(own, given), *kinds, hive)
        return
    is_time_of_text = kinds[0].kind in TEXTS and target in ("date", "timestamp")  # test_times_of_text.py has them
    if not (same and hives_differ(*kinds)) and not is_time_of_text:
        require_known(column(own, given), *kinds, hive)
    found = convert_leaf(column(own, given), *kinds, by=hive)
    if own == "binary":  # of text it was asked for its bytes
        wanted = [text and bytes.fromhex(text).decode() for text in wanted]
    assert values_of(found) == values_of(column(target, wanted))
    assert found.type == arrow_type(kinds[1]) or isinstance(found.type, WideTimestamp)


@pytest.mark.parametrize(
    ("own", "target", "text", "hive3", "hive4"),
    [
        ("double", "timestamp", "1.0005", "1970-01-01 00:00:01.0005", "1970-01-01 00:00:01.001"),
        ("bigint", "timestamp", "-1500", "1969-12-31 23:59:58.5", "1969-12-31 23:35:00"),
        ("boolean", "timestamp", "true", "1970-01-01 00:00:00.001", "1970-01-01 00:00:01"),
        ("float", "timestamp", "0.1", "1970-01-01 00:00:00.100000001", "1970-01-01 00:00:00.1"),
        ("timestamp", "decimal(38,10)", "2020-01-02 03:04:05.123456789", "1577934245.1234567", "1577934245.123456789"),
    ],
)
def test_a_time_that_the_hives_read_differently_is_compacted_for_a_known_hive_alone(
    own: str, target: str, text: str, hive3: str, hive4: str
) -> None:
    kinds, given = (parse_type(own), parse_type(target)), column(own, [text, None])
    with pytest.raises(HivesDifferError):
        require_known(given, *kinds, None)
    for hive, wanted in ((Hive.HIVE3, hive3), (Hive.HIVE4, hive4)):
        require_known(given, *kinds, hive)
        assert values_of(convert_leaf(given, *kinds, by=hive)) == values_of(column(target, [wanted, None]))


@pytest.mark.parametrize(
    ("own", "target", "text"),
    [
        ("double", "timestamp", "-1.5"),
        ("double", "timestamp", "NaN"),
        ("int", "timestamp", "0"),
        ("decimal(38,10)", "timestamp", "1.9999999999"),
        ("timestamp", "decimal(10,2)", "1970-01-01 00:00:01.25"),
        ("timestamp", "bigint", "1969-12-31 23:59:58.5"),
    ],
)
def test_a_time_that_both_hives_read_alike_is_compacted(own: str, target: str, text: str) -> None:
    require_known(column(own, [text, None]), parse_type(own), parse_type(target), None)


@pytest.mark.parametrize("hive", [Hive.HIVE3, Hive.HIVE4])
@pytest.mark.parametrize("own", ["double", "decimal(38,10)"])
def test_numbers_beyond_the_calendars_do_not_become_times(own: str, hive: Hive) -> None:
    for text in ("-12219292800.5", "-9E+14", "9223372036854775"):
        with pytest.raises(NoConversion):
            convert_leaf(column(own, ["0", text]), parse_type(own), parse_type("timestamp"), by=hive)
    last = convert_leaf(column(own, ["253402300800.5"]), parse_type(own), parse_type("timestamp"), by=hive)
    assert values_of(last) == values_of(times(["+10000-01-01 00:00:00.5"]))


@pytest.mark.parametrize("target", ["bigint", "double", "decimal(38,10)"])
def test_times_before_the_calendars_agree_do_not_become_numbers(target: str) -> None:
    with pytest.raises(NoConversion):
        convert_leaf(times(["1582-10-14 23:59:59"]), parse_type("timestamp"), parse_type(target))


def test_seconds_and_days_become_times_beyond_nanoseconds() -> None:
    ends = (-12_219_292_800, 9_223_372_036_854_774)
    timestamp = parse_type("timestamp")
    wide = convert_leaf(pa.array([*ends, None], pa.int64()), parse_type("bigint"), timestamp)
    assert [one and one["seconds"] for one in wide.storage.to_pylist()] == [*ends, None]
    for beyond in (ends[0] - 1, ends[1] + 1, -(2**63)):
        with pytest.raises(NoConversion):
            convert_leaf(pa.array([beyond], pa.int64()), parse_type("bigint"), timestamp)
    day = convert_leaf(pa.array([date(9999, 12, 31)]), parse_type("date"), timestamp)
    assert [one["seconds"] for one in day.storage.to_pylist()] == [253_402_300_800 - 86_400]


def test_what_hive_does_not_convert_is_refused() -> None:
    for own, found in FOUND.items():
        for target in FOUND.keys() - found["targets"].keys() - {own}:
            with pytest.raises(NoConversion):
                convert_leaf(column(own, found["values"][:1]), parse_type(own), parse_type(target))


@pytest.mark.parametrize(
    ("value", "bits", "wanted"),
    [
        (5e-324, 53, "4.9E-324"),
        (2.0**-44, 53, "5.6843418860808015E-14"),
        (1e23, 53, "9.999999999999999E22"),
        (123456789012345678.0, 53, "1.2345678901234568E17"),
        (2e23, 53, "1.9999999999999998E23"),
        (-1e7, 53, "-1.0E7"),
        (1e-3, 53, "0.001"),
        (1.401298464324817e-45, 24, "1.4E-45"),
        (3.4028234663852886e38, 24, "3.4028235E38"),
        (float(2**30), 24, "1.07374182E9"),
    ],
)
def test_numbers_are_written_as_java_writes_them(value: float, bits: int, wanted: str) -> None:
    assert java_text(value, bits) == wanted
