"""The metastore's queue of compactions and its history: shown as SHOW COMPACTIONS does, asked for, taken out."""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from acidctl import __version__
from acidctl.errors import UsageProblem
from acidctl.metastore import interface
from acidctl.metastore.activity import name_of, seconds
from acidctl.metastore.client import Metastore, batches
from acidctl.metastore.interface import CompactionType

_STATE_CHARACTERS = {
    "initiated": "i", "working": "w", "ready for cleaning": "r", "succeeded": "s", "failed": "f",
    "did not initiate": "a", "attempted": "a", "refused": "c", "aborted": "x",
}  # fmt: skip
"""States as SHOW COMPACTIONS writes them; Hive 3 says attempted where Hive 4 says did not initiate."""

INITIATED, WORKING, READY = "initiated", "working", "ready for cleaning"
WAITING_STATES = (INITIATED, WORKING, READY)
"""States of entries that are still in the queue; the others are history."""

FAILED_STATES = ("failed", "did not initiate", "attempted", "refused", "aborted")

_KINDS = {kind: kind.name.lower().replace("_", "-") for kind in CompactionType}
_NUMBERS = {name: int(kind) for kind, name in _KINDS.items()}
_UNKNOWN_KIND = re.compile(r"unknown \((\d{1,9})\)")
_REFUSED_BY = re.compile(r"state=['\"]?([a-z ]+)['\"]? and id=(\d+)")
_AT_ONCE = 1000
_NO_POOL = "default"
"""As which Hive 4 shows those without a pool."""

_MOST_DIGITS = 10

ACIDCTL, AFTER_DEATH = "acidctl", "acidctl.once.more"
"""Names of initiators: for a first request, and for a repeated one whose worker died."""


@dataclass(frozen=True, slots=True)
class Compaction:
    """An entry of the queue, or of its history.

    Attributes:
        id: 0 before Hive 3.
        partition: as Hive names it; empty for a whole table.
        kind: major, minor, rebalance, abort-txn-cleanup, smart-optimize, deferred-cleanup; else ``unknown (9)``.
        state: in the server's words.
        worker, job: who works on it, and as what in the cluster; empty without.
        enqueued, started, committed, ended, cleaner_start: seconds since the epoch; None where it did not come to that,
            or where the server does not tell.
        txn: the compaction's own; 0 before Hive 4.
        next_txn: the cleaner waits until no transaction below it is open; 0 where it does not.
        highest_write_id: up to which it compacts.
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
    def name(self) -> str:
        """``db.table`` or ``db.table/day=1``."""
        return name_of(self.database, self.table, self.partition)

    @property
    def named_pool(self) -> str:
        """The pool; empty for that of entries without one, which has a name where it is shown and none to ask for."""
        return "" if self.pool == _NO_POOL else self.pool

    @property
    def since(self) -> float | None:
        """When it came to its state; None where the server does not tell."""
        if self.state == INITIATED:
            return self.enqueued
        if self.state == WORKING:
            return self.started
        if self.state == READY:
            return self.committed
        return self.ended


@dataclass(frozen=True, slots=True)
class Wish:
    """A compaction that is asked for.

    Attributes:
        partition: empty for a table without partitions.
        kind: as of a :class:`Compaction`.
        pool, buckets, order_by, run_as: for Hive 4 only.
        initiator: sent to the server, after the name of this host, as the one who asks.
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

    @property
    def name(self) -> str:
        """``db.table`` or ``db.table/day=1``."""
        return name_of(self.database, self.table, self.partition)


@dataclass(frozen=True, slots=True)
class QueueAnswer:
    """What a metastore said to one that was asked for.

    Attributes:
        id: of the entry: the new one, or that which is in the way; 0 where it is not told.
        state: of that entry.
        accepted: whether it is new.
        message: the server's words.
    """

    id: int
    state: str
    accepted: bool
    message: str = ""


def find_compactions(metastore: Metastore, **wanted: Any) -> list[Compaction]:
    """Entries of the queue and of its history: what waits first, by id, then the history, newest first.

    Servers before Hive 4 send all of them, whatever is asked for.

    Args:
        wanted: `id`, `database`, `table`, `pool` and `state` that they must have; None for any.

    Raises:
        MetastoreError: the metastore cannot be reached, or failed.
    """
    request = interface.ShowCompactRequest()
    if metastore.features.txn_types:
        state = wanted.get("state")
        request = interface.ShowCompactRequest(**{**wanted, "state": state and _STATE_CHARACTERS.get(state)})
    found = [_compaction(one) for one in metastore.call(interface.SHOW_COMPACT, request).entries]
    kept = [one for one in found if is_wanted(one, wanted)]
    return sorted(kept, key=lambda one: (0, one.id) if one.state in WAITING_STATES else (1, -one.id))


def kind_of(number: int) -> str:
    """A type of the interface by its name, ``unknown (9)`` for one that acidctl does not know."""
    return _KINDS.get(number, f"unknown ({number})")  # type: ignore[call-overload,no-any-return]


def number_of(kind: str) -> int:
    """The number of a type that :func:`kind_of` has named; 0 for none."""
    unknown = _UNKNOWN_KIND.fullmatch(kind)
    return int(unknown[1]) if unknown else _NUMBERS.get(kind, 0)


