"""Catch-ups that are repeated."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from support.files.acid_files import insert, write_acid
from support.migrating import COMMITTED, copy, rows

from acidctl.base.errors import UsageProblem
from acidctl.verbs.events import Events
from acidctl.verbs.iceberg import migrate as repeating
from acidctl.verbs.iceberg.migrate import migrate
from acidctl.verbs.iceberg.options import MigrateOptions
from acidctl.verbs.selection import Selection


def added(table: Path, at: int) -> None:
    write_acid(table / f"delta_{at:07}_{at:07}_0000" / "bucket_00000", insert(at, 0, (at, "x")))


def test_a_catch_up_is_repeated_until_it_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, to = tmp_path / "t", tmp_path / "copy"
    added(table, 1)
    copy(table, to)
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 1:
            added(table, 2)
        elif len(pauses) == 2:
            (table / "delta_0000003_0000003_0000").mkdir()
            (table / "delta_0000003_0000003_0000" / "bucket_00000").write_bytes(b"no ORC")
        elif len(pauses) == 3:
            shutil.rmtree(table / "delta_0000003_0000003_0000")
            added(table, 4)
        else:
            raise KeyboardInterrupt

    monkeypatch.setattr(repeating, "_pause", pause)
    events = Events()
    options = MigrateOptions(to=str(to), catch_up=True, every=60.0)
    done = list(migrate(Selection((str(table),), resolver=COMMITTED), options, events))
    assert [one.rows for one in done] == [1, 1], "rounds without news are silent"
    assert [place for place, _ in events.errors] == [str(table)]
    assert len(rows(to)) == 3
    assert len(pauses) == 4
    assert all(50 < pause <= 60 for pause in pauses)


@pytest.mark.parametrize("more", [{}, {"catch_up": True, "dry_run": True}, {"catch_up": True, "every": 0.5}])
def test_only_catch_ups_are_repeated(tmp_path: Path, more: dict[str, Any]) -> None:
    added(tmp_path / "t", 1)
    options = MigrateOptions(to=str(tmp_path / "copy"), **{"every": 60.0, **more})
    with pytest.raises(UsageProblem, match="--every repeats"):
        list(migrate(Selection((str(tmp_path / "t"),), resolver=COMMITTED), options, Events()))
