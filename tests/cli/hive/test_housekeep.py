"""`acidctl hive housekeep`: what is dead is ended, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from support.metastore.fake_hive import FakeHive

from acidctl.metastore.interface import TxnState, TxnType

Ask = Callable[..., Any]


def states(fake: FakeHive) -> dict[int, int]:
    return {id_: txn.state for id_, txn in fake.txns.items()}


def test_what_is_dead_is_ended(ask: Ask, fake: FakeHive) -> None:
    dead, alive = fake.begin(ago=9000), fake.begin(ago=9000, silent=10)
    fake.lock("s", "t", txn=dead)
    fake.lock("s", "t", txn=alive)
    old, young = fake.lock("s", "u", ago=400, user="trino"), fake.lock("s", "u", ago=10)
    refused = ask(fake, "housekeep")
    assert refused.status == 7, "nobody is there to ask"
    assert f"transaction {dead} of etl@host7" in refused.out
    assert f"lock {old} of trino@host7" in refused.out
    assert states(fake) == {dead: TxnState.OPEN, alive: TxnState.OPEN}
    done = ask(fake, "housekeep", "--yes", "-o", "json")
    assert done.status == 0, done.err
    assert [(one["id"], one["lock"], one["result"]) for one in done.json()] == [
        (dead, None, "ended"), (None, old, "ended"),
    ]  # fmt: skip
    assert states(fake) == {dead: TxnState.ABORTED, alive: TxnState.OPEN}, "our own is gone"
    assert [lock.lock for lock in fake.locks] == [2, young]


@pytest.mark.parametrize("clock", [-5000.0, 5000.0])
def test_the_clock_is_that_of_the_server(acidctl: Any, clock: float) -> None:
    for version in (3, 4):
        with FakeHive(version, clock=clock) as fake:
            dead, alive = fake.begin(ago=400), fake.begin(ago=200)
            assert acidctl("hive", "housekeep", "--yes", "--metastore", fake.address).status == 0
            assert states(fake) == {dead: TxnState.ABORTED, alive: TxnState.OPEN}


def test_the_time_out_is_the_server_s(ask: Ask, fake: FakeHive) -> None:
    fake.config["metastore.txn.timeout"] = "3600s"
    first, second = fake.begin(ago=7300), fake.begin(ago=3000)
    assert ask(fake, "housekeep", "--yes").status == 0
    assert states(fake) == {first: TxnState.ABORTED, second: TxnState.OPEN}


@pytest.mark.parametrize(
    ("version", "config"),
    [
        (3, {"metastore.compactor.initiator.on": "true"}),
        (4, {"metastore.housekeeping.threads.on": "true"}),
        (3, {"metastore.task.threads.always": "a.B,org.apache.hadoop.hive.metastore.txn.AcidHouseKeeperService"}),
    ],
)
def test_refused_where_the_server_does_it(acidctl: Any, version: int, config: dict[str, str]) -> None:
    with FakeHive(version, config=config) as fake:
        dead = fake.begin(ago=9000)
        found = acidctl("hive", "housekeep", "--yes", "--metastore", fake.address)
        assert found.status == 7
        assert "runs Hive's housekeeping itself" in found.err
        assert states(fake) == {dead: TxnState.OPEN}
        assert acidctl("hive", "housekeep", "--yes", "--force", "--metastore", fake.address).status == 0
        assert states(fake) == {dead: TxnState.ABORTED}


def test_any_of_its_servers_may_do_it(acidctl: Any) -> None:
    with FakeHive(4) as one, FakeHive(4, config={"metastore.housekeeping.threads.on": "true"}) as other:
        one.begin(ago=9000)
        found = acidctl("hive", "housekeep", "--yes", "--metastore", f"{one.address},{other.address}")
        assert found.status == 7
        assert other.address in found.err


def test_the_initiator_of_hive_4_keeps_no_house(ask: Ask, fake4: FakeHive) -> None:
    fake4.config["metastore.compactor.initiator.on"] = "true"
    dead = fake4.begin(ago=9000)
    assert ask(fake4, "housekeep", "--yes").status == 0
    assert states(fake4) == {dead: TxnState.ABORTED}


def test_transactions_of_a_replication_are_left_alone(ask: Ask, fake4: FakeHive) -> None:
    replicated, dead = fake4.begin(ago=9000, type=TxnType.REPL_CREATED), fake4.begin(ago=9000)
    found = ask(fake4, "housekeep", "--yes", "-o", "json")
    assert {one["id"]: one["result"] for one in found.json()} == {replicated: "kept", dead: "ended"}
    assert states(fake4) == {replicated: TxnState.OPEN, dead: TxnState.ABORTED}
    assert "of a replication" in ask(fake4, "housekeep").out


def test_on_hive_3_what_may_be_of_a_replication_is_left_alone(ask: Ask, fake3: FakeHive) -> None:
    fake3.table("s", "t", "file:/t")
    may_be, by_name, locked = fake3.begin(ago=9000), fake3.begin(user="repl", ago=9000), fake3.begin(ago=9000)
    fake3.lock("s", "t", txn=locked)
    assert ask(fake3, "housekeep", "-n", "-o", "json").status == 0
    fake3.databases["s"] = replace(fake3.databases["s"], parameters={"repl.last.id": "7"})
    ask(fake3, "housekeep", "--yes")
    assert states(fake3) == {may_be: TxnState.OPEN, by_name: TxnState.OPEN, locked: TxnState.ABORTED}
    fake3.databases["s"] = replace(fake3.databases["s"], parameters={})
    ask(fake3, "housekeep", "--yes")
    assert states(fake3)[may_be] == TxnState.ABORTED, "nothing is replicated here"


def test_one_that_gives_a_sign_of_life_meanwhile_is_left_alone(
    ask: Ask, fake: FakeHive, monkeypatch: pytest.MonkeyPatch
) -> None:
    from acidctl.cli.report import verb_screen

    revived, dead = fake.begin(ago=9000), fake.begin(ago=9000)

    def while_asking(*_: object, **__: object) -> None:
        fake.txns[revived].heartbeat = fake.now

    monkeypatch.setattr(verb_screen, "confirm", while_asking)
    found = ask(fake, "housekeep", "-o", "json")
    assert {one["id"]: one["result"] for one in found.json()} == {dead: "ended", revived: "alive"}
    assert states(fake) == {revived: TxnState.OPEN, dead: TxnState.ABORTED}


def test_no_transaction_of_ours_is_left_whatever_fails(ask: Ask, fake: FakeHive) -> None:
    for method in ("get_open_txns_info", "commit_txn", "show_locks"):
        fake.fault(method, "failed")
        assert ask(fake, "housekeep", "-n").status == 6
        assert not [txn for txn in fake.txns.values() if txn.state == TxnState.OPEN], method


def test_a_dry_run_ends_nothing(ask: Ask, fake: FakeHive) -> None:
    dead = fake.begin(ago=9000)
    found = ask(fake, "housekeep", "--dry-run", "-o", "json")
    assert (found.status, found.one()["result"]) == (0, "planned")
    assert states(fake) == {dead: TxnState.OPEN}


def test_many_are_ended_at_once(ask: Ask, fake4: FakeHive) -> None:
    ids = fake4.begin_many(2500, ago=9000)
    assert ask(fake4, "housekeep", "--yes", "-o", "jsonl").status == 0
    assert fake4.calls.count("abort_txns") == 3
    assert all(fake4.txns[id_].state == TxnState.ABORTED for id_ in ids)
