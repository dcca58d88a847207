"""The tables of a Hive metastore in Derby: 3.1.3 and 4.0.1 have a tool, 4.1.0 and 4.2.1 get changed ones of 4.0.1."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from support.servers.hdfs_server import cache_folder
from support.servers.jars import fetch, locked
from support.servers.jvm import command, run, write_site

_TOOLS = "org.apache.hadoop.hive.metastore.tools"
_SCHEMA_TOOL = {
    3: (f"{_TOOLS}.MetastoreSchemaTool", "-initSchema"),
    4: (f"{_TOOLS}.schematool.MetastoreSchemaTool", "-initOrUpgradeSchema"),
}
_DERBY = "org.apache.derby.jdbc.EmbeddedDriver"  # the default of 4.2 is a class of a newer Derby
# The names of a table and its partition, which 4.1 finds by their ids.
_NOT_IN_4_1 = {
    "TAB_COL_STATS": ("CAT_NAME", "DB_NAME", "TABLE_NAME"),
    "PART_COL_STATS": ("CAT_NAME", "DB_NAME", "TABLE_NAME", "PARTITION_NAME"),
}
_LATER = {41: "4.1.0", 42: "4.2.0"}
_NEW_IN_4_2 = """CREATE TABLE APP.CATALOG_PARAMS (CTLG_ID BIGINT NOT NULL, PARAM_KEY VARCHAR(180) NOT NULL,
PARAM_VALUE VARCHAR(4000), PRIMARY KEY (CTLG_ID, PARAM_KEY), CONSTRAINT CATALOG_PARAMS_FK1 FOREIGN KEY (CTLG_ID)
REFERENCES APP.CTLGS (CTLG_ID) ON DELETE CASCADE)"""


def class_path(version: int) -> list[Path]:
    """Ours and the jars of a metastore; those that stand first take the place of older ones in its archive."""
    if version == 42:
        return [fetch("metastore4") / "classes", fetch("hive42") / "lib/*"]
    folder = fetch(f"metastore{version}")
    return [folder / "classes", folder / "lib/*", *(unpacked / "lib/*" for unpacked in _unpacked(version))]


def _unpacked(version: int) -> list[Path]:
    return [*fetch(f"metastore{version}").glob("apache-hive-metastore-*")]


def database(directory: Path, version: int = 4) -> dict[str, str]:
    """Where the metastore's tables are."""
    driver = {"javax.jdo.option.ConnectionDriverName": _DERBY} if version == 42 else {}
    return {"javax.jdo.option.ConnectionURL": _address(directory), **driver}


def _address(directory: Path) -> str:
    return f"jdbc:derby:;databaseName={directory}/database;create=true"


def prepare_schema(version: int, directory: Path) -> None:
    """Make the metastore's tables in :func:`database`, unless they are there; nothing else may use them meanwhile."""
    if not (directory / "database").exists():
        shutil.copytree(_empty_database(version), directory / "database")


def _empty_database(version: int) -> Path:
    """Tables without a row of ours, made once, beside the jars that made them."""
    kept = fetch("hive42" if version == 42 else f"metastore{version}") / "schema"
    with locked(cache_folder() / f"metastore{version}-schema.lock"):
        if not kept.exists():
            with tempfile.TemporaryDirectory(dir=cache_folder()) as work:
                made = Path(work) / "made"
                _upgrade(version, made) if version in _LATER else _make_schema(version, made)
                made.rename(kept)
    return kept / "database"


def _make_schema(version: int, directory: Path) -> None:
    make_schema(version, directory, database(directory), "derby")


def make_schema(version: int, directory: Path, properties: Mapping[str, str], kind: str, *jars: Path) -> None:
    """Make the metastore's tables in an empty database.

    Args:
        directory: for the tool's own files.
        properties: of the connection.
        kind: of the database, as the tool names it.
        jars: of its driver.
    """
    write_site(directory / "conf/metastore-site.xml", properties)
    main, action = _SCHEMA_TOOL[version]
    tool = command([directory / "conf", *class_path(version), *jars], main, heap="512m", home=directory)
    run([*tool, "-dbType", kind, action], {"METASTORE_HOME": str(_unpacked(version)[0])})


def _upgrade(version: int, directory: Path) -> None:
    """The archives with the tool's scripts are not in Maven's repository."""
    prepare_schema(4, directory)
    statements = [
        *(
            f"ALTER TABLE APP.{table} DROP COLUMN {column}"
            for table, columns in _NOT_IN_4_1.items()
            for column in columns
        ),
        f"UPDATE APP.VERSION SET SCHEMA_VERSION = '{_LATER[version]}', VERSION_COMMENT = 'of tests' WHERE VER_ID = 1",
        *([" ".join(_NEW_IN_4_2.split())] if version == 42 else []),
    ]
    (directory / "upgrade.sql").write_text("\n".join(statements))
    path = str(directory / "upgrade.sql")
    run(command(class_path(4), "Statements", _address(directory), path, heap="256m", home=directory))
