"""The outcomes of a cleaning, a restore and a purge for one location."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from acidctl.base.errors import AcidctlError
from acidctl.base.printable import one_line
from acidctl.cleaning.plan import CleaningPlan, Removal
from acidctl.cleaning.trash import TrashRun
from acidctl.outcome import Outcome, Result
from acidctl.storage.port import FileSystem
from acidctl.wording import iso_time, text_of


@dataclass(frozen=True, kw_only=True)
class PlannedCleaning(Outcome):
    """The entries that a cleaning would remove from a location, keeps back, and postpones."""

    plan: CleaningPlan

    def _repr_html_(self) -> str:
        return self.plan._repr_html_()

    @classmethod
    def of(cls, plan: CleaningPlan) -> Self:
        """Return the outcome of a plan that is not carried out."""
        idle = Result.POSTPONED if plan.postponed else Result.NOTHING_TO_DO
        return cls(location=plan.shown, result=Result.PLANNED if plan.removals else idle, plan=plan)

    def facts(self) -> Mapping[str, Any]:
        """Return the entries with their reasons, in words and as codes."""
        plan = self.plan
        return {
            "bytes": plan.bytes,
            "files": plan.files,
            "removals": [removal.record for removal in plan.removals],
            "keptBack": [{"name": name, "reason": text_of(why), "code": why.code} for name, why in plan.kept_back],
            "waiting": [
                {
                    "name": entry.name,
                    "since": iso_time(entry.since),
                    "until": iso_time(entry.until),
                    "reason": text_of(entry.reason),
                    "code": entry.reason.code,
                }
                for entry in plan.waiting
            ],
            "postponed": list(plan.postponed),
            "snapshotSource": plan.snapshot.source.record,
        }

    def reported(self) -> Mapping[str, Any]:
        """Return how many entries would be removed."""
        return {"removals": len(self.plan.removals)} if self.plan.removals else {}


@dataclass(frozen=True, kw_only=True)
class Cleaned(PlannedCleaning):
    """The entries that were removed from a location: all that were planned, the first of them, or none yet.

    Attributes:
        removed: in the order of removal.
        run: the run in the location's trash; None if the entries went elsewhere.
        places: the path of each entry in the trash of HDFS.
    """

    __repr__ = one_line

    removed: tuple[Removal, ...] = ()
    run: TrashRun | None = None
    places: tuple[str, ...] = ()

    @classmethod
    def after(
        cls,
        plan: CleaningPlan,
        removed: tuple[Removal, ...] = (),
        run: TrashRun | None = None,
        places: tuple[str, ...] = (),
    ) -> Self:
        """Return the outcome of a plan after some of its entries were removed."""
        result = Result.CLEANED if len(removed) == len(plan.removals) else Result.STOPPED
        if not removed:
            result = Result.POSTPONED if plan.removals or plan.postponed else Result.NOTHING_TO_DO
        return cls(location=plan.shown, result=result, plan=plan, removed=removed, run=run, places=places)

    @property
    def bytes(self) -> int:
        """Return how many bytes were removed."""
        return sum(removal.bytes for removal in self.removed)

    @property
    def left(self) -> tuple[str, ...]:
        """Return the planned names that are still in the location."""
        return tuple(removal.name for removal in self.plan.removals[len(self.removed) :])

    @property
    def is_changed(self) -> bool:
        """Say if anything was removed."""
        return bool(self.removed)

    @property
    def is_unfinished(self) -> bool:
        """Say if an entry that may be removed is still in the location."""
        return bool(self.left or self.plan.postponed)

    def bytes_by_use(self) -> Mapping[str, int]:
        """Return how many bytes were removed."""
        return {"removed": self.bytes}

    def facts(self) -> Mapping[str, Any]:
        """Return the plan, its remaining entries, and the paths of the removed ones."""
        return {
            **super().facts(),
            "postponed": [*self.left, *self.plan.postponed],
            "trashRun": self.run.id if self.run else None,
            "hdfsTrash": [self.plan.snapshot.fs.display(place) for place in self.places],
        }

    def reported(self) -> Mapping[str, Any]:
        """Return how many entries were removed, and how many remain."""
        return {"removals": len(self.removed), "left": len(self.left) + len(self.plan.postponed)}


@dataclass(frozen=True, kw_only=True)
class InTrash(Outcome):
    """A run that is in the trash of a location, will be restored, or was purged.

    Attributes:
        shown: the directory of the run, as a user would type it.
    """

    run: TrashRun
    shown: str = ""

    def bytes_by_use(self) -> Mapping[str, int]:
        """Return how many bytes a purge removed."""
        return {"removed": self.run.bytes} if self.result is Result.PURGED else {}

    def facts(self) -> Mapping[str, Any]:
        """Return the run's id, state, names and size."""
        return {
            "trashRun": self.run.id,
            "isComplete": self.run.can_be_undone,
            "names": list(self.run.names),
            "bytes": self.run.bytes,
        }

    def reported(self) -> Mapping[str, Any]:
        """Return how many names would be restored."""
        return {"names": len(self.run.names)} if self.result is Result.PLANNED else {}


@dataclass(frozen=True, kw_only=True)
class Restored(InTrash):
    """A restored run.

    Attributes:
        names: the names that this restore moved back.
        changes: how the state differs from the one before the cleaning; None if that is not known.
        not_compared: the error with which the comparison failed.
    """

    names: tuple[str, ...] = ()
    changes: tuple[str, ...] | None = None
    not_compared: AcidctlError | None = None
    result: Result = Result.RESTORED

    def bytes_by_use(self) -> Mapping[str, int]:
        """Return how many bytes were restored."""
        return {"restored": self.run.bytes}

    def facts(self) -> Mapping[str, Any]:
        """Return the run, and what others changed meanwhile."""
        return {**super().facts(), "changes": None if self.changes is None else list(self.changes)}

    def reported(self) -> Mapping[str, Any]:
        """Return how many names were restored."""
        return {"names": len(self.names)}


def in_trash(fs: FileSystem, run: TrashRun, result: Result = Result.IN_TRASH) -> InTrash:
    """Return a run as an outcome of its location."""
    return InTrash(location=fs.display(run.location), result=result, run=run, shown=fs.display(run.path))
