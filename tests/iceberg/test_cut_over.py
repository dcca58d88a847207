"""A Hive table and its copy change names, and change them back."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable
from support.command_line import Result as Run
from support.metastore.fake_hive import FakeHive
from support.metastore.writable import client, writable
from support.paths import PYTHONPATH

import acidctl
from acidctl.base.errors import (
    AcidctlError,
    ConflictError,
    NotFoundError,
    RefusedError,
    UsageProblem,
    VerifyError,
)
from acidctl.iceberg import cut_over
from acidctl.iceberg.catalogs.hive_metastore import METADATA, MetastoreCatalog
from acidctl.iceberg.cut_over import MIGRATED_TO, Swap
from acidctl.iceberg.request import CopyRequest
from acidctl.iceberg.target import TAG, find_target
from acidctl.location.snapshot_resolver import SnapshotResolver
from acidctl.location.warehouse import Warehouse
from acidctl.metastore.errors import MetastoreError
from acidctl.metastore.interface import Database, LockType, TxnState
from acidctl.outcome import Result
from acidctl.verbs.events import Events
from acidctl.verbs.iceberg import cut_over as verb
from acidctl.verbs.iceberg.migrate import migrate
from acidctl.verbs.iceberg.options import Migrated, MigrateOptions
from acidctl.verbs.selection import Selection

T, ICE, ACID = ("db", "t"), ("db", "t_ice"), ("db", "t_acid")


@pytest.fixture(params=[3, 4])
def hive(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHive]:
    """A metastore with a table of two rows, and a copy of one of them."""
    monkeypatch.setattr(cut_over, "_GRACE", 0.0)
    with FakeHive(request.param, remembers=True) as made:
        made.databases["db"] = Database("db", f"file:{tmp_path}")
        writable(made, tmp_path / "t")
        insert(made, 1)
        acidctl.migrate("hive:db.t", "hive:db.t_ice", metastore=made.address)
        insert(made, 2)
        yield made


def insert(hive: FakeHive, *numbers: int, table: str = "db.t") -> None:
    rows = pa.table({"a": pa.array(numbers, pa.int32()), "b": list(map(str, numbers))})
    acidctl.Hive(hive.address).table(table).insert(rows)


def run(hive: FakeHive, **options: Any) -> Migrated:
    chosen = {"cut_over": "back" not in options, **options}
    return acidctl.migrate("hive:db.t", "hive:db.t_ice", metastore=hive.address, **chosen)


def names(hive: FakeHive) -> dict[str, str]:
    """Who is called how."""
    return {
        name: "iceberg" if METADATA in table.parameters else "hive" for (_, name), table in sorted(hive.tables.items())
    }


def iceberg_rows(hive: FakeHive, name: str = "t") -> list[int]:
    table = StaticTable.from_metadata(hive.tables["db", name].parameters[METADATA])
    return sorted(table.scan().to_arrow().column("a").to_pylist())


def hive_rows(hive: FakeHive, name: str) -> list[int]:
    found = acidctl.open_table(f"hive:db.{name}", metastore=hive.address).scan(["a"]).to_table()
    return sorted(found["a"].to_pylist())


BEFORE, AFTER = {"t": "hive", "t_ice": "iceberg"}, {"t": "iceberg", "t_acid": "hive"}


def test_there_and_back(hive: FakeHive) -> None:
    done = run(hive)
    assert done.names == "db.t becomes the Iceberg table, and the Hive table becomes db.t_acid"
    assert (names(hive), iceberg_rows(hive), hive_rows(hive, "t_acid")) == (AFTER, [1, 2], [1, 2])
    assert hive.tables[ACID].parameters[MIGRATED_TO] == "db.t_ice"
    refs = StaticTable.from_metadata(hive.tables[T].parameters[METADATA]).metadata.refs
    assert refs[TAG].snapshot_id == done.snapshot
    assert not hive.locks
    assert run(hive).result is Result.NOTHING_TO_DO
    insert(hive, 3, table="db.t_acid")
    run(hive, back=True)
    assert (names(hive), iceberg_rows(hive, "t_ice"), hive_rows(hive, "t")) == (BEFORE, [1, 2], [1, 2, 3])
    assert MIGRATED_TO not in hive.tables[T].parameters
    assert not hive.locks
    insert(hive, 4)
    run(hive)
    assert (names(hive), iceberg_rows(hive)) == (AFTER, [1, 2, 3, 4])


def test_the_command_shows_what_it_copies_and_the_names(hive: FakeHive, acidctl: Callable[..., Run]) -> None:
    line = ("migrate", "hive:db.t", "--to", "hive:db.t_ice", f"--metastore={hive.address}", "--cut-over")
    asked = acidctl(*line)
    assert (asked.status, names(hive)) == (RefusedError.exit_status, BEFORE)
    assert "the names would change" in asked.err
    shown = acidctl(*line, "--yes", "-o", "jsonl").lines()
    assert [(one["rowsAdded"], one["format"], bool(one["names"])) for one in shown] == [
        (1, "orc", False),
        (0, None, True),
    ]


def test_a_dry_run_changes_nothing(hive: FakeHive) -> None:
    planned = run(hive, dry_run=True)
    assert (planned.result, names(hive), iceberg_rows(hive, "t_ice")) == (Result.PLANNED, BEFORE, [1])
    run(hive)
    assert run(hive, back=True, dry_run=True).result is Result.PLANNED
    assert names(hive) == AFTER


@pytest.mark.parametrize("when", ["t", "t_ice"])
def test_statements_that_wait_for_the_table_end(hive: FakeHive, when: str) -> None:
    """Otherwise they would write to the directory that the table had, which nobody reads any more."""
    waiting: list[int] = []

    def comes(old: str, _: str) -> None:
        if old == when:
            waiting.append(hive.begin())
            hive.lock("db", "t_acid" if old == "t_ice" else "t", txn=waiting[0], blocked_by=1)

    renames(hive, comes)
    run(hive)
    assert hive.txns[waiting[0]].state == TxnState.ABORTED
    assert (names(hive), hive.locks) == (AFTER, [])


def test_a_statement_that_locks_the_name_while_no_table_has_it_ends(hive: FakeHive) -> None:
    late: list[int] = []
    real = hive.answers["show_locks"]

    def comes(asked: Any) -> Any:
        if T not in hive.tables and ICE in hive.tables and not late:
            late.append(hive.begin())
            hive.write_ids["db.t"] = [late[0]]
            hive.lock("db", "t", txn=late[0])
        return real(asked)

    hive.answers["show_locks"] = comes
    run(hive)
    assert hive.txns[late[0]].state == TxnState.ABORTED
    assert (names(hive), hive.locks) == (AFTER, [])


def test_a_commit_without_a_lock_undoes_the_cut_over(hive: FakeHive) -> None:
    def commits(old: str, _: str) -> None:
        if old == "t_ice" and "db.t_acid" in hive.write_ids:
            txn = hive.begin()
            hive.write_ids["db.t_acid"].append(txn)
            hive.end(txn)

    renames(hive, commits)
    with pytest.raises(ConflictError, match="has rows that the copy has not"):
        run(hive)
    assert (names(hive), hive.locks) == (BEFORE, [])


def test_a_statement_at_work_holds_up_the_cut_over(hive: FakeHive) -> None:
    hive.lock("db", "t", txn=hive.begin(), type=LockType.SHARED_READ)
    with pytest.raises(ConflictError, match="could not lock db"):
        run(hive, window=0.2)
    assert (names(hive), iceberg_rows(hive, "t_ice")) == (BEFORE, [1, 2])


@pytest.mark.parametrize(("fails", "warning"), [(False, "its rows are in neither"), (True, "cannot tell whether")])
def test_a_statement_that_may_have_written_too_late(
    hive: FakeHive, acidctl: Callable[..., Run], monkeypatch: pytest.MonkeyPatch, fails: bool, warning: str
) -> None:
    def wrote_too_late(_: Swap) -> bool:
        if fails:
            raise MetastoreError("it does not answer")
        return True

    monkeypatch.setattr(Swap, "wrote_too_late", wrote_too_late)
    words = ("migrate", f"--metastore={hive.address}", "hive:db.t", "--to", "hive:db.t_ice", "--cut-over", "--yes")
    done = acidctl(*words)
    assert (done.status, names(hive)) == (0, AFTER)
    assert warning in done.err


def test_no_lock_is_held_while_somebody_reads_what_was_done(hive: FakeHive) -> None:
    """A reader of a pipe may take its time."""
    with closing(Warehouse(client(hive))) as warehouse:
        selection = Selection(("hive:db.t",), resolver=SnapshotResolver(warehouse=warehouse))
        for options in ({"cut_over": True}, {"back": True}):
            for _ in migrate(selection, MigrateOptions(to="hive:db.t_ice", **options), Events()):
                assert LockType.EXCLUSIVE not in {lock.type for lock in hive.locks}


def test_a_second_name_that_is_taken(hive: FakeHive, tmp_path: Path) -> None:
    hive.table("db", "t_acid", str(tmp_path / "t_acid"))
    with pytest.raises(RefusedError) as found:
        run(hive)
    assert "there is a table db.t_acid" in found.value.why


def altering(hive: FakeHive) -> str:
    return "alter_table_req" if hive.version == 4 else "alter_table_with_environment_context"


def renames(hive: FakeHive, then: Callable[[str, str], None]) -> None:
    """Call a function before each renaming, with both names."""
    real = hive.answers[altering(hive)]

    def answer(*asked: Any) -> Any:
        old, raw = (asked[1], asked[2]) if hive.version == 3 else (asked[0].name, asked[0].table)
        if raw.text(1) != old:
            then(old, raw.text(1))
        return real(*asked)

    hive.answers[altering(hive)] = answer


def test_the_first_renaming_is_undone_if_the_second_fails(hive: FakeHive) -> None:
    renames(hive, lambda old, _: hive.fault(altering(hive), "refused") if old == "t_ice" and fails else None)
    fails = [True]
    with pytest.raises(MetastoreError, match="cannot rename"):
        run(hive)
    assert (names(hive), hive_rows(hive, "t"), hive.locks) == (BEFORE, [1, 2], [])
    assert MIGRATED_TO not in hive.tables[T].parameters
    fails.clear()
    run(hive)
    assert names(hive) == AFTER


@pytest.mark.parametrize(("kind", "times"), [("done", 1), ("lost", 1), ("done", 3)])
@pytest.mark.parametrize("name", ["t", "t_ice"])
def test_a_lost_answer_of_a_renaming(hive: FakeHive, kind: str, times: int, name: str) -> None:
    faults = [times]
    renames(hive, lambda old, _: hive.fault(altering(hive), kind, faults.pop()) if old == name and faults else None)
    run(hive)
    assert not faults
    assert names(hive) == AFTER


KILLED = """
import os, signal, sys
import acidctl
from acidctl.iceberg import cut_over
from acidctl.iceberg.cut_over import Swap
from acidctl.iceberg.target import Target
from acidctl.metastore.txn.transaction import LockedTransaction

