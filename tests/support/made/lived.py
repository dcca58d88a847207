"""A table that was lived in: writers, streams, overwrites and Hive's compactions over time, and what readers must see.

The model remembers events and how transactions ended; what a list shows is worked out from those alone, never from the
files. Times are steps; `stamped` gives the files the times at which they were written.
"""

from __future__ import annotations

import os
import random
import struct
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from acidctl.acid.bucket import encode
from acidctl.acid.names import MAXL
from acidctl.acid.writeids import ValidTxns, ValidWriteIds
from acidctl.base.errors import AcidctlError
from support.files.acid_files import write_acid
from support.tables import snapshot_of

STEP = 600.0
"""Seconds."""
INSERT, DELETE = 0, 2
COMPACTED = b'{"thisFileVersion":"0","dataFormat":"compacted"}'
BUCKETS = (0, 1)

Event = tuple[int, int, int, int, int, tuple[int, int] | None]
"""Operation, original write id, bucket property, row id, current write id, row."""
Rows = list[tuple[tuple[int, int, int], dict[str, Any]]]


@dataclass(frozen=True)
class Reader:
    """A query, by the lists that it was given when it began."""

    began: int
    write_ids: ValidWriteIds
    txns: ValidTxns


@dataclass
class Txns:
    """How the transactions of compactions (``_v``) ended."""

    next: int = 1
    open: set[int] = field(default_factory=set)
    aborted: set[int] = field(default_factory=set)

    def listed(self) -> ValidTxns:
        return ValidTxns(self.next - 1, min(self.open, default=MAXL), tuple(sorted(self.open)), _sorted(self.aborted))


