"""Find and read the file of settings."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

from acidctl.base.errors import NotFoundError, RefusedError, UsageProblem
from acidctl.base.user_folders import user_folder
from acidctl.cli.config.settings import SettingsFile
from acidctl.storage.os_errors import from_os_error

_MOST_BYTES = 1 << 20


def read_settings_file(given: str | None) -> SettingsFile | None:
    """Read the user's file; None if no file was given and none exists at the usual place.

    Args:
        given: the file to read instead.

    Raises:
        NotFoundError: the given file does not exist.
        UsageProblem: the file is not TOML.
        RefusedError: another user may have written it.
        AccessError: it cannot be read.
    """
    path = Path(os.path.expanduser(given)) if given else user_path()  # noqa: PTH111 - never raises
    if not given and not (path.is_absolute() and _is_file(path)):  # relative without a home: not the user's
        return None
    table, readers = _read(path)
    return SettingsFile(f"user file {path}", table, readers)


def user_path() -> Path:
    """Return ``~/.config/acidctl/config.toml``, or where XDG_CONFIG_HOME has it."""
    return Path(user_folder("XDG_CONFIG_HOME", "~/.config"), "config.toml")


def _is_file(path: Path) -> bool:
    """Return whether the file can be seen: `sudo` may leave HOME at a directory that this user may not list."""
    try:
        return path.is_file()
    except OSError:
        return False


def _read(path: Path) -> tuple[dict[str, Any], str]:
    """Return the content of a file, and how to make it private if others can read it."""
    import tomllib  # noqa: PLC0415 - only where there is a file

    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            _refuse_foreign(path, status)
            data = file.read(_MOST_BYTES + 1)
    except FileNotFoundError:
        raise NotFoundError(f"there is no file {path}", "", "look at --config and ACIDCTL_CONFIG") from None
    except IsADirectoryError:
        raise NotFoundError(f"{path} is a directory", "a file was expected", "give the path of a file") from None
    except OSError as error:
        raise from_os_error(error, "read", str(path)) from error
    if len(data) > _MOST_BYTES:
        raise UsageProblem(f"cannot use {path}", "it is larger than any configuration")
    try:
        return tomllib.loads(data.decode("utf-8-sig")), _other_readers(path, status)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        text = str(error)  # not with the line itself, which may hold a password
        where = text if "(at " in text and "\n" not in text else type(error).__name__
        raise UsageProblem(f"{path} is not TOML", where, "correct it there") from None


def _other_readers(path: Path, status: os.stat_result) -> str:
    """Return the command that makes the file private; empty if it is.

    The group may read a file of root: that is the only way to give it to a service.
    """
    by_group = stat.S_IRGRP if status.st_uid == os.geteuid() else 0
    is_open = stat.S_ISREG(status.st_mode) and status.st_mode & (by_group | stat.S_IROTH)
    return f"chmod {'600' if by_group else 'o-r'} {path}" if is_open else ""


def _refuse_foreign(path: Path, status: os.stat_result) -> None:
    """Refuse a file that another user can write, as its content decides what is run."""
    if not stat.S_ISREG(status.st_mode):
        return
    if status.st_mode & stat.S_IWOTH:
        raise RefusedError(f"will not use {path}", "everybody can write it", f"chmod o-w {path}")
    if status.st_uid not in (os.geteuid(), 0):
        raise RefusedError(f"will not use {path}", "it belongs to another user", "use a file of your own: --config")
