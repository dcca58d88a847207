"""Find the columns that get bloom filters: from the names that a user gives to the column ids of the file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from acidctl.base.errors import UsageProblem
from acidctl.orc import orc_pb2 as pb
from acidctl.orc.tail import Tail
from acidctl.orc.types import KINDS, OrcType, hive_type, row_type

_WITHOUT: Final = ("boolean", "array", "map", "struct", "uniontype")
BLOOM_KINDS: Final = tuple(kind for kind in KINDS if kind not in _WITHOUT)
"""Types of columns for which the ORC library writes bloom filters."""


def bloom_ids(names: Sequence[str], tree: OrcType) -> dict[str, int]:
    """Return the column ids of `names`.

    Args:
        names: columns of the table, ``a`` or ``a.b`` for a field of a struct; as in Hive, case does not matter.
        tree: the root of the file, ACID or not.

    Raises:
        UsageProblem: a column does not exist, or its type cannot have bloom filters.
    """
    row = row_type(tree)
    # Reversed, so that the first of equal names counts.
    columns = {path.lower(): node for path, node in reversed(list(_paths(row)))} if names else {}
    ids = {}
    for name in names:
        column = columns.get(name.lower())
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
        ids[name] = column.column_id
    return ids


def bloom_columns(tail: Tail) -> tuple[str, ...]:
    """Return the columns, as :func:`bloom_ids` takes them, with bloom filters in the file's first stripe.

    Raises:
        BadDataError: the stripe's footer is damaged.
    """
    if not tail.stripes:
        return ()
    kinds = (pb.Stream.BLOOM_FILTER, pb.Stream.BLOOM_FILTER_UTF8)
    ids = {stream.column for stream in tail.stripe_footer(0).streams if stream.kind in kinds}
    return tuple(sorted(name for name, node in _paths(row_type(tail.type_tree)) if node.column_id in ids))


def _paths(tree: OrcType, prefix: str = "") -> Iterator[tuple[str, OrcType]]:
    """Yield the columns, and fields of structs below them, by their dotted names."""
    for name, child in tree.fields():
        yield prefix + name, child
        if child.kind == "struct":
            yield from _paths(child, f"{prefix}{name}.")
