"""The steps that physically remove rows which a location still holds, in their order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

from acidctl.acid.state import Verdict
from acidctl.base.errors import AcidctlError, BadDataError
from acidctl.erasure.holders import HolderKind, PhysicalFile, physical_files
from acidctl.erasure.searched_file import SearchedFile
from acidctl.location.snapshot import Snapshot, take_snapshot
from acidctl.location.table_location import TableLocation


class Remedy(StrEnum):
    """The kinds of steps, in the order in which they are done."""

    DELETE = "delete"
    """Delete the rows in Hive by the condition: readers still see them."""
    DECIDE = "decide"
    """Wait for the end of a transaction that is open, or that the snapshot does not know."""
    WRITE = "write"
    """Write anything in Hive: a single directory is never compacted."""
    COMPACT = "compact"
    CLEAN = "clean"
    CLEAN_LEFTOVERS = "clean-leftovers"
    PURGE = "purge"
    EMPTY_HDFS_TRASH = "empty-hdfs-trash"
    REMOVE = "remove"
    """Remove by hand: its owner is unknown."""
    LOOK = "look"
    """Examine files that cannot be read."""


@dataclass(frozen=True, slots=True)
class ErasureStep:
    """One step that remains to be done.

    Attributes:
        names: the directories, relative to the location, or paths that it applies to.
    """

    remedy: Remedy
    names: tuple[str, ...] = ()


def erasure_steps(survey: Survey | None, files: Iterable[SearchedFile], live: int | None) -> tuple[ErasureStep, ...]:
    """Return the steps that remove the matching rows of some files, and staging files that cannot be read.

    Args:
        survey: of the location; None beside the locations of a table.
        live: number of such rows that readers see; None if not known.
    """
    files = list(files)
    torn = {file.holder for file in files if file.problem and file.holder.kind is HolderKind.STAGING}
    held = {file.holder for file in files if file.matched.events} | torn
    unknown = {file.holder.name for file in files if file.problem and file.holder not in torn}
    names = {kind: tuple(sorted({holder.name for holder in held if holder.kind is kind})) for kind in HolderKind}
    steps = [ErasureStep(Remedy.DELETE)] if live or (live is None and names[HolderKind.CURRENT]) else []
    if survey:
        steps += _steps_inside(survey, names, live)
    elif names[HolderKind.STAGING]:
        steps.append(ErasureStep(Remedy.CLEAN_LEFTOVERS, names[HolderKind.STAGING]))
    kept = names[HolderKind.TRASH] + names[HolderKind.BACKUP]
    if kept or (survey and any(step.remedy in (Remedy.CLEAN, Remedy.CLEAN_LEFTOVERS) for step in steps)):
        steps.append(ErasureStep(Remedy.PURGE, kept))
    for kind, remedy in ((HolderKind.HDFS_TRASH, Remedy.EMPTY_HDFS_TRASH), (HolderKind.OTHER, Remedy.REMOVE)):
        steps += [ErasureStep(remedy, names[kind])] if names[kind] else []
    return (*steps, *([ErasureStep(Remedy.LOOK, tuple(sorted(unknown)))] if unknown else []))


def _steps_inside(
    survey: Survey, names: Mapping[HolderKind, tuple[str, ...]], live: int | None
) -> Iterator[ErasureStep]:
    """Yield the steps for the entries of a location itself."""
    current, dead = names[HolderKind.CURRENT], names[HolderKind.OBSOLETE] + names[HolderKind.ABORTED]
    if ignored := names[HolderKind.IGNORED]:
        yield ErasureStep(Remedy.DECIDE, ignored)
    if current:
        state = survey.snapshot.state
        is_alone = not state.originals and len(state.deltas) + bool(state.base) == 1
        if live == 0 and is_alone:
            yield ErasureStep(Remedy.WRITE)
        yield ErasureStep(Remedy.COMPACT, current)
    if current or dead:
        yield ErasureStep(Remedy.CLEAN, dead)
    if staging := names[HolderKind.STAGING]:
        yield ErasureStep(Remedy.CLEAN_LEFTOVERS, staging)


@dataclass(frozen=True)
class Survey:
    """One location before it is searched.

    Attributes:
        files: all files that may hold rows.
        closed: the errors of directories that cannot be listed, by their paths as a user would type them.
    """

    found: TableLocation
    snapshot: Snapshot
    files: tuple[PhysicalFile, ...]
    closed: Mapping[str, AcidctlError]


def survey(found: TableLocation) -> Survey:
    """List a location, once unless a compaction ends meanwhile.

    Raises:
        NotFoundError, AccessError, StorageError, UsageProblem: it cannot be listed.
        RefusedError, ConflictError: see :meth:`acidctl.location.table_location.TableLocation.snapshot`.
    """
    fs, path, below = found.fs, found.location.path, dict[str, AcidctlError]()
    listed = partial(TableLocation.as_far_as_listed, closed=below, hidden=True)
    looked = listed(found).refresh_if_stale(listed)
    closed = {fs.display(f"{path}/{name}"): error for name, error in below.items()}
    try:
        snapshot = looked.snapshot(readers=True, refresh=False)
    except BadDataError as error:
        closed[found.shown] = error
        snapshot = take_snapshot(fs, path, on_bad_metadata=lambda _path, _error: None, look=looked.look)
    verdicts: dict[str, Verdict] = {verdict.name: verdict for verdict in snapshot.state.verdicts}
    return Survey(looked, snapshot, tuple(physical_files(fs, snapshot.listing, verdicts)), closed)
