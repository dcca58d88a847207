"""In which stores the databases of a metastore are: for a Spark that starts before its tables are known."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from acidctl.errors import AcidctlError
from acidctl.metastore import interface
from acidctl.metastore.client import Metastore
from acidctl.metastore.errors import Unreachable
from acidctl.storage.port import FileSystemSpec
from acidctl.storage.registry import open_location


def database_stores(metastore: Metastore, storage: Mapping[str, str]) -> tuple[FileSystemSpec, ...]:
    """The stores of all databases' directories, each once; one call for each database.

    A database that the metastore does not show, and a store that cannot be opened, are left out: whatever needs them
    says why.

    Args:
        storage: options of stores.

    Raises:
        MetastoreError: the metastore cannot be reached, or does not say which databases there are.
    """
    found: dict[FileSystemSpec, None] = {}
    for name in metastore.call(interface.GET_ALL_DATABASES):
        try:
            database = metastore.call(interface.GET_DATABASE, name)
        except Unreachable:
            raise
        except AcidctlError:  # it was dropped meanwhile, or nobody may know of it
            continue
        for url in filter(None, (database.managed_location, database.location)):
            with suppress(AcidctlError):
                found[open_location(url, storage)[0].spec] = None
    return tuple(found)
