"""Count what every write id did to locations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from acidctl.base.errors import unexpected

if TYPE_CHECKING:
    from acidctl.location.snapshot import Snapshot
    from acidctl.rows.past.history import History
    from acidctl.verbs.events import Events
    from acidctl.verbs.selection import Selection


class LocationHistory(NamedTuple):
    """Hold what every write id did to one location.

    Attributes:
        location: the path, as a user would type it.
        snapshot: decides which write ids count.
    """

    location: str
    snapshot: Snapshot
    history: History


def history(selection: Selection, events: Events) -> Iterator[LocationHistory]:
    """Yield the history of each location.

    Raises:
        AcidctlError: a location that was named itself cannot be read; errors of others go to `events`.
    """
    from acidctl.rows.past.history import read_history

    for found in selection.readable(events):
        try:
            snapshot = found.snapshot()
            read = LocationHistory(found.shown, snapshot, read_history(snapshot))
        except Exception as error:
            if found.is_given:
                raise
            events.failed(found.shown, unexpected(error, f"while {found.shown} was read"))
        else:
            yield read
    events.looked_through()
