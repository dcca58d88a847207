"""`acidctl purge`: Delete the trash of cleanings and the backups of repairs permanently."""

from __future__ import annotations

from acidctl.cli.options import shared
from acidctl.cli.options.verb_command import Call, verb_command
from acidctl.verbs.maintain_options import PurgeOptions


@verb_command("purge", PurgeOptions, source=shared.named_locations, changes=True, asks=True)
def command(call: Call[PurgeOptions]) -> int:
    """Delete the trash of cleanings and the backups of repairs of every location at or below LOCATION.

    This cannot be undone. The backup of a repair that was interrupted stays.
    """
    from acidctl.verbs.purge import purge

    nothing = "nothing to purge" if call.options.older_than is None else "nothing that old to purge"
    screen = call.screen(is_plan=call.options.dry_run, nothing=nothing)
    return screen.show(purge(call.selection, call.options, screen))
