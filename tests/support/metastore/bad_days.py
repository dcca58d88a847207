"""A warehouse, a metastore that knows it, every command that asks one, and what must be so afterwards whatever went
wrong meanwhile.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from acidctl.base.errors import ExitStatus
from acidctl.metastore.interface import TxnState
from support.command_line import Result
from support.files.acid_files import insert, write_acid
from support.metastore.fake_hive import FakeHive

ROWS = {
    "hive:sales.orders": [f'{{"a":{number}}}' for number in (1, 3, 4)],
    "hive:sales.parts": [f'{{"a":{number},"day":"{day}"}}' for number in (1, 3, 4) for day in (1, 2)],
    "hive:sales.other": [f'{{"a":{number}}}' for number in (1, 3, 4, 5, 6)],
}
"""What readers see in each table."""

LOOKING = (
    ("ls", "hive:sales.orders"), ("ls", "hive:sales.*"), ("ls", "-o", "json", "hive:sales.parts"),
    ("why", "hive:sales.parts/day=1"), ("cat", "hive:sales.orders"), ("cat", "--read-lock", "hive:sales.parts"),
    ("history", "hive:sales.orders"), ("validate", "hive:sales.*"),
    ("hive", "tables"), ("hive", "tables", "-o", "json"), ("hive", "txns"), ("hive", "txns", "--blocking"),
    ("hive", "txns", "-o", "json"),
    ("hive", "locks"), ("hive", "locks", "-o", "json"), ("hive", "compactions"), ("hive", "compactions", "--stuck"),
    ("hive", "compactions", "-o", "json"),
)  # fmt: skip
CHANGING = (
    ("compact", "--major", "--engine", "local", "hive:sales.orders"),
    ("compact", "--auto", "--engine", "local", "hive:sales.*"),
    ("clean", "--yes", "hive:sales.*"),
    ("clean", "--yes", "--no-trash", "hive:sales.orders"),
)
ASKING = (
    ("hive", "request", "--major", "hive:sales.parts"),
    ("hive", "abort", "txn", "--yes", "7"),
    ("hive", "abort", "compaction", "--yes", "2"),
    ("hive", "housekeep", "--yes"),
)
COMMANDS = (*LOOKING, *CHANGING, *ASKING)
"""Each that asks a metastore."""

_ONCE = {"open_txns": 1, "lock": 1, "compact2": 2, "abort_txns": 1, "abort_Compactions": 1, "unlock": 1}
"""How often a command asks for what must not be done twice, at most."""

_CONTROL = ("\x1b", "\x07", "\0", "\r", "\u202e")


def make_warehouse(root: Path) -> None:
    """Its files, ten days old."""
    sales = root / "sales.db"
    for table in ("orders", "parts/day=1", "parts/day=2", "other"):
        for write_id in range(1, 7 if table == "other" else 5):
            name = f"delta_{write_id:07}_{write_id:07}_0000"
            write_acid(sales / table / name / "bucket_00000", insert(write_id, 0, (write_id,)))
    rows = (insert(write_id, 0, (write_id,)) for write_id in range(1, 7))
    write_acid(sales / "other" / "base_0000006" / "bucket_00000", *rows)
    old = time.time() - 10 * 86400
    for path in (root, *root.rglob("*")):
        os.utime(path, (old, old))


class BadDay:
    """A warehouse, made anew after each command that changed it.

    Args:
        pristine: as :func:`make_warehouse` made it.
        root: where its copy is.
    """

    def __init__(self, pristine: Path, root: Path, acidctl: Callable[..., Result]) -> None:
        self._pristine, self.root = pristine, root
        self._acidctl = acidctl
        self.renew()
        self.tree = self.files()

    def renew(self) -> None:
        """As it was in the beginning."""
        shutil.rmtree(self.root, ignore_errors=True)
        shutil.copytree(self._pristine, self.root, copy_function=shutil.copy2)

    @contextmanager
    def metastore(self) -> Iterator[FakeHive]:
        """That knows it: write id 2 was aborted, one transaction is open and dead, the queue has something of each."""
        sales = self.root / "sales.db"
        with FakeHive(4) as fake:
            fake.table("sales", "orders", f"file:{sales / 'orders'}")
            fake.table("sales", "parts", f"file:{sales / 'parts'}", ["day"])
            fake.table("sales", "other", f"file:{sales / 'other'}")
            for day in ("day=1", "day=2"):
                fake.partition("sales", "parts", day)
            txns = list(fake.begin_many(6))
            fake.write_ids |= {"sales.orders": txns[:4], "sales.parts": txns[:4], "sales.other": txns}
            for txn in txns:
                fake.end(txn, commit=txn != txns[1])
            dead = fake.begin(ago=7200, silent=7200, query="select")
            fake.lock("sales", "orders", txn=dead)
            fake.lock("sales", "parts", "day=1", ago=7200)
            times = {"enqueued": 7200, "started": 7100}
            fake.entry(
                "sales", "orders", "ready for cleaning", committed=7000, next_txn=dead + 1, txn=1, worker="w", **times
            )
            fake.entry("sales", "parts", "initiated", "day=1", enqueued=7200)
            fake.entry("sales", "other", "failed", ended=7000, error="oh no", **times)
            yield fake

    def rows_of(self, fake: FakeHive, name: str) -> list[str]:
        """What a reader sees in a table."""
        found = self._acidctl("cat", "-o", "jsonl", "--metastore", fake.address, name)
        assert found.status == 0, found.err
        return sorted(found.out.splitlines())

    def files(self) -> dict[str, bytes | None]:
        paths = sorted(self.root.rglob("*"))
        return {str(path.relative_to(self.root)): path.read_bytes() if path.is_file() else None for path in paths}

    def run(self, fake: FakeHive, address: str, *line: str) -> Result:
        """A command that asks a metastore at an address, and what must be so however it ended."""
        found = self._acidctl(*line, "--metastore", address)
        said = found.out + found.err
        assert found.status in set(ExitStatus) - {ExitStatus.FAILED, ExitStatus.INTERRUPTED}, said
        assert "Traceback" not in said
        assert not any(mark in said for mark in _CONTROL), "a server's words do what they like with the terminal"
        if found.status in (3, 5, 6, 9):
            assert "error:" in found.err or "error" in found.out, said
        extra = line[1:2] == ("housekeep",)  # it reads the clock again before it ends what is dead
        locations = 4 if line[0] == "compact" and line[-1] != "hive:sales.orders" else 1  # each has a turn of its own
        for method, most in _ONCE.items():
            assert fake.calls.count(method) <= locations * most + (extra and method == "open_txns"), (
                f"{method} was asked for again"
            )
        return found

    def judge(self, fake: FakeHive, *line: str) -> None:
        """Nothing of ours is open at the metastore, and no row is lost; then the warehouse is made anew."""
        assert not [txn for txn in fake.txns.values() if txn.state == TxnState.OPEN and "acidctl" in txn.host]
        assert not [lock for lock in fake.locks if "acidctl" in lock.host]
        self.judge_files(fake, *line)

    def judge_files(self, fake: FakeHive, *line: str) -> None:
        """The same of the files alone, where the metastore could not be reached any more."""
        now = self.files()
        if now == self.tree:
            return
        assert line[0] in ("compact", "clean"), "it only looks"
        assert {name: self.rows_of(fake, name) for name in ROWS} == ROWS
        if line[-1] == "hive:sales.orders":
            changed = {path for path in now.keys() | self.tree.keys() if now.get(path, 0) != self.tree.get(path, 0)}
            assert all(path.startswith("sales.db/orders/") for path in changed), "another table was touched"
        self.renew()
