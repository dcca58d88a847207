"""Random histories of a healthy table, looked at between any two steps: nothing is found, ever."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest

from acidctl.acid.names import Kind, acid_directory, format_directory
from acidctl.acid.reasons import Code, Reason
from acidctl.acid.writeids import ValidTxns, ValidWriteIds
from acidctl.rescue.findings import Answers, Folder, Look

_FOLDERS = ("p=1", "p=2", "p=3")
_STEPS = 120


@dataclass
class Writer:
    """A transaction with a write id; it writes to folders, adds their partitions, and ends."""

    id: int
    txn: int
    folders: list[str]
    made: set[str] = field(default_factory=set)


@dataclass
class Compactor:
    """A compaction of one folder up to a write id."""

    folder: str
    txn: int
    inputs: set[str]
    name: str
    highest: int


class Healthy:
    """A partitioned table, its metastore, writers, a compactor and a cleaner, each step of which may come next."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.given = self.sequence = 0
        self.open_txns: set[int] = set()
        self.aborted_txns: set[int] = set()
        self.txn_of: dict[int, int] = {}
        self.disk: dict[str, set[str]] = {}
        self.known: set[str] = set()
        self.writers: list[Writer] = []
        self.compactor: Compactor | None = None
        self.to_clean: list[tuple[str, set[str], int]] = []
        self.to_remove = ""
        self.succeeded: dict[str, int] = {}

    @property
    def txns(self) -> ValidTxns:
        open_ids = tuple(sorted(self.open_txns))
        return ValidTxns(
            self.sequence, min(open_ids, default=self.sequence + 1), open_ids, tuple(sorted(self.aborted_txns))
        )

    @property
    def ids(self) -> ValidWriteIds:
        opened = tuple(i for i, txn in sorted(self.txn_of.items()) if txn in self.open_txns)
        aborted = tuple(i for i, txn in sorted(self.txn_of.items()) if txn in self.aborted_txns)
        return ValidWriteIds(self.given, min(opened, default=self.given + 1), opened, aborted, table="d.t")

    def begin(self) -> int:
        self.sequence += 1
        self.open_txns.add(self.sequence)
        return self.sequence

    def end(self, txn: int, *, commit: bool) -> None:
        self.open_txns.discard(txn)
        if not commit:
            self.aborted_txns.add(txn)

    def step(self) -> None:
        """Do one thing; the folder of a dropped partition goes next."""
        if self.to_remove:
            self.disk.pop(self.to_remove, None)
            self.to_remove = ""
            return
        self.chance.choice([self.write, self.write, self.write, self.compact, self.compact, self.clean, self.drop])()

    def write(self) -> None:
        if len(self.writers) < 3 and self.chance.random() < 0.4:
            txn = self.begin()
            self.given += 1
            self.txn_of[self.given] = txn
            wanted = self.chance.sample(_FOLDERS, self.chance.randint(0, 2))
            self.writers.append(Writer(self.given, txn, wanted))
        elif self.writers:
            writer = self.chance.choice(self.writers)
            if missing := [name for name in writer.folders if name not in writer.made]:
                kind = self.chance.choice([Kind.DELTA, Kind.DELETE_DELTA])
                name = format_directory(kind, writer.id, writer.id, 0)
                self.disk.setdefault(missing[0], set()).add(name)
                writer.made.add(missing[0])
            elif new := [name for name in writer.folders if name not in self.known]:
                if self.chance.random() < 0.8:
                    self.known.add(new[0])
                else:
                    self.abort(writer)
            elif self.chance.random() < 0.8:
                self.end(writer.txn, commit=True)
                self.writers.remove(writer)
            else:
                self.abort(writer)

    def abort(self, writer: Writer) -> None:
        self.end(writer.txn, commit=False)
        self.writers.remove(writer)

    def compact(self) -> None:
        compactor = self.compactor
        if compactor and compactor.name not in self.disk.get(compactor.folder, set()):
            self.disk.setdefault(compactor.folder, set()).add(compactor.name)
        elif compactor:
            is_done = self.chance.random() < 0.6
            self.end(compactor.txn, commit=is_done)
            if is_done:
                self.to_clean.append((compactor.folder, compactor.inputs, compactor.highest))
            self.compactor = None
        elif free := sorted(self.known & self.disk.keys() - {folder for folder, *_ in self.to_clean}):
            folder = self.chance.choice(free)
            ids, txns, found = self.ids, self.txns, []
            highest = min(ids.open, default=self.given + 1) - 1
            for name in self.disk[folder]:
                directory = acid_directory(name)
                assert directory
                seen = not directory.visibility_txn or txns.is_valid(directory.visibility_txn)
                if seen and directory.max_write_id <= highest and ids.is_valid(directory.max_write_id):
                    found.append(directory)
            if len({d.range for d in found}) > 1:
                txn, top = self.begin(), max(d.max_write_id for d in found)
                name = format_directory(Kind.BASE, top, top, visibility_txn=txn)
                self.compactor = Compactor(folder, txn, {d.name for d in found}, name, highest)

    def clean(self) -> None:
        if self.to_clean:
            folder, names, highest = self.to_clean.pop(0)
            if folder in self.disk:
                self.disk[folder] -= names
                self.succeeded[folder] = max(highest, self.succeeded.get(folder, 0))

    def drop(self) -> None:
        busy = {name for writer in self.writers for name in writer.folders} | {f for f, *_ in self.to_clean}
        busy |= {self.compactor.folder} if self.compactor else set()
        if (free := sorted(self.known - busy)) and self.chance.random() < 0.1:
            self.to_remove = self.chance.choice(free)
            self.known.discard(self.to_remove)
            self.succeeded.pop(self.to_remove, None)

    def look(self) -> Look:
        """List; let others go on; then ask for the lists, and later for the partitions."""
        listed = {name: set(names) for name, names in self.disk.items()}
        self.rest()
        given, ids, txns = self.given, self.ids, self.txns
        self.rest()
        known, succeeded = set(self.known), dict(self.succeeded)
        compacting = frozenset({self.compactor.txn} if self.compactor else ())
        folders = []
        for folder, names in sorted(listed.items()):
            directories = tuple(d for name in sorted(names) if (d := acid_directory(name)))
            ahead = []
            for what, least, key in (
                ("write id", given, "max_write_id"),
                ("transaction", txns.high_watermark, "visibility_txn"),
            ):
                if above := tuple(d.name for d in directories if getattr(d, key) > least):
                    ahead.append(Reason(Code.ABOVE_GIVEN, above, (), (("what", what), ("given", least))))
            folders.append(Folder(folder, directories, known=folder in known, ahead=tuple(ahead)))
        return Look(tuple(folders), Answers(given, txns.high_watermark, ids, txns, compacting, succeeded))

    def rest(self) -> None:
        for _ in range(self.chance.randint(0, 3)):
            self.step()


@pytest.mark.sampled(7)
@pytest.mark.parametrize("seed", range(300))
def test_a_healthy_table_is_never_named(seed: int) -> None:
    healthy = Healthy(random.Random(seed))
    for _ in range(_STEPS):
        healthy.step()
        first = healthy.look()
        if first.findings:
            healthy.step()  # a dropped partition loses its folder within the second
            again = healthy.look()
            found = Look(again.folders, again.answers, before=first).findings
            assert [finding for finding in found if not finding.kind.is_hint] == [], seed
    assert healthy.given
