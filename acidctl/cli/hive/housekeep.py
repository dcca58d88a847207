"""`acidctl hive housekeep`: End transactions and locks of dead clients."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from acidctl.base.errors import ExitStatus
from acidctl.cli.hive.records import Record, Results, lock_record, locks_text, whole
from acidctl.cli.options import shared
from acidctl.cli.options.asked_metastore import asked_metastore
from acidctl.cli.output.console import note, warn
from acidctl.wording import age_text, human_count, time_of

if TYPE_CHECKING:
    from acidctl.metastore.activity import Lock, Txn
    from acidctl.metastore.client import Metastore
    from acidctl.metastore.housekeeping import Dead


@shared.command("housekeep")
@click.option("-n", "--dry-run", is_flag=True, help="Show what would be ended and stop.")
@shared.yes_option
@shared.typed_option("--force", is_flag=True, help="Run even if the server runs Hive's housekeeping.")
@asked_metastore
@shared.output_option("table", "json", "jsonl", default="table")
def command(dry_run: bool, yes: bool, force: bool, metastore: Metastore, output: str) -> int:
    """Abort transactions and release locks whose heartbeat has timed out.

    Hive's own housekeeping does this. A standalone metastore, or Hive 4 without metastore.housekeeping.threads.on, does
    not run it; then what a dead client leaves holds back cleaning forever. Refused if one of the metastore's servers
    says that it runs Hive's housekeeping.

    The time is the server's, read from a transaction that is opened and committed for that. Transactions of a
    replication are left alone. Servers before Hive 4 do not mark them: there transactions without locks are also left
    alone, if anything is replicated into this warehouse.
    """
    from acidctl.metastore.housekeeping import end_dead, find_dead, refuse_where_it_is_done
    from acidctl.metastore.server import txn_timeout

    silent = txn_timeout(metastore)
    if not force:
        refuse_where_it_is_done(
            metastore, lambda url: warn(f"{url} does not answer: it may run Hive's housekeeping, too")
        )
    dead = find_dead(metastore, silent)
    results = Results(output)
    for txn in dead.kept:
        text, record = _client(dead, txn, is_lock=False)
        results.put({**record, "result": "kept"}, f"{text}; left alone: it is, or may be, of a replication")
    clients = _clients(dead)
    if not clients:
        if results.is_table:
            note(f"no client has been silent for {age_text(silent)} or longer")
        return ExitStatus.DONE
    if results.is_only_planned(clients.values(), _counts(dead), "End", "ended", dry_run=dry_run, yes=yes):
        return ExitStatus.DONE
    ended = end_dead(metastore, dead, silent)
    now_ended = _clients(ended)
    for _, record in now_ended.values():
        results.put({**record, "result": "ended"})
    alive = [record for key, (_, record) in clients.items() if key not in now_ended]
    for record in alive:
        results.put({**record, "result": "alive"})
    results.say(f"{_counts(ended) or 'nothing'} ended")
    if alive:
        note(f"{len(alive)} gave a sign of life, or ended, meanwhile")
    return ExitStatus.DONE


def _counts(dead: Dead) -> str:
    parts = ((dead.txns, "transaction"), (dead.locks, "lock"))
    return " and ".join(human_count(len(some), noun) for some, noun in parts if some)


def _clients(dead: Dead) -> dict[tuple[str, int], tuple[str, Record]]:
    """Return a text and a record for each transaction and lock that is to end."""
    clients: dict[tuple[str, int], tuple[str, Record]] = {}
    both: list[tuple[Txn | Lock, bool]] = [(txn, False) for txn in dead.txns]
    both += [(lock, True) for lock in dead.locks]
    for client, is_lock in both:
        text, record = _client(dead, client, is_lock=is_lock)
        noun = "lock" if is_lock else "transaction"
        clients[noun, client.id] = f"{text}; {locks_text(record['locks']) or 'no locks'}", record
    return clients


def _client(dead: Dead, client: Txn | Lock, *, is_lock: bool) -> tuple[str, Record]:
    begun = getattr(client, "acquired" if is_lock else "started")
    age, silent = (None if when is None else max(dead.now - when, 0.0) for when in (begun, client.last_heartbeat))
    who = f"{'lock' if is_lock else 'transaction'} {client.id} of {client.user}@{client.host}"
    locks = (client,) if is_lock else dead.by_txn.get(client.id, ())
    return f"{who}: begun {age_text(age)} ago, silent for {age_text(silent)}", {
        "id": None if is_lock else client.id,
        "lock": client.id if is_lock else None,
        "user": client.user,
        "host": client.host,
        "agent": client.agent or None,
        "started": time_of(begun),
        "lastHeartbeat": time_of(client.last_heartbeat),
        "silent": whole(silent),
        "type": None if is_lock else client.type,
        "locks": list(map(lock_record, locks)),  # type: ignore[arg-type]
    }
