"""The locations to check, how deep, and the report of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from acidctl.acid.reasons import Reason
from acidctl.acid.writeids import ValidTxns, ValidWriteIds
from acidctl.base.errors import AcidctlError
from acidctl.base.worker_pool import Limits
from acidctl.location.metastore_schema import Declared
from acidctl.location.snapshot import EVERYTHING, DirectoryListing, Snapshot, SnapshotSource
from acidctl.outcome import Outcome, Result
from acidctl.storage.port import FileSystem
from acidctl.validation.findings import DECLARED, Depth, Finding, Severity, Unchecked, place_of


@dataclass(frozen=True, slots=True)
class LocationToCheck:
    """A location to check.

    Attributes:
        path: absolute inside `fs`.
        partition: keys and values; empty for an unpartitioned table.
        listing: the listing, if there is a recent one.
        declared: what a metastore says about its files; None without one.
        closed: the errors of directories that this could not list, by their paths in the location.
        holds: the path of an ACID directory deeper below: then it is a folder of tables, not a location.
        ahead: why its files are newer than its metastore; empty if they are not, or without a metastore.
        source: what decides which write ids count.
        is_named: the user named the location itself, not a tree that holds it.
        problem: why it cannot be checked: it cannot be listed, or a metastore does not say what counts there.
    """

    fs: FileSystem
    path: str
    write_ids: ValidWriteIds | None = None
    txns: ValidTxns | None = None
    partition: tuple[tuple[str, str], ...] = ()
    listing: DirectoryListing | None = None
    declared: Declared | None = None
    closed: Mapping[str, AcidctlError] = field(default_factory=dict)
    holds: str = ""
    ahead: tuple[Reason, ...] = ()
    source: SnapshotSource = EVERYTHING
    is_named: bool = False
    problem: AcidctlError | None = None

    @classmethod
    def of(cls, snapshot: Snapshot) -> LocationToCheck:
        """Return the location of a snapshot, which is listed again."""
        lists = snapshot.write_ids, snapshot.txns
        return cls(snapshot.fs, snapshot.path, *lists, ahead=snapshot.ahead, source=snapshot.source)


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """Say how to check.

    Attributes:
        readers: the readers whose R rules are checked; some of those need footers.
        all_directories: open the files of obsolete directories too.
        processes: number of processes that read files; 0 reads in this process, which a damaged file may end.
        only, ignored: ids of rules; an empty `only` means all.
        now: seconds since the epoch.
    """

    depth: Depth = Depth.LISTING
    readers: tuple[str, ...] = ()
    all_directories: bool = False
    processes: int = 2
    limits: Limits = field(default_factory=Limits)
    only: frozenset[str] = frozenset()
    ignored: frozenset[str] = frozenset()
    now: float = 0.0

    def wants(self, finding: Finding) -> bool:
        """Return whether a finding is to be reported: the user chose its rule, and its readers if it has any."""
        readers = DECLARED[finding.rule].readers
        is_chosen = finding.rule not in self.ignored and (not self.only or finding.rule in self.only)
        return is_chosen and (not readers or not {*readers}.isdisjoint(self.readers))


@dataclass(frozen=True, kw_only=True)
class Report(Outcome):
    """The results of checking one location.

    Attributes:
        findings: the worst first, then by rule and path, so that the order of results does not matter.
        unchecked: by path.
        files, bytes: of the data files that were opened; 0 if only names were checked.
        rows: the rows that were read.
        is_named: see :class:`LocationToCheck`.
    """

    depth: Depth
    findings: tuple[Finding, ...] = ()
    unchecked: tuple[Unchecked, ...] = ()
    files: int = 0
    bytes: int = 0
    rows: int = 0
    source: SnapshotSource = EVERYTHING
    is_named: bool = False

    @classmethod
    def of(
        cls,
        target: LocationToCheck,
        depth: Depth,
        findings: list[Finding],
        unchecked: list[Unchecked],
        amounts: tuple[int, int, int],
    ) -> Report:
        """Return the report of a location; `amounts` are its files, their bytes and rows."""
        return cls(
            location=target.fs.display(target.path),
            result=Result.FINDINGS if findings else Result.UNCHECKED if unchecked else Result.NOTHING_FOUND,
            depth=depth,
            findings=tuple(sorted(findings, key=lambda f: (f.severity.rank, place_of(f.rule), f.path, f.message))),
            unchecked=tuple(sorted(unchecked, key=lambda item: (item.path, str(item.error)))),
            source=target.source,
            is_named=target.is_named,
            files=amounts[0],
            bytes=amounts[1],
            rows=amounts[2],
        )

    def count(self, severity: Severity) -> int:
        """Return the number of findings of a severity."""
        return sum(finding.severity is severity for finding in self.findings)

    def bytes_by_use(self) -> Mapping[str, int]:
        """Return the bytes of the files that were opened."""
        return {"read": self.bytes}

    def findings_by_severity(self) -> Mapping[str, int]:
        """Return the number of findings by severity."""
        return {severity.value: self.count(severity) for severity in Severity}

    def facts(self) -> Mapping[str, Any]:
        """Return the findings, what could not be checked, and a summary."""
        counts = {f"{name}s": self.count(severity) for name, severity in SEVERITIES.items()}
        amounts = {"files": self.files, "bytes": self.bytes, "rows": self.rows}
        return {
            "depth": self.depth.value,
            "snapshotSource": self.source.record,
            "findings": [finding.record() for finding in self.findings],
            "unchecked": [item.record() for item in self.unchecked],
            "summary": {**counts, "unchecked": len(self.unchecked), **amounts},
        }


SEVERITIES = {"error": Severity.ERROR, "warning": Severity.WARNING, "remark": Severity.INFO}
"""The severities by their nouns."""
