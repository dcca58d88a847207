"""SQL by which an engine compares a table with sums that acidctl computed; an answer without rows says: the same.

Every sum is one of whole numbers that Spark and Trino compute alike.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from acidctl.iceberg.fields import Field
from acidctl.orc.read.wide_timestamps import parts
from acidctl.orc.types import quoted_name

Numbers = Callable[[pa.Array], Any]
"""Returns a whole number for each value of a column, or NULL."""

_NAME = re.compile(r"(?:hive|iceberg):([^\s=]+)")

_MOST_DIGITS = 27
"""Digits of a number whose sum over very many rows has at most 38."""

_TIME = "hour({c}) * 10000 + minute({c}) * 100 + second({c})"
_DAY = "year({c}) * 10000 + month({c}) * 100 + day({c})"
_CRC = {
    ("spark", "string"): "crc32(CAST({c} AS BINARY))", ("spark", "binary"): "crc32({c})",
    ("trino", "string"): "crc32(to_utf8({c}))", ("trino", "binary"): "crc32({c})",
}  # fmt: skip


class EngineSums:
    """The sums over the rows of a table, each by its name, with the SQL that computes it.

    Args:
        engine: ``spark`` or ``trino``.
        fields: the columns of the rows.
        padded: names of those that are CHAR in Hive: engines read them with padding there, and the copy has none.
    """

    def __init__(self, engine: str, fields: Sequence[Field], padded: Collection[str] = ()) -> None:
        self._engine, self._padded = engine, padded
        self._measures = [(field, *measure) for field in fields for measure in _measures(engine, field)]
        self._sums: Counter[str] = Counter()

    def add(self, columns: Mapping[str, pa.Array]) -> None:
        """Add rows by their columns."""
        self._sums["rows"] += len(next(iter(columns.values())))
        for field, what, _, numbers in self._measures:
            column = columns[field.name]
            if numbers is None:
                self._sums[f"{field.name} {what}"] += len(column) - column.null_count
            elif len(column) > column.null_count:
                found = pc.sum(pc.cast(numbers(column.drop_null()), pa.decimal256(76, 0))).as_py()
                self._sums[f"{field.name} {what}"] += int(found)

    def statement(self, shown: str, role: str) -> str:
        """Return the statement.

        Args:
            shown: the table as the user named it: `db.table` behind a prefix is its name in SQL.
            role: its name in SQL if it is a path.
        """
        found = _NAME.fullmatch(shown)
        parts = found[1].replace("/", ".").split(".") if found else [role]
        table = ".".join(_quoted(self._engine, part) for part in parts)
        every = [("rows", "count(*)")]
        for field, what, sql, numbers in self._measures:
            name = _quoted(self._engine, field.name)
            is_padded = role == "source" and field.name in self._padded
            whole = sql.format(c=f"rtrim({name})" if is_padded else name)
            value = whole if numbers is None else f"coalesce(sum(CAST({whole} AS DECIMAL(38,0))), 0)"
            every.append((f"{field.name} {what}", value))
        text = "STRING" if self._engine == "spark" else "VARCHAR"
        inner = ",\n    ".join(f"CAST({sql} AS {text}) AS s{at}" for at, (_, sql) in enumerate(every))
        triples = [f"{_text(self._engine, name)}, s{at}, '{self._sums[name]}'" for at, (name, _) in enumerate(every)]
        if self._engine == "spark":
            rows = f"SELECT stack({len(triples)},\n    " + ",\n    ".join(triples) + ") AS (measure, found, expected)"
            query = f"{rows}\n  FROM sums"
        else:
            listed = ",\n    ".join(f"ROW({triple})" for triple in triples)
            query = f"SELECT u.* FROM sums\n  CROSS JOIN UNNEST(ARRAY[\n    {listed}]) AS u(measure, found, expected)"
        return (
            f"-- {role}: {shown}\n"
            f"WITH sums AS (SELECT\n    {inner}\n  FROM {table})\n"
            f"SELECT * FROM ({query}) AS compared\nWHERE found IS DISTINCT FROM expected;\n"
        )


def _quoted(engine: str, name: str) -> str:
    return quoted_name(name) if engine == "spark" else '"' + name.replace('"', '""') + '"'


def _text(engine: str, name: str) -> str:
    if engine == "spark":
        return "'" + name.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return "'" + name.replace("'", "''") + "'"


def _measures(engine: str, field: Field) -> Iterator[tuple[str, str, Numbers | None]]:
    """Yield the name of each sum of a column, the number of a row in SQL, and by Arrow; None counts values."""
    yield "values", "count({c})", None
    if field.kind in ("int", "long"):
        yield "sum", "{c}", lambda column: column
    elif field.kind == "boolean":
        yield "true", "CASE WHEN {c} THEN 1 ELSE 0 END", lambda column: column.cast(pa.int8())
    elif field.kind in ("float", "double"):
        yield "negative", "CASE WHEN {c} < 0 THEN 1 ELSE 0 END", lambda column: pc.less(column, 0).cast(pa.int8())
    elif field.kind == "decimal" and field.precision - field.scale <= _MOST_DIGITS:
        wide = pa.decimal256(76, field.scale)  # a floor may have one digit more
        yield "sum of floors", "floor({c})", lambda column: pc.floor(column.cast(wide))
    elif field.kind in ("string", "binary"):
        yield "crc32", _CRC[engine, field.kind], lambda column: pa.array(_crc32(column.cast(pa.large_binary())))
    elif field.kind in ("date", "timestamp"):
        yield "days", _DAY, _days
        if field.kind == "timestamp":
            yield "times", _TIME, _times


def _days(column: pa.Array) -> pa.Array:
    if not pa.types.is_date32(column.type):
        seconds = np.asarray(parts(column)[0], np.int64)
        column = pa.array((seconds // 86400).astype(np.int32)).view(pa.date32())
    high, middle, low = (part(column) for part in (pc.year, pc.month, pc.day))
    return pc.add(pc.add(pc.multiply(high, 10000), pc.multiply(middle, 100)), low)


def _times(column: pa.Array) -> pa.Array:
    seconds = np.asarray(parts(column)[0], np.int64) % 86400
    return pa.array(seconds // 3600 * 10000 + seconds // 60 % 60 * 100 + seconds % 60)


@cache
def _table() -> NDArray[np.uint32]:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, table >> 1 ^ np.uint32(0xEDB88320), table >> 1)
    return table


def _crc32(column: pa.Array) -> NDArray[np.uint32]:
    """Return the CRC-32 of each text, byte by byte for all texts at once."""
    offsets = np.frombuffer(column.buffers()[1], np.int64)[column.offset : column.offset + len(column) + 1]
    data = np.frombuffer(column.buffers()[2] or b"", np.uint8)
    lengths = np.diff(offsets)
    order = np.argsort(-lengths, kind="stable")  # the texts that go on are the first ones
    starts, falling = offsets[:-1][order], -lengths[order]
    values = np.full(len(column), 0xFFFFFFFF, np.uint32)
    for at in range(int(lengths.max(initial=0))):
        some = values[: np.searchsorted(falling, -at, "left")]
        some[:] = _table()[(some ^ data[starts[: len(some)] + at]) & 0xFF] ^ some >> 8
    found = np.empty_like(values)
    found[order] = values ^ np.uint32(0xFFFFFFFF)
    return found
