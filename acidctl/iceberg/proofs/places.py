"""Tell whether a partition still has the rows that were copied, or others under the same ROW__IDs.

One INSERT gives rows of several partitions the same ROW__IDs.  If one partition is dropped and another one renamed to
its name, the keys of both tables are equal, and the values are not.  A data file that has lain in a partition since the
last copy, with the same size, time and end, says that it is still the same one.  If there is none, as after a
compaction and a cleaning, the values of both sides are compared.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from hashlib import blake2b

import numpy as np

from acidctl.acid.listing import Entry
from acidctl.acid.names import acid_directory
from acidctl.base import parallel
from acidctl.base.errors import NotFoundError
from acidctl.iceberg.copy import Partition
from acidctl.iceberg.difference import SourceFile, TargetFile, opened, positions_in
from acidctl.iceberg.keys import FileKeys, KeySet, ranges_outside
from acidctl.iceberg.proofs.digests import copy_digest, source_digest
from acidctl.iceberg.proofs.new_rows import ScanOf
from acidctl.iceberg.target import Target, Values
from acidctl.location.snapshot import Snapshot
from acidctl.rows.read.visibility import load_deletes, open_sources

_MARK = 6
"""Bytes of a mark."""

_END = 64 << 10
"""Bytes of a file: one INSERT may write files of the same size at the same time, but their statistics differ."""


class Places:
    """The locations of a table as they are now, and marks by which they are known again: of a data file of each, of its
    end, and of the last write id.

    Args:
        parts: the locations.  Their marks are taken now, so that what is read later is not older.
    """

    def __init__(self, parts: Iterable[Partition]) -> None:
        self._parts = list(parts)
        found = list(parallel.results(_marks_of, self._parts))
        self._current = [marks for marks, _ in found]
        every = sorted({mark for marks, last in found for mark in (*marks, last)})
        self.marks = b64encode(b"".join(every)).decode()

    def unknown(self, then: str) -> set[Values]:
        """Return the partitions that may have been replaced.

        Args:
            then: the marks of the last copy.
        """
        known = _parsed(then)
        rest = [one for one, marks in zip(self._parts, self._current, strict=True) if not marks or marks - known]
        is_same = parallel.results(partial(_has_known_file, known), rest)
        return {part.values for part, same in zip(rest, is_same, strict=True) if not same}

    def hidden_write_id(self, part: Partition, then: str) -> int | None:
        """Return a write id on disk that was the last one of a location at the last copy, and is above its list now."""
        known, last = _parsed(then), part.snapshot.write_ids.high_watermark
        found = (acid_directory(name) for name in part.snapshot.listing.by_child)
        later = {one.max_write_id for one in found if one and one.max_write_id > last}
        return next((write_id for write_id in sorted(later) if _mark(part, write_id) in known), None)


@cache
def _parsed(text: str) -> frozenset[bytes]:
    try:
        raw = b64decode(text)
    except ValueError:  # somebody has changed the property: nothing is known
        raw = b""
    return frozenset(raw[at : at + _MARK] for at in range(0, len(raw), _MARK))


def _marks_of(part: Partition) -> tuple[set[bytes], bytes]:
    """Return the marks of the first data file, which is one of the base if there is one, and that of the write id."""
    files = {file.path for file in part.snapshot.files()}
    first = next((entry for entry in part.snapshot.listing.entries if entry.path in files), None)
    last = _mark(part, part.snapshot.write_ids.high_watermark)
    return ({_mark(part, *first), _of_end(part, first)} if first else set()), last


def _has_known_file(known: Collection[bytes], part: Partition) -> bool:
    """Return whether a file that a location had at the last copy is still there, current or obsolete."""
    for entry in part.snapshot.listing.entries:
        if not entry.is_dir and _mark(part, *entry) in known:
            with suppress(NotFoundError):  # it was obsolete, and a cleaner has just removed it
                if _of_end(part, entry) in known:
                    return True
    return False


def _of_end(part: Partition, file: Entry) -> bytes:
    snapshot = part.snapshot
    return _mark(part, *file, snapshot.fs.read_bytes(snapshot.absolute(file.path), -_END))


def _mark(part: Partition, *facts: object) -> bytes:
    return blake2b(repr((part.values, *facts)).encode(errors="surrogateescape"), digest_size=_MARK).digest()


def has_other_values(
    target: Target,
    values: Values,
    sides: tuple[Sequence[SourceFile], Sequence[TargetFile]],
    scans: Mapping[int, ScanOf],
    storage: Mapping[str, str] | None,
    *,
    has_keys: bool,
) -> bool:
    """Return whether files of a partition and of its copy have different values in the rows that both show.

    Args:
        sides: the files of the source, and those of the copy.
        scans: of the snapshots of the source, by their ids in Python.
        has_keys: rows are the same if their keys are; otherwise all rows of the files are compared.
    """
    sources, copied = sides
    keys = None
    if has_keys:
        shown, keys = (KeySet(one.keys.shown()[0] for one in side) for side in sides)
        if shown.has_twins() or keys.has_twins():
            keys = None
            if sum(one.keys.proof().rows for one in sources) != sum(len(one.shown) for one in copied):
                return False  # a catch-up refuses them
        else:
            sources = [one for one in sources if len(_only(one.keys, keys).shown()[0].first)]
            copied = [TargetFile(one.url, _only(one.keys, shown)) for one in copied]
            copied = [one for one in copied if len(one.shown)]
    by_snapshot = {id(one.snapshot): _scan_of(one.snapshot, scans, has_keys=has_keys) for one in sources}
    files = ((by_snapshot[id(one.snapshot)](sources=[opened(one.events)]), keys) for one in sources)
    here = source_digest(files, (*target.columns, *target.partition))
    return here != copy_digest(target, {values: copied}, storage, has_keys=has_keys)


def _scan_of(snapshot: Snapshot, scans: Mapping[int, ScanOf], *, has_keys: bool) -> ScanOf:
    deletes = cache(partial(load_deletes, open_sources(snapshot), snapshot.write_ids))
    return partial(scans[id(snapshot)], deletes=deletes, row_id=has_keys)


def _only(keys: FileKeys, wanted: KeySet) -> FileKeys:
    """Return a file that shows only rows with some keys."""
    return FileKeys(keys.runs, np.union1d(keys.dead, positions_in(ranges_outside(*keys.shown(), wanted))))
