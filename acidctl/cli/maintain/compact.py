"""`acidctl compact`: Merge deltas: minor, major, or what thresholds ask for."""

from __future__ import annotations

from acidctl.cli.options import shared
from acidctl.cli.options.verb_command import Call, verb_command
from acidctl.verbs.compact_options import CompactOptions


@verb_command(
    "compact", CompactOptions, extras=(shared.table_type_option, shared.exit_code_option), changes=True, records=True
)
def command(call: Call[CompactOptions]) -> int:
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
    screen = call.screen(is_plan=options.dry_run)
    return screen.show(compact(call.selection, options, screen))
