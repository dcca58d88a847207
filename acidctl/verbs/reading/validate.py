"""Check tables against the rules of the format: what is wrong is in the report of each location."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from acidctl.base.errors import AcidctlError, BadDataError, GoneError, RefusedError, UsageProblem, unexpected
from acidctl.base.nearest import did_you_mean
from acidctl.validation.findings import READERS, Depth, Severity
from acidctl.verbs.engine import TaskOptions
from acidctl.verbs.options import Kind, Options, group, option

if TYPE_CHECKING:
    from acidctl.acid.reasons import Reason
    from acidctl.base.worker_pool import Runner
    from acidctl.location.snapshot import Snapshot
    from acidctl.location.table_location import TableLocation
    from acidctl.storage.port import FileSystem
    from acidctl.validation.report import CheckOptions, LocationToCheck, Report
    from acidctl.verbs.events import Events
    from acidctl.verbs.selection import Selection

_LEAST_SECONDS = 0.1
_SHOWN = 3
"""Errors in the reason why a location is not compacted."""


@dataclass(frozen=True, kw_only=True)
class ReadingTasks(TaskOptions):
    """Choose the engine that reads files: processes of this machine, unless Spark is asked for."""

    engine: str = option(
        "local", "--engine", choices=("spark", "local"), help="Spark, or processes of this machine without Java."
    )
    jobs: int | None = option(
        None,
        "--jobs",
        kind=Kind.NUMBER,
        least=1,
        most=1024,
        help="Processes of --engine local; by default one per core.",
    )


@dataclass(frozen=True, kw_only=True)
class ValidateOptions(Options):
    """The options of `acidctl validate`."""

    footers: bool = option(False, "--footers", help="Look at the footer of every current data file, too.")
    deep: bool = option(False, "--deep", help="Read every row, too: order, duplicates, write ids, deletes, statistics.")
    all_directories: bool = option(False, "-a", "--all", help="Open the files of obsolete directories, too.")
    readers: tuple[str, ...] = option(
        (),
        "--for",
        kind=Kind.LIST,
        choices=READERS,
        help="Also show what this reader would refuse or misread; implies --footers. Repeatable.",
    )
    rules: tuple[str, ...] = option(
        (), "--rule", kind=Kind.LIST, metavar="ID", help="Only this rule, e.g. V26. Repeatable."
    )
    ignored: tuple[str, ...] = option((), "--ignore", kind=Kind.LIST, metavar="ID", help="Not this rule. Repeatable.")
    timeout: float = option(
        300.0,
        "--timeout",
        kind=Kind.SECONDS,
        help="End a process that reads one stripe for longer, 10m or 600 seconds: its file is a finding.",
    )
    tasks: ReadingTasks = group(ReadingTasks)

    @property
    def depth(self) -> Depth:
        """Return the depth of the check."""
        return Depth.DEEP if self.deep else Depth.FOOTERS if self.footers or self.readers else Depth.LISTING

    def chosen(self) -> CheckOptions:
        """Return the options of the check, which begins now.

        Raises:
            UsageProblem: an option cannot be used, or two contradict each other.
        """
        import os
        import time

        from acidctl.base.worker_pool import Limits
        from acidctl.validation.report import CheckOptions

        self.tasks.check("--jobs", self.tasks.jobs)
        if self.timeout < _LEAST_SECONDS:
            raise UsageProblem("--timeout leaves no time to read a stripe", "", "give some minutes")
        only, ignored = _rule_ids(self.rules), _rule_ids(self.ignored)
        _refuse_unseen(only, ignored, self.depth)
        return CheckOptions(
            self.depth,
            self.readers,
            all_directories=self.all_directories,
            processes=self.tasks.jobs or len(os.sched_getaffinity(0)),
            limits=Limits(seconds=self.timeout),
            only=only,
            ignored=ignored,
            now=time.time(),
        )


def _rule_ids(names: Sequence[str]) -> frozenset[str]:
    from acidctl.validation.checks import RULES

    for name in names:
        if name.upper() not in RULES:
            hint = did_you_mean(name, RULES, "`acidctl explain rules` lists them")
            raise UsageProblem(f"no rule is called {name!r}", "", hint)
    return frozenset(name.upper() for name in names)


def _refuse_unseen(only: frozenset[str], ignored: frozenset[str], depth: Depth) -> None:
    """Refuse rules that a check of this depth cannot find broken."""
    from acidctl.validation.checks import RULES

    if both := sorted(only & ignored):
        raise UsageProblem(f"--rule {both[0]} and --ignore {both[0]} leave nothing to look for", "", "leave one out")
    for rule in sorted(only):
        needed = RULES[rule].depth
        if needed.rank > depth.rank:
            raise UsageProblem(f"{rule} cannot be found from the {depth}", "", f"give --{needed.value}")


def validate(selection: Selection, options: ValidateOptions, events: Events) -> Iterator[Report]:
    """Yield the report of every location, in their order; problems of a location or a file are in its report.

    Raises:
        UsageProblem: an option cannot be used.
        RefusedError: the lists are not for the only location that was named.
    """
    from acidctl.validation.run import check_locations

    check = options.chosen()
    notes: dict[str, None] = {}
    with _runner(options, check, selection, events) as runner, events.progress("checking parts", 0) as bar:
        yield from check_locations(_targets(selection, events, notes), check, bar.reach, runner)
    events.looked_through()
    for text in notes:
        events.note(text)


@contextmanager
def _runner(
    options: ValidateOptions, check: CheckOptions, selection: Selection, events: Events
) -> Iterator[Runner | None]:
    """Yield what reads the files; None for processes of this machine. Spark starts with the first file."""
    if options.tasks.is_local:
        yield None
        return
    import socket

    from acidctl.spark.driver.session import start_session
    from acidctl.spark.jobs import SparkRunner

    places = selection.places
    shown = places[0].rstrip("/").rpartition("/")[2] if len(places) == 1 else f"{len(places)}-locations"
    name = f"{socket.gethostname()}-validator-{shown}"
    with ExitStack() as stack:
        yield SparkRunner(
            lambda stores: stack.enter_context(start_session(options.tasks.spark(name, stores))),
            check.limits,
            events.note,
        )


def _targets(selection: Selection, events: Events, notes: dict[str, None]) -> Iterator[LocationToCheck]:
    """Yield every location, and every folder of tables that holds files of its own.

    Args:
        notes: gets what users should know of the snapshots.
    """
    from acidctl.location.find import find, of_type
    from acidctl.validation.report import LocationToCheck
    from acidctl.wording import text_of

    folders: list[LocationToCheck] = []

    def folder(fs: FileSystem, path: str, table: str) -> None:
        folders.append(LocationToCheck(fs, path, holds=table))

    observer = replace(selection.observer(events), container=folder)
    found_there = find(selection.places, selection.storage, selection.resolver, observer)
    for found in of_type(found_there if selection.known is None else selection.known, selection.table_type):
        yield from folders
        folders.clear()
        try:
            target, note = _target(found)
        except GoneError as error:
            events.failed(found.shown, error)
        except RefusedError as error:
            if found.is_given and len(selection.places) == 1:
                raise
            events.failed("", error)
        else:
            listed = replace(found, listed=target.listing) if target.listing else None
            if selection.known is None and listed and listed.holds_strangers_alone:
                events.skipped(found, found.evidence)
                target = replace(target, is_named=False)  # no line says that nothing is wrong with it
            notes |= {text_of(note): None} if note else {}
            yield target
    yield from folders


def _target(found: TableLocation) -> tuple[LocationToCheck, Reason | None]:
    """Return a location with its listing and the lists that count there, and what users should know of these."""
    from acidctl.location.table_location import TableLocation
    from acidctl.validation.report import LocationToCheck

    at = found.location
    target = LocationToCheck(
        found.fs, at.path, partition=at.partition, declared=found.declared, is_named=found.is_given
    )
    closed: dict[str, AcidctlError] = {}
    try:
        listed = partial(TableLocation.as_far_as_listed, closed=closed)
        found = listed(found).refresh_if_stale(listed)
        with found.unless_dropped():
            lists = found.resolve()
            ahead = found.ids_above_metastore()
    except (GoneError, RefusedError):
        raise
    except BadDataError:
        return target, None  # the check finds what is damaged
    except Exception as error:  # noqa: BLE001 - without a listing, or lists, nothing can be said
        return replace(target, problem=unexpected(error)), None
    target = replace(target, write_ids=lists.write_ids, txns=lists.txns, source=lists.source)
    return replace(target, listing=found.look, closed=closed, ahead=ahead), lists.note


def errors_in(snapshots: Sequence[Snapshot], jobs: int | None, events: Events) -> Iterator[str]:
    """Yield for each snapshot the errors of a deep check that forbid merging its rows; empty without any.

    Args:
        jobs: processes that read; None for one per core.
    """
    from acidctl.validation.report import LocationToCheck
    from acidctl.validation.run import check_locations

    check = ValidateOptions(deep=True, tasks=ReadingTasks(jobs=jobs)).chosen()
    with events.progress("checking parts", 0, coming=len(snapshots)) as bar:
        for report in check_locations(map(LocationToCheck.of, snapshots), check, bar.reach):
            errors = [finding for finding in report.findings if finding.severity is Severity.ERROR]
            found = [f"{finding.rule} {finding.path}: {finding.message}" for finding in errors]
            found += [f"{item.path} could not be checked: {item.error.what}" for item in report.unchecked]
            more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
            yield "; ".join(found[:_SHOWN]) + more
