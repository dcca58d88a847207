"""What a listing alone leaves open, and what must not be built on it (format sections 8.6, 10, 12 and 13.1).

A state says what a reader of a snapshot reads. Whoever removes or rewrites needs more: directories that may still be
in the making must not make others obsolete, and layouts that Hive never writes must not be merged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from itertools import pairwise

from acidctl.acid.layout import data_files_of, is_full_acid, straddles, strange_paths
from acidctl.acid.listing import Entry, Listing, TableType, without
from acidctl.acid.names import (
    FLUSH_LENGTH_SUFFIX,
    METADATA_ACID,
    MINL,
    NO_STATEMENT,
    ORC_ACID_VERSION,
    AcidDirectory,
    BucketFile,
    Kind,
    is_hidden,
    is_native_data_file,
    is_union_subdirectory,
    is_visible_path,
    manifest_for,
    parse_file,
)
from acidctl.acid.reasons import Code, Reason, reason
from acidctl.acid.sidefiles import BaseFormat
from acidctl.acid.state import AcidState, EntryKind, State, Verdict, select
from acidctl.acid.writeids import ValidTxns, ValidWriteIds

YOUNG_SECONDS = 3600
"""A staging directory that changed within this time may belong to a writer at work."""


_SIDE_FILES = (f"/{METADATA_ACID}", f"/{ORC_ACID_VERSION}")


def doubtful(listing: Listing, state: AcidState, write_ids: ValidWriteIds, txns: ValidTxns | None) -> dict[str, Reason]:
    """Current directories that may not be finished, with the reason.

    * ``_v`` directories, when nobody said which transactions are committed: Hive 4 writes them in place;
    * directories with a manifest ``-tmp.<name>`` beside them: a direct insert at work, or dead (section 1.4);
    * directories in which something lies that Hive never puts there: a file of somebody else's may have made the name;
    * bases without the mark of a compaction, when nobody said which write ids are committed: an INSERT OVERWRITE that
      is at work, or aborted, looks like one that is committed.
    """
    looks_inside = bool(state.in_state(State.OBSOLETE))
    return _doubts(listing, state.in_state(State.CURRENT), write_ids, txns, looks_inside=looks_inside)


def _doubts(
    listing: Listing,
    verdicts: Iterable[Verdict],
    write_ids: ValidWriteIds,
    txns: ValidTxns | None,
    *,
    looks_inside: bool,
) -> dict[str, Reason]:
    tops = {entry.path.partition("/")[0] for entry in listing.entries}
    manifests = {target: name for name in tops if (target := manifest_for(name))}
    children = listing.by_child if looks_inside else {}
    found = {}
    for verdict in verdicts:
        directory, by = verdict.directory, (verdict.name,)
        if directory is None:
            continue
        if directory.visibility_txn and txns is None:
            found[verdict.name] = reason(
                Code.TRANSACTION_UNKNOWN, by=by, ids=(directory.visibility_txn,), how="transaction"
            )
        elif strange := next(strange_paths(children.get(verdict.name, ()), listing.table_type), ""):
            found[verdict.name] = reason(Code.STRANGE_PATH, by=by, path=strange)
        elif directory.kind is Kind.BASE and not _holds_anything(listing.files_by_child.get(verdict.name, ())):
            found[verdict.name] = reason(Code.EMPTY_BASE, by=by)
        elif verdict.name in manifests:
            found[verdict.name] = reason(Code.WRITER_AT_WORK, by=(manifests[verdict.name],), how="manifest-beside")
        elif verdict.kind is EntryKind.BASE and write_ids.is_everything and not _is_marked(verdict):
            found[verdict.name] = reason(
                Code.TRANSACTION_UNKNOWN, by=by, ids=(directory.max_write_id,), how="overwrite"
            )
        elif directory.kind is Kind.DELTA and write_ids.is_everything and _is_streaming(verdict.name, listing):
            found[verdict.name] = reason(Code.WRITER_AT_WORK, by=by, how="open-stream")
    return found


def _is_marked(base: Verdict) -> bool:
    """Whether a base says that a compaction made it, or was made of original files alone, which only compactions do."""
    return base.compacted or (base.directory is not None and base.directory.max_write_id == MINL)


def _is_streaming(name: str, listing: Listing) -> bool:
    return any(entry.path.endswith(FLUSH_LENGTH_SUFFIX) for entry in listing.files_by_child.get(name, ()))


def unmarked_bases(listing: Listing, state: AcidState) -> set[str]:
    """Bases that count as an aborted INSERT OVERWRITE but that Hive 2 may have compacted.

    Hive 3 takes every base without ``_metadata_acid`` for an INSERT OVERWRITE, and leaves it out when its write id is
    aborted. Hive 2 marked none of its bases, and an aborted id was the highest of many a compaction (section 6.5). A
    base that has no ``_orc_acid_version`` either, which Hive 3 writes everywhere, may hold all rows of the table.
    """
    found = set()
    for verdict in state.in_state(State.ABORTED):
        if verdict.directory is None or verdict.directory.kind is not Kind.BASE or verdict.directory.visibility_txn:
            continue
        names = {entry.path.rpartition("/")[2] for entry in listing.files_by_child.get(verdict.name, ())}
        if ORC_ACID_VERSION not in names and any(is_native_data_file(name) for name in names):
            found.add(verdict.name)
    return found


def only_by_doubt(
    listing: Listing,
    state: AcidState,
    write_ids: ValidWriteIds,
    txns: ValidTxns | None,
    base_formats: Mapping[str, BaseFormat],
    *,
    known: Iterable[str] | None = None,
    others: Callable[[AcidState], Iterable[str]] = lambda _: (),
) -> set[str]:
    """Obsolete and aborted entries that would be neither without the doubtful directories.

    Without those another directory may be read that is doubtful as well, such as the base of an INSERT OVERWRITE below
    that of a compaction; it goes, too, until nothing is left that is read and not sure.

    Args:
        known: the doubtful directories, where they were found a moment ago.
        others: what else is doubtful of what a state reads.
    """
    doubts = set(doubtful(listing, state, write_ids, txns) if known is None else known)
    # A _v directory that is not current now may still be what makes others obsolete by way of it.
    if txns is None:
        doubts |= {v.name for v in state.verdicts if v.directory and v.directory.visibility_txn}
    if not doubts:
        return set()
    doubts |= _stacked(listing, state, write_ids, txns, doubts)
    more = doubts
    while more:
        sure = without(listing, doubts)
        bare = select(sure, write_ids, txns, base_formats)
        more = {*doubtful(sure, bare, write_ids, txns), *others(bare)} - doubts
        doubts |= more
    still = {verdict.name for verdict in _removable(bare)}
    aborted = {verdict.name for verdict in state.in_state(State.ABORTED)}
    return {verdict.name for verdict in _removable(state)} - still - (doubts & aborted)


def _stacked(
    listing: Listing, state: AcidState, write_ids: ValidWriteIds, txns: ValidTxns | None, doubts: Set[str]
) -> set[str]:
    """Return the doubtful bases above the highest sure one: each would be read once those above it are gone.

    A table that is overwritten every hour has hundreds of them, so they are removed together. If a delta is doubtful as
    well, or a base cannot be chosen, the order matters, and they are removed one by one.
    """
    found = [one for one in state.verdicts if one.directory and one.state in (State.CURRENT, State.OBSOLETE)]
    unsure = doubts | _doubts(listing, found, write_ids, txns, looks_inside=True).keys()
    bases = {one.name: one.directory for one in found if one.directory and one.directory.kind is Kind.BASE}
    if not write_ids.is_everything or any(one.name in unsure and one.name not in bases for one in found):
        return set()
    sure = max((base.max_write_id for name, base in bases.items() if name not in unsure), default=MINL - 1)
    return {name for name, base in bases.items() if base.max_write_id > sure}


def _removable(state: AcidState) -> Iterator[Verdict]:
    return (verdict for verdict in state.verdicts if verdict.state in (State.OBSOLETE, State.ABORTED))


def half_finished(state: AcidState, *, committed_too: bool = False) -> dict[str, str]:
    """Obsolete deltas that only a lone wide twin hides (rule V11), with the name of that twin.

    A minor compaction shows a delta and a delete delta of one range by two renames. Between them, and for good when
    it dies there, the one hides narrower directories of the *other* kind, whose events it does not hold.

    Args:
        committed_too: also where the twin has a visibility id: both appear at once then, so that a lone one is wrong
            only if rows show it.
    """
    current = {verdict.name: verdict.directory for verdict in state.deltas if verdict.directory}
    kinds = {(one.range, one.kind) for one in current.values()}
    found = {}
    for verdict in state.in_state(State.OBSOLETE):
        delta = verdict.directory
        if delta is None or delta.kind is Kind.BASE or verdict.reason.code is not Code.SUPERSEDED_BY_DELTA:
            continue
        for wide in (current[name] for name in verdict.reason.by if name in current):
            if (committed_too or not wide.visibility_txn) and (wide.range, delta.kind) not in kinds:
                found[verdict.name] = wide.name
    return found


def live_writers(listing: Listing, state: AcidState, now: float) -> list[str]:
    """Signs of a writer at work, as paths (sections 1.4 and 12).

    Args:
        now: seconds since the epoch.
    """
    current = state.current_names
    found = set()
    for entry in listing.entries:
        name = entry.path.partition("/")[0]
        young = entry.modified is not None and now - entry.modified < YOUNG_SECONDS
        if name in current and entry.path.endswith(FLUSH_LENGTH_SUFFIX):
            found.add(entry.path)
        elif manifest_for(name) or (name.startswith(".hive-staging") and young):
            found.add(name)
    return sorted(found)


@dataclass(frozen=True, slots=True)
class LayoutProblem:
    """Something that Hive never writes.

    Attributes:
        rule: of format section 13.1.
        path: relative to the location.
        others: what it collides with.
        reason: what is wrong, with the paths.
    """

    rule: str
    path: str
    others: tuple[str, ...]
    reason: Reason


def layout_problems(listing: Listing, state: AcidState) -> list[LayoutProblem]:
    """Layouts that Hive reads but never writes: rules V1, V5, V7, V9, V10, V17, V18, V22, V25, V45."""
    children = listing.files_by_child
    current = [verdict.directory for verdict in (state.base, *state.deltas) if verdict and verdict.directory]
    found = []
    spelled: dict[str, AcidDirectory] = {}
    for directory in current:
        other = spelled.setdefault(directory.canonical_name, directory)
        if other is not directory:
            found.append(LayoutProblem("V5", directory.name, (other.name,), spelled_twice(other, directory)))
    found += straddling(state)
    found += _twins(state)
    for kind in (Kind.DELTA, Kind.DELETE_DELTA):
        ranges = sorted((d for d in current if d.kind is kind), key=lambda d: d.range)
        for one, next_one in pairwise(ranges):
            if one.max_write_id >= next_one.min_write_id and one.range != next_one.range:
                overlap = reason(Code.OVERLAP, by=(one.name, next_one.name), how="ranges")
                found.append(LayoutProblem("V7", next_one.name, (one.name,), overlap))
    if listing.table_type is TableType.INSERT_ONLY:
        return found + list(_of_insert_only(listing, state, current))
    if current or state.originals:
        beside = [reason(Code.PARTITION_BESIDE, path=name) for name in listing.partitions]
        found += [LayoutProblem("V45", name, (), why) for name, why in zip(listing.partitions, beside, strict=True)]
    for directory in current:
        if directory.kind is Kind.DELETE_DELTA and directory.name != directory.canonical_name:
            why = reason(Code.UNPADDED_DELETES, by=(directory.name,), name=directory.canonical_name)
            found.append(LayoutProblem("V1", directory.name, (), why))
    for directory in current:
        found += _file_problems(directory, children.get(directory.name, []))
        found += _mixed(directory, children.get(directory.name, []))
    return found + list(_refused_names(listing, state))


def _of_insert_only(listing: Listing, state: AcidState, current: Iterable[AcidDirectory]) -> Iterator[LayoutProblem]:
    """In an insert-only table every visible file of a directory is data, whatever it is called."""
    for directory in current:
        if directory.kind is Kind.DELETE_DELTA:
            yield LayoutProblem("V45", directory.name, (), reason(Code.DELETES_ARE_ROWS, by=(directory.name,)))
        for entry in listing.by_child.get(directory.name, ()):
            at = entry.path.split("/")[1:-1]
            if not entry.is_dir and is_visible_path(entry.path) and not all(map(is_union_subdirectory, at)):
                why = reason(Code.STRAY_FILE, by=(directory.name,), path=entry.path, how="nested")
                yield LayoutProblem("V17", entry.path, (), why)
    yield from _refused_names(listing, state)


def _holds_anything(files: Iterable[Entry]) -> bool:
    """Whether Hive 4 sees the directory: it needs a visible file, or one of Hive's side files, in it."""
    return any(is_visible_path(entry.path) or entry.path.endswith(_SIDE_FILES) for entry in files)


