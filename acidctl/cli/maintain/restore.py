"""`acidctl restore`: bring back what a cleaning run moved to the trash."""

from __future__ import annotations

from typing import TYPE_CHECKING

from acidctl.cli.options import shared
from acidctl.cli.options.verb_command import changing_command
from acidctl.verbs.restore import RestoreOptions, restore

if TYPE_CHECKING:
    from acidctl.cli.options.verb_command import Call


@changing_command(
    "restore",
    RestoreOptions,
    "acidctl restore orders",
    "acidctl restore --list /warehouse/sales.db",
    "acidctl restore --dry-run /warehouse/sales.db",
    "acidctl restore --yes --run 20261121T2224 /warehouse/sales.db",
    places=shared.named_locations,
    records=False,
)
def command(call: Call[RestoreOptions]) -> int:
    """Undo a cleaning: move back what it took from every location at or below LOCATION.

    A cleaning of many locations has one id in all of them, and all of it is brought back; that is asked about, where
    one location that was named itself is restored at once. With --run, it is the newest run of each location whose id
    begins so.

    The files are compared with those that were moved, and the state of the location with the one before the cleaning;
    where others wrote meanwhile, the difference is told.
    """
    from acidctl.cli.report.trash_screen import RestoreScreen  # noqa: PLC0415 - --help does without

    if call.options.list:
        shared.refuse_unused(
            "--list", "run_id", "dry_run", "yes", "jobs", "deadline", "lock", "lock_wait", "break_lock"
        )
    screen = RestoreScreen(call.output, call.run, call.options, yes=call.yes)
    return screen.show(restore(call.where, call.options, screen))
