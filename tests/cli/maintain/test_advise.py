"""Ranking locations."""

from __future__ import annotations

import csv
import shlex
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from support.files.acid_files import write_deletes, write_delta
from support.tables import age, snapshot_of

from acidctl.cli.maintain.work.advise import ORDERS
from acidctl.location.walk import walk_locations
from acidctl.orc.types import OrcType
from acidctl.rows.scan.scan import Scan
from acidctl.storage.registry import open_location


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
    assert worn["command"] == f"acidctl compact --major {warehouse / 'worn'}"
    assert [(one["cost"], one["compaction"], one["command"]) for one in others] == [(0, None, None)] * 2
    assert [one["location"] for one in others] == sorted(one["location"] for one in others)


def test_what_fits_into_a_budget_gains_most_for_it(acidctl, warehouse: Path) -> None:  # type: ignore[no-untyped-def]
    for number in (2, 3):
        shutil.copytree(warehouse / "worn", warehouse / f"worn{number}")
    (one, *_) = acidctl("advise", "-o", "json", warehouse).json()
    assert one["fits"] is None
    budget = str(2 * one["rewritten"])
    found = acidctl("advise", "-o", "json", "--max-bytes", budget, warehouse).json()
    assert [row["fits"] for row in found if row["compaction"]] == [True, True, False]
    assert [row["fits"] for row in found if not row["compaction"]] == [None, None]
    table = acidctl("advise", "--max-bytes", budget, warehouse).out
    assert table.count("which is more than fits") == 1
    assert "2 of 3 compactions fit: 8 -> 2 files," in table


def test_every_choice_of_sort_has_an_order(acidctl, warehouse: Path) -> None:  # type: ignore[no-untyped-def]
    for choice in ORDERS:
        found = acidctl("advise", "-o", "json", "--sort", choice, warehouse).json()
        assert found == sorted(found, key=ORDERS[choice], reverse=True)


def test_what_is_said_to_cost_nothing_needs_no_compaction(acidctl, warehouse: Path) -> None:  # type: ignore[no-untyped-def]
    """The command that is advised ends what made it advisable."""
    first = acidctl("advise", "-o", "json", "--limit", "1", "--assume-committed=0s", warehouse).one()
    command = first["command"].split()[1:]
    rows = Scan(snapshot_of(warehouse / "worn")).count()
    assert acidctl(*command, "--engine", "local").status == 0
    again = next(one for one in acidctl("advise", "-o", "jsonl", warehouse).lines() if one["location"].endswith("worn"))
    assert first["cost"] - again["cost"] == first["saved"]
    assert (again["files"], again["score"], again["filesAfter"]) == (first["filesAfter"], 100, again["files"])
    assert first["score"] < 100
    assert abs(again["seconds"] - first["secondsAfter"]) < 0.001, "but for what the files are smaller by"
    assert Scan(snapshot_of(warehouse / "worn")).count() == rows