def _refused_names(listing: Listing, state: AcidState) -> Iterator[LayoutProblem]:
    """Names on which Hive fails, or that some version of Hive reads differently (V1, V2, V15, V18, V22)."""
    if state.base and not _holds_anything(listing.files_by_child.get(state.base.name, ())):
        yield LayoutProblem("V15", state.base.name, (), reason(Code.EMPTY_BASE, by=(state.base.name,)))
    if state.base and is_full_acid(listing):
        for entry in listing.files_by_child.get(state.base.name, ()):
            name = entry.path.rpartition("/")[2]
            if is_visible_path(entry.path) and parse_file(name) is None and not name.startswith("bucket_"):
                why = reason(Code.STRAY_FILE, by=(state.base.name,), path=entry.path, how="name")
                yield LayoutProblem("V22", entry.path, (), why)
    for verdict in state.verdicts:
        if verdict.reason.code is Code.UNPARSEABLE:
            yield LayoutProblem("V1", verdict.name, (), reason(Code.UNPARSEABLE, by=(verdict.name,)))
    for verdict in state.in_state(State.CURRENT) if is_full_acid(listing) else ():
        if verdict.reason.code is Code.ORIGINAL_WITHOUT_BUCKET:
            yield LayoutProblem("V18", verdict.reason.value("path"), (), verdict.reason)


