"""The steps that physically remove rows which a location still holds: their order, and when they are possible."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property

from acidctl.acid.state import State, Verdict
from acidctl.base.errors import AcidctlError, BadDataError
from acidctl.cleaning.advice import Action
from acidctl.cleaning.explain import MayClean, ProofInputs, VerdictProof, proof_inputs, prove_all
from acidctl.erasure.holders import Holder, HolderKind, PhysicalFile, physical_files
from acidctl.location.snapshot import DirectoryListing, Snapshot, list_location, take_snapshot
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
        after_retention: it must wait for the retention of cleaning again, counted from the step before it.
        why: sentences about obstacles, and what must happen before.
        write_ids: open write ids that hold a compaction back.
    """

    remedy: Remedy
    names: tuple[str, ...] = ()
    not_before: float | None = None
    after_retention: bool = False
    why: tuple[str, ...] = ()
    write_ids: tuple[int, ...] = ()


def erasure_steps(
    survey: Survey | None, held: Collection[Holder], unknown: Collection[Holder], live: int | None
) -> tuple[ErasureStep, ...]:
    """Return the steps for the directories that hold matching rows, or may.

    Args:
        survey: of the location; None beside the locations of a table.
        held: directories that hold such rows.
        unknown: directories that may hold some.
        live: number of such rows that readers see; None if not known.
    """
    return tuple(_steps(survey, list(held), list(unknown), live))


def _steps(survey: Survey | None, held: list[Holder], unknown: list[Holder], live: int | None) -> Iterator[ErasureStep]:
    names = {kind: tuple(sorted({holder.name for holder in held if holder.kind is kind})) for kind in HolderKind}
    current, dead = names[HolderKind.CURRENT], names[HolderKind.OBSOLETE] + names[HolderKind.ABORTED]
    if live or (live is None and current):
        yield ErasureStep(Remedy.DELETE)
    if survey and names[HolderKind.IGNORED]:
        yield ErasureStep(Remedy.DECIDE, names[HolderKind.IGNORED], why=_next(survey, names[HolderKind.IGNORED]))
    if survey and current and live == 0 and _is_alone(survey):
        yield ErasureStep(Remedy.WRITE)
    if survey and current:
        yield ErasureStep(Remedy.COMPACT, current, write_ids=_open_below(survey, current))
    if survey and (current or dead):
        until, why = _when(survey, dead)
        yield ErasureStep(Remedy.CLEAN, dead, until, after_retention=bool(current), why=why)
    if survey and (staging := names[HolderKind.STAGING]):
        until, why = _when(survey, staging)
        yield ErasureStep(Remedy.CLEAN_LEFTOVERS, staging, until, why=why)
    elif names[HolderKind.STAGING]:
        yield ErasureStep(Remedy.CLEAN_LEFTOVERS, names[HolderKind.STAGING])
    kept = names[HolderKind.TRASH] + names[HolderKind.BACKUP]
    if kept or (survey and (current or dead or names[HolderKind.STAGING])):
        yield ErasureStep(Remedy.PURGE, kept)
    for kind, remedy in (
        (HolderKind.HDFS_TRASH, Remedy.EMPTY_HDFS_TRASH),
        (HolderKind.OTHER, Remedy.REMOVE),
    ):
        if names[kind]:
            yield ErasureStep(remedy, names[kind])
    if unknown:
        yield ErasureStep(Remedy.LOOK, tuple(sorted({holder.name for holder in unknown})))


def _is_alone(survey: Survey) -> bool:
    """Return whether a reader reads a single base or delta."""
    state = survey.snapshot.state
    return not state.originals and len(state.deltas) + bool(state.base) == 1


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


def _next(survey: Survey, names: Collection[str]) -> tuple[str, ...]:
    steps = [step for name in names if name in survey.proofs for step in survey.proofs[name].next]
    return tuple(dict.fromkeys(str(step) for step in steps if step.action is not Action.CLEAN))


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
        RefusedError, ConflictError: see :meth:`acidctl.location.find.TableLocation.snapshot`.
    """
    looked, closed = _looked(found)
    again = looked.refresh_if_stale()
    if again is not looked:
        looked, closed = _looked(again)
    try:
        snapshot = looked.snapshot(readers=True, refresh=False)
    except BadDataError as error:
        path = looked.location.path
        closed[found.shown] = error
        snapshot = take_snapshot(found.fs, path, on_bad_metadata=lambda _path, _error: None, look=looked.look)
    verdicts: dict[str, Verdict] = {verdict.name: verdict for verdict in snapshot.state.verdicts}
    return Survey(looked, snapshot, tuple(physical_files(found.fs, snapshot.listing, verdicts)), closed)


def _looked(found: TableLocation) -> tuple[TableLocation, dict[str, AcidctlError]]:
    closed: dict[str, AcidctlError] = {}

    def tell(path: str, error: AcidctlError) -> None:
        closed[found.fs.display(f"{found.location.path}/{path}")] = error

    look: DirectoryListing = list_location(found.fs, found.location.path, found.top, tell, hidden=True)
    return replace(found, listed=look), closed
