"""Findings of a check: plain values, small enough to travel between processes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from acidctl.errors import AcidctlError


class _Ranked(StrEnum):
    """Words with an order."""

    @property
    def rank(self) -> int:
        """Return its position; 0 is the first."""
        return list(type(self)).index(self)


class Severity(_Ranked):
    """The severity of a finding, the worst first."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Depth(_Ranked):
    """How deep a check goes, the cheapest first."""

    LISTING = "listing"
    FOOTERS = "footers"
    DEEP = "deep"


@dataclass(frozen=True, slots=True)
class Finding:
    """One violation of a rule.

    Attributes:
        rule: the id of the rule.
        path: relative to the location; empty for the location itself.
        message: one line that describes the violation, with the numbers.
        evidence: the same numbers for programs: strings, integers and lists of them.
    """

    rule: str
    severity: Severity
    path: str
    message: str
    evidence: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Unchecked:
    """Something that could not be checked: neither clean nor a finding.

    Attributes:
        path: relative to the location; empty for the location itself.
    """

    path: str
    error: AcidctlError
