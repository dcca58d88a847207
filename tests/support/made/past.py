"""What the history of a table on disk is, event by event."""

from __future__ import annotations

import shutil
from pathlib import Path

from acidctl.demo.walkthrough import write_walkthrough
from acidctl.rows.scan.event_dump import event_files_at
from acidctl.storage.registry import open_location
from support.tables import snapshot_of

Event = tuple[int, int, int, int, int]


def events_below(path: Path) -> set[Event]:
    """Every event that lies on disk, once."""
    fs, inner = open_location(str(path))
    found: set[Event] = set()
    for source in event_files_at(fs, inner):
        with source.open() as events:
            for stripe in range(events.stripes):
                batch = events.batch(stripe)
                found |= set(zip(*(batch.column(i).to_pylist() for i in range(5)), strict=True))
    return found


def walkthrough(path: Path) -> Path:
    fs, inner = open_location(str(path))
    write_walkthrough(fs, inner)
    return path


def remove_obsolete(path: Path) -> None:
    for verdict in snapshot_of(path).state.verdicts:
        if verdict.state.value == "obsolete":
            shutil.rmtree(path / verdict.name)
