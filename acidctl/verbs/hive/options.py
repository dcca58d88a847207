"""Options of the services of Hive's queue: worker, initiator and cleaner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from acidctl.verbs.engine import EngineOptions
from acidctl.verbs.options import Kind, Options, TrashOptions, group, option

if TYPE_CHECKING:
    from acidctl.cleaning.retention import Policy
    from acidctl.compaction.request import CompactionRequest


@dataclass(frozen=True, kw_only=True)
class WorkerOptions(Options):
    """Options of a worker, which compacts the entries of the queue."""

    pool: str = option(
        "", "--pool", metavar="NAME", help="Take entries of this pool (default: entries without a pool)."
    )
    once: bool = option(False, "--once", typed=True, help="End when nothing waits any more.")
    max_parallel: int = option(1, "--max-parallel", kind=Kind.COUNT, help="Compactions to run at the same time.")
    grace: float = option(
        25.0, "--grace", help="On shutdown, wait this long for running compactions; the rest go back to the queue."
    )
    tasks: EngineOptions = group(EngineOptions)
    jobs: int | None = option(
        None, "--jobs", kind=Kind.COUNT, help="Processes of --engine local for each entry (default: one per core)."
    )
    verify: str = option(
        "bytes",
        "--verify",
        choices=("keys", "bytes", "full"),
        help="How a result is checked before it is published, as in `acidctl compact`.",
    )

    def request(self) -> CompactionRequest:
        """Return the request for every entry, which differs in its kind."""
        from acidctl.compaction.output_settings import Writing
        from acidctl.compaction.proof.checksum import Verify
        from acidctl.compaction.request import CompactionRequest, Mode

        return CompactionRequest(Mode.MAJOR, writing=Writing(verify=Verify(self.verify)))


@dataclass(frozen=True, kw_only=True)
class RoundOptions(Options):
    """Options of a service that checks in rounds."""

    every: float = option(300.0, "--every", help="Check this often.")
    once: bool = option(False, "--once", typed=True, help="End after one check.")
    dry_run: bool = option(False, "-n", "--dry-run", help="Show what would be done and stop.")


@dataclass(frozen=True, kw_only=True)
class InitiatorOptions(RoundOptions):
    """Options of an initiator, which requests the compactions that are due."""

    standby: bool = option(False, "--standby", help="While another initiator runs, wait to take its place.")
    most: int | None = option(
        None, "--most", kind=Kind.COUNT, help="Request at most N compactions per check, most useful first."
    )
    pool: str = option(
        "", "--pool", metavar="NAME", help="Worker pool of the requests (default: that of the table or database)."
    )


@dataclass(frozen=True, kw_only=True)
class CleanerOptions(TrashOptions, RoundOptions):
    """Options of a cleaner, which removes what compactions replaced."""

    older_than: float = option(
        3600.0, "--older-than", help="Keep what was superseded less than this long ago, for readers unknown to Hive."
    )
    unsafe_retention: bool = option(
        False,
        "--unsafe-retention",
        typed=True,
        help="Allow --older-than below 1h; use it only if all readers use Hive's transactions.",
    )

    def policy(self) -> Policy:
        """Return the minimum age of what is removed."""
        from acidctl.cleaning.retention import Policy

        policy = Policy(self.older_than)
        if not (self.dry_run or self.unsafe_retention):
            policy.require_safe()
        return policy
