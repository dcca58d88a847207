"""Insert-only tables: their files put together hold what they held, by acidctl's, Java ORC's and Spark's readers."""

from __future__ import annotations

import datetime
import gzip
import json
import pickle
import re
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet as pq
from support.files.acid_files import batch_of, struct, write_plain
from support.tables import json_rows, snapshot_of

from acidctl.acid.compaction_kind import CompactionKind, Hive
from acidctl.base.errors import AcidctlError, BadDataError, RefusedError, VerifyError
from acidctl.compaction.concat import insert_only, parquet
from acidctl.compaction.concat.insert_only import run_concat
from acidctl.compaction.concat.parquet import renamed
from acidctl.compaction.merge import written
from acidctl.compaction.output_settings import Writing
from acidctl.compaction.plan_tasks import plan_tasks
from acidctl.compaction.proof.checksum import Verify
from acidctl.compaction.tasks import BucketResult, ConcatTask
from acidctl.location.metastore_schema import Declared, TextLayout
from acidctl.location.snapshot import Snapshot
from acidctl.orc.byte_source import ByteSource
from acidctl.orc.read.union_nulls import with_nulls
from acidctl.orc.read.wide_timestamps import wide
from acidctl.orc.tail import Tail, read_tail
from acidctl.orc.types import OrcType, arrow_type, renumbered
from acidctl.orc.write.stripe_encoder import WriterSettings
from acidctl.rows.read.events import EventFile, open_event_files
from acidctl.rows.scan.scan import Scan
from acidctl.storage.registry import open_location

MAJOR = CompactionKind.MAJOR
Columns = tuple[tuple[str, str], ...]
INT, LONG, TEXT = OrcType("int"), OrcType("bigint"), OrcType("string")


def tasks_of(table: Path, directory: Path, columns: Columns = (), **writing: Any) -> list[ConcatTask]:
    directory.mkdir(parents=True, exist_ok=True)
    snapshot = replace(snapshot_of(table), table=Declared(columns, ""))
    sources = open_event_files(snapshot, snapshot.files())
    return concat_tasks(snapshot, sources, directory, Writing(**writing))


def concat_tasks(snapshot: Snapshot, sources: list[EventFile], directory: Path, writing: Writing) -> list[ConcatTask]:
    options: dict[str, Any] = {"insert_only": True, "acid_version": 0, "rebalance": None}
    _, tasks = plan_tasks(snapshot, MAJOR, sources, str(directory), writing, **options)
    return [task for task in tasks if isinstance(task, ConcatTask)]


HIVE4 = Hive.HIVE4
"""Hive 3 does not read folders of a UNION ALL, so they are compacted for Hive 4 alone."""


def concat(table: Path, columns: Columns = (), **writing: Any) -> tuple[Path, list[BucketResult]]:
    """Compact into another table that holds only the result; `columns` are the table's, as in a metastore."""
    directory = table.parent / f"{table.name}_compacted" / "base_0000099"
    results = []
    for task in tasks_of(table, directory, columns, **writing):
        results.append(run_concat(pickle.loads(pickle.dumps(task))))
        if output := results[-1].inserts:
            assert output.name == f"{results[-1].bucket:06d}_0"
            assert Path(output.attempt_path).stat().st_size == output.bytes
            assert output.expected == output.found
            Path(output.attempt_path).rename(directory / output.name)
    return directory.parent, results


def rows_of(table: Path) -> list[str]:
    return sorted(json.dumps(row) for row in json_rows(Scan(snapshot_of(table))))


def tail_of(path: Path) -> Tail:
    fs, inner = open_location(str(path))
    return read_tail(ByteSource(fs, inner))


def assert_same(table: Path, **writing: Any) -> tuple[Path, list[BucketResult]]:
    before = rows_of(table)
    result, results = concat(table, **writing)
    assert rows_of(result) == before
    assert sum(r.inserts.rows for r in results if r.inserts) == len(before)
    return result, results


# --- ORC -------------------------------------------------------------------------------------------------------------

MANY_KINDS = struct(
    b=OrcType("boolean"),
    i=INT,
    d=OrcType("double"),
    s=TEXT,
    c=OrcType("char", max_length=5),
    v=OrcType("varchar", max_length=7),
    raw=OrcType("binary"),
    day=OrcType("date"),
    t=OrcType("timestamp"),
    n=OrcType("decimal", precision=38, scale=3),
    a=OrcType("array", children=(struct(x=INT, y=TEXT),)),
    m=OrcType("map", children=(TEXT, OrcType("array", children=(LONG,)))),
)
FULL = {
    "b": True, "i": -5, "d": -0.0, "s": "zwölf", "c": "ab", "v": "cd", "raw": b"\0\xff",
    "day": datetime.date(1999, 1, 1),
    "t": datetime.datetime(1969, 12, 31, 23, 59, 57, 999000), "n": Decimal("-12345678901234567890.125"),
    "a": [{"x": 1, "y": None}, None], "m": [("k", [1, None]), ("l", None)],
}  # fmt: skip
EMPTY: dict[str, Any] = dict.fromkeys(FULL)