cut_over._GRACE = 0.0
address, step, number, back = sys.argv[1:]
owner = {"tag": Target, "lock": LockedTransaction, "release": LockedTransaction}.get(step, Swap)
real, calls = getattr(owner, step), []

def dying(*given, **more):
    answer = real(*given, **more)
    calls.append(step)
    if len(calls) == int(number):
        os.kill(os.getpid(), signal.SIGKILL)
    return answer

setattr(owner, step, dying)
acidctl.migrate("hive:db.t", "hive:db.t_ice", metastore=address, **{back: True})
"""
STEPS = [
    ("write_ids", 1),
    ("tag", 1),
    ("lock", 1),
    ("_rename", 1),
    ("_fence", 1),
    ("_rename", 2),
    ("wrote_too_late", 1),
]


def killed(hive: FakeHive, step: str, number: int, way: str) -> None:
    """A run in a process of its own, which ends after a step; the metastore ends its transactions later."""
    line = [sys.executable, "-c", KILLED, hive.address, step, str(number), way]
    done = subprocess.run(
        line, env={**os.environ, "PYTHONPATH": PYTHONPATH}, timeout=120, check=False, capture_output=True
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    for txn in [id_ for id_, one in hive.txns.items() if one.state == TxnState.OPEN]:
        hive.end(txn, commit=False)


@pytest.mark.slow
@pytest.mark.parametrize(("step", "number"), STEPS)
def test_the_next_run_goes_on_after_a_kill(hive: FakeHive, step: str, number: int) -> None:
    killed(hive, step, number, "cut_over")
    if (step, number) in (("_rename", 1), ("_fence", 1)):
        assert names(hive) == {"t_acid": "hive", "t_ice": "iceberg"}
    run(hive)
    assert (names(hive), iceberg_rows(hive), hive_rows(hive, "t_acid")) == (AFTER, [1, 2], [1, 2])
    insert(hive, 3, table="db.t_acid")
    run(hive, back=True)
    assert (names(hive), hive_rows(hive, "t")) == (BEFORE, [1, 2, 3])


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("then", ["cut_over", "back"])
def test_the_next_run_goes_on_after_a_kill_on_the_way_back(hive: FakeHive, number: int, then: str) -> None:
    run(hive)
    killed(hive, "_rename", number, "back")
    if number == 2 and then == "back":
        with pytest.raises(RefusedError, match="was not cut over"):
            run(hive, back=True)
    else:
        run(hive, **{then: True})
    assert (names(hive), hive.locks) == (AFTER if then == "cut_over" else BEFORE, [])
    assert hive_rows(hive, "t_acid" if then == "cut_over" else "t") == [1, 2]


def half(hive: FakeHive) -> None:
    """Leave the names as a run does that ends between the two renamings."""
    table = hive.tables.pop(T)
    assert table.storage
    place = Path(str(table.storage.location))
    place.rename(f"{place}_acid")
    hive.tables[ACID] = replace(
        table, name="t_acid", parameters=table.parameters | {MIGRATED_TO: "db.t_ice"},
        storage=replace(table.storage, location=f"{place}_acid"),
    )  # fmt: skip
    hive.write_ids["db.t_acid"] = hive.write_ids.pop("db.t")
    hive.partitions[ACID] = {}


@pytest.mark.parametrize("goes_on", ["cut_over", "back"])
def test_a_run_that_ended_between_the_renamings(hive: FakeHive, goes_on: str) -> None:
    half(hive)
    assert "a run ended between two renamings" in run(hive, dry_run=True).names
    with pytest.raises(NotFoundError):
        acidctl.migrate("hive:db.t", "hive:db.t_ice", metastore=hive.address, catch_up=True)
    run(hive, **{goes_on: True})
    assert names(hive) == (AFTER if goes_on == "cut_over" else BEFORE)


def unchecked(hive: FakeHive, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the names as a run does that ends after the renamings, before its last check."""
    with monkeypatch.context() as patch:
        patch.setattr(Swap, "_forget_unchecked", lambda _: None)
        run(hive)
    assert names(hive) == AFTER


