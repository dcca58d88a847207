"""Which columns get bloom filters: from the names that a user gives to the column ids of the file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from acidctl.errors import UsageProblem
from acidctl.orc import orc_pb2 as pb
from acidctl.orc.tail import Tail
from acidctl.orc.types import KINDS, OrcType, hive_type, row_type

_WITHOUT: Final = ("boolean", "array", "map", "struct", "uniontype")
BLOOM_KINDS: Final = tuple(kind for kind in KINDS if kind not in _WITHOUT)
"""Types whose values the ORC library puts into bloom filters."""


def bloom_ids(names: Sequence[str], tree: OrcType) -> dict[str, int]:
    """The column ids of `names`.

    Args:
        names: columns of the table, ``a`` or ``a.b`` for a field of a struct, in any case as Hive has them.
        tree: the root of the file, ACID or not.

    Raises:
        UsageProblem: there is no such column, or its type has no bloom filters.
    """
    row = row_type(tree)
    # Of equal names the first counts.
    known = {path.lower(): node for path, node in reversed(list(_paths(row)))} if names else {}
    found = {}
    for name in names:
        column = known.get(name.lower())
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
    return tuple(sorted(name for name, node in _paths(row_type(tail.type_tree)) if node.column_id in ids))


def _paths(tree: OrcType, prefix: str = "") -> Iterator[tuple[str, OrcType]]:
    """The columns, and fields of structs below them, by their dotted names."""
    for name, child in tree.fields():
        yield prefix + name, child
        if child.kind == "struct":
            yield from _paths(child, f"{prefix}{name}.")
