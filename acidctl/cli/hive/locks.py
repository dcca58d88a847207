"""`acidctl hive locks`: List locks: who holds them, and who waits for whom."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from acidctl.cli.hive.records import Record, fields_of, sentence, tables_argument, whole
from acidctl.cli.options import shared
from acidctl.cli.options.asked_metastore import view_options
from acidctl.cli.output.screen import Column, Layout, column, on_screen
from acidctl.wording import age_text

if TYPE_CHECKING:
    from acidctl.cli.output.screen import View
    from acidctl.metastore.activity import Lock
    from acidctl.metastore.client import Metastore


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


_KEYS = (
    "lock", "part", "on", "state", "type", "txn", "user", "host", "agent", "acquired", "lastHeartbeat", "age",
    "blockedBy",
)  # fmt: skip
_STYLES = {"ACQUIRED": "green", "WAITING": "yellow"}
_LAYOUT = Layout[Record](
    (
        Column("lock", lambda lock: f"{lock['lock']}.{lock['part']}", right=True),
        column("on"),
        column("type"),
        column("state", style=lambda lock: _STYLES.get(lock["state"], "red")),
        column("txn", text=lambda txn: str(txn or "-"), right=True),
        column("user"),
        column("host", worth=5),
        column("acquired (UTC)", "acquired", on_screen, worth=3, beside=True),
        column("age", text=age_text, right=True, worth=6),
    ),
    "waits for, query",
    _remark,
)


@shared.command("locks")
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
    return view.show(records, _KEYS, _LAYOUT, "no locks")


def _record(lock: Lock, by_id: Mapping[tuple[int, int], Lock], now: float) -> Record:
    record = {"lock": lock.id, "on": lock.name, **fields_of(lock), "age": None, "blockedBy": None}
    del record["id"], record["blockedByPart"]
    if lock.acquired is not None:
        record["age"] = whole(now - lock.acquired)
    if lock.blocked_by:  # only its number, if it is gone by now
        blocker = by_id.get((lock.blocked_by, lock.blocked_by_part))
        details = {"on": blocker.name, **fields_of(blocker)} if blocker else {}
        facts = {key: details.get(key) for key in ("on", "type", "txn", "user", "host", "agent")}
        record["blockedBy"] = {"lock": lock.blocked_by, "part": lock.blocked_by_part, **facts}
    return record
