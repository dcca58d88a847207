"""The text of a partition value, as Hive writes it in names and in the metastore."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acidctl.acid.names import DEFAULT_PARTITION
from acidctl.base.errors import BadDataError, RefusedError, UsageProblem
from acidctl.orc.types import OrcType, arrow_type, hive_type
from acidctl.rows.export.json_lines import unquoted
from acidctl.rows.export.text import wrapped
from acidctl.rows.scan.partition_values import typed

KINDS = (
    "tinyint", "smallint", "int", "bigint", "boolean", "decimal", "string", "varchar", "char", "date", "timestamp",
)  # fmt: skip
"""Types of partition keys whose values acidctl writes."""


def partition_texts(column: pa.Array, kind: OrcType) -> pa.Array:
    """Return the texts of partition values.

    Raises:
        RefusedError: Hive's text for the type is not known, or Hive reads a text as NULL.
    """
    if kind.kind not in KINDS:
        raise RefusedError(
            f"partitions by {kind.kind} cannot be written",
            "how Hive writes their values in names of partitions is not known for certain",
            "name the partition, or write it with Hive",
        )
    texts = wrapped(unquoted(column, kind)).cast(pa.string())
    if kind.kind == "timestamp":
        texts = pc.replace_substring_regex(texts, r"\.0$", "")
    if (place := place_read_as_null(texts, kind)) >= 0:
        raise _read_as_null(texts[place].as_py().rstrip(" "))
    return pc.fill_null(texts, DEFAULT_PARTITION)


def place_read_as_null(texts: pa.Array, kind: OrcType) -> int:
    """Return the place of the first text that Hive reads as NULL where it is a partition value; -1 if none is."""
    plain = pc.utf8_rtrim(texts, characters=" ") if kind.kind == "char" else texts
    return int(pc.index(pc.is_in(plain, pa.array(["", DEFAULT_PARTITION], plain.type)), True).as_py())


def fixed_text(text: str, kind: OrcType, name: str) -> str:
    """Return Hive's text of a value that a user gave as text: ``1`` for ``01`` if the key is an INT.

    Raises:
        UsageProblem: the text is not a valid value of the type.
        RefusedError: Hive reads the text as NULL.
    """
    if text == DEFAULT_PARTITION:
        raise _read_as_null(text)
    what, why = f"the partition {name}={text} does not fit the type of its key", f"{name} is {hive_type(kind)}"
    if kind.max_length and len(text.rstrip(" ")) > kind.max_length:
        raise UsageProblem(what, why, "shorten it")
    try:
        value = typed(text, kind, name)
    except BadDataError as error:
        raise UsageProblem(what, why, "give a value of that type") from error
    if kind.kind in ("float", "double") or isinstance(value, np.datetime64):
        return text
    return str(partition_texts(pa.array([value], arrow_type(kind)), kind)[0])


def _read_as_null(text: str) -> RefusedError:
    what = f"a partition value is {text or 'an empty text'}"
    return RefusedError(what, "it would be read as NULL", "give another value, or NULL in a column of the rows")
