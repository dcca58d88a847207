"""Run planned compactions: one engine call for the tasks of all locations, then publish each location."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from acidctl.acid.compaction_kind import CompactionKind
from acidctl.base.errors import AcidctlError, RefusedError, VerifyError, unexpected
from acidctl.compaction.kernel import run_task
from acidctl.compaction.local_engine import LocalEngine
from acidctl.compaction.plan import CompactionPlan, require_atomic
from acidctl.compaction.publish import discard, publish, require_place, require_single_files, stage_directories
from acidctl.compaction.rebalance import Runs
from acidctl.compaction.split import shared_out
from acidctl.compaction.tasks import BucketResult, BucketTask, CountTask, JoinTask, OutputFile, Segment, Task
from acidctl.outcome import TIME_IS_UP, NextCommand, Outcome, Remark, Result
from acidctl.wording import human_bytes, human_count


class Engine(Protocol):
    """Runs tasks."""

    @property
    def cores(self) -> int:
        """Return how many tasks run at the same time."""

    def __call__(
        self, tasks: Sequence[Task], function: Callable[[Task], BucketResult]
    ) -> Iterator[tuple[int, BucketResult | AcidctlError]]:
        """Yield the index and outcome of every task, in the order in which they end; an engine may end early.

        It is called again for the tasks that follow from results, such as joining segments.
        """


Check = Callable[[CompactionPlan], None]


@dataclass(frozen=True, kw_only=True)
class Compacted(Outcome):
    """The outcome of one location's plan: compacted, failed, or postponed.

    Attributes:
        published: names of the new directories; empty if nothing was changed.
        staging_kept: absolute path of the evidence of a failed verification.
        hive_name: the location's name in the metastore; empty if it is in none.
    """

    plan: CompactionPlan
    published: tuple[str, ...] = ()
    results: tuple[BucketResult, ...] = ()
    staging_kept: str | None = None
    hive_name: str = ""

    @property
    def files(self) -> list[OutputFile]:
        """Return the data files of the output."""
        return [file for result in self.results for file in result.files]

    @property
    def rows(self) -> int:
        """Return the number of events in the output."""
        return sum(file.rows for file in self.files)

    @property
    def bytes(self) -> int:
        """Return the size of the output's data files."""
        return sum(file.bytes for file in self.files)

    @property
    def stripes(self) -> tuple[int, int]:
        """Return how many stripes were copied, and how many were encoded again."""
        copied = sum(file.stripes_copied for file in self.files)
        return copied, sum(file.stripes for file in self.files) - copied

    @property
    def seconds(self) -> float:
        """Return the time that all tasks together took."""
        return sum(result.seconds for result in self.results)

    @property
    def rows_dropped(self) -> int:
        """Return how many events were read and are not in the output."""
        return sum(result.rows_dropped for result in self.results)

    def line(self) -> str:
        if not self.is_changed:
            return super().line()
        plan = self.plan
        return (
            f"{self.location}: {plan.asked}: {human_count(len(plan.inputs), 'input')} -> "
            f"{' + '.join(self.published)}, {human_bytes(plan.input_bytes)} -> {human_bytes(self.bytes)}, "
            f"{human_count(self.rows, 'row')}, {self.rows_dropped:,} dropped, "
            f"{human_count(self.stripes[0], 'stripe')} copied, {self.stripes[1]:,} encoded, "
            f"{plan.verify.told}, {self.seconds:.1f} s of work"
        )

    def remarks(self) -> Iterator[Remark]:
        if self.staging_kept:
            shown = self.plan.snapshot.fs.display(self.staging_kept)
            yield Remark(f"the evidence is kept in {shown}", is_warning=True)

    def next_command(self) -> NextCommand | None:
        purpose = "the inputs are obsolete now and stay until"
        return NextCommand(purpose, ("clean",), self.hive_name) if self.is_changed else None

    def amounts(self) -> Mapping[str, int]:
        return {"inputs": len(self.plan.inputs), "written": self.bytes, "read": self.plan.input_bytes}

    def bytes_by_use(self) -> Mapping[str, int]:
        """Return the sizes of the inputs and of the output; empty if nothing was published."""
        return {"read": self.plan.input_bytes, "written": self.bytes} if self.is_changed else {}

    def facts(self) -> Mapping[str, Any]:
        """Return the figures of a published compaction."""
        if not self.is_changed:
            return {}
        return {
            "kind": self.plan.asked,
            "inputs": list(self.plan.inputs),
            "outputs": list(self.published),
            "inputBytes": self.plan.input_bytes,
            "inputRows": self.plan.rows,
            "deleteEvents": self.plan.delete_events,
            "bytes": self.bytes,
            "rows": self.rows,
            "rowsDropped": self.rows_dropped,
            "stripesCopied": self.stripes[0],
            "stripesEncoded": self.stripes[1],
            "verified": self.plan.verify.value,
            "taskSeconds": round(self.seconds, 3),
            "snapshotSource": self.plan.snapshot.source.record,
        }


