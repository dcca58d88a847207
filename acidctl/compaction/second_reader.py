"""Written files read by pyorc, which shares no code with the reader and the writer that acidctl has from Arrow."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any, BinaryIO

import pyarrow as pa

from acidctl.compaction.sent import mismatch
from acidctl.compaction.values import value_checksum
from acidctl.errors import out_of_memory

SAMPLE_ROWS = 1000
"""Of a stripe: the first so many."""

_KINDS = frozenset(
    {"boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string", "varchar", "binary"}
)
"""Of columns whose values Python holds as they are."""


class SecondReader:
    """Compares the first rows of stripes with what pyorc reads there.

    Args:
        file: the written file, seekable; it is not closed.
        kinds: of the table's columns, by their place in the struct ``row``.
        shown: the file's name for messages.

    Raises:
        VerifyError: pyorc cannot read it.
    """

    def __init__(self, file: BinaryIO, kinds: list[str], shown: str) -> None:
        import pyorc

        self._shown = shown
        with _its_errors(shown):
            self._reader = pyorc.Reader(file, struct_repr=pyorc.StructRepr.TUPLE)
        self._places = [place for place, kind in enumerate(kinds) if kind in _KINDS]

    def differing(self, stripe: int, rows: pa.Array) -> str | None:
        """The name of a column in which pyorc reads other values than are here; None where there is none.

        Args:
            rows: those of the stripe, of which the first are compared; NULLs are those of delete events.

        Raises:
            VerifyError: pyorc cannot read them.
        """
        if not self._places or not isinstance(rows, pa.StructArray):
            return None
        try:
            with _its_errors(f"stripe {stripe} of {self._shown}"):
                found = list(islice(self._rows(stripe), SAMPLE_ROWS))
        except UnicodeDecodeError:  # a text that is none: pyorc knows no bytes there
            return None
        if len(found) != min(SAMPLE_ROWS, len(rows)):
            return "row"
        columns = rows.slice(0, len(found)).flatten()  # with the NULLs of rows that are NULL
        for place in self._places:
            column = columns[place]
            values = [None if row is None else row[place] for row in found]
            if _sum(pa.array(values, column.type)) != _sum(pa.array(column.to_pylist(), column.type)):
                return str(rows.type.field(place).name)
        return None

    def _rows(self, stripe: int) -> Iterator[Any]:
        return (event[-1] for event in self._reader.read_stripe(stripe))


@contextmanager
def _its_errors(shown: str) -> Iterator[None]:
    """What pyorc says of a file that it cannot read; what the store says of itself passes."""
    import pyorc.errors

    try:
        yield
    except MemoryError as error:
        raise out_of_memory(shown, str(error)) from error
    except (pyorc.errors.ORCError, RuntimeError, OSError) as error:
        raise mismatch(shown, f"pyorc cannot read it: {error}") from error


def _sum(values: pa.Array) -> int:
    return value_checksum(None, pa.StructArray.from_arrays([values], names=["value"]))
