"""``--log-format json``: everything on standard error becomes one JSON object per line."""

from __future__ import annotations

import json
import sys
import threading
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, TextIO

from acidctl.base.printable import printable
from acidctl.cli.output.redact import hidden
from acidctl.cli.output.streams import StreamProxy

SCHEMA_VERSION = 1
"""The version of all JSON forms: while it stays, keys are only ever added."""


class JsonLog(StreamProxy):
    """Stands in for standard error: writes records, and wraps every other line that is written there.

    It is not a terminal, so that nothing asks there and no bar is drawn.

    Args:
        behind: where the lines go.
        command: the name of the command, which is part of every record.
    """

    def __init__(self, behind: TextIO, command: str) -> None:
        super().__init__(behind)
        self._command = command
        self._rest = ""
        self._lock = threading.RLock()

    def record(self, level: str, message: str, **facts: Any) -> None:
        """Write one line without the empty facts; a failure to write is ignored."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line = {"schema_version": SCHEMA_VERSION, "time": now, "level": level, "command": self._command}
        line |= {"message": message} | {name: fact for name, fact in facts.items() if fact not in ("", None)}
        with self._lock, suppress(OSError):
            # ASCII: escaped names cannot control a terminal, and every reader understands escapes.
            self.behind.write(json.dumps(line) + "\n")
            self.behind.flush()

    def write(self, text: str, /) -> int:
        """Wrap lines of others, such as warnings of libraries and output of Java."""
        with self._lock:
            *lines, self._rest = (self._rest + text).replace("\r", "\n").split("\n")
            self._say(lines)
        return len(text)

    def flush(self) -> None:
        with self._lock:
            self._say([self._rest])
            self._rest = ""

    def _say(self, lines: list[str]) -> None:
        for line in lines:
            if line.strip():
                self.record("info", printable(hidden(line)))

    def isatty(self) -> bool:
        return False


def json_log() -> JsonLog | None:
    """Return standard error if it takes records, else None."""
    return sys.stderr if isinstance(sys.stderr, JsonLog) else None


def use_json(command: str) -> None:
    """Turn standard error into records until `standard_streams` puts the old stream back."""
    if json_log() is None:
        sys.stderr = JsonLog(sys.stderr, command)
