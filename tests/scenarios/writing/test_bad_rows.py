"""The error of a row that cannot be written names the file, the row, the column and the value."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from support.command_line import Result
from support.writing import WrittenTable, written_table

from acidctl.base.errors import BadDataError
from acidctl.metastore.interface import NotNull

Acidctl = Callable[..., Result]

CSV, JSON, PARQUET = "rows.csv", "rows.jsonl", "rows.parquet"
OF_CSV, OF_PARQUET = "of rows.csv (after its header)", "of rows.parquet"
ROWS: dict[str, list[Any]] = {"a": [1, 2], "b": ["x", "y"], "p": ["q", "q"]}
NULL, KEY = "no value in b, which is NOT NULL", "in the partition key p would be read as NULL"


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WrittenTable]:
    columns = {"a": "int", "b": "varchar(5)", "d": "date", "n": "decimal(5,2)", "l": "array<int>"}
    with written_table(tmp_path / "t", columns, {"p": "string"}) as made:
        made.hive.not_null = (NotNull("b", True),)
        monkeypatch.chdir(tmp_path)
        yield made


def written(name: str, content: Any) -> str:
    if isinstance(content, str):
        Path(name).write_text(content)
    else:
        parquet.write_table(pa.table({**ROWS, **content}), name)
    return name


BAD: list[tuple[str, Any, tuple[str, ...]]] = [
    (CSV, "a,b,p\n1,x,q\nabc,y,q\n", (f"row 2 {OF_CSV}", "column a is int and cannot hold 'abc'")),
    (CSV, 'a,b,p\n1,"x\ny",q\n2,toolong,q\n', (f"row 2 {OF_CSV}", "b is varchar(5) and cannot hold 'toolong'")),
    (CSV, "a,b,p,d\n1,x,q,2020-13-01\n", (f"row 1 {OF_CSV}", "column d is date and cannot hold '2020-13-01'")),
    (CSV, "a,b,p\n1,x,q\n2,,q\n", (f"row 2 {OF_CSV}", NULL)),
    (CSV, 'a,b,p\n1,x,q\n2,y,""\n', (f"row 2 {OF_CSV}", f"an empty text {KEY}")),
    (CSV, "a,b,p\n1,x,q\n2,y\n", ("of rows.csv", "row 2 (after its header) has 2 values, not 3: 2,y")),
    (CSV, "a,p\n1,q\n", ("no value in b", "NOT NULL")),
    (JSON, '{"a":1,"b":"x","p":"q"}\n{"a":"abc"}\n', ("of rows.jsonl", "line 2: column a is int", 'hold "abc"')),
    (JSON, '\n{"a":1,"p":"q"}\n{"a":3000000000}\n', ("line 3: column a is int and cannot hold 3000000000",)),
    (JSON, '{"a":1,"p":"q","n":1.255}\n', ("line 1: column n is decimal(5,2) and cannot hold 1.255",)),
    (JSON, '{"a":1,"p":"q","d":7}\n', ("line 1: column d is date and cannot hold 7",)),
    (JSON, '{"a":1,"p":"q","l":[1]}\n{"l":["é"]}\n', ("line 2: column l is array and cannot hold", '["é"]')),
    (JSON, '{"a":1,"p":"q"}\n{"a":1\n', ("line 2: JSON parse error",)),
    (JSON, '{"a":1,"b":"x","p":"q"}\n{"a":2,"p":"q"}\n', ("row 2 of rows.jsonl", NULL)),
    (JSON, '{"a":1,"b":"x","p":"__HIVE_DEFAULT_PARTITION__"}\n', ("row 1 of rows.jsonl", f"PARTITION__ {KEY}")),
    (PARQUET, {"a": [1, 3 << 40]}, (f"row 2 {OF_PARQUET}", "column a is int and cannot hold '3298534883328'")),
    (PARQUET, {"b": ["x", None]}, (f"row 2 {OF_PARQUET}", NULL)),
    (PARQUET, {"p": ["q", ""]}, (f"row 2 {OF_PARQUET}", f"an empty text {KEY}")),
    (PARQUET, {"l": [[1], [1 << 40]]}, (f"row 2 {OF_PARQUET}", "column l is array and cannot hold '[1099511627776]'")),
]  # fmt: skip


@pytest.mark.parametrize("verb", ["insert", "merge"])
@pytest.mark.parametrize(("name", "content", "words"), BAD)
def test_it_names_the_file_the_row_the_column_and_the_value(
    table: WrittenTable, acidctl: Acidctl, verb: str, name: str, content: Any, words: tuple[str, ...]
) -> None:
    key = ("--key", "a") if verb == "merge" else ()
    done = acidctl(verb, "--yes", *key, "hive:db.t", written(name, content), f"--metastore={table.hive.address}")
    assert done.status == 4, done.err
    shown = " ".join(done.err.split())
    assert [word for word in words if word not in shown] == [], shown
    assert "nothing was" in shown
    assert (table.names, table.hive.locks) == ([], [])


@pytest.mark.parametrize(
    ("option", "column", "good", "bad", "shown"),
    [("--operation-column", "op", "i", "zap", "'zap'"), ("--order-by", "n", 7, None, "NULL")],
)
def test_a_merge_of_several_files_counts_the_rows_of_each(
    table: WrittenTable, acidctl: Acidctl, option: str, column: str, good: Any, bad: Any, shown: str
) -> None:
    files = [written("first.parquet", {column: [good, good]}), written("second.parquet", {column: [good, bad]})]
    done = acidctl(
        "merge", "--yes", "--key=a", "hive:db.t", *files, option, column, f"--metastore={table.hive.address}"
    )
    assert (done.status, f"row 2 of second.parquet has {shown} in the column {column}" in done.err) == (4, True), (
        done.err
    )
    assert table.names == []


def test_a_row_that_deletes_may_have_what_the_table_cannot(table: WrittenTable, acidctl: Acidctl) -> None:
    content = "a,b,p,op\n1,,q,d\n2,,,d\n3,x,q,i\n4,,q,i\n"
    words = (
        "merge",
        "--yes",
        "--key",
        "a",
        "--operation-column",
        "op",
        "hive:db.t",
        f"--metastore={table.hive.address}",
    )
    done = acidctl(*words, written(CSV, content))
    assert (done.status, f"row 4 {OF_CSV}" in done.err, NULL in done.err) == (4, True, True), done.err
    assert acidctl(*words, written(CSV, content.replace("4,,", "4,y,"))).status == 0
    assert [row[0] for row in table.rows()] == [3, 4]


def test_rows_of_python_have_a_number(table: WrittenTable) -> None:
    door = table.door.table("db.t")
    for rows, why in (({"a": [1, 3 << 40]}, "column a is int"), ({"b": ["x", None]}, NULL), ({"p": ["q", ""]}, KEY)):
        for write in (door.insert, lambda given: door.merge(given, ["a", "b"])):
            with pytest.raises(BadDataError) as refused:
                write(pa.table({**ROWS, **rows}))
            assert (refused.value.what, why in refused.value.why) == ("row 2 does not fit into the table", True)
            assert refused.value.hint
    assert table.names == []


def test_a_column_of_the_standard_input_has_no_number_but_its_values(
    table: WrittenTable, acidctl: Acidctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Path(written(CSV, "a,b,p\n1,x,q,7\n")).open() as given:
        monkeypatch.setattr("sys.stdin", given)
        done = acidctl("insert", "--yes", "--format", "csv", "hive:db.t", "-", f"--metastore={table.hive.address}")
    assert (done.status, "a row has 4 values, not 3: 1,x,q,7" in done.err) == (4, True), done.err
