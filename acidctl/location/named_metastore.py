"""The metastore that somebody names, or that Hive's own configuration does, opened when it is first asked."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from acidctl.arguments import require_type
from acidctl.errors import EnvironmentProblem

if TYPE_CHECKING:
    from acidctl.location.warehouse import Warehouse
    from acidctl.metastore.client import Metastore
    from acidctl.metastore.settings import MetastoreSettings

NONE = "none"
"""In place of an address: no metastore is asked."""

VARIABLES = ("HIVE_CONF_DIR", "HIVE_HOME", "HADOOP_CONF_DIR")


def open_metastore(metastore: str | Mapping[str, str] | None) -> Metastore | None:
    """The metastore that is to be asked; None where nothing names one, or none is wanted.

    Args:
        metastore: its address, or several separated by commas; settings by their names; ``none``; or None for what
            ``hive-site.xml`` says.

    Raises:
        EnvironmentProblem: the package that it takes is not installed.
        UsageProblem: a setting that cannot be used.
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
    """What asks a metastore; it connects when it is first asked.

    Raises:
        EnvironmentProblem: the package that it takes is not installed.
    """
    try:
        from acidctl.metastore.client import Metastore  # noqa: PLC0415 - with thrift, which is optional
    except ModuleNotFoundError as error:
        if error.name != "thrift":
            raise
        raise EnvironmentProblem(
            f"the metastore {settings.shown} cannot be asked",
            "the package thrift is not installed",
            "pip install 'acidctl[metastore]'; with `metastore='none'` paths are worked on without it",
        ) from error
    return Metastore(settings)


def open_warehouse(
    metastore: str | Mapping[str, str] | None, exclude: Sequence[str] = (), *, read_lock: bool = False
) -> Warehouse | None:
    """The same as a source of names and snapshots.

    Args:
        exclude: names of tables, with ``*``, that are left out where several are meant.
        read_lock: as of :class:`acidctl.location.warehouse.Warehouse`.
    """
    found = open_metastore(metastore)
    if found is None:
        return None
    from acidctl.location.warehouse import Warehouse  # noqa: PLC0415 - with thrift: only for a metastore

    return Warehouse(found, exclude, read_lock=read_lock)
