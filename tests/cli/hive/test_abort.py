"""`acidctl hive abort`: transactions, and compactions that wait."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support.metastore.fake_hive import FakeHive
from support.terminals import Terminals

from acidctl.metastore.interface import TxnState

Ask = Callable[..., Any]


def test_what_is_ended_is_shown_first(ask: Ask, fake: FakeHive) -> None:
    txn = fake.begin(user="etl", host="host7", ago=7300, query="insert")
    fake.lock("s", "t", txn=txn)
    refused = ask(fake, "abort", "txn", str(txn))
    assert refused.status == 7, "nobody is there to ask"
    assert f"transaction {txn} of etl@host7; open for 2 h" in refused.out
    assert "SHARED_READ on s.t" in refused.out
    assert fake.txns[txn].state == TxnState.OPEN
    assert "abort_txn" not in fake.calls
    done = ask(fake, "abort", "txn", "--yes", str(txn))
    assert done.status == 0
    assert f"transaction {txn}: aborted" in done.out
    assert fake.txns[txn].state == TxnState.ABORTED
    assert not fake.locks


def test_somebody_is_asked(fake: FakeHive, terminal: Terminals) -> None:
    txn = fake.begin()
    line = ("hive", "abort", "txn", str(txn), "--metastore", fake.address)
    status, shown = terminal.run(*line, typed="n\n")
    assert (status, fake.txns[txn].state) == (7, TxnState.OPEN)
    assert "Abort 1 transaction?" in shown
    status, _ = terminal.run(*line, typed="y\n")
    assert (status, fake.txns[txn].state) == (0, TxnState.ABORTED)


@pytest.mark.parametrize("output", ["table", "json"])
def test_a_dry_run_ends_nothing(ask: Ask, fake: FakeHive, output: str) -> None:
    txn = fake.begin()
    found = ask(fake, "abort", "txn", "--dry-run", str(txn), "-o", output)
    assert found.status == 0
    assert fake.txns[txn].state == TxnState.OPEN
    if output == "json":
        assert found.one()["result"] == "planned"


def test_ids_that_are_not_open_are_refused_and_nothing_is_ended(ask: Ask, fake: FakeHive) -> None:
    txn, aborted, committed = fake.begin(), fake.begin(), fake.begin()
    fake.end(aborted, commit=False)
    fake.end(committed)
    for id_, why in (
        (aborted, "it is aborted"),
        (committed, "committed, or aborted and forgotten"),
        (99, "never opened"),
    ):
        found = ask(fake, "abort", "txn", "--yes", str(txn), str(id_))
        assert found.status == 7
        assert why in found.err
        assert fake.txns[txn].state == TxnState.OPEN


def test_one_that_is_committed_meanwhile_is_told(ask: Ask, fake: FakeHive) -> None:
    txn, other = fake.begin(), fake.begin()
    fake.before["abort_txn"] = lambda: fake.end(txn)
    found = ask(fake, "abort", "txn", "--yes", str(txn), str(other), "-o", "json")
    assert found.status == 0
    assert [(one["id"], one["result"]) for one in found.json()] == [(txn, "gone"), (other, "aborted")]


def test_one_that_fails_does_not_keep_the_others(ask: Ask, fake: FakeHive) -> None:
    txn, other = fake.begin(), fake.begin()
    fake.fault("abort_txn", "failed")
    found = ask(fake, "abort", "txn", "--yes", str(txn), str(other), "-o", "json")
    assert found.status == 6
    assert [one["result"] for one in found.json()] == ["failed", "aborted"]


def test_compactions_that_wait_are_taken_out(ask: Ask, fake4: FakeHive) -> None:
    id_, other = fake4.entry("s", "t", "initiated", enqueued=60), fake4.entry("s", "u", "initiated")
    found = ask(fake4, "abort", "compaction", "--yes", str(id_), "-o", "json")
    assert (found.status, found.one()["result"], found.one()["on"]) == (0, "aborted", "s.t")
    assert [one.state for one in fake4.queue] == ["aborted", "initiated"]
    fake4.before["abort_Compactions"] = lambda: fake4.set_entry(other, state="working")
    late = ask(fake4, "abort", "compaction", "--yes", str(other))
    assert late.status == 7
    assert "in working state" in late.err


@pytest.mark.parametrize(
    ("state", "more", "said"),
    [
        ("working", {"txn": 5, "worker": "h-1"}, "acidctl hive abort txn 5 --metastore="),
        ("ready for cleaning", {}, "acidctl hive txns --blocking"),
        ("succeeded", {}, "is over: succeeded"),
    ],
)
def test_other_states_are_refused_with_what_to_do(
    ask: Ask, fake4: FakeHive, state: str, more: dict[str, Any], said: str
) -> None:
    waits, id_ = fake4.entry("s", "u", "initiated"), fake4.entry("s", "t", state, **more)
    found = ask(fake4, "abort", "compaction", "--yes", str(waits), str(id_))
    assert found.status == 7
    assert said in found.err
    assert fake4.queue[0].state == "initiated", "nothing was ended"


def test_hive_3_cannot_take_them_out(ask: Ask, fake3: FakeHive) -> None:
    id_ = fake3.entry("s", "t", "initiated")
    found = ask(fake3, "abort", "compaction", "--yes", str(id_))
    assert found.status == 2
    assert "that came with Hive 4" in found.err
