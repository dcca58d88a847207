"""The search of one table: every file that may hold matching rows, whatever their state."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple, TypeVar

from acidctl.acid.writeids import ValidTxns, ValidWriteIds
from acidctl.base import parallel
from acidctl.base.errors import AcidctlError, UsageProblem
from acidctl.base.printable import one_line
from acidctl.erasure.beside import StrayFile, files_beside, hdfs_trash_files
from acidctl.erasure.event_search import EventSearch
from acidctl.erasure.holders import Holder, HolderKind
from acidctl.erasure.remedies import ErasureStep, Survey, erasure_steps, survey
from acidctl.erasure.searched_file import OpenedFile, SearchedFile, open_file, search_file
from acidctl.location.arguments import HiveName, is_hive_name
from acidctl.location.find import given_paths, leads_to
from acidctl.location.snapshot import Snapshot, SnapshotSource
from acidctl.location.snapshot_resolver import SnapshotResolver
from acidctl.location.table_location import TableLocation
from acidctl.orc.types import OrcType, row_of
from acidctl.rows.convert.matching import table_row_type
from acidctl.rows.foreign.format import Format
from acidctl.rows.read.visibility import open_sources
from acidctl.rows.scan.columns import Namespace, PartitionColumn
from acidctl.rows.scan.condition import UnknownColumn, parse_condition
from acidctl.rows.scan.packed import Packed
from acidctl.rows.scan.partition_values import typed
from acidctl.rows.scan.predicate import Predicate
from acidctl.rows.scan.scan import Scan
from acidctl.rows.scan.table import Table
from acidctl.storage.port import FileSystem, parent_of
from acidctl.storage.registry import open_location

_SEARCHERS = 4
"""Files that are searched at the same time: each holds a stripe in memory."""

_NAMED_BY_PLACE = "_col"

T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True, slots=True)
class NotLookedAt:
    """A directory, or a whole location, whose content is not known."""

    path: str
    error: AcidctlError


@dataclass(frozen=True, slots=True)
class Holding:
    """A directory that holds matching rows, or may.

    Attributes:
        files: its files that hold such rows, or may.
    """

    holder: Holder
    files: tuple[SearchedFile, ...]

    @property
    def events(self) -> int:
        """Return the number of events that certainly hold a matching row."""
        return sum(file.matched.events for file in self.files)

    @property
    def bytes(self) -> int:
        """Return the size of the files."""
        return sum(file.size for file in self.files)

    @property
    def is_known(self) -> bool:
        """Return whether it certainly holds nothing more."""
        return not any(file.problem for file in self.files)


class SeenBy(NamedTuple):
    """What counted as committed in a location, and the origin of that."""

    write_ids: ValidWriteIds
    txns: ValidTxns | None
    source: SnapshotSource

    @classmethod
    def of(cls, snapshot: Snapshot) -> SeenBy:
        return cls(snapshot.write_ids, snapshot.txns, snapshot.source)


@dataclass(frozen=True, slots=True)
class ErasureReport:
    """The matching rows in one location, or beside the locations of a table.

    Attributes:
        path: as a user would type it.
        snapshot: decides which rows are live; None beside locations.
        live: number of matching rows that readers see; None if not known.
        files: all files that were searched, or could not be.
        steps: the steps that remove the rows, in order.
        hive_name: the name of the location in a metastore; empty without one, and beside locations.
    """

    __repr__ = one_line

    path: str
    snapshot: SeenBy | None
    live: int | None
    files: tuple[SearchedFile, ...] = ()
    not_looked_at: tuple[NotLookedAt, ...] = ()
    steps: tuple[ErasureStep, ...] = ()
    hive_name: str = ""

    @property
    def holdings(self) -> tuple[Holding, ...]:
        """Return the directories that hold matching rows or may, in the order of their names."""
        by_holder: dict[Holder, list[SearchedFile]] = {}
        for file in self.files:
            if file.matched.events or file.problem:
                by_holder.setdefault(file.holder, []).append(file)
        return tuple(Holding(holder, tuple(files)) for holder, files in by_holder.items())

    @property
    def events(self) -> int:
        """Return the number of events that hold a matching row, in all files."""
        return sum(file.matched.events for file in self.files)

    @property
    def is_known(self) -> bool:
        """Return whether everything could be searched."""
        return not self.not_looked_at and not any(file.problem for file in self.files)


@dataclass(frozen=True, slots=True)
class TableErasure:
    """The matching rows of a table.

    Attributes:
        lacks: why the condition does not apply, if the table lacks its columns; nothing was searched then.
        reports: one for each location, and a last one for files beside them.
    """

    __repr__ = one_line

    table: str
    lacks: str = ""
    reports: tuple[ErasureReport, ...] = ()

    @property
    def events(self) -> int:
        """Return the number of events that hold a matching row."""
        return sum(report.events for report in self.reports)

    @property
    def is_known(self) -> bool:
        """Return whether everything could be searched."""
        return all(report.is_known for report in self.reports)


@dataclass(frozen=True, slots=True)
class SearchedTable:
    """A table to search.

    Attributes:
        places: its locations to search.
        root: its directory, absolute, to search beside the locations; empty to search the locations alone.
        hdfs_trash: search the trashes of HDFS, too.
    """

    table: str
    places: tuple[TableLocation, ...]
    root: str = ""
    hdfs_trash: bool = True


class _Opened(NamedTuple):
    survey: Survey
    files: list[OpenedFile]
    partition: tuple[PartitionColumn, ...]

    def shared(self) -> Iterable[object]:
        """Return the objects that the locations of a table have in common."""
        seen, found = self.survey.snapshot, self.survey.found
        return seen.fs, seen.write_ids, seen.txns, seen.declared, seen.source, found.fs, found.declared, found.hive


@dataclass
class _Gathered:
    """A table before the search.

    Attributes:
        opened: its locations.
        telling: the row types of the files that define the columns of the table, by whether they are text and whether
            they are current, in the order in which they were found.
        types: the row types of all files.
        is_open: every directory and the footer of every file could be read.
        has_files: there is at least one file.
    """

    opened: Sequence[_Opened] = ()
    failed: list[ErasureReport] = field(default_factory=list)
    stray: list[tuple[StrayFile, OpenedFile]] = field(default_factory=list)
    closed: list[NotLookedAt] = field(default_factory=list)
    telling: dict[tuple[bool, bool], dict[OrcType, None]] = field(default_factory=dict)
    types: dict[OrcType, None] = field(default_factory=dict)
    is_open: bool = True
    has_files: bool = False

    def look(self, files: Iterable[OpenedFile]) -> None:
        """Record what the footers of files show."""
        for opened in files:
            self.has_files = True
            self.is_open = self.is_open and opened.source is not None
            if opened.source:
                self.types[opened.source.row_type] = None
                if _defines_columns(opened):
                    kind = opened.source.format is Format.TEXT, opened.file.holder.kind is HolderKind.CURRENT
                    of_kind = self.telling.setdefault(kind, {})
                    of_kind.pop(opened.source.row_type, None)  # the last file of a type decides its position
                    of_kind[opened.source.row_type] = None

    @property
    def is_empty(self) -> bool:
        """Return whether there is certainly no file."""
        return self.is_open and not (self.failed or self.closed or self.stray or self.has_files)


def search_tables(
    tables: Iterable[SearchedTable], resolver: SnapshotResolver, condition: str, *, prove: bool = False
) -> Iterator[TableErasure]:
    """Search tables, one after the other; problems of a table are in its report.

    Args:
        condition: SQL, see docs/reference/conditions.md.
        prove: read all bytes of all files for their checksums, and list the locations again at the end.

    Raises:
        UsageProblem: the condition cannot be parsed.
    """
    with suppress(UnknownColumn):
        parse_condition(condition, row_of(()))  # a malformed condition fails for every table
    for wanted in tables:
        try:
            table = Table(wanted.places[0].shown, wanted.places, resolver)
        except AcidctlError as error:
            yield _not_searched(wanted, error)
        else:
            yield _TableSearch(wanted, table, condition, prove=prove).result()


def _not_searched(table: SearchedTable, error: AcidctlError) -> TableErasure:
    shown = table.places[0].shown
    return TableErasure(table.table, reports=(ErasureReport(shown, None, None, (), (NotLookedAt(shown, error),)),))


class _TableSearch:
    def __init__(self, wanted: SearchedTable, table: Table, condition: str, *, prove: bool) -> None:
        self._wanted, self._table = wanted, table
        self._condition, self._prove = condition, prove
        self._fs: FileSystem = wanted.places[0].fs

    def result(self) -> TableErasure:
        gathered = self._gathered()
        row_type = self._row_type(gathered)
        keys = self._keys(gathered)
        try:
            predicate = parse_condition(self._condition, Namespace(row_type, keys).struct)
        except UsageProblem as error:
            if gathered.is_empty:  # without a file the columns are unknown, and not needed
                surveys = (location.survey for location in gathered.opened)
                empty = [ErasureReport(s.found.shown, SeenBy.of(s.snapshot), 0) for s in surveys]
                return TableErasure(self._wanted.table, reports=tuple(empty))
            if isinstance(error, UnknownColumn) and self._are_names_known(row_type, gathered):
                return TableErasure(self._wanted.table, lacks=error.what)
            reports = gathered.failed or list(_not_searched(self._wanted, error).reports)
            return TableErasure(self._wanted.table, reports=tuple(reports))
        reports = [self._report(opened, row_type, predicate) for opened in gathered.opened] + gathered.failed
        if gathered.stray or gathered.closed:
            stray_files = list(
                parallel.results(partial(self._search_stray, row_type, predicate, keys), gathered.stray, _SEARCHERS)
            )
            reports.append(self._beside_report(stray_files, tuple(gathered.closed)))
        return TableErasure(self._wanted.table, reports=tuple(reports))

    # -- before -----------------------------------------------------------------------------------------------

    def _gathered(self) -> _Gathered:
        gathered = _Gathered()
        are_several = len(self._wanted.places) > 1
        gathered.opened = Packed(self._opened(gathered), _Opened.shared, is_needed=are_several)

        def closed(path: str, error: AcidctlError) -> None:
            gathered.closed.append(NotLookedAt(self._fs.display(path), error))

        declared = self._wanted.places[0].declared
        for stray in self._strays(closed):
            gathered.stray.append((stray, open_file(self._fs, stray.file, declared)))
        return gathered

    def _opened(self, gathered: _Gathered) -> Iterator[_Opened]:
        """Yield each location with the footers of its files, and record these in `gathered`."""
        for found in self._wanted.places:
            try:
                looked = survey(found)
                partition = tuple(self._table.partition_of(found))
            except AcidctlError as error:
                gathered.failed.append(ErasureReport(found.shown, None, None, (), (NotLookedAt(found.shown, error),)))
                continue
            opened = list(parallel.results(partial(open_file, found.fs, declared=found.declared), looked.files))
            gathered.is_open = gathered.is_open and not looked.closed
            gathered.look(opened)
            yield _Opened(looked, opened, partition)

    def _strays(self, closed: Callable[[str, AcidctlError], None]) -> Iterator[StrayFile]:
        locations = {found.location.path for found in self._wanted.places if found.fs is self._fs}
        root = self._wanted.root
        if root:
            yield from files_beside(self._fs, root, locations, closed)
        if self._wanted.hdfs_trash:
            outside = {path for path in locations if not (root and f"{path}/".startswith(f"{root.rstrip('/')}/"))}
            yield from hdfs_trash_files(self._fs, sorted(outside | ({root} if root else set())), closed)

    def _row_type(self, gathered: _Gathered) -> OrcType:
        """Return the columns of the table: the metastore's, else those of all files, current files last."""
        of_text = all(is_text for is_text, _ in gathered.telling)
        older, newer = ([*gathered.telling.get((of_text, is_current), ())] for is_current in (False, True))
        types = dict.fromkeys(reversed([*older, *newer]))
        # By position even for Hive 3: values that it does not show are still in the files.
        return replace(table_row_type(self._wanted.places[0].declared, [*reversed(types)]), by_name=False)

    def _keys(self, gathered: _Gathered) -> tuple[PartitionColumn, ...]:
        """Return the partition columns, with the values of the first location."""
        return gathered.opened[0].partition if gathered.opened else ()

    def _are_names_known(self, row_type: OrcType, gathered: _Gathered) -> bool:
        """Return whether all column names are known, so that the condition's other name is none of them."""
        declared = self._wanted.places[0].declared
        if declared and declared.columns:
            return True
        is_open = gathered.is_open and not (gathered.failed or gathered.closed)
        if not (is_open and row_type.names and all(file.source for _, file in gathered.stray)):
            return False
        types = gathered.types | {file.source.row_type: None for _, file in gathered.stray if file.source}
        return not any(self._may_be_meant(kind, self._keys(gathered)) for kind in types)

    def _may_be_meant(self, row_type: OrcType, keys: Sequence[PartitionColumn]) -> bool:
        """Return whether the columns of a file may be those of the condition."""
        if any(name.startswith(_NAMED_BY_PLACE) for name in row_type.names):
            return True
        try:
            parse_condition(self._condition, Namespace(row_type, keys).struct)
        except UnknownColumn:
            return False
        except UsageProblem:
            return True
        return True

    # -- the search -------------------------------------------------------------------------------------------

    def _report(self, one: _Opened, row_type: OrcType, predicate: Predicate) -> ErasureReport:
        place = one.survey
        search = EventSearch(predicate, row_type, one.partition, declared=place.found.declared)
        search_one = partial(search_file, place.found.fs, search=search, checksum=self._prove)
        files = tuple(parallel.results(search_one, one.files, _SEARCHERS))
        closed = [NotLookedAt(path, error) for path, error in place.closed.items()]
        if self._prove and (changed := self._changed_since(place)):
            closed.append(changed)
        live = self._live(place, files, row_type, predicate, one.partition)
        held = {file.holder for file in files if file.matched.events}
        unknown = {file.holder for file in files if file.problem}
        steps = erasure_steps(place, held, unknown, live)
        return ErasureReport(
            place.found.shown, SeenBy.of(place.snapshot), live, files, tuple(closed), steps, place.found.hive_name
        )

    def _search_stray(
        self,
        row_type: OrcType,
        predicate: Predicate,
        keys: Sequence[PartitionColumn],
        stray: tuple[StrayFile, OpenedFile],
    ) -> SearchedFile:
        values = {name.lower(): value for name, value in stray[0].partition}
        filled, unknown = [], []
        for key in keys:
            text = values.get(key.name.lower())
            try:
                filled.append(replace(key, value=None if text is None else typed(text, key.type, key.name)))
            except AcidctlError:
                text = None
                filled.append(replace(key, value=None))
            if text is None:
                unknown.append(key.name)
        search = EventSearch(predicate, row_type, filled, unknown, self._wanted.places[0].declared)
        return search_file(self._fs, stray[1], search, checksum=self._prove)

    def _beside_report(self, files: Sequence[SearchedFile], closed: tuple[NotLookedAt, ...]) -> ErasureReport:
        held = {file.holder for file in files if file.matched.events}
        unknown = {file.holder for file in files if file.problem}
        steps = erasure_steps(None, held, unknown, 0)
        shown = self._fs.display(self._wanted.root) if self._wanted.root else self._wanted.places[0].shown
        return ErasureReport(shown, None, 0, tuple(files), closed, steps)

    def _live(
        self,
        place: Survey,
        files: Sequence[SearchedFile],
        row_type: OrcType,
        predicate: Predicate,
        partition: Sequence[PartitionColumn],
    ) -> int | None:
        """Return how many matching rows readers see, reading only stripes that hold some; None if not known."""
        only = {
            file.absolute[len(place.snapshot.path.rstrip("/")) + 1 :]: file.matched.places
            for file in files
            if file.holder.kind is HolderKind.CURRENT and file.matched.events
        }
        if not only:
            return 0
        try:
            sources = open_sources(place.snapshot)
            scan = Scan(
                place.snapshot, [], where=predicate, partition=partition, row_type=row_type, sources=sources, only=only
            )
            return scan.count()
        except AcidctlError:
            return None

    def _changed_since(self, place: Survey) -> NotLookedAt | None:
        """Return an entry if a location changed while it was searched, else None."""
        try:
            now = survey(place.found.reload())
        except AcidctlError as error:
            return NotLookedAt(place.found.shown, error)
        before = {(file.path, file.entry.size) for file in place.files}
        if {(file.path, file.entry.size) for file in now.files} <= before:
            return None
        why = "files came while it was searched"
        return NotLookedAt(place.found.shown, UsageProblem(f"{place.found.shown} changed", why, "search it once more"))


