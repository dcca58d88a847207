"""Random writers, compactions, cleanings, restores and readers at once, killed now and then, against a model.

    PYTHONPATH=.:tests python tests/bench/stress.py [--minutes N] [--seed N] [--at DIR]

A writer inserts, updates, deletes, aborts and leaves transactions open, as Hive does, in place; the model is a
dictionary.  `acidctl compact`, `clean`, `restore` and `purge` run beside it as processes, with the lists that Hive
would give them, and half of them are killed with SIGKILL at a random moment.  Readers take a snapshot and the rows that
the model holds then, and read: what they get must be those rows, or an error that says why they cannot be had any more
(nothing waits for readers here: the retention is 0).  At the end all is resolved, compacted, cleaned, and read again.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
from support.files.acid_files import Event, events_batch
from support.tables import read_rows

from acidctl.acid import bucket as codec
from acidctl.acid.writeids import MAXL, ValidWriteIds
from acidctl.base.errors import AcidctlError
from acidctl.demo.walkthrough import write_directory
from acidctl.orc.types import OrcType
from acidctl.orc.write.writer_settings import WriterSettings
from acidctl.storage.registry import open_location

ROW = OrcType("struct", children=(OrcType("int"), OrcType("string")), names=("id", "value"))
TABLE = "t"
BUCKETS = 2
MOST_ROWS = 400

Key = tuple[int, int, int]
Rows = dict[Key, tuple[int, str]]


@dataclass
class Model:
    """What is committed, and what a snapshot of now sees.

    Attributes:
        rows: of the committed transactions.
        open: write ids whose transactions have not ended, with the rows that they would leave.
    """

    rows: Rows = field(default_factory=dict)
    high: int = 0
    open: set[int] = field(default_factory=set)
    aborted: set[int] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def list_of_now(self) -> str:
        """Hive's valid write-id list."""
        first = min(self.open, default=MAXL)
        opened, aborted = (",".join(map(str, sorted(ids))) for ids in (self.open, self.aborted))
        return f"{TABLE}:{self.high}:{first}:{opened}:{aborted}"


def batch(events: list[Event]) -> pa.RecordBatch:
    """Events in the order of their keys."""
    events.sort(key=lambda event: event[1:4])
    return events_batch(ROW, *events)


