"""Every layout that Hive has written: insert-only tables, schema changes, streaming, odd names; by hand-made tables.

What Hive itself judges is in tests/oracle and tests/scenarios/written_by_hive; originals and raw directories are in
test_files_without_ids.py.
"""

from __future__ import annotations

import bz2
import gzip
import io
import subprocess
import sys
import zlib
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import orc
from pyarrow import parquet as pq
from support.compacting import plan_compaction, run_compaction
from support.files.acid_files import B0, events_batch, inserts, struct, write_acid, write_plain
from support.tables import json_rows, read_rows, snapshot_of

from acidctl.acid.compaction_kind import CompactionKind, Hive
from acidctl.acid.writeids import ValidTxns, ValidWriteIds
from acidctl.base.errors import AcidctlError, BadDataError, RefusedError
from acidctl.compaction.output_settings import Writing
from acidctl.orc.read.wide_timestamps import WIDE_STORAGE, WideTimestamp
from acidctl.orc.types import ACID_COLUMNS, OrcType
from acidctl.rows.scan.scan import Scan

INT, LONG, TEXT = OrcType("int"), OrcType("bigint"), OrcType("string")


TEXTS = struct(a=INT, b=TEXT)
FOR_HIVE_2 = Writing(reader=Hive.HIVE2)


def rows(table: Path, write_ids: ValidWriteIds | None = None, txns: ValidTxns | None = None) -> list[dict[str, Any]]:
    return [row for _, row in read_rows(table, write_ids, txns)]


def values(table: Path, write_ids: ValidWriteIds | None = None, txns: ValidTxns | None = None) -> list[int]:
    return sorted(row["a"] for row in rows(table, write_ids, txns))


