"""Tables with one fault each: how it is planted, how deep a check must look, and what it must find."""

from __future__ import annotations

import os
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

from acidctl.validation.findings import Depth
from support.files.acid_files import ACID, B0, IDS, delete, insert, write_by_pyorc, write_orc
from support.validating import NOW

L, F, D = Depth.LISTING, Depth.FOOTERS, Depth.DEEP
Plant = Callable[[Path], object]
CASES: dict[str, tuple[Depth, Plant, set[str], dict[str, object]]] = {}


def case(name: str, depth: Depth, *expected: str, **options: object) -> Callable[[Plant], Plant]:
    def add(plant: Plant) -> Plant:
        CASES[name] = (depth, plant, set(expected), options)
        return plant

    return add


def in_delta(table: Path, events: list[tuple], name: str = "delta_0000003_0000003_0000", **kw: object) -> Path:
    return write_by_pyorc(table / name, events, **kw)


# --- directories -----------------------------------------------------------------------------------------------------

case("V1 delta_x", L, "V1")(lambda t: (t / "delta_x").mkdir())
case("V1 base_01_02", L, "V1")(lambda t: (t / "base_01_02").mkdir())
case("V2 backwards", L, "V2")(lambda t: in_delta(t, [insert(5, 0)], "delta_0000005_0000003_0000"))
case("V2 negative", L, "V2")(lambda t: (t / "base_-5").mkdir())
case("V3 both suffixes", L, "V3 warning")(lambda t: in_delta(t, [insert(3, 0)], "delta_0000003_0000003_0000_v0000007"))
case("V3 large", L, "V3 warning")(lambda t: in_delta(t, [insert(3, 0)], "delta_0000003_0000003_5000"))
case("V4", L, "V4 info")(lambda t: in_delta(t, [insert(3, 0)], "delta_3_3_0"))
case("V6", L, "V6 warning")(lambda t: in_delta(t, [insert(3, 0)], "delta_0000003_0000004_0001"))
case("V8", L, "V8 info")(lambda t: in_delta(t, [insert(9, 0)], "delta_0000009_0000009_0000"))


@case("V5", L, "V5", "V4 info")
def _(table: Path) -> None:
    shutil.copytree(table / "delta_0000001_0000001_0000", table / "delta_1_1_0000")


@case("V5 bases", L, "V5", "V4 info", "V20 info")
def _(table: Path) -> None:
    for name in ("base_0000002", "base_2"):
        write_by_pyorc(table / name, [insert(1, 0)])


@case("V7", D, "V7")
def _(table: Path) -> None:
    in_delta(table, [insert(3, 0)], "delta_0000003_0000005")
    in_delta(table, [insert(6, 0)], "delta_0000004_0000008")


@case("V9", D, "V9", "V20 info")
def _(table: Path) -> None:
    write_by_pyorc(table / "base_0000002", [insert(1, 0)])
    in_delta(table, [insert(3, 0)], "delta_0000002_0000005")


@case("V10", D, "V10", "V20 info")
def _(table: Path) -> None:
    for txn in (10, 11):
        in_delta(table, [insert(3, 0), insert(4, 0)], f"delta_0000003_0000004_v00000{txn}")


@case("V11 seen in the listing", L, "V11 warning", "V20 info")
def half_a(table: Path) -> None:
    in_delta(table, [insert(3, 0)], "delta_0000003_0000009")
    write_by_pyorc(table / "delete_delta_0000005_0000005_0000", [delete(1, 0, 5)])


case("V11 deleted rows are back", D, "V11", "V20 info")(half_a)


@case("V11 refuted", D, "V20 info")
def _(table: Path) -> None:
    in_delta(table, [insert(3, 0)], "delta_0000003_0000009")
    write_by_pyorc(table / "delete_delta_0000005_0000005_0000", [delete(1, 77, 5)])


@case("V11 rows are gone", D, "V11", "V20 info")
def _(table: Path) -> None:
    write_by_pyorc(table / "delete_delta_0000003_0000009", [delete(1, 0, 5)])
    in_delta(table, [insert(4, 0)], "delta_0000004_0000004_0000")


@case("V11 deleted rows are back after a compaction of Hive 4", D, "V11", "V20 info")
def _(table: Path) -> None:
    in_delta(table, [insert(3, 0)], "delta_0000003_0000009_v0000020")
    write_by_pyorc(table / "delete_delta_0000005_0000005_0000", [delete(1, 0, 5)])


