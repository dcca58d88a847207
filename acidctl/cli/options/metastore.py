"""Which metastore is asked: what a command line, a configuration and Hive's own files say, and when none is."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

from acidctl.cli.options.key_value import key_and_value
from acidctl.cli.output.redact import remember
from acidctl.errors import EnvironmentProblem

if TYPE_CHECKING:
    from acidctl.location.warehouse import Warehouse
    from acidctl.metastore.client import Metastore

F = TypeVar("F", bound=Callable[..., Any])

_VARIABLES = ("HIVE_CONF_DIR", "HIVE_HOME", "HADOOP_CONF_DIR")
_NONE = "none"

_typed = functools.partial(click.option, allow_from_autoenv=False)

metastore_options = (
    _typed(
        "--metastore",
        metavar="URI[,URI]",
        help="Ask this metastore for names, transactions and write ids, thrift://host:9083; none asks none. Without it "
        "that of the configuration, or of hive-site.xml in HIVE_CONF_DIR.",
    ),
    _typed(
        "--metastore-option",
        multiple=True,
        metavar="KEY=VALUE",
        help="How to talk to it: auth=kerberos, principal=hive/_HOST@REALM, ca=FILE.pem, timeout=60. Repeatable.",
    ),
)
"""For every command that asks a metastore."""

exclude_option = _typed(
    "--exclude",
    multiple=True,
    metavar="PATTERN",
    help="Leave these tables out where hive:db.* names several: db.tmp_*. Repeatable.",
)


def settings_given(metastore: str | None, pairs: tuple[str, ...]) -> dict[str, str]:
    """What the command line and the configuration say of the metastore, by the names of its settings."""
    settings = click.get_current_context().find_root().meta.get("acidctl.settings")
    configured: Mapping[str, str] = settings.metastore_values() if settings else {}
    typed = dict(key_and_value(item, "--metastore-option") for item in pairs)
    return {**configured, **typed, **({"uris": metastore} if metastore else {})}


def metastore_of(metastore: str | None, pairs: tuple[str, ...]) -> Metastore | None:
    """The metastore that is to be asked; None where nothing names one, or the user wants none.

    Raises:
        EnvironmentProblem: the package that it takes is not installed.
        UsageProblem: a setting that cannot be used.
    """
    if metastore == _NONE:
        return None
    given = settings_given(metastore, pairs)
    if not given.get("uris") and not any(os.environ.get(name) for name in _VARIABLES):
        return None
    from acidctl.metastore.settings import find_settings  # noqa: PLC0415 - with XML: only for a metastore

    settings = find_settings(given)
    if settings is None:
        return None
    for secret in settings.secrets:
        remember(secret)
    try:
        from acidctl.metastore.client import Metastore  # noqa: PLC0415 - with thrift, which is optional
    except ModuleNotFoundError as error:
        if error.name != "thrift":
            raise
        raise EnvironmentProblem(
            f"the metastore {settings.shown} cannot be asked",
            "the package thrift is not installed",
            "pip install 'acidctl[metastore]'; `metastore='none'` goes on without it",
        ) from error
    return Metastore(settings)


def warehouse_of(metastore: str | None, pairs: tuple[str, ...], exclude: tuple[str, ...]) -> Warehouse | None:
    """The same as a source of names and snapshots."""
    found = metastore_of(metastore, pairs)
    if found is None:
        return None
    from acidctl.location.warehouse import Warehouse  # noqa: PLC0415 - with thrift: only for a metastore

    return Warehouse(found, exclude)
