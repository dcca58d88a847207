"""The Iceberg table that a user named: in a catalog of PyIceberg, or a bare directory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from acidctl.base.errors import EnvironmentProblem, UsageProblem
from acidctl.iceberg.fields import Field
from acidctl.location.arguments import HiveName
from acidctl.storage.port import parent_of
from acidctl.storage.registry import open_location

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

    from acidctl.iceberg.target import Target
    from acidctl.metastore.client import Metastore

PREFIX = "iceberg:"


@dataclass(frozen=True, slots=True)
class OpenedTarget:
    """A named Iceberg table, which need not exist.

    Attributes:
        name: in the catalog; empty for a directory.
        location: the directory of the table, if the user named it; None leaves the choice to the catalog.
    """

    catalog: Catalog
    name: str
    location: str | None

    def find(self) -> Target | None:
        """Return the table; None if it does not exist."""
        from acidctl.iceberg.target import find_target

        return find_target(self.catalog, self.name)

    def create(self, columns: Sequence[Field], partition: Sequence[Field], properties: Mapping[str, str]) -> Target:
        """Create the table, see :func:`acidctl.iceberg.target.create_target`."""
        from acidctl.iceberg.target import create_target

        return create_target(self.catalog, self.name, (columns, partition), self.location, properties)


def require_pyiceberg() -> None:
    """Import PyIceberg.

    Raises:
        EnvironmentProblem: it is not installed.
    """
    try:
        import acidctl.iceberg.private_api  # noqa: F401
    except ImportError as error:
        why = f"PyIceberg is missing: {error}"
        raise EnvironmentProblem("cannot write Iceberg tables", why, "pip install 'acidctl[iceberg]'") from error


def open_target(
    text: str,
    settings: Mapping[str, str],
    location: str | None,
    storage: Mapping[str, str] | None,
    metastore: Metastore | None = None,
) -> OpenedTarget:
    """Return the table that a text names: ``iceberg:CATALOG/db.table``, ``hive:db.table``, or a path or URL.

    Args:
        settings: of the catalog, beside those in PyIceberg's own configuration.
        location: the directory of a new table.
        storage: options of the stores.
        metastore: has the tables that are named ``hive:db.table``.

    Raises:
        EnvironmentProblem: PyIceberg is not installed.
        UsageProblem: the text names no table, or PyIceberg does not know the catalog.
        NotFoundError, RefusedError: a new table of the metastore cannot have this name or directory.
    """
    require_pyiceberg()
    from pyiceberg.catalog import load_catalog

    from acidctl.iceberg.catalogs.store_io import store_io, use_stores
    from acidctl.iceberg.private_api import DirectoryCatalog

    if metastore:
        from acidctl.iceberg.catalogs.hive_metastore import MetastoreCatalog

        table = _name_of(text)
        own = MetastoreCatalog(metastore, storage)
        return OpenedTarget(own, table, None if own.has(table) else own.location_for(table, location))
    if not text.startswith(PREFIX):
        if location is not None:
            raise UsageProblem("--target-location is for tables of a catalog", f"{text} is a directory itself", "")
        if settings:
            raise UsageProblem("--catalog-option is for catalogs", f"{text} is a directory", "leave it out")
        fs, path = open_location(text, storage)
        if fs.is_local:  # a store that follows no links needs a directory that exists
            fs, _ = open_location(parent_of(path), storage)
        return OpenedTarget(DirectoryCatalog(fs, path, store_io(storage)), "", fs.display(path))
    name, _, table = text.removeprefix(PREFIX).partition("/")
    if not name or table.count(".") < 1 or not all(table.split(".")):
        raise UsageProblem(f"{text} names no table", "", f"write {PREFIX}CATALOG/db.table, or a directory")
    try:
        catalog = load_catalog(name, **settings)
    except Exception as error:
        why = str(error) or type(error).__name__
        hint = "check its settings in ~/.pyiceberg.yaml, or those of --catalog-option type=sql --catalog-option uri=..."
        raise UsageProblem(f"the catalog {name} cannot be used", why, hint) from error
    use_stores(catalog, storage)
    return OpenedTarget(catalog, table, location)


def _name_of(text: str) -> str:
    """Return ``db.table`` of the name of a table in a metastore.

    Raises:
        UsageProblem: the name is not that of one whole table.
    """
    if name := HiveName.parse(text).whole_table:
        return name
    raise UsageProblem(f"{text} names no Iceberg table", "it is a pattern or a partition", "write hive:db.table")
