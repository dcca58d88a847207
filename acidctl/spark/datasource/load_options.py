"""Parse the options of the Spark data source, which stand between ``format("hive_acid")`` and ``load()``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from acidctl.acid.assumed_commits import Assumption
from acidctl.base.deadline import duration_seconds
from acidctl.base.errors import UsageProblem
from acidctl.base.nearest import did_you_mean
from acidctl.location.arguments import HIVE, is_hive_name
from acidctl.location.snapshot_resolver import SnapshotResolver, SnapshotSpec, open_warehouse

TARGET_BYTES = 32 << 20
"""About this many bytes of stripes make one of Spark's partitions."""

STORAGE = "storage."
METASTORE = "metastore."
NEWEST = "newest"

# As users write them; Spark does not mind the case.
NAMES = (
    "path", "table", "snapshot", "at", "rowId", "columns", "targetBytes", "partitionTypes",
    "metastore", "changesFrom", "changesTo", "assumeCommitted",
)  # fmt: skip

SAVE_NAMES = ("path", "table", "metastore", "wait")

_SIZE = re.compile(r"([0-9]+)\s*([kmg]?)b?", re.IGNORECASE)
_NAME = re.compile(r"\s*`((?:[^`]|``)*)`\s*(?=,|$)|([^,`]*)(?=,|$)")
_UNITS = {"": 0, "k": 10, "m": 20, "g": 30}


@dataclass(frozen=True, slots=True)
class ChangeRange:
    """A range of write ids whose changes are wanted.

    Attributes:
        after: the write id before the first; None for changes that come from now on.
        upto: the last write id; None for the newest whose changes are known.
    """

    after: int | None
    upto: int | None


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """The options, checked.

    Attributes:
        path: a location, a table with partitions, or a name in a metastore, ``hive:db.table``.
        resolver: decides which write ids count.
        at: the write id that counts as the newest; None for all that the lists allow.
        row_id: whether ``ROW__ID`` comes first.
        columns: the wanted top-level columns, in order; None for all.
        target_bytes: about how many bytes one of Spark's partitions reads.
        infer_partitions: whether partition values that are all numbers, or all dates, get such a type.
        storage: options of the store, by their fsspec names.
        changes: the wanted changes; None for rows.
    """

    path: str
    resolver: SnapshotResolver
    at: int | None
    row_id: bool
    columns: tuple[str, ...] | None
    target_bytes: int
    infer_partitions: bool
    storage: tuple[tuple[str, str], ...]
    changes: ChangeRange | None = None

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> SourceOptions:
        """Read them; the case of their names does not matter.

        Raises UsageProblem if there is no path, an unknown option, or a value that cannot be used.
        """
        given, path, storage, metastore = _common(options, NAMES)
        spec = SnapshotSpec.of(given.get("snapshot"))
        if (text := given.get("assumecommitted")) is not None:
            age = duration_seconds(text)
            if age is None:
                raise _unusable("assumeCommitted", text, "write 90s, 30m, 2h or 1d")
            spec = replace(spec, assumption=Assumption(age))
        return cls(
            path=path,
            resolver=SnapshotResolver(spec, open_warehouse(metastore)),
            at=_write_id("at", given["at"], "a write id, a whole number") if "at" in given else None,
            row_id=_one_of(given, "rowId", "false", "true", "false") == "true",
            columns=_columns(given.get("columns")),
            target_bytes=_size(given.get("targetbytes")),
            infer_partitions=_one_of(given, "partitionTypes", "infer", "infer", "string") == "infer",
            storage=tuple(sorted(storage.items())),
            changes=_changes(given),
        )


@dataclass(frozen=True, slots=True)
class SaveOptions:
    """The options between ``format("hive_acid")`` and ``save()``, checked.

    Attributes:
        path: ``hive:db.table``.
        metastore: its settings by name.
        storage: options of the store, by their fsspec names.
        wait: seconds to wait for a conflicting lock.
    """

    path: str
    metastore: Mapping[str, str]
    storage: Mapping[str, str]
    wait: float

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> SaveOptions:
        """Read them, as :meth:`SourceOptions.parse` does."""
        given, path, storage, metastore = _common(options, SAVE_NAMES)
        wait = duration_seconds(given.get("wait", "10m"))
        if wait is None:
            raise _unusable("wait", given["wait"], "write 90s, 30m, 2h or 1d")
        return cls(path, metastore, storage, wait)


