"""Repair of a directory that a rename put into another of the same name (HIVE-25600, rule V17).

Two compactions of one table, or a repeated one, rename their result to the same name: HDFS moves the second into the
first. Hive 3 ignores it there, and Hive 4 reads its rows twice. If the outer directory holds the same events, the inner
one moves into the backup; if the outer one is empty, the inner one takes its place. Any other case needs a person.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from acidctl.acid.listing import Entry, with_entries
from acidctl.acid.names import (
    ACID_PREFIXES,
    METADATA_ACID,
    ORC_ACID_VERSION,
    AcidDirectory,
    is_hidden,
    is_native_data_file,
)
from acidctl.location.snapshot import Snapshot
from acidctl.orc.byte_source import ByteSource
from acidctl.orc.tail import Tail, read_tail
from acidctl.repair.plan import Fix, Made, RepairKind, Scope, Suspect, directories, stripe_ids, unsafe
from acidctl.rows.read.events import ID_COLUMNS
from acidctl.storage.port import FileSystem
from acidctl.storage.ranged import MOST_METADATA, read_small

_MARKERS = (METADATA_ACID, ORC_ACID_VERSION)
_BY_HAND = "look at both with `acidctl dump`, and move one of them away by hand"


def suspects(snapshot: Snapshot, scope: Scope) -> Iterator[Suspect]:
    """Yield every ACID directory inside a current one."""
    for directory, entries in directories(snapshot):
        below = snapshot.listing.by_child.get(directory.name, ())
        for path in (e.path for e in below if e.is_dir and e.path.count("/") == 1):
            is_acid = all(name.startswith(ACID_PREFIXES) for name in path.split("/"))
            if is_acid:
                yield path, partial(_look, snapshot, directory, path, entries, scope)


def _look(snapshot: Snapshot, directory: AcidDirectory, inner: str, entries: Sequence[Entry], scope: Scope) -> Fix:
    outer = directory.name
    if inner != f"{outer}/{outer}":
        raise unsafe(
            "it has another name than the directory around it: whether it belongs there, or beside it, is not known",
            "if nothing of that name is in the location, and its rows are missing, move it there by hand",
        )
    scope.require_dead(entries)
    directories_below = [
        e.path for e in snapshot.listing.by_child[outer] if e.is_dir and e.path.startswith(f"{inner}/")
    ]
    if directories_below:
        raise unsafe(f"it holds a directory of its own, {directories_below[0]}", _BY_HAND)
    inside = [e for e in entries if e.path.startswith(f"{inner}/")]
    around = [e for e in entries if e.path.count("/") == 1]
    inner_data, outer_data = _data(inside), _data(around)
    size = sum(entry.size for entry in inside)
    if outer_data or not inner_data:
        count = _require_repetition(snapshot, inner_data, outer_data)
        return Fix(
            RepairKind.NESTED,
            inner,
            f"it lies in {outer}, which holds all of its {count:,} events",
            "move it into the backup; only Hive 4 looks into it, and reads them twice",
            size,
            tuple(entries),
            away=(inner,),
        )
    if any(e.path.count("/") > 1 and not e.path.startswith(f"{inner}/") for e in entries):
        raise unsafe(f"{outer} holds other directories too", _BY_HAND)
    count = sum(_events_of(snapshot, entry)[0] for entry in inner_data.values())
    made = tuple(_missing_markers(snapshot, inner, around, inside))
    _require_same_state(snapshot, outer, inner, made)
    return Fix(
        RepairKind.NESTED,
        inner,
        f"it lies in {outer}, which holds no data: its {count:,} events are lost to Hive 3",
        f"put it in the place of {outer}; for a moment readers see neither",
        size,
        tuple(entries),
        made,
        away=(outer,),
        lifted=((inner, outer),),
        is_gap=True,
    )


def _data(entries: Sequence[Entry]) -> dict[str, Entry]:
    """Return data files by name; raise BadDataError for files that only a table of another type may hold."""
    by_name = {}
    for entry in entries:
        name = entry.path.rpartition("/")[2]
        if is_hidden(name):
            continue
        if not is_native_data_file(name):
            why = "a streaming writer's side file" if name.endswith("_flush_length") else "no bucket file"
            hint = "insert-only tables are read in all depths, and streams are cut first: " + _BY_HAND
            raise unsafe(f"{entry.path} is {why}", hint)
        by_name[name] = entry
    return by_name


def _require_repetition(snapshot: Snapshot, inner: dict[str, Entry], outer: dict[str, Entry]) -> int:
    """Require that the outer directory has every file of the inner one, with the same events; return their number."""
    count = 0
    for name, entry in inner.items():
        if name not in outer:
            raise unsafe(f"{name} is in it, and not in the directory around it", _BY_HAND)
        events = _events_of(snapshot, entry)
        if events != _events_of(snapshot, outer[name]):
            raise unsafe(f"{name} holds other events in it than around it: which are right is not known", _BY_HAND)
        count += events[0]
    return count


def _events_of(snapshot: Snapshot, entry: Entry) -> tuple[int, bytes]:
    if not entry.size:
        raise unsafe(f"{entry.path} is empty", _BY_HAND)
    path = snapshot.absolute(entry.path)
    tail = read_tail(ByteSource(snapshot.fs, path, entry.size))
    if not tail.is_acid:
        raise unsafe(f"{entry.path} has no ACID columns", _BY_HAND)
    return _events_digest(snapshot.fs, path, tail)


def _missing_markers(snapshot: Snapshot, inner: str, around: Sequence[Entry], inside: Sequence[Entry]) -> list[Made]:
    """Return the outer directory's markers that the inner one lacks: Hive wrote them after its rename."""
    have = {entry.path.rpartition("/")[2]: entry for entry in inside}
    made = []
    for entry in around:
        name = entry.path.rpartition("/")[2]
        if name not in _MARKERS:
            continue
        content = read_small(snapshot.fs, snapshot.absolute(entry.path), MOST_METADATA)
        if name not in have:
            made.append(Made(f"{inner}/{name}", 0, content, replaces=False))
        elif read_small(snapshot.fs, snapshot.absolute(have[name].path), MOST_METADATA) != content:
            raise unsafe(f"{entry.path} and {have[name].path} differ", _BY_HAND)
    return made


