"""Tasks for the tests: functions that Python workers import by name."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from acidctl.base.errors import BadDataError


@dataclass(frozen=True, slots=True)
class Toy:
    """A small task: `kind` says what happens."""

    kind: str
    value: int = 0
    folder: str = ""


def play(toy: Toy) -> Any:
    """Do what the toy says."""
    match toy.kind:
        case "square":
            return toy.value**2
        case "ours":
            raise BadDataError("/t/base_5/bucket_00000: no ORC file", "the magic is missing", "look at it")
        case "foreign":
            raise ValueError("a value that is no good")
        case "unpicklable result":
            return threading.Lock()
        case "unpicklable error":
            raise _awkward()
        case "exit":
            sys.exit(3)
        case "die":
            os.kill(os.getpid(), signal.SIGKILL)
        case "noise":
            os.write(2, b"noise of a native library\n")
            os.write(1, b"and on stdout\n")
            return os.getpid()
        case "wait":  # until the driver answers; False when it never does
            until = time.monotonic() + toy.value
            while not (answered := Path(toy.folder, "answer").exists()) and time.monotonic() < until:
                time.sleep(0.05)
            return answered
        case "sleep":
            if toy.folder:
                Path(toy.folder, f"started-{os.getpid()}").touch()
            time.sleep(toy.value)
            return os.getpid()
    return None


def _awkward() -> Exception:
    class LocalError(BadDataError):
        """Cannot be pickled: nobody can import it."""

    return LocalError("what", "why", "hint")


class Stubborn:
    """A task that can be pickled, but not unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _refuse, ()


def _refuse() -> None:
    raise RuntimeError("not on this machine")


def describe(value: Any) -> str:
    """The value's type."""
    return type(value).__name__
