"""`ls`: the JSON contract, trees, states, sorting."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.command_line import Result
from support.metastore.fake_hive import FakeHive
from support.tables import age, make

from acidctl.acid.state import State
from acidctl.base.errors import AccessError
from acidctl.cli.inspect import ls
from acidctl.cli.output.screen import STATE_STYLES, print_table
from acidctl.cli.report import location_list
from acidctl.cli.report.location_list import LocationList
from acidctl.location import table_location
from acidctl.overview.location_status import LocationStatus
from acidctl.storage.local.filesystem import LocalFileSystem


def test_json_has_every_key_of_the_contract(acidctl, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    table = make(
        tmp_path / "t", "base_0000005_v0000020", "delta_0000006_0000006_0001", "delta_0000003_0000004", "_tmp_x"
    )
    found = acidctl("ls", "-o", "json", table)
    assert found.status == 0
    report = found.one()
    assert set(report) == {
        "schema_version", "location", "name", "table", "verdict", "why", "base", "entries",
        "locations", "deltas", "current", "obsolete", "aborted", "ignored", "files",
        "bytes", "currentBytes", "obsoleteBytes", "abortedBytes", "ignoredBytes", "trashBytes",
        "freeBytes", "soonBytes", "laterBytes", "due", "helped",
        "score", "cost", "directoriesRead", "filesRead", "smallFiles", "deleteBytes",
        "helps", "rewritten", "saved", "gain", "filesAfter", "seconds", "secondsAfter",
        "compaction", "compactionReason", "compactionReasonCode", "problem", "transactional", "snapshotSource",
        "historyProblem", "disagreements", "notes", "warnings",
    }  # fmt: skip
    assert report["transactional"] == {
        "known": True, "type": "full-acid", "code": "by-files",
        "reason": "base_0000005_v0000020 has _orc_acid_version",
    }  # fmt: skip
    assert (report["schema_version"], report["location"]) == (1, str(table))
    assert report["base"] == "base_0000005_v0000020"
    entries = {entry["name"]: entry for entry in report["entries"]}
    wanted = {
        "name", "kind", "minWriteId", "maxWriteId", "statementId", "visibilityTxnId", "state", "reason", "files",
        "bytes", "modified", "reasonCode", "supersededBy", "rows",
    }  # fmt: skip
    assert all(wanted == set(entry) for entry in report["entries"])
    base = entries["base_0000005_v0000020"]
    assert (base["kind"], base["minWriteId"], base["maxWriteId"], base["visibilityTxnId"]) == ("base", 5, 5, 20)
    assert base["statementId"] is None
    delta = entries["delta_0000006_0000006_0001"]
    assert (delta["kind"], delta["statementId"], delta["state"], delta["visibilityTxnId"]) == (
        "delta", 1, "current", None,
    )  # fmt: skip
    assert (entries["delta_0000003_0000004"]["state"], entries["_tmp_x"]["kind"]) == ("obsolete", "staging")
    assert (base["files"], base["bytes"]) == (2, 11)
    assert base["modified"].endswith("Z")
    assert "every write id on disk counts as committed" in report["notes"][0]
    assert report["compactionReason"] == "deltas are 1.00 of the base's bytes, limit 0.1"
    assert report["compactionReasonCode"] == "many-delta-bytes"
    assert found.err == ""


def test_states_follow_from_the_list_of_write_ids(acidctl, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    table = make(tmp_path / "t", "delta_1_1", "delta_2_2", "delta_3_3", "delta_9_9")
    report = acidctl("ls", "-o", "json", "--snapshot", "db.t:5:2:2:3", table).one()
    assert {entry["name"]: entry["state"] for entry in report["entries"]} == {
        "delta_1_1": "current", "delta_2_2": "ignored", "delta_3_3": "aborted", "delta_9_9": "ignored",
    }  # fmt: skip
    only = acidctl("ls", "-o", "jsonl", "--snapshot", "db.t:5:2:2:3", "--state", "aborted", table).lines()
    assert [entry["name"] for entry in only[0]["entries"]] == ["delta_3_3"]
    assert acidctl("ls", "--snapshot", "nonsense", table).status == 2


def test_a_tree_gives_a_line_a_location(acidctl, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    for path in ("sales.db/orders/day=1", "sales.db/orders/day=2", "sales.db/items"):
        make(tmp_path / path, "delta_1_1", "delta_2_2")
    found = acidctl("ls", tmp_path)
    assert [line.split()[0] for line in found.out.splitlines()[1:]] == [
        str(tmp_path / "sales.db" / name) for name in ("items", "orders/day=1", "orders/day=2")
    ]
    assert len(acidctl("ls", "-o", "jsonl", tmp_path).lines()) == 3
    assert acidctl("ls", "-r", tmp_path).out.count("delta_1_1") == 3
    assert acidctl("ls", "-o", "csv", tmp_path).out.count("\n") == 4
    assert acidctl("ls", "-r", "-o", "csv", tmp_path).out.count("\n") == 7
    assert all("entries" not in one for one in acidctl("ls", "-o", "json", tmp_path).json())
    assert all(len(one["entries"]) == 2 for one in acidctl("ls", "-r", "-o", "json", tmp_path).json())


def test_table_sort_and_rows(acidctl, crud: Path) -> None:  # type: ignore[no-untyped-def]
    found = acidctl("ls", "--rows", "--sort", "maxWriteId:asc", crud)
    rows = {line.split()[0]: line.split()[8] for line in found.out.splitlines() if "committed" in line}
    assert rows["delta_0000001_0000001_0000"] == "3"
    assert "4 current; ok" in found.out
    assert "counts as committed" in found.err
    report = acidctl("ls", "--rows", "-o", "json", crud).one()
    assert sum(entry["rows"] for entry in report["entries"]) == 6


def test_due_compaction_is_told_with_its_trigger(acidctl, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    table = make(tmp_path / "t", *(f"delta_{i}_{i}_0" for i in range(1, 12)))
    assert "11 current; major due: 11 deltas, limit 10, and no base" in acidctl("ls", table).out


def test_empty_directory_is_listed_as_empty(acidctl, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "empty").mkdir()
    found = acidctl("ls", tmp_path / "empty")
    assert found.status == 17, "it may be a disk that is not mounted"
    assert "empty" in found.out
    assert acidctl("ls", "-o", "json", tmp_path / "empty").one()["entries"] == []


def test_a_broken_file_leaves_a_gap_in_the_rows(acidctl, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    for name in ("a", "b"):
        assert acidctl("demo", tmp_path / name).status == 0
    broken = tmp_path / "a" / "delta_0000002_0000002_0000" / "bucket_00000"
    broken.write_bytes(b"no ORC")
    found = acidctl("ls", "-r", "--rows", "-o", "jsonl", tmp_path)
    assert found.status == 4
    assert found.err.count("\n") == 1
    assert found.err.startswith(f"warning: {broken} ")
    first, second = found.lines()
    assert {e["name"]: e["rows"] for e in first["entries"]} == {
        "delta_0000001_0000001_0000": 3, "delete_delta_0000002_0000002_0000": 1, "delta_0000002_0000002_0000": None,
        "delete_delta_0000003_0000003_0000": 1,
    }  # fmt: skip
    assert [entry["rows"] for entry in second["entries"]] == [3, 1, 1, 1]
    assert acidctl("ls", tmp_path).status == 0


@pytest.mark.parametrize("method", ["list_dir", "list_tree"])
def test_what_cannot_be_listed_does_not_stop_the_others(  # type: ignore[no-untyped-def]
    acidctl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    for name in ("a", "locked", "z"):
        make(tmp_path / "x.db" / name, "delta_1_1")
    locked = str(tmp_path / "x.db" / "locked")
    real = getattr(LocalFileSystem, method)

    def refuse(self: LocalFileSystem, path: str, *more: object) -> object:
        if path == locked:
            raise AccessError(f"cannot list {path}", "permission denied")
        return real(self, path, *more)

    monkeypatch.setattr(LocalFileSystem, method, refuse)
    for output in ("table", "csv", "jsonl"):
        found = acidctl("ls", "-o", output, tmp_path)
        assert found.status == 5
        assert f"error: cannot list {locked}\n" in found.err
        assert all(str(tmp_path / "x.db" / name) in found.out for name in ("a", "z"))


def test_csv_is_written_by_location_with_one_header(acidctl, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    for name in ("a", "b"):
        make(tmp_path / name, "delta_1_1")
    out = acidctl("ls", "-r", "-o", "csv", tmp_path).out
    assert [line.split(",")[:2] for line in out.splitlines()] == [
        ["location", "name"], [str(tmp_path / "a"), "delta_1_1"], [str(tmp_path / "b"), "delta_1_1"],
    ]  # fmt: skip
    (tmp_path / "empty.db").mkdir()
    assert acidctl("ls", "-o", "csv", tmp_path / "empty.db").out.startswith("location,name,table,")


def test_a_large_tree_is_shown_page_by_page(acidctl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr("acidctl.cli.report.location_list._FIRST_PAGE", 2)
    monkeypatch.setattr("acidctl.cli.report.location_list._PAGE", 3)
    tables = [tmp_path / f"t{number}" for number in range(7)]
    for number, table in enumerate(tables):
        make(table, *(f"delta_{i}_{i}" for i in range(1, 13 if number == 4 else 3)))
    shown = acidctl("ls", tmp_path).out.splitlines()
    assert [line.split()[0] for line in shown[:-1] if not line.startswith("location")] == list(map(str, tables))
    assert [number for number, line in enumerate(shown) if line.startswith("location")] == [0]
    assert shown[-1].startswith("7 locations, ")
    assert "a compaction is due in 1" in shown[-1]


def test_partitions_are_folded_into_their_table(acidctl, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    for day in range(6):
        make(tmp_path / "t" / f"day={day}", *(f"delta_{i}_{i}" for i in range(1, 13 if day == 4 else 3)))
    make(tmp_path / "u", "delta_1_1")
    heading, table, other, _ = acidctl("ls", tmp_path).out.splitlines()
    assert heading.split()[:4] == ["location", "verdict", "partitions", "base"]
    assert table.split() == [
        str(tmp_path / "t"),
        *["1", "due", "6", "22", "22", "0", "0", "242", "B", "1", "major", "due"],
    ]
    assert other.startswith(f"{tmp_path / 'u'} ")
    every = acidctl("ls", "-v", tmp_path).out
    assert every.count("/t/day=") == 6


def test_lines_of_a_large_table_come_while_it_is_listed(  # type: ignore[no-untyped-def]
    acidctl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first is there when so many partitions were looked at as it stands for, and none of them is kept."""
    monkeypatch.setattr("acidctl.cli.report.location_list._TOGETHER", 7)
    usual = LocationList.add

    def adding(self: LocationList, status: LocationStatus) -> None:
        usual(self, status)
        assert len(self._partitions) < 7
        assert not self._lines

    monkeypatch.setattr(LocationList, "add", adding)
    for day in range(30):
        make(tmp_path / "t" / f"day={day:02}", "delta_1_1", "delta_2_2")
    heading, *lines, total = acidctl("ls", tmp_path).out.splitlines()
    assert [line.split()[:3] for line in lines] == [[str(tmp_path / "t"), "ok", n] for n in ["7"] * 4 + ["2"]]
    assert heading.startswith("location")
    assert total.startswith("30 locations, ")


