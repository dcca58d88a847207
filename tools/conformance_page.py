"""The table of docs/reference/conformance.md, made from tests/data/conformance.json; no server is needed for it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parents[1] / "tests/data/conformance.json"

_HEADER = ("table", "what is in it", "Hive 3.1.3", "Hive 4.0.1", "Trino 476", "acidctl", "after minor", "after major")
_TRACKERS = {
    **{one: f"https://issues.apache.org/jira/browse/{one.upper()}-" for one in ("hive", "orc", "spark")},
    "trino": "https://github.com/trinodb/trino/issues/",
    "presto": "https://github.com/prestodb/presto/issues/",
    "doris": "https://github.com/apache/doris/pull/",
    "starrocks": "https://github.com/StarRocks/starrocks/pull/",
    "cudf": "https://github.com/NVIDIA/cudf/issues/",
    "impala": "https://issues.apache.org/jira/browse/IMPALA-",
    "spark-acid": "https://github.com/qubole/spark-acid/issues/",
}
_SPECIAL = re.compile(r"[<>*_\[\]|`\\]")

Result = Mapping[str, Any]
Reading = Any
"""A list of rows, or a text that begins with ``! `` and says why there are none."""


def conformance_table() -> str:
    """Markdown: a heading for every kind of table, and below it what each reader reads."""
    results: dict[str, Result] = json.loads(RESULTS.read_text("utf-8"))
    out = [totals(list(results.values()))]
    for kind, members in groupby(results.items(), lambda item: item[1]["kind"]):
        lines = [_HEADER, ["---"] * len(_HEADER), *(_line(name, result) for name, result in members)]
        out.append(f"## {kind[:1].upper()}{kind[1:]}\n\n" + "".join(f"| {' | '.join(line)} |\n" for line in lines))
    return "\n" + "\n".join(out) + "\n"


def totals(results: Sequence[Result]) -> str:
    """How many tables there are, and in how many acidctl differs."""
    known = sum(bool(result["reason"]) for result in results)
    reports = {result["source"] for result in results if re.fullmatch(r"[a-z-]+-\d+", result["source"])}
    return f"{len(results)} tables, {len(reports)} public reports; acidctl differs in {known}, and says why.\n"


def _line(name: str, result: Result) -> list[str]:
    shown = _Rows(result)
    readers = result["readers"]
    hive = [shown.modes([readers.get(f"hive{version} {way}") for way in ("rows", "vectors")]) for version in (3, 4)]
    first = f"`{name}`<br>{_source(result['source'])}"
    ours = _ours(result, shown)
    after = [_after(result, mode, shown) for mode in ("minor", "major")]
    return [first, _plain(result["what"]), *hive, shown.one(readers.get("trino")), ours, *after]


def _source(source: str) -> str:
    tracker, _, number = source.rpartition("-")
    if tracker in _TRACKERS and number.isdigit():
        return f"[{source}]({_TRACKERS[tracker]}{number})"
    if source.startswith("format"):
        return f"[{source}](../format.md)"
    if source.startswith("validate"):
        rule = source.removeprefix("validate ")
        return f"[{rule}](rules.md#{rule.lower()})"
    return source


def _ours(result: Result, shown: _Rows) -> str:
    rows, finds = result["acidctl"]["rows"], result["acidctl"]["finds"]
    same = [version for version in (4, 3) if rows in [result["readers"].get(f"hive{version} {way}") for way in _WAYS]]
    said = f"as Hive {same[0]}" if same and isinstance(rows, list) else shown.one(rows)
    if "cat" in result["differs"]:
        said = f"**{said}**: {_plain(result['reason'])}"
    return f"{said} ({', '.join(finds)})" if finds else str(said)


def _after(result: Result, mode: str, shown: _Rows) -> str:
    outcome = result[mode]["outcome"]
    if outcome != "compacted":
        return "nothing to do" if outcome == "nothing" else str(outcome)
    changes = [f"{name}: {shown.one(rows)}" for name, rows in result[mode]["readers"].items()]
    if any(one.startswith(mode) for one in result["differs"]):
        return f"**{'<br>'.join(changes)}**: {_plain(result['reason'])}"
    return "<br>".join(changes) or "the same"


_WAYS = ("rows", "vectors")


class _Rows:
    """How the rows of one table are shown: by their first column alone, where that tells them apart in all readings."""

    def __init__(self, result: Result) -> None:
        readings = [result["acidctl"]["rows"], *result["readers"].values()]
        readings += [rows for mode in ("minor", "major") for rows in result[mode]["readers"].values()]
        rows = {_values(row) for reading in readings if isinstance(reading, list) for row in reading}
        self._is_short = len(rows) == len({row.partition("|")[0] for row in rows})

    def one(self, reading: Reading | None) -> str:
        """What one reader reads."""
        if reading is None:
            return ""
        if isinstance(reading, str):
            return "refused"
        values = sorted(map(_values, reading))
        if not values:
            return "no rows"
        if self._is_short:
            return ", ".join(_plain(row.partition("|")[0]) for row in sorted(values, key=_as_number))
        return "<br>".join(_plain(row.replace("|", ", ")) for row in values)

    def modes(self, readings: Sequence[Reading | None]) -> str:
        """What one Hive reads row by row and vectorised."""
        texts = [self.one(reading) for reading in readings]
        return texts[0] if texts[0] == texts[1] else f"rows: {texts[0]}<br>vectors: {texts[1]}"


def _as_number(row: str) -> tuple[int, str]:
    first = row.partition("|")[0]
    return (int(first) if first.lstrip("-").isdigit() else 0, row)


def _values(row: str) -> str:
    """A row without its ROW__ID."""
    return re.sub(r"^\d+:-?\d+:\d+ ", "", row)


def _plain(text: str) -> str:
    """Text in which Markdown sees nothing special."""
    return _SPECIAL.sub(r"\\\g<0>", text).replace("\n", " ")
