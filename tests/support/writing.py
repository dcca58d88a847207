"""A table that can be written, in a metastore of this process that lives as long as the test."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import acidctl
from acidctl.location.walk import is_log
from acidctl.metastore.interface import TxnState
from support.metastore.fake_hive import FakeHive
from support.metastore.writable import writable


@dataclass
class WrittenTable:
    """The table ``db.t``, at `path`."""

    hive: FakeHive
    path: Path

    @property
    def door(self) -> acidctl.Hive:
        return acidctl.Hive(self.hive.address)

    def rows(self) -> list[tuple[object, ...]]:
        """Return the rows that a new reader sees, sorted by their first column."""
        if not self.names:
            return []
        found = acidctl.open_table("hive:db.t", metastore=self.hive.address).scan().to_table()
        return sorted((tuple(row.values()) for row in found.to_pylist()), key=lambda row: (row[0] is None, row[0]))

    @property
    def names(self) -> list[str]:
        """Return the names of everything at the location but acidctl's log."""
        return sorted(path.name for path in self.path.iterdir() if not is_log(path.name))

    @property
    def is_quiet(self) -> bool:
        """Return whether no transaction is open, none was aborted, and no lock is held."""
        return not self.hive.locks and not [
            txn for txn in self.hive.txns.values() if txn.state in (TxnState.OPEN, TxnState.ABORTED)
        ]


@contextmanager
def written_table(
    path: Path, columns: Mapping[str, str], keys: Mapping[str, str] | None = None, *, version: int = 4
) -> Iterator[WrittenTable]:
    """Make an empty table of full ACID in a metastore of Hive 3 or 4, which keeps its write ids.

    Args:
        columns, keys: types by name.
    """
    with FakeHive(version, remembers=True) as hive:
        writable(hive, path, columns, keys or {})
        yield WrittenTable(hive, path)
