"""Choose the file of each new row: its partition by the partition keys, its bucket by Hive's hash."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from acidctl.acid.names import partition_name
from acidctl.metastore.tables import HiveTable
from acidctl.orc.types import OrcType, parse_type
from acidctl.writing.rows.bucket_hashes import buckets_of
from acidctl.writing.rows.conform import RowConformer
from acidctl.writing.rows.files import FileKey, StagedRows
from acidctl.writing.rows.partition_values import fixed_text, partition_texts
from acidctl.writing.rows.sources import RowPart


class Routes:
    """Writes rows to the files of their partitions and buckets.

    Args:
        row: the type of the table's columns.
        fixed: the texts of partition keys that all rows share, by lower-case name.

    Attributes:
        names, types: the columns that rows must have: the table's, then the partition keys that are not fixed.
    """

    def __init__(self, table: HiveTable, row: OrcType, fixed: Mapping[str, str]) -> None:
        self._row, self._table = row, table
        self._keys = [column.name for column in table.partition_keys]
        types = {column.name: parse_type(column.type) for column in table.partition_keys}
        self._fixed = {key: fixed_text(text, types[key], key) for key, text in fixed.items()}
        dynamic = [column for column in table.partition_keys if column.name not in fixed]
        self.names = [*row.names, *(column.name for column in dynamic)]
        self.types = [*row.children, *(parse_type(column.type) for column in dynamic)]
        self._bucket_places = [row.names.index(name) for name in table.bucket_columns] if table.buckets else []
        self._version = int(table.parameters.get("bucketing_version", "1"))

    def conformer(self, source: pa.Schema, part: RowPart, not_null: Collection[str]) -> RowConformer:
        """Return what turns batches into columns as :attr:`names`; see :class:`RowConformer`."""
        keys = self.names[len(self._row.names) :]
        return RowConformer(source, self.names, self.types, part, keys=keys, not_null=not_null)

    @property
    def only_location(self) -> str | None:
        """Return the location that all rows go to; None if the rows decide."""
        if len(self._fixed) < len(self._keys):
            return None
        return "/".join(partition_name(key, self._fixed[key]) for key in self._keys)

    def write(self, columns: list[pa.Array], rows: StagedRows, number: int = 0) -> None:
        """Write rows, each to its file.

        Args:
            columns: as :attr:`names`, in the Arrow types of :attr:`types`.
            number: the number of the files, if the table has no buckets.

        Raises:
            RefusedError: a partition value cannot be written.
        """
        values = pa.StructArray.from_arrays(columns[: len(self._row.names)], names=list(self._row.names))
        rows.write_mixed(values, *self.files(columns, number))

    def files(self, columns: list[pa.Array], number: int = 0) -> tuple[list[FileKey], NDArray[np.int64]]:
        """Return the files that rows go to, and for each row the index of its file; see :meth:`write`."""
        width, count = len(self._row.names), len(columns[0])
        dynamic = self.names[width:]
        texts = [partition_texts(*pair) for pair in zip(columns[width:], self.types[width:], strict=True)]
        firsts, which, buckets = _grouped(texts, self._buckets(columns, count, number))
        chosen = [text.take(pa.array(firsts)).to_pylist() for text in texts]
        files = []
        for at, bucket in enumerate(buckets):
            by_key = {**{key: text[at] for key, text in zip(dynamic, chosen, strict=True)}, **self._fixed}
            location = "/".join(partition_name(key, by_key[key]) for key in self._keys)
            files.append((location, int(bucket)))
        return files, which

    def _buckets(self, columns: list[pa.Array], count: int, number: int) -> NDArray[np.int32]:
        if not self._bucket_places:
            return np.full(count, number, np.int32)
        chosen = [columns[place] for place in self._bucket_places]
        kinds = [self._row.children[place] for place in self._bucket_places]
        return buckets_of(chosen, kinds, self._table.buckets, self._version)


def _grouped(
    texts: list[pa.Array], buckets: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]:
    """Group rows by partition and bucket.

    Returns:
        the first row of each group, the group of each row, and the bucket of each group.
    """
    which = buckets.astype(np.int64)
    for text in texts:
        encoded = text.dictionary_encode()
        codes = which * len(encoded.dictionary) + encoded.indices.to_numpy()
        which = np.unique(codes, return_inverse=True)[1]  # dense, so that no product overflows
    _, firsts, which = np.unique(which, return_index=True, return_inverse=True)
    return firsts, which, buckets[firsts]
