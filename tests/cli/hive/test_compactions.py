"""`acidctl hive compactions`: the queue, its history, and what is stuck there."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from typing import Any

import pytest
from support.metastore.fake_hive import FakeHive

Ask = Callable[..., Any]


def stuck(ask: Ask, fake: FakeHive) -> dict[int, str]:
    found = ask(fake, "compactions", "--stuck", "-o", "json")
    assert found.status == 0, found.err
    assert all(one["why"] and one["frees"] for one in found.json())
    return {one["id"]: one["cause"] for one in found.json()}


def test_the_queue_comes_before_its_history(ask: Ask, fake: FakeHive) -> None:
    done = fake.entry("s", "t", "succeeded", started=100, ended=60, type=1)
    failed = fake.entry("s", "t", "failed", ended=50, meta_info="no memory")
    waits = fake.entry("s", "t", "initiated", "day=1", enqueued=30)
    works = fake.entry("s", "u", "working", started=20, worker="h-1", job="job_1")
    found = ask(fake, "compactions", "-o", "json").json()
    assert [one["id"] for one in found] == [waits, works, failed, done]
    assert found[0]["on"] == "s.t/day=1"
    assert (found[1]["worker"], found[1]["job"], found[1]["kind"]) == ("h-1", "job_1", "major")
    assert (found[2]["error"], found[3]["kind"]) == ("no memory", "minor")
    shown = ask(fake, "compactions").out
    assert "no memory" in shown
    assert "job job_1" in shown


def test_every_type_has_a_name(ask: Ask, fake4: FakeHive) -> None:
    for number in range(1, 8):
        fake4.entry("s", f"t{number}", "initiated", type=number)
    kinds = [one["kind"] for one in ask(fake4, "compactions", "-o", "jsonl").lines()]
    assert kinds[:4] == ["minor", "major", "rebalance", "abort-txn-cleanup"]
    assert kinds[4:] == ["smart-optimize", "deferred-cleanup", "unknown (7)"]


def test_csv_has_one_line_for_each(ask: Ask, fake: FakeHive) -> None:
    waits = fake.entry("s", "t", "initiated", 'day=a,"b"', enqueued=30)
    fake.entry("s", "u", "failed", ended=50, meta_info="no memory,\nsaid the job")
    rows = list(csv.DictReader(io.StringIO(ask(fake, "compactions", "-o", "csv").out)))
    assert [row["on"] for row in rows] == ['s.t/day=a,"b"', "s.u"]
    assert (rows[0]["id"], rows[0]["state"], rows[0]["worker"]) == (str(waits), "initiated", "")
    assert rows[1]["error"].startswith("no memory,")
    stuck_one = fake.entry("s", "v", "working", started=10**6)
    (row,) = csv.DictReader(io.StringIO(ask(fake, "compactions", "--stuck", "s.v", "-o", "csv").out))
    assert (row["id"], row["cause"]) == (str(stuck_one), "timed-out")
    assert row["frees"]


def test_the_server_sends_the_entries_of_one_table_alone(
    ask: Ask, fake: FakeHive, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = fake.entry("s", "u", "initiated")
    fake.entry("s", "t", "initiated")
    requests = []
    answer = fake._do_show_compact
    monkeypatch.setattr(fake, "_do_show_compact", lambda request: requests.append(request) or answer(request))
    assert [one["id"] for one in ask(fake, "compactions", "-o", "jsonl", "s.u").lines()] == [other]
    assert len(ask(fake, "compactions", "-o", "jsonl", "s.*").lines()) == 2
    first = ("s", "u") if fake.version == 4 else (None, None)  # older servers send all
    assert [(request.database, request.table) for request in requests] == [first, (None, None)]


def test_filters(ask: Ask, fake: FakeHive) -> None:
    one = fake.entry("s", "t", "ready for cleaning", pool="p")
    other = fake.entry("s", "u", "initiated")

    def ids(*words: str) -> list[int]:
        return [found["id"] for found in ask(fake, "compactions", "-o", "jsonl", *words).lines()]

    assert ids("--state", "ready for cleaning") == [one]
    assert ids("s.u") == [other]
    assert ids("--pool", "p") == [one]
    assert ask(fake, "compactions", "--state", "failed", "-o", "json").json() == []


def test_what_hive_3_calls_attempted_did_not_initiate(ask: Ask, fake3: FakeHive) -> None:
    id_ = fake3.entry("s", "t", "attempted")
    (found,) = ask(fake3, "compactions", "--state", "did not initiate", "-o", "jsonl").lines()
    assert (found["id"], found["state"]) == (id_, "attempted")


def test_a_worker_whose_transaction_has_ended_is_lost(ask: Ask, fake4: FakeHive) -> None:
    gone, alive = fake4.begin(), fake4.begin()
    fake4.end(gone, commit=False)
    lost = fake4.entry("s", "t", "working", started=60, txn=gone, worker="h-1")
    fake4.entry("s", "u", "working", started=9000, txn=alive, worker="h-2")
    fake4.entry("s", "v", "working", started=1, txn=alive + 50, worker="h-3")
    assert stuck(ask, fake4) == {lost: "worker-lost"}, "one that was begun after the transactions were read lives"


def test_work_that_takes_too_long(ask: Ask, fake: FakeHive) -> None:
    fake.config["metastore.compactor.worker.timeout"] = "7200s"
    late = fake.entry("s", "t", "working", started=8000, job="job_1")
    quiet = fake.entry("s", "u", "working", started=4000)
    fake.entry("s", "v", "working", started=4000, job="job_2")
    fake.entry("s", "w", "working", started=60)
    assert stuck(ask, fake) == {late: "timed-out", quiet: "no-job"}


def test_nobody_takes_it(ask: Ask, fake: FakeHive) -> None:
    fake.config |= {"metastore.compactor.worker.threads": "0", "hive.metastore.runworker.in": "metastore"}
    id_ = fake.entry("s", "t", "initiated", enqueued=5)
    assert stuck(ask, fake) == {id_: "no-worker"}
    assert "; start a server with" in ask(fake, "compactions", "--stuck").out
    fake.config["metastore.compactor.worker.threads"] = "2"
    assert stuck(ask, fake) == {}


def test_a_pool_that_nobody_serves(ask: Ask, fake4: FakeHive) -> None:
    waits = fake4.entry("s", "t", "initiated", enqueued=7000, pool="empty")
    fake4.entry("s", "u", "initiated", enqueued=7000, pool="busy")
    fake4.entry("s", "v", "succeeded", enqueued=7100, started=100, ended=50, pool="busy", worker="w")
    fake4.entry("s", "w", "initiated", enqueued=60, pool="empty")
    usual = fake4.entry("s", "x", "initiated", enqueued=7000)
    assert stuck(ask, fake4) == {waits: "pool-not-served", usual: "no-worker"}
    assert "acidctl hive worker --pool empty" in " ".join(ask(fake4, "compactions", "--stuck").out.split())


def test_one_whose_transaction_was_aborted(ask: Ask, fake4: FakeHive) -> None:
    aborted = fake4.begin()
    fake4.end(aborted, commit=False)
    id_ = fake4.entry("s", "t", "ready for cleaning", txn=aborted)
    fake4.entry("s", "u", "ready for cleaning", txn=aborted, type=4)
    assert stuck(ask, fake4) == {id_: "transaction-aborted"}
    assert "HIVE-29572" in ask(fake4, "compactions", "--stuck").out


def test_a_cleaning_that_waits(ask: Ask, fake4: FakeHive) -> None:
    first = fake4.begin_many(20)[0]
    blocked = fake4.entry("s", "t", "ready for cleaning", next_txn=16, committed=10)
    late = fake4.entry("s", "u", "ready for cleaning", next_txn=first, committed=9000)
    fake4.entry("s", "v", "ready for cleaning", next_txn=first, committed=10)
    assert stuck(ask, fake4) == {blocked: "blocked", late: "not-cleaned"}
    shown = ask(fake4, "compactions", "--stuck")
    assert "cleaning waits for transaction 1 and 14 more" in shown.out
    assert "cleaner: start one" in shown.out
    assert "or acidctl hive cleaner" in " ".join(shown.out.split())
    found = ask(fake4, "compactions", "--stuck", "s.t", "-o", "json")
    assert found.one()["blockers"] == list(range(1, 11))


def test_locks_hold_it_back_on_hive_3(ask: Ask, fake3: FakeHive) -> None:
    id_ = fake3.entry("s", "t", "ready for cleaning", "day=1")
    fake3.entry("s", "t", "ready for cleaning", "day=2")
    lock = fake3.lock("s", "t", "day=1", user="trino", host="n1")
    assert stuck(ask, fake3) == {id_: "blocked"}
    assert f"lock {lock} of trino@n1" in ask(fake3, "compactions", "--stuck").out
    other = fake3.entry("s", "T", "ready for cleaning", "day=a%3Ab")
    fake3.lock("s", "t", "day=a:b")
    assert stuck(ask, fake3) == {id_: "blocked", other: "blocked"}  # two spellings of one partition


def test_where_writes_decide_readers_of_the_table_hold_back_its_cleaning(ask: Ask, fake4: FakeHive) -> None:
    """As in Hive 4.2: an open transaction alone holds back nothing."""
    other = fake4.begin()
    waits = fake4.entry("s", "t", "ready for cleaning", "day=1", committed=100, next_txn=other + 9)
    assert "waits for the transactions below" in ask(fake4, "compactions").out
    assert stuck(ask, fake4) == {waits: "blocked"}
    fake4.config["metastore.txn.use.minhistorywriteid"] = "true"
    assert "that read the table" in " ".join(ask(fake4, "compactions").out.split())
    assert stuck(ask, fake4) == {}
    lock = fake4.lock("s", "t", "day=2", txn=other)
    assert stuck(ask, fake4) == {waits: "blocked"}
    (one,) = ask(fake4, "compactions", "--stuck", "-o", "jsonl").lines()
    assert one["blockers"] == [lock]


@pytest.mark.parametrize(
    ("states", "given_up"),
    [
        (["succeeded", "failed", "failed"], True),
        (["failed", "failed", "did not initiate"], True),
        (["failed", "failed", "succeeded"], False),
        (["failed", "succeeded", "failed"], False),
        (["failed"], False),
        (["failed", "failed", "initiated"], False),
        (["failed", "failed", "refused"], False),
    ],
)
def test_a_location_that_the_initiator_has_given_up(
    ask: Ask, fake: FakeHive, states: list[str], given_up: bool
) -> None:
    fake.config["metastore.compactor.worker.threads"] = "1"
    for state in states:
        fake.entry("s", "t", state, ended=60, error="out of memory")
    found = stuck(ask, fake)
    assert list(found.values()) == ["given-up"] * given_up
    if given_up:
        assert "acidctl hive request --major hive:s.t" in ask(fake, "compactions", "--stuck").out


def test_scripts_can_ask_whether_anything_is_stuck(ask: Ask, fake: FakeHive) -> None:
    fake.config["metastore.compactor.worker.threads"] = "1"
    assert ask(fake, "compactions", "--stuck", "-o", "json").json() == []
    fake.entry("s", "t", "working", started=90000)
    assert ask(fake, "compactions", "--stuck", "-o", "json").json()
