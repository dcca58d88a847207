"""What `acidctl hive worker` does and says: one line for each entry, and its figures for who watches it."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from acidctl.cli.hive.work.service_figures import WorkerFigures
from acidctl.cli.hive.work.service_page import serve
from acidctl.cli.options.engine_choice import EngineChoice
from acidctl.cli.output.console import Records, note, put_line
from acidctl.cli.report.compaction_text import compaction_text
from acidctl.cli.report.outcomes import show_failure
from acidctl.compaction.local_engine import LocalEngine
from acidctl.compaction.output_settings import Writing
from acidctl.compaction.proof.verify import Verify
from acidctl.compaction.request import CompactionRequest, Mode
from acidctl.compaction.run import Engine
from acidctl.compaction.tasks import Task
from acidctl.deadline import Deadline
from acidctl.errors import AcidctlError, ExitStatus
from acidctl.hive.database_stores import database_stores
from acidctl.hive.worker import Engines, Work, Worked, Worker, require_queue
from acidctl.metastore.client import Metastore
from acidctl.outcome import Result
from acidctl.storage.port import FileSystemSpec
from acidctl.wording import human_count

_QUIET_SECONDS = 300.0
"""What goes wrong with the metastore again and again is said so often."""


def work(
    *,
    pool: str | None,
    once: bool,
    max_parallel: int,
    max_bytes: int | None,
    grace: float,
    listen: str | None,
    engine: EngineChoice,
    jobs: int | None,
    verify: str,
    metastore: Metastore,
    storage: dict[str, str],
    output: str,
) -> int:
    """Work until it is ended; the exit status, with `once`."""
    engine.check("--jobs", jobs)
    require_queue(metastore)  # before Spark starts
    said = _Said(output)
    with ExitStack() as stack:
        is_on_cluster = engine.kind == "spark" and (engine.master or "").startswith(("yarn", "k8s"))
        stores = database_stores(metastore, storage) if is_on_cluster else ()
        engines, job = stack.enter_context(_engines(engine, jobs, stores))
        asked = Work(
            pool or "",
            max_parallel,
            max_bytes,
            once,
            grace,
            CompactionRequest(Mode.MAJOR, writing=Writing(verify=Verify(verify))),
            job,
            storage,
        )
        worker = Worker(metastore, asked, engines, said.done, said.failed)
        if listen:
            address = stack.enter_context(serve(listen, WorkerFigures(worker.counts)))
            note(f"metrics are at http://{address}/metrics")
        freed = worker.free_dead()
        if freed:
            note(f"{human_count(len(freed), 'entry', 'entries')} of dead workers given back to the queue")
        if not once:
            where = f"the pool {pool}" if pool else "the queue"
            note(f"waiting for compactions of {where} of {metastore.shown}; end it with Ctrl-C or SIGTERM")
        try:
            worker.run()
        except KeyboardInterrupt:  # a service is ended so, and that is no failure
            left = "is given back to the queue" if worker.has_ended else "is left at work, for the next worker here"
            note(f"told to end: what was not done {left}")
            return ExitStatus.DONE
    return said.status


@contextmanager
def _engines(choice: EngineChoice, jobs: int | None, stores: Sequence[FileSystemSpec]) -> Iterator[tuple[Engines, str]]:
    """What makes an engine for each entry, and as what the queue has it: one session of Spark serves all.

    Args:
        stores: for which Spark logs in, and has tokens: it cannot ask for more of them later.
    """
    name = f"acidctl-worker-{socket.gethostname()}"
    if choice.kind == "local":
        yield (lambda until, on_progress: LocalEngine(jobs, until, on_progress)), name
        return
    from acidctl.spark.compaction_engine import spark_engines  # noqa: PLC0415 - py4j, PySpark

    with spark_engines(choice.spark(name, stores), note) as (one, application):

        def engine(until: Deadline, _: Callable[[Task, int], None]) -> Engine:
            return one(until)

        yield engine, application


class _Said:
    """What is said of each entry.

    Attributes:
        status: the worst exit status of all failures.
    """

    def __init__(self, output: str) -> None:
        self.status = 0
        self._records = None if output == "table" else Records(output)
        self._complained: dict[str, float] = {}

    def done(self, one: Worked) -> None:
        """An entry was worked on."""
        if one.error and one.result is not Result.REFUSED:
            self.status = max(self.status, one.error.exit_status)
        if self._records:
            self._records.put(_record(one))
        elif one.error:
            show_failure(f"compaction {one.entry}", one.error)
        else:
            text = (
                one.of and compaction_text(one.of)
            ) or f"{one.location}: {one.kind}: {one.reason or one.result.words}"
            put_line(f"{one.entry}: {text}")

    def failed(self, error: AcidctlError) -> None:
        """The metastore did not answer; said once, and again after a while."""
        self.status = max(self.status, error.exit_status, ExitStatus.STORAGE)
        now = time.monotonic()
        if now - self._complained.get(error.what, -_QUIET_SECONDS) >= _QUIET_SECONDS:
            self._complained[error.what] = now
            show_failure("", error)


def _record(one: Worked) -> dict[str, Any]:
    record: dict[str, Any] = {
        "on": one.location,
        "entry": one.entry,
        "kind": one.kind,
        "result": one.result.value,
        "reason": one.reason or None,
        "seconds": round(one.took, 3),
    }
    if one.of:
        record |= {name: value for name, value in one.of.facts().items() if name not in record}
    if one.error:
        record |= {"error": one.error.code, "message": str(one.error)}
    return record