@case("V11 a compaction of Hive 4 that lost nothing", D, "V20 info")
def _(table: Path) -> None:
    in_delta(table, [insert(3, 0)], "delta_0000003_0000009_v0000020")
    write_by_pyorc(table / "delete_delta_0000005_0000005_0000", [delete(1, 77, 5)])


@case("V11 staged twin", L, "V11")
def _(table: Path) -> None:
    in_delta(table, [insert(3, 0)], "delta_0000003_0000004")
    staging = table / "_tmp_1"
    write_by_pyorc(staging / "delete_delta_0000003_0000004", [delete(1, 0, 3)])
    (staging / "_publish.json").write_text('{"names": []}')


@case("V13 missing", L, "V13 warning")
def _(table: Path) -> None:
    in_delta(table, [insert(3, 0)], marker=None)


@case("V13 missing everywhere", F, "V13 warning")
def _(table: Path) -> None:
    for marker in table.glob("*/_orc_acid_version"):
        marker.unlink()


case("V13 empty", L, "V13")(lambda t: in_delta(t, [insert(3, 0)], marker=b""))
case("V13 no digit", F, "V13")(lambda t: in_delta(t, [insert(3, 0)], marker=b"x"))
case("V13 a newline", F, "V13")(lambda t: in_delta(t, [insert(3, 0)], marker=b"2\n"))
case("V13 unknown", F, "V13")(lambda t: in_delta(t, [insert(3, 0)], marker=b"7"))


case("V14 in a delta", L, "V14 warning")(lambda t: (t / "delta_0000001_0000001_0000/_metadata_acid").write_text("{}"))


@case("V14 truncated with data", L, "V14", "V20 info")
def _(table: Path) -> None:
    write_by_pyorc(table / "base_0000002", [insert(1, 0)])
    (table / "base_0000002/_metadata_acid").write_text('{"thisFileVersion":"0","dataFormat":"truncated"}')


@case("V14 dropped with data", L, "V14", "V20 info")
def _(table: Path) -> None:
    write_by_pyorc(table / "base_0000002", [insert(1, 0)])
    (table / "base_0000002/_metadata_acid").write_text('{"thisFileVersion":"0","dataFormat":"dropped"}')


case("V15", L, "V15 warning")(lambda t: (t / "delta_0000003_0000003_0000").mkdir())


@case("V15 with metadata", L, "V15 info")
def _(table: Path) -> None:
    (table / "delta_0000003_0000003_0000").mkdir()
    (table / "delta_0000003_0000003_0000/_orc_acid_version").write_text("2")


@case("V16", L, "V16 warning")
def _(table: Path) -> None:
    (table / "_tmp_5f0c").mkdir()
    os.utime(table / "_tmp_5f0c", (NOW - 90_000, NOW - 90_000))


@case("V16 young", L)
def _(table: Path) -> None:
    (table / ".hive-staging_1").mkdir()
    os.utime(table / ".hive-staging_1", (NOW - 60, NOW - 60))


@case("V17", D, "V17")
def _(table: Path) -> None:
    delta = table / "delta_0000001_0000001_0000"
    shutil.copytree(delta, delta / delta.name)


@case("V17 in a base", D, "V17", "V20 info")
def _(table: Path) -> None:
    write_by_pyorc(table / "base_0000002", [insert(1, 0), insert(1, 1), insert(2, 0)])
    write_by_pyorc(table / "base_0000002" / "delta_0000001_0000001", [insert(1, 0)])


def emptied(table: Path, name: str) -> None:
    """A compaction's result of Hive 4 that has no file but its marker."""
    (table / name).mkdir()
    (table / name / "_orc_acid_version").write_text("2")


case("V43 base", L, "V43", "V15 info", "V20 info")(lambda t: emptied(t, "base_0000009_v0000007"))
case("V43 delta", L, "V43", "V15 info", "V20 info")(lambda t: emptied(t, "delta_0000001_0000009_v0000007"))


@case("V18 beside a base", L, "V18 info", "V20 info")
def _(table: Path) -> None:
    write_by_pyorc(table / "base_0000002", [insert(1, 0)])
    write_orc(table / "000000_0", "struct<a:int>", [(1,)])


case("V18 odd name", L, "V18")(lambda t: write_orc(t / "part-0.orc", "struct<a:int>", [(1,)]))


@case("V45", L, "V45")
def _(table: Path) -> None:
    deletes = table / "delete_delta_0000003_0000003_0000"
    write_by_pyorc(deletes, [delete(1, 0, 3)])
    write_by_pyorc(deletes, [delete(1, 1, 3)], name="000000_0")


