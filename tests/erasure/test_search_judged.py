"""Files that Hive 2.3 wrote: events that hold a row are those that Arrow's own reader, and plain Python, find."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyarrow import orc
from support.engines.written_by_hive import HIVE23

from acidctl.api import Location

TABLES = sorted(path.name for path in HIVE23.iterdir() if path.is_dir())


def rows_of(path: Path) -> list[dict[str, object]]:
    """The rows that the events of a file hold, or its rows where it has no events; none of a delete event."""
    rows = orc.ORCFile(path).read().to_pylist()
    return [one["row"] for one in rows if one["row"] is not None] if rows and "operation" in rows[0] else rows


@pytest.mark.parametrize("name", TABLES)
def test_events_are_found_file_by_file(name: str) -> None:
    table = HIVE23 / name / "table"
    files = [path for path in table.rglob("*_0*") if path.is_file() and not path.name.endswith("_flush_length")]
    held = {str(path): rows_of(path) for path in files if path.stat().st_size}
    numbers = [
        (column, value)
        for rows in held.values()
        for row in rows[:3]
        for column, value in row.items()
        if isinstance(value, int) and not isinstance(value, bool) and column != "un"
    ]
    assert numbers
    for column, value in numbers[:: max(1, len(numbers) // 6)]:
        expected = {path: sum(row.get(column) == value for row in rows) for path, rows in held.items()}
        assert sum(expected.values()) > 0
        result = Location(table).erasure(f"`{column}` = {value}")
        assert result.is_known
        found = {file.path: file.matched.events for report in result.reports for file in report.files}
        assert {path: count for path, count in found.items() if count} == {p: c for p, c in expected.items() if c}
