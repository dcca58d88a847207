"""Text that became DATE, TIMESTAMP or BINARY, text by text, as Hive 3.1.3 and 4.0.1 read it from ORC.

`text-times.json` has texts, and what each Hive reads after the change of their type; Hive 3 in two time zones.
"""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from support.paths import DATA

from acidctl.acid.compaction_kind import Hive
from acidctl.orc.read.wide_timestamps import parts
from acidctl.orc.types import parse_type
from acidctl.rows.convert.leaves import convert_leaf, require_known
from acidctl.rows.convert.times import HivesDifferError, NoConversion, dates_of, timestamps_of

FOUND: dict[str, Any] = json.loads((DATA / "text-times.json").read_text())
TEXTS: list[str | None] = FOUND["texts"]
HIVES = {Hive.HIVE3: "hive3", Hive.HIVE4: "hive4"}
TYPES = ("string", "varchar(40)", "char(40)")


def as_date(text: str) -> int:
    """Return days since 1970 of a date as a Hive prints it: Hive 3 prints the year -1 as 0002."""
    return int(np.datetime64(text.removeprefix("+"), "D").astype(np.int64))


def as_time(text: str) -> tuple[int, int]:
    """Return seconds since 1970 and nanoseconds; Hive repeats digits behind a time after 9999."""
    whole, _, fraction = text.removeprefix("+").partition(".")
    day, _, time = whole.partition(" ")
    return int(np.datetime64(f"{day}T{time[:8]}", "s").astype(np.int64)), int(fraction.ljust(9, "0") or 0)


def is_of_an_era(text: str | None, shown: str | None) -> bool:
    """Return whether a year before 1 is printed without its sign, so that the value is not known from it."""
    return text is not None and shown is not None and re.match(r"\s*(-?0000|0001-01-0|-)", text) is not None


@pytest.mark.parametrize("own", TYPES)
@pytest.mark.parametrize("hive", HIVES)
def test_dates_are_what_hive_reads(hive: Hive, own: str) -> None:
    found = convert_leaf(pa.array(TEXTS), parse_type(own), parse_type("date"), by=hive).cast(pa.int32()).to_pylist()
    for text, value, shown in zip(TEXTS, found, FOUND[HIVES[hive]][own]["date"], strict=True):
        if hive is Hive.HIVE3 and is_of_an_era(text, shown):
            assert value is not None, text
        else:
            assert value == (shown and as_date(shown)), (text, shown)


@pytest.mark.parametrize("own", TYPES)
@pytest.mark.parametrize("hive", HIVES)
def test_timestamps_are_what_hive_reads_in_utc(hive: Hive, own: str) -> None:
    found = convert_leaf(pa.array(TEXTS), parse_type(own), parse_type("timestamp"), by=hive)
    pairs = zip(*(part.tolist() for part in parts(found)), strict=True)
    values = [pair if is_there else None for pair, is_there in zip(pairs, found.is_valid().to_pylist(), strict=True)]
    for text, value, shown in zip(TEXTS, values, FOUND[HIVES[hive]][own]["timestamp"], strict=True):
        if is_of_an_era(text, shown):
            assert value is not None, text
        else:
            assert value == (shown and as_time(shown)), (text, shown)


@pytest.mark.parametrize("own", TYPES)
def test_binary_is_the_bytes_of_the_text_for_hive_4(own: str) -> None:
    found = convert_leaf(pa.array(TEXTS), parse_type(own), parse_type("binary"))
    wanted = [None if text is None else bytes.fromhex(text) for text in FOUND["hive4"][own]["binary"]]
    assert found.to_pylist() == wanted
    assert all("binary" not in FOUND["hive3"][one] for one in TYPES), "Hive 3 does not convert it"
    with pytest.raises(HivesDifferError):
        require_known(pa.array(["a"]), parse_type(own), parse_type("binary"), Hive.HIVE3)


def test_a_time_zone_matters_to_timestamps_of_hive_3_alone() -> None:
    for name in HIVES.values():
        here, there = FOUND[name]["string"], FOUND[f"{name} in Asia/Kolkata"]["string"]
        assert here["date"] == there["date"]
        assert (here["timestamp"] == there["timestamp"]) == (name == "hive4")


@pytest.mark.parametrize(
    ("target", "text", "hive", "is_known"),
    [
        ("date", "2020-01-02", None, True),
        ("date", "2020-1-2", None, False),
        ("date", "2020-1-2", Hive.HIVE3, True),
        ("date", "2020-1-2", Hive.HIVE4, True),
        ("date", "1582-10-14", Hive.HIVE4, False),
        ("date", "1582-10-15", Hive.HIVE4, True),
        ("date", "1582-10-05", Hive.HIVE3, True),
        ("date", "1582-10-04", Hive.HIVE3, False),
        ("date", "no date", None, True),
        ("timestamp", "2020-01-02 03:04:05", None, False),
        ("timestamp", "2020-01-02 03:04:05", Hive.HIVE3, False),
        ("timestamp", "2020-01-02 03:04:05", Hive.HIVE4, True),
        ("timestamp", "1500-01-02 03:04:05", Hive.HIVE4, False),
        ("timestamp", "2020-01-02", None, True),
        ("timestamp", "2020-01-02 03:04", Hive.HIVE3, True),
    ],
)
def test_a_compaction_needs_a_hive_where_values_depend_on_it(
    target: str, text: str, hive: Hive | None, is_known: bool
) -> None:
    given = pa.array([text, None]), parse_type("string"), parse_type(target), hive
    if is_known:
        require_known(*given)
    else:
        with pytest.raises(HivesDifferError):
            require_known(*given)


@pytest.mark.parametrize("hive", HIVES)
def test_empty_columns_and_columns_of_null_have_no_times(hive: Hive) -> None:
    for column in (pa.array([], pa.string()), pa.array([None, None], pa.string())):
        assert dates_of(column, hive).null_count == timestamps_of(column, hive).null_count == len(column)
    sliced = pa.array(["x", "2020-01-02", None, "2020-01-02 03:04:05"])[1:]
    assert dates_of(sliced, hive).is_valid().to_pylist() == [True, False, False]
    assert timestamps_of(sliced, hive).is_valid().to_pylist() == [False, False, True]


def test_a_time_beyond_milliseconds_is_refused() -> None:
    with pytest.raises(NoConversion):
        timestamps_of(pa.array(["+999999999-12-31 00:00:00"]), Hive.HIVE4)


def test_parquet_is_refused_as_by_both_hives() -> None:
    for target in ("date", "timestamp"):
        with pytest.raises(NoConversion, match="no Hive"):
            convert_leaf(pa.array(["2020-01-02"]), parse_type("string"), parse_type(target), parquet=True)
