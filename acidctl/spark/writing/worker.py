"""Functions that Spark sends to executors; only what they carry as bytes needs other packages there."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self, TypeVar

from acidctl.spark.told import told

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ShareMapper:
    """Maps the batches of a Spark partition by a function of this package.

    Attributes:
        call: a function and its first argument, pickled; it is called with that, the partition's number and batches.
    """

    call: bytes = field(repr=False)

    @classmethod
    def of(cls, function: Callable[[T, int, Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]], task: T) -> Self:
        return cls(pickle.dumps((function, task)))

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with told():
            function, task = pickle.loads(self.call)  # what it needs may be missing: told
            yield from function(task, share_number(), batches)


def share_number() -> int:
    """Return the number of the Spark partition that runs in this process."""
    from pyspark import TaskContext  # noqa: PLC0415 - PySpark

    context = TaskContext.get()
    assert context
    return int(context.partitionId())


def local_property(name: str) -> str:
    """Return what the driver has set for the job of the Spark task that runs in this process; empty without it."""
    from pyspark import TaskContext  # noqa: PLC0415 - PySpark

    context = TaskContext.get()
    assert context
    return context.getLocalProperty(name) or ""
