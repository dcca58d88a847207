"""What a tree holds besides tables that acidctl may change: other formats, and what nobody knows to be Hive's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from acidctl.cli.output.console import human_count, note
from acidctl.errors import AcidctlError, RefusedError
from acidctl.location.evidence import Evidence, not_known
from acidctl.location.walk import Observer

if TYPE_CHECKING:
    from acidctl.acid.layout import TableType
    from acidctl.location.find import Found

_NAMED = 3


@dataclass(slots=True)
class Strangers:
    """What was met and left alone.

    Attributes:
        failed: told what cannot be listed.
        skipped: told of each location that is not known to be transactional, and why not.
    """

    failed: Callable[[AcidctlError], None]
    skipped: Callable[[Found, Evidence], None] | None = None
    _others: list[str] = field(default_factory=list)
    _unknown: list[str] = field(default_factory=list)

    @property
    def observer(self) -> Observer:
        """For the walk."""
        return Observer(self.failed, lambda path, what: self._others.append(f"{path} is {what}"))

    def known(self, places: Iterable[Found]) -> Iterator[Found]:
        """The locations that are known to be transactional, and those that were named; for what only reads."""
        for found in places:
            try:
                is_known = found.is_given or found.evidence().may_change
            except AcidctlError:  # it cannot be listed: its snapshot says so
                is_known = True
            if is_known:
                yield found
            else:
                self._unknown.append(found.shown)

    def changeable(self, places: Iterable[Found], said: TableType | None) -> Iterator[Found]:
        """The locations that may be changed.

        Args:
            said: what the user says that the table is.

        Raises:
            RefusedError: one that was named itself is not known to be transactional; or one type is said of two tables.
        """
        first = None
        for found in places:
            first = first or found.location.table
            if said is not None and found.location.table != first:
                raise RefusedError(
                    "one --table-type cannot speak for several tables",
                    f"{found.shown} is of {found.location.table}, not of {first}",
                    "give one table",
                )
            try:
                evidence = found.evidence(said)
            except AcidctlError:  # it cannot be listed: its snapshot says so
                yield found
                continue
            if evidence.may_change:
                yield found
            elif found.is_given:
                raise not_known(found.shown, evidence)
            else:
                self._unknown.append(found.shown)
                if self.skipped:
                    self.skipped(found, evidence)

    def tell(self) -> None:
        """Say what was left alone, in a line for each kind."""
        if self._others:
            note(f"not entered: {_some(self._others)}")
        if self._unknown:
            count = human_count(len(self._unknown), "location")
            note(f"{count} left alone, not known to be transactional (`acidctl ls` says why): {_some(self._unknown)}")


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return "; ".join(names[:_NAMED]) + more
