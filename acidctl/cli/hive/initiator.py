"""`acidctl hive initiator`: asks for the compactions that are due, as Hive's own initiator does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from acidctl.base.errors import AcidctlError, ConflictError, ExitStatus
from acidctl.cli.hive.records import Results
from acidctl.cli.hive.services import Figures, counter, ended_by_signal, gauge, listen_option, round_options, serve
from acidctl.cli.options import shared
from acidctl.cli.options.asked_metastore import asked_metastore
from acidctl.cli.options.metastore import exclude_option
from acidctl.cli.options.param_types import COUNT
from acidctl.cli.output.console import note
from acidctl.wording import human_count

if TYPE_CHECKING:
    from acidctl.hive.initiator import Initiated, InitiatorCounts
    from acidctl.metastore.client import Metastore

_QUIET = ("nothing-to-do", "skipped")
"""Results of most locations of a warehouse, which are only counted for people."""


@shared.command(
    "initiator",
    "acidctl hive initiator --dry-run",
    "acidctl hive initiator --once --most 50 --exclude 'sales.tmp_*' 'hive:sales.*'",
    "acidctl hive initiator -o jsonl --every 10m --pool nightly --listen 9465",
)
@shared.places_argument("names", "[TABLE...]", required=False, only_names=True)
@round_options
@click.option("--standby", is_flag=True, help="While another one is at work, wait to take its place.")
@click.option("--most", type=COUNT, help="Ask for so many at each look, those first whose readers gain most.")
@click.option("--pool", metavar="NAME", help="For the workers of this pool; without it that of the table or database.")
@listen_option
@click.option("-n", "--dry-run", is_flag=True, help="Show what would be asked for and stop.")
@exclude_option
@asked_metastore
@shared.storage_options
@shared.output_option("table", "jsonl", default="table")
def command(
    names: tuple[str, ...],
    every: float,
    once: bool,
    standby: bool,
    most: int | None,
    pool: str | None,
    listen: str | None,
    dry_run: bool,
    exclude: tuple[str, ...],
    metastore: Metastore,
    storage: dict[str, str],
    output: str,
) -> int:
    """Look where a compaction is due, and ask for it in the metastore's queue: Hive's workers or acidctl's do it then.

    TABLE is hive:db.table or hive:db.*; without any it is the whole warehouse. What is due is decided by the files that
    are there and the thresholds of the tables, as `acidctl compact --auto` does. Those come first whose readers gain
    most. Left alone is what Hive's initiator leaves alone: what waits in the queue already, tables and databases with
    no_auto_compaction, locations whose last compactions failed, databases that are replicated from elsewhere.

    One works in a warehouse at a time: it holds a lock on acidctl.initiator, which SHOW LOCKS shows. One in standby
    takes over when the other one has ended, or died and given no sign of life for the metastore's time-out.
    """
    from acidctl.hive.hive import as_hive_names
    from acidctl.hive.initiator import Initiation, Initiator

    if once or dry_run:  # a single check never waits
        shared.refuse_unused("--once" if once else "--dry-run", "standby")
    results = Results(output)

    def done(location: Initiated) -> None:
        results.counts[location.result.words] += 1
        kind = location.kind.value if location.kind else ""
        entry = f" as {location.entry}" if location.entry else ""
        text = f"{location.location}: {kind} {location.result.words}{entry}: {location.reason}"
        results.put(location.record(), "" if location.result in _QUIET else text)

    def failed(location: str, error: AcidctlError) -> None:
        record = {"location": location} if location else {}
        results.failed(location, error, {**record, "reason": str(error)})

    asked = Initiation(
        as_hive_names(names or ("*.*",)), exclude, pool or "", most, changes_nothing=dry_run, storage=storage
    )
    initiator = Initiator(metastore, asked, done, failed)
    with serve(listen, figures(initiator.counts)):
        if once or dry_run:
            initiator.once()
            results.sum_up(f"{human_count(results.counts.total(), 'location')} looked at")
            return results.status
        note(f"looking over {metastore.shown} every {every:g} s; end it with Ctrl-C or SIGTERM")
        with ended_by_signal(lambda: "its lock is given back"):
            initiator.run(every, _say_standby if standby else None)
    return ExitStatus.DONE


def _say_standby(error: ConflictError) -> None:
    note(f"in standby: {error.what}: {error.why}")


def figures(counts: InitiatorCounts) -> Figures:
    """Return the figures of an initiator, which is healthy if its last check of the warehouse was completed."""
    name = "acidctl_initiator"
    return Figures(
        lambda: [
            counter(f"{name}_locations", "Locations that it looked at, by what became of them.", counts.results),
            counter(f"{name}_rounds", "Looks over the whole warehouse.", counts.rounds),
            gauge(f"{name}_leading", "1 while no other one is at work.", int(counts.leading)),
            gauge(f"{name}_round_seconds", "How long the last one took.", counts.seconds),
            gauge(f"{name}_last_round_timestamp_seconds", "When the last one ended.", counts.looked),
        ],
        lambda: not counts.failing,
    )
