"""`acidctl.open_table`: partitions, time travel, deleted rows, counts, projections."""

from __future__ import annotations

import datetime
import gc
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.engines.written_by_hive import HIVE23
from support.files.acid_files import (
    SMALL_GROUPS,
    damage_stripe,
    insert,
    write_acid,
    write_deletes,
    write_delta,
    write_plain,
)

import acidctl
from acidctl.acid.listing import Listing
from acidctl.base import packed
from acidctl.base.errors import BadDataError, HistoryError, NotFoundError, RefusedError, UsageProblem
from acidctl.orc.byte_source import ByteSource
from acidctl.orc.tail import Tail, read_tail
from acidctl.orc.types import OrcType
from acidctl.rows.read.visibility import Loss
from acidctl.rows.scan.partition_values import partition_type

TYPES = OrcType(
    "struct",
    children=(OrcType("int"), OrcType("struct", children=(OrcType("string"), OrcType("int")), names=("City", "zip"))),
    names=("id", "address"),
)
NEWER = OrcType("struct", children=(*TYPES.children, OrcType("string")), names=("id", "address", "note"))
SCHEMA = pa.schema([("id", pa.int32()), ("address", pa.struct([("City", pa.string()), ("zip", pa.int32())]))])


def rows(first: int, count: int) -> pa.RecordBatch:
    listed = [{"id": i, "address": {"City": f"c{i}", "zip": i} if i % 3 else None} for i in range(first, first + count)]
    return pa.RecordBatch.from_pylist(listed, schema=SCHEMA)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three partitions: two stripes and a delete, originals, a newer schema without a day."""
    path = tmp_path_factory.mktemp("made") / "orders"
    write_delta(path / "day=2024-01-01" / "hour=1", 1, rows(0, 10), rows(10, 10), row=TYPES)
    write_deletes(path / "day=2024-01-01" / "hour=1", 3, 1, [4, 15], row=TYPES)
    write_plain(path / "day=2024-01-02" / "hour=12" / "000000_0", rows(100, 5), row=TYPES, settings=SMALL_GROUPS)
    newer = rows(200, 3).append_column("note", pa.array(["x", None, "z"]))
    write_delta(path / "day=__HIVE_DEFAULT_PARTITION__" / "hour=3", 2, newer, row=NEWER)
    return path


def test_one_row_type_and_typed_partitions(table: Path) -> None:
    opened = acidctl.open_table(str(table))
    assert [location.partition for location in opened.locations] == [
        {"day": datetime.date(2024, 1, 1), "hour": 1},
        {"day": datetime.date(2024, 1, 2), "hour": 12},
        {"day": None, "hour": 3},
    ]
    assert opened.schema.names == ["id", "address", "note", "day", "hour"]
    assert opened.schema.field("day").type == pa.date32()
    whole = opened.scan().to_table()
    assert whole.schema == opened.schema
    assert whole.num_rows == opened.scan().count() == 26
    assert set(whole["note"].to_pylist()) == {None, "x", "z"}
    assert whole["day"].to_pylist()[-3:] == [None] * 3


def test_columns_nested_synthetic_and_of_partitions(table: Path) -> None:
    scan = acidctl.open_table(str(table)).scan(
        ["HOUR", "address.city", "ROW__ID.rowid", "address"], "ROW__ID.writeid = 1 AND id BETWEEN 3 AND 5"
    )
    assert scan.to_table().to_pylist() == [
        {"hour": 1, "address.City": None, "ROW__ID.rowid": 3, "address": None},
        {"hour": 1, "address.City": "c5", "ROW__ID.rowid": 5, "address": {"City": "c5", "zip": 5}},
    ]


def test_partitions_out_of_question_are_not_listed(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = acidctl.open_table(str(table))
    scans = [
        opened.scan(["id"], "day = '2024-01-02'"),
        opened.scan(["id"], partition={"Day": "2024-01-02"}),
        opened.scan(["id"], partition={"day": datetime.date(2024, 1, 2), "hour": 12}),
        opened.scan(["id"], "hour > 5 OR day IS NULL AND id IS NULL"),
    ]
    (table / "day=2024-01-01/hour=1/delta_0000001_0000001_0000/bucket_00000").rename(table.parent / "away")
    try:
        for scan in scans:
            assert [row["id"] for row in scan.to_table().to_pylist()] == list(range(100, 105))
    finally:
        (table.parent / "away").rename(table / "day=2024-01-01/hour=1/delta_0000001_0000001_0000/bucket_00000")
    assert opened.scan(partition={"day": None}).count() == 3
    with pytest.raises(NotFoundError):
        opened.scan(partition={"day": "2023-01-01"})
    with pytest.raises(NotFoundError) as caught:
        opened.scan(partition={"dya": 1})
    assert "day" in caught.value.hint


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", "-2", "9223372036854775807"], "bigint"),
        (["9223372036854775808"], "string"),
        (["01", "2"], "string"),
        (["2024-02-29", "__HIVE_DEFAULT_PARTITION__"], "date"),
        (["2023-02-29"], "string"),
        (["2024-02-29", "1"], "string"),
        (["__HIVE_DEFAULT_PARTITION__"], "string"),
        (["-0"], "string"),
    ],
)
def test_partition_type_follows_from_its_values(values: list[str], kind: str) -> None:
    assert partition_type(values).kind == kind


def test_at_shows_the_rows_of_that_write_id(tmp_path: Path) -> None:
    write_delta(tmp_path, 1, rows(0, 4), row=TYPES)
    write_deletes(tmp_path, 2, 1, [0], row=TYPES)
    write_delta(tmp_path, 3, rows(10, 2), row=TYPES)
    opened = acidctl.open_table(str(tmp_path))
    assert [opened.scan(at=at).count() for at in (0, 1, 2, 3, 99)] == [0, 4, 3, 5, 5]
    listed = f"db.{tmp_path.name}:2:9223372036854775807::"
    assert acidctl.open_table(str(tmp_path), snapshot=listed).scan(at=3).count() == 3
    other = "db.t:2:9223372036854775807::"
    with pytest.raises(RefusedError, match="no write-id list is for the table"):
        acidctl.open_table(str(tmp_path), snapshot=other).scan()
    with pytest.raises(UsageProblem):
        opened.scan(at=-1)


def test_history_that_a_compaction_destroyed(tmp_path: Path) -> None:
    base = tmp_path / "base_0000005_v0000009"
    write_delta(tmp_path, 5, rows(0, 4), row=TYPES, base=True)
    (tmp_path / "base_0000005").rename(base)
    opened = acidctl.open_table(str(tmp_path))
    assert opened.scan(at=5).count() == 4
    with pytest.raises(HistoryError) as caught:
        opened.scan(at=3)
    assert "write id 3" in caught.value.what
    assert caught.value.hint.endswith(" 5")


def test_deleted_shows_the_rows_that_deletes_took(table: Path) -> None:
    opened = acidctl.open_table(str(table))
    scan = opened.scan(["id"], deleted=True, row_id=True)
    found = [(row["ROW__ID"]["rowid"], row["id"]) for row in scan.to_table().to_pylist()]
    assert found == [(4, 4), (15, 15)]
    assert scan.count() == 2
    assert opened.scan(deleted=True, at=2).count() == 0
    assert opened.scan(deleted=True, where="id > 10").count() == 1


@pytest.mark.parametrize("case", sorted(path.name for path in HIVE23.iterdir() if path.is_dir()))
def test_counts_and_the_two_halves(case: str) -> None:
    """What is left and what was removed are all insert and update events; counts are those of the rows."""
    opened = acidctl.open_table(str(HIVE23 / case / "table"))
    left, gone = opened.scan(row_id=True), opened.scan(row_id=True, deleted=True)
    first = opened.schema.names[0]
    keys = [
        {tuple(row["ROW__ID"].values()) for batch in scan.to_batches() for row in batch.select(["ROW__ID"]).to_pylist()}
        for scan in (left, gone)
    ]
    rows_left = sum(batch.num_rows for batch in left.to_batches())
    assert rows_left == len(keys[0]) == left.count() == opened.scan().count()
    assert gone.count() == sum(batch.num_rows for batch in gone.to_batches())
    nulls = opened.scan(where=f"`{first}` IS NULL").count()
    assert nulls + opened.scan(where=f"`{first}` IS NOT NULL").count() == rows_left


def test_replaced_images_of_acid_v1() -> None:
    """update_chain: every update is an event of its own; all images but the last were replaced."""
    opened = acidctl.open_table(str(HIVE23 / "update_chain" / "table"))
    assert opened.scan(deleted=True).count() > 0


def test_count_reads_no_row_where_footers_settle_it(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from acidctl.rows.read.events import EventReader

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("read")

    for name in ("rows", "ids_with_rows"):
        monkeypatch.setattr(EventReader, name, refuse)
    assert acidctl.open_table(str(table)).scan().count() == 26


def test_a_damaged_stripe_says_which_rows_are_lost(tmp_path: Path) -> None:
    write_delta(tmp_path, 1, rows(0, 10), rows(10, 10), row=TYPES)
    write_delta(tmp_path, 2, rows(20, 5), row=TYPES)
    damage_stripe(tmp_path / "delta_0000001_0000001_0000" / "bucket_00000", 1)
    opened = acidctl.open_table(str(tmp_path))
    with pytest.raises(BadDataError) as caught:
        opened.scan().to_table()
    assert "bucket_00000" in caught.value.what
    assert "rows 11 to 20 of its 20 cannot be read" in caught.value.why
    losses: list[Loss] = []
    found = opened.scan(on_loss=losses.append).to_table()
    assert found.num_rows == 15
    assert [(loss.rows, loss.deletes) for loss in losses] == [(10, False)]


def test_originals_after_a_lost_one_cannot_be_numbered(tmp_path: Path) -> None:
    write_plain(tmp_path / "000000_0", rows(0, 3), row=TYPES, settings=SMALL_GROUPS)
    write_plain(tmp_path / "000000_0_copy_1", rows(3, 3), row=TYPES, settings=SMALL_GROUPS)
    write_plain(tmp_path / "000001_0", rows(6, 3), row=TYPES, settings=SMALL_GROUPS)
    (tmp_path / "000000_0").write_bytes(b"ORC rubbish ORC")
    losses: list[Loss] = []
    found = acidctl.open_table(str(tmp_path)).scan(["id"], on_loss=losses.append).to_table()
    assert found["id"].to_pylist() == [6, 7, 8]
    assert [(Path(loss.path).name, loss.rows) for loss in losses] == [("000000_0", None), ("000000_0_copy_1", 3)]


def test_a_delta_that_cannot_be_opened_takes_no_original_with_it(tmp_path: Path) -> None:
    """Originals are numbered by the codec of the other files, of which one may be gone."""
    write_plain(tmp_path / "000000_0", rows(0, 3), row=TYPES, settings=SMALL_GROUPS)
    delta = tmp_path / "delta_0000002_0000002_0000"
    delta.mkdir()
    (delta / "bucket_00000").symlink_to(tmp_path / "nothing")
    losses: list[Loss] = []
    found = acidctl.open_table(str(tmp_path)).scan(["id"], on_loss=losses.append).to_table()
    assert found["id"].to_pylist() == [0, 1, 2]
    assert [Path(loss.path).name for loss in losses] == ["bucket_00000"]


def test_wide_timestamps_in_conditions_and_in_one_table(tmp_path: Path) -> None:
    types = OrcType("struct", children=(OrcType("timestamp"), OrcType("int")), names=("ts", "id"))
    near = pa.RecordBatch.from_pydict(
        {"ts": pa.array([0, None], pa.timestamp("ns")), "id": pa.array([1, 2], pa.int32())}
    )
    far_days = pa.array([-365_000 * 86_400, 200_000 * 86_400], pa.int64())
    far = pa.RecordBatch.from_pydict({"ts": far_days.cast(pa.timestamp("s")), "id": pa.array([3, 4], pa.int32())})
    import numpy as np

    from acidctl.orc.read.wide_timestamps import WideTimestamp, wide

    far = far.set_column(0, "ts", wide(np.asarray(far_days), np.zeros(2, np.int64), far_days, instant=False))
    write_plain(tmp_path / "000000_0", near, far, row=types, settings=SMALL_GROUPS)
    opened = acidctl.open_table(str(tmp_path))
    whole = opened.scan().to_table()
    assert isinstance(whole.schema.field("ts").type, WideTimestamp)
    assert whole.num_rows == 4
    assert opened.scan(["id"], "ts < '1970-01-01'").to_table()["id"].to_pylist() == [3]
    assert opened.scan(["id"], "ts >= '1970-01-01 00:00:00'").to_table()["id"].to_pylist() == [1, 4]
    assert opened.scan(["id"], "ts = '1970-01-01' OR ts IS NULL").to_table()["id"].to_pylist() == [1, 2]


def test_several_tables_and_unknown_columns(tmp_path: Path, table: Path) -> None:
    for name in ("a", "b"):
        write_plain(tmp_path / name / "000000_0", rows(0, 1), row=TYPES, settings=SMALL_GROUPS)
    with pytest.raises(UsageProblem):
        acidctl.open_table(str(tmp_path))
    for wrong, near in (("addres", "address"), ("address.citi", "address.City"), ("hou", "hour")):
        with pytest.raises(NotFoundError) as caught:
            acidctl.open_table(str(table)).scan([wrong])
        assert near in caught.value.hint


def test_importing_the_package_is_instant() -> None:
    code = "import sys, acidctl; acidctl.__version__; sys.exit(any(m in sys.modules for m in ('pyarrow', 'numpy')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_files_that_vanish_or_are_replaced(tmp_path: Path) -> None:
    """Between the listing and the reading."""
    types = OrcType("struct", children=(OrcType("bigint"),), names=("id",))

    def batch(count: int) -> pa.RecordBatch:
        return pa.RecordBatch.from_pydict({"id": pa.array(range(count), pa.int64())})

    for name in ("a", "b"):
        write_delta(tmp_path / name, 1, batch(100), batch(10 if name == "a" else 2000), row=types)
    file = tmp_path / "a" / "delta_0000001_0000001_0000" / "bucket_00000"
    scan = acidctl.open_table(str(tmp_path / "a")).scan()
    file.write_bytes((tmp_path / "b" / "delta_0000001_0000001_0000" / "bucket_00000").read_bytes())
    with pytest.raises(BadDataError, match=r"was replaced while the table was read.*its 110 rows cannot be read"):
        scan.to_table()
    file.unlink()
    with pytest.raises(NotFoundError, match=r"has vanished.*its 110 rows cannot be read"):
        scan.to_table()


@pytest.fixture
def many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table of 100 partitions, whose snapshots are held as bytes."""
    write_acid(tmp_path / "t" / "day=0" / "delta_0000001_0000001_0000" / "bucket_00000", insert(1, 0))
    for day in range(1, 100):
        shutil.copytree(tmp_path / "t" / "day=0", tmp_path / "t" / f"day={day}")
    monkeypatch.setattr("acidctl.rows.scan.table._FEW_LOCATIONS", 1)
    return tmp_path / "t"


