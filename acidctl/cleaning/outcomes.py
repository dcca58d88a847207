"""What a cleaning, and what undoes it, makes of one location: planned, cleaned, restored, purged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from acidctl.cleaning.plan import CleaningPlan, Removal
from acidctl.cleaning.trash import TrashRun
from acidctl.errors import AcidctlError
from acidctl.one_line import one_line
from acidctl.outcome import Outcome, Result
from acidctl.storage.port import FileSystem
from acidctl.wording import iso_time, text_of


@dataclass(frozen=True, kw_only=True)
class PlannedCleaning(Outcome):
    """What a cleaning would remove from a location, keeps back, and leaves for later."""

    plan: CleaningPlan

    def _repr_html_(self) -> str:
        return self.plan._repr_html_()

    @classmethod
    def of(cls, plan: CleaningPlan) -> Self:
        """The outcome that a plan is, where nothing more is done."""
        idle = Result.POSTPONED if plan.postponed else Result.NOTHING_TO_DO
        return cls(location=plan.shown, result=Result.PLANNED if plan.removals else idle, plan=plan)

    def facts(self) -> Mapping[str, Any]:
        """Entries with their reasons, in words and as codes."""
        plan = self.plan
        return {
            "bytes": plan.bytes,
            "files": plan.files,
            "removals": [removal.record for removal in plan.removals],
            "keptBack": [{"name": name, "reason": text_of(why), "code": why.code} for name, why in plan.kept_back],
            "waiting": [
                {
                    "name": one.name,
                    "since": iso_time(one.since),
                    "until": iso_time(one.until),
                    "reason": text_of(one.reason),
                    "code": one.reason.code,
                }
                for one in plan.waiting
            ],
            "postponed": list(plan.postponed),
            "snapshotSource": plan.snapshot.source.record,
        }

    def reported(self) -> Mapping[str, Any]:
        """How many entries would go."""
        return {"removals": len(self.plan.removals)} if self.plan.removals else {}


@dataclass(frozen=True, kw_only=True)
class Cleaned(PlannedCleaning):
    """What was removed from a location: all that was planned, a part of it from the beginning, or nothing yet.

    Attributes:
        removed: in this order.
        run: in the location's trash; None when there is none.
        places: where to in the trash of HDFS each entry went.
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
        """The outcome of a plan of which so much was done."""
        result = Result.CLEANED if len(removed) == len(plan.removals) else Result.STOPPED
        if not removed:
            result = Result.POSTPONED if plan.removals or plan.postponed else Result.NOTHING_TO_DO
        return cls(location=plan.shown, result=result, plan=plan, removed=removed, run=run, places=places)

    @property
    def bytes(self) -> int:
        """Of everything that was removed."""
        return sum(removal.bytes for removal in self.removed)

    @property
    def left(self) -> tuple[str, ...]:
        """The names that were planned and are still there."""
        return tuple(removal.name for removal in self.plan.removals[len(self.removed) :])

    @property
    def is_changed(self) -> bool:
        """Whether anything was removed."""
        return bool(self.removed)

    @property
    def is_unfinished(self) -> bool:
        """Whether something that may go is still there."""
        return bool(self.left or self.plan.postponed)

    def bytes_by_use(self) -> Mapping[str, int]:
        """Bytes that were removed."""
        return {"removed": self.bytes}

    def facts(self) -> Mapping[str, Any]:
        """The plan, what is left of it, and where what was removed can be found."""
        return {
            **super().facts(),
            "postponed": [*self.left, *self.plan.postponed],
            "trashRun": self.run.id if self.run else None,
            "hdfsTrash": [self.plan.snapshot.fs.display(place) for place in self.places],
        }

    def reported(self) -> Mapping[str, Any]:
        """How many entries went, and how many are left."""
        return {"removals": len(self.removed), "left": len(self.left) + len(self.plan.postponed)}


@dataclass(frozen=True, kw_only=True)
class InTrash(Outcome):
    """A run in the trash of a location: there, to be restored, or purged.

    Attributes:
        shown: the directory of the run, as a user would type it.
    """

    run: TrashRun
    shown: str = ""

    def bytes_by_use(self) -> Mapping[str, int]:
        """Bytes that a purge removed."""
        return {"removed": self.run.bytes} if self.result is Result.PURGED else {}

    def facts(self) -> Mapping[str, Any]:
        """The run."""
        return {
            "trashRun": self.run.id,
            "isComplete": self.run.is_complete,
            "names": list(self.run.names),
            "bytes": self.run.bytes,
        }

    def reported(self) -> Mapping[str, Any]:
        """How many names would come back."""
        return {"names": len(self.run.names)} if self.result is Result.PLANNED else {}


@dataclass(frozen=True, kw_only=True)
class Restored(InTrash):
    """A run that is back.

    Attributes:
        names: that came back now.
        changes: how the state differs from the one before the cleaning; None where that is not known.
        not_compared: why it is not known, where the comparison failed.
    """

    names: tuple[str, ...] = ()
    changes: tuple[str, ...] | None = None
    not_compared: AcidctlError | None = None
    result: Result = Result.RESTORED

    def bytes_by_use(self) -> Mapping[str, int]:
        """Bytes that are back."""
        return {"restored": self.run.bytes}

    def facts(self) -> Mapping[str, Any]:
        """The run, and what others did meanwhile."""
        return {**super().facts(), "changes": None if self.changes is None else list(self.changes)}

    def reported(self) -> Mapping[str, Any]:
        """How many names came back."""
        return {"names": len(self.names)}


def in_trash(fs: FileSystem, run: TrashRun, result: Result = Result.IN_TRASH) -> InTrash:
    """A run as an outcome of its location."""
    return InTrash(location=fs.display(run.location), result=result, run=run, shown=fs.display(run.path))
