"""The options of cleaning, restoring, purging and nightly runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from acidctl.verbs.compact_options import RunOptions
from acidctl.verbs.options import Kind, LockOptions, Options, TrashOptions, WorkOptions, group, option

if TYPE_CHECKING:
    from acidctl.verbs.policy import TablePolicy


@dataclass(frozen=True, kw_only=True)
class CleanOptions(TrashOptions):
    """The options of `acidctl clean`."""

    dry_run: bool = option(False, "-n", "--dry-run", help="Show the plan and stop.")
    older_than: float = option(
        86400.0, "--older-than", help="Keep what was superseded, or written, less than this long ago: 24h, 90m, 7d, 0."
    )
    unsafe_retention: bool = option(
        False, "--unsafe-retention", typed=True, help="Allow --older-than below 1h: nothing reads the tables."
    )
    leftovers: bool = option(False, "--leftovers", help="Remove abandoned _tmp_*, -tmp.delta_* and .hive-staging* too.")
    plan: str | None = option(
        None, "--plan", kind=Kind.NEW_FILE, typed=True, help="Save the plan for --apply, and stop."
    )
    apply: str | None = option(
        None,
        "--apply",
        kind=Kind.FILE,
        typed=True,
        help="Carry out the plan of FILE in every location that has not changed. FILE holds no credentials: give --set "
        "storage.* again. Without --snapshot, --assume-committed or a metastore, the snapshot of FILE counts if only "
        "you and root can have written it.",
    )
    max_bytes: int | None = option(
        None, "--max-bytes", kind=Kind.SIZE, help="Remove at most so much; the rest is left for later."
    )
    locks: LockOptions = group(LockOptions)
    work: WorkOptions = group(WorkOptions)


@dataclass(frozen=True, kw_only=True)
class RestoreOptions(Options):
    """The options of `acidctl restore`."""

    list: bool = option(False, "--list", typed=True, help="List the runs that can be undone and stop.")
    run_id: str | None = option(
        None, "--run", metavar="ID", typed=True, help="Which run, or how its id begins; the newest by default."
    )
    dry_run: bool = option(False, "-n", "--dry-run", help="Show what would be restored and stop.")
    locks: LockOptions = group(LockOptions)
    work: WorkOptions = group(WorkOptions)


@dataclass(frozen=True, kw_only=True)
class PurgeOptions(Options):
    """The options of `acidctl purge`."""

    dry_run: bool = option(False, "-n", "--dry-run", help="Show what would be deleted and stop.")
    run_id: str | None = option(
        None,
        "--run",
        metavar="ID",
        typed=True,
        help="Delete only this run: its id, or a unique beginning of it; see `acidctl restore --list`.",
    )
    older_than: float | None = option(
        None, "--older-than", kind=Kind.DURATION, help="Only runs that began at least this long ago: 7d. Default: all."
    )
    locks: LockOptions = group(LockOptions)
    work: WorkOptions = group(WorkOptions)


@dataclass(frozen=True, kw_only=True)
class NightlyOptions(RunOptions, TrashOptions):
    """The options of `acidctl nightly`."""

    older_than: float = option(
        86400.0, "--older-than", help="Keep what was superseded, or written, less than this long ago; at least 1h."
    )
    purge_older_than: float = option(
        7 * 86400.0,
        "--purge-older-than",
        kind=Kind.DURATION,
        help="Keep trash and backups of repairs for this long. What this run cleans is never purged.",
    )
    leftovers: bool = option(False, "--leftovers", help="Clean abandoned _tmp_*, -tmp.delta_* and .hive-staging* too.")
    state: str | None = option(
        None,
        "--state",
        kind=Kind.DIRECTORY,
        metavar="DIR",
        help="Directory for the number of locations, to notice missing ones (default: systemd's StateDirectory, else "
        "~/.local/state/acidctl). Only one run can use it at a time.",
    )

    @property
    def policy(self) -> TablePolicy:
        """Return the policy of tables that no other policy matches.

        Raises:
            UsageProblem: a retention below an hour.
        """
        from acidctl.verbs.policy import TablePolicy

        return TablePolicy(
            min_deltas=self.min_deltas, older_than=self.older_than, purge_older_than=self.purge_older_than
        )
