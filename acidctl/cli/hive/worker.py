"""`acidctl hive worker`: Compact what waits in Hive's queue."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from acidctl.base.errors import AcidctlError, ExitStatus
from acidctl.cli.hive.records import Record, Results
from acidctl.cli.hive.services import Figures, QueueWatch, ended_by_signal, serve, service_command
from acidctl.cli.options.verb_command import Call
from acidctl.cli.output.console import note
from acidctl.verbs.hive.options import WorkerOptions
from acidctl.wording import human_count

if TYPE_CHECKING:
    from acidctl.metastore.client import Metastore
    from acidctl.verbs.hive.worker import Worked

_QUIET_SECONDS = 300.0
"""Seconds between two reports of the same error of the metastore."""


@service_command("worker", WorkerOptions, has_names=False)
def command(call: Call[WorkerOptions], *, metastore: Metastore, listen: str | None) -> int:
    """Compact what waits in Hive's queue until it is stopped, beside Hive's own workers or in place of them.

    Each entry is taken as Hive's workers take it, compacted under a transaction and a shared lock, and visible in SHOW
    COMPACTIONS. Its result appears with the commit; Hive's cleaner removes what it replaced.

    Entries left by dead workers of this machine go back to the queue, each of them once. Entries of Iceberg tables,
    and of types that acidctl does not know, are left to other workers. Unlike Hive's own worker, it does not refresh
    column statistics: run ANALYZE TABLE if your queries depend on them.

    With --once it exits with 7 if an entry was refused.

    It needs Hive 4. On Hive 3.1, or without a service: acidctl compact --auto 'hive:*.*'.
    """
    from acidctl.verbs.hive.worker import worker_of

    options, results = call.options, Results(call.output)
    put, complain = partial(_put, results, options.once), _complaint(results)
    with worker_of(metastore, options, call.selection.storage, put, complain, note=note) as worker:

        def unfinished() -> str:
            where = "given back to the queue" if worker.has_ended else "still in work, for the next worker here"
            return f"unfinished entries are {where}"

        with serve(listen, Figures("worker", worker.counts, QueueWatch(metastore.another()))):
            if freed := worker.free_dead():
                note(f"{human_count(len(freed), 'entry', 'entries')} of dead workers given back to the queue")
            if not options.once:
                where = f"the pool {options.pool}" if options.pool else "the queue"
                note(f"waiting for compactions of {where} of {metastore.shown}; end it with Ctrl-C or SIGTERM")
            with ended_by_signal(unfinished):
                worker.run()
                return results.status
    return ExitStatus.DONE


def _put(results: Results, once: bool, done: Worked) -> None:
    """Print the result of an entry; a refused entry is a failure of a run, but not of a service."""
    from acidctl.cli.report.outcomes import show_failure

    record: Record = {
        "on": done.location,
        "entry": done.entry,
        "kind": done.kind,
        "result": done.result.value,
        "reason": done.reason or None,
        "seconds": round(done.took, 3),
    }
    if done.of:
        record |= {name: value for name, value in done.of.facts().items() if name not in record}
    if not done.error:
        text = done.of.line() if done.of and done.of.is_changed else ""
        results.put(
            record, f"{done.entry}: {text or f'{done.location}: {done.kind}: {done.reason or done.result.words}'}"
        )
        return
    results.put({**record, "error": done.error.code, "message": str(done.error)})
    if results.is_table:
        show_failure(f"compaction {done.entry}", done.error)
    if done.result.value != "refused" or (once and done.of):  # without: it was put back for another worker
        results.status = max(results.status, done.error.exit_status)


def _complaint(results: Results) -> Callable[[AcidctlError], None]:
    """Return a function that reports an error of the metastore, but the same error only once in a while."""
    from acidctl.cli.report.outcomes import show_failure

    reported: dict[str, float] = {}

    def complain(error: AcidctlError) -> None:
        results.status = max(results.status, error.exit_status, ExitStatus.STORAGE)
        now = time.monotonic()
        if now - reported.get(error.what, -_QUIET_SECONDS) >= _QUIET_SECONDS:
            reported[error.what] = now
            show_failure("", error)

    return complain