def test_a_run_that_ended_before_its_last_check_is_finished(hive: FakeHive, monkeypatch: pytest.MonkeyPatch) -> None:
    unchecked(hive, monkeypatch)
    assert "a run ended before it looked for late commits" in run(hive, dry_run=True).names
    assert run(hive).result is Result.WRITTEN
    assert run(hive).result is Result.NOTHING_TO_DO
    assert (names(hive), hive.locks) == (AFTER, [])
    insert(hive, 3, table="db.t_acid")
    assert run(hive).result is Result.NOTHING_TO_DO, "the cut-over ignores what comes later"


def test_a_late_commit_is_found_by_the_next_run(hive: FakeHive, monkeypatch: pytest.MonkeyPatch) -> None:
    unchecked(hive, monkeypatch)
    insert(hive, 3, table="db.t_acid")
    with pytest.raises(ConflictError, match="has rows that the copy has not"):
        run(hive)
    assert (names(hive), hive_rows(hive, "t"), hive.locks) == (BEFORE, [1, 2, 3], [])
    run(hive)
    assert (names(hive), iceberg_rows(hive)) == (AFTER, [1, 2, 3])


def test_a_late_commit_beside_new_rows_in_iceberg_changes_no_name(
    hive: FakeHive, monkeypatch: pytest.MonkeyPatch
) -> None:
    unchecked(hive, monkeypatch)
    spark_commits(hive, "t")
    insert(hive, 3, table="db.t_acid")
    with pytest.raises(ConflictError, match="has rows that the copy has not") as found:
        run(hive)
    assert "--back --discard-snapshots" in found.value.hint
    assert names(hive) == AFTER


