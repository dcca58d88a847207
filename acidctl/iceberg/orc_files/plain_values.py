"""The values of a column of Hive as Iceberg's type holds them, for columns that are encoded again."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from acidctl.iceberg.fields import Field
from acidctl.orc.arrow import below, struct_of, with_children
from acidctl.orc.types import OrcType


def plain_values(column: pa.Array, kind: OrcType, field: Field) -> pa.Array:
    """Return the values of a column in the ORC type that `field` is stored as.

    Args:
        column: as Hive reads it, of the table's type `kind`.

    CHAR loses its padding, TINYINT and SMALLINT become INT.
    """
    if kind.kind == "char":
        return pc.ascii_rtrim(column, " ")  # which takes bytes that are not UTF-8, too
    if kind.kind in ("tinyint", "smallint"):
        return column.cast(pa.int32())
    if not kind.children:
        return column
    children = [plain_values(*parts) for parts in zip(below(column), kind.children, field.children, strict=True)]
    if kind.kind == "struct":
        return struct_of(children, field.stored.names, len(column), column.is_null() if column.null_count else None)
    return with_children(column, children)
