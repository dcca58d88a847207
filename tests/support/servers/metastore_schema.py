"""The tables of a Hive metastore, 3.1.3 or 4.0.1, in Derby, made by its own tool."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from support.servers.hdfs_server import cache_folder
from support.servers.jars import fetch, locked
from support.servers.jvm import command, run, write_site

_TOOLS = "org.apache.hadoop.hive.metastore.tools"
_SCHEMA_TOOL = {
    3: (f"{_TOOLS}.MetastoreSchemaTool", "-initSchema"),
    4: (f"{_TOOLS}.schematool.MetastoreSchemaTool", "-initOrUpgradeSchema"),
}


def class_path(version: int) -> list[Path]:
    """Ours and the jars of a metastore; those that stand first take the place of older ones in its archive."""
    folder = fetch(f"metastore{version}")
    return [folder / "classes", folder / "lib/*", _home(version) / "lib/*"]


def _home(version: int) -> Path:
    (unpacked,) = fetch(f"metastore{version}").glob("apache-hive-metastore-*")
    return unpacked


def database(directory: Path) -> dict[str, str]:
    """Where the metastore's tables are."""
    return {"javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={directory}/database;create=true"}


def prepare_schema(version: int, directory: Path) -> None:
    """Make the metastore's tables in :func:`database`, unless they are there; nothing else may use them meanwhile."""
    if not (directory / "database").exists():
        shutil.copytree(_empty_database(version), directory / "database")


def _empty_database(version: int) -> Path:
    """Tables without a row of ours, made once, beside the jars that made them."""
    kept = fetch(f"metastore{version}") / "schema"
    with locked(cache_folder() / f"metastore{version}-schema.lock"):
        if not kept.exists():
            with tempfile.TemporaryDirectory(dir=cache_folder()) as work:
                _make_schema(version, Path(work) / "made")
                (Path(work) / "made").rename(kept)
    return kept / "database"


def _make_schema(version: int, directory: Path) -> None:
    write_site(directory / "conf/metastore-site.xml", database(directory))
    main, action = _SCHEMA_TOOL[version]
    tool = command([directory / "conf", *class_path(version)], main, heap="512m", home=directory)
    run([*tool, "-dbType", "derby", action], {"METASTORE_HOME": str(_home(version))})