def run(*arguments: object) -> str:
    """What a command prints."""
    command = [sys.executable, "-m", "acidctl", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


# --- insert-only tables --------------------------------------------------------------------------------------------


def some(*numbers: int) -> list[dict[str, Any]]:
    return [{"a": number, "b": f"s{number}"} for number in numbers]


@pytest.fixture
def insert_only(tmp_path: Path) -> Path:
    table = tmp_path / "mm"
    write_plain(table / "delta_0000001_0000001_0000" / "000000_0", *some(1))
    write_plain(table / "delta_0000002_0000002_0000" / "HIVE_UNION_SUBDIR_1" / "000000_0", *some(2))
    write_plain(table / "delta_0000002_0000002_0000" / "HIVE_UNION_SUBDIR_2" / "part-00000.orc", *some(3))
    (table / "delta_0000002_0000002_0000" / "000001_0").write_bytes(b"")
    write_plain(table / "delta_0000003_0000003_0000" / "000000_0", *some(4))
    return table


def test_insert_only_deltas_count_by_their_names(insert_only: Path) -> None:
    assert values(insert_only) == [1, 2, 3, 4]
    assert values(insert_only, ValidWriteIds(2)) == [1, 2, 3]
    assert values(insert_only, ValidWriteIds(3, open=(2,))) == [1, 4]
    assert values(insert_only, ValidWriteIds(3, aborted=(2,))) == [1, 4]
    write_plain(insert_only / "base_0000003" / "000000_0", *some(9))  # INSERT OVERWRITE
    assert values(insert_only) == [9]
    assert values(insert_only, ValidWriteIds(3, open=(3,))) == [1, 2, 3]


@pytest.mark.parametrize("lists", [((), (5,)), ((5,), ()), ((), (1, 2, 3, 4))])
def test_compacted_insert_only_deltas_count_wholly(tmp_path: Path, lists: tuple[tuple[int, ...], ...]) -> None:
    """No row of theirs has a write id, so none can be filtered."""
    write_plain(tmp_path / "delta_0000001_0000005_v0000009" / "000000_0", *some(1, 2))
    write_ids = ValidWriteIds(5, open=lists[0], aborted=lists[1])
    assert values(tmp_path, write_ids) == [1, 2]
    assert values(tmp_path, write_ids, ValidTxns(9, open=(9,))) == []


def test_compacted_insert_only_base_counts_wholly(tmp_path: Path) -> None:
    write_plain(tmp_path / "base_0000005_v0000009" / "000000_0", *some(1, 2))
    assert values(tmp_path, ValidWriteIds(6, aborted=(5,))) == [1, 2]


PARQUET = pa.table(
    {
        "a": pa.array([1, None, 3], pa.int32()),
        "b": ["x", "", None],
        "s": pa.array([{"t": 1, "l": [1, None]}, None, {"t": None, "l": None}]),
        "m": pa.array([[("k", Decimal("1.50"))], [], None], pa.map_(pa.string(), pa.decimal128(38, 2))),
        "ts": pa.array([0, 253_402_300_799_000_000, None], pa.timestamp("us")),
        "d": pa.array([0, -719_162, None], pa.date32()),
        "u": pa.array([2**32 - 1, 0, None], pa.uint32()),
    }
)
PARQUET_ROWS = [
    {"a": 1, "b": "x", "s": {"t": 1, "l": [1, None]}, "m": [{"_key": "k", "_value": "1.5"}],
     "ts": "1970-01-01 00:00:00.0", "d": "1970-01-01", "u": 2**32 - 1},
    {"a": None, "b": "", "s": None, "m": [], "ts": "9999-12-31 23:59:59.0", "d": "0001-01-01", "u": 0},
    {"a": 3, "b": None, "s": {"t": None, "l": None}, "m": None, "ts": None, "d": None, "u": None},
]  # fmt: skip


@pytest.mark.sampled
@pytest.mark.parametrize("options", [{}, {"use_deprecated_int96_timestamps": True}, {"version": "1.0"}])
def test_insert_only_parquet_is_read_whole_and_by_column(tmp_path: Path, options: dict[str, Any]) -> None:
    delta = tmp_path / "delta_0000001_0000001_0000"
    delta.mkdir()
    pq.write_table(PARQUET, delta / "000000_0", row_group_size=2, **options)
    assert rows(tmp_path) == PARQUET_ROWS
    some_columns = json_rows(Scan(snapshot_of(tmp_path), ["s", "a"]))
    assert some_columns == [{"s": row["s"], "a": row["a"]} for row in PARQUET_ROWS]
    assert '"9999-12-31 23:59:59.0"' in run("cat", tmp_path)
    assert run("dump", "--columns", "rowId,row.b", delta).splitlines()[1] == '{"rowId":1,"row":{"b":""}}'
    assert run("dump", delta / "000000_0") == run("dump", delta)
    assert '"rows": 3' in run("ls", "--rows", "-o", "json", tmp_path)
    second = tmp_path / "delta_0000002_0000002_0000" / "deeper"
    second.mkdir(parents=True)
    pq.write_table(PARQUET, second / "part-0.parquet")
    assert rows(tmp_path) == PARQUET_ROWS * 2
    plan = plan_compaction(snapshot_of(tmp_path), CompactionKind.MAJOR, "_tmp_x")
    assert [type(task).__name__ for task in plan.tasks] == ["ConcatTask"]


def test_parquet_of_nanoseconds_in_96_bits(tmp_path: Path) -> None:
    delta = tmp_path / "delta_1_1_0"
    delta.mkdir()
    table = pa.table({"t": pa.array([1_234_567_891], pa.timestamp("ns"))})
    pq.write_table(table, delta / "000000_0", use_deprecated_int96_timestamps=True)
    assert rows(tmp_path) == [{"t": "1970-01-01 00:00:01.234567891"}]


def test_parquet_of_96_bits_keeps_nanoseconds_in_every_year(tmp_path: Path) -> None:
    """A time before 1970 with nanoseconds, and one that 64 bits of nanoseconds do not hold beside one that they do."""
    delta = tmp_path / "delta_1_1_0"
    delta.mkdir()
    old = pa.table({"t": pa.array([-1, 1_234_567_891], pa.timestamp("ns"))})
    pq.write_table(old, delta / "000000_0", use_deprecated_int96_timestamps=True)
    assert [row["t"] for row in rows(tmp_path)] == ["1969-12-31 23:59:59.999999999", "1970-01-01 00:00:01.234567891"]
    far = {"t": [datetime(9999, 12, 31), None, datetime(1, 1, 1)], "n": [[{"x": datetime(2300, 1, 1)}], None, []]}
    kind = pa.schema({"t": pa.timestamp("us"), "n": pa.list_(pa.struct({"x": pa.timestamp("us")}))})
    pq.write_table(pa.table(far, kind), delta / "000000_0", use_deprecated_int96_timestamps=True)
    assert rows(tmp_path) == [
        {"t": "9999-12-31 00:00:00.0", "n": [{"x": "2300-01-01 00:00:00.0"}]}, {"t": None, "n": None},
        {"t": "0001-01-01 00:00:00.0", "n": []},
    ]  # fmt: skip
    # Java can write what Arrow cannot: nanoseconds of the day, then the Julian day, of 2300-01-01.
    data = (delta / "000000_0").read_bytes()
    day = (2_561_118).to_bytes(4, "little")
    midnight, later = ((nanos).to_bytes(8, "little") + day for nanos in (0, 7))
    assert data.count(midnight) == 1
    (delta / "000000_0").write_bytes(data.replace(midnight, later))
    assert rows(tmp_path)[0]["n"] == [{"x": "2300-01-01 00:00:00.000000007"}]


def hadoop_snappy(data: bytes) -> bytes:
    """Hadoop's block format, in two blocks, the first of two chunks."""
    codec = pa.Codec("snappy")
    found = b""
    for block in ((data[:5], data[5:9]), (data[9:],)):
        found += sum(map(len, block)).to_bytes(4, "big")
        for chunk in block:
            packed = codec.compress(chunk, asbytes=True)
            found += len(packed).to_bytes(4, "big") + packed
    return found


TEXT_LINES = b"1\x01one\n\n2\x01\\N\r\n3\x01caf\xc3\xa9\r4\x01\xff\nlast"
EXPECTED_LINES = ["1\x01one", "", "2\x01\\N", "3\x01café", "4\x01\ufffd", "last"]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("000000_0", TEXT_LINES),
        ("000000_0.gz", gzip.compress(TEXT_LINES[:9], mtime=0) + gzip.compress(TEXT_LINES[9:], mtime=0)),
        ("000000_0.bz2", bz2.compress(TEXT_LINES)),
        ("000000_0.deflate", zlib.compress(TEXT_LINES)),
        ("000000_0.zst", pa.Codec("zstd").compress(TEXT_LINES, asbytes=True)),
    ],
)
def test_insert_only_text_is_read_packed_or_not(
    tmp_path: Path, name: str, data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    delta = tmp_path / "delta_0000001_0000001_0000"
    delta.mkdir()
    (delta / name).write_bytes(data)
    for block in (8 << 20, 16, 1):
        monkeypatch.setattr("acidctl.rows.foreign.text_reader._BLOCK", block)
        assert rows(tmp_path) == [{"line": line} for line in EXPECTED_LINES]
    if name not in ("000000_0", "000000_0.gz"):
        return
    assert len(run("dump", delta / name).splitlines()) == len(EXPECTED_LINES)
    assert run("cat", "--columns", "line", "--limit", "1", tmp_path) == '{"line":"1\\u0001one"}\n'
    assert '"rows": null' in run("ls", "--rows", "-o", "json", tmp_path)
    assert "delta_0000001" in run("ls", "--rows", tmp_path)


def test_text_in_hadoops_frames_is_refused_by_name(tmp_path: Path) -> None:
    delta = tmp_path / "delta_1_1"
    delta.mkdir()
    (delta / "000000_0.snappy").write_bytes(hadoop_snappy(TEXT_LINES))
    with pytest.raises(BadDataError, match=r"000000_0\.snappy cannot be read"):
        rows(tmp_path)


def test_text_that_is_cut_short(tmp_path: Path) -> None:
    delta = tmp_path / "delta_1_1"
    delta.mkdir()
    for name, data in (("a.snappy", hadoop_snappy(TEXT_LINES)), ("a.bz2", bz2.compress(TEXT_LINES))):
        (delta / name).write_bytes(data[:-5])
        with pytest.raises(BadDataError, match=name):
            rows(tmp_path)
        (delta / name).unlink()


def test_formats_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    delta = tmp_path / "delta_1_1"
    delta.mkdir()
    for data, name in ((b"Obj\x01...", "Avro"), (b"SEQ\x06...", "SequenceFile"), (b"\0\1\2" * 9, "000000_0")):
        (delta / "000000_0").write_bytes(data)
        with pytest.raises(BadDataError, match=name):
            rows(tmp_path)


def test_a_damaged_orc_file_is_no_text(tmp_path: Path) -> None:
    file = write_plain(tmp_path / "delta_1_1" / "000000_0", *some(1))
    whole = file.read_bytes()
    for damaged in (whole[:-20], b"XXX" + whole[3:-9] + b"ORC" + whole[-3:]):
        file.write_bytes(damaged)
        with pytest.raises(BadDataError, match="000000_0"):
            rows(tmp_path)


def test_full_acid_tables_are_orc(tmp_path: Path) -> None:
    write_acid(tmp_path / "delta_1_1_0" / "bucket_00000", *inserts(1, *some(1)), row=TEXTS)
    (tmp_path / "delta_2_2_0").mkdir()
    (tmp_path / "delta_2_2_0" / "000000_0").write_text("not ORC\n")
    with pytest.raises(BadDataError, match="000000_0"):
        rows(tmp_path)


def test_insert_only_orc_is_not_compacted(insert_only: Path) -> None:
    before = sorted(insert_only.rglob("*"))
    for kind in CompactionKind:
        with pytest.raises(RefusedError, match="insert-only"):
            plan_compaction(snapshot_of(insert_only), kind, "_tmp_x")
    assert sorted(insert_only.rglob("*")) == before


# --- full ACID: what is in a directory ------------------------------------------------------------------------------


def test_delete_deltas_over_deltas_of_version_1(tmp_path: Path) -> None:
    """A table of Hive 2 that went on with split update: update events and delete deltas of the same rows."""
    write_acid(
        tmp_path / "delta_1_1" / "bucket_00000",
        *[(0, 1, 0, i, 1, row) for i, row in enumerate(some(0, 1, 2, 3))],
        row=TEXTS,
    )
    write_acid(tmp_path / "delta_2_2" / "bucket_00000", (1, 1, 0, 1, 2, some(11)[0]), (2, 1, 0, 2, 2, None), row=TEXTS)
    write_acid(tmp_path / "delete_delta_0000003_0000003_0000" / "bucket_00000", (2, 1, 0, 1, 3, None), row=TEXTS)
    write_acid(tmp_path / "delta_3_3_0" / "bucket_00000", (0, 3, 0, 0, 3, some(21)[0]), row=TEXTS)
    assert values(tmp_path) == [0, 3, 21]
    assert values(tmp_path, ValidWriteIds(3, aborted=(3,))) == [0, 3, 11]
    assert values(tmp_path, ValidWriteIds(1)) == [0, 1, 2, 3]
    assert run_compaction(tmp_path, CompactionKind.MAJOR, writing=FOR_HIVE_2)
    assert values(tmp_path) == [0, 3, 21]


def test_open_aborted_and_committed_in_one_delta(tmp_path: Path) -> None:
    events = [event for i in range(1, 6) for event in inserts(i, *some(10 * i, 10 * i + 1))]
    write_acid(tmp_path / "delta_1_5" / "bucket_00000", *events, row=TEXTS)
    write_acid(
        tmp_path / "delete_delta_0000006_0000008" / "bucket_00000",
        *[(2, i, B0, 0, 5 + i, None) for i in (1, 2, 3)],
        row=TEXTS,
    )
    assert values(tmp_path, ValidWriteIds(8, open=(2, 7), aborted=(4, 6))) == [10, 11, 31, 50, 51]
    assert values(tmp_path, ValidWriteIds(3)) == [10, 11, 20, 21, 30, 31]
    assert values(tmp_path) == [11, 21, 31, 40, 41, 50, 51]


@pytest.mark.parametrize(("insert", "delete"), [("_0", ""), ("_0", "_3"), ("", "_0")])
def test_deletes_meet_inserts_whatever_the_attempt_ids_of_files(tmp_path: Path, insert: str, delete: str) -> None:
    write_acid(tmp_path / "delta_1_1_0" / f"bucket_00000{insert}", *inserts(1, *some(1, 2)), row=TEXTS)
    write_acid(
        tmp_path / "delete_delta_0000002_0000002_0000" / f"bucket_00000{delete}", (2, 1, B0, 0, 2, None), row=TEXTS
    )
    assert values(tmp_path) == [2]
    assert run_compaction(tmp_path, CompactionKind.MAJOR)
    assert [path.name for path in (tmp_path / "base_0000002").glob("bucket*")] == ["bucket_00000"]
    assert values(tmp_path) == [2]


def renamed(path: Path, names: Sequence[str]) -> None:
    """The six columns by other names, and no user metadata."""
    table = orc.read_table(path)
    orc.write_table(table.rename_columns(list(names)), path)


def test_lower_case_columns_without_user_metadata(tmp_path: Path) -> None:
    lower = [name.lower() for name in ACID_COLUMNS]
    renamed(write_acid(tmp_path / "delta_1_1_0" / "bucket_00000", *inserts(1, *some(1, 2)), row=TEXTS), lower)
    renamed(
        write_acid(tmp_path / "delete_delta_0000002_0000002_0000" / "bucket_00000", (2, 1, B0, 0, 2, None), row=TEXTS),
        lower,
    )
    assert read_rows(tmp_path) == [((1, B0, 1), {"a": 2, "b": "s2"})]
    assert run("dump", "--columns", "rowId,currentTransaction", tmp_path / "delta_1_1_0").count("\n") == 2
    write_acid(tmp_path / "delta_3_3_0" / "bucket_00000", *inserts(3, *some(3)), row=TEXTS)
    assert run_compaction(tmp_path, CompactionKind.MINOR)
    assert values(tmp_path) == [2, 3]


@pytest.mark.parametrize("delete_row", [struct(), struct(x=struct(y=TEXT)), struct(a=TEXT, b=INT, c=INT)])
def test_delete_deltas_declare_what_they_like(tmp_path: Path, delete_row: OrcType) -> None:
    write_acid(tmp_path / "delta_1_1_0" / "bucket_00000", *inserts(1, *some(1, 2)), row=TEXTS)
    write_acid(tmp_path / "delete_delta_0000002_0000002_0000" / "bucket_00000", (2, 1, B0, 0, 2, None), row=delete_row)
    write_acid(tmp_path / "delta_3_3_0" / "bucket_00000", *inserts(3, *some(3)), row=TEXTS)
    for kind in (None, CompactionKind.MINOR, CompactionKind.MAJOR):
        assert kind is None or run_compaction(tmp_path, kind)
        assert rows(tmp_path) == some(2, 3)


def test_insert_overwrite_hides_what_is_below(tmp_path: Path) -> None:
    write_acid(tmp_path / "delta_1_1_0" / "bucket_00000", *inserts(1, *some(1)), row=TEXTS)
    write_acid(tmp_path / "base_0000002" / "bucket_00000", *inserts(2, *some(2)), row=TEXTS)
    write_acid(tmp_path / "delta_3_3_0" / "bucket_00000", *inserts(3, *some(3)), row=TEXTS)
    assert values(tmp_path) == [2, 3]
    assert values(tmp_path, ValidWriteIds(3, open=(2,))) == [1, 3]
    assert values(tmp_path, ValidWriteIds(3, aborted=(2,))) == [1, 3]
    (tmp_path / "base_0000004").mkdir()
    assert values(tmp_path) == []
    assert values(tmp_path, ValidWriteIds(4, aborted=(4,))) == [2, 3]


def test_streaming_files_end_at_the_last_whole_length(tmp_path: Path) -> None:
    """Two commits: what the first footer leads to is a file of its own, and both lengths are good ones."""
    one = write_acid(tmp_path / "one", *inserts(1, *some(1)), row=TEXTS).read_bytes()
    file = write_acid(tmp_path / "t" / "delta_0000001_0000003" / "bucket_00000", *inserts(1, *some(1)), row=TEXTS)
    file.write_bytes(one + b"torn stripe of write id 2")
    side = file.with_name("bucket_00000_flush_length")
    length = len(one).to_bytes(8, "big")
    for numbers, wanted in ((bytes(8) + length, [1]), (bytes(8) + length + b"\0" * 7, [1]), (bytes(8), [])):
        side.write_bytes(numbers)
        assert values(tmp_path / "t") == wanted
        assert str(len(wanted)) in run("ls", "--rows", "-o", "csv", tmp_path / "t")
    for numbers in (b"", b"\0" * 7, (10**9).to_bytes(8, "big")):
        side.write_bytes(numbers)
        with pytest.raises(AcidctlError, match=r"flush.length"):
            values(tmp_path / "t")


def test_side_files_elsewhere_mean_nothing(tmp_path: Path) -> None:
    for name in ("delta_1_1_0", "delta_2_4_v0000007"):
        file = write_acid(tmp_path / name / "bucket_00000", *inserts(int(name[6]), *some(int(name[6]))), row=TEXTS)
        file.with_name("bucket_00000_flush_length").write_bytes(bytes(8))
    assert values(tmp_path) == [1, 2]


# --- one table, several schemas --------------------------------------------------------------------------------------


def evolved(tmp_path: Path, old: OrcType, before: Any, new: OrcType, after: Any) -> list[Any]:
    """Column `c` after an old and a new row were written; the same again after a major compaction."""
    write_acid(tmp_path / "delta_1_1_0" / "bucket_00000", *inserts(1, {"c": before}), row=struct(c=old))
    write_acid(tmp_path / "delta_2_2_0" / "bucket_00000", *inserts(2, {"c": after}), row=struct(c=new))
    found = [row["c"] for row in rows(tmp_path)]
    assert run_compaction(tmp_path, CompactionKind.MAJOR, columns=struct(c=new))
    assert [row["c"] for row in rows(tmp_path)] == found
    return found


DEEP_OLD = struct(x=INT)
DEEP_NEW = struct(x=LONG, y=TEXT)


@pytest.mark.parametrize(
    ("old", "before", "new", "after", "wanted"),
    [
        (OrcType("tinyint"), 5, LONG, 2**40, [5, 2**40]),
        (OrcType("float"), 0.5, OrcType("double"), 0.1, [0.5, 0.1]),
        (INT, 2**24 + 1, OrcType("float"), 0.5, [16777216.0, 0.5]),
        (INT, -7, TEXT, "x", ["-7", "x"]),
        (OrcType("boolean"), True, TEXT, "x", ["TRUE", "x"]),
        (OrcType("decimal", precision=10, scale=3), Decimal("1.500"), TEXT, "x", ["1.5", "x"]),
        (OrcType("date"), -1, TEXT, "x", ["1969-12-31", "x"]),
        (TEXT, "abc", OrcType("char", max_length=5), "x", ["abc  ", "x    "]),
        (OrcType("varchar", max_length=3), "abc", TEXT, "long text", ["abc", "long text"]),
        (INT, 2**31 - 1, OrcType("decimal", precision=12, scale=2), Decimal("1.25"), [str(2**31 - 1), "1.25"]),
        (
            OrcType("decimal", precision=10, scale=3), Decimal("1.125"),
            OrcType("decimal", precision=38, scale=2), Decimal(10**36 - 1), ["1.13", str(10**36 - 1)],
        ),
        (DEEP_OLD, {"x": 1}, DEEP_NEW, {"x": 2, "y": "z"}, [{"x": 1, "y": None}, {"x": 2, "y": "z"}]),
        (DEEP_OLD, None, DEEP_NEW, {"x": 2, "y": "z"}, [None, {"x": 2, "y": "z"}]),
        (
            OrcType("array", children=(DEEP_OLD,)), [{"x": 1}, None],
            OrcType("array", children=(DEEP_NEW,)), [{"x": 2**40, "y": "z"}],
            [[{"x": 1, "y": None}, None], [{"x": 2**40, "y": "z"}]],
        ),
        (
            OrcType("map", children=(INT, DEEP_OLD)), [(1, {"x": 1})],
            OrcType("map", children=(LONG, DEEP_NEW)), [(2, None)],
            [[{"_key": 1, "_value": {"x": 1, "y": None}}], [{"_key": 2, "_value": None}]],
        ),
    ],
)  # fmt: skip
def test_rows_of_older_schemas_get_the_newest_type(
    tmp_path: Path, old: OrcType, before: Any, new: OrcType, after: Any, wanted: list[Any]
) -> None:
    assert evolved(tmp_path, old, before, new, after) == wanted


@pytest.mark.parametrize(
    ("old", "before", "new", "after", "wanted", "said"),
    [
        (LONG, 2**40, INT, 5, [None, 5], "bigint in c"),
        (INT, 2**24 + 1, OrcType("float"), 0.5, [16777216.0, 0.5], "int in c"),
        (INT, 5, OrcType("double"), 0.5, [5.0, 0.5], "int in c"),
        (TEXT, "abc", INT, 5, [None, 5], "string in c"),
        (OrcType("varchar", max_length=5), "abcde", OrcType("varchar", max_length=2), "x", ["ab", "x"], "varchar in c"),
        (
            OrcType("decimal", precision=10, scale=2),
            Decimal("12345678.12"),
            OrcType("decimal", precision=5, scale=2),
            Decimal("1.25"),
            [None, "1.25"],
            "decimal in c",
        ),
        (DEEP_NEW, {"x": 2, "y": "z"}, DEEP_OLD, {"x": 1}, [{"x": 2}, {"x": 1}], "field y in c"),
        (OrcType("float"), 0.1, OrcType("double"), 0.5, [0.10000000149011612, 0.5], "column c is float"),
        (INT, -7, TEXT, "x", ["-7", "x"], "int in c"),
        (OrcType("boolean"), True, TEXT, "x", ["TRUE", "x"], "boolean in c"),
        (OrcType("timestamp"), 1_500_000_000, TEXT, "x", ["1970-01-01 00:00:01.5", "x"], "timestamp in c"),
    ],
)
def test_what_hive_may_read_otherwise_afterwards_is_not_compacted(
    tmp_path: Path, old: OrcType, before: Any, new: OrcType, after: Any, wanted: list[Any], said: str
) -> None:
    """What the newest type has no room for, as the table may have; and what the two Hives convert differently."""
    write_acid(tmp_path / "delta_1_1_0" / "bucket_00000", *inserts(1, {"c": before}), row=struct(c=old))
    write_acid(tmp_path / "delta_2_2_0" / "bucket_00000", *inserts(2, {"c": after}), row=struct(c=new))
    for kind in CompactionKind:
        with pytest.raises(RefusedError, match=said):
            run_compaction(tmp_path, kind)
        assert [row["c"] for row in rows(tmp_path)] == wanted


def test_what_hive_does_not_convert_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BadDataError, match=r"column c of .*delta_1_1_0"):
        evolved(tmp_path, OrcType("binary"), b"x", INT, 1)


