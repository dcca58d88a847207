"""What `acidctl hive locks` does: show locks, and for whom those wait that are not held."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter

from acidctl.cli.hive.work.listed import Record, table_named, whole
from acidctl.cli.output.screen import FittedTable, Row, ScreenColumn, fitted, on_screen
from acidctl.cli.output.view import View
from acidctl.metastore.activity import Lock, find_locks, now_by
from acidctl.metastore.client import Metastore
from acidctl.wording import age_text, time_of

_COLUMNS = (
    "lock", "part", "on", "state", "type", "txn", "user", "host", "agent", "acquired", "lastHeartbeat", "age",
    "blockedBy",
)  # fmt: skip
_STYLES = {"ACQUIRED": "green", "WAITING": "yellow"}


def work(*, table: str | None, waiting: bool, metastore: Metastore, view: View) -> int:
    """Show them; the exit status."""
    database, name = table_named(table)
    found = find_locks(metastore, database, name)
    by_id = {(lock.id, lock.part): lock for lock in found}
    if database and any((lock.blocked_by, lock.blocked_by_part) not in by_id for lock in found if lock.blocked_by):
        # It waits for a lock on the database.
        by_id = {(lock.id, lock.part): lock for lock in find_locks(metastore)}
    now = now_by(moment for lock in found for moment in (lock.acquired, lock.last_heartbeat))
    records = [_record(lock, by_id, now) for lock in found if not waiting or lock.is_waiting]
    return view.show(records, _COLUMNS, _table, "there is no such lock")


def _record(lock: Lock, by_id: Mapping[tuple[int, int], Lock], now: float) -> Record:
    blocker = by_id.get((lock.blocked_by, lock.blocked_by_part))
    return {
        "lock": lock.id,
        "part": lock.part,
        "on": lock.on,
        "database": lock.database,
        "table": lock.table or None,
        "partition": lock.partition or None,
        "state": lock.state,
        "type": lock.type,
        "txn": lock.txn or None,
        "user": lock.user,
        "host": lock.host,
        "agent": lock.agent or None,
        "acquired": time_of(lock.acquired),
        "lastHeartbeat": time_of(lock.last_heartbeat),
        "age": None if lock.acquired is None else whole(now - lock.acquired),
        "blockedBy": _blocker(lock, blocker) if lock.blocked_by else None,
    }


def _blocker(lock: Lock, blocker: Lock | None) -> Record:
    """For whom it waits; only the number of one that is gone by now."""
    return {
        "lock": lock.blocked_by,
        "part": lock.blocked_by_part,
        "on": blocker.on if blocker else None,
        "type": blocker.type if blocker else None,
        "txn": (blocker.txn or None) if blocker else None,
        "user": blocker.user if blocker else None,
        "host": blocker.host if blocker else None,
        "agent": (blocker.agent or None) if blocker else None,
    }


def _table(found: Sequence[Record]) -> FittedTable:
    return fitted(
        [
            (ScreenColumn("lock", True), lambda one: f"{one['lock']}.{one['part']}"),
            (ScreenColumn("on"), itemgetter("on")),
            (ScreenColumn("type"), itemgetter("type")),
            (ScreenColumn("state"), itemgetter("state")),
            (ScreenColumn("txn", True, is_clear=False), lambda one: "-" if one["txn"] is None else str(one["txn"])),
            (ScreenColumn("user"), itemgetter("user")),
            (ScreenColumn("host", worth=5), itemgetter("host")),
            (ScreenColumn("acquired (UTC)", worth=3, beside=True), lambda one: on_screen(one["acquired"])),
            (ScreenColumn("age", True, 6, is_clear=False), lambda one: age_text(one["age"])),
        ],
        "waits for, query",
        found,
        lambda one, cells: Row(cells, _remark(one), styles=((3, _STYLES.get(one["state"], "red")),)),
    )


def _remark(one: Record) -> str:
    blocker = one["blockedBy"]
    waits = ""
    if blocker:
        waits = f"waits for lock {blocker['lock']}.{blocker['part']}"
        if blocker["user"] is not None:
            txn = f", txn {blocker['txn']}" if blocker["txn"] else ""
            waits += f": {blocker['type']} on {blocker['on']} of {blocker['user']}@{blocker['host']}{txn}"
        waits += f", query {blocker['agent']}" if blocker["agent"] else ""
    return "; ".join(filter(None, (waits, one["agent"])))
