"""The places that a user named, and the locations to which they lead."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from acidctl.location.find import changeable, find, of_type, once, refuse_unusable, with_tables
from acidctl.location.other_formats import FormatDetector
from acidctl.location.snapshot_resolver import SnapshotResolver
from acidctl.location.table_location import TableLocation
from acidctl.location.walk import Observer, WalkedLocation
from acidctl.storage.registry import open_location

if TYPE_CHECKING:
    from acidctl.acid.listing import TableType
    from acidctl.verbs.events import Events


@dataclass(frozen=True)
class Selection:
    """The places that a user named, with the options of their stores and the snapshot.

    Attributes:
        places: paths, URLs, and names of tables in a metastore (``hive:db.t``).
        storage: options of the stores.
        resolver: decides which write ids count.
        table_type: the table's type according to the user; None if the user gave none.
        typed: the places before their patterns were expanded; empty if that is the same.
        known: the locations, if an earlier verb of the same run found them; None finds them.
    """

    places: tuple[str, ...]
    storage: Mapping[str, str] = field(default_factory=dict)
    resolver: SnapshotResolver = field(default_factory=SnapshotResolver)
    table_type: TableType | None = None
    typed: tuple[str, ...] = ()
    known: tuple[TableLocation, ...] | None = None

    @property
    def shown(self) -> str:
        """Return the places as they were typed."""
        return " ".join(self.places)

    def changeable(
        self, events: Events, on_record: Callable[[str], int | None] = lambda _: None
    ) -> Iterator[TableLocation]:
        """Yield the locations that may be changed, each once, and report the others to `events`.

        Args:
            on_record: returns the number of locations that the last run found at the same places.

        Raises:
            RefusedError: a location that was named itself is not known to be transactional, or one table type is given
                for two tables.
            AcidctlError: one of several named places cannot be used; nothing may be changed then.
        """
        if self.known is not None:
            yield from (found.reload(self.resolver) for found in self.known)
            return
        formats = FormatDetector()
        refuse_unusable(self.places, self.storage, self.resolver, self.table_type, formats=formats)
        places = once(find(self.places, self.storage, self.resolver, self.observer(events), formats=formats))
        yield from changeable(places, self.table_type, events.skipped)
        events.looked = events.looked_through(on_record)

    def readable(
        self, events: Events | None = None, *, hidden: bool = False, looks: bool = True
    ) -> Iterator[TableLocation]:
        """Yield the locations, each once, for verbs that change nothing.

        Args:
            events: receives the errors of directories that cannot be listed, and counts; None raises the errors.
            hidden, looks: see :class:`acidctl.location.walk.Observer` and :func:`acidctl.location.find.find`.

        Raises:
            RefusedError: one table type is given for two tables, or a metastore has another.
            AcidctlError: the only named place cannot be used; of several, the error goes to `events`.
        """
        if self.known is not None:
            yield from self.known
            return
        observer = replace(self.observer(events), hidden=hidden) if events else None
        places = once(find(self.places, self.storage, self.resolver, observer, looks=looks))
        yield from of_type(places, self.table_type)

    def trashes(self, events: Events, *, changes: bool, with_given: bool = False) -> Iterator[TableLocation]:
        """Yield every directory that may have a trash: locations, and the directories of tables with partitions.

        Args:
            changes: refuse all if one of several named places cannot be used.
            with_given: yield the named places themselves first, whatever they are.
        """
        if changes and self.known is None:
            refuse_unusable(self.places, self.storage, SnapshotResolver(), formats=None)
        for text in self.places if with_given else ():
            fs, path = open_location(text, self.storage)
            yield TableLocation(fs, WalkedLocation(path, ""), True, SnapshotResolver())
        if self.known is not None:
            yield from (found for found, _ in self.with_tables(iter(self.known)))
            return
        below = find(self.places, self.storage, SnapshotResolver(), self.observer(events), looks=False)
        for found, _ in self.with_tables(below if with_given else once(below)):
            yield found

    def with_tables(self, places: Iterator[TableLocation]) -> Iterator[tuple[TableLocation, bool]]:
        """Yield each location, and before the first partition of a table the table's own directory, marked by True."""
        return with_tables(places, self.places, self.storage)

    def observer(self, events: Events) -> Observer:
        """Return the observer of a walk, which reports directories that cannot be listed or are skipped, and counts."""
        events.coverage.typed = self.typed
        return Observer(lambda error: events.failed("", error), events.coverage)
