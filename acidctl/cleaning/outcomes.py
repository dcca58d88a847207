"""The outcomes of a cleaning, a restore and a purge for one location."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

from acidctl.acid.reasons import Code, Reason, reason
from acidctl.acid.state import EntryKind
from acidctl.base.errors import AcidctlError
from acidctl.base.printable import one_line
from acidctl.cleaning.freeable import freeable_of, held_back
from acidctl.cleaning.plan import CleaningPlan, Removal
from acidctl.cleaning.trash import TrashRun
from acidctl.location.change.journal import KeptRunOutcome
from acidctl.outcome import Details, NextCommand, Outcome, Remark, Result
from acidctl.storage.port import FileSystem
from acidctl.wording import human_bytes, human_count, iso_time, names_in_short, some_of, text_of

ROWS_SHOWN = 20
"""A plan of more entries is shown by the reasons for them."""


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

    @property
    def code(self) -> str:
        """The code of the first reason why an entry stays, if nothing may go."""
        return next((why.code for _, why in self.kept()), "") if not self.plan.removals else ""

    @property
    def heading(self) -> str:
        if self.plan.removals:
            return "to remove"
        return "nothing to clean yet" if any(self.kept()) else "nothing to clean"

    def line(self) -> str:
        plan = self.plan
        if not plan.removals:
            held = held_back(plan)
            return f"{self.location}: nothing to clean" + (f" yet: {held}" if held else "")
        files = human_count(plan.files, "file")
        return f"{self.location}: {len(plan.removals)} to remove, {files}, {human_bytes(plan.bytes)}"

    def details(self, *, every: bool) -> Details | None:
        is_long = len(self.plan.removals) > ROWS_SHOWN and not every
        groups: dict[tuple[str, str], list[Removal]] = {}
        for removal in self.plan.removals:
            state = "leftover" if removal.kind is EntryKind.STAGING else removal.state.value
            groups.setdefault((state, text_of(removal.reason) if is_long else removal.name), []).append(removal)
        rows = (
            (
                names_in_short(removal.name for removal in group),
                *([f"{len(group):,}"] * is_long),
                state,
                human_bytes(sum(removal.bytes for removal in group)),
                text_of(group[0].reason),
            )
            for (state, _), group in groups.items()
        )
        columns = ("name", *["entries"] * is_long, "state", "size", "reason")
        return Details(columns, tuple(rows), is_long) if groups else None

    def remarks(self) -> Iterable[Remark]:
        if any(Code.TRANSACTION_UNKNOWN in why.codes for _, why in self.kept()):
            yield Remark("give Hive's lists, or --assume-committed 1h if all that is older is committed")

    def kept(self) -> Iterator[tuple[str, Reason]]:
        yield from self.plan.kept_back
        yield from ((entry.name, entry.reason) for entry in self.plan.waiting)
        if postponed := self.plan.postponed:
            children = self.plan.snapshot.listing.files_by_child
            size = sum(entry.size for name in postponed for entry in children.get(name, ()))
            yield from ((name, reason(Code.BUDGET_IS_USED, bytes=size)) for name in postponed)

    def waiting(self) -> tuple[int, float | None]:
        free = freeable_of(self.plan)
        return free.later, free.until

    def amounts(self) -> Mapping[str, int]:
        return _amounts(self.plan.removals)

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


@dataclass(frozen=True, kw_only=True)
class Cleaned(PlannedCleaning):
    """The entries that were removed from a location: all that were planned, the first of them, or none yet.

    Attributes:
        removed: in the order of removal.
        run: the run in the location's trash; None if the entries went elsewhere.
    """

    __repr__ = one_line

    removed: tuple[Removal, ...] = ()
    run: TrashRun | None = None

    @classmethod
    def after(cls, plan: CleaningPlan, removed: tuple[Removal, ...] = (), run: TrashRun | None = None) -> Self:
        """Return the outcome of a plan after some of its entries were removed."""
        result = Result.CLEANED if len(removed) == len(plan.removals) else Result.STOPPED
        if not removed:
            result = Result.POSTPONED if plan.removals or plan.postponed else Result.NOTHING_TO_DO
        return cls(location=plan.shown, result=result, plan=plan, removed=removed, run=run)

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

    @property
    def heading(self) -> str:
        return f"moved to the trash as {self.run.id}" if self.run else "deleted" if self.removed else self.result.words

    def line(self) -> str:
        if not self.removed:
            return f"{self.location}: left for later"
        count = f"{len(self.removed)}" + (f" of {len(self.plan.removals)}" if self.left else "")
        return f"{self.location}: {count} {self.heading}, {human_bytes(self.bytes)}"

    def details(self, *, every: bool) -> None:
        """Return None: the plan has shown the entries."""

    def kept(self) -> Iterator[tuple[str, Reason]]:
        return iter(())  # shown with the plan

    def waiting(self) -> tuple[int, float | None]:
        return 0, None

    def remarks(self) -> Iterable[Remark]:
        return ()  # shown with the plan

    def next_command(self) -> NextCommand | None:
        return NextCommand("undo", ("restore", "--run", self.run.id)) if self.run and self.removed else None

    def amounts(self) -> Mapping[str, int]:
        return _amounts(self.removed)

    def bytes_by_use(self) -> Mapping[str, int]:
        """Return how many bytes were removed."""
        return {"removed": self.bytes}

    def facts(self) -> Mapping[str, Any]:
        """Return the plan, its remaining entries, and the paths of the removed ones."""
        return {
            **super().facts(),
            "postponed": [*self.left, *self.plan.postponed],
            "trashRun": self.run.id if self.run else None,
        }


def _amounts(removals: tuple[Removal, ...]) -> dict[str, int]:
    files, size = sum(removal.files for removal in removals), sum(removal.bytes for removal in removals)
    return {"entries": len(removals), "files": files, "bytes": size}


@dataclass(frozen=True, kw_only=True)
class InTrash(KeptRunOutcome):
    """A cleaning that is in the trash of a location, will be restored, or was purged."""

    run: TrashRun

    @property
    def entries(self) -> tuple[str, ...]:
        return self.run.names

    def facts(self) -> Mapping[str, Any]:
        """Return the run's id, state, names and size."""
        return {
            "trashRun": self.run.id,
            "isComplete": self.run.can_be_undone,
            "names": list(self.run.names),
            "bytes": self.run.bytes,
        }


