"""`acidctl hive abort`: End transactions; take compactions out of the queue."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import click

from acidctl.base.errors import AcidctlError, RefusedError, UsageProblem
from acidctl.cli.hive.records import Record, Results, entry_record, locks_text, refuse, sentence, some, txn_record
from acidctl.cli.options import shared
from acidctl.cli.options.asked_metastore import asked_metastore
from acidctl.cli.options.param_types import NumberType
from acidctl.cli.output.console import note
from acidctl.wording import age_text, human_count

if TYPE_CHECKING:
    from acidctl.metastore.activity import KnownTxns, Txn
    from acidctl.metastore.client import Metastore
    from acidctl.metastore.queue.compactions import Compaction

_common = shared.together(
    click.argument("ids", nargs=-1, required=True, type=NumberType("ID", 1)),
    click.option("-n", "--dry-run", is_flag=True, help="Show what would be ended and stop."),
    shared.yes_option,
    asked_metastore,
    shared.output_option("table", "json", "jsonl", default="table"),
)


@click.group(
    "abort",
    epilog=shared.examples("acidctl hive abort txn 812", "acidctl hive abort compaction --yes 17 18"),
    no_args_is_help=True,
)
def command() -> None:
    """End transactions, or take compactions that wait out of the queue, after showing what they are."""


@shared.command(
    "txn",
    "acidctl hive abort txn 812",
    "acidctl hive abort txn --dry-run 812 813",
    group=command,
    short_help="Abort transactions by their ids.",
)
@_common
def txn_command(ids: tuple[int, ...], dry_run: bool, yes: bool, metastore: Metastore, output: str) -> int:
    """Abort open transactions: nothing of what they wrote will ever be read, and their locks go.

    What each is doing is shown first. Where an id is not that of an open transaction, none is aborted. A query that is
    at work fails when it next asks the metastore.
    """
    from acidctl.metastore.activity import find_locks, find_transactions, locks_by_txn
    from acidctl.metastore.housekeeping import abort_txn

    known, by_txn = find_transactions(metastore), locks_by_txn(find_locks(metastore))
    txns = {txn.id: txn for txn in known.txns}
    ids = tuple(dict.fromkeys(ids))
    refuse([(f"transaction {id_}", why) for id_ in ids if (why := _why_not_open(id_, txns.get(id_), known))])
    texts = [_txn_text(txns[id_], known, locks_text(by_txn.get(id_, ()))) for id_ in ids]
    records = {id_: txn_record(txns[id_], known, by_txn.get(id_, ())) for id_ in ids}
    results, what = Results(output), human_count(len(ids), "transaction")
    shown = zip(texts, records.values(), strict=True)
    if results.is_only_planned(shown, what, "Abort", "aborted", dry_run=dry_run, yes=yes):
        return results.status

    def end(id_: int) -> tuple[str, str]:
        return ("aborted", "") if abort_txn(metastore, id_) else ("gone", "it was committed or ended meanwhile")

    return _end(records, end, results, "transaction")


def _why_not_open(id_: int, txn: Txn | None, known: KnownTxns) -> str:
    if txn is None:
        if id_ > known.high_watermark:
            return f"was never opened: the newest is {known.high_watermark}"
        return "is not open: it was committed, or aborted and forgotten"
    return "" if txn.state.value == "open" else "is not open: it is aborted"


def _txn_text(txn: Txn, known: KnownTxns, locks: str) -> str:
    return sentence(
        f"transaction {txn.id} of {txn.user}@{txn.host}",
        f"open for {age_text(known.age(txn.started))}, last heartbeat {age_text(known.age(txn.last_heartbeat))} ago",
        f"type {txn.type}" if txn.type else "",
        f"query {txn.query}" if txn.query else "",
        f"agent {txn.agent}" if txn.agent else "",
        locks or "no locks",
    )


@shared.command(
    "compaction",
    "acidctl hive abort compaction 17",
    "acidctl hive abort compaction --yes -o json 17 18",
    group=command,
    short_help="Take compactions that wait out of the queue (Hive 4).",
)
@_common
def compaction_command(ids: tuple[int, ...], dry_run: bool, yes: bool, metastore: Metastore, output: str) -> int:
    """Take entries that are initiated, and that no worker has taken, out of the metastore's queue.

    Entries in other states cannot be taken out, and what can be done about them is said. Servers before Hive 4 cannot
    do it at all.
    """
    from acidctl.metastore.activity import find_transactions
    from acidctl.metastore.queue.compactions import abort_compactions, find_compactions

    if not metastore.features.txn_types:
        raise UsageProblem(
            f"the metastore {metastore.shown} cannot take a compaction out of its queue",
            "that came with Hive 4",
            "let a worker take it: where nothing is left to compact it ends at once; or set no_auto_compaction",
        )
    known = find_transactions(metastore)
    entries = {entry.id: entry for entry in find_compactions(metastore)}
    ids = tuple(dict.fromkeys(ids))
    refuse([(f"compaction {id_}", why) for id_ in ids if (why := _why_not_waiting(entries.get(id_)))])
    records = {id_: entry_record(entries[id_], known.now) for id_ in ids}
    results, what = Results(output), human_count(len(ids), "compaction")
    shown = zip([_entry_text(entries[id_], known) for id_ in ids], records.values(), strict=True)
    if results.is_only_planned(shown, what, "Take out", "taken out of the queue", dry_run=dry_run, yes=yes):
        return results.status
    answers = abort_compactions(metastore, ids)

    def end(id_: int) -> tuple[str, str]:
        is_done, message = answers.get(id_, (False, "the metastore said nothing of it"))
        if not is_done:
            raise RefusedError(f"compaction {id_} was not taken out", message, "see `acidctl hive compactions`")
        return "aborted", ""

    return _end(records, end, results, "compaction")


def _entry_text(entry: Compaction, known: KnownTxns) -> str:
    by = f"; asked for by {entry.initiator}" if entry.initiator else ""
    pool = f" in the pool {entry.pool}" if entry.pool else ""
    age = age_text(known.age(entry.enqueued))
    return f"compaction {entry.id}: {entry.kind} of {entry.name}, which waits{pool} for {age}{by}"


def _why_not_waiting(entry: Compaction | None) -> str:
    from acidctl.metastore.queue.compactions import INITIATED, READY, WORKING

    if entry is None:
        return "is not there"
    if entry.state == INITIATED:
        return ""
    if entry.state == WORKING:
        txn = f": acidctl hive abort txn {entry.txn} ends it" if entry.txn else ""
        return f"of {entry.name} is at work with {entry.worker or 'a worker'}{txn}"
    if entry.state == READY:
        return f"of {entry.name} is done, and waits for the cleaner: acidctl hive txns --blocking says for whom"
    return f"of {entry.name} is over: {entry.state}"


def _end(records: Mapping[int, Record], end: Callable[[int], tuple[str, str]], results: Results, noun: str) -> int:
    """End each item and print the result; a failure does not stop the others, except if the server cannot be reached.

    Args:
        end: returns the result of an item, and different words for people, if any.
    """
    from acidctl.metastore.errors import Unreachable, Unreadable

    remaining: Sequence[int] = list(records)
    for id_, record in records.items():
        remaining = remaining[1:]
        try:
            result, words = end(id_)
        except AcidctlError as error:
            results.failed(f"{noun} {id_}", error, record)
            if isinstance(error, Unreachable | Unreadable):
                if remaining:
                    ids = some(list(map(str, remaining)))
                    note(f"{human_count(len(remaining), noun)} not asked for any more: {ids}")
                break
        else:
            results.put({**record, "result": result}, f"{noun} {id_}: {words or result}")
    return results.status
