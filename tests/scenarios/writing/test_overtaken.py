"""Others change a table between our look and the commit: nothing of theirs is removed, and no row goes astray."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.command_line import Result
from support.files.acid_files import insert, write_acid
from support.writing import WrittenTable, written_table

from acidctl.base.errors import ConflictError, RefusedError, StatementConflict
from acidctl.metastore import interface as wire
from acidctl.writing.transaction import WriteTransaction

OLD = [(1, "x"), (2, "y")]


@pytest.fixture(params=[3, 4], ids=["hive-3", "hive-4"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[WrittenTable]:
    with written_table(tmp_path / "t", {"a": "int", "b": "string"}, version=request.param) as made:
        made.door.table("db.t").insert(pa.table({"a": [1, 2], "b": ["x", "y"]}))
        yield made


STATEMENTS: dict[str, Callable[[Any], Any]] = {
    "insert": lambda door: door.insert(pa.table({"a": [3], "b": ["z"]})),
    "overwrite": lambda door: door.insert(pa.table({"a": [3], "b": ["z"]}), overwrite=True),
    "update": lambda door: door.update("b = 'z'", "a = 1"),
    "delete": lambda door: door.delete("a = 1"),
    "merge": lambda door: door.merge(pa.table({"a": [1], "b": ["z"]}), "a"),
    "truncate": lambda door: door.truncate(),
}


@pytest.mark.parametrize("is_late", [False, True], ids=["before", "meanwhile"])
@pytest.mark.parametrize("name", STATEMENTS)
def test_a_directory_that_is_there_already_stays(
    table: WrittenTable, name: str, is_late: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Write ids begin again where a metastore was restored: what they name is not of this statement."""
    there = [
        table.path / form.format(2)
        for form in ("delta_{0:07}_{0:07}_0000", "base_{0:07}", "delete_delta_{0:07}_{0:07}_0000")
    ]
    given_up = WriteTransaction.give_up_statistics

    def make(*given: Any) -> None:
        for path in there:
            write_acid(path / "bucket_00000", insert(2, 0, (9, "theirs")))
        if given:
            given_up(*given)

    if is_late:
        monkeypatch.setattr(WriteTransaction, "give_up_statistics", make)  # the last step before the files move
    else:
        make()
    with pytest.raises(ConflictError) if is_late else pytest.raises(RefusedError, match="never gave"):
        STATEMENTS[name](table.door.table("db.t"))
    assert all((path / "bucket_00000").exists() for path in there)
    assert not [name for name in table.names if name.startswith("_tmp")]


def before_the_lock(monkeypatch: pytest.MonkeyPatch, change: Callable[[], None]) -> None:
    opened = WriteTransaction._open

    def changed_first(self: WriteTransaction) -> None:
        change()
        opened(self)

    monkeypatch.setattr(WriteTransaction, "_open", changed_first)


