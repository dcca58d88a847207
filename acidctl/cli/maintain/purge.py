"""`acidctl purge`: Delete the trash of cleanings and the backups of repairs for good."""

from __future__ import annotations

from typing import TYPE_CHECKING

from acidctl.cli.options import shared
from acidctl.cli.options.verb_command import changing_command
from acidctl.verbs.maintain_options import PurgeOptions

if TYPE_CHECKING:
    from acidctl.cli.options.verb_command import Call


@changing_command(
    "purge",
    PurgeOptions,
    "acidctl purge --dry-run /warehouse/sales.db",
    "acidctl purge --yes --older-than 7d /warehouse/sales.db",
    "acidctl purge --yes --run 20261121T222431.512Z-0d9b0f3a orders",
    places=shared.named_locations,
    records=False,
)
def command(call: Call[PurgeOptions]) -> int:
    """Delete the trash of cleanings and the backups of repairs of every location at or below LOCATION.

    This cannot be undone. The backup of a repair that was interrupted stays.
    """
    from acidctl.cli.report.trash_screen import PurgeScreen  # noqa: PLC0415 - --help does without
    from acidctl.verbs.purge import purge  # noqa: PLC0415 - as above

    screen = PurgeScreen(call.output, call.run, call.options, yes=call.yes)
    return screen.show(purge(call.selection, call.options, screen))
