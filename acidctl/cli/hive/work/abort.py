"""What `acidctl hive abort` does: show what would be ended, ask, end it, and tell what became of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from acidctl.cli.hive.work.compactions import record_of
from acidctl.cli.hive.work.listed import Record, lock_record, locks_text, some
from acidctl.cli.hive.work.txns import txn_record
from acidctl.cli.options.many_locations import Procedure
from acidctl.cli.output.console import Records, note, put_text
from acidctl.cli.report.outcomes import show_failure
from acidctl.errors import AcidctlError, ExitStatus, RefusedError, UsageProblem
from acidctl.metastore.activity import KnownTxns, Txn, TxnStatus, find_locks, find_transactions, locks_by_txn
from acidctl.metastore.client import Metastore
from acidctl.metastore.errors import Unreachable, Unreadable
from acidctl.metastore.housekeeping import abort_txn
from acidctl.metastore.queue.compactions import (
    INITIATED,
    READY,
    WORKING,
    Compaction,
    abort_compactions,
    find_compactions,
)
from acidctl.wording import age_text, human_count


def abort_txns(*, ids: tuple[int, ...], dry_run: bool, yes: bool, metastore: Metastore, output: str) -> int:
    """Abort transactions; the exit status."""
    known, by_txn = find_transactions(metastore), locks_by_txn(find_locks(metastore))
    txns = {txn.id: txn for txn in known.txns}
    wanted = list(dict.fromkeys(ids))
    _refuse([(f"transaction {id_}", why) for id_ in wanted if (why := _not_open(id_, txns.get(id_), known))])
    records = Records(output)
    shown: dict[int, Record] = {
        id_: {**txn_record(txns[id_], known), "locks": [lock_record(lock) for lock in by_txn.get(id_, ())]}
        for id_ in wanted
    }
    if output == "table":
        for id_ in wanted:
            put_text(_txn_text(txns[id_], known, locks_text(by_txn.get(id_, ()))))
    if dry_run:
        return _planned(records, shown.values())
    count = human_count(len(wanted), "transaction")
    Procedure(yes).confirm(f"{count} would be aborted", f"Abort {count}?", "nothing was aborted")

    def end(id_: int) -> str:
        return "aborted" if abort_txn(metastore, id_) else "gone"

    return _end(wanted, shown, end, records, output, "transaction", "it was committed or ended meanwhile")


def _refuse(reasons: Sequence[tuple[str, str]]) -> None:
    if reasons:
        what, why = reasons[0]
        more = f"; and {len(reasons) - 1} more like it" if len(reasons) > 1 else ""
        raise RefusedError(f"{what} {why}", f"nothing was ended{more}", "see `acidctl hive txns` and `compactions`")


def _not_open(id_: int, txn: Txn | None, known: KnownTxns) -> str:
    if txn is None:
        if id_ > known.high_watermark:
            return f"was never opened: the newest is {known.high_watermark}"
        return "is not open: it was committed, or aborted and forgotten"
    return "" if txn.state is TxnStatus.OPEN else "is not open: it is aborted"


def _txn_text(txn: Txn, known: KnownTxns, locks: str) -> str:
    parts = [
        f"transaction {txn.id} of {txn.user}@{txn.host}",
        f"open for {age_text(known.age(txn.started))}, last heartbeat {age_text(known.age(txn.last_heartbeat))} ago",
        f"type {txn.type}" if txn.type else "",
        f"query {txn.query}" if txn.query else "",
        f"agent {txn.agent}" if txn.agent else "",
        locks or "no locks",
    ]
    return "; ".join(filter(None, parts))


def _planned(records: Records, shown: Iterable[Record]) -> int:
    for one in shown:
        records.put({**one, "result": "planned"})
    return ExitStatus.DONE


def _end(
    wanted: Sequence[int],
    shown: dict[int, Record],
    end: Callable[[int], str],
    records: Records,
    output: str,
    noun: str,
    gone: str,
) -> int:
    """End each, and say what became of it; one that fails does not keep the others, but a server that is gone does."""
    status = 0
    for place, id_ in enumerate(wanted):
        try:
            result = end(id_)
        except (Unreachable, Unreadable) as error:
            show_failure(f"{noun} {id_}", error)
            records.put({**shown[id_], "result": "failed", "error": error.code})
            if left := wanted[place + 1 :]:
                note(f"{human_count(len(left), noun)} not asked for any more: {some([str(one) for one in left])}")
            return max(status, error.exit_status)
        except AcidctlError as error:
            status = max(status, error.exit_status)
            show_failure(f"{noun} {id_}", error)
            records.put({**shown[id_], "result": "failed", "error": error.code})
            continue
        if output == "table":
            put_text(f"{noun} {id_}: {gone if result == 'gone' else result}")
        records.put({**shown[id_], "result": result})
    return status


# --- compactions ----------------------------------------------------------------------------------------------------


def take_compactions_out(*, ids: tuple[int, ...], dry_run: bool, yes: bool, metastore: Metastore, output: str) -> int:
    """Take entries out of the queue; the exit status."""
    if not metastore.features.txn_types:
        raise UsageProblem(
            f"the metastore {metastore.shown} cannot take a compaction out of its queue",
            "that came with Hive 4",
            "let a worker take it: where nothing is left to compact it ends at once; or set no_auto_compaction",
        )
    known = find_transactions(metastore)
    entries = {one.id: one for one in find_compactions(metastore)}
    wanted = list(dict.fromkeys(ids))
    _refuse([(f"compaction {id_}", why) for id_ in wanted if (why := _not_waiting(entries.get(id_)))])
    records = Records(output)
    shown = {id_: record_of(entries[id_], known.now) for id_ in wanted}
    if output == "table":
        for id_ in wanted:
            one = entries[id_]
            by = f"; asked for by {one.initiator}" if one.initiator else ""
            pool = f" in the pool {one.pool}" if one.pool else ""
            age = age_text(known.age(one.enqueued))
            put_text(f"compaction {id_}: {one.kind} of {one.name}, which waits{pool} for {age}{by}")
    if dry_run:
        return _planned(records, shown.values())
    count = human_count(len(wanted), "compaction")
    Procedure(yes).confirm(f"{count} would be taken out of the queue", f"Take out {count}?", "nothing was taken out")
    done = abort_compactions(metastore, wanted)

    def end(id_: int) -> str:
        is_done, message = done.get(id_, (False, "the metastore said nothing of it"))
        if not is_done:
            raise RefusedError(f"compaction {id_} was not taken out", message, "see `acidctl hive compactions`")
        return "aborted"

    return _end(wanted, shown, end, records, output, "compaction", "")


def _not_waiting(one: Compaction | None) -> str:
    """Why one cannot be taken out, and what can be done; empty where it can."""
    if one is None:
        return "is not there"
    if one.state == INITIATED:
        return ""
    if one.state == WORKING:
        txn = f": acidctl hive abort txn {one.txn} ends it" if one.txn else ""
        return f"of {one.name} is at work with {one.worker or 'a worker'}{txn}"
    if one.state == READY:
        return f"of {one.name} is done, and waits for the cleaner: acidctl hive txns --blocking says for whom"
    return f"of {one.name} is over: {one.state}"
