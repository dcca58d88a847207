"""The verdict on a location in a word, and what a cleaning can free there and when."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from acidctl.acid.reasons import Code, Reason
from acidctl.acid.state import State
from acidctl.base.errors import AcidctlError
from acidctl.cleaning.plan import CleaningPlan, plan_cleaning
from acidctl.cleaning.retention import Policy
from acidctl.location.evidence import Evidence
from acidctl.location.snapshot import Snapshot
from acidctl.location.table_location import TableLocation
from acidctl.wording import human_bytes, text_of

OK = "ok"
UNSAFE = "unsafe"
VERDICT_STYLES = {OK: "green", UNSAFE: "bold red", "unreadable": "red", "unknown": "yellow", "left alone": "dim"}
"""Colours of verdicts; the others, in which something is due, are yellow."""
_REASONS = 3
"""The most reasons that are named for what is kept back."""


@dataclass(frozen=True, slots=True)
class Freeable:
    """The bytes that a cleaning frees now, and the bytes that are too young for it.

    Attributes:
        until: when all young ones may be removed, seconds since the epoch; None if unknown.
    """

    now: int = 0
    later: int = 0
    until: float | None = None

    @property
    def text(self) -> str:
        """Return ``2.9 KiB free now``, or ``2.9 KiB free after 23 Nov 16:27 UTC``; empty for nothing."""
        parts = [f"{human_bytes(self.now)} free now"] * (self.now > 0)
        return ", ".join([*parts, *[self.later_text] * (self.later > 0)])

    @property
    def later_text(self) -> str:
        """Return the second part of :attr:`text`, even for 0 bytes."""
        return f"{human_bytes(self.later)} free {f'after {self._after} UTC' if self._after else 'later'}"

    @property
    def cell(self) -> str:
        """Return the text for the column of free bytes: ``2.9 KiB after 23 Nov 16:27``."""
        if self.now:
            return f"{human_bytes(self.now)} now" + (", more later" if self.later else "")
        when = f"after {self._after}" if self._after else "later"
        return f"{human_bytes(self.later)} {when}" if self.later else ""

    @property
    def _after(self) -> str:
        if self.until is None:
            return ""
        # Rounded up: the minute that has begun is not over.
        after = datetime.fromtimestamp(self.until + 59.999, UTC)
        return f"{after.day} {after:%b %H:%M}"


def freeable_in(found: TableLocation, snapshot: Snapshot, evidence: Evidence) -> Freeable:
    """Return what `acidctl clean` without options would remove; nothing if it would refuse.

    Args:
        evidence: whether the location is known to be transactional.

    Raises:
        MetastoreError: the metastore does not tell which readers there are.
    """
    is_any = any(verdict.state in (State.OBSOLETE, State.ABORTED) for verdict in snapshot.state.verdicts)
    if not (is_any and evidence.may_change):
        return Freeable()
    if found.resolver.warehouse and found.hive:
        snapshot = found.snapshot(readers=True, refresh=False)
    try:
        snapshot.require_agreement()
        plan = plan_cleaning(snapshot, Policy(), time.time())
    except AcidctlError:
        return Freeable()
    return freeable_of(plan)


def freeable_of(plan: CleaningPlan) -> Freeable:
    """Return the bytes that a plan removes, and the bytes that it leaves because they are too young."""
    later = _bytes(plan, (waiting.name for waiting in plan.waiting))
    return Freeable(plan.bytes, later, _latest(waiting.until for waiting in plan.waiting))


def held_back(plan: CleaningPlan) -> str:
    """Return what a cleaning leaves, and why; empty if it removes all that is obsolete.

    ``2.9 KiB free after 23 Nov 16:27 UTC, 1.2 KiB kept back: no_cleanup is set for the table``
    """
    names: dict[str, list[str]] = {}
    for name, why in plan.kept_back:
        names.setdefault(_in_short(why), []).append(name)
    kept = sorted(((_bytes(plan, some), why) for why, some in names.items()), key=lambda part: -part[0])
    parts = [freeable_of(plan).later_text] * bool(plan.waiting)
    parts += [f"{human_bytes(size)} kept back: {why}" for size, why in kept[:_REASONS]]
    parts += [f"and for {len(kept) - _REASONS} more reasons"] * (len(kept) > _REASONS)
    parts += [f"{human_bytes(_bytes(plan, plan.postponed))} are more than --max-bytes"] * bool(plan.postponed)
    return ", ".join(parts)


def _in_short(why: Reason) -> str:
    """Return a reason; if it has many parts, with the first part and the number of the others."""
    more = f", and {len(why.parts) - 1:,} more like it" if len(why.parts) > 1 else ""
    return text_of(replace(why, parts=why.parts[:1])) + more


def _bytes(plan: CleaningPlan, names: Iterable[str]) -> int:
    children = plan.snapshot.listing.files_by_child
    return sum(entry.size for name in names for entry in children.get(name, ()))


def freeable_together(parts: Iterable[Freeable]) -> Freeable:
    """Return the sums of several locations."""
    every = list(parts)
    until = _latest(part.until for part in every if part.later)
    return Freeable(sum(part.now for part in every), sum(part.later for part in every), until)


def _latest(times: Iterable[float | None]) -> float | None:
    every = list(times)
    finite = [until for until in every if until is not None]
    return max(finite) if finite and len(finite) == len(every) else None


def verdict_of(report: Mapping[str, Any]) -> str:
    """Return ``ok``, ``major due``, ``unsafe`` (the metastore is older than the files, or Hive never writes the
    layout), ``unreadable`` (not enough history), ``unknown`` (whose table it is), or ``left alone``.
    """
    summary = report["summary"]
    if summary["disagreements"]:
        return UNSAFE
    if summary["historyProblem"]:
        return "unreadable"
    if summary["compactionReasonCode"] == Code.LAYOUT_REFUSED:
        return UNSAFE
    if summary["compaction"]:
        return f"{summary['compaction']} due"
    if summary["compactionReasonCode"] == Code.NOT_TRANSACTIONAL:
        return OK if report["transactional"]["code"] == Code.EMPTY else "unknown"
    return "left alone" if summary["compactionReasonCode"] == Code.AUTO_IS_OFF else OK


def why_of(report: Mapping[str, Any], verdict: str) -> str:
    """Return the reason for a verdict; empty for `ok`."""
    if verdict == OK:
        return ""
    if verdict == UNSAFE and report["summary"]["disagreements"]:
        return "; ".join(each["reason"] for each in report["summary"]["disagreements"])
    problem: str = report["summary"]["historyProblem"] or report["summary"]["compactionReason"]
    return problem