def sample(count: int, start: int = 0) -> list[dict[str, Any]]:
    return [EMPTY if i % 5 == 0 else {**FULL, "i": i, "s": f"text {i}"} for i in range(start, start + count)]


@pytest.fixture
def orc_table(tmp_path: Path) -> Path:
    """Two buckets, a union directory, an empty file, a name of no pattern; a stripe that is worth copying."""
    table = tmp_path / "t"
    for write_id in (1, 2, 3):
        write_plain(
            table / f"delta_000000{write_id}_000000{write_id}_0000" / "000000_0",
            batch_of(MANY_KINDS, *sample(100, 100 * write_id)),
            batch_of(MANY_KINDS, *sample(3)),
            row=MANY_KINDS,
            metadata={"keep": b"1", "differs": str(write_id).encode(), "hive.acid.version": b"2"},
        )
    write_plain(table / "delta_0000004_0000004_0000" / "000001_0", batch_of(MANY_KINDS, *sample(7)), row=MANY_KINDS)
    write_plain(table / "delta_0000004_0000004_0000" / "000002_0", row=MANY_KINDS)
    union = table / "delta_0000005_0000005_0000" / "HIVE_UNION_SUBDIR_1"
    write_plain(union / "000001_0", batch_of(MANY_KINDS, *sample(2)), row=MANY_KINDS)
    write_plain(table / "delta_0000006_0000006_0000" / "odd-name", batch_of(MANY_KINDS, *sample(2)), row=MANY_KINDS)
    return table


@pytest.mark.parametrize("full", [False, True])
def test_orc_files_of_a_bucket_become_one_with_the_same_rows(orc_table: Path, full: bool) -> None:
    result, results = assert_same(orc_table, reader=HIVE4, verify=Verify.FULL if full else Verify.KEYS)
    assert [(r.bucket, r.rows_read, r.rows_dropped, r.inserts and r.inserts.stripes) for r in results] == [
        (0, 311, 0, 1), (1, 9, 0, 1), (2, 0, 0, None),
    ]  # fmt: skip
    tail = tail_of(result / "base_0000099" / "000001_0")
    assert tail.type_tree == renumbered(MANY_KINDS)
    assert not tail.user_metadata
    assert sorted(path.name for path in (result / "base_0000099").iterdir()) == ["000000_0", "000001_0"]


