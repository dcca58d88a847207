"""Writes a history to disk with Hive's own writers and compactor."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from acidctl.acid.names import METADATA_ACID
from acidctl.acid.sidefiles import METADATA_ACID_COMPACTED
from support.judge.history import History, Plan, Write, resolve
from support.judge.hive import DELETE, INSERT, Hive, StoredEvent
from support.judge.txns import Txns


@dataclass(frozen=True, slots=True)
class Played:
    """A history on disk."""

    plan: Plan
    table: Path
    compactions: tuple[tuple[str, tuple[str, ...]], ...]
    """(kind, new directories) of the compactions that had something to do."""

    def readable(self, txns: Txns) -> bool:
        """Whether the snapshot still has its history: the oldest base must not hide what it must not see."""
        bases = [int(child.name[5:]) for child in self.table.glob("base_*")]
        return not bases or txns.accepts_base(min(bases))

    def snapshots(self) -> list[Txns]:
        return [txns for txns in self.plan.snapshots() if self.readable(txns)]


def play(history: History, hive: Hive, table: Path) -> Played:
    """Write the history below `table` (made here) with Hive's writers, compacting with Hive where it says so."""
    table.mkdir(parents=True)
    plan = resolve(history)
    copies: dict[int, int] = {}
    for bucket, rows in history.originals:
        copy = copies.get(bucket, 0)
        copies[bucket] = copy + 1
        name = f"{bucket:06d}_0" + (f"_copy_{copy}" if copy else "")
        hive.write_original(table / name, history.schema, rows, dict(history.orc))
    done: list[tuple[str, tuple[str, ...]]] = []
    for action in plan.actions:
        if isinstance(action, Write):
            (_write_v0 if history.codec == 0 else _write_v1)(hive, history, table, action)
            continue
        compaction, txns = action
        made = hive.compact(
            table, history.schema, compaction.kind, txns, version=history.version, buckets=history.buckets
        )
        if made:
            done.append((compaction.kind, tuple(made)))
        for name in made:
            if name.startswith("base_"):
                # As Hive 3's compactor writes it: without, its readers take the base for an INSERT OVERWRITE.
                (table / name / METADATA_ACID).write_bytes(METADATA_ACID_COMPACTED)
        if compaction.clean:
            clean(hive, table, txns, history.version)
    return Played(plan, table, tuple(done))


def clean(hive: Hive, table: Path, txns: Txns, version: int) -> list[str]:
    """Remove what Hive calls obsolete for this snapshot."""
    obsolete = list(hive.state(table, txns, version=version)["obsolete"])
    for name in obsolete:
        path = table / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    return obsolete


def _write_v0(hive: Hive, history: History, table: Path, write: Write) -> None:
    orc = dict(history.orc)
    verbs = [(txn, effects.verbs) for txn, effects in write.transactions]
    place = {"bucket": write.bucket, "version": history.version}
    if write.span[0] < write.span[1]:
        hive.write_streaming(table, history.schema, *write.span, verbs, orc=orc, leave_open=write.left_open, **place)
    else:
        ((txn, events),) = verbs
        hive.write_delta(table, history.schema, txn, events, statement=write.statement, orc=orc, **place)


def _write_v1(hive: Hive, history: History, table: Path, write: Write) -> None:
    changes = [change for _, effects in write.transactions for change in effects.changes]
    for kind, operation in (("delta", INSERT), ("delete_delta", DELETE)):
        chosen = sorted((c for c in changes if c.operation == operation), key=lambda c: c.key)
        rows = [StoredEvent(c.operation, *c.key, c.current, c.row) for c in chosen]
        place = {"bucket": write.bucket, "statement": write.statement, "orc": dict(history.orc)}
        if rows:
            hive.write_events(table, history.schema, write.span, rows, kind=kind, **place)
