"""The type of a table, full-ACID or insert-only, as far as its files show it without a metastore."""

from __future__ import annotations

from collections.abc import Sequence

from acidctl.acid.layout import Role, shows_full_acid
from acidctl.acid.listing import TableType
from acidctl.errors import RefusedError
from acidctl.location.snapshot import Snapshot
from acidctl.rows.foreign.format import Format
from acidctl.rows.read.events import EventFile


def type_of(snapshot: Snapshot, sources: Sequence[EventFile], known: TableType | None) -> TableType:
    """Return the type of a table.

    Full-ACID tables have `bucket_` files or delete deltas, and only ORC files. If there are only raw ORC files in ACID
    directories, the table is insert-only, or full-ACID with just loaded data (section 11). If there are only original
    ORC files, it became full-ACID, because the original files of an insert-only table move into a delta.

    Args:
        sources: the files that a reader opens.
        known: the type according to the user or a metastore.

    Raises:
        RefusedError: the type cannot be determined, or is not `known`.
    """
    shown = snapshot.fs.display(snapshot.path)
    native = next((source for source in sources if source.synthetic is None), None)
    if native is not None or shows_full_acid(snapshot.listing):
        if known is TableType.INSERT_ONLY:
            raise RefusedError(
                f"cannot compact {shown} as an insert-only table",
                f"{snapshot.display(native.file.path)} has ACID columns" if native else "it has bucket files",
                "it is a full-ACID table: leave `table_type` out",
            )
        return TableType.FULL_ACID
    other = next((source for source in sources if source.format is not Format.ORC), None)
    if other is not None and known is TableType.FULL_ACID:
        raise RefusedError(
            f"cannot compact {shown} as a full-ACID table",
            f"{snapshot.display(other.file.path)} is {other.format}, and full-ACID tables are ORC",
            "it is an insert-only table: leave `table_type` out",
        )
    if known is not None or not sources:
        return known or TableType.FULL_ACID
    if other is not None:
        return TableType.INSERT_ONLY
    if all(source.file.role is Role.ORIGINAL for source in sources) and not any(
        verdict.directory for verdict in snapshot.state.verdicts
    ):
        return TableType.FULL_ACID
    raise RefusedError(
        f"cannot compact {shown}",
        "none of its files has ACID columns: it is an insert-only table, or a full-ACID one with loaded files alone",
        "say which: `table_type='insert-only'` or `table_type='full-acid'`",
    )