class Lived:
    """A table and its past; everything is drawn from `draw`.

    Attributes:
        now: steps since its beginning.
        begun, ended: when write ids were taken, and when they were committed or aborted.
        readers: every query so far; those that still run depend on how long queries take.
    """

    def __init__(self, draw: random.Random, root: Path) -> None:
        self.draw = draw
        self.table = root / "db.db" / "t"
        self.table.mkdir(parents=True)
        self.now = self._values = 0
        self.next_write_id = 1
        self.begun: dict[int, int] = {}
        self.ended: dict[int, int] = {}
        self.open: dict[int, ValidWriteIds] = {}
        self.aborted: set[int] = set()
        self.txns = Txns()
        self.readers: list[Reader] = []
        self.names_transactions = draw.random() < 0.6  # as Hive 4 does
        self._events: list[Event] = []
        self._overwrites: set[int] = set()
        self._wrote: set[int] = set()
        self._times: dict[str, int] = {}

    # --- what readers must see

    def write_ids(self) -> ValidWriteIds:
        """The list of a query that begins now."""
        still = sorted(self.open)
        high = self.next_write_id - 1
        return ValidWriteIds(high, min(still, default=MAXL), tuple(still), _sorted(self.aborted), table="db.t")

    def rows(self, write_ids: ValidWriteIds) -> Rows:
        """What a list shows."""
        first = max((w for w in self._overwrites if _shows(write_ids, w)), default=0)
        events = [event for event in self._events if _shows(write_ids, event[4]) and event[4] >= first]
        dead = {event[1:4] for event in events if event[0] == DELETE}
        return sorted((e[1:4], dict(zip("ab", e[5], strict=True))) for e in events if e[5] and e[1:4] not in dead)

    def later(self) -> list[Reader]:
        """Queries to come, for some of the ways in which what is open may end."""
        found = [Reader(self.now, self.write_ids(), self.txns.listed())]
        for _ in range(6):
            still, aborted = self._some_end(set(self.open), self.aborted)
            open_txns, aborted_txns = self._some_end(self.txns.open, self.txns.aborted)
            high = self.next_write_id - 1 + self.draw.choice([0, 0, 3])
            lists = (still, aborted), (open_txns, aborted_txns)
            ids, txns = (((min(o, default=MAXL)), _sorted(o), _sorted(a)) for o, a in lists)
            write_ids = ValidWriteIds(high, *ids, table="db.t")
            found.append(Reader(self.now, write_ids, ValidTxns(self.txns.next + 200, *txns)))
        return found

    def _some_end(self, still: set[int], aborted: set[int]) -> tuple[set[int], set[int]]:
        still, aborted = set(still), set(aborted)
        for number in sorted(still):
            chance = self.draw.random()
            if chance < 0.75:
                still.discard(number)
            if 0.45 <= chance < 0.75:
                aborted.add(number)
        return still, aborted

    # --- what happens

    def live(self, steps: int) -> None:
        """Let so many things happen."""
        for _ in range(steps):
            self.now += self.draw.choice([0, 1, 1, 2])
            chance = self.draw.random()
            if chance < 0.35:
                self._transaction()
            elif chance < 0.5 and self.open:
                write_id = self.draw.choice(sorted(self.open))
                self._write(write_id)
                self._end(write_id)
            elif chance < 0.58:
                self._stream()
            elif chance < 0.75:
                self._compact()
            elif chance < 0.8 and self.txns.open:
                txn = self.draw.choice(sorted(self.txns.open))
                self.txns.open.discard(txn)
                if self.draw.random() > 0.7:
                    self.txns.aborted.add(txn)
            self.readers.append(Reader(self.now, self.write_ids(), self.txns.listed()))
        self.now += self.draw.choice([0, 1, 5])
        self._stamp()

    def _transaction(self) -> None:
        write_id = self._begin()
        if self.draw.random() < 0.8:
            self._write(write_id)
        if self.draw.random() < 0.7:
            self._write(write_id)
            self._end(write_id)

    def _begin(self) -> int:
        write_id = self.next_write_id
        self.next_write_id += 1
        self.begun[write_id] = self.now
        self.open[write_id] = self.write_ids()
        return write_id

    def _end(self, write_id: int) -> None:
        del self.open[write_id]
        self.ended[write_id] = self.now
        if self.draw.random() > 0.75:
            self.aborted.add(write_id)

    def _write(self, write_id: int) -> None:
        if write_id in self._wrote:
            return
        self._wrote.add(write_id)
        dead = {event[1:4] for event in self._events if event[0] == DELETE and event[4] not in self.aborted}
        alive = [key for key, _ in self.rows(self.open[write_id]) if key not in dead]
        kind = self.draw.choice(["insert", "insert", "delete", "update", "statements", "overwrite"])
        if kind == "overwrite" and self.draw.random() < 0.4:
            self._overwrites.add(write_id)
            self._put(f"base_{write_id:07}", self._inserted(write_id, 0, 0, self.draw.randrange(3)), 0)
        elif kind == "statements":
            for statement in (0, 1):
                for bucket in BUCKETS:
                    self._insert(write_id, statement, bucket)
        elif kind in ("delete", "update") and alive:
            self._delete(write_id, self.draw.sample(alive, min(len(alive), self.draw.randrange(1, 4))))
            if kind == "update":
                self._insert(write_id, int(self.names_transactions), self.draw.choice(BUCKETS))
        else:
            self._insert(write_id, 0, self.draw.choice(BUCKETS))

    def _inserted(self, write_id: int, statement: int, bucket: int, count: int) -> list[Event]:
        first, self._values = self._values, self._values + count
        rows = ((i, (first + i, i % 7)) for i in range(count))
        return [(INSERT, write_id, encode(bucket, statement), i, write_id, row) for i, row in rows]

    def _insert(self, write_id: int, statement: int, bucket: int) -> None:
        events = self._inserted(write_id, statement, bucket, self.draw.randrange(1, 4))
        attempt = "_0" if self.names_transactions else ""
        self._put(f"delta_{write_id:07}_{write_id:07}_{statement:04}", events, bucket, attempt)
        if self.draw.random() < 0.1:  # and deleted by a later statement
            name = f"delete_delta_{write_id:07}_{write_id:07}_{statement + 1:04}"
            self._put(name, [(DELETE, *events[0][1:4], write_id, None)], bucket)

    def _delete(self, write_id: int, keys: list[tuple[int, int, int]]) -> None:
        for bucket in BUCKETS:
            events: list[Event] = [(DELETE, *key, write_id, None) for key in keys if _bucket(key[1]) == bucket]
            if events:
                self._put(f"delete_delta_{write_id:07}_{write_id:07}_0000", events, bucket)

    def _stream(self) -> None:
        """A batch of transactions in one file, closed or not, of which some have ended."""
        write_ids = [self._begin() for _ in range(self.draw.randrange(2, 4))]
        self._wrote.update(write_ids)
        events = [event for w in write_ids for event in self._inserted(w, 0, 0, self.draw.randrange(1, 3))]
        is_closed = self.draw.random() < 0.6
        name = f"delta_{write_ids[0]:07}_{write_ids[-1]:07}"
        self._put(name, events, 0)
        if not is_closed:
            file = self.table / name / "bucket_00000"
            Path(f"{file}_flush_length").write_bytes(struct.pack(">qq", 0, file.stat().st_size))
        for write_id in write_ids:
            if is_closed or self.draw.random() < 0.6:
                self._end(write_id)

    def _compact(self) -> None:
        """As Hive does: with a transaction of its own since Hive 4, and not while another one is open."""
        write_ids = self.write_ids().for_compactor()
        try:
            state = snapshot_of(self.table, write_ids, self.txns.listed()).state
        except AcidctlError:
            return
        deltas = [verdict.directory for verdict in state.deltas if verdict.directory]
        if self.txns.open or state.history_problem or len(deltas) < 2:
            return
        low, high = min(d.min_write_id for d in deltas), max(d.max_write_id for d in deltas)
        base = state.base.directory.max_write_id if state.base and state.base.directory else 0
        suffix = f"_v{self.txns.next:07}" if self.names_transactions else ""
        if self.draw.random() < 0.5:
            made = {f"base_{high:07}{suffix}": self._live_events(write_ids.at(high))}
        else:
            events = self._compacted(write_ids, low, high, base)
            delta = f"delta_{low:07}_{high:07}{suffix}"
            halves = {kind: [event for event in events if event[0] == kind] for kind in (INSERT, DELETE)}
            made = {name: halves[k] for name, k in ((delta, INSERT), (f"delete_{delta}", DELETE)) if halves[k]}
        if not made or any((self.table / name).exists() for name in made):
            return
        for name, events in made.items():
            for bucket in BUCKETS:
                self._put(name, [e for e in events if _bucket(e[2]) == bucket], bucket, is_new=False)
            if name.startswith("base") and not suffix:
                (self.table / name / "_metadata_acid").write_bytes(COMPACTED)
        if suffix:
            self._end_compaction()

    def _live_events(self, write_ids: ValidWriteIds) -> list[Event]:
        return [(INSERT, *key, key[0], (row["a"], row["b"])) for key, row in self.rows(write_ids)]

    def _compacted(self, write_ids: ValidWriteIds, low: int, high: int, base: int) -> list[Event]:
        first = max((w for w in self._overwrites if _shows(write_ids, w)), default=0)
        in_range = [
            e for e in self._events if low <= e[4] <= high and _shows(write_ids, e[4]) and e[4] > max(first, base)
        ]
        same = {event[1:5] for event in in_range if event[0] == DELETE}
        return [event for event in in_range if event[0] == DELETE or event[1:5] not in same]

    def _end_compaction(self) -> None:
        chance = self.draw.random()
        if chance > 0.8:
            self.txns.open.add(self.txns.next)
        elif chance > 0.6:
            self.txns.aborted.add(self.txns.next)
        self.txns.next += 1

    def _put(self, name: str, events: list[Event], bucket: int, attempt: str = "", *, is_new: bool = True) -> None:
        folder = self.table / name
        folder.mkdir(exist_ok=True)
        if events:
            write_acid(folder / f"bucket_{bucket:05}{attempt}", *sorted(events, key=lambda event: event[1:4]))
        if self.draw.random() < 0.9:
            (folder / "_orc_acid_version").write_bytes(b"2")
        if is_new:
            self._events += events
        self._times[name] = self.now

    def _stamp(self) -> None:
        end = time.time()
        for name, moment in self._times.items():
            written = end - (self.now - moment) * STEP - 1
            for path in [*(self.table / name).iterdir(), self.table / name]:
                os.utime(path, (written, written))


def _shows(write_ids: ValidWriteIds, write_id: int) -> bool:
    return write_id <= write_ids.high_watermark and write_id not in {*write_ids.open, *write_ids.aborted}


def _bucket(property_: int) -> int:
    return property_ >> 16 & 0xFFF


def _sorted(numbers: set[int]) -> tuple[int, ...]:
    return tuple(sorted(numbers))
