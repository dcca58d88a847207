"""Try out, at one directory, the operations of a store that acidctl needs."""

from __future__ import annotations

import time
import uuid
from contextlib import suppress
from dataclasses import dataclass, field

from acidctl.acid.listing import CLOCKS_SECONDS
from acidctl.base.errors import AcidctlError, ConflictError, EnvironmentProblem, NotFoundError, StorageError
from acidctl.storage.port import FileSystem, join


@dataclass(slots=True)
class Trial:
    """The result of trying out a store.

    Attributes:
        worked: the operations that succeeded, in their order: ``list``, ``create``, ``lock``, ``rename`` or ``copy``,
            ``remove``.
        clock_ahead: seconds by which the clock of the store is ahead of ours, negative if it is behind; None if it was
            not measured.
        error: what ended the trial, or made its result useless.
    """

    worked: list[str] = field(default_factory=list)
    clock_ahead: float | None = None
    error: AcidctlError | None = None


def try_out(fs: FileSystem, path: str, *, write: bool = False) -> Trial:
    """Look at a path and list it; errors are in the result.

    Args:
        write: also create, rename (or copy) and remove a hidden file there, which readers of tables skip.
    """
    trial = Trial()
    try:
        if fs.stat(path).is_dir:
            fs.list_dir(path)
            trial.worked.append("list")
        if write:
            _write(fs, path, trial)
    except AcidctlError as error:
        trial.error = error
    return trial


def _write(fs: FileSystem, path: str, trial: Trial) -> None:
    first = join(path, f".acidctl-probe-{uuid.uuid4().hex}")
    second = f"{first}-2"
    try:
        begin = time.time()
        (fs.create_exclusive if fs.can_lock else fs.write_bytes)(first, b"first")
        trial.worked.append("create")
        now = (begin + time.time()) / 2
        if (modified := fs.stat(first).modified) is not None:
            trial.clock_ahead = modified - now
        if fs.can_lock:
            _require_one_winner(fs, first)
            trial.worked.append("lock")
        if fs.can_rename:
            fs.rename(first, second)
            trial.worked.append("rename")
        elif fs.can_copy:
            fs.copy(first, second)
            fs.remove_tree(first)
            trial.worked.append("copy")
        else:
            second = first
        fs.remove_tree(second)
        trial.worked.append("remove")
    except BaseException as error:  # Ctrl-C leaves nothing either
        left = [name for name in dict.fromkeys((first, second)) if not _is_removed(fs, name)]
        if left and isinstance(error, AcidctlError):
            error.hint = "; ".join(filter(None, (error.hint, f"remove {', '.join(map(fs.display, left))}")))
        raise
    if abs(trial.clock_ahead or 0) > CLOCKS_SECONDS:
        what = f"the clock of {fs.url or 'the disk'} differs from ours by {trial.clock_ahead:+.0f} s"
        trial.error = EnvironmentProblem(
            what, "ages of directories and locks are wrong by that", "set both clocks by the same time server"
        )


def _require_one_winner(fs: FileSystem, path: str) -> None:
    with suppress(ConflictError):
        fs.create_exclusive(path, b"second")
        what = f"{fs.url} let the same file be created twice"
        raise StorageError(what, "locks do not keep two runs apart there", "use another server or gateway")


def _is_removed(fs: FileSystem, path: str) -> bool:
    try:
        fs.remove_tree(path)
    except NotFoundError:
        return True
    except AcidctlError:
        return False
    return True
