"""The outcome of a run that a location keeps until it is purged: a cleaning in its trash, a repair in its backup."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from acidctl.location.change.journal import Run, RunState
from acidctl.outcome import Outcome, Result
from acidctl.wording import human_bytes, human_count, some_of

_INCOMPLETE = {
    RunState.STAGED: "incomplete: it was interrupted, and nothing can be restored from it",
    RunState.UNDONE: "restored already; its directory is still to be removed",
    RunState.FORGOTTEN: "incomplete: it was being purged, and nothing can be restored from it",
}


@dataclass(frozen=True, kw_only=True)
class KeptRunOutcome(Outcome):
    """A run that is kept, will be undone or deleted, or was.

    Attributes:
        shown: the directory of the run, as a user would type it.
    """

    NAMES_SHOWN: ClassVar[int] = 8

    run: Run
    shown: str = ""

    @property
    def entries(self) -> tuple[str, ...]:
        """The names or paths in the location that the run took or changed."""
        raise NotImplementedError

    @property
    def kinds(self) -> str:
        """The kinds of a repair, before the number of entries; empty for a cleaning."""
        return ""

    @property
    def heading(self) -> str:
        return (self.run.id or self.shown) if self.result is Result.IN_TRASH else self.result.words

    def line(self) -> str:
        run = self.run
        if self.result is Result.RESTORED:
            return f"{self.location}: {run.id} undone: {some_of(self.entries, self.NAMES_SHOWN)}"
        what = f"cannot be used: {run.problem}" if run.problem else _INCOMPLETE.get(run.state, "")
        if not what:
            count, names = human_count(len(self.entries), "entry", "entries"), some_of(self.entries, self.NAMES_SHOWN)
            what = f"{self.kinds}{count}, {human_bytes(run.bytes)}"
            what += f": {names}" if self.result is not Result.PURGED else ""
        done = "" if self.result in (Result.IN_TRASH, Result.PLANNED) else f"{self.result.words}: "
        return f"{self.location}: {run.id}: {done}{what}"

    def amounts(self) -> Mapping[str, int]:
        return {"runs": 1, "entries": len(self.entries), "bytes": self.run.bytes}

    def bytes_by_use(self) -> Mapping[str, int]:
        """Return how many bytes were restored, or removed permanently."""
        use = {Result.RESTORED: "restored", Result.PURGED: "purged"}.get(self.result)
        return {use: self.run.bytes} if use else {}