@dataclass(frozen=True, kw_only=True)
class Restored(InTrash):
    """A restored cleaning.

    Attributes:
        names: the names that this restore moved back.
        changes: how the state differs from the one before the cleaning; None if that is not known.
        not_compared: the error with which the comparison failed.
    """

    names: tuple[str, ...] = ()
    changes: tuple[str, ...] | None = None
    not_compared: AcidctlError | None = None
    result: Result = Result.RESTORED

    @property
    def heading(self) -> str:
        return "restored to another state than before the cleaning" if self.changes else "restored"

    def line(self) -> str:
        if not self.names:
            return f"{self.location}: {self.run.id} was restored already"
        state = "; the state is as before the cleaning" if self.changes == () else ""
        return f"{self.location}: {len(self.names)} restored: {some_of(self.names, self.NAMES_SHOWN)}{state}"

    def remarks(self) -> Iterable[Remark]:
        if why := self.not_compared:
            text = f"{self.location}: its state could not be compared with the one before: {why}"
            yield Remark(text, is_warning=True)
        if self.changes:
            yield Remark(f"{self.location}: the state is not as before the cleaning: {'; '.join(self.changes)}")

    def facts(self) -> Mapping[str, Any]:
        """Return the run, and what others changed meanwhile."""
        return {**super().facts(), "changes": None if self.changes is None else list(self.changes)}


def in_trash(fs: FileSystem, run: TrashRun, result: Result = Result.IN_TRASH) -> InTrash:
    """Return a run as an outcome of its location."""
    return InTrash(location=fs.display(run.location), result=result, run=run, shown=fs.display(run.path))
