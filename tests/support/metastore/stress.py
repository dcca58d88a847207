"""Writers, workers, compactions, cleaners, readers, and everything that goes wrong, on a real metastore.

Tables of rows whose model is a dictionary live on a metastore of its own process, with a house keeper in it, and
Hive's own cleaner and worker if that is asked for. Random writers insert, delete, abort, and leave transactions open,
also several ids in one delta. Beside them run processes of `acidctl hive worker`, `compact`, `cleaner`, `clean` and
`initiator`, over a line that is cut, garbled or silent; processes are killed, compactions' transactions aborted from
outside, tables dropped, and the metastore is killed and started again. Readers hold transactions, and read what the
model held when they came, again and again. At the end all goes well for a while; then no entry, no transaction and no
lock is left, and Hive reads the same.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from acidctl.acid.writeids import ValidTxns, ValidWriteIds
from acidctl.base.errors import AcidctlError
from acidctl.cli.command_table import command_in
from acidctl.metastore import interface
from acidctl.metastore.activity import find_locks, find_transactions
from acidctl.metastore.client import Metastore
from acidctl.metastore.errors import LostTransaction
from acidctl.metastore.interface import ALLOCATE_WRITE_IDS, AllocateWriteIdsRequest, LockType, Operation, TxnType
from acidctl.metastore.queue import (
    READY,
    WAITING_STATES,
    WORKING,
    Wish,
    find_compactions,
    mark_failed,
    request_compaction,
)
from acidctl.metastore.settings import find_settings
from acidctl.metastore.transactions import Transactions
from support.files.acid_files import B0, Event, delete, insert, write_acid
from support.metastore.mortal import Mortals, mortals
from support.metastore.stress_servers import Servers3, Servers4
from support.servers.hive_server import HiveError, HiveServer
from support.tables import read_rows, snapshot_of
from support.trouble.bad_line import BadLine, Trouble

IMPATIENT = ("--set", "metastore.timeout=5", "--set", "metastore.connect-timeout=5")
NOW = ("--older-than", "0", "--unsafe-retention")
GOOD = {0, 7, 9}
"""Statuses of lines on a good day: another one may be in the way, or have been first."""

EXPECTED = GOOD | {6}
"""Those of lines on a bad day: the metastore may be away, too."""

Key = tuple[int, int, int]
Rows = dict[Key, int]


@dataclass
class Place:
    """A table, or a partition of one.

    Attributes:
        rows: that are committed.
        held: keys that an open transaction has deleted.
    """

    table: str
    partition: str
    path: Path
    rows: Rows = field(default_factory=dict)
    held: set[Key] = field(default_factory=set)

    @property
    def name(self) -> str:
        return f"default.{self.table}" + (f"/{self.partition}" if self.partition else "")

    def lock(self, kind: LockType, does: Operation) -> interface.LockComponent:
        """What a transaction asks for that does this here."""
        level = interface.LockLevel.PARTITION if self.partition else interface.LockLevel.TABLE
        return interface.LockComponent(kind, level, "default", self.table, self.partition or None, does)


@dataclass
class Open:
    """A writer's transaction: what is so when it is committed."""

    txn: int
    place: Place
    added: Rows
    gone: set[Key]
    until: float


@dataclass
class Reader:
    """Somebody who reads for long."""

    txn: int
    txns: ValidTxns
    write_ids: dict[str, ValidWriteIds]
    rows: dict[str, Rows]
    until: float


