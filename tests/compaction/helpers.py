"""Compacting a copy of a table in tests."""

from __future__ import annotations

import shutil
import uuid
from pathlib import Path

from tables import snapshot_of

from acidctl.acid.layout import TableType
from acidctl.acid.triggers import CompactionKind
from acidctl.acid.writeids import ValidWriteIds
from acidctl.compaction.output_settings import Writing
from acidctl.compaction.plan import nothing_to_do, plan_compaction
from acidctl.compaction.run import Outcome, compact


def copy_table(source: Path, target: Path) -> Path:
    """A writable copy."""
    shutil.copytree(source, target)
    for path in target.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return target


def run_compaction(
    table: Path, kind: CompactionKind, write_ids: ValidWriteIds | None = None, writing: Writing | None = None
) -> Outcome | None:
    """Compact in this process, nobody reading meanwhile; None when there is nothing to do."""
    snapshot = snapshot_of(table, (write_ids or ValidWriteIds()).for_compactor())
    if nothing_to_do(snapshot, kind):
        return None
    plan = plan_compaction(snapshot, kind, f"_tmp_{uuid.uuid4()}", writing, table_type=TableType.FULL_ACID)
    (outcome,) = compact([plan], offline=True)
    if outcome.error:
        raise outcome.error
    return outcome
