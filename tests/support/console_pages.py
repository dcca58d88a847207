"""Texts that show commands and what a terminal prints for them: pages of docs/, and the golden file of each command."""

from __future__ import annotations

import getpass
import platform
import re
from collections.abc import Iterator
from typing import NamedTuple

COLUMNS = 100
FOLDER = "/warehouse/sales.db"
"""The texts show this in place of the directory in which the commands run."""

RUN_ID = re.compile(r"\d{8}T\d{6}\.\d{3}Z-[0-9a-f]{8}")
_STYLE = re.compile(r"\x1b\[\d*m")
_VARIES = (
    (RUN_ID.pattern, "RUN"),
    (r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d)?(\.\d+)?(Z|\+00:00)?", "TIME"),
    (r"\d{1,2} [A-Z][a-z]{2} \d\d:\d\d", "TIME"),
    (r"\d+(\.\d+)? ([KMG]i)?B\b", "SIZE"),
    (r"\d+\.\d+ s of work", "SECONDS"),
    (r"checked in \d+\.\d+ s", "checked"),
    (r"\b(since|for) \d+ s\b", r"\1 SECONDS"),
    (r"\b\d+ s\b", "SECONDS"),
    (r"\b\d+ min(utes)?\b", "MINUTES"),
    (r"TIME +(SECONDS|MINUTES)\b", "TIME AGE"),
    (r"thrift://[\w.]+:\d+", "METASTORE"),
    (r"\bpid \d+", "PID"),
)


class Step(NamedTuple):
    """A command, and the text that stands below it."""

    command: str
    shown: str


def steps(text: str) -> Iterator[Step]:
    """Yield every command of a text, which begins with ``$``, in its order."""
    for step in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, shown = step.partition("\n")
        yield Step(command, shown)


def without_styles(shown: str) -> str:
    """Return a terminal's text without its colours."""
    return _STYLE.sub("", shown)


def without_owner(shown: str) -> str:
    """Return a text with the user of the pages in place of the one who runs the tests."""
    return shown.replace(f"{getpass.getuser()}@{platform.node()}", "hive@edge")


def steady(shown: str) -> str:
    """Return the words of a text without times and sizes: lines fold elsewhere if a path is longer."""
    shown = without_owner(" ".join(shown.split()))
    for pattern, name in _VARIES:
        shown = re.sub(pattern, name, shown)
    return " ".join(shown.split())
