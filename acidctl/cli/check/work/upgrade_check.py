"""What `acidctl upgrade-check` does: look at tables, show what they need, save and compare checksums of their rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from acidctl import __version__
from acidctl.acid.listing import TableType
from acidctl.cli.options.shared import other_line
from acidctl.cli.output.console import console, note, put_json, put_line, put_text, warn
from acidctl.cli.output.progress import progress
from acidctl.cli.report.outcomes import Visits
from acidctl.cli.report.run_files import refuse_target
from acidctl.errors import AcidctlError, BadDataError, ExitStatus, NotFoundError
from acidctl.location.change.own_files import replace_file
from acidctl.location.find import Found, find, once
from acidctl.location.lists import SnapshotLists
from acidctl.printable import printable
from acidctl.storage.os_errors import mapped
from acidctl.upgrade.conversions import Conversion, conversions
from acidctl.upgrade.needs import Need, UpgradeFinding, UpgradeNeeds, upgrade_needs
from acidctl.upgrade.row_digest import VERSION, DigestChange, RowDigest, compared, digest_name, row_digest
from acidctl.validation.findings import Depth, Finding, Severity
from acidctl.validation.model import Options, Place, Report
from acidctl.validation.rules import DECLARED
from acidctl.validation.run import validate
from acidctl.wording import human_bytes, human_count

_OTHERS = ("trino", "impala", "spark")
_FEW = 3
_MOST_BYTES = 1 << 30
"""No file of checksums is longer."""
COMPACTED_A_SECOND = 1_300_000
"""Bytes of input: `compact --major --engine local` took 13.8 s for 17.1 MiB, a million small rows of `demo --big`, on
two busy processors. Other rows, other machines and Spark differ: what comes of it is an estimate."""

_TEXTS = {
    Need.COMPACT: "updates or deletes of ACID version 1 in {files}: compact before, Hive 3 reads them as rows",
    Need.COUNTED: "Hive's tool asks for a compaction by footers that count wrongly: in {files} there are inserts only",
    Need.NOT_KNOWN: "not known whether there are updates or deletes in {files}",
    Need.OPEN: "{ids} open: end these transactions before",
    Need.STREAM: "flush lengths beside {files}: end the streaming writers, then compact",
    Need.ODD_NAMES: "{originals} without the number of a bucket in the name: rows there have no ROW__ID, and Hive's "
    "compactor fails; rename to NNNNNN_0",
    Need.COPIES: "{originals} called _copy_N: rows are numbered by the order of the names; compact writes it down",
    Need.NESTED: "{originals} in folders, as UNION ALL leaves them; compact puts them into one place",
    Need.EARLY_DELETES: "delete events in {files} are older than the rows they name: Hive 4 shows these rows; compact "
    "keeps them, so delete again the rows that must go",
    Need.BUCKETING: "clustered into {count} buckets by the hash of Hive 2: it stays (bucketing_version 1), and joins "
    "with tables of the new hash go the long way",
}


@dataclass
class _Seen:
    """What was found.

    Attributes:
        remarks: of the rules for readers, by location.
    """

    needs: list[UpgradeNeeds] = field(default_factory=list)
    remarks: dict[str, list[Finding]] = field(default_factory=dict)
    digests: dict[str, RowDigest] = field(default_factory=dict)
    conversions: list[Conversion] = field(default_factory=list)


def work(
    *,
    locations: tuple[str, ...],
    source: str,
    target: str,
    save: str | None,
    compare: str | None,
    verbose: bool,
    lists: SnapshotLists,
    storage: dict[str, str],
    output: str,
) -> int:
    """Check as asked; the exit status."""
    before = None if compare is None else _load(Path(compare))
    if save is not None:
        refuse_target(Path(save), "checksums")
    visits, seen = Visits(), _Seen()
    readers = (target, *_OTHERS)
    options = Options(Depth.FOOTERS, readers)

    def places() -> Iterator[Place]:
        for found in once(find(locations, storage, lists, visits.observer)):
            place = _look(found, lists, visits, seen, digest=save is not None or before is not None)
            if place:
                yield place

    with progress("checking locations") as bar:
        for number, report in enumerate(validate(places(), options), 1):
            bar.reach(number, number)
            seen.remarks[report.location] = _remarks(report, readers)
    visits.looked_through()
    with _told(visits):
        seen.conversions += conversions(locations, lists)
    if not (seen.needs or visits.status):
        raise NotFoundError("no table was found there", "", "`acidctl ls` shows what is there")
    if save is not None and not visits.status:
        _save(Path(save), seen.digests.values(), source, target)
    elif save is not None:
        warn(f"{save} was not written: not every location could be read")
    changes = None if before is None else compared(before, seen.digests)
    document = _document(seen, changes, source, target, whole=not visits.status)
    if output == "json":
        put_json(document, lines=False)
    else:
        _Screen(verbose=verbose).show(seen, changes, document)
    visits.tell_strangers()
    return _status(document["result"], visits.status)


@contextmanager
def _told(visits: Visits) -> Iterator[None]:
    """A metastore that fails leaves a gap, and says so."""
    try:
        yield
    except AcidctlError as error:
        visits.gap(error)


def _look(found: Found, lists: SnapshotLists, visits: Visits, seen: _Seen, *, digest: bool) -> Place | None:
    try:
        needs = upgrade_needs(found, lists)
        if digest:
            seen.digests[digest_name(found)] = row_digest(found, lists)
    except AcidctlError as error:
        visits.failed(found.shown, error)
        return None
    seen.needs.append(needs)
    counted = found.lists(lists)
    at = found.location
    return Place(found.fs, at.path, counted.write_ids, counted.txns, at.partition, found.look)


def _remarks(report: Report, readers: Sequence[str]) -> list[Finding]:
    """What readers refuse or misread, once for each rule."""
    found: dict[str, Finding] = {}
    for one in report.findings:
        if one.severity is not Severity.INFO and set(DECLARED[one.rule].readers) & set(readers):
            found.setdefault(one.rule, one)
    return list(found.values())


def _status(result: str, failed: int) -> int:
    if result in ("not-ready", "differs"):
        return ExitStatus.FINDINGS
    return failed or (ExitStatus.UNCHECKED if result == "not-known" else 0)


# --- checksums ---------------------------------------------------------------------------------------------------


def _save(path: Path, digests: Iterable[RowDigest], source: str, target: str) -> None:
    said = {
        "schema_version": VERSION,
        "tool": f"acidctl {__version__}",
        "from": source,
        "to": target,
        "locations": [one.record for one in digests],
    }
    with mapped("write", str(path)):
        replace_file(path, json.dumps(said, indent=1, ensure_ascii=True).encode())


def _load(path: Path) -> dict[str, RowDigest]:
    """What was saved before.

    Raises:
        NotFoundError, AccessError: it cannot be read.
        BadDataError: it is no such file.
    """
    with mapped("read", str(path)), path.open("rb") as file:
        data = file.read(_MOST_BYTES + 1)
    try:
        if len(data) > _MOST_BYTES:
            raise ValueError
        said = json.loads(data)
        if said["schema_version"] != VERSION:
            raise ValueError
        digests = [RowDigest.of(one) for one in said["locations"]]
    except (ValueError, TypeError, KeyError, RecursionError, BadDataError) as error:
        why = f"version {VERSION} of such files is known"
        raise BadDataError(f"{path} is no file of --save", why, "give the file that was saved before") from error
    return {one.name: one for one in digests}


# --- what is to be done ------------------------------------------------------------------------------------------


def _steps(seen: _Seen) -> list[dict[str, Any]]:
    """The commands that prepare an upgrade, in order."""
    steps: list[dict[str, Any]] = []

    def step(text: str, command: str = "", size: int = 0) -> None:
        seconds = round(size / COMPACTED_A_SECOND) if size else None
        steps.append({"text": text, "command": command or None, "bytes": size or None, "estimatedSeconds": seconds})

    if any(one.needs(Need.OPEN) or one.needs(Need.STREAM) for one in seen.needs):
        step("end writers and open transactions", "acidctl hive txns")
    for one in seen.needs:
        if one.needs(Need.COMPACT) or one.needs(Need.EARLY_DELETES):
            reader = ("--for", "hive2") if one.needs(Need.COMPACT) and not one.hive_name else ()
            line = other_line("compact", "--major", *reader, path=one.path, hive_name=one.hive_name, of_snapshot=True)
            step(f"compact {one.table}", line, one.bytes)
    if steps:
        step("look again: nothing may be left", "acidctl upgrade-check WHERE...")
    if seen.needs:
        step("save what is read before the upgrade", "acidctl upgrade-check --save before.json WHERE...")
        step("after the upgrade, compare", "acidctl upgrade-check --compare before.json WHERE...")
    return steps


def _document(
    seen: _Seen, changes: list[DigestChange] | None, source: str, target: str, *, whole: bool
) -> dict[str, Any]:
    steps = _steps(seen)
    size = sum(step["bytes"] or 0 for step in steps)
    return {
        "from": source,
        "to": target,
        "result": _result(seen, changes, whole=whole),
        "locations": [_record(one, seen.remarks.get(one.path, [])) for one in seen.needs],
        "conversions": [
            {"table": one.table, "becomes": one.becomes.value, "statement": one.statement} for one in seen.conversions
        ],
        "steps": steps,
        "bytes": size,
        "estimatedSeconds": round(size / COMPACTED_A_SECOND),
        "comparison": None if changes is None else [_change(one) for one in changes],
    }


def _result(seen: _Seen, changes: list[DigestChange] | None, *, whole: bool) -> str:
    if changes is not None:
        found = {one.result for one in changes}
        if found & ({"differs", "gone"} if whole else {"differs"}):
            return "differs"
        return "same" if whole else "not-known"
    if any(one.needs(need) for one in seen.needs for need in (Need.COMPACT, Need.OPEN, Need.EARLY_DELETES)):
        return "not-ready"
    return "ready" if whole and all(one.is_ready for one in seen.needs) else "not-known"


def _record(one: UpgradeNeeds, remarks: Sequence[Finding]) -> dict[str, Any]:
    return {
        "location": one.path,
        "table": one.table,
        "files": one.files,
        "bytes": one.bytes,
        "events": one.events,
        "findings": [
            {"code": f.need.value, "text": _text(f), "paths": list(f.paths), "count": f.count, "blocks": f.is_blocking}
            for f in one.findings
        ],
        "readers": [
            {
                "rule": f.rule,
                "severity": f.severity.value,
                "path": f.path,
                "message": f.message,
                "readers": list(DECLARED[f.rule].readers),
            }
            for f in remarks
        ],
    }


def _change(one: DigestChange) -> dict[str, Any]:
    return {
        "name": one.name,
        "result": one.result,
        "rowsBefore": one.before.rows if one.before else None,
        "rowsAfter": one.after.rows if one.after else None,
    }


def _text(finding: UpgradeFinding) -> str:
    count = finding.count
    text = _TEXTS[finding.need].format(
        count=count,
        files=human_count(count, "file"),
        ids=human_count(count, "write id is", "write ids are"),
        originals=human_count(count, "original file"),
    )
    return f"{text} ({finding.why})" if finding.why else text


# --- for people --------------------------------------------------------------------------------------------------


class _Screen:
    def __init__(self, *, verbose: bool) -> None:
        self._verbose = verbose

    def show(self, seen: _Seen, changes: list[DigestChange] | None, document: dict[str, Any]) -> None:
        if changes is not None:
            self._changes(changes)
        else:
            for one in seen.needs:
                self._location(one, seen.remarks.get(one.path, []))
            self._conversions(seen.conversions)
            for number, step in enumerate(document["steps"], 1):
                self._line(f"{number}.", _step_text(step))
            if document["bytes"]:
                put_line(f"estimated: {_minutes(document['estimatedSeconds'])} for {human_bytes(document['bytes'])}")
        put_line(f"{document['result'].upper().replace('-', ' ')}: {human_count(len(seen.needs), 'location')}")

    def _location(self, one: UpgradeNeeds, remarks: Sequence[Finding]) -> None:
        if not (one.findings or self._verbose):
            return
        console().print(printable(one.path), style="bold", soft_wrap=True, markup=False)
        for finding in one.findings:
            self._line("blocks" if finding.is_blocking else "", _text(finding))
            if self._verbose:
                self._line("", ", ".join(finding.paths))
        for remark in remarks if self._verbose else ():
            readers = ", ".join(DECLARED[remark.rule].readers)
            self._line(remark.rule, f"{readers}: {remark.message}")
        if remarks and not self._verbose:
            self._line("", f"{human_count(len(remarks), 'remark')} on what readers refuse or misread (-v shows them)")

    def _conversions(self, found: Sequence[Conversion]) -> None:
        if not found:
            return
        full = sum(one.becomes is TableType.FULL_ACID for one in found)
        names = ", ".join(one.table for one in found[:_FEW]) + (", ..." if len(found) > _FEW else "")
        note(
            f"Hive's upgrade tool would convert {human_count(len(found), 'managed table')}: {full} to full ACID, "
            f"{len(found) - full} to insert-only ({names}; -v shows the statements)"
        )
        for one in found if self._verbose else ():
            self._line("converts", one.statement)

    def _changes(self, changes: Sequence[DigestChange]) -> None:
        for one in changes:
            if one.result in ("same", "row-ids") and not self._verbose:
                continue
            rows = f"{one.before.rows if one.before else '-'} rows before, {one.after.rows if one.after else '-'} after"
            self._line(one.result, f"{one.name}: {rows}")
        if others := sum(one.result == "row-ids" for one in changes):
            note(f"of {human_count(others, 'location')} the rows have other ROW__IDs than before")

    def _line(self, label: str, text: str) -> None:
        put_text(f"  {label:<8}  {text}", 12)


def _step_text(step: dict[str, Any]) -> str:
    text = step["text"] + (f": {step['command']}" if step["command"] else "")
    return f"{text} ({human_bytes(step['bytes'])})" if step["bytes"] else text


def _minutes(seconds: int) -> str:
    return f"{seconds} s" if seconds < 120 else f"{-(-seconds // 60)} min"