def _twins(state: AcidState) -> Iterator[LayoutProblem]:
    """Rule V10: committed deltas of the same kind and range; acidctl reads only the latest."""
    deltas = {verdict.name: verdict.directory for verdict in state.deltas if verdict.directory}
    for verdict in state.in_state(State.OBSOLETE):
        one = verdict.directory
        for other in (deltas[name] for name in verdict.reason.by if name in deltas):
            if one and _differ_in_visibility(one, other):
                why = reason(Code.OVERLAP, by=(one.name, other.name), how="twins")
                yield LayoutProblem("V10", one.name, (other.name,), why)


def _differ_in_visibility(one: AcidDirectory, other: AcidDirectory) -> bool:
    same = (one.kind, one.range, one.statement_id) == (other.kind, other.range, NO_STATEMENT)
    return same and other.statement_id == NO_STATEMENT and one.visibility_txn != other.visibility_txn


def straddling(state: AcidState) -> Iterator[LayoutProblem]:
    """Rule V9: deltas of which the base holds a part."""
    base = state.base.directory if state.base else None
    for delta in (verdict.directory for verdict in state.deltas if base):
        if base and delta and straddles(delta, base.max_write_id):
            why = reason(Code.OVERLAP, by=(delta.name, base.name), how="straddles")
            yield LayoutProblem("V9", delta.name, (base.name,), why)