def test_a_check_that_another_run_makes_is_waited_for(hive: FakeHive, monkeypatch: pytest.MonkeyPatch) -> None:
    unchecked(hive, monkeypatch)
    real = Swap.locked

    def waits(swap: Swap, *given: str, wait: float) -> Any:
        marks = {MIGRATED_TO: "db.t_ice"}
        hive.tables[ACID] = replace(hive.tables[ACID], parameters=hive.tables[ACID].parameters | marks)
        del hive.tables[ACID].parameters["acidctl.unchecked"]
        return real(swap, *given, wait=wait)

    monkeypatch.setattr(Swap, "locked", waits)
    assert run(hive).result is Result.NOTHING_TO_DO


def test_the_log_has_each_change_of_names(hive: FakeHive, acidctl: Callable[..., Run]) -> None:
    snapshot = run(hive).snapshot
    line = ("log", f"--metastore={hive.address}", "hive:db.t_acid")
    found = next(one["facts"] for one in acidctl(*line, "-o", "json").json())
    expected = {"from": "db.t", "to": "db.t_acid", "copy": "db.t_ice", "tag": TAG, "snapshotId": snapshot}
    assert found == {"kind": "cut-over", **expected, "renamed": found["renamed"]}
    assert "cut-over; db.t becomes the Iceberg table" in " ".join(acidctl(*line).out.split())
    run(hive, back=True)
    (newest, *_) = acidctl("log", f"--metastore={hive.address}", "hive:db.t", "-o", "json").json()
    assert (newest["facts"]["kind"], newest["facts"]["to"], newest["verb"]) == ("back", "db.t", "migrate")
    assert newest["user"]


