"""Fields of structs whose type was changed: found by name and exact case, at every level, as both Hives do it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from support.compacting import run_compaction
from support.files.acid_files import write_delta
from support.tables import json_rows, snapshot_of

from acidctl.acid.compaction_kind import CompactionKind
from acidctl.base.errors import RefusedError
from acidctl.orc.types import arrow_type, columns_of
from acidctl.rows.convert.conform import all_null
from acidctl.rows.scan.scan import Scan

CHANGES = [
    ("struct<a:int,b:int>", {"a": 1, "b": 2}, "struct<b:int,a:int>", {"b": 2, "a": 1}),
    ("struct<a:int,b:int>", {"a": 1, "b": 2}, "struct<a:int,x:int,b:int>", {"a": 1, "x": None, "b": 2}),
    ("struct<a:int,b:int>", {"a": 1, "b": 2}, "struct<x:int,a:int,b:int>", {"x": None, "a": 1, "b": 2}),
    ("struct<a:int,b:int>", {"a": 1, "b": 2}, "struct<b:int>", {"b": 2}),
    ("struct<a:int,b:int>", {"a": 1, "b": 2}, "struct<B:int,a:bigint>", {"B": None, "a": 1}),
    ("struct<a:int,b:int>", {"a": 1, "b": 2}, "struct<x:uniontype<int,string>,b:int>", {"x": None, "b": 2}),
    ("struct<a:int,b:string,c:int>", {"a": 1, "b": "x", "c": 3}, "struct<a:int,c:int>", {"a": 1, "c": 3}),
    ("array<struct<a:int,b:int>>", [{"a": 1, "b": 2}], "array<struct<b:int,a:int>>", [{"b": 2, "a": 1}]),
    (
        "map<string,struct<a:int,b:int>>",
        [("k", {"a": 1, "b": 2})],
        "map<string,struct<b:int,c:int>>",
        [{"_key": "k", "_value": {"b": 2, "c": None}}],
    ),
    (
        "struct<s:struct<a:int,b:int>,t:timestamp>",
        {"s": {"a": 1, "b": 2}, "t": None},
        "struct<t:timestamp,s:struct<b:int,a:int>>",
        {"t": None, "s": {"b": 2, "a": 1}},
    ),
]


DROPPED = (
    "struct<b:int>",
    "struct<B:int,a:bigint>",
    "struct<x:uniontype<int,string>,b:int>",
    "struct<a:int,c:int>",
    "map<string,struct<b:int,c:int>>",
)
"""Without a metastore: whether the table still has the other fields is not known."""


@pytest.mark.parametrize(("old", "value", "new", "wanted"), CHANGES, ids=[new for _, _, new, _ in CHANGES])
def test_fields_keep_their_names(tmp_path: Path, old: str, value: object, new: str, wanted: object) -> None:
    """Read whole, by condition and field by field, and the same after either compaction."""
    before, after = (columns_of(f"id int, s {kind}") for kind in (old, new))
    for write_id, row, given in ((1, before, [value, None]), (2, after, [None, None])):
        kind = arrow_type(row).field(1).type
        structs = pa.array(given, kind) if any(given) else all_null(2, kind)
        columns = [pa.array([write_id, write_id], pa.int32()), structs]
        write_delta(tmp_path, write_id, pa.RecordBatch.from_arrays(columns, names=["id", "s"]), row=row)
    rows = [{"id": 1, "s": wanted}, {"id": 1, "s": None}, {"id": 2, "s": None}, {"id": 2, "s": None}]
    for compacted in (None, *CompactionKind):
        if compacted:
            if new in DROPPED:
                with pytest.raises(RefusedError, match="field"):
                    run_compaction(tmp_path, compacted)
                continue
            run_compaction(tmp_path, compacted)
        snapshot = snapshot_of(tmp_path)
        found = json_rows(Scan(snapshot, row_type=after))
        assert found == rows, compacted
        assert str(found) == str(rows), "fields are in the order of the type"
        if isinstance(wanted, dict):
            for name, part in wanted.items():
                assert json_rows(Scan(snapshot, [f"s.{name}"], row_type=after))[0] == {f"s.{name}": part}
                if isinstance(part, int):
                    where = f"s.{name} = {part}"
                    assert Scan(snapshot, where=where, row_type=after).count() == 1, where
                    assert Scan(snapshot, where=f"s.{name} <> {part}", row_type=after).count() == 0, where


def test_without_a_metastore_the_newest_file_has_the_fields(tmp_path: Path) -> None:
    for write_id, kind, given in ((1, "struct<a:int,b:int>", {"a": 1, "b": 2}), (2, "struct<b:int>", {"b": 3})):
        row = columns_of(f"s {kind}")
        batch = pa.RecordBatch.from_arrays([pa.array([given], arrow_type(row).field(0).type)], names=["s"])
        write_delta(tmp_path, write_id, batch, row=row)
    assert json_rows(Scan(snapshot_of(tmp_path))) == [{"s": {"b": 2}}, {"s": {"b": 3}}]