@case("V19", L, "V19 warning", ignored=frozenset())
def _(table: Path) -> None:
    for write_id in range(3, 13):
        write_by_pyorc(table / f"delta_{write_id:07}_{write_id:07}_0000", [insert(write_id, 0)])


case("V20", L, "V20 info")(lambda t: write_by_pyorc(t / "base_0000002", [insert(1, 0)]))

# --- files -----------------------------------------------------------------------------------------------------------

case("V12 update", D, "V12")(lambda t: in_delta(t, [(1, 3, B0, 0, 3, (1, "x"))]))
case("V12 no delete", D, "V12")(
    lambda t: write_by_pyorc(t / "delete_delta_0000003_0000003_0000", [(0, 1, B0, 0, 3, None)])
)
case("V12 delete with a row", D, "V12")(
    lambda t: write_by_pyorc(t / "delete_delta_0000003_0000003_0000", [(2, 1, B0, 0, 3, (1, "x"))])
)
case("V21", F, "V21")(lambda t: in_delta(t, [insert(3, 0, bucket=B0 | 5 << 16)]))
case("V21 delete", F, "V21")(
    lambda t: write_by_pyorc(t / "delete_delta_0000003_0000003_0000", [delete(1, 0, 3)], "bucket_00004")
)


@case("V22 attempts", L, "V22")
def _(table: Path) -> None:
    for attempt in "01":
        in_delta(table, [insert(3, 0)], name="delta_0000003_0000003_0000").rename(
            table / f"delta_0000003_0000003_0000/bucket_00000_{attempt}"
        )


case("V22 stray", D, "V22")(
    lambda t: shutil.copy(
        t / "delta_0000001_0000001_0000/bucket_00000", t / "delta_0000001_0000001_0000/bucket_00000.fixacidindex"
    )
)
case("V23 codec", D, "V23")(lambda t: in_delta(t, [insert(3, 0, bucket=3 << 29)]))
case("V23 reserved bits", D, "V23")(lambda t: in_delta(t, [insert(3, 0, bucket=B0 | 0x1000)]))
case("V23 negative", D, "V23")(lambda t: in_delta(t, [insert(3, 0, bucket=-1)]))


def damaged(content: bytes, name: str = "delta_0000001_0000001_0000/bucket_00000") -> Plant:
    return lambda table: (table / name).write_bytes(content)


# Without its rows a delete event has no target: that is not sure to be wrong.
case("V46 zero length", D, "V46 warning", "V33 warning")(damaged(b""))
case("V46 zero length deletes", L, "V46")(
    lambda t: (
        write_by_pyorc(t / "delete_delta_0000003_0000003_0000", [delete(1, 1, 3)]),
        (t / "delete_delta_0000003_0000003_0000/bucket_00001").touch(),
    )
)
case("V24 garbage", D, "V24", "V33 warning")(damaged(b"not ORC at all"))
case("V24 cut", D, "V24")(damaged(b"ORC" + bytes(100), "delta_0000002_0000002_0000/bucket_00000"))
case("V24 directory", L, "V24")(lambda t: (t / "delta_0000001_0000001_0000/bucket_00001").mkdir())
case("V46 empty original", D, "V46 info")(lambda t: (t / "000000_0").touch())
case("V25 no ids", F, "V25")(
    lambda t: write_orc(t / "delta_0000002_0000002_0000/bucket_00000", "struct<a:int>", [(1,)])
)
case("V25 ids of other types", F, "V25")(
    lambda t: write_orc(
        t / "delta_0000002_0000002_0000/bucket_00000",
        ACID.replace("operation:int", "operation:string"),
        [("0", *insert(2, 0)[1:])],
        {"hive.acid.key.index": f"2,{B0},0;", "hive.acid.stats": "1,0,0", "hive.acid.version": "2"},
    )
)
case("V25 raw in a wide delta", F, "V25")(
    lambda t: write_orc(t / "delta_0000003_0000004/000000_0", "struct<a:int>", [(1,)])
)
case("V25 mixed", L, "V25")(lambda t: write_orc(t / "delta_0000001_0000001_0000/000000_0", "struct<a:int>", [(1,)]))
case("V25 ids in an original", F, "V25 warning")(
    lambda t: (
        in_delta(t, [insert(3, 0)], marker=None).rename(t / "000000_0") and (t / "delta_0000003_0000003_0000").rmdir()
    )
)
case("V26 descending", D, "V26")(lambda t: in_delta(t, [insert(3, 1), insert(3, 0), insert(3, 2)]))
case("V27 in a file", D, "V27")(lambda t: in_delta(t, [insert(3, 0), insert(3, 0)]))
case("V26 deletes", D, "V26")(
    lambda t: write_by_pyorc(t / "delete_delta_0000003_0000003_0000", [delete(1, 1, 3), delete(1, 0, 3)])
)
case("V26 equal deletes, stripe by stripe", D, "V34 warning", "V30 warning")(
    lambda t: write_by_pyorc(
        t / "delete_delta_0000003_0000004",
        [delete(1, row % 2, write_id) for row in (0, 1) for write_id in (4, 3)],
        metadata={"hive.acid.key.index": None},
    )
)
case("V26 same delete twice", D, "V26")(
    lambda t: write_by_pyorc(t / "delete_delta_0000003_0000003_0000", [delete(1, 1, 3), delete(1, 1, 3)])
)


