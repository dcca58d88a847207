"""A second reader for written files: pyorc, another build of ORC C++ than Arrow's, with its own conversion to values.

It does not use acidctl's own steps to and from Arrow (timestamps of any year, joined streams, ids as runs).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any, BinaryIO

import pyarrow as pa

from acidctl.base.errors import out_of_memory
from acidctl.compaction.proof.checksum import mismatch
from acidctl.compaction.proof.values import value_checksum
from acidctl.orc.read.wide_timestamps import WIDE_STORAGE, WideTimestamp
from acidctl.orc.types import OrcType

if TYPE_CHECKING:
    from pyorc import TypeKind
    from pyorc.converters import ORCConverter

SAMPLE_ROWS = 1000
"""At most this many rows at the start of a stripe are compared."""

_KINDS = frozenset(
    {
        *("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal"),
        *("string", "varchar", "char", "binary", "date", "timestamp", "timestamp with local time zone"),
    }
)
"""The types of columns that are compared: all but nested ones."""


class SecondReader:
    """Compares the first rows of stripes with the rows that pyorc reads.

    Args:
        file: the written file, seekable; it is not closed.
        types: the types of the table's columns, in the order of the struct ``row``.
        shown: the file's name for messages.

    Raises:
        VerifyError: pyorc cannot read it.
    """

    def __init__(self, file: BinaryIO, types: Sequence[OrcType], shown: str) -> None:
        import pyorc  # noqa: PLC0415 - a second ORC library, only for --verify full

        self._shown = shown
        with _its_errors(shown):
            self._reader = pyorc.Reader(file, struct_repr=pyorc.StructRepr.TUPLE, converters=_converters())
        self._columns = [(place, kind) for place, kind in enumerate(types) if kind.kind in _KINDS]

    def differing(self, stripe: int, rows: pa.Array) -> str | None:
        """Return the name of a column in which pyorc reads other values; None if there is no such column.

        Args:
            rows: all rows of the stripe; the rows of delete events are NULL.

        Raises:
            VerifyError: pyorc cannot read them.
        """
        if not self._columns or not isinstance(rows, pa.StructArray):
            return None
        try:
            with _its_errors(f"stripe {stripe} of {self._shown}"):
                sample = list(islice(self._rows(stripe), SAMPLE_ROWS))
        except UnicodeDecodeError:  # a string that is not UTF-8, which pyorc cannot return
            return None
        if len(sample) != min(SAMPLE_ROWS, len(rows)):
            return "row"
        first = rows.slice(0, len(sample))
        for place, kind in self._columns:  # not flatten(), which aborts the process if a union lies in a NULL row
            column = first.field(place)
            values = _array([None if row is None else row[place] for row in sample], column.type)
            nulls = pa.array([row is None for row in sample], pa.bool_())
            if _sum(values, kind, nulls) != _sum(column, kind, first.is_null()):
                return str(rows.type.field(place).name)
        return None

    def _rows(self, stripe: int) -> Iterator[Any]:
        return (event[-1] for event in self._reader.read_stripe(stripe))


@contextmanager
def _its_errors(shown: str) -> Iterator[None]:
    """Raise VerifyError if pyorc cannot read a file; errors of the store pass."""
    import pyorc.errors  # noqa: PLC0415 - as above

    try:
        yield
    except MemoryError as error:
        raise out_of_memory(shown, str(error)) from error
    except (pyorc.errors.ORCError, RuntimeError, OSError) as error:
        raise mismatch(shown, f"pyorc cannot read it: {error}") from error


def _sum(values: pa.Array, kind: OrcType, nulls: pa.Array) -> int:
    struct = OrcType("struct", children=(kind,), names=("value",))
    return value_checksum(None, pa.StructArray.from_arrays([values], names=["value"], mask=nulls), struct)


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_date(kind):
        return pa.array(values, pa.int32()).view(kind)
    if pa.types.is_timestamp(kind) or isinstance(kind, WideTimestamp):
        return pa.ExtensionArray.from_storage(WideTimestamp(), pa.array(values, WIDE_STORAGE))
    return pa.array(values, kind)


def _converters() -> dict[TypeKind, type[ORCConverter]]:
    """Return converters from ORC C++'s values to Arrow's, without rounding and for all years."""
    from pyorc import TypeKind  # noqa: PLC0415 - as above
    from pyorc.converters import ORCConverter  # noqa: PLC0415 - as above

    class Days(ORCConverter):
        @staticmethod
        def from_orc(days: int) -> int:
            return days

    class Seconds(ORCConverter):
        @staticmethod
        def from_orc(seconds: int, nanoseconds: int, _timezone: object) -> dict[str, int]:
            return {"seconds": seconds, "nanos": nanoseconds}

    return {TypeKind.DATE: Days, TypeKind.TIMESTAMP: Seconds, TypeKind.TIMESTAMP_INSTANT: Seconds}
