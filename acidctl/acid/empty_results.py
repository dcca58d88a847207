"""Results of compactions that hold nothing, and hide what does.

Hive 4 compacts by MapReduce without finding a file where a path is not ASCII, and publishes what came of that: a base
or a delta without a file, for which readers leave out what they read before, and which the next cleaner removes. A
table whose rows were all deleted looks the same: whether rows are lost, only their ids tell.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from acidctl.acid.layout import data_bytes_of, is_full_acid
from acidctl.acid.listing import Entry, Listing
from acidctl.acid.names import MINL, ORC_ACID_VERSION, AcidDirectory, Kind
from acidctl.acid.state import AcidState, State, Verdict


@dataclass(frozen=True, slots=True)
class EmptyResult:
    """A compaction's result without a data file.

    Attributes:
        is_read: whether readers go by it now; else by another, which was made of what readers saw then.
        replaced: names of the directories and original files that it took the place of, and that are still there;
            some have data.
        twins: what the same minor compaction wrote beside it: the delta of a delete delta, or the other way round.
    """

    directory: AcidDirectory
    is_read: bool
    replaced: tuple[str, ...]
    twins: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Of its directory."""
        return self.directory.name


def empty_results(listing: Listing, state: AcidState) -> tuple[EmptyResult, ...]:
    """Those of a full-ACID table that count or have counted, and for which something with data is obsolete.

    What was overwritten or truncated since then is not missed: no such result is among them.
    """
    obsolete = state.in_state(State.OBSOLETE)
    if not obsolete:
        return ()
    files, is_full = listing.files_by_child, is_full_acid(listing)
    some = (*state.in_state(State.CURRENT), *obsolete)
    anew = max((d.max_write_id for v in some if (d := v.directory) and _is_anew(v, d)), default=MINL)
    candidates = [
        (verdict, directory)
        for verdict in some
        if (directory := verdict.directory)
        and directory.max_write_id >= anew
        and _is_made(verdict, directory)
        and not _has_data(verdict.name, files)
        and (is_full or any(entry.path.endswith(f"/{ORC_ACID_VERSION}") for entry in files.get(verdict.name, ())))
    ]
    found = []
    empty = {directory.name for _, directory in candidates}
    deltas = [one for one in obsolete if one.directory and one.directory.kind is not Kind.BASE]  # by their lowest ids
    starts = [one.directory.min_write_id for one in deltas if one.directory]
    same = defaultdict[tuple[tuple[int, int], int], list[AcidDirectory]](list)
    for directory in (one.directory for one in state.verdicts):
        if directory and directory.kind is not Kind.BASE:
            same[directory.range, directory.visibility_txn].append(directory)
    for verdict, directory in candidates:
        near: Sequence[Verdict] = obsolete
        if directory.kind is not Kind.BASE:
            near = deltas[bisect_left(starts, directory.min_write_id) : bisect_right(starts, directory.max_write_id)]
        within = (one.name for one in near if one.name not in empty and _is_within(one.directory, directory))
        replaced = tuple(within)
        if any(_has_data(name, files) for name in replaced):
            beside = same[directory.range, directory.visibility_txn] if directory.kind is not Kind.BASE else ()
            twins = tuple(other.name for other in beside if other.kind is not directory.kind)
            found.append(EmptyResult(directory, verdict.state is State.CURRENT, replaced, twins))
    return tuple(found)


def _has_data(name: str, files: Mapping[str, list[Entry]]) -> bool:
    return data_bytes_of(files.get(name, ())) > 0


def _is_anew(verdict: Verdict, directory: AcidDirectory) -> bool:
    """Whether an INSERT OVERWRITE or a TRUNCATE wrote it: what was before was not to stay."""
    return directory.kind is Kind.BASE and not verdict.compacted


def _is_made(verdict: Verdict, directory: AcidDirectory) -> bool:
    """Whether a compaction made it: a base by its mark, a delta by its name."""
    if directory.kind is Kind.BASE:
        return verdict.compacted
    return bool(directory.visibility_txn) or directory.min_write_id < directory.max_write_id


def _is_within(one: AcidDirectory | None, result: AcidDirectory) -> bool:
    """Whether a compaction of this result may have read a directory, or an original file, which has none."""
    if result.kind is Kind.BASE:
        return one is None or one.max_write_id <= result.max_write_id
    if one is None or one.kind is Kind.BASE:
        return False
    return result.min_write_id <= one.min_write_id and one.max_write_id <= result.max_write_id
