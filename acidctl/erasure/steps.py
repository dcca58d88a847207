"""The steps that physically remove rows which a location still holds: their order, and when they are possible."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property, partial

from acidctl.acid.state import State, Verdict
from acidctl.base.errors import AcidctlError, BadDataError
from acidctl.cleaning.explain import MayClean, ProofInputs, VerdictProof, proof_inputs, prove_all
from acidctl.cleaning.leftovers import Action
from acidctl.erasure.holders import HolderKind, PhysicalFile, physical_files
from acidctl.erasure.searched_file import SearchedFile
from acidctl.location.snapshot import Snapshot, take_snapshot
from acidctl.location.table_location import TableLocation
from acidctl.wording import text_of


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
        not_before: seconds since the epoch; None if it can be done at once, or after the step before it.
        why: sentences about obstacles, and what must happen before.
        after_retention: it must wait for the retention of cleaning again, counted from the step before it.
        write_ids: open write ids that hold a compaction back.
    """

    remedy: Remedy
    names: tuple[str, ...] = ()
    not_before: float | None = None
    why: tuple[str, ...] = ()
    after_retention: bool = False
    write_ids: tuple[int, ...] = ()


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
        advice = [step for name in ignored if name in survey.proofs for step in survey.proofs[name].next]
        why = dict.fromkeys(str(step) for step in advice if step.action is not Action.CLEAN)
        yield ErasureStep(Remedy.DECIDE, ignored, why=tuple(why))
    if current:
        state = survey.snapshot.state
        is_alone = not state.originals and len(state.deltas) + bool(state.base) == 1
        if live == 0 and is_alone:
            yield ErasureStep(Remedy.WRITE)
        yield ErasureStep(Remedy.COMPACT, current, write_ids=_open_below(survey, current))
    if current or dead:
        yield ErasureStep(Remedy.CLEAN, dead, *_when(survey, dead), after_retention=bool(current))
    if staging := names[HolderKind.STAGING]:
        yield ErasureStep(Remedy.CLEAN_LEFTOVERS, staging, *_when(survey, staging))


def _when(survey: Survey, names: Collection[str]) -> tuple[float | None, tuple[str, ...]]:
    """Return when the last of some entries may be cleaned, if that is known, and what holds some of them back."""
    until: list[float] = []
    why: dict[str, None] = {}
    for name in names:
        proof = survey.proofs.get(name)
        waiting = survey.proof_inputs.cleaning.waiting.get(name)
        if waiting and isinstance(moment := waiting.value("until"), int | float):
            until.append(moment)
        elif proof and proof.may_clean is not MayClean.YES and proof.verdict.state is not State.IGNORED:
            why |= dict.fromkeys((text_of(proof.cleaning), *map(str, proof.next)))
        elif proof and name in survey.proof_inputs.cleaning.kept_back:
            why[text_of(survey.proof_inputs.cleaning.kept_back[name])] = None
    return max(until, default=None), tuple(why)


def _open_below(survey: Survey, names: Collection[str]) -> tuple[int, ...]:
    """Return the open write ids that prevent a compaction from merging all of some current directories."""
    ids = survey.snapshot.write_ids
    by_name = {verdict.name: verdict.directory for verdict in survey.snapshot.state.verdicts}
    reach = max((directory.max_write_id for name in names if (directory := by_name.get(name))), default=0)
    return tuple(id_ for id_ in sorted(ids.open) if id_ <= reach)


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

    @cached_property
    def proof_inputs(self) -> ProofInputs:
        """Return the state of cleaning for it."""
        return proof_inputs(self.snapshot)

    @cached_property
    def proofs(self) -> Mapping[str, VerdictProof]:
        """Return the explanation of each entry's state, and what must happen before it is removed, by name."""
        return {proof.name: proof for proof in prove_all(self.proof_inputs)}


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
