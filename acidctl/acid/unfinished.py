"""Find what one listing leaves undecided, so that nothing is built on it (format sections 8.6, 10, 12 and 13.1).

A state describes what a reader of a snapshot reads. A command that removes or rewrites needs more: directories that may
be unfinished must not make others obsolete, and layouts that Hive never writes must not be merged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Set
from dataclasses import dataclass
from itertools import pairwise

from acidctl.acid.layout import filled_of, straddles, strange_paths, tables_below
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
    acid_directory,
    is_hidden,
    is_native_data_file,
    is_union_subdirectory,
    is_visible_path,
    manifest_for,
    parse_file,
)
from acidctl.acid.reasons import Code, Reason, reason
from acidctl.acid.state import AcidState, EntryKind, Lists, State, Verdict
from acidctl.acid.writeids import ValidTxns, ValidWriteIds

YOUNG_SECONDS = 3600
"""A staging directory that changed within this time may belong to a writer at work."""


_SIDE_FILES = (f"/{METADATA_ACID}", f"/{ORC_ACID_VERSION}")


def doubtful(listing: Listing, state: AcidState, lists: Lists) -> dict[str, Reason]:
    """Return the current directories that may not be finished, with the reason.

    * ``_v`` directories, if no list of transactions was given: Hive 4 writes them in place; * directories with a
    manifest ``-tmp.<name>`` beside them: a direct insert that is at work, or dead (section 1.4); * directories with an
    entry that Hive never writes: another program may have made the directory; * bases without the mark of a compaction,
    if no list of write ids was given: an INSERT OVERWRITE that is at work, or aborted, looks like a committed one.
    """
    looks_inside = bool(state.in_state(State.OBSOLETE))
    return _doubts(listing, state.in_state(State.CURRENT), lists, looks_inside=looks_inside)


def _doubts(
    listing: Listing,
    verdicts: Iterable[Verdict],
    lists: Lists,
    *,
    looks_inside: bool,
) -> dict[str, Reason]:
    tops = {entry.path.partition("/")[0] for entry in listing.entries}
    manifests = {target: name for name in tops if (target := manifest_for(name))}
    children = listing.by_child if looks_inside else {}
    doubts = {}
    for verdict in verdicts:
        directory, by = verdict.directory, (verdict.name,)
        if directory is None:
            continue
        if directory.visibility_txn and lists.txns is None:
            doubts[verdict.name] = reason(
                Code.TRANSACTION_UNKNOWN, by=by, ids=(directory.visibility_txn,), how="transaction"
            )
        elif strange := next(strange_paths(children.get(verdict.name, ()), listing.table_type), ""):
            doubts[verdict.name] = reason(Code.STRANGE_PATH, by=by, path=strange)
        elif directory.kind is Kind.BASE and not _holds_anything(listing.files_by_child.get(verdict.name, ())):
            doubts[verdict.name] = reason(Code.EMPTY_BASE, by=by)
        elif verdict.name in manifests:
            doubts[verdict.name] = reason(Code.WRITER_AT_WORK, by=(manifests[verdict.name],), how="manifest-beside")
        elif verdict.kind is EntryKind.BASE and lists.write_ids.is_everything and not _is_marked(verdict):
            doubts[verdict.name] = reason(
                Code.TRANSACTION_UNKNOWN, by=by, ids=(directory.max_write_id,), how="overwrite"
            )
        elif directory.kind is Kind.DELTA and lists.write_ids.is_everything and _is_streaming(verdict.name, listing):
            doubts[verdict.name] = reason(Code.WRITER_AT_WORK, by=by, how="open-stream")
    return doubts


def _is_marked(base: Verdict) -> bool:
    """Return whether only a compaction can have made a base: by its mark, or because it has original files alone."""
    return base.compacted or (base.directory is not None and base.directory.max_write_id == MINL)


def _is_streaming(name: str, listing: Listing) -> bool:
    return any(entry.path.endswith(FLUSH_LENGTH_SUFFIX) for entry in listing.files_by_child.get(name, ()))


def unmarked_bases(listing: Listing, state: AcidState) -> set[str]:
    """Return the bases that count as an aborted INSERT OVERWRITE but that Hive 2 may have compacted.

    Hive 3 treats every base without ``_metadata_acid`` as an INSERT OVERWRITE, and skips it if its write id is aborted.
    Hive 2 marked none of its bases, and often an aborted id was the highest of a compaction (section 6.5). A base that
    also lacks ``_orc_acid_version``, which Hive 3 writes everywhere, may hold all rows of the table.
    """
    bases = set()
    for verdict in state.in_state(State.ABORTED):
        if verdict.directory is None or verdict.directory.kind is not Kind.BASE or verdict.directory.visibility_txn:
            continue
        names = {entry.path.rpartition("/")[2] for entry in listing.files_by_child.get(verdict.name, ())}
        if ORC_ACID_VERSION not in names and any(is_native_data_file(name) for name in names):
            bases.add(verdict.name)
    return bases


def only_by_doubt(
    listing: Listing,
    state: AcidState,
    lists: Lists,
    *,
    known: Iterable[str] | None = None,
    others: Callable[[AcidState], Iterable[str]] = lambda _: (),
) -> set[str]:
    """Return the obsolete and aborted entries that would be neither without the doubtful directories.

    Without those, another doubtful directory may become current, such as the base of an INSERT OVERWRITE below that of
    a compaction; it is removed as well, until every current directory is sure.

    Args:
        known: the doubtful directories, if they were just computed.
        others: returns further doubtful directories among those that a state reads.
    """
    doubts = set(doubtful(listing, state, lists) if known is None else known)
    # A _v directory that is not current may still make others obsolete indirectly.
    if lists.txns is None:
        doubts |= {v.name for v in state.verdicts if v.directory and v.directory.visibility_txn}
    if not doubts:
        return set()
    doubts |= _stacked(listing, state, lists, doubts)
    more = doubts
    while more:
        sure = without(listing, doubts)
        bare = lists.select(sure)
        more = {*doubtful(sure, bare, lists), *others(bare)} - doubts
        doubts |= more
    removable = {verdict.name for verdict in bare.removable}
    aborted = {verdict.name for verdict in state.in_state(State.ABORTED)}
    return {verdict.name for verdict in state.removable} - removable - (doubts & aborted)


def _stacked(listing: Listing, state: AcidState, lists: Lists, doubts: Set[str]) -> set[str]:
    """Return the doubtful bases above the highest sure base: each would be read once those above it are gone.

    A table that is overwritten every hour has hundreds of them, so they are removed together. If a delta is doubtful as
    well, or a base cannot be chosen, the order matters, and they are removed one by one.
    """
    usable = [v for v in state.verdicts if v.directory and v.state in (State.CURRENT, State.OBSOLETE)]
    unsure = doubts | _doubts(listing, usable, lists, looks_inside=True).keys()
    bases = {v.name: v.directory for v in usable if v.directory and v.directory.kind is Kind.BASE}
    if not lists.write_ids.is_everything or any(v.name in unsure and v.name not in bases for v in usable):
        return set()
    sure = max((base.max_write_id for name, base in bases.items() if name not in unsure), default=MINL - 1)
    return {name for name, base in bases.items() if base.max_write_id > sure}


def half_finished(state: AcidState, *, committed_too: bool = False) -> dict[str, str]:
    """Return the obsolete deltas that only a lone wide twin hides (rule V11), with the name of that twin.

    A minor compaction publishes a delta and a delete delta of one range by two renames. Between them, and permanently
    if it dies there, the first one hides narrower directories of the *other* kind, whose events it does not hold.

    Args:
        committed_too: include twins with a visibility id: both appear at once, so that a lone one is wrong only if rows
            show it.
    """
    current = {verdict.name: verdict.directory for verdict in state.deltas if verdict.directory}
    kinds = {(delta.range, delta.kind) for delta in current.values()}
    hidden = {}
    for verdict in state.in_state(State.OBSOLETE):
        delta = verdict.directory
        if delta is None or delta.kind is Kind.BASE or verdict.reason.code is not Code.SUPERSEDED_BY_DELTA:
            continue
        for wide in (current[name] for name in verdict.reason.by if name in current):
            if (committed_too or not wide.visibility_txn) and (wide.range, delta.kind) not in kinds:
                hidden[verdict.name] = wide.name
    return hidden


def unproven(
    listing: Listing,
    state: AcidState,
    lists: Lists,
    faults: Callable[[AcidState], Iterable[tuple[str, Reason]]],
) -> dict[str, Reason]:
    """Return the obsolete and aborted entries that one listing does not prove to be so, with the reason.

    Args:
        faults: yields the directories of a state that readers cannot read, with the reason.
    """
    doubts = doubtful(listing, state, lists)
    doubts.update((name, why) for name, why in faults(state) if name not in doubts)
    hidden = only_by_doubt(listing, state, lists, known=doubts, others=lambda bare: dict(faults(bare)))
    return {
        **dict.fromkeys(hidden, reason(Code.ONLY_BY_DOUBT, *doubts.values())),
        **{name: reason(Code.HALF_A_MINOR, by=(wide,), how="hides") for name, wide in half_finished(state).items()},
        **{twin.path: twin.reason for twin in twins(state)},
        **dict.fromkeys(unmarked_bases(listing, state), reason(Code.UNMARKED_BASE)),
    }


def live_writers(listing: Listing, state: AcidState, now: float) -> list[str]:
    """Return the paths that show a writer at work (sections 1.4 and 12).

    Args:
        now: seconds since the epoch.
    """
    current = state.current_names
    signs = set()
    for entry in listing.entries:
        name = entry.path.partition("/")[0]
        young = entry.modified is not None and now - entry.modified < YOUNG_SECONDS
        if name in current and entry.path.endswith(FLUSH_LENGTH_SUFFIX):
            signs.add(entry.path)
        elif manifest_for(name) or (name.startswith(".hive-staging") and young):
            signs.add(name)
    return sorted(signs)


@dataclass(frozen=True, slots=True)
class LayoutProblem:
    """A layout that Hive never writes.

    Attributes:
        rule: its name in format section 13.1.
        path: relative to the location.
        others: the paths that it collides with.
    """

    rule: str
    path: str
    others: tuple[str, ...]
    reason: Reason


def layout_problems(listing: Listing, state: AcidState) -> list[LayoutProblem]:
    """Return layouts that Hive reads but never writes: rules V1, V5, V7, V9, V10, V17, V18, V22, V25, V45."""
    children = listing.files_by_child
    current = [verdict.directory for verdict in (state.base, *state.deltas) if verdict and verdict.directory]
    problems = []
    spelled: dict[str, AcidDirectory] = {}
    for directory in current:
        other = spelled.setdefault(directory.canonical_name, directory)
        if other is not directory:
            problems.append(LayoutProblem("V5", directory.name, (other.name,), spelled_twice(other, directory)))
    problems += straddling(state)
    problems += twins(state)
    for kind in (Kind.DELTA, Kind.DELETE_DELTA):
        ranges = sorted((d for d in current if d.kind is kind), key=lambda d: d.range)
        for lower, upper in pairwise(ranges):
            if lower.max_write_id >= upper.min_write_id and lower.range != upper.range:
                overlap = reason(Code.OVERLAP, by=(lower.name, upper.name), how="ranges")
                problems.append(LayoutProblem("V7", upper.name, (lower.name,), overlap))
    problems += _below_folders(listing, state, current)
    if listing.table_type is TableType.INSERT_ONLY:
        return problems + list(_of_insert_only(listing, state, current))
    for directory in current:
        if directory.kind is Kind.DELETE_DELTA:
            problems += _unpadded_deletes(directory, children.get(directory.name, []))
    is_full = listing.is_full_acid
    for directory in current:
        problems += _file_problems(directory, children.get(directory.name, []))
        problems += _mixed(directory, children.get(directory.name, []), is_full=is_full)
    return problems + list(_refused_names(listing, state))


def _below_folders(listing: Listing, state: AcidState, current: Iterable[AcidDirectory]) -> Iterator[LayoutProblem]:
    """Yield ``k=v`` folders beside data, and ACID directories in other folders: Hive 4 reads what is in them."""
    how = "insert-only" if listing.table_type is TableType.INSERT_ONLY else "full-acid"
    for name in listing.partitions if current or state.originals else ():
        yield LayoutProblem("V45", name, (), reason(Code.PARTITION_BESIDE, path=name, how=how))
    # A folder without ACID directories, of a table that nobody knows, may hold tables.
    for path in tables_below(listing) if current or listing.table_type else ():
        yield LayoutProblem("V45", path, (), reason(Code.DEEP_DIRECTORY, path=path))


def _unpadded_deletes(directory: AcidDirectory, files: Iterable[Entry]) -> Iterator[LayoutProblem]:
    """Yield the names in a delete delta by which Hive does not find deletes: it makes paths of the numbers in them."""
    if directory.name != directory.canonical_name:
        why = reason(Code.UNPADDED_DELETES, by=(directory.name,), name=directory.canonical_name, how="directory")
        yield LayoutProblem("V1", directory.name, (), why)
    for entry in files:
        parsed = parse_file(entry.path.partition("/")[2])
        if isinstance(parsed, BucketFile) and parsed.name != parsed.canonical_name:
            why = reason(Code.UNPADDED_DELETES, by=(entry.path,), how="file")
            yield LayoutProblem("V1", entry.path, (), why)


def _of_insert_only(listing: Listing, state: AcidState, current: Iterable[AcidDirectory]) -> Iterator[LayoutProblem]:
    """Yield the problems of an insert-only table, in which every visible file of a directory is data."""
    for directory in current:
        if directory.kind is Kind.DELETE_DELTA:
            yield LayoutProblem("V45", directory.name, (), reason(Code.DELETES_ARE_ROWS, by=(directory.name,)))
        for entry in listing.by_child.get(directory.name, ()):
            folders = entry.path.split("/")[1:-1]
            if not entry.is_dir and is_visible_path(entry.path) and not all(map(is_union_subdirectory, folders)):
                why = reason(Code.STRAY_FILE, by=(directory.name,), path=entry.path, how="nested")
                yield LayoutProblem("V17", entry.path, (), why)
    yield from _refused_names(listing, state)


def _holds_anything(files: Iterable[Entry]) -> bool:
    """Return whether Hive 4 sees a directory: it needs a visible file, or one of Hive's side files, in it."""
    return any(is_visible_path(entry.path) or entry.path.endswith(_SIDE_FILES) for entry in files)