def test_columns_go_by_position(tmp_path: Path) -> None:
    """Names of older inserts, a renamed column, and a third one that was added."""
    write_acid(
        tmp_path / "delta_1_1_0" / "bucket_00000",
        *inserts(1, {"_col0": 1, "_col1": "x"}),
        row=struct(_col0=INT, _col1=TEXT),
    )
    write_acid(
        tmp_path / "delta_2_2_0" / "bucket_00000", *inserts(2, {"id": 2, "_col1": "y"}), row=struct(id=INT, _col1=TEXT)
    )
    new = struct(id=INT, name=TEXT, extra=struct(k=INT))
    write_acid(
        tmp_path / "delta_3_3_0" / "bucket_00000", *inserts(3, {"id": 3, "name": "z", "extra": {"k": 4}}), row=new
    )
    write_acid(
        tmp_path / "delta_4_4_0" / "bucket_00000",
        *inserts(4, {"_col0": 5, "_col1": "w"}),
        row=struct(_col0=INT, _col1=TEXT),
    )
    wanted = [(1, "x", None), (2, "y", None), (3, "z", {"k": 4}), (5, "w", None)]
    assert [tuple(row.values()) for row in rows(tmp_path)] == wanted
    assert list(rows(tmp_path)[0]) == ["id", "name", "extra"]
    assert [row["name"] for row in json_rows(Scan(snapshot_of(tmp_path), ["name"]))] == list("xyzw")
    assert run_compaction(tmp_path, CompactionKind.MAJOR, writing=Writing(reader=Hive.HIVE4))
    assert [tuple(row.values()) for row in rows(tmp_path)] == wanted


