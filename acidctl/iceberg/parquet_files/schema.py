"""The schema of a Parquet file of Iceberg: Arrow's types with field ids, and the ids of a file that is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from acidctl.base.errors import BadDataError
from acidctl.iceberg.fields import Field
from acidctl.orc.types import OrcType, arrow_type, like_arrow, row_of

_FIELD_ID = b"PARQUET:field_id"
_TIMES = {"timestamp": pa.timestamp("us"), "timestamptz": pa.timestamp("us", tz="UTC")}


def parquet_schema(fields: Sequence[Field]) -> pa.Schema:
    """Return the schema of a file with these columns."""
    return pa.schema([_arrow_field(field) for field in fields])


def _arrow_field(field: Field) -> pa.Field:
    return pa.field(field.name, _arrow_type(field), metadata={_FIELD_ID: str(field.id)})


def _arrow_type(field: Field) -> pa.DataType:
    children = [_arrow_field(child) for child in field.children]
    if field.kind == "struct":
        return pa.struct(children)
    if field.kind == "list":
        return pa.list_(children[0])
    if field.kind == "map":
        return pa.map_(children[0].with_nullable(False), children[1])
    return _TIMES.get(field.kind) or arrow_type(field.stored)


@dataclass(frozen=True, slots=True)
class Leaf:
    """A column of Parquet.

    Attributes:
        path: as Parquet names it, ``l.list.element``.
        is_repeated: it lies inside a list or map.
    """

    path: str
    field: Field
    is_repeated: bool = False


def leaves_of(fields: Sequence[Field], prefix: str = "", *, is_repeated: bool = False) -> Iterator[Leaf]:
    """Yield the columns of Parquet in the order of the file."""
    for field in fields:
        path = f"{prefix}{field.name}"
        if not field.children:
            yield Leaf(path, field, is_repeated)
            continue
        inside = {"list": f"{path}.list.", "map": f"{path}.key_value."}.get(field.kind, f"{path}.")
        yield from leaves_of(field.children, inside, is_repeated=is_repeated or field.kind != "struct")


def types_of(schema: pa.Schema, shown: str) -> OrcType:
    """Return the types of the columns of a file, with Iceberg's ids as attributes.

    Raises:
        BadDataError: Hive has no such type.
    """
    return row_of((field.name, _type_of(field, shown)) for field in schema)


def _type_of(field: pa.Field, shown: str) -> OrcType:
    kind, found = field.type, like_arrow(field.type)
    if found is None:
        raise BadDataError(f"{shown} cannot be read", f"acidctl did not write its column {field.name} of {kind}")
    inner: list[pa.Field] = []
    if pa.types.is_struct(kind):
        inner = list(kind)
    elif pa.types.is_map(kind):
        inner = [kind.key_field, kind.item_field]
    elif pa.types.is_list(kind):
        inner = [kind.value_field]
    id_ = (field.metadata or {}).get(_FIELD_ID, b"0").decode()
    children = tuple(_type_of(child, shown) for child in inner)
    return replace(found, children=children, attributes=(("iceberg.id", id_),))
