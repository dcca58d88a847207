"""Killed, or cut off, before and after every call that a command makes to the metastore: nothing is lost or shown
twice, and the next run, of a healthy process, ends whatever was left.

    ACIDCTL_EVERY_CALL=1 python -m pytest tests/scenarios/metastore/test_every_call.py     # calls that only ask, too
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from support.command_line import Result
from support.files.acid_files import delete, insert, write_acid
from support.metastore.fake_hive import FakeHive
from support.metastore.mortal import Mortals, mortals

from acidctl.metastore.interface import CompactionType, TxnState

Acidctl = Callable[..., Result]
READY = "ready for cleaning"
LINES: dict[str, tuple[str, ...]] = {
    "worker": ("hive", "worker", "--once", "--engine", "local"),
    "compact": ("compact", "--engine", "local", "--major", "hive:s.t"),
    "cleaner": ("hive", "cleaner", "--once", "--yes", "--older-than", "0", "--unsafe-retention"),
    "clean": ("clean", "--yes", "--older-than", "0", "--unsafe-retention", "hive:s.t"),
    "initiator": ("hive", "initiator", "--once", "hive:s.t"),
}
EVERY = bool(os.environ.get("ACIDCTL_EVERY_CALL"))
"""All calls, not only those that say something to the server."""

STEPS = {
    "open_txns", "lock", "commit_txn", "unlock", "compact2", "find_next_compact2", "update_compactor_state",
    "set_hadoop_jobid", "show_compact", "mark_compacted", "mark_cleaned",
}  # fmt: skip
HOWS = ("cut before", "cut after", "killed before", "killed after")


@dataclass
class Warehouse:
    """``s.t`` in Hive 4's own protocol: inserts, one of them aborted, a delete; and whoever works on it.

    Attributes:
        root: its directory.
        at, how: of the child: at which of its calls what happens; None for at none.
        calls: that it has made so far.
    """

    fake: FakeHive
    root: Path
    children: Mortals
    acidctl: Acidctl
    at: int | None = None
    how: str = ""
    calls: list[str] = field(default_factory=list)
    _pid: Future[int] = field(default_factory=Future)

    def begin(self) -> None:
        """Its files, and the metastore's view of them."""
        self.fake.table("s", "t", f"file:{self.root}")
        ids = self.fake.write_ids["s.t"] = []
        for number, (name, event) in enumerate(
            (
                ("delta_0000001_0000001_0000", insert(1, 0, (10,))),
                ("delta_0000002_0000002_0000", insert(2, 0, (20,))),
                ("delta_0000003_0000003_0000", insert(3, 0, (30,))),
                ("delete_delta_0000004_0000004_0000", delete(1, 0, 4)),
                ("delta_0000005_0000005_0000", insert(5, 0, (50,))),
            ),
            1,
        ):
            ids.append(self.fake.begin())
            write_acid(self.root / name / "bucket_00000", event)
            self.fake.end(ids[-1], commit=number != 2)

    def entry(self, kind: str) -> None:
        """Ask Hive for a compaction."""
        self.fake.entry("s", "t", "initiated", type=int(CompactionType[kind.upper()]))

    def run(self, line: str) -> None:
        """Run it, which goes well."""
        found = self.acidctl(*LINES[line], "--metastore", self.fake.address)
        assert found.status in (0, 7), found.err

    def disturbed(self, line: str, at: int | None = None, how: str = "") -> int:
        """Run it in a child, to which something happens at one of its calls; its exit status."""
        self.at, self.how, self.calls, self._pid = at, how, [], Future()
        self.fake.at_call = self._at_call
        try:
            return self.children.run(
                *LINES[line], "--metastore", self.fake.address,
                said=self.root.parent / "said", on_pid=self._pid.set_result,
            )  # fmt: skip
        finally:
            self.fake.at_call = lambda _name, _is_done: None

    def _at_call(self, name: str, is_done: bool) -> None:
        if not is_done:
            self.calls.append(name)
        if self.at == len(self.calls) - 1 and self.how.endswith("after" if is_done else "before"):
            self.at = None
            if self.how.startswith("killed"):
                os.kill(self._pid.result(60), signal.SIGKILL)
            raise EOFError

    def time_out(self) -> None:
        """The server ends what has no heartbeat, as its house keeper does."""
        for txn in list(self.fake.txns.values()):
            if txn.state == TxnState.OPEN:
                self.fake.end(txn.id, commit=False)
        self.fake.locks.clear()

    def pass_time(self) -> None:
        """What was committed was committed a while ago."""
        for one in self.fake.queue:
            if one.committed:
                self.fake.set_entry(one.id or 0, committed=int((self.fake.now - 60) * 1000))

    @property
    def states(self) -> list[str]:
        return [one.state for one in self.fake.queue]

    @property
    def said(self) -> str:
        return (self.root.parent / "said").read_text()

    def rows(self) -> list[Any]:
        """What a reader sees who comes now."""
        found = self.acidctl("cat", "-o", "jsonl", "--metastore", self.fake.address, "hive:s.t")
        assert found.status == 0, found.err
        return sorted(found.lines(), key=str)

    def names(self) -> list[str]:
        """All that is there, hidden or not."""
        return sorted(path.name for path in self.root.iterdir())

    def require_none_open(self) -> None:
        """No transaction of ours, and no lock."""
        assert not [txn for txn in self.fake.txns.values() if txn.state == TxnState.OPEN], self.said
        assert not self.fake.locks, self.said


