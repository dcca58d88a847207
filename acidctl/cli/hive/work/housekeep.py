"""What `acidctl hive housekeep` does: find what is dead, show it, ask, and end it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from acidctl.cli.hive.work.listed import lock_record, locks_text, whole
from acidctl.cli.options.many_locations import Procedure
from acidctl.cli.output.console import Records, note, put_text, warn
from acidctl.errors import ExitStatus
from acidctl.metastore.activity import Lock, Txn
from acidctl.metastore.client import Metastore
from acidctl.metastore.housekeeping import Dead, end_dead, find_dead, refuse_where_it_is_done, silent_for
from acidctl.metastore.server import find_switches
from acidctl.wording import age_text, human_count, time_of


def work(
    *,
    older_than: float | None,
    dry_run: bool,
    yes: bool,
    force: bool,
    exit_code: bool,
    metastore: Metastore,
    output: str,
) -> int:
    """Keep house; the exit status."""
    switches = find_switches(metastore)
    silent = silent_for(older_than, switches)
    if not force:
        refuse_where_it_is_done(metastore, _warn_of_silent)
    dead = find_dead(metastore, silent)
    records = Records(output)
    is_table = output == "table"
    if is_table:
        for line in _lines(dead):
            put_text(line)
    for txn in dead.kept:
        if not is_table:
            records.put(_record(txn, dead, "kept"))
    if not dead.txns and not dead.locks:
        if is_table:
            note(f"nothing is silent for {age_text(silent)} or longer")
        return ExitStatus.NOTHING_TO_DO if exit_code else ExitStatus.DONE
    if dry_run:
        _put(records, dead, "planned")
        return ExitStatus.DONE
    count = " and ".join(_counts(dead))
    Procedure(yes).confirm(f"{count} would be ended", f"End {count}?", "nothing was ended")
    ended = end_dead(metastore, dead, silent)
    _put(records, ended, "ended")
    _put(records, _left(dead, ended), "alive")
    if is_table:
        put_text(f"{' and '.join(_counts(ended)) or 'nothing'} ended")
    if left := len(dead.txns) + len(dead.locks) - len(ended.txns) - len(ended.locks):
        note(f"{left} gave a sign of life, or ended, meanwhile")
    return ExitStatus.DONE


def _warn_of_silent(url: str) -> None:
    warn(f"{url} does not answer: whether it keeps house is not known")


def _lines(dead: Dead) -> Iterator[str]:
    for txn in dead.txns:
        yield f"{_txn_text(txn, dead)}; {locks_text(dead.by_txn.get(txn.id, ())) or 'no locks'}"
    for lock in dead.locks:
        yield (
            f"lock {lock.id} of {lock.user}@{lock.host}: {_ages(lock.acquired, lock.last_heartbeat, dead)}; "
            f"{locks_text([lock])}"
        )
    for txn in dead.kept:
        yield f"{_txn_text(txn, dead)}; left alone: it is, or may be, of a replication"


def _txn_text(txn: Txn, dead: Dead) -> str:
    return f"transaction {txn.id} of {txn.user}@{txn.host}: {_ages(txn.started, txn.last_heartbeat, dead)}"


def _ages(begun: float | None, heartbeat: float | None, dead: Dead) -> str:
    return f"begun {age_text(_since(begun, dead))} ago, silent for {age_text(_since(heartbeat, dead))}"


def _since(moment: float | None, dead: Dead) -> float | None:
    return None if moment is None else max(dead.now - moment, 0.0)


def _counts(dead: Dead) -> list[str]:
    parts = ((dead.txns, "transaction"), (dead.locks, "lock"))
    return [human_count(len(some), noun) for some, noun in parts if some]


def _left(dead: Dead, ended: Dead) -> Dead:
    txns, locks = {txn.id for txn in ended.txns}, {lock.id for lock in ended.locks}
    return replace(
        dead,
        txns=tuple(txn for txn in dead.txns if txn.id not in txns),
        locks=tuple(lock for lock in dead.locks if lock.id not in locks),
    )


def _put(records: Records, dead: Dead, result: str) -> None:
    every: tuple[Txn | Lock, ...] = (*dead.txns, *dead.locks)
    for one in every:
        records.put(_record(one, dead, result))


def _record(one: Txn | Lock, dead: Dead, result: str) -> dict[str, Any]:
    txn = one if isinstance(one, Txn) else None
    begun, locks = (one.started, dead.by_txn.get(one.id, ())) if isinstance(one, Txn) else (one.acquired, (one,))
    return {
        "id": txn and txn.id,
        "lock": None if txn else one.id,
        "user": one.user,
        "host": one.host,
        "agent": one.agent or None,
        "started": time_of(begun),
        "lastHeartbeat": time_of(one.last_heartbeat),
        "silent": whole(_since(one.last_heartbeat, dead)),
        "result": result,
        "type": txn and txn.type,
        "locks": [lock_record(lock) for lock in locks],
    }
