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
from acidctl.orc.hive_types import parse_type
from acidctl.orc.types import arrow_type
from acidctl.rows.convert.java_floats import java_text
from acidctl.rows.convert.leaves import HivesDifferError, NoConversion, convert_leaf, hives_differ, require_known

FOUND: dict[str, Any] = json.loads((Path(__file__).parents[2] / "data/type-changes.json").read_text())
TEXTS = ("string", "varchar", "char")
NOT_YET = {
    **dict.fromkeys(("float", "double", "decimal"), ("timestamp",)),
    **dict.fromkeys(TEXTS, ("binary", "date", "timestamp")),
    "timestamp": ("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal"),
}
"""What Hive converts and acidctl refuses."""
SECONDS = ("boolean", "tinyint", "smallint", "int", "bigint")
"""What Hive 4 takes for seconds when it becomes TIMESTAMP."""
PARSED: dict[str, Any] = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), int),
    **dict.fromkeys(("float", "double"), float),
    "boolean": "true".__eq__,
    "decimal": Decimal,
    "binary": bytes.fromhex,
    "date": date.fromisoformat,
    "timestamp": lambda text: np.datetime64(text.replace(" ", "T"), "ns"),
    "char": lambda text: text.rstrip(" "),
}


def changes() -> Iterator[tuple[str, str]]:
    return ((own, target) for own, found in FOUND.items() for target in found["targets"])


def column(kind: str, texts: list[str | None]) -> pa.Array:
    parse = PARSED.get(kind.partition("(")[0], str)
    return pa.array([None if text is None else parse(text) for text in texts], arrow_type(parse_type(kind)))


@pytest.mark.parametrize("hive", [Hive.HIVE3, Hive.HIVE4])
@pytest.mark.parametrize(("own", "target"), list(changes()))
def test_values_are_what_hive_reads(own: str, target: str, hive: Hive) -> None:
    kinds, by = (parse_type(own), parse_type(target)), FOUND[own]["targets"][target]
    given, wanted = FOUND[own]["values"], by.get("both", by.get(str(hive)))
    assert "both" in by or hives_differ(*kinds), "what the two read differently is known to differ"
    if "timestamp" in (own, target):  # of nanoseconds in 64 bits, for this test
        is_time = own in ("timestamp", "date")
        in_reach = [
            text is None or "1678" < text < "2262" if is_time else own != "bigint" or abs(int(text)) < 9e9
            for text in given
        ]
        kept = [i for i, fits in enumerate(in_reach) if fits]
        given, wanted = [given[i] for i in kept], wanted and [wanted[i] for i in kept]
    if hive is Hive.HIVE3 and "both" not in by and own != "float":
        with pytest.raises(HivesDifferError):
            require_known(column(own, given), *kinds, hive)
        return
    if kinds[1].kind in NOT_YET.get(kinds[0].kind, ()):
        with pytest.raises(NoConversion):
            convert_leaf(column(own, given), *kinds)
        return
    if not ("both" in by and hives_differ(*kinds)):
        require_known(column(own, given), *kinds, hive)
    found = convert_leaf(column(own, given), *kinds, by=hive)
    if own == "binary":  # of text it was asked for its bytes
        wanted = [text and bytes.fromhex(text).decode() for text in wanted]
    assert list(map(repr, found.to_pylist())) == list(map(repr, column(target, wanted).to_pylist()))
    assert found.type == arrow_type(kinds[1])


def test_seconds_and_days_become_times_beyond_nanoseconds() -> None:
    ends = (-12_219_292_800, 253_402_300_799)
    timestamp = parse_type("timestamp")
    wide = convert_leaf(pa.array([*ends, None], pa.int64()), parse_type("bigint"), timestamp)
    assert [one and one["seconds"] for one in wide.storage.to_pylist()] == [*ends, None]
    for beyond in (ends[0] - 1, ends[1] + 1, -(2**63)):
        with pytest.raises(NoConversion):
            convert_leaf(pa.array([beyond], pa.int64()), parse_type("bigint"), timestamp)
    day = convert_leaf(pa.array([date(9999, 12, 31)]), parse_type("date"), timestamp)
    assert [one["seconds"] for one in day.storage.to_pylist()] == [ends[1] + 1 - 86_400]


@pytest.mark.parametrize("own", SECONDS)
def test_what_becomes_a_time_in_hive_3_by_its_zone_is_refused(own: str) -> None:
    with pytest.raises(NoConversion):
        convert_leaf(column(own, ["1"]), parse_type(own), parse_type("timestamp"), by=Hive.HIVE3)


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
