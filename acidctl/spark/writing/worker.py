"""Functions that Spark sends to executors; only what they carry as bytes needs other packages there."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from acidctl.spark.told import told

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class RouteAdder:
    """Adds the column ROUTE to batches; `task` is a pickled :class:`acidctl.spark.writing.share.InsertTask`."""

    task: bytes = field(repr=False)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with told():
            from acidctl.spark.writing.share import with_route  # noqa: PLC0415 - may be missing: told

            yield from with_route(pickle.loads(self.task), share_number(), batches)


@dataclass(frozen=True, slots=True)
class ShareWriter:
    """Writes a share of the rows, and yields one row: the pickled attempt.

    Attributes:
        task: a pickled :class:`acidctl.spark.writing.share.InsertTask`.
    """

    task: bytes = field(repr=False)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with told():
            import pyarrow as pa  # noqa: PLC0415 - may be missing: told

            from acidctl.spark.writing.share import without_route, write_share  # noqa: PLC0415 - may be missing: told

            task = pickle.loads(self.task)
            rows = without_route(batches) if task.is_routed else batches
            attempt = write_share(task, share_number(), rows)
            yield pa.record_batch([pa.array([pickle.dumps(attempt)])], names=["attempt"])


def share_number() -> int:
    """Return the number of the Spark partition that runs in this process."""
    from pyspark import TaskContext  # noqa: PLC0415 - PySpark

    context = TaskContext.get()
    assert context
    return int(context.partitionId())
