"""A repair of one location from request to outcome, in its safe order; nothing here prints or prompts."""

from __future__ import annotations

from collections.abc import Collection, Mapping
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
    """The plan of a location's repair, or its result.

    Attributes:
        interrupted: earlier repairs that were interrupted, and are finished first.
        run: the run by which the repair can be undone; None if only interrupted repairs were finished.
    """

    plan: RepairPlan
    scope: Scope
    interrupted: tuple[RepairRun, ...] = ()
    run: RepairRun | None = None

    @property
    def has_work(self) -> bool:
        """Return whether the repair would change anything."""
        return bool(self.plan.fixes or self.interrupted)

    def facts(self) -> Mapping[str, Any]:
        """Return the problem and the remedy of each file, or why it cannot be repaired."""
        plan = self.plan
        run = {"run": self.run.id if self.run else None} if self.result is Result.REPAIRED else {}
        return {
            "bytes": plan.bytes,
            "fixes": [
                {"kind": fix.kind, "path": fix.path, "problem": fix.problem, "remedy": fix.remedy, "bytes": fix.bytes}
                for fix in plan.fixes
            ],
            "refused": [
                {"kind": item.kind, "path": item.path, "reason": item.why, "hint": item.hint} for item in plan.refused
            ],
            "interrupted": [run.id for run in self.interrupted],
            **run,
        }


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


def plan_location(found: TableLocation, kinds: Collection[RepairKind], scope: Scope) -> RepairOutcome:
    """Plan the repair of one location from a new snapshot that counts everything as committed."""
    snapshot = found.snapshot()
    plan, interrupted = plan_repair(snapshot, kinds, scope), tuple(unfinished(snapshot.fs, snapshot.path))
    # Interrupted repairs are finished first, so their paths are not refused.
    begun = {path for run in interrupted if run.state is RunState.INTERRUPTED for path in run.paths}
    plan = replace(plan, refused=tuple(item for item in plan.refused if item.path not in begun))
    idle = Result.REFUSED if plan.refused else Result.NOTHING_TO_DO
    result = Result.PLANNED if plan.fixes or interrupted else idle
    return RepairOutcome(location=found.shown, result=result, plan=plan, scope=scope, interrupted=interrupted)


def carry_out(planned: RepairOutcome, locking: Locking | None = None, run_id: str = "") -> RepairOutcome:
    """Carry the plan out, with a backup; it raises the errors of :func:`acidctl.repair.apply.apply_repair`."""
    run = apply_repair(planned.plan, planned.scope, locking, run_id)
    return replace(planned, result=Result.REPAIRED, run=run)
