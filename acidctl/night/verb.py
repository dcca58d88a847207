"""The night as a verb for Python: what `acidctl nightly` does."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import replace
from pathlib import Path

from acidctl.acid.assumption import Assumption
from acidctl.arguments import as_path
from acidctl.compaction.local_engine import LocalEngine
from acidctl.compaction.run import Engine
from acidctl.deadline import Duration, as_seconds
from acidctl.errors import AcidctlError, RefusedError
from acidctl.location.coverage import Coverage
from acidctl.location.evidence import not_known
from acidctl.location.find import Found, find, once, refuse_unusable
from acidctl.location.lists import read_lists
from acidctl.location.named_metastore import open_warehouse
from acidctl.location.neighbours import Surroundings
from acidctl.location.walk import Observer
from acidctl.night.memory import Memory
from acidctl.night.night import Night
from acidctl.night.order import NightRequest
from acidctl.night.step import NightPart, NightStep
from acidctl.outcome import Outcome, Result


def nightly(
    *urls: str | os.PathLike[str],
    request: NightRequest | None = None,
    dry_run: bool = False,
    state: str | os.PathLike[str] | None = None,
    engine: Engine | None = None,
    storage_options: Mapping[str, str] | None = None,
    metastore: str | Mapping[str, str] | None = None,
    exclude: Sequence[str] = (),
    assume_committed: Duration | None = None,
    accept_fewer: bool = False,
) -> Iterator[NightStep]:
    """Compact what is due, clean what is obsolete and purge what is old, at or below paths and names of tables.

    Args:
        urls: as :func:`acidctl.find_locations` takes one.
        request: policies, time and bytes; see :class:`acidctl.night.order.NightRequest`.
        dry_run: only say what would be done.
        state: a folder that one night at a time works with, and that knows what was left for later; None for none.
        engine: where compactions run; without one in this process. It should end by
            :meth:`acidctl.night.order.NightRequest.until_cleaning`.
        accept_fewer: accept fewer locations than `state` has on record, and record the new number.
        storage_options, metastore, exclude, assume_committed: as :func:`acidctl.find_locations` takes them.

    Yields:
        The outcome of each part in each location; one that failed has its `error`, and does not stop the others. If a
        path leads to no table, or all paths lead to fewer locations than the last time, one outcome says so.

    Raises:
        RefusedError: nobody said which write ids are committed, or a path itself is not known to be transactional.
        ConflictError: another night works with the same folder.
    """
    assumption = None if assume_committed is None else Assumption(as_seconds(assume_committed, "assume_committed"))
    lists = read_lists(assumption=assumption, warehouse=open_warehouse(metastore, exclude))
    if not lists.is_told:
        raise RefusedError(
            "a night must be told which write ids are committed", "", "give metastore or assume_committed"
        )
    wanted = request or NightRequest()
    wanted = replace(wanted, compaction=replace(wanted.compaction, changes_nothing=dry_run))
    lists.end_by(wanted.until)
    given, storage = [as_path(url) for url in urls], dict(storage_options or {})
    memory = None if state is None else Memory(Path(state))
    with memory.alone() if memory and not dry_run else nullcontext():
        night = Night(wanted, lists, given, storage=storage, memory=memory)
        lost: list[NightStep] = []

        def failed(error: AcidctlError) -> None:
            what = Outcome(location="", result=Result.FAILED, error=error)
            lost.append(NightStep.made(NightPart.COMPACT, what, night.id))

        coverage, around = Coverage(), Surroundings()
        refuse_unusable(given, storage, lists, surroundings=around)
        every = once(find(given, storage, lists, Observer(failed, coverage), surroundings=around))
        strangers: list[Found] = []
        yield from night.plan(_changeable(every, strangers), changes_nothing=dry_run)
        looked = coverage.looked
        before = memory.looked(looked.where) if memory else None
        if problem := coverage.problem(None if accept_fewer or lost else before, len(strangers)):
            failed(problem)
        if memory and not dry_run:
            status = max((one.error.exit_status for one in lost if one.error), default=0)
            count = looked.on_record(before, status, is_accepted=accept_fewer)
            memory.keep_looked(replace(looked, locations=count))
        yield from lost
        if dry_run:
            yield from night.planned()
        elif night.due:
            running = engine or LocalEngine(1, night.until_cleaning)
            with closing(night.compact(running)) as steps:
                yield from steps
        yield from night.clean(changes_nothing=dry_run)
        yield from night.purge(changes_nothing=dry_run)


def _changeable(places: Iterator[Found], strangers: list[Found]) -> Iterator[Found]:
    for found in places:
        try:
            evidence = found.evidence()
        except AcidctlError:  # it cannot be listed: its plan says so
            yield found
            continue
        if evidence.may_change:
            yield found
        elif found.is_given:
            raise not_known(found.shown, evidence)
        else:
            strangers.append(found)
