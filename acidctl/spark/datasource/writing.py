"""Write rows by ``df.write.format("hive_acid")`` and ``INSERT INTO view``: one Hive transaction each.

Importing this module needs PySpark and nothing else that is heavy: Spark's executors import it as well.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import datasource as api
from pyspark.sql.datasource import DataSourceWriter, WriterCommitMessage

from acidctl.spark.told import told
from acidctl.spark.writing.worker import share_number

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from acidctl.spark.writing.keeper import Kept

_ArrowWriter: Any = getattr(api, "DataSourceArrowWriter", DataSourceWriter)
"""Spark 4.0 gives rows one by one: :func:`begin` refuses it."""


@dataclass(frozen=True, slots=True)
class Message(WriterCommitMessage):
    """The pickled attempt of one task."""

    attempt: bytes


class HiveAcidWriter(_ArrowWriter):  # type: ignore[misc]  # its base depends on the version of PySpark
    """Writes on the executors; commits or aborts on the driver, by the process that holds the transaction."""

    def __init__(self, kept: Kept) -> None:
        self._kept = kept

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Message:
        """Write a share of the rows to files that no reader sees."""
        with told():
            from acidctl.spark.writing.share import write_share  # noqa: PLC0415 - may be missing: told

            return Message(pickle.dumps(write_share(pickle.loads(self._kept.task), share_number(), iterator)))

    def commit(self, messages: list[Message | None]) -> None:
        """Publish the files of the attempts that Spark accepted, and commit."""
        with told():
            self._kept.commit([pickle.loads(message.attempt) for message in messages if message])

    def abort(self, messages: list[Message | None]) -> None:  # noqa: ARG002 - all files are in one directory
        """Remove all files, and abort the transaction."""
        self._kept.abort()


def begin(options: Mapping[str, str], schema: StructType, *, overwrite: bool) -> HiveAcidWriter:
    """Open a transaction, and return the writer.

    Raises:
        EnvironmentProblem: PySpark is older than 4.1.
        UsageProblem: an option cannot be used.
        AcidctlError: the table cannot be written to; see :func:`acidctl.spark.insert`.
    """
    from acidctl.base.errors import EnvironmentProblem  # noqa: PLC0415 - only the driver's
    from acidctl.spark.datasource.load_options import SaveOptions  # noqa: PLC0415 - only the driver's
    from acidctl.spark.writing.keeper import Kept, WriteRequest  # noqa: PLC0415 - only the driver's
    from acidctl.spark.writing.target import arrow_schema  # noqa: PLC0415 - only the driver's

    if _ArrowWriter is DataSourceWriter:
        why = "Spark gives rows to a data source one by one before PySpark 4.1"
        raise EnvironmentProblem("this PySpark cannot write hive_acid", why, "call acidctl.spark.insert(df, table)")
    given = SaveOptions.parse(options)
    request = WriteRequest(
        given.path, given.metastore, arrow_schema(schema), overwrite, given.storage, given.wait, os.getppid()
    )
    return HiveAcidWriter(Kept.begin(request))
