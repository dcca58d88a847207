"""`acidctl hive worker`: takes compactions from Hive's queue, as Hive's own workers do."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from acidctl.base.errors import AcidctlError, ExitStatus
from acidctl.cli.hive.records import Record, Results
from acidctl.cli.hive.services import Figures, counter, ended_by_signal, gauge, listen_option, serve
from acidctl.cli.options import shared
from acidctl.cli.options.asked_metastore import asked_metastore
from acidctl.cli.options.engine_choice import engine_options
from acidctl.cli.options.param_types import COUNT, DURATION, SIZE
from acidctl.cli.output.console import note
from acidctl.wording import human_count

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

    from acidctl.base.deadline import Deadline
    from acidctl.compaction.run import Engine
    from acidctl.compaction.tasks import Task
    from acidctl.hive.worker import Counts, Engines, Worked
    from acidctl.metastore.client import Metastore
    from acidctl.storage.port import FileSystemSpec
    from acidctl.verbs.engine import EngineOptions

_QUIET_SECONDS = 300.0
"""Seconds between two reports of the same error of the metastore."""

_STALE_SECONDS = 300.0


@shared.command(
    "worker",
    "acidctl hive worker --pool nightly --once",
    "acidctl hive worker --engine local --max-parallel 2 --max-bytes 50g --listen 9464",
    "acidctl hive worker -o jsonl --master yarn --conf spark.yarn.queue=compaction --max-parallel 8",
    main=("pool", "once", "max_parallel", "max_bytes", "grace", "listen", "engine", "master", "metastore", "output"),
)
@click.option("--pool", metavar="NAME", help="Take entries of this pool; without it those that have none.")
@click.option("--once", is_flag=True, help="End when nothing waits any more.")
@click.option("--max-parallel", type=COUNT, default=1, show_default=True, help="Entries at once.")
@click.option("--max-bytes", type=SIZE, help="Read at most so much at once; what is larger waits until it is alone.")
@click.option(
    "--grace",
    type=DURATION,
    default="25s",
    show_default=True,
    help="When it is ended, wait so long for what it works on; what is not done then is given back to the queue.",
)
@listen_option
@engine_options("spark")
@click.option("--jobs", type=COUNT, help="Processes of --engine local for each entry; without it one per core.")
@click.option(
    "--verify",
    type=click.Choice(["keys", "bytes", "full"]),
    default="bytes",
    show_default=True,
    help="As of acidctl compact: what is compared before a result is shown.",
)
@asked_metastore
@shared.changed_storage_options
@shared.output_option("table", "jsonl", default="table")
def command(
    pool: str | None,
    once: bool,
    max_parallel: int,
    max_bytes: int | None,
    grace: float,
    listen: str | None,
    engine: EngineOptions,
    jobs: int | None,
    verify: str,
    metastore: Metastore,
    storage: dict[str, str],
    output: str,
) -> int:
    """Compact what waits in Hive's queue, until it is ended: beside Hive's own workers, or where there are none.

    Each entry is taken as Hive's workers take it, compacted under a transaction and a shared lock, and visible in SHOW
    COMPACTIONS all the while. Its result appears with the commit; Hive's cleaner removes what it replaced.

    At the start, entries left by dead workers of this machine go back to the queue, each of them once. Entries of
    Iceberg tables, and of types that acidctl does not know, are left to other workers. Unlike Hive's own worker, it
    does not refresh column statistics: run ANALYZE TABLE if your queries depend on them.

    It needs Hive 4. On Hive 3.1, or without a service: acidctl compact --auto 'hive:*.*'.
    """
    from acidctl.compaction.output_settings import Writing
    from acidctl.compaction.proof.verify import Verify
    from acidctl.compaction.request import CompactionRequest, Mode
    from acidctl.hive.database_stores import database_stores
    from acidctl.hive.worker import Work, Worker, require_queue

    engine.check("--jobs", jobs)
    require_queue(metastore)  # before Spark starts
    results = Results(output)
    is_on_cluster = not engine.is_local and (engine.master or "").startswith(("yarn", "k8s"))
    stores = database_stores(metastore, storage) if is_on_cluster else ()
    request = CompactionRequest(Mode.MAJOR, writing=Writing(verify=Verify(verify)))
    with _engines(engine, jobs, stores) as (engines, job):
        asked = Work(pool or "", max_parallel, max_bytes, once, grace, request, job, storage)
        worker = Worker(metastore, asked, engines, lambda done: _put(results, done), _complaint(results))

        def left() -> str:
            where = "is given back to the queue" if worker.has_ended else "is left at work, for the next worker here"
            return f"what was not done {where}"

        with serve(listen, figures(worker.counts)):
            if freed := worker.free_dead():
                note(f"{human_count(len(freed), 'entry', 'entries')} of dead workers given back to the queue")
            if not once:
                where = f"the pool {pool}" if pool else "the queue"
                note(f"waiting for compactions of {where} of {metastore.shown}; end it with Ctrl-C or SIGTERM")
            with ended_by_signal(left):
                worker.run()
                return results.status
    return ExitStatus.DONE


@contextmanager
def _engines(
    choice: EngineOptions, jobs: int | None, stores: Sequence[FileSystemSpec]
) -> Iterator[tuple[Engines, str]]:
    """Yield what makes an engine for each entry, and its name in the queue: one session of Spark serves all.

    Args:
        stores: stores for which Spark gets tokens at its start, as it cannot get more later.
    """
    from socket import gethostname

    name = f"acidctl-worker-{gethostname()}"
    if choice.is_local:
        from acidctl.compaction.local_engine import LocalEngine

        yield (lambda until, on_progress: LocalEngine(jobs, until, on_progress)), name
        return
    from acidctl.spark.compaction_engine import spark_engines

    with spark_engines(choice.spark(name, stores), note) as (start_engine, application):

        def engine(until: Deadline, _: Callable[[Task, int], None]) -> Engine:
            return start_engine(until)

        yield engine, application


def _put(results: Results, done: Worked) -> None:
    """Print the result of an entry; a refused entry is not a failure of the worker."""
    from acidctl.cli.report.compact_screen import compaction_text
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
        text = done.of and compaction_text(done.of)
        results.put(
            record,
            f"{done.entry}: {text or f'{done.location}: {done.kind}: {done.reason or done.result.words}'}",
        )
        return
    results.put({**record, "error": done.error.code, "message": str(done.error)})
    if results.is_table:
        show_failure(f"compaction {done.entry}", done.error)
    if done.result.value != "refused":
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


def figures(counts: Counts) -> Figures:
    """Return the figures of a worker, which is healthy if the metastore answers, or an entry is in work."""
    name = "acidctl_worker"

    def collect() -> list[Metric]:
        sizes = {"read": counts.bytes_read, "written": counts.bytes_written}
        return [
            counter(f"{name}_entries", "Compactions that it took, by what became of them.", counts.results),
            counter(f"{name}_bytes", "Bytes of inputs and outputs.", sizes, "kind"),
            counter(f"{name}_seconds", "Time between taking entries and their ends.", counts.seconds),
            gauge(f"{name}_running", "Entries that it works on.", counts.running),
            gauge(f"{name}_last_look_timestamp_seconds", "When the metastore last answered it.", counts.looked),
        ]

    return Figures(
        collect, lambda: counts.running > 0 or (not counts.failing and time.time() - counts.looked < _STALE_SECONDS)
    )
