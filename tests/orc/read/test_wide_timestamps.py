from __future__ import annotations

import io
import pickle
import random
import zoneinfo
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyorc
import pytest
from pyarrow import orc
from support.files.orc_bytes import RAW, Remote, local_tail, retailed, tail_of, written

from acidctl.base.errors import BadDataError
from acidctl.orc import orc_pb2 as pb
from acidctl.orc.read import wide_timestamps
from acidctl.orc.read.reader import open_orc
from acidctl.orc.read.wide_timestamps import WIDE_STORAGE, WideTimestamp, is_hybrid, proleptic_batch, same_labels
from acidctl.orc.read.zones import is_utc, zone
from acidctl.storage.local.filesystem import LocalFileSystem

TIMES = {"timestamp", "timestamp with local time zone"}
END_OF_TIME = (253_402_300_799, 999_999_999)
START_OF_TIME = (-62_135_596_800, 0)

NESTED = (
    "struct<a:timestamp,i:timestamp with local time zone,l:array<timestamp>,m:map<int,timestamp>,"
    "k:map<timestamp,string>,s:struct<x:int,t:timestamp,u:struct<v:timestamp>>,"
    "ll:array<struct<q:array<timestamp>,z:string>>,n:string,un:uniontype<int,timestamp>>"
)


def draw_time(draw: random.Random) -> tuple[int, int] | None:
    """A timestamp: the sentinels, the seconds around 1970, any other; or nothing."""
    kind = draw.random()
    if kind < 0.1:
        return None
    if kind < 0.4:
        return draw.choice((END_OF_TIME, START_OF_TIME))
    if kind < 0.5:
        return draw.randrange(-5, 5), draw.choice((0, 1, 999, 10**6, 10**8, 123_456_789))
    nanos = draw.choice((0, draw.randrange(10**9), draw.randrange(1000) * 10**6, 5 * 10**8))
    return draw.randrange(-(10**11), 10**11), nanos


def draw_row(draw: random.Random) -> tuple[Any, ...]:
    def time() -> Any:
        return draw_time(draw)

    def maybe(value: Any) -> Any:
        return None if draw.random() < 0.1 else value

    def times(most: int) -> list[Any]:
        return [time() for _ in range(draw.randrange(most))]

    return (
        time(),
        time(),
        maybe(times(4)),
        maybe(dict(enumerate(times(3)))),
        maybe({key: "x" for key in times(3) if key}),
        maybe((1, time(), maybe((time(),)))),
        maybe([(maybe(times(3)), "z") for _ in range(draw.randrange(3))]),
        "n",
        draw.choice((None, 5, 7, time())),
    )


def from_pyorc(value: Any) -> Any:
    """pyorc's values with maps as pairs."""
    if isinstance(value, dict):
        return [(from_pyorc(key), from_pyorc(item)) for key, item in value.items()]
    if isinstance(value, list):
        return [from_pyorc(item) for item in value]
    return tuple(from_pyorc(item) for item in value) if isinstance(value, tuple) else value


def from_arrow(value: Any) -> Any:
    """Arrow's values with wide timestamps as pairs."""
    if isinstance(value, dict):
        if set(value) == {"seconds", "nanos"}:
            return None if value["seconds"] is None else (value["seconds"], value["nanos"])
        return tuple(from_arrow(item) for item in value.values())
    if isinstance(value, list):
        return [from_arrow(item) for item in value]
    return tuple(from_arrow(item) for item in value) if isinstance(value, tuple) else value


def rows_of(batch: pa.RecordBatch) -> list[Any]:
    return [from_arrow(row) for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)]


def native(data: bytes) -> pa.RecordBatch:
    return orc.ORCFile(pa.BufferReader(data)).read_stripe(0)


@pytest.mark.parametrize("codec", ["NONE", "ZLIB", "SNAPPY", "LZ4", "ZSTD"])
def test_any_year_any_nesting_any_codec(codec: str) -> None:
    draw = random.Random(codec)
    rows = [draw_row(draw) for _ in range(700)]
    data = written(NESTED, rows, compression=getattr(pyorc.CompressionKind, codec))
    with pytest.raises(pa.ArrowInvalid, match="out of range for nanosecond resolution"):
        native(data)
    with open_orc(Remote(file=data), "file") as file:
        batch = file.read_stripe(0)
        nested = file.read_stripe(0, ["s.u", "n"])
    batch.validate(full=True)
    assert batch.schema.field("a").type == WideTimestamp(False)
    assert batch.schema.field("i").type == WideTimestamp(True)
    assert batch.schema.field("l").type.value_type == WideTimestamp(False)
    assert batch.schema.field("n").type == pa.string()
    assert rows_of(batch) == [from_pyorc(row) for row in pyorc.Reader(io.BytesIO(data), converters=RAW)]
    assert nested.schema.names == ["s", "n"]
    assert nested.column("s").type.names == ["u"] if hasattr(nested.column("s").type, "names") else True
    assert nested.column("s").field("u").equals(batch.column("s").field("u"))


