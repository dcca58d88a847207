"""Where the files of settings are, which of them count, and reading them."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from acidctl.cli.config.layers import TRUSTED, Commands, Layer, Settings, merged_settings
from acidctl.errors import NotFoundError, RefusedError, UsageProblem
from acidctl.storage.os_errors import from_os_error

PROJECT_NAME = ".acidctl.toml"
_MOST_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Files:
    """The files that there are.

    Attributes:
        user: where the user's settings are, or would be.
        layers: those that count, the strongest first.
        project: the nearest project file.
        ignored: the same, in a directory that the user does not trust.
    """

    user: Path
    layers: tuple[Layer, ...] = ()
    project: Path | None = None
    ignored: Path | None = None


def read_files(given: str | None) -> Files:
    """Read what there is.

    A project file sends the work elsewhere (`master`), runs code (Spark's settings) and says when data may go, and it
    comes with a directory that others may have made.  So it counts only in directories that the user's own file
    names, as git does it with `safe.directory`.

    Args:
        given: the file to read as the user's.

    Raises:
        NotFoundError: that is not there.
        UsageProblem: a file is not TOML.
        RefusedError: others may have written it.
        AccessError: it cannot be read.
    """
    path = Path(os.path.expanduser(given)) if given else user_path()  # noqa: PTH111 - never raises
    table: dict[str, Any] = {}
    layers: list[Layer] = []
    if given or (path.is_absolute() and _is_file(path)):  # without a home it is relative, so anybody's
        table, readers = _read(path, own=True)
        layers.append(Layer(f"user file {path}", table, readers=readers))
    trusted = _trusted(table, path)
    project = project_path()
    ignored = None
    if project and project.parent.resolve() in trusted:
        layers.insert(0, Layer(f"project file {project}", _read(project, own=False)[0], is_project=True))
    else:
        ignored = project
    return Files(path, tuple(layers), project, ignored)


def load(given: str | None, profile: str | None, commands: Commands) -> Settings:
    """The settings of all files; errors as for :func:`read_files` and :func:`merged_settings`."""
    files = read_files(given)
    if files.ignored:
        from acidctl.cli.output.console import note  # noqa: PLC0415 - only to complain

        note(f"{files.ignored} is not used: {how_to_trust(files)}")
    if not files.layers and not profile:
        return Settings()
    return merged_settings(files.layers, commands, profile)


def how_to_trust(files: Files) -> str:
    """What to do about a project file that is not used."""
    directory = files.ignored.parent if files.ignored else ""
    return f"if you trust it, put {str(directory)!r} into {TRUSTED} of {files.user}"


def user_path() -> Path:
    """``~/.config/acidctl/config.toml``, or where the platform keeps such things."""
    if sys.platform == "linux":  # as platformdirs has it, which takes 4 ms of every command to be loaded
        folder = os.environ.get("XDG_CONFIG_HOME", "")
        if not os.path.isabs(folder):  # noqa: PTH117
            folder = os.path.expanduser("~/.config")  # noqa: PTH111 - never raises
        return Path(folder, "acidctl", "config.toml")
    from platformdirs import user_config_dir  # noqa: PLC0415 - only without --config

    return Path(user_config_dir("acidctl")) / "config.toml"


def project_path() -> Path | None:
    """The nearest one, here or above."""
    try:
        here = Path.cwd()
    except FileNotFoundError:
        return None
    for directory in (here, *here.parents):
        if _is_file(directory / PROJECT_NAME):
            return directory / PROJECT_NAME
    return None


def _is_file(path: Path) -> bool:
    """Whether it is there for us: `sudo` may leave HOME at a directory that we may not look into."""
    try:
        return path.is_file()
    except OSError:
        return False


def _trusted(table: Mapping[str, Any], path: Path) -> list[Path]:
    names = table.get(TRUSTED, [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise UsageProblem(f"user file {path}: {TRUSTED} cannot be used", "it is a list of directories", "")
    paths = [Path(os.path.expanduser(name)) for name in names]  # noqa: PTH111 - never raises
    for one in paths:
        if not one.is_absolute():
            raise UsageProblem(f"user file {path}: {TRUSTED} cannot be used", f"{one} is not an absolute path", "")
    return [one.resolve() for one in paths]


def _read(path: Path, *, own: bool) -> tuple[dict[str, Any], str]:
    """What a file holds, and who else can read it."""
    import tomllib  # noqa: PLC0415 - only where there is a file

    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            _refuse_foreign(path, status, own=own)
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
        raise UsageProblem(f"{path} is not TOML", _place_of(error), "correct it there") from None


def _other_readers(path: Path, status: os.stat_result) -> str:
    """How to keep the file from others who can read it; empty where nobody can.

    A file of root's is read by way of its group: there is no other way to give it to a service.
    """
    by_group = stat.S_IRGRP if status.st_uid == os.geteuid() else 0
    is_open = stat.S_ISREG(status.st_mode) and status.st_mode & (by_group | stat.S_IROTH)
    return f"chmod {'600' if by_group else 'o-r'} {path}" if is_open else ""


def _place_of(error: Exception) -> str:
    """What a parser says, without the line itself: it may hold a password."""
    text = str(error)
    return text if "(at " in text and "\n" not in text else type(error).__name__


def _refuse_foreign(path: Path, status: os.stat_result, *, own: bool) -> None:
    """Whoever can write the file decides what is run: nobody else may."""
    if not stat.S_ISREG(status.st_mode):
        return
    if status.st_mode & stat.S_IWOTH:
        raise RefusedError(f"will not use {path}", "everybody can write it", f"chmod o-w {path}")
    if own and status.st_uid not in (os.geteuid(), 0):
        raise RefusedError(f"will not use {path}", "it belongs to another user", "use a file of your own: --config")
