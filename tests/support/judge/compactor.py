"""Hive 2.3's CompactorMR.run on Hadoop's LocalJobRunner, reached by Java reflection (it is package-private)."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from support.judge.hivetypes import parse_type
from support.judge.txns import Txns

if TYPE_CHECKING:
    from support.judge.hive import Hive

_PACKAGE = "org.apache.hadoop.hive.ql.txn.compactor."


class _NoTxnStore:
    """The compactor reports its job's number to the metastore: nobody listens here."""

    def setHadoopJobId(self, job: str, compaction: int) -> None:
        return None

    class Java:
        implements = ("org.apache.hadoop.hive.metastore.txn.TxnStore",)


class Compactor:
    """Holds the reflected classes; made once per JVM by `Hive.compactor`."""

    def __init__(self, hive: Hive) -> None:
        from pyspark.java_gateway import ensure_callback_server_started

        self.hive = hive
        ensure_callback_server_started(hive.gateway)
        jvm = hive.jvm
        self._run = self._method(jvm.java.lang.Class.forName(_PACKAGE + "CompactorMR"), "run")
        self._stats = self._method(jvm.java.lang.Class.forName(_PACKAGE + "Worker$StatsUpdater"), "init")
        self._scratch = tempfile.TemporaryDirectory(prefix="hive-compactor-")
        metastore = hive.hive.metastore
        self._metastore, self._types = metastore, metastore.api.CompactionType

    @staticmethod
    def _method(owner: Any, name: str) -> Any:
        method = next(m for m in owner.getDeclaredMethods() if m.getName() == name)
        method.setAccessible(True)
        return method

    def _invoke(self, method: Any, target: Any, *arguments: Any) -> Any:
        values = self.hive.ArrayList()  # a Python callback crosses in a call's arguments, not in an array's items
        for argument in arguments:
            values.add(argument)
        return method.invoke(target, values.toArray())

    def _hive_conf(self) -> Any:
        conf = self.hive.hive.conf.HiveConf()
        for key, value in {
            "mapreduce.framework.name": "local",
            "mapreduce.client.completion.pollinterval": "10",
            "hadoop.tmp.dir": self._scratch.name,
            "mapreduce.cluster.local.dir": self._scratch.name,
            "mapreduce.jobtracker.staging.root.dir": self._scratch.name,
        }.items():
            conf.set(key, value)
        return conf

    def run(self, table: Path, schema: str, kind: str, txns: Txns, version: int, buckets: int) -> list[str]:
        """See Hive.compact."""
        hive, api = self.hive, self._metastore.api
        before = {child.name for child in table.iterdir()}
        tree = parse_type(schema)
        columns = hive.ArrayList()
        for name, node in zip(tree.names, tree.children, strict=True):
            columns.add(api.FieldSchema(name, str(node), ""))
        storage = api.StorageDescriptor()
        storage.setCols(columns)
        storage.setLocation(str(table))
        storage.setInputFormat("org.apache.hadoop.hive.ql.io.orc.OrcInputFormat")
        storage.setOutputFormat("org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat")
        storage.setCompressed(True)
        storage.setNumBuckets(buckets)
        definition = api.Table()
        definition.setSd(storage)
        definition.setParameters(hive.properties(version, {}))
        info = self._metastore.txn.CompactionInfo(
            "default", "t", None, self._types.MAJOR if kind == "major" else self._types.MINOR
        )
        conf = self._hive_conf()
        listed = hive.txn_list(txns.compactor(), compactor=True)
        stats = self._invoke(self._stats, None, info, hive.ArrayList(), conf, "nobody")
        job = hive.jvm.org.apache.hadoop.hive.ql.txn.compactor.CompactorMR()
        self._invoke(self._run, job, conf, "compaction", definition, storage, listed, info, stats, _NoTxnStore())
        return sorted(child.name for child in table.iterdir() if child.name not in before)
