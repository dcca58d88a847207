"""The bytes that a cleaning frees now and later, and the reasons for what stays."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from acidctl.acid.reasons import Reason
from acidctl.cleaning.plan import CleaningPlan
from acidctl.wording import human_bytes, text_of

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
