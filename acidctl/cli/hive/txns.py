"""`acidctl hive txns`: List transactions, and which of them hold back cleaning."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING

import click

from acidctl.base.errors import AcidctlError, UsageProblem
from acidctl.base.guardian import NOTES
from acidctl.cli.hive.records import Record, held_text, lock_record, sentence, some, tables_argument, txn_record, whole
from acidctl.cli.options import shared
from acidctl.cli.options.asked_metastore import view_options
from acidctl.cli.options.param_types import DURATION
from acidctl.cli.output.console import note
from acidctl.cli.output.screen import FittedTable, Row, ScreenColumn, fitted, on_screen
from acidctl.wording import age_text, human_bytes, human_count, time_of

if TYPE_CHECKING:
    from acidctl.cli.output.list_choice import View
    from acidctl.hive.blocking import Blocker
    from acidctl.hive.queue_view import QueueView
    from acidctl.metastore.client import Metastore

_COLUMNS = (
    "id", "state", "type", "user", "host", "agent", "query", "started", "lastHeartbeat", "age", "silent", "locks",
)  # fmt: skip
_BLOCKING_COLUMNS = (
    "id", "lock", "user", "host", "query", "started", "lastHeartbeat", "age", "silent", "locks", "waiting", "bytes",
    "holds", "advice",
)  # fmt: skip
_STYLES = {"open": "green", "aborted": "red"}


@shared.command(
    "txns",
    "acidctl hive txns --open",
    "acidctl hive txns --open --older-than 1h --user etl",
    "acidctl hive txns --blocking",
    "acidctl hive txns --blocking sales.orders",
    "acidctl hive txns --blocking -o jsonl | jq -r '.id, .user, .bytes'",
)
@tables_argument
@click.option("--open", "only", flag_value="open", help="Only open ones.")
@click.option("--aborted", "only", flag_value="aborted", help="Only aborted ones that are not forgotten yet.")
@click.option("--older-than", type=DURATION, metavar="TIME", help="Only those that began so long ago: 1h, 2d.")
@click.option("--user", metavar="NAME", help="Only those of this user.")
@click.option("--blocking", is_flag=True, help="Only those for which a cleaning waits, with what waits for them.")
@click.option(
    "--sizes/--no-sizes",
    default=True,
    help="With --blocking: list the locations to tell how many bytes wait, or leave that out.",
)
@shared.storage_options
@view_options
def command(
    names: tuple[str, ...],
    only: str | None,
    older_than: float | None,
    user: str | None,
    blocking: bool,
    sizes: bool,
    metastore: Metastore,
    storage: dict[str, str],
    view: View,
) -> int:
    """List the transactions that are open, or aborted and not forgotten, with their locks.

    --blocking says what holds back cleaning, the transaction first for which most bytes wait: of every compaction that
    is ready for cleaning in the metastore's queue; of TABLE, db.table, whatever is obsolete or aborted on disk,
    whether it is in the queue or not. On Hive 4 every open transaction that began before a compaction was committed
    holds back its cleaning, whatever it reads; on Hive 3 the locks on the table do.

    Ages are by the clock of this machine, or by the newest time of the server where that is ahead.
    """

    def is_wanted(name: str, age: float | None) -> bool:
        return (user is None or name == user) and (older_than is None or (age is not None and age >= older_than))

    if blocking:
        shared.refuse_unused("--blocking", "only")
        return _show_blocking(metastore, names, storage, is_wanted, sizes=sizes, view=view)
    if names:
        hint = "give --blocking, or see acidctl hive locks"
        raise UsageProblem("tables are given, and transactions are of no table", "", hint)
    from acidctl.metastore.activity import TxnStatus, find_locks, find_transactions, locks_by_txn

    known = find_transactions(metastore)
    by_txn = locks_by_txn(find_locks(metastore))
    records = [
        txn_record(txn, known, by_txn.get(txn.id, ()))
        for txn in sorted(known.txns, key=lambda txn: (txn.state is not TxnStatus.OPEN, txn.id))
        if (only is None or txn.state.value == only) and is_wanted(txn.user, known.age(txn.started))
    ]
    status = view.show(records, _COLUMNS, _table, "no transactions")
    if view.is_table and records:
        aborted = len(known.aborted_ids)
        note(f"{len(known.open):,} open, {aborted:,} aborted; the next transaction is {known.high_watermark + 1}")
    return status


def _table(found: Sequence[Record]) -> FittedTable:
    return fitted(
        [
            (ScreenColumn("txn", True), lambda txn: str(txn["id"])),
            (ScreenColumn("state"), itemgetter("state")),
            (ScreenColumn("type", worth=3, beside=True), lambda txn: txn["type"] or "-"),
            (ScreenColumn("user"), itemgetter("user")),
            (ScreenColumn("host", worth=6), itemgetter("host")),
            (ScreenColumn("started (UTC)", worth=4, beside=True), lambda txn: on_screen(txn["started"])),
            (ScreenColumn("age", True, is_clear=False), lambda txn: age_text(txn["age"])),
            (ScreenColumn("heartbeat", True, 5, is_clear=False), lambda txn: age_text(txn["silent"])),
        ],
        "locks and query",
        found,
        lambda txn, cells: Row(
            cells, sentence(held_text(txn), txn["query"], txn["agent"]), styles=((1, _STYLES.get(txn["state"], "")),)
        ),
    )


# --- what holds back cleaning ---------------------------------------------------------------------------------------


def _show_blocking(
    metastore: Metastore,
    tables: Sequence[str],
    storage: Mapping[str, str],
    is_wanted: Callable[[str, float | None], bool],
    *,
    sizes: bool,
    view: View,
) -> int:
    from acidctl.cli.report.outcomes import show_failure
    from acidctl.hive.queue_view import find_held_back
    from acidctl.hive.table_names import as_hive_names
    from acidctl.location.warehouse import Warehouse

    statuses = [0]

    def failed(name: str, error: AcidctlError) -> None:
        statuses.append(error.exit_status)
        show_failure(name, error)

    with NOTES.isolated():  # a file that crashes its native reader is a damaged file
        found = find_held_back(Warehouse(metastore), as_hive_names(tables), storage, sizes=sizes, on_error=failed)
    records = [
        _blocker_record(blocker, found)
        for blocker in found.blockers
        if is_wanted(blocker.user, found.known.age(blocker.started))
    ]
    nothing = "nothing holds back a cleaning" if found.waiting else "nothing waits for cleaning"
    status = view.show(records, _BLOCKING_COLUMNS, _blocking_table, nothing)
    if view.is_table and found.waiting:
        sizes_known = [held.bytes for held in found.waiting if held.bytes is not None]
        size = f", {human_bytes(sum(sizes_known))}" if sizes_known else ""
        note(f"{human_count(len(found.waiting), 'location')} with something to clean{size}")
        if not found.switches.cleaner:
            note("the server that answered runs no cleaner of Hive's: `acidctl clean` cleans, or another server does")
    return max(statuses) or status


def _blocker_record(blocker: Blocker, found: QueueView) -> Record:
    from acidctl.cli.report.waits import what_to_do, who_blocks

    return {
        **who_blocks(blocker),
        "lastHeartbeat": time_of(blocker.last_heartbeat),
        "age": whole(found.known.age(blocker.started)),
        "silent": whole(found.known.age(blocker.last_heartbeat)),
        "locks": list(map(lock_record, blocker.locks)),
        "holds": [
            {"on": held.name, "compaction": held.entry.id if held.entry else None, "bytes": held.bytes}
            for held in blocker.holds
        ],
        "advice": what_to_do(blocker, found.known, found.switches),
    }


def _blocking_table(found: Sequence[Record]) -> FittedTable:
    return fitted(
        [
            (ScreenColumn("held back by"), _name),
            (ScreenColumn("user"), itemgetter("user")),
            (ScreenColumn("host", worth=5), itemgetter("host")),
            (ScreenColumn("since (UTC)", worth=4), lambda blocker: on_screen(blocker["started"])),
            (ScreenColumn("age", True, is_clear=False), lambda blocker: age_text(blocker["age"])),
            (ScreenColumn("waiting", True, 6, is_clear=False), lambda blocker: f"{blocker['waiting']:,}"),
            (ScreenColumn("bytes", True), lambda blocker: human_bytes(blocker["bytes"])),
        ],
        "what waits, and what to do",
        found,
        lambda blocker, cells: Row(cells, _blocking_remark(blocker)),
    )


def _name(blocker: Record) -> str:
    return f"txn {blocker['id']}" if blocker["id"] is not None else f"lock {blocker['lock']}"


def _blocking_remark(blocker: Record) -> str:
    waits = some([held["on"] for held in blocker["holds"]])
    if more := blocker["waiting"] - len(blocker["holds"]):
        waits += f" and {more:,} more"
    query = f"query {blocker['query']}" if blocker["query"] else ""
    return sentence(waits, query, held_text(blocker), blocker["advice"])