def test_many_entries_of_one_state_are_one_line(acidctl, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    names = [f"delta_{i:07}_{i:07}_0000" for i in range(1, 41)] + [
        f"delete_delta_{i:07}_{i:07}_0000" for i in range(4, 41)
    ]
    make(tmp_path / "t", *names)
    shown = acidctl("ls", tmp_path / "t").out.splitlines()
    assert shown[2].split("  ")[0] == "delta 1-40, delete_delta 4-40"
    assert [word for word in shown[2].split() if word][4:6] == ["77", "current"]
    assert shown[3] == "77 current; major due: 77 deltas, limit 10, and no base"
    assert all(name in acidctl("ls", "-v", tmp_path / "t").out for name in names)
    assert len(acidctl("ls", "-o", "json", tmp_path / "t").one()["entries"]) == 77


def test_what_can_be_freed_is_told_with_its_time(acidctl, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    make(tmp_path / "old", "base_2", "delta_1_1")
    make(tmp_path / "young", "base_2", "delta_1_1")
    age(tmp_path / "old", 48)
    assert acidctl("ls", tmp_path / "old").out.splitlines()[-1] == "1 current, 1 obsolete; ok; 11 B free now"
    last = acidctl("ls", tmp_path / "young").out.splitlines()[-1]
    assert re.fullmatch(r"1 current, 1 obsolete; ok; 11 B free after \d+ [A-Z][a-z]{2} \d\d:\d\d UTC", last)
    assert "11 B now" in acidctl("ls", tmp_path).out


def test_a_location_is_judged_once_whatever_is_said_of_it(  # type: ignore[no-untyped-def]
    acidctl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cleaning frees is told from what is known already."""
    make(tmp_path / "t" / "day=1", "base_2", "delta_1_1", "delta_3_3")
    asked: list[str] = []
    usual = table_location.evidence_of
    judge = table_location
    monkeypatch.setattr(judge, "evidence_of", lambda fs, path, *more: asked.append(path) or usual(fs, path, *more))
    found = acidctl("ls", tmp_path)
    assert "11 B after" in found.out
    assert asked == [str(tmp_path / "t" / "day=1")]


def test_lines_columns_and_order_are_chosen(acidctl, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    for name, count in (("a", 2), ("b", 60), ("c", 55)):
        make(tmp_path / name, *(f"delta_{i}_{i}" for i in range(1, count + 1)))
    line = ("ls", "--where", "deltas > 50", "--no-headers", "--columns", "deltas,location")
    assert acidctl(*line, "--sort", "deltas", tmp_path).out.split() == [
        "60", str(tmp_path / "b"), "55", str(tmp_path / "c"),
    ]  # fmt: skip
    assert acidctl(*line, "--sort", "deltas:asc", tmp_path).out.split()[0] == "55"
    entries = ("--where", "kind = 'delta' AND minWriteId BETWEEN 2 AND 3", "--sort", "name:desc")
    csv = acidctl("ls", *entries, "-o", "csv", "--columns", "name,bytes", tmp_path / "b").out
    assert csv.splitlines() == ["name,bytes", "delta_3_3,11", "delta_2_2,11"]
    assert [one["location"] for one in acidctl("ls", "-o", "json", "--where", "deltas > 50", tmp_path).json()] == [
        str(tmp_path / name) for name in "bc"
    ]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--where", "dltas > 50"), "did you mean deltas?"),
        (("--where", "deltas >"), "cannot use"),
        (("--sort", "delta"), "did you mean deltas?"),
        (("--sort", "size"), "did you mean bytes?"),
        (("--sort", "deltas:down"), "write asc or desc"),
        (("--columns", "location,nme"), "did you mean name?"),
        (("--where", "minWriteId = 3"), "--recursive"),
        (("-o", "json", "--no-headers"), "--no-headers"),
        (("-q", "-v"), "leave one of them out"),
    ],
)
def test_a_choice_that_cannot_be_is_refused(acidctl, tmp_path: Path, options: tuple[str, ...], said: str) -> None:  # type: ignore[no-untyped-def]
    make(tmp_path / "t", "delta_1_1")
    found = acidctl("ls", *options, tmp_path)
    assert (found.status, said in found.err) == (2, True), found.err


def test_quiet_lists_nothing_but_what_failed(acidctl, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    make(tmp_path / "t", "delta_1_1")
    found = acidctl("ls", "-q", tmp_path / "t")
    assert (found.status, found.out, found.err) == (0, "", "")
    assert "error: " in acidctl("ls", "-q", tmp_path / "not there").err
    assert acidctl("ls", "-q", "-o", "json", tmp_path / "t").one()["base"] is None


def test_the_choices_of_state_are_all_states() -> None:
    (choices,) = (option.type.choices for option in ls.command.params if option.name == "states")
    assert list(choices) == [state.value for state in State] == list(STATE_STYLES)


def test_a_name_that_sorts_between_a_directory_and_its_files(acidctl, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    """``-`` comes before ``/``."""
    table = make(tmp_path / "t", "delta_1_1", "delta_1_1-old")
    for file in (table / "delta_1_1").iterdir():
        os.utime(file, (0, 1_000_000_000))
    os.utime(table / "delta_1_1", (0, 1_500_000_000))
    entries = {entry["name"]: entry for entry in acidctl("ls", "-a", "-o", "json", table).one()["entries"]}
    assert {name: (entry["files"], entry["bytes"]) for name, entry in entries.items()} == {
        "delta_1_1": (2, 11),
        "delta_1_1-old": (2, 11),
    }
    assert entries["delta_1_1"]["modified"] == "2017-07-14T02:40:00Z"


def test_a_missing_path_like_a_table_names_the_table(acidctl) -> None:  # type: ignore[no-untyped-def]
    assert "hive:db.t" in acidctl("ls", "db.t").err
    assert "hive:" not in acidctl("ls", "db.t/x").err


FORMS = ("json", "jsonl", "csv", "table")


@pytest.mark.parametrize("form", FORMS)
def test_filters_and_columns_hold_in_every_form(acidctl, tmp_path: Path, form: str) -> None:  # type: ignore[no-untyped-def]
    for name, count in (("a", 2), ("b", 60), ("c", 55)):
        make(tmp_path / name, *(f"delta_{i}_{i}" for i in range(1, count + 1)))
    make(tmp_path / "d", "base_3", "delta_1_1")
    words = ("--where", "deltas > 50", "--sort", "deltas", "--columns", "table,deltas")
    out = acidctl("ls", "-o", form, *words, tmp_path).out
    assert [out.index(str(tmp_path / name)) for name in "bc"] == sorted(
        out.index(str(tmp_path / name)) for name in "bc"
    )
    assert not any(str(tmp_path / name) in out for name in "ad")
    assert "verdict" not in out
    only = acidctl("ls", "-o", form, "--state", "obsolete", "--columns", "table", tmp_path).out
    assert [str(tmp_path / name) in only for name in "abcd"] == [False, False, False, True]
    entries = acidctl("ls", "-r", "-o", form, "--where", "state = 'obsolete'", "--columns", "name,state", tmp_path).out
    assert ("delta_1_1" in entries, "base_3" in entries, "delta_2_2" in entries) == (True, False, False)


def test_what_is_due_and_what_would_gain_are_the_same_numbers_everywhere(acidctl, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    for number in range(6):
        make(tmp_path / f"worn{number}", "delta_1_1", "delta_2_2", "delta_3_3")
    for number in range(2):
        make(tmp_path / f"due{number}", *(f"delta_{i}_{i}" for i in range(1, 13)))
    status = acidctl("status", "-o", "json", tmp_path).json()
    listed = acidctl("ls", "-o", "json", tmp_path).json()
    assert (status["compaction"]["due"], status["compaction"]["helped"]) == (2, 6)
    for key in ("due", "helped"):
        assert sum(one[key] for one in listed) == status["compaction"][key]
    assert "a compaction is due in 2, but one would save reads in 6 more" in acidctl("ls", tmp_path).out


def test_a_table_that_was_named_is_answered_by_its_name(acidctl, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    with FakeHive(4) as fake:
        fake.table("db", "t", f"file:{make(tmp_path / 't', 'base_0000001')}")
        fake.write_ids["db.t"] = [1]
        at = ("--metastore", fake.address)
        for words, name in (((*at, "hive:db.t"), "hive:db.t"), ((*at, tmp_path / "t"), None)):
            found = acidctl("ls", "-o", "json", *words).one()
            assert (found["location"], found["name"], found["table"]) == (str(tmp_path / "t"), name, "db.t")
            assert acidctl("ls", *words).out.splitlines()[0] == (name or str(tmp_path / "t"))
            assert acidctl("why", "-o", "json", *words).one()["name"] == name


@pytest.mark.parametrize("output", ["table", "jsonl"])
def test_tables_are_listed_though_nobody_tells_who_reads_them(acidctl, tmp_path: Path, output: str) -> None:  # type: ignore[no-untyped-def]
    """Nothing counts as free then: the readers might hold it."""
    with FakeHive(4) as fake:
        for name in ("a", "b"):
            table = make(tmp_path / name, "base_0000002", "delta_0000001_0000001")
            age(table, 48)
            fake.table("db", name, f"file:{table}")
            fake.write_ids[f"db.{name}"] = [1, 2]
        at = ("--metastore", fake.address, "-o", output, "hive:db.*")
        assert ("11 B" in acidctl("ls", *at).out) == (output == "table")
        fake.fault("show_locks", "refused", 100)
        found = acidctl("ls", *at)
        assert found.status == 6
        assert "error: " in found.err
        assert all(f"hive:db.{name}" in found.out for name in ("a", "b"))
        assert " free" not in found.out
        if output == "jsonl":
            assert [one["freeBytes"] for one in found.lines()] == [None, None]
        for command in ("status", "why"):
            assert acidctl(command, "--metastore", fake.address, "hive:db.a").status == 6


@pytest.mark.parametrize("method", ["get_database", "show_locks"])
def test_a_metastore_that_fails_is_asked_once_for_a_location(  # type: ignore[no-untyped-def]
    acidctl, tmp_path: Path, method: str
) -> None:
    with FakeHive(4) as fake:
        fake.table("db", "a", f"file:{make(tmp_path / 'a', 'delta_0000001_0000001')}")
        fake.write_ids["db.a"] = [1]
        fake.fault(method, "failed", 100)
        assert acidctl("ls", "--metastore", fake.address, "hive:db.a").status == 6
        assert fake.calls.count(method) == 1


def test_a_location_that_was_named_is_shown_without_entries(acidctl, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    table = make(tmp_path / "t", "delta_1_1", "delta_2_2")
    for choice in (("--state", "aborted"), ("--where", "files > 100")):
        assert acidctl("ls", *choice, table).out.splitlines() == [str(table), "2 current; ok"]
        assert acidctl("ls", *choice, "-o", "json", table).one()["entries"] == []
    assert acidctl("ls", "-r", "--state", "aborted", "-o", "json", tmp_path).json() == []


def test_the_first_lines_come_soon_and_all_stand_in_line(
    acidctl: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a_table_of_a_long_name", *(f"t{number}" for number in range(40))):
        make(tmp_path / name, "delta_0000001_0000001_0000")
    whole = acidctl("ls", "--columns", "location,deltas", tmp_path).out.splitlines()
    clock, printed = itertools.count(0, 2), list[int]()
    monkeypatch.setattr(location_list, "monotonic", lambda: next(clock))

    def printing(layout: Any, items: Any, **more: Any) -> None:
        printed.append(len(items))
        print_table(layout, items, **more)

    monkeypatch.setattr(location_list, "print_table", printing)
    found = acidctl("ls", tmp_path).out.splitlines()
    assert printed[0] == 1
    assert [line.split()[0] for line in found[1:-1]] == [line.split()[0] for line in whole[1:-1]]
    columns = {len(re.match(r"\S+\s+", line)[0]) for line in found[:-1]}  # type: ignore[index]
    assert len(columns) == 1, "the columns of all portions have the same widths"


def test_what_a_choice_leaves_out_and_options_without_effect_are_said(  # type: ignore[no-untyped-def]
    acidctl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        make(tmp_path / name, "delta_0000001_0000001_0000")
    for choice in (("--state", "obsolete"), ("--where", "deltas > 9"), ("-r", "--state", "obsolete")):
        found = acidctl("ls", *choice, tmp_path)
        assert (found.out, "leaves out" in found.err) == ("", True), choice
    for option in ("--rows", "--all"):
        assert acidctl("ls", option, tmp_path).status == 2
        assert acidctl("ls", "-r", option, tmp_path).status != 2
    monkeypatch.setenv("ACIDCTL_LS_ALL", "1")  # meant for other lines as well
    assert acidctl("ls", tmp_path).status == 0


@pytest.mark.parametrize("command", ["why", "log"])
def test_every_command_over_a_tree_says_what_it_did_not_enter(acidctl, tmp_path: Path, command: str) -> None:  # type: ignore[no-untyped-def]
    make(tmp_path / "t", "delta_0000001_0000001_0000")
    (tmp_path / "notes.txt").write_text("x")
    assert "notes.txt is a file beside tables" in acidctl(command, tmp_path).err