@pytest.mark.parametrize("name", STATEMENTS)
@pytest.mark.parametrize("what", ["moved", "created again", "columns"])
def test_a_table_that_is_changed_before_the_lock_is_not_written(
    table: WrittenTable, name: str, what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def change() -> None:
        known = table.hive.tables["db", "t"]
        assert known.storage
        if what == "moved":
            known = replace(known, storage=replace(known.storage, location=str(tmp_path / "elsewhere")))
        elif what == "columns":
            columns = (*known.storage.columns, wire.FieldSchema("c", "int"))
            known = replace(known, storage=replace(known.storage, columns=columns))
        else:
            known = replace(known, created=known.created + 5)
        table.hive.tables["db", "t"] = known

    before = table.names
    with monkeypatch.context() as patch:
        before_the_lock(patch, change)
        with pytest.raises(ConflictError, match="not the table that it was"):
            STATEMENTS[name](table.door.table("db.t"))
    assert table.names == before


def test_a_partition_that_was_made_elsewhere_gets_no_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from acidctl.writing.places import Places

    with written_table(tmp_path / "t", {"a": "int"}, {"day": "string"}) as table:
        added = Places._add_partitions

        def made_first(self: Places, *rest: Any) -> None:
            table.hive.partition("db", "t", "day=x")
            known = table.hive.partitions["db", "t"]["day=x"]
            elsewhere = replace(known, storage=wire.PartitionStorage(str(tmp_path / "elsewhere")))
            table.hive.partitions["db", "t"]["day=x"] = elsewhere
            added(self, *rest)

        monkeypatch.setattr(Places, "_add_partitions", made_first)
        with pytest.raises(ConflictError, match="day=x was made meanwhile"):
            table.door.table("db.t").insert(pa.table({"a": [1], "day": ["x"]}))
        assert not list(tmp_path.rglob("bucket_*"))


def test_a_table_that_is_changed_while_somebody_is_asked(
    table: WrittenTable, acidctl: Callable[..., Result], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def agree(*_: Any, **__: Any) -> None:
        known = table.hive.tables["db", "t"]
        table.hive.tables["db", "t"] = replace(known, created=known.created + 5)

    monkeypatch.setattr("acidctl.cli.report.verb_screen.confirm", agree)
    done = acidctl("delete", "hive:db.t", "--where", "a = 1", f"--metastore={table.hive.address}")
    assert done.status == 9
    assert "not the table that it was" in done.err


def test_writers_that_only_begin_do_not_hold_back_an_update(table: WrittenTable) -> None:
    """On Hive 3 whoever opens a write id between two looks was taken for one that has committed."""

    def begin() -> None:
        txn = table.hive.begin()
        table.hive.write_ids["db.t"].append(txn)

    with pytest.MonkeyPatch.context() as patch:
        before_the_lock(patch, begin)
        table.door.table("db.t").update("b = 'z'", "a = 1")
    assert table.rows() == [(1, "z"), (2, "y")]


def test_an_update_on_hive_3_begins_again_after_the_commit_of_a_lower_write_id(table: WrittenTable) -> None:
    """Hive 3 would abort it at the end; Hive 4 says so itself, see test_transaction.py."""
    earlier = [table.hive.begin()]
    table.hive.write_ids["db.t"].append(earlier[0])
    write_acid(table.path / "delta_0000002_0000002_0000" / "bucket_00000", insert(2, 0, (1, "theirs")))

    def commit() -> None:
        if earlier:
            table.hive.end(earlier.pop())

    before = table.hive.calls.count("open_txns")
    with pytest.MonkeyPatch.context() as patch:
        before_the_lock(patch, commit)
        table.door.table("db.t").update("b = 'z'", "a = 1")
    assert table.rows() == [(1, "z"), (1, "z"), (2, "y")]
    assert table.hive.calls.count("open_txns") - before == (2 if table.hive.version == 3 else 1)


@pytest.mark.parametrize(("losses", "attempts"), [(2, 3), (9, 5)])
def test_changes_of_rows_that_lose_against_others_start_again_and_inserts_do_not(
    table: WrittenTable, losses: int, attempts: int
) -> None:
    def lose(name: str, is_done: bool) -> None:
        nonlocal lost
        if name == "commit_txn" and not is_done and lost < losses:
            lost += 1
            table.hive.end(max(table.hive.txns), commit=False)

    table.hive.at_call = lose
    for name in ("insert", "update"):
        before, lost = table.hive.calls.count("open_txns"), 0
        with suppress(StatementConflict) if name == "insert" or losses > attempts else nullcontext():
            STATEMENTS[name](table.door.table("db.t"))
        assert table.hive.calls.count("open_txns") - before == (1 if name == "insert" else attempts)
    assert table.rows() == (OLD if losses > attempts else [(1, "z"), (2, "y")])


def test_a_conflict_with_another_writer_has_the_status_of_a_refusal(
    table: WrittenTable, acidctl: Callable[..., Result]
) -> None:
    words = ["delete", "hive:db.t", "--where", "a = 1", "--yes", "--wait=1s", "-o", "json"]
    txn = table.hive.begin()
    table.hive.lock("db", "t", txn=txn, type=wire.LockType.EXCLUSIVE)
    held = acidctl(*words, f"--metastore={table.hive.address}")
    assert (held.status, "could not lock" in held.err) == (7, True)
    table.hive.end(txn, commit=False)

    def lose(name: str, is_done: bool) -> None:
        if name == "commit_txn" and not is_done:
            table.hive.end(max(table.hive.txns), commit=False)

    table.hive.at_call = lose
    assert acidctl(*words, f"--metastore={table.hive.address}").status == 7
    assert table.rows() == OLD


def test_links_of_others_are_not_followed(table: WrittenTable, acidctl: Callable[..., Result], tmp_path: Path) -> None:
    with written_table(tmp_path / "p", {"a": "int"}, {"day": "string"}) as parted:
        victim = tmp_path / "victim"
        victim.mkdir()
        (parted.path / "day=x").symlink_to(victim)
        if os.geteuid() == 0:
            os.lchown(parted.path / "day=x", 12345, 12345)
        (tmp_path / "new.csv").write_text("a,day\n1,x\n")
        line = ("insert", "hive:db.t", tmp_path / "new.csv", "--yes", f"--metastore={parted.hive.address}")
        assert acidctl(*line).status == 7
        assert not list(victim.iterdir())