class Writer:
    """Writes one transaction after the other; of deletes only of rows that no open transaction deletes."""

    def __init__(self, path: Path, model: Model, seed: int) -> None:
        self._path, self._model, self._random = path, model, random.Random(seed)
        self._pending: dict[int, tuple[Rows, set[Key]]] = {}
        self.done = 0

    def step(self) -> None:
        """One transaction, or the end of one that was left open."""
        choose = self._random
        if self._pending and choose.random() < 0.3:
            self._end(choose.choice(list(self._pending)), choose.random() < 0.7)
            return
        model = self._model
        with model.lock:
            model.high += 1
            write_id = model.high
            model.open.add(write_id)
            taken = {key for _, gone in self._pending.values() for key in gone}
            free = [key for key in model.rows if key not in taken]
        gone = set(choose.sample(free, min(len(free), choose.choice((0, 0, 1, 5, len(free) // 2)))))
        count = 0 if len(free) > MOST_ROWS else choose.choice((0, 1, 3, 20))
        new: Rows = {}
        for bucket in range(BUCKETS):
            for row_id in range(count):
                new[write_id, codec.encode(bucket, 0), row_id] = (choose.randrange(100), f"{write_id}-{row_id}")
        self._write(f"delta_{write_id:07d}_{write_id:07d}_0000", write_id, new, set())
        self._write(f"delete_delta_{write_id:07d}_{write_id:07d}_0000", write_id, {}, gone)
        self._pending[write_id] = new, gone
        self.done += 1
        if choose.random() < 0.8:
            self._end(write_id, choose.random() < 0.85)

    def finish(self) -> None:
        """Commit all that is open."""
        for write_id in sorted(self._pending):
            self._end(write_id, True)

    def _write(self, name: str, write_id: int, new: Rows, gone: set[Key]) -> None:
        events: dict[int, list[tuple[int, int, int, int, int, tuple[int, str] | None]]] = {}
        for (original, bucket, row_id), row in new.items():
            events.setdefault(codec.decode(bucket).bucket, []).append((0, original, bucket, row_id, write_id, row))
        for original, bucket, row_id in gone:
            events.setdefault(codec.decode(bucket).bucket, []).append((2, original, bucket, row_id, write_id, None))
        if events:
            fs, path = open_location(str(self._path))
            batches = {bucket: [batch(found)] for bucket, found in events.items()}
            write_directory(fs, f"{path}/{name}", batches, ROW, WriterSettings.for_delta("none"))

    def _end(self, write_id: int, commits: bool) -> None:
        new, gone = self._pending.pop(write_id)
        with self._model.lock:
            self._model.open.discard(write_id)
            if not commits:
                self._model.aborted.add(write_id)
                return
            for key in gone:
                del self._model.rows[key]
            self._model.rows.update(new)


class Stress:
    """All of it at once."""

    def __init__(self, path: Path, seed: int) -> None:
        self.path, self.seed = path, seed
        self.model = Model()
        self.writer = Writer(path, self.model, seed)
        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.stop = threading.Event()

    def run(self, minutes: float) -> None:
        jobs = [self._write, self._read, self._read, self._compact, self._clean]
        threads = [threading.Thread(target=self._guarded, args=(job, place)) for place, job in enumerate(jobs)]
        for thread in threads:
            thread.start()
        self.stop.wait(minutes * 60)
        self.stop.set()
        for thread in threads:
            thread.join()

    def settle(self) -> None:
        """The end: everything resolved, compacted and cleaned."""
        self.writer.finish()
        self._command("compact", "--major", "--engine", "local", "--jobs", "1", "--break-lock")
        self._check("after the last compaction")
        self._command("clean", "--yes", "--older-than", "0", "--unsafe-retention", "--leftovers", "--break-lock")
        self._check("after the last cleaning")

    def _check(self, when: str) -> None:
        found, wanted = dict(self._rows(self.model.list_of_now())), self.model.rows
        if found != wanted:
            self.wrong.append(f"{when}: {len(set(wanted) - set(found))} lost, {len(set(found) - set(wanted))} too many")

    def _guarded(self, job, place: int) -> None:  # type: ignore[no-untyped-def]
        choose = random.Random(self.seed * 1000 + place)
        while not self.stop.is_set():
            try:
                job(choose)
            except Exception as error:  # noqa: BLE001 - whatever it is, it ends the run and is reported
                self.wrong.append(f"{job.__name__}: {type(error).__name__}: {error}")
                self.stop.set()

    def _write(self, choose: random.Random) -> None:
        self.writer.step()
        time.sleep(choose.random() * 0.2)

    def _rows(self, ids: str) -> list[tuple[Key, tuple[int, str]]]:
        return [(key, (row["id"], row["value"])) for key, row in read_rows(self.path, ValidWriteIds.parse(ids))]

    def _read(self, choose: random.Random) -> None:
        with self.model.lock:
            ids, wanted = self.model.list_of_now(), dict(self.model.rows)
        time.sleep(choose.choice((0, 0, 0.5)))
        try:
            found = dict(self._rows(ids))
        except AcidctlError as error:
            self.counts[f"reader refused: {type(error).__name__}"] += 1
            return
        self.counts["reads"] += 1
        if found != wanted:
            lost, more = set(wanted) - set(found), set(found) - set(wanted)
            self.wrong.append(f"with {ids}: lost {sorted(lost)[:3]}, too many {sorted(more)[:3]}")
            self.stop.set()

    def _compact(self, choose: random.Random) -> None:
        kind = choose.choice(("--major", "--minor"))
        more = ["--break-lock"] if choose.random() < 0.5 else []
        self._command("compact", kind, "--engine", "local", "--jobs", "1", *more, kill=choose)
        time.sleep(choose.random() * 3)

    def _clean(self, choose: random.Random) -> None:
        what = choose.choice(("clean", "clean", "clean", "restore", "purge"))
        if what == "clean":
            more = [word for word in ("--no-trash", "--leftovers", "--break-lock") if choose.random() < 0.4]
            self._command("clean", "--yes", "--older-than", "0", "--unsafe-retention", *more, kill=choose)
        elif what == "restore":
            self._command("restore", kill=choose)
        else:
            self._command("purge", "--yes", kill=choose)
        time.sleep(choose.random())

    def _command(self, name: str, *options: str, kill: random.Random | None = None) -> None:
        with self.model.lock:
            ids = self.model.list_of_now()
        lists = ["--snapshot", ids] if name in ("compact", "clean") else []
        command = [sys.executable, "-m", "acidctl", name, *options, *lists, str(self.path)]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        patience = kill.random() * 6 if kill and kill.random() < 0.5 else None
        try:
            _, said = process.communicate(timeout=patience)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            self.counts[f"{name} killed"] += 1
            return
        self.counts[f"{name}: status {process.returncode}"] += 1
        if process.returncode in (1, 4, 11):
            self.wrong.append(f"{name} {' '.join(options)}: {said}")
            self.stop.set()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--at", type=Path)
    args = parser.parse_args()
    folder = Path(tempfile.mkdtemp(dir=args.at))
    path = folder / TABLE
    path.mkdir()
    stress = Stress(path, args.seed)
    stress.run(args.minutes)
    with contextlib.suppress(KeyboardInterrupt):
        stress.settle()
    print(f"seed {args.seed}: {stress.writer.done} transactions, {len(stress.model.aborted)} of them aborted")
    for what, count in sorted(stress.counts.items()):
        print(f"  {count:6} {what}")
    for wrong in stress.wrong:
        print("WRONG", wrong)
    if stress.wrong:
        print(f"the table is in {folder}")
        sys.exit(1)
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
