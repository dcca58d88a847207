"""`acidctl status`: what tables need, on one screen."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.command_line import Result
from support.metastore.fake_hive import FakeHive
from support.tables import age, make

from acidctl.acid.listing import Listing
from acidctl.storage.local.filesystem import LocalFileSystem
from acidctl.storage.port import parent_of
from acidctl.storage.registry import open_location

Acidctl = Callable[..., Result]
FINE, TROUBLE = 0, 14
TEN = [f"delta_{n:07d}_{n:07d}_0000" for n in range(1, 11)]
BASE = "base_0000010"


@pytest.fixture
def fake() -> Iterator[FakeHive]:
    with FakeHive(4) as one:
        yield one


def status_of(acidctl: Acidctl, *words: str | Path) -> Any:
    found = acidctl("status", "-o", "json", *words)
    assert found.status in (FINE, TROUBLE), found.err
    return found.json()


def test_the_sums_are_those_of_the_commands_that_do_it(acidctl: Acidctl, tmp_path: Path) -> None:
    tree = tmp_path / "sales.db"
    age(make(tree / "old", BASE, *TEN), 48)
    make(tree / "young", BASE, *TEN)
    make(tree / "worn" / "day=1", *TEN, "delta_0000011_0000011_0000")
    make(tree / "worn" / "day=2", *TEN[:2])
    found = status_of(acidctl, tree)
    plans = acidctl("clean", "--dry-run", "-o", "json", tree).json()
    reports = acidctl("ls", "-r", "-o", "json", tree).json()
    assert (found["tables"], found["locations"]) == (3, 4)
    assert found["bytes"] == sum(one["bytes"] for one in reports)
    assert found["cleaning"]["freeBytes"] == sum(one["bytes"] for one in plans) > 0
    sizes = {(one["location"], entry["name"]): entry["bytes"] for one in reports for entry in one["entries"]}
    waits = [sizes[one["location"], entry["name"]] for one in plans for entry in one["waiting"]]
    assert found["cleaning"]["soonBytes"] == sum(waits) > 0
    assert found["compaction"]["due"] == sum(one["compaction"] is not None for one in reports) == 1
    (worst,) = found["compaction"]["worst"]
    assert (worst["location"], worst["kind"]) == (str(tree / "worn" / "day=1"), "major")
    assert found["verdict"] == "due"


def test_it_starts_without_what_only_compactions_need(tmp_path: Path) -> None:
    table = make(tmp_path / "t", BASE)
    call = (sys.executable, "-X", "importtime", "-m", "acidctl", "status", "-o", "json", str(table))
    ran = subprocess.run(call, capture_output=True, text=True, timeout=120, check=True)
    imported = {line.rpartition("|")[2].strip() for line in ran.stderr.splitlines()}
    assert "acidctl.verbs.nightly_state" in imported
    assert imported & {"pyarrow", "numpy", "google.protobuf", "acidctl.verbs.compact"} == set()


def test_work_that_is_due_ends_it_with_14_where_that_is_wanted(acidctl: Acidctl, tmp_path: Path) -> None:
    age(make(tmp_path / "t", BASE, *TEN), 48)
    assert acidctl("status", tmp_path / "t").status == FINE
    assert acidctl("status", "--fail-on", "due", tmp_path / "t").status == TROUBLE
    make(tmp_path / "fine", "base_0000001")
    found = acidctl("status", "--fail-on", "due", tmp_path / "fine")
    assert (found.status, "fine: nothing to do" in found.out) == (FINE, True)


def test_what_is_due_is_so_in_ls_too(acidctl: Acidctl, tmp_path: Path) -> None:
    """Also where an open write id keeps compactions from what readers see already."""
    table = make(tmp_path / "t", "base_0000000", *TEN, "delta_0000011_0000011_0000", "delta_0000012_0000012_0000")
    (table / "base_0000000" / "bucket_00000").write_bytes(b"x" * 100_000)
    for opened, due in (("", 1), ("2", 0), ("12", 1)):
        ids = f"t:12:{opened or 9223372036854775807}:{opened}:"
        found = status_of(acidctl, "--snapshot", ids, table)["compaction"]["due"]
        listed = acidctl("ls", "-o", "json", "--snapshot", ids, table).one()["compaction"]
        assert (found, listed is not None) == (due, bool(due)), opened


def test_at_most_five_are_named_those_first_whose_readers_gain_most(acidctl: Acidctl, tmp_path: Path) -> None:
    for number in range(8):
        make(tmp_path / f"t{number}", *TEN, *[f"delta_{n:07d}_{n:07d}_0000" for n in range(11, 12 + number)])
    found = status_of(acidctl, tmp_path)["compaction"]
    assert found["due"] == found["major"] == 8
    assert [Path(one["location"]).name for one in found["worst"]] == ["t7", "t6", "t5", "t4", "t3"]
    assert "and 3 more" in acidctl("status", tmp_path).out


def test_what_was_half_published_is_trouble_and_not_also_refused(acidctl: Acidctl, tmp_path: Path) -> None:
    table = make(tmp_path / "t", "_tmp_7/delete_delta_1_5/x", "delta_1_5")
    (table / "_tmp_7" / "_publish.json").write_text('{"names": ["delta_1_5", "delete_delta_1_5"]}')
    assert acidctl("status", table).status == TROUBLE
    found = status_of(acidctl, table)
    assert found["unfinished"] == {"count": 1, "first": [{"location": str(table), "name": None, "staging": "_tmp_7"}]}
    assert found["refused"]["locations"] == 0
    assert "acidctl compact finishes it" in acidctl("status", table).out


def test_a_location_that_cannot_be_cleaned_as_it_is_is_trouble(acidctl: Acidctl, tmp_path: Path) -> None:
    table = make(tmp_path / "t", "base_0000005", "delta_0000004_0000007")
    assert acidctl("status", table).status == TROUBLE
    (one,) = status_of(acidctl, table)["refused"]["first"]
    assert (one["location"], one["code"]) == (str(table), "refused")
    (line,) = (line for line in acidctl("status", table).out.splitlines() if "(V9)" in line)
    assert line.count(str(table)) == 1


def test_one_that_cannot_be_read_does_not_hide_the_others(acidctl: Acidctl, tmp_path: Path) -> None:
    make(tmp_path / "good", "base_0000001")
    bad = make(tmp_path / "bad", "base_0000001")
    (bad / "base_0000001" / "_metadata_acid").write_text("no JSON")
    found = acidctl("status", "-o", "json", tmp_path)
    assert found.status == 4
    assert (found.json()["locations"], found.json()["verdict"]) == (1, "trouble")


def test_trash_is_told_by_names_and_sizes(acidctl: Acidctl, tmp_path: Path) -> None:
    table = make(tmp_path / "t", BASE, *TEN)
    age(table, 48)
    free = status_of(acidctl, table)["cleaning"]["freeBytes"]
    assert acidctl("clean", "--yes", table).status == 0
    trash = status_of(acidctl, table)["trash"]
    assert (trash["locations"], trash["runs"]) == (1, 1)
    assert trash["bytes"] >= free
    assert trash["oldest"] is not None
    (table / ".acidctl-trash" / "hostile \x1b[31m").mkdir()
    found = acidctl("status", table)
    assert (found.status, "2 cleaning runs" in found.out, "\x1b" in found.out) == (FINE, True, False)


def test_each_location_is_listed_once(acidctl: Acidctl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        age(make(tmp_path / f"t{number}", BASE, *TEN), 48)
    listed: list[str] = []
    real = LocalFileSystem.list_tree

    def counted(self: LocalFileSystem, path: str, top: Listing | None = None) -> Listing:
        listed.append(path)
        return real(self, path, top)

    monkeypatch.setattr(LocalFileSystem, "list_tree", counted)
    status_of(acidctl, tmp_path)
    assert sorted(path for path in listed if path != str(tmp_path)) == [str(tmp_path / f"t{n}") for n in range(3)]


def test_without_a_place_and_a_metastore_it_says_what_to_give(acidctl: Acidctl) -> None:
    found = acidctl("status", "--metastore", "none")
    assert found.status == 2
    assert "give a table, a database or a warehouse" in found.err


def test_the_end_of_the_last_nightly_run_is_shown(acidctl: Acidctl, tmp_path: Path) -> None:
    table, state = make(tmp_path / "t", "base_0000001"), tmp_path / "state"
    assert status_of(acidctl, "--state", state, table)["lastNightly"] is None
    nightly = ("nightly", "--yes", "--engine", "local", "--assume-committed=0s", "--state", state)
    assert acidctl(*nightly, table).status == 0
    ended = status_of(acidctl, "--state", state, table)["lastNightly"]
    lines = acidctl("status", "--state", state, table).out.splitlines()[1:]
    texts = {line[:12].rstrip(): line[12:] for line in lines}
    assert texts["nightly"].startswith(ended[:10])
    assert all(line[11] == " " != line[12] for line in lines), "all labels have one width"


# --- with a metastore -----------------------------------------------------------------------------------------------


def test_without_a_place_it_is_all_tables_of_the_metastore(acidctl: Acidctl, fake: FakeHive, tmp_path: Path) -> None:
    for name in ("a", "b"):
        fake.table("s", name, str(make(tmp_path / name, "base_0000001")))
        fake.write_ids[f"s.{name}"] = [1]
    found = status_of(acidctl, "--metastore", fake.address)
    assert (found["where"], found["tables"], found["verdict"]) == (["hive:*.*"], 2, "fine")
    assert (found["blocked"]["count"], found["stuck"]["count"]) == (0, 0)
    assert fake.calls.count("get_open_txns_info") <= 2, "one for the lists, one for who is who"


def test_who_holds_back_a_cleaning_is_named_and_trouble_when_it_is_old(
    acidctl: Acidctl, fake: FakeHive, tmp_path: Path
) -> None:
    table = age_of_two_days(make(tmp_path / "t", "base_0000010", *TEN))
    fake.table("s", "t", str(table))
    fake.write_ids["s.t"] = [100] * 10
    txn = fake.begin(ago=3 * 86400, user="slow", host="node7", silent=5)
    entry = fake.entry("s", "t", "ready for cleaning", next_txn=txn + 1, txn=2, committed=50)
    found = acidctl("status", "--metastore", fake.address, "hive:s.*")
    assert found.status == TROUBLE
    assert f"transaction {txn} of slow@node7 since 20" in found.out
    assert "blocked     by 1 transaction or lock, 1 for longer than 1 d" in found.out
    (one,) = status_of(acidctl, "--metastore", fake.address, "hive:s.*")["blocked"]["first"]
    by_txns = acidctl("hive", "txns", "--blocking", "-o", "json", "--metastore", fake.address).one()
    assert {key: one[key] for key in ("id", "user", "host", "waiting", "bytes", "advice")} == {
        key: by_txns[key] for key in ("id", "user", "host", "waiting", "bytes", "advice")
    }
    assert acidctl("status", "--metastore", fake.address, "--older-than", "7d", "hive:s.*").status == FINE
    fake.set_entry(entry, state="succeeded")
    assert acidctl("status", "--metastore", fake.address, "hive:other.t").status == 3


def age_of_two_days(table: Path) -> Path:
    age(table, 48)
    return table


def test_stuck_entries_of_these_tables_are_trouble_and_those_of_others_are_not_told(
    acidctl: Acidctl, fake: FakeHive, tmp_path: Path
) -> None:
    for name in ("a", "b"):
        fake.table("s", name, str(make(tmp_path / name, "base_0000001")))
        fake.write_ids[f"s.{name}"] = [1]
    stuck = fake.entry("s", "b", "working", started=10**6)
    found = acidctl("status", "--metastore", fake.address, "hive:s.*")
    assert (found.status, f"{stuck} " in found.out) == (TROUBLE, True)
    assert acidctl("status", "--metastore", fake.address, "hive:s.a").status == FINE
    (one,) = status_of(acidctl, "--metastore", fake.address, tmp_path / "b")["stuck"]["first"]
    assert (one["id"], one["cause"]) == (stuck, "timed-out")


def test_where_the_queue_cannot_be_asked_the_disk_is_told_all_the_same(
    acidctl: Acidctl, fake: FakeHive, tmp_path: Path
) -> None:
    fake.table("s", "t", str(make(tmp_path / "t", "base_0000001")))
    fake.write_ids["s.t"] = [1]
    fake.fault("show_compact", "failed", 9)
    found = acidctl("status", "-o", "json", "--metastore", fake.address, "hive:s.t")
    assert found.status == 6, found.err
    assert (found.json()["tables"], found.json()["stuck"], found.json()["verdict"]) == (1, None, "trouble")


@pytest.mark.parametrize("options", [(), ("--set", "storage.objects=true")], ids=["memory", "objects"])
def test_a_store_that_takes_long_to_answer_tells_the_same(
    acidctl: Acidctl, tmp_path: Path, options: tuple[str, ...]
) -> None:
    tree = tmp_path / f"w{len(options)}.db"  # the store is one for both cases, and they may get the same folder
    for number in range(30):
        make(tree / f"t{number}", *TEN, *(f"delta_{n:07d}_{n:07d}_0000" for n in range(11, 11 + number % 5)))
    fs, root = open_location(f"memory:/{tree}", {"objects": "true"} if options else {})
    for file in filter(Path.is_file, tree.rglob("*")):
        path = f"{root}/{file.relative_to(tree)}"
        fs.make_dirs(parent_of(path))
        fs.write_bytes(path, file.read_bytes())
    here, there = status_of(acidctl, tree), status_of(acidctl, *options, f"memory:/{tree}")
    assert there["compaction"]["due"] == here["compaction"]["due"] == 24
    for key in ("tables", "locations", "bytes"):
        assert there[key] == here[key]
    assert [Path(one["location"]).name for one in there["compaction"]["worst"]] == [
        Path(one["location"]).name for one in here["compaction"]["worst"]
    ]


def test_a_directory_that_is_no_table_needs_no_lists(acidctl, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    """The lists name only the tables: what is known not to be one is left alone before it is asked for its state."""
    for name in ("a", "b"):
        make(tmp_path / "sales.db" / name, "delta_0000001_0000001_0000")
    plain = tmp_path / "sales.db" / "plain"
    plain.mkdir()
    (plain / "000000_0").write_bytes(b"text")
    lists = "sales.a:1:9223372036854775807::$sales.b:1:9223372036854775807::"
    for command in (("status",), ("report", "-o", "md")):
        found = acidctl(*command, "--snapshot", lists, tmp_path / "sales.db")
        assert (found.status, "error" in found.err) == (0, False), found.err
        assert "1 location left alone" in found.err


def test_the_metastore_is_asked_for_its_locks_once(acidctl: Acidctl, fake: FakeHive, tmp_path: Path) -> None:
    for name in ("t", "u"):
        fake.table("s", name, str(make(tmp_path / name, BASE, *TEN)))
        fake.write_ids[f"s.{name}"] = list(fake.begin_many(10))
    for txn in range(1, 21):
        fake.end(txn)
    fake.calls.clear()
    assert acidctl("status", "--metastore", fake.address, "hive:s.*").status == FINE
    assert fake.calls.count("show_locks") == 1
