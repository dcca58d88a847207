"""`acidctl nightly`: Compact, clean and purge in one go, for cron."""

from __future__ import annotations

from dataclasses import replace

import click

from acidctl.cli.options import shared
from acidctl.cli.options.verb_command import Call, verb_command
from acidctl.verbs.maintain_options import NightlyOptions


@verb_command("nightly", NightlyOptions, extras=(shared.exit_code_option,), changes=True, asks=True, records=True)
def command(call: Call[NightlyOptions]) -> int:
    """Compact what is due, clean what is obsolete and purge what is old, at or below every LOCATION.

    First it plans every location, as `acidctl compact --auto` does, and ranks them by priority and by what readers
    gain. They are compacted while time and bytes last; a tenth of the time, half an hour at most, is kept for the rest.
    Then obsolete directories move to the trash, as `acidctl clean` does it, and what has been in the trash for
    --purge-older-than is deleted.

    [policy."sales.*"] of a configuration file changes this for some tables: exclude, kind, min-deltas, max-ratio,
    older-than, purge-older-than, priority. The most specific pattern wins, key by key.
    [policy."sales.*/older-than=30d"] is for old partitions.

    A location that fails does not hold up the others. The whole run has one id: `acidctl restore --run ID` brings back
    what it cleaned, everywhere. A compaction needs no undoing: readers see the same rows, and its inputs stay until a
    later run.
    """
    from acidctl.cli.config.settings import policies_of
    from acidctl.verbs.nightly import nightly
    from acidctl.verbs.nightly_state import usual_folder

    options = replace(call.options, state=call.options.state or str(usual_folder()))
    context = click.get_current_context()
    policies = policies_of(context.find_root().meta.get("acidctl.settings") or {})
    screen = call.screen(is_plan=options.dry_run)
    return screen.show(nightly(call.selection, options, screen, policies=policies, on_begin=screen.begins))
