"""What makes rows physically go that a location still holds: in which order, and when."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import StrEnum

from acidctl.acid.state import State
from acidctl.cleaning.advice import Action
from acidctl.cleaning.explain import MayClean
from acidctl.erasure.holders import Holder, HolderKind
from acidctl.erasure.survey import Survey
from acidctl.wording import text_of


class Remedy(StrEnum):
    """One act, in the order in which they are done."""

    DELETE = "delete"
    """In Hive, by the condition: the rows are still seen."""
    DECIDE = "decide"
    """A transaction that is open, or that the snapshot does not know, has to end."""
    WRITE = "write"
    """In Hive, anything: of one directory alone no compaction makes another."""
    COMPACT = "compact"
    CLEAN = "clean"
    CLEAN_LEFTOVERS = "clean-leftovers"
    PURGE = "purge"
    FORGET = "forget-repair"
    EMPTY_HDFS_TRASH = "empty-hdfs-trash"
    REMOVE = "remove"
    """By hand: nothing that acidctl knows owns it."""
    LOOK = "look"
    """At what cannot be read."""


@dataclass(frozen=True, slots=True)
class ErasureStep:
    """One act that has to be done.

    Attributes:
        names: what it is about: directories relative to the location, or paths.
        not_before: seconds since the epoch; None where it may be done at once, or after the step before it.
        after_retention: it has to wait for the retention of cleaning once more, from the step before it on.
        why: sentences: what speaks against it now, and what must happen before.
        write_ids: open ones that hold a compaction back.
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
    """What to do about what holds such rows, or may.

    Args:
        survey: of the location; None for what lies beside the locations of a table.
        held: what holds such rows.
        unknown: what may hold some.
        live: how many such rows readers see; None where that is not known.
    """
    return tuple(_steps(survey, list(held), list(unknown), live))


def _steps(survey: Survey | None, held: list[Holder], unknown: list[Holder], live: int | None) -> Iterator[ErasureStep]:
    names = {kind: tuple(sorted({one.name for one in held if one.kind is kind})) for kind in HolderKind}
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
        yield _cleaning(survey, dead, again=bool(current))
    if survey and (staging := names[HolderKind.STAGING]):
        until, why = _when(survey, staging)
        yield ErasureStep(Remedy.CLEAN_LEFTOVERS, staging, until, why=why)
    elif names[HolderKind.STAGING]:
        yield ErasureStep(Remedy.CLEAN_LEFTOVERS, names[HolderKind.STAGING])
    if survey and (names[HolderKind.TRASH] or current or dead or names[HolderKind.STAGING]):
        yield ErasureStep(Remedy.PURGE, names[HolderKind.TRASH])
    for kind, remedy in (
        (HolderKind.BACKUP, Remedy.FORGET),
        (HolderKind.HDFS_TRASH, Remedy.EMPTY_HDFS_TRASH),
        (HolderKind.OTHER, Remedy.REMOVE),
    ):
        if names[kind]:
            yield ErasureStep(remedy, names[kind])
    if unknown:
        yield ErasureStep(Remedy.LOOK, tuple(sorted({one.name for one in unknown})))


def _is_alone(survey: Survey) -> bool:
    """Whether one base or delta is all that a reader reads."""
    state = survey.snapshot.state
    return not state.originals and len(state.deltas) + bool(state.base) == 1


def _cleaning(survey: Survey, dead: tuple[str, ...], *, again: bool) -> ErasureStep:
    until, why = _when(survey, dead)
    return ErasureStep(Remedy.CLEAN, dead, until, after_retention=again, why=why)


def _when(survey: Survey, names: Collection[str]) -> tuple[float | None, tuple[str, ...]]:
    """When the last of some entries may be cleaned, where that is known, and what holds some of them back."""
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
    found = [part for name in names if name in survey.proofs for part in survey.proofs[name].next]
    return tuple(dict.fromkeys(str(one) for one in found if one.action is not Action.CLEAN))


def _open_below(survey: Survey, names: Collection[str]) -> tuple[int, ...]:
    """Open write ids that keep a compaction from taking all of some current directories."""
    ids = survey.snapshot.write_ids
    by_name = {verdict.name: verdict.directory for verdict in survey.snapshot.state.verdicts}
    reach = max((found.max_write_id for name in names if (found := by_name.get(name))), default=0)
    return tuple(id_ for id_ in sorted(ids.open) if id_ <= reach)
