"""Whole statements keep values that are easily lost: far timestamps, CHAR keys, partition values, empty tables."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.writing import WrittenTable, written_table

import acidctl
from acidctl.base.errors import BadDataError, UsageProblem
from acidctl.metastore.client import Metastore
from acidctl.metastore.settings import find_settings
from acidctl.metastore.tables import HiveTable, get_table
from acidctl.writing.change import Change
from acidctl.writing.insert import Insert
from acidctl.writing.merge import Merge

FAR, NEAR = datetime.datetime(9999, 12, 31, 23, 59, 59), datetime.datetime(2020, 1, 1)
MICROS = pa.timestamp("us")


class Statements:
    """Statements on the table ``db.t``."""

    def __init__(self, made: WrittenTable) -> None:
        settings = find_settings({"uris": made.hive.address, "timeout": "5"}, {})
        assert settings
        self._metastore, self.made = Metastore(settings), made

    @property
    def _table(self) -> HiveTable:
        return get_table(self._metastore, "db", "t")

    def insert(self, rows: pa.Table, partition: Mapping[str, str] | None = None) -> None:
        Insert(self._metastore, self._table, rows.to_reader(max_chunksize=1), partition).run()

    def update(self, assignments: str, where: str | None = None) -> None:
        Change(self._metastore, self._table, where, assignments).run()

    def merge(self, rows: pa.Table, *key: str) -> None:
        Merge(self._metastore, self._table, rows, key).run()

    def texts(self, column: str) -> list[Any]:
        found = acidctl.open_table("hive:db.t", metastore=self.made.hive.address).scan().to_table()
        return [row[column] for row in sorted(found.to_pylist(), key=lambda row: row["a"])]


@contextmanager
def table(path: Path, columns: Mapping[str, str], keys: Mapping[str, str] | None = None) -> Iterator[Statements]:
    with written_table(path / "t", columns, keys) as made:
        yield Statements(made)


def test_far_timestamps_are_inserted_updated_merged_and_found(tmp_path: Path) -> None:
    with table(tmp_path, {"a": "int", "t": "timestamp", "b": "int"}) as t:
        t.insert(pa.table({"a": [1, 2], "t": pa.array([FAR, NEAR], MICROS), "b": [1, 1]}))
        t.update("t = timestamp '9000-01-01 00:00:00'", "a = 2")
        t.update("b = 2", "a = 1")
        t.insert(pa.table({"a": [4], "t": pa.array([NEAR], MICROS)}))
        t.merge(pa.table({"a": [1, 2, 3, 4], "b": [7, 7, 7, 7]}), "a")
        far = [{"seconds": second, "nanos": 0} for second in (253402300799, 221845392000)]
        assert t.texts("t") == [*far, None, {"seconds": 1577836800, "nanos": 0}]
        t.merge(pa.table({"a": [5], "t": pa.array([FAR], MICROS), "b": [9]}), "t")
        assert t.texts("a") == [2, 3, 4, 5]


def test_far_timestamps_are_inserted_in_nested_columns_and_kept_by_a_merge(tmp_path: Path) -> None:
    with table(tmp_path, {"a": "int", "s": "struct<t:timestamp>", "b": "int"}) as t:
        for a, time in ((1, FAR), (2, NEAR)):
            s = pa.array([{"t": time}], pa.struct({"t": MICROS}))
            t.insert(pa.table({"a": [a], "s": s}))
        t.merge(pa.table({"a": [1, 2, 3], "b": [7, 7, 7]}), "a")
        assert [value and value["t"]["seconds"] for value in t.texts("s")] == [253402300799, 1577836800, None]


def test_blanks_at_the_end_of_a_char_key_do_not_count(tmp_path: Path) -> None:
    with table(tmp_path, {"a": "int", "c": "char(4)"}) as t:
        t.insert(pa.table({"a": [1, 2], "c": ["ab", "x"]}))
        t.merge(pa.table({"a": [3, 4], "c": ["ab   ", "new"]}), "c")
        assert t.texts("a") == [2, 3, 4]
        with pytest.raises(BadDataError, match="several times"):
            t.merge(pa.table({"a": [5, 6], "c": ["x", "x "]}), "c")


def test_dictionaries_are_keys_and_orders_of_a_merge(tmp_path: Path) -> None:
    with table(tmp_path, {"a": "int", "c": "string"}) as t:
        t.insert(pa.table({"a": [1, 2], "c": ["x", "y"]}))
        t.merge(pa.table({"a": [3, 4], "c": pa.array(["x", "z"]).dictionary_encode()}), "c")
        assert t.texts("c") == ["y", "x", "z"]


def test_char_partitions_have_hive_s_names(tmp_path: Path) -> None:
    with table(tmp_path, {"a": "int"}, {"p": "char(5)"}) as t:
        t.insert(pa.table({"a": [1], "p": ["cd"]}))
        t.insert(pa.table({"a": [2]}), {"P": "cd"})
        assert t.made.names == ["p=cd   "]
        t.merge(pa.table({"a": [2], "p": ["cd"]}), "p", "a")
        assert t.texts("p") == ["cd", "cd"]


def test_rows_without_a_partition_key_are_refused(tmp_path: Path) -> None:
    with table(tmp_path, {"a": "int"}, {"p": "int", "q": "int"}) as t:
        with pytest.raises(UsageProblem, match="no column q"):
            t.insert(pa.table({"a": [1]}), {"p": "1"})
        with pytest.raises(UsageProblem, match="key p is given twice"):
            t.insert(pa.table({"a": [1], "P": [1], "q": [1]}), {"p": "1"})
        with pytest.raises(UsageProblem, match="no partition key r"):
            t.insert(pa.table({"a": [1], "p": [1], "q": [1]}), {"r": "1"})
        assert t.made.names == []
        t.insert(pa.table({"a": [1], "Q": [2]}), {"p": "01"})
        assert t.made.names == ["p=1"]


def test_a_table_without_a_partition_is_empty(tmp_path: Path) -> None:
    with table(tmp_path, {"a": "int", "b": "int"}, {"p": "int"}) as t:
        t.update("b = 1", "a = 1 and p = 2")
        assert (t.made.names, t.made.is_quiet) == ([], True)
        with pytest.raises(UsageProblem, match="q"):
            t.update("b = 1", "q = 1")
        t.merge(pa.table({"a": [1], "b": [2], "p": [3]}), "a")
        assert t.texts("b") == [2]


def test_a_source_of_a_merge_has_no_column_twice(tmp_path: Path) -> None:
    with table(tmp_path, {"a": "int"}) as t, pytest.raises(UsageProblem, match="two columns a"):
        t.merge(pa.table([pa.array([1]), pa.array([2])], names=["a", "A"]), "a")


def test_decimals_of_all_digits_are_computed(tmp_path: Path) -> None:
    with table(tmp_path, {"a": "int", "n": "decimal(38,10)"}) as t:
        t.insert(pa.table({"a": [1], "n": pa.array([Decimal("1.5")], pa.decimal128(38, 10))}))
        t.update("n = n * 2 + 1")
        assert t.texts("n") == [Decimal("4.0000000000")]
        with pytest.raises(BadDataError):
            t.update("n = n * 99999999999999999999999999999")
