"""Whether a location is of a full-ACID table or of an insert-only one: the metastore knows, a listing not always."""

from __future__ import annotations

from collections.abc import Sequence

from acidctl.acid.layout import Role, shows_full_acid
from acidctl.acid.listing import TableType
from acidctl.errors import RefusedError
from acidctl.location.snapshot import Snapshot
from acidctl.rows.foreign.format import Format
from acidctl.rows.read.events import EventFile


def type_of(snapshot: Snapshot, sources: Sequence[EventFile], known: TableType | None) -> TableType:
    """What the table is.

    Full-ACID tables have `bucket_` files or delete deltas, and are all ORC. Raw ORC files in ACID directories and
    nothing else are what an insert-only table looks like, or a full one into which data was just loaded (section 11);
    original ORC files alone are a table that became full ACID, since those of an insert-only one move into a delta.

    Args:
        sources: the files that a reader opens.
        known: what the user says.

    Raises:
        RefusedError: it cannot be told, or is not what the user says.
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
