"""`acidctl hive housekeep`: End transactions and locks of dead clients."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from acidctl.base.errors import ExitStatus
from acidctl.cli.hive.records import Record, Results, lock_record, locks_text, whole
from acidctl.cli.options import shared
from acidctl.cli.options.asked_metastore import asked_metastore
from acidctl.cli.options.param_types import DURATION
from acidctl.cli.output.console import note, warn
from acidctl.wording import age_text, human_count, time_of

if TYPE_CHECKING:
    from acidctl.metastore.activity import Lock, Txn
    from acidctl.metastore.client import Metastore
    from acidctl.metastore.housekeeping import Dead


@shared.command(
    "housekeep",
    "acidctl hive housekeep --dry-run",
    "acidctl hive housekeep --yes",
    "acidctl hive housekeep --yes --older-than 1h -o jsonl",
)
@click.option(
    "--older-than", type=DURATION, metavar="TIME", help="Only those that are silent for so long; the server's time-out."
)
@click.option("-n", "--dry-run", is_flag=True, help="Show what would be ended and stop.")
@shared.yes_option
@shared.typed_option("--force", is_flag=True, help="Do it even though the server says that it does it itself.")
@asked_metastore
@shared.output_option("table", "json", "jsonl", default="table")
def command(
    older_than: float | None,
    dry_run: bool,
    yes: bool,
    force: bool,
    metastore: Metastore,
    output: str,
) -> int:
    """Abort transactions and release locks whose heartbeat has timed out.

    Hive's own house keeper does this where it runs; a metastore that stands alone, or Hive 4 without
    metastore.housekeeping.threads.on, has none, and what a client leaves that dies holds back cleaning for ever.
    Refused where one of the metastore's servers says that it keeps house.

    The time is the server's, read from a transaction that is opened and committed for that. Transactions of a
    replication are left alone; before Hive 4, where nobody tells which those are, transactions without locks are left
    alone too, if anything is replicated into this warehouse.
    """
    from acidctl.metastore.housekeeping import end_dead, find_dead, refuse_where_it_is_done, silent_for
    from acidctl.metastore.server import find_switches

    silent = silent_for(older_than, find_switches(metastore))
    if not force:
        refuse_where_it_is_done(metastore, _warn_of_silent)
    dead = find_dead(metastore, silent)
    results = Results(output)
    for txn in dead.kept:
        text, record = _client(txn, txn.started, dead.by_txn.get(txn.id, ()), dead.now)
        results.put({**record, "result": "kept"}, f"{text}; left alone: it is, or may be, of a replication")
    if not dead.txns and not dead.locks:
        if results.is_table:
            note(f"nothing is silent for {age_text(silent)} or longer")
        return ExitStatus.DONE
    if results.is_only_planned(_clients(dead), _counts(dead), "End", "ended", dry_run=dry_run, yes=yes):
        return ExitStatus.DONE
    ended = end_dead(metastore, dead, silent)
    ids = set()
    for _, record in _clients(ended):
        ids.add((record["id"], record["lock"]))
        results.put({**record, "result": "ended"})
    alive = [record for _, record in _clients(dead) if (record["id"], record["lock"]) not in ids]
    for record in alive:
        results.put({**record, "result": "alive"})
    results.say(f"{_counts(ended) or 'nothing'} ended")
    if alive:
        note(f"{len(alive)} gave a sign of life, or ended, meanwhile")
    return ExitStatus.DONE


def _warn_of_silent(url: str) -> None:
    warn(f"{url} does not answer: whether it keeps house is not known")


def _counts(dead: Dead) -> str:
    parts = ((dead.txns, "transaction"), (dead.locks, "lock"))
    return " and ".join(human_count(len(some), noun) for some, noun in parts if some)


def _clients(dead: Dead) -> Iterator[tuple[str, Record]]:
    for txn in dead.txns:
        locks = dead.by_txn.get(txn.id, ())
        text, record = _client(txn, txn.started, locks, dead.now)
        yield f"{text}; {locks_text(locks) or 'no locks'}", record
    for lock in dead.locks:
        text, record = _client(lock, lock.acquired, (lock,), dead.now)
        yield f"{text}; {locks_text((lock,))}", {**record, "id": None, "lock": lock.id, "type": None}


def _client(client: Txn | Lock, begun: float | None, locks: Sequence[Lock], now: float) -> tuple[str, Record]:
    age, silent = (None if when is None else max(now - when, 0.0) for when in (begun, client.last_heartbeat))
    noun = "lock" if client in locks else "transaction"
    text = (
        f"{noun} {client.id} of {client.user}@{client.host}: begun {age_text(age)} ago, silent for {age_text(silent)}"
    )
    return text, {
        "id": client.id,
        "lock": None,
        "user": client.user,
        "host": client.host,
        "agent": client.agent or None,
        "started": time_of(begun),
        "lastHeartbeat": time_of(client.last_heartbeat),
        "silent": whole(silent),
        "type": client.type,
        "locks": list(map(lock_record, locks)),
    }
