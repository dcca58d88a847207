"""The deadline of a compaction passes at one of its calls: from then on calls only release what the run holds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.command_line import Result
from support.made.due import write_deltas
from support.metastore.fake_hive import FakeHive

from acidctl.base.deadline import Deadline
from acidctl.location import find
from acidctl.metastore.errors import NotAsked
from acidctl.metastore.interface import TxnState

RELEASING = {
    "abort_Compactions", "abort_txn", "commit_txn", "get_open_txns_info", "heartbeat", "mark_compacted", "mark_refused",
    "set_ugi", "show_compact",
}  # fmt: skip
STEPS = ["get_table_req", "get_valid_write_ids", "compact2", "find_next_compact2", "open_txns", "lock", "heartbeat"]


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[FakeHive]:
    """Two tables with deltas that are committed."""
    with FakeHive(4) as fake:
        for name in ("t", "u"):
            fake.table("s", name, f"file:{write_deltas(tmp_path / name, 1, 3)}")
            for _ in range(3):
                txn = fake.begin()
                fake.end(txn)
                fake.write_ids.setdefault(f"s.{name}", []).append(txn)
        yield fake


@pytest.mark.parametrize("step", STEPS)
def test_nothing_is_asked_and_nothing_is_held_after_it(
    acidctl: Callable[..., Result], fake: FakeHive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    until, late = Deadline(), []
    monkeypatch.setattr("acidctl.verbs.compact.Deadline.after", lambda _: until)

    def at_call(name: str, is_done: bool) -> None:
        if name == step and not is_done and until.at > time.monotonic():
            until.at = time.monotonic()
        elif not is_done and until.is_over:
            late.append(name)

    fake.at_call = at_call
    found = acidctl(
        "compact", "--major", "--engine=local", "--metastore", fake.address, "--deadline=1h", "hive:s.t", "hive:s.u"
    )
    assert until.is_over
    assert set(late) <= RELEASING, late
    assert found.status in (0, 6, 13), found.err
    assert not fake.locks
    assert {txn.state for txn in fake.txns.values()} <= {TxnState.ABORTED, TxnState.COMMITTED}
    assert {entry.state for entry in fake.queue} <= {"refused", "aborted", "ready for cleaning"}


def test_what_nobody_knows_to_be_left_has_a_status(
    acidctl: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The deadline passes before the second of two places is looked at."""
    tables = [write_deltas(tmp_path / name, 1, 3) for name in ("t", "u")]
    original, looked = find._locations_of, []

    def locations_of(path: str, *rest: object, **more: object) -> object:
        looked.append(path)
        if looked.count(str(tables[1])) == 2:  # first it is looked whether all can be used
            raise NotAsked("the metastore was not asked", "the deadline of the run has passed")
        return original(path, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(find, "_locations_of", locations_of)
    found = acidctl("compact", "--major", "--engine=local", "--assume-committed=0s", *tables)
    assert (found.status, "deadline" in found.err) == (13, True), found.err
    assert (tables[0] / "base_0000003").is_dir()
