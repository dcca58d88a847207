"""How much memory the rows of a row group take, known before a native reader takes it.

What the footer says of sizes is not believed: the headers of the pages count, as they do for the reader.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acidctl.orc.arrow import below
from acidctl.orc.byte_source import ByteSource, ReadAheadFile, damaged, native_errors
from acidctl.orc.limits import STRIPE_MEMORY, STRIPES
from acidctl.rows.foreign.parquet_file import open_parquet
from acidctl.rows.foreign.parquet_pages import (
    BY_DICTIONARY,
    DATA,
    DATA_2,
    DICTIONARY,
    SHARED_BEGINNINGS,
    Page,
    Read,
    longest_text,
    next_page,
    shared_bytes,
)

_IDS = 32
"""Bytes of a row's ids."""
_WIDTHS = {"BOOLEAN": 1, "INT32": 8, "INT64": 8, "INT96": 16, "FLOAT": 4, "DOUBLE": 8}
_DECIMAL = 16
_ENTRY = 16
"""Of a dictionary: where it is, and how long."""
_PADDING = 100
"""Bytes that chunks of old writers are longer than they say; Arrow reads as many more."""
_PAGE = 16 * 1024
"""Bytes that are decoded in the time that the header of a page takes."""


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A column with values.

    Attributes:
        width: decoded bytes of a value, None for texts.
        levels: the greatest repetition level and the greatest definition level.
    """

    index: int
    path: str
    width: int | None
    levels: tuple[int, int]


@dataclass(slots=True)
class _Total:
    """Bytes so far, and how much of them may be too much, by leaf: texts of a dictionary, counted by its longest."""

    where: str
    bytes: float = 0.0
    doubtful: dict[int, float] = field(default_factory=dict)
    pages: int = 0

    def add(self, amount: float, *, doubtful: int | None = None) -> None:
        if doubtful is not None:
            self.doubtful[doubtful] = self.doubtful.get(doubtful, 0.0) + amount
        else:
            self.bytes += amount
        STRIPE_MEMORY.check(self.bytes, self.where, _WHAT)

    def add_page(self) -> None:
        self.pages += 1
        STRIPES.check(self.pages, self.where, "number of its pages")


_WHAT = "decompressed size of its rows"


class RowGroups:
    """The row groups of a file, each to be checked before it is read."""

    def __init__(self, source: ByteSource, metadata: Any, window: ReadAheadFile | None = None) -> None:
        """`window`: through which a remote file is read; what is wanted of it is fetched ahead."""
        self._source = source
        self._metadata = metadata
        self._window = window

    @cached_property
    def _leaves(self) -> list[_Leaf]:
        schema = self._metadata.schema
        return [_leaf(i, schema.column(i)) for i in range(len(schema))]

    def check(self, i: int, columns: Sequence[str] | None = None) -> float:
        """Refuse a row group whose rows would take more memory than the limit.

        Args:
            columns: names as Arrow is asked for them; None for all.

        Returns:
            About how many bytes they take, for each page as many as are decoded while its header is.

        Raises:
            LimitError: they would.
            BadDataError: its pages contradict themselves.
        """
        group = self._metadata.row_group(i)
        where = f"row group {i} of {self._source.path}"
        STRIPE_MEMORY.check(group.num_rows * _IDS, where, "decompressed size of its row ids")
        if group.num_columns != len(self._leaves):
            why = f"row group {i} has {group.num_columns} columns, the schema {len(self._leaves)}"
            raise damaged(self._source.path, why)
        chunks = [(leaf, group.column(leaf.index)) for leaf in self._wanted(columns)]
        total = _Total(where)
        with native_errors(self._source.path, i):
            ranges = [self._range(chunk) for _, chunk in chunks]
            total.add(sum(end - start for start, end in ranges))
            with _reading(self._source, self._window, ranges) as read:
                for (leaf, chunk), (start, end) in zip(chunks, ranges, strict=True):
                    self._add(total, leaf, chunk, (start, end), read)
            if total.bytes + sum(total.doubtful.values()) > STRIPE_MEMORY.value:
                self._add_exactly(total, i)
        return total.bytes + sum(total.doubtful.values()) + total.pages * _PAGE

    def _wanted(self, columns: Sequence[str] | None) -> list[_Leaf]:
        if columns is None:
            return self._leaves
        names = set(columns)
        return [leaf for leaf in self._leaves if any(f"{leaf.path}.".startswith(f"{name}.") for name in names)]

    def _range(self, chunk: Any) -> tuple[int, int]:
        """Where a column chunk is, as Arrow looks for it."""
        start, length = chunk.data_page_offset, chunk.total_compressed_size
        dictionary = chunk.dictionary_page_offset
        if dictionary is not None and 0 < dictionary < start:
            start = dictionary
        if start < 0 or length < 0 or start + length > self._source.size:
            raise damaged(self._source.path, "a column chunk claims bytes behind its end")
        return start, min(start + length + _PADDING, self._source.size)

    def _add(self, total: _Total, leaf: _Leaf, chunk: Any, place: tuple[int, int], read: Read) -> None:
        """Add the values of a column chunk: what each takes, and a page of it at a time."""
        pages = _pages(read, place, chunk.num_values, total, self._source.path)
        values = longest = largest = 0
        for page in pages:
            largest = max(largest, page.unpacked)
            if page.kind == DICTIONARY:
                total.add(page.unpacked + page.values * _ENTRY)
                longest = longest_text(page, read, chunk.compression) if leaf.width is None else 0
                continue
            values += page.values
            if leaf.width is None and page.encoding in BY_DICTIONARY:
                total.add(float(page.values) * longest, doubtful=leaf.index)
            elif leaf.width is None:
                _add_texts(total, leaf, page, read, chunk.compression)
        repeated, optional = leaf.levels
        if not repeated:
            values = min(values, chunk.num_values)
        each = (4 if leaf.width is None else leaf.width) + 2 * (optional > 0) + (2 + 4 * repeated if repeated else 0)
        total.add(largest + values * each)

    def _add_exactly(self, total: _Total, i: int) -> None:
        """Add texts of dictionaries, each as often as it is used; real row groups seldom come here."""
        doubtful, total.doubtful = total.doubtful, {}
        for index in sorted(doubtful, key=lambda index: doubtful[index]):
            if total.bytes + doubtful[index] <= STRIPE_MEMORY.value:
                total.add(doubtful[index])
            else:
                total.add(self._used(i, self._leaves[index].path))

    def _used(self, i: int, path: str) -> float:
        """Bytes of the texts of a column, read as places in its dictionary."""
        file = open_parquet(self._source, dictionaries=[path])
        try:
            table = file.read_row_group(i, columns=[path])
        finally:
            file.close(force=True)
        return sum(_texts(chunk) for column in table.columns for chunk in column.chunks)


@contextmanager
def _reading(source: ByteSource, window: ReadAheadFile | None, ranges: Sequence[tuple[int, int]]) -> Iterator[Read]:
    """What gives bytes of a file: of a local one through one handle, of a remote one these ranges at once."""
    local = source.local_whole()
    if local is not None:
        with pa.OSFile(local) as file:
            yield lambda offset, count: file.read_at(count, offset)
        return
    window = window or ReadAheadFile(source)
    window.fetch(ranges)
    yield window.piece


def _add_texts(total: _Total, leaf: _Leaf, page: Page, read: Read, compression: str) -> None:
    """Add the texts of a page that stand in it."""
    total.add(page.unpacked)
    if page.encoding == SHARED_BEGINNINGS:
        most = float(page.values) * page.unpacked
        if total.bytes + most > STRIPE_MEMORY.value:
            most = shared_bytes(page, read, compression, levels=leaf.levels)
        total.add(most)


def _leaf(index: int, column: Any) -> _Leaf:
    physical = column.physical_type
    width = _WIDTHS.get(physical)
    if physical == "FIXED_LEN_BYTE_ARRAY":
        width = max(column.length, _DECIMAL)
    return _Leaf(index, column.path, width, (column.max_repetition_level, column.max_definition_level))


def _pages(read: Read, place: tuple[int, int], values: int, total: _Total, path: str) -> Iterator[Page]:
    """The pages of a column chunk that a reader reads: until they hold as many values as the footer says."""
    at, end = place
    seen = 0
    while seen < values and at < end:
        total.add_page()
        page = next_page(read, at, end, path)
        at = page.at + page.packed
        if page.kind in (DATA, DATA_2):
            seen += page.values
        if page.kind in (DATA, DATA_2, DICTIONARY):
            yield page


def _texts(array: pa.Array) -> float:
    """Bytes of the texts in an array, however nested."""
    if not pa.types.is_dictionary(array.type):
        inner = below(array)
        return sum(map(_texts, inner)) if inner else float(array.nbytes)
    lengths = pc.fill_null(pc.binary_length(array.dictionary), 0)
    sizes = np.append(lengths.to_numpy(zero_copy_only=False).astype(np.int64), 0)
    places = pc.fill_null(array.indices, len(sizes) - 1).to_numpy(zero_copy_only=False)
    return float(sizes[places].sum())