class Stress:
    """All of it."""

    def __init__(
        self, folder: Path, seed: int, servers: Servers4 | Servers3, *, restarts: bool, txn_timeout: int
    ) -> None:
        self.folder, self.chance, self.servers = folder, random.Random(seed), servers
        self.restarts, self.txn_timeout = restarts, txn_timeout
        self.did: Counter[str] = Counter()
        self.over = threading.Event()
        self.problems: list[str] = []
        self.model = threading.RLock()
        """Held by whoever changes the model or takes a snapshot, and while the server is away."""
        self.open: list[Open] = []
        self.readers: list[Reader] = []
        self.places: list[Place] = []
        self.next_id = 0
        self.hive_writes = True
        self.line = BadLine(servers.address)
        self.metastore = self._client()
        self._tables()

    @property
    def hive(self) -> HiveServer:
        """The session that makes tables, drops them, and reads at the end."""
        return self.servers.hive

    def _client(self) -> Metastore:
        settings = find_settings({"uris": self.servers.address, "timeout": "60"}, {})
        assert settings
        return Metastore(settings)

    def _tables(self) -> None:
        acid = (
            "stored as orc tblproperties('transactional'='true',"
            "'compactorthreshold.hive.compactor.delta.num.threshold'='4')"
        )
        self.hive.sql(f"create table t (id int) {acid}", f"create table u (id int) {acid}")
        self.hive.sql(f"create table p (id int) partitioned by (day string) {acid}")
        warehouse = self.folder / "warehouse"
        self.places = [Place("t", "", warehouse / "t"), Place("u", "", warehouse / "u")]
        for day in ("1", "2", "3"):
            self.hive.sql(f"alter table p add partition (day='{day}')")
            self.places.append(Place("p", f"day={day}", warehouse / f"p/day={day}"))
        if self.servers.version == 3:
            # Whoever came before the first base fails there, although nothing is gone: "Not enough history available".
            for place in self.places:
                day = place.partition[-1:]
                part = f" partition (day='{day}')" if day else ""
                self.hive.sql(f"insert overwrite table {place.table}{part} select 0")
                place.rows[int(day or 1), B0, 0] = 0

    # -- those who write ---------------------------------------------------------------------------------------------

    def write(self) -> None:
        """One transaction, or several with one delta."""
        place = self.chance.choice(self.places)
        count = self.chance.choice((1, 1, 1, 3))
        deletes = count == 1 and self.chance.random() < 0.35
        with self.model:
            dead = self._victims(place) if deletes else []
        kind, does = (LockType.SHARED_WRITE, Operation.DELETE) if dead else (LockType.SHARED_READ, Operation.INSERT)
        part = place.lock(kind, does)
        with self.model:
            asked = interface.OpenTxnRequest(count, "writer", "writers", txn_type=TxnType.DEFAULT)
            txns = tuple(sorted(self.metastore.call(interface.OPEN_TXNS, asked).txn_ids))
            for txn in txns:
                request = interface.LockRequest((part,), txn, "writer", "writers")
                answer = self.metastore.call(interface.LOCK, request)
                if answer.state != interface.LockState.ACQUIRED:
                    for one in txns:
                        self.metastore.call(interface.ABORT_TXN, interface.AbortTxnRequest(one))
                    self.did["writes that waited for a lock"] += 1
                    return
            allocate = AllocateWriteIdsRequest("default", place.table, txns)
            answer = self.metastore.call(ALLOCATE_WRITE_IDS, allocate)
            ids = {one.txn: one.write_id for one in answer.write_ids}
            place.held |= set(dead)
        opened = [Open(txn, place, {}, set(), 0.0) for txn in txns]
        low, high = min(ids.values()), max(ids.values())
        name = f"delta_{low:07d}_{high:07d}" + ("_0000" if count == 1 else "")
        if dead:
            events: list[Event] = [delete(key[0], key[2], high, key[1]) for key in sorted(dead)]
            write_acid(place.path / f"delete_{name}" / "bucket_00000", *events)
            opened[0].gone = set(dead)
        else:
            events = []
            for one in opened:
                for number in range(self.chance.randrange(1, 6)):
                    self.next_id += 1
                    events.append(insert(ids[one.txn], number, {"id": self.next_id}))
                    one.added[ids[one.txn], B0, number] = self.next_id
            write_acid(place.path / name / "bucket_00000", *events)
        self.did["writes"] += 1
        for one in opened:
            if self.chance.random() < 0.15:
                one.until = time.monotonic() + self.chance.uniform(1, 40)
                with self.model:
                    self.open.append(one)
            else:
                self.end(one)

    def _victims(self, place: Place) -> list[Key]:
        there = sorted(set(place.rows) - place.held)
        return self.chance.sample(there, min(len(there), self.chance.randrange(1, 4)))

    def end(self, one: Open) -> None:
        """Commit or abort a writer's transaction."""
        with self.model:
            if self.chance.random() < 0.3:
                self.metastore.call(interface.ABORT_TXN, interface.AbortTxnRequest(one.txn))
                self.did["writes that were aborted"] += 1
            elif self._is_committed(one.txn):
                one.place.rows |= one.added
                for key in one.gone:
                    del one.place.rows[key]
            one.place.held -= one.gone

    def _is_committed(self, txn: int) -> bool:
        try:
            self.metastore.call(interface.COMMIT_TXN, interface.CommitTxnRequest(txn))
        except LostTransaction:  # the machine was so busy that nobody said in time that it lives
            self.did["writes that timed out"] += 1
            return False
        return True

    def end_open(self, *, everything: bool = False) -> None:
        """Those whose time is up."""
        with self.model:
            due = [one for one in self.open if everything or time.monotonic() > one.until]
            self.open = [one for one in self.open if one not in due]
        for one in due:
            self.end(one)

    # -- those who read ----------------------------------------------------------------------------------------------

    def come(self) -> Reader:
        """A reader's snapshot, and what the model holds then."""
        with self.model:
            # The cleaner of Hive 4 forgets who has the highest number there is at a commit: there is a higher one.
            count = 1 + (self.servers.version > 3)
            asked = interface.OpenTxnRequest(count, "reader", "readers", txn_type=TxnType.READ_ONLY)
            txn, *others = sorted(self.metastore.call(interface.OPEN_TXNS, asked).txn_ids)
            for other in others:
                self.metastore.call(interface.COMMIT_TXN, interface.CommitTxnRequest(other))
            if self.servers.version == 3:  # whose cleaner knows readers by their locks
                self._lock_all(txn)
            taken = Transactions(self.metastore)
            names = {f"default.{place.table}" for place in self.places}
            lists = {name: taken.write_ids(name) for name in sorted(names)}
            rows = {place.name: dict(place.rows) for place in self.places}
        until = time.monotonic() + self.chance.choice((0, 0, 10, 60))
        return Reader(txn, taken.txns, lists, rows, until)

    def _lock_all(self, txn: int) -> None:
        components = tuple(place.lock(LockType.SHARED_READ, Operation.SELECT) for place in self.places)
        request = interface.LockRequest(components, txn, "reader", "readers")
        answer = self.metastore.call(interface.LOCK, request)
        assert answer.state == interface.LockState.ACQUIRED, answer

    def read(self, reader: Reader) -> None:
        """It sees what it saw."""
        for place in list(self.places):
            write_ids = reader.write_ids[f"default.{place.table}"]
            wanted = reader.rows[place.name]
            for _ in range(5):
                before = self._replaceable(place)
                try:
                    found = {key: row["id"] for key, row in read_rows(place.path, write_ids, reader.txns)}
                except AcidctlError:
                    if not self._is_alive(reader):
                        return
                    if before == self._replaceable(place):
                        raise
                    found = {}
                if found == wanted or before == self._replaceable(place):
                    break
                self.did["deltas that Hive replaced meanwhile"] += 1
            if found != wanted:
                if not self._is_alive(reader):
                    return
                names = sorted(path.name for path in place.path.iterdir())
                lost = {key: wanted[key] for key in wanted.keys() - found.keys()}
                more = {key: found[key] for key in found.keys() - wanted.keys()}
                lists = f"{write_ids} {reader.txns}"
                self.problem(f"{place.name} of {reader.txn}: lost {lost}, too many {more}; {lists}; {names}")
        self.did["reads"] += 1

    def _replaceable(self, place: Place) -> dict[str, int]:
        """Deltas of several write ids: Hive 3's minor compaction of one alone takes it away and puts its own there."""
        if self.servers.version > 3:
            return {}
        named = {entry.name: entry.inode() for entry in os.scandir(place.path)}
        return {name: inode for name, inode in named.items() if re.fullmatch(r"(delete_)?delta_\d+_\d+", name)}

    def read_as_hive(self, place: Place) -> None:
        """Hive sees what is committed, while others compact and clean."""
        with self.model:
            found, wanted = self._rows_of_hive(place), dict(place.rows)
        if found != wanted:
            lost = {key: wanted[key] for key in wanted.keys() - found.keys()}
            more = {key: found[key] for key in found.keys() - wanted.keys()}
            names = sorted(path.name for path in place.path.iterdir())
            self.problem(f"Hive reads {place.name}: lost {lost}, too many {more}; {names}")
        self.did["reads by Hive"] += 1

    def _rows_of_hive(self, place: Place) -> Rows:
        where = f" where day = '{place.partition[-1]}'" if place.partition else ""
        rows = map(_hives_row, self.hive.sql(f"select ROW__ID, id from {place.table}{where}"))
        return {(key["writeid"], key["bucketid"], key["rowid"]): int(id_) for key, id_ in rows}

    def write_as_hive(self, place: Place) -> None:
        """Hive inserts, updates or deletes: which ROW__IDs are new it says itself, all else is as the model has it."""
        part, where = "", ""
        if place.partition:
            part, where = f" partition (day='{place.partition[-1]}')", f"day = '{place.partition[-1]}' and "
        with self.model:
            if any(one.gone for one in self.open if one.place.table == place.table):
                return  # Hive would wait for that writer's lock, and all here for Hive
            dead = self._victims(place)
            ids, kind = [place.rows[key] for key in dead], self.chance.choice(("insert", "update", "delete"))
            chosen = f"{where}id in ({', '.join(map(str, ids))})"
            self.next_id += len(ids)
            new = [self.next_id - at for at in range(len(ids))]
            if not ids:
                return
            if kind == "insert":
                dead, statement = [], f"insert into {place.table}{part} values {', '.join(f'({id_})' for id_ in new)}"
            elif kind == "update":
                cases = " ".join(f"when {old} then {id_}" for old, id_ in zip(ids, new, strict=True))
                statement = f"update {place.table} set id = case id {cases} else id end where {chosen}"
            else:
                new, statement = [], f"delete from {place.table} where {chosen}"
            try:
                self.hive.sql(statement)
            except HiveError as error:  # its transaction has a time-out that is short for a busy machine
                if "timed out" not in str(error):
                    raise
                self.did["writes of Hive that timed out"] += 1
                return
            stayed = {key: id_ for key, id_ in place.rows.items() if key not in dead}
            found = self._rows_of_hive(place)
            came = {key: id_ for key, id_ in found.items() if key not in stayed}
            if found | stayed != found or sorted(came.values()) != sorted(new) or came.keys() & place.rows.keys():
                self.problem(f"after {statement} Hive reads {place.name}: {found}, of {place.rows}")
            place.rows = found
        self.did[f"{kind}s by Hive"] += 1

    def _is_alive(self, reader: Reader) -> bool:
        with self.model:
            request = interface.HeartbeatTxnRangeRequest(reader.txn, reader.txn)
            answer = self.metastore.call(interface.HEARTBEAT_TXN_RANGE, request)
        self.did["readers that timed out"] += bool(answer.aborted or answer.unknown)
        return not (answer.aborted or answer.unknown)

    def leave(self, reader: Reader) -> None:
        with self.model, contextlib.suppress(LostTransaction):
            self.metastore.call(interface.COMMIT_TXN, interface.CommitTxnRequest(reader.txn))

    def problem(self, text: str) -> None:
        self.problems.append(text)
        print(f"PROBLEM: {text}", flush=True)

    # -- those who work ----------------------------------------------------------------------------------------------

    def commands(self, chance: random.Random) -> tuple[str, ...]:
        place = chance.choice(self.places)
        kind = chance.choice(("--major", "--minor"))
        night = ("--state", str(self.folder / "nights"), "--min-deltas", "3", "--lock-wait", "2s")
        lines: tuple[tuple[str, ...], ...] = (
            ("compact", "--engine", "local", kind, f"hive:{place.name}"),
            ("compact", "--engine", "local", "--auto", "hive:default.*"),
            ("clean", "--yes", *NOW, "hive:default.*"),
            ("hive", "initiator", "--once", "hive:default.*"),
            ("nightly", "--yes", "--engine", "local", *night, "hive:default.*"),
        )
        if self.servers.version > 3:
            lines += (
                ("hive", "worker", "--once", "--engine", "local"),
                ("hive", "worker", "--once", "--engine", "local", "--max-parallel", "2"),
                ("hive", "worker", "--once", "--engine", "local", "--pool", "mine"),
                ("hive", "cleaner", "--once", "--yes", *NOW),
                ("hive", "cleaner", "--once", "--yes", *NOW),
            )
        return chance.choice(lines)

    def work(self, number: int, children: Mortals, chance: random.Random) -> None:
        """Run one line after the other; of some of them the process is killed."""
        said = self.folder / f"said-{number}"
        while not self.over.is_set():
            line = self.commands(chance)
            kill = chance.random() < 0.4
            said.unlink(missing_ok=True)
            timer: list[threading.Timer] = []

            def begun(pid: int, kill: bool = kill, timer: list[threading.Timer] = timer) -> None:
                if kill:
                    timer.append(threading.Timer(chance.random() ** 2 * 1.2, _kill, (pid,)))
                    timer[0].start()

            status = children.run(*line, *IMPATIENT, "--metastore", self.line.address, said=said, on_pid=begun)
            for one in timer:
                one.cancel()
            self.did[f"{command_in(line)}: {'killed' if status < 0 else status}"] += 1
            text = said.read_text(errors="replace") if said.exists() else ""
            if status not in EXPECTED and status >= 0:
                with (self.folder / "odd").open("a") as odd:
                    odd.write(f"{line} ended with {status}: {text[-3000:]}\n\n")
            if "Traceback" in text or "unexpected" in text or status in (1, 99):
                self.problem(f"{line} ended with {status}: {text[-3000:]}")

    def work_as_hive(self, chance: random.Random) -> None:
        """Hive's own worker takes one entry after the other."""
        while not self.over.wait(chance.uniform(0.5, 4)):
            could = self.servers.work(chance)
            self.did["looks of Hive's worker" + ("" if could else " that failed")] += 1

    def ask(self, chance: random.Random) -> None:
        """Ask for a compaction of something."""
        place = chance.choice(self.places)
        partition = place.partition if chance.random() < 0.9 else ""
        kind = chance.choice(("major", "minor"))
        pool = chance.choice(("", "", "mine")) if self.servers.version > 3 else ""
        with self.model:
            request_compaction(self.metastore, Wish("default", place.table, partition, kind, pool))
        self.did["requests"] += 1

    # -- what goes wrong ---------------------------------------------------------------------------------------------

    def trouble(self, chance: random.Random) -> None:
        """One thing."""
        kind = chance.choice(("line", "line", "line", "hang up", "abort", "abort", "drop", "restart"))
        if kind == "line":
            trouble = Trouble(0, chance.choice(("cut", "cut", "reset", "garble", "hang")))
            is_question = chance.random() < 0.5
            ahead = chance.randrange(6000)
            if is_question:
                trouble.at = self.line.asked + ahead
                self.line.questions = trouble
            else:
                trouble.at = self.line.answered + ahead
                self.line.answers = trouble
        elif kind == "hang up":
            self.line.hang_up()
        elif kind == "abort":
            with self.model:
                ours: list[int] = []
                with contextlib.suppress(AcidctlError):  # Hive cannot tell who has an id that was skipped just now
                    known = find_transactions(self.metastore).open
                    ours = [one.id for one in known if "acidctl" in one.host or one.type == TxnType.COMPACTION.name]
                if not ours:
                    return
                with contextlib.suppress(LostTransaction):  # it was committed in this moment
                    self.metastore.call(interface.ABORT_TXN, interface.AbortTxnRequest(chance.choice(ours)))
        elif kind == "drop":
            self._drop(chance)
        elif kind == "restart":
            if not self.restarts or chance.random() < 0.6:
                return
            self.restart()
        self.did[f"trouble: {kind}"] += 1

    def _drop(self, chance: random.Random) -> None:
        """A table that nobody but workers looks at comes and goes."""
        name = f"gone_{chance.randrange(1000)}"
        with self.model:
            self.hive.sql(
                f"create table {name} (id int) stored as orc tblproperties('transactional'='true')",
            )
            path = self.folder / "warehouse" / name
            for number in (1, 2):
                asked = interface.OpenTxnRequest(1, "writer", "writers", txn_type=TxnType.DEFAULT)
                (txn,) = self.metastore.call(interface.OPEN_TXNS, asked).txn_ids
                part = interface.LockComponent(
                    LockType.SHARED_READ, database="default", table=name, operation=Operation.INSERT
                )
                self.metastore.call(interface.LOCK, interface.LockRequest((part,), txn, "writer", "writers"))
                self.metastore.call(ALLOCATE_WRITE_IDS, AllocateWriteIdsRequest("default", name, (txn,)))
                write_acid(
                    path / f"delta_{number:07d}_{number:07d}_0000" / "bucket_00000", insert(number, 0, {"id": 1})
                )
                self.metastore.call(interface.COMMIT_TXN, interface.CommitTxnRequest(txn))
            request_compaction(self.metastore, Wish("default", name, "", "major"))
        time.sleep(chance.uniform(0, 2))
        with self.model:
            try:
                self.hive.sql(f"drop table {name}")
            except HiveError as error:  # its transaction has a time-out that is short for a busy machine
                if "timed out" not in str(error):
                    raise
                self.did["drops that timed out"] += 1
                self.hive.sql(f"drop table if exists {name}")

    def restart(self) -> None:
        """Kill the metastore, and start it on what it left."""
        with self.model:
            self.metastore.close()
            self.line.hang_up()
            self.servers.restart()
            parts = urlsplit(self.servers.address)
            self.line._server = (parts.hostname or "", parts.port or 0)
            self.metastore = self._client()

    # -- all of it ---------------------------------------------------------------------------------------------------

    def play(self, minutes: float, actors: int = 2) -> None:
        """Everything at once for so long, then the end."""
        with contextlib.ExitStack() as stack:
            threads = []
            for number in range(actors):
                children = stack.enter_context(mortals())
                chance = random.Random(self.chance.random())
                threads.append(threading.Thread(target=self._guarded, args=(self.work, number, children, chance)))
            if self.servers.looks_at_queue:
                work = self.work_as_hive, random.Random(self.chance.random())
                threads.append(threading.Thread(target=self._guarded, args=work))
            threads.append(threading.Thread(target=self._guarded, args=(self._beat,)))
            threads.append(threading.Thread(target=self._guarded, args=(self._troubles,)))
            for thread in threads:
                thread.start()
            end, said = time.monotonic() + 60 * minutes, time.monotonic()
            try:
                while time.monotonic() < end and not self.problems:
                    self.round()
                    if time.monotonic() - said > 60:
                        said = time.monotonic()
                        print(f"{(end - said) / 60:.0f} minutes left: {dict(sorted(self.did.items()))}", flush=True)
            finally:
                self.over.set()
                for thread in threads:
                    thread.join()
            if not self.problems:
                self.line.questions = self.line.answers = None
                self.finish(stack.enter_context(mortals()))

    def _guarded(self, do: Any, *arguments: Any) -> None:
        try:
            do(*arguments)
        except BaseException as error:
            self.problem(f"{type(error).__name__}: {error}")
            raise

    def _troubles(self) -> None:
        chance = random.Random(self.chance.random())
        while not self.over.wait(chance.uniform(0.1, 3)):
            self.trouble(chance)

    def _beat(self) -> None:
        """Writers and readers are alive."""
        while not self.over.wait(self.txn_timeout / 10):
            with self.model:
                txns = [one.txn for one in self.open] + [one.txn for one in self.readers]
                for txn in txns:
                    self.metastore.call(interface.HEARTBEAT_TXN_RANGE, interface.HeartbeatTxnRangeRequest(txn, txn))

    def round(self) -> None:
        """Something is written, and read."""
        for _ in range(self.chance.randrange(1, 4)):
            self.write()
        self.end_open()
        if self.chance.random() < 0.5:
            self.ask(self.chance)
        if self.chance.random() < 0.2:
            self.read_as_hive(self.chance.choice(self.places))
        if self.hive_writes and self.chance.random() < 0.15:
            self.write_as_hive(self.chance.choice(self.places))
        with self.model:
            reader = self.come()
            self.readers.append(reader)
        for one in list(self.readers):
            self.read(one)
            if time.monotonic() > one.until:
                with self.model:
                    self.readers.remove(one)
                    self.leave(one)
        time.sleep(self.chance.uniform(0, 0.5))

    def finish(self, children: Mortals) -> None:
        """All is well from now on; what is left is ended, and the rows are those of the model."""
        while self.readers:
            self.leave(self.readers.pop())
        self.end_open(everything=True)
        print("the end: all is well", flush=True)
        said = self.folder / "said-end"
        lines: tuple[tuple[str, ...], ...] = ()  # the threads of Hive 3 empty its queue
        if self.servers.version > 3:
            self._end_what_hive_left()
            lines = (
                ("hive", "worker", "--once", "--engine", "local"),
                ("hive", "worker", "--once", "--engine", "local", "--pool", "mine"),
                # An entry is left to Hive as long as a delta has aborted ids beside others: a base takes it in.
                ("compact", "--engine", "local", "--major", "hive:default.*"),
                ("hive", "cleaner", "--once", "--yes", *NOW),
            )
        end = time.monotonic() + 150
        while time.monotonic() < end:
            for line in lines:
                self._end_by(children, line, said)
            if not self._left():
                break
            time.sleep(3)
        else:
            said.touch()
            self.problem(f"left after all: {self._left()}; the last said: {said.read_text()[-2000:]}")
        # Who is killed while he removes his staging may leave it without his name: nobody takes that unasked.
        if not self._end_by(children, ("clean", "--yes", "--leftovers", *NOW, "hive:default.*"), said):
            self.problem("clean failed")
        reader = self.come()
        self.read(reader)
        self.leave(reader)
        self._require_clean(reader)
        for place in self.places:
            self.read_as_hive(place)

    def _end_by(self, children: Mortals, line: tuple[str, ...], said: Path) -> bool:
        said.unlink(missing_ok=True)
        status = children.run(*line, "--metastore", self.servers.address, said=said)
        if status not in GOOD:
            print(f"{line} ended with {status}: {said.read_text()[-1500:]}", flush=True)
        return status in GOOD

    def _end_what_hive_left(self) -> None:
        """Entries of Hive's worker that lost the metastore in the middle: its initiator would free them after a day."""
        for one in find_compactions(self.metastore, state=WORKING):
            if not one.worker.startswith("acidctl-"):
                mark_failed(self.metastore, interface.QueueEntry(one.id, one.database, one.table), "its worker died")
                self.did["entries that Hive's worker left"] += 1

    def _left(self) -> list[object]:
        """But for entries of all partitions of a table, which SQL does not ask for: only Hive's cleaner takes them, and
        fails on them again and again where a partition was compacted further meanwhile.
        """
        entries = [
            one
            for one in find_compactions(self.metastore)
            if one.state in WAITING_STATES and (one.partition or one.table != "p" or one.state != READY)
        ]
        others = [one for one in find_transactions(self.metastore).open if "acidctl" in one.host]
        locks = [one for one in find_locks(self.metastore) if "acidctl" in one.host]
        return [*entries, *others, *locks]

    def _require_clean(self, reader: Reader) -> None:
        """Nothing is there but what is read, and trash."""
        for place in self.places:
            state = snapshot_of(place.path, reader.write_ids[f"default.{place.table}"], reader.txns).state
            left = [one.name for one in state.verdicts if one.state.value != "current"]
            left = [name for name in left if not name.startswith(".")]
            if left:
                self.problem(f"{place.name}: {left} is left")


def _hives_row(row: list[str]) -> tuple[dict[str, int], str]:
    key, id_ = row
    return json.loads(key), id_


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


@contextlib.contextmanager
def stress(
    folder: Path,
    seed: int,
    version: int = 4,
    *,
    hives_cleaner: bool = True,
    hives_worker: bool = True,
    restarts: bool = True,
    txn_timeout: int = 40,
) -> Iterator[Stress]:
    """Servers and tables, ended with the block.

    Args:
        hives_cleaner, hives_worker: Hive's own is there; those of Hive 3, and its initiator, where both are asked for.
    """
    with contextlib.ExitStack() as stack:
        servers: Servers3 | Servers4
        if version == 3:
            servers = Servers3(folder, txn_timeout, hives_compactor=hives_cleaner and hives_worker)
        else:
            servers = Servers4(folder, txn_timeout, hives_cleaner=hives_cleaner, hives_worker=hives_worker)
        stack.callback(servers.stop)
        one = Stress(folder, seed, servers, restarts=restarts, txn_timeout=txn_timeout)
        with one.line:
            try:
                yield one
            finally:
                one.over.set()
                one.metastore.close()
