"""What the owner of a table sets by properties of the table, its database and its partition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from acidctl.acid.triggers import NO_AUTO, Thresholds

NO_CLEANUP = "no_cleanup"
"""While this property is true, obsolete files are kept."""

_QUEUES = ("hive.compactor.job.queue", "mapreduce.job.queuename", "mapred.job.queue.name")
_JOB = "compactor."
_POOL = "hive.compactor.worker.pool"


@dataclass(frozen=True, slots=True)
class Wishes:
    """The properties that apply to one location.

    Attributes:
        auto_off_by: ``table`` or ``database`` if that turns automatic compaction off; else empty.
        no_cleanup_by: ``table``, ``partition`` or ``database`` if that forbids cleaning; else empty.
        job: properties of the job that compacts, without their prefix.
        pool: the worker pool that compacts it; empty for workers without a pool.
    """

    thresholds: Thresholds = field(default_factory=Thresholds)
    auto_off_by: str = ""
    no_cleanup_by: str = ""
    job: Mapping[str, str] = field(default_factory=dict)
    pool: str = ""

    @property
    def queue(self) -> str:
        """Return the YARN queue for the job that compacts; empty if none is set."""
        return next((self.job[key] for key in _QUEUES if self.job.get(key)), "")


def wishes_of(
    table: Mapping[str, str],
    database: Mapping[str, str] | None = None,
    partition: Mapping[str, str] | None = None,
    *,
    database_wins: bool = True,
) -> Wishes:
    """Return what the properties of a table, its database and a partition set.

    Args:
        database_wins: the database's setting of automatic compaction overrides the table's, as from Hive 4 on. Before,
            a database can only turn it off, which does no harm.
    """
    by_database, by_table = _auto_is_off(database or {}), _auto_is_off(table)
    by_table = by_table and (by_database is None or not database_wins)
    every = (("table", table), ("partition", partition or {}), ("database", database or {}))
    return Wishes(
        thresholds=Thresholds().with_known(table),
        auto_off_by="database" if by_database else "table" if by_table else "",
        no_cleanup_by=next((name for name, properties in every if is_kept(properties)), ""),
        job={key.removeprefix(_JOB): value for key, value in table.items() if key.startswith(_JOB)},
        pool=table.get(_POOL) or (database or {}).get(_POOL, ""),
    )


def is_kept(properties: Mapping[str, str]) -> bool:
    """Return whether these properties forbid cleaning."""
    return properties.get(NO_CLEANUP, "").lower() == "true"


def _auto_is_off(properties: Mapping[str, str]) -> bool | None:
    """Return whether these properties turn automatic compaction off; None if they do not set it."""
    return next((properties[key].lower() == "true" for key in NO_AUTO if key in properties), None)
