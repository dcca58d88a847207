"""Folders of the user's own: in the cache, where the Java wrapper lives, and for one process."""

from __future__ import annotations

import atexit
import os
import shutil
import stat
import tempfile
from collections.abc import Mapping
from os import getuid
from pathlib import Path


def cache_dir(environ: Mapping[str, str]) -> Path:
    """Make (mode 0700) and return ``$XDG_CACHE_HOME/acidctl``, or ``~/.cache/acidctl``.

    Raises:
        OSError: it cannot be made, cannot be written, belongs to somebody else, who may have put a link there, or may
            be written by others.  What is kept here is executed or mapped by Java.
    """
    base, home = Path(environ.get("XDG_CACHE_HOME", "")), Path(environ.get("HOME", ""))
    if not base.is_absolute():  # the XDG rules say that it is to be ignored then
        try:
            base = (home if home.is_absolute() else Path.home()) / ".cache"
        except RuntimeError as error:  # no HOME and no entry in the password database
            raise FileNotFoundError("there is no home directory") from error
    folder = base / "acidctl"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if {folder.stat().st_uid, folder.lstat().st_uid} != {getuid()}:
        raise PermissionError(f"{folder} belongs to another user")
    if folder.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError(f"others may write to {folder}")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(f"{folder} cannot be written")
    return folder


_own: list[Path] = []


def process_dir() -> Path:
    """A folder (mode 0700) that ends with this process; another one when a cleaner of temporary files removed it."""
    if not (_own and _is_ours(_own[-1])):
        _own.append(Path(tempfile.mkdtemp(prefix="acidctl-")))
        atexit.register(shutil.rmtree, _own[-1], ignore_errors=True)
    return _own[-1]


def _is_ours(folder: Path) -> bool:
    """Return whether it is there; others may make one of its name once it is gone."""
    try:
        found = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == getuid()
