"""Layouts that Hive never writes but reads without a word, and what they mean for the rows."""

from __future__ import annotations

from acidctl.acid.doubts import layout_problems
from acidctl.location.snapshot import Snapshot
from acidctl.wording import text_of


def odd_layout(snapshot: Snapshot) -> list[str]:
    """A sentence each; none as a rule."""
    problems = layout_problems(snapshot.listing, snapshot.state)
    read = {file.path for file in snapshot.files()} if problems else set()
    shown, found = snapshot.fs.display(snapshot.path), []
    for problem in problems:
        effect = "it is read" if problem.path in read else "it is not read"
        if problem.others:
            effect = "both are read, as Hive does, so rows may come twice"
        found.append(f"{shown}: {text_of(problem.reason)}: {effect}")
    return found
