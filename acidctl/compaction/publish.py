"""The publication of a compaction's result: marker files, a second listing of the location, and the rename.

Until the rename all files are in the hidden staging directory; the inputs are never touched. Stores without renames
copy the result file by file; a single data file appears in one step there as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

from acidctl.acid.bucket import encode
from acidctl.acid.compaction_kind import CompactionKind
from acidctl.acid.layout import crossing, straddles
from acidctl.acid.listing import Listing
from acidctl.acid.names import MAXL, METADATA_ACID, ORC_ACID_VERSION, AcidDirectory, Kind
from acidctl.acid.sidefiles import METADATA_ACID_COMPACTED, ORC_ACID_VERSION_2
from acidctl.acid.state import AcidState
from acidctl.base.errors import AcidctlError, ConflictError, RefusedError, StorageError, VerifyError
from acidctl.compaction.plan import CompactionPlan, require_atomic
from acidctl.compaction.proof.checksum import RowProof
from acidctl.compaction.refusals import deletes_above
from acidctl.compaction.tasks import ATTEMPTS, BucketResult, OutputFile
from acidctl.location.change.lock import require_locked
from acidctl.location.change.own_files import OWNER, Owner, write_checked
from acidctl.location.change.publication import (
    INTENT,
    Copy,
    refuse_half_published,
    remove_staging,
    show,
    show_copies,
    shows_by_copies,
)
from acidctl.location.snapshot import Snapshot
from acidctl.storage.port import base_name, join, narrowest, parent_of


def stage_directories(plan: CompactionPlan) -> None:
    """Make the hidden staging directory.

    Raises:
        AccessError, StorageError: the location cannot be written.
    """
    fs = plan.snapshot.fs
    require_place(plan)
    fs.make_dirs(f"{plan.staging}/{ATTEMPTS}", below=plan.snapshot.path)
    write_checked(fs, f"{plan.staging}/{OWNER}", Owner.this().to_bytes())


def require_place(plan: CompactionPlan) -> None:
    """Raise StorageError if the store has neither renames nor copies, so that nothing could be published."""
    fs = plan.snapshot.fs
    if not (fs.can_rename or fs.can_copy):
        raise StorageError(
            f"cannot compact {plan.shown} in place",
            "its store has no rename and no copy that appears in one step, so a result could be seen half-written",
            "copy the location to HDFS or a local disk, compact it there and copy the result back",
        )


def publish(plan: CompactionPlan, results: Sequence[BucketResult], *, offline: bool) -> tuple[str, ...]:
    """Publish the result of a compaction and return the names of the new directories.

    If the store publishes by copies, the caller must hold the lock of the location.

    Args:
        results: one for each task of the plan.
        offline: nothing reads the location meanwhile; this allows the two renames of a minor compaction, and copies of
            several files.

    Raises:
        RefusedError: two renames, or copies of several files, would be needed (section 8.6).
        ConflictError: the location changed in a way that matters, another compaction was first, or the lock is gone.
        VerifyError: the results do not match the plan.
    """
    fs = plan.snapshot.fs
    _prove(plan, results)
    results = sorted(results, key=lambda result: result.bucket)  # files may appear one by one, always in this order
    inserts = [result.inserts for result in results if result.inserts]
    deletes = [result.deletes for result in results if result.deletes]
    outputs: dict[str, Sequence[OutputFile]] = {}
    # The insert delta comes last: a reader in between misses rows, but sees no deleted ones.
    if deletes and plan.delete_name:
        outputs[plan.delete_name] = deletes
    if inserts or not deletes:
        outputs[plan.insert_name] = inserts
    require_single_files(plan, max(map(len, outputs.values())), offline)
    require_atomic(plan, len(outputs) > 1, offline)
    for name, files in outputs.items():
        _finish(plan, name, files)
    _grant(plan, outputs)
    now = _recheck(plan)
    if shows_by_copies(fs):
        require_locked(fs, plan.snapshot.path)
        refuse_half_published(now)  # another run may have been killed after this one was planned
        show_copies(fs, plan.snapshot.path, plan.staging, _copies(plan, outputs))
        with suppress(AcidctlError):
            remove_staging(fs, plan.staging)
    else:
        show(fs, plan.snapshot.path, plan.staging, tuple(outputs))
        discard(plan)
    return tuple(reversed(outputs))


def require_single_files(plan: CompactionPlan, files: int, offline: bool) -> None:
    """Refuse a result of several files if the store publishes by copies: a reader could see some without the others.

    Args:
        files: the most files in one directory of the result.

    Raises:
        RefusedError: neither `offline` nor a transaction hides the directory until it is complete.
    """
    if files < 2 or offline or not shows_by_copies(plan.snapshot.fs):
        return
    what = f"cannot compact {plan.shown} while it is read"
    txns, txn = plan.snapshot.txns, plan.visibility_txn
    if txn and not (txns and txns.high_watermark < MAXL and txns.is_valid(txn)):
        return
    raise RefusedError(
        what,
        f"{plan.insert_name} would have {files} files, one a bucket, and its store shows them one after the other"
        + (f"; transaction {txn} is committed already and would not hide them" if txn else ""),
        "give --offline when nothing reads it meanwhile, or --visibility-txn for readers of Hive 4; or compact a copy "
        "of it on HDFS or a disk",
    )


def _copies(plan: CompactionPlan, outputs: Mapping[str, Sequence[OutputFile]]) -> list[Copy]:
    """Return the copies in order, data first: marker files alone would be an empty directory to readers.

    Raises:
        RefusedError: there is nothing to copy.
    """
    data = [
        (file.attempt_path.removeprefix(f"{plan.staging}/"), f"{name}/{file.name}")
        for name, files in outputs.items()
        for file in files
    ]
    sides = [(f"{name}/{side}",) * 2 for name in outputs for side in _side_files(plan)]
    if not data and not sides:
        raise RefusedError(
            f"cannot compact {plan.shown}",
            "its inputs hold no rows, and its store has no directory without files",
            "leave it as it is: there is nothing to be gained",
        )
    return [*data, *sides]


def _prove(plan: CompactionPlan, results: Sequence[BucketResult]) -> None:
    """Require that every task gave one result, read all announced rows, and wrote them, without duplicates."""
    shown = plan.shown
    announced = sum(task.rows for task in plan.tasks)
    read = sum(result.rows_read for result in results)
    if read != announced:
        raise _wrong(shown, f"the tasks read {read} rows where the files' tails announce {announced}")
    segments = sum((r.segment.expected for r in results if r.segment), RowProof())
    cut = plan.cut_buckets
    joined = sum((r.inserts.expected for r in results if r.inserts and r.bucket in cut), RowProof())
    if segments != joined:
        raise _wrong(shown, f"segments with {segments.rows} rows were put together to {joined.rows}")
    files = [file for result in results for file in result.files]
    if any(file.expected != file.found for file in files):
        raise _wrong(shown, "a written file does not hold what was to be written")
    kept = sum(file.rows for file in files)
    dropped = sum(result.rows_dropped for result in results)
    if kept + dropped != read:
        raise _wrong(shown, f"{read} rows were read, {kept} are written and {dropped} were dropped")
    if plan.spread:
        _prove_numbers(shown, files)
    for side in ([r.inserts for r in results], [r.deletes for r in results]):
        names = [file.name for file in side if file]
        if len(names) != len(set(names)):
            raise _wrong(shown, f"two results are called {max(names, key=names.count)}")


def _prove_numbers(shown: str, files: Sequence[OutputFile]) -> None:
    """Require that the row ids of all buckets of a rebalance follow each other from 0."""
    at = 0
    for file in sorted((file for file in files if file.rows), key=lambda file: file.name):
        numbers, bucket = (file.first[2], file.last[2]), encode(int(file.name.rpartition("_")[2]), 0)
        if numbers != (at, at + file.rows - 1) or {file.first[1], file.last[1]} != {bucket}:
            raise _wrong(shown, f"{file.name} begins with row {numbers[0]} and ends with {numbers[1]}")
        at += file.rows


def _wrong(shown: str, why: str) -> VerifyError:
    return VerifyError(f"the compaction of {shown} does not add up", why, "nothing was published; report this")


def remove_hidden(plan: CompactionPlan, published: Sequence[str]) -> None:
    """Remove directories that were published under a transaction known to be aborted: readers never see them.

    Raises:
        AccessError, StorageError: a directory cannot be removed.
    """
    assert plan.visibility_txn  # without a transaction, readers see the directories
    for name in published:
        plan.snapshot.fs.remove_tree(plan.snapshot.absolute(name))


def discard(plan: CompactionPlan) -> None:
    """Remove the staging directory; whatever cannot be removed stays hidden and does no harm.

    It stays while one half of its content is published, because it holds the only copy of the other half. It also stays
    if a copy may still arrive: a later run finds the note, and finishes or removes the result.
    """
    fs = plan.snapshot.fs
    try:
        if shows_by_copies(fs) and fs.exists(f"{plan.staging}/{INTENT}"):
            return
        waiting = {name for name in plan.output_names if fs.exists(f"{plan.staging}/{name}")}
        if waiting and any(fs.exists(plan.snapshot.absolute(name)) for name in set(plan.output_names) - waiting):
            return
        remove_staging(fs, plan.staging)
    except AcidctlError:
        return


def _finish(plan: CompactionPlan, name: str, files: Sequence[OutputFile]) -> None:
    """Give the chosen attempts their names, if the store can rename, and add the marker files (section 8.6)."""
    fs = plan.snapshot.fs
    directory = f"{plan.staging}/{name}"
    fs.make_dirs(directory, below=plan.snapshot.path)
    for file in files if fs.can_rename else ():
        fs.rename(file.attempt_path, f"{directory}/{file.name}")
    for side, content in _side_files(plan).items():
        write_checked(fs, f"{directory}/{side}", content)


def _grant(plan: CompactionPlan, names: Iterable[str]) -> None:
    """Give staged directories and files only the access that all inputs grant, because they hold the rows of all."""
    fs, location = plan.snapshot.fs, plan.snapshot.path
    default = fs.access(location)
    if default is None:
        return
    paths = sorted({source.path for task in plan.tasks for source in task.sources})
    below = {directory: fs.access_below(directory) for directory in {parent_of(path) for path in paths}}
    accesses = (below[parent_of(path)].get(base_name(path)) for path in paths)
    files = [access for access in accesses if access]  # the second listing finds an input that is gone
    directories = [access for path in sorted(below) if (access := default if path == location else fs.access(path))]
    assert len(directories) == len(below)  # a store has access rights for all directories or for none
    of_file, of_directory = narrowest(files, default, is_dir=False), narrowest(directories, default, is_dir=True)
    for name in names:
        directory = f"{plan.staging}/{name}"
        for entry in fs.list_dir(directory).entries:
            fs.set_access(join(directory, entry.path), of_file)
        fs.set_access(directory, of_directory)


def _side_files(plan: CompactionPlan) -> dict[str, bytes]:
    """Return the names and contents of the marker files, in the order in which they appear."""
    sides = {}
    if plan.kind is CompactionKind.MAJOR and not plan.visibility_txn:
        # Without it readers would take the base for an INSERT OVERWRITE (section 8.1).
        sides[METADATA_ACID] = METADATA_ACID_COMPACTED
    if plan.acid_version:
        sides[ORC_ACID_VERSION] = ORC_ACID_VERSION_2
    return sides


def _is_in_the_way(directory: AcidDirectory, plan: CompactionPlan) -> bool:
    """Say if a new directory prevents publishing; another compaction's does only if both would be read."""
    low, high = plan.min_write_id, plan.max_write_id
    if directory.visibility_txn:
        is_minor = plan.kind is CompactionKind.MINOR
        return straddles(directory, high) or (is_minor and crossing([directory], low, high) is not None)
    first = directory.max_write_id if directory.kind is Kind.BASE else directory.min_write_id
    return first <= high


