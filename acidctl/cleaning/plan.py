"""The plan of a cleaning: what may be removed from a location, in an order that is safe to interrupt (section 10)."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from acidctl.acid.listing import Ages, Entry
from acidctl.acid.reasons import Reason
from acidctl.acid.state import EntryKind, State, Verdict
from acidctl.acid.unfinished import straddling
from acidctl.base.errors import RefusedError
from acidctl.cleaning.leftovers import find_leftovers, is_query_staging, query_staging
from acidctl.cleaning.readers import broken_reader
from acidctl.cleaning.releases import Releases
from acidctl.cleaning.retention import LaterEntry, Policy
from acidctl.location.change.publication import refuse_half_published
from acidctl.location.snapshot import Snapshot
from acidctl.wording import text_of


@dataclass(frozen=True, slots=True)
class Removal:
    """One child of the location that is to be removed; `files` and `bytes` count everything below it."""

    name: str
    kind: EntryKind
    state: State
    reason: Reason
    files: int
    bytes: int

    @property
    def record(self) -> dict[str, Any]:
        """Return its JSON form, for results and saved plans."""
        return {
            "name": self.name,
            "kind": self.kind.value,
            "state": self.state.value,
            "reason": text_of(self.reason),
            "reasonCode": self.reason.code,
            "files": self.files,
            "bytes": self.bytes,
        }


@dataclass(frozen=True, slots=True)
class CleaningPlan:
    """The removals of one location's cleaning, as a value that can be printed, pickled and saved.

    Attributes:
        removals: in the order of removal; it is safe to stop after any of them.
        kept_back: entries that look obsolete, with the reason why a listing alone cannot prove it.
        waiting: entries that are too young.
        postponed: names that were planned and left for another run.
    """

    snapshot: Snapshot
    removals: tuple[Removal, ...]
    kept_back: tuple[tuple[str, Reason], ...] = ()
    policy: Policy = field(default_factory=Policy)
    waiting: tuple[LaterEntry, ...] = ()
    postponed: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return (
            f"<cleaning of {self.shown}: {len(self.removals):,} of {self.bytes:,} bytes, {len(self.kept_back):,} kept>"
        )

    def _repr_html_(self) -> str:
        from acidctl.notebook import html_table  # noqa: PLC0415 - only for notebooks

        rows = [(r.name, r.state.value, f"{r.bytes:,}", text_of(r.reason)) for r in self.removals]
        return html_table(repr(self), ("removed", "state", "bytes", "reason"), rows, 50)

    @property
    def shown(self) -> str:
        """Return the location, as a user would type it."""
        return self.snapshot.shown

    @property
    def bytes(self) -> int:
        return sum(removal.bytes for removal in self.removals)

    @property
    def files(self) -> int:
        return sum(removal.files for removal in self.removals)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names to remove, in the order of removal."""
        return tuple(removal.name for removal in self.removals)

    @property
    def is_query_staging(self) -> bool:
        """Say if only staging of queries is removed: then nothing else needs to be listed again."""
        return bool(self.removals) and all(is_query_staging(name) for name in self.names)

    def within(self, budget: int) -> CleaningPlan:
        """Return the first removals, as many as hold no more bytes than the budget; the others are postponed."""
        taken = 0
        for count, removal in enumerate(self.removals):
            taken += removal.bytes
            if taken > budget:
                postponed = tuple(removal.name for removal in self.removals[count:])
                return replace(self, removals=self.removals[:count], postponed=(*postponed, *self.postponed))
        return self


