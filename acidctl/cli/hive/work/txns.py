"""What `acidctl hive txns` does: show transactions with their locks, or those for which cleaning waits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter

from acidctl.cli.hive.work.listed import Record, lock_record, some, whole
from acidctl.cli.options.shared import refuse_unused
from acidctl.cli.output.console import note
from acidctl.cli.output.screen import FittedTable, Row, ScreenColumn, fitted, on_screen
from acidctl.cli.output.view import View
from acidctl.cli.report.outcomes import show_failure
from acidctl.cli.report.waits import what_to_do, who_blocks
from acidctl.errors import AcidctlError, UsageProblem
from acidctl.hive.blocking import Blocker
from acidctl.hive.hive import as_hive_names, look_for_blockers
from acidctl.hive.waiting import Waiting
from acidctl.location.warehouse import Warehouse
from acidctl.metastore.activity import KnownTxns, Lock, Txn, TxnStatus, find_locks, find_transactions, locks_by_txn
from acidctl.metastore.client import Metastore
from acidctl.metastore.server import Switches
from acidctl.wording import age_text, human_bytes, human_count, time_of

_COLUMNS = (
    "id", "state", "type", "user", "host", "agent", "query", "started", "lastHeartbeat", "age", "silent", "locks",
)  # fmt: skip
_BLOCKING_COLUMNS = (
    "id", "lock", "user", "host", "query", "started", "lastHeartbeat", "age", "silent", "locks", "waiting", "bytes",
    "holds", "advice",
)  # fmt: skip
_STYLES = {"open": "green", "aborted": "red"}


def work(
    *,
    tables: tuple[str, ...],
    only: str | None,
    older_than: float | None,
    user: str | None,
    blocking: bool,
    sizes: bool,
    metastore: Metastore,
    storage: dict[str, str],
    view: View,
) -> int:
    """Show them; the exit status."""
    if blocking:
        refuse_unused("--blocking", "only")
        return _blocking(metastore, tables, storage, older_than, user, sizes=sizes, view=view)
    if tables:
        raise UsageProblem(
            "tables are given, and transactions are of no table",
            "",
            "give --blocking, or see acidctl hive locks --table",
        )
    known = find_transactions(metastore)
    by_txn = locks_by_txn(find_locks(metastore))
    found = [
        txn
        for txn in sorted(known.txns, key=lambda txn: (txn.state is not TxnStatus.OPEN, txn.id))
        if (only is None or txn.state.value == only) and _is_wanted(txn.user, known.age(txn.started), user, older_than)
    ]
    records = [{**txn_record(txn, known), "locks": _locks(by_txn.get(txn.id, ()))} for txn in found]
    status = view.show(records, _COLUMNS, _table, "the metastore has no such transaction")
    if view.is_table and records:
        aborted = len(known.aborted_ids)
        note(f"{len(known.open):,} open, {aborted:,} aborted; the next transaction is {known.high_watermark + 1}")
    return status


def _is_wanted(name: str, age: float | None, user: str | None, older_than: float | None) -> bool:
    return (user is None or name == user) and (older_than is None or (age is not None and age >= older_than))


def _locks(locks: Sequence[Lock]) -> list[Record]:
    return list(map(lock_record, locks))


def txn_record(txn: Txn, known: KnownTxns) -> Record:
    """A transaction without its locks, as JSON has it."""
    return {
        "id": txn.id,
        "state": txn.state.value,
        "type": txn.type,
        "user": txn.user,
        "host": txn.host,
        "agent": txn.agent or None,
        "query": txn.query or None,
        "started": time_of(txn.started),
        "lastHeartbeat": time_of(txn.last_heartbeat),
        "age": whole(known.age(txn.started)),
        "silent": whole(known.age(txn.last_heartbeat)),
    }


def _table(found: Sequence[Record]) -> FittedTable:
    return fitted(
        [
            (ScreenColumn("txn", True), lambda one: str(one["id"])),
            (ScreenColumn("state"), itemgetter("state")),
            (ScreenColumn("type", worth=3, beside=True), lambda one: one["type"] or "-"),
            (ScreenColumn("user"), itemgetter("user")),
            (ScreenColumn("host", worth=6), itemgetter("host")),
            (ScreenColumn("started (UTC)", worth=4, beside=True), lambda one: on_screen(one["started"])),
            (ScreenColumn("age", True, is_clear=False), lambda one: age_text(one["age"])),
            (ScreenColumn("heartbeat", True, 5, is_clear=False), lambda one: age_text(one["silent"])),
        ],
        "locks and query",
        found,
        lambda one, cells: Row(cells, _remark(one), styles=((1, _STYLES.get(one["state"], "")),)),
    )


def _remark(one: Record) -> str:
    locks = some([f"{lock['type']} on {lock['on']}" for lock in one["locks"]])
    return "; ".join(filter(None, (locks, one["query"], one["agent"])))


# --- what holds back cleaning ---------------------------------------------------------------------------------------


def _blocking(
    metastore: Metastore,
    tables: Sequence[str],
    storage: Mapping[str, str],
    older_than: float | None,
    user: str | None,
    *,
    sizes: bool,
    view: View,
) -> int:
    worst = 0

    def failed(name: str, error: AcidctlError) -> None:
        nonlocal worst
        worst = max(worst, error.exit_status)
        show_failure(name, error)

    found = look_for_blockers(Warehouse(metastore), as_hive_names(tables), storage, sizes=sizes, on_error=failed)
    known, switches, waiting = found.known, found.switches, found.waiting
    blockers = [one for one in found.blockers if _is_wanted(one.user, known.age(one.started), user, older_than)]
    records = [_blocker_record(one, known, switches) for one in blockers]
    nothing = "nothing holds back a cleaning" if waiting else "nothing waits for cleaning"
    status = view.show(records, _BLOCKING_COLUMNS, _blocking_table, nothing)
    if view.is_table:
        _sum_up(waiting, switches)
    return worst or status


def _sum_up(waiting: Sequence[Waiting], switches: Switches) -> None:
    if not waiting:
        return
    known = [one.bytes for one in waiting if one.bytes is not None]
    size = f", {human_bytes(sum(known))}" if known else ""
    note(f"{human_count(len(waiting), 'location')} with something to clean{size}")
    if not switches.cleaner:
        note("the server that answered runs no cleaner of Hive's: `acidctl clean` cleans, or another server does")


def _blocker_record(one: Blocker, known: KnownTxns, switches: Switches) -> Record:
    return {
        **who_blocks(one),
        "lastHeartbeat": time_of(one.last_heartbeat),
        "age": whole(known.age(one.started)),
        "silent": whole(known.age(one.last_heartbeat)),
        "locks": _locks(one.locks),
        "holds": [_held(held) for held in one.holds],
        "advice": what_to_do(one, known, switches),
    }


def _held(held: Waiting) -> Record:
    entry = held.entry.id if held.entry else None
    return {"on": held.name, "compaction": entry, "bytes": held.bytes}


def _blocking_table(found: Sequence[Record]) -> FittedTable:
    return fitted(
        [
            (ScreenColumn("held back by"), _name),
            (ScreenColumn("user"), itemgetter("user")),
            (ScreenColumn("host", worth=5), itemgetter("host")),
            (ScreenColumn("since (UTC)", worth=4), lambda one: on_screen(one["started"])),
            (ScreenColumn("age", True, is_clear=False), lambda one: age_text(one["age"])),
            (ScreenColumn("waiting", True, 6, is_clear=False), lambda one: f"{one['waiting']:,}"),
            (ScreenColumn("bytes", True), lambda one: human_bytes(one["bytes"])),
        ],
        "what waits, and what to do",
        found,
        lambda one, cells: Row(cells, _blocking_remark(one)),
    )


def _name(one: Record) -> str:
    return f"txn {one['id']}" if one["id"] is not None else f"lock {one['lock']}"


def _blocking_remark(one: Record) -> str:
    waits = some([held["on"] for held in one["holds"]])
    more = one["waiting"] - len(one["holds"])
    waits += f" and {more:,} more" if more else ""
    query = f"query {one['query']}" if one["query"] else ""
    locks = some([f"{lock['type']} on {lock['on']}" for lock in one["locks"]])
    return "; ".join(filter(None, (waits, query, locks, one["advice"])))
