"""Tables of other formats, and stores that are no tables: told by what their makers put at the top, and never entered.

Hive's ACID tables have neighbours in every warehouse. Some have directories called ``base_5`` or ``delta_1_1``; nothing
below them is ours to read as rows, to rewrite or to remove.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Set

from acidctl.acid.listing import Listing
from acidctl.errors import AcidctlError
from acidctl.storage.port import FileSystem, join

_ICEBERG = re.compile(r".*\.metadata\.json(\.gz)?|version-hint\.text", re.DOTALL)
_HBASE = re.compile(r"hbase\.(version|id)|\.tabledesc|\.tableinfo\.[0-9]+|\.regioninfo", re.DOTALL)

_RULES: tuple[tuple[str, Callable[[Set[str]], bool]], ...] = (
    ("a Delta Lake table", lambda names: "_delta_log" in names),
    ("a Hudi table", lambda names: bool({".hoodie", ".hoodie_partition_metadata"} & names)),
    ("the output of a Spark stream", lambda names: "_spark_metadata" in names),
    ("a Paimon table", lambda names: {"schema", "snapshot", "manifest"} <= names),
    ("a Kudu server's data", lambda names: "instance" in names and bool({"wals", "tablet-meta"} & names)),
    ("a Kudu server's data", lambda names: "block_manager_instance" in names),
    ("HBase's data", lambda names: any(_HBASE.fullmatch(name) for name in names)),
    ("a replication dump of Hive", lambda names: "_dumpmetadata" in names),
)


def other_format(fs: FileSystem, path: str, listing: Listing) -> str:
    """What a directory is, where it is none of Hive's, with an article; empty where nothing tells.

    Args:
        listing: of its own children, hidden ones included. One with a child ``metadata`` costs one more listing.
    """
    names = {entry.path.partition("/")[0] for entry in listing.entries}
    for what, is_it in _RULES:
        if is_it(names):
            return what
    return "an Iceberg table" if "metadata" in names and _holds_iceberg(fs, join(path, "metadata")) else ""


def _holds_iceberg(fs: FileSystem, metadata: str) -> bool:
    try:
        entries = fs.list_dir(metadata).entries
    except AcidctlError:  # not a directory, or not for us: whoever lists it next says so
        return False
    return any(_ICEBERG.fullmatch(entry.path) for entry in entries)
