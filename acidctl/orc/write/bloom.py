"""Which columns get bloom filters: from the names that a user gives to the column ids of the file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from acidctl.errors import UsageProblem
from acidctl.orc import orc_pb2 as pb
from acidctl.orc.tail import Tail
from acidctl.orc.types import OrcType, hive_type, row_type

BLOOM_KINDS: Final = (
    "tinyint",
    "smallint",
    "int",
    "bigint",
    "float",
    "double",
    "string",
    "char",
    "varchar",
    "binary",
    "date",
    "timestamp",
    "timestamp with local time zone",
    "decimal",
)
"""Types whose values the ORC library puts into bloom filters."""


def bloom_ids(names: Iterable[str], tree: OrcType) -> dict[str, int]:
    """The column ids of `names`.

    Args:
        names: columns of the table, ``a`` or ``a.b`` for a field of a struct, in any case as Hive has them.
        tree: the root of the file, ACID or not.

    Raises:
        UsageProblem: there is no such column, or its type has no bloom filters.
    """
    row = row_type(tree)
    found = {}
    for name in names:
        column = _find(row, name.lower())
        if column is None:
            raise UsageProblem(
                f"there is no column {name} to write bloom filters for",
                f"the columns are {', '.join(row.names)}",
                "name a column, or a field of a struct as column.field",
            )
        if column.kind not in BLOOM_KINDS:
            raise UsageProblem(
                f"column {name} cannot have bloom filters",
                f"it is of type {hive_type(column)}",
                f"types that can are {', '.join(BLOOM_KINDS)}",
            )
        found[name] = column.column_id
    return found


def bloom_columns(tail: Tail) -> tuple[str, ...]:
    """The columns, as :func:`bloom_ids` takes them, for which the file's first stripe has bloom filters.

    Raises:
        BadDataError: the stripe's footer is damaged.
    """
    if not tail.stripes:
        return ()
    kinds = (pb.Stream.BLOOM_FILTER, pb.Stream.BLOOM_FILTER_UTF8)
    ids = {stream.column for stream in tail.stripe_footer(0).streams if stream.kind in kinds}
    return tuple(sorted(name for name, column in _paths(row_type(tail.type_tree), "") if column in ids))


def _paths(tree: OrcType, prefix: str) -> Iterator[tuple[str, int]]:
    for name, child in tree.fields():
        path = f"{prefix}{name}"
        yield path, child.column_id
        if child.kind == "struct":
            yield from _paths(child, f"{path}.")


def _find(tree: OrcType, name: str) -> OrcType | None:
    """The field `name`, in lower case, of a struct or of the structs below it."""
    if tree.kind != "struct":
        return None
    for field, child in tree.fields():
        lower = field.lower()
        if name == lower:
            return child
        # A field's own name may have dots.
        if name.startswith(lower + ".") and (below := _find(child, name[len(lower) + 1 :])):
            return below
    return None
