"""`acidctl hive rescue`: Mend a metastore that is older than the files of its tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from acidctl.base.errors import UsageProblem
from acidctl.cli.options import shared
from acidctl.cli.options.asked_metastore import asked_metastore
from acidctl.cli.options.metastore import exclude_option
from acidctl.cli.options.verb_command import Call, verb_command
from acidctl.verbs.hive.rescue import RescueOptions

if TYPE_CHECKING:
    from acidctl.metastore.client import Metastore


@verb_command(
    "rescue",
    RescueOptions,
    place=shared.places_argument("names", "[TABLE...]", required=False, only_names=True),
    source=asked_metastore,
    extras=(exclude_option,),
    changes=True,
    asks=True,
)
def command(
    call: Call[RescueOptions], *, metastore: Metastore, names: tuple[str, ...], exclude: tuple[str, ...]
) -> int:
    """Find where a metastore disagrees with the files of its tables, and mend it: after a restored backup, a table that
    was dropped and created again, a copy from another cluster.

    Stop all writers and Hive's compaction first: until then Hive's next write takes a number again that files have, and
    destroys these. The plan is shown, and nothing is changed before a yes.

    A rescue only adds: it gives the write ids, transactions and partitions that the files have. No file is removed, and
    no number is lowered. All of these write ids count as committed, unless you name them: --aborted keeps their rows
    invisible for good, --aside moves their directories to the trash of the location, for when you are not sure.

    Exits with 14 if something disagrees and is not mended. An interrupted run is finished by running it again.
    """
    from acidctl.verbs.hive.rescue import rescue
    from acidctl.verbs.hive.service import Tables

    if bool(names) == (call.options.apply is not None):
        why = "--apply names them" if names else "none are given"
        raise UsageProblem("it is not clear which tables to look at", why, "name tables, 'db.*' or '*.*', or --apply")
    screen = call.screen(is_plan=call.options.dry_run or call.options.plan is not None)
    tables = Tables(names, exclude, call.selection.storage)
    return screen.show(rescue(metastore, tables, call.options, screen))
