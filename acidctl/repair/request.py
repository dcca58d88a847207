"""A repair of one location from request to outcome, in its safe order; nothing here prints or prompts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from acidctl.acid.names import acid_directory
from acidctl.base.errors import NotFoundError
from acidctl.location.change.journal import RunState
from acidctl.location.change.lock import Locking
from acidctl.location.table_location import TableLocation
from acidctl.outcome import Outcome, Result
from acidctl.repair.apply import apply_repair, plan_repair, unfinished
from acidctl.repair.backup import RepairRun
from acidctl.repair.plan import RepairKind, RepairPlan, Scope
from acidctl.storage.port import FileSystem, base_name, parent_of


@dataclass(frozen=True, kw_only=True)
class RepairOutcome(Outcome):
    """What a repair would do, or did, to a location.

    Attributes:
        left: interrupted repairs, which are finished first.
        run: the run by which the repair can be undone; None if only interrupted repairs were finished.
    """

    plan: RepairPlan
    scope: Scope
    left: tuple[RepairRun, ...] = ()
    run: RepairRun | None = None

    @property
    def has_work(self) -> bool:
        """Say if the repair would change anything."""
        return bool(self.plan.fixes or self.left)

    def _run(self) -> dict[str, Any]:
        return {"run": self.run.id if self.run else None} if self.result is Result.REPAIRED else {}

    def facts(self) -> Mapping[str, Any]:
        """Return what is wrong with each file and what mends it, or why nothing can."""
        plan = self.plan
        return {
            "repair": plan.kind.value,
            "bytes": plan.bytes,
            "fixes": [
                {"path": fix.path, "problem": fix.problem, "remedy": fix.remedy, "bytes": fix.bytes}
                for fix in plan.fixes
            ],
            "refused": [{"path": item.path, "reason": item.why, "hint": item.hint} for item in plan.refused],
            "interrupted": [run.id for run in self.left],
            **self._run(),
        }

    def reported(self) -> Mapping[str, Any]:
        """Return how many fixes, refusals and interrupted repairs there are."""
        plan = self.plan
        counts = {"fixes": len(plan.fixes), "refused": len(plan.refused), "interrupted": len(self.left)}
        return {**self._run(), **counts}

    def bytes_by_use(self) -> Mapping[str, int]:
        """Return how many bytes were written or moved."""
        return {"written": self.run.bytes} if self.run else {}


@dataclass(frozen=True, kw_only=True)
class BackedUp(Outcome):
    """A repair that is in the backup of a location."""

    run: RepairRun

    def bytes_by_use(self) -> Mapping[str, int]:
        """Return how many bytes were restored."""
        return {"restored": self.run.bytes}

    def reported(self) -> Mapping[str, Any]:
        """Return the run's id."""
        return {"run": self.run.id}

    def facts(self) -> Mapping[str, Any]:
        """Return which repair it was, and of which paths."""
        run = self.run
        return {"run": run.id, "repair": run.kind, "paths": list(run.paths), "bytes": run.bytes}


def location_of(fs: FileSystem, path: str) -> tuple[str, str]:
    """Split a path that names a location, a directory of one, or a file, into the location and the path below it.

    Raises:
        NotFoundError: the path is a file outside of any ACID directory.
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


def plan_location(found: TableLocation, kind: RepairKind, scope: Scope) -> RepairOutcome:
    """Plan the repair of one location, whose resolver counts everything; raises the errors of taking its snapshot."""
    snapshot = found.snapshot()
    plan, left = plan_repair(snapshot, kind, scope), tuple(unfinished(snapshot.fs, snapshot.path))
    # Interrupted repairs are finished first, so their paths are not refused.
    begun = {path for run in left if run.state is RunState.INTERRUPTED for path in run.paths}
    plan = replace(plan, refused=tuple(item for item in plan.refused if item.path not in begun))
    idle = Result.REFUSED if plan.refused else Result.NOTHING_TO_DO
    result = Result.PLANNED if plan.fixes or left else idle
    return RepairOutcome(location=found.shown, result=result, plan=plan, scope=scope, left=left)


def carry_out(planned: RepairOutcome, locking: Locking | None = None) -> RepairOutcome:
    """Carry the plan out, with a backup; it raises the errors of :func:`acidctl.repair.apply.apply_repair`."""
    run = apply_repair(planned.plan, planned.scope, locking)
    return replace(planned, result=Result.REPAIRED, run=run)