def test_a_union_that_is_added_is_null(tmp_path: Path) -> None:
    union = OrcType("uniontype", children=(INT, TEXT))
    write_acid(tmp_path / "delta_1_1_0" / "bucket_00000", *inserts(1, {"a": 1}), row=struct(a=INT))
    events = events_batch(struct(a=INT), *inserts(2, {"a": 2}))
    held = pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.nulls(1, pa.int32()), pa.nulls(1, pa.string())])
    row = pa.StructArray.from_arrays([pa.array([2], pa.int32()), held], names=["a", "u"])
    write_acid(tmp_path / "delta_2_2_0" / "bucket_00000", events.set_column(5, "row", row), row=struct(a=INT, u=union))
    assert rows(tmp_path) == [{"a": 1, "u": None}, {"a": 2, "u": None}]
    assert run_compaction(tmp_path, CompactionKind.MAJOR)
    assert rows(tmp_path) == [{"a": 1, "u": None}, {"a": 2, "u": None}]
    # The first is NULL, the second a union that holds NULL: the footer counts them.
    with open_file(tmp_path / "base_0000002" / "bucket_00000") as file:
        union_column = file.row_type.children[1].column_id
        assert file.tail.footer.statistics[union_column].numberOfValues == 1


def open_file(path: Path) -> Any:
    from acidctl.orc.read.reader import open_orc
    from acidctl.storage.registry import open_location

    return open_orc(*open_location(str(path)))


