"""Row counts that stay right while a statement writes, and statistics that are given up because they no longer hold."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self

from acidctl.writing.rows.files import StagedFile

_ACCURATE = "COLUMN_STATS_ACCURATE"
_ROWS, _RAW_SIZE = "numRows", "rawDataSize"
_NUMBERS = (_ROWS, _RAW_SIZE, "numFiles", "totalSize")


@dataclass(frozen=True, slots=True)
class Growth:
    """The effect of a statement on one location.

    Attributes:
        rows, files, bytes: what it adds; rows are fewer where it deletes.
        replaces: nothing that was there before is left.
    """

    rows: int
    files: int
    bytes: int
    replaces: bool = False

    @classmethod
    def of(cls, files: Iterable[StagedFile], *, replaces: bool) -> dict[str, Self]:
        """Return the effect of staged files on each location, by its name."""
        sums: dict[str, list[int]] = {}
        for file in files:
            amounts = sums.setdefault(file.location, [0, 0, 0])
            amounts[0] += -file.rows if file.is_delete else file.rows
            amounts[1] += 1
            amounts[2] += file.bytes
        return {name: cls(rows, count, size, replaces) for name, (rows, count, size) in sums.items()}


def after(parameters: Mapping[str, str], growth: Growth) -> dict[str, str]:
    """Return the parameters of a table or partition with the counts that hold once the statement has committed.

    Counts stay accurate if the metastore calls them accurate before, or if the statement replaces all rows. Otherwise
    they are left as they were, and are no longer called accurate; statistics of columns are always given up.
    """
    left = without_claims(parameters)
    counts = _counts(parameters, replaces=growth.replaces)
    if counts is None or (rows := counts[_ROWS] + growth.rows) < 0:
        return left
    raw = counts[_RAW_SIZE] * rows // counts[_ROWS] if counts[_ROWS] else 0  # Hive plans by the average size of a row
    sizes = {"numFiles": counts["numFiles"] + growth.files, "totalSize": counts["totalSize"] + growth.bytes}
    numbers = {_ROWS: rows, _RAW_SIZE: raw, **sizes}
    return left | {name: str(number) for name, number in numbers.items()} | {_ACCURATE: '{"BASIC_STATS":"true"}'}


def without_claims(parameters: Mapping[str, str]) -> dict[str, str]:
    """Return parameters that call no statistics accurate."""
    return {name: text for name, text in parameters.items() if name != _ACCURATE}


def counts_in(parameters: Mapping[str, str]) -> dict[str, str]:
    """Return the counts among parameters, and the claim that they are accurate; others may have changed the rest."""
    return {name: parameters[name] for name in (*_NUMBERS, _ACCURATE) if name in parameters}


def _counts(parameters: Mapping[str, str], *, replaces: bool) -> dict[str, int] | None:
    """Return the numbers of rows, files and bytes before the statement, or None if they are not known."""
    if replaces:
        return dict.fromkeys(_NUMBERS, 0)
    try:
        is_accurate = json.loads(parameters.get(_ACCURATE, "{}")).get("BASIC_STATS") == "true"
        counts = {name: int(parameters.get(name, "0")) for name in _NUMBERS}
        return counts if is_accurate and _ROWS in parameters and min(counts.values()) >= 0 else None
    except (ValueError, AttributeError):  # somebody else wrote something else
        return None
