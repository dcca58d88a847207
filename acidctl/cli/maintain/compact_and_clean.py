"""Commands that compact and clean locations.

`acidctl compact`: Merge deltas: minor, major, or what thresholds ask for.
`acidctl clean`: Remove obsolete and aborted directories, after showing the plan.
`acidctl restore`: Undo a cleaning or a repair.
`acidctl purge`: Delete the trash of cleanings and the backups of repairs permanently.
"""

from __future__ import annotations

import click

from acidctl.cli.options import shared
from acidctl.cli.options.verb_command import Call, verb_command
from acidctl.verbs.compact_options import CompactOptions
from acidctl.verbs.maintain_options import CleanOptions, PurgeOptions, RestoreOptions


@verb_command(
    "compact", CompactOptions, extras=(shared.table_type_option, shared.exit_code_option), changes=True, records=True
)
def compact_command(call: Call[CompactOptions]) -> int:
    """Compact every location at or below LOCATION: one Spark session, one task per bucket.

    The inputs stay until `acidctl clean`. The result is written to a hidden directory, read back and compared, and
    appears by a rename; whatever fails before that leaves the table as it was.

    It must know which write ids are committed: from a metastore, from --snapshot, or from --assume-committed, which
    stops at the first directory that is empty or younger than AGE.

    A minor compaction with both kinds of delta appears by two renames, and a reader between them would see wrong rows:
    it needs --offline, or --visibility-txn; --major appears at once.

    A table that a metastore knows is compacted under a transaction of Hive's, and on Hive 4 as an entry of its queue,
    in a pool of its own: SHOW COMPACTIONS has it, and the result appears with the commit.

    A rebalance gives all rows new ROW__IDs, as Hive 4's own does. It needs a table that a metastore of Hive 4 knows,
    and a lock that keeps out updates and deletes; --wait also waits for it.

    On S3 and Google Cloud Storage, which cannot rename, the result is copied to its place, and the location is locked
    meanwhile. One bucket appears at once there too; several need --offline, or --visibility-txn.
    """
    from acidctl.verbs.compact import compact

    options = call.options
    unused = ["apply_all_deletes"] if options.minor else []
    shared.refuse_unused(f"--{options.mode}", *unused, *([] if options.rebalance else ["buckets"]))
    return call.show(compact)


@verb_command(
    "clean",
    CleanOptions,
    extras=(shared.table_type_option, shared.exit_code_option),
    place=shared.locations_argument(required=False),
    changes=True,
    asks=True,
    records=True,
)
def clean_command(call: Call[CleanOptions]) -> int:
    """Remove the obsolete and aborted directories of every location at or below LOCATION.

    They move to a hidden directory of the location, .acidctl-trash, from which `acidctl restore` brings them back and
    `acidctl purge` deletes them permanently. What is current, open, or above the high watermark is never touched.

    Queries that are running may still read what is obsolete for new ones. So an entry stays until what supersedes it is
    as old as --older-than, by the newest time in it; that must be longer than the longest query and the
    time that a writer takes from its last file to its commit, together.

    --apply carries out the plan of a file: each location is listed again, and a location that has changed since is
    refused; the others are cleaned.
    """
    from acidctl.verbs.clean import clean

    _refuse_contradictions(call)
    screen = call.screen(is_plan=call.options.dry_run or call.options.plan is not None)
    return screen.show(clean(call.selection, call.options, screen))


def _refuse_contradictions(call: Call[CleanOptions]) -> None:
    options = call.options
    if options.apply is not None:
        shared.refuse_unused("--apply", "locations", "plan", "older_than", "leftovers")
    elif not call.selection.places:
        raise click.UsageError("Missing argument 'LOCATION...': name one, or give --apply FILE.")
    if options.plan is not None:
        from pathlib import Path

        from acidctl.cli.report.run_files import refuse_replacing

        shared.refuse_unused("--plan", "no_trash", "dry_run", "jobs", "lock", "lock_wait", "break_lock")
        refuse_replacing(Path(options.plan), "plan")


@verb_command("restore", RestoreOptions, source=shared.named_locations, changes=True, asks=True)
def restore_command(call: Call[RestoreOptions]) -> int:
    """Undo a cleaning or a repair: move back what it took from every location at or below LOCATION.

    A run on many locations has one id in all of them, and all of it is undone, after a question; a single location that
    was named itself is restored at once. With --run, the newest run of each location whose id begins with ID is undone.

    What a cleaning took comes back from .acidctl-trash: its files are compared with those that were moved, and the
    state of the location with the one before the cleaning; differences are reported. What a repair replaced comes back
    from .acidctl-backup; it is refused if a repaired file was changed since.
    """
    from acidctl.verbs.restore import restore

    if call.options.list:
        shared.refuse_unused(
            "--list", "run_id", "dry_run", "yes", "jobs", "deadline", "lock", "lock_wait", "break_lock"
        )
    screen = call.screen(is_plan=call.options.list or call.options.dry_run, nothing="nothing to restore")
    return screen.show(restore(call.selection, call.options, screen))


@verb_command("purge", PurgeOptions, source=shared.named_locations, changes=True, asks=True)
def purge_command(call: Call[PurgeOptions]) -> int:
    """Delete the trash of cleanings and the backups of repairs of every location at or below LOCATION.

    This cannot be undone. The backup of a repair that was interrupted stays.
    """
    from acidctl.verbs.purge import purge

    nothing = "nothing to purge" if call.options.older_than is None else "nothing that old to purge"
    screen = call.screen(is_plan=call.options.dry_run, nothing=nothing)
    return screen.show(purge(call.selection, call.options, screen))
