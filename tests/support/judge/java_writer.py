"""Java ORC as a reader and a writer of whole files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from py4j.java_gateway import get_field


class Java:
    """Java ORC through py4j."""

    def __init__(self, spark: Any) -> None:
        self.jvm = spark._jvm
        self.conf = self.jvm.org.apache.hadoop.conf.Configuration()
        self.orc = self.jvm.org.apache.orc
        self.no_names = spark._sc._gateway.new_array(self.jvm.java.lang.String, 0)

    def path(self, path: Path) -> Any:
        return self.jvm.org.apache.hadoop.fs.Path(str(path))

    def reader(self, path: Path) -> Any:
        return self.orc.OrcFile.createReader(self.path(path), self.orc.OrcFile.readerOptions(self.conf))

    def rewritten(self, path: Path, stride: int = 10_000) -> Path:
        """A copy of the file, every row decoded and encoded again by Java."""
        reader = self.reader(path)
        target = path.with_suffix(".java")
        options = self.orc.OrcFile.writerOptions(self.conf).setSchema(reader.getSchema()).overwrite(True)
        options = options.rowIndexStride(stride)
        writer = self.orc.OrcFile.createWriter(self.path(target), options)
        batch, rows = reader.getSchema().createRowBatch(), reader.rows()
        while rows.nextBatch(batch):
            writer.addRowBatch(batch)
        writer.close()
        rows.close()
        return target

    def row_ids(self, path: Path, seek: int | None = None, where: Any = None) -> list[int]:
        """The rowId column: one batch from row `seek` on, or all of the row groups that `where` lets through."""
        reader = self.reader(path)
        options = reader.options()
        if where is not None:
            options = options.searchArgument(where, self.no_names)
        rows = reader.rows(options)
        if seek is not None:
            rows.seekToRow(seek)
        batch = reader.getSchema().createRowBatch()
        found: list[int] = []
        while rows.nextBatch(batch):
            column = get_field(batch, "cols")[3]
            values, repeating = get_field(column, "vector"), get_field(column, "isRepeating")
            found += [values[0 if repeating else i] for i in range(get_field(batch, "size"))]
            if seek is not None:
                break
        rows.close()
        return found
