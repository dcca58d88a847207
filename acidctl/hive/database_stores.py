"""Stores of a metastore's databases, for a Spark session that starts before its tables are known."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from acidctl.base.errors import AcidctlError
from acidctl.metastore import interface
from acidctl.metastore.client import Metastore
from acidctl.metastore.errors import Unreachable
from acidctl.storage.port import FileSystemSpec
from acidctl.storage.registry import open_location


def database_stores(metastore: Metastore, storage: Mapping[str, str]) -> tuple[FileSystemSpec, ...]:
    """Return the stores of all databases' directories without duplicates; this takes one call per database.

    Databases that the metastore hides and stores that cannot be opened are left out: code that uses them raises.

    Args:
        storage: options of stores.

    Raises:
        MetastoreError: the metastore cannot be reached, or does not list its databases.
    """
    specs: dict[FileSystemSpec, None] = {}
    for name in metastore.call(interface.GET_ALL_DATABASES):
        try:
            database = metastore.call(interface.GET_DATABASE, name)
        except Unreachable:
            raise
        except AcidctlError:  # it was dropped meanwhile, or this user may not see it
            continue
        for url in filter(None, (database.managed_location, database.location)):
            with suppress(AcidctlError):
                specs[open_location(url, storage)[0].spec] = None
    return tuple(specs)
