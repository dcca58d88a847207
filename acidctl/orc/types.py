"""Parse type trees of ORC footers and of Hive's metastore, show them as Hive does, and turn them into Arrow's types.

ORC flattens the tree by pre-order; a column id is an index into that list.  A full-ACID file's root is the
struct of six columns of format section 3.1, and the table's own columns are the children of the sixth, ``row``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import pyarrow as pa

from acidctl.base.errors import BadDataError
from acidctl.orc import orc_pb2 as pb
from acidctl.orc.limits import COLUMNS

ACID_COLUMNS = ("operation", "originalTransaction", "bucket", "rowId", "currentTransaction", "row")
"""The six root columns of a full-ACID file, in their fixed order and canonical spelling (format section 3.1)."""

MAX_DEPTH = 100
"""The deepest nesting that is accepted: native readers recurse, so a hostile file must not choose the depth."""

_MOST_ATTRIBUTES = 16  # the most attributes of a column, on average; Iceberg writes three
_KIND_NAMES: dict[int, str] = {
    pb.Type.BOOLEAN: "boolean", pb.Type.BYTE: "tinyint", pb.Type.SHORT: "smallint", pb.Type.INT: "int",
    pb.Type.LONG: "bigint", pb.Type.FLOAT: "float", pb.Type.DOUBLE: "double", pb.Type.STRING: "string",
    pb.Type.BINARY: "binary", pb.Type.TIMESTAMP: "timestamp",
    pb.Type.TIMESTAMP_INSTANT: "timestamp with local time zone", pb.Type.LIST: "array", pb.Type.MAP: "map",
    pb.Type.STRUCT: "struct", pb.Type.UNION: "uniontype", pb.Type.DECIMAL: "decimal", pb.Type.DATE: "date",
    pb.Type.VARCHAR: "varchar", pb.Type.CHAR: "char",
}  # fmt: skip
KINDS = tuple(_KIND_NAMES.values())
_KIND_NUMBERS: dict[str, int] = {name: number for number, name in _KIND_NAMES.items()}

TIMESTAMP_KINDS = ("timestamp", "timestamp with local time zone")

_ARROW_LEAVES: dict[str, pa.DataType] = {
    "boolean": pa.bool_(), "tinyint": pa.int8(), "smallint": pa.int16(), "int": pa.int32(), "bigint": pa.int64(),
    "float": pa.float32(), "double": pa.float64(), "string": pa.string(), "varchar": pa.string(), "char": pa.string(),
    "binary": pa.binary(), "timestamp": pa.timestamp("ns"),
    "timestamp with local time zone": pa.timestamp("ns", tz="UTC"), "date": pa.date32(),
}  # fmt: skip

_PLAIN_NAME = re.compile(r"[A-Za-z0-9_]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class OrcType:
    """One node of the type tree.

    Attributes:
        kind: Hive's lower-case name without parameters: ``int``, ``decimal``, ``struct``, ...
        column_id: index into the footer's pre-order list; it numbers streams, encodings and statistics.
        names: a struct's field names, one for each child; empty for all other kinds.
        max_length: of CHAR and VARCHAR, 0 if the file does not say.
        precision: of DECIMAL; 0 in files older than Hive 0.13, which do not say.
        attributes: key and value pairs that the writer attached (Iceberg's field ids, for example).
        by_name: Hive finds the fields of this struct in ORC files by name or else by position; None for what is usual:
            by position for the columns of a table, by name for all below.
        any_case: the case of these names does not count.
    """

    kind: str
    column_id: int = 0
    children: tuple[OrcType, ...] = ()
    names: tuple[str, ...] = ()
    max_length: int = 0
    precision: int = 0
    scale: int = 0
    attributes: tuple[tuple[str, str], ...] = ()
    by_name: bool | None = field(default=None, compare=False)
    any_case: bool = field(default=False, compare=False)

    def walk(self) -> Iterator[OrcType]:
        """Yield this node and all nodes below it by pre-order, the order of the column ids."""
        yield self
        for child in self.children:
            yield from child.walk()

    def fields(self) -> Iterator[tuple[str, OrcType]]:
        """Return the (name, type) pairs of a struct's fields."""
        return zip(self.names, self.children, strict=True)

    @property
    def last_id(self) -> int:
        """Return the greatest column id at or below this node; the subtree's ids are contiguous."""
        return self.children[-1].last_id if self.children else self.column_id


class Schema:
    """The type tree of a file, and facts about it that reading needs again and again."""

    def __init__(self, tree: OrcType) -> None:
        self.tree = tree
        self.is_acid = is_acid(tree)
        self.row_type = row_type(tree)
        self.kinds = frozenset(node.kind for node in tree.walk())

    @cached_property
    def column_ids(self) -> dict[str, list[int | None]]:
        """Return column ids by the dotted names that ORC's own reader gives them.

        An ambiguous name has several; a field inside a list, a map or a union has None, as it cannot be read alone.
        """
        ids: dict[str, list[int | None]] = {}

        def visit(node: OrcType, prefix: str, alone: bool) -> None:
            if node.kind == "struct":
                for name, child in node.fields():
                    ids.setdefault(prefix + name, []).append(child.column_id if alone else None)
                    visit(child, f"{prefix}{name}.", alone)
            else:
                for child in node.children:
                    visit(child, prefix, False)

        visit(self.tree, "", True)
        return ids


def schema_of(types: Sequence[pb.Type], path: str = "the file") -> Schema:
    """Return the schema that a footer's flat `types` describe.

    Raises BadDataError if the list is empty, is not a pre-order tree, is deeper than MAX_DEPTH, or names an unknown
    kind.
    """
    if not types:
        raise _bad(path, "the footer lists no column types")
    attributes = sum(len(message.attributes) for message in types)
    COLUMNS.check(attributes // _MOST_ATTRIBUTES, path, f"a {_MOST_ATTRIBUTES}th of the attributes of its columns")
    # The files of a table share their types: the thousands of a large location are parsed once.
    key = tuple(message.SerializeToString() for message in types)
    schema = _parsed.get(key)
    if schema is None:
        schema = Schema(_node(types, 0, 0, path)[0])
        if len(_parsed) >= _MOST_PARSED:
            _parsed.clear()
        _parsed[key] = schema
    return schema


_parsed: dict[tuple[bytes, ...], Schema] = {}  # a cache: all files of a table have the same types
_MOST_PARSED = 64


def _node(types: Sequence[pb.Type], column_id: int, depth: int, path: str) -> tuple[OrcType, int]:
    """Return the node `column_id` and the id that follows its subtree."""
    if depth > MAX_DEPTH:
        raise _bad(path, f"its types are nested deeper than {MAX_DEPTH} levels")
    message = types[column_id]
    kind = _KIND_NAMES.get(message.kind) if message.HasField("kind") else None
    if kind is None:
        raise _bad(path, f"column {column_id} is of a type that acidctl does not know")
    if max(len(message.subtypes), len(message.fieldNames)) > len(types):
        raise _bad(path, f"column {column_id} has more fields than there are columns")
    subtypes = list(message.subtypes)
    _check_arity(kind, len(subtypes), column_id, path)
    following = column_id + 1
    children = []
    for subtype in subtypes:
        # Pre-order leaves one legal id only: this excludes cycles, shared nodes and ids out of range at once.
        if subtype != following or subtype >= len(types):
            raise _bad(path, f"column {column_id} has child {subtype} where {following} must come")
        child, following = _node(types, subtype, depth + 1, path)
        children.append(child)
    names = tuple(message.fieldNames) if kind == "struct" else ()
    attributes = tuple((pair.key, pair.value) for pair in message.attributes)
    # The protobuf run-time returns bytes for a string field that is not UTF-8.
    if not all(isinstance(text, str) for text in (*names, *(text for pair in attributes for text in pair))):
        raise _bad(path, f"a name in column {column_id} is not UTF-8")
    if len(names) != len(children) and kind == "struct":
        raise _bad(path, f"struct column {column_id} has {len(children)} fields but {len(names)} names")
    if kind == "decimal" and (message.precision > 38 or message.scale > max(message.precision, 0)):
        raise _bad(path, f"column {column_id} is decimal({message.precision},{message.scale})")
    node = OrcType(
        kind=kind,
        column_id=column_id,
        children=tuple(children),
        names=names,
        max_length=message.maximumLength,
        precision=message.precision,
        scale=message.scale,
        attributes=attributes,
    )
    return node, following


def _check_arity(kind: str, count: int, column_id: int, path: str) -> None:
    wanted = {"array": 1, "map": 2}.get(kind, 0)
    if kind == "struct" or (kind == "uniontype" and 1 <= count <= 256):
        return
    if kind == "uniontype" or count != wanted:
        raise _bad(path, f"column {column_id} is of type {kind} and has {count} child types")


def _bad(path: str, why: str) -> BadDataError:
    return BadDataError(f"{path} is not a usable ORC file", why, "the file is damaged or from an unknown writer")


def hive_word(kind: pa.DataType) -> str:
    """Return Hive's word for an Arrow type: ``int``, ``decimal(5,2)``, or ``array`` for any list."""
    if isinstance(kind, pa.ExtensionType):  # for years that Arrow's own type cannot hold
        return "timestamp"
    if pa.types.is_nested(kind):
        name = str(kind).partition("<")[0]
        return "array" if name.endswith("list") else "uniontype" if name.endswith("union") else name
    found = like_arrow(kind)
    return hive_type(found) if found else str(kind)


def hive_type(tree: OrcType) -> str:
    """Return the type as Hive and ``orcfiledump`` write it, ``struct<a:int,b:char(10)>``; odd names are back-quoted."""
    if tree.kind == "struct":
        return f"struct<{','.join(f'{quoted_name(name)}:{hive_type(child)}' for name, child in tree.fields())}>"
    if tree.children:
        return f"{tree.kind}<{','.join(hive_type(child) for child in tree.children)}>"
    if tree.kind in ("char", "varchar") and tree.max_length:
        return f"{tree.kind}({tree.max_length})"
    if tree.kind == "decimal" and tree.precision:
        return f"decimal({tree.precision},{tree.scale})"
    return tree.kind


def quoted_name(name: str) -> str:
    """Return `name`, in back quotes (doubled inside) unless it has only letters, digits and underscores."""
    return name if _PLAIN_NAME.fullmatch(name) else "`" + name.replace("`", "``") + "`"


def is_acid(tree: OrcType) -> bool:
    """Return whether the root is the struct of the six ACID columns, in order, ignoring case (format section 3.1).

    The schema decides, never the presence of ``hive.acid.key.index`` (format section 3.4).
    """
    return tree.kind == "struct" and tuple(map(str.lower, tree.names)) == tuple(map(str.lower, ACID_COLUMNS))


def row_type(tree: OrcType) -> OrcType:
    """Return the table's columns: the child ``row`` of an ACID file, else the root itself."""
    return tree.children[-1] if is_acid(tree) else tree


def arrow_type(tree: OrcType) -> pa.DataType:
    """Return the type that ``pyarrow.orc`` gives to such a column (timestamps in nanoseconds, CHAR as string)."""
    if tree.kind == "struct":
        return pa.struct([pa.field(name, arrow_type(child)) for name, child in tree.fields()])
    if tree.kind == "array":
        return pa.list_(pa.field("item", arrow_type(tree.children[0])))
    if tree.kind == "map":
        return pa.map_(arrow_type(tree.children[0]), arrow_type(tree.children[1]))
    if tree.kind == "uniontype":
        fields = [pa.field(f"_union_{i}", arrow_type(child)) for i, child in enumerate(tree.children)]
        return pa.sparse_union(fields)
    if tree.kind == "decimal":
        # Without a precision (Hive 0.11) the native reader settles on (38, 6).
        return pa.decimal128(tree.precision, tree.scale) if tree.precision else pa.decimal128(38, 6)
    return _ARROW_LEAVES[tree.kind]


_LIKE_ARROW: dict[pa.DataType, str] = {
    **{kind: name for name, kind in reversed(_ARROW_LEAVES.items())},
    pa.uint8(): "smallint", pa.uint16(): "int", pa.uint32(): "bigint", pa.float16(): "float", pa.date64(): "date",
    pa.large_string(): "string", pa.string_view(): "string", pa.large_binary(): "binary", pa.binary_view(): "binary",
}  # fmt: skip


def like_arrow(kind: pa.DataType, of_null: OrcType | None = None) -> OrcType | None:
    """Return the type that holds every value of an Arrow type, None if Hive has none; `of_null` for the type null."""
    if pa.types.is_null(kind):
        return of_null
    if isinstance(kind, pa.ExtensionType):
        return like_arrow(kind.storage_type, of_null)
    if pa.types.is_dictionary(kind):  # an encoding
        return like_arrow(kind.value_type, of_null)
    if kind in _LIKE_ARROW:
        return OrcType(_LIKE_ARROW[kind])
    if pa.types.is_fixed_size_binary(kind):
        return OrcType("binary")
    if pa.types.is_timestamp(kind):
        return OrcType(TIMESTAMP_KINDS[kind.tz is not None])
    if pa.types.is_uint64(kind):
        return OrcType("decimal", precision=20)
    if pa.types.is_decimal(kind) and 0 <= kind.scale <= kind.precision <= 38:
        return OrcType("decimal", precision=kind.precision, scale=kind.scale)
    name = "struct" if pa.types.is_struct(kind) else "map" if pa.types.is_map(kind) else "array"
    if name == "array" and not (
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    ):
        return None
    fields = (
        list(kind) if name == "struct" else [kind.key_field, kind.item_field] if name == "map" else [kind.value_field]
    )
    children = tuple(child for field in fields if (child := like_arrow(field.type, of_null)))
    names = tuple(field.name for field in fields) if name == "struct" else ()
    return OrcType(name, children=children, names=names) if len(children) == len(fields) else None


def restricted(tree: OrcType, column_ids: Collection[int]) -> OrcType | None:
    """Return the tree with only those columns, all below them, and the structs around them; ids stay the file's.

    The result is None if none of the columns exists.  Lists, maps and unions are taken whole or not at all.
    """
    if tree.column_id in column_ids:
        return tree
    if tree.kind != "struct":
        return None
    kept = [(name, child) for name, field in tree.fields() if (child := restricted(field, column_ids)) is not None]
    if not kept:
        return None
    return replace(tree, names=tuple(name for name, _ in kept), children=tuple(child for _, child in kept))


def renumbered(tree: OrcType, first_id: int = 0) -> OrcType:
    """Return the same subtree with column ids counted from `first_id`."""
    following = first_id + 1
    children = []
    for child in tree.children:
        children.append(renumbered(child, following))
        following = children[-1].last_id + 1
    return replace(tree, column_id=first_id, children=tuple(children))


def acid_tree(row: OrcType) -> OrcType:
    """Return the root of an ACID file around the columns `row` of the table: root 0, five columns 1..5, ``row`` 6."""
    leaves = tuple(OrcType(kind) for kind in ("int", "bigint", "int", "bigint", "bigint"))
    return renumbered(OrcType("struct", children=(*leaves, row), names=ACID_COLUMNS))


def row_of(fields: Iterable[tuple[str, OrcType]]) -> OrcType:
    """Return a struct of some fields."""
    fields = list(fields)
    return OrcType("struct", children=tuple(kind for _, kind in fields), names=tuple(name for name, _ in fields))


def to_proto(tree: OrcType) -> list[pb.Type]:
    """Return the footer's flat list for `tree`, numbered from 0 whatever its ids are.

    ``maximumLength``, ``precision`` and ``scale`` are written only for types that have them, as Java does.
    """
    messages = []
    for node in renumbered(tree).walk():
        message = pb.Type(kind=pb.Type.Kind.Name(_KIND_NUMBERS[node.kind]))
        message.subtypes.extend(child.column_id for child in node.children)
        message.fieldNames.extend(node.names)
        if node.kind in ("char", "varchar"):
            message.maximumLength = node.max_length
        if node.kind == "decimal" and node.precision:
            message.precision = node.precision
            message.scale = node.scale
        for key, value in node.attributes:
            message.attributes.add(key=key, value=value)
        messages.append(message)
    return messages


_WORD = re.compile(r"\s*([A-Za-z_0-9 ]+?)\s*(?=[(<,>]|$)")
_NUMBERS = re.compile(r"\(\s*(\d{1,9})\s*(?:,\s*(\d{1,9})\s*)?\)\s*")
_ZONE = re.compile(r"\(\s*'[^'()]*'\s*\)\s*")
"""Hive names the zone of the session that made a TIMESTAMP WITH LOCAL TIME ZONE; values do not depend on it."""
_FIELD = re.compile(r"\s*(?:`((?:[^`]|``)*)`|([^:<>,`]+?))\s*:")
_COLUMN = re.compile(r"\s*(?:`((?:[^`]|``)*)`|(\w+))\s*:?", re.ASCII)
_STRUCT = re.compile(r"struct\s*<", re.IGNORECASE)
_NESTED = {"array": 1, "map": 2, "struct": 0, "uniontype": 0}
_OTHER_NAMES = {"integer": "int", "numeric": "decimal", "double precision": "double", "void": "string"}


def parse_type(text: str) -> OrcType:
    """Return the type that a text names; column ids are not set.

    Raises BadDataError if Hive does not have this type, or tables cannot have it.
    """
    node, at = _node_of(text, 0, 0)
    if at != len(text):
        raise _unknown(text)
    return node


def columns_of(text: str) -> OrcType:
    """Return the row type of columns as in CREATE TABLE, ``id int, name string``, or ``struct<id:int,name:string>``.

    Raises:
        BadDataError: as for :func:`parse_type`.
    """
    text = text.strip()
    if _STRUCT.match(text):
        return parse_type(text)
    node, at = _nested(f"<{text}>", 0, 0, "struct", _COLUMN)
    if at != len(text) + 2:
        raise _unknown(text)
    return node


def _node_of(text: str, at: int, depth: int) -> tuple[OrcType, int]:
    word = _WORD.match(text, at)
    if word is None or depth > MAX_DEPTH:
        raise _unknown(text)
    kind = " ".join(word[1].lower().split())
    kind = _OTHER_NAMES.get(kind, kind)
    at = word.end()
    if kind not in KINDS:
        raise _unknown(text)
    if kind in _NESTED:
        return _nested(text, at, depth, kind)
    if kind == "timestamp with local time zone" and (zone := _ZONE.match(text, at)):
        return OrcType(kind), zone.end()
    numbers = _NUMBERS.match(text, at)
    if numbers:
        at = numbers.end()
    first, second = (int(number) if number else 0 for number in (numbers.groups() if numbers else ("", "")))
    if kind == "decimal":
        first = first if numbers else 10
        if not 1 <= first <= 38 or second > first:
            raise _unknown(text)
        return OrcType(kind, precision=first, scale=second), at
    if kind in ("char", "varchar") and first:
        return OrcType(kind, max_length=first), at
    if numbers or kind in ("char", "varchar"):
        raise _unknown(text)
    return OrcType(kind), at


def _nested(text: str, at: int, depth: int, kind: str, name_of_field: re.Pattern[str] = _FIELD) -> tuple[OrcType, int]:
    names, children, following = [], [], "<"
    while text[at : at + 1] == following:
        at += 1
        if kind == "struct":
            field = name_of_field.match(text, at)
            if field is None:
                raise _unknown(text)
            names.append(field[2] if field[1] is None else field[1].replace("``", "`"))
            at = field.end()
        child, at = _node_of(text, at, depth + 1)
        children.append(child)
        following = ","
    if text[at : at + 1] != ">" or len(children) != (_NESTED[kind] or len(children)):
        raise _unknown(text)
    at += 1
    while text[at : at + 1] == " ":
        at += 1
    return OrcType(kind, children=tuple(children), names=tuple(names)), at


def _unknown(text: str) -> BadDataError:
    return BadDataError(f"acidctl does not know the type {text[:200]}", "the metastore has a column of it", "")


def row_type_of(columns: tuple[tuple[str, str], ...]) -> OrcType:
    """Return the row type of columns, given by name and type.

    Raises BadDataError if the type of a column is unknown.
    """
    children = []
    for name, text in columns:
        try:
            children.append(parse_type(text))
        except BadDataError as error:
            raise BadDataError(f"cannot read column {name}", error.what, "read the table with Hive") from error
    return OrcType("struct", children=tuple(children), names=tuple(name for name, _ in columns))
