"""List, request, claim and mark entries of the metastore's queue of compactions and its history.

The server does not check who marks an entry, and mostly not whether it still belongs to the worker: callers check.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from acidctl import __version__
from acidctl.base.errors import AcidctlError, ConflictError, UsageProblem
from acidctl.base.printable import printable
from acidctl.metastore import interface
from acidctl.metastore.activity import OfLocation, seconds
from acidctl.metastore.client import Metastore, batches
from acidctl.metastore.interface import CompactionType
from acidctl.metastore.wire import Method

_STATE_CHARACTERS = {
    "initiated": "i", "working": "w", "ready for cleaning": "r", "succeeded": "s", "failed": "f",
    "did not initiate": "a", "attempted": "a", "refused": "c", "aborted": "x",
}  # fmt: skip
"""States in the words of SHOW COMPACTIONS; Hive 3 writes "attempted" for Hive 4's "did not initiate"."""

INITIATED, WORKING, READY, REFUSED = "initiated", "working", "ready for cleaning", "refused"
WAITING_STATES = (INITIATED, WORKING, READY)
"""States of entries in the queue; the other states belong to the history."""

FAILED_STATES = ("failed", "did not initiate", "attempted", REFUSED, "aborted")

COMPACTIONS = ("minor", "major", "rebalance")
"""Kinds of entries that merge files; others only clean, or belong to other formats."""

_KINDS: dict[int, str] = {kind: kind.name.lower().replace("_", "-") for kind in CompactionType}
_KINDS[6] = "deferred-cleanup"  # DEFERRED_CLEANUP, which no release has yet
_NUMBERS = {name: int(kind) for kind, name in _KINDS.items()}
_UNKNOWN_KIND = re.compile(r"unknown \((\d{1,9})\)")
_REFUSED_BY = re.compile(r"state=['\"]?([a-z ]+)['\"]? and id=(\d+)")
_TEXTS = ("partition", "worker", "job", "run_as", "pool", "initiator")
_TIMES = ("enqueued", "started", "committed", "ended", "cleaner_start")
_AT_ONCE = 1000
_MOST_MESSAGE = 512
_MOST_DIGITS = 10
_NO_POOL = "default"
"""Hive 4's display name for entries without a pool."""

ACIDCTL, AFTER_DEATH = "acidctl", "acidctl.once.more"
"""Names of initiators: for a first request, and for a second one after the worker died."""


@dataclass(frozen=True, slots=True)
class Compaction(OfLocation):
    """An entry of the queue, or of its history.

    Attributes:
        id: 0 before Hive 3.
        kind: major, minor, rebalance, abort-txn-cleanup, smart-optimize, deferred-cleanup; else ``unknown (9)``.
        enqueued, started, committed, ended, cleaner_start: seconds since the epoch; None if not reached or not sent.
        txn: the compaction's transaction; 0 before Hive 4.
        next_txn: the cleaner waits until no transaction below it is open; 0 if it does not wait.
    """

    id: int
    database: str
    table: str
    partition: str
    kind: str
    state: str
    worker: str = ""
    job: str = ""
    run_as: str = ""
    pool: str = ""
    initiator: str = ""
    error: str = ""
    enqueued: float | None = None
    started: float | None = None
    committed: float | None = None
    ended: float | None = None
    cleaner_start: float | None = None
    txn: int = 0
    next_txn: int = 0
    highest_write_id: int = 0

    @property
    def named_pool(self) -> str:
        """The pool as requests name it; empty for entries without one, which Hive 4 shows as ``default``."""
        return "" if self.pool == _NO_POOL else self.pool

    @property
    def since(self) -> float | None:
        """When the entry reached its state; None if the server does not send it."""
        by_state = {INITIATED: self.enqueued, WORKING: self.started, READY: self.committed}
        return by_state.get(self.state, self.ended)

    def as_claimed(self) -> interface.QueueEntry:
        """Return the entry in the form that marks it, as far as a list of the queue has it."""
        partition, pool = self.partition or None, self.named_pool or None
        run_as = None if self.txn else self.run_as or None  # with a transaction, a worker has recorded its own user
        return interface.QueueEntry(
            self.id, self.database, self.table, partition, number_of(self.kind), run_as, pool=pool
        )


@dataclass(frozen=True, slots=True)
class Wish(OfLocation):
    """A request for a compaction.

    Attributes:
        pool, buckets, order_by, run_as: for Hive 4 only.
        initiator: name that the server shows as the source of the request, after the name of this host.
    """

    database: str
    table: str
    partition: str
    kind: str
    pool: str = ""
    properties: tuple[tuple[str, str], ...] = ()
    buckets: int | None = None
    order_by: str = ""
    run_as: str = ""
    initiator: str = ACIDCTL


def kind_of(number: int) -> str:
    """Return the name of a compaction type of the interface; ``unknown (9)`` for a type that is not in it."""
    return _KINDS.get(number, f"unknown ({number})")


