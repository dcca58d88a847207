"""`acidctl hive compactions`: List the queue of compactions, what is stuck and what frees it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING

import click

from acidctl.cli.hive.records import Record, entry_record, sentence, tables_argument
from acidctl.cli.options import shared
from acidctl.cli.options.asked_metastore import view_options
from acidctl.cli.output.screen import FittedTable, Row, ScreenColumn, fitted, on_screen
from acidctl.wording import age_text

if TYPE_CHECKING:
    from acidctl.cli.output.list_choice import View
    from acidctl.metastore.client import Metastore
    from acidctl.metastore.queue.compactions import Compaction
    from acidctl.metastore.queue.stuck import Stuck
    from acidctl.metastore.server import Switches

_STYLES = {
    "initiated": "yellow", "working": "cyan", "ready for cleaning": "yellow", "succeeded": "green", "failed": "red",
    "did not initiate": "red", "refused": "red", "aborted": "red",
}  # fmt: skip
_COLUMNS = (
    "id", "on", "kind", "state", "pool", "worker", "job", "runAs", "initiator", "enqueued", "started", "committed",
    "ended", "age", "txn", "nextTxn", "highestWriteId", "error",
)  # fmt: skip
_STUCK_COLUMNS = (*_COLUMNS, "cause", "why", "frees", "blockers")


@shared.command(
    "compactions",
    "acidctl hive compactions",
    "acidctl hive compactions --state 'ready for cleaning' sales.orders",
    "acidctl hive compactions --stuck",
    "acidctl hive compactions --stuck -o jsonl | jq -r '.frees'",
)
@tables_argument
@click.option("--state", type=click.Choice(tuple(_STYLES)), help="Only entries in this state.")
@click.option("--pool", metavar="NAME", help="Only those of this pool of workers (Hive 4).")
@click.option("--stuck", is_flag=True, help="Only those that will not go on by themselves, and what frees each.")
@view_options
def command(
    names: tuple[str, ...], state: str | None, pool: str | None, stuck: bool, metastore: Metastore, view: View
) -> int:
    """List the queue of compactions and its history, as Hive's SHOW COMPACTIONS does, with ages.

    What waits comes first, then the history, newest first. With --stuck: entries whose worker is lost or that are
    worked on for too long, that no worker takes, whose cleaning is held back or whose transaction was aborted, and
    locations that the initiator has given up after failures.
    """
    from acidctl.hive.queue_view import find_stuck_entries
    from acidctl.hive.table_names import as_hive_names, is_named
    from acidctl.location.arguments import HiveName
    from acidctl.metastore.activity import now_by
    from acidctl.metastore.queue.compactions import find_compactions, is_wanted

    wanted, tables = {"pool": pool, "state": state}, as_hive_names(names)
    if len(tables) == 1 and not (name := HiveName.parse(tables[0])).is_pattern:
        wanted |= {"database": name.database, "table": name.table}  # the server sends only these

    def is_of_tables(entry: Compaction) -> bool:
        return not tables or is_named(tables, entry.database, entry.table, entry.partition)

    if stuck:
        queue = find_stuck_entries(metastore)
        records = [
            _stuck_record(item, queue.known.now, queue.switches)
            for item in queue.stuck
            if is_wanted(item.entry, wanted) and is_of_tables(item.entry)
        ]
        return view.show(records, _STUCK_COLUMNS, _stuck_table, "nothing is stuck")
    entries = [entry for entry in find_compactions(metastore, **wanted) if is_of_tables(entry)]
    now = now_by(when for entry in entries for when in (entry.enqueued, entry.started, entry.committed, entry.ended))
    return view.show([entry_record(entry, now) for entry in entries], _COLUMNS, _table, "no compactions")


def _stuck_record(stuck: Stuck, now: float, switches: Switches) -> Record:
    from acidctl.cli.report.waits import what_frees, why_stuck

    return {
        **entry_record(stuck.entry, now),
        "cause": stuck.cause.value,
        "why": why_stuck(stuck, switches),
        "frees": what_frees(stuck, switches),
        "blockers": [*stuck.blockers, *(lock.id for lock in stuck.locks)],
    }


_FIRST: Sequence[tuple[ScreenColumn, Callable[[Record], str]]] = (
    (ScreenColumn("id", True), lambda entry: str(entry["id"])),
    (ScreenColumn("table or partition"), itemgetter("on")),
    (ScreenColumn("kind"), itemgetter("kind")),
    (ScreenColumn("state"), itemgetter("state")),
    (ScreenColumn("age", True, is_clear=False), lambda entry: age_text(entry["age"])),
)


def _table(found: Sequence[Record]) -> FittedTable:
    return fitted(
        [
            *_FIRST,
            (ScreenColumn("pool", worth=2, beside=True, is_clear=False), lambda entry: entry["pool"] or ""),
            (ScreenColumn("started (UTC)", worth=3, beside=True), lambda entry: on_screen(entry["started"])),
            (ScreenColumn("worker", worth=4, is_clear=False), lambda entry: entry["worker"] or ""),
        ],
        "what is known",
        found,
        # Hive 3 calls a failed entry attempted, or something else.
        lambda entry, cells: Row(cells, _remark(entry), styles=((3, _STYLES.get(entry["state"], "red")),)),
    )


def _remark(entry: Record) -> str:
    job = f"job {entry['job']}" if entry["job"] else ""
    waits = f"waits for the transactions below {entry['nextTxn']}" if entry["nextTxn"] and not entry["ended"] else ""
    return sentence(entry["error"], job, waits)


def _stuck_table(found: Sequence[Record]) -> FittedTable:
    return fitted(
        _FIRST,
        "why, and what frees it",
        found,
        lambda entry, cells: Row(cells, f"{entry['why']}; {entry['frees']}", styles=((3, "red"),)),
    )
