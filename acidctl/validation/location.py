"""The check of one location: hands out tasks, takes their results, and collects findings."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from acidctl.acid.layout import DataFile, Role, data_files_of, original_files
from acidctl.acid.names import MAXL, ORC_ACID_VERSION
from acidctl.acid.state import EntryKind, State
from acidctl.acid.unfinished import half_finished
from acidctl.base.errors import AcidctlError, BadDataError, EnvironmentProblem
from acidctl.base.worker_pool import Crash
from acidctl.base.worker_process import Task
from acidctl.location.snapshot import Snapshot, list_location, take_snapshot
from acidctl.rows.foreign.format import Format
from acidctl.rows.read.events import open_event_files
from acidctl.validation.checks.cross_file import across_rows
from acidctl.validation.checks.engines import for_readers, for_readers_by_tails
from acidctl.validation.checks.footers import V31, MarkerTask, TailFacts, TailTask, acid_v1, across_tails
from acidctl.validation.checks.listing import V13, V24, ListingToCheck, check_listing
from acidctl.validation.checks.places import evidence, folder_of_tables, lost_by_compactions, newer_than_metastore
from acidctl.validation.checks.row_facts import RowFacts, facts_of_file, gaps
from acidctl.validation.checks.rows import RowTask
from acidctl.validation.checks.spans import Spans, one_run
from acidctl.validation.findings import Depth, Finding, Severity, Unchecked
from acidctl.validation.model import Options, Place, Report

KNOWN_VERSION = 2
"""The only known content of ``_orc_acid_version`` (section 3.3)."""
_CHUNK = 64 << 20
"""Most bytes of stripes in one task with several stripes."""
_LEAST_CHUNK = 4 << 20
_TASKS = 4
"""Tasks for each process, so that all finish at about the same time."""


Key = tuple[str, str]
"""The kind and the path of a task."""


class LocationCheck:
    """The check of one location: :meth:`start`, then :meth:`take` for every result, until :attr:`is_done`."""

    def __init__(self, place: Place, options: Options) -> None:
        self._place = place
        self._options = options
        self.report = Report(place.fs.display(place.path), options.depth)
        self._snapshot: Snapshot | None = None
        self._look: ListingToCheck | None = None
        self._waiting = 0
        self._phase = Depth.LISTING
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
        self.is_done = False

    @property
    def has_directories(self) -> bool:
        """Return whether the location has ACID directories."""
        return self._look is not None and bool(self._look.directories)

    def start(self) -> list[tuple[Key, Task]]:
        """List the location, and return the first tasks."""
        place, options = self._place, self._options
        if place.holds:
            self.add([folder_of_tables(place)])
            self.is_done = True
            return []
        bad: dict[str, AcidctlError] = {}
        closed: dict[str, AcidctlError] = {}
        try:
            seen = place.look or list_location(place.fs, place.path, on_unreadable=closed.__setitem__)
            snapshot = take_snapshot(place.fs, place.path, place.write_ids, place.txns, bad.__setitem__, look=seen)
        except AcidctlError as error:
            self._not_checked("", error)
            self.is_done = True
            return []
        self._snapshot = snapshot
        look = self._look = ListingToCheck(snapshot, options.now, options.thresholds, bad)
        try:
            snapshot.require_history()
            self.add(lost_by_compactions(snapshot))
        except AcidctlError as error:
            self._not_checked("", error)
        self.report.unchecked += (Unchecked(name, problem) for name, problem in closed.items())
        # A directory that cannot be listed is not empty.
        names = {name.partition("/")[0] for name in closed}
        self.add(finding for finding in check_listing(look) if finding.path.partition("/")[0] not in names)
        self.add(evidence(place, seen))
        self.add(newer_than_metastore(place))
        self.add(for_readers(look, options.readers))
        return self._next()

    def take(self, key: Key, task: Task, result: Any) -> list[tuple[Key, Task]]:
        """Take the result of a task, and return the next tasks."""
        self._waiting -= 1
        again: list[tuple[Key, Task]] = []
        if isinstance(task, TailTask):
            self._take_tail(task, result)
        elif isinstance(task, MarkerTask):
            self._take_marker(key[1], result)
        elif isinstance(task, RowTask):
            again = [(key, part) for part in self._take_rows(task, result)]
            self._waiting += len(again)
        return again or self._next()

    def _next(self) -> list[tuple[Key, Task]]:
        """Go on to the next phase if no result is awaited."""
        tasks: list[tuple[Key, Task]] = []
        while not tasks and not self._waiting and not self.is_done:
            if self._phase is Depth.LISTING:
                self._phase = Depth.FOOTERS
                self.is_done = self._options.depth is Depth.LISTING
                tasks = [] if self.is_done else list(self._tail_tasks())
            elif self._phase is Depth.FOOTERS:
                self._phase = Depth.DEEP
                self._end_of_tails()
                self.is_done = self._options.depth is not Depth.DEEP
                tasks = [] if self.is_done else list(self._row_tasks())
            else:
                self._end_of_rows()
                self.is_done = True
        self._waiting += len(tasks)
        return tasks

    # --- footers ---

    def _tail_tasks(self) -> Iterator[tuple[Key, Task]]:
        look, snapshot = self._seen()
        compacted = {v.name for v in snapshot.state.verdicts if v.compacted}
        files = snapshot.files()
        if self._options.depth is Depth.DEEP:
            hidden = list(self._files_of(half_finished(snapshot.state, committed_too=True)))
            self._half = {file.path for file in hidden}
            files += hidden
        if self._options.all_directories:
            obsolete = self._files_of(verdict.name for verdict in snapshot.state.in_state(State.OBSOLETE))
            files += [file for file in obsolete if file.path not in self._half]
        self._aside = {file.path for file in files} - {file.path for file in snapshot.files()}
        self._silent = set() if self._options.all_directories else self._half
        for file in files:
            if not file.size:
                self._is_whole = self._is_whole and (not file.native_name or file.path in self._aside)
                continue
            self._files[file.path] = file
            in_compacted = file.directory is not None and file.directory.name in compacted
            path = snapshot.absolute(file.path)
            schema = self._options.schema
            yield ("tail", file.path), TailTask(snapshot.fs.spec, file, path, look.is_full, in_compacted, schema)
        sizes = {entry.path: entry.size for entry in snapshot.listing.entries if not entry.is_dir}
        for directory in look.current:
            path = f"{directory.name}/{ORC_ACID_VERSION}"
            if sizes.get(path):
                yield ("marker", directory.name), MarkerTask(snapshot.fs.spec, snapshot.absolute(path))

    def _files_of(self, names: Iterable[str]) -> Iterator[DataFile]:
        look, snapshot = self._seen()
        wanted = set(names)
        for verdict in snapshot.state.verdicts:
            if verdict.name in wanted and verdict.directory:
                yield from data_files_of(verdict.directory, look.files(verdict.name), look.snapshot.table_type)
            elif verdict.name in wanted and verdict.kind is EntryKind.ORIGINAL:
                yield from original_files(look.files(verdict.name))

    def _take_tail(self, task: TailTask, result: Any) -> None:
        path = task.file.path
        facts = TailFacts(path)
        if isinstance(result, TailFacts):
            facts = result
            if path not in self._silent:
                self.add(facts.findings)
                self.report.unchecked += facts.unchecked
        else:
            self._failed(path, result)
        self._tails[path] = facts
        self.report.files += 1
        self.report.bytes += task.file.size
        self._is_whole = self._is_whole and (facts.rows is not None or path in self._aside)

    def _take_marker(self, directory: str, result: Any) -> None:
        path = f"{directory}/{ORC_ACID_VERSION}"
        self._markers[directory] = result if result == KNOWN_VERSION else None
        if isinstance(result, BadDataError):
            self.add([V13.finding(path, result.why)])
        elif not isinstance(result, int):
            self._failed(path, result)
        elif result != KNOWN_VERSION:
            self.add([V13.finding(path, f"it says {result}, known is {KNOWN_VERSION}", {"version": result})])

    def _end_of_tails(self) -> None:
        # Sorted, because a finding about several files names the first.
        self._tails = dict(sorted(self._tails.items()))
        current = {path: facts for path, facts in self._tails.items() if path not in self._aside}
        self.add(across_tails(current, self._markers))
        self.add(for_readers_by_tails(current, self._markers, self._options.readers))

    # --- rows ---

    def _row_tasks(self) -> Iterator[tuple[Key, Task]]:
        _, snapshot = self._seen()
        compacted = {v.name for v in snapshot.state.verdicts if v.compacted}
        total = sum(length for facts in self._tails.values() for length, _ in facts.stripes)
        chunk = max(_LEAST_CHUNK, min(_CHUNK, total // (_TASKS * max(1, self._options.processes))))
        stamp = time.monotonic_ns()
        for path, facts in self._tails.items():
            if not facts.rows:
                continue
            file = self._files[path]
            task = RowTask(
                snapshot.fs.spec,
                file,
                snapshot.absolute(path),
                facts.length,
                facts.format,
                0,
                len(facts.stripes),
                facts.is_acid,
                facts.acid_version is None,
                file.directory is not None and file.directory.name in compacted,
                snapshot.write_ids,
                stamp,
            )
            self._tasks[path] = task
            # To find a block of text, everything before it must be read.
            bounds = [(0, len(facts.stripes))] if facts.format is Format.TEXT else _chunks(facts.stripes, chunk)
            for first, end in bounds:
                yield ("rows", path), task.part(first, end, _bytes(facts, first, end))

    def _take_rows(self, task: RowTask, result: Any) -> Sequence[RowTask]:
        """Take the rows of a task, and return the tasks to retry."""
        path = task.file.path
        if isinstance(result, RowFacts):
            # Parts of a chunk that is retried stripe by stripe begin at other stripes.
            self._parts.setdefault(path, {})[task.first] = result
            self.report.rows += result.rows
            return ()
        if isinstance(result, Crash):
            if task.stripes > 1:
                tail = self._tails[path]
                return [task.part(i, i + 1, _bytes(tail, i, i + 1)) for i in range(task.first, task.end)]
            what = "ids of " if task.ids_only else ""
            self.add([V24.finding(path, f"{what}stripe {task.first}: {result.reason}")])
            if not task.ids_only and task.is_native:
                return [task.part(task.first, task.end, task.weight, ids_only=True)]
        else:
            self._not_checked(path, _of_the_file(result))
        self._broken.add(path)
        self._is_whole = self._is_whole and path in self._aside
        return ()

    def _end_of_rows(self) -> None:
        by_path: dict[str, RowFacts] = {}
        for path in sorted(self._parts):
            parts = self._parts[path]
            facts = by_path[path] = facts_of_file(
                [parts[first] for first in sorted(parts)], self._tasks[path].order.check
            )
            facts.is_complete = facts.is_complete and path not in self._broken
            self._is_whole = self._is_whole and (facts.is_complete or path in self._aside)
            if path not in self._silent:
                self.add(self._of_file(path, facts))
                self.report.unchecked += facts.unchecked
        self._parts.clear()
        self._tell_v1(path for path, facts in by_path.items() if facts.changes)
        look, snapshot = self._seen()
        if not look.is_full:
            return
        base = snapshot.state.base
        made = self._made_ids()
        current = {path: facts for path, facts in by_path.items() if path not in self._aside}
        hidden = {path: facts for path, facts in by_path.items() if path in self._half}
        sure_above = MAXL
        if self._is_whole and snapshot.write_ids.is_everything:
            sure_above = max(0, base.directory.max_write_id) if base and base.directory else 0
        findings = list(across_rows(current, hidden, made, sure_above))
        certain = {finding.path.partition("/")[0] for finding in findings if finding.rule == "V11"}
        # The rows override what the listing suggested.
        names = set(half_finished(snapshot.state, committed_too=True))
        read = {path.partition("/")[0] for path in hidden}
        settled = names & (certain | read)
        self.report.findings = [f for f in self.report.findings if f.rule != "V11" or f.path not in settled]
        self.add(findings)

    def _tell_v1(self, paths: Iterable[str]) -> None:
        """Report a table of ACID version 1 if the footers did not show it."""
        changed = [path for path in paths if path not in self._aside]
        if changed and not any(f.rule == "V12" and f.severity is Severity.INFO for f in self.report.findings):
            self.add([acid_v1(changed)])

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
        _, snapshot = self._seen()
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
            for source in open_event_files(snapshot, [*bare, *native]):
                if source.synthetic is not None and source.rows:
                    ids = source.synthetic
                    last = ids.first_row_id + source.rows - 1
                    made[source.file.path] = one_run((ids.write_id, ids.bucket), ids.first_row_id, last)
        except AcidctlError as error:
            self._not_checked("", error)
            self._is_whole = False
        return made

    # --- small things ---

    def _seen(self) -> tuple[ListingToCheck, Snapshot]:
        assert self._look is not None
        assert self._snapshot is not None
        return self._look, self._snapshot

    def add(self, findings: Iterable[Finding]) -> None:
        """Report the findings that the user wants."""
        self.report.findings += (finding for finding in findings if self._options.wants(finding))

    def _failed(self, path: str, result: Any) -> None:
        """Report a task without a result: it raised, or it ended its process."""
        if isinstance(result, Crash):
            self.add([V24.finding(path, result.reason)])
        else:
            self._not_checked(path, _of_the_file(result))

    def _not_checked(self, path: str, error: AcidctlError) -> None:
        self.report.unchecked.append(Unchecked(path, error))


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
