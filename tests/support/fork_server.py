"""A process that runs command lines in children of its own: acidctl is imported once, and no thread is there to fork.

Started by :mod:`support.terminals`: one request per line on standard input, one answer per line on standard output.
"""

from __future__ import annotations

import codecs
import contextlib
import fcntl
import importlib
import json
import os
import pkgutil
import pty
import select
import signal
import struct
import sys
import termios
import time
from typing import Any

from acidctl.base.imports import leave_out_pandas

PACKAGES = ("cli", "verbs", "rows", "compaction", "cleaning", "repair", "validation", "demo")
LATE = (
    "acidctl.storage.registry",
    "pyarrow.compute",
    "pyarrow.orc",
    "rich.progress",
    "rich.table",
    "rich.text",
    "rich.box",
)
END_OF_INPUT = b"\x04"
MOST_QUESTIONS = 8


def import_all() -> None:
    leave_out_pandas()  # as the program does, whose main() is called with arguments here
    for package in PACKAGES:
        module = importlib.import_module(f"acidctl.{package}")
        for found in pkgutil.walk_packages(module.__path__, f"{module.__name__}."):
            importlib.import_module(found.name)
    # What is imported late in them: a child without rights may not be able to read it.
    for name in ("tomllib", "traceback", "grp", "pwd", *LATE):
        importlib.import_module(name)
    codecs.lookup("utf-8-sig")


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Run it on a terminal of its own, until its end or that of its time."""
    threads = len(os.listdir("/proc/self/task"))  # noqa: PTH208
    if threads != 1:
        return {"error": f"{threads} threads: to fork now can hang the child"}
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, request["columns"], 0, 0))
    child = os.fork()
    if not child:
        os.close(master)
        run(request, slave)
    os.write(master, request["typed"].encode() + END_OF_INPUT * MOST_QUESTIONS)
    # Our own side of it stays open until the child is gone, and all it wrote was read: else the rest could be lost.
    until = time.monotonic() + request["seconds"] + 1
    shown = b""
    while not (ended := os.waitpid(child, os.WNOHANG))[0] and time.monotonic() < until:
        shown += read(master, 0.01)
    if not ended[0]:
        for kill in (os.killpg, os.kill):
            with contextlib.suppress(ProcessLookupError):
                kill(child, signal.SIGKILL)
        ended = os.waitpid(child, 0)
    while part := read(master, 0.02):
        shown += part
    os.close(slave)
    os.close(master)
    status = ended[1]
    return {"status": os.waitstatus_to_exitcode(status), "shown": shown.decode("utf-8", "surrogateescape")}


def read(master: int, seconds: float) -> bytes:
    return os.read(master, 65536) if select.select([master], [], [], seconds)[0] else b""


def run(request: dict[str, Any], slave: int) -> None:
    """The child; it does not return."""
    try:
        os.setsid()
        fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
        for descriptor in (0, 1, 2):
            os.dup2(slave, descriptor)
        os.closerange(3, 1024)
        signal.alarm(request["seconds"])  # whose default is to end the process; it survives an exec
        os.chdir(request["cwd"])
        if request["nobody"]:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
        os.environ.clear()
        os.environ.update(request["environ"])
        if request["exec"]:
            os.execv(request["line"][0], request["line"])
        for name, number in (("stdin", 0), ("stdout", 1), ("stderr", 2)):
            mode = "w" if number else "r"
            setattr(sys, name, open(number, mode, encoding="utf-8", errors="surrogateescape", closefd=False))  # noqa: SIM115
        from acidctl.cli.main import main

        main(request["line"])
    except SystemExit as stop:
        os._exit(int(stop.code or 0))
    except BaseException:  # noqa: BLE001 - whatever it is, nobody else can say it
        import traceback

        os.write(2, traceback.format_exc().encode("utf-8", "replace"))
    finally:
        os._exit(99)


def serve() -> None:
    import_all()
    requests, answers = os.fdopen(os.dup(0), "r"), os.fdopen(os.dup(1), "w")
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(2, 1)
    for line in requests:
        answers.write(json.dumps(answer(json.loads(line))) + "\n")
        answers.flush()


if __name__ == "__main__":
    serve()
