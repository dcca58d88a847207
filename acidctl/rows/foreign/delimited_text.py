"""Lines of text as rows, split at the delimiters from the metastore by Arrow's reader of CSV.

Hive's LazySimpleSerDe reads an invalid value as NULL, by different rules for every type. Here only values in the form
that Hive writes are accepted; others are refused, so that no row is read differently than in Hive.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from acidctl.base.errors import BadDataError
from acidctl.location.metastore_schema import TextLayout
from acidctl.orc.arrow import cut_text
from acidctl.orc.read.wide_timestamps import as_nanoseconds, wide
from acidctl.orc.types import OrcType, arrow_type
from acidctl.rows.foreign.foreign_reader import one_chunk

_TEXTS = ("string", "char", "varchar")
_ASCII = 128
_EMPTY_LINES = (b"\n\n", b"\n\r", b"\r\r")
_SECONDS = len("2026-11-25 10:11:12")

_INTEGER = "^-?[0-9]{1,19}$"
_FLOAT = r"^-?(?:[0-9]+(?:\.[0-9]+)?(?:E-?[0-9]{1,3})?|Infinity)$|^NaN$"
# The forms in which Hive writes values of types other than text.
_FORMS = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), _INTEGER),
    "float": _FLOAT,
    "double": _FLOAT,
    "boolean": "^(?i:true|false)$",
    "decimal": r"^-?[0-9]{1,38}(?:\.[0-9]{1,38})?$",
    "date": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
    "timestamp": r"^[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?$",
}


class DelimitedBlock:
    """A block of lines of a file.

    Args:
        count: the number of lines.
        path: for errors.
    """

    def __init__(self, data: bytes, count: int, layout: TextLayout, path: str) -> None:
        self._data, self._count, self._layout, self._path = data, count, layout, path

    def columns(self, row: OrcType, names: Sequence[str] | None) -> pa.RecordBatch:
        """Return the columns with these names, or all of them; each line is a row.

        Raises:
            BadDataError: acidctl does not read these types, values or lines as Hive does.
        """
        wanted = [(name, kind) for name, kind in row.fields() if names is None or name in names]
        for name, kind in wanted:
            if kind.kind not in _FORMS and kind.kind not in _TEXTS:
                raise self._refused(f"acidctl does not read {kind.kind} from text, as its column {name} is")
        fields = self._fields(row.names)
        arrays = [self._values(fields.get(name), name, kind) for name, kind in wanted]
        return pa.RecordBatch.from_arrays(arrays, names=[name for name, _ in wanted])

    def _refused(self, why: str) -> BadDataError:
        return BadDataError(f"{self._path} cannot be read", why, "read the table with Hive")

    def _fields(self, names: Sequence[str]) -> dict[str, pa.Array]:
        """Return the bytes of the fields by name, without the last columns if all lines end before them."""
        separator = self._layout.separator
        if separator >= _ASCII or self._layout.escape == separator:
            raise self._refused("acidctl takes ASCII alone for what separates fields, and no escape")
        first = re.split(rb"[\r\n]", self._data, maxsplit=1)[0]
        names = names[: first.count(separator) + 1]
        if len(names) > 1 and any(ends in self._data for ends in _EMPTY_LINES):
            raise self._refused("it has empty lines among lines of several fields")
        try:
            table = csv.read_csv(
                pa.py_buffer(self._data),
                csv.ReadOptions(use_threads=False, block_size=len(self._data) + 1, column_names=list(names)),
                csv.ParseOptions(
                    delimiter=chr(separator),
                    quote_char=False,
                    double_quote=False,
                    escape_char=self._escape(),
                    ignore_empty_lines=False,
                ),
                csv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.binary()),
                    null_values=[self._layout.null],
                    strings_can_be_null=True,
                ),
            )
        except pa.ArrowInvalid as error:
            raise self._refused(f"its lines are not as acidctl knows them: {str(error)[:200]}") from error
        if table.num_rows != self._count:
            raise self._refused(f"{table.num_rows} rows were found in {self._count} of its lines")
        return {name: one_chunk(table.column(name)) for name in names}

    def _escape(self) -> str | bool:
        """Return Arrow's escape character: False if the data has no escapes, apart from the text for NULL."""
        escape, null = self._layout.escape, self._layout.null.encode()
        if escape is None or escape not in self._data:
            return False
        byte, separator = re.escape(bytes([escape])), re.escape(bytes([self._layout.separator]))
        alone = rb"(?<![^\r\n%b])%b(?![^\r\n%b])" % (separator, re.escape(null), separator)
        if escape in null and self._data.count(escape) == null.count(escape) * len(re.findall(alone, self._data)):
            return False
        # Arrow compares with the text for NULL after removing escapes, Hive before; and in Hive `\n` is a line end.
        odd = rb"%b(?:[\r\nnr%b]|\Z)" % (byte, re.escape(null))
        if escape >= _ASCII or escape in null or re.search(odd, self._data.replace(bytes([escape, escape]), b"")):
            raise self._refused("it has escapes that acidctl does not know")
        return chr(escape)

    def _values(self, raw: pa.Array | None, name: str, kind: OrcType) -> pa.Array:
        if raw is None:
            return pa.nulls(self._count, arrow_type(kind))
        if kind.kind in _TEXTS:
            text = pa.Array.from_buffers(pa.string(), len(raw), raw.buffers(), offset=raw.offset)
            cut = text if kind.kind == "string" else cut_text(text, kind.max_length)
            return pc.ascii_rtrim(cut, characters=" ") if kind.kind == "char" else cut
        raw = pc.if_else(pc.equal(raw, b""), pa.scalar(None, raw.type), raw)
        odd = raw.filter(pc.invert(pc.match_substring_regex(raw, _FORMS[kind.kind])))
        if len(odd):
            shown = odd[0].as_py()[:40].decode("utf-8", "replace")
            raise self._refused(f"its column {name} has {shown!r}, which is not how Hive writes {kind.kind}")
        texts = raw.cast(pa.string())
        try:
            if kind.kind == "boolean":
                return pc.equal(pc.ascii_lower(texts), "true")
            return _timestamps(texts) if kind.kind == "timestamp" else texts.cast(arrow_type(kind))
        except pa.ArrowInvalid as error:
            raise self._refused(f"its column {name} has values beyond {kind.kind}: {str(error)[:200]}") from error


def _timestamps(texts: pa.Array) -> pa.Array:
    """Parse values of any year: seconds as Arrow reads them, and the digits after the point."""
    seconds = pc.utf8_slice_codeunits(texts, 0, _SECONDS).cast(pa.timestamp("s")).cast(pa.int64())
    nanos = pc.utf8_rpad(pc.utf8_slice_codeunits(texts, _SECONDS + 1), 9, "0").cast(pa.int64())
    whole, rest = (np.asarray(pc.fill_null(part, 0)) for part in (seconds, nanos))
    return as_nanoseconds(wide(whole, rest, seconds, instant=False))
