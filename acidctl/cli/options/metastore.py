"""Which metastore is asked: what a command line, a configuration and Hive's own files say, and when none is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from acidctl.cli.options.key_value import key_and_value
from acidctl.cli.output.redact import remember
from acidctl.errors import RefusedError
from acidctl.location.named_metastore import NONE, open_metastore, open_warehouse

if TYPE_CHECKING:
    from acidctl.location.warehouse import Warehouse
    from acidctl.metastore.client import Metastore

CONFIGURED = "configured"
"""In place of an address, where an option may stand without one: what is configured."""

metastore_option_option = click.option(
    "--metastore-option",
    multiple=True,
    metavar="KEY=VALUE",
    help="How to talk to it: auth=kerberos, principal=hive/_HOST@REALM, ca=FILE.pem, timeout=60. Repeatable.",
)
metastore_options = (
    click.option(
        "--metastore",
        metavar="URI[,URI]",
        help="Ask this metastore for names, transactions and write ids, thrift://host:9083; none asks none. Without it "
        "that of the configuration, or of hive-site.xml in HIVE_CONF_DIR.",
    ),
    metastore_option_option,
)
"""For every command that asks a metastore."""

read_lock_option = click.option(
    "--read-lock",
    is_flag=True,
    help="Hold a shared lock of Hive's on the tables meanwhile, so that its cleaner removes nothing that is read.",
)
exclude_option = click.option(
    "--exclude",
    multiple=True,
    metavar="PATTERN",
    help="Leave these tables out where hive:db.* names several: db.tmp_*. Repeatable.",
)


def settings_given(metastore: str | None, pairs: tuple[str, ...]) -> dict[str, str]:
    """What the command line and the configuration say of the metastore, by the names of its settings."""
    return {name: value for name, (value, _) in settings_with_origins(metastore, pairs).items()}


def settings_with_origins(metastore: str | None, pairs: tuple[str, ...]) -> dict[str, tuple[str, str]]:
    """The same, each with where it is from, for people."""
    context = click.get_current_context()
    settings = context.find_root().meta.get("acidctl.settings")
    configured: Mapping[str, tuple[str, str]] = settings.below("metastore") if settings else {}
    typed = dict(key_and_value(item, "--metastore-option") for item in pairs)
    found = {**configured, **{name: (value, _origin(context, "metastore_option")) for name, value in typed.items()}}
    return {
        **found,
        **({"uris": (metastore, _origin(context, "metastore"))} if metastore and metastore != CONFIGURED else {}),
    }


def _origin(context: click.Context, parameter: str) -> str:
    """Where the value of an option is from, for people."""
    from acidctl.cli.config.settings import source_of  # noqa: PLC0415 - --help does without

    option = next(one for one in context.command.params if one.name == parameter)
    return source_of(context, option).removeprefix("it is from the ") or option.opts[0]


def metastore_of(metastore: str | None, pairs: tuple[str, ...]) -> Metastore | None:
    """The metastore that is to be asked; None where nothing names one, or the user wants none.

    Raises:
        EnvironmentProblem: the package that it takes is not installed.
        UsageProblem: a setting that cannot be used.
    """
    found = open_metastore(settings_given(metastore, pairs))
    if found:
        _keep_secrets(found)
    return found


def refuse_untyped_none(metastore: str | None, pairs: tuple[str, ...]) -> None:
    """Refuse an assumption if a file or a variable, and not this command line, turns the metastore off.

    Raises:
        RefusedError: a file or a variable turns it off.
    """
    value, origin = settings_with_origins(metastore, pairs).get("uris", ("", ""))
    if value == NONE and origin != "--metastore":
        raise RefusedError(
            "cannot assume what is committed while only a setting turns the metastore off",
            f"{origin} turns it off, but a metastore may know this table",
            "give `metastore='none'` together with `assume_committed`",
        )


def _keep_secrets(metastore: Metastore) -> None:
    """Nothing that is printed from here on shows them."""
    for secret in metastore.settings.secrets:
        remember(secret)


def warehouse_of(
    metastore: str | None, pairs: tuple[str, ...], exclude: tuple[str, ...], *, read_lock: bool = False
) -> Warehouse | None:
    """The same as a source of names and snapshots, which is closed when the command ends."""
    warehouse = open_warehouse(settings_given(metastore, pairs), exclude, read_lock=read_lock)
    if warehouse is None and read_lock:
        raise click.UsageError("--read-lock is taken at a metastore: give --metastore.")
    if warehouse:
        _keep_secrets(warehouse.metastore)
        click.get_current_context().call_on_close(warehouse.close)
    return warehouse
