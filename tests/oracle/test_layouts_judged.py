"""Schema changes and mixed versions as Hive itself reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.compacting import run_compaction
from support.judge.checks import answer, assert_same, hive_answer
from support.judge.hive import DELETE, INSERT, UPDATE, Event, Hive
from support.judge.normal import ACIDCTL
from support.judge.txns import Txns
from support.tables import read_rows

from acidctl.acid.compaction_kind import CompactionKind
from acidctl.acid.writeids import ValidWriteIds
from acidctl.compaction.output_settings import Writing
from acidctl.orc.types import parse_type

CHANGES: dict[str, tuple[str, list[dict[str, Any]], str, list[dict[str, Any]]]] = {
    "added": ("struct<a:int>", [{"a": 1}], "struct<a:int,b:string,c:array<int>>", [{"a": 2, "b": "x", "c": [1]}]),
    "wider": (
        "struct<a:tinyint,b:smallint,c:int,d:float>",
        [{"a": -1, "b": 300, "c": 70000, "d": 0.1}, {"a": None, "b": None, "c": None, "d": None}],
        "struct<a:smallint,b:int,c:bigint,d:double>",
        [{"a": 300, "b": 70000, "c": 2**40, "d": 0.1}],
    ),
    "text": (
        "struct<a:int,b:bigint,c:boolean,d:date,e:varchar(5),f:timestamp,g:decimal(10,3)>",
        [{"a": -5, "b": 2**40, "c": True, "d": "2001-02-03", "e": "abc", "f": "2001-02-03 04:05:06.7", "g": "1.5"}],
        "struct<a:string,b:string,c:string,d:string,e:string,f:string,g:string>",
        [dict.fromkeys("abcdefg", "x")],
    ),
    "nested": (
        "struct<s:struct<x:int>>",
        [{"s": {"x": 1}}, {"s": None}],
        "struct<s:struct<x:int,y:string>>",
        [{"s": {"x": 2, "y": "z"}}],
    ),
    "decimal": (
        "struct<a:int,b:decimal(6,3),c:float>",
        [{"a": 7, "b": "1.125", "c": 0.5}],
        "struct<a:decimal(12,2),b:decimal(20,2),c:double>",
        [{"a": "1.25", "b": "2", "c": 1.5}],
    ),
    "real": ("struct<a:int,b:bigint>", [{"a": 16777217, "b": 5}], "struct<a:float,b:double>", [{"a": 0.5, "b": 0.1}]),
}


@pytest.mark.spark
@pytest.mark.parametrize("name", CHANGES)
def test_changed_schemas_are_read_as_hive_does(hive: Hive, tmp_path: Path, name: str) -> None:
    old, before, new, after = CHANGES[name]
    hive.write_delta(tmp_path, old, 1, [Event(INSERT, row) for row in before])
    hive.write_delta(tmp_path, new, 2, [Event(INSERT, row) for row in after])
    want = hive_answer(hive, tmp_path, new, Txns(2))
    assert_same(answer(read_rows(tmp_path), new, ACIDCTL), want, name)
    assert run_compaction(tmp_path, CompactionKind.MAJOR, writing=Writing(reader="hive4"), columns=parse_type(new))
    assert_same(answer(read_rows(tmp_path), new, ACIDCTL), want, f"{name}, compacted")
    assert_same(hive_answer(hive, tmp_path, new, Txns(2)), want, f"{name}, Hive after acidctl's compaction")


@pytest.mark.spark
def test_split_updates_over_deltas_of_version_1(hive: Hive, tmp_path: Path) -> None:
    """The table was major-compacted between the versions, as Hive demands, or had no updates yet."""
    schema = "struct<a:int,b:string>"
    hive.write_delta(tmp_path, schema, 1, [Event(INSERT, {"a": i, "b": str(i)}) for i in range(4)], version=1)
    hive.write_delta(tmp_path, schema, 2, [Event(DELETE, None, (1, 0, 1))])
    hive.write_delta(tmp_path, schema, 3, [Event(UPDATE, {"a": 30, "b": "new"}, (1, 0, 3))])
    for txns in (Txns(3), Txns(2), Txns(1)):
        lists = ValidWriteIds.parse(txns.write_ids())
        want = hive_answer(hive, tmp_path, schema, txns)
        assert_same(answer(read_rows(tmp_path, lists), schema, ACIDCTL), want, str(txns))