def _refused_names(listing: Listing, state: AcidState) -> Iterator[LayoutProblem]:
    """Yield names on which Hive fails, or that some version of Hive reads differently (V1, V2, V15, V18, V22)."""
    if state.base and not _holds_anything(listing.files_by_child.get(state.base.name, ())):
        yield LayoutProblem("V15", state.base.name, (), reason(Code.EMPTY_BASE, by=(state.base.name,)))
    if state.base and listing.is_full_acid:
        for entry in listing.files_by_child.get(state.base.name, ()):
            name = entry.path.rpartition("/")[2]
            if is_visible_path(entry.path) and parse_file(name) is None and not name.startswith("bucket_"):
                why = reason(Code.STRAY_FILE, by=(state.base.name,), path=entry.path, how="name")
                yield LayoutProblem("V22", entry.path, (), why)
    for verdict in state.verdicts:
        if verdict.reason.code is Code.UNPARSEABLE:
            yield LayoutProblem("V1", verdict.name, (), reason(Code.UNPARSEABLE, by=(verdict.name,)))
    for verdict in state.in_state(State.CURRENT) if listing.is_full_acid else ():
        if verdict.reason.code is Code.ORIGINAL_WITHOUT_BUCKET:
            yield LayoutProblem("V18", verdict.reason.value("path"), (), verdict.reason)