def failed(plan: CompactionPlan, error: AcidctlError, staging_kept: str | None = None) -> Compacted:
    """Return the outcome of a plan that published nothing."""
    return Compacted(location=plan.shown, result=Result.FAILED, error=error, plan=plan, staging_kept=staging_kept)


def compact(
    plans: Sequence[CompactionPlan],
    engine: Engine | None = None,
    *,
    offline: bool = False,
    on_task: Callable[[Task], None] | None = None,
    check: Check | None = None,
) -> Generator[Compacted, None, None]:
    """Compact planned locations, and yield one outcome per plan as soon as its last bucket is done.

    A location that fails does not stop the others. The caller holds the locks of locations that publish by copies.

    Args:
        engine: default: one process of this machine.
        offline: nothing reads the locations meanwhile, see :func:`acidctl.compaction.plan.require_atomic` and
            :func:`acidctl.compaction.publish.require_single_files`.
        on_task: called when a task has ended.
        check: called before a result is published; the plan fails with the AcidctlError that it raises.
    """
    staged: list[CompactionPlan] = []
    for plan in plans:
        try:
            refuse_before_work(plan, offline)
            if plan.spread and not plan.visibility_txn:  # it was only planned for display
                raise RefusedError(
                    f"cannot rebalance {plan.shown}",
                    "nobody is kept away from its table",
                    "plan it under a lock of Hive's",
                )
            stage_directories(plan)
            staged.append(plan)
        except Exception as error:  # noqa: BLE001 - the other plans go on
            discard(plan)
            yield failed(plan, unexpected(error))
    try:
        yield from _run(staged, engine or LocalEngine(1), offline, on_task, check)
    except BaseException:
        for plan in staged:
            discard(plan)
        raise


def refuse_before_work(plan: CompactionPlan, offline: bool) -> None:
    """Refuse at once what publishing would probably refuse; only the results decide it.

    Raises:
        RefusedError: two renames, or copies of several files, would be needed.
        StorageError: the store has neither renames nor copies.
    """
    require_place(plan)
    require_single_files(plan, plan.buckets, offline)
    if plan.kind is CompactionKind.MINOR:
        tasks = [task for task in plan.tasks if isinstance(task, BucketTask)]
        both = any(task.deletes for task in tasks) and any(task.inserts for task in tasks)
        require_atomic(plan, both, offline)