def number_of(kind: str) -> int:
    """Return the number of a type from its name by :func:`kind_of`; 0 for any other name."""
    unknown = _UNKNOWN_KIND.fullmatch(kind)
    return int(unknown[1]) if unknown else _NUMBERS.get(kind, 0)


# --- list -------------------------------------------------------------------------------------------------------------


def find_compactions(metastore: Metastore, **wanted: Any) -> list[Compaction]:
    """Return entries of the queue, sorted by id, and then of its history, newest first.

    Args:
        wanted: `id`, `database`, `table`, `pool` and `state` of the entries; None for any.
    """
    request = interface.ShowCompactRequest()
    if metastore.features.txn_types:  # older servers send all entries
        state = wanted.get("state")
        request = interface.ShowCompactRequest(**{**wanted, "state": state and _STATE_CHARACTERS.get(state)})
    entries = [_compaction(info) for info in metastore.call(interface.SHOW_COMPACT, request).entries]
    matching = [entry for entry in entries if is_wanted(entry, wanted)]
    return sorted(matching, key=lambda entry: (0, entry.id) if entry.state in WAITING_STATES else (1, -entry.id))


def find_entry(metastore: Metastore, id_: int) -> Compaction | None:
    """Return an entry as the queue or its history has it now; None if it is gone."""
    return next(iter(find_compactions(metastore, id=id_)), None)


def is_wanted(entry: Compaction, wanted: Mapping[str, Any]) -> bool:
    """Return whether an entry has the attributes that :func:`find_compactions` takes as `wanted`."""

    def has(name: str, value: Any) -> bool:
        if name == "state":
            return _STATE_CHARACTERS.get(entry.state) == _STATE_CHARACTERS.get(value)
        return bool(getattr(entry, name) == value)

    return all(value is None or has(name, value) for name, value in wanted.items())


def _compaction(info: interface.CompactionInfo) -> Compaction:
    error = _text(info.error)
    if info.state in FAILED_STATES:
        error = error or _text(info.meta_info)
    return Compaction(
        id=info.id or 0,
        database=info.database,
        table=info.table,
        kind=kind_of(info.type),
        state=info.state,
        error=error,
        txn=max(info.txn or 0, 0),
        next_txn=max(info.next_txn or 0, 0),
        highest_write_id=max(info.highest_write_id or info.highest_txn or 0, 0),
        **{name: _text(getattr(info, name)) for name in _TEXTS},  # type: ignore[arg-type]
        **{name: seconds(getattr(info, name)) for name in _TIMES},  # type: ignore[arg-type]
    )


def _text(text: str | None) -> str:
    return "" if text in (None, "None", "null", " --- ") else text or ""


# --- request and withdraw ---------------------------------------------------------------------------------------------


def check_wish(metastore: Metastore, wish: Wish) -> None:
    """Refuse a request that this server cannot carry out."""
    of_hive4 = {
        "a rebalance": wish.kind == "rebalance",
        "a pool": wish.pool,
        "a number of buckets": wish.buckets,
        "an order of rows": wish.order_by,
    }
    lacking = [what for what, is_requested in of_hive4.items() if is_requested]
    if lacking and not metastore.features.txn_types:
        raise UsageProblem(
            f"the metastore {metastore.shown} cannot be asked for {' and '.join(lacking)}",
            "that came with Hive 4",
            "ask for a major compaction, which every version does",
        )


def request_compaction(metastore: Metastore, wish: Wish) -> interface.CompactionResponse:
    """Put a request for a compaction into the queue; the answer names the new entry, or the one that is in the way.

    Raises:
        Unreachable: no answer; the server may have accepted the request.
    """
    check_wish(metastore, wish)
    # A worker inserts the order into its query unchanged, and Hive's SQL stores it with the keywords.
    is_short = wish.order_by and not re.match(r"\s*order\s+by\s", wish.order_by, re.IGNORECASE)
    request = interface.CompactionRequest(
        wish.database,
        wish.table,
        wish.partition or None,
        number_of(wish.kind),
        wish.run_as or None,
        properties=dict(wish.properties) or None,
        initiator=f"{socket.gethostname()}-{wish.initiator}",  # Hive splits this into two columns at the last dash
        initiator_version=__version__,
        pool=wish.pool or None,
        buckets=wish.buckets,
        order_by=f"order by {wish.order_by}" if is_short else wish.order_by or None,
    )
    answer: interface.CompactionResponse = metastore.call(interface.COMPACT, request)
    if answer.accepted:
        return replace(answer, state=answer.state or INITIATED)
    if named := _REFUSED_BY.search(answer.message):
        return replace(answer, id=int(named[2]), state=named[1])
    return replace(answer, id=max(answer.id, 0))