def _recheck(plan: CompactionPlan) -> Snapshot:
    """List the location again, require that readers still see the inputs, and return what they see now."""
    before = plan.snapshot
    now = before.again()
    changed = _changes(plan, before, now.state) or _changed_file(plan, before.listing, now.listing)
    if changed:
        raise ConflictError(
            f"{before.shown} changed while it was compacted",
            changed,
            "nothing was published; run the compaction again",
        )
    return now


def _changed_file(plan: CompactionPlan, before: Listing, now: Listing) -> str:
    """Say which file of an input was added, removed or written to; empty if none was."""
    inputs = set(plan.inputs)
    old, new = (
        {entry for entry in listing.entries if not entry.is_dir and entry.path.partition("/")[0] in inputs}
        for listing in (before, now)
    )
    differing = {entry.path for entry in old ^ new}
    return f"{min(differing)} was written to, added or removed" if differing else ""


def _changes(plan: CompactionPlan, before: Snapshot, now: AcidState) -> str:
    """Say what changed in the range that the output will hide; empty if nothing did. Newer deltas do not matter."""
    missing = set(plan.inputs) - now.current_names
    if missing:
        return f"{min(missing)} is no longer current"
    if (before.state.base and before.state.base.name) != (now.base and now.base.name):
        return "another base appeared"
    listed_before = {verdict.name for verdict in before.state.verdicts}
    if plan.spread and (later := deletes_above(now.verdicts, plan.max_write_id)):
        return f"{later[0]} names rows by the ids that they had"
    for verdict in now.verdicts:
        # It matters even if its rows are not visible: the output would hide it, or lie across it.
        if verdict.directory and verdict.name not in listed_before and _is_in_the_way(verdict.directory, plan):
            return f"{verdict.name} appeared"
    if plan.kind is CompactionKind.MAJOR and before.state.originals != now.originals:
        return "its original files changed"
    taken = {verdict.name for verdict in now.verdicts}
    for name in plan.output_names:
        if name in taken:
            return f"{name} exists already: another compaction was first"
    return ""