@pytest.mark.parametrize("at", [None, 1])
def test_no_listing_stays_in_memory_when_all_snapshots_are_taken(
    many: Path, monkeypatch: pytest.MonkeyPatch, at: int | None
) -> None:
    numbers = []

    def is_stale(*_: object) -> bool:
        gc.collect()
        numbers.append(sum(type(item) is Listing for item in gc.get_objects()))
        return False

    monkeypatch.setattr("acidctl.rows.scan.table.is_any_stale", is_stale)
    is_stale()
    assert acidctl.open_table(str(many)).scan(at=at).count() == 100
    assert numbers[1] - numbers[0] < 10


def test_each_location_is_packed_once(many: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: Counter[str] = Counter()

    class Pickler(packed._Pickler):
        def __init__(self, *arguments: Any) -> None:
            calls["packed"] += 1
            super().__init__(*arguments)

    class Unpickler(packed._Unpickler):
        def __init__(self, *arguments: Any) -> None:
            calls["unpacked"] += 1
            super().__init__(*arguments)

    monkeypatch.setattr(packed, "_Pickler", Pickler)
    monkeypatch.setattr(packed, "_Unpickler", Unpickler)
    scan = acidctl.open_table(str(many)).scan(where="a = 3")
    assert calls == {"packed": 100, "unpacked": 1}
    calls.clear()
    scan.count()
    assert calls == {"unpacked": 100}


def test_lists_that_were_too_old_are_taken_again(table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copied = shutil.copytree(table, tmp_path / "t")
    file = next((copied / "day=2024-01-01").rglob("bucket_00000"))
    content = file.read_bytes()
    file.write_bytes(b"damaged")
    changes: list[Callable[[], object]] = []

    def is_stale(*_: object) -> bool:
        return bool(changes) and (changes.pop()(), True)[1]

    monkeypatch.setattr("acidctl.rows.scan.table.is_any_stale", is_stale)
    opened, losses = acidctl.open_table(str(copied)), list[Loss]()
    changes.append(lambda: None)
    assert opened.scan(on_loss=losses.append).count() < 26
    assert [loss.path for loss in losses] == [str(file)]
    changes.append(lambda: file.write_bytes(content))
    assert opened.scan().count() == 26


def test_tails_of_a_large_table_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for write_id in range(1, 7):
        for day in ("1", "2"):
            name = f"delta_{write_id:07}_{write_id:07}_0000"
            write_acid(tmp_path / f"day={day}" / name / "bucket_00000", insert(write_id, 0))
    read: Counter[str] = Counter()

    def counting(source: ByteSource, *rest: Any) -> Tail:
        read[source.path] += 1
        return read_tail(source, *rest)

    monkeypatch.setattr("acidctl.rows.read.events.read_orc_tail", counting)
    for path, rows, few in ((tmp_path / "day=1", 6, 1), (tmp_path, 12, 1), (tmp_path, 12, 2)):
        monkeypatch.setattr("acidctl.rows.scan.table._FEW_LOCATIONS", few)
        read.clear()
        scan = acidctl.open_table(str(path)).scan()
        assert [scan.count(), scan.to_table().num_rows, scan.newest] == [rows, rows, 6]
        assert scan.parts[0].snapshot.fs is scan.parts[-1].snapshot.fs, "bytes hold no copy of what all share"
        assert len(read) == rows
        assert set(read.values()) == {1}


def test_an_empty_list_of_columns_is_a_slip_and_no_damage(tmp_path: Path) -> None:
    write_acid(tmp_path / "delta_0000001_0000001_0000/bucket_00000", insert(1, 0))
    with pytest.raises(UsageProblem, match="no column of"):
        acidctl.open_table(tmp_path).scan([]).to_table()
