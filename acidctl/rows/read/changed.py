"""Files that are no longer what the listing said: cleaned away or replaced while a table is read."""

from __future__ import annotations

from acidctl.errors import AcidctlError, BadDataError, NotFoundError
from acidctl.rows.read.events import EventFile


def changed(source: EventFile) -> AcidctlError | None:
    """What happened to a file since it was listed; None when it looks the same, or cannot be looked at.

    Hive's files never change, they only go: one call to the store, for when reading has failed or where it costs
    nothing.
    """
    shown, listed = source.fs.display(source.path), source.file.size
    try:
        size = source.fs.stat(source.path).size
    except NotFoundError:
        return NotFoundError(
            f"{shown} has vanished", "it was there when the table was listed", "a cleaner removed it: read once more"
        )
    except AcidctlError:
        return None
    # What a streaming writer has committed stays while its file grows.
    if size == listed or (source.length is not None and size > listed):
        return None
    return BadDataError(
        f"{shown} was replaced while the table was read", f"it had {listed} bytes, and has {size} now", "read once more"
    )


def refuse_changed(source: EventFile) -> None:
    """Raise what :func:`changed` says, where looking costs no call to a store: a file of the local disk."""
    if source.fs.is_local:
        problem = changed(source)
        if problem is not None:
            raise problem
