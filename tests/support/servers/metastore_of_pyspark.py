"""The metastore of Hive 2.3.10, whose classes are among pyspark's jars: nothing is to be fetched."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path

from support.servers.hdfs_server import ServerUnavailable

MAIN = str(Path(__file__).with_name("java") / "pyspark/Metastore.java")
"""Java compiles it as it starts it."""

_OWN = {
    "datanucleus.schema.autoCreateAll": "true",
    "hive.metastore.schema.verification": "false",
    "hive.async.log.enabled": "false",  # that needs a class that is not there
    "datanucleus.connectionPoolingType": "HikariCP",  # BoneCP, its default, is not there
}
_OTHER_NAMES = {
    "metastore.thrift.uris": "hive.metastore.uris",
    "metastore.txn.timeout": "hive.txn.timeout",
    "metastore.timedout.txn.reaper.interval": "hive.timedout.txn.reaper.interval",
    "metastore.compactor.initiator.on": "hive.compactor.initiator.on",
}
_NOT_ITS_CLASS = ("metastore.expression.proxy",)


def class_path() -> list[Path]:
    """pyspark's jars.

    Raises:
        ServerUnavailable: there is no pyspark.
    """
    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None:
        raise ServerUnavailable("there is no pyspark, which brings Hive 2.3")
    return [Path(found.origin).parent / "jars/*"]


def properties(named: Mapping[str, str]) -> dict[str, str]:
    """Those of later versions by the names that 2.3 knows."""
    known = {
        _OTHER_NAMES.get(name, f"hive.{name}" if name.startswith("metastore.") else name): value
        for name, value in named.items()
        if name not in _NOT_ITS_CLASS
    }
    return known | _OWN