@pytest.fixture(scope="module")
def children() -> Iterator[Mortals]:
    with mortals() as found:
        yield found


@pytest.fixture
def make(children: Mortals, tmp_path: Path, acidctl: Acidctl) -> Iterator[Callable[[], Warehouse]]:
    running: list[FakeHive] = []

    def one() -> Warehouse:
        while running:
            running.pop().__exit__()
        shutil.rmtree(tmp_path / "w", ignore_errors=True)
        (tmp_path / "w/t").mkdir(parents=True)
        running.append(FakeHive(4))
        warehouse = Warehouse(running[-1], tmp_path / "w/t", children, acidctl)
        warehouse.begin()
        return warehouse

    yield one
    for fake in running:
        fake.__exit__()


def prepare(warehouse: Warehouse, line: str, kind: str) -> None:
    """What a line finds."""
    if line in ("worker", "cleaner"):
        warehouse.entry(kind)
    if line in ("cleaner", "clean"):
        warehouse.run("compact" if line == "clean" else "worker")
        warehouse.pass_time()


@pytest.mark.sampled(11)
@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize(
    ("line", "kind"),
    [("worker", "major"), ("compact", "major"), ("cleaner", "minor"), ("initiator", "major"),
     *([("worker", "minor"), ("cleaner", "major"), ("clean", "major")] if EVERY else [])],
)  # fmt: skip
def test_nothing_is_lost_and_nothing_stays(make: Callable[[], Warehouse], line: str, kind: str, how: str) -> None:
    whole = make()
    before = whole.rows()
    prepare(whole, line, kind)
    assert whole.disturbed(line) == 0, whole.said
    calls = list(whole.calls)
    for at, call in enumerate(calls):
        if EVERY or call in STEPS:
            judge(make(), before, (line, kind, at, how), f"{line} {kind} {how} {call}, {at} of {calls}")


def judge(warehouse: Warehouse, before: list[Any], disturbance: tuple[str, str, int, str], place: str) -> None:
    """Disturb it, and let those who come next do their work."""
    line, kind, at, how = disturbance
    prepare(warehouse, line, kind)
    status = warehouse.disturbed(line, at, how)
    assert "Traceback" not in warehouse.said, (place, warehouse.said)
    assert warehouse.rows() == before, place
    if how.startswith("killed"):
        assert status in (-signal.SIGKILL, 0), (place, warehouse.said)  # 0: it did not wait for its last answer
        warehouse.time_out()
        assert warehouse.rows() == before, place
    warehouse.require_none_open()
    warehouse.pass_time()
    for one in ("worker", "cleaner", "compact", "cleaner", "clean"):
        warehouse.run(one)
        warehouse.require_none_open()
        warehouse.pass_time()
    assert set(warehouse.states) <= {"succeeded", "failed", "refused", "aborted"}, (place, warehouse.states)
    left = [name for name in warehouse.names() if name[0] != "." and not name.startswith("base_0000005")]
    assert not left, (place, left)
    assert warehouse.rows() == before, place
