"""The accumulator rule of the engine; a module of its own since it needs PySpark to be defined."""

from __future__ import annotations

from typing import Any

from pyspark.accumulators import AccumulatorParam


class MailParam(AccumulatorParam[Any]):
    """Lists on the executors, an :class:`acidctl.spark.engine.Mailbox` in the driver."""

    def zero(self, value: Any) -> Any:  # noqa: ARG002 - PySpark's signature
        """What an executor starts with."""
        return []

    def addInPlace(self, value1: Any, value2: Any) -> Any:  # noqa: N802 - PySpark's name
        """Add `value2`, a list of (index, pickled result)."""
        if isinstance(value1, list):
            value1.extend(value2)
        else:
            for item in value2:
                value1.items.put(item)
        return value1
