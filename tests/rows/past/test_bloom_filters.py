"""Bloom filters never rule out what is there: of files that ORC's own library wrote."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import orc

from acidctl.api import Location
from acidctl.orc.byte_source import ByteSource
from acidctl.orc.tail import read_tail
from acidctl.rows.past import bloom_filters
from acidctl.rows.past.bloom_filters import mixed_number, murmur, row_filters
from acidctl.storage.registry import open_location


def test_no_value_that_is_there_is_ruled_out_and_most_others_are(tmp_path: Path) -> None:
    luck = random.Random(7)
    numbers = [luck.randrange(-(2**63), 2**63) for _ in range(12_000)]
    texts = ["".join(luck.choice("abcé\0z") for _ in range(luck.randrange(24))) for _ in range(12_000)]
    path = tmp_path / "f.orc"
    orc.write_table(pa.table({"a": numbers, "b": texts}), path, bloom_filter_columns=[1, 2], compression="zlib")
    fs, at = open_location(str(path), {})
    tail = read_tail(ByteSource(fs, at))
    for name, hashes in (("a", [mixed_number(one) for one in numbers]), ("b", [murmur(t.encode()) for t in texts])):
        filters = row_filters(tail, 0, tail.type_tree.children[tail.type_tree.names.index(name)])
        assert len(filters) == 2
        assert all(any(one.may_hold(hashed) for one in filters) for hashed in hashes)
        others = [mixed_number(luck.randrange(2**62)) for _ in range(1000)]
        assert sum(any(one.may_hold(hashed) for one in filters) for hashed in others) < 300


def test_filters_are_read_once_for_many_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"a": list(range(0, 200, 2))})
    orc.write_table(table, tmp_path / "000000_0", bloom_filter_columns=[1])
    read: list[int] = []

    def counted(*args: Any) -> Any:
        read.append(1)
        return row_filters(*args)

    monkeypatch.setattr(bloom_filters, "row_filters", counted)
    values = ", ".join(str(value) for value in range(1, 100, 2))
    (report,) = Location(tmp_path).erasure(f"a IN ({values})").reports
    assert (report.events, len(read)) == (0, 1)


def test_stripes_that_filters_rule_out_are_not_read(tmp_path: Path) -> None:
    table = pa.table({"a": [0, 2, 4, 6, 100], "b": ["k", "m", "o", "q", "z"]})
    for name, columns in (("000000_0", [1, 2]), ("000001_0", None)):
        orc.write_table(table, tmp_path / name, bloom_filter_columns=columns)
    for condition, held in (("a = 3", 0), ("a = 4", 2), ("b = 'n'", 0), ("b = 'o'", 2), ("NOT (a <> 3)", 0)):
        (report,) = Location(tmp_path).erasure(condition).reports
        assert report.events == held
        read = {Path(file.path).name: file.matched.read for file in report.files}
        assert read["000001_0"] == 1
        assert read["000000_0"] == bool(held) or condition.startswith("NOT")
