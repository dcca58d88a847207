"""Command lines on a terminal of their own, or as another user, in children of a process that has no threads.

A child of pytest's own process can wait for ever for a lock that a thread of Arrow or boto held when it was forked.
"""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

import acidctl

_DRAWN = re.compile(r"\r\x1b\[K[^\r\n]*(?=\r\x1b\[K)|\r\x1b\[K")
SECONDS = 60
"""Of one command; one that needs more hangs."""


def without_last_line(sent: str) -> str:
    """What stays on a terminal of what was sent there: a line that tells how far the work is goes away again."""
    return _DRAWN.sub("", sent)


class Terminals:
    """A server of children, from :func:`terminals`."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(
        self,
        *line: str | Path,
        columns: int = 300,
        typed: str = "",
        nobody: bool = False,
        seconds: int = SECONDS,
        environ: Mapping[str, str] | None = None,
    ) -> tuple[int, str]:
        """The exit status of a line of acidctl, and all that its terminal got.

        Args:
            typed: what stands in its input, before the end of it.
            nobody: run it without any rights.
            environ: besides what this process has, and what keeps the screen plain.
        """
        if nobody:
            require_python_for_everybody()
        return self._ask([str(word) for word in line], columns, typed, nobody, seconds, environ=environ)

    def execute(
        self,
        *line: str | Path,
        columns: int = 300,
        seconds: int = SECONDS,
        environ: Mapping[str, str] | None = None,
    ) -> tuple[int, str]:
        """The same of another program."""
        return self._ask([str(word) for word in line], columns, "", False, seconds, execute=True, environ=environ)

    def _ask(
        self,
        line: list[str],
        columns: int,
        typed: str,
        nobody: bool,
        seconds: int,
        *,
        execute: bool = False,
        environ: Mapping[str, str] | None = None,
    ) -> tuple[int, str]:
        plain = {"NO_COLOR": "1", "TERM": "xterm", "COLUMNS": str(columns)}
        environ = {**os.environ, **plain, **(environ or {})}
        request = {
            "line": line, "columns": columns, "typed": typed, "nobody": nobody, "seconds": seconds, "exec": execute,
            "cwd": str(Path.cwd()), "environ": environ,
        }  # fmt: skip
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline() or '{"error": "the server of children has ended"}')
        assert "error" not in answer, answer
        shown = answer["shown"].replace("\r\n", "\n")
        assert answer["status"] >= 0, f"{line} hung, or died of signal {-answer['status']}: {shown}"
        return answer["status"], shown


def require_python_for_everybody() -> None:
    """Skip a test that runs as another user if only root can read this Python or acidctl, as in a private home."""
    for file in (Path(os.__file__), Path(sys.executable).resolve(), Path(acidctl.__file__)):
        if not all(one.stat().st_mode & stat.S_IXOTH for one in file.parents):
            pytest.skip(f"another user cannot run this Python: {file} is in a directory of root alone")


@contextmanager
def terminals() -> Iterator[Terminals]:
    """Start the server, and end it."""
    # Arrow's allocator would start a thread, and so would OpenBLAS.
    quiet = {"JE_ARROW_MALLOC_CONF": "background_thread:false", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-P", str(Path(__file__).with_name("fork_server.py"))]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **quiet}
    ) as process:
        try:
            yield Terminals(process)
        finally:
            process.kill()
