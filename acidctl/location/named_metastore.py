"""Opens the metastore that the user or Hive's configuration names; it connects at the first call."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from acidctl.base.arguments import require_type
from acidctl.base.errors import EnvironmentProblem

if TYPE_CHECKING:
    from acidctl.location.warehouse import Warehouse
    from acidctl.metastore.client import Metastore
    from acidctl.metastore.settings import MetastoreSettings

NONE = "none"
"""The address that turns the metastore off."""

VARIABLES = ("HIVE_CONF_DIR", "HIVE_HOME", "HADOOP_CONF_DIR")


def open_metastore(metastore: str | Mapping[str, str] | None) -> Metastore | None:
    """Return the metastore to use; None if none is configured, or if it is turned off.

    Args:
        metastore: its address, or several separated by commas; settings by their names; ``none``; or None for the
            address in ``hive-site.xml``.

    Raises:
        EnvironmentProblem: the package thrift is not installed.
        UsageProblem: a setting cannot be used.
    """
    require_type(metastore, (str, Mapping), "metastore", "give its address, thrift://host:9083, or a dict of settings")
    given = {"uris": metastore} if isinstance(metastore, str) else dict(metastore or {})
    if given.get("uris") == NONE:
        return None
    if not given.get("uris") and not any(os.environ.get(name) for name in VARIABLES):
        return None
    from acidctl.metastore.settings import find_settings  # noqa: PLC0415 - with XML: only for a metastore

    settings = find_settings(given)
    return client_of(settings) if settings else None


def client_of(settings: MetastoreSettings) -> Metastore:
    """Return the client of a metastore; it connects at the first call.

    Raises:
        EnvironmentProblem: the package thrift is not installed.
    """
    try:
        from acidctl.metastore.client import Metastore  # noqa: PLC0415 - with thrift, which is optional
    except ModuleNotFoundError as error:
        if error.name != "thrift":
            raise
        raise EnvironmentProblem(
            f"the metastore {settings.shown} cannot be asked",
            "the package thrift is not installed",
            "pip install 'acidctl[metastore]'; with --metastore none paths are worked on without it",
        ) from error
    return Metastore(settings)


def open_warehouse(
    metastore: str | Mapping[str, str] | None, exclude: Sequence[str] = (), *, read_lock: bool = False
) -> Warehouse | None:
    """Open the metastore as a source of names and snapshots; None as for :func:`open_metastore`.

    Args:
        exclude: patterns of names of tables that patterns do not match.
        read_lock: see :class:`acidctl.location.warehouse.Warehouse`.
    """
    client = open_metastore(metastore)
    if client is None:
        return None
    from acidctl.location.warehouse import Warehouse  # noqa: PLC0415 - with thrift: only for a metastore

    return Warehouse(client, exclude, read_lock=read_lock)
