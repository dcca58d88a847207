"""The search of one table: every file that may hold matching rows, whatever their state."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

from acidctl.acid.listing import TableType
from acidctl.base import parallel
from acidctl.base.errors import AcidctlError, UsageProblem, unexpected
from acidctl.base.packed import Packed
from acidctl.erasure.beside import StrayFile, files_beside, hdfs_trash_files
from acidctl.erasure.holders import HolderKind
from acidctl.erasure.report import ErasureReport, NotLookedAt, SeenBy, TableErasure
from acidctl.erasure.searched_file import OpenedFile, SearchedFile, open_file, search_file
from acidctl.erasure.steps import Survey, erasure_steps, survey
from acidctl.location.snapshot_resolver import SnapshotResolver
from acidctl.location.table_location import TableLocation
from acidctl.orc.types import OrcType, row_of
from acidctl.rows.convert.matching import table_row_type
from acidctl.rows.foreign.format import Format
from acidctl.rows.past.event_search import EventSearch
from acidctl.rows.read.visibility import open_sources
from acidctl.rows.scan.columns import Namespace, PartitionColumn
from acidctl.rows.scan.condition import UnknownColumn
from acidctl.rows.scan.partition_values import typed
from acidctl.rows.scan.predicate import PartialCondition
from acidctl.rows.scan.scan import Scan
from acidctl.rows.scan.table import Table

_SEARCHERS = 4
"""Files that are searched at the same time: each holds a stripe in memory."""

_FEW_LOCATIONS = 100
"""The reports of more locations are held as bytes, to save memory."""

_NAMED_BY_PLACE = "_col"

MakeCondition = Callable[[OrcType], PartialCondition]


@dataclass(frozen=True, slots=True)
class SearchedTable:
    """A table to search.

    Attributes:
        places: its locations to search.
        root: its directory, absolute, to search beside the locations; empty to search the locations alone.
        hdfs_trash: search the trashes of HDFS, too.
    """

    table: str
    places: Sequence[TableLocation]
    root: str = ""
    hdfs_trash: bool = True


class _Opened(NamedTuple):
    survey: Survey
    files: list[OpenedFile]
    partition: tuple[PartitionColumn, ...]

    def shared(self) -> Iterable[object]:
        """Return the objects that the locations of a table have in common."""
        seen, found = self.survey.snapshot, self.survey.found
        of_table = found.fs, found.declared, found.hive, found.resolver, found.formats
        return seen.fs, seen.write_ids, seen.txns, seen.declared, seen.source, *of_table


@dataclass
class _Gathered:
    """A table before the search.

    Attributes:
        opened: its locations.
        defining: the row types of the files that define the columns of the table, by whether they are text and whether
            they are current, in the order in which they were found.
        types: the row types of all files.
        is_open: every directory and the footer of every file could be read.
        has_files: there is at least one file.
    """

    opened: Sequence[_Opened] = ()
    failed: list[ErasureReport] = field(default_factory=list)
    stray: list[tuple[StrayFile, OpenedFile]] = field(default_factory=list)
    closed: list[NotLookedAt] = field(default_factory=list)
    defining: dict[tuple[bool, bool], dict[OrcType, None]] = field(default_factory=dict)
    types: dict[OrcType, None] = field(default_factory=dict)
    is_open: bool = True
    has_files: bool = False

    def add(self, files: Iterable[OpenedFile], *, defines: bool) -> None:
        """Record what the footers of files show.

        Args:
            defines: the files may define the columns of the table.
        """
        for opened in files:
            self.has_files = True
            if opened.source is None:
                self.is_open = False
                continue
            kind = opened.source.row_type
            self.types[kind] = None
            # A delete file may declare any columns (format section 3.1).
            is_of_table = defines and opened.file.is_of_table and "delete_delta_" not in opened.file.path
            if is_of_table and kind.kind == "struct":
                group = opened.source.format is Format.TEXT, opened.file.holder.kind is HolderKind.CURRENT
                of_group = self.defining.setdefault(group, {})
                of_group.pop(kind, None)  # the last file of a type decides its position
                of_group[kind] = None

    @property
    def is_complete(self) -> bool:
        """Return whether every directory and footer of the table could be read."""
        return self.is_open and not (self.failed or self.closed)


def search_tables(
    tables: Iterable[SearchedTable], resolver: SnapshotResolver, condition: MakeCondition, *, prove: bool = False
) -> Iterator[TableErasure]:
    """Search tables, one after the other; problems of a table are in its report.

    Args:
        condition: makes the condition from the columns of a table as a struct type; UnknownColumn if one is missing.
        prove: read all bytes of all files for their checksums, and list the locations again at the end.

    Raises:
        UsageProblem: the condition cannot be parsed.
    """
    with suppress(UnknownColumn):
        condition(row_of(()))  # a malformed condition fails for every table
    for wanted in tables:
        try:
            table = Table(wanted.places[0].shown, wanted.places, resolver)
        except Exception as error:  # noqa: BLE001 - the other tables go on
            problem = unexpected(error, f"while {wanted.table} was searched")
            yield TableErasure(wanted.table, reports=(ErasureReport.unknown(wanted.places[0].shown, problem),))
        else:
            yield _TableSearch(wanted, table, condition, prove=prove).result()


class _TableSearch:
    def __init__(self, wanted: SearchedTable, table: Table, condition: MakeCondition, *, prove: bool) -> None:
        self._wanted, self._table, self._condition, self._prove = wanted, table, condition, prove
        self._fs, self._declared = wanted.places[0].fs, wanted.places[0].declared
        self._gathered = _Gathered()
        self._row_type = OrcType("struct")
        self._keys: tuple[PartitionColumn, ...] = ()

    def result(self) -> TableErasure:
        gathered = self._gathered
        gathered.opened = Packed(self._opened(), _Opened.shared, is_needed=len(self._wanted.places) > 1)
        is_insert_only = _is_insert_only(self._wanted.places[0])
        opens = partial(open_file, self._fs, declared=self._declared, is_insert_only=is_insert_only)
        gathered.stray = [(stray, opens(stray.file)) for stray in self._strays()]
        gathered.add((opened for _, opened in gathered.stray), defines=False)
        self._row_type = self._table_row_type()
        self._keys = gathered.opened[0].partition if gathered.opened else ()  # with the values of the first location
        try:
            predicate = self._condition(Namespace(self._row_type, self._keys).struct)
        except UsageProblem as error:
            return self._not_applied(error)
        is_needed = len(self._wanted.places) > _FEW_LOCATIONS
        return TableErasure(
            self._wanted.table, reports=Packed(self._reports(predicate), _shared_by_report, is_needed=is_needed)
        )

    def _reports(self, predicate: PartialCondition) -> Iterator[ErasureReport]:
        gathered = self._gathered
        yield from (self._report(opened, predicate) for opened in gathered.opened)
        yield from gathered.failed
        if gathered.stray or gathered.closed:
            yield self._beside_report(predicate)

    def _not_applied(self, error: UsageProblem) -> TableErasure:
        """Return the result if the condition does not fit the columns that the files define."""
        gathered, name = self._gathered, self._wanted.table
        if gathered.is_complete and not gathered.has_files:  # the columns are unknown, and not needed
            surveys = (location.survey for location in gathered.opened)
            return TableErasure(
                name, reports=tuple(ErasureReport(s.found.shown, SeenBy.of(s.snapshot), 0) for s in surveys)
            )
        # All column names are known, so that the condition's other name is none of them.
        is_known = bool(self._declared and self._declared.columns)
        if gathered.is_complete and self._row_type.names and not any(map(self._may_be_meant, gathered.types)):
            is_known = True
        if isinstance(error, UnknownColumn) and is_known:
            first = self._wanted.places[0]
            return TableErasure(name, lacks=error.what, place=first.hive_name or first.shown)
        unknown = [ErasureReport.unknown(self._wanted.places[0].shown, error)]
        return TableErasure(name, reports=tuple(gathered.failed or unknown))

    # -- before -----------------------------------------------------------------------------------------------

    def _opened(self) -> Iterator[_Opened]:
        """Yield each location with the footers of its files, and record these."""
        gathered = self._gathered
        for found in self._wanted.places:
            try:
                looked = survey(found)
                partition = tuple(self._table.partition_of(found))
            except Exception as error:  # noqa: BLE001 - the other locations go on
                problem = unexpected(error, f"while {found.shown} was searched")
                gathered.failed.append(ErasureReport.unknown(found.shown, problem))
                continue
            opens = partial(open_file, found.fs, declared=found.declared, is_insert_only=_is_insert_only(found))
            opened = list(parallel.results(opens, looked.files))
            gathered.is_open = gathered.is_open and not looked.closed
            gathered.add(opened, defines=True)
            yield _Opened(looked, opened, partition)

    def _strays(self) -> Iterator[StrayFile]:
        """Yield the files beside the locations, and record the directories that cannot be listed."""

        def closed(path: str, error: AcidctlError) -> None:
            self._gathered.closed.append(NotLookedAt(self._fs.display(path), error))

        locations = {found.location.path for found in self._wanted.places if found.fs is self._fs}
        root = self._wanted.root
        if root:
            yield from files_beside(self._fs, root, locations, closed)
        if self._wanted.hdfs_trash:
            outside = {path for path in locations if not (root and f"{path}/".startswith(f"{root.rstrip('/')}/"))}
            yield from hdfs_trash_files(self._fs, sorted(outside | ({root} if root else set())), closed)

    def _table_row_type(self) -> OrcType:
        """Return the columns of the table: the metastore's, else those of all files, current files last."""
        defining = self._gathered.defining
        of_text = all(is_text for is_text, _ in defining)
        older, newer = ([*defining.get((of_text, is_current), ())] for is_current in (False, True))
        types = dict.fromkeys(reversed([*older, *newer]))
        # By position even for Hive 3: values that it does not show are still in the files.
        return replace(table_row_type(self._declared, [*reversed(types)]), by_name=False)

    def _may_be_meant(self, row_type: OrcType) -> bool:
        """Return whether the columns of a file may be those of the condition."""
        if any(name.startswith(_NAMED_BY_PLACE) for name in row_type.names):
            return True
        try:
            self._condition(Namespace(row_type, self._keys).struct)
        except UnknownColumn:
            return False
        except UsageProblem:
            return True
        return True

    # -- the search -------------------------------------------------------------------------------------------

    def _report(self, opened: _Opened, predicate: PartialCondition) -> ErasureReport:
        place = opened.survey
        search = EventSearch(predicate, self._row_type, opened.partition, declared=place.found.declared)
        search_one = partial(search_file, place.found.fs, search=search, checksum=self._prove)
        files = tuple(parallel.results(search_one, opened.files, _SEARCHERS))
        closed = [NotLookedAt(path, error) for path, error in place.closed.items()]
        if self._prove and (changed := _changed_since(place)):
            closed.append(changed)
        live = self._live(opened, files, predicate)
        steps = erasure_steps(place, files, live)
        return ErasureReport(
            place.found.shown, SeenBy.of(place.snapshot), live, files, tuple(closed), steps, place.found.hive_name
        )

    def _beside_report(self, predicate: PartialCondition) -> ErasureReport:
        gathered = self._gathered
        files = tuple(parallel.results(partial(self._search_stray, predicate), gathered.stray, _SEARCHERS))
        shown = self._fs.display(self._wanted.root) if self._wanted.root else self._wanted.places[0].shown
        return ErasureReport(shown, None, 0, files, tuple(gathered.closed), erasure_steps(None, files, 0))

    def _search_stray(self, predicate: PartialCondition, stray: tuple[StrayFile, OpenedFile]) -> SearchedFile:
        values = {name.lower(): value for name, value in stray[0].partition}
        filled: list[PartitionColumn] = []
        unknown: list[str] = []
        for key in self._keys:
            try:
                filled.append(replace(key, value=typed(values[key.name.lower()], key.type, key.name)))
            except (KeyError, AcidctlError):
                filled.append(replace(key, value=None))
                unknown.append(key.name)
        search = EventSearch(predicate, self._row_type, filled, unknown, self._declared)
        return search_file(self._fs, stray[1], search, checksum=self._prove)

    def _live(self, opened: _Opened, files: Collection[SearchedFile], predicate: PartialCondition) -> int | None:
        """Return how many matching rows readers see, reading only stripes that hold some; None if not known."""
        snapshot = opened.survey.snapshot
        only = {
            file.absolute[len(snapshot.path.rstrip("/")) + 1 :]: file.matched.places
            for file in files
            if file.holder.kind is HolderKind.CURRENT and file.matched.events
        }
        if not only:
            return 0
        try:
            return Scan(
                snapshot,
                [],
                where=predicate,
                partition=opened.partition,
                row_type=self._row_type,
                sources=open_sources(snapshot),
                only=only,
            ).count()
        except AcidctlError:
            return None


def _shared_by_report(report: ErasureReport) -> Iterable[object]:
    return report.snapshot or ()


def _is_insert_only(found: TableLocation) -> bool:
    table_type = found.hive.table_type if found.hive else found.given_type
    return table_type is TableType.INSERT_ONLY


def _changed_since(place: Survey) -> NotLookedAt | None:
    """Return an entry if files came to a location while it was searched, else None."""
    shown = place.found.shown
    try:
        now = survey(place.found.reload())
    except AcidctlError as error:
        return NotLookedAt(shown, error)
    before = {(file.path, file.entry.size) for file in place.files}
    if {(file.path, file.entry.size) for file in now.files} <= before:
        return None
    why = "files came while it was searched"
    return NotLookedAt(shown, UsageProblem(f"{shown} changed", why, "search it once more"))
