"""Shell completion from the table on the line, if it is on the local disk, where nothing waits.

A shell asks at every key: what cannot be read at once is not offered, without an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from acidctl.base.errors import AcidctlError
from acidctl.base.printable import printable

_MOST = 500
_PLACES = ("location", "locations", "paths", "files")
Completion = Callable[[click.Context, click.Parameter, str], list[CompletionItem[str]]]


def _offered(names: Callable[[click.Context], Iterable[str]], *, is_list: bool = False) -> Completion:
    """Return a completion by the names that start with what was typed.

    Args:
        is_list: complete the last of several names with commas between them.
    """

    @wraps(names)
    def complete(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
        before, comma, last = incomplete.rpartition(",") if is_list else ("", "", incomplete)
        used = set(before.split(","))
        try:
            offered = sorted({name for name in names(ctx) if name.lower().startswith(last.lower())} - used)
        except (AcidctlError, OSError, ValueError, click.ClickException):
            return []
        return [CompletionItem(before + comma + name) for name in offered[:_MOST] if name == printable(name)]

    return complete


def _local_paths(ctx: click.Context) -> list[str]:
    # After an option that still lacks its value click leaves the arguments in ctx.args.
    given = [*(ctx.params.get(name) or () for name in _PLACES), ctx.args]
    every = [path for value in given for path in ((value,) if isinstance(value, str) else value)]
    return [path for path in every if "://" not in path and not path.lower().startswith("hive:")]


def _entry_names(ctx: click.Context) -> Iterable[str]:
    for place in _local_paths(ctx):
        yield from (child.name for child in Path(place).iterdir() if not child.name.startswith((".", "_")))


def _partition_names(ctx: click.Context) -> Iterable[str]:
    for place in _local_paths(ctx):
        folders = [Path(place)]
        for _ in range(_MOST):
            if not folders:
                break
            below = [child for child in folders.pop().iterdir() if "=" in child.name and child.is_dir()]
            yield from (child.name for child in below)
            folders += below


def _columns(ctx: click.Context) -> Iterable[str]:
    from acidctl.location.snapshot_resolver import SnapshotResolver  # noqa: PLC0415 - only where a shell asks
    from acidctl.rows.scan.table import table_at  # noqa: PLC0415 - only where a shell asks

    for place in _local_paths(ctx):
        yield from table_at(place, {}, SnapshotResolver()).scan(None).output_type.names


def _runs(ctx: click.Context) -> Iterable[str]:
    from acidctl.cleaning.trash import TRASH  # noqa: PLC0415 - only where a shell asks
    from acidctl.repair.backup import BACKUP  # noqa: PLC0415 - only where a shell asks

    for place in _local_paths(ctx):
        for folder in (TRASH, BACKUP):
            yield from (run.name for run in Path(place, folder).glob("*/"))


def _profiles(ctx: click.Context) -> Iterable[str]:
    from acidctl.cli.config.setting_files import read_settings_file  # noqa: PLC0415 - only where a shell asks

    if file := read_settings_file(ctx.params.get("config_file")):
        yield from file.table.get("profile", {})


def _rules(_: click.Context) -> Iterable[str]:
    from acidctl.validation.checks import RULES  # noqa: PLC0415 - only where a shell asks

    return RULES


def complete_columns_of(columns: Callable[[], Mapping[str, str]]) -> Completion:
    """Return a completion by the columns of a list, which `columns` imports."""
    return _offered(lambda _: columns(), is_list=True)


complete_entries = _offered(_entry_names)
complete_partitions = _offered(_partition_names)
complete_columns = _offered(_columns, is_list=True)
complete_runs = _offered(_runs)
complete_profiles = _offered(_profiles)
complete_rules = _offered(_rules)
