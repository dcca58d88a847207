"""What a user named, and the locations that it leads to: the one place that asks a metastore before a plan is made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from acidctl.errors import AcidctlError, RefusedError
from acidctl.location.evidence import not_known
from acidctl.location.find import Found, find, once, refuse_unusable, with_tables
from acidctl.location.lists import SnapshotLists
from acidctl.location.neighbours import Surroundings
from acidctl.location.walk import Observer, WalkedLocation
from acidctl.storage.registry import open_location

if TYPE_CHECKING:
    from acidctl.acid.listing import TableType
    from acidctl.verbs.events import Events


@dataclass(frozen=True)
class Selection:
    """Places with their stores, and who says what counts there.

    Attributes:
        places: paths, URLs, and names of tables in a metastore (``hive:db.t``).
        storage: options of the stores.
        lists: what the user said of the snapshot, or the metastore that knows it.
        table_type: what the user says that the table is.
    """

    places: tuple[str, ...]
    storage: Mapping[str, str] = field(default_factory=dict)
    lists: SnapshotLists = field(default_factory=SnapshotLists)
    table_type: TableType | None = None

    @property
    def shown(self) -> str:
        """The places as they were typed."""
        return " ".join(self.places)

    def changeable(self, events: Events) -> Iterator[Found]:
        """Yield the locations that may be changed, each once; the others are told to `events`.

        Raises:
            RefusedError: a location that was named itself is not known to be transactional, or one table type is said
                of two tables.
            AcidctlError: one of several named places cannot be used; nothing may be changed then.
        """
        around, first = Surroundings(), None
        refuse_unusable(self.places, self.storage, self.lists, self.table_type, surroundings=around)
        for place in once(find(self.places, self.storage, self.lists, _observer(events), surroundings=around)):
            first = first or place.location.table
            if self.table_type is not None and place.location.table != first:
                raise RefusedError(
                    "one --table-type cannot speak for several tables",
                    f"{place.shown} is of {place.location.table}, not of {first}",
                    "give one table",
                )
            found = place.said_to_be(self.table_type)
            try:
                evidence = found.evidence()
            except AcidctlError:  # it cannot be listed: its snapshot says so
                yield found
                continue
            if evidence.may_change:
                yield found
            elif found.is_given:
                raise not_known(found.shown, evidence)
            else:
                events.skipped(found, evidence)
        events.looked_through()

    def trashes(self, events: Events, *, changes: bool, with_given: bool = False) -> Iterator[Found]:
        """Yield every directory that may have a trash: locations, and the directories of tables with partitions.

        Args:
            changes: refuse to go on where one of several named places cannot be used.
            with_given: what was named comes first, whatever it is.
        """
        if changes:
            refuse_unusable(self.places, self.storage, SnapshotLists(), surroundings=None)
        for text in self.places if with_given else ():
            fs, path = open_location(text, self.storage)
            yield Found(fs, WalkedLocation(path, ""), is_given=True)
        below = find(self.places, self.storage, SnapshotLists(), _observer(events), looks=False)
        for found, _ in self.with_tables(below if with_given else once(below)):
            yield found

    def with_tables(self, places: Iterator[Found]) -> Iterator[tuple[Found, bool]]:
        """Yield each location, and before the first partition of a table the table's own directory, marked by True."""
        return with_tables(places, self.places, self.storage)


def _observer(events: Events) -> Observer:
    return Observer(lambda error: events.failed("", error), events.coverage)
