"""Rules of a check and their findings, which are plain values, small enough to travel between processes.

Each rule has a description, a reason and a remedy, and is declared in ``checks``, beside its check. V rules are those
of format section 13.1; R rules list what one kind of reader refuses or misreads (sections 1.4, 3.4 and 6.5) and are
checked on request only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from acidctl.base.errors import AcidctlError
from acidctl.wording import some_of


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

    def record(self) -> dict[str, Any]:
        """Return the finding as JSON has it, with the remedy of its rule."""
        values = {"severity": self.severity.value, "path": self.path, "message": self.message}
        return {"rule": self.rule, **values, "evidence": dict(self.evidence), "hint": DECLARED[self.rule].hint}


@dataclass(frozen=True, slots=True)
class Unchecked:
    """Something that could not be checked: neither clean nor a finding.

    Attributes:
        path: relative to the location; empty for the location itself.
    """

    path: str
    error: AcidctlError

    def record(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {"path": self.path, "message": str(self.error), "code": self.error.code, "hint": self.error.hint}


ERROR, WARNING, INFO = Severity.ERROR, Severity.WARNING, Severity.INFO
LISTING, FOOTERS, DEEP = Depth.LISTING, Depth.FOOTERS, Depth.DEEP
READERS = ("hive2", "hive3", "hive4", "trino", "impala", "spark")
"""The readers that rules may be for."""
DECLARED: dict[str, Rule] = {}
"""The rules of the modules that were imported; :data:`acidctl.validation.checks.RULES` is all of them."""
_MOST_TEXT = 1000
MOST_NAMES = 10
"""The most names in the evidence of one finding."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule; creating it declares it, and raises ValueError if its id is taken.

    Attributes:
        id: ``V1`` and so on, or ``R1`` and so on.
        severity: the worst of its findings; some cases are milder.
        depth: the cheapest depth that finds a case of it; deeper checks may find more.
        what: the violation, or a fact worth knowing.
        why: why it matters.
        hint: what to do.
        section: of the format notes.
        readers: the readers that it concerns; empty for all.
    """

    id: str
    severity: Severity
    depth: Depth
    what: str
    why: str
    hint: str
    section: str = "13.1"
    readers: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if DECLARED.setdefault(self.id, self) is not self:
            raise ValueError(f"two rules are called {self.id}")

    def finding(
        self, path: str, message: str, evidence: dict[str, Any] | None = None, severity: Severity | None = None
    ) -> Finding:
        """Return a finding of this rule; `severity` is given if it is milder than the rule's."""
        if len(message) > _MOST_TEXT:  # some stores do not limit the length of names
            message = message[:_MOST_TEXT] + "..."
        return Finding(self.id, severity or self.severity, path, message, evidence or {})

    def of_several(
        self,
        names: Sequence[str],
        path: str = "",
        text: str = "{}",
        severity: Severity | None = None,
        *,
        noun: str = "files",
        key: str = "files",
        most: int = 1,
    ) -> Iterator[Finding]:
        """Yield one finding about several files or directories; none without any.

        Args:
            text: the message, with ``{}`` for their number and the first, or for the first and how many more there are.
            noun: what they are.
            key: of their names in the evidence.
            most: the most names in the message; if 1, the message also says how many there are.
        """
        if names:
            several = f"{len(names)} {noun}, such as {names[0]}" if len(names) > 1 else names[0]
            shown = several if most == 1 else some_of(names, most)
            values = {key: list(names[:MOST_NAMES]), "count": len(names)}
            yield self.finding(path, text.format(shown), values, severity)


def place_of(rule_id: str) -> tuple[bool, int]:
    """Return the sort key of a rule: V rules first, by number."""
    return rule_id[0] != "V", int(rule_id[1:])
