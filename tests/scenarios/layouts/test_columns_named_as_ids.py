"""Columns of an insert-only table that have the names of ACID's six columns are columns like others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.command_line import Result
from support.files.acid_files import OrcType, insert, struct, write_acid, write_plain
from support.metastore.fake_hive import FakeHive

from acidctl.metastore import interface as wire

Acidctl = Callable[..., Result]
NAMES = ("operation", "originaltransaction", "bucket", "rowid", "currenttransaction", "row")
ROWS = [(2, 7, 8, 9, 10, {"a": 1}), (0, 1, 2, 3, 4, {"a": 2})]


@pytest.fixture(params=["parquet", "orc", "ORC"])
def names(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return a table of two rows; ``ORC`` spells the names as Hive's own ids."""
    path = tmp_path / "t" / "delta_0000001_0000001_0000" / "000000_0"
    spelled = NAMES
    if request.param == "ORC":
        spelled = ("operation", "originalTransaction", "bucket", "rowId", "currentTransaction", "row")
    if request.param == "parquet":
        path.parent.mkdir(parents=True)
        columns: list[Any] = [list(column) for column in zip(*ROWS, strict=True)]
        pq.write_table(pa.table(dict(zip(NAMES, columns, strict=True))), path)
    else:
        row = struct(**dict.fromkeys(spelled[:5], OrcType("bigint")), row=struct(a=OrcType("int")))
        write_plain(path, *[(*ids, (last["a"],)) for *ids, last in ROWS], row=row)
    return tmp_path / "t"


@pytest.fixture
def ask(acidctl: Acidctl, names: Path) -> Iterator[Callable[..., Result]]:
    """Yield a function that runs a command on the table of a metastore that says that it is insert-only."""
    with FakeHive(4) as hive:
        hive.table("d", "t", str(names), parameters={"transactional_properties": "insert_only"}, serde=wire.SerDeInfo())
        table = hive.tables["d", "t"]
        assert table.storage
        kinds = [*["bigint"] * 5, "struct<a:int>"]
        columns = tuple(wire.FieldSchema(*column) for column in zip(NAMES, kinds, strict=True))
        hive.tables["d", "t"] = replace(table, storage=replace(table.storage, columns=columns))
        (txn,) = hive.begin_many(1)
        hive.write_ids["d.t"] = [txn]
        hive.end(txn)
        yield lambda *words: acidctl(*words, "--metastore", hive.address, "hive:d.t")


def test_all_six_are_read_by_every_command(ask: Callable[..., Result]) -> None:
    lines = ask("cat").lines()
    assert [tuple(line.values()) for line in lines] == ROWS
    assert [name.lower() for name in lines[0]] == list(NAMES)
    assert [list(line.values()) for line in ask("cat", "--columns", "rowid,operation").lines()] == [[9, 2], [3, 0]]
    assert len(ask("cat", "--where", "row.a = 1 AND bucket = 8").lines()) == 1
    deep = ask("validate", "--deep")
    assert deep.status == 0, deep.out
    conditions = ("operation = 2", "row.a = 2", "rowid = 4")
    statuses = [ask("erasure", "--where", condition).status for condition in conditions]
    assert statuses == [14, 14, 0]
    assert ask("compact", "--major", "--engine", "local").status == 0
    assert [tuple(line.values()) for line in ask("cat").lines()] == ROWS


def test_the_user_can_say_what_no_metastore_says(acidctl: Acidctl, names: Path) -> None:
    found = acidctl("cat", "--table-type", "insert-only", names)
    assert (found.status, [tuple(line.values()) for line in found.lines()]) == (0, ROWS)
    for place in (names, names / "delta_0000001_0000001_0000" / "000000_0"):
        dumped = acidctl("dump", "--table-type", "insert-only", place)
        assert [tuple(line["row"].values()) for line in dumped.lines()] == ROWS
    assert acidctl("diff", "--from", "0", "--count", "--table-type", "insert-only", names).status == 0
    told = ("--table-type", "insert-only", names)
    (counted,) = acidctl("history", "-o", "json", *told).json()
    assert [line["inserted"] for line in counted["writeIds"]] == [len(ROWS)]
    checked = acidctl("validate", "--deep", *told)
    assert checked.status == 0, checked.out
    assert [acidctl("erasure", "--where", where, *told).status for where in ("operation = 2", "rowid = 4")] == [14, 0]
    assert acidctl("blame", *told, "1:536870912:0").status == 0
    for words in (("history",), ("blame", "1:536870912:0"), ("validate",), ("erasure", "--where", "rowid = 4")):
        with FakeHive(4) as hive:
            hive.table("d", "t", str(names))
            there = ("--metastore", hive.address, "--table-type", "insert-only", "hive:d.t")
            assert acidctl(words[0], *there, *words[1:]).status == 7, "the metastore says full ACID"
    refused = acidctl("cat", names)
    assert refused.status == 0 or "--table-type insert-only" in refused.err


def test_a_file_with_ids_in_a_table_of_other_columns_is_refused(acidctl: Acidctl, tmp_path: Path) -> None:
    write_acid(tmp_path / "t" / "delta_0000001_0000001_0000" / "bucket_00000", insert(1, 0, (1, "a")))
    row = struct(operation=OrcType("int"), b=OrcType("string"))
    write_plain(tmp_path / "t" / "delta_0000002_0000002_0000" / "000000_0", (2, "b"), row=row)
    with FakeHive(4) as hive:
        hive.table("d", "t", str(tmp_path / "t"), parameters={"transactional_properties": "insert_only"})
        table = hive.tables["d", "t"]
        assert table.storage
        columns = (wire.FieldSchema("operation", "int"), wire.FieldSchema("b", "string"))
        hive.tables["d", "t"] = replace(table, storage=replace(table.storage, columns=columns))
        txns = hive.begin_many(2)
        hive.write_ids["d.t"] = list(txns)
        for txn in txns:
            hive.end(txn)
        found = acidctl("cat", "--metastore", hive.address, "hive:d.t")
        assert (found.status, "has ids of rows" in found.err) == (4, True), found.err
        assert acidctl("compact", "--major", "--engine", "local", "--metastore", hive.address, "hive:d.t").status == 7
        checked = acidctl("validate", "--footers", "-o", "json", "--metastore", hive.address, "hive:d.t")
        assert (checked.status, [one["rule"] for one in checked.one()["findings"]]) == (14, ["V25"])
