"""The past of rows: the life of one row, and what every write id did."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from acidctl.base.errors import NotFoundError, UsageProblem, unexpected
from acidctl.location.find import require_any
from acidctl.verbs.options import REQUIRED, Kind, Options, option

if TYPE_CHECKING:
    from acidctl.location.snapshot import Snapshot
    from acidctl.rows.past.blame import Blame
    from acidctl.rows.past.history import History
    from acidctl.verbs.events import Events
    from acidctl.verbs.selection import Selection


@dataclass(frozen=True, kw_only=True)
class BlameOptions(Options):
    """The options of `acidctl blame`."""

    row: str = option(REQUIRED, kind=Kind.ARGUMENT, metavar="ROWID", help="writeid:bucketid:rowid, or ROW__ID as JSON.")


class RowLife(NamedTuple):
    """The events of a row in one location, by one snapshot of it."""

    snapshot: Snapshot
    blame: Blame

    def require_found(self) -> None:
        """Raise NotFoundError if no event of the row was found."""
        if self.blame.status:
            return
        read, hidden_by = f"{self.blame.stripes_read} of {self.blame.stripes}", self.blame.hidden_by[:1]
        hint = "if there was one, it was deleted before {} was compacted, and its traces cleaned"
        raise NotFoundError(
            f"no row {self.blame.row} in {self.snapshot.shown}",
            f"no event of it is in any directory that is there ({read} stripes read)",
            hint.format(*hidden_by) if hidden_by else "",
        )


def blame(selection: Selection, options: BlameOptions) -> RowLife:
    """Search for the row in every directory of a location.

    Raises:
        UsageProblem: the text is not a ROW__ID, or several locations were named.
        NotLookedAtError: the place holds nothing.
        AcidctlError: see :func:`acidctl.rows.past.blame.blame`.
    """
    from acidctl.rows.past.blame import blame as search
    from acidctl.rows.past.blame import parse_row_id

    row = parse_row_id(options.row)
    places = list(selection.readable())
    require_any(selection.shown, places)
    if len(places) != 1:
        raise UsageProblem(
            f"{selection.shown} holds {len(places)} locations",
            "row ids are numbered by location",
            f"give one of them: {places[0].shown}",
        )
    snapshot = places[0].snapshot()
    return RowLife(snapshot, search(snapshot, row))


def history(selection: Selection, events: Events) -> Iterator[tuple[Snapshot, History]]:
    """Yield the snapshot of each location, which decides the write ids that count, and its history.

    Raises:
        AcidctlError: a location that was named itself cannot be read; errors of others go to `events`.
    """
    from acidctl.rows.past.history import read_history

    for found in selection.readable(events):
        try:
            snapshot = found.snapshot()
            read = snapshot, read_history(snapshot)
        except Exception as error:
            if found.is_given:
                raise
            events.failed(found.shown, unexpected(error, f"while {found.shown} was read"))
        else:
            yield read
    events.looked_through()
