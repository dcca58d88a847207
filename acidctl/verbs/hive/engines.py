"""The engine of a worker: one Spark session for all entries, or processes of this machine for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from socket import gethostname

from acidctl.base.deadline import Deadline
from acidctl.base.errors import AcidctlError
from acidctl.compaction.local_engine import LocalEngine
from acidctl.compaction.run import Engine
from acidctl.compaction.tasks import Task
from acidctl.metastore import interface
from acidctl.metastore.client import Metastore
from acidctl.metastore.errors import Unreachable
from acidctl.storage.port import FileSystemSpec
from acidctl.storage.registry import open_location
from acidctl.verbs.hive.options import WorkerOptions

Engines = Callable[[Deadline, Callable[[Task, int], None]], Engine]
"""Makes an engine for one entry: it stops its tasks at the deadline, and calls the function with their progress."""


@contextmanager
def open_engines(
    options: WorkerOptions, metastore: Metastore, storage: Mapping[str, str], note: Callable[[str], None]
) -> Iterator[tuple[Engines, str]]:
    """Yield what makes an engine for each entry, and the name of the job in the queue.

    Args:
        note: called with remarks about Spark.
    """
    name = f"acidctl-worker-{gethostname()}"
    tasks = options.tasks
    if tasks.is_local:
        yield (lambda until, on_progress: LocalEngine(options.jobs, until, on_progress)), name
        return
    from acidctl.spark.compaction_engine import spark_engines

    # On a cluster, Spark gets tokens for stores only at its start, before the tables are known.
    is_on_cluster = (tasks.master or "").startswith(("yarn", "k8s"))
    stores = database_stores(metastore, storage) if is_on_cluster else ()
    with spark_engines(tasks.spark(name, stores), note) as (start_engine, application):
        yield (lambda until, _: start_engine(until)), application


def database_stores(metastore: Metastore, storage: Mapping[str, str]) -> tuple[FileSystemSpec, ...]:
    """Return the stores of all databases' directories without duplicates; this takes one call per database.

    Databases that the metastore hides and stores that cannot be opened are left out: code that uses them raises.
    """
    specs: dict[FileSystemSpec, None] = {}
    for name in metastore.call(interface.GET_ALL_DATABASES):
        try:
            database = metastore.call(interface.GET_DATABASE, name)
        except Unreachable:
            raise
        except AcidctlError:  # it was dropped meanwhile, or this user may not see it
            continue
        for url in filter(None, (database.managed_location, database.location)):
            with suppress(AcidctlError):
                specs[open_location(url, storage)[0].spec] = None
    return tuple(specs)
