"""`acidctl hive initiator`: Ask for compactions that are due in a warehouse."""

from __future__ import annotations

from typing import TYPE_CHECKING

from acidctl.base.errors import AcidctlError, ExitStatus
from acidctl.cli.hive.records import Results
from acidctl.cli.hive.services import Figures, ended_by_signal, serve, service_command
from acidctl.cli.options import shared
from acidctl.cli.options.verb_command import Call
from acidctl.cli.output.console import note
from acidctl.verbs.hive.options import InitiatorOptions
from acidctl.wording import human_count

if TYPE_CHECKING:
    from acidctl.metastore.client import Metastore
    from acidctl.verbs.hive.initiator import Initiated

_QUIET = ("nothing-to-do", "skipped")
"""Results of most locations of a warehouse, which are only counted for people."""


@service_command("initiator", InitiatorOptions, changes=False)
def command(
    call: Call[InitiatorOptions],
    *,
    metastore: Metastore,
    listen: str | None,
    names: tuple[str, ...],
    exclude: tuple[str, ...],
) -> int:
    """Check where a compaction is due, and request it in the metastore's queue; Hive's workers or acidctl's run it.

    TABLE is db.table or db.*; the default is the whole warehouse. The files that are there and the thresholds of the
    tables decide what is due, as in `acidctl compact --auto`. Locations whose readers gain most come first. It skips
    what Hive's initiator skips: what waits in the queue already, tables and databases with no_auto_compaction,
    locations whose last compactions failed, databases that are replicated from elsewhere.

    One initiator runs in a warehouse at a time: it holds a lock on acidctl.initiator, which SHOW LOCKS shows. One in
    standby takes over when the other has ended, or has sent no heartbeat for the metastore's time-out.
    """
    from acidctl.verbs.hive.initiator import Initiator
    from acidctl.verbs.hive.service import Tables

    options, results = call.options, Results(call.output)
    is_single = options.once or options.dry_run
    if is_single:  # a single check never waits
        shared.refuse_unused("--once" if options.once else "--dry-run", "standby")

    def done(location: Initiated) -> None:
        results.counts[location.result.words] += 1
        kind = location.kind.value if location.kind else ""
        entry = f" as {location.entry}" if location.entry else ""
        text = f"{location.location}: {kind} {location.result.words}{entry}: {location.reason}"
        results.put(location.record(), "" if location.result in _QUIET else text)

    def failed(location: str, error: AcidctlError) -> None:
        record = {"location": location} if location else {}
        results.failed(location, error, {**record, "reason": str(error)})

    tables = Tables(names, exclude, call.selection.storage)
    initiator = Initiator(metastore, options, tables, done, failed)
    with serve(listen, Figures("initiator", initiator.counts)):
        if is_single:
            initiator.once()
            results.sum_up(f"{human_count(results.counts.total(), 'location')} checked")
            return results.status
        note(f"checking {metastore.shown} every {options.every:g} s; end it with Ctrl-C or SIGTERM")
        with ended_by_signal(lambda: "lock released"):
            initiator.run(lambda error: note(f"in standby: {error.what}: {error.why}"))
    return ExitStatus.DONE
