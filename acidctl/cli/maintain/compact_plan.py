"""What `acidctl compact` was asked for, and the plan of each location."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from acidctl.acid.layout import TableType
    from acidctl.acid.triggers import Decision, Figures, Thresholds
    from acidctl.cli.maintain.compact_results import Printer
    from acidctl.compaction.output_settings import Writing
    from acidctl.compaction.plan import CompactionPlan
    from acidctl.location.find import Found
    from acidctl.location.lists import SnapshotLists
    from acidctl.location.lock import Locking
    from acidctl.location.snapshot import Snapshot


@dataclass(frozen=True)
class Wanted:
    """What was asked for, the same for every location."""

    mode: str
    thresholds: Thresholds
    is_auto_off: bool
    min_deltas: int
    visibility_txn: int
    table_type: TableType | None
    force: bool
    dry_run: bool
    writing: Writing
    locking: Locking

    def plan(self, found: Found, lists: SnapshotLists, printer: Printer) -> CompactionPlan | None:
        """The plan of one location; None, and said why, when there is none."""
        import time

        from acidctl.compaction.plan import below_straddlers, nothing_to_do, plan_compaction, refuse_unsafe
        from acidctl.errors import AcidctlError
        from acidctl.wording import text_of

        try:
            snapshot = below_straddlers(self._finished(found, lists))
            printer.run.saw(snapshot)
            decision, shown_figures = self._decide(snapshot)
            kind = decision.kind
            idle = decision.text if kind is None else nothing_to_do(snapshot, kind)
            if kind is None or idle or _waits(snapshot):
                stop = snapshot.assumed.stop if snapshot.assumed else None
                printer.nothing(
                    found.shown, "; ".join(filter(None, (idle, text_of(stop) if stop else None))), shown_figures
                )
                return None
            refuse_unsafe(snapshot, time.time(), force=self.force)
            staging = f"_tmp_{uuid.uuid4()}"
            plan = plan_compaction(
                snapshot, kind, staging, self.writing, self.visibility_txn, table_type=self.table_type
            )
        except AcidctlError as error:
            printer.failed(found.shown, error)
            return None
        printer.planned(found.shown, plan, decision.text, shown_figures)
        return plan

    def _finished(self, found: Found, lists: SnapshotLists) -> Snapshot:
        """The snapshot, after finishing a publication that was interrupted half-way."""
        from acidctl.cli.output.console import note
        from acidctl.compaction.publish import remove_dead_staging
        from acidctl.location.publication import (
            finish_half_published,
            half_published,
            refuse_half_published,
            shows_by_copies,
        )

        snapshot = found.snapshot(lists, compactor=True)
        if self.dry_run:
            refuse_half_published(snapshot)
            return snapshot
        remove_dead_staging(snapshot)
        if not half_published(snapshot):
            return snapshot
        with self.locking.at(snapshot.fs, snapshot.path, always=shows_by_copies(snapshot.fs)):
            # Looked at again: whoever held the lock until now may have finished it.
            finished = finish_half_published(found.afresh().snapshot(lists, compactor=True))
        if finished:
            note(f"{found.shown}: finished an interrupted compaction: {', '.join(finished)}")
        return found.afresh().snapshot(lists, compactor=True)

    def _decide(self, snapshot: Snapshot) -> tuple[Decision, Figures | None]:
        """The type of compaction and why; with the figures, where they decided."""
        from acidctl.acid.triggers import CompactionKind, Decision, decide, figures_of

        found = figures_of(snapshot.listing, snapshot.state)
        if found.deltas < self.min_deltas:
            return Decision(None, f"{_deltas(found.deltas)} < {self.min_deltas}, the --min-deltas"), found
        if self.mode != "auto":
            return Decision(CompactionKind(self.mode), ""), None
        if self.is_auto_off:
            return Decision(None, "no_auto_compaction is set"), None
        return decide(found, self.thresholds), found


def _waits(snapshot: Snapshot) -> bool:
    """Whether original files are so young that they may still be written: their order numbers all of their rows."""
    return bool(
        snapshot.assumed and snapshot.state.originals and any(u.is_original for u in snapshot.assumed.undecided)
    )


def _deltas(count: int) -> str:
    return f"{count} delta{'' if count == 1 else 's'}"
