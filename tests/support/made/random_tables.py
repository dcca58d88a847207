"""Random tables with all that ever happened to them written down: for history, blame and diff."""

from __future__ import annotations

import random
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from acidctl.acid.bucket import encode
from acidctl.acid.compaction_kind import CompactionKind
from acidctl.acid.names import Kind, format_directory
from acidctl.acid.state import State
from acidctl.orc.types import OrcType
from support.compacting import run_compaction
from support.files.acid_files import struct, write_acid
from support.tables import mark, snapshot_of

ROW = struct(id=OrcType("int"), value=OrcType("string"))

Key = tuple[int, int, int]
Rows = dict[Key, dict[str, Any]]


@dataclass
class Made:
    """A table and its past.

    Attributes:
        inserts, deletes: keys by write id.
        values: of every row there ever was.
        lost: the newest write id of which a cleaned major compaction destroyed the deltas.
    """

    path: Path
    inserts: dict[int, list[Key]] = field(default_factory=dict)
    deletes: dict[int, list[Key]] = field(default_factory=dict)
    values: Rows = field(default_factory=dict)
    last: int = 0
    lost: int = 0

    def rows_at(self, write_id: int) -> Rows:
        """What a reader saw when `write_id` was the newest."""
        gone = {key for at, keys in self.deletes.items() if at <= write_id for key in keys}
        keys = [key for at, keys in self.inserts.items() if at <= write_id for key in keys if key not in gone]
        return {key: self.values[key] for key in keys}


def make_table(path: Path, seed: int, steps: int = 9) -> Made:
    """Inserts, updates and deletes in up to two buckets, compactions, and cleanings of what is obsolete."""
    choice = random.Random(seed)
    made = Made(path)
    path.mkdir()
    for _ in range(steps):
        step(made, choice)
    return made


def step(made: Made, choice: random.Random) -> None:
    """One more thing that happens to a table."""
    kind = choice.choice(["insert", "update", "update", "delete", "mixed", "minor", "major", "clean", "gap"])
    if kind in ("minor", "major") and made.last:
        run_compaction(made.path, CompactionKind(kind))
    elif kind == "clean":
        _clean(made)
    elif kind == "gap":
        made.last += 1  # another partition's
    elif kind not in ("minor", "major"):
        write(made, choice, kind)


def _clean(made: Made) -> None:
    for verdict in snapshot_of(made.path).state.in_state(State.OBSOLETE):
        shutil.rmtree(made.path / verdict.name)
    base = snapshot_of(made.path).state.base
    if base and base.directory:
        made.lost = base.directory.max_write_id


def write(made: Made, choice: random.Random, kind: str) -> None:
    """One write id more: ``insert``, ``update``, ``delete`` or ``mixed``."""
    made.last += 1
    write_id = made.last
    live = sorted(made.rows_at(write_id))
    dead = [] if kind == "insert" else sorted(choice.sample(live, choice.randint(0, min(len(live), 4))))
    count = {"delete": 0, "update": len(dead)}.get(kind, choice.randint(1, 12))
    buckets = [choice.randrange(2) for _ in range(count)]
    new: list[Key] = []
    for number in (0, 1):
        new += [(write_id, encode(number, 0), row) for row in range(buckets.count(number))]
    for key in new:
        made.values[key] = {"id": choice.randrange(40), "value": f"w{write_id}"}
    if new:
        made.inserts[write_id] = new
        _directory(made, Kind.DELTA, write_id, 0, new)
    if dead:
        made.deletes[write_id] = dead
        _directory(made, Kind.DELETE_DELTA, write_id, 2, dead)


def _directory(made: Made, kind: Kind, write_id: int, operation: int, keys: list[Key]) -> None:
    files: dict[int, list[Key]] = {}
    for key in keys:
        files.setdefault(key[1] >> 16 & 0xFFF, []).append(key)
    directory = made.path / format_directory(kind, write_id, write_id, 0)
    for number, part in files.items():
        events = [(operation, *key, write_id, made.values[key] if operation == 0 else None) for key in part]
        write_acid(directory / f"bucket_{number:05d}", *events, row=ROW)
    mark(directory)