# --- values ----------------------------------------------------------------------------------------------------------


def test_far_timestamps_meet_near_ones(tmp_path: Path) -> None:
    """Stripes with and without years beyond 64 bits of nanoseconds, merged and compacted."""
    kind = struct(t=OrcType("timestamp"), l=OrcType("array", children=(OrcType("timestamp"),)))
    near = {"t": 1, "l": [2]}
    write_acid(tmp_path / "delta_1_1" / "bucket_00000", *[(0, 1, 0, i, 1, near) for i in (0, 2)], row=kind)
    times = pa.array([{"seconds": 253_402_300_799, "nanos": 999_999_999}], WIDE_STORAGE)
    wide = pa.ExtensionArray.from_storage(WideTimestamp(), times)
    row = pa.StructArray.from_arrays([wide, pa.ListArray.from_arrays([0, 1], wide)], names=["t", "l"])
    events = events_batch(kind, (1, 1, 0, 0, 2, None))
    write_acid(tmp_path / "delta_2_2" / "bucket_00000", events.set_column(5, "row", row), row=kind)
    far = "9999-12-31 23:59:59.999999999"
    wanted = [
        ((1, 0, 0), {"t": far, "l": [far]}),
        ((1, 0, 2), {"t": "1970-01-01 00:00:00.000000001", "l": ["1970-01-01 00:00:00.000000002"]}),
    ]
    assert read_rows(tmp_path) == wanted
    assert run_compaction(tmp_path, CompactionKind.MINOR, writing=FOR_HIVE_2)
    assert read_rows(tmp_path) == wanted
    write_acid(tmp_path / "delta_3_3" / "bucket_00000", (2, 1, 0, 2, 3, None), row=kind)
    assert run_compaction(tmp_path, CompactionKind.MAJOR, writing=FOR_HIVE_2)
    assert read_rows(tmp_path) == wanted[:1]