def spelled_twice(one: AcidDirectory, other: AcidDirectory) -> Reason:
    """Rule V5."""
    return reason(Code.OVERLAP, by=(one.name, other.name), how="spelling")


def _mixed(directory: AcidDirectory, files: list[Entry]) -> Iterator[LayoutProblem]:
    """Files with and without ids in one directory: the numbers of the latter's rows are those of the former."""
    filled = [file for file in data_files_of(directory, files) if file.size]
    raw = [file.path for file in filled if not file.native_name]
    if raw and len(raw) < len(filled):
        why = reason(Code.STRAY_FILE, by=(directory.name,), how="beside", file=raw[0].partition("/")[2])
        yield LayoutProblem("V25", directory.name, tuple(raw), why)


def _file_problems(directory: AcidDirectory, files: list[Entry]) -> Iterator[LayoutProblem]:
    buckets: dict[int, str] = {}
    native = any(is_native_data_file(entry.path.rpartition("/")[2]) for entry in files)
    for entry in files:
        parts = entry.path.split("/")
        if any(is_hidden(part) for part in parts):
            continue
        if len(parts) > 2 and (native or not all(map(is_union_subdirectory, parts[1:-1]))):
            nested = reason(Code.STRAY_FILE, by=(directory.name,), path=entry.path, how="nested")
            yield LayoutProblem("V17", entry.path, (), nested)
            continue
        parsed = parse_file(parts[-1])
        if isinstance(parsed, BucketFile):
            if parsed.bucket in buckets:
                other = buckets[parsed.bucket]
                why = reason(Code.STRAY_FILE, by=(directory.name,), path=entry.path, other=other, how="second")
                yield LayoutProblem("V22", entry.path, (other,), why)
            buckets.setdefault(parsed.bucket, entry.path)
        elif is_native_data_file(parts[-1]):
            why = reason(Code.STRAY_FILE, by=(directory.name,), path=entry.path, how="no-bucket")
            yield LayoutProblem("V22", entry.path, (), why)
