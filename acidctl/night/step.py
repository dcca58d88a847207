"""What one part of a night did in one location, or would do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self

from acidctl.outcome import Outcome


class NightPart(StrEnum):
    """The parts of a night, in their order."""

    COMPACT = "compact"
    CLEAN = "clean"
    PURGE = "purge"


@dataclass(frozen=True, kw_only=True)
class NightStep(Outcome):
    """The outcome of a compaction, a cleaning or a purge, as a part of a night.

    Attributes:
        of: the outcome itself.
        run: the id of the night; the cleaning runs in the trash have it.
        policy: the patterns of policies that match the table, the most specific first.
        gain: bytes that every full read saves for each byte that is rewritten once; None where that is not known.
    """

    part: NightPart
    of: Outcome
    run: str = ""
    policy: tuple[str, ...] = ()
    gain: float | None = None

    @classmethod
    def made(
        cls, part: NightPart, of: Outcome, run: str, policy: tuple[str, ...] = (), gain: float | None = None
    ) -> Self:
        """A step of an outcome."""
        return cls(
            location=of.location,
            result=of.result,
            reasons=of.reasons,
            error=of.error,
            part=part,
            of=of,
            run=run,
            policy=policy,
            gain=gain,
        )

    @property
    def is_changed(self) -> bool:
        """Whether the location is not what it was."""
        return self.of.is_changed

    @property
    def is_unfinished(self) -> bool:
        """Whether something of it is left for another night."""
        return self.of.is_unfinished

    @property
    def seconds(self) -> float | None:
        """Of work; None where that is not measured."""
        return self.of.seconds

    def bytes_by_use(self) -> Mapping[str, int]:
        """Bytes by what was done with them; those that a purge removed had been removed from the table before."""
        by_use = self.of.bytes_by_use()
        return {"purged": sum(by_use.values())} if self.part is NightPart.PURGE and by_use else by_use

    def reported(self) -> Mapping[str, Any]:
        """The report of a night has all parts of a location together."""
        return {}

    def facts(self) -> Mapping[str, Any]:
        """The part, the night, the policies that match, and the facts of the outcome itself."""
        gain = {} if self.gain is None else {"gain": round(self.gain, 4)}
        return {"part": self.part.value, "run": self.run, "policy": list(self.policy), **gain, **self.of.facts()}
