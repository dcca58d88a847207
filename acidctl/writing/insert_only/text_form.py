"""Write rows as lines that Hive's LazySimpleSerDe reads back unchanged, and refuse values that it would not."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acidctl.base.errors import BadDataError
from acidctl.location.metastore_schema import TextLayout
from acidctl.metastore.tables import HiveTable
from acidctl.orc.types import OrcType, parse_type
from acidctl.rows.convert.java_floats import java_texts
from acidctl.rows.export.json_lines import list_parts, row_slices, text_buffer, text_of_a_row, unquoted
from acidctl.rows.export.text import nulls, wrapped
from acidctl.rows.foreign.foreign_reader import BYTE_ORDER_MARK

_DEPTH = 8
"""The number of Hive's default delimiters: one for columns, and seven for levels below."""

_ASCII = 128
_TEXTS = ("string", "varchar", "char")
_FAR = r"^(?:0000-|[^0-9]|[0-9]{5})"
_HINT = "nothing was written; change the value, or write to a table in ORC or Parquet"


@dataclass(frozen=True, slots=True)
class TextForm:
    """The delimiters of a table.

    Attributes:
        separators: one for each level, the columns' first.
        escape: the byte before a delimiter that is part of a text; may be empty.
        null: the text of NULL.
        problem: why the files cannot be written; empty if they can.
    """

    separators: bytes
    escape: bytes
    null: str
    problem: str = ""

    @classmethod
    def of(cls, layout: TextLayout) -> TextForm:
        """Return the form of a table's files."""
        separators = bytes((layout.separator, *layout.nested, *range(4, _DEPTH + 1)))
        escape = b"" if layout.escape is None else bytes([layout.escape])
        special = separators[:3] + escape
        problem = layout.problem
        if layout.header or layout.footer:
            problem = "its files have lines before or after the rows"
        elif max(special) >= _ASCII or len(set(separators + escape)) < len(separators + escape):
            problem = "its delimiters are not ASCII, or not distinct"
        elif set(special) & set(b"\r\n") or (escape and set(special) & set(b"rn")):
            problem = "its delimiters are letters that stand for line ends"
        return cls(separators, escape, layout.null, problem)

    def problems(self, table: HiveTable) -> Iterator[str]:
        """Yield the reasons why the table's rows cannot be written."""
        if self.problem:
            yield self.problem
        for column in table.columns:
            if _levels(parse_type(column.type)) >= _DEPTH:
                yield f"column {column.name} is nested deeper than its delimiters reach"