class _Location:
    """The tasks of one plan, and the results of those that have ended."""

    def __init__(self, plan: CompactionPlan, check: Check | None) -> None:
        self.plan = plan
        self._check = check
        self.waiting = len(plan.tasks)
        self.results: list[BucketResult] = []
        self.errors: list[AcidctlError] = []

    def take(self, result: BucketResult | AcidctlError) -> None:
        self.waiting -= 1
        if isinstance(result, AcidctlError):
            self.errors.append(result)
        else:
            self.results.append(result)

    def after(self, last: Task) -> Sequence[Task]:
        """Return the tasks that follow, now that all have ended; none after an error. A bug here is kept as one.

        Args:
            last: one of the tasks that have ended; its kind decides what follows.
        """
        try:
            return [] if self.errors else self._following(last)
        except Exception as error:  # noqa: BLE001 - the other locations go on
            self.errors.append(unexpected(error, "between two tasks of a compaction"))
            return []

    def _following(self, last: Task) -> Sequence[Task]:
        if isinstance(last, CountTask) and self.plan.spread:
            spread = self.plan.spread
            runs = Runs.concat([result.runs for result in self.results if result.runs])
            return spread.tasks_for(runs) or [JoinTask(spread.like, ())]
        return [] if isinstance(last, JoinTask) else self._joins()

    def _joins(self) -> list[JoinTask]:
        """Return the joins of all segments, or a task for a file without rows if the table has none.

        Readers that list files, such as Trino, overlook a base without files, and would read what it hides.
        """
        segments: dict[int, list[Segment]] = {}
        for result in self.results:
            if result.segment:
                segments.setdefault(result.bucket, []).append(result.segment)
        has_rows = any(result.files or (result.segment and result.segment.stripes) for result in self.results)
        if self.plan.kind is CompactionKind.MAJOR and not has_rows:
            task = next((task for task in self.plan.tasks if isinstance(task, BucketTask)), None)
            return [JoinTask(task, ())] if task else []
        like = self.plan.cut_buckets
        return [
            JoinTask(like[bucket], tuple(sorted(parts, key=lambda segment: segment.number)))
            for bucket, parts in segments.items()
        ]

    def outcome(self, offline: bool) -> Compacted:
        """Publish the results, or return the failure; staging stays only as evidence of a failed verification."""
        plan = self.plan
        try:
            if self.errors:
                raise next((error for error in self.errors if isinstance(error, VerifyError)), self.errors[0])
            if self._check:
                self._check(plan)
            published = publish(plan, self.results, offline=offline)
        except VerifyError as error:
            return failed(plan, error, plan.staging)
        except Exception as error:  # noqa: BLE001 - the other locations go on
            discard(plan)
            return failed(plan, unexpected(error, "after the last task of a compaction"))
        results = tuple(self.results)
        return Compacted(location=plan.shown, result=Result.COMPACTED, plan=plan, published=published, results=results)

    def unfinished(self, offline: bool) -> Compacted:
        """Return the outcome if the engine ended before the location was done; nothing was changed."""
        if self.errors:
            return self.outcome(offline)
        discard(self.plan)
        return Compacted(location=self.plan.shown, result=Result.POSTPONED, reasons=(TIME_IS_UP,), plan=self.plan)


def _run(
    plans: list[CompactionPlan],
    engine: Engine,
    offline: bool,
    on_task: Callable[[Task], None] | None,
    check: Check | None,
) -> Iterator[Compacted]:
    cores = engine.cores if any(plan.tasks for plan in plans) else 1
    tasks = shared_out([plan.tasks for plan in plans], cores)
    locations = [_Location(replace(plan, tasks=parts), check) for plan, parts in zip(plans, tasks, strict=True)]
    work: list[tuple[_Location, Task]] = [(location, task) for location in locations for task in location.plan.tasks]
    for location in locations:
        if not location.waiting:
            yield location.outcome(offline)
    while work:
        further: list[tuple[_Location, Task]] = []
        for index, result in engine([task for _, task in work], run_task):
            location, task = work[index]
            location.take(result)
            if on_task:
                on_task(task)
            if location.waiting:
                continue
            following = location.after(task)
            location.waiting = len(following)
            further += [(location, task) for task in following]
            if not following:
                yield location.outcome(offline)
        for location in {id(location): location for location, _ in work}.values():
            if location.waiting and not any(location is other for other, _ in further):
                yield location.unfinished(offline)
        work = further