def test_a_run_that_is_still_between_the_renamings(hive: FakeHive, monkeypatch: pytest.MonkeyPatch) -> None:
    half(hive)
    monkeypatch.setattr(cut_over, "_WAIT", 0.0)
    hive.lock("db", "t_acid", txn=hive.begin(), type=LockType.EXCLUSIVE)
    with pytest.raises(ConflictError, match="could not lock db"):
        run(hive)
    assert names(hive) == {"t_acid": "hive", "t_ice": "iceberg"}


def test_two_at_once(hive: FakeHive) -> None:
    """At most one of them changes the names; another fails, or finds it done."""

    def one(_: int) -> object:
        try:
            return run(hive, window=10).result
        except AcidctlError as error:
            return error

    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(one, range(2)))
    assert done.count(Result.WRITTEN) <= 1
    assert names(hive) == (AFTER if Result.WRITTEN in done else BEFORE), done
    assert not hive.locks
    assert run(hive).result in (Result.WRITTEN, Result.NOTHING_TO_DO)
    assert (names(hive), iceberg_rows(hive)) == (AFTER, [1, 2])


def spark_commits(hive: FakeHive, name: str) -> None:
    """A snapshot of somebody else."""
    target = find_target(MetastoreCatalog(client(hive), {}), f"db.{name}")
    assert target
    with target.table.transaction() as changes:
        changes.set_properties({"write.format.default": "parquet"})
    target.table.append(pa.table({"a": pa.array([77], pa.int32()), "b": ["spark"]}))