@pytest.mark.parametrize("nanos", [0, 1, 500, 999_999, 1_000_000, 123_456_789, 500_000_000, 999_999_999])
def test_in_range_values_equal_the_native_readers(nanos: int) -> None:
    draw = random.Random(nanos)
    seconds = [*range(-3, 4), *(draw.randrange(-9_000_000_000, 9_000_000_000) for _ in range(300))]
    slopes = [(i, i * 1000 % 10**9) for i in range(3000)]  # runs with a slope in the nanoseconds
    rows = [((s, nanos), [(s, nanos), None]) for s in seconds] + [(pair, []) for pair in slopes] + [(None, None)] * 3
    data = written("struct<t:timestamp,l:array<timestamp>>", rows)
    tail = tail_of(data)
    assert wide_timestamps.read_stripe(tail, 0, tail.type_tree).equals(native(data))


def test_narrow_only_where_all_values_fit() -> None:
    rows = [((5, 5), END_OF_TIME), (None, None)]
    with open_orc(Remote(file=written("struct<fits:timestamp,far:timestamp>", rows)), "file") as file:
        batch = file.read_stripe(0)
        alone = file.read_stripe(0, ["fits"])
    assert batch.schema.types == [pa.timestamp("ns"), WideTimestamp(False)]
    assert batch.column("fits").equals(alone.column("fits"))


def test_timestamps_beyond_64_bits_of_nanoseconds_are_wide() -> None:
    edges = [(-9_223_372_036, 0), (9_223_372_035, 999_999_999), (0, 0)]
    beyond = [(-9_223_372_037, 999_999_999), (9_223_372_037, 0)]
    for rows, kind in [(edges, pa.timestamp("ns")), (edges + beyond, WideTimestamp(False))]:
        data = written("struct<t:timestamp>", [(row,) for row in rows])
        tail = tail_of(data)
        column = wide_timestamps.read_stripe(tail, 0, tail.type_tree).column(0)
        assert column.type == kind
        wide = column if kind != pa.timestamp("ns") else wide_timestamps.widened(column)
        assert [from_arrow(value) for value in wide.storage.to_pylist()] == rows


def test_only_nulls_and_empty_lists() -> None:
    data = written("struct<t:timestamp,l:array<timestamp>>", [(None, []), (None, None)])
    tail = tail_of(data)
    assert wide_timestamps.read_stripe(tail, 0, tail.type_tree).equals(native(data))


def test_widened_and_narrowed_undo_each_other() -> None:
    for kind in (pa.timestamp("ns"), pa.timestamp("ns", tz="UTC")):
        array = pa.array([0, None, -1, 10**18, -(10**18)], pa.int64()).cast(kind)
        wide = wide_timestamps.widened(array)
        assert wide.type == WideTimestamp(array.type.tz is not None)
        assert wide_timestamps.as_nanoseconds(wide).equals(array)
        assert wide_timestamps.as_nanoseconds(wide[1:3]).equals(array[1:3])
    assert wide_timestamps.widened(pa.array([-1], pa.timestamp("ns"))).storage.to_pylist() == [
        {"seconds": -1, "nanos": 999_999_999}
    ]


def test_wide_type_survives_arrow_ipc() -> None:
    kind = WideTimestamp(True)
    array = pa.ExtensionArray.from_storage(kind, pa.array([{"seconds": 1, "nanos": 2}, None], WIDE_STORAGE))
    batch = pa.record_batch([array], names=["t"])
    out = io.BytesIO()
    with pa.ipc.new_stream(out, batch.schema) as stream:
        stream.write_batch(batch)
    again = pa.ipc.open_stream(out.getvalue()).read_all()
    assert again.schema.field("t").type == kind
    assert again.schema.field("t").type.instant
    assert kind != WideTimestamp(False)
    assert pickle.loads(pickle.dumps(kind)) == kind


