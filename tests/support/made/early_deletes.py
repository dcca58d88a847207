"""Tables with delete events that are not later than the rows they name, and what both Hives show of them.

Each has an insert of write id 1 and one of write id 9 around what it is about, so that a compaction has work.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from acidctl.acid.compaction_kind import CompactionKind
from support.files.acid_files import ID, Event, delete, insert, write_acid, write_plain
from support.tables import mark


@dataclass(frozen=True)
class EarlyDeletes:
    """One table.

    Attributes:
        plant: adds its directories.
        by_rows: what the row readers of both Hives show.
        by_batches: what Hive 4's vectorized reader shows.
        is_told: rule V35 names it.
        keeps_event: a minor compaction keeps a delete event.
        refuses_minor: a minor compaction cannot tell an event that reaches rows from one that does not.
    """

    plant: Callable[[Path], object]
    by_rows: list[int]
    by_batches: list[int]
    is_told: bool = True
    keeps_event: bool = False
    refuses_minor: bool = False

    def make(self, table: Path) -> None:
        """Write it."""
        acid(table / "delta_0000001_0000001_0000", insert(1, 0, (10,)))
        acid(table / "delta_0000009_0000009_0000", insert(9, 0, (90,)))
        self.plant(table)
        for directory in table.iterdir():
            mark(directory)

    def is_refused(self, kind: CompactionKind) -> bool:
        """Whether readers of Hive 4 disagree over what would be decided."""
        differ = self.by_rows != self.by_batches
        return differ if kind is CompactionKind.MAJOR else self.refuses_minor or (differ and not self.keeps_event)


def acid(directory: Path, *events: Event) -> None:
    """A bucket file of rows with an id."""
    write_acid(directory / "bucket_00000", *events, row=ID)


def _five(table: Path, delete_delta: str, *events: Event, current: int = 5, original: int = 5) -> None:
    rows = [insert(original, at, (50 + at,), current=current) for at in range(2)]
    acid(table / "delta_0000005_0000005_0000", *rows)
    acid(table / delete_delta, *events)


def _loaded(table: Path) -> None:
    (table / "delta_0000005_0000005_0000").mkdir()
    write_plain(table / "delta_0000005_0000005_0000/000000_0", (50,), (51,), row=ID)
    acid(table / "delete_delta_0000003_0000003_0000", delete(5, 0, 3))


def _wide(table: Path) -> None:
    acid(table / "delta_0000002_0000005", insert(2, 0, (20,)), insert(5, 0, (50,)), insert(5, 1, (51,)))
    acid(table / "delete_delta_0000002_0000005", delete(5, 0, 3))


def _both(table: Path) -> None:
    """An event that reaches the row, and one that does not."""
    _five(table, "delete_delta_0000003_0000003_0000", delete(5, 0, 3))
    acid(table / "delete_delta_0000007_0000007_0000", delete(5, 0, 7))


EARLY = {
    "below": EarlyDeletes(
        lambda t: _five(t, "delete_delta_0000003_0000003_0000", delete(5, 0, 3)), [10, 50, 51, 90], [10, 50, 51, 90]
    ),
    "below a row of an older id": EarlyDeletes(
        lambda t: _five(t, "delete_delta_0000003_0000003_0000", delete(2, 0, 3), original=2),
        [10, 50, 51, 90],
        [10, 50, 51, 90],
        is_told=False,
        refuses_minor=True,
    ),
    "loaded": EarlyDeletes(_loaded, [10, 50, 51, 90], [10, 50, 51, 90]),
    "above and below": EarlyDeletes(_both, [10, 51, 90], [10, 51, 90], keeps_event=True),
    "later statement": EarlyDeletes(
        lambda t: _five(t, "delete_delta_0000005_0000005_0001", delete(5, 0, 5)),
        [10, 51, 90],
        [10, 51, 90],
        is_told=False,
        keeps_event=True,
    ),
    "same statement": EarlyDeletes(
        lambda t: _five(t, "delete_delta_0000005_0000005_0000", delete(5, 0, 5)), [10, 51, 90], [10, 50, 51, 90]
    ),
    "wide": EarlyDeletes(_wide, [10, 20, 50, 51, 90], [10, 20, 51, 90], keeps_event=True),
}
