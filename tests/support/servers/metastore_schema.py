"""The tables of a Hive metastore, 3.1.3 or 4.0.1, in Derby, made by its own tool."""

from __future__ import annotations

from pathlib import Path

from support.servers.jars import fetch
from support.servers.jvm import command, run, write_site

_TOOLS = "org.apache.hadoop.hive.metastore.tools"
_SCHEMA_TOOL = {
    3: (f"{_TOOLS}.MetastoreSchemaTool", "-initSchema"),
    4: (f"{_TOOLS}.schematool.MetastoreSchemaTool", "-initOrUpgradeSchema"),
}


def class_path(version: int) -> list[Path]:
    """Jars of a metastore; those that stand first take the place of older ones in its archive."""
    folder = fetch(f"metastore{version}")
    (unpacked,) = folder.glob("apache-hive-metastore-*")
    return [folder / "lib/*", unpacked / "lib/*"]


def database(directory: Path) -> dict[str, str]:
    """Where the metastore's tables are."""
    return {"javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={directory}/database;create=true"}


def prepare_schema(version: int, directory: Path) -> None:
    """Make the metastore's tables in :func:`database`, unless they are there; nothing else may use them meanwhile."""
    if (directory / "database").exists():
        return
    write_site(directory / "schema/metastore-site.xml", database(directory))
    home = class_path(version)[1].parent.parent
    main, action = _SCHEMA_TOOL[version]
    tool = command([directory / "schema", *class_path(version)], main, heap="512m", home=directory)
    run([*tool, "-dbType", "derby", action], {"METASTORE_HOME": str(home)})