def twins(state: AcidState) -> Iterator[LayoutProblem]:
    """Yield violations of rule V10: visible results of one range; acidctl reads only the latest."""
    best = state.base.directory if state.base and state.base.compacted else None
    for verdict in state.in_state(State.OBSOLETE):
        base = verdict.directory
        if best and base and verdict.compacted and (base.kind, base.range) == (best.kind, best.range):
            why = reason(Code.OVERLAP, by=(base.name, best.name), how="base-twins")
            yield LayoutProblem("V10", base.name, (best.name,), why)
    deltas = {verdict.name: verdict.directory for verdict in state.deltas if verdict.directory}
    for verdict in state.in_state(State.OBSOLETE):
        delta = verdict.directory
        for other in (deltas[name] for name in verdict.reason.by if name in deltas):
            if delta and _differ_in_visibility(delta, other):
                how = "delete-twins" if delta.kind is Kind.DELETE_DELTA else "twins"
                why = reason(Code.OVERLAP, by=(delta.name, other.name), how=how)
                yield LayoutProblem("V10", delta.name, (other.name,), why)


def _differ_in_visibility(one: AcidDirectory, other: AcidDirectory) -> bool:
    same = (one.kind, one.range, one.statement_id) == (other.kind, other.range, NO_STATEMENT)
    return same and other.statement_id == NO_STATEMENT and one.visibility_txn != other.visibility_txn


