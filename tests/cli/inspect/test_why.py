"""`why`: proofs for people and for programs, of the walk-through table and of the cases that need explaining."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.files.acid_files import insert, write_acid
from support.tables import age, make

from acidctl.location.resolved import ResolvedLocation
from acidctl.location.table_location import TableLocation
from acidctl.verbs.reading import inspect as inspecting

FOUR = [
    "delta_0000001_0000001_0000", "delete_delta_0000002_0000002_0000", "delta_0000002_0000002_0000",
    "delete_delta_0000003_0000003_0000",
]  # fmt: skip


def proofs(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {proof["name"]: proof for proof in report["proofs"]}


def test_the_walkthrough_table_compacted_and_cleaned(acidctl, crud: Path) -> None:  # type: ignore[no-untyped-def]
    fresh = acidctl("why", crud)
    assert (fresh.status, fresh.out.splitlines()[0]) == (0, str(crud))
    assert "none: nothing was compacted yet" in fresh.out
    assert all(f"{name}  current" in fresh.out for name in FOUR)
    assert "counts as committed" in fresh.err

    assert acidctl("compact", "--assume-committed=0s", "--major", "--engine", "local", crud).status == 0
    young = proofs(acidctl("why", "-o", "json", crud).one())
    assert all(young[name]["cleaning"]["may"] == "kept-back" for name in FOUR)
    assert all("may go after" in young[name]["cleaning"]["text"] for name in FOUR)
    age(crud, 25)
    compacted = acidctl("why", crud)
    assert "base_0000003 is read" in compacted.out
    assert compacted.out.count("obsolete  its write ids are in base_0000003") == 4
    report = acidctl("why", "-o", "json", crud).one()
    assert set(report) == {
        "schema_version", "location", "name", "snapshot", "snapshotSource", "base", "historyProblem", "history",
        "proofs", "notes",
    }  # fmt: skip
    assert (report["schema_version"], report["base"], report["historyProblem"]) == (1, "base_0000003", None)
    made = proofs(report)
    assert all(made[name]["supersededBy"] == ["base_0000003"] for name in FOUR)
    assert all(made[name]["cleaning"]["may"] == "yes" for name in FOUR)
    assert made["base_0000003"]["writeIds"] == [{"first": 1, "last": 3, "status": "committed"}]
    assert made["base_0000003"]["cleaning"]["may"] == "no"

    assert acidctl("clean", "--yes", crud).status == 0
    cleaned = acidctl("why", crud)
    assert "delta_" not in cleaned.out
    assert ".acidctl-trash  ignored" in cleaned.out
    assert "acidctl purge" in cleaned.out


def test_open_and_aborted_write_ids(acidctl, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    table = make(tmp_path / "t", "delta_1_4", "delta_5_5", "delta_6_6", "delta_9_9")
    age(table, 25)
    lists = ("--snapshot", "db.t:8:3:3,5:2,6")
    made = proofs(acidctl("why", "-o", "jsonl", *lists, table).lines()[0])
    assert made["delta_1_4"]["writeIds"] == [
        {"first": 1, "last": 1, "status": "committed"},
        {"first": 2, "last": 2, "status": "aborted"},
        {"first": 3, "last": 3, "status": "open"},
        {"first": 4, "last": 4, "status": "committed"},
    ]
    assert {name: (proof["state"], proof["cleaning"]["may"]) for name, proof in made.items()} == {
        "delta_1_4": ("current", "no"), "delta_5_5": ("ignored", "no"), "delta_6_6": ("aborted", "yes"),
        "delta_9_9": ("ignored", "no"),
    }  # fmt: skip
    found = acidctl("why", *lists, table, "delta_1_4", "delta_5_5", "delta_9_9")
    assert "committed: 1 and 4; open: 3; aborted: 2" in found.out
    assert "read, less the rows of write id 3 (open), write id 2 (aborted)" in found.out
    assert "write id 3 must be committed or aborted, then a compaction" in found.out
    assert "write id 5 must be committed or aborted" in found.out
    assert "9 is above the high watermark 8" in found.out
    assert "delta_6_6" not in found.out
    assert found.err == ""


def test_not_enough_history_is_explained(acidctl, crud: Path) -> None:  # type: ignore[no-untyped-def]
    assert acidctl("compact", "--assume-committed=0s", "--major", "--engine", "local", crud).status == 0
    lists = ("--snapshot", "db.crud_table:3:2:2:")
    assert acidctl("cat", *lists, crud).status == 10
    found = acidctl("why", *lists, crud, "base_3")
    assert found.status == 0
    assert "not enough history" in found.out
    assert "high watermark 3, open: 2, aborted: none" in found.out
    assert "write id 2 is open, and a compaction up to 3 destroyed the history" in found.out
    assert "a snapshot with a high watermark of 3 or more, and no open write id up to 3" in found.out
    report = acidctl("why", "-o", "json", *lists, crud).one()
    assert report["historyProblem"]
    assert report["base"] is None
    assert {step["topic"] for step in report["history"]} == {"verdict", "snapshot", "base", "readers"}
    assert {proof["cleaning"]["may"] for proof in report["proofs"]} == {"no"}
    assert "nothing is cleaned, because the snapshot is refused" in acidctl("why", *lists, crud).out


def test_v_directories_without_a_list_of_transactions(acidctl, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    table = make(tmp_path / "t", "base_0000005_v0000026", "delta_0000003_0000003", "delta_0000006_0000006")
    age(table, 25)
    unknown = proofs(acidctl("why", "-o", "json", table).one())
    assert unknown["base_0000005_v0000026"]["visibilityTxn"] == {"id": 26, "status": "unknown"}
    cleaning = unknown["delta_0000003_0000003"]["cleaning"]
    assert cleaning["may"] == "kept-back"
    assert "whether transaction 26 is committed is not known" in cleaning["text"]
    assert "--snapshot" in cleaning["next"]
    assert (cleaning["code"], cleaning["nextCodes"]) == ("only-by-doubt", ["give-lists"])
    assert [step["topic"] for step in unknown["delta_0000003_0000003"]["steps"]] == ["what", "write-ids", "verdict"]
    known = proofs(acidctl("why", "-o", "json", "--snapshot", "txns=30:9223372036854775807::", table).one())
    assert known["delta_0000003_0000003"]["cleaning"]["may"] == "yes"
    aborted = acidctl("why", "--snapshot", "txns=30:9223372036854775807::26", table, "base_5_v26")
    assert "transaction 26 is aborted" in aborted.out
    still = proofs(acidctl("why", "-o", "json", "--snapshot", "txns=30:26:26:", table).one())
    assert still["base_0000005_v0000026"]["state"] == "ignored"
    assert "transaction 26 must be committed" in still["base_0000005_v0000026"]["cleaning"]["next"]


def test_named_entries_are_found_however_they_are_spelled(acidctl, crud: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    for name in (FOUR[0], f"{FOUR[0]}/", f"{FOUR[0]}/bucket_00000", "delta_1_1_0", f"{crud}/{FOUR[0]}"):
        assert [p["name"] for p in acidctl("why", "-o", "json", crud, name).one()["proofs"]] == [FOUR[0]]
    twice = acidctl("why", "-o", "json", crud, FOUR[1], FOUR[0], FOUR[1]).one()["proofs"]
    assert [proof["name"] for proof in twice] == [FOUR[1], FOUR[0]]
    for name, meant in (("delta_1_1", FOUR[0]), ("delta_0000001_000001_0000", FOUR[0]), ("delta_2_2", FOUR[2])):
        found = acidctl("why", crud, name)
        assert (found.status, found.out) == (3, "") or meant in found.out
        assert meant in found.out + found.err
    (crud / "base_0000009").mkdir()
    for name in ("bas_9", "base9", "bsae_0000009"):
        mistyped = acidctl("why", crud, name)
        assert (mistyped.status, "did you mean base_0000009" in mistyped.err) == (3, True)
    lost = acidctl("why", crud, "nonsense")
    assert lost.status == 3
    assert "acidctl ls -a" in lost.err
    assert acidctl("why", tmp_path / "missing").status == 3
    assert acidctl("why").status == 2


def test_every_location_of_a_tree_is_explained(acidctl, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    for day in (1, 2):
        make(tmp_path / "t" / f"day={day}", "delta_1_1")
    assert [r["location"] for r in acidctl("why", "-o", "jsonl", tmp_path / "t").lines()] == [
        str(tmp_path / "t" / f"day={day}") for day in (1, 2)
    ]
    named = acidctl("why", tmp_path / "t", "delta_1_1")
    assert named.status == 2
    assert "day=1" in named.err
    (tmp_path / "empty").mkdir()
    assert "the location is empty" in acidctl("why", tmp_path / "empty").out


def test_interrupted_publication_is_explained(acidctl, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    table = make(tmp_path / "t", "delta_1_1", "delta_2_2", "delta_1_2", "_tmp_7/delete_delta_1_2")
    (table / "_tmp_7" / "_publish.json").write_text('{"names": ["delta_1_2", "delete_delta_1_2"]}')
    made = proofs(acidctl("why", "-o", "json", table).one())
    assert "interrupted" in made["delta_1_1"]["cleaning"]["text"]
    assert "acidctl compact" in made["delta_1_1"]["cleaning"]["next"]
    assert "finishes the publication" in made["_tmp_7"]["cleaning"]["next"]


@pytest.mark.parametrize("named", [False, True])
def test_hostile_names_are_escaped(acidctl, tmp_path: Path, named: bool) -> None:  # type: ignore[no-untyped-def]
    evil = tmp_path / "evil\x1b[31m\u202etab\tname\n"
    hostile = ["delta_\x1b]0;owned\x07", "base_\u202e", "_tmp_\x1b[2J", "delta_1_1"]
    make(evil, *hostile)
    (evil / "0000\x1b[2J_0").write_bytes(b"x")
    found = acidctl("why", evil, *(hostile if named else ()))
    assert found.status == 0
    assert not {"\x1b", "\x07", "\u202e", "\t"} & set(found.out + found.err)
    assert "\\x1b]0;owned\\x07  ignored" in found.out
    lost = acidctl("why", evil, "\x1b[2J")
    assert lost.status == 3
    assert "\x1b" not in lost.err


def test_a_file_that_is_not_named_as_data_is_a_stray(acidctl, crud: Path) -> None:  # type: ignore[no-untyped-def]
    (crud / "docs").mkdir()
    for name in ("README.md", "docs/notes.txt", "empty.txt"):
        (crud / name).write_text("" if name == "empty.txt" else "by hand\n")
    made = proofs(acidctl("why", "-o", "json", crud).one())
    for name in ("README.md", "docs"):
        assert made[name]["reasonCode"] == "original-without-bucket"
        assert made[name]["cleaning"]["nextCodes"] == ["by-hand"]
    summary = acidctl("ls", "-o", "json", crud).one()
    assert (summary["compaction"], summary["compactionReasonCode"]) == (None, "layout-refused")
    assert "docs/notes.txt" in summary["compactionReason"]
    assert "empty.txt" not in summary["compactionReason"]  # Hive passes over it
    status = acidctl("status", "-o", "json", crud)
    assert (status.status, status.json()["compaction"]["due"]) == (14, 0)
    assert acidctl("ls", "-o", "json", crud).one()["helps"] is None
    assert acidctl("compact", "--major", "--assume-committed=0s", crud).status == 4
    rules = {found["rule"] for found in acidctl("validate", "-o", "json", crud).one()["findings"]}
    assert "V18" in rules
    assert "V19" not in rules

    write_acid(crud / "base_0000003" / "bucket_00000", insert(1, 0, (1, "A")))
    made = proofs(acidctl("why", "-o", "json", "--snapshot", "db.crud_table:3:9223372036854775807::", crud).one())
    assert (made["README.md"]["state"], made["README.md"]["reasonCode"]) == ("obsolete", "original-without-bucket")
    assert made["README.md"]["cleaning"]["may"] == "kept-back"


def test_nothing_below_a_location_is_looked_at_for_a_name(  # type: ignore[no-untyped-def]
    acidctl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []
    usual = inspecting.resolve

    def resolve(found: TableLocation, **asked: bool) -> ResolvedLocation:
        looked.append(found.shown)
        return usual(found, **asked)

    monkeypatch.setattr(inspecting, "resolve", resolve)
    for name in ("a", "b"):
        make(tmp_path / "tree" / name, "delta_1_1")
    assert acidctl("why", tmp_path / "tree", "delta_1_1").status == 2
    assert looked == []
    table = make(tmp_path / "t", "delta_1_1")
    make(table / "day=1", "delta_1_1")
    assert acidctl("why", table, "delta_1_1").status == 0
    assert looked == [str(table)]
