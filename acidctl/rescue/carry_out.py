"""Carry plans out over thrift, under the locks of their tables. Nothing is removed, dropped or lowered.

Each step may be repeated: a later run asks what was given, and ends the transactions that an interrupted one left.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace

from acidctl.acid.names import unescape
from acidctl.base.errors import ConflictError, RefusedError
from acidctl.cleaning.trash import TrashRun
from acidctl.location.change.journal import do
from acidctl.location.change.lock import Locking
from acidctl.location.change.own_files import new_run_id
from acidctl.location.change.work_log import LogEntry, log_done
from acidctl.location.snapshot import take_snapshot
from acidctl.location.warehouse import require_same
from acidctl.metastore import interface
from acidctl.metastore.client import Metastore, batches
from acidctl.metastore.errors import LostTransaction, MetastoreError, UnknownMethod
from acidctl.metastore.interface import LockType, Operation, TxnType
from acidctl.metastore.queue import WORKING, find_compactions
from acidctl.metastore.tables import BATCH, get_table
from acidctl.metastore.transactions import Transactions, given_txn, given_write_id
from acidctl.metastore.txn.transaction import Heartbeats, LockedTransaction, client_names
from acidctl.outcome import Result
from acidctl.rescue.look import Place, locks_of_dead, look_at, partitions_of, unfinished
from acidctl.rescue.plan import RescuePlan, Wishes, plan_rescue
from acidctl.writing.places import partition_to_add
from acidctl.writing.transaction import Statement, WriteTransaction, raw_table

_AT_ONCE = 500
"""Transactions in one call."""

_MOST_ONE_BY_ONE = 1_000_000
"""Transactions that are used up where the metastore cannot skip them (Hive 3)."""

_GAP = 1.3
"""Seconds after which transaction ids that were passed over no longer count as open (Hive 4)."""


@dataclass(frozen=True, slots=True)
class How:
    """How a rescue is carried out.

    Attributes:
        wait: seconds to wait for writers, and for the lock.
        locking: how the directories of the tables are locked.
    """

    wait: float
    locking: Locking


def carry_out(metastore: Metastore, plans: Sequence[RescuePlan], how: How) -> Iterator[RescuePlan]:
    """Carry plans out, and yield each as it was done.

    All tables are locked first, since the sequence of transactions is raised for all of them.

    Raises:
        ConflictError: a table is being written to, or is not what it was when it was planned.
        MetastoreError: the metastore cannot be reached, or failed; run it again.
        RefusedError: Hive 3 would need too many transactions.
    """
    run_id, sequence = new_run_id(), max(plan.sequence for plan in plans)
    if sequence and not metastore.features.txn_types and sequence - given_txn(metastore) > _MOST_ONE_BY_ONE:
        why = f"Hive 3 opens them one by one, and a rescue opens {_MOST_ONE_BY_ONE} at most"
        hint = "Hive 3 reads no names that end in _vN: rename directories that are known to be good without it"
        raise RefusedError(f"transactions up to {sequence} cannot be used up", why, hint)
    with ExitStack() as stack:
        for plan in plans:
            stack.enter_context(how.locking.at(plan.place.fs, plan.place.root))
            for folder in dict.fromkeys(path.rpartition("/")[0] for path in plan.aside):
                if folder:  # a compaction of a partition locks that alone
                    stack.enter_context(how.locking.at(*plan.place.at(folder)))
        heartbeats = Heartbeats(metastore)
        stack.callback(heartbeats.close)
        resumed = {
            plan.location
            for plan in plans
            # Without a lock of the directory, the other run may be alive.
            if plan.place.fs.can_lock and how.locking.hold is not False and _end_locks_of_dead(metastore, plan)
        }
        parts = [
            interface.LockComponent(LockType.EXCLUSIVE, database=plan.place.table.database, table=plan.place.table.name)
            for plan in plans
        ]
        held = LockedTransaction(metastore, heartbeats, parts, TxnType.DEFAULT, wait=how.wait, role="rescue-lock")
        stack.callback(held.release)
        for plan in plans:
            table = plan.place.table
            require_same(table, get_table(metastore, table.database, table.name))
            if plan.location not in resumed:
                _require_unchanged(metastore, plan)
            _wait_for_writers(metastore, plan.place, how.wait)
            _require_no_compaction(metastore, plan)
        for plan in plans:
            if plan.aside and not plan.raise_to:  # first, since a later run cannot know what was taken aside
                _give_up_statistics(metastore, plan, held.id)
            _take_aside(plan, run_id)
        raise_sequence(metastore, sequence)
        for plan in plans:
            yield _mended(metastore, plan, held, how.locking)


def _end_locks_of_dead(metastore: Metastore, plan: RescuePlan) -> bool:
    """End the transactions of an interrupted rescue that hold, or wait for, locks of the table.

    Besides its own lock, these are transactions that it had begun to abort. Return whether there were any.
    """
    dead = locks_of_dead(metastore, plan.place)
    for txn, is_whole in dead:
        commit = not is_whole and not set(_allocated(metastore, plan.place, (txn,))) & set(plan.aborted)
        _end(metastore, txn, commit=commit)
    return bool(dead)


def _require_unchanged(metastore: Metastore, plan: RescuePlan) -> None:
    now = plan_rescue(plan.place, replace(look_at(metastore, plan.place), before=plan.look), plan.wishes)
    if now.digest != plan.digest:
        why = "directories, or the ids that were given, are not those of the plan"
        raise ConflictError(f"{plan.location} changed since it was planned", why, "stop all writers, and plan again")


def _wait_for_writers(metastore: Metastore, place: Place, wait: float) -> None:
    """Wait until nobody else has an open write id of the table: its writer goes on once the lock is released.

    Raises:
        ConflictError: somebody still has one after the time to wait.
    """
    until, pause = time.monotonic() + wait, 0.05
    dead = unfinished(metastore, place)
    own = set(_allocated(metastore, place, dead) if dead else ())
    # Hive 4 lists the lowest open id alone; a writer above our own has none of the files' ids.
    while ids := [id_ for id_ in Transactions(metastore).write_ids(place.table.full_name).open if id_ not in own]:
        if time.monotonic() >= until:
            raise ConflictError(
                f"{place.table.full_name} is being written to",
                f"the write id {ids[-1]} is open, and its writer would destroy files when this rescue has ended",
                "nothing was changed; end its transaction, see `acidctl hive locks`, and run it again",
            )
        time.sleep(min(pause, max(until - time.monotonic(), 0.0)))
        pause = min(2 * pause, 5.0)


def _require_no_compaction(metastore: Metastore, plan: RescuePlan) -> None:
    """Refuse to take aside what a compaction may be reading: its rows would come back with the result."""
    table = plan.place.table
    queue = find_compactions(metastore, database=table.database, table=table.name) if plan.aside else ()
    if any(entry.state == WORKING for entry in queue):
        why, hint = "its result would hold the rows that are taken aside", "stop Hive's Worker, and run it again"
        raise ConflictError(f"{plan.location} is being compacted", why, f"nothing was changed; {hint}")


def _take_aside(plan: RescuePlan, run_id: str) -> None:
    """Move directories to the trash of their locations, from which `acidctl restore` brings them back."""
    folders: dict[str, list[str]] = {}
    for path in plan.aside:
        folder, _, name = path.rpartition("/")
        folders.setdefault(folder, []).append(name)
    for folder, names in folders.items():
        fs, location = plan.place.at(folder)
        snapshot = take_snapshot(fs, location)
        size = sum(entry.size for entry in snapshot.listing.entries if entry.path.partition("/")[0] in names)
        run = TrashRun.of(snapshot, tuple(names), size, run_id)
        run.write_note(fs)
        for step in run.steps:
            do(fs, location, step)


def raise_sequence(metastore: Metastore, to: int) -> None:
    """Use up the transaction ids up to a number, so that they count as committed; without effect if they were given.

    Raises:
        MetastoreError: the metastore failed, or did not reach the number.
    """
    if not to or given_txn(metastore) >= to:
        return
    if metastore.features.txn_types:
        with suppress(UnknownMethod):  # the ids are never open, so a death leaves none to be aborted
            metastore.call(interface.SEED_TXN_ID, interface.SeedTxnIdRequest(to + 1))
            for txn in _opened(metastore, 1, "rescue-sequence"):
                _end(metastore, txn, commit=True)
            time.sleep(_GAP)
    while (now := given_txn(metastore)) < to:
        for txn in _opened(metastore, min(to - now, _AT_ONCE), "rescue-sequence"):
            _end(metastore, txn, commit=True)


def _mended(metastore: Metastore, plan: RescuePlan, held: LockedTransaction, locking: Locking) -> RescuePlan:
    place = plan.place
    if plan.raise_to:
        raise_write_ids(metastore, plan)
        if plan.aside:  # all ids that were given may be aborted ones
            _give_up_statistics(metastore, plan, held.id)
    _add_partitions(metastore, plan)
    held.check()
    left = plan_rescue(place, replace(look_at(metastore, place), before=plan.look), Wishes())
    facts = {"given": plan.given, "raised": plan.raise_to, "sequence": plan.sequence, "aborted": len(plan.aborted)}
    entry = LogEntry("rescue", Result.REPAIRED.value, facts={**facts, "names": [*plan.aside, *plan.partitions]})
    log_done(place.fs, place.root, entry, locking.tell)
    if left.has_work:
        why = left.findings[0].why
        raise ConflictError(f"{plan.location} still disagrees with its files", why, "run it again")
    return replace(plan, result=Result.REPAIRED, findings=left.findings)


def raise_write_ids(metastore: Metastore, plan: RescuePlan) -> None:
    """Give write ids up to that of the plan: aborted ones with a component, the others committed, the oldest first.

    What an interrupted run left open is ended first, in the same way.

    Raises:
        ConflictError: somebody else was given one of the ids.
    """
    table, has_statistics = plan.place.table, True
    txns: Sequence[int] = unfinished(metastore, plan.place)
    expected: list[int] = []
    while True:
        if not txns:
            given = given_write_id(metastore, table.database, table.name)
            if given >= plan.raise_to:
                return
            expected = list(range(given + 1, min(given + _AT_ONCE, plan.raise_to) + 1))
            txns = _opened(metastore, len(expected), plan.place.role)
        by_id = _allocated(metastore, plan.place, txns)
        if expected and sorted(by_id) != expected:
            for txn in by_id.values():
                _end(metastore, txn, commit=False)
            why = f"it was given a write id between {expected[0]} and {expected[-1]} meanwhile"
            raise ConflictError(f"somebody else writes to {table.full_name}", why, "stop all writers, and look again")
        committed = {id_: txn for id_, txn in sorted(by_id.items()) if id_ not in plan.aborted}
        for id_, txn in by_id.items():
            if id_ not in committed:
                _abort_for_good(metastore, plan.place, txn)
        if committed and has_statistics:
            _give_up_statistics(metastore, plan, next(iter(committed.values())))
            has_statistics = False
        for txn in committed.values():
            _end(metastore, txn, commit=True)
        txns = ()


def _allocated(metastore: Metastore, place: Place, txns: Sequence[int]) -> dict[int, int]:
    """Return transactions by their write ids of the table; one that has an id keeps it."""
    request = interface.AllocateWriteIdsRequest(place.table.database, place.table.name, tuple(txns))
    return {one.write_id: one.txn for one in metastore.call(interface.ALLOCATE_WRITE_IDS, request).write_ids}


def _abort_for_good(metastore: Metastore, place: Place, txn: int) -> None:
    """Abort a transaction with a component: without one the metastore forgets it, and its rows appear.

    The lock need not be acquired: its request is the component.
    """
    part = interface.LockComponent(
        LockType.SHARED_WRITE, database=place.table.database, table=place.table.name, operation=Operation.INSERT
    )
    agent, host = client_names(place.role)
    user = metastore.settings.user_name
    metastore.call(interface.LOCK, interface.LockRequest((part,), txn, user, host, agent, None))
    _end(metastore, txn, commit=False)


def _give_up_statistics(metastore: Metastore, plan: RescuePlan, txn: int) -> None:
    """Call statistics no longer accurate, under the write id of a transaction: Hive 4 counts rows by them alone."""
    table = plan.place.table
    writer = WriteTransaction(metastore, table, Statement(Operation.INSERT))
    with ExitStack() as stack:
        stack.push(writer)
        writer.borrow(txn)
        changed = {
            folder.name
            for folder in plan.look.folders
            for d in folder.directories
            if d.max_write_id > plan.given or folder.path(d.name) in plan.aside
        }
        names = partitions_of(metastore, table) if table.partition_keys else {}
        writer.give_up_statistics([name for folder, name in names.items() if folder in changed])


def _add_partitions(metastore: Metastore, plan: RescuePlan) -> None:
    """Add the partitions whose folders are there; one that exists already stays as it is."""
    if not plan.partitions:
        return
    table = plan.place.table
    raw = raw_table(metastore, table)
    made = [
        partition_to_add(
            table,
            raw,
            f"{table.location.rstrip('/')}/{folder}",
            [unescape(part.partition("=")[2]) for part in folder.split("/")],
        )
        for folder in plan.partitions
    ]
    for batch in batches(made, BATCH):
        request = interface.AddPartitionsRequest(table.database, table.name, tuple(batch))
        metastore.call(interface.ADD_PARTITIONS, request)


def _opened(metastore: Metastore, count: int, role: str) -> tuple[int, ...]:
    """Open transactions under a name by which a later run finds them."""
    agent, host = client_names(role)
    kind = TxnType.DEFAULT if metastore.features.txn_types else None
    request = interface.OpenTxnRequest(count, metastore.settings.user_name, host, agent, kind)
    txns: tuple[int, ...] = tuple(metastore.call(interface.OPEN_TXNS, request).txn_ids)
    if len(txns) != count or min(txns) < 1:
        what, why = f"the metastore {metastore.shown} opened no transactions", f"it gave {len(txns)} for {count}"
        raise MetastoreError(what, why, "see the metastore's log")
    return txns


def _end(metastore: Metastore, txn: int, *, commit: bool) -> None:
    """End a transaction that may have ended already."""
    method, request = interface.ABORT_TXN, interface.AbortTxnRequest(txn)
    if commit:
        metastore.call(interface.COMMIT_TXN, interface.CommitTxnRequest(txn))
        return
    with suppress(LostTransaction):
        metastore.insist(method, request)
