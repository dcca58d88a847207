"""The result of a search: which files hold matching rows, or may, and what removes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from acidctl.acid.writeids import ValidTxns, ValidWriteIds
from acidctl.base.errors import AcidctlError
from acidctl.base.printable import one_line
from acidctl.erasure.holders import Holder
from acidctl.erasure.searched_file import SearchedFile
from acidctl.erasure.steps import ErasureStep
from acidctl.location.snapshot import Snapshot, SnapshotSource


class NotLookedAt(NamedTuple):
    """A directory, or a whole location, whose content is not known."""

    path: str
    error: AcidctlError


class SeenBy(NamedTuple):
    """Hold what counted as committed in a location, and the origin of that."""

    write_ids: ValidWriteIds
    txns: ValidTxns | None
    source: SnapshotSource

    @classmethod
    def of(cls, snapshot: Snapshot) -> SeenBy:
        return cls(snapshot.write_ids, snapshot.txns, snapshot.source)


@dataclass(frozen=True, slots=True)
class ErasureReport:
    """The matching rows in one location, or beside the locations of a table.

    Attributes:
        path: as a user would type it.
        snapshot: decides which rows are live; None beside locations.
        live: number of matching rows that readers see; None if not known.
        files: all files that were searched, or could not be.
        steps: the steps that remove the rows, in order.
        hive_name: the name of the location in a metastore; empty without one, and beside locations.
    """

    __repr__ = one_line

    path: str
    snapshot: SeenBy | None
    live: int | None
    files: tuple[SearchedFile, ...] = ()
    not_looked_at: tuple[NotLookedAt, ...] = ()
    steps: tuple[ErasureStep, ...] = ()
    hive_name: str = ""

    @classmethod
    def unknown(cls, path: str, error: AcidctlError) -> ErasureReport:
        """Return the report of a location that could not be searched."""
        return cls(path, None, None, (), (NotLookedAt(path, error),))

    @property
    def holdings(self) -> dict[Holder, list[SearchedFile]]:
        """Return the directories that hold matching rows or may, each with its files that do, in the order of names."""
        by_holder: dict[Holder, list[SearchedFile]] = {}
        for file in self.files:
            if file.matched.events or file.problem:
                by_holder.setdefault(file.holder, []).append(file)
        return by_holder

    @property
    def events(self) -> int:
        """Return the number of events that hold a matching row, in all files."""
        return sum(file.matched.events for file in self.files)

    @property
    def is_known(self) -> bool:
        """Return whether everything could be searched."""
        return not self.not_looked_at and not any(file.problem for file in self.files)


@dataclass(frozen=True, slots=True)
class TableErasure:
    """The matching rows of a table.

    Attributes:
        lacks: why the condition does not apply, if the table lacks its columns; nothing was searched then.
        reports: one for each location, and a last one for files beside them.
        place: of a table that lacks columns, its first location as a user would type it.
    """

    __repr__ = one_line

    table: str
    lacks: str = ""
    reports: Sequence[ErasureReport] = ()
    place: str = ""

    @property
    def events(self) -> int:
        """Return the number of events that hold a matching row."""
        return sum(report.events for report in self.reports)

    @property
    def is_known(self) -> bool:
        """Return whether everything could be searched."""
        return all(report.is_known for report in self.reports)