def straddling(state: AcidState) -> Iterator[LayoutProblem]:
    """Yield violations of rule V9: deltas that the base holds in part."""
    base = state.base.directory if state.base else None
    for delta in (verdict.directory for verdict in state.deltas if base):
        if base and delta and straddles(delta, base.max_write_id):
            why = reason(Code.OVERLAP, by=(delta.name, base.name), how="straddles")
            yield LayoutProblem("V9", delta.name, (base.name,), why)


def spelled_twice(one: AcidDirectory, other: AcidDirectory) -> Reason:
    """Return the reason for rule V5: two spellings of one name."""
    return reason(Code.OVERLAP, by=(one.name, other.name), how="spelling")


def _mixed(directory: AcidDirectory, files: list[Entry], *, is_full: bool) -> Iterator[LayoutProblem]:
    """Yield directories with and without row ids in their files, whose rows get the same numbers, and wide deltas
    without them in a full-ACID table, which Hive does not read.
    """
    native, raw = filled_of(files)
    if raw and directory.kind is Kind.DELTA and directory.min_write_id != directory.max_write_id and is_full:
        why = reason(Code.STRAY_FILE, by=(directory.name,), path=raw[0], how="wide")
        yield LayoutProblem("V25", directory.name, tuple(raw), why)
    elif raw and native:
        how = "beside-in-base" if directory.kind is Kind.BASE else "beside"
        why = reason(Code.STRAY_FILE, by=(directory.name,), how=how, file=raw[0].partition("/")[2])
        yield LayoutProblem("V25", directory.name, tuple(raw), why)


