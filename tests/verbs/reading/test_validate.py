"""The verb: what it refuses, and what a location that cannot be checked becomes."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from support.validating import healthy

from acidctl.base.errors import StorageError, UsageProblem
from acidctl.location.table_location import TableLocation
from acidctl.outcome import Result
from acidctl.validation.report import Report
from acidctl.verbs.events import Events
from acidctl.verbs.reading.validate import ReadingTasks, ValidateOptions, errors_in, validate
from acidctl.verbs.selection import Selection

ONE = ReadingTasks(jobs=1)


def reports(path: Path, options: ValidateOptions | None = None) -> list[Report]:
    return list(validate(Selection((str(path),)), options or ValidateOptions(tasks=ONE), Events()))


@pytest.mark.parametrize(
    "options",
    [
        ValidateOptions(rules=("V99",)),
        ValidateOptions(rules=("v1",), ignored=("V1",)),
        ValidateOptions(rules=("V26",)),
        ValidateOptions(footers=True, rules=("V26",)),
        ValidateOptions(deep=True, timeout=0),
        ValidateOptions(tasks=ReadingTasks(engine="spark", jobs=2)),
    ],
)
def test_options_that_leave_nothing_to_find_are_refused(tmp_path: Path, options: ValidateOptions) -> None:
    with pytest.raises(UsageProblem):
        reports(healthy(tmp_path / "t"), options)


def test_a_location_of_which_nobody_says_what_counts_is_unchecked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without its lists, what is open or aborted would be taken for committed."""
    for name in ("a", "b"):
        healthy(tmp_path / "w" / name)
    resolve = TableLocation.resolve

    def fails(found: TableLocation, **how: Any) -> Any:
        if found.shown.endswith("/a"):
            raise StorageError("the metastore cannot be asked", "it is down")
        return resolve(found, **how)

    monkeypatch.setattr(TableLocation, "resolve", fails)
    first, second = reports(tmp_path / "w")
    assert (first.result, [item.error.code for item in first.unchecked]) == (Result.UNCHECKED, ["storage"])
    assert second.result is Result.NOTHING_FOUND


def test_errors_of_a_deep_check_stand_against_a_compaction(tmp_path: Path) -> None:
    table = healthy(tmp_path / "t")
    shutil.copytree(table, tmp_path / "bad")
    (tmp_path / "bad" / "delta_0000002_0000002_0000" / "bucket_00000").write_bytes(b"garbage")
    snapshots = [found.snapshot() for found in Selection((str(table), str(tmp_path / "bad"))).changeable(Events())]
    good, bad = errors_in(snapshots, 1, Events())
    assert (good, bad.startswith("V24 ")) == ("", True)
