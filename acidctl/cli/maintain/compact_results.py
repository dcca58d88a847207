"""What `acidctl compact` says: one result a location, and a bar while it works."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from acidctl.acid.triggers import Figures
    from acidctl.cli.output.progress import Bar
    from acidctl.cli.report.run_report import RunReport
    from acidctl.compaction.plan import CompactionPlan
    from acidctl.compaction.run import Outcome
    from acidctl.compaction.tasks import Task
    from acidctl.errors import AcidctlError
    from acidctl.location.evidence import Evidence
    from acidctl.location.find import Found


class Working:
    """How far the tasks of a compaction are, in bytes of their inputs: what is told while they run, and the rest of it
    at their end; on a cluster all of it then.
    """

    def __init__(self, bar: Bar) -> None:
        self._bar = bar
        self._told: dict[int, int] = {}

    def bytes(self, task: Task, count: int) -> None:
        """So many more of one task are done."""
        told = self._told.get(id(task))
        if told is None:
            told = self._begun(task)
        count = min(count, task.weight - told)
        self._told[id(task)] = told + count
        self._bar.advance(count)

    def ended(self, task: Task) -> None:
        """All of its bytes."""
        self.bytes(task, task.weight)

    def _begun(self, task: Task) -> int:
        from acidctl.compaction.tasks import JoinTask

        if isinstance(task, JoinTask):  # which nobody knew of before
            self._bar.grow(task.weight)
        return 0


@contextmanager
def working(plans: Sequence[CompactionPlan]) -> Iterator[Working]:
    """A bar over the input bytes, on standard error and only on a terminal."""
    from acidctl.cli.output.console import human_count
    from acidctl.cli.output.progress import progress

    tasks = [task for plan in plans for task in plan.tasks]
    doing = f"compacting {human_count(len(tasks), 'bucket')}"
    with progress(doing, sum(task.weight for task in tasks), is_bytes=True) as bar:
        yield Working(bar)


def _figures(figures: Figures | None) -> dict[str, Any]:
    """What decided, for programs."""
    if figures is None:
        return {}
    ratio = figures.delta_bytes / figures.base_bytes if figures.base_bytes else None
    return {
        "figures": {
            "baseBytes": figures.base_bytes,
            "deltaBytes": figures.delta_bytes,
            "deltaRatio": ratio,
            "deltas": figures.deltas,
            "abortedTxns": figures.aborted_txns,
        }
    }


class Printer:
    """One result a location, and the worst exit status of all."""

    def __init__(self, output: str, dry_run: bool, run: RunReport) -> None:
        from acidctl.cli.output.console import Records

        self.run = run
        self._output = output
        self._records = Records(output)
        self._dry_run = dry_run
        self._status = 0
        self._worked = False
        self._postponed = False
        self._planned: dict[str, tuple[str, str, Figures | None]] = {}
        self._noted: set[str] = set()
        self._to_clean: list[str] = []

    def exit_status(self, speaks: bool) -> int:
        """Of the whole run; with `speaks` there is a status for nothing to do and for work that was put off."""
        from acidctl.cli.output.console import note
        from acidctl.errors import ExitStatus

        if self._to_clean:
            more = f" (and {len(self._to_clean) - 1} more)" if len(self._to_clean) > 1 else ""
            note(f"the inputs are obsolete now and stay until: acidctl clean {self._to_clean[0]}{more}")
        if self._status or not speaks:
            return self._status
        if self._postponed:
            return ExitStatus.POSTPONED
        return 0 if self._worked else ExitStatus.NOTHING_TO_DO

    def nothing(self, location: str, why: str, figures: Figures | None) -> None:
        """Nothing to do, and why; with the figures, where they decided."""
        self.run.add(location, "nothing-to-do", reason=why)
        record = {"location": location, "result": "nothing-to-do", "reason": why, **_figures(figures)}
        self._put(record, f"{location}: nothing to do: {why}")

    def skipped(self, found: Found, evidence: Evidence) -> None:
        """A location that is not known to be transactional."""
        self.run.add(found.shown, "skipped", reason=evidence.text)
        if self._output != "table":
            record = {"location": found.shown, "result": "skipped", "code": evidence.code, "reason": evidence.text}
            self._put(record, "")

    def postponed(self, location: str, why: str) -> None:
        """Left for another run."""
        self._postponed = True
        self.run.add(location, "postponed", reason=why)
        self._put({"location": location, "result": "postponed", "reason": why}, f"{location}: left for later: {why}")

    def cannot_list(self, error: AcidctlError) -> None:
        """A directory of a tree cannot be listed; the others are gone on with."""
        self.failed("", error)

    def planned(self, location: str, plan: CompactionPlan, why: str, figures: Figures | None) -> None:
        """A location that has work."""
        from acidctl.cli.output.console import note
        from acidctl.wording import text_of

        for text in map(text_of, plan.snapshot.state.notes):
            if text not in self._noted:
                self._noted.add(text)
                note(text)
        self._planned[plan.staging] = (location, why, figures)

    def would_compact(self, plan: CompactionPlan, *, is_last: bool = True) -> None:
        """A plan; the last word of a dry run, or shown before a question."""
        from acidctl.cli.output.console import human_bytes, human_count
        from acidctl.compaction.tasks import BucketTask

        location, why, figures = self._planned[plan.staging]
        if is_last:
            self._worked = True
            self.run.add(location, "planned", kind=plan.kind.value)
        elif self._output != "table":
            return
        segments = sum(isinstance(task, BucketTask) and task.segment is not None for task in plan.tasks)
        buckets = len({task.bucket for task in plan.tasks})
        record = {
            "location": location,
            "result": "planned",
            "kind": plan.kind.value,
            "reason": why or "asked for",
            **_figures(figures),
            "inputs": list(plan.inputs),
            "outputs": list(plan.output_names),
            "buckets": buckets,
            "segments": segments,
            "inputBytes": plan.input_bytes,
            "inputRows": plan.rows,
            "deleteEvents": plan.delete_events,
        }
        inputs = human_count(len(plan.inputs), "input")
        because = f" ({why})" if why else ""
        cut = f" in {human_count(segments, 'segment')}" if segments else ""
        text = (
            f"{location}: {plan.kind.value}{because}: {inputs}, {human_count(buckets, 'bucket')}{cut}, "
            f"{human_count(plan.rows, 'row')} and {human_count(plan.delete_events, 'delete event')}, "
            f"{human_bytes(plan.input_bytes)} -> {' + '.join(plan.output_names)}"
        )
        self._put(record, text)

    def done(self, outcome: Outcome) -> None:
        from acidctl.cli.output.console import human_bytes, human_count

        plan = outcome.plan
        location = plan.snapshot.fs.display(plan.snapshot.path)
        if outcome.is_postponed:
            self.postponed(location, "the time is up, nothing was changed")
            return
        if outcome.error:
            self.failed(location, outcome.error)
            if outcome.staging_kept:
                from acidctl.cli.output.console import warn

                warn(f"the evidence is kept in {plan.snapshot.fs.display(outcome.staging_kept)}")
            return
        self._worked = True
        self.run.add(
            location,
            "compacted",
            is_changed=True,
            read=plan.input_bytes,
            written=outcome.bytes,
            seconds=outcome.seconds,
            kind=plan.kind.value,
            rows=outcome.rows,
            rowsDropped=outcome.rows_dropped,
            inputRows=plan.rows,
            deleteEvents=plan.delete_events,
        )
        record = {
            "location": location,
            "result": "compacted",
            "kind": plan.kind.value,
            "inputs": list(plan.inputs),
            "outputs": list(outcome.published),
            "inputBytes": plan.input_bytes,
            "inputRows": plan.rows,
            "deleteEvents": plan.delete_events,
            "bytes": outcome.bytes,
            "rows": outcome.rows,
            "rowsDropped": outcome.rows_dropped,
            "stripesCopied": outcome.stripes[0],
            "stripesEncoded": outcome.stripes[1],
            "verified": plan.verify.value,
            "taskSeconds": round(outcome.seconds, 3),
        }
        text = (
            f"{location}: {plan.kind.value}: {human_count(len(plan.inputs), 'input')} -> "
            f"{' + '.join(outcome.published)}, {human_bytes(plan.input_bytes)} -> {human_bytes(outcome.bytes)}, "
            f"{human_count(outcome.rows, 'row')}, {outcome.rows_dropped:,} dropped, "
            f"{human_count(outcome.stripes[0], 'stripe')} copied, {outcome.stripes[1]:,} encoded, "
            f"{plan.verify.told}, {outcome.seconds:.1f} s of work"
        )
        self._put(record, text)
        if self._output == "table":
            self._to_clean.append(location)

    def failed(self, location: str, error: Any) -> None:
        from acidctl.cli.report.failures import show_failure

        self._status = max(self._status, error.exit_status)
        self.run.failed(location, error)
        if self._output != "table":
            record = {"location": location, "result": "failed", "error": error.code, "reason": str(error)}
            self._put(record, "")
        show_failure(location, error)

    def _put(self, record: dict[str, Any], text: str) -> None:
        from acidctl.cli.output.console import put_line

        if self._output == "table":
            put_line(text)
        else:
            self._records.put({"schema_version": 1, **record})
