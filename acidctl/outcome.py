"""The outcome of a verb for one location: planned, changed, left alone or failed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from acidctl.acid.reasons import Code, Reason
from acidctl.base.errors import AcidctlError, DeadlineError, ExitStatus, GoneError
from acidctl.wording import joined


class Result(StrEnum):
    """The outcome for a location, in a word that programs may rely on."""

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
    WRITTEN = "written"
    CREATED = "created"
    ERASED = "erased"
    FINDINGS = "findings"
    UNCHECKED = "unchecked"
    NOTHING_FOUND = "nothing-found"

    @property
    def words(self) -> str:
        """The result for people."""
        words = {Result.POSTPONED: "left for later", Result.STOPPED: "done in part", Result.IN_TRASH: "in the trash"}
        return words.get(self, self.value.replace("-", " "))


DROPPED = Reason(Code.DROPPED_MEANWHILE)
"""Why there is nothing to do in one of many locations any more."""

TIME_IS_UP = Reason(Code.TIME_IS_UP)
"""Why a location is left for another run, most of the time."""

CHANGING = frozenset(
    {Result.COMPACTED, Result.CLEANED, Result.STOPPED, Result.RESTORED, Result.REPAIRED, Result.WRITTEN, Result.CREATED}
)
"""Results after which a location is not what it was."""


@dataclass(frozen=True, slots=True)
class Remark:
    """A line beside that of an outcome; of several equal remarks only the first is printed."""

    text: str
    is_warning: bool = False


@dataclass(frozen=True, slots=True)
class NextCommand:
    """A command that a user may want after an outcome.

    Attributes:
        purpose: what it is for: ``undo``.
        words: the command and its options, without a location.
        hive_name: the name of the location in a metastore; empty without one.
    """

    purpose: str
    words: tuple[str, ...]
    hive_name: str = ""


@dataclass(frozen=True, slots=True)
class Details:
    """A table about one outcome; the last column has sentences, and columns called size or entries have numbers.

    Attributes:
        is_folded: a row stands for several entries, which have rows of their own with `-v`.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    is_folded: bool = False


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The outcome of one location; each verb has a class that adds what it knows.

    A location that was dropped meanwhile did not fail: there is nothing to do. If the deadline of the run came first,
    it is left for another run.

    Attributes:
        location: as a user would type it.
        reasons: why; none if the result says it.
        error: of a location that failed.
        part: the part of a nightly run; empty for any other run.
    """

    location: str
    result: Result
    reasons: tuple[Reason, ...] = ()
    error: AcidctlError | None = None
    part: str = field(default="", init=False, repr=False)

    def __post_init__(self) -> None:
        if isinstance(self.error, GoneError):
            self._did_not_fail(Result.NOTHING_TO_DO, DROPPED)
        elif isinstance(self.error, DeadlineError):
            self._did_not_fail(Result.POSTPONED, TIME_IS_UP)

    def _did_not_fail(self, result: Result, why: Reason) -> None:
        for name, value in (("result", result), ("reasons", (why,)), ("error", None)):
            object.__setattr__(self, name, value)

    @property
    def reason(self) -> str:
        """The reasons, as the rest of a sentence; empty without any."""
        return joined(self.reasons)

    @property
    def code(self) -> str:
        """The code of the first reason; empty without any."""
        return self.reasons[0].code if self.reasons else ""

    @property
    def is_changed(self) -> bool:
        """Whether the location is not what it was."""
        return self.result in CHANGING

    @property
    def is_unfinished(self) -> bool:
        """Whether something of it is left for another run."""
        return self.result in (Result.POSTPONED, Result.STOPPED)

    @property
    def exit_status(self) -> int:
        """The exit status that the outcome alone would give a command."""
        return self.error.exit_status if self.error else ExitStatus.DONE

    @property
    def seconds(self) -> float | None:
        """Seconds of work in all tasks together; None if they are not measured."""
        return None

    @property
    def heading(self) -> str:
        """The words under which many outcomes like this one are shown as one."""
        return self.result.words

    def line(self) -> str:
        """Return the outcome in one sentence; empty if its error, or a remark, says everything."""
        if self.result in (Result.NOTHING_TO_DO, Result.POSTPONED):
            return f"{self.location}: {self.result.words}: {self.reason}"
        return ""

    def details(self, *, every: bool) -> Details | None:
        """Return the table below the line.

        Args:
            every: give every entry a row of its own.
        """

    def remarks(self) -> Iterable[Remark]:
        """Return what a user must know besides."""
        return ()

    def kept(self) -> Iterable[tuple[str, Reason]]:
        """Return the names of what stays in the location for now, each with the reason."""
        return ()

    def waiting(self) -> tuple[int, float | None]:
        """Return the bytes that a later run may free, and the time of the last of them.

        The time is in seconds since the epoch; None if it is not known.
        """
        return 0, None

    def next_command(self) -> NextCommand | None:
        """Return the command that undoes this, or that comes next; None without one."""

    def amounts(self) -> Mapping[str, int]:
        """Return the numbers by which many locations are added up; ``bytes``, ``read`` and ``written`` are sizes."""
        return {}

    def bytes_by_use(self) -> Mapping[str, int]:
        """Return bytes by what was done with them: read, written, removed, restored."""
        return {}

    def facts(self) -> Mapping[str, Any]:
        """Return further facts by their keys in JSON."""
        return {}

    def findings_by_severity(self) -> Mapping[str, int]:
        """Return the number of findings of a validation by their severity."""
        return {}

    def record(self) -> dict[str, Any]:
        """Return the outcome as JSON has it, without the version of the schema."""
        record: dict[str, Any] = {"location": self.location, "result": self.result.value}
        if self.error:
            record |= {"error": self.error.code, "reason": str(self.error)}
        elif self.reason:
            record["reason"] = self.reason
        if self.reasons:
            record["reasonCodes"] = [reason.code for reason in self.reasons]
        if self.result is Result.SKIPPED:
            record["code"] = self.reasons[0].code
        return {**record, **self.facts()}
