"""`--for`: what one kind of reader refuses or misreads."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from support.files.acid_files import delete, insert, write_by_pyorc, write_orc
from support.validating import check, found, healthy

from acidctl.validation.checks import RULES
from acidctl.validation.findings import READERS, Depth

Plant = Callable[[Path], object]


def side_file(table: Path) -> None:
    data = write_by_pyorc(table / "delta_0000003_0000004", [insert(3, 0)])
    (data.parent / "bucket_00000_flush_length").write_bytes(struct.pack(">2q", 0, data.stat().st_size))


def truncated(table: Path) -> None:
    (table / "base_0000005").mkdir()
    (table / "base_0000005/_metadata_acid").write_text('{"thisFileVersion":"0","dataFormat":"truncated"}')


def compacted(table: Path) -> None:
    write_by_pyorc(table / "base_0000005", [insert(1, 0)])
    (table / "base_0000005/_metadata_acid").write_text('{"thisFileVersion":"0","dataFormat":"compacted"}')


def originals(table: Path) -> None:
    write_orc(table / "000001_0", "struct<a:int>", [(1,)])


def no_version(table: Path) -> None:
    unversioned = {"hive.acid.version": None}
    write_by_pyorc(table / "delta_0000003_0000003_0000", [insert(3, 0)], marker=None, metadata=unversioned)


def no_file(table: Path) -> None:
    (table / "base_0000005").mkdir(parents=True)
    (table / "base_0000005/_orc_acid_version").write_text("2")


def version_1(table: Path) -> None:
    write_by_pyorc(
        table / "delta_0000003_0000003",
        [(1, 1, 0, 0, 3, (1, "x")), (2, 1, 0, 1, 3, None)],
        marker=None,
        metadata={"hive.acid.version": None},
    )


CASES: dict[str, tuple[Plant, set[str]]] = {
    "R1": (lambda t: write_by_pyorc(t / "delta_0000003_0000004_v0000009", [insert(3, 0)]), {"hive2", "hive3"}),
    "R2": (
        lambda t: write_by_pyorc(t / "delete_delta_0000003_0000003_0000", [delete(1, 0, 3)], "bucket_00000_0"),
        {"hive2", "hive3", "trino"},
    ),
    "R3": (no_version, {"trino"}),
    "R4": (truncated, {"hive3"}),
    "R5": (side_file, {"trino", "impala"}),
    "R6": (lambda t: write_by_pyorc(t / "base_0000002_v0000099", [insert(1, 0)]), {"trino"}),
    "R7": (lambda t: write_by_pyorc(t / "delta_0000003_0000003_0000_v0000009", [insert(3, 0)]), {"impala"}),
    "R8": (
        lambda t: write_orc(t / "delta_0000003_0000003_0000/HIVE_UNION_SUBDIR_1/000000_0", "struct<a:int>", [(1,)]),
        {"trino"},
    ),
    "R9": (originals, {"trino"}),
    "R10": (lambda t: write_orc(t / "delta_0000003_0000003_0000/000000_0", "struct<a:int>", [(1,)]), {"hive2"}),
    "R11": (
        lambda t: write_by_pyorc(
            t / "delta_0000003_0000003_0000", [insert(3, 0)], metadata={"hive.acid.key.index": None}
        ),
        {"hive2", "hive3"},
    ),
    "R12": (lambda t: None, {"hive2"}),
    "R13": (version_1, {"hive3", "hive4", "trino", "impala"}),
    "R15": (
        lambda t: write_by_pyorc(t / "delta_0000003_0000003_0000", [insert(3, 0)], row_index_stride=0),
        {"hive3", "hive4", "trino", "impala", "spark"},
    ),
    "R16": (lambda t: None, {"spark"}),
    "R17": (lambda t: write_by_pyorc(t / "base_0000050", [insert(1, 0)]), {"hive3", "trino"}),
    "R18": (compacted, {"impala"}),
    "R19": (no_file, {"trino"}),
    "R20": (
        lambda t: [write_orc(t / name, "struct<a:int>", [(1,)]) for name in ("000000_0", "000000_0_copy_1")],
        {"hive3", "hive4"},
    ),
}


@pytest.mark.parametrize("rule", CASES)
def test_a_reader_is_warned(tmp_path: Path, rule: str) -> None:
    plant, readers = CASES[rule]
    table = healthy(tmp_path / "t")
    plant(table)
    lists = {"R6": {"txns": "100:99:99:"}, "R17": {"write_ids": "t:20:9223372036854775807::"}}.get(rule, {})
    told = {
        reader
        for reader in READERS
        if rule in {one.split()[0] for one in found(check(table, depth=Depth.FOOTERS, readers=(reader,), **lists)[0])}
    }
    assert told == readers == set(RULES[rule].readers)


def test_trino_is_not_warned_of_what_it_reads(tmp_path: Path) -> None:
    """Rows in files of attempts; no marker where the files tell their version; an empty base that hides nothing."""
    table = healthy(tmp_path / "t")
    write_by_pyorc(table / "delta_0000003_0000003_0000", [insert(3, 0)], "bucket_00000_0", marker=None)
    unversioned = {"hive.acid.version": None}
    write_by_pyorc(table / "delete_delta_0000004_0000004_0000", [delete(3, 0, 4)], marker=None, metadata=unversioned)
    (report,) = check(table, depth=Depth.FOOTERS, readers=("trino",))
    assert not {one for one in found(report) if one.startswith("R")}
    no_file(tmp_path / "emptied")
    (report,) = check(tmp_path / "emptied", readers=("trino",))
    assert not {one for one in found(report) if one.startswith("R")}


@pytest.mark.parametrize("marker", [b"2", None])
@pytest.mark.parametrize("version", ["2", None])
def test_trino_needs_the_version_of_a_base_in_one_of_two_places(
    tmp_path: Path, version: str | None, marker: bytes | None
) -> None:
    base = tmp_path / "t/base_0000003"
    write_by_pyorc(base, [insert(1, 0)], marker=marker, metadata={"hive.acid.version": version})
    (report,) = check(tmp_path / "t", depth=Depth.FOOTERS, readers=("trino",))
    assert ("R3" in {one.split()[0] for one in found(report)}) == (version is marker is None)


def test_every_reader_rule_is_planted() -> None:
    assert set(CASES) == {rule.id for rule in RULES.values() if rule.readers}


def test_reader_rules_are_silent_where_nobody_asked(tmp_path: Path) -> None:
    table = healthy(tmp_path / "t")
    version_1(table)
    assert not {one for one in found(check(table)[0]) if one.startswith("R")}


def test_insert_only_layouts_are_warned_of_for_spark(tmp_path: Path) -> None:
    table = tmp_path / "t"
    write_orc(table / "delta_0000001_0000001_0000/000000_0", "struct<a:int>", [(1,)])
    assert found(check(table, readers=("spark",))[0]) == set()
    write_orc(table / "base_0000001/000000_0", "struct<a:int>", [(1,)])
    assert "R16" in found(check(table, readers=("spark",))[0])


def test_readers_that_know_compacted_bases_only_are_warned_of_a_dropped_partition(tmp_path: Path) -> None:
    table = healthy(tmp_path / "t")
    (table / "base_0000005").mkdir()
    (table / "base_0000005/_metadata_acid").write_text('{"thisFileVersion":"0","dataFormat":"dropped"}')
    told = {
        reader: "R4" in found(check(table, depth=Depth.FOOTERS, readers=(reader,))[0]) for reader in ("hive3", "hive4")
    }
    assert told == {"hive3": True, "hive4": False}
