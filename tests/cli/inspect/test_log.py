"""`acidctl log`: what acidctl did, and what others may write into its logs."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.command_line import Result
from support.tables import CLEAN_NOW, age, make
from support.writing import written_table

from acidctl.api import Location
from acidctl.base.errors import StorageError
from acidctl.location.change import work_log
from acidctl.location.change.work_log import LogEntry
from acidctl.location.walk import LOG, LOG_SUFFIX

Acidctl = Callable[..., Result]
MAJOR = ("compact", "--major", "--engine", "local", "--assume-committed=0s")
NAME = f"{LOG}20260101T000000.000Z-0123abcd{LOG_SUFFIX}"


def lines(acidctl: Acidctl, *words: str | Path) -> list[Any]:
    found = acidctl("log", "-o", "jsonl", *words)
    assert found.status == 0, found.err
    return found.lines()


def test_everything_that_changes_a_location_is_told_newest_first(acidctl: Acidctl, crud: Path) -> None:
    assert acidctl(*MAJOR, crud).status == 0
    assert acidctl(*CLEAN_NOW, crud).status == 0
    assert acidctl("restore", "--yes", crud).status == 0
    assert acidctl(*CLEAN_NOW, crud).status == 0
    assert acidctl("purge", "--yes", crud).status == 0
    found = lines(acidctl, crud)
    assert [(one["verb"], one["result"]) for one in found] == [
        ("purge", "purged"), ("clean", "cleaned"), ("restore", "restored"), ("clean", "cleaned"),
        ("compact", "compacted"),
    ]  # fmt: skip
    purged, second, restored, first, compacted = found
    assert (purged["run"], restored["run"]) == (second["run"], first["run"])
    assert compacted["facts"]["outputs"] == ["base_0000003"]
    assert (compacted["facts"]["minWriteId"], compacted["facts"]["maxWriteId"]) == (1, 3)
    assert compacted["snapshotFrom"] == "assumption"
    assert all(one["user"] and one["host"] for one in found)
    shown = acidctl("log", crud)
    assert shown.out.index("purge") < shown.out.index("compact")
    assert [one.verb for one in Location(crud).log()] == [one["verb"] for one in found]


def test_a_repair_and_what_undoes_it_are_told(acidctl: Acidctl, crud: Path) -> None:
    (crud / "delta_0000001_0000001_0000" / "_orc_acid_version").unlink()
    assert acidctl("repair", "--only", "version-file", "--yes", "--force", crud).status == 0
    assert acidctl("restore", crud).status == 0
    assert [one["verb"] for one in lines(acidctl, crud)] == ["restore", "repair"]


def test_of_a_warehouse_the_newest_of_all_locations_come_first(acidctl: Acidctl, tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        make(tmp_path / name, "base_0000002", "delta_0000001_0000001_0000")
        age(tmp_path / name, 48)
        assert acidctl("clean", "--yes", tmp_path / name).status == 0
    assert [Path(one["location"]).name for one in lines(acidctl, tmp_path)] == ["c", "b", "a"]
    assert [Path(one["location"]).name for one in lines(acidctl, "-n", "1", tmp_path)] == ["c"]
    limited = acidctl("log", "-n", "2", tmp_path)
    assert "older operations" in limited.err
    assert lines(acidctl, "--since", "0", tmp_path) == []
    assert len(lines(acidctl, "--since", "1h", tmp_path)) == 3


def test_no_other_command_sees_it(acidctl: Acidctl, tmp_path: Path) -> None:
    table = make(tmp_path / "t", "base_0000002", "delta_0000001_0000001_0000")
    age(table, 48)
    looks = (
        ("ls", "-a", "-o", "json"), ("validate", "-o", "json"), ("clean", "-n", "-o", "json"), ("why", "-o", "json"),
    )  # fmt: skip
    before = [acidctl(*look, table) for look in looks]
    (table / NAME).write_text(LogEntry("clean", "cleaned", at=1.0).line() + "\n")
    age(table, 48, NAME)
    assert [acidctl(*look, table) for look in looks] == before
    assert len(lines(acidctl, table)) == 1


def test_nothing_hostile_reaches_the_terminal(acidctl: Acidctl, crud: Path) -> None:
    bad = "\x1b[2J\u202e\nfake"
    facts: dict[str, Any] = {bad: bad, "outputs": [bad], "kind": bad, "bytes": -1, "entries": True}
    entries = [
        LogEntry(bad, bad, bad, 1.0, bad, bad, bad, bad, facts, id=bad),
        LogEntry("x" * 9999, "y", at=2.0, id="2"),
    ]
    garbage = ["", "[]", "null", '{"version": 1}', "{" * 9999, json.dumps({"version": 1, "at": 1e999})]
    (crud / NAME).write_text("\n".join([*(one.line() for one in entries), *garbage]))
    for words in (("log",), ("log", "-o", "json"), ("log", "-o", "jsonl"), ("status",)):
        found = acidctl(*words, crud)
        assert found.status == 0, found.err
        assert not set("\x1b\u202e") & set(found.out + found.err), words
    assert len(lines(acidctl, crud)) == 2


def test_where_nothing_was_done_it_says_so(acidctl: Acidctl, crud: Path) -> None:
    found = acidctl("log", crud)
    assert (found.status, found.out) == (0, "")
    assert "no operations are logged there" in found.err


def test_a_log_that_cannot_be_written_fails_nothing(
    acidctl: Acidctl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(tmp_path / "t", "base_0000002", "delta_0000001_0000001_0000")
    age(table, 48)

    def full(*_: object) -> None:
        raise StorageError("cannot write", "the disk is full")

    monkeypatch.setattr(work_log, "write_checked", full)
    found = acidctl("clean", "--yes", table)
    assert found.status == 0
    assert "the clean is not in the log" in found.err
    assert not (table / "delta_0000001_0000001_0000").exists()


def test_statements_are_told_with_their_rows_and_their_transaction(acidctl: Acidctl, tmp_path: Path) -> None:
    with written_table(tmp_path / "t", {"a": "int"}, {"p": "int"}) as table:
        door = table.door.table("db.t")
        door.insert(pa.table({"a": [1, 2, 3], "p": [1, 1, 2]}))
        door.update("a = 5", "a = 1")
        door.delete("a = 77")  # which changes nothing
        door.truncate(partition={"p": 1})
        found = lines(acidctl, tmp_path / "t")
        assert lines(acidctl, "hive:db.t", f"--metastore={table.hive.address}") == found
    assert [(one["verb"], one["result"]) for one in found] == [
        ("truncate", "written"), ("update", "written"), ("insert", "written"),
    ]  # fmt: skip
    _, updated, inserted = (one["facts"] for one in found)
    assert (inserted["table"], inserted["writeId"], inserted["inserted"], inserted["partitions"]) == ("db.t", 1, 3, 2)
    assert (updated["updated"], updated["inserted"], updated["transaction"] > 1) == (1, 0, True)
    shown = acidctl("log", tmp_path / "t").out
    assert "3 rows inserted" in shown
    assert f"write id 2, transaction {updated['transaction']}" in shown


def test_statements_of_a_named_table_are_told_wherever_its_partitions_lie(acidctl: Acidctl, tmp_path: Path) -> None:
    with written_table(tmp_path / "w" / "t", {"a": "int"}, {"p": "int"}) as table:
        table.door.table("db.t").insert(pa.table({"a": [1], "p": [1]}))
        elsewhere = (tmp_path / "w" / "t" / "p=1").rename(tmp_path / "elsewhere")
        known = table.hive.partitions["db", "t"]
        storage = replace(known["p=1"].storage, location=f"file:{elsewhere}")
        known["p=1"] = replace(known["p=1"], storage=storage)
        (told,) = lines(acidctl, "hive:db.t", f"--metastore={table.hive.address}")
    assert (told["verb"], told["location"]) == ("insert", str(tmp_path / "w" / "t"))