def _require_same_state(snapshot: Snapshot, outer: str, inner: str, made: Sequence[Made]) -> None:
    """Require that readers will choose the same directories after the repair."""
    kept = [e for e in snapshot.listing.entries if not e.path.startswith(f"{outer}/")]
    lifted = [e for e in snapshot.listing.entries if e.path.startswith(f"{inner}/")]
    moved = [e._replace(path=outer + e.path.removeprefix(inner)) for e in lifted]
    moved += [Entry(outer + m.path.removeprefix(inner), m.size, None, False) for m in made]
    listing = with_entries(snapshot.listing, sorted([*kept, *moved], key=lambda e: e.path))
    after = snapshot.lists.select(listing)
    before = snapshot.state
    if [v.name for v in (after.base, *after.deltas) if v] != [v.name for v in (before.base, *before.deltas) if v]:
        raise unsafe(f"readers would choose other directories once it stands for {outer}", _BY_HAND)


def _events_digest(fs: FileSystem, path: str, tail: Tail) -> tuple[int, bytes]:
    """Return the number of events and a digest of their ids in order, equal for files that hold the same events.

    Two events with the same operation, key and write id are the same event: ids are given once (format section 4).
    """
    digests = [hashlib.sha256() for _ in ID_COLUMNS]
    count = 0
    for ids in stripe_ids(fs, path, tail):
        columns = (ids.operation, ids.keys.original, ids.keys.bucket, ids.keys.row_id, ids.current)
        for digest, column in zip(digests, columns, strict=True):
            digest.update(np.ascontiguousarray(column).data)
        count += len(ids.current)
    return count, b"".join(digest.digest() for digest in digests)
