"""Layouts that Hive never writes but reads without a word, and what they mean for the rows."""

from __future__ import annotations

from acidctl.acid.doubts import layout_problems, layout_warnings
from acidctl.storage.snapshot import Snapshot


def odd_layout(snapshot: Snapshot) -> list[str]:
    """A sentence each; none as a rule."""
    problems = layout_problems(snapshot.listing, snapshot.state)
    if not problems:
        return []
    read = {file.path for file in snapshot.files()}
    return layout_warnings(snapshot.fs.display(snapshot.path), problems, read)