def test_nanoseconds_that_are_none_are_found() -> None:
    data = written("struct<t:timestamp>", [(END_OF_TIME,), (END_OF_TIME,)], compression=pyorc.CompressionKind.NONE)
    tail = tail_of(data)
    streams = tail.stripe_footer(0).streams
    at = tail.stripes[0].offset
    for stream in streams:
        if stream.kind == pb.Stream.SECONDARY:
            break
        at += stream.length
    broken = bytearray(data)
    broken[at : at + stream.length] = b"\x0f" * stream.length
    with pytest.raises(BadDataError, match="file"), open_orc(Remote(file=bytes(broken)), "file") as file:
        file.read_stripe(0)


JAVA_FILES = ["utc", "los-angeles", "los-angeles-0.11", "tokyo", "berlin-0.11", "gmt-plus-8"]


def wall_clock(seconds: int, nanos: int) -> str:
    text = str(np.datetime64(seconds, "s")).replace("T", " ")
    return f"{text}.{nanos:09d}".rstrip("0").rstrip(".")


@pytest.mark.parametrize("name", JAVA_FILES)
def test_files_of_java_in_any_zone(name: str, own_data: Path) -> None:
    path = own_data / "java-timestamps" / f"{name}.orc"
    with open_orc(LocalFileSystem(), str(path)) as file:
        batch = file.read_stripe(0)
        assert is_hybrid(file.tail)
    wanted = batch.column("wall").to_pylist()
    if name == "utc":  # the one that Java loses when it writes
        wanted[wanted.index("1969-12-31 23:59:59.5")] = "1970-01-01 00:00:00.5"
    labelled = proleptic_batch(batch)
    for column in (labelled.column("t").storage, labelled.column("l").values.storage):
        assert [wall_clock(row["seconds"], row["nanos"]) for row in column.to_pylist()] == wanted
    days = [str(np.datetime64(day, "D")) for day in labelled.column("d").cast(pa.int32()).to_pylist()]
    assert days == [text[:10] for text in batch.column("wall").to_pylist()]


@pytest.mark.parametrize("name", JAVA_FILES)
def test_fractions_around_1970_do_not_depend_on_what_else_is_in_the_stripe(name: str, own_data: Path) -> None:
    """The native reader is a second off there in other zones than UTC, so these values must not come from it."""
    tail = local_tail(own_data / "java-timestamps" / f"{name}.orc")
    wide = wide_timestamps.read_stripe(tail, 0, tail.type_tree)
    walls = wide.column("wall").to_pylist()
    inside = [i for i, text in enumerate(walls) if "1950" <= text < "2100"]
    column = wide.column("t")
    near = (column if isinstance(column.type, WideTimestamp) else wide_timestamps.widened(column)).take(
        pa.array(inside)
    )
    seconds, nanos = wide_timestamps.parts(near)
    expected = [walls[i] for i in inside]
    if name == "utc":
        expected[expected.index("1969-12-31 23:59:59.5")] = "1970-01-01 00:00:00.5"
    assert [wall_clock(int(s), int(n)) for s, n in zip(seconds, nanos, strict=True)] == expected


def test_doubtful_timestamps_are_found_by_their_values() -> None:
    near = pa.array([5, 1_500_000_000], pa.int64()).cast(pa.timestamp("ns"))
    far = pa.array([86_400_000_000_000 * 2 + 5_000_000, None], pa.int64()).cast(pa.timestamp("ns"))
    whole = pa.array([-5_000_000_000], pa.int64()).cast(pa.timestamp("ns"))
    ancient = pa.array([-2_208_988_801_000_000_000], pa.int64()).cast(pa.timestamp("ns"))
    assert wide_timestamps.may_be_misread(near)
    assert wide_timestamps.may_be_misread(pa.ListArray.from_arrays([0, 2], near))
    assert wide_timestamps.may_be_misread(ancient)
    assert not wide_timestamps.may_be_misread(far)
    assert not wide_timestamps.may_be_misread(pa.StructArray.from_arrays([whole], ["a"]))


@pytest.mark.parametrize("name", ["America/New_York", "Asia/Kolkata", "Europe/Berlin", "Australia/Lord_Howe"])
def test_zone_of_the_writer_by_cpp(name: str) -> None:
    """ORC C++ cuts seconds by the wall clock; what it wrote must come back as it reads it."""
    draw = random.Random(name)
    seconds = [-20_000, -5, 0, 5, 20_000, *(draw.randrange(-2_000_000_000, 9_000_000_000) for _ in range(500))]
    rows = [((s, n),) for s in seconds for n in (0, 5 * 10**8)]
    data = written("struct<t:timestamp>", rows, timezone=zoneinfo.ZoneInfo(name))
    tail = tail_of(data)
    assert tail.stripe_footer(0).writerTimezone == name
    assert wide_timestamps.read_stripe(tail, 0, tail.type_tree).equals(native(data))