def plan_cleaning(snapshot: Snapshot, policy: Policy | None = None, now: float | None = None) -> CleaningPlan:
    """Plan one location: obsolete and aborted directories, originals that a base holds, and leftovers if requested.

    An entry may go if it was obsolete for all readers that began before the retention; a chain of compactions does not
    restart that time. An entry is kept back if it is obsolete only because of a directory that may be unfinished
    (format section 10, and :mod:`acidctl.acid.unfinished`), or because of one half of a minor compaction.

    Args:
        policy: default: entries older than a day, and no leftovers.
        now: seconds since the epoch.

    Raises:
        HistoryError: the snapshot cannot be read, so nothing may be removed.
        RefusedError: a publication was interrupted, a delta lies across the base, or the plan would change what readers
            see, which is proven before it is returned.
    """
    policy, now = policy or Policy(), time.time() if now is None else now
    snapshot.require_history()
    _refuse_straddling(snapshot)
    ages, children = Ages.of(snapshot.listing), snapshot.listing.files_by_child
    if any(name.startswith("_tmp_") for name in children):  # the notes of publications lie there
        refuse_half_published(snapshot)
    judge = Releases(snapshot, ages)
    present = judge.at(None)
    kept_back = judge.kept_back()
    old = judge.old(policy, now) if present else present
    held = judge.held(present)  # readers need these at any age
    waiting = judge.waiting(present - old - held.keys(), policy, now)
    kept_back |= held
    gone = (present & old) - held.keys()
    removals = [
        _removal(verdict.name, verdict.kind, verdict.state, verdict.reason, children)
        for verdict in sorted((v for v in snapshot.state.verdicts if v.name in gone), key=_removal_order)
    ]
    if policy.leftovers:
        abandoned, staying, young = find_leftovers(snapshot, ages, gone, policy, now)
        removals += [_removal(name, EntryKind.STAGING, State.IGNORED, why, children) for name, why in abandoned.items()]
        kept_back |= staying
        waiting += young
    plan = CleaningPlan(snapshot, tuple(removals), tuple(sorted(kept_back.items())), policy, tuple(waiting))
    _prove(plan, ages, now)
    return plan


def plan_again(plan: CleaningPlan) -> CleaningPlan:
    """List a location again, as far as its plan needs it, and plan it with the same lists and policy.

    Raises:
        NotFoundError, AccessError, StorageError: it cannot be listed.
        HistoryError, RefusedError: see :func:`plan_cleaning`.
    """
    before = plan.snapshot
    snapshot = query_staging(before.fs, before.path) if plan.is_query_staging else before.again()
    return plan_cleaning(snapshot, plan.policy)


def _refuse_straddling(snapshot: Snapshot) -> None:
    """Raise RefusedError if a base and a delta overlap: one of them is wrong, and a listing cannot show which."""
    if problem := next(straddling(snapshot.state), None):
        raise RefusedError(
            f"cannot clean {snapshot.shown}",
            f"{text_of(problem.reason)} ({problem.rule})",
            "find out which of the two is right, and move the other away",
        )


def _removal(name: str, kind: EntryKind, state: State, why: Reason, children: Mapping[str, list[Entry]]) -> Removal:
    files = children.get(name, ())
    return Removal(name, kind, state, why, len(files), sum(entry.size for entry in files))


def _removal_order(verdict: Verdict) -> tuple[int, int, int, str]:
    """Order aborted deltas first, then obsolete insert deltas, bases and originals, and delete deltas last.

    In any other order deleted rows would come back if what replaced them were lost half-way, or judged lost (rule V43).
    """
    ranks = {EntryKind.DELTA: 1, EntryKind.BASE: 2, EntryKind.ORIGINAL: 3, EntryKind.DELETE_DELTA: 4}
    rank = 0 if verdict.state is State.ABORTED else ranks.get(verdict.kind, 3)
    directory = verdict.directory
    low, high = (directory.min_write_id, directory.max_write_id) if directory else (0, 0)
    return (rank, low, high, verdict.name)


def _prove(plan: CleaningPlan, ages: Ages, now: float) -> None:
    """Raise RefusedError if the location would read differently: by a bug, or a layout that nobody foresaw."""
    if not plan.removals:
        return
    snapshot = plan.snapshot
    if broken := broken_reader(snapshot.state, ages, snapshot.lists, set(plan.names), policy=plan.policy, now=now):
        raise RefusedError(
            f"cleaning {plan.shown} would change what readers see",
            text_of(broken),
            "please report the listing of this location",
        )
