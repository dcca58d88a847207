"""Hive's own classes as peers: the loops over rows run inside the JVM, and its CPU clock times them.

A loop driven from Python would measure the bridge, so the loops are Java, compiled in memory by the compiler that
Spark brings for its own generated code (Janino: no generics, no lambdas).  Hive's vectorised reader cannot run here: it
asks for a class of LLAP that is not among Spark's jars.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from support.judge.hive import Hive
from support.judge.hivetypes import parse_type
from support.judge.txns import Txns
from support.spark_session import build_session

_SOURCE = """
import java.lang.management.ManagementFactory;
import org.apache.hadoop.hive.ql.io.AcidInputFormat;
import org.apache.hadoop.hive.ql.io.orc.OrcInputFormat;
import org.apache.hadoop.hive.ql.io.orc.Reader;
import org.apache.hadoop.hive.serde2.SerDeUtils;
import org.apache.hadoop.hive.serde2.objectinspector.ObjectInspector;
import org.apache.hadoop.mapred.InputSplit;
import org.apache.hadoop.mapred.JobConf;

public class Loops {
    public long cpu() {
        return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean())
            .getProcessCpuTime();
    }

    /** Rows of a query, one by one. */
    public long[] rows(OrcInputFormat format, JobConf conf) throws Exception {
        long start = cpu();
        long rows = 0;
        InputSplit[] splits = format.getSplits(conf, 1);
        for (int i = 0; i < splits.length; ++i) {
            AcidInputFormat.RowReader reader = format.getReader(splits[i], new AcidInputFormat.Options(conf));
            Object key = reader.createKey();
            Object value = reader.createValue();
            while (reader.next(key, value)) {
                ++rows;
            }
            reader.close();
        }
        return new long[] {rows, cpu() - start, splits.length};
    }

    /** Every row of an ORC file as JSON text: {rows, CPU nanoseconds, characters}. */
    public long[] json(Reader file, long limit) throws Exception {
        long start = cpu();
        long rows = 0;
        long characters = 0;
        ObjectInspector inspector = file.getObjectInspector();
        org.apache.hadoop.hive.ql.io.orc.RecordReader reader = file.rows();
        Object value = null;
        while (rows < limit && reader.hasNext()) {
            value = reader.next(value);
            characters += SerDeUtils.getJSONString(value, inspector).length() + 1;
            ++rows;
        }
        reader.close();
        return new long[] {rows, cpu() - start, characters};
    }
}
"""


class Measured(NamedTuple):
    """One loop: rows seen, CPU seconds of the whole JVM (its compiler and collector included), and splits or bytes."""

    rows: int
    cpu: float
    extra: int


class JavaPeers:
    """One JVM with Hive 2.3; make one, warm each loop once, then measure."""

    def __init__(self) -> None:
        self.spark = build_session()
        self.hive = Hive(self.spark)
        jvm = self.hive.jvm
        compiler = jvm.org.codehaus.janino.SimpleCompiler()
        compiler.setParentClassLoader(jvm.Thread.currentThread().getContextClassLoader())
        compiler.cook(_SOURCE)
        made = compiler.getClassLoader().loadClass("Loops").getConstructors()[0]
        self.loops = made.newInstance(self.hive.ArrayList().toArray())

    def close(self) -> None:
        self.spark.stop()

    def cpu(self) -> float:
        """CPU seconds of the JVM so far."""
        return float(self.loops.cpu()) / 1e9

    def rows(self, table: Path, schema: str, write_ids: int, columns: list[str] | None) -> Measured:
        """Hive's row-by-row reader: the merge of `OrcRawRecordMerger`."""
        return self._measured(self.loops.rows(self.hive.input_format, self._conf(table, schema, write_ids, columns)))

    def json(self, path: Path, limit: int) -> Measured:
        """The rows of an ORC file through Hive's own JSON text of a row (`SerDeUtils.getJSONString`)."""
        hive = self.hive
        conf = hive.hadoop.conf.Configuration(False)
        reader = hive.OrcFile.createReader(hive.Path(str(path)), hive.OrcFile.readerOptions(conf))
        return self._measured(self.loops.json(reader, limit))

    def compact(self, table: Path, schema: str, kind: str, txns: Txns, codec: str) -> list[str]:
        """Hive's compactor, see `Hive.compact`; a base gets `codec`, a delta none, nor an index: Hive 2.3 does so.

        Hive's job does not hand on the table's `orc.compress`, and the default of Spark's ORC is zstd.
        """
        compactor = self.hive.compactor
        plain = compactor._hive_conf

        def conf() -> Any:
            made = plain()
            made.set("orc.compress", codec.upper())
            return made

        compactor._hive_conf = conf
        try:
            return self.hive.compact(table, schema, kind, txns)
        finally:
            compactor._hive_conf = plain

    @staticmethod
    def _measured(found: Any) -> Measured:
        rows, nanos, extra = found
        return Measured(int(rows), int(nanos) / 1e9, int(extra))

    def _conf(self, table: Path, schema: str, write_ids: int, columns: list[str] | None) -> Any:
        conf = self.hive.conf(Path(table).resolve(), schema, Txns(write_ids), 2, 1)
        if columns is not None:
            names = parse_type(schema).names
            conf.set("hive.io.file.readcolumn.all", "false")
            conf.set("hive.io.file.readcolumn.ids", ",".join(str(names.index(name)) for name in columns))
            conf.set("hive.io.file.readcolumn.names", ",".join(columns))
        return conf