@pytest.mark.parametrize(("calendar", "day"), [(1, "0001-01-01"), (2, "0000-12-30")])
def test_days_before_the_calendar_changed(tmp_path: Path, calendar: int, day: str) -> None:
    kind = struct(d=OrcType("date"))
    events = inserts(1, {"d": -719_164}, {"d": -141_427}, {"d": None})
    write_acid(tmp_path / "delta_1_1_0" / "bucket_00000", *events, row=kind, calendar=calendar)
    write_acid(tmp_path / "delta_2_2_0" / "bucket_00000", *inserts(2, {"d": 0}), row=kind, calendar=2)
    wanted = [{"d": day}, {"d": "1582-10-15"}, {"d": None}, {"d": "1970-01-01"}]
    assert rows(tmp_path) == wanted
    assert run_compaction(tmp_path, CompactionKind.MAJOR, writing=Writing(reader=Hive.HIVE4))
    assert rows(tmp_path) == wanted


def test_wide_decimals_empty_texts_and_padding(tmp_path: Path) -> None:
    kind = struct(
        d=OrcType("decimal", precision=38, scale=10),
        c=OrcType("char", max_length=4),
        v=OrcType("varchar", max_length=4),
        s=TEXT,
        b=OrcType("binary"),
    )
    most = Decimal("9" * 28 + "." + "9" * 10)
    first = [
        {"d": most, "c": "ab", "v": "ab", "s": "", "b": b""},
        {"d": most.copy_negate(), "c": "", "v": "", "s": " ", "b": b"\0\xff"},
        {"d": None, "c": None, "v": None, "s": None, "b": None},
    ]
    write_acid(tmp_path / "delta_1_1_0" / "bucket_00000", *inserts(1, *first), row=kind)
    write_acid(tmp_path / "delta_2_2_0" / "bucket_00000", *inserts(2, first[2]), row=kind)
    wanted = [
        {"d": str(most), "c": "ab  ", "v": "ab", "s": "", "b": []},
        {"d": str(most.copy_negate()), "c": "    ", "v": "", "s": " ", "b": [0, 255]},
        *[dict.fromkeys("dcvsb")] * 2,
    ]
    assert rows(tmp_path) == wanted
    assert run_compaction(tmp_path, CompactionKind.MAJOR)
    assert rows(tmp_path) == wanted
    assert io.StringIO(run("cat", "-o", "csv", tmp_path)).readlines()[3] == ",,,,\n"


def test_a_key_that_cannot_be_converted_is_an_error(tmp_path: Path) -> None:
    """A map cannot have NULL as a key: Arrow would end the process."""
    for write_id, kind, key in ((1, TEXT, "a"), (2, INT, 1)):
        row = struct(m=OrcType("map", children=(kind, INT)))
        path = tmp_path / f"delta_{write_id:07}_{write_id:07}_0000" / "bucket_00000"
        write_acid(path, *inserts(write_id, {"m": [(key, 1)]}), row=row)
    with pytest.raises(BadDataError, match="a key of the map would be NULL"):
        rows(tmp_path)
