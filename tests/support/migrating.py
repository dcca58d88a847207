"""Copies to Iceberg in short: made or brought up to date, and their rows as PyIceberg reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyiceberg.table import StaticTable

from acidctl.acid.assumed_commits import Assumption
from acidctl.location.snapshot_resolver import SnapshotResolver, SnapshotSpec
from acidctl.verbs.events import Events
from acidctl.verbs.iceberg.migrate import migrate
from acidctl.verbs.iceberg.options import Migrated, MigrateOptions
from acidctl.verbs.selection import Selection

COMMITTED = SnapshotResolver(SnapshotSpec(assumption=Assumption(0.0)))


def copy(table: Path, to: Path | str, *, resolver: SnapshotResolver = COMMITTED, **options: Any) -> Migrated:
    """Copy a table, or bring the copy up to date if there is one in a directory."""
    options = {"catch_up": (Path(to) / "metadata").exists(), **options}
    selection = Selection((str(table),), resolver=resolver)
    return list(migrate(selection, MigrateOptions(to=str(to), **options), Events()))[-1]


def rows(to: Path) -> list[Any]:
    return sorted(
        (tuple(row.values()) for row in StaticTable.from_metadata(str(to)).scan().to_arrow().to_pylist()), key=str
    )


def summary(to: Path) -> dict[str, str]:
    """Return the properties of the newest snapshot."""
    snapshot = StaticTable.from_metadata(str(to)).current_snapshot()
    return dict(snapshot.summary.additional_properties) if snapshot and snapshot.summary else {}