def _common(
    options: Mapping[str, str], names: Sequence[str]
) -> tuple[dict[str, str], str, dict[str, str], dict[str, str]]:
    """Return options by their names in lower case, the path, and the options of the store and of the metastore."""
    given = {name.lower(): value for name, value in options.items()}
    storage = _below(given, STORAGE)
    metastore = _below(given, METASTORE) | ({"uris": given["metastore"]} if "metastore" in given else {})
    _refuse_unknown([name for name in given if not name.startswith((STORAGE, METASTORE))], names)
    path, table = given.get("path", ""), given.get("table", "")
    if path and table:
        raise UsageProblem("both a path and a table are given", f"{path} and {table}", "give one of them")
    if table:
        path = table if is_hive_name(table) else f"{HIVE}{table}"
    if not path:
        hint = 'write spark.read.format("hive_acid").load("/path/of/the/table"), or load("hive:db.table")'
        raise UsageProblem("no path and no table is given", "", hint)
    return given, path, storage, metastore


def _below(given: Mapping[str, str], prefix: str) -> dict[str, str]:
    """Return the options with a prefix, by the rest of their names."""
    return {name.removeprefix(prefix): value for name, value in given.items() if name.startswith(prefix)}


def _refuse_unknown(given: list[str], names: Sequence[str]) -> None:
    known = {name.lower(): name for name in names}
    for name in given:
        if name == "paths":
            raise UsageProblem("several paths are given", "", "load one table at a time, and union them")
        if name not in known:
            why = f"the options are {', '.join(names)}, {STORAGE}NAME and {METASTORE}NAME"
            raise UsageProblem(f"no option {name!r}", why, did_you_mean(name, names))


def _one_of(given: Mapping[str, str], name: str, usual: str, *choices: str) -> str:
    found = given.get(name.lower(), usual).lower()
    if found not in choices:
        raise _unusable(name, found, f"write {' or '.join(choices)}")
    return found


def _changes(given: Mapping[str, str]) -> ChangeRange | None:
    after, upto = given.get("changesfrom"), given.get("changesto")
    if after is None and upto is None:
        return None
    if after is None:
        raise UsageProblem("option changesTo is given without changesFrom", "", "say from which write id on")
    if "at" in given:
        raise UsageProblem("the options at and changesFrom are given", "", "give changesFrom and changesTo")
    start = None if after.lower() == NEWEST else _write_id("changesFrom", after, f"a write id, or {NEWEST}")
    end = None if upto is None else _write_id("changesTo", upto, "a write id")
    if start is not None and end is not None and end < start:
        raise _unusable("changesTo", str(end), f"write a write id from {start} on")
    return ChangeRange(start, end)


def _write_id(name: str, text: str, what: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise _unusable(name, text, f"write {what}")
    return int(text)


def _columns(text: str | None) -> tuple[str, ...] | None:
    """Return names separated by commas; a name with a comma stands in back quotes, doubled inside."""
    if text is None:
        return None
    names, at = [], 0
    while at <= len(text):
        match = _NAME.match(text, at)
        if match is None:
            raise _unusable("columns", text, "write names separated by commas, odd ones in back quotes: id,`x,y`")
        names.append(match[1].replace("``", "`") if match[2] is None else match[2].strip())
        at = match.end() + 1  # behind the comma
    if not all(names):
        raise _unusable("columns", text, "write names separated by commas: id,value")
    return tuple(names)


def _size(text: str | None) -> int:
    if text is None:
        return TARGET_BYTES
    match = _SIZE.fullmatch(text.strip())
    size = int(match[1]) << _UNITS[match[2].lower()] if match else 0
    if not size:
        raise _unusable("targetBytes", text, "write a number of bytes, or 64m")
    return size


def _unusable(name: str, value: str, hint: str) -> UsageProblem:
    return UsageProblem(f"option {name} cannot be {value!r}", "", hint)
