"""Tables in which something is due."""

from __future__ import annotations

from pathlib import Path

from support.files.acid_files import insert, write_acid


def write_deltas(table: Path, first: int, last: int, rows: int = 2) -> Path:
    """A delta with some rows for each write id of a range."""
    for number in range(first, last + 1):
        path = table / f"delta_{number:07}_{number:07}_0000" / "bucket_00000"
        write_acid(path, *(insert(number, row, (number * 100 + row, "x")) for row in range(rows)))
    return table
