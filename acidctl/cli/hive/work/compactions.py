"""What `acidctl hive compactions` does: show the queue and its history, or what is stuck there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter

from acidctl.cli.hive.work.listed import Record, table_named, whole
from acidctl.cli.output.screen import FittedTable, Row, ScreenColumn, fitted, on_screen
from acidctl.cli.output.view import View
from acidctl.cli.report.waits import what_frees, why_stuck
from acidctl.hive.hive import look_for_stuck
from acidctl.metastore.activity import now_by
from acidctl.metastore.client import Metastore
from acidctl.metastore.queue.compactions import Compaction, find_compactions, is_wanted
from acidctl.metastore.queue.stuck import Stuck
from acidctl.metastore.server import Switches
from acidctl.wording import age_text, time_of

_COLUMNS = (
    "id", "on", "kind", "state", "pool", "worker", "job", "runAs", "initiator", "enqueued", "started", "committed",
    "ended", "age", "txn", "nextTxn", "highestWriteId", "error",
)  # fmt: skip
_STUCK_COLUMNS = (*_COLUMNS, "cause", "why", "frees", "blockers")
_STYLES = {
    "initiated": "yellow", "working": "cyan", "ready for cleaning": "yellow", "succeeded": "green", "failed": "red",
    "did not initiate": "red", "attempted": "red", "refused": "red", "aborted": "red",
}  # fmt: skip


def work(
    *,
    state: str | None,
    table: str | None,
    pool: str | None,
    stuck: bool,
    metastore: Metastore,
    view: View,
) -> int:
    """Show them; the exit status."""
    database, name = table_named(table)
    wanted = {"database": database, "table": name, "pool": pool, "state": state}
    if stuck:
        records = _stuck(metastore, wanted)
        return view.show(records, _STUCK_COLUMNS, _stuck_table, "nothing is stuck")
    found = find_compactions(metastore, **wanted)
    now = now_by(when for one in found for when in (one.enqueued, one.started, one.committed, one.ended))
    records = [record_of(one, now) for one in found]
    return view.show(records, _COLUMNS, _table, "the metastore has no such compaction")


def _stuck(metastore: Metastore, wanted: Mapping[str, str | None]) -> list[Record]:
    found = look_for_stuck(metastore)
    return [
        _stuck_record(one, found.known.now, found.switches) for one in found.entries if is_wanted(one.entry, wanted)
    ]


def record_of(one: Compaction, now: float) -> Record:
    """An entry as JSON has it."""
    return {
        "id": one.id,
        "on": one.name,
        "database": one.database,
        "table": one.table,
        "partition": one.partition or None,
        "kind": one.kind,
        "state": one.state,
        "pool": one.pool or None,
        "worker": one.worker or None,
        "job": one.job or None,
        "runAs": one.run_as or None,
        "initiator": one.initiator or None,
        "error": one.error or None,
        "enqueued": time_of(one.enqueued),
        "started": time_of(one.started),
        "committed": time_of(one.committed),
        "ended": time_of(one.ended),
        "age": None if one.since is None else whole(max(now - one.since, 0.0)),
        "txn": one.txn or None,
        "nextTxn": one.next_txn or None,
        "highestWriteId": one.highest_write_id or None,
    }


def _stuck_record(one: Stuck, now: float, switches: Switches) -> Record:
    return {
        **record_of(one.entry, now),
        "cause": one.cause.value,
        "why": why_stuck(one, switches),
        "frees": what_frees(one, switches),
        "blockers": [*one.blockers, *(lock.id for lock in one.locks)],
    }


_FIRST: Sequence[tuple[ScreenColumn, Callable[[Record], str]]] = (
    (ScreenColumn("id", True), lambda one: str(one["id"])),
    (ScreenColumn("table or partition"), itemgetter("on")),
    (ScreenColumn("kind"), itemgetter("kind")),
    (ScreenColumn("state"), itemgetter("state")),
    (ScreenColumn("age", True, is_clear=False), lambda one: age_text(one["age"])),
)


def _table(found: Sequence[Record]) -> FittedTable:
    return fitted(
        [
            *_FIRST,
            (ScreenColumn("pool", worth=2, beside=True, is_clear=False), lambda one: one["pool"] or ""),
            (ScreenColumn("started (UTC)", worth=3, beside=True), lambda one: on_screen(one["started"])),
            (ScreenColumn("worker", worth=4, is_clear=False), lambda one: one["worker"] or ""),
        ],
        "what is known",
        found,
        lambda one, cells: Row(cells, _remark(one), styles=((3, _STYLES.get(one["state"], "")),)),
    )


def _remark(one: Record) -> str:
    known = (
        one["error"],
        f"job {one['job']}" if one["job"] else "",
        f"waits for the transactions below {one['nextTxn']}" if one["nextTxn"] and not one["ended"] else "",
    )
    return "; ".join(filter(None, known))


def _stuck_table(found: Sequence[Record]) -> FittedTable:
    return fitted(
        _FIRST,
        "why, and what frees it",
        found,
        lambda one, cells: Row(cells, f"{one['why']}; {one['frees']}", styles=((3, "red"),)),
    )
