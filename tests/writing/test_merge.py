"""The rows of a merge's source: which of a key counts, what deletes, and what is refused."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.metastore.writable import client, table_of
from support.writing import WrittenTable, written_table

from acidctl.base.errors import AcidctlError, BadDataError, UsageProblem
from acidctl.writing.merge import Merge

NAN = float("nan")


@contextmanager
def door(path: Path, columns: Mapping[str, str]) -> Iterator[tuple[WrittenTable, Any]]:
    with written_table(path / "t", columns) as made:
        yield made, made.door.table("db.t")


SAME = {
    "timestamp": pa.array(["2020-01-01 00:00:00", "2020-01-01T00:00:00"]),
    "date": pa.array(["2020-01-01", "2020-01-01"]),
    "char(3)": pa.array(["a", "a "]),
    "decimal(9,2)": pa.array([Decimal("1.5"), Decimal("1.50")], pa.decimal128(9, 4)),
    "double": pa.array([0.0, -0.0]),
    "float": pa.array([NAN, -NAN], pa.float32()),
    "string": pa.array(["x", "x"]).dictionary_encode(),
}


@pytest.mark.parametrize("kind", SAME)
def test_keys_are_equal_if_they_are_in_the_types_of_the_table(tmp_path: Path, kind: str) -> None:
    rows = {"k": SAME[kind], "v": ["one", "two"]}
    with door(tmp_path, {"k": kind, "v": "string"}) as (made, table):
        with pytest.raises(BadDataError, match="several times"):
            table.merge(pa.table(rows), "k")
        table.merge(pa.table({**rows, "n": [2, 1]}), "k", order_by="n")
        assert [row[1] for row in made.rows()] == ["one"]
        written = table.merge(pa.table({"k": SAME[kind][1:], "v": ["new"]}), "k").written
        assert (written.updated, written.inserted) == (1, 0)


def test_rows_with_new_keys_may_be_left_out(tmp_path: Path) -> None:
    with door(tmp_path, {"k": "int", "v": "string"}) as (made, table):
        table.insert(pa.table({"k": [1, 2], "v": ["a", "b"]}))
        rows = pa.table({"k": [2, 3, None], "v": ["new", "new", "new"]})
        done = Merge(client(made.hive), table_of(made.hive), rows, ["k"], inserts=False).run()
        assert (done.updated, done.inserted) == (1, 0)
        assert made.rows() == [(1, "a"), (2, "new")]


ORDERS = {
    "NULL": (pa.array([5, None]), BadDataError, "row 2 has NULL in the column n"),
    "NULL alone": (pa.nulls(2), BadDataError, "row 1 has NULL in the column n"),
    "NaN": (pa.array([NAN, 1.0]), BadDataError, "row 1 has NaN in the column n"),
    "text": (pa.array(["9", "10"]), UsageProblem, "cannot order the rows: it is string"),
    "dictionary": (pa.array(["9", "10"]).dictionary_encode(), UsageProblem, "cannot order the rows: it is string"),
    "list": (pa.array([[1], [2]]), UsageProblem, "cannot order the rows: it is list"),
}


@pytest.mark.parametrize("name", ORDERS)
def test_a_column_that_does_not_order_all_rows_is_refused(tmp_path: Path, name: str) -> None:
    order, error, why = ORDERS[name]
    with door(tmp_path, {"k": "int"}) as (made, table):
        with pytest.raises(error, match=why):
            table.merge(pa.table({"k": [1, 2], "n": order}), "k", order_by="n")
        assert (made.names, made.is_quiet) == ([], True)


def test_the_order_is_that_of_the_column_s_type_in_the_table(tmp_path: Path) -> None:
    texts = ["9999-12-31 23:00:00", "9999-12-31T01:00:00", "2020-01-01"]
    with door(tmp_path, {"k": "int", "t": "timestamp", "v": "int"}) as (made, table):
        table.merge(pa.table({"k": [1, 1, 2], "t": texts, "v": [1, 2, 3]}), "k", order_by="T")
        assert [(row[0], row[2]) for row in made.rows()] == [(1, 1), (2, 3)]
        dictionary = pa.array([10, 9]).dictionary_encode()
        table.merge(pa.table({"k": [1, 1], "v": [10, 9], "n": dictionary}), "k", order_by="n")
        assert [(row[0], row[2]) for row in made.rows()] == [(1, 10), (2, 3)]


@pytest.mark.parametrize("word", ["do nothing", "drop", "ignore", "upsert", " d", "", None])
def test_other_words_than_operations_are_refused(tmp_path: Path, word: str | None) -> None:
    rows = pa.table({"k": [1, 2], "op": ["d", word]})
    with door(tmp_path, {"k": "int"}) as (made, table):
        table.insert(pa.table({"k": [1, 2]}))
        with pytest.raises(BadDataError, match="row 2 has") as refused:
            table.merge(rows, "k", operation_column="op")
        assert ("NULL" if word is None else repr(word)) in str(refused.value)
        assert made.rows() == [(1,), (2,)]


def test_operations_are_words_or_letters_in_any_case(tmp_path: Path) -> None:
    words = ["i", "INSERT", "u", "Update", "D", "delete"]
    with door(tmp_path, {"k": "int"}) as (made, table):
        table.insert(pa.table({"k": [5, 6, 7]}))
        rows = pa.table({"k": range(1, 7), "op": pa.array(words).dictionary_encode()})
        table.merge(rows, "k", operation_column="op")
        assert made.rows() == [(1,), (2,), (3,), (4,), (7,)]
        with pytest.raises(UsageProblem, match="int64, not text"):
            table.merge(pa.table({"k": [1], "op": [1]}), "k", operation_column="op")


def test_keys_of_other_types_are_converted_or_refused(tmp_path: Path) -> None:
    with door(tmp_path, {"k": "int", "d": "date", "l": "array<int>"}) as (made, table):
        day = datetime.date(2020, 1, 1)
        table.merge(pa.table({"k": pa.nulls(1), "d": pa.array(["2020-01-01"]).dictionary_encode()}), ["k", "d"])
        assert made.rows() == [(None, day, None)]
        refused: list[tuple[pa.Table, list[str], str]] = [
            (pa.table({"k": [1]}), [], "no key"),
            (pa.table({"l": [[1]]}), ["l"], "the column l cannot be a key"),
        ]
        for rows, key, why in refused:
            with pytest.raises(UsageProblem, match=why):
                table.merge(rows, key)
        with pytest.raises(UsageProblem, match="the column l cannot be a key"):
            table.delete(keys=pa.table({"l": [[1]]}))


def test_no_rows_and_no_types_are_a_merge_of_nothing(tmp_path: Path) -> None:
    with door(tmp_path, {"k": "int"}) as (made, table):
        rows = pa.table({name: pa.nulls(0) for name in ("k", "op", "n")})
        assert table.merge(rows, "k", operation_column="op", order_by="n").result == "nothing-to-do"
        assert made.rows() == []


def test_a_value_that_does_not_fit_is_named_by_its_row_of_the_source(tmp_path: Path) -> None:
    rows = pa.table({"k": [1, 1, 2], "v": [1, 2, 5_000_000_000], "n": [1, 2, 3]})
    with door(tmp_path, {"k": "int", "v": "int"}) as (_, table), pytest.raises(AcidctlError, match="row 3 "):
        table.merge(rows, "k", order_by="n")


def test_a_key_twice_in_the_table_is_refused_beside_one_that_is_deleted_twice(tmp_path: Path) -> None:
    with door(tmp_path, {"k": "int"}) as (made, table):
        for keys in ([1], [1, 2, 2]):
            table.insert(pa.table({"k": keys}))
        with pytest.raises(BadDataError, match="several rows of the key k=2"):
            table.merge(pa.table({"k": [1, 2], "op": ["d", "u"]}), "k", operation_column="op")
        assert made.rows() == [(1,), (1,), (2,), (2,)]
