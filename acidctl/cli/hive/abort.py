"""`acidctl hive abort`: End transactions; take compactions out of the queue."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import click

from acidctl.base.errors import AcidctlError, RefusedError, UsageProblem
from acidctl.cli.hive.records import Record, Results, entry_record, locks_text, refuse, sentence, some, txn_record
from acidctl.cli.options import shared
from acidctl.cli.options.asked_metastore import asked_metastore
from acidctl.cli.options.help_pages import ExampledGroup, GroupedCommand
from acidctl.cli.options.param_types import NumberType
from acidctl.cli.output.command_lines import hive_line
from acidctl.cli.output.console import note
from acidctl.wording import age_text, human_count

if TYPE_CHECKING:
    from acidctl.metastore.activity import KnownTxns, Txn
    from acidctl.metastore.client import Metastore
    from acidctl.metastore.queue import Compaction

_common = shared.together(
    click.argument("ids", nargs=-1, required=True, type=NumberType("ID", 1)),
    click.option("-n", "--dry-run", is_flag=True, help="Show what would be ended and stop."),
    shared.yes_option,
    asked_metastore,
    shared.output_option("table", "json", "jsonl", default="table"),
)


@click.group("abort", cls=ExampledGroup, no_args_is_help=True)
def command() -> None:
    """End transactions, or take compactions that wait out of the queue, after showing what they are."""


@command.command("txn", cls=GroupedCommand, short_help="Abort transactions by their ids.")
@_common
def txn_command(ids: tuple[int, ...], dry_run: bool, yes: bool, metastore: Metastore, output: str) -> int:
    """Abort open transactions: what they wrote is never read, and their locks are released.

    What each is doing is shown first. If an id is not that of an open transaction, none is aborted. A running query
    fails at its next call to the metastore.
    """
    from acidctl.metastore.activity import find_locks, find_transactions, locks_by_txn
    from acidctl.metastore.housekeeping import abort_txn

    known, by_txn = find_transactions(metastore), locks_by_txn(find_locks(metastore))
    txns = {txn.id: txn for txn in known.txns}
    refuse({f"transaction {id_}": _why_not_open(id_, txns.get(id_), known) for id_ in ids})
    records = {id_: txn_record(txns[id_], known, by_txn.get(id_, ())) for id_ in ids}

    def text(txn: Record) -> str:
        return sentence(
            f"transaction {txn['id']} of {txn['user']}@{txn['host']}",
            f"open for {age_text(txn['age'])}, last heartbeat {age_text(txn['silent'])} ago",
            *(f"{name} {txn[name]}" for name in ("type", "query", "agent") if txn[name]),
            locks_text(txn["locks"]) or "no locks",
        )

    results, what = Results(output), human_count(len(records), "transaction")
    items = [(text(record), record) for record in records.values()]
    if results.is_only_planned(items, what, "Abort", "aborted", dry_run=dry_run, yes=yes):
        return results.status

    def end(id_: int) -> tuple[str, str]:
        return ("aborted", "") if abort_txn(metastore, id_) else ("gone", "it was committed or ended meanwhile")

    return _end(records, end, results, "transaction")


def _why_not_open(id_: int, txn: Txn | None, known: KnownTxns) -> str:
    if txn is None and id_ > known.high_watermark:
        return f"was never opened: the newest is {known.high_watermark}"
    if txn is None:
        return "is not open: it was committed, or aborted and forgotten"
    return "" if txn.state.value == "open" else "is not open: it is aborted"


@command.command("compaction", cls=GroupedCommand, short_help="Take compactions that wait out of the queue (Hive 4).")
@_common
def compaction_command(ids: tuple[int, ...], dry_run: bool, yes: bool, metastore: Metastore, output: str) -> int:
    """Take entries that are initiated, and that no worker has taken, out of the metastore's queue.

    Entries in other states cannot be taken out; the message says what to do about them. It needs Hive 4.
    """
    from acidctl.metastore.activity import find_transactions
    from acidctl.metastore.queue import abort_compactions, find_compactions

    if not metastore.features.txn_types:
        raise UsageProblem(
            f"the metastore {metastore.shown} cannot take a compaction out of its queue",
            "that came with Hive 4",
            "let a worker take it: where nothing is left to compact it ends at once; or set no_auto_compaction",
        )
    now = find_transactions(metastore).now
    entries = {entry.id: entry for entry in find_compactions(metastore)}
    refuse({f"compaction {id_}": _why_not_waiting(entries.get(id_)) for id_ in ids})
    records = {id_: entry_record(entries[id_], now) for id_ in ids}

    def text(entry: Record) -> str:
        by = f"; asked for by {entry['initiator']}" if entry["initiator"] else ""
        pool = f" in the pool {entry['pool']}" if entry["pool"] else ""
        waits = f"which waits{pool} for {age_text(entry['age'])}{by}"
        return f"compaction {entry['id']}: {entry['kind']} of {entry['on']}, {waits}"

    results, what = Results(output), human_count(len(records), "compaction")
    items = [(text(record), record) for record in records.values()]
    if results.is_only_planned(items, what, "Take out", "taken out of the queue", dry_run=dry_run, yes=yes):
        return results.status
    answers = abort_compactions(metastore, list(records))

    def end(id_: int) -> tuple[str, str]:
        is_done, message = answers.get(id_, (False, "the metastore said nothing of it"))
        if not is_done:
            raise RefusedError(f"compaction {id_} was not taken out", message, "see `acidctl hive compactions`")
        return "aborted", ""

    return _end(records, end, results, "compaction")


def _why_not_waiting(entry: Compaction | None) -> str:
    from acidctl.metastore.queue import INITIATED, READY, WORKING

    if entry is None:
        return "is not there"
    if entry.state == WORKING:
        txn = f": {hive_line('abort', 'txn', str(entry.txn))} ends it" if entry.txn else ""
        return f"of {entry.name} is at work with {entry.worker or 'a worker'}{txn}"
    if entry.state == READY:
        return f"of {entry.name} is done, and waits for the cleaner: {hive_line('txns', '--blocking')} says for whom"
    return "" if entry.state == INITIATED else f"of {entry.name} is over: {entry.state}"


def _end(records: Mapping[int, Record], end: Callable[[int], tuple[str, str]], results: Results, noun: str) -> int:
    """End each item and print the result; a failure does not stop the others, except if the server cannot be reached.

    Args:
        end: returns the result of an item, and different words for people, if any.
    """
    from acidctl.metastore.errors import Unreachable, Unreadable

    remaining = dict(records)
    for id_, record in records.items():
        del remaining[id_]
        try:
            result, words = end(id_)
            results.put({**record, "result": result}, f"{noun} {id_}: {words or result}")
        except AcidctlError as error:
            results.failed(f"{noun} {id_}", error, record)
            if isinstance(error, Unreachable | Unreadable):
                if remaining:
                    count = human_count(len(remaining), noun)
                    note(f"{count} not asked for any more: {some(list(map(str, remaining)))}")
                break
    return results.status
