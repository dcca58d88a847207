"""Files that are written whole or not at all, and never over another kind of file: the metrics of a run first."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import click

from acidctl.acid.names import acid_directory, is_hidden
from acidctl.base.errors import AccessError, AcidctlError, ExitStatus, NotFoundError, RefusedError, StorageError
from acidctl.cli.report.outcomes import show_failure
from acidctl.cli.report.run_figures import RunFigures
from acidctl.location.change.own_files import followed, open_folder
from acidctl.storage.os_errors import mapped

_HEAD, _HEAD_OF_PAGE = 65536, 1024
_PAGE = b"acidctl report"
"""Stands at the top of the pages that `acidctl report` writes."""


@contextmanager
def recorded(metrics: str | None, *, accepts_fewer: bool = False) -> Iterator[RunFigures]:
    """Yield the figures of what the block does; the metrics file, if one is given, is written however the block ends.

    The block must set the run's `exit_status`.

    Args:
        accepts_fewer: accept fewer locations than the file has on record.

    Raises:
        AcidctlError: the file cannot be written; raised before the block if that can be foreseen.  After a block that
            failed, this error is only printed and the block's own error is raised.
    """
    run = RunFigures(
        " ".join(click.get_current_context().command_path.split(" ")[1:]),
        is_wanted=bool(metrics),
        accepts_fewer=accepts_fewer,
    )
    if not metrics:
        yield run
        return
    path = Path(metrics)
    refuse_target(path, "metrics")
    from acidctl.cli.report.metrics import looked_in  # noqa: PLC0415 - with prometheus_client

    run.earlier = looked_in(path, run.command)
    try:
        yield run
        run.end(run.exit_status or 0)
    except BaseException as error:
        run.end(_exit_status_of(error), error)
        try:
            _write(run, path)
        except AcidctlError as problem:
            show_failure("", problem)
        raise
    _write(run, path)


def _exit_status_of(error: BaseException) -> int:
    if isinstance(error, KeyboardInterrupt | click.Abort):
        return ExitStatus.INTERRUPTED
    if isinstance(error, BrokenPipeError):
        return ExitStatus.BROKEN_PIPE
    if isinstance(error, click.ClickException):
        return error.exit_code
    return error.exit_status if isinstance(error, AcidctlError) else AcidctlError.exit_status


def _write(run: RunFigures, path: Path) -> None:
    from acidctl.cli.report.metrics import write_metrics  # noqa: PLC0415 - with prometheus_client

    try:
        write_metrics(run, path)
    except OSError as error:
        raise StorageError(f"cannot write the metrics {path}", (error.strerror or str(error)).lower()) from error


def refuse_target(path: Path, kind: str) -> None:
    """Refuse, before hours of work, a file that cannot be written or would replace another kind of file.

    Raises:
        NotFoundError: the path is a directory, or its directory is missing.
        AccessError: its directory may not be written.
        RefusedError: the file is not acidctl's, or would lie among the data of a table.
    """
    what = f"cannot write the {kind} {path}"
    with mapped("write", str(path)):  # a name may be too long
        is_dir, parent = path.is_dir(), path.resolve().parent
        is_placed = parent.is_dir()
    if is_dir or not is_placed:
        why = "it is a directory" if is_dir else "its directory is not there"
        raise NotFoundError(what, why, "give the name of a file in a directory that is there")
    if not os.access(parent, os.W_OK):
        raise AccessError(what, f"{parent} may not be written", "give another place, or ask for the permission")
    refuse_replacing(path, kind)


def refuse_replacing(path: Path, kind: str) -> None:
    """Refuse to write a file over another kind of file, or where it would do harm.

    Args:
        kind: metrics, plan or page.

    Raises:
        RefusedError: the file is not acidctl's, would lie among the data of a table, or behind a link of another user.
        AccessError: the existing file cannot be read.
    """
    with mapped("write", str(path)):
        os.close(open_folder(followed(path).parent))
    refuse_in_table(path, f"the {kind}")
    if not path.is_file():
        return
    with mapped("read", str(path)), path.open("rb") as file:
        head = file.read(_HEAD)
    if head.strip() and not _is_ours(head, kind):
        raise RefusedError(f"will not replace {path}", f"its content is not acidctl's {kind}", "give another name")


def refuse_in_table(path: Path, what: str) -> None:
    """Refuse a file that readers would take for data: any in a location, unless its name is hidden (section 1.4).

    Raises:
        RefusedError: it would lie beside the directories of a location, or in one of them.
    """
    folder = path.resolve().parent
    is_in_table = False
    with suppress(OSError):
        children = folder.iterdir()
        is_in_table = _is_acid(folder) or any(_is_acid(child) and child.is_dir() for child in children)
    if is_in_table and not is_hidden(path.name):
        raise RefusedError(
            f"will not write {what} to {path}",
            "it is a table's directory: readers would take it for data",
            "give a place outside of the table",
        )


def _is_acid(folder: Path) -> bool:
    return acid_directory(folder.name) is not None


def _is_ours(head: bytes, kind: str) -> bool:
    if kind == "metrics":
        lines = head.split(b"\n")[: -1 if len(head) == _HEAD else None]
        names = (line.removeprefix(b"# HELP ").removeprefix(b"# TYPE ") for line in lines if line)
        return all(name.startswith(b"acidctl_") for name in names)
    is_json = head.lstrip()[:1] == b"{" and b'"schema_version"' in head
    return is_json or (kind == "page" and _PAGE in head[:_HEAD_OF_PAGE])
