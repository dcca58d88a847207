"""Delete events that are not of a later write id than the rows they name, as Hive 3.1.3 and 4.0.1 read them.

The rows of each table were measured with both Hives, in all of their readers; ``tests/oracle/test_shared_row_ids.py``
measures them again.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from support.compacting import compact_location
from support.made.early_deletes import EARLY, EarlyDeletes
from support.tables import read_rows, snapshot_of
from support.validating import check

from acidctl.acid.compaction_kind import CompactionKind
from acidctl.base.errors import RefusedError
from acidctl.compaction.request import CompactionRequest, Mode
from acidctl.rows.scan.scan import Scan
from acidctl.validation.findings import Depth


def shown(table: Path) -> list[int]:
    return sorted(row["id"] for _, row in read_rows(table))


@pytest.mark.parametrize("case", EARLY.values(), ids=EARLY)
def test_events_reach_rows_as_in_hive_4(tmp_path: Path, case: EarlyDeletes) -> None:
    case.make(tmp_path)
    assert shown(tmp_path) == case.by_rows
    assert Scan(snapshot_of(tmp_path)).count() == len(case.by_rows)
    told = {finding.rule for report in check(tmp_path, depth=Depth.DEEP) for finding in report.findings}
    assert ("V35" in told) is case.is_told


@pytest.mark.parametrize("kind", list(CompactionKind))
@pytest.mark.parametrize("case", EARLY.values(), ids=EARLY)
def test_a_compaction_keeps_what_both_readers_show_or_refuses(
    tmp_path: Path, case: EarlyDeletes, kind: CompactionKind
) -> None:
    """In one directory of several write ids vectorized readers go by keys alone: no event may be left to them there."""
    case.make(tmp_path)
    request = CompactionRequest(Mode(kind.value), offline=True)
    if case.is_refused(kind):
        with pytest.raises(RefusedError):
            compact_location(str(tmp_path), request)
        assert shown(tmp_path) == case.by_rows
        return
    compact_location(str(tmp_path), request)
    assert shown(tmp_path) == case.by_rows
    new = [entry.name for entry in tmp_path.iterdir() if entry.name.startswith("delete_delta_0000001_0000009")]
    assert bool(new) is (kind is CompactionKind.MINOR and case.keeps_event)
