"""`acidctl restore`: Undo a cleaning or a repair."""

from __future__ import annotations

from acidctl.cli.options import shared
from acidctl.cli.options.verb_command import Call, verb_command
from acidctl.verbs.maintain_options import RestoreOptions


@verb_command("restore", RestoreOptions, source=shared.named_locations, changes=True, asks=True)
def command(call: Call[RestoreOptions]) -> int:
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
