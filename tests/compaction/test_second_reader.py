"""`--verify full` has the first rows of encoded stripes read by a reader that shares nothing with ours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from rows.tables_made import write_deletes, write_delta

from acidctl.acid.triggers import CompactionKind
from acidctl.compaction.second_reader import SAMPLE_ROWS, SecondReader
from acidctl.compaction.verify import Verify
from acidctl.compaction.writing import Writing
from acidctl.errors import VerifyError
from acidctl.orc.types import OrcType
from compaction.helpers import run_compaction

KINDS = ("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string", "binary")
ARROW = (
    pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string(), pa.binary(),
)  # fmt: skip
TYPES = OrcType("struct", children=tuple(map(OrcType, KINDS)), names=tuple(f"c_{kind}" for kind in KINDS))
EDGES: tuple[list[Any], ...] = (
    [True, None], [-128, 127], [-(2**15), None], [2**31 - 1, 0], [-(2**63), 2**63 - 1], [float("nan"), -0.0],
    [float("inf"), 5e-324], ["\U0001f600", ""], [b"\xff\0", None],
)  # fmt: skip


def batch(count: int) -> pa.RecordBatch:
    columns = [pa.array([edges[i % 2] for i in range(count)], kind) for edges, kind in zip(EDGES, ARROW, strict=True)]
    return pa.RecordBatch.from_arrays(columns, names=list(TYPES.names))


@pytest.fixture
def table(tmp_path: Path) -> Path:
    table = tmp_path / "t"
    table.mkdir()
    write_delta(table, TYPES, 1, [batch(SAMPLE_ROWS + 500)])
    write_delta(table, TYPES, 2, [batch(3)])
    write_deletes(table, TYPES, 3, 1, [0, 7])
    return table


@pytest.mark.parametrize("kind", list(CompactionKind))
def test_both_read_the_same(table: Path, kind: CompactionKind) -> None:
    assert run_compaction(table, kind, writing=Writing(verify=Verify.FULL))


def test_what_the_second_one_reads_decides(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = SecondReader._rows

    def other(self: SecondReader, stripe: int) -> Any:
        for number, row in enumerate(rows(self, stripe)):
            yield (*row[:4], 5, *row[5:]) if number == SAMPLE_ROWS - 1 else row

    monkeypatch.setattr(SecondReader, "_rows", other)
    with pytest.raises(VerifyError, match="pyorc reads other values in column c_bigint"):
        run_compaction(table, CompactionKind.MAJOR, writing=Writing(verify=Verify.FULL))
    assert not list(table.glob("base_*"))


def test_segments_are_read_by_it_too(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are encoded in one file and copied into another."""
    monkeypatch.setattr(SecondReader, "_rows", lambda self, stripe: [])
    with pytest.raises(VerifyError, match="pyorc reads other values"):
        run_compaction(table, CompactionKind.MAJOR, writing=Writing(task_bytes=1, verify=Verify.FULL))


def test_fewer_rows(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = SecondReader._rows
    monkeypatch.setattr(SecondReader, "_rows", lambda self, stripe: list(rows(self, stripe))[:10])
    with pytest.raises(VerifyError, match="pyorc reads other values in column row"):
        run_compaction(table, CompactionKind.MAJOR, writing=Writing(verify=Verify.FULL))


def test_what_pyorc_cannot_hold_is_left_out(tmp_path: Path) -> None:
    """Texts that are none, timestamps, unions and nested types are compared by our own reader alone."""
    types = OrcType("struct", children=(OrcType("string"), OrcType("timestamp")), names=("s", "t"))
    text = pa.array([b"\xff\xfe", b"a"], pa.binary()).view(pa.string())
    made = pa.RecordBatch.from_arrays([text, pa.array([0, None], pa.timestamp("ns"))], names=["s", "t"])
    (tmp_path / "t").mkdir()
    for write_id in (1, 2):
        write_delta(tmp_path / "t", types, write_id, [made])
    assert run_compaction(tmp_path / "t", CompactionKind.MAJOR, writing=Writing(verify=Verify.FULL))
