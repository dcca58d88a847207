"""One location of a table: where it lies, its table in the metastore, and the snapshots that can be taken of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from acidctl.acid.layout import OWN, holds_strangers_alone
from acidctl.acid.listing import Listing, TableType
from acidctl.acid.names import AcidDirectory, is_hidden, partition_name
from acidctl.acid.reasons import Code, Reason, reason
from acidctl.acid.state import with_reasons
from acidctl.acid.unfinished import is_overtaken, unseen_results
from acidctl.acid.writeids import ValidWriteIds
from acidctl.base.errors import AccessError, AcidctlError, ConflictError, GoneError, NotFoundError, RefusedError
from acidctl.location.arguments import HIVE
from acidctl.location.evidence import Evidence, evidence_of, type_by_files
from acidctl.location.metastore_schema import Declared
from acidctl.location.other_formats import FormatDetector
from acidctl.location.snapshot import DirectoryListing, Snapshot, files_ahead, list_location, take_snapshot
from acidctl.location.snapshot_resolver import ResolvedSnapshot, SnapshotResolver
from acidctl.location.walk import WalkedLocation
from acidctl.storage import registry
from acidctl.storage.port import FileSystem, FileSystemSpec, parent_of
from acidctl.wording import text_of

if TYPE_CHECKING:
    from acidctl.metastore.tables import HivePartition, HiveTable

Unseen = tuple["HiveTable | None", tuple[AcidDirectory, ...]]

_ATTEMPTS = 3
"""How many times to list a location and query its metastore again if one of them is newer than the other."""


@dataclass(frozen=True)
class TableLocation:
    """A location that a user's path led to.

    Attributes:
        is_given: the path itself is the location, not a tree that holds it.
        top: its own children, if they were just listed; None lists them again.
        resolver: decides which write ids count in it.
        listed: its listing, made while other locations were worked on, or the error of that.
        hive: its table in the metastore; None without a metastore, or if the metastore does not have it.
        declared: what the metastore says about its files; a partition may differ from its table.
        partition: its partition, if it was just read from the metastore.
        given_type: the table type that the user gave; the metastore's type takes precedence.
        formats: caches the directories above it and above other locations.
        may_go: it is one of many, and the run goes on if it was dropped meanwhile.
        root: the root of the tree in which it was found; empty if a metastore named it.
    """

    fs: FileSystem
    location: WalkedLocation
    is_given: bool
    resolver: SnapshotResolver = field(compare=False, repr=False)
    top: Listing | None = None
    listed: DirectoryListing | AcidctlError | None = None
    hive: HiveTable | None = None
    declared: Declared | None = None
    partition: HivePartition | None = None
    may_go: bool = False
    root: str = ""
    given_type: TableType | None = None
    formats: FormatDetector = field(default_factory=FormatDetector, compare=False, repr=False)

    @property
    def shown(self) -> str:
        return self.fs.display(self.location.path)

    @property
    def holds_something(self) -> bool:
        """Return whether a metastore has it, or it is not empty: an empty directory may be a missing disk.

        Hidden entries do not count, except acidctl's own.
        """
        if self.hive or self.top is None:
            return True
        return any(entry.path.startswith(OWN) or not is_hidden(entry.path) for entry in self.top.entries)

    @property
    def holds_strangers_alone(self) -> bool:
        """Return whether no metastore has it, and nothing in it has a name that Hive or acidctl gives.

        Raises:
            NotFoundError, AccessError, StorageError, UsageProblem: as :attr:`look`.
        """
        return not self.hive and holds_strangers_alone(self.look.listing)

    @property
    def hive_name(self) -> str:
        """Return its name in the metastore, ``hive:db.table/key=value``; empty if the metastore does not have it."""
        if not self.hive:
            return ""
        parts = (partition_name(*pair) for pair in self.location.partition)
        return "/".join([f"{HIVE}{self.hive.full_name}", *parts])

    @cached_property
    def look(self) -> DirectoryListing:
        """Return its contents, listed once, with the type of its table, if that is known.

        Raises:
            NotFoundError, AccessError, StorageError: it cannot be listed.
            UsageProblem: the path is a directory *of* a location, ``base_N`` for example.
        """
        if isinstance(self.listed, AcidctlError):
            raise self.listed
        look = self.listed or list_location(self.fs, self.location.path, self.top)
        table_type = (self.hive and self.hive.table_type) or self.given_type
        return look.of_type(table_type or type_by_files(self.fs, self.location.path, look))

    def snapshot(self, *, compactor: bool = False, readers: bool = False, refresh: bool = True) -> Snapshot:
        """Return its state as seen by the snapshot that the user chose.

        Args:
            compactor: as a compaction sees it (format section 7.3).
            readers: add the holders of locks on it, and whether it may be cleaned, if a metastore can tell.
            refresh: take new lists from the metastore if it was listed too late for them: :meth:`refresh_if_stale`.

        Raises:
            GoneError: it was dropped meanwhile.
            ConflictError: see :meth:`refresh_if_stale`.
            RefusedError: the lists are not for its table, or the metastore, which was to say what is committed for a
                compaction, does not have it, or is older than its files.
            BadDataError: Hive would refuse a ``_metadata_acid``, too.
        """
        if refresh:
            return self.refresh_if_stale().snapshot(compactor=compactor, readers=readers, refresh=False)
        with self.unless_dropped():
            return self._snapshot(compactor=compactor, readers=readers)

    def _snapshot(self, *, compactor: bool, readers: bool) -> Snapshot:
        resolved = self.resolve(may_clean=not compactor)
        write_ids, ahead = resolved.write_ids, self.ids_above_metastore()
        unchecked = tuple(why for why in ahead if why.code is Code.GIVEN_UNKNOWN)
        ahead = ahead[len(unchecked) :]
        if compactor and ahead:
            raise files_ahead(self.shown, ahead)
        if compactor:
            if self.resolver.asks_metastore and write_ids is None and resolved.note:
                raise RefusedError(
                    f"nobody says what is committed in {self.shown}",
                    text_of(resolved.note),
                    "give --snapshot or --assume-committed, or name the table: hive:db.table",
                )
            write_ids = (write_ids or ValidWriteIds()).for_compactor()
        is_text = bool(self.declared and self.declared.text)  # text files do not describe their rows
        snapshot = take_snapshot(
            self.fs,
            self.location.path,
            write_ids,
            resolved.txns,
            look=self.look,
            assumed=resolved.assumed,
            note=resolved.note,
            declared=None if compactor and not is_text else self.declared,  # a compaction uses the files alone
            source=resolved.source,
        )
        snapshot = replace(snapshot, table=self.declared)
        if unchecked:
            notes = (*snapshot.state.notes, *unchecked)
            snapshot = replace(snapshot, state=replace(snapshot.state, notes=notes))
        if ahead:
            snapshot = replace(snapshot, ahead=ahead, state=with_reasons(snapshot.state, ahead))
        return self.with_readers(snapshot) if readers else snapshot

    def with_readers(self, snapshot: Snapshot) -> Snapshot:
        """Return its snapshot with the holders of locks, and whether it may be cleaned, if a metastore can tell.

        Raises:
            MetastoreError: the metastore cannot be reached, or failed.
        """
        warehouse = self.resolver.warehouse
        if self.hive is None or warehouse is None:
            return snapshot
        here = self.hive, self.location.partition
        kept = warehouse.no_cleanup(*here, self.partition)
        return replace(snapshot, readers=warehouse.readers(*here), no_cleanup=kept)

    def as_far_as_listed(self, closed: dict[str, AcidctlError], *, hidden: bool = False) -> TableLocation:
        """Return it with what can be listed of it: a closed directory appears by its name, with nothing in it.

        Args:
            closed: gets the errors of directories in it that may not be listed, by their paths in the location.
            hidden: list what is in hidden directories, too.

        Raises:
            NotFoundError, AccessError, StorageError: the location itself cannot be listed.
            GoneError: it was dropped meanwhile.
        """
        is_listed = self.listed is not None and not isinstance(self.listed, AccessError)
        if is_listed and not hidden:
            return self
        closed.clear()
        with self.unless_dropped():
            listing = list_location(self.fs, self.location.path, self.top, closed.__setitem__, hidden=hidden)
        if isinstance(self.listed, AccessError) and not closed:  # a store that contradicts itself is not believed
            raise self.listed
        return replace(self, listed=listing)

    def refresh_if_stale(self, relist: Callable[[TableLocation], TableLocation] = lambda found: found) -> TableLocation:
        """Return it, listed again and with new lists if a compaction ended after a metastore gave the lists.

        A cleaner may already have removed the directories that the old lists select.

        Args:
            relist: lists it; by default all of it is listed, and a closed directory is an error.

        Raises:
            GoneError: it was dropped meanwhile.
            ConflictError: a compaction ended before each retry.
        """
        found = self
        with self.unless_dropped():
            for _ in range(_ATTEMPTS):
                newer = found.resolver.refreshed(is_retry=True)
                if not is_any_stale([(found.hive, found.unseen())], newer):
                    return found
                found = relist(found.reload(newer))
        raise ever_changing(self.shown)

    @contextmanager
    def unless_dropped(self) -> Iterator[None]:
        """Turn a missing file into GoneError if the location was dropped, and nothing says that it should exist.

        Raises:
            GoneError: it is one of many locations, and was dropped meanwhile.
        """
        try:
            yield
        except GoneError:
            raise
        except NotFoundError as error:
            if not (self.may_go and self._is_dropped()):
                raise
            raise GoneError(f"{self.shown} is gone", "it was dropped meanwhile") from error

    def _is_dropped(self) -> bool:
        with suppress(NotFoundError):
            self.fs.list_dir(self.location.path)
            return False
        if self.hive and self.resolver.warehouse:
            return self.is_elsewhere_in_metastore()
        return bool(self.fs.list_dir(self.root).entries)  # if nothing is left, a disk may be missing

    def is_elsewhere_in_metastore(self) -> bool:
        """Return whether its metastore has dropped it since, or has moved it to another location."""
        hive, warehouse = self.hive, self.resolver.warehouse
        return bool(hive and warehouse and warehouse.is_dropped_or_moved(hive, self.location.partition, self.shown))

    def resolve(self, *, may_clean: bool = True) -> ResolvedSnapshot:
        """Return the lists of committed ids for it.

        Args:
            may_clean: these lists may decide what is removed.

        Raises:
            RefusedError: the lists are not for its table, or `assume_committed` is given although a metastore has it.
        """
        self.refuse_assuming()
        return self.resolver.resolve(self.look, self.location.table, time.time(), self.hive, may_clean=may_clean)

    def refuse_assuming(self) -> None:
        """Refuse to assume what is committed if a metastore has the location: aborted rows would come back.

        Raises:
            RefusedError: `assume_committed` is given, and a metastore has the location.
        """
        warehouse = self.resolver.warehouse
        if not (self.resolver.spec.assumption and warehouse):
            return
        name = self.hive_name or warehouse.partition_elsewhere(self.fs, self.location.path)
        if name:
            raise RefusedError(
                f"cannot assume what is committed in {self.shown}",
                f"the metastore {warehouse.metastore.shown} has it as {name}, and knows what is committed there",
                f"give {name} without --assume-committed; or add --metastore none, so that no metastore is asked",
            )

    def require_same_table(self) -> None:
        """Refuse to change it by the lists of another table that had the same name; call it after the listing.

        Raises:
            NotFoundError: the table is gone.
            ConflictError: the table was dropped and created again since the metastore gave the lists, or has moved.
        """
        if self.hive and self.resolver.asks_metastore and self.resolver.warehouse:
            self.resolver.warehouse.table_again(self.hive)

    def unseen(self) -> tuple[AcidDirectory, ...]:
        """Return the directories that may have replaced others of it since a metastore gave the lists."""
        if not (self.hive and self.resolver.asks_metastore) or self.resolver.spec.txns:
            return ()
        resolved = self.resolve(may_clean=False)
        if resolved.write_ids is None or resolved.txns is None:
            return ()
        return unseen_results(self.look.listing, resolved.write_ids, resolved.txns)

    def ids_above_metastore(self) -> tuple[Reason, ...]:
        """Return why the files are newer than the metastore, which is queried if a name suggests it; usually empty."""
        hive, warehouse, floor = self.hive, self.resolver.warehouse, (0, 0)
        if hive is None or warehouse is None:
            return ()
        if self.resolver.asks_metastore:  # lists that a user gave set no lower bound
            ids, txns = warehouse.lists(hive, may_clean=False)
            floor = (ids.high_watermark, txns.high_watermark)

        def again() -> Listing:
            listing = self.fs.list_dir(self.location.path)
            warehouse.table_again(hive)
            return listing

        return warehouse.allocated.exceeded_by(self.look.listing, hive, floor, again)

    def with_type(self, given_type: TableType | None) -> TableLocation:
        """Return it with the table type that the user gave; None changes nothing.

        Raises:
            RefusedError: the metastore has another type.
        """
        in_metastore = self.hive.table_type if self.hive else None
        if given_type and in_metastore and given_type is not in_metastore:
            raise RefusedError(
                f"{self.shown} is not {given_type.value}",
                f"the metastore says that its table is {in_metastore.value}",
                "leave --table-type out",
            )
        return self if given_type in (None, self.given_type) else replace(self, given_type=given_type)

    @cached_property
    def evidence(self) -> Evidence:
        """Return whether it is known to be of a transactional table; cached."""
        if not self.hive and self._is_inside:
            return Evidence(False, reason(Code.INSIDE_A_TABLE, how="below"))
        if not self.hive or not self.hive.table_type:
            return evidence_of(self.fs, self.location.path, self.look, self.given_type)
        evidence = evidence_of(self.fs, self.location.path, self.look, self.hive.table_type)
        if evidence.reason.code is not Code.SAID:
            return evidence
        kind = self.hive.table_type.value
        return replace(evidence, reason=reason(Code.IN_METASTORE, table_type=kind, table=self.hive.full_name))

    @property
    def _is_inside(self) -> bool:
        """Return whether a partition lies beside ACID directories: then its table may have no partitions."""
        location = self.location
        if not location.partition or location.is_inside or not self.is_given:
            return location.is_inside
        # The store that a command opens for changes sees nothing above the path.
        fs = registry.open_file_system(FileSystemSpec("file")) if self.fs.is_local else self.fs
        return self.formats.holds_acid(fs, parent_of(location.path))

    def reload(self, resolver: SnapshotResolver | None = None) -> TableLocation:
        """Return the same location, to be listed when its snapshot is taken.

        Args:
            resolver: decides from now on which write ids count.
        """
        return replace(self, top=None, listed=None, partition=None, resolver=resolver or self.resolver)


def is_any_stale(unseen: Iterable[Unseen], newer: SnapshotResolver) -> bool:
    """Return whether any location may lack a directory that its lists select, as newer lists show.

    Args:
        unseen: the table of each location, and its :meth:`TableLocation.unseen`.
    """
    return any(
        is_overtaken(directories, *newer.warehouse.lists(hive, may_clean=False))
        for hive, directories in unseen
        if hive and directories and newer.warehouse
    )


def ever_changing(shown: str) -> ConflictError:
    """Return the error for a location that was compacted and cleaned before each retry."""
    return ConflictError(
        f"{shown} changes faster than it can be looked at",
        "compactions ended between the metastore's answer and the listing, each time",
        "try again when they are done",
    )