def _file_problems(directory: AcidDirectory, files: list[Entry]) -> Iterator[LayoutProblem]:
    buckets: dict[int, str] = {}
    native = any(is_native_data_file(entry.path.rpartition("/")[2]) for entry in files)
    for entry in files:
        parts = entry.path.split("/")
        if any(map(is_hidden, parts)):
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


# --- lists and metastores that are older than the listing ----------------------------------------------------------
#
# Lists are taken first, a location is listed later. If a compaction ended in between, a cleaner may have removed what
# it replaced, while the older lists do not see its result: the rest looks complete. Newer lists, taken after the
# listing, show it: as long as a result counts for no reader, nothing that it replaces is removed.
#
# A metastore that was restored from a backup is detected by ids: a writer gets its write id before it makes a
# directory, and a compactor its transaction before it puts the id into a name. So no listing may hold an id above
# every id that the metastore, queried later, has ever allocated.


def unseen_results(listing: Listing, write_ids: ValidWriteIds, txns: ValidTxns) -> tuple[AcidDirectory, ...]:
    """Return the directories that may be results of compactions which the lists do not see."""
    names = (entry.path for entry in listing.entries if entry.is_dir and "/" not in entry.path)
    directories = (acid_directory(name) for name in names)
    return tuple(
        directory
        for directory in directories
        if directory
        and (directory.visibility_txn or directory.kind is Kind.BASE)
        and not txns.is_aborted(directory.visibility_txn)
        and not _is_seen(directory, write_ids, txns)
    )


def is_overtaken(unseen: Iterable[AcidDirectory], write_ids: ValidWriteIds, txns: ValidTxns) -> bool:
    """Return whether lists that were taken after the listing see directories that the older lists did not."""
    return any(_is_seen(directory, write_ids, txns) for directory in unseen)


def named_above(listing: Listing, write_id: int, txn: int) -> tuple[AcidDirectory, ...]:
    """Return the directories whose names hold a write id, or a transaction id, above these."""
    names = (entry.path for entry in listing.entries if entry.is_dir and "/" not in entry.path)
    directories = (acid_directory(name) for name in names)
    return tuple(d for d in directories if d and (d.max_write_id > write_id or d.visibility_txn > txn))


def _is_seen(directory: AcidDirectory, write_ids: ValidWriteIds, txns: ValidTxns) -> bool:
    if directory.visibility_txn and not txns.is_valid(directory.visibility_txn):
        return False
    return directory.kind is not Kind.BASE or write_ids.is_valid_base(directory.max_write_id)
