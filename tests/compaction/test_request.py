"""The plan of one location where an interrupted publication is finished first."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.files.acid_files import insert, write_acid

from acidctl.base.errors import StorageError
from acidctl.compaction import request as module
from acidctl.compaction.request import CompactionRequest, PlanRefused, plan_location
from acidctl.location.change.publication import INTENT
from acidctl.location.find import find
from acidctl.location.resolved import ResolvedLocation, resolve
from acidctl.location.snapshot_resolver import SnapshotResolver
from acidctl.location.table_location import TableLocation


def test_what_was_finished_is_told_if_the_location_cannot_be_listed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in (1, 2):
        write_acid(tmp_path / f"delta_{number}_{number}_0" / "bucket_00000", insert(number, 0, (number,)))
    write_acid(tmp_path / "_tmp_7" / "delta_1_2" / "bucket_00000", insert(1, 0, (1,)), insert(2, 0, (2,)))
    (tmp_path / "delete_delta_1_2").mkdir()
    (tmp_path / "_tmp_7" / INTENT).write_text('{"names": ["delete_delta_1_2", "delta_1_2"]}')
    (tmp_path / "_tmp_7" / "_owner.json").write_text("{}")
    calls = []

    def fails_later(found: TableLocation, *, compactor: bool, queue: bool) -> ResolvedLocation:
        calls.append(found)
        if len(calls) > 1:
            raise StorageError("cannot list it", "no answer")
        return resolve(found, compactor=compactor, queue=queue)

    monkeypatch.setattr(module, "resolve", fails_later)
    (found,) = find([str(tmp_path)], {}, SnapshotResolver())
    answer = plan_location(found, CompactionRequest("major"))
    assert isinstance(answer, PlanRefused)
    assert answer.error.what == "cannot list it"
    assert (tmp_path / "delta_1_2" / "bucket_00000").exists()
    assert answer.finished == ("delta_1_2",)
    assert answer.snapshot
