"""Write rows by ``df.write`` and ``df.writeStream`` with ``format("hive_acid")``, and by ``INSERT INTO view``.

Each write, and each epoch of a stream, is one Hive transaction. Importing this module needs PySpark and nothing else
that is heavy: Spark's executors import it as well.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import datasource as api
from pyspark.sql.datasource import DataSourceStreamWriter, DataSourceWriter, WriterCommitMessage

from acidctl.spark.told import told
from acidctl.spark.writing.worker import local_property, share_number

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from acidctl.spark.writing.keeper import Kept, WriteRequest

_ArrowWriter: Any = getattr(api, "DataSourceArrowWriter", DataSourceWriter)
"""Spark 4.0 gives rows one by one: :func:`_request` refuses it."""

_StreamArrowWriter: Any = getattr(api, "DataSourceStreamArrowWriter", DataSourceStreamWriter)


@dataclass(frozen=True, slots=True)
class Message(WriterCommitMessage):
    """The pickled attempt of one task.

    Attributes:
        keeper: the address of the process that holds the transaction.
        query: the id of the stream's query, which its checkpoint keeps.
    """

    attempt: bytes
    keeper: str = ""
    query: str = ""


class HiveAcidWriter(_ArrowWriter):  # type: ignore[misc]  # its base depends on the version of PySpark
    """Writes on the executors; commits or aborts on the driver, by the process that holds the transaction."""

    def __init__(self, kept: Kept) -> None:
        self._kept = kept

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Message:
        """Write a share of the rows to files that no reader sees."""
        with told():
            return Message(_attempt(self._kept, iterator))

    def commit(self, messages: list[Message | None]) -> None:
        """Publish the files of the attempts that Spark accepted, and commit."""
        with told():
            self._kept.commit([pickle.loads(message.attempt) for message in messages if message])

    def abort(self, messages: list[Message | None]) -> None:  # noqa: ARG002 - all files are in one directory
        """Remove all files, and abort the transaction."""
        self._kept.abort()


class HiveAcidStreamWriter(_StreamArrowWriter):  # type: ignore[misc]  # the same
    """Writes the epochs of a stream, a transaction each, as :class:`HiveAcidWriter` writes a DataFrame.

    Spark makes one for the tasks of each epoch, and pickles it; it makes others, which it does not pickle, for the
    commits and aborts. So the pickling opens the transaction.

    Args:
        note: the place of a link to the epoch's keeper, for an abort without a message of a task.
    """

    def __init__(self, request: WriteRequest, note: Path) -> None:
        self._request, self._note = request, note
        self._kept: Kept | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Open the transaction of an epoch, and leave out what only the driver needs."""
        if self._kept is None:
            from acidctl.spark.writing.keeper import Kept  # noqa: PLC0415 - only the driver's

            with told():
                self.abort([])  # an epoch whose commit or abort did not come
                kept = Kept.begin(self._request)
                try:
                    self._note.symlink_to(kept.address)
                except BaseException:
                    kept.abort()  # nobody else would find it
                    raise
                self._kept = kept
        return {"_kept": self._kept}

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Message:
        """Write a share of the rows to files that no reader sees."""
        with told():
            assert self._kept
            attempt = _attempt(self._kept, iterator)
            return Message(attempt, self._kept.address, local_property("sql.streaming.queryId"))

    def commit(self, messages: list[Message | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Publish the files, and commit them with the number of the epoch, unless the table has this epoch."""
        with told():
            from acidctl.spark.writing.keeper import Kept  # noqa: PLC0415 - only the driver's
            from acidctl.writing.once import Once  # noqa: PLC0415 - only the driver's

            found = [message for message in messages if message]
            assert found[0].query  # all streams without one would share the name
            attempts = [pickle.loads(message.attempt) for message in found]
            Kept(b"", found[0].keeper).commit(attempts, Once(f"Spark's query {found[0].query}", batchId))
            self._note.unlink(missing_ok=True)

    def abort(self, messages: list[Message | None], batchId: int = 0) -> None:  # noqa: ARG002, N803 - the same
        """Remove all files of an epoch, and abort its transaction."""
        from acidctl.spark.writing.keeper import Kept  # noqa: PLC0415 - only the driver's

        with suppress(FileNotFoundError):
            Kept(b"", str(self._note.readlink())).abort()
            self._note.unlink()


def _attempt(kept: Kept, rows: Iterator[pa.RecordBatch]) -> bytes:
    from acidctl.spark.writing.share import write_share  # noqa: PLC0415 - may be missing: told

    return pickle.dumps(write_share(pickle.loads(kept.task), share_number(), rows))


def begin(options: Mapping[str, str], schema: StructType, *, overwrite: bool) -> HiveAcidWriter:
    """Open a transaction, and return the writer.

    Raises:
        EnvironmentProblem: PySpark is older than 4.1.
        UsageProblem: an option cannot be used.
        AcidctlError: the table cannot be written to; see :func:`acidctl.spark.insert`.
    """
    from acidctl.spark.writing.keeper import Kept  # noqa: PLC0415 - only the driver's

    is_arrow = _ArrowWriter is not DataSourceWriter
    return HiveAcidWriter(Kept.begin(_request(options, schema, is_arrow=is_arrow, overwrite=overwrite)))


def stream_writer(
    options: Mapping[str, str], schema: StructType, start: str, *, overwrite: bool
) -> HiveAcidStreamWriter:
    """Return the writer of a stream's epochs.

    Args:
        start: an id of this start of the query.

    Raises:
        EnvironmentProblem: PySpark is older than 4.1.
        UsageProblem: an option cannot be used, or the stream would replace rows.
    """
    from acidctl.base.errors import UsageProblem  # noqa: PLC0415 - only the driver's

    if overwrite:
        why = "in the mode complete each epoch replaces all rows of the table"
        raise UsageProblem("a stream of hive_acid can only add rows", why, 'write outputMode("append")')
    sparks = ("checkpointlocation", "queryname")
    own = {name: value for name, value in options.items() if name.lower() not in sparks}
    request = _request(own, schema, is_arrow=_StreamArrowWriter is not DataSourceStreamWriter)
    # Spark's own folder for this driver, which is the same in all processes that it starts, and nobody else's.
    folder = os.environ["SPARK_LOCAL_DIRS"].split(",")[0]
    # Spark keeps queries of one checkpoint apart; its setting gives others that look the same checkpoints of their own.
    own_start = "" if "checkpointlocation" in map(str.lower, options) else start
    name = sha256(repr((own_start, sorted(options.items()))).encode()).hexdigest()
    return HiveAcidStreamWriter(request, Path(folder, f"acidctl-{name}"))


def _request(
    options: Mapping[str, str], schema: StructType, *, is_arrow: bool, overwrite: bool = False
) -> WriteRequest:
    """Return the request of an INSERT; `is_arrow` if Spark gives its rows in batches of Arrow."""
    from acidctl.base.errors import EnvironmentProblem  # noqa: PLC0415 - only the driver's
    from acidctl.spark.datasource.load_options import SaveOptions  # noqa: PLC0415 - only the driver's
    from acidctl.spark.writing.keeper import WriteRequest  # noqa: PLC0415 - only the driver's
    from acidctl.spark.writing.target import arrow_schema  # noqa: PLC0415 - only the driver's

    if not is_arrow:
        why = "Spark gives rows to a data source one by one before PySpark 4.1"
        hint = "call acidctl.spark.insert(df, table), or for a stream foreachBatch(acidctl.spark.sink(...))"
        raise EnvironmentProblem("this PySpark cannot write hive_acid", why, hint)
    given = SaveOptions.parse(options)
    driver = os.getppid()
    return WriteRequest(given.path, given.metastore, arrow_schema(schema), overwrite, given.storage, given.wait, driver)