@pytest.mark.parametrize("full", [False, True])
def test_large_stripes_are_copied_and_small_ones_joined(
    orc_table: Path, full: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    lengths = [info.indexLength + info.dataLength + info.footerLength for info in tail_of(
        orc_table / "delta_0000001_0000001_0000" / "000000_0").stripes]  # fmt: skip
    monkeypatch.setattr(written, "SMALL_STRIPE", max(lengths))
    for name in ("delta_0000004_0000004_0000", "delta_0000005_0000005_0000", "delta_0000006_0000006_0000"):
        (orc_table / name).rename(orc_table / f"_{name}")
    result, results = assert_same(orc_table, verify=Verify.FULL if full else Verify.KEYS)
    assert results[0].inserts
    # A lone small stripe between two that are copied is copied as well.
    assert (results[0].inserts.stripes, results[0].inserts.stripes_copied) == (6, 6)
    assert tail_of(result / "base_0000099" / "000000_0").user_metadata == {"keep": b"1"}


@pytest.mark.parametrize(
    ("older", "copied"),
    [
        ({}, 2),
        ({"stride": 1000}, 1),
        ({"stride": 0}, 1),
        ({"compression": "snappy"}, 1),
        ({"block_size": 512 * 1024}, 2),
    ],
    ids=str,
)
def test_stripes_are_copied_only_where_settings_agree(
    older: dict[str, Any], copied: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(written, "SMALL_STRIPE", 0)
    table = tmp_path / "t"
    ab = struct(a=INT, b=TEXT)
    rows = batch_of(ab, *({"a": i, "b": f"b{i}"} for i in range(500)))
    write_plain(table / "delta_1_1_0" / "000000_0", rows, row=ab, settings=WriterSettings(**older))
    write_plain(table / "delta_2_2_0" / "000000_0", rows, row=ab)
    result, results = assert_same(table)
    assert results[0].inserts
    assert results[0].inserts.stripes_copied == copied
    assert tail_of(result / "base_0000099" / "000000_0").block_size == older.get("block_size", 256 * 1024)


def test_settings_of_the_user_encode_everything(orc_table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(written, "SMALL_STRIPE", 0)
    result, results = assert_same(orc_table, reader=HIVE4, overrides={"compression": "zstd", "stripe_size": 4096})
    assert results[0].inserts
    assert results[0].inserts.stripes > 2
    assert results[0].inserts.stripes_copied == 0
    assert tail_of(result / "base_0000099" / "000000_0").compression == "zstd"


def test_columns_that_came_later_and_wider_numbers(tmp_path: Path) -> None:
    table = tmp_path / "t"
    old, new = (
        struct(_col0=INT, _col1=OrcType("char", max_length=3)),
        struct(a=LONG, b=OrcType("char", max_length=6), c=TEXT),
    )
    write_plain(table / "delta_1_1_0" / "000000_0", batch_of(old, {"_col0": 1, "_col1": "x"}), row=old)
    write_plain(table / "delta_2_2_0" / "000000_0", batch_of(new, {"a": 2**40, "b": "y", "c": "z"}), row=new)
    with pytest.raises(RefusedError, match="numbers its columns"):
        concat(table, verify=Verify.FULL)
    result, _ = concat(table, verify=Verify.FULL, reader=Hive.HIVE4)
    assert rows_of(result) == [
        '{"a": 1, "b": "x     ", "c": null}', '{"a": 1099511627776, "b": "y     ", "c": "z"}',
    ]  # fmt: skip
    assert tail_of(result / "base_0000099" / "000000_0").type_tree == renumbered(new)


@pytest.mark.parametrize("small", [0, 1 << 20])
def test_unions_and_times_of_any_year(small: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns whose Arrow type differs from stripe to stripe."""
    monkeypatch.setattr(written, "SMALL_STRIPE", small)
    row = struct(u=OrcType("uniontype", children=(INT, TEXT)), t=OrcType("timestamp"), i=INT)
    table = tmp_path / "t"
    for i, (year, null) in enumerate([(2020, False), (9999, True), (2020, True)], 1):
        members = [pa.array([1, None, 3], pa.int32()), pa.array([None, "b", None])]
        tags = np.array([0, 1, 0], np.int8)
        union = with_nulls(tags, members, np.array([False, False, null]))
        moments = pa.array([(year - 1970) * 31_556_952, None, 5], pa.int64())
        times = wide(moments.fill_null(0).to_numpy(), np.array([7_000_000, 0, 0]), moments, False)
        rows = pa.RecordBatch.from_arrays([union, times, pa.array([i, i, i], pa.int32())], names=list(row.names))
        write_plain(table / f"delta_{i}_{i}_0" / "000000_0", rows, row=row)
    _, results = assert_same(table, verify=Verify.FULL)
    assert results[0].inserts
    assert results[0].inserts.stripes == (1 if small else 3)


def test_days_keep_their_meaning_where_calendars_differ(tmp_path: Path) -> None:
    """Files of old Hive keep their numbers of days; beside others they are moved, for Hive 4 alone."""
    day = struct(d=OrcType("date"))
    old = batch_of(day, {"d": datetime.date(1200, 3, 1)})
    for name, calendars in (("same", (1, 1)), ("mixed", (1, 2))):
        table = tmp_path / name
        for i, calendar in enumerate(calendars, 1):
            write_plain(table / f"delta_{i}_{i}_0" / "000000_0", old, row=day, calendar=calendar)
        result, _ = assert_same(table, reader="hive4")
        wanted = "julian_gregorian" if name == "same" else "proleptic_gregorian"
        assert tail_of(result / "base_0000099" / "000000_0").calendar == wanted


def test_originals_are_joined_and_files_without_rows_left_out(tmp_path: Path) -> None:
    table = tmp_path / "t"
    ab = struct(a=INT)
    write_plain(table / "000000_0", batch_of(ab, {"a": 1}), row=ab)
    write_plain(table / "000000_0_copy_1", batch_of(ab, {"a": 2}), row=ab)
    write_plain(table / "delta_1_1_0" / "000000_0", row=struct())
    result, _ = assert_same(table)
    assert rows_of(result) == ['{"a": 1}', '{"a": 2}']
    empty = tmp_path / "empty"
    write_plain(empty / "delta_1_1_0" / "000000_0", row=ab)
    (empty / "delta_2_2_0").mkdir()
    (empty / "delta_2_2_0" / "000000_0").write_bytes(b"")
    _, results = concat(empty)
    assert [(r.inserts, r.deletes, r.rows_read) for r in results] == [(None, None, 0)]


def flip(path: Path, offset: int) -> None:
    data = bytearray(path.read_bytes())
    data[offset] ^= 0x40
    path.write_bytes(data)


@pytest.mark.parametrize("what", ["copied", "encoded", "parquet"])
def test_what_was_not_written_right_is_noticed(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tmp_path / "t"
    ab = struct(a=INT)
    rows = batch_of(ab, *({"a": i} for i in range(1000)))
    for i in (1, 2):
        path = table / f"delta_{i}_{i}_0" / "000000_0"
        if what == "parquet":
            write_parquet_file(path, pa.Table.from_batches([rows]))
        else:
            write_plain(path, rows, row=ab, settings=WriterSettings(compression="none"))
    monkeypatch.setattr(written, "SMALL_STRIPE", 0 if what == "copied" else 1 << 20)
    module, name = (parquet, "read_any_tail") if what == "parquet" else (insert_only, "_prove")
    prove = getattr(module, name)

    def spoiled(*arguments: Any) -> Any:
        flip(next((tmp_path / "t_compacted").rglob("*_000000_0")), 40)
        return prove(*arguments)

    monkeypatch.setattr(module, name, spoiled)
    with pytest.raises((VerifyError, BadDataError)) as caught:
        concat(table)
    assert isinstance(caught.value, VerifyError) or what != "copied"


def test_a_lost_row_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tmp_path / "t"
    rows = pa.table({"a": list(range(1000))})
    write_parquet_file(table / "delta_1_1_0" / "000000_0", rows)
    as_stored = parquet._as_stored
    monkeypatch.setattr(parquet, "_as_stored", lambda *arguments: as_stored(*arguments).slice(1))
    with pytest.raises(VerifyError, match="1000 rows were to be written and 999 are there"):
        concat(table)


# --- refused ---------------------------------------------------------------------------------------------------------


def test_text_and_mixed_formats_are_refused(tmp_path: Path) -> None:
    table = tmp_path / "t"
    (table / "delta_1_1_0").mkdir(parents=True)
    (table / "delta_1_1_0" / "000000_0").write_text("1,2\n")
    with pytest.raises(RefusedError, match="is text") as caught:
        tasks_of(table, tmp_path)
    assert "metastore" in caught.value.hint
    write_parquet_file(table / "delta_2_2_0" / "000000_0", pa.table({"a": [1]}))
    with pytest.raises(RefusedError, match=r"delta_1_1_0/000000_0 is text, .*delta_2_2_0/000000_0 is Parquet"):
        tasks_of(table, tmp_path)


# --- text ------------------------------------------------------------------------------------------------------------


def declared(**more: Any) -> Declared:
    """What a metastore says of text of two columns."""
    return Declared((("a", "string"), ("b", "string")), "text", TextLayout((("a", "string"), ("b", "string")), **more))


def concat_text(table: Path, said: Declared, **writing: Any) -> list[bytes]:
    """What becomes of the files of each bucket."""
    attempts = table.parent / "attempts"
    attempts.mkdir(exist_ok=True)
    snapshot = replace(snapshot_of(table), declared=said)
    sources = open_event_files(snapshot, snapshot.files())
    made = []
    for task in concat_tasks(snapshot, sources, attempts, Writing(**writing)):
        if output := run_concat(pickle.loads(pickle.dumps(task))).inserts:
            assert output.expected == output.found
            made.append(Path(output.attempt_path).read_bytes())
            assert len(made[-1]) == output.bytes
    return made


def write_text_files(table: Path, *contents: bytes, name: str = "000000_0") -> None:
    for number, content in enumerate(contents, 1):
        path = table / f"delta_{number}_{number}_0" / name
        path.parent.mkdir(parents=True)
        path.write_bytes(content)


@pytest.mark.parametrize("verify", list(Verify))
@pytest.mark.parametrize(
    ("contents", "wanted"),
    [
        ((b"a\x01b\n", b"c\x01d\n"), b"a\x01b\nc\x01d\n"),
        ((b"a", b"b", b"c"), b"a\nb\nc"),
        ((b"a\n\n", b"\nb"), b"a\n\n\nb"),
        ((b"a\r", b"\nb\r\n", b"c"), b"a\r\n\nb\r\nc"),
        ((b"\xef\xbb\xbfa\n", b"\xef\xbb\xbfb"), b"a\nb"),
        ((b"", b"a", b""), b"a"),
        ((b"\x00\xff\n",), b"\x00\xff\n"),
    ],
)
def test_lines_of_text_stay_what_they_are(
    tmp_path: Path, contents: tuple[bytes, ...], wanted: bytes, verify: Verify
) -> None:
    write_text_files(tmp_path / "t", *contents)
    assert concat_text(tmp_path / "t", declared(), verify=verify) == [wanted]


@given(st.lists(st.text("ab\r\n\x01", max_size=12).map(str.encode), min_size=1, max_size=5))
def test_no_line_is_lost_or_made_whatever_ends_it(contents: list[bytes]) -> None:
    def lines(text: bytes) -> list[bytes]:
        """As Hadoop counts them."""
        found = re.split(rb"\r\n|\r|\n", text)
        return found[:-1] if not found[-1] else found

    with tempfile.TemporaryDirectory() as folder:
        write_text_files(Path(folder, "t"), *contents)
        made = concat_text(Path(folder, "t"), declared())
    assert [line for text in made for line in lines(text)] == [line for text in contents for line in lines(text)]


@pytest.mark.parametrize(
    ("name", "more", "why"),
    [
        ("000000_0", {"header": 1}, "1 at the top and 0 at the end"),
        ("000000_0", {"footer": 2}, "0 at the top and 2 at the end"),
        ("000000_0.gz", {}, "compressed text"),
    ],
)
def test_text_that_cannot_be_put_together_is_refused(tmp_path: Path, name: str, more: dict[str, int], why: str) -> None:
    content = b"a\x01b\nc\x01d\ne\x01f\n"
    write_text_files(tmp_path / "t", gzip.compress(content) if name.endswith("gz") else content, name=name)
    with pytest.raises(RefusedError, match=why):
        concat_text(tmp_path / "t", declared(**more))


def test_text_that_loses_a_byte_on_its_way_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_text_files(tmp_path / "t", b"a\n", b"b\n")
    monkeypatch.setattr(insert_only, "require_bytes", lambda *_: None)
    write = insert_only.SummedSink.write
    monkeypatch.setattr(insert_only.SummedSink, "write", lambda sink, data: write(sink, data.replace(b"a\n", b"aa")))
    with pytest.raises(VerifyError, match="2 lines were to be written, and it has 1"):
        concat_text(tmp_path / "t", declared())


# --- Parquet ---------------------------------------------------------------------------------------------------------


def write_parquet_file(
    path: Path,
    table: pa.Table,
    metadata: dict[str, str] | None = None,
    created_by: str | None = None,
    row_group_size: int | None = None,
    **options: Any,
) -> None:
    """A Parquet file, with another writer's name if wanted."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with pq.ParquetWriter(path, table.schema, **{"store_schema": False, **options}) as writer:
        writer.write_table(table, row_group_size=row_group_size)
        writer.add_key_value_metadata(metadata or {})
    if created_by:
        data = path.read_bytes()
        start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
        path.write_bytes(data[:start] + renamed(data[start:], created_by))


def footer(table: Path, name: str = "000000_0") -> Any:
    return pq.read_metadata(table / "base_0000099" / name)


def parquet_rows(count: int, start: int = 0) -> pa.Table:
    rows = [{name: value for name, value in row.items() if name != "t"} for row in sample(count, start)]
    return pa.Table.from_pylist(rows, pa.schema(list(arrow_rows().items())))


def arrow_rows() -> dict[str, pa.DataType]:
    return {name: arrow_type(kind) for name, kind in MANY_KINDS.fields() if name != "t"}


def test_parquet_files_of_a_bucket_become_one_with_the_same_rows(tmp_path: Path) -> None:
    table = tmp_path / "t"
    for i, codec in ((1, "zstd"), (2, "gzip")):
        for bucket in (0, 1):
            write_parquet_file(
                table / f"delta_{i}_{i}_0" / f"00000{bucket}_0",
                parquet_rows(50, 10 * i),
                {"writer.model.name": f"3.{i}", "writer.date.proleptic": "true", "both": "x", "one": str(i)},
                compression=codec,
                row_group_size=20,
            )
    write_parquet_file(table / "delta_3_3_0" / "000000_0", parquet_rows(0), {"writer.date.proleptic": "false"})
    result, results = assert_same(table)
    found = footer(result)
    assert found.num_row_groups == 1 == results[0].inserts.stripes  # type: ignore[union-attr]
    assert found.row_group(0).column(0).compression == "GZIP"
    assert found.metadata == {b"writer.model.name": b"3.2", b"writer.date.proleptic": b"true", b"both": b"x"}
    assert found.created_by.startswith("parquet-cpp-arrow")


def test_row_groups_end_at_the_size_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "ROW_GROUP", 8000)
    table = tmp_path / "t"
    for i in (1, 2):
        rows = pa.table({"a": pa.array(np.arange(1500)), "b": pa.array([f"b{n}" for n in range(1500)])})
        write_parquet_file(table / f"delta_{i}_{i}_0" / "000000_0", rows, row_group_size=700)
    result, _ = assert_same(table)
    groups = [footer(result).row_group(i).num_rows for i in range(footer(result).num_row_groups)]
    assert sum(groups) == 3000
    assert 4 < len(groups) < 15
    assert not tail_columns(result) - {"BYTE_ARRAY", "INT64"}


def tail_columns(table: Path) -> set[str]:
    found = footer(table)
    return {found.schema.column(i).physical_type for i in range(found.num_columns)}


FAR = datetime.datetime(9999, 12, 31, 23, 59, 59, 999999)
OLD = datetime.datetime(1, 1, 1)
MR = "parquet-mr version 1.10.1 (build a89df8f9932b6ef6633d06069e50c9b7970bebd1)"


def times(*values: Any, unit: str = "us") -> pa.Table:
    array = pa.array(values, pa.timestamp(unit))
    return pa.table({"t": array, "s": pa.StructArray.from_arrays([array], names=["t"]), "n": list(range(len(array)))})


def write_times(path: Path, table: pa.Table, created_by: str | None = MR, **metadata: str) -> None:
    write_parquet_file(path, table, metadata, created_by, use_deprecated_int96_timestamps=True)


def test_timestamps_of_96_bits_stay(tmp_path: Path) -> None:
    table = tmp_path / "t"
    write_times(table / "delta_1_1_0" / "000000_0", times(FAR, None, OLD))
    write_times(table / "delta_2_2_0" / "000000_0", times(datetime.datetime(2020, 2, 2, 2, 2, 2, 123456)))
    result, _ = assert_same(table)
    assert tail_columns(result) == {"INT96", "INT64"}
    assert footer(result).created_by == MR
    fine = tmp_path / "fine"
    for i in (1, 2):
        write_times(fine / f"delta_{i}_{i}_0" / "000000_0", times(123_456_789_123_456_789 * i, None, -1, unit="ns"))
    result, _ = assert_same(fine)
    got = pq.read_table(result / "base_0000099" / "000000_0").column("t").cast(pa.int64()).to_pylist()
    assert got == [123_456_789_123_456_789, None, -1, 2 * 123_456_789_123_456_789, None, -1]


def int96(days: int, nanos: int) -> bytes:
    return nanos.to_bytes(8, "little") + (days + 2_440_588).to_bytes(4, "little")


def test_timestamps_that_cannot_be_kept_are_refused(tmp_path: Path) -> None:
    """A year of 9999 beside nanoseconds elsewhere in the column; nanoseconds in a year of 9999."""
    table = tmp_path / "t"
    write_times(table / "delta_1_1_0" / "000000_0", times(FAR))
    write_times(table / "delta_2_2_0" / "000000_0", times(1_000_000_001, unit="ns"))
    with pytest.raises(RefusedError, match=r"delta_2_2_0.*column t.*finer"):
        concat(table)
    alone = tmp_path / "alone"
    path = alone / "delta_1_1_0" / "000000_0"
    write_parquet_file(path, pa.table({"t": pa.array([FAR])}), use_deprecated_int96_timestamps=True, compression="none",
                       use_dictionary=False, write_statistics=False)  # fmt: skip
    days = (FAR.date() - datetime.date(1970, 1, 1)).days
    data = path.read_bytes()
    old, new = int96(days, 86_399_999_999_000), int96(days, 86_399_999_999_999)
    assert data.count(old) == 1
    path.write_bytes(data.replace(old, new))
    with pytest.raises(RefusedError, match=r"column t.*finer"):
        concat(alone)


@pytest.mark.parametrize(
    ("one", "other", "why"),
    [
        ({"writer_time_zone": "UTC"}, {"writer_time_zone": "Asia/Tokyo"}, "writer.time.zone is UTC in one"),
        ({"writer_time_zone": "UTC"}, {}, "missing in the other"),
        ({"writer_date_proleptic": "true"}, {"writer_date_proleptic": "false"}, "writer.date.proleptic"),
        ({"writer_zone_conversion_legacy": "true"}, {}, "writer.zone.conversion.legacy"),
        ({"org_apache_spark_version": "2.4.8"}, {"org_apache_spark_version": "3.5.0"}, "spark.version is before 3.0"),
        ({"created_by": None}, {}, "parquet-mr"),
    ],
)
def test_footers_that_disagree_are_refused(
    one: dict[str, Any], other: dict[str, Any], why: str, tmp_path: Path
) -> None:
    table = tmp_path / "t"
    for i, options in ((1, one), (2, other)):
        name = options.get("created_by", MR)
        metadata = {key.replace("_", "."): value for key, value in options.items() if key != "created_by"}
        write_times(table / f"delta_{i}_{i}_0" / "000000_0", times(OLD), name, **metadata)
    with pytest.raises(RefusedError, match=why) as caught:
        concat(table)
    assert "delta_1_1_0/000000_0 and " in caught.value.what
    plain = tmp_path / "plain"
    for i, options in ((1, one), (2, other)):
        metadata = {key.replace("_", "."): value for key, value in options.items() if value}
        write_parquet_file(plain / f"delta_{i}_{i}_0" / "000000_0", pa.table({"a": [i]}), metadata)
    assert_same(plain)


def test_old_days_keep_their_meaning(tmp_path: Path) -> None:
    """Without a word in the footer the days of Java's files are Julian: the output must be taken for Java's, too."""
    days = pa.table({"d": pa.array([datetime.date(1200, 3, 1), None])})
    table = tmp_path / "t"
    for i in (1, 2):
        write_parquet_file(table / f"delta_{i}_{i}_0" / "000000_0", days, created_by=MR)
    result, _ = assert_same(table)
    assert footer(result).created_by == MR
    write_parquet_file(table / "delta_3_3_0" / "000000_0", days)
    with pytest.raises(RefusedError, match="parquet-mr"):
        concat(table)


def test_timestamps_of_64_bits_are_copied_in_their_units(tmp_path: Path) -> None:
    table = tmp_path / "t"
    write_parquet_file(table / "delta_1_1_0" / "000000_0", times(FAR, None, OLD, unit="us"))
    moment = datetime.datetime(2020, 1, 1)
    write_parquet_file(table / "delta_2_2_0" / "000000_0", times(moment, unit="ms"))
    result, _ = assert_same(table)
    assert tail_columns(result) == {"INT64"}
    assert footer(result).schema.to_arrow_schema().field("t").type == pa.timestamp("us")
    write_times(table / "delta_3_3_0" / "000000_0", times(moment))
    with pytest.raises(RefusedError, match="96 bits"):
        concat(table)
    zones = tmp_path / "zones"
    write_parquet_file(zones / "delta_1_1_0" / "000000_0", pa.table({"t": pa.array([FAR], pa.timestamp("us", "UTC"))}))
    result, _ = assert_same(zones)
    assert footer(result).schema.to_arrow_schema().field("t").type == pa.timestamp("us", "UTC")


def test_parquet_columns_may_be_added_and_widened_only(tmp_path: Path) -> None:
    """New columns and wider numbers are taken; names in other places and other types are refused."""
    table = tmp_path / "t"
    old = pa.table({"a": pa.array([1], pa.int32()), "s": pa.array([{"x": 1}])})
    new = pa.table({"A": pa.array([2**40]), "s": pa.array([{"x": 1, "y": "z"}]), "c": ["c"]})
    write_parquet_file(table / "delta_1_1_0" / "000000_0", old)
    write_parquet_file(table / "delta_2_2_0" / "000000_0", new)
    columns = (("a", "bigint"), ("s", "struct<x:bigint,y:string>"), ("c", "string"))
    for other in ((), (("a", "double"),), (("a", "int"),)):
        with pytest.raises(RefusedError, match="a is int in one"):
            concat(table, other)
    result, _ = concat(table, columns)
    assert rows_of(result) == [
        '{"A": 1, "s": {"x": 1, "y": null}, "c": null}', '{"A": 1099511627776, "s": {"x": 1, "y": "z"}, "c": "c"}',
    ]  # fmt: skip
    for number, (bad, why) in enumerate([
        (pa.table({"s": pa.array([{"x": 1}]), "a": [1]}), "s is in the place of A"),
        (pa.table({"a": ["text"]}), "a is string there and bigint"),
        (pa.table({"a": [1], "s": pa.array([{"y": 1}])}), r"s\.y is in the place of s\.x"),
        (pa.table({"a": [1], "s": pa.array([{"x": 1.5}])}), r"s\.x is double there and bigint"),
        (pa.table({"a": [1], "s": pa.array([{"x": 1, "y": "z", "w": 5}])}), r"field s\.w is missing"),
        (pa.table({"a": pa.array([1], pa.uint64())}), r"unsigned|decimal\(20,0\) there and bigint"),
    ]):  # fmt: skip
        path = table / "delta_1_1_0" / f"000000_0_copy_{number}"
        write_parquet_file(path, bad)
        with pytest.raises(RefusedError, match=why):
            concat(table, columns)
        path.unlink()


def test_damaged_parquet_is_bad_data(tmp_path: Path) -> None:
    table = tmp_path / "t"
    path = table / "delta_1_1_0" / "000000_0"
    write_parquet_file(path, pa.table({"a": list(range(10000))}), compression="gzip")
    tasks = tasks_of(table, tmp_path / "out")
    data = bytearray(path.read_bytes())
    data[100:3000] = bytes(2900)
    path.write_bytes(data)
    with pytest.raises(AcidctlError) as caught:
        run_concat(tasks[0])
    assert isinstance(caught.value, BadDataError)


# --- judged by Spark and Java ORC ------------------------------------------------------------------------------------


def spark_rows(spark: Any, table: Path, kind: str) -> list[str]:
    files = [str(path) for path in table.rglob("0*_0") if not any(p.startswith("_") for p in path.parts)]
    frame = spark.read.format(kind).load(files)
    return sorted(str(row) for row in frame.collect())


@pytest.mark.spark
def test_orc_as_java_reads_it(spark: Any, orc_table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from support.judge.hive import Hive
    from support.judge.java_orc import JavaOrc, java_orc_complaints

    (orc_table / "delta_0000006_0000006_0000" / "odd-name").unlink()
    hive = Hive(spark)
    before = sorted(image for path in orc_table.rglob("0*_0") for image in JavaOrc(hive, path).images)
    for limit in (1 << 20, 0):
        monkeypatch.setattr(written, "SMALL_STRIPE", limit)
        result, _ = concat(orc_table, reader=HIVE4)
        files = sorted(result.rglob("0*_0"))
        assert java_orc_complaints(hive, files) == []
        assert sorted(image for path in files for image in JavaOrc(hive, path).images) == before
        assert spark_rows(spark, result, "orc") == spark_rows(spark, orc_table, "orc")
        for path in files:
            path.unlink()


def hive_rows(spark: Any, path: Path, columns: Sequence[tuple[str, str]]) -> list[str]:
    """All rows of a Parquet file through Hive's own reader."""
    hadoop, jvm = spark._jvm.org.apache.hadoop, spark._jvm
    conf = hadoop.mapred.JobConf(False)
    conf.set("columns", ",".join(name for name, _ in columns))
    conf.set("columns.types", ":".join(kind for _, kind in columns))
    conf.set("hive.io.file.read.all.columns", "true")
    hosts = spark.sparkContext._gateway.new_array(jvm.java.lang.String, 0)
    split = hadoop.mapred.FileSplit(hadoop.fs.Path(f"file:{path}"), 0, path.stat().st_size, hosts)
    reader = hadoop.hive.ql.io.parquet.MapredParquetInputFormat().getRecordReader(
        split, conf, hadoop.mapred.Reporter.NULL
    )
    key, value = reader.createKey(), reader.createValue()

    def shown(writable: Any) -> Any:
        if writable is None:
            return None
        nested = "ArrayWritable" in writable.getClass().getName()
        return [shown(one) for one in writable.get()] if nested else writable.toString()

    rows = []
    while reader.next(key, value):
        rows.append(str(shown(value)))
    return rows


@pytest.mark.spark
def test_parquet_as_hive_reads_it(spark: Any, tmp_path: Path) -> None:
    spark.conf.set("spark.sql.parquet.writeLegacyFormat", "true")  # Hive 2.3 reads no other decimals
    spark.conf.set("spark.sql.parquet.outputTimestampType", "INT96")
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    table = tmp_path / "t"
    for i in (1, 2):
        frame = spark.sql(f"""
            select id + {i} a, array(id, null) l, map(id, array('x', null)) m, array(struct(id x, array(id) y)) ls,
                timestamp'2020-01-01 00:00:01.123456' ts, cast(id as decimal(9, 2)) d, date'1500-01-01' day,
                if(id = 1, null, named_struct('s', 'text')) st
            from range(3)""")  # fmt: skip
        frame.coalesce(1).write.parquet(str(tmp_path / f"out{i}"))
        target = table / f"delta_000000{i}_000000{i}_0000"
        target.mkdir(parents=True)
        next((tmp_path / f"out{i}").glob("part*")).rename(target / "000000_0")
    columns = [
        ("a", "bigint"), ("l", "array<bigint>"), ("m", "map<bigint,array<string>>"),
        ("ls", "array<struct<x:bigint,y:array<bigint>>>"), ("ts", "timestamp"), ("d", "decimal(9,2)"), ("day", "date"),
        ("st", "struct<s:string>"),
    ]  # fmt: skip
    before = [row for path in sorted(table.rglob("000000_0")) for row in hive_rows(spark, path, columns)]
    result, _ = concat(table)
    assert len(before) == 6
    assert "2020-01-01 00:00:01.123456" in before[0]
    assert hive_rows(spark, result / "base_0000099" / "000000_0", columns) == before


@pytest.mark.sampled
@pytest.mark.spark
@pytest.mark.parametrize("legacy", [True, False])
@pytest.mark.parametrize("kind", ["INT96", "TIMESTAMP_MICROS"])
def test_parquet_as_spark_reads_it(spark: Any, tmp_path: Path, legacy: bool, kind: str) -> None:
    """Files as Spark writes them, in the old nesting that Hive writes too."""
    spark.conf.set("spark.sql.parquet.writeLegacyFormat", str(legacy).lower())
    spark.conf.set("spark.sql.parquet.outputTimestampType", kind)
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    table = tmp_path / "t"
    for i in (1, 2):
        frame = spark.sql(f"""
            select id + {i} a, cast(id as decimal(9, 2)) d9, cast(id as decimal(38, 10)) d38, cast(id as tinyint) t,
                if(id % 3 = 0, null, concat('s', id)) s, date'0001-01-01' + cast(id as int) day,
                if(id = 1, timestamp'9999-12-31 23:59:59.999999', timestamp'1899-12-31 23:59:59.123456') ts,
                array(id, null) l, map(id, array('x', null)) m, array(struct(id x, array(id) y)) ls,
                if(id % 2 = 0, null, named_struct('p', id, 'ts', timestamp'2020-01-01 00:00:00')) st,
                cast('raw' as binary) raw, float(id) f, double(id) db, id % 2 = 0 b, array() e
            from range(20)""")  # fmt: skip
        frame = frame.drop("e")
        frame.coalesce(1).write.parquet(str(tmp_path / f"out{i}"))
        target = table / f"delta_000000{i}_000000{i}_0000"
        target.mkdir(parents=True)
        next((tmp_path / f"out{i}").glob("part*")).rename(target / "000000_0")
    before = spark_rows(spark, table, "parquet")
    assert len(before) == 40
    result, _ = assert_same(table)
    assert spark_rows(spark, result, "parquet") == before
    assert ("INT96" in tail_columns(result)) == (kind == "INT96")
    created = pq.read_metadata(table / "delta_0000001_0000001_0000" / "000000_0").created_by
    assert footer(result).created_by == created
    assert b"org.apache.spark.version" in footer(result).metadata
