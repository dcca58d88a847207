"""`acidctl history`, `blame` and `diff` from outside."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet
from support.command_line import redirected
from support.tables import CLEAN_NOW

Call = Callable[..., Any]
ROW = {"writeid": 1, "bucketid": 536870912, "rowid": 2}


@pytest.fixture
def cleaned(acidctl: Call, crud: Path) -> Path:
    """The walk-through table after a major compaction, and without what that made obsolete."""
    assert acidctl("compact", "--assume-committed=0s", "--major", "--engine", "local", crud).status == 0
    assert acidctl(*CLEAN_NOW, crud).status == 0
    return crud


def test_history_lists_every_write_id_with_its_counts(acidctl: Call, crud: Path) -> None:
    found = acidctl("history", "-o", "json", crud)
    report = found.one()
    assert (report["schema_version"], report["unknownBelow"], report["problems"]) == (1, None, [])
    names = ("writeId", "inserted", "updated", "deleted", "complete", "state")
    assert [tuple(line[name] for name in names) for line in report["writeIds"]] == [
        (1, 3, 0, 0, True, None),
        (2, 0, 1, 0, True, None),
        (3, 0, 0, 1, True, None),
    ]
    assert "every write id on disk counts as committed" in found.err
    assert len(acidctl("history", "-o", "jsonl", crud).lines()) == 1
    rows = list(csv.DictReader(acidctl("history", "-o", "csv", crud).out.splitlines()))
    assert [len(row["directories"].split()) for row in rows] == [1, 2, 1]
    states = acidctl("history", "-o", "json", "--snapshot", "test_db.crud_table:3:2:2:1", crud).one()["writeIds"]
    assert [line["state"] for line in states] == ["aborted", "open", "committed"]
    shown = acidctl("history", crud).out.splitlines()
    assert shown[1].split()[:5] == ["write", "id", "inserted", "updated", "deleted"]
    assert "unknown" not in shown[-1]


def test_history_below_a_base_is_told_as_unknown(acidctl: Call, cleaned: Path) -> None:
    shown = acidctl("history", cleaned).out
    assert "2 left ? ? - compacted into base_0000003" in " ".join(shown.split())
    assert "rows: unknown below 4" in shown
    (line,) = acidctl("history", "-o", "json", cleaned).one()["writeIds"]
    assert (line["updated"], line["deleted"], line["complete"], line["modified"]) == (None, None, False, None)


def test_history_of_a_tree_is_a_report_for_each_location(acidctl: Call, tmp_path: Path) -> None:
    for name in ("p=0", "p=1"):
        acidctl("demo", tmp_path / name)
    assert [report["location"][-3:] for report in acidctl("history", "-o", "jsonl", tmp_path).lines()] == ["p=0", "p=1"]
    assert acidctl("history", tmp_path / "none").status == 3


@pytest.mark.parametrize("row", ["1:536870912:2", json.dumps(ROW), json.dumps({"ROW__ID": ROW})])
def test_blame_tells_who_wrote_and_deleted_a_row(acidctl: Call, crud: Path, row: str) -> None:
    shown = acidctl("blame", crud, row).out
    assert shown.startswith("1:536870912:2\n  deleted: ")
    assert "inserted by write id 1: delta_0000001_0000001_0000/bucket_00000 (current)" in shown
    assert "by write id 2: delete_delta_0000002_0000002_0000/bucket_00000 (current)" in shown
    report = acidctl("blame", crud, row, "-o", "json").json()
    assert (report["schema_version"], report["rowId"], report["status"]) == (1, ROW, "deleted")
    assert [(one["writeId"], one["maybeUpdate"]) for one in report["changes"]] == [(2, True)]


def test_blame_of_a_row_that_is_gone_says_since_when(acidctl: Call, cleaned: Path) -> None:
    found = acidctl("blame", cleaned, "1:536870912:2")
    assert (found.status, found.out) == (3, "")
    assert "no row 1:536870912:2" in found.err
    assert "deleted before base_0000003 was compacted" in found.err
    shown = acidctl("blame", cleaned, "1:536870912:1").out
    assert "inserted by write id 1, whose own directory is gone" in shown
    assert "rewritten into base_0000003/bucket_00000 (current)" in shown
    assert acidctl("blame", cleaned, "1:2").status == 2


def test_blame_wants_one_location(acidctl: Call, tmp_path: Path) -> None:
    for name in ("p=0", "p=1"):
        acidctl("demo", tmp_path / name)
    found = acidctl("blame", tmp_path, "1:536870912:2")
    assert found.status == 2
    assert "holds 2 locations" in found.err


def test_diff_shows_rows_that_went_and_came(acidctl: Call, crud: Path) -> None:
    old, new = {"id": 3, "value": "C"}, {"id": 3, "value": "CC"}
    assert acidctl("diff", crud, "--from", "1", "--to", "2").lines() == [
        {"change": "-", **old},
        {"change": "+", **new},
    ]
    paired = acidctl("diff", crud, "--from", "1", "--to", "2", "--key", "ID", "--columns", "value").lines()
    assert [(row["change"], row["old"], row["new"]) for row in paired] == [("~", old, new)]
    back = acidctl("diff", crud, "--from", "2", "--to", "1", "--columns", "value").lines()
    assert back == [{"change": "-", "value": "CC"}, {"change": "+", "value": "C"}]
    assert acidctl("diff", crud, "--from", "0", "--row-id").lines()[0] == {
        "change": "+",
        "ROW__ID": {"writeid": 1, "bucketid": 536870912, "rowid": 0},
        "id": 1,
        "value": "A",
    }
    counts = acidctl("diff", crud, "--from", "1", "--count").json()
    assert (counts["schema_version"], counts["disappeared"], counts["appeared"]) == (1, 1, 0)
    assert acidctl("diff", crud, "--from", "3").out == ""


@pytest.mark.parametrize("key", [[], ["--key", "id"]])
def test_diff_is_written_in_every_form(acidctl: Call, crud: Path, tmp_path: Path, key: list[str]) -> None:
    for form in ("csv", "table", "jsonl"):
        assert acidctl("diff", crud, "--from", "1", "--to", "2", "-o", form, *key).status == 0
    out = tmp_path / "changes.parquet"
    redirected(out, "diff", crud, "--from", "1", "--to", "2", "-o", "parquet", *key)
    assert parquet.read_table(out).column_names[0] == "change"


def test_diff_below_the_oldest_readable_write_id_is_refused(acidctl: Call, cleaned: Path) -> None:
    found = acidctl("diff", cleaned, "--from", "1")
    assert found.status == 10
    assert "the oldest write id that can still be read is 3" in found.err
    assert acidctl("diff", cleaned, "--from", "3", "--columns", "nope").status == 3
    assert acidctl("diff", cleaned, "--from", "3", "--key", "nope").status == 3
    assert acidctl("diff", cleaned, "--from", "3", "--key", ",").status == 2
    assert acidctl("diff", cleaned, "--from", "3", "--count", "--row-id").status == 2
    assert acidctl("diff", cleaned).status == 2
