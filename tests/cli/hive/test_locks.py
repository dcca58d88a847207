"""`acidctl hive locks`: who holds, and who waits for whom."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from support.metastore.fake_hive import FakeHive

from acidctl.metastore.interface import LockType

Ask = Callable[..., Any]


def test_who_waits_for_whom(ask: Ask, fake: FakeHive) -> None:
    writer = fake.begin(user="etl")
    held = fake.lock("s", "t", txn=writer, type=LockType.EXCLUSIVE, user="etl", host="h1", agent="query_1")
    waits = fake.lock("s", "t", "day=1", user="bob", host="h2", blocked_by=held)
    first, second = ask(fake, "locks", "-o", "json").json()
    assert (first["lock"], first["state"], first["type"], first["txn"]) == (held, "ACQUIRED", "EXCLUSIVE", writer)
    assert first["blockedBy"] is None
    assert (second["lock"], second["state"], second["txn"]) == (waits, "WAITING", None)
    assert second["blockedBy"] == {
        "lock": held, "part": 1, "on": "s.t", "type": "EXCLUSIVE", "txn": writer, "user": "etl", "host": "h1",
        "agent": "query_1",
    }  # fmt: skip
    shown = ask(fake, "locks", "--waiting").out
    assert f"waits for lock {held}.1: EXCLUSIVE on s.t of etl@h1, txn {writer}, query query_1" in shown
    assert len(shown.splitlines()) == 2


def test_one_on_the_database_that_is_waited_for_is_found(ask: Ask, fake: FakeHive) -> None:
    held = fake.lock("s", "", type=LockType.EXCLUSIVE, user="admin")
    fake.locks[0] = fake.locks[0].__class__(**{**vars_of(fake.locks[0]), "table": None})
    fake.lock("s", "t", blocked_by=held)
    fake.lock("s", "other")
    (found,) = ask(fake, "locks", "hive:s.T", "-o", "jsonl").lines()
    assert found["blockedBy"]["user"] == "admin"
    assert found["blockedBy"]["on"] == "s"


def vars_of(value: Any) -> dict[str, Any]:
    return {name: getattr(value, name) for name in value.__dataclass_fields__}


def test_what_it_waits_for_may_be_gone(ask: Ask, fake: FakeHive) -> None:
    fake.lock("s", "t", blocked_by=99)
    assert ask(fake, "locks", "-o", "json").one()["blockedBy"]["user"] is None
    assert "waits for lock 99.1" in ask(fake, "locks").out


def test_states_and_types_of_later_versions_have_no_name_yet(ask: Ask, fake: FakeHive) -> None:
    fake.lock("s", "t", type=99)
    assert ask(fake, "locks", "-o", "json").one()["type"] == "unknown (99)"


def test_a_lock_on_the_table_holds_each_of_its_partitions(ask: Ask, fake: FakeHive) -> None:
    table, day = fake.lock("s", "t"), fake.lock("s", "t", "day=1")
    fake.lock("s", "t", "day=2")
    fake.lock("s", "u")
    assert [one["lock"] for one in ask(fake, "locks", "s.t/day=1", "-o", "jsonl").lines()] == [table, day]


def test_none(ask: Ask, fake: FakeHive) -> None:
    fake.lock("s", "t")
    assert ask(fake, "locks", "--waiting", "-o", "json").json() == []
    refused = ask(fake, "locks", "s")
    assert refused.status == 2
    assert "db.table" in refused.err
