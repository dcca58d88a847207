"""Results of compactions that hold nothing, and hide directories with data.

Hive 4 compacts by MapReduce without finding any file if a path is not ASCII, and publishes the result: a base or a
delta without a file. Readers then ignore the directories that it replaced, and the next cleaner removes them. A table
whose rows were all deleted looks the same: only the row ids show whether rows are lost.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from acidctl.acid.layout import data_bytes_of
from acidctl.acid.listing import Entry, Listing
from acidctl.acid.names import MINL, ORC_ACID_VERSION, AcidDirectory, Kind
from acidctl.acid.state import AcidState, State, Verdict


@dataclass(frozen=True, slots=True)
class EmptyResult:
    """A compaction's result without a data file.

    Attributes:
        is_read: readers use it now; otherwise they use another one, made from what readers saw then.
        replaced: names of the directories and original files that it replaced and that still exist; some have data.
        twins: what the same minor compaction wrote beside it: the delta of a delete delta, or the reverse.
    """

    directory: AcidDirectory
    is_read: bool
    replaced: tuple[str, ...]
    twins: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Return the name of its directory."""
        return self.directory.name


def empty_results(listing: Listing, state: AcidState) -> tuple[EmptyResult, ...]:
    """Return the empty results of a full-ACID table that are or were current and that hide data.

    Results from before the last overwrite or truncation are left out: nobody misses their rows.
    """
    obsolete = state.in_state(State.OBSOLETE)
    if not obsolete:
        return ()
    files, is_full = listing.files_by_child, listing.is_full_acid
    used = (*state.in_state(State.CURRENT), *obsolete)
    # An INSERT OVERWRITE or a TRUNCATE discarded all earlier rows.
    overwrites = [v.directory for v in used if v.directory and v.directory.kind is Kind.BASE and not v.compacted]
    last_overwrite = max((base.max_write_id for base in overwrites), default=MINL)
    candidates = [
        (verdict, directory)
        for verdict in used
        if (directory := verdict.directory)
        and directory.max_write_id >= last_overwrite
        and _is_compacted(verdict, directory)
        and not _has_data(verdict.name, files)
        and (is_full or any(entry.path.endswith(f"/{ORC_ACID_VERSION}") for entry in files.get(verdict.name, ())))
    ]
    results = []
    empty = {directory.name for _, directory in candidates}
    deltas = [v for v in obsolete if v.directory and v.directory.kind is not Kind.BASE]  # by their lowest ids
    starts = [delta.directory.min_write_id for delta in deltas if delta.directory]
    same = defaultdict[tuple[tuple[int, int], int], list[AcidDirectory]](list)
    for directory in (verdict.directory for verdict in state.verdicts):
        if directory and directory.kind is not Kind.BASE:
            same[directory.range, directory.visibility_txn].append(directory)
    for verdict, directory in candidates:
        near: Sequence[Verdict] = obsolete
        if directory.kind is not Kind.BASE:
            near = deltas[bisect_left(starts, directory.min_write_id) : bisect_right(starts, directory.max_write_id)]
        replaced = tuple(v.name for v in near if v.name not in empty and _is_within(v.directory, directory))
        if any(_has_data(name, files) for name in replaced):
            beside = same[directory.range, directory.visibility_txn] if directory.kind is not Kind.BASE else ()
            twins = tuple(other.name for other in beside if other.kind is not directory.kind)
            results.append(EmptyResult(directory, verdict.state is State.CURRENT, replaced, twins))
    return tuple(results)


def _has_data(name: str, files: Mapping[str, list[Entry]]) -> bool:
    return data_bytes_of(files.get(name, ())) > 0


def _is_compacted(verdict: Verdict, directory: AcidDirectory) -> bool:
    """Return whether a compaction made it: a base by its mark, a delta by its name."""
    if directory.kind is Kind.BASE:
        return verdict.compacted
    return bool(directory.visibility_txn) or directory.min_write_id < directory.max_write_id


def _is_within(source: AcidDirectory | None, result: AcidDirectory) -> bool:
    """Return whether a compaction may have read a directory, or an original file (None), for this result."""
    if result.kind is Kind.BASE:
        return source is None or source.max_write_id <= result.max_write_id
    if source is None or source.kind is Kind.BASE:
        return False
    return result.min_write_id <= source.min_write_id and source.max_write_id <= result.max_write_id
