"""Copies of tables that a metastore knows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable
from support.command_line import Result as Run
from support.files.acid_files import delete, insert, struct, write_acid
from support.metastore.fake_hive import FakeHive
from support.metastore.writable import INSERT_ONLY, client, writable
from support.terminals import Terminals

from acidctl import Hive
from acidctl import migrate as copy_table
from acidctl.base.errors import BadDataError, RefusedError, UsageProblem
from acidctl.iceberg.catalogs.hive_metastore import METADATA, MetastoreCatalog
from acidctl.iceberg.cut_over import MIGRATED_TO
from acidctl.iceberg.target import find_target
from acidctl.location.snapshot_resolver import SnapshotResolver
from acidctl.location.warehouse import Warehouse
from acidctl.metastore.client import Metastore
from acidctl.metastore.interface import Database, FieldSchema
from acidctl.metastore.settings import find_settings
from acidctl.orc.types import OrcType
from acidctl.outcome import Result
from acidctl.verbs.events import Events, Question
from acidctl.verbs.iceberg.migrate import migrate
from acidctl.verbs.iceberg.options import Migrated, MigrateOptions
from acidctl.verbs.selection import Selection

Acidctl = Callable[..., Run]
NUMBERS = struct(a=OrcType("int"))


@pytest.fixture
def hive() -> Iterator[FakeHive]:
    with FakeHive(4, remembers=True) as made:
        yield made


def copy(hive: FakeHive, to: Path, **options: Any) -> Migrated:
    options = {"catch_up": (to / "metadata").exists(), **options}
    return copy_table("hive:db.t", to, metastore=hive.address, **options)


def rows(to: Path) -> list[tuple[Any, ...]]:
    found = StaticTable.from_metadata(str(to)).scan().to_arrow().to_pylist()
    return sorted((tuple(row.values()) for row in found), key=str)


def test_a_write_id_that_is_committed_late(hive: FakeHive, tmp_path: Path) -> None:
    table, to = tmp_path / "t", tmp_path / "copy"
    writable(hive, table)
    first, late, third = hive.begin_many(3)
    hive.write_ids["db.t"] = [first, late, third]
    for at in (1, 2, 3):
        write_acid(table / f"delta_{at:07}_{at:07}_0000" / "bucket_00000", insert(at, 0, (at, f"w{at}")))
    hive.end(first)
    hive.end(third)
    assert (copy(hive, to).rows, rows(to)) == (2, [(1, "w1"), (3, "w3")])
    hive.end(late)
    done = copy(hive, to)
    assert (done.rows, done.deleted, rows(to)) == (1, 0, [(1, "w1"), (2, "w2"), (3, "w3")])
    assert not hive.locks, "the lock of the reader is released"
    assert hive.wanted_locks, "there was one"


def test_statements_of_acidctl_are_followed(hive: FakeHive, tmp_path: Path) -> None:
    to = tmp_path / "copy"
    writable(hive, tmp_path / "t", keys="p string")
    table = Hive(hive.address).table("db.t")
    table.insert(pa.table({"a": pa.array([1, 2, 3], pa.int32()), "b": ["x", "y", None], "p": ["k", "l", None]}))
    assert copy(hive, to).rows == 3
    table.update("b = 'new'", where="a = 1")
    table.delete(where="a = 2")
    done = copy(hive, to)
    assert (done.rows, done.deleted) == (1, 2)
    assert {row[:2] for row in rows(to)} == {(1, "new"), (3, None)}
    assert copy(hive, to).result is Result.NOTHING_TO_DO


def test_a_table_that_was_dropped_and_made_again(hive: FakeHive, tmp_path: Path) -> None:
    """Its write ids begin again, so that its rows have the keys of other rows."""
    table, to = tmp_path / "t", tmp_path / "copy"
    writable(hive, table)
    Hive(hive.address).table("db.t").insert(pa.table({"a": pa.array([1], pa.int32()), "b": ["x"]}))
    copy(hive, to)
    hive.tables["db", "t"] = replace(hive.tables["db", "t"], created=77)
    with pytest.raises(RefusedError, match="will not write to this Iceberg table"):
        copy(hive, to)
    assert rows(to) == [(1, "x")]


def altered(hive: FakeHive, columns: str) -> None:
    """Change the columns of the table, as ALTER TABLE does."""
    fields = tuple(FieldSchema(*column.split(" ", 1)) for column in columns.split(", "))
    table = hive.tables["db", "t"]
    assert table.storage
    hive.tables["db", "t"] = replace(table, storage=replace(table.storage, columns=fields))


def test_columns_that_were_added_renamed_and_widened(hive: FakeHive, tmp_path: Path) -> None:
    table, to = tmp_path / "t", tmp_path / "copy"
    writable(hive, table, "a int, b string, c float, d decimal(5,2)", "p int")
    door = Hive(hive.address).table("db.t")
    kinds = {"a": pa.int32(), "b": pa.string(), "c": pa.float32(), "d": pa.decimal128(5, 2), "p": pa.int32()}
    first = {"a": [1], "b": ["x"], "c": [0.5], "d": [Decimal("1.25")], "p": [1]}
    door.insert(pa.table({name: pa.array(values, kinds[name]) for name, values in first.items()}))
    copy(hive, to)
    altered(hive, "a bigint, text string, c double, d decimal(9,2), e array<int>")
    assert copy(hive, to, dry_run=True).notes == (
        "a is long now", "b is text string now", "c is double now", "d is decimal(9,2) now", "e list<int> is new",
    )  # fmt: skip
    done = copy(hive, to)
    assert (done.rows, done.deleted, done.proof) == (0, 0, "all values of 1 row compared")
    assert rows(to) == [(1, "x", 0.5, Decimal("1.25"), 1, None)]
    kinds |= {
        "a": pa.int64(),
        "text": pa.string(),
        "c": pa.float64(),
        "d": pa.decimal128(9, 2),
        "e": pa.list_(pa.int32()),
    }
    second = {"a": [1 << 40], "text": ["y"], "c": [0.1], "d": [Decimal("1234567.89")], "e": [[1, 2]], "p": [2]}
    door = Hive(hive.address).table("db.t")
    door.insert(pa.table({name: pa.array(values, kinds[name]) for name, values in second.items()}))
    done = copy(hive, to)
    assert (done.rows, done.proof) == (1, "all values of 1 new row and the ids of 2 rows compared")
    assert rows(to)[1] == (1 << 40, "y", 0.1, Decimal("1234567.89"), 2, [1, 2])
    assert copy(hive, to).result is Result.NOTHING_TO_DO


def test_old_rows_are_compared_again_after_a_change_of_columns(hive: FakeHive, tmp_path: Path) -> None:
    to = tmp_path / "copy"
    writable(hive, tmp_path / "t", "a int")
    Hive(hive.address).table("db.t").insert(pa.table({"a": pa.array([1], pa.int32())}))
    copy(hive, to)
    altered(hive, "a bigint")
    assert copy(hive, to, proof="none").proof == ""
    Hive(hive.address).table("db.t").insert(pa.table({"a": pa.array([2])}))
    assert copy(hive, to).proof == "all values of 2 rows compared"


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        ("a int", "b was dropped"),
        ("b string, a int", "b changed its place"),
        ("a string, b string", "a was int, and is string now"),
    ],
)
def test_other_changes_of_columns_are_refused(hive: FakeHive, tmp_path: Path, columns: str, why: str) -> None:
    to = tmp_path / "copy"
    writable(hive, tmp_path / "t")
    Hive(hive.address).table("db.t").insert(pa.table({"a": pa.array([1], pa.int32()), "b": ["x"]}))
    copy(hive, to)
    altered(hive, columns)
    with pytest.raises(RefusedError, match="cannot catch up") as found:
        copy(hive, to)
    assert why in found.value.why
    assert rows(to) == [(1, "x")]


def test_a_new_column_with_values_in_rows_that_were_copied_is_refused(hive: FakeHive, tmp_path: Path) -> None:
    """REPLACE COLUMNS hides a column, and ADD COLUMNS shows its values again."""
    to = tmp_path / "copy"
    writable(hive, tmp_path / "t")
    Hive(hive.address).table("db.t").insert(pa.table({"a": pa.array([1], pa.int32()), "b": ["x"]}))
    altered(hive, "a int")
    copy(hive, to)
    altered(hive, "a int, b string")
    with pytest.raises(RefusedError, match="cannot catch up") as found:
        copy(hive, to)
    assert "may have values of b" in found.value.why
    assert rows(to) == [(1,)]


@pytest.mark.parametrize(("version", "stored_as"), [(4, "parquet"), (3, "orc")])
def test_columns_that_hive_finds_by_name(version: int, stored_as: str, tmp_path: Path) -> None:
    """The values of old rows do not follow a column to its new name."""
    to, row = tmp_path / "copy", pa.table({"a": pa.array([1], pa.int32()), "b": ["x"]})
    with FakeHive(version, remembers=True) as hive:
        kind = {"parameters": INSERT_ONLY, "stored_as": stored_as} if stored_as == "parquet" else {}
        writable(hive, tmp_path / "t", **kind)
        Hive(hive.address).table("db.t").insert(row)
        copy(hive, to)
        altered(hive, "a int, text string")
        with pytest.raises(RefusedError, match="cannot catch up") as found:
            copy(hive, to)
        assert "text was b when it was copied" in found.value.why
        assert StaticTable.from_metadata(str(to)).schema().column_names == ["a", "b"]
        altered(hive, "a int, b string, c int")
        assert copy(hive, to).notes == ("c int is new",)
        assert rows(to) == [(1, "x", None)]


def test_two_directories_of_one_partition_value(hive: FakeHive, tmp_path: Path) -> None:
    table, to = tmp_path / "t", tmp_path / "copy"
    writable(hive, table, keys="p int")
    hive.write_ids["db.t"] = hive.begin_many(2)
    for txn in hive.write_ids["db.t"]:
        hive.end(txn)
    for name, row_id in (("p=1", 0), ("p=01", 7)):
        hive.partition("db", "t", name)
        write_acid(table / name / "delta_0000001_0000001_0000" / "bucket_00000", insert(1, row_id, (row_id, name)))
    copy(hive, to)
    write_acid(table / "p=1" / "delta_0000002_0000002_0000" / "bucket_00000", insert(2, 0, (3, "c")))
    done = copy(hive, to)
    assert (done.rows, done.deleted) == (1, 0)
    assert rows(to) == [(0, "p=1", 1), (3, "c", 1), (7, "p=01", 1)]


@pytest.mark.parametrize(
    ("first", "later", "kind"),
    [("auto", "auto", "parquet"), ("orc", "auto", "orc"), ("auto", "orc", "orc"), ("orc", "parquet", "parquet")],
)
def test_the_first_rows_decide_the_format(hive: FakeHive, tmp_path: Path, first: str, later: str, kind: str) -> None:
    to = tmp_path / "copy"
    writable(hive, tmp_path / "t", "d date")
    assert copy(hive, to, format=first).rows == 0
    Hive(hive.address).table("db.t").insert(pa.table({"d": [date(1500, 1, 1)]}))
    assert copy(hive, to, format=later).format == kind
    assert [file.suffix for file in (to / "data").iterdir()] == [f".{kind}"]
    made = StaticTable.from_metadata(str(to))
    assert made.properties["write.format.default"] == kind
    assert rows(to) == [(date(1500, 1, 1),)]
    with pytest.raises(UsageProblem, match=f"the files of the copy are {kind}"):
        copy(hive, to, format="orc" if kind == "parquet" else "parquet")


def test_partitions_of_times_of_any_year(hive: FakeHive, tmp_path: Path, acidctl: Acidctl) -> None:
    table, to = tmp_path / "t", tmp_path / "copy"
    writable(hive, table, "a int", {"p": "timestamp"})
    hive.write_ids["db.t"] = hive.begin_many(1)
    hive.end(hive.write_ids["db.t"][0])

    def add(time: str) -> None:
        name = f"p={time.replace(':', '%3A')}"
        write_acid(table / name / "delta_0000001_0000001_0000" / "bucket_00000", insert(1, 0, (1,)), row=NUMBERS)
        hive.partition("db", "t", name)

    times = "0001-01-01 00:00:00.0", "2020-01-01 00:00:00.0", "9999-12-31 23:59:59.999999"
    for time in times:
        add(time)
    read = acidctl("cat", "hive:db.t", f"--metastore={hive.address}").out.splitlines()
    assert [json.loads(line)["p"] for line in read] == list(times)
    copy(hive, to)
    assert [row[1] for row in rows(to)] == [datetime.fromisoformat(time) for time in times]
    assert copy(hive, to).result is Result.NOTHING_TO_DO
    add("9999-12-31 23:59:59.999999999")  # NumPy's nanoseconds would be those of another year
    with pytest.raises(BadDataError, match="no value of its type"):
        copy(hive, to)


def test_old_days_that_come_into_an_orc_copy_are_said(hive: FakeHive, tmp_path: Path) -> None:
    to = tmp_path / "copy"
    writable(hive, tmp_path / "t", "d date")
    for day, why in ((date(2020, 1, 1), ""), (date(1500, 1, 1), "d may have days before 1582-10-15")):
        Hive(hive.address).table("db.t").insert(pa.table({"d": [day]}))
        done = copy(hive, to)
        assert done.format == "orc"
        assert why in done.why
    assert copy(hive, to).why == ""


@pytest.mark.parametrize("kind", ["float", "double"])
def test_partitions_of_floats_are_found_again(hive: FakeHive, tmp_path: Path, kind: str) -> None:
    table, to = tmp_path / "t", tmp_path / "copy"
    writable(hive, table, keys={"p": kind})
    hive.write_ids["db.t"] = hive.begin_many(2)
    for txn in hive.write_ids["db.t"]:
        hive.end(txn)
    names = ["p=0.1", "p=1.0E100", "p=-Infinity", "p=NaN", "p=-0.0", "p=0.10000000149011612"]
    names = names[: -1 if kind == "float" else None]
    for name in names:
        hive.partition("db", "t", name)
        write_acid(table / name / "delta_0000001_0000001_0000" / "bucket_00000", insert(1, 0, (1, name)))
    done = copy(hive, to)
    assert (done.rows, done.notes) == (len(names), ())
    for name in names:
        write_acid(table / name / "delta_0000002_0000002_0000" / "bucket_00000", insert(2, 0, (2, name)))
        write_acid(table / name / "delete_delta_0000002_0000002_0000" / "bucket_00000", delete(1, 0, 2))
    done = copy(hive, to)
    assert (done.rows, done.deleted) == (len(names), len(names))
    assert sorted(row[1] for row in rows(to)) == sorted(names)
    near = {"0.10000000149011612"} if kind == "float" else {"0.10000000149011612", "0.1"}
    large = "inf" if kind == "float" else "1e+100"
    assert {str(row[2]) for row in rows(to)} == {*near, large, "-inf", "nan", "-0.0"}


class Deciding(Events):
    """A person who takes time to decide; meanwhile `acts`."""

    shows_plans = True

    def __init__(self, acts: Callable[[], None]) -> None:
        super().__init__()
        self.acts, self.notes = acts, list[str]()

    def confirm(self, question: Question) -> None:
        self.notes.append(question.text)
        self.acts()

    def note(self, text: str) -> None:
        self.notes.append(text)


@pytest.mark.parametrize("changes", [True, False])
def test_no_lock_is_held_while_a_person_decides(hive: FakeHive, tmp_path: Path, changes: bool) -> None:
    to = tmp_path / "copy"
    writable(hive, tmp_path / "t")
    door = Hive(hive.address).table("db.t")
    door.insert(pa.table({"a": pa.array([1], pa.int32()), "b": ["x"]}))
    hive.wanted_locks.clear()

    def acts() -> None:
        assert not hive.locks
        assert not hive.wanted_locks
        if changes:
            door.insert(pa.table({"a": pa.array([2], pa.int32()), "b": ["y"]}))
            hive.wanted_locks.clear()

    events = Deciding(acts)
    settings = find_settings({"uris": hive.address})
    assert settings
    warehouse = Warehouse(Metastore(settings))
    with closing(warehouse):
        selection = Selection(("hive:db.t",), resolver=SnapshotResolver(warehouse=warehouse))
        planned, done = migrate(selection, MigrateOptions(to=str(to)), events)
        assert hive.wanted_locks, "the copy is made under one"
    assert not hive.locks
    assert (planned.rows, done.rows, len(rows(to))) == ((1, 2, 2) if changes else (1, 1, 1))
    assert [note for note in events.notes[1:] if "has changed since the plan" in note] == events.notes[1:]
    assert len(events.notes) == 1 + changes


@pytest.fixture
def tables(hive: FakeHive, tmp_path: Path) -> Path:
    """The tables t, u and v with a row each; the directory that u's copy would get is somebody else's."""
    for name in ("u", "v", "t"):
        writable(hive, tmp_path / name)
        hive.tables["db", name] = replace(hive.tables["db", "t"], name=name)
        Hive(hive.address).table(f"db.{name}").insert(pa.table({"a": pa.array([1], pa.int32()), "b": [name]}))
    (tmp_path / "u_ice" / "metadata").mkdir(parents=True)
    (tmp_path / "u_ice" / "metadata" / "v1.metadata.json").write_text("somebody's")
    return tmp_path


def test_a_pattern_copies_each_table_and_reports_what_cannot_be_copied(
    hive: FakeHive, tables: Path, acidctl: Acidctl
) -> None:
    line = ("migrate", "hive:db.*", f"--metastore={hive.address}", "--to", tables / "{table}_ice", "-o", "jsonl")
    for word, result in (("--dry-run", "planned"), ("--yes", "written")):
        found = acidctl(*line, word)
        done = [(one["location"], one["result"]) for one in found.lines()]
        assert done == [("hive:db.t", result), ("hive:db.u", "failed"), ("hive:db.v", result)]
        assert found.status == 6
    assert (rows(tables / "t_ice"), rows(tables / "v_ice")) == ([(1, "t")], [(1, "v")])
    assert len(hive.wanted_locks) >= 4, "each table has a lock of its own"
    assert not hive.locks


def test_a_pattern_goes_on_after_a_run_that_was_killed(hive: FakeHive, tables: Path, acidctl: Acidctl) -> None:
    """One table is copied, one has a copy without rows yet; one is damaged, and stays so."""
    copy(hive, tables / "t_ice")
    damaged = next((tables / "u").glob("delta_*/bucket_*"))
    damaged.write_bytes(damaged.read_bytes()[:-20])
    (tables / "u_ice" / "metadata" / "v1.metadata.json").unlink()
    line = ("migrate", "hive:db.*", f"--metastore={hive.address}", "--to", tables / "{table}_ice", "--yes")
    for results in ([("hive:db.u", "failed"), ("hive:db.v", "written")], [("hive:db.u", "failed")]):
        found = acidctl(*line, "-o", "jsonl")
        assert [(one["location"], one["result"]) for one in found.lines()] == results
        assert found.status == 4
        assert "copied before: hive:db.t" in found.err
    assert (rows(tables / "t_ice"), rows(tables / "v_ice")) == ([(1, "t")], [(1, "v")])


def test_a_pattern_begins_no_table_after_the_deadline(hive: FakeHive, tables: Path, acidctl: Acidctl) -> None:
    line = ("migrate", "hive:db.*", f"--metastore={hive.address}", "--to", tables / "{table}_ice", "--yes")
    found = acidctl(*line, "--deadline", "0", "-o", "jsonl")
    assert [one["result"] for one in found.lines()] == ["postponed"] * 3
    assert not (tables / "t_ice").exists()
    assert "left for later: " in acidctl(*line, "--deadline", "0").err
    assert acidctl(*line, "--deadline", "1h", "-o", "jsonl").lines()[0]["result"] == "written"


def test_a_pattern_is_planned_whole_before_the_only_question(hive: FakeHive, tables: Path, terminal: Terminals) -> None:
    line = ("migrate", "hive:db.*", f"--metastore={hive.address}", "--to", tables / "{table}_ice")
    terminal.run(*line, typed="n\n")
    assert not (tables / "t_ice").exists()
    status, shown = terminal.run(*line, typed="y\n")
    assert (status, shown.count("[y/N]")) == (6, 1)
    assert (rows(tables / "t_ice"), rows(tables / "v_ice")) == ([(1, "t")], [(1, "v")])


def test_a_pattern_wants_the_name_of_the_table_in_its_target(hive: FakeHive, tables: Path, acidctl: Acidctl) -> None:
    line = ("migrate", "hive:db.*", f"--metastore={hive.address}", "--to", tables / "ice", "--yes")
    assert acidctl(*line).status == 2
    with pytest.raises(UsageProblem):
        copy_table("hive:db.*", tables / "{table}_ice", metastore=hive.address)


def test_the_name_of_a_single_table_stands_in_its_target(hive: FakeHive, tables: Path) -> None:
    done = copy_table("hive:db.t", tables / "{table}_ice", metastore=hive.address)
    assert (done.target, rows(tables / "t_ice")) == (str(tables / "t_ice"), [(1, "t")])
    with pytest.raises(UsageProblem, match="is a path"):
        copy_table(tables / "v", tables / "{table}_ice", assume_committed=0)
    with pytest.raises(UsageProblem, match="not a path"):
        copy_table("hive:db.t", 3, metastore=hive.address)  # type: ignore[arg-type]


def test_statements_for_an_engine_of_a_pattern_have_the_status_of_what_failed(
    hive: FakeHive, tables: Path, acidctl: Acidctl
) -> None:
    line = ("migrate", "hive:db.*", f"--metastore={hive.address}", "--to", tables / "{table}_ice")
    acidctl(*line, "--yes")
    found = acidctl(*line, "--prove", "spark")
    assert (found.status, found.out.count("-- source: hive:db.")) == (6, 2)


def test_a_pattern_compares_all_rows_of_tables_without_news_if_asked(
    hive: FakeHive, tables: Path, terminal: Terminals, acidctl: Acidctl
) -> None:
    line = ("migrate", "hive:db.*", f"--metastore={hive.address}", "--to", tables / "{table}_ice")
    acidctl(*line, "--yes")
    _, shown = terminal.run(*line, "--catch-up", "--proof", "full", typed="y\n")
    assert shown.count("all values of 1 row compared") == 2


def test_a_pattern_leaves_out_what_was_cut_over(hive: FakeHive, tables: Path, acidctl: Acidctl) -> None:
    """Otherwise the next run of cron would copy each of these tables once more, under another name."""
    hive.tables["db", "t_acid"] = replace(
        hive.tables.pop(("db", "t")), name="t_acid", parameters={"transactional": "true", MIGRATED_TO: "db.t_ice"}
    )
    found = acidctl("migrate", "hive:db.*", f"--metastore={hive.address}", "--to", tables / "{table}_ice", "--yes")
    assert "db.t_acid" in found.err
    assert {path.name for path in tables.glob("*_ice")} == {"u_ice", "v_ice"}


def test_a_copy_that_was_rolled_back_gets_the_rows_again(hive: FakeHive, tmp_path: Path) -> None:
    """By its own snapshots, to look at earlier rows: the newest metadata is still what a catch-up wrote."""
    writable(hive, tmp_path / "t")
    hive.databases["db"] = Database("db", f"file:{tmp_path}")
    for number in (1, 2):
        Hive(hive.address).table("db.t").insert(pa.table({"a": pa.array([number], pa.int32()), "b": ["x"]}))
        copy_table("hive:db.t", "hive:db.t_ice", metastore=hive.address, catch_up=number > 1)
    target = find_target(MetastoreCatalog(client(hive), {}), "db.t_ice")
    assert target
    first = target.table.metadata.snapshots[0].snapshot_id
    target.table.manage_snapshots().rollback_to_snapshot(first).commit()
    done = copy_table("hive:db.t", "hive:db.t_ice", metastore=hive.address, cut_over=True)
    assert done.snapshot != first
    table = StaticTable.from_metadata(hive.tables["db", "t"].parameters[METADATA])
    assert len(table.scan().to_arrow()) == 2


def test_a_copy_without_rows_is_not_written_to_again(hive: FakeHive, tmp_path: Path) -> None:
    writable(hive, tmp_path / "t")
    to = tmp_path / "copy"
    assert copy(hive, to).rows == 0
    copy(hive, to)
    before = sorted((to / "metadata").iterdir())
    assert copy(hive, to).result is Result.NOTHING_TO_DO
    assert sorted((to / "metadata").iterdir()) == before