@case("V27", D, "V27")
def _(table: Path) -> None:
    for statement in (0, 1):
        in_delta(table, [insert(3, 0), insert(3, 1)], f"delta_0000003_0000003_000{statement}")


case("V28 not the delta's", D, "V28")(lambda t: in_delta(t, [insert(4, 0)]))
case("V28 above the base", D, "V28", "V20 info")(
    lambda t: write_by_pyorc(t / "base_0000002", [insert(1, 0), insert(1, 1), insert(7, 0)])
)
case("V28 a row from the future", D, "V28")(lambda t: in_delta(t, [insert(5, 0, current=3)]))
case("V28 moved", D, "V28")(lambda t: in_delta(t, [insert(2, 7, current=3)], "delta_0000003_0000003"))
case("V28 moved, in a base", D, "V28 warning", "V20 info")(
    lambda t: write_by_pyorc(t / "base_0000002", [insert(1, 0, current=2)])
)
case("V28 originals' base", D, "V28")(lambda t: write_by_pyorc(t / f"base_{-(2**63)}", [insert(9, 5)]))
case("V29 null", D, "V29")(
    lambda t: in_delta(t, [insert(3, 0), (0, 3, B0, None, 3, None), insert(3, 1)], name="delta_0000003_0000003_0000")
)
case("V29 negative", D, "V29", "V29 warning")(lambda t: in_delta(t, [insert(3, -1), insert(3, 0)]))
case("V29 gap", D, "V29 warning")(lambda t: in_delta(t, [insert(3, 0), insert(3, 2)]))
case("V29 late", D, "V29 warning")(lambda t: in_delta(t, [insert(3, 1), insert(3, 2)]))


def with_metadata(key: str, value: str | None) -> Plant:
    return lambda table: in_delta(table, [insert(3, 0), insert(3, 1)], metadata={f"hive.acid.{key}": value})


case("V30 missing", F, "V30 warning")(with_metadata("key.index", None))
case("V30 too short", F, "V30")(with_metadata("key.index", ""))
case("V30 too long", F, "V30")(with_metadata("key.index", f"3,{B0},0;3,{B0},1;"))
case("V30 no semicolon", F, "V30")(with_metadata("key.index", f"3,{B0},1"))
case("V30 nonsense", F, "V30")(with_metadata("key.index", "a,b,c;"))
case("V30 other key", D, "V30")(with_metadata("key.index", f"3,{B0},0;"))
case("V30 unknown key", D)(with_metadata("key.index", ";"))
case("V31 missing", F, "V31 warning")(with_metadata("stats", None))
case("V31 nonsense", F, "V31")(with_metadata("stats", "1,2"))
case("V31 other sum", F, "V31")(with_metadata("stats", "3,0,0"))
case("V31 other kinds", D, "V31")(with_metadata("stats", "0,0,2"))
case("V32 missing", F, "V32 warning")(with_metadata("version", None))
case("V32 other", F, "V32 warning")(with_metadata("version", "3"))
case("V32 joined by Hive 4", F, "V32 info")(
    lambda t: in_delta(t, [insert(3, 0)], "delta_0000003_0000004_v0000007", metadata={"hive.acid.version": None})
)
case("V32 a bucket without rows", F, "V32 info")(
    lambda t: in_delta(t, [], metadata={"hive.acid.version": None, "hive.acid.stats": "0,0,0"})
)
case("V13 missing where Hive 4 wrote all", F, "V13 warning")(
    lambda t: [
        *(shutil.rmtree(one) for one in t.iterdir()),
        in_delta(t, [insert(3, 0)], "base_0000003_v0000007", marker=None),
    ]
)
case("V32 nonsense", F, "V32 warning")(with_metadata("version", "two"))
case("V33", D, "V33")(
    lambda t: write_by_pyorc(t / "delete_delta_0000003_0000003_0000", [delete(1, 0, 3), delete(1, 9, 3)])
)
case("V33 below a base", D, "V33 warning", "V20 info")(
    lambda t: (
        write_by_pyorc(t / "base_0000002", [insert(1, 0)]),
        write_by_pyorc(t / "delete_delta_0000003_0000003_0000", [delete(1, 1, 3)]),
    )
)
case("V33 in a snapshot", D, "V33 warning", write_ids="t:100:9223372036854775807::50")(
    lambda t: write_by_pyorc(t / "delete_delta_0000003_0000003_0000", [delete(1, 9, 3)])
)
case("V33 not of a collapsed insert", D)(
    lambda t: write_by_pyorc(t / "delete_delta_0000003_0000004", [delete(3, 9, 3), delete(4, 0, 4)])
)


