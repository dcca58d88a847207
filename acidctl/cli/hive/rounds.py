"""Services of Hive's queue that check it in rounds.

`acidctl hive initiator`: Ask for compactions that are due in a warehouse.
`acidctl hive cleaner`: Clean what Hive's queue has ready for it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from acidctl.base.errors import AcidctlError, ExitStatus, UsageProblem
from acidctl.cli.hive.records import Results
from acidctl.cli.hive.services import Figures, ended_by_signal, serve, service_command
from acidctl.cli.options import shared
from acidctl.cli.options.verb_command import Call
from acidctl.cli.output.console import note
from acidctl.verbs.hive.options import CleanerOptions, InitiatorOptions
from acidctl.wording import human_bytes, human_count

if TYPE_CHECKING:
    from acidctl.metastore.client import Metastore
    from acidctl.verbs.hive.cleaner import CleanedEntry
    from acidctl.verbs.hive.initiator import Initiated

_QUIET = ("nothing-to-do", "skipped")
"""Results of most locations of a warehouse, which are only counted for people."""


@service_command("initiator", InitiatorOptions, changes=False)
def initiator_command(
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


@service_command("cleaner", CleanerOptions, asks=True)
def cleaner_command(
    call: Call[CleanerOptions],
    *,
    metastore: Metastore,
    listen: str | None,
    names: tuple[str, ...],
    exclude: tuple[str, ...],
) -> int:
    """Remove what compactions replaced, entry by entry of Hive's queue, and mark the entries as clean (Hive 4).

    Use it for metastores without a cleaner of their own, and for cleanings that can be undone: what is removed moves to
    the trash of its location, from which `acidctl restore` brings it back and `acidctl purge` deletes it.

    An entry is cleaned when no transaction of any table that began before its compaction was committed is still open.
    It is marked as done when nothing is left of what it replaced and no row of an aborted transaction could appear. In
    doubt it is left to Hive's own cleaner, with the reason; the two do each other no harm.
    """
    from acidctl.cli.report.verb_screen import confirm
    from acidctl.verbs.hive.cleaner import Cleaner
    from acidctl.verbs.hive.service import Tables

    options = call.options
    options.policy()
    if not (options.once or options.dry_run or call.yes):
        raise UsageProblem("a service asks nobody", "it removes what it finds", "look at --dry-run, then give --yes")
    tables = Tables(names, exclude, call.selection.storage)

    def cleaner(chosen: CleanerOptions, results: Results) -> Cleaner:
        def done(entry: CleanedEntry) -> None:
            results.counts[entry.result.words] += 1
            if entry.error:
                what = f"compaction {entry.entry} of {entry.location}{_details(entry)}"
                results.failed(what, entry.error, entry.record())
            else:
                results.put(entry.record(), f"{entry.entry}: {entry.location}: {entry.result.words}{_details(entry)}")

        def failed(error: AcidctlError) -> None:
            results.failed("", error, {"reason": str(error)})

        return Cleaner(metastore, chosen, tables, done, failed)

    def check_once(chosen: CleanerOptions) -> Results:
        results = Results(call.output)
        cleaner(chosen, results).once()
        results.sum_up(f"{human_count(results.counts.total(), 'entry', 'entries')} ready for cleaning")
        return results

    if options.dry_run or not call.yes:
        results = check_once(replace(options, dry_run=True))
        planned = results.counts["planned"]
        if options.dry_run or not planned:
            return results.status
        count = human_count(planned, "entry", "entries")
        confirm(f"{count} would be cleaned", f"Clean {count}?", "nothing was cleaned", yes=call.yes)
    if options.once:
        return check_once(options).status
    service = cleaner(options, Results(call.output))
    with serve(listen, Figures("cleaner", service.counts)):
        note(f"cleaning the queue of {metastore.shown} every {options.every:g} s; end it with Ctrl-C or SIGTERM")
        with ended_by_signal(lambda: "the next check finishes what was begun"):
            service.run()
    return ExitStatus.DONE


def _details(entry: CleanedEntry) -> str:
    removed = human_count(len(entry.names), "directory", "directories")
    marked = "marked as done" if entry.marked else f"left to Hive: {entry.reason}" if entry.reason else ""
    text = ", ".join(filter(None, (f"{removed}, {human_bytes(entry.bytes)}" if entry.names else "", marked)))
    return f": {text}" if text else ""
