"""CHAR and VARCHAR whose type newer files declare shorter."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from support.files.acid_files import write_delta
from support.tables import json_rows, snapshot_of

from acidctl.orc.types import OrcType
from acidctl.rows.convert.leaves import convert_leaf
from acidctl.rows.scan.scan import Scan


def one_column(kind: OrcType) -> OrcType:
    return OrcType("struct", children=(kind,), names=("a",))


def texts(*values: str | None) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"a": pa.array(values, pa.string())})


def test_older_values_are_cut_and_found_by_what_is_left(tmp_path: Path) -> None:
    """Statistics of the longer values must not exclude the stripes of the shorter ones."""
    write_delta(tmp_path, 1, texts("abcdefgh", "abcdexyz"), row=one_column(OrcType("varchar", max_length=20)))
    write_delta(tmp_path, 2, texts("z", None), row=one_column(OrcType("varchar", max_length=5)))
    snapshot = snapshot_of(tmp_path)
    assert json_rows(Scan(snapshot)) == [{"a": "abcde"}, {"a": "abcde"}, {"a": "z"}, {"a": None}]
    assert Scan(snapshot, where="a = 'abcde'").count() == 2
    assert Scan(snapshot, where="a <= 'abcde'").count() == 2
    assert Scan(snapshot, where="a = 'abcdefgh'").count() == 0


def test_longer_types_change_nothing(tmp_path: Path) -> None:
    write_delta(tmp_path, 1, texts("abc "), row=one_column(OrcType("varchar", max_length=5)))
    write_delta(tmp_path, 2, texts("longer than five"), row=one_column(OrcType("varchar", max_length=20)))
    assert json_rows(Scan(snapshot_of(tmp_path))) == [{"a": "abc "}, {"a": "longer than five"}]


def test_text_that_is_no_utf8() -> None:
    raw = pa.array([b"\xff\xfeabc", b"ab", None]).cast(pa.binary())
    column = pa.Array.from_buffers(pa.string(), 3, raw.buffers())
    found = convert_leaf(column, OrcType("varchar", max_length=9), OrcType("varchar", max_length=3))
    assert found.to_pylist() == ["\N{REPLACEMENT CHARACTER}" * 2 + "a", "ab", None]
