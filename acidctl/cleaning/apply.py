"""Carrying a plan out: list again, compare, and take one entry after the other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from acidctl.cleaning.hdfs_trash import move_to_hdfs_trash, require_hdfs
from acidctl.cleaning.plan import CleaningPlan, Removal, plan_cleaning
from acidctl.cleaning.trash import TrashRun
from acidctl.errors import ConflictError, NotFoundError, RefusedError
from acidctl.storage.lock import refuse_locked_at
from acidctl.storage.port import FileSystem
from acidctl.storage.snapshot import Snapshot


class How(StrEnum):
    """Where to what is removed goes."""

    TRASH = "trash"
    HDFS = "hdfs"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class Cleaned:
    """What was done.

    Attributes:
        removed: in this order; fewer than planned when it was stopped.
        run: in the location's trash; None when there is none.
        places: where to in the trash of HDFS each entry went.
    """

    removed: tuple[Removal, ...] = ()
    run: TrashRun | None = None
    places: tuple[str, ...] = ()

    @property
    def bytes(self) -> int:
        return sum(removal.bytes for removal in self.removed)


def never() -> bool:
    """Go on."""
    return False


def apply_plan(
    plan: CleaningPlan,
    how: How = How.TRASH,
    *,
    should_stop: Callable[[], bool] = never,
    on_removed: Callable[[Removal], None] | None = None,
) -> Cleaned:
    """Carry a plan out, after listing the location again.

    Args:
        should_stop: asked before every entry; what is left then stays where it is.
        on_removed: called after every entry.

    Raises:
        ConflictError: the location changed since it was planned, so that the plan is another one now, it is locked, or
            somebody else removes from it, too.
        RefusedError: its store has no rename, so there is no trash.
        UsageProblem: the trash of HDFS was asked for on another store.
    """
    if not plan.removals:
        return Cleaned()
    fs = plan.snapshot.fs
    _refuse_store(fs, how, fs.display(plan.snapshot.path))
    fresh = _refuse_changed(plan)
    if should_stop():
        return Cleaned()
    run = TrashRun.of(fresh, plan.names, plan.bytes) if how is How.TRASH else None
    if run:
        run.write_manifest(fs)
    removed: list[Removal] = []
    places: list[str] = []
    for removal in plan.removals:
        if should_stop():
            break
        source = plan.snapshot.absolute(removal.name)
        try:
            if run:
                fs.rename(source, f"{run.path}/{removal.name}")
            elif how is How.HDFS:
                places.append(move_to_hdfs_trash(fs, source))
            else:
                fs.remove_tree(source)
        except NotFoundError as error:
            if fs.exists(source):
                raise
            raise ConflictError(
                f"{fs.display(source)} has gone meanwhile",
                "somebody else removes from this location, too",
                "what was done stays done; run it again, with --lock",
            ) from error
        removed.append(removal)
        if on_removed:
            on_removed(removal)
    return Cleaned(tuple(removed), run, tuple(places))


def _refuse_store(fs: FileSystem, how: How, shown: str) -> None:
    if how is How.HDFS:
        require_hdfs(fs)
    if how is How.TRASH and not fs.can_rename:
        raise RefusedError(
            f"{shown} can have no trash",
            "its store has no rename: only deleting at once is possible there",
            "give --no-trash; it cannot be undone",
        )


def _refuse_changed(plan: CleaningPlan) -> Snapshot:
    before = plan.snapshot
    snapshot = plan.look_again()
    refuse_locked_at(before.fs, before.path)
    now = plan_cleaning(snapshot, plan.policy)
    if missing := set(plan.names) - set(now.names):
        raise ConflictError(
            f"{before.fs.display(before.path)} changed since it was planned",
            f"{min(missing)} may no longer be removed",
            "nothing was removed; plan again",
        )
    return snapshot