def test_its_commands_say_of_the_storage_what_was_said(acidctl, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    """Of secrets the names: they would stand in logs."""
    url = "memory://advised/sales.db/worn"
    fs, path = open_location(url)
    acidctl("demo", tmp_path / "worn")
    for file in (tmp_path / "worn").rglob("*_*"):
        if file.is_file():
            fs.make_dirs(f"{path}/{file.parent.name}")
            fs.write_bytes(f"{path}/{file.parent.name}/{file.name}", file.read_bytes())
    config = tmp_path / "config"
    config.write_text("")
    told = ("--storage-option", "user=hive", "--storage-option=token=abcdefghij")
    (line,) = acidctl("--config", config, "advise", "-o", "jsonl", *told, url).lines()
    words = "--storage-option=user=hive '--storage-option=token=***'"
    assert line["command"] == f"acidctl --config={config} compact --major {words} memory:///advised/sales.db/worn"


def test_its_commands_say_of_the_metastore_what_was_said(acidctl, warehouse: Path) -> None:  # type: ignore[no-untyped-def]
    told = (
        "--metastore=none",
        "--metastore-option=timeout=7",
        "--metastore-option",
        "password=abc",
        "--exclude",
        "db.x",
    )
    (line,) = acidctl("advise", "-o", "jsonl", *told, warehouse / "worn").lines()
    words = "--metastore=none --metastore-option=timeout=7 '--metastore-option=password=***'"
    assert line["command"] == f"acidctl compact --major {words} {warehouse / 'worn'}"


@pytest.mark.parametrize(
    "told",
    [
        ("--assume-committed", "1h"), ("--assume-committed=300h",),
        ("--assume-committed=90m", "--valid-txns", "5:5:5:"),
        ("--write-ids", "42$sales.worn:3:9223372036854775807::$sales.fresh:3:9223372036854775807::"),
        ("--write-ids", "odd.name:3:9223372036854775807::", "--table", "odd.name"),
        ("--write-ids", "3:9223372036854775807:", "--write-ids-form", "hive2"), ("--write-ids-from", "{lists}"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_its_commands_are_not_refused(acidctl, warehouse: Path, told: tuple[str, ...], tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "my lists").write_text("sales.worn:3:9223372036854775807::\nsales.fresh:3:9223372036854775807::\n")
    told = tuple(word.replace("{lists}", str(tmp_path / "my lists")) for word in told)
    where = warehouse / "worn" if "--table" in told else warehouse
    age(warehouse / "worn", 2)
    lines = acidctl("advise", "-o", "jsonl", *told, where).lines()
    commands = [line["command"] for line in lines if line["command"]]
    assert len(commands) == (told != ("--assume-committed=300h",))
    for command in commands:
        done = acidctl(*shlex.split(command)[1:], "--engine", "local")
        assert (done.status, " -> base_0000003, " in done.out) == (0, True), (command, done.err)


@pytest.mark.parametrize("deletes", [False, True])
def test_a_minor_one_needs_nobody_to_read_meanwhile(acidctl, tmp_path: Path, deletes: bool) -> None:  # type: ignore[no-untyped-def]
    table = tmp_path / "t"
    row = OrcType("struct", children=(OrcType("string"),), names=("n",))
    batch = pa.record_batch({"n": [f"{one * one:x}" for one in range(20_000)]})
    write_delta(table, 1, batch, row=row, base=True)
    for write_id in (2, 3):
        write_delta(table, write_id, batch.slice(0, 2), row=row)
    if deletes:
        write_deletes(table, 4, 1, [7], row=row)
    (one,) = acidctl("advise", "-o", "jsonl", "--assume-committed=0s", table).lines()
    offline = " --offline" if deletes else ""
    assert one["command"] == f"acidctl compact --minor{offline} --assume-committed=0s {table}"
    assert f"--minor{offline} rewrites" in acidctl("advise", "--assume-committed=0s", table).out
    assert acidctl(*shlex.split(one["command"])[1:], "--engine", "local").status == 0


def test_forms_show_the_same_ranking(acidctl, warehouse: Path) -> None:  # type: ignore[no-untyped-def]
    table = acidctl("advise", "--limit", "1", warehouse)
    assert "worn" in table.out
    assert "fresh" not in table.out
    assert "2 more, which come after these" in table.err
    records = list(csv.DictReader(acidctl("advise", "-o", "csv", "--sort", "files", warehouse).out.splitlines()))
    assert [int(record["files"]) for record in records] == sorted((int(r["files"]) for r in records), reverse=True)
    assert len(records) == len(list(walk_locations(snapshot_of(warehouse / "worn").fs, str(warehouse))))


def test_what_cannot_be_ranked_is_said(acidctl, warehouse: Path) -> None:  # type: ignore[no-untyped-def]
    found = acidctl("advise", "-o", "jsonl", "--write-ids", "sales.fresh:1:1:1:", warehouse / "fresh")
    assert found.status != 0
    assert "not enough history" in found.err
    assert found.out == ""
    assert acidctl("advise", warehouse / "none").status == 3
