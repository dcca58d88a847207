"""The check of one location: its listing, then its footers, then its rows, and what all of them show together."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from typing import Any

from acidctl.acid.layout import NO_BUCKET, DataFile, Role, data_files_of, original_files
from acidctl.acid.listing import TableType
from acidctl.acid.names import MAXL, ORC_ACID_VERSION
from acidctl.acid.state import EntryKind, State
from acidctl.acid.unfinished import half_finished
from acidctl.base.errors import AcidctlError, BadDataError, EnvironmentProblem
from acidctl.base.worker_pool import Crash
from acidctl.location.snapshot import list_location, take_snapshot
from acidctl.rows.foreign.format import Format, other_format, text_beside, unnamed_text
from acidctl.rows.read.events import has_other_columns, open_event_files
from acidctl.storage.port import base_name, parent_of
from acidctl.validation.checks.engines import for_readers_by_tails
from acidctl.validation.checks.files import V13, V24
from acidctl.validation.checks.footers import V31, MarkerTask, TailFacts, TailTask, across_tails
from acidctl.validation.checks.listing import ListingToCheck, check_listing
from acidctl.validation.checks.row_facts import RowFacts, Spans, acid_v1, facts_of_file, gaps, one_run
from acidctl.validation.checks.rows import RowTask
from acidctl.validation.checks.whole_location import (
    FormatsOfTables,
    Misplaced,
    across_rows,
    evidence,
    folder_of_tables,
    lost_by_compactions,
    newer_than_metastore,
)
from acidctl.validation.findings import WARNING, Depth, Finding, Severity, Unchecked
from acidctl.validation.report import CheckOptions, LocationToCheck, Report

KNOWN_VERSION = 2
"""The only known content of ``_orc_acid_version`` (section 3.3)."""
_CHUNK = 64 << 20
"""Most bytes of stripes in one task with several stripes."""
_LEAST_CHUNK = 4 << 20
_TASKS = 4
"""Tasks for each process, so that all finish at about the same time."""

AnyTask = TailTask | MarkerTask | RowTask


class LocationCheck:
    """The check of one location: :meth:`steps` does it, :meth:`report` says what it found."""

    def __init__(
        self, target: LocationToCheck, options: CheckOptions, misplaced: Misplaced, formats: FormatsOfTables
    ) -> None:
        self._target, self._options, self._misplaced, self._formats = target, options, misplaced, formats
        self._listed: ListingToCheck
        self._findings: list[Finding] = []
        self._unchecked: list[Unchecked] = []
        self._file_count = self._byte_count = self._row_count = 0
        self._files: dict[str, DataFile] = {}
        self._half: set[str] = set()  # files that only half a compaction hides: read to see whether rows are wrong
        self._aside: set[str] = set()  # all files that readers do not open
        self._silent: set[str] = set()  # files whose findings are not reported
        self._tails: dict[str, TailFacts] = {}
        self._markers: dict[str, int | None] = {}
        self._tasks: dict[str, RowTask] = {}
        self._parts: dict[str, dict[int, RowFacts]] = {}
        self._broken: set[str] = set()
        self._is_whole = True

    def report(self) -> Report:
        """Return what was found so far."""
        amounts = self._file_count, self._byte_count, self._row_count
        return Report.of(self._target, self._options.depth, self._findings, self._unchecked, amounts)

    def steps(self) -> Generator[Sequence[AnyTask], list[Any]]:
        """Yield the tasks of one phase after another, and take the result of each task, in the same order."""
        is_listed = self._list()
        has_directories = is_listed and bool(self._listed.directories)
        self._add(self._misplaced.check(self._target, has_directories=has_directories))
        if not is_listed or self._options.depth is Depth.LISTING:
            return
        small = list(self._tail_tasks())
        for task, result in zip(small, (yield small), strict=True):
            self._take_tail(task, result) if isinstance(task, TailTask) else self._take_marker(task, result)
        # Sorted, because a finding about several files names the first.
        self._tails = dict(sorted(self._tails.items()))
        self._refuse_formats()
        current = {path: facts for path, facts in self._tails.items() if path not in self._aside}
        self._add(across_tails(current, self._markers))
        self._add(for_readers_by_tails(current, self._markers, self._options.readers))
        if self._options.depth is not Depth.DEEP:
            return
        tasks: list[RowTask] = list(self._row_tasks())
        while tasks:
            results = yield tasks
            tasks = [
                part for task, result in zip(tasks, results, strict=True) for part in self._take_rows(task, result)
            ]
        self._end_of_rows()

    def _list(self) -> bool:
        """Check the listing; return whether there is one."""
        target, options = self._target, self._options
        if target.holds:
            self._add([folder_of_tables(target)])
            return False
        if target.problem:
            self.not_checked("", target.problem)
            return False
        bad: dict[str, AcidctlError] = {}
        closed = dict(target.closed)
        try:
            listing = target.listing or list_location(target.fs, target.path, on_unreadable=closed.__setitem__)
            snapshot = take_snapshot(
                target.fs, target.path, target.write_ids, target.txns, bad.__setitem__, look=listing
            )
        except AcidctlError as error:
            self.not_checked("", error)
            return False
        self._listed = ListingToCheck(snapshot, options.now, bad, options.readers)
        try:
            snapshot.require_history()
            self._add(lost_by_compactions(snapshot))
        except AcidctlError as error:
            self.not_checked("", error)
        self._unchecked += (Unchecked(name, problem) for name, problem in closed.items())
        # A directory that cannot be listed is not empty.
        names = {name.partition("/")[0] for name in closed}
        self._add(finding for finding in check_listing(self._listed) if finding.path.partition("/")[0] not in names)
        self._add(evidence(target, listing))
        self._add(newer_than_metastore(target))
        return True

    # --- footers ---

    def _tail_tasks(self) -> Iterator[TailTask | MarkerTask]:
        listed, snapshot = self._listed, self._listed.snapshot
        files = current = snapshot.files()
        if self._options.depth is Depth.DEEP:
            hidden = list(self._files_of(half_finished(snapshot.state, committed_too=True)))
            self._half = {file.path for file in hidden}
            files = files + hidden
        if self._options.all_directories:
            obsolete = self._files_of(verdict.name for verdict in snapshot.state.in_state(State.OBSOLETE))
            files = files + [file for file in obsolete if file.path not in self._half]
        self._aside = {file.path for file in files} - {file.path for file in current}
        self._silent = set() if self._options.all_directories else self._half
        for file in files:
            if not file.size:
                self._is_whole = self._is_whole and (not file.native_name or file.path in self._aside)
                continue
            self._files[file.path] = file
            path = snapshot.absolute(file.path)
            is_insert_only = snapshot.table_type is TableType.INSERT_ONLY
            is_deep, is_compacted = self._options.depth is Depth.DEEP, self._is_compacted(file)
            kinds = listed.is_full, is_insert_only, has_other_columns(snapshot.table_type, self._target.declared)
            yield TailTask(snapshot.fs.spec, file, path, *kinds, is_compacted, is_deep)
        sizes = {entry.path: entry.size for entry in snapshot.listing.entries if not entry.is_dir}
        for directory in listed.current:
            path = f"{directory.name}/{ORC_ACID_VERSION}"
            if sizes.get(path):
                yield MarkerTask(snapshot.fs.spec, snapshot.absolute(path))

    def _is_compacted(self, file: DataFile) -> bool:
        return file.directory is not None and file.directory.name in self._listed.compacted

    def _files_of(self, names: Iterable[str]) -> Iterator[DataFile]:
        listed, wanted = self._listed, set(names)
        for verdict in listed.snapshot.state.verdicts:
            if verdict.name in wanted and verdict.directory:
                yield from data_files_of(verdict.directory, listed.files(verdict.name), listed.snapshot.table_type)
            elif verdict.name in wanted and verdict.kind is EntryKind.ORIGINAL:
                yield from original_files(listed.files(verdict.name))

    def _take_tail(self, task: TailTask, result: Any) -> None:
        path = task.file.path
        facts = TailFacts(path)
        if isinstance(result, TailFacts):
            facts = result
            if path not in self._silent:
                self._add(facts.findings)
                self._unchecked += facts.unchecked
        else:
            self._failed(path, result)
        self._tails[path] = facts
        self._file_count += 1
        self._byte_count += task.file.size
        self._is_whole = self._is_whole and (facts.rows is not None or path in self._aside)

    def _refuse_formats(self) -> None:
        """Report files that `cat` refuses for their format, and forget their rows."""
        known = {path: facts for path, facts in self._tails.items() if facts.rows is not None}
        other = next((facts for facts in known.values() if facts.format is not Format.TEXT), None)
        if known and self._target.declared is None and (problem := self._formats.differ(self._target, other, known)):
            self.not_checked("", problem)
        for path, facts in known.items():
            if problem := self._refused_format(facts, other):
                self._tails[path] = TailFacts(path)
                self._is_whole = self._is_whole and path in self._aside
                if path not in self._silent:
                    severity = WARNING if self._is_unnamed(path) else None
                    self._add([V24.finding(path, f"{problem.what}: {problem.why}", severity=severity)])

    def _refused_format(self, facts: TailFacts, other: TailFacts | None) -> BadDataError | None:
        """Return why a file is not read by its format; `other` is a file here that is not text, if there is one."""
        declared = self._target.declared
        if declared is not None:
            is_wrong = declared.text is None and declared.format in tuple(Format) and facts.format != declared.format
            return other_format("it", facts.format, declared.format) if is_wrong else None
        if facts.format is not Format.TEXT:
            return None
        if other is not None:
            return text_beside("it", other.path, other.format)
        # A folder with nothing but text is not a table.
        is_stray = self._is_unnamed(facts.path) and any(one.directory for one in self._files.values())
        return unnamed_text("it") if is_stray else None

    def _is_unnamed(self, path: str) -> bool:
        """Return whether a file stands at the top of its location and is not named like a data file."""
        file = self._files[path]
        return file.directory is None and file.bucket == NO_BUCKET

    def _take_marker(self, task: MarkerTask, result: Any) -> None:
        directory = base_name(parent_of(task.path))
        path = f"{directory}/{ORC_ACID_VERSION}"
        self._markers[directory] = result if result == KNOWN_VERSION else None
        if isinstance(result, BadDataError):
            self._add([V13.finding(path, result.why)])
        elif not isinstance(result, int):
            self._failed(path, result)
        elif result != KNOWN_VERSION:
            self._add([V13.finding(path, f"it says {result}, known is {KNOWN_VERSION}", {"version": result})])

    # --- rows ---

    def _row_tasks(self) -> Iterator[RowTask]:
        snapshot = self._listed.snapshot
        total = sum(length for facts in self._tails.values() for length, _ in facts.stripes)
        chunk = max(_LEAST_CHUNK, min(_CHUNK, total // (_TASKS * max(1, self._options.processes))))
        stamp = time.monotonic_ns()
        for path, facts in self._tails.items():
            if not facts.rows:
                continue
            file = self._files[path]
            task = self._tasks[path] = RowTask(
                snapshot.fs.spec,
                file,
                snapshot.absolute(path),
                facts.length,
                facts.format,
                0,
                len(facts.stripes),
                facts.is_acid,
                facts.acid_version is None,
                self._is_compacted(file),
                snapshot.write_ids,
                stamp,
            )
            # To find a block of text, everything before it must be read.
            bounds = [(0, len(facts.stripes))] if facts.format is Format.TEXT else _chunks(facts.stripes, chunk)
            for first, end in bounds:
                yield task.part(first, end, _bytes(facts, first, end))

    def _take_rows(self, task: RowTask, result: Any) -> Sequence[RowTask]:
        """Take the rows of a task, and return the tasks to retry."""
        path = task.file.path
        if isinstance(result, RowFacts):
            # Parts of a chunk that is retried stripe by stripe begin at other stripes.
            self._parts.setdefault(path, {})[task.first] = result
            self._row_count += result.rows
            return ()
        if isinstance(result, Crash):
            if task.stripes > 1:
                tail = self._tails[path]
                return [task.part(i, i + 1, _bytes(tail, i, i + 1)) for i in range(task.first, task.end)]
            what = "ids of " if task.ids_only else ""
            self._add([V24.finding(path, f"{what}stripe {task.first}: {result.reason}")])
            if not task.ids_only and task.is_native:
                return [task.part(task.first, task.end, task.weight, ids_only=True)]
        else:
            self.not_checked(path, _of_the_file(result))
        self._broken.add(path)
        self._is_whole = self._is_whole and path in self._aside
        return ()

    def _end_of_rows(self) -> None:
        by_path: dict[str, RowFacts] = {}
        for path in sorted(self._parts):
            parts = self._parts[path]
            order = self._tasks[path].order
            facts = by_path[path] = facts_of_file([parts[first] for first in sorted(parts)], order.check)
            facts.is_complete = facts.is_complete and path not in self._broken
            self._is_whole = self._is_whole and (facts.is_complete or path in self._aside)
            if path not in self._silent:
                self._add(self._of_file(path, facts))
                self._unchecked += facts.unchecked
        self._parts.clear()
        changed = [path for path, facts in by_path.items() if facts.changes and path not in self._aside]
        remarks = [f for f in self._findings if f.rule == "V12" and f.severity is Severity.INFO]
        self._add(acid_v1(changed, [name for f in remarks for name in f.evidence["files"]]))
        if self._listed.is_full:
            self._compare(by_path)

    def _compare(self, by_path: dict[str, RowFacts]) -> None:
        """Compare the rows of all files of a full-ACID table; they override what the listing suggested."""
        snapshot = self._listed.snapshot
        base = snapshot.state.base
        made = self._made_ids()
        current = {path: facts for path, facts in by_path.items() if path not in self._aside}
        hidden = {path: facts for path, facts in by_path.items() if path in self._half}
        sure_above = MAXL
        if self._is_whole and snapshot.write_ids.is_everything:
            sure_above = max(0, base.directory.max_write_id) if base and base.directory else 0
        findings = list(across_rows(current, hidden, made, sure_above))
        certain = {finding.path.partition("/")[0] for finding in findings if finding.rule == "V11"}
        names = set(half_finished(snapshot.state, committed_too=True))
        settled = names & (certain | {path.partition("/")[0] for path in hidden})
        self._findings = [f for f in self._findings if f.rule != "V11" or f.path not in settled]
        self._add(findings)

    def _of_file(self, path: str, facts: RowFacts) -> Iterator[Finding]:
        task, tail = self._tasks[path], self._tails[path]
        tallies = list(facts.tallies)
        if facts.is_complete and (gap := gaps(task.file, facts.inserts)):
            tallies.append(gap)
        # Events without an operation are not counted; another rule reports them.
        is_counted = facts.is_complete and sum(facts.counts) == facts.rows
        is_reported = any(finding.rule == V31.id for finding in tail.findings)
        if tail.stats is not None and is_counted and facts.counts != tail.stats and not is_reported:
            counts = "{} inserts, {} updates, {} deletes"
            text = f"hive.acid.stats says {counts.format(*tail.stats)}; there are {counts.format(*facts.counts)}"
            severity = Severity.WARNING if task.is_old else None
            yield V31.finding(path, text, {"stats": list(tail.stats), "rows": list(facts.counts)}, severity)
        for tally in tallies:
            times = "once," if tally.count == 1 else f"{tally.count:,} times, first"
            evidence = {"count": tally.count, "first": tally.example}
            yield tally.rule.finding(path, f"{tally.text}: {times} {tally.example}", evidence, tally.severity)

    def _made_ids(self) -> dict[str, Spans]:
        """Return the ids that readers give to files without ids: by the numbers in their names, and earlier files."""
        bare: list[DataFile] = []
        broken: set[tuple[str, int]] = set()
        for path, facts in self._tails.items():
            file = self._files[path]
            if path in self._aside or file.native_name or file.role is Role.DELETE or facts.is_acid:
                continue
            # Row ids continue from file to file, so an unreadable file makes all later ids unknown.
            if facts.rows is None:
                broken.add(_numbered_with(file))
            bare.append(file)
        bare = [file for file in bare if _numbered_with(file) not in broken]
        if not bare:
            return {}
        # A file with ids shows the codec that numbers the originals.
        native = [self._files[path] for path, facts in self._tails.items() if facts.rows and facts.is_acid][:1]
        made: dict[str, Spans] = {}
        try:
            for source in open_event_files(self._listed.snapshot, [*bare, *native]):
                if source.synthetic is not None and source.rows:
                    ids = source.synthetic
                    last = ids.first_row_id + source.rows - 1
                    made[source.file.path] = one_run((ids.write_id, ids.bucket), ids.first_row_id, last)
        except AcidctlError as error:
            self.not_checked("", error)
            self._is_whole = False
        return made

    # --- small things ---

    def _add(self, findings: Iterable[Finding]) -> None:
        """Keep the findings that the user wants."""
        self._findings += (finding for finding in findings if self._options.wants(finding))

    def _failed(self, path: str, result: Any) -> None:
        """Report a task without a result: it raised, or it ended its process."""
        if isinstance(result, Crash):
            self._add([V24.finding(path, result.reason)])
        else:
            self.not_checked(path, _of_the_file(result))

    def not_checked(self, path: str, error: AcidctlError) -> None:
        """Report that a file could not be checked; an empty path means the location."""
        self._unchecked.append(Unchecked(path, error))


def _of_the_file(error: AcidctlError) -> AcidctlError:
    """Return the error of a task; raise a problem of this machine, because every file would have it."""
    if isinstance(error, EnvironmentProblem):
        raise error
    return error


def _numbered_with(file: DataFile) -> tuple[str, int]:
    """Return a key: files without ids that share it also share one count of row ids (section 5)."""
    return file.directory.name if file.directory else "", file.bucket


def _bytes(facts: TailFacts, first: int, end: int) -> int:
    return sum(length for length, _ in facts.stripes[first:end])


def _chunks(stripes: Sequence[tuple[int, int]], chunk: int) -> Iterator[tuple[int, int]]:
    """Yield the bounds of runs of stripes of about `chunk` bytes."""
    first = size = 0
    for end, (length, _) in enumerate(stripes, 1):
        size += length
        if size >= chunk or end == len(stripes):
            yield first, end
            first, size = end, 0
