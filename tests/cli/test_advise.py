"""Ranking locations."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from tables import snapshot_of

from acidctl.rows.scan import Scan
from acidctl.storage.walk import find_locations


@pytest.fixture
def warehouse(acidctl, tmp_path: Path) -> Path:  # type: ignore[no-untyped-def]
    root = tmp_path / "sales.db"
    acidctl("demo", root / "worn")
    acidctl("demo", root / "fresh")
    acidctl("compact", "--assume-committed=0s", "--major", "--engine", "local", root / "fresh")
    (root / "empty").mkdir()
    return root


def test_the_costliest_comes_first(acidctl, warehouse: Path) -> None:  # type: ignore[no-untyped-def]
    found = acidctl("advise", "-o", "jsonl", "--rows", warehouse)
    assert found.status == 0
    worn, *others = found.lines()
    assert worn["location"] == str(warehouse / "worn")
    assert (worn["directories"], worn["deleteFiles"]) == (4, 2)
    assert worn["deleteRows"] == 2
    assert worn["command"] == f"acidctl compact --{worn['compaction']} {warehouse / 'worn'}"
    assert [(one["cost"], one["compaction"], one["command"]) for one in others] == [(0, None, None)] * 2
    assert [one["location"] for one in others] == sorted(one["location"] for one in others)


def test_what_is_said_to_cost_nothing_needs_no_compaction(acidctl, warehouse: Path) -> None:  # type: ignore[no-untyped-def]
    """The command that is advised ends what made it advisable."""
    first = acidctl("advise", "-o", "json", "--limit", "1", warehouse).one()
    command = first["command"].split()[1:]
    offline = ["--offline"] if "--minor" in command else []
    rows = Scan(snapshot_of(warehouse / "worn")).count()
    told = ["--assume-committed=0s", *offline]
    assert acidctl(*command, *told, "--engine", "local").status == 0
    again = next(one for one in acidctl("advise", "-o", "jsonl", warehouse).lines() if one["location"].endswith("worn"))
    assert first["cost"] - again["cost"] == first["saved"]
    assert Scan(snapshot_of(warehouse / "worn")).count() == rows


def test_forms(acidctl, warehouse: Path) -> None:  # type: ignore[no-untyped-def]
    table = acidctl("advise", "--limit", "1", warehouse)
    assert "worn" in table.out
    assert "fresh" not in table.out
    assert "2 more, which come after these" in table.err
    records = list(csv.DictReader(acidctl("advise", "-o", "csv", "--sort", "files", warehouse).out.splitlines()))
    assert [int(record["files"]) for record in records] == sorted((int(r["files"]) for r in records), reverse=True)
    assert len(records) == len(list(find_locations(snapshot_of(warehouse / "worn").fs, str(warehouse))))


def test_what_cannot_be_ranked_is_said(acidctl, warehouse: Path) -> None:  # type: ignore[no-untyped-def]
    found = acidctl("advise", "-o", "jsonl", "--write-ids", "sales.fresh:1:1:1:", warehouse / "fresh")
    assert found.status != 0
    assert "not enough history" in found.err
    assert found.out == ""
    assert acidctl("advise", warehouse / "none").status == 3
