"""What the owner of a table wishes, by the properties that Hive knows: of the table, its database and its partition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from acidctl.acid.triggers import NO_AUTO, Thresholds

NO_CLEANUP = "no_cleanup"
"""While it is true, nothing is removed that readers do not need."""

_QUEUES = ("hive.compactor.job.queue", "mapreduce.job.queuename", "mapred.job.queue.name")
_JOB = "compactor."
_POOL = "hive.compactor.worker.pool"


@dataclass(frozen=True, slots=True)
class Wishes:
    """Of one location.

    Attributes:
        auto_off_by: who says that nothing is compacted by thresholds, ``table`` or ``database``; empty for nobody.
        no_cleanup_by: who says that nothing is cleaned, ``partition`` too; empty for nobody.
        job: properties of the job that compacts, without their prefix.
        pool: of workers that is to compact it; empty for those without one.
    """

    thresholds: Thresholds = field(default_factory=Thresholds)
    auto_off_by: str = ""
    no_cleanup_by: str = ""
    job: Mapping[str, str] = field(default_factory=dict)
    pool: str = ""

    @property
    def queue(self) -> str:
        """Of YARN, for the job that compacts; empty where it does not matter."""
        return next((self.job[key] for key in _QUEUES if self.job.get(key)), "")


def wishes_of(
    table: Mapping[str, str],
    database: Mapping[str, str] | None = None,
    partition: Mapping[str, str] | None = None,
    *,
    database_wins: bool = True,
) -> Wishes:
    """What the properties say.

    Args:
        database_wins: what it says of automatic compaction counts, whatever the table says, as from Hive 4 on; before,
            a database is heard where it says no, which does no harm.
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
    """Whether nothing is to be cleaned by these properties."""
    return properties.get(NO_CLEANUP, "").lower() == "true"


def _auto_is_off(properties: Mapping[str, str]) -> bool | None:
    """None where nothing is said."""
    said = [properties[key].lower() == "true" for key in NO_AUTO if key in properties]
    return said[0] if said else None
