"""`acidctl hive cleaner`: cleans after compactions, as Hive's own cleaner does, through the trash."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from acidctl.base.errors import AcidctlError, ExitStatus, UsageProblem
from acidctl.base.guardian import NOTES
from acidctl.cli.hive.records import Results
from acidctl.cli.hive.services import Figures, counter, ended_by_signal, gauge, listen_option, round_options, serve
from acidctl.cli.options import shared
from acidctl.cli.options.asked_metastore import asked_metastore
from acidctl.cli.options.metastore import exclude_option
from acidctl.cli.options.param_types import DURATION
from acidctl.cli.options.verb_command import options_of
from acidctl.cli.output.console import note
from acidctl.verbs.options import TrashOptions
from acidctl.wording import human_bytes, human_count

if TYPE_CHECKING:
    from acidctl.hive.cleaner import CleanedEntry, Cleaner, CleanerCounts, CleanerWork
    from acidctl.metastore.client import Metastore


def _way(no_trash: bool, trash: str) -> str:
    return TrashOptions(no_trash=no_trash, trash=trash).how


how_options = shared.together(shared.yes_option, shared.passed_as("how", _way, *options_of(TrashOptions)))


@shared.command(
    "cleaner",
    "acidctl hive cleaner --dry-run",
    "acidctl hive cleaner --once --yes 'hive:sales.*'",
    "acidctl hive cleaner -o jsonl --yes --every 5m --listen 9466",
)
@shared.places_argument("names", "[TABLE...]", required=False, only_names=True)
@round_options
@click.option("-n", "--dry-run", is_flag=True, help="Show what would be cleaned and stop.")
@how_options
@click.option(
    "--older-than",
    type=DURATION,
    default="1h",
    show_default=True,
    help="Keep what was superseded less than this long ago, for readers that Hive knows nothing of.",
)
@shared.typed_option(
    "--unsafe-retention", is_flag=True, help="Allow --older-than below 1h: everybody reads under Hive's transactions."
)
@listen_option
@exclude_option
@asked_metastore
@shared.changed_storage_options
@shared.output_option("table", "jsonl", default="table")
def command(
    names: tuple[str, ...],
    every: float,
    once: bool,
    dry_run: bool,
    yes: bool,
    how: str,
    older_than: float,
    unsafe_retention: bool,
    listen: str | None,
    exclude: tuple[str, ...],
    metastore: Metastore,
    storage: dict[str, str],
    output: str,
) -> int:
    """Remove what compactions replaced, entry by entry of Hive's queue, and tell the metastore so (Hive 4).

    For metastores without a cleaner of their own, and for cleanings that can be undone: what is removed moves to the
    trash of its location, from which `acidctl restore` brings it back and `acidctl purge` deletes it.

    An entry is cleaned when no transaction is open any more that began before its compaction was committed, of whatever
    table, and marked when nothing is left of what it replaced and no row of an aborted transaction could appear. In
    doubt it is left to Hive's own cleaner, with the reason; the two do each other no harm.
    """
    from acidctl.cleaning.apply import How
    from acidctl.cleaning.retention import Policy
    from acidctl.cli.report.verb_screen import confirm
    from acidctl.hive.cleaner import CleanerWork
    from acidctl.hive.hive import as_hive_names

    policy = Policy(older_than)
    if not (dry_run or unsafe_retention):
        policy.require_safe()
    if not (once or dry_run or yes):
        raise UsageProblem("a service asks nobody", "it removes what it finds", "look at --dry-run, then give --yes")
    asked = CleanerWork(as_hive_names(names or ("*.*",)), exclude, policy, How(how), storage=storage)
    with NOTES.isolated():  # a file that crashes its native reader is a damaged file
        if dry_run or not yes:
            results = _look_once(metastore, replace(asked, changes_nothing=True), output)
            planned = results.counts["planned"]
            if dry_run or not planned:
                return results.status
            count = human_count(planned, "entry", "entries")
            confirm(f"{count} would be cleaned", f"Clean {count}?", "nothing was cleaned", yes=yes)
        if once:
            return _look_once(metastore, asked, output).status
        cleaner = _cleaner(metastore, asked, Results(output))
        with serve(listen, figures(cleaner.counts)):
            note(f"cleaning what {metastore.shown} has to clean every {every:g} s; end it with Ctrl-C or SIGTERM")
            with ended_by_signal(lambda: "what was begun is finished by the next look"):
                cleaner.run(every)
    return ExitStatus.DONE


def _look_once(metastore: Metastore, asked: CleanerWork, output: str) -> Results:
    results = Results(output)
    _cleaner(metastore, asked, results).once()
    results.sum_up(f"{human_count(results.counts.total(), 'entry', 'entries')} ready for cleaning")
    return results


def _cleaner(metastore: Metastore, asked: CleanerWork, results: Results) -> Cleaner:
    from acidctl.hive.cleaner import Cleaner

    def done(entry: CleanedEntry) -> None:
        results.counts[entry.result.words] += 1
        if entry.error:
            results.failed(f"compaction {entry.entry} of {entry.location}", entry.error, entry.record())
        else:
            results.put(entry.record(), f"{entry.entry}: {entry.location}: {entry.result.words}{_details(entry)}")

    def failed(error: AcidctlError) -> None:
        results.failed("", error, {"reason": str(error)})

    return Cleaner(metastore, asked, done, failed)


def _details(entry: CleanedEntry) -> str:
    removed = human_count(len(entry.names), "directory", "directories")
    marked = "marked as done" if entry.marked else f"left to Hive: {entry.reason}" if entry.reason else ""
    text = ", ".join(filter(None, (f"{removed}, {human_bytes(entry.bytes)}" if entry.names else "", marked)))
    return f": {text}" if text else ""


def figures(counts: CleanerCounts) -> Figures:
    """Return the figures of a cleaner, which is healthy if its last check of the queue was completed."""
    name = "acidctl_cleaner"
    return Figures(
        lambda: [
            counter(f"{name}_entries", "Entries ready for cleaning, by what became of them.", counts.results),
            counter(f"{name}_marked", "Entries that the metastore has as done.", counts.marked),
            counter(f"{name}_bytes", "Bytes that were removed.", counts.bytes),
            counter(f"{name}_rounds", "Looks through the queue.", counts.rounds),
            gauge(f"{name}_last_round_timestamp_seconds", "When the last one ended.", counts.looked),
        ],
        lambda: not counts.failing,
    )