def read_properties(text: str) -> tuple[tuple[str, str], ...]:
    """Parse the properties of a queue entry: their number, then each key and value, after its length."""
    rest = text.encode("utf-16-le", "surrogatepass")  # Java counts lengths in UTF-16 units

    def number() -> int:
        nonlocal rest
        digits = rest[: 2 * _MOST_DIGITS].decode("utf-16-le", "replace").partition(":")[0]
        rest = rest[2 * (len(digits) + 1) :]
        return int(digits)

    def part() -> str:
        nonlocal rest
        size = 2 * number()
        if not 0 <= size <= len(rest):
            raise ValueError(size)
        value, rest = rest[:size].decode("utf-16-le"), rest[size:]
        return value

    try:
        return tuple((part(), part()) for _ in range(number()))
    except ValueError:
        return ()


def abort_compactions(metastore: Metastore, ids: Sequence[int]) -> Mapping[int, tuple[bool, str]]:
    """Remove entries that wait for a worker from the queue.

    Returns:
        For each id, whether it was removed, and the server's words.
    """
    results: dict[int, tuple[bool, str]] = {}
    for batch in batches(ids, _AT_ONCE):
        answer = metastore.call(interface.ABORT_COMPACTIONS, interface.AbortCompactionsRequest(tuple(batch)))
        for id_, result in answer.aborted.items():
            results[id_] = ((result.status or "").lower() == "success", result.message or "")
    return results


# --- work (Hive 4) ----------------------------------------------------------------------------------------------------


def entry_name(entry: interface.QueueEntry) -> str:
    """Return ``db.table`` or ``db.table/day=1``."""
    return f"{entry.database}.{entry.table}" + (f"/{entry.partition}" if entry.partition else "")


def claim(metastore: Metastore, worker: str, pool: str = "") -> interface.QueueEntry | None:
    """Take the oldest waiting entry of a pool; without a pool, of those without one or waiting for half a day.

    Raises:
        Unreachable: no answer; an entry may have been taken in this worker's name.
    """
    request = interface.FindNextCompactRequest(worker, __version__, pool or None)
    entry: interface.QueueEntry | None = metastore.call(interface.FIND_NEXT_COMPACT, request).entry
    return entry


def record_state(
    metastore: Metastore, entry: interface.QueueEntry, highest_write_id: int, txn: int
) -> interface.QueueEntry:
    """Record an entry's highest write id, user and transaction, and return the changed entry.

    From these, the commit derives which transactions the cleaner must wait for.
    """
    entry = replace(entry, highest_write_id=highest_write_id, run_as=metastore.settings.user_name)
    metastore.call(interface.UPDATE_COMPACTOR_STATE, entry, txn)
    return entry


def require_worked_on_by(metastore: Metastore, id_: int, worker: str) -> None:
    """Refuse if a worker does not have an entry any more.

    Raises:
        ConflictError: the entry is gone, not in work, or belongs to another worker.
    """
    queued = find_entry(metastore, id_)
    if not queued or queued.state != WORKING or queued.worker != worker:
        why = "the queue does not have it any more"
        if queued:
            why = f"it is {queued.state}, by {queued.worker or 'nobody'}"
        raise ConflictError(f"the compaction {id_} of Hive's queue was taken from {worker}", why, "run it again")


def mark_failed(metastore: Metastore, entry: interface.QueueEntry, why: str) -> bool:
    """Remove an entry from the queue as failed; return whether this is confirmed."""
    return _mark(metastore, interface.MARK_FAILED, entry, why)


def mark_refused(metastore: Metastore, entry: interface.QueueEntry, why: str) -> bool:
    """Remove an entry from the queue as refused; return whether this is confirmed."""
    return _mark(metastore, interface.MARK_REFUSED, entry, why)


def _mark(metastore: Metastore, method: Method, entry: interface.QueueEntry, why: str) -> bool:
    if not entry.id:
        return False  # the server would insert a new row
    message = printable(" ".join(why.split()))[:_MOST_MESSAGE]  # a name may hold bytes that no database accepts
    with suppress(AcidctlError):
        metastore.insist(method, replace(entry, error=message))
        return True
    return False


def mark_cleaned(metastore: Metastore, entry: Compaction) -> None:
    """Remove an entry from the queue as succeeded; the metastore forgets aborted write ids up to its highest write id.

    The location must no longer hold rows of these write ids.

    Raises:
        ValueError: the entry lacks an id, type or highest write id: the metastore would forget all of the location.
        Unreachable: no answer; the entry may have been removed, and a second call does no harm.
    """
    if entry.id <= 0 or entry.highest_write_id <= 0 or entry.kind not in COMPACTIONS:
        raise ValueError(f"not an entry to be marked: {entry}")
    # Hive takes the pool of this call as it shows it.
    claimed = replace(entry.as_claimed(), highest_write_id=entry.highest_write_id, pool=entry.pool or None)
    metastore.call(interface.MARK_CLEANED, claimed)