def is_wanted(one: Compaction, wanted: Mapping[str, Any]) -> bool:
    """Whether an entry is one of those that :func:`find_compactions` gives."""

    def has(name: str, value: Any) -> bool:
        if name == "state":
            return _STATE_CHARACTERS.get(one.state) == _STATE_CHARACTERS.get(value)
        return bool(getattr(one, name) == value)

    return all(value is None or has(name, value) for name, value in wanted.items())


def _compaction(one: interface.CompactionInfo) -> Compaction:
    return Compaction(
        id=one.id or 0,
        database=one.database,
        table=one.table,
        partition=_said(one.partition),
        kind=kind_of(one.type),
        state=one.state,
        worker=_said(one.worker),
        job=_said(one.job),
        run_as=_said(one.run_as),
        pool=_said(one.pool),
        initiator=_said(one.initiator),
        error=_said(one.error) or (_said(one.meta_info) if one.state in FAILED_STATES else ""),
        enqueued=seconds(one.enqueued),
        started=seconds(one.started),
        committed=seconds(one.committed),
        ended=seconds(one.ended),
        cleaner_start=seconds(one.cleaner_start),
        txn=max(one.txn or 0, 0),
        next_txn=max(one.next_txn or 0, 0),
        highest_write_id=max(one.highest_write_id or one.highest_txn or 0, 0),
    )


def _order_by(text: str) -> str | None:
    """As Hive's own SQL puts it into the queue, from where it goes into a query as it is."""
    if not text or re.match(r"\s*order\s+by\s", text, re.IGNORECASE):
        return text or None
    return f"order by {text}"


def _said(text: str | None) -> str:
    return "" if text in (None, "None", "null", " --- ") else text or ""


def check_wish(metastore: Metastore, wish: Wish) -> None:
    """Refuse what this server cannot do.

    Raises:
        UsageProblem: it takes Hive 4.
    """
    if metastore.features.txn_types:
        return
    lacking = [
        what
        for what, asked in (
            ("a rebalance", wish.kind == "rebalance"),
            ("a pool", wish.pool),
            ("a number of buckets", wish.buckets),
            ("an order of rows", wish.order_by),
        )
        if asked
    ]
    if lacking:
        raise UsageProblem(
            f"the metastore {metastore.shown} cannot be asked for {' and '.join(lacking)}",
            "that came with Hive 4",
            "ask for a major compaction, which every version does",
        )


def request_compaction(metastore: Metastore, wish: Wish) -> QueueAnswer:
    """Ask for one compaction.

    Raises:
        UsageProblem: the server cannot do that.
        Unreachable: no answer: it may have been taken nevertheless.
        MetastoreError: the metastore failed.
    """
    check_wish(metastore, wish)
    request = interface.CompactionRequest(
        wish.database,
        wish.table,
        wish.partition or None,
        number_of(wish.kind),
        wish.run_as or None,
        properties=dict(wish.properties) or None,
        initiator=f"{socket.gethostname()}-{wish.initiator}",  # Hive shows what is before and after the last dash apart
        initiator_version=__version__,
        pool=wish.pool or None,
        buckets=wish.buckets,
        order_by=_order_by(wish.order_by),
    )
    answer = metastore.call(interface.COMPACT, request)
    if answer.accepted:
        return QueueAnswer(answer.id, answer.state or INITIATED, True)
    message = answer.message or ""
    if named := _REFUSED_BY.search(message):
        return QueueAnswer(int(named[2]), named[1], False, message)
    return QueueAnswer(max(answer.id, 0), answer.state, False, message)


def read_properties(text: str) -> tuple[tuple[str, str], ...]:
    """Properties as an entry of the queue has them: their number, then each key and value after its length.

    Returns:
        None of them where the text is not of that form.
    """
    left = text.encode("utf-16-le", "surrogatepass")  # Java counts lengths in these

    def number() -> int:
        nonlocal left
        digits = left[: 2 * _MOST_DIGITS].decode("utf-16-le", "replace").partition(":")[0]
        left = left[2 * (len(digits) + 1) :]
        return int(digits)

    def part() -> str:
        nonlocal left
        size = 2 * number()
        if not 0 <= size <= len(left):
            raise ValueError(size)
        said, left = left[:size].decode("utf-16-le"), left[size:]
        return said

    try:
        return tuple((part(), part()) for _ in range(number()))
    except ValueError:
        return ()


def abort_compactions(metastore: Metastore, ids: Sequence[int]) -> Mapping[int, tuple[bool, str]]:
    """Take entries that wait for a worker out of the queue.

    Returns:
        For each id whether that was done, and the server's words.

    Raises:
        UnknownMethod: the server is older than Hive 4.
        MetastoreError: the metastore cannot be reached, or failed.
    """
    done: dict[int, tuple[bool, str]] = {}
    for some in batches(ids, _AT_ONCE):
        answer = metastore.call(interface.ABORT_COMPACTIONS, interface.AbortCompactionsRequest(tuple(some)))
        for id_, one in answer.aborted.items():
            done[id_] = ((one.status or "").lower() == "success", one.message or "")
    return done
