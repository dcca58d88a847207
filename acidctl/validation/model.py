"""The locations and options of a check, and its report."""

from __future__ import annotations

from dataclasses import dataclass, field

from acidctl.acid.reasons import Reason
from acidctl.acid.triggers import Thresholds
from acidctl.acid.writeids import ValidTxns, ValidWriteIds
from acidctl.base.worker_pool import Limits
from acidctl.location.snapshot import DirectoryListing
from acidctl.orc.types import OrcType
from acidctl.storage.port import FileSystem
from acidctl.validation.findings import Depth, Finding, Severity, Unchecked, place_of


@dataclass(frozen=True, slots=True)
class Place:
    """A location to check.

    Attributes:
        path: absolute inside `fs`.
        partition: keys and values; empty for an unpartitioned table.
        look: its listing, if there is a recent one.
        ahead: why its files are newer than its metastore; empty if they are not, or without a metastore.
        holds: the path of an ACID directory deeper below: then it is a folder of tables, not a location.
    """

    fs: FileSystem
    path: str
    write_ids: ValidWriteIds | None = None
    txns: ValidTxns | None = None
    partition: tuple[tuple[str, str], ...] = ()
    look: DirectoryListing | None = None
    holds: str = ""
    ahead: tuple[Reason, ...] = ()


@dataclass(frozen=True, slots=True)
class Options:
    """How to check.

    Attributes:
        readers: the readers whose R rules are checked; some of those need footers.
        schema: the table's columns, for rule V38.
        all_directories: open the files of obsolete directories too.
        processes: number of processes that read files; 0 reads in this process, which a damaged file may end.
        only, ignored: ids of rules; an empty `only` means all.
        now: seconds since the epoch.
    """

    depth: Depth = Depth.LISTING
    readers: tuple[str, ...] = ()
    schema: OrcType | None = None
    thresholds: Thresholds = field(default_factory=Thresholds)
    all_directories: bool = False
    processes: int = 2
    limits: Limits = field(default_factory=Limits)
    only: frozenset[str] = frozenset()
    ignored: frozenset[str] = frozenset()
    now: float = 0.0

    def wants(self, finding: Finding) -> bool:
        """Return whether the user wants a finding reported."""
        return finding.rule not in self.ignored and (not self.only or finding.rule in self.only)


@dataclass(slots=True)
class Report:
    """The results of checking one location.

    Attributes:
        location: as a user would type it.
        files, bytes: of the data files that were opened; 0 if only names were checked.
        rows: the rows that were read.
    """

    location: str
    depth: Depth
    findings: list[Finding] = field(default_factory=list)
    unchecked: list[Unchecked] = field(default_factory=list)
    files: int = 0
    bytes: int = 0
    rows: int = 0

    def sort(self) -> None:
        """Sort the worst first, then by rule and path, so that the order of results does not matter."""
        self.findings.sort(key=lambda f: (f.severity.rank, place_of(f.rule), f.path, f.message))
        self.unchecked.sort(key=lambda item: (item.path, str(item.error)))

    def count(self, severity: Severity) -> int:
        """Return the number of findings of a severity."""
        return sum(finding.severity is severity for finding in self.findings)
