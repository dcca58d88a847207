"""What became of one location, whatever was done there: planned, changed, left alone or failed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from acidctl.acid.reasons import Code, Reason
from acidctl.base.errors import AcidctlError, GoneError
from acidctl.wording import joined


class Result(StrEnum):
    """What became of a location, in a word that programs may rely on."""

    PLANNED = "planned"
    NOTHING_TO_DO = "nothing-to-do"
    SKIPPED = "skipped"
    POSTPONED = "postponed"
    FAILED = "failed"
    STOPPED = "stopped"
    COMPACTED = "compacted"
    CLEANED = "cleaned"
    IN_TRASH = "in-trash"
    RESTORED = "restored"
    PURGED = "purged"
    REFUSED = "refused"
    REQUESTED = "requested"
    REPAIRED = "repaired"
    FINDINGS = "findings"
    UNCHECKED = "unchecked"
    NOTHING_FOUND = "nothing-found"

    @property
    def words(self) -> str:
        """The result for people."""
        own = {Result.POSTPONED: "left for later", Result.STOPPED: "done in part", Result.IN_TRASH: "in the trash"}
        return own.get(self, self.value.replace("-", " "))


DROPPED = Reason(Code.DROPPED_MEANWHILE)
"""Why there is nothing to do in one of many locations any more."""

TIME_IS_UP = Reason(Code.TIME_IS_UP)
"""Why a location is left for another run, most of the time."""

CHANGING = frozenset({Result.COMPACTED, Result.CLEANED, Result.STOPPED, Result.RESTORED, Result.REPAIRED})
"""Results after which a location is not what it was."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of one location. What a command knows besides, its own kind of outcome adds.

    In one of many that was dropped meanwhile there is nothing to do: it did not fail.

    Attributes:
        location: as a user would type it.
        reasons: why; none where the result says it.
        error: of a location that failed.
    """

    location: str
    result: Result
    reasons: tuple[Reason, ...] = ()
    error: AcidctlError | None = None

    def __post_init__(self) -> None:
        if isinstance(self.error, GoneError):
            for name, value in (("result", Result.NOTHING_TO_DO), ("reasons", (DROPPED,)), ("error", None)):
                object.__setattr__(self, name, value)

    @property
    def reason(self) -> str:
        """The reasons, as the rest of a sentence; empty without any."""
        return joined(self.reasons)

    @property
    def is_changed(self) -> bool:
        """Whether the location is not what it was."""
        return self.result in CHANGING

    @property
    def is_unfinished(self) -> bool:
        """Whether something of it is left for another run."""
        return self.result in (Result.POSTPONED, Result.STOPPED)

    @property
    def seconds(self) -> float | None:
        """Seconds of work in all tasks together; None if they are not measured."""
        return None

    def bytes_by_use(self) -> Mapping[str, int]:
        """Bytes by what was done with them: read, written, removed, restored."""
        return {}

    def facts(self) -> Mapping[str, Any]:
        """Return further facts by their keys in JSON."""
        return {}

    def reported(self) -> Mapping[str, Any]:
        """Return the facts that the report of a run has besides the result, by their keys."""
        return {"reason": self.reason} if self.reason else {}

    def record(self) -> dict[str, Any]:
        """Return the outcome as JSON has it, without the version of the schema."""
        record: dict[str, Any] = {"location": self.location, "result": self.result.value}
        if self.error:
            record |= {"error": self.error.code, "reason": str(self.error)}
        elif self.reason:
            record["reason"] = self.reason
        if self.reasons:
            record["reasonCodes"] = [one.code for one in self.reasons]
        if self.result is Result.SKIPPED:
            record["code"] = self.reasons[0].code
        return {**record, **self.facts()}
