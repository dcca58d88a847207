"""The safe order of a repair, from what is asked for to what became of it; nothing here prints or asks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from acidctl.acid.names import acid_directory
from acidctl.errors import AcidctlError, NotFoundError
from acidctl.location.change.journal import RunState
from acidctl.location.change.lock import Locking
from acidctl.location.find import Found
from acidctl.location.lists import SnapshotLists
from acidctl.location.snapshot import Snapshot
from acidctl.outcome import Outcome, Result
from acidctl.repair.apply import apply_repair, plan_repair, require_offline, require_renames, unfinished
from acidctl.repair.backup import RepairRun
from acidctl.repair.plan import RepairKind, RepairPlan, Scope
from acidctl.spelling import spelled
from acidctl.storage.port import FileSystem, base_name, parent_of


@dataclass(frozen=True, kw_only=True)
class PlannedRepair(Outcome):
    """What a repair would do to a location: mend, finish what was interrupted, refuse, or nothing.

    Attributes:
        left: repairs that were interrupted; they are finished first.
    """

    plan: RepairPlan
    scope: Scope
    left: tuple[RepairRun, ...] = ()

    @property
    def has_work(self) -> bool:
        """Whether anything would be changed."""
        return bool(self.plan.fixes or self.left)

    def facts(self) -> Mapping[str, Any]:
        """What is wrong with each file and what mends it, or why nothing can."""
        plan = self.plan
        return {
            "repair": plan.kind.value,
            "bytes": plan.bytes,
            "fixes": [
                {"path": fix.path, "problem": fix.problem, "remedy": fix.remedy, "bytes": fix.bytes}
                for fix in plan.fixes
            ],
            "refused": [{"path": one.path, "reason": one.why, "hint": spelled(one.hint)} for one in plan.refused],
            "interrupted": [run.id for run in self.left],
        }

    def reported(self) -> Mapping[str, Any]:
        """How many there are of each."""
        return {"fixes": len(self.plan.fixes), "refused": len(self.plan.refused), "interrupted": len(self.left)}


@dataclass(frozen=True, kw_only=True)
class Repaired(PlannedRepair):
    """What was done.

    Attributes:
        run: with which it can be undone; None where there was only something to finish.
    """

    run: RepairRun | None
    result: Result = Result.REPAIRED

    def facts(self) -> Mapping[str, Any]:
        """The plan, and the run's id."""
        return {**super().facts(), "run": self.run.id if self.run else None}

    def reported(self) -> Mapping[str, Any]:
        """The same, in numbers."""
        return {"run": self.run.id if self.run else None, **super().reported()}

    def bytes_by_use(self) -> Mapping[str, int]:
        """Bytes that were written or moved."""
        return {"written": self.run.bytes} if self.run else {}


@dataclass(frozen=True, kw_only=True)
class RefusedRepair(Outcome):
    """A location that cannot be looked at.

    Attributes:
        snapshot: None where there is none.
    """

    error: AcidctlError
    snapshot: Snapshot | None = None
    result: Result = Result.FAILED


@dataclass(frozen=True, kw_only=True)
class BackedUp(Outcome):
    """A repair in the backup of a location."""

    run: RepairRun

    def bytes_by_use(self) -> Mapping[str, int]:
        """Bytes that came back."""
        return {"restored": self.run.bytes}

    def reported(self) -> Mapping[str, Any]:
        """The run's id."""
        return {"run": self.run.id}

    def facts(self) -> Mapping[str, Any]:
        """Which repair, and of what."""
        run = self.run
        return {"run": run.id, "repair": run.kind, "paths": list(run.paths), "bytes": run.bytes}


def location_of(fs: FileSystem, path: str) -> tuple[str, str]:
    """The location to repair, and what is named of it: a user may also name a directory of a location, or a file.

    Raises:
        NotFoundError: a file that lies in no ACID directory.
    """
    is_dir = fs.stat(path).is_dir
    top = path if is_dir else parent_of(path)
    if not _is_acid_directory(top):
        if not is_dir:
            raise NotFoundError(
                f"cannot repair {fs.display(path)}",
                "it lies in no base, delta or delete delta: it has no ACID metadata of its own",
                "give a table, a partition, or a file in one of its ACID directories",
            )
        return path, ""
    while _is_acid_directory(parent_of(top)):
        top = parent_of(top)
    location = parent_of(top)
    return location, path.removeprefix(location).lstrip("/")


def _is_acid_directory(path: str) -> bool:
    return acid_directory(base_name(path)) is not None


def plan_location(found: Found, kind: RepairKind, scope: Scope) -> PlannedRepair | RefusedRepair:
    """What a repair would do to one location, by a snapshot that is taken now."""
    snapshot: Snapshot | None = None
    try:
        snapshot = found.snapshot(SnapshotLists())
        plan, left = plan_repair(snapshot, kind, scope), tuple(unfinished(snapshot.fs, snapshot.path))
    except AcidctlError as error:
        return RefusedRepair(location=found.shown, error=error, snapshot=snapshot)
    # What was interrupted is finished first.
    begun = {path for run in left if run.state is RunState.INTERRUPTED for path in run.paths}
    plan = replace(plan, refused=tuple(one for one in plan.refused if one.path not in begun))
    idle = Result.REFUSED if plan.refused else Result.NOTHING_TO_DO
    result = Result.PLANNED if plan.fixes or left else idle
    return PlannedRepair(location=found.shown, result=result, plan=plan, scope=scope, left=left)


def require_possible(planned: PlannedRepair, *, offline: bool) -> None:
    """Raises RefusedError or StorageError for a plan that cannot be carried out, before anything is done."""
    snapshot = planned.plan.snapshot
    require_offline(planned.plan, offline=offline)
    require_renames(snapshot.fs, snapshot.path)


def carry_out(planned: PlannedRepair, locking: Locking | None = None) -> Repaired:
    """Mend what is wrong, with a backup; errors are those of :func:`acidctl.repair.apply.apply_repair`."""
    run = apply_repair(planned.plan, planned.scope, locking)
    return Repaired(location=planned.location, plan=planned.plan, scope=planned.scope, left=planned.left, run=run)
