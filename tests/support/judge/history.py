"""Table histories: what happened to a table, and every ROW__ID worked out.

A history is abstract (targets are indexes, so that hypothesis can shrink it); `resolve` turns it into concrete events
with ROW__IDs by this file's own arithmetic, `play.play` writes those with Hive, `generate` draws histories. Known
defects of Hive 2.3 are named constants: a history avoids each unless it is listed in `quirks`, and then Hive is no
judge of it (`History.hive_can_judge`); the model is.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from support.judge.hive import DELETE, INSERT, UPDATE, Event, Row, RowKey, row_key, split_bucket
from support.judge.model import Change, visible
from support.judge.txns import Txns

QUIRK_SAME_TXN_CHANGE = "same-txn-change"
"""A row that one transaction touches twice (inserted and deleted, or updated by two statements) comes back or is lost
after Hive 2.3's minor compaction, whose output keeps both events: its merge then holds two readers by equal keys and
drops one of them whole. Free where a history never compacts, unless drawn with `once` (to be compacted afterwards)."""
QUIRK_ORIGINAL_COPIES = "original-copies"
"""Hive 2.3 does not know _copy_N originals: row numbers restart at 0 in each, and its compactor reads one a bucket."""
QUIRK_LIVE_SIDE_FILE_V2 = "live-side-file-v2"
"""A `_flush_length` file beside a v2 delta makes Hive 2.3's reader fail; v1 works, so v1 histories have them freely."""
QUIRK_LATER_STATEMENT = "later-statement"
"""Several statements in one transaction (codec V0) repeat row numbers: a writer whose first event is not an insert
ignores what earlier statements inserted, and an insert delta written beside deletes (UPDATE) carries the delete file's
statistics, from which the next statement takes its offset. Rows then share a ROW__ID. Later statements do not mix."""
QUIRK_ORIGINALS_CODEC_V1 = "originals-codec-v1"
"""Hive 2.3 gives originals V0 bucket numbers, so delete events that name them by V1 values match nothing there."""
QUIRKS = frozenset(
    {
        QUIRK_SAME_TXN_CHANGE,
        QUIRK_ORIGINAL_COPIES,
        QUIRK_LIVE_SIDE_FILE_V2,
        QUIRK_LATER_STATEMENT,
        QUIRK_ORIGINALS_CODEC_V1,
    }
)

COMMIT, ABORT, OPEN = "commit", "abort", "open"


@dataclass(frozen=True, slots=True)
class Op:
    """`insert` into a bucket, or `update` / `delete` of the target-th visible row (modulo their number)."""

    kind: int
    bucket: int = 0
    target: int = 0
    row: Row | None = None


@dataclass(frozen=True, slots=True)
class Transaction:
    statements: tuple[tuple[Op, ...], ...]
    outcome: str = COMMIT
    number_statements: bool = True
    """False writes the older directory name without a statement id (one statement only)."""


@dataclass(frozen=True, slots=True)
class Batch:
    """A streaming batch: one file per bucket for all its transactions; the last may be left open with a side file."""

    transactions: tuple[tuple[str, tuple[tuple[int, Row], ...]], ...]
    left_open: bool = False


@dataclass(frozen=True, slots=True)
class Compaction:
    kind: str
    clean: bool = False
    """Remove what is obsolete afterwards, as Hive's cleaner does."""


Step = Transaction | Batch | Compaction


@dataclass(frozen=True, slots=True)
class History:
    schema: str
    buckets: int = 1
    version: int = 2
    codec: int = 0
    """Bucket codec of the files: 0 as Hive 2.3 writes, 1 as Hive 3 (v2 only; through Hive's raw writer)."""
    originals: tuple[tuple[int, tuple[Row, ...]], ...] = ()
    """(bucket, rows) per file; a bucket's second file becomes NNNNNN_0_copy_1."""
    steps: tuple[Step, ...] = ()
    orc: tuple[tuple[str, str], ...] = ()
    quirks: frozenset[str] = field(default_factory=frozenset)
    once: bool = False
    """No transaction touches a row twice, see QUIRK_SAME_TXN_CHANGE."""

    @property
    def hive_can_judge(self) -> bool:
        return not self.quirks


@dataclass(slots=True)
class Effects:
    """One transaction in one bucket: the writer's verbs and the stored events they become (v2 UPDATE: two)."""

    verbs: list[Event] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)

    def add(self, verb: Event, *changes: Change) -> None:
        self.verbs.append(verb)
        self.changes += changes


@dataclass(frozen=True, slots=True)
class Write:
    """The work of one writer: `statement` -1 for none; span[0] < span[1] is a streaming batch."""

    span: tuple[int, int]
    statement: int
    bucket: int
    transactions: tuple[tuple[int, Effects], ...]
    left_open: bool = False


