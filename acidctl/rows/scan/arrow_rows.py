"""Rows for other libraries that use Arrow: anything with a schema and batches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from acidctl.base.arguments import as_count
from acidctl.base.errors import UsageProblem, importing
from acidctl.orc.read.common_type import same_types

if TYPE_CHECKING:
    import pandas


class ArrowRows(ABC):
    """Rows that are read a stripe at a time; pyarrow, polars, pandas and DuckDB accept them directly."""

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """Return the schema of all batches."""

    @abstractmethod
    def to_batches(self, limit: int | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the rows in batches of :attr:`schema`; only the first `limit` rows if it is given."""

    def _rows(self) -> ArrowRows:
        """Return the rows of one snapshot, so that schema and batches match."""
        return self

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export the rows to any library that reads Arrow's C stream, without a copy."""
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def to_reader(self) -> pa.RecordBatchReader:
        """Return a reader of all batches; errors of :meth:`to_batches` occur while it reads."""
        rows = self._rows()
        return pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches())

    def to_table(self) -> pa.Table:
        """Read all rows into memory; for errors see :meth:`to_batches`."""
        rows = self._rows()
        return one_table(list(rows.to_batches()), rows.schema)

    def head(self, count: int = 10) -> pa.Table:
        """Read the first rows; a small count reads little. UsageProblem if it is not a whole number from 0 on."""
        count = as_count(count, "count", 0, None)
        rows = self._rows()
        return one_table(list(rows.to_batches(count)), rows.schema)

    def to_pandas(self, **options: Any) -> pandas.DataFrame:
        """Read all rows into a pandas data frame.

        Args:
            options: of :meth:`pyarrow.Table.to_pandas`.

        Raises:
            EnvironmentProblem: pandas is not installed.
            UsageProblem: pandas has no type for a column, such as a union.
        """
        with importing("cannot import pandas", "pip install pandas"):
            import pandas  # noqa: F401, PLC0415 - optional; pyarrow's own error is less clear
        rows = self.to_table()
        try:
            return rows.to_pandas(**options)
        except pa.ArrowNotImplementedError as error:
            raise UsageProblem(
                "these columns cannot be put into a pandas data frame",
                str(error),
                "read the other columns, with columns=[...], or call to_table(), which keeps every type",
            ) from error

    def _repr_html_(self) -> str:
        """Describe the object and its columns, without reading rows."""
        from acidctl.notebook import html_table  # noqa: PLC0415 - only for notebooks

        return html_table(repr(self), ("column", "type"), [(field.name, field.type) for field in self.schema])


def one_table(batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    """Return all rows of the batches as one table; `schema` is used if there are none."""
    if not batches:
        # Not schema.empty_table(), which does not support unions.
        return pa.Table.from_arrays([pa.chunked_array([], kind) for kind in schema.types], schema=schema)
    places = range(len(schema.names))
    columns = [pa.chunked_array(same_types([batch.column(place) for batch in batches])) for place in places]
    return pa.Table.from_arrays(columns, names=schema.names)
