"""`acidctl hive compactions`: List the queue of compactions, what is stuck and what frees it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from acidctl.cli.hive.records import Record, entry_record, sentence, tables_argument
from acidctl.cli.options import shared
from acidctl.cli.options.asked_metastore import view_options
from acidctl.cli.output.command_lines import hive_line
from acidctl.cli.output.screen import Layout, column, on_screen
from acidctl.wording import age_text

if TYPE_CHECKING:
    from acidctl.cli.output.screen import View
    from acidctl.metastore.client import Metastore
    from acidctl.metastore.queue import Compaction

_STYLES = {
    "initiated": "yellow", "working": "cyan", "ready for cleaning": "yellow", "succeeded": "green", "failed": "red",
    "did not initiate": "red", "refused": "red", "aborted": "red",
}  # fmt: skip


def _remark(entry: Record, *, by_write_id: bool) -> str:
    job = f"job {entry['job']}" if entry["job"] else ""
    waits = ""
    if _waits_for_cleaner(entry):
        below = f"transactions below {entry['nextTxn']}"
        waits = f"waits for {below} that read the table" if by_write_id else f"waits for the {below}"
    return sentence(entry["error"], job, waits)


def _waits_for_cleaner(entry: Record) -> bool:
    return bool(entry["nextTxn"] and not entry["ended"])


_KEYS = (
    "id", "on", "kind", "state", "pool", "worker", "job", "runAs", "initiator", "enqueued", "started", "committed",
    "ended", "age", "txn", "nextTxn", "highestWriteId", "error",
)  # fmt: skip
_FIRST = (
    column("id", text=str, right=True),
    column("table or partition", "on"),
    column("kind"),
    # Hive 3 calls a failed entry attempted, or something else.
    column("state", style=lambda entry: _STYLES.get(entry["state"], "red")),
    column("age", text=age_text, right=True),
)
_COLUMNS = (
    *_FIRST,
    column("pool", worth=2, beside=True),
    column("started (UTC)", "started", on_screen, worth=3, beside=True),
    column("worker", worth=4),
)
_STUCK_LAYOUT = Layout(_FIRST, "why, and what frees it", lambda entry: f"{entry['why']}; {entry['frees']}")


@shared.command("compactions")
@tables_argument
@click.option("--state", type=click.Choice(tuple(_STYLES)), help="Only entries in this state.")
@click.option("--pool", metavar="NAME", help="Only those of this pool of workers (Hive 4).")
@click.option("--stuck", is_flag=True, help="Only entries that are stuck, with what frees each.")
@view_options
def command(
    names: tuple[str, ...], state: str | None, pool: str | None, stuck: bool, metastore: Metastore, view: View
) -> int:
    """List the queue of compactions and its history, as Hive's SHOW COMPACTIONS does, with ages.

    Waiting entries come first, then the history, newest first. --stuck lists entries whose worker is lost or too slow,
    that no worker takes, whose cleaning is held back or whose transaction was aborted, and locations that the initiator
    has given up after failures.
    """
    from acidctl.cli.report.waits import what_frees, why_stuck
    from acidctl.hive.blocking import find_stuck_entries
    from acidctl.hive.table_names import as_hive_names, is_named
    from acidctl.location.arguments import HiveName
    from acidctl.metastore.activity import now_by
    from acidctl.metastore.queue import find_compactions, is_wanted
    from acidctl.metastore.server import waits_by_write_id

    wanted, tables = {"pool": pool, "state": state}, as_hive_names(names)
    if len(tables) == 1 and not (name := HiveName.parse(tables[0])).is_pattern:
        wanted |= {"database": name.database, "table": name.table}  # the server sends only these

    def is_of_tables(entry: Compaction) -> bool:
        return not tables or is_named(tables, entry.database, entry.table, entry.partition)

    if not stuck:
        entries = [entry for entry in find_compactions(metastore, **wanted) if is_of_tables(entry)]
        now = now_by(
            when for entry in entries for when in (entry.enqueued, entry.started, entry.committed, entry.ended)
        )
        records = [entry_record(entry, now) for entry in entries]
        by_write_id = any(map(_waits_for_cleaner, records)) and waits_by_write_id(metastore)
        layout = Layout(_COLUMNS, "what is known", partial(_remark, by_write_id=by_write_id))
        return view.show(records, _KEYS, layout, "no compactions")
    queue = find_stuck_entries(metastore)
    records = [
        {
            **entry_record(item.entry, queue.known.now),
            "cause": item.cause.value,
            "why": why_stuck(item, queue.switches),
            "frees": what_frees(item, queue.switches, hive_line),
            "blockers": [*item.blockers, *(lock.id for lock in item.locks)],
        }
        for item in queue.stuck
        if is_wanted(item.entry, wanted) and is_of_tables(item.entry)
    ]
    return view.show(records, (*_KEYS, "cause", "why", "frees", "blockers"), _STUCK_LAYOUT, "nothing is stuck")
