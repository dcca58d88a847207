"""`acidctl hive txns`: List transactions, and which of them hold back cleaning."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import click

from acidctl.base.errors import AcidctlError, UsageProblem
from acidctl.base.guardian import NOTES
from acidctl.cli.hive.records import Record, lock_record, locks_text, sentence, some, tables_argument, txn_record, whole
from acidctl.cli.options import shared
from acidctl.cli.options.asked_metastore import view_options
from acidctl.cli.options.param_types import DURATION
from acidctl.cli.output.command_lines import hive_line
from acidctl.cli.output.console import note
from acidctl.cli.output.screen import Column, Layout, column, number, on_screen
from acidctl.wording import age_text, human_bytes, human_count, time_of

if TYPE_CHECKING:
    from acidctl.cli.output.screen import View
    from acidctl.metastore.client import Metastore

_KEYS = (
    "id", "state", "type", "user", "host", "agent", "query", "started", "lastHeartbeat", "age", "silent", "locks",
)  # fmt: skip
_STYLES = {"open": "green", "aborted": "red"}
_LAYOUT = Layout(
    (
        column("txn", "id", right=True),
        column("state", style=lambda txn: _STYLES.get(txn["state"], "")),
        column("type", worth=3, beside=True),
        column("user"),
        column("host", worth=6),
        column("started (UTC)", "started", on_screen, worth=4, beside=True),
        column("age", text=age_text, right=True),
        column("heartbeat", "silent", age_text, right=True, worth=5),
    ),
    "locks and query",
    lambda txn: sentence(locks_text(txn["locks"]), txn["query"], txn["agent"]),
)


def _what_waits(blocker: Record) -> str:
    waits = some([held["on"] for held in blocker["holds"]])
    if more := blocker["waiting"] - len(blocker["holds"]):
        waits += f" and {more:,} more"
    query = f"query {blocker['query']}" if blocker["query"] else ""
    return sentence(waits, query, locks_text(blocker["locks"]), blocker["advice"])


_BLOCKER_KEYS = (
    "id", "lock", "user", "host", "query", "started", "lastHeartbeat", "age", "silent", "locks", "waiting", "bytes",
    "holds", "advice",
)  # fmt: skip
_BLOCKERS = Layout[Record](
    (
        Column("held back by", lambda by: f"lock {by['lock']}" if by["id"] is None else f"txn {by['id']}"),
        column("user"),
        column("host", worth=5),
        column("since (UTC)", "started", on_screen, worth=4),
        column("age", text=age_text, right=True),
        column("waiting", text=number, right=True, worth=6),
        column("bytes", text=human_bytes, right=True),
    ),
    "what waits, and what to do",
    _what_waits,
)


@shared.command("txns")
@tables_argument
@shared.typed_option("--open", "only", flag_value="open", help="Only open ones.")
@shared.typed_option(
    "--aborted", "only", flag_value="aborted", help="Only aborted ones that the metastore still lists."
)
@click.option(
    "--older-than", type=DURATION, metavar="TIME", help="Only those that began at least this long ago, e.g. 1h or 2d."
)
@click.option("--user", metavar="NAME", help="Only those of this user.")
@click.option("--blocking", is_flag=True, help="Only those that hold back a cleaning, with what waits for them.")
@click.option(
    "--sizes/--no-sizes", default=True, help="With --blocking: list the locations to count the bytes that wait, or not."
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
    """List open and aborted transactions with their locks.

    --blocking shows what holds back cleaning, the transaction for which most bytes wait first. It looks at every
    compaction in the queue that is ready for cleaning or, for a TABLE (db.table), at all that is obsolete or aborted on
    disk, in the queue or not. On Hive 4.0 and 4.1 every open transaction that began before a compaction was committed
    holds back its cleaning, whatever it reads; on Hive 3 and 4.2 the locks on the table do.

    Ages are by the clock of this machine, or by the newest time of the server if that is ahead.
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
    status = view.show(records, _KEYS, _LAYOUT, "no transactions")
    if view.is_table and records:
        aborted = len(known.aborted_ids)
        note(f"{len(known.open):,} open, {aborted:,} aborted; the next transaction is {known.high_watermark + 1}")
    return status


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
    from acidctl.cli.report.waits import what_to_do, who_blocks
    from acidctl.hive.blocking import find_held_back
    from acidctl.hive.table_names import as_hive_names
    from acidctl.location.warehouse import Warehouse

    statuses = [0]

    def failed(name: str, error: AcidctlError) -> None:
        statuses.append(error.exit_status)
        show_failure(name, error)

    with NOTES.isolated():  # a file that crashes its native reader is a damaged file
        queue = find_held_back(Warehouse(metastore), as_hive_names(tables), storage, sizes=sizes, on_error=failed)
    known = queue.known
    records = [
        {
            **who_blocks(blocker),
            "lastHeartbeat": time_of(blocker.client.last_heartbeat),
            "age": whole(known.age(blocker.started)),
            "silent": whole(known.age(blocker.client.last_heartbeat)),
            "locks": list(map(lock_record, blocker.locks)),
            "holds": [
                {"on": held.name, "compaction": held.entry.id if held.entry else None, "bytes": held.bytes}
                for held in blocker.holds
            ],
            "advice": what_to_do(blocker, known, queue.switches, hive_line),
        }
        for blocker in queue.blockers
        if is_wanted(blocker.client.user, known.age(blocker.started))
    ]
    nothing = "nothing holds back a cleaning" if queue.waiting else "nothing waits for cleaning"
    status = view.show(records, _BLOCKER_KEYS, _BLOCKERS, nothing)
    if view.is_table and queue.waiting:
        sizes_known = [held.bytes for held in queue.waiting if held.bytes is not None]
        size = f", {human_bytes(sum(sizes_known))}" if sizes_known else ""
        note(f"{human_count(len(queue.waiting), 'location')} with something to clean{size}")
        if not queue.switches.cleaner:
            note("the server that answered runs no cleaner of Hive's: `acidctl clean` cleans, or another server does")
    return max(statuses) or status
