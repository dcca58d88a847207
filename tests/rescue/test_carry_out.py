"""A rescue gives what is missing, aborts with a component, and may die at any call."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from support.command_line import Result
from support.files.acid_files import insert, write_acid
from support.metastore.fake_hive import FakeHive
from support.trouble.locks import locked

from acidctl.base.errors import ExitStatus
from acidctl.location import metastore_state
from acidctl.metastore.client import Metastore
from acidctl.metastore.errors import MetastoreError
from acidctl.metastore.interface import LockType, TxnState
from acidctl.metastore.wire import Method
from acidctl.rescue import carry_out
from acidctl.storage.registry import open_location

Acidctl = Callable[..., Result]


def give(hive: FakeHive, count: int, *, end: bool = True) -> list[int]:
    """So many write ids, of transactions that are committed or open."""
    txns = list(hive.begin_many(count))
    hive.write_ids.setdefault("d.t", []).extend(txns)
    for txn in txns if end else ():
        hive.end(txn)
    return txns


def write(tmp_path: Path, *names: str) -> None:
    for name in names:
        write_acid(tmp_path / "t" / name / "bucket_00000", insert(1, 0, (1, "x")))


def delta(*ids: int) -> list[str]:
    return [f"delta_{one:07}_{one:07}_0000" for one in ids]


def rescue(acidctl: Acidctl, hive: FakeHive, *words: object) -> Result:
    return acidctl("hive", "rescue", "--metastore", hive.address, *words)


def states(hive: FakeHive, table: str = "d.t") -> list[str]:
    """The state of each write id, from 1 on."""
    txns = [hive.txns.get(txn) for txn in hive.write_ids[table]]
    return ["committed" if txn is None else TxnState(txn.state).name.lower() for txn in txns]


def found(acidctl: Acidctl, hive: FakeHive, *words: object) -> set[str]:
    (record,) = rescue(acidctl, hive, "-n", "-o", "jsonl", *(words or ("d.t",))).lines()
    return {one["kind"] for one in record["disagreements"]}


def test_ids_up_to_the_files_are_given_and_those_named_are_aborted_with_a_component(
    hive: FakeHive, tmp_path: Path, acidctl: Acidctl
) -> None:
    give(hive, 2)
    write(tmp_path, *delta(1, 2, 3, 4, 5))
    assert found(acidctl, hive) == {"older-metastore"}
    before = sorted(path.name for path in (tmp_path / "t").iterdir())
    done = rescue(acidctl, hive, "--yes", "--aborted", "4", "d.t")
    assert done.status == ExitStatus.DONE, done.err
    assert states(hive) == ["committed"] * 3 + ["aborted", "committed"]
    components = [part for part in hive.wanted_locks if part.type == LockType.SHARED_WRITE]
    assert [(part.database, part.table) for part in components] == [("d", "t")]
    assert not hive.locks
    assert [name for name in before if not name.startswith(".")] == delta(1, 2, 3, 4, 5)
    assert rescue(acidctl, hive, "--yes", "d.t").status == ExitStatus.DONE
    assert found(acidctl, hive) == set()
    assert [entry["verb"] for entry in acidctl("log", tmp_path / "t", "-o", "jsonl").lines()] == ["rescue"]


def test_statistics_are_given_up(hive: FakeHive, tmp_path: Path, acidctl: Acidctl) -> None:
    hive.table("d", "t", str(tmp_path / "t"), parameters=CLAIM)
    give(hive, 2)
    write(tmp_path, *delta(1, 2, 3))
    assert rescue(acidctl, hive, "--yes", "d.t").status == ExitStatus.DONE
    assert "COLUMN_STATS_ACCURATE" not in hive.tables["d", "t"].parameters


def test_the_plan_names_the_rows_and_asks_for_what_nobody_can_know(
    hive: FakeHive, tmp_path: Path, acidctl: Acidctl
) -> None:
    give(hive, 2)
    write(tmp_path, *delta(3, 4))
    done = rescue(acidctl, hive, "-n", "d.t")
    assert done.status == ExitStatus.FINDINGS
    assert "all of 3-4 will count as committed" in done.out
    assert f"{delta(4)[0]} (1 row)" in done.out
    assert "--aborted" in done.err
    assert rescue(acidctl, hive, "d.t").status == ExitStatus.REFUSED
    assert states(hive) == ["committed"] * 2


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--aborted", "2"), "--aside 2"),
        (("--aborted", "9"), "go up to 5"),
        (("--aborted", "x"), "--aborted"),
        (("--aside", "x"), "--aside"),
        (("--aside", "4"), "others"),
        (("--aside", "1"), "base_0000002"),
        (("--aside", "delta_9"), "no directory"),
        (("--aborted", "4", "d.*"), "one table"),
    ],
)  # fmt: skip
def test_ids_that_cannot_be_meant_are_refused(
    hive: FakeHive, tmp_path: Path, acidctl: Acidctl, words: tuple[str, ...], text: str
) -> None:
    hive.table("d", "u", str(tmp_path / "u"))
    give(hive, 2)
    write(tmp_path, *delta(1, 2, 3), "delta_0000004_0000005", "base_0000002")
    done = rescue(acidctl, hive, "--yes", *words, *(() if "d.*" in words else ("d.t",)))
    assert (done.status, text in done.err) == (ExitStatus.USAGE, True), done.err
    assert states(hive) == ["committed"] * 2


def test_what_is_taken_aside_comes_back(hive: FakeHive, tmp_path: Path, acidctl: Acidctl) -> None:
    give(hive, 4)
    write(tmp_path, *delta(1, 2, 3), "delete_delta_0000003_0000003_0000")
    (record,) = rescue(acidctl, hive, "-n", "-o", "jsonl", "--aside", "3", "d.t").lines()
    assert [one["kind"] for one in record["disagreements"]] == ["forgotten-abort"]
    assert rescue(acidctl, hive, "--yes", "--aside", "3", "d.t").status == ExitStatus.DONE
    left = {path.name for path in (tmp_path / "t").iterdir() if not path.name.startswith(".")}
    assert left == set(delta(1, 2))
    assert rescue(acidctl, hive, "--yes", "--aside", "3", "d.t").status == ExitStatus.DONE, "it is done already"
    assert acidctl("restore", tmp_path / "t").status == ExitStatus.DONE
    left = {path.name for path in (tmp_path / "t").iterdir() if not path.name.startswith(".")}
    assert left == {*delta(1, 2, 3), "delete_delta_0000003_0000003_0000"}


def test_a_damaged_name_is_not_taken_aside_unless_it_is_named(hive: FakeHive, tmp_path: Path, acidctl: Acidctl) -> None:
    give(hive, 6)
    write(tmp_path, *delta(1), "delta_0000005_0000003")
    assert found(acidctl, hive) == set()
    assert found(acidctl, hive, "--aside", "1", "d.t") == {"forgotten-abort"}
    assert rescue(acidctl, hive, "--yes", "--aside", "delta_0000005_0000003", "d.t").status == ExitStatus.DONE
    assert not (tmp_path / "t" / "delta_0000005_0000003").exists()


@pytest.mark.parametrize(
    "name",
    [
        "delta_1000000000000000000_1000000000000000000_0000",
        "delta_0000000_9223372036854775807",
        "base_0000003_v9223372036854775807",
        "delta_10000001_10000001_0000",
    ],
)
def test_ids_that_no_metastore_gave_are_refused(hive: FakeHive, tmp_path: Path, acidctl: Acidctl, name: str) -> None:
    give(hive, 2)
    write(tmp_path, *delta(1, 2), name)
    done = rescue(acidctl, hive, "--yes", "d.t")
    assert (done.status, name in done.err) == (ExitStatus.REFUSED, True), done.err
    assert states(hive) == ["committed"] * 2
    assert hive.begin() < 100


def test_ids_that_cannot_be_asked_for_are_no_silence(
    hive: FakeHive, tmp_path: Path, acidctl: Acidctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Metastore) -> int:
        raise MetastoreError("the database is away", "", "")

    monkeypatch.setattr(metastore_state, "given_txn", fail)
    give(hive, 2)
    write(tmp_path, *delta(1, 2), "base_0000002_v0000090")
    done = rescue(acidctl, hive, "-n", "d.t")
    assert (done.status, "the database is away" in done.err) == (ExitStatus.STORAGE, True)


def test_folders_that_are_no_partitions_of_the_table_are_not_added(
    hive: FakeHive, tmp_path: Path, acidctl: Acidctl
) -> None:
    hive.table("d", "t", str(tmp_path / "t"), ["p"])
    hive.partition("d", "t", "p=1")
    one = hive.partitions["d", "t"]["p=1"]
    assert one.storage
    elsewhere = replace(one, storage=replace(one.storage, location=str(tmp_path / "elsewhere")))
    hive.partitions["d", "t"]["p=1"] = elsewhere
    write_acid(tmp_path / "elsewhere" / delta(1)[0] / "bucket_00000", insert(1, 0, (1, "x")))
    give(hive, 2)
    write(tmp_path, f"q=2/{delta(1)[0]}", f"p=1/{delta(1)[0]}")
    assert found(acidctl, hive) == set()
    write(tmp_path, f"P=2/{delta(1)[0]}")
    assert found(acidctl, hive) == {"lost-partition"}
    assert rescue(acidctl, hive, "--yes", "d.t").status == ExitStatus.DONE
    assert set(hive.partitions["d", "t"]) == {"p=1", "p=2"}
    assert hive.partitions["d", "t"]["p=1"] == elsewhere


def test_what_a_rescue_cannot_mend_is_said_afterwards(tmp_path: Path, acidctl: Acidctl) -> None:
    with FakeHive(4) as hive:
        hive.table("d", "t", str(tmp_path / "t"))
        (txn,) = hive.begin_many(1)
        hive.end(txn, commit=False)
        give(hive, 2)
        write(tmp_path, f"base_0000002_v{txn:07}", *delta(3))
        assert found(acidctl, hive) == {"older-metastore", "aborted-transaction"}
        done = rescue(acidctl, hive, "--yes", "-o", "jsonl", "d.t")
        assert done.status == ExitStatus.FINDINGS, done.err
        assert [one["kind"] for one in done.lines()[-1]["disagreements"]] == ["aborted-transaction"]
        assert states(hive) == ["committed"] * 3


CLAIM = {"COLUMN_STATS_ACCURATE": '{"BASIC_STATS":"true"}', "numRows": "2"}


def test_statistics_are_given_up_for_what_is_aside_though_nothing_is_committed(
    hive: FakeHive, tmp_path: Path, acidctl: Acidctl
) -> None:
    hive.table("d", "t", str(tmp_path / "t"), parameters=CLAIM)
    give(hive, 2)
    write(tmp_path, *delta(1, 2, 3))
    assert rescue(acidctl, hive, "--yes", "--aside", "2", "--aborted", "3", "d.t").status == ExitStatus.DONE
    assert "COLUMN_STATS_ACCURATE" not in hive.tables["d", "t"].parameters
    assert states(hive)[:3] == ["committed"] * 2 + ["aborted"]


def test_nothing_is_taken_aside_beside_a_compaction(hive: FakeHive, tmp_path: Path, acidctl: Acidctl) -> None:
    give(hive, 2)
    write(tmp_path, *delta(1, 2))
    id_ = hive.entry("d", "t", "working")
    done = rescue(acidctl, hive, "--yes", "--aside", "2", "d.t")
    assert (done.status, "is being compacted" in done.err) == (ExitStatus.CONFLICT, True), done.err
    assert (tmp_path / "t" / delta(2)[0]).exists()
    hive.set_entry(id_, state="failed")
    assert rescue(acidctl, hive, "--yes", "--aside", "2", "d.t").status == ExitStatus.DONE


def test_a_partition_from_which_something_is_taken_aside_is_locked(
    hive: FakeHive, tmp_path: Path, acidctl: Acidctl
) -> None:
    hive.table("d", "t", str(tmp_path / "t"), ["p"])
    hive.partition("d", "t", "p=1")
    give(hive, 2)
    write(tmp_path, f"p=1/{delta(1)[0]}", f"p=1/{delta(2)[0]}")
    with locked(*open_location(str(tmp_path / "t" / "p=1"))):
        done = rescue(acidctl, hive, "--yes", "--lock-wait", "0", "--aside", "2", "d.t")
    assert done.status == ExitStatus.CONFLICT, done.err
    assert (tmp_path / "t" / "p=1" / delta(2)[0]).exists()


def test_transactions_are_used_up_to_that_in_a_name(hive: FakeHive, tmp_path: Path, acidctl: Acidctl) -> None:
    give(hive, 3)
    write(tmp_path, "base_0000003_v0000700")
    assert found(acidctl, hive) == {"future-transaction"}
    assert rescue(acidctl, hive, "--yes", "d.t").status == ExitStatus.DONE
    assert hive.begin() > 700
    assert found(acidctl, hive) == set()
    assert ("seed_txn_id" in hive.calls) == (hive.version == 4)


def test_lost_partitions_are_added_and_those_of_a_writer_are_not(
    hive: FakeHive, tmp_path: Path, acidctl: Acidctl
) -> None:
    hive.table("d", "t", str(tmp_path / "t"), ["p"])
    hive.partition("d", "t", "p=0")
    give(hive, 2)
    write(tmp_path, *(f"p={part}/{name}" for part in ("0", "1", "x%3Ay") for name in delta(1, 2)))
    (txn,) = give(hive, 1, end=False)
    write(tmp_path, f"p=2/{delta(3)[0]}", f"p=0/{delta(3)[0]}")
    assert found(acidctl, hive) == {"lost-partition"}
    hive.end(txn, commit=False)
    assert rescue(acidctl, hive, "--yes", "d.t").status == ExitStatus.DONE
    assert set(hive.partitions["d", "t"]) == {"p=0", "p=1", "p=x%3Ay"}
    assert found(acidctl, hive) == set()


def test_a_writer_at_work_is_waited_for_and_then_refused(hive: FakeHive, tmp_path: Path, acidctl: Acidctl) -> None:
    give(hive, 2)
    give(hive, 1, end=False)
    write(tmp_path, *delta(1, 2, 3, 4))
    done = rescue(acidctl, hive, "--yes", "--wait", "0", "d.t")
    assert (done.status, "being written to" in done.err) == (ExitStatus.CONFLICT, True)
    assert states(hive) == ["committed"] * 2 + ["open"]
    assert not hive.locks


def test_an_id_that_somebody_else_gets_meanwhile_stops_it(hive: FakeHive, tmp_path: Path, acidctl: Acidctl) -> None:
    give(hive, 2)
    write(tmp_path, *delta(1, 2, 3, 4))
    hive.before["allocate_table_write_ids"] = lambda: hive.before.clear() or give(hive, 1, end=False)  # type: ignore[func-returns-value]
    done = rescue(acidctl, hive, "--yes", "d.t")
    assert (done.status, "somebody else writes" in done.err) == (ExitStatus.CONFLICT, True), done.err
    assert states(hive) == ["committed"] * 2 + ["open"] + ["aborted"] * 2


def test_a_saved_plan_is_carried_out_as_long_as_it_holds(hive: FakeHive, tmp_path: Path, acidctl: Acidctl) -> None:
    give(hive, 2)
    write(tmp_path, *delta(1, 2, 3, 4))
    file = tmp_path / "plan.json"
    saved = rescue(acidctl, hive, "--plan", file, "--aborted", "4", "d.t")
    assert saved.status == ExitStatus.FINDINGS
    assert json.loads(file.read_text())["tables"][0]["table"] == "hive:d.t"
    assert states(hive) == ["committed"] * 2
    assert rescue(acidctl, hive, "--apply", file, "d.t").status == ExitStatus.USAGE
    write(tmp_path, *delta(5))
    refused = rescue(acidctl, hive, "--yes", "--apply", file)
    assert (refused.status, states(hive)) == (ExitStatus.CONFLICT, ["committed"] * 2)
    (tmp_path / "t" / delta(5)[0] / "bucket_00000").unlink()
    (tmp_path / "t" / delta(5)[0]).rmdir()
    assert rescue(acidctl, hive, "--yes", "--apply", file).status == ExitStatus.DONE
    assert states(hive) == ["committed"] * 3 + ["aborted"]
    file.write_text("{}")
    assert rescue(acidctl, hive, "--apply", file).status == ExitStatus.BAD_DATA


def test_one_sequence_is_raised_for_all_tables(hive: FakeHive, tmp_path: Path, acidctl: Acidctl) -> None:
    hive.table("d", "u", str(tmp_path / "u"))
    give(hive, 2)
    write(tmp_path, *delta(1, 2, 3))
    write_acid(tmp_path / "u" / "base_0000002_v0000050" / "bucket_00000", insert(1, 0, (1, "x")))
    (of_t, of_u) = rescue(acidctl, hive, "-n", "-o", "jsonl", "d.*").lines()
    assert [one["kind"] for one in of_u["disagreements"]] == ["other-cluster", "future-transaction"]
    assert [one["kind"] for one in of_t["disagreements"]] == ["older-metastore"]
    assert rescue(acidctl, hive, "--yes", "d.*").status == ExitStatus.DONE
    assert (states(hive), states(hive, "d.u")) == (["committed"] * 3, ["committed"] * 2)
    assert min(hive.write_ids["d.u"]) > 50


def test_hive_3_does_not_open_millions_of_transactions(hive: FakeHive, tmp_path: Path, acidctl: Acidctl) -> None:
    give(hive, 2)
    write(tmp_path, "base_0000002_v2000000")
    done = rescue(acidctl, hive, "--yes", "d.t")
    assert done.status == (ExitStatus.REFUSED if hive.version == 3 else ExitStatus.DONE), done.err
    assert (hive.begin() > 2_000_000) == (hive.version == 4)


def test_a_table_that_is_named_twice_is_mended_once(hive: FakeHive, tmp_path: Path, acidctl: Acidctl) -> None:
    give(hive, 2)
    write(tmp_path, *delta(1, 2, 3))
    assert rescue(acidctl, hive, "--yes", "--aborted", "3", "d.t", "d.*").status == ExitStatus.DONE
    assert states(hive) == ["committed"] * 2 + ["aborted"]


def test_a_plan_of_other_tables_is_refused(hive: FakeHive, tmp_path: Path, acidctl: Acidctl) -> None:
    hive.table("d", "u", str(tmp_path / "u"))
    give(hive, 2)
    write(tmp_path, *delta(1, 2, 3))
    file = tmp_path / "plan.json"
    rescue(acidctl, hive, "--plan", file, "d.t")
    for name in ("d.u", "d.*"):
        other = tmp_path / "other.json"
        other.write_text(file.read_text().replace("hive:d.t", f"hive:{name}"))
        assert rescue(acidctl, hive, "--yes", "--apply", other).status == ExitStatus.CONFLICT
    assert states(hive) == ["committed"] * 2


def test_the_metastore_of_hive_2_has_no_ids_to_give(tmp_path: Path, acidctl: Acidctl) -> None:
    with FakeHive(2) as hive:
        hive.table("d", "t", str(tmp_path / "t"))
        assert rescue(acidctl, hive, "-n", "d.t").status == ExitStatus.USAGE


def test_a_table_that_was_dropped_meanwhile_is_left_alone(hive: FakeHive, tmp_path: Path, acidctl: Acidctl) -> None:
    write(tmp_path, *delta(1))
    hive.before["show_compact"] = hive.tables.clear
    done = rescue(acidctl, hive, "--yes", "d.t")
    assert (done.status, "dropped" in done.out) == (ExitStatus.DONE, True), done.err


class Died(BaseException):
    """The process is dead."""


def test_statistics_are_given_up_before_anything_is_taken_aside(
    hive: FakeHive, tmp_path: Path, acidctl: Acidctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: object) -> None:
        raise Died

    hive.table("d", "t", str(tmp_path / "t"), parameters=CLAIM)
    give(hive, 2)
    write(tmp_path, *delta(1, 2))
    monkeypatch.setattr(carry_out, "raise_sequence", die)
    with pytest.raises(Died):
        rescue(acidctl, hive, "--yes", "--aside", "2", "d.t")
    assert not (tmp_path / "t" / delta(2)[0]).exists()
    assert "COLUMN_STATS_ACCURATE" not in hive.tables["d", "t"].parameters


@pytest.mark.parametrize("after", [False, True])
def test_a_rescue_that_died_at_any_call_is_finished_by_the_next(
    tmp_path: Path, acidctl: Acidctl, after: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Metastore.call
    write(tmp_path, *delta(1, 2, 3, 4, 5), "base_0000002_v0000090")
    for at in range(1, 1000):
        with FakeHive(4) as hive:
            hive.table("d", "t", str(tmp_path / "t"))
            give(hive, 2)
            calls = 0

            def call(self: Metastore, method: Method, *arguments: object, at: int = at) -> object:
                nonlocal calls
                calls += 1
                if calls > at or (calls == at and not after):
                    raise Died
                answer = real(self, method, *arguments)
                if calls == at:
                    raise Died
                return answer

            monkeypatch.setattr(Metastore, "call", call)
            try:
                rescue(acidctl, hive, "--yes", "--aborted", "4", "d.t")
                is_dead = False
            except Died:
                is_dead = True
            monkeypatch.setattr(Metastore, "call", real)
            done = rescue(acidctl, hive, "--yes", "--aborted", "4", "d.t")
            assert done.status == ExitStatus.DONE, (at, done.err)
            assert states(hive)[:5] == ["committed"] * 3 + ["aborted", "committed"], at
            assert "open" not in states(hive)
            assert not hive.locks, at
            assert hive.begin() > 90
            if not is_dead:
                return
    pytest.fail("it never ended")


def test_a_table_that_was_created_again_gets_no_ids_of_an_interrupted_rescue(
    hive: FakeHive, tmp_path: Path, acidctl: Acidctl
) -> None:
    def die(*_: object) -> None:
        dying.setattr(Metastore, "call", die)
        raise Died

    def create_again() -> None:
        hive.tables["d", "t"] = replace(hive.tables["d", "t"], id=99, created=99)
        hive.write_ids["d.t"] = []

    give(hive, 2)
    write(tmp_path, *delta(1, 2, 3))
    with pytest.MonkeyPatch.context() as dying, pytest.raises(Died):
        dying.setattr(carry_out, "raise_write_ids", die)
        rescue(acidctl, hive, "--yes", "d.t")
    assert hive.locks
    hive.before["lock"] = create_again
    done = rescue(acidctl, hive, "--yes", "d.t")
    assert done.status == ExitStatus.CONFLICT, done.err
    assert hive.write_ids["d.t"] == []
