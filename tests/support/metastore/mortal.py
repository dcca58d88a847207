"""A process that runs command lines of acidctl in children of its own, each of which may be killed at any moment.

with mortals() as children:
    status = children.run("hive", "worker", "--once", "--metastore", address, on_pid=found.set_result)

acidctl is imported once, and no thread is there to fork.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from acidctl.metastore import client
from support.fork_server import import_all
from support.paths import PYTHONPATH


class Mortals:
    """From :func:`mortals`."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(self, *line: object, said: Path, on_pid: Callable[[int], object] = lambda _: None) -> int:
        """The exit status of a line; below zero for the signal that killed it.

        Args:
            said: where its output goes, and its errors.
            on_pid: told of its process before it has ended.
        """
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps([str(said), *map(str, line)]) + "\n")
        self._process.stdin.flush()
        on_pid(int(self._process.stdout.readline()))
        return int(self._process.stdout.readline())


@contextlib.contextmanager
def mortals() -> Iterator[Mortals]:
    """Ended with the block."""
    process = subprocess.Popen(
        [sys.executable, "-m", "support.metastore.mortal"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": PYTHONPATH},
    )
    try:
        yield Mortals(process)
    finally:
        process.stdin.close()  # type: ignore[union-attr]
        process.wait(60)


def _serve() -> None:
    import_all()
    client.PATIENCE = 0.5
    for text in sys.stdin:
        said, *line = json.loads(text)
        child = os.fork()
        if not child:
            _run(said, line)
        print(child, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def _run(said: str, line: list[str]) -> None:
    """The child; it does not return."""
    status = 99
    try:
        file = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for descriptor in (1, 2):
            os.dup2(file, descriptor)
        from acidctl.cli.main import main

        main(line)
    except SystemExit as stop:
        status = int(stop.code or 0)
    except BaseException:  # noqa: BLE001 - whatever it is, nobody else can say it
        import traceback

        os.write(2, traceback.format_exc().encode("utf-8", "replace"))
    finally:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    _serve()
