"""Compacting a copy of a table in tests."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from acidctl.acid.compaction_kind import CompactionKind
from acidctl.acid.listing import TableType
from acidctl.acid.writeids import ValidWriteIds
from acidctl.compaction import plan
from acidctl.compaction.due import below_straddlers
from acidctl.compaction.output_settings import Writing
from acidctl.compaction.refusals import refuse_lost_rows
from acidctl.compaction.request import CompactionRequest, Mode, NoWork, PlanRefused, carry_out, plan_location
from acidctl.compaction.run import Compacted
from acidctl.location.change.lock import Locking
from acidctl.location.find import find
from acidctl.location.metastore_schema import Declared
from acidctl.location.snapshot import Snapshot
from acidctl.location.snapshot_resolver import SnapshotResolver, SnapshotSpec
from acidctl.orc.types import OrcType, hive_type


def copy_table(source: Path, target: Path) -> Path:
    """A writable copy."""
    shutil.copytree(source, target)
    for path in target.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return target


def run_compaction(
    table: Path,
    kind: CompactionKind,
    write_ids: ValidWriteIds | None = None,
    writing: Writing | None = None,
    columns: OrcType | None = None,
) -> Compacted | None:
    """Compact a full-ACID table in this process, nobody reading meanwhile; None when there is nothing to do.

    Args:
        columns: of the table, as a metastore would say them.
    """
    request = CompactionRequest(
        Mode(kind.value),
        table_type=TableType.FULL_ACID,
        force=True,
        offline=True,
        writing=writing or Writing(),
        locking=Locking(hold=False),
    )
    return compact_location(str(table), request, write_ids, columns=columns)


def compact_location(
    url: str,
    request: CompactionRequest,
    write_ids: ValidWriteIds | None = None,
    storage: Mapping[str, str] | None = None,
    columns: OrcType | None = None,
) -> Compacted | None:
    """What `acidctl compact` does with one location; None when there is nothing to do, and errors are raised."""
    resolver = SnapshotResolver(SnapshotSpec(of_any_table=write_ids))  # whatever table the list names
    (found,) = find([url], storage or {}, resolver)
    if columns:
        found = replace(found, declared=Declared(tuple((name, hive_type(kind)) for name, kind in columns.fields()), ""))
    answer = plan_location(found, request)
    if isinstance(answer, PlanRefused):
        raise answer.error
    if isinstance(answer, NoWork):
        return None
    (outcome,) = carry_out([answer], request)
    if outcome.error:
        raise outcome.error
    return outcome


def plan_compaction(
    snapshot: Snapshot,
    kind: CompactionKind,
    staging_name: str,
    writing: Writing | None = None,
    visibility_txn: int = 0,
    *,
    table_type: TableType | None = None,
    rebalance: int | None = None,
) -> plan.CompactionPlan:
    """Plan the compaction of a snapshot in the order of `plan_resolved`, whatever is due."""
    snapshot = below_straddlers(snapshot)
    refuse_lost_rows(snapshot)
    sources, known = plan.open_inputs(snapshot, kind, table_type)
    return plan.plan_compaction(
        snapshot,
        sources,
        known,
        kind,
        staging_name=staging_name,
        writing=writing or Writing(),
        visibility_txn=visibility_txn,
        rebalance=rebalance,
    )