class TextSink:
    """Writes one file.

    Args:
        row: the struct of the columns.
    """

    def __init__(self, out: Any, row: OrcType, form: TextForm) -> None:
        self._out, self._row, self._is_begun = out, row, False
        used = form.separators[: 1 + max((_levels(kind) for kind in row.children), default=0)]
        self._form = form
        special = b"".join(rb"\x%02x" % byte for byte in used + form.escape)
        self._special = f"[{special.decode()}]"

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows.

        Raises:
            BadDataError: a value cannot be told from a delimiter, a line end or NULL.
        """
        for rows in row_slices(batch, self._row):
            with text_of_a_row():
                text = text_buffer(self._lines(rows))
            if not self._is_begun and bytes(text[:3]) == BYTE_ORDER_MARK:
                what = "the text files of the table cannot begin with U+FEFF"
                raise BadDataError(what, "Hadoop takes it for a mark of the encoding", _HINT)
            self._is_begun = True
            self._out.write(text)

    def _lines(self, rows: pa.StructArray) -> pa.Array:
        columns = [
            pc.fill_null(_Column(self._form, self._special, name).texts(rows.field(place), kind, 1), self._form.null)
            for place, (name, kind) in enumerate(self._row.fields())
        ]
        between = self._form.separators[:1].decode()
        lines = pc.binary_join_element_wise(*columns, between) if len(columns) > 1 else columns[0]
        return pc.binary_join_element_wise(lines, "\n", "")

    def close(self) -> None:
        """Do nothing: every line is complete."""


class _Column:
    """Makes the texts of one column."""

    def __init__(self, form: TextForm, special: str, name: str) -> None:
        self._form, self._special, self._name = form, special, name

    def texts(self, array: pa.Array, kind: OrcType, level: int) -> pa.Array:
        """Return the text of each value; NULL stays NULL."""
        nested = {"array": self._list, "map": self._map, "struct": self._struct}.get(kind.kind)
        texts = nested(array, kind, level) if nested else self._leaf(array, kind)
        self._refuse(pc.equal(texts, self._form.null), texts, f"its text is {self._form.null!r}, as that of NULL")
        return texts

    def _leaf(self, array: pa.Array, kind: OrcType) -> pa.Array:
        texts = _texts(array, kind)
        if kind.kind in ("date", "timestamp"):
            self._refuse(pc.match_substring_regex(texts, _FAR), texts, "Hive reads years from 0001 to 9999 from text")
        self._refuse(pc.match_substring_regex(texts, r"[\r\n]"), texts, "a line would end in it")
        has_special = pc.match_substring_regex(texts, self._special)
        if self._form.escape and kind.kind in _TEXTS:
            if pc.any(has_special).as_py():
                texts = pc.replace_substring_regex(
                    texts, f"({self._special})", rf"{re.escape(self._form.escape.decode())}\1"
                )
            return texts
        self._refuse(has_special, texts, "it has a delimiter of the table")
        return texts

    def _list(self, array: pa.Array, kind: OrcType, level: int) -> pa.Array:
        offsets, [elements] = list_parts(array)
        texts = self.texts(elements, kind.children[0], level + 1)
        joined = self._joined(array, offsets, texts, level)
        is_empty = pc.and_(pc.equal(joined, ""), pa.array(np.diff(offsets) > 0))
        self._refuse(is_empty, joined, "an array of one empty text looks like an empty array")
        return joined

    def _map(self, array: pa.Array, kind: OrcType, level: int) -> pa.Array:
        offsets, parts = list_parts(array)
        keys, items = (
            pc.fill_null(self.texts(part, child, level + 2), self._form.null)
            for part, child in zip(parts, kind.children, strict=True)
        )
        entries = pc.binary_join_element_wise(keys, items, chr(self._form.separators[level + 1]))
        return self._joined(array, offsets, entries, level)

    def _joined(self, array: pa.Array, offsets: Any, texts: pa.Array, level: int) -> pa.Array:
        mask = pa.array(nulls(array)) if array.null_count else None
        lists = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pc.fill_null(texts, self._form.null), mask=mask)
        return pc.binary_join(lists, chr(self._form.separators[level]))

    def _struct(self, array: pa.Array, kind: OrcType, level: int) -> pa.Array:
        fields = [
            pc.fill_null(self.texts(field, child, level + 1), self._form.null)
            for field, child in zip(array.flatten(), kind.children, strict=True)
        ]
        joined = pc.binary_join_element_wise(*fields, chr(self._form.separators[level]))
        return pc.if_else(array.is_valid(), joined, pa.scalar(None, joined.type)) if array.null_count else joined

    def _refuse(self, flags: pa.Array, texts: pa.Array, why: str) -> None:
        if pc.any(flags).as_py():
            value = texts[int(pc.index(flags, True).as_py())].as_py()
            raise BadDataError(
                f"the text files of the table cannot hold {value[:60]!r} in column {self._name}",
                why,
                _HINT,
            )


def _levels(kind: OrcType) -> int:
    """Return the number of levels of delimiters that a type needs below that of columns."""
    below = max((_levels(child) for child in kind.children), default=0)
    return below + {"map": 2, "array": 1, "struct": 1}.get(kind.kind, 0)


def _texts(array: pa.Array, kind: OrcType) -> pa.Array:
    """Return values of a simple type as Hive writes them: other floats and bytes than in JSON or CSV."""
    if kind.kind in ("float", "double"):
        return java_texts(array)
    if kind.kind == "binary":
        encoded = [None if value is None else base64.b64encode(value) for value in array.to_pylist()]
        return pa.array(encoded, pa.binary()).cast(pa.string())
    return wrapped(unquoted(array, kind)).cast(pa.string())
