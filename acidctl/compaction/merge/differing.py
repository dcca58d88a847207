"""Refusals of files that Hive 3 and Hive 4 read differently: a compaction would settle the question for good."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set

from acidctl.acid.compaction_kind import Hive
from acidctl.acid.names import FLUSH_LENGTH_SUFFIX, Kind
from acidctl.acid.sidefiles import parse_flush_length
from acidctl.errors import RefusedError
from acidctl.location.snapshot import Snapshot
from acidctl.orc.read.wide_timestamps import SWITCH
from acidctl.orc.types import OrcType
from acidctl.rows.convert.matching import is_numbered
from acidctl.rows.foreign.format import Format
from acidctl.rows.read.events import EventFile
from acidctl.storage.ranged import MOST_LENGTHS, read_small

_DAY = 86_400_000


def refuse_differing(snapshot: Snapshot, sources: Iterable[EventFile], row: OrcType, reader: Hive | None) -> None:
    """Refuse files that Hive reads differently from acidctl: the Hive of `reader`, or either one if it is unknown.

    Args:
        sources: the files of the rows.
        row: the columns of the result.
        reader: the Hive that reads the table; acidctl reads as Hive 4 does, but for old dates.

    Raises:
        RefusedError: the columns of a file have other names than those of the result, which Hive 3 goes by, or no names
            beside files with names; or a flush
            length beside a delta of one write id hides rows from Hive 3; or Hive 4 moves old dates of a C++ writer; or
            the result would have other numbers of old dates, which Hive 3 takes as they are.
    """
    sources = [source for source in sources if source.format is Format.ORC]
    if reader is not Hive.HIVE4 and (source := _numbered_beside_named(snapshot, sources)):
        raise _differing(source, "numbers its columns, and other files name them",
                         "Hive 3 goes by places in the one and by names in the others", reader)  # fmt: skip
    is_moved = not all(source.is_hybrid for source in sources if source.rows)
    sides = {entry.path for entry in snapshot.listing.entries if entry.path.endswith(FLUSH_LENGTH_SUFFIX)}
    for source in sources:
        if reader is not Hive.HIVE4:
            if renamed := next(_renamed(source.row_type, row), None):
                raise _differing(source, f"calls a column {renamed[0]} that the result calls {renamed[1]}",
                                 "Hive 3 goes by names, and Hive 4 by places", reader)  # fmt: skip
            if _is_shortened(snapshot, source, sides):
                raise _differing(source, "has a flush length that is not its size",
                                 "Hive 3 heeds it in a delta of one write id, and Hive 4 does not", reader)  # fmt: skip
            if is_moved and source.is_hybrid and _has_old_dates(source):
                raise _differing(source, "has dates before 15 October 1582 by another calendar than other files",
                                 "their numbers would change, and Hive 3 ignores calendars", reader)  # fmt: skip
        is_unsaid = source.tail.calendar is None and not source.is_hybrid
        if reader is not Hive.HIVE3 and is_unsaid and _has_old_dates(source):
            raise _differing(source, "has dates before 15 October 1582, and names no calendar",
                             "Hive 4 takes them for Julian dates, and Hive 3 does not", reader)  # fmt: skip


def _differing(source: EventFile, what: str, why: str, reader: Hive | None) -> RefusedError:
    hint = "let Hive compact it"
    if reader is None:
        hint = f"say which Hive reads the table, `reader='hive3'` or `reader='hive4'`; or {hint}"
    return RefusedError(f"{source.fs.display(source.path)} {what}", why, hint)


def _renamed(own: OrcType, target: OrcType) -> Iterator[tuple[str, str]]:
    """Pairs of different column names; there are none in a file whose columns Hive numbered (``_col0``)."""
    if is_numbered(own):
        return
    yield from ((one, other) for one, other in zip(own.names, target.names, strict=False) if one != other)


def _numbered_beside_named(snapshot: Snapshot, sources: Iterable[EventFile]) -> EventFile | None:
    """Return a file without names of columns beside files with names that are not known to be those of the table.

    Hive 3 shows NULL in a named file for a column that was renamed since, and would do so for all rows of the result.
    """
    table = {name for name, _ in snapshot.table_columns}
    wide = [source for source in sources if source.row_type.names]
    numbered = [source for source in wide if is_numbered(source.row_type)]
    named = [source for source in wide if not is_numbered(source.row_type)]
    is_known = table and all(table.issuperset(source.row_type.names) for source in named)
    return numbered[0] if numbered and named and not is_known else None


def _is_shortened(snapshot: Snapshot, source: EventFile, sides: Set[str]) -> bool:
    directory = source.file.directory
    if directory is None or directory.kind is not Kind.DELTA or directory.min_write_id != directory.max_write_id:
        return False
    side = source.file.path + FLUSH_LENGTH_SUFFIX
    if side not in sides:
        return False
    path = snapshot.absolute(side)
    return parse_flush_length(read_small(snapshot.fs, path, MOST_LENGTHS), path) != source.file.size


def _has_old_dates(source: EventFile) -> bool:
    """Whether a file has dates before the change of calendars in 1582."""
    for column in source.tail.footer.statistics:
        if column.HasField("dateStatistics") and column.dateStatistics.HasField("minimum"):
            if column.dateStatistics.minimum < SWITCH:
                return True
        elif column.HasField("timestampStatistics"):
            times = column.timestampStatistics
            least = min((getattr(times, name) for name in ("minimum", "minimumUtc") if times.HasField(name)), default=0)
            if least < (SWITCH + 1) * _DAY:  # in some time zone
                return True
    return False
