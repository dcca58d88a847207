"""What a check found: plain values, small enough to travel between processes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from acidctl.errors import AcidctlError


class Severity(StrEnum):
    """How bad it is."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    @property
    def rank(self) -> int:
        """0 for the worst."""
        return list(Severity).index(self)


class Depth(StrEnum):
    """How far a check looks."""

    LISTING = "listing"
    FOOTERS = "footers"
    DEEP = "deep"

    @property
    def rank(self) -> int:
        """0 for the cheapest."""
        return list(Depth).index(self)


@dataclass(frozen=True, slots=True)
class Finding:
    """One place where a rule is broken.

    Attributes:
        rule: id in the registry.
        path: relative to the location; empty for the location itself.
        message: one line that says what is wrong here, with the numbers.
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
