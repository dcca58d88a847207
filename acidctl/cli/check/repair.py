"""`acidctl repair`: Mend what validate finds."""

from __future__ import annotations

from acidctl.cli.options import shared
from acidctl.cli.options.verb_command import Call, verb_command
from acidctl.verbs.repair import RepairOptions, repair


@verb_command(
    "repair", RepairOptions, source=shared.named_locations, extras=(shared.table_type_option,), changes=True, asks=True
)
def command(call: Call[RepairOptions]) -> int:
    """Mend what `acidctl validate` finds broken, if that can be done safely; say why the rest cannot be mended.

    \b
    key-index     rewrite hive.acid.key.index from the rows of a file (rule V30), as Hive's fixacidkeyindex does
    flush-length  cut the file of a dead streaming writer to its last committed length (rule V36)
    nested        mend a directory that a rename put into another of the same name (rule V17, HIVE-25600)
    empty-result  take away an empty compaction result, so that readers see the rows that it hides (rule V43)
    version-file  write a missing or torn _orc_acid_version if the files are certainly of version 2 (rule V13)

    The plan is shown first. New files are written into a hidden directory of the location, .acidctl-backup, and read
    again before one step of the store swaps them in. The old ones stay there: `acidctl restore` brings them back,
    `acidctl purge` deletes them.

    A file that was written within the last hour is left alone, because its writer may be alive; --force overrides that.
    A nested directory that takes the place of an empty one needs two renames, between which readers see neither: that
    needs --offline. An empty result that was made in a transaction (base_3_v26) needs --force, because files do not
    show whether the transaction is committed.

    Queries that read a file while it is replaced may fail, and succeed when they are run again. New files belong to
    whoever runs the repair. Each needs its size twice in free space for a while.
    """
    screen = call.screen(is_plan=call.options.dry_run)
    return screen.show(repair(call.selection, call.options, screen))
