"""`--verify full` has the first rows of encoded stripes read by a reader that shares nothing with ours."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.compacting import run_compaction
from support.files.acid_files import write_deletes, write_delta

from acidctl.acid.compaction_kind import CompactionKind
from acidctl.base.errors import VerifyError
from acidctl.compaction.merge.written import SAMPLE_ROWS, SecondReader
from acidctl.compaction.output_settings import Writing
from acidctl.compaction.proof.checksum import Verify
from acidctl.orc.types import OrcType

TIME = pa.timestamp("us")
INSTANT = pa.timestamp("us", tz="UTC")
TYPED = (
    ("boolean", pa.bool_(), [True, None]),
    ("tinyint", pa.int8(), [-128, 127]),
    ("smallint", pa.int16(), [-(2**15), None]),
    ("int", pa.int32(), [2**31 - 1, 0]),
    ("bigint", pa.int64(), [-(2**63), 2**63 - 1]),
    ("float", pa.float32(), [float("nan"), -0.0]),
    ("double", pa.float64(), [float("inf"), 5e-324]),
    ("string", pa.string(), ["\U0001f600", ""]),
    ("binary", pa.binary(), [b"\xff\0", None]),
    ("char", pa.string(), ["a", "b  "]),
    ("varchar", pa.string(), ["a ", None]),
    ("date", pa.date32(), [date.min, date.max]),
    ("timestamp", TIME, [datetime.min, datetime.max]),
    ("timestamp with local time zone", INSTANT, [datetime(1969, 12, 31, 23, 59, 59, 1, UTC), None]),
    ("decimal", pa.decimal128(38, 10), [Decimal("-9999999999999999999999999999.9999999999"), Decimal("1E-10")]),
)
PARAMETERS = {"char": {"max_length": 3}, "varchar": {"max_length": 3}, "decimal": {"precision": 38, "scale": 10}}
TYPES = OrcType(
    "struct",
    children=tuple(OrcType(kind, **PARAMETERS.get(kind, {})) for kind, _, _ in TYPED),
    names=tuple("c_" + kind.replace(" ", "_") for kind, _, _ in TYPED),
)


def batch(count: int) -> pa.RecordBatch:
    columns = [pa.array([edges[i % 2] for i in range(count)], kind) for _, kind, edges in TYPED]
    return pa.RecordBatch.from_arrays(columns, names=list(TYPES.names))


@pytest.fixture
def table(tmp_path: Path) -> Path:
    table = tmp_path / "t"
    table.mkdir()
    write_delta(table, 1, batch(SAMPLE_ROWS + 500), row=TYPES)
    write_delta(table, 2, batch(3), row=TYPES)
    write_deletes(table, 3, 1, [0, 7], row=TYPES)
    return table


@pytest.mark.parametrize("kind", list(CompactionKind))
def test_both_read_the_same(table: Path, kind: CompactionKind) -> None:
    assert run_compaction(table, kind, writing=Writing(verify=Verify.FULL, reader="hive3"))


@pytest.mark.parametrize(
    "column, value",
    [
        *(("bigint", 5), ("date", -141_428), ("timestamp", {"seconds": -62_135_596_800, "nanos": 1}), ("char", "c")),
        *(
            ("timestamp_with_local_time_zone", {"seconds": 0, "nanos": 0}),
            ("decimal", Decimal("1E-9")),
            ("double", 0.0),
        ),
    ],
)
def test_what_the_second_one_reads_decides(
    table: Path, monkeypatch: pytest.MonkeyPatch, column: str, value: object
) -> None:
    place = TYPES.names.index(f"c_{column}")
    rows = SecondReader._rows

    def other(self: SecondReader, stripe: int) -> Any:
        for number, row in enumerate(rows(self, stripe)):
            yield (*row[:place], value, *row[place + 1 :]) if number == SAMPLE_ROWS - 1 else row

    monkeypatch.setattr(SecondReader, "_rows", other)
    with pytest.raises(VerifyError, match=f"pyorc reads other values in column c_{column}"):
        run_compaction(table, CompactionKind.MAJOR, writing=Writing(verify=Verify.FULL, reader="hive3"))
    assert not list(table.glob("base_*"))


def test_segments_are_read_by_it_too(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are encoded in one file and copied into another."""
    monkeypatch.setattr(SecondReader, "_rows", lambda self, stripe: [])
    with pytest.raises(VerifyError, match="pyorc reads other values"):
        run_compaction(table, CompactionKind.MAJOR, writing=Writing(task_bytes=1, verify=Verify.FULL, reader="hive3"))


def test_missing_rows_fail_the_proof(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = SecondReader._rows
    monkeypatch.setattr(SecondReader, "_rows", lambda self, stripe: list(rows(self, stripe))[:10])
    with pytest.raises(VerifyError, match="pyorc reads other values in column row"):
        run_compaction(table, CompactionKind.MAJOR, writing=Writing(verify=Verify.FULL, reader="hive3"))


def test_what_pyorc_cannot_hold_is_left_out(tmp_path: Path) -> None:
    """Texts that are none and nested types are compared by our own reader alone."""
    types = OrcType(
        "struct", children=(OrcType("string"), OrcType("array", children=(OrcType("int"),))), names=("s", "t")
    )
    text = pa.array([b"\xff\xfe", b"a"], pa.binary()).view(pa.string())
    made = pa.RecordBatch.from_arrays([text, pa.array([[0], None], pa.list_(pa.int32()))], names=["s", "t"])
    (tmp_path / "t").mkdir()
    for write_id in (1, 2):
        write_delta(tmp_path / "t", write_id, made, row=types)
    assert run_compaction(tmp_path / "t", CompactionKind.MAJOR, writing=Writing(verify=Verify.FULL, reader="hive3"))
