"""The last step of a compaction: side files, one more look at the location, and the rename that shows the result.

Until the rename nothing outside the hidden staging directory exists; the inputs are never touched.
"""

from __future__ import annotations

from collections.abc import Sequence

from acidctl.acid.listing import Listing
from acidctl.acid.names import METADATA_ACID, ORC_ACID_VERSION
from acidctl.acid.sidefiles import METADATA_ACID_COMPACTED, ORC_ACID_VERSION_2
from acidctl.acid.state import AcidState
from acidctl.acid.triggers import CompactionKind
from acidctl.compaction.checksum import Proof
from acidctl.compaction.plan import CompactionPlan, require_atomic
from acidctl.compaction.tasks import ATTEMPTS, BucketResult, OutputFile
from acidctl.errors import AcidctlError, ConflictError, StorageError, VerifyError
from acidctl.storage.owner import OWNER, Owner
from acidctl.storage.port import FileSystem
from acidctl.storage.publication import half_published, show
from acidctl.storage.snapshot import Snapshot, take_snapshot


def stage_directories(plan: CompactionPlan) -> None:
    """Make the hidden staging directory; refuses early where nothing could be published.

    Raises:
        AccessError, StorageError: the location cannot be written, or its store has no rename.
    """
    fs = plan.snapshot.fs
    if not fs.can_rename:
        raise StorageError(
            f"cannot compact {fs.display(plan.snapshot.path)} in place",
            "its store has no rename, so a result could be seen half-written",
            "copy the location to HDFS or a local disk, compact it there and copy the result back",
        )
    fs.make_dirs(f"{plan.staging}/{ATTEMPTS}")
    fs.write_bytes(f"{plan.staging}/{OWNER}", Owner.this().to_bytes())


def remove_dead_staging(snapshot: Snapshot) -> tuple[str, ...]:
    """Remove what compactions left that were killed: on this machine, and not half-way published.

    Returns:
        Names of the staging directories that went. Those of other machines, and whatever cannot be removed, stay
        hidden and harm nobody.
    """
    fs = snapshot.fs
    half = {staging for staging, _ in half_published(snapshot.listing)}
    removed = []
    for entry in snapshot.listing.entries:
        name, _, rest = entry.path.partition("/")
        if rest != OWNER or not name.startswith("_tmp_") or name in half:
            continue
        try:
            owner = Owner.from_bytes(fs.read_bytes(snapshot.absolute(entry.path)))
            if owner and owner.is_dead():
                _remove_staging(fs, snapshot.absolute(name))
                removed.append(name)
        except AcidctlError:
            continue
    return tuple(removed)


def publish(plan: CompactionPlan, results: Sequence[BucketResult], *, offline: bool) -> tuple[str, ...]:
    """Show the result of a compaction.

    Args:
        results: one for each task of the plan.
        offline: nothing reads the location meanwhile; allows the two renames of a minor compaction.

    Returns:
        The names of the new directories.

    Raises:
        RefusedError: two renames would be needed (section 8.6).
        ConflictError: the location changed in a way that matters, or another compaction was first.
        VerifyError: the results are not those of the plan.
    """
    fs = plan.snapshot.fs
    _prove(plan, results)
    inserts = [result.inserts for result in results if result.inserts]
    deletes = [result.deletes for result in results if result.deletes]
    names = [plan.insert_name] if inserts or not deletes else []
    if deletes and plan.delete_name:
        names.append(plan.delete_name)
    require_atomic(plan, len(names) > 1, offline)
    for name, files in ((plan.insert_name, inserts), (plan.delete_name, deletes)):
        if name in names and name:
            _finish(plan, name, files)
    _recheck(plan)
    # The insert delta last: a reader in between finds rows missing, not rows that were deleted.
    show(fs, plan.snapshot.path, plan.staging, names[::-1])
    discard(plan)
    return tuple(names)