def test_rows_that_were_written_to_iceberg_stop_the_way_back(hive: FakeHive, acidctl: Callable[..., Run]) -> None:
    run(hive)
    spark_commits(hive, "t")
    with pytest.raises(RefusedError, match="will not change the names back"):
        run(hive, back=True)
    assert (names(hive), iceberg_rows(hive)) == (AFTER, [1, 2, 77])
    theirs = StaticTable.from_metadata(hive.tables[T].parameters[METADATA]).current_snapshot()
    run(hive, back=True, discard_snapshots=True)
    assert (names(hive), iceberg_rows(hive, "t_ice")) == (BEFORE, [1, 2])
    (newest, *_) = acidctl("log", f"--metastore={hive.address}", "hive:db.t", "-o", "json").json()
    assert theirs
    assert newest["facts"]["discardedSnapshotId"] == theirs.snapshot_id
    assert "tag" not in newest["facts"], "it is that of another snapshot"
    insert(hive, 3)
    run(hive)
    assert iceberg_rows(hive) == [1, 2, 3]


def test_a_copy_without_its_tag_gives_the_name_back_only_if_asked(hive: FakeHive) -> None:
    """An expiry with max-ref-age-ms removes tags, too."""
    run(hive)
    target = find_target(MetastoreCatalog(client(hive), {}), "db.t")
    assert target
    target.table.manage_snapshots().remove_tag(TAG).commit()
    with pytest.raises(RefusedError, match="will not change the names back") as found:
        run(hive, back=True)
    assert "has no tag of the cut-over" in found.value.why
    assert names(hive) == AFTER
    run(hive, back=True, discard_snapshots=True)
    assert (names(hive), hive_rows(hive, "t"), iceberg_rows(hive, "t_ice")) == (BEFORE, [1, 2], [1, 2])


def test_a_copy_that_was_never_compared_is_compared_before_a_cut_over(
    hive: FakeHive, monkeypatch: pytest.MonkeyPatch
) -> None:
    acidctl.migrate("hive:db.t", "hive:db.t_ice", metastore=hive.address, catch_up=True, proof="none")

    def differs(_: object) -> str:
        assert not hive.locks or {lock.type for lock in hive.locks} == {LockType.SHARED_READ}
        raise VerifyError("they differ")

    with monkeypatch.context() as patch:
        patch.setattr(CopyRequest, "prove", differs)
        with pytest.raises(VerifyError):
            run(hive)
        assert names(hive) == BEFORE
    done = acidctl.migrate("hive:db.t", "hive:db.t_ice", metastore=hive.address, catch_up=True)
    assert (done.result, done.proof) == (Result.NOTHING_TO_DO, "all values of 2 rows compared")
    assert not acidctl.migrate("hive:db.t", "hive:db.t_ice", metastore=hive.address, catch_up=True).proof


def test_names_that_cannot_be_changed_back(hive: FakeHive) -> None:
    def commits(old: str, new: str) -> None:
        if old == "t_ice":
            txn = hive.begin()
            hive.write_ids["db.t_acid"].append(txn)
            hive.end(txn)
        elif new == "t_ice":
            hive.fault(altering(hive), "refused")

    renames(hive, commits)
    with pytest.raises(ConflictError) as found:
        run(hive)
    assert "--back" in found.value.hint
    assert names(hive) == AFTER
    hive.faults.clear()
    hive.answers[altering(hive)] = getattr(hive, f"_do_{altering(hive)}")
    run(hive, back=True)
    assert names(hive) == BEFORE


@pytest.mark.parametrize("way", ["cut_over", "back"])
def test_a_commit_without_a_lock_to_iceberg_is_not_lost(hive: FakeHive, way: str) -> None:
    """Writers with engine.hive.lock-enabled=false let the metastore compare, as of Hive 4."""
    if way == "back":
        run(hive)
    key = T if way == "back" else ICE
    hive.tables[key] = replace(
        hive.tables[key], parameters=hive.tables[key].parameters | {"engine.hive.lock-enabled": "false"}
    )
    contexts: list[dict[str, str]] = []
    real = hive.answers[altering(hive)]

    def answer(*asked: Any) -> Any:
        name, raw = (asked[1], asked[2]) if hive.version == 3 else (asked[0].name, asked[0].table)
        if (name, raw.text(1)) in (("t", "t_ice"), ("t_ice", "t")):
            contexts.append((asked[3] if hive.version == 3 else asked[0].context).properties)
        return real(*asked)

    hive.answers[altering(hive)] = answer
    run(hive, **{way: True})
    place = hive.tables[ICE if way == "back" else T].parameters[METADATA]
    (context,) = contexts
    assert (context["expected_parameter_key"], context["expected_parameter_value"]) == (METADATA, place)


