"""The life of one row: where it was inserted, rewritten, updated and deleted, in all directories of a location.

Obsolete and aborted directories are history and are searched too. Only stripes whose statistics admit the key are read,
and only their id columns.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np

from acidctl.acid.names import Kind
from acidctl.acid.state import State
from acidctl.base.errors import AcidctlError, UsageProblem
from acidctl.base.printable import one_line
from acidctl.location.snapshot import Snapshot
from acidctl.orc.types import OrcType
from acidctl.rows.past.event_search import EventSearch
from acidctl.rows.read.archives import Archive, archives
from acidctl.rows.read.delete_set import DELETE, DeleteSet, DeleteSetBuilder
from acidctl.rows.read.events import EventFile, Ids
from acidctl.rows.read.visibility import add_kills, dead_rows, live_rows, visible_events
from acidctl.rows.scan.columns import ROW_ID
from acidctl.rows.scan.predicate import AllOf, ColumnComparison, ColumnRef, Path, Predicate

_PLAIN = re.compile(r"(\d{1,19}):(-?\d{1,10}):(\d{1,19})", re.ASCII)
_NAMES = ("writeid", "bucketid", "rowid")


class RowId(NamedTuple):
    """A ROW__ID; its bucket is the encoded number (format section 2)."""

    write_id: int
    bucket: int
    row_id: int

    def __str__(self) -> str:
        return ":".join(map(str, self))

    @property
    def condition(self) -> Predicate:
        """Return the condition that only events of the row meet."""
        paths: list[Path] = [(ROW_ID, name) for name in _NAMES]
        parts = (ColumnComparison(ColumnRef(path), "=", number) for path, number in zip(paths, self, strict=True))
        return Predicate(str(self), AllOf(tuple(parts)), paths)


def parse_row_id(text: str) -> RowId:
    """Parse ``writeid:bucketid:rowid``, or ROW__ID as a JSON object.

    Raises:
        UsageProblem: the text has another form.
    """
    if text.lstrip().startswith("{"):
        try:
            parsed: Any = json.loads(text)
        except ValueError as error:
            raise _unusable(text, f"it is not JSON: {error}") from None
        parsed = parsed.get("ROW__ID", parsed)
        numbers: list[Any] = [parsed.get(name) for name in _NAMES] if isinstance(parsed, dict) else [None]
        if any(type(number) is not int for number in numbers):
            raise _unusable(text, "writeid, bucketid and rowid must be whole numbers")
    elif match := _PLAIN.fullmatch(text.strip()):
        numbers = list(map(int, match.groups()))
    else:
        raise _unusable(text, "it is neither three numbers nor a JSON object")
    row = RowId(*numbers)
    if not (0 <= row.write_id < 1 << 63 and 0 <= row.row_id < 1 << 63 and -(1 << 31) <= row.bucket < 1 << 31):
        raise _unusable(text, "a number is out of range")
    return row


def _unusable(text: str, why: str) -> UsageProblem:
    return UsageProblem(
        f"not a ROW__ID: {text[:120]!r}", why, "write writeid:bucketid:rowid, for example 1:536870912:2"
    )


class Status(StrEnum):
    """The state of a row for readers of the snapshot."""

    LIVE = "live"
    DELETED = "deleted"
    INVISIBLE = "invisible"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class Sighting:
    """One event of the row in one file.

    Attributes:
        operation: ``insert``, ``update`` (ACID v1) or ``delete``.
        write_id: that wrote the event.
        state: of the directory.
        is_rewritten: a compaction wrote it to this file.
    """

    operation: str
    write_id: int
    directory: str
    file: str
    state: State
    is_rewritten: bool


@dataclass(frozen=True, slots=True)
class Blame:
    """One row and all its events.

    Attributes:
        status: None if no event of the row was found.
        inserts: the event that inserted it, as its writer wrote it first, then copies by compactions.
        changes: updates (of ACID v1) and deletes, by write id; copies by compactions included.
        hidden_by: compacted bases that may have dropped the row and its deletion, if it was not found.
        rewritten_changes: write ids that have an insert delta here, so that their deletes may be updates.
        problems: directories that no reader uses and that cannot be read.
        stripes, stripes_read: the number of stripes, and of those whose id columns were read.
    """

    __repr__ = one_line

    row: RowId
    status: Status | None
    inserts: tuple[Sighting, ...]
    changes: tuple[Sighting, ...]
    hidden_by: tuple[str, ...]
    rewritten_changes: frozenset[int]
    problems: tuple[AcidctlError, ...]
    stripes: int
    stripes_read: int

    def may_be_update(self, event: Sighting) -> bool:
        """Return whether a delete event may be half of an update: its write id inserted rows as well."""
        return event.operation == "delete" and event.write_id in self.rewritten_changes


@dataclass(frozen=True, slots=True)
class _Hit:
    """The events of the wanted rows in one stripe."""

    archive: Archive
    source: EventFile
    ids: Ids
    is_read: bool


def blame(snapshot: Snapshot, row: RowId) -> Blame:
    """Search for a row in every directory of a location.

    Raises:
        BadDataError, NotFoundError, AccessError: a file that readers use cannot be read.
    """
    directories = archives(snapshot)
    current = {file.path for file in snapshot.files()}
    search = EventSearch(row.condition, OrcType("struct"))
    hits: list[_Hit] = []
    stripes = read = 0
    for archive in directories:
        for source in archive.sources:
            stripes += len(source.tail.stripes)
            events, stripes_read = search.find_ids(source)
            hits += [_Hit(archive, source, ids, source.file.path in current) for ids in events]
            read += stripes_read
    sightings = [sighting for hit in hits for sighting in _sightings(hit)]
    inserts = [sighting for sighting in sightings if sighting.operation == "insert"]
    changes = [sighting for sighting in sightings if sighting.operation != "insert"]
    # The writer's own directory comes first, then the copies, the narrowest first, in the order of the listing.
    inserts.sort(key=lambda sighting: (sighting.is_rewritten, sighting.directory.startswith("base")))
    changes.sort(key=lambda sighting: (sighting.write_id, sighting.is_rewritten))
    return Blame(
        row,
        _status(snapshot, hits) if hits else None,
        tuple(inserts),
        tuple(changes),
        tuple(a.names[0] for a in directories if a.is_base and not a.is_overwrite and a.high >= row.write_id),
        frozenset(a.low for a in directories if a.directory and a.directory.kind is Kind.DELTA and a.low == a.high),
        tuple(archive.error for archive in directories if archive.error is not None),
        stripes,
        read,
    )


def _sightings(hit: _Hit) -> Iterable[Sighting]:
    is_delete = hit.source.is_delete
    for operation, current in zip(hit.ids.operation.tolist(), hit.ids.current.tolist(), strict=True):
        name = "delete" if is_delete or operation == DELETE else "update" if operation == 1 else "insert"
        directory = hit.archive.directory.name if hit.archive.directory else ""
        path = hit.source.file.path
        yield Sighting(name, current, directory, path, hit.archive.verdict.state, hit.archive.is_rewritten)


def _status(snapshot: Snapshot, hits: Sequence[_Hit]) -> Status:
    """Apply the rules of a scan to the row's own events."""
    read = [hit for hit in hits if hit.is_read]
    deletes = _deletes(snapshot, read)
    for hit in read:
        if hit.source.is_delete:
            continue
        live = live_rows(hit.source, hit.ids, snapshot.write_ids, deletes)
        if live is None or bool(np.any(live)):
            return Status.LIVE
    # The compaction that applied the delete may have dropped the delete event.
    everything, rows = _deletes(snapshot, hits), [hit for hit in hits if not hit.source.is_delete]
    if everything.size and (
        not rows or any(dead_rows(hit.source, hit.ids, snapshot.write_ids, everything).any() for hit in rows)
    ):
        return Status.DELETED
    masks = (visible_events(hit.ids, snapshot.write_ids) for hit in hits)
    return Status.GONE if any(mask is None or mask.any() for mask in masks) else Status.INVISIBLE


def _deletes(snapshot: Snapshot, hits: Iterable[_Hit]) -> DeleteSet:
    builder = DeleteSetBuilder()
    hits = list(hits)
    moved = any(hit.source.may_hold_moved for hit in hits)
    for hit in hits:
        add_kills(builder, hit.source, hit.ids, snapshot.write_ids, moved=moved)
    return builder.build()
