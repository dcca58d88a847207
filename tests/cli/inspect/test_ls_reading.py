"""What reading a location costs, in the lists of locations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.tables import snapshot_of

from acidctl.rows.scan.scan import Scan

SHOWN = ("--no-headers", "--columns", "location,helps")


@pytest.fixture
def warehouse(acidctl, tmp_path: Path) -> Path:  # type: ignore[no-untyped-def]
    root = tmp_path / "sales.db"
    acidctl("demo", root / "worn")
    acidctl("demo", root / "fresh")
    acidctl("compact", "--assume-committed=0s", "--major", "--engine", "local", root / "fresh")
    (root / "empty").mkdir()
    return root


def reading(acidctl: Any, place: Path) -> dict[str, Any]:
    figures: dict[str, Any] = acidctl("ls", "-o", "json", place).one()
    return figures


def test_the_costliest_comes_first(acidctl, warehouse: Path) -> None:  # type: ignore[no-untyped-def]
    worn = reading(acidctl, warehouse / "worn")
    assert (worn["directoriesRead"], worn["helps"]) == (4, "major")
    assert [reading(acidctl, warehouse / name)["cost"] for name in ("fresh", "empty")] == [0, 0]
    for key in ("gain", "cost", "score:asc", "saved", "rewritten"):
        first, *others = acidctl("ls", "--sort", key, *SHOWN, warehouse).out.splitlines()
        assert first.split() == [str(warehouse / "worn"), "major"], key
        assert [line.split()[1] for line in others] == ["-", "-"], key


def test_locations_are_chosen_by_what_they_cost(acidctl, warehouse: Path) -> None:  # type: ignore[no-untyped-def]
    for where in ("score < 50", "gain > 1", "helps = 'major'", "secondsAfter < seconds"):
        (line,) = acidctl("ls", "--where", where, *SHOWN, warehouse).out.splitlines()
        assert line.split()[0] == str(warehouse / "worn"), where


def test_what_is_said_to_cost_nothing_needs_no_compaction(acidctl, warehouse: Path) -> None:  # type: ignore[no-untyped-def]
    """The compaction that helps ends what it helps against."""
    table = warehouse / "worn"
    first = reading(acidctl, table)
    rows = Scan(snapshot_of(table)).count()
    assert acidctl("compact", f"--{first['helps']}", "--assume-committed=0s", "--engine", "local", table).status == 0
    again = reading(acidctl, table)
    assert first["cost"] - again["cost"] == first["saved"]
    assert (again["filesRead"], again["score"], again["filesAfter"]) == (first["filesAfter"], 100, again["filesRead"])
    assert first["score"] < 100
    assert abs(again["seconds"] - first["secondsAfter"]) < 0.001, "but for what the files are smaller by"
    assert Scan(snapshot_of(table)).count() == rows


def test_folded_partitions_have_the_sums(acidctl, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    for day in range(6):
        acidctl("demo", tmp_path / "orders" / f"day={day}")
    one = reading(acidctl, tmp_path / "orders" / "day=0")
    columns = "locations,score,helps,gain,seconds"
    words = ("--no-headers", "--columns", columns, tmp_path / "orders")
    (folded,) = acidctl("ls", *words).out.splitlines()
    line = dict(zip(columns.split(","), folded.replace(" KiB", "KiB").replace(" MiB", "MiB").split(), strict=True))
    assert (line["locations"], line["score"], line["helps"]) == ("6", str(one["score"]), "major")
    assert float(line["gain"].replace(",", "")) == pytest.approx(one["gain"], rel=0.01)
    assert float(line["seconds"]) == pytest.approx(6 * one["seconds"], rel=0.01)


def test_what_helps_though_nothing_is_due_is_counted(acidctl, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    for number in range(6):
        acidctl("demo", tmp_path / f"worn{number}")
    assert ", no compaction is due, but one would save reads in 6" in acidctl("ls", tmp_path).out


def test_what_cannot_be_read_has_no_cost(acidctl, warehouse: Path) -> None:  # type: ignore[no-untyped-def]
    found = acidctl("ls", "-o", "json", "--snapshot", "sales.fresh:1:1:1:", warehouse / "fresh").one()
    assert found["historyProblem"]
    assert (found["score"], found["helps"], found["filesRead"]) == (None, None, None)
