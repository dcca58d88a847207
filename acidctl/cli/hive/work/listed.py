"""What the views of a metastore have in common: records in every form, and names that are shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from acidctl.errors import UsageProblem
from acidctl.location.given import HIVE
from acidctl.metastore.activity import Lock

_NAMED = 3
Record = dict[str, Any]


def whole(seconds: float | None) -> int | None:
    """Seconds of a record."""
    return None if seconds is None else int(seconds)


def lock_record(lock: Lock) -> Record:
    """A lock in short, as part of another record."""
    return {"lock": lock.id, "on": lock.on, "type": lock.type, "state": lock.state}


def locks_text(locks: Sequence[Lock]) -> str:
    """``SHARED_READ on sales.orders and 2 more``."""
    texts = [f"{lock.type} on {lock.on}{', which waits' if lock.is_waiting else ''}" for lock in locks]
    return some(texts)


def some(texts: Sequence[str]) -> str:
    """The first of them, and how many more there are."""
    rest = f" and {len(texts) - _NAMED:,} more" if len(texts) > _NAMED else ""
    return ", ".join(texts[:_NAMED]) + rest


def table_named(name: str | None) -> tuple[str | None, str | None]:
    """Database and table of what a user gives: ``db.table``, with or without ``hive:``.

    Raises:
        UsageProblem: it is not the name of one table.
    """
    if name is None:
        return None, None
    database, dot, table = name.lower().removeprefix(HIVE).partition(".")
    if not dot or not database or not table or any(mark in name for mark in "*?/") or "." in table:
        raise UsageProblem(f"not the name of a table: {name}", "", "write db.table")
    return database, table