@dataclass(slots=True)
class Plan:
    """A history with every ROW__ID worked out."""

    history: History
    changes: list[Change] = field(default_factory=list)
    actions: list[Write | tuple[Compaction, Txns]] = field(default_factory=list)
    last: int = 0
    open: set[int] = field(default_factory=set)
    aborted: set[int] = field(default_factory=set)

    @property
    def txns(self) -> Txns:
        """The newest snapshot."""
        return Txns(self.last, frozenset(self.open), frozenset(self.aborted))

    def rows(self, txns: Txns) -> list[tuple[RowKey, Row]]:
        """The model's answer, in ROW__ID order."""
        shown = visible(self.changes, txns, self.history.version)
        return sorted(shown.items(), key=lambda item: row_key(item[0]))

    def snapshots(self) -> list[Txns]:
        """The newest, every earlier high watermark, and the newest with one committed transaction still open."""
        committed = [t for t in range(1, self.last + 1) if t not in self.open and t not in self.aborted]
        newest = self.txns
        earlier = [Txns(t, newest.open, newest.aborted) for t in range(self.last - 1, -1, -1)]
        late = [replace(newest, open=newest.open | {t}) for t in committed]
        return [newest, *earlier, *late]

    def _new_key(self, txn: int, bucket: int, statement: int, row: int) -> RowKey:
        value = bucket if self.history.codec == 0 else 1 << 29 | bucket << 16 | max(statement, 0)
        return RowKey(txn, value, row)


def resolve(history: History) -> Plan:
    """Give every event its ROW__ID, transaction and file."""
    plan = Plan(history)
    counts: dict[int, int] = {}
    for bucket, rows in history.originals:
        for row in rows:
            number = counts.get(bucket, 0)
            counts[bucket] = number + 1
            plan.changes.append(Change(INSERT, plan._new_key(0, bucket, 0, number), 0, 0, row))
    for step in history.steps:
        if isinstance(step, Transaction):
            _resolve_transaction(plan, step)
        elif isinstance(step, Batch):
            _resolve_batch(plan, step)
        else:
            plan.actions.append((step, plan.txns))
    return plan


def _settle(plan: Plan, txn: int, outcome: str) -> None:
    if outcome != COMMIT:
        (plan.open if outcome == OPEN else plan.aborted).add(txn)


def _resolve_transaction(plan: Plan, step: Transaction) -> None:
    history = plan.history
    plan.last += 1
    txn = plan.last
    numbered = step.number_statements or len(step.statements) > 1 or history.codec == 1
    inserted: dict[int, int] = {}
    mixed = False
    plain = history.codec == 0 and QUIRK_LATER_STATEMENT not in history.quirks
    compacts = any(isinstance(s, Compaction) for s in history.steps)
    once = history.once or (compacts and QUIRK_SAME_TXN_CHANGE not in history.quirks)
    seen: set[RowKey] = set()
    for statement, ops in enumerate(step.statements):
        number = statement if numbered else -1
        view = visible(plan.changes, plan.txns, history.version)
        keys = sorted(view, key=row_key)
        if once:
            keys = [key for key in keys if key.txn != txn and key not in seen]
        touched: dict[RowKey, Op] = {}
        inserts: list[Op] = []
        for op in ops:
            if op.kind == INSERT:
                inserts.append(op)
            elif keys:
                touched.setdefault(keys[op.target % len(keys)], op)
        if plain and (mixed or inserted):
            if history.version == 2:
                touched = {key: op for key, op in touched.items() if op.kind == DELETE}
            inserts = [] if touched or (mixed and history.version == 2) else inserts
        if history.codec == 1:
            inserted = {}  # V1 keys differ by statement: every writer counts from 0
        mixed = mixed or (bool(touched) and (bool(inserts) or any(op.kind == UPDATE for op in touched.values())))
        seen |= touched.keys()
        effects: dict[int, Effects] = {}
        for key in sorted(touched, key=row_key):
            op, bucket = touched[key], split_bucket(key.bucket)[0]
            row = op.row if op.kind == UPDATE else None
            out = effects.setdefault(bucket, Effects())
            verb = Event(op.kind, row, key)
            if history.version == 1:
                out.add(verb, Change(op.kind, key, txn, number, row))
            elif op.kind == DELETE:
                out.add(verb, Change(DELETE, key, txn, number))
            else:
                out.add(verb, Change(DELETE, key, txn, number), _insert(plan, txn, bucket, number, inserted, row))
        for op in inserts:
            bucket = op.bucket % history.buckets
            change = _insert(plan, txn, bucket, number, inserted, op.row)
            effects.setdefault(bucket, Effects()).add(Event(INSERT, op.row), change)
        for bucket, effect in sorted(effects.items()):
            plan.changes += effect.changes
            plan.actions.append(Write((txn, txn), number, bucket, ((txn, effect),)))
    _settle(plan, txn, step.outcome)


def _insert(plan: Plan, txn: int, bucket: int, statement: int, inserted: dict[int, int], row: Row | None) -> Change:
    number = inserted.get(bucket, 0)
    inserted[bucket] = number + 1
    return Change(INSERT, plan._new_key(txn, bucket, statement, number), txn, statement, row)


def _resolve_batch(plan: Plan, step: Batch) -> None:
    first = plan.last + 1
    plan.last += len(step.transactions)
    span = (first, plan.last)
    files: dict[int, list[tuple[int, Effects]]] = {}
    for txn, (_, rows) in enumerate(step.transactions, first):
        inserted: dict[int, int] = {}
        effects: dict[int, Effects] = {}
        for wanted, row in rows:
            bucket = wanted % plan.history.buckets
            change = _insert(plan, txn, bucket, -1, inserted, row)
            effects.setdefault(bucket, Effects()).add(Event(INSERT, row), change)
        for bucket, effect in effects.items():
            plan.changes += effect.changes
            files.setdefault(bucket, []).append((txn, effect))
    for bucket, transactions in sorted(files.items()):
        plan.actions.append(Write(span, -1, bucket, tuple(transactions), step.left_open))
    for txn, (outcome, _) in enumerate(step.transactions, first):
        _settle(plan, txn, outcome)
