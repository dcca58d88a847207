"""The metastore of a command: from the command line, the configuration and Hive's own files, or none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from acidctl.base.errors import RefusedError
from acidctl.cli.options.set_option import ORIGIN, assigned, is_typed
from acidctl.cli.output.redact import remember
from acidctl.location.arguments import NONE

if TYPE_CHECKING:
    from acidctl.location.warehouse import Warehouse

CONFIGURED = "configured"
"""The value of an option that takes an address but stands without one: use the configured metastore."""

metastore_options = (
    click.option(
        "--metastore",
        metavar="URI[,URI]",
        help="Ask this metastore for names, transactions and write ids, thrift://host:9083; `none` turns it off. "
        "Default: the configuration, then hive-site.xml in HIVE_CONF_DIR.",
    ),
)
"""The options of every command that may use a metastore."""

read_lock_option = click.option(
    "--read-lock",
    is_flag=True,
    help="Hold a shared lock of Hive on the tables meanwhile, so that its cleaner removes nothing that is being read.",
)
exclude_option = click.option(
    "--exclude",
    multiple=True,
    metavar="PATTERN",
    help="Leave out these tables of a pattern such as hive:db.*, e.g. db.tmp_*. Repeatable.",
)


def settings_with_origins(metastore: str | None) -> dict[str, tuple[str, str]]:
    """Return the settings of the metastore by name, each with its origin for people."""
    context = click.get_current_context()
    settings = context.find_root().meta.get("acidctl.settings")
    configured: Mapping[str, tuple[str, str]] = settings.below("metastore") if settings else {}
    origin = "--set" if is_typed(context) else ORIGIN
    given = {name: (value, origin) for name, value in assigned("metastore").items()}
    if metastore and metastore != CONFIGURED:
        given["uris"] = metastore, _origin(context)
    return {**configured, **given}


def _origin(context: click.Context) -> str:
    """Return where the value of --metastore comes from, for people."""
    from acidctl.cli.config.settings import source_of  # noqa: PLC0415 - --help does without

    option = next(param for param in context.command.params if param.name == "metastore")
    return source_of(context, option).removeprefix("it is from the ") or "--metastore"


def refuse_untyped_none(metastore: str | None) -> None:
    """Refuse an assumption if a file or a variable, and not this command line, turns the metastore off.

    Raises:
        RefusedError: a file or a variable turns it off.
    """
    value, origin = settings_with_origins(metastore).get("uris", ("", ""))
    if value == NONE and origin != "--metastore":
        raise RefusedError(
            "cannot assume what is committed while only a setting turns the metastore off",
            f"{origin} turns it off, but a metastore may know this table",
            "give --metastore none together with --assume-committed",
        )


def warehouse_of(metastore: str | None, exclude: tuple[str, ...] = (), *, read_lock: bool = False) -> Warehouse | None:
    """Return the metastore as a source of names and snapshots, which is closed when the command ends.

    None if nothing names one, or the user turned it off.

    Raises:
        EnvironmentProblem: a package that it needs is not installed.
        UsageProblem: a setting is invalid.
    """
    from acidctl.location.snapshot_resolver import open_warehouse  # noqa: PLC0415 - --help does without

    settings = {name: value for name, (value, _) in settings_with_origins(metastore).items()}
    warehouse = open_warehouse(settings, exclude, read_lock=read_lock)
    if warehouse is None and read_lock:
        raise click.UsageError("--read-lock is taken at a metastore: give --metastore.")
    if warehouse:
        for secret in warehouse.metastore.settings.secrets:
            remember(secret)
        click.get_current_context().call_on_close(warehouse.close)
    return warehouse
