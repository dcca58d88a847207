"""Shell completion after ``hive:``: databases, tables and partitions of the metastore."""

from __future__ import annotations

from dataclasses import replace

import click
from click.shell_completion import CompletionItem

from acidctl.base.errors import AcidctlError
from acidctl.base.printable import printable
from acidctl.cli.config.setting_files import load
from acidctl.cli.options.metastore import metastore_of
from acidctl.location.arguments import HIVE
from acidctl.metastore import interface
from acidctl.metastore.client import Metastore
from acidctl.metastore.tables import find_partitions, find_tables, get_table

_PATIENCE = 3.0
"""Seconds to wait for the metastore."""

_MOST = 500


def hive_names(ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
    """Return the names that start with what was typed; none if the metastore does not answer soon."""
    params, root = ctx.params, ctx.find_root()
    try:
        # No command runs, so the configuration has not been read yet.
        root.meta["acidctl.settings"] = load(root.params.get("config_file"), root.params.get("profile"))
        with ctx.scope(cleanup=False):
            metastore = metastore_of(params.get("metastore"))
        if metastore is None:
            return []
        quick = Metastore(replace(metastore.settings, timeout=_PATIENCE, connect_timeout=_PATIENCE), rounds=1)
        names = _names(quick, incomplete[len(HIVE) :].lower())
    except (AcidctlError, click.ClickException):
        return []
    return [CompletionItem(printable(name)) for name in names if name.startswith(incomplete.lower())][:_MOST]


def _names(metastore: Metastore, typed: str) -> list[str]:
    name, slash, _ = typed.partition("/")
    database, dot, table = name.partition(".")
    if slash:
        found = get_table(metastore, database, table)
        partitions = find_partitions(metastore, found)
        parts = ("/".join(f"{key}={value}" for key, value in partition.values) for partition in partitions)
        return [f"{HIVE}{name}/{part}" for part in parts]
    if dot:
        return [f"{HIVE}{found.full_name}" for found in find_tables(metastore, database, f"{table}*")]
    return [f"{HIVE}{name}." for name in sorted(metastore.call(interface.GET_ALL_DATABASES))]
