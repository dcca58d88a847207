"""Run planned compactions: one engine call for the tasks of all locations, then publish location by location."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from acidctl.acid.triggers import CompactionKind
from acidctl.compaction.kernel import run_task
from acidctl.compaction.local_engine import LocalEngine
from acidctl.compaction.plan import CompactionPlan, require_atomic
from acidctl.compaction.publish import discard, publish, require_place, require_single_files, stage_directories
from acidctl.compaction.tasks import BucketResult, BucketTask, JoinTask, Segment, Task
from acidctl.errors import AcidctlError, VerifyError


class Engine(Protocol):
    """Where tasks run."""

    def __call__(
        self, tasks: Sequence[Task], function: Callable[[Task], BucketResult]
    ) -> Iterator[tuple[int, BucketResult | AcidctlError]]:
        """The place and outcome of every task, in the order they end. Called again where buckets were cut.

        An engine whose time is up may end early.
        """


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one location.

    Attributes:
        published: names of the new directories; empty when `error` says why not.
        staging_kept: absolute path of the evidence of a failed verification.
        is_postponed: the engine ended before the location's turn came, or before it was done; nothing was changed.
    """

    plan: CompactionPlan
    published: tuple[str, ...] = ()
    results: tuple[BucketResult, ...] = ()
    error: AcidctlError | None = None
    staging_kept: str | None = None
    is_postponed: bool = False

    @property
    def rows(self) -> int:
        """Events in the output."""
        return sum(f.rows for r in self.results for f in (r.inserts, r.deletes) if f)

    @property
    def bytes(self) -> int:
        """Bytes of the output's data files."""
        return sum(f.bytes for r in self.results for f in (r.inserts, r.deletes) if f)

    @property
    def stripes(self) -> tuple[int, int]:
        """Stripes that were copied, and stripes that were encoded again."""
        files = [f for r in self.results for f in (r.inserts, r.deletes) if f]
        copied = sum(f.stripes_copied for f in files)
        return copied, sum(f.stripes for f in files) - copied

    @property
    def seconds(self) -> float:
        """Of work, in all tasks together."""
        return sum(result.seconds for result in self.results)

    @property
    def rows_dropped(self) -> int:
        """Events that were read and are not in the output."""
        return sum(result.rows_dropped for result in self.results)


def compact(
    plans: Sequence[CompactionPlan],
    engine: Engine | None = None,
    *,
    offline: bool = False,
    on_task: Callable[[Task], None] | None = None,
) -> Generator[Outcome, None, None]:
    """Compact planned locations; one that fails does not stop the others.

    The caller holds the locks of those whose store shows results by copies.

    Args:
        engine: where the tasks run; without one in this process.
        offline: nothing reads the locations meanwhile, see :func:`acidctl.compaction.plan.require_atomic` and
            :func:`acidctl.compaction.publish.require_single_files`.
        on_task: called when a task has ended.

    Yields:
        One outcome a plan, as soon as its last bucket is done.
    """
    staged: list[CompactionPlan] = []
    for plan in plans:
        try:
            refuse_before_work(plan, offline)
            stage_directories(plan)
            staged.append(plan)
        except AcidctlError as error:
            discard(plan)
            yield Outcome(plan, error=error)
    try:
        yield from _run(staged, engine or LocalEngine(1), offline, on_task)
    except BaseException:
        for plan in staged:
            discard(plan)
        raise


def refuse_before_work(plan: CompactionPlan, offline: bool) -> None:
    """What will come out is known for sure only at the end; refuse at once where it is likely.

    Raises:
        RefusedError: two renames, or copies of several files, would be needed.
        StorageError: the store has neither renames nor copies.
    """
    require_place(plan)
    require_single_files(plan, len({task.bucket for task in plan.tasks if task.rows}), offline)
    if plan.kind is CompactionKind.MINOR:
        tasks = [task for task in plan.tasks if isinstance(task, BucketTask)]
        both = any(task.deletes for task in tasks) and any(task.inserts for task in tasks)
        require_atomic(plan, both, offline)


class _Location:
    """The tasks of one plan: how many are still out, and what they gave."""

    def __init__(self, plan: CompactionPlan) -> None:
        self.plan = plan
        self.waiting = len(plan.tasks)
        self.results: list[BucketResult] = []
        self.errors: list[AcidctlError] = []

    def take(self, result: BucketResult | AcidctlError) -> None:
        """One task has ended."""
        self.waiting -= 1
        if isinstance(result, AcidctlError):
            self.errors.append(result)
        else:
            self.results.append(result)

    def joins(self) -> list[JoinTask]:
        """What is to be put together, once every segment is there."""
        segments: dict[int, list[Segment]] = {}
        for result in self.results:
            if result.segment:
                segments.setdefault(result.bucket, []).append(result.segment)
        like = self.plan.cut_buckets
        return [
            JoinTask(like[bucket], tuple(sorted(found, key=lambda segment: segment.number)))
            for bucket, found in segments.items()
        ]

    def outcome(self, offline: bool) -> Outcome:
        """Publish, or say why not."""
        return _failed(self.plan, self.errors) if self.errors else _publish(self.plan, self.results, offline)


def _run(
    plans: list[CompactionPlan],
    engine: Engine,
    offline: bool,
    on_task: Callable[[Task], None] | None,
) -> Iterator[Outcome]:
    locations = [_Location(plan) for plan in plans]
    work: list[tuple[_Location, Task]] = [(location, task) for location in locations for task in location.plan.tasks]
    for location in locations:
        if not location.waiting:
            yield location.outcome(offline)
    while work:
        further: list[tuple[_Location, Task]] = []
        for place, result in engine([task for _, task in work], run_task):
            location, task = work[place]
            location.take(result)
            if on_task:
                on_task(task)
            if location.waiting:
                continue
            joins = [] if location.errors or isinstance(task, JoinTask) else location.joins()
            location.waiting = len(joins)
            further += [(location, join) for join in joins]
            if not joins:
                yield location.outcome(offline)
        for location in {id(location): location for location, _ in work}.values():
            if location.waiting and not any(location is other for other, _ in further):
                if location.errors:
                    yield location.outcome(offline)
                else:
                    discard(location.plan)
                    yield Outcome(location.plan, is_postponed=True)
        work = further


def _publish(plan: CompactionPlan, results: list[BucketResult], offline: bool) -> Outcome:
    try:
        return Outcome(plan, publish(plan, results, offline=offline), tuple(results))
    except AcidctlError as error:
        return _failed(plan, [error])


def _failed(plan: CompactionPlan, errors: list[AcidctlError]) -> Outcome:
    """Nothing is published; the staging directory stays only as evidence of a wrong result."""
    wrong = next((error for error in errors if isinstance(error, VerifyError)), None)
    if wrong is None:
        discard(plan)
        return Outcome(plan, error=errors[0])
    return Outcome(plan, error=wrong, staging_kept=plan.staging)
