"""Find the files of tables that still hold certain rows."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from acidctl.base.packed import Packed
from acidctl.verbs.options import REQUIRED, Options, option

if TYPE_CHECKING:
    from acidctl.erasure.report import TableErasure
    from acidctl.erasure.search import MakeCondition, SearchedTable
    from acidctl.location.table_location import TableLocation
    from acidctl.verbs.events import Events
    from acidctl.verbs.selection import Selection


@dataclass(frozen=True, kw_only=True)
class ErasureOptions(Options):
    """The options of `acidctl erasure`."""

    where: str = option(
        REQUIRED, "--where", typed=True, metavar="CONDITION", help="The rows, by a condition in SQL as of `cat`."
    )
    prove: bool = option(
        False, "--prove", help="Take checksums of all files, and list locations once more at the end: reads every byte."
    )
    hdfs_trash: bool = option(
        True, "--hdfs-trash/--no-hdfs-trash", typed=True, help="Look into the trashes of HDFS. [default: do]"
    )


def erasure(
    selection: Selection, options: ErasureOptions, events: Events, condition: MakeCondition | None = None
) -> Iterator[TableErasure]:
    """Yield the matching rows of each table; what cannot be read of a table is in its report.

    Args:
        condition: selects the rows instead of the condition in `options`; see
            :func:`acidctl.erasure.search.search_tables`.

    Raises:
        UsageProblem: the condition cannot be parsed.
    """
    from acidctl.erasure.search import search_tables
    from acidctl.rows.scan.condition import parse_condition

    places = selection.readable(events, hidden=True, looks=False)
    tables = _tables(places, selection, hdfs_trash=options.hdfs_trash)
    chosen = condition or partial(parse_condition, options.where)
    yield from search_tables(tables, selection.resolver, chosen, prove=options.prove)
    events.looked_through()


def _tables(places: Iterator[TableLocation], selection: Selection, *, hdfs_trash: bool) -> Iterator[SearchedTable]:
    """Yield locations grouped by table; files beside them are searched only if the whole table was named."""
    from acidctl.erasure.search import SearchedTable
    from acidctl.location.arguments import HiveName, is_hive_name
    from acidctl.location.find import given_paths, leads_to

    above = given_paths((text for text in selection.places if not is_hive_name(text)), selection.storage)
    names = [HiveName.parse(text) for text in selection.places if is_hive_name(text)]
    for _, group in itertools.groupby(places, partial(_table_of, storage=selection.storage)):
        members = Packed(group, _shared)
        root = _root_of(members[0], selection.storage)
        is_named = bool(members[0].hive) and not all(name.partition for name in names)
        if not (is_named or (root and leads_to(above, members[0].fs.url, root))):
            root = ""
        yield SearchedTable(members[0].location.table, members, root, hdfs_trash)


def _shared(found: TableLocation) -> Iterable[object]:
    return found.fs, found.resolver, found.hive, found.declared, found.formats


def _table_of(found: TableLocation, storage: Mapping[str, str]) -> tuple[str, str]:
    return found.fs.url, f"hive:{found.hive.full_name}" if found.hive else _root_of(found, storage)


def _root_of(found: TableLocation, storage: Mapping[str, str]) -> str:
    """Return the directory of a location's table, inside its store, preferably as its metastore has it."""
    from acidctl.storage.registry import open_location

    if found.hive and found.location.partition:
        fs, path = open_location(found.hive.location, storage)
        return path if fs.url == found.fs.url else ""
    return found.location.table_path
