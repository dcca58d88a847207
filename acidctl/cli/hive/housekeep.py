"""`acidctl hive housekeep`: end transactions and locks of dead clients, where the metastore does not do it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from acidctl.cli.hive.records import Record, Results, lock_record, locks_text, whole
from acidctl.cli.options import shared
from acidctl.cli.options.asked_metastore import asked_metastore
from acidctl.cli.options.param_types import DURATION
from acidctl.cli.output.console import note, warn
from acidctl.errors import ExitStatus
from acidctl.wording import age_text, human_count, time_of

if TYPE_CHECKING:
    from acidctl.metastore.activity import Lock, Txn
    from acidctl.metastore.client import Metastore
    from acidctl.metastore.housekeeping import Dead


@shared.command(
    "housekeep",
    "acidctl hive housekeep --dry-run",
    "acidctl hive housekeep --yes",
    "acidctl hive housekeep --yes --older-than 1h --exit-code -o jsonl",
)
@click.option(
    "--older-than", type=DURATION, metavar="TIME", help="Only those that are silent for so long; the server's time-out."
)
@click.option("-n", "--dry-run", is_flag=True, help="Show what would be ended and stop.")
@shared.yes_option
@shared.typed_option("--force", is_flag=True, help="Do it even though the server says that it does it itself.")
@shared.exit_code_option
@asked_metastore
@shared.output_option("table", "json", "jsonl", default="table")
def command(
    older_than: float | None,
    dry_run: bool,
    yes: bool,
    force: bool,
    exit_code: bool,
    metastore: Metastore,
    output: str,
) -> int:
    """Abort transactions and release locks that gave no sign of life for the server's time-out.

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
        text = f"{_text(txn, dead)}; left alone: it is, or may be, of a replication"
        results.put({**_record(txn, dead), "result": "kept"}, text)
    if not dead.txns and not dead.locks:
        if results.is_table:
            note(f"nothing is silent for {age_text(silent)} or longer")
        return ExitStatus.NOTHING_TO_DO if exit_code else ExitStatus.DONE
    texts = (f"{_text(one, dead)}; {locks_text(_locks(one, dead)) or 'no locks'}" for one in _all(dead))
    shown = zip(texts, (_record(one, dead) for one in _all(dead)), strict=True)
    if results.is_only_planned(shown, _counts(dead), "End", "ended", dry_run=dry_run, yes=yes):
        return ExitStatus.DONE
    ended = end_dead(metastore, dead, silent)
    for one in _all(ended):
        results.put({**_record(one, ended), "result": "ended"})
    ids = {(type(one), one.id) for one in _all(ended)}
    alive = [one for one in _all(dead) if (type(one), one.id) not in ids]
    for one in alive:
        results.put({**_record(one, dead), "result": "alive"})
    results.say(f"{_counts(ended) or 'nothing'} ended")
    if alive:
        note(f"{len(alive)} gave a sign of life, or ended, meanwhile")
    return ExitStatus.DONE


def _warn_of_silent(url: str) -> None:
    warn(f"{url} does not answer: whether it keeps house is not known")


def _all(dead: Dead) -> Iterator[Txn | Lock]:
    yield from dead.txns
    yield from dead.locks


def _counts(dead: Dead) -> str:
    parts = ((dead.txns, "transaction"), (dead.locks, "lock"))
    return " and ".join(human_count(len(some), noun) for some, noun in parts if some)


def _locks(one: Txn | Lock, dead: Dead) -> tuple[Lock, ...]:
    from acidctl.metastore.activity import Lock

    return (one,) if isinstance(one, Lock) else dead.by_txn.get(one.id, ())


def _begun(one: Txn | Lock) -> float | None:
    from acidctl.metastore.activity import Lock

    return one.acquired if isinstance(one, Lock) else one.started


def _since(moment: float | None, dead: Dead) -> float | None:
    return None if moment is None else max(dead.now - moment, 0.0)


def _text(one: Txn | Lock, dead: Dead) -> str:
    from acidctl.metastore.activity import Lock

    noun = "lock" if isinstance(one, Lock) else "transaction"
    begun, silent = age_text(_since(_begun(one), dead)), age_text(_since(one.last_heartbeat, dead))
    return f"{noun} {one.id} of {one.user}@{one.host}: begun {begun} ago, silent for {silent}"


def _record(one: Txn | Lock, dead: Dead) -> Record:
    from acidctl.metastore.activity import Lock

    is_lock = isinstance(one, Lock)
    return {
        "id": None if is_lock else one.id,
        "lock": one.id if is_lock else None,
        "user": one.user,
        "host": one.host,
        "agent": one.agent or None,
        "started": time_of(_begun(one)),
        "lastHeartbeat": time_of(one.last_heartbeat),
        "silent": whole(_since(one.last_heartbeat, dead)),
        "type": None if isinstance(one, Lock) else one.type,
        "locks": [lock_record(lock) for lock in _locks(one, dead)],
    }
