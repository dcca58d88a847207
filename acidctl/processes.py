"""Python processes beside this one, which take work through a pipe.

Not forked: the threads of Arrow would be missing in the child, which then waits for them for ever.  And not started by
multiprocessing, which runs the main module again, a user's script, and imports from the current directory.
"""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection

from acidctl.imports import child_environment, import_path

_CODE = (
    "import sys; sys.path[:] = sys.argv[4:]; from importlib import import_module; "
    "getattr(import_module(sys.argv[1]), sys.argv[2])(*map(int, sys.argv[3].split(',')))"
)


def start_worker(
    serve: Callable[..., None], *numbers: int, is_quiet: bool = False
) -> tuple[subprocess.Popen[bytes], Connection]:
    """Start a Python that calls a function of a module with the descriptor of its end of a pipe, and further numbers.

    Args:
        is_quiet: what it writes, a native library's last words, is for nobody.

    Raises:
        OSError: it cannot be started.
    """
    ours, theirs = multiprocessing.Pipe()
    arguments = [serve.__module__, serve.__name__, ",".join(map(str, (theirs.fileno(), *numbers))), *import_path()]
    stream = subprocess.DEVNULL if is_quiet else None
    try:
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", _CODE, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            pass_fds=[theirs.fileno()],
            env=child_environment(),
        )
    except OSError:
        ours.close()
        raise
    finally:
        theirs.close()
    return process, ours