def test_unknown_zone_is_bad_data(own_data: Path) -> None:
    with pytest.raises(BadDataError, match="Mars/Olympus"):
        zone("Mars/Olympus")
    with pytest.raises(BadDataError):
        zone("../../etc/passwd")
    assert is_utc("") and is_utc("GMT") and not is_utc("Europe/London")


def test_offsets_follow_the_rules_for_ever() -> None:
    def offset(name: str, text: str) -> int:
        instant = np.array([np.datetime64(text, "s").astype(np.int64)])
        return int(zone(name).offset(instant)[0])

    for year in ("2020", "2050", "2399", "2800", "9999"):
        assert offset("America/Los_Angeles", f"{year}-07-01") == -25_200
        assert offset("America/Los_Angeles", f"{year}-12-31") == -28_800
        assert offset("Australia/Sydney", f"{year}-01-01") == 39_600
    assert offset("America/Los_Angeles", "1800-01-01") == -28_800  # no local mean time
    assert offset("Asia/Tokyo", "1884-01-01") == 32_400
    assert offset("Asia/Kolkata", "1905-01-01") == 19_270
    assert offset("GMT+08:00", "1800-01-01") == 28_800
    assert offset("GMT-0330", "2000-01-01") == -12_600
    assert offset("PST", "2000-07-01") == -25_200
    assert offset("Asia/Shanghai", "1988-07-01") == 32_400


def test_days_of_every_century_are_moved_between_calendars() -> None:
    def julian(year: int, month: int, day: int) -> int:
        """Days since 1970 of a date of the Julian calendar."""
        years, months = year + 4800 - (14 - month) // 12, month + 12 * ((14 - month) // 12) - 3
        return day + (153 * months + 2) // 5 + 365 * years + years // 4 - 32083 - 2_440_588

    dates = [
        (y, m, d) for y in (1, 4, 100, 101, 200, 400, 900, 1000, 1500, 1581) for m in range(1, 13) for d in (1, 28)
    ]
    got = same_labels(np.array([julian(*date) for date in dates]))
    assert [str(np.datetime64(int(day), "D")) for day in got] == [f"{y:04}-{m:02}-{d:02}" for y, m, d in dates]
    assert str(np.datetime64(int(same_labels(np.array([julian(1500, 2, 29)]))[0]), "D")) == "1500-03-01"
    assert same_labels(np.array([julian(1582, 10, 4) + 1])).tolist() == [-141_427]


def test_shown_leaves_nulls_and_later_dates() -> None:
    batch = pa.record_batch(
        {
            "d": pa.array([None, -719_164, 0], pa.int32()).cast(pa.date32()),
            "s": pa.array(
                [{"x": [(1, -719_164)]}, None, {"x": None}], pa.struct([("x", pa.map_(pa.int32(), pa.int32()))])
            ),
            "later": pa.array([1, 2, None], pa.int32()).cast(pa.date32()),
        }
    )
    got = proleptic_batch(batch)
    assert got.column("d").cast(pa.int32()).to_pylist() == [None, -719_162, 0]
    assert got.column("s").equals(batch.column("s"))
    assert got.column("later").equals(batch.column("later"))
    assert not is_hybrid(tail_of(retailed(written("struct<a:int>", [(1,)]), lambda f, p: setattr(f, "calendar", 2))))


def test_files_of_the_corpus_read_alike_by_both_ways(shared_data: Path) -> None:
    """Every file of the corpus that has timestamps, small enough, in many zones and versions."""
    corpus = shared_data / "orc-corpus" / "apache-orc"
    checked = 0
    for path in sorted(corpus.glob("*.orc")):
        if path.stat().st_size in range(1, 60_000) and "testTimestamp" not in path.name:
            tail = local_tail(path)
            if tail.type_tree.kind == "struct" and not TIMES.isdisjoint(tail.schema.kinds) and tail.stripes:
                last = len(tail.stripes) - 1
                ours = wide_timestamps.read_stripe(tail, last, tail.type_tree)
                assert ours.equals(orc.ORCFile(str(path)).read_stripe(last)), path
                assert pc.count(ours.column(0), mode="all").as_py() == tail.stripes[last].numberOfRows
                checked += 1
    assert checked >= 5
