"""`acidctl hive locks`: List locks: who holds them, and who waits for whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING

import click

from acidctl.cli.hive.records import Record, fields_of, sentence, tables_argument, whole
from acidctl.cli.options import shared
from acidctl.cli.options.asked_metastore import view_options
from acidctl.cli.output.screen import FittedTable, Row, ScreenColumn, fitted, on_screen
from acidctl.wording import age_text

if TYPE_CHECKING:
    from acidctl.cli.output.list_choice import View
    from acidctl.metastore.activity import Lock
    from acidctl.metastore.client import Metastore

_COLUMNS = (
    "lock", "part", "on", "state", "type", "txn", "user", "host", "agent", "acquired", "lastHeartbeat", "age",
    "blockedBy",
)  # fmt: skip
_STYLES = {"ACQUIRED": "green", "WAITING": "yellow"}


@shared.command(
    "locks",
    "acidctl hive locks",
    "acidctl hive locks --waiting",
    "acidctl hive locks sales.orders -o jsonl",
)
@tables_argument
@click.option("--waiting", is_flag=True, help="Only those that are not held yet, each with the one it waits for.")
@view_options
def command(names: tuple[str, ...], waiting: bool, metastore: Metastore, view: View) -> int:
    """List the locks of a metastore, of all tables or some: who holds what, since when, and who waits for whom."""
    from acidctl.hive.table_names import as_hive_names, is_named
    from acidctl.metastore.activity import find_locks, now_by

    wanted, every = as_hive_names(names), find_locks(metastore)
    by_id = {(lock.id, lock.part): lock for lock in every}
    now = now_by(moment for lock in every for moment in (lock.acquired, lock.last_heartbeat))
    records = [
        _record(lock, by_id, now)
        for lock in every
        if (lock.is_waiting or not waiting)
        and (not wanted or is_named(wanted, lock.database, lock.table, lock.partition, of_table=not lock.partition))
    ]
    return view.show(records, _COLUMNS, _table, "no locks")


def _record(lock: Lock, by_id: Mapping[tuple[int, int], Lock], now: float) -> Record:
    blocked_by = lock.blocked_by, lock.blocked_by_part
    record = {"lock": lock.id, "on": lock.on, **fields_of(lock)}
    del record["id"], record["blockedByPart"]
    age = None if lock.acquired is None else whole(now - lock.acquired)
    return {**record, "age": age, "blockedBy": _blocker(blocked_by, by_id.get(blocked_by)) if lock.blocked_by else None}


def _blocker(number: tuple[int, int], lock: Lock | None) -> Record:
    """Return the lock that another lock waits for; only its number if it is gone by now."""
    details = {"on": lock.on, **fields_of(lock)} if lock else {}
    facts = {key: details.get(key) for key in ("on", "type", "txn", "user", "host", "agent")}
    return {"lock": number[0], "part": number[1], **facts}


def _table(found: Sequence[Record]) -> FittedTable:
    return fitted(
        [
            (ScreenColumn("lock", True), lambda lock: f"{lock['lock']}.{lock['part']}"),
            (ScreenColumn("on"), itemgetter("on")),
            (ScreenColumn("type"), itemgetter("type")),
            (ScreenColumn("state"), itemgetter("state")),
            (ScreenColumn("txn", True, is_clear=False), lambda lock: "-" if lock["txn"] is None else str(lock["txn"])),
            (ScreenColumn("user"), itemgetter("user")),
            (ScreenColumn("host", worth=5), itemgetter("host")),
            (ScreenColumn("acquired (UTC)", worth=3, beside=True), lambda lock: on_screen(lock["acquired"])),
            (ScreenColumn("age", True, 6, is_clear=False), lambda lock: age_text(lock["age"])),
        ],
        "waits for, query",
        found,
        lambda lock, cells: Row(cells, _remark(lock), styles=((3, _STYLES.get(lock["state"], "red")),)),
    )


def _remark(lock: Record) -> str:
    blocker = lock["blockedBy"]
    if not blocker:
        return sentence(lock["agent"])
    waits = f"waits for lock {blocker['lock']}.{blocker['part']}"
    if blocker["user"] is not None:
        txn = f", txn {blocker['txn']}" if blocker["txn"] else ""
        waits += f": {blocker['type']} on {blocker['on']} of {blocker['user']}@{blocker['host']}{txn}"
    waits += f", query {blocker['agent']}" if blocker["agent"] else ""
    return sentence(waits, lock["agent"])
