"""Read every event of some data files with its synthetic columns, deleted and aborted ones included."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from acidctl.base.errors import AcidctlError, UsageProblem
from acidctl.verbs.options import Options, option
from acidctl.verbs.reading.cat import columns_option

if TYPE_CHECKING:
    from collections.abc import Iterator
    from functools import partial

    from acidctl.acid.listing import TableType
    from acidctl.rows.read.events import EventFile
    from acidctl.rows.scan.event_dump import EventDump
    from acidctl.storage.port import FileSystem
    from acidctl.verbs.events import Events
    from acidctl.verbs.selection import Selection


@dataclass(frozen=True, kw_only=True)
class DumpOptions(Options):
    """The options of `acidctl dump`."""

    decode: bool = option(
        False, "--decode", help="Add the operation's name, and the bucket and statement id of `bucket`."
    )
    columns: tuple[str, ...] | None = columns_option()
    where: str | None = option(
        None,
        "--where",
        typed=True,
        metavar="CONDITION",
        help="Only events whose synthetic columns meet a condition in SQL.",
    )


def dump(selection: Selection, options: DumpOptions, events: Events) -> EventDump:
    """Return the events of files, directories, or tables with all their partitions.

    If there are several files, the error of one that cannot be read goes to `events`.

    Raises:
        NotFoundError: a column does not exist.
        UsageProblem: the condition cannot be used, or a path holds several tables.
    """
    from functools import partial

    from acidctl.rows.scan.event_dump import EventDump
    from acidctl.storage.registry import open_location

    failed = partial(events.failed, "")
    sources: list[EventFile] = []
    for path in selection.places:
        try:
            sources += _files_below(*open_location(path, selection.storage), events, failed, selection.table_type)
        except AcidctlError as error:
            if len(selection.places) == 1:
                raise
            failed(error)
    return EventDump(sources, options.columns, options.where, decode=options.decode, on_error=failed)


def _files_below(
    fs: FileSystem, path: str, events: Events, failed: partial[None], table_type: TableType | None
) -> Iterator[EventFile]:
    """Yield the event files at a path."""
    from acidctl.location.walk import walk_locations
    from acidctl.rows.scan.event_dump import event_files_at
    from acidctl.storage.registry import naming_near

    with naming_near(fs, path):
        is_dir = fs.stat(path).is_dir
    locations = [location for location, _ in walk_locations(fs, path)] if is_dir else []
    tables = sorted({location.table for location in locations})
    if len(tables) > 1:
        what = f"{fs.display(path)} holds several tables"
        raise UsageProblem(what, f"there are {', '.join(tables[:5])}", "give one of them")
    for place in [location.path for location in locations] if len(locations) > 1 else [path]:
        files = event_files_at(fs, place, failed, table_type)
        if not files and events.is_whole:
            events.note(f"{fs.display(place)} holds no events")
        yield from files
