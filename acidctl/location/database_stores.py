"""In which stores the databases of a metastore are: for a Spark that starts before its tables are known."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from acidctl.errors import AcidctlError, NotFoundError
from acidctl.metastore import interface
from acidctl.metastore.client import Metastore
from acidctl.storage.port import FileSystemSpec
from acidctl.storage.registry import open_location


def database_stores(metastore: Metastore, storage: Mapping[str, str]) -> tuple[FileSystemSpec, ...]:
    """The stores of all databases' directories, each once; one call for each database.

    A store that cannot be opened is left out: whatever needs it says why.

    Args:
        storage: options of stores.

    Raises:
        MetastoreError: the metastore cannot be reached, or failed.
    """
    found: dict[FileSystemSpec, None] = {}
    for name in metastore.call(interface.GET_ALL_DATABASES):
        with suppress(NotFoundError):  # it was dropped meanwhile
            database = metastore.call(interface.GET_DATABASE, name)
            for url in filter(None, (database.managed_location, database.location)):
                with suppress(AcidctlError):
                    found[open_location(url, storage)[0].spec] = None
    return tuple(found)