def test_a_commit_before_the_renaming_stops_the_way_back(hive: FakeHive, monkeypatch: pytest.MonkeyPatch) -> None:
    run(hive)
    real = Swap.back

    def back(swap: Swap, *given: Any) -> None:
        old = hive.tables[T].parameters
        theirs = old[METADATA].replace("metadata/", "metadata/99-")
        Path(theirs.removeprefix("file://")).write_bytes(Path(old[METADATA].removeprefix("file://")).read_bytes())
        hive.tables[T] = replace(hive.tables[T], parameters=old | {METADATA: theirs})
        real(swap, *given)

    monkeypatch.setattr(Swap, "back", back)
    with pytest.raises(ConflictError, match="t has changed"):
        run(hive, back=True)
    assert names(hive) == AFTER


@pytest.mark.parametrize("way", ["cut_over", "back"])
def test_statements_for_an_engine_change_no_names(hive: FakeHive, way: str) -> None:
    if way == "back":
        run(hive)
    with pytest.raises(UsageProblem, match="--prove changes no names"):
        run(hive, prove="spark", **{way: True})
    assert names(hive) == (AFTER if way == "back" else BEFORE)


def test_another_copy_than_that_of_the_cut_over(hive: FakeHive) -> None:
    run(hive)
    with pytest.raises(RefusedError) as found:
        acidctl.migrate("hive:db.t", "hive:db.other", metastore=hive.address, back=True)
    assert found.value.hint == "give --to hive:db.t_ice"


def test_a_window_that_is_too_short(hive: FakeHive, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RefusedError, match="would be locked for too long"):
        run(hive, window=0)
    assert LockType.EXCLUSIVE not in {lock.type for lock in hive.wanted_locks if lock.table == "t"}
    insert(hive, 3)
    monkeypatch.setattr(verb, "_RATE", 1)
    real = hive.answers["lock"]

    def somebody_wrote(asked: Any) -> Any:
        if asked.components[0].table == "t" and asked.components[0].type == LockType.EXCLUSIVE:
            hive.answers["lock"] = real
            insert(hive, *range(100, 300))
        return real(asked)

    hive.answers["lock"] = somebody_wrote
    with pytest.raises(RefusedError) as found:
        run(hive)
    assert "still to be copied" in found.value.why
    assert (names(hive), hive.locks) == (BEFORE, [])


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"back": True}, RefusedError),
        ({"back": True, "cut_over": True}, UsageProblem),
        ({"assume_committed": 0}, UsageProblem),
        ({"prove": "spark"}, UsageProblem),
        ({"back": True, "prove": "trino"}, UsageProblem),
        ({"cut_over": False, "catch_up": True, "discard_snapshots": True}, UsageProblem),
    ],
)
def test_what_is_refused(hive: FakeHive, options: dict[str, Any], error: type[AcidctlError]) -> None:
    with pytest.raises(error):
        run(hive, **options)
    assert names(hive) == BEFORE


def test_only_tables_of_one_metastore_change_names(hive: FakeHive, tmp_path: Path) -> None:
    with pytest.raises(UsageProblem, match="in the same metastore"):
        acidctl.migrate("hive:db.t", tmp_path / "copy", metastore=hive.address, cut_over=True)
    with pytest.raises(NotFoundError):
        acidctl.migrate("hive:db.t", "hive:db.nothing", metastore=hive.address, cut_over=True)
    with pytest.raises(RefusedError, match="will not swap"):
        acidctl.migrate("hive:db.t", "hive:other.t_ice", metastore=hive.address, cut_over=True)