@case("V34 two files", D, "V34 warning")
def _(table: Path) -> None:
    write_by_pyorc(table / "delete_delta_0000003_0000003_0000", [delete(1, 2, 3)])


case("V34 one file", D, "V34 warning")(
    lambda t: write_by_pyorc(t / "delete_delta_0000003_0000004", [delete(1, 0, 4), delete(1, 0, 3)])
)


@case("V35", D, "V35")
def _(table: Path) -> None:
    write_by_pyorc(table / "delete_delta_0000003_0000003_0000", [delete(4, 0, 3)])
    in_delta(table, [insert(4, 0)], "delta_0000004_0000004_0000")


def streaming(*lengths: int, tail: bytes = b"", wrong: str = "") -> Plant:
    def plant(table: Path) -> None:
        name = wrong or "delta_0000003_0000004"
        data = write_by_pyorc(table / name, [insert(3, 0)])
        size = data.stat().st_size
        numbers = [size if length < 0 else length for length in lengths]
        (table / name / "bucket_00000_flush_length").write_bytes(struct.pack(f">{len(numbers)}q", *numbers) + tail)

    return plant


case("V36 a directory", L, "V36")(
    lambda t: (
        in_delta(t, [insert(3, 0)], "delta_0000003_0000004"),
        (t / "delta_0000003_0000004/bucket_00000_flush_length").mkdir(),
    )
)
case("V36 fine", D)(streaming(0, -1))
case("V36 nothing committed", D)(streaming(0))
case("V36 torn", D, "V36 warning")(streaming(0, -1, tail=b"\0\0\0"))
case("V36 only torn", F, "V36", "V36 warning")(streaming(tail=b"\0\0\0"))
case("V36 empty", F, "V36")(streaming())
case("V36 negative", F, "V36")(
    lambda t: (
        streaming(0)(t),
        (t / "delta_0000003_0000004/bucket_00000_flush_length").write_bytes(struct.pack(">q", -9)),
    )
)
case("V36 beyond the end", F, "V36")(streaming(0, 10**9))
case("V36 backwards", F, "V36 warning")(streaming(0, 10**9, -1))
case("V36 not here", L, "V36 warning")(streaming(0, -1, wrong="delta_0000003_0000003_0000"))
case("V36 alone", L, "V36 warning")(
    lambda t: (
        (streaming(0, -1)(t), (t / "delta_0000003_0000004/bucket_00000").rename(t / "_aside"))
        and write_by_pyorc(t / "delta_0000003_0000004", [insert(3, 0)], "bucket_00001")
    )
)
case("V37", D, "V37 warning", write_ids="t:9:9223372036854775807::3")(
    lambda t: in_delta(t, [insert(3, 0), insert(4, 0)], "delta_0000003_0000004_v0000009")
)
case("V38 _colN", F, "V38 warning")(
    lambda t: in_delta(t, [insert(3, 0)], schema=ACID.replace("a:int,b:string", "_col0:int,_col1:string"))
)
case("V39 no row", F, "V39")(
    lambda t: write_orc(t / "delta_0000002_0000002_0000/bucket_00000", f"struct<{IDS}>", [insert(2, 0)[:5]])
)
case("V39 rows without a struct", D, "V39")(lambda t: in_delta(t, [insert(3, 0), (0, 3, B0, 1, 3, None)]))
case("V39 row is not a struct", F, "V39")(
    lambda t: in_delta(t, [(*insert(3, 0)[:5], 7)], schema=f"struct<{IDS},row:int>")
)
case("healthy", D)(lambda t: None)