def _defines_columns(opened: OpenedFile) -> bool:
    """Return whether the columns of a file are the table's; a delete file may declare any (format section 3.1)."""
    is_struct = opened.source is not None and opened.source.row_type.kind == "struct"
    return is_struct and opened.file.is_of_table and "delete_delta_" not in opened.file.path


def tables_to_search(
    places: Iterable[TableLocation], given: Sequence[str], storage: Mapping[str, str], *, hdfs_trash: bool = True
) -> Iterator[SearchedTable]:
    """Yield locations grouped by table; the locations of one table must follow each other.

    Files beside the locations of a table are searched only if the whole table was given.

    Args:
        given: the paths and names that led to the locations.
    """
    above = given_paths((p for p in given if not is_hive_name(p)), storage)
    named = any(not HiveName.parse(name).partition for name in given if is_hive_name(name))
    for _, group in itertools.groupby(places, _table_of):
        members = tuple(group)
        root = _root_of(members[0], storage)
        is_whole = bool(root) and leads_to(above, members[0].fs.url, root)
        if not is_whole and not (named and members[0].hive):
            root = ""
        yield SearchedTable(members[0].location.table, members, root, hdfs_trash)


def _table_of(found: TableLocation) -> tuple[str, str]:
    return found.fs.url, f"hive:{found.hive.full_name}" if found.hive else _root_of(found, {})


def _root_of(found: TableLocation, storage: Mapping[str, str]) -> str:
    """Return the directory of a location's table, inside its store, preferably as its metastore has it."""
    path = found.location.path
    if found.hive and found.location.partition:
        fs, path = open_location(found.hive.location, storage)
        return path if fs.url == found.fs.url else ""
    for _ in found.location.partition:
        path = parent_of(path)
    return path