def _prove(plan: CompactionPlan, results: Sequence[BucketResult]) -> None:
    """Every task gave one result, read what the tails announced, and wrote what it had to; nothing came twice."""
    shown = plan.snapshot.fs.display(plan.snapshot.path)
    announced = sum(task.rows for task in plan.tasks)
    read = sum(result.rows_read for result in results)
    if read != announced:
        raise _wrong(shown, f"the tasks read {read} rows where the files' tails announce {announced}")
    segments = sum((r.segment.expected for r in results if r.segment), Proof())
    cut = plan.cut_buckets
    joined = sum((r.inserts.expected for r in results if r.inserts and r.bucket in cut), Proof())
    if segments != joined:
        raise _wrong(shown, f"segments with {segments.rows} rows were put together to {joined.rows}")
    files = [file for result in results for file in (result.inserts, result.deletes) if file]
    if any(file.expected != file.found for file in files):
        raise _wrong(shown, "a written file does not hold what was to be written")
    kept = sum(file.rows for file in files)
    dropped = sum(result.rows_dropped for result in results)
    if kept + dropped != read:
        raise _wrong(shown, f"{read} rows were read, {kept} are written and {dropped} were dropped")
    for side in ([r.inserts for r in results], [r.deletes for r in results]):
        names = [file.name for file in side if file]
        if len(names) != len(set(names)):
            raise _wrong(shown, f"two results are called {max(names, key=names.count)}")


def _wrong(shown: str, why: str) -> VerifyError:
    return VerifyError(f"the compaction of {shown} does not add up", why, "nothing was published; report this")


def discard(plan: CompactionPlan) -> None:
    """Remove the staging directory; what cannot be removed stays hidden and harms nobody.

    Never while one half of its content is shown: then it holds the only copy of the other.
    """
    fs = plan.snapshot.fs
    try:
        waiting = {name for name in plan.output_names if fs.exists(f"{plan.staging}/{name}")}
        if waiting and any(fs.exists(plan.snapshot.absolute(name)) for name in set(plan.output_names) - waiting):
            return
        _remove_staging(fs, plan.staging)
    except AcidctlError:
        return


def _remove_staging(fs: FileSystem, staging: str) -> None:
    """The owner's name goes last: what is left of an interrupted removal is still known to be dead."""
    for entry in fs.list_dir(staging).entries:
        if entry.path != OWNER:
            fs.remove_tree(f"{staging}/{entry.path}")
    fs.remove_tree(staging)


def _finish(plan: CompactionPlan, name: str, files: Sequence[OutputFile]) -> None:
    """Give the chosen attempts their names and add the side files (section 8.6)."""
    fs = plan.snapshot.fs
    directory = f"{plan.staging}/{name}"
    fs.make_dirs(directory)
    for file in files:
        fs.rename(file.attempt_path, f"{directory}/{file.name}")
    if plan.acid_version:
        fs.write_bytes(f"{directory}/{ORC_ACID_VERSION}", ORC_ACID_VERSION_2)
    if plan.kind is CompactionKind.MAJOR and not plan.visibility_txn:
        # Without it readers would take the base for an INSERT OVERWRITE (section 8.1).
        fs.write_bytes(f"{directory}/{METADATA_ACID}", METADATA_ACID_COMPACTED)


def _recheck(plan: CompactionPlan) -> None:
    """List the location again: what was compacted must still be what readers see."""
    before = plan.snapshot
    now = take_snapshot(before.fs, before.path, before.write_ids, before.txns)
    changed = _changes(plan, before, now.state) or _changed_file(plan, before.listing, now.listing)
    if changed:
        raise ConflictError(
            f"{before.fs.display(before.path)} changed while it was compacted",
            changed,
            "nothing was published; run the compaction again",
        )


def _changed_file(plan: CompactionPlan, before: Listing, now: Listing) -> str:
    """Whether a file of an input came, went, or was written to."""
    inputs = set(plan.inputs)

    def files(listing: Listing) -> dict[str, tuple[int, float | None]]:
        return {
            entry.path: (entry.size, entry.modified)
            for entry in listing.entries
            if not entry.is_dir and entry.path.partition("/")[0] in inputs
        }

    old, new = files(before), files(now)
    differing = [path for path in old.keys() | new.keys() if old.get(path) != new.get(path)]
    return f"{min(differing)} was written to, added or removed" if differing else ""


def _changes(plan: CompactionPlan, before: Snapshot, now: AcidState) -> str:
    """What changed in the range that the output will hide; empty when nothing did. Newer deltas do not matter."""
    missing = set(plan.inputs) - now.current_names
    if missing:
        return f"{min(missing)} is no longer current"
    if (before.state.base and before.state.base.name) != (now.base and now.base.name):
        return "another base appeared"
    for verdict in now.deltas:
        directory = verdict.directory
        if directory and verdict.name not in plan.inputs and directory.min_write_id <= plan.max_write_id:
            return f"{verdict.name} appeared"
    if plan.kind is CompactionKind.MAJOR and before.state.originals != now.originals:
        return "its original files changed"
    taken = {verdict.name for verdict in now.verdicts}
    for name in plan.output_names:
        if name in taken:
            return f"{name} exists already: another compaction was first"
    return ""
