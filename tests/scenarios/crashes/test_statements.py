"""Statements that are killed at every call of the store and the metastore: rows are old or new, and the next works.

A killed process calls nobody any more. What it held ends as the metastore's house keeper ends it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.trouble.crash import Death, Killed, a_dead_owner  # noqa: F401
from support.writing import WrittenTable, written_table

from acidctl.location.snapshot_resolver import SnapshotResolver, open_warehouse
from acidctl.location.walk import is_log
from acidctl.metastore.client import Metastore
from acidctl.metastore.interface import TxnState
from acidctl.verbs.engine import TaskOptions
from acidctl.verbs.events import Events
from acidctl.verbs.selection import Selection
from acidctl.verbs.writing.erase import erase
from acidctl.verbs.writing.options import EraseOptions

Rows = list[tuple[object, ...]]
COLUMNS, KEYS = {"a": "int", "b": "string"}, {"p": "int"}
OLD: Rows = [(1, "x", 1), (2, "y", 1), (3, "z", 2)]


def table(**columns: Any) -> pa.Table:
    types = {"b": pa.string()}
    return pa.table({name: pa.array(values, types.get(name, pa.int32())) for name, values in columns.items()})


def erase_rows(made: WrittenTable) -> None:
    resolver = SnapshotResolver(warehouse=open_warehouse(made.hive.address))
    tasks = TaskOptions(engine="local", jobs=1)
    options = EraseOptions(where="b = 'y'", older_than=0.0, unsafe_retention=True, tasks=tasks)
    *_, last = erase(Selection(("hive:db.t",), {}, resolver), options, Events())
    unread = [file.path for report in last.table.reports for file in report.files if file.problem]
    assert not last.table.events
    assert all(is_log(Path(path).name) for path in unread), "a log that was cut off is not read for an hour"


VERBS: dict[str, tuple[Callable[[WrittenTable], object], Rows]] = {
    "insert": (
        lambda made: made.door.table("db.t").insert(table(a=[4, 5], b=["n", "m"], p=[1, 9]), once="load"),
        [*OLD, (4, "n", 1), (5, "m", 9)],
    ),
    "overwrite": (
        lambda made: made.door.table("db.t").insert(table(a=[4, 5], b=["n", "m"], p=[1, 9]), overwrite=True),
        [(3, "z", 2), (4, "n", 1), (5, "m", 9)],
    ),
    "update": (
        lambda made: made.door.table("db.t").update("b = 'CC'", "a > 1"),
        [(1, "x", 1), (2, "CC", 1), (3, "CC", 2)],
    ),
    "delete": (lambda made: made.door.table("db.t").delete("a > 1"), [(1, "x", 1)]),
    "merge": (
        lambda made: made.door.table("db.t").merge(table(a=[1, 3, 6], b=["new"] * 3, p=[2, 2, 9]), "a"),
        [(1, "new", 2), (2, "y", 1), (3, "new", 2), (6, "new", 9)],
    ),
    "truncate": (lambda made: made.door.table("db.t").truncate(partition={"p": 1}), [(3, "z", 2)]),
    "erase": (erase_rows, [(1, "x", 1), (3, "z", 2)]),
}


class DeathOfClient(Death):
    """It also counts the calls of the metastore, each before it is made and after it is done."""

    def install(self, patch: pytest.MonkeyPatch, *store: type) -> None:
        super().install(patch, *store)
        patch.setattr(Metastore, "_call", self._around(Metastore._call))


def time_out(made: WrittenTable) -> None:
    """End what the dead client held, as the house keeper does."""
    for txn in [number for number, one in made.hive.txns.items() if one.state == TxnState.OPEN]:
        made.hive.end(txn, commit=False)
    made.hive.locks.clear()


@pytest.mark.parametrize("hive", [3, 4])
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(
    "step",
    [pytest.param(1, marks=[pytest.mark.slow, pytest.mark.by_hand]), pytest.param(7, marks=pytest.mark.slow), 61],
)
def test_rows_are_old_or_new_after_a_death_at_any_call(verb: str, hive: int, step: int, tmp_path: Path) -> None:
    statement, new = VERBS[verb]
    seen = set()
    for at in range(step // 2, 10_000, step):
        with written_table(tmp_path / str(at), COLUMNS, KEYS, version=hive) as made:
            made.door.table("db.t").insert(table(a=[1, 2, 3], b=["x", "y", "z"], p=[1, 1, 2]))
            death = DeathOfClient(at)
            with pytest.MonkeyPatch.context() as patch:
                death.install(patch)
                with contextlib.suppress(Killed):
                    statement(made)
            if not death.is_dead:
                break
            found = made.rows()
            seen.add(found == new)
            assert found in (OLD, new), at
            time_out(made)
            assert made.rows() == found, at
            statement(made)
            assert made.rows() == new, at
            assert not made.hive.locks, at
    assert at > 40
    assert step > 1 or seen == {False, True}
