"""`--for`: what one kind of reader refuses or misreads."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from support.files.acid_files import B0, delete, insert, write_by_pyorc, write_orc
from support.validating import check, found, healthy

from acidctl.validation.checks import RULES
from acidctl.validation.findings import READERS, Depth, Finding

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


def finding_of(rule: str, table: Path, reader: str) -> Finding:
    (report,) = check(table, depth=Depth.FOOTERS, readers=(reader,))
    (one,) = (finding for finding in report.findings if finding.rule == rule)
    return one


def test_several_files_are_named_as_users_look_for_them(tmp_path: Path) -> None:
    names = [f"bucket_0000{bucket}_0" for bucket in range(4)]
    for bucket, name in enumerate(names):
        write_by_pyorc(tmp_path / "delta_0000001_0000001_0000", [insert(1, 0, bucket=B0 | bucket << 16)], name)
    one = finding_of("R2", tmp_path, "hive3")
    assert all(name in one.message for name in names[:3])
    assert one.evidence == {"files": names, "count": 4}


def test_what_a_base_without_files_hides_is_named(tmp_path: Path) -> None:
    no_file(healthy(tmp_path))
    hidden = ["delete_delta_0000002_0000002_0000", "delta_0000001_0000001_0000", "delta_0000002_0000002_0000"]
    one = finding_of("R19", tmp_path, "trino")
    assert sorted(one.evidence["hidden"]) == hidden
    assert "3 directories, such as " in one.message


def test_directories_that_are_not_current_are_evidence(tmp_path: Path) -> None:
    for name in ("base_0000002", "delta_0000001_0000001_0000", "delta_0000002_0000002_0000"):
        write_orc(tmp_path / name / "000000_0", "struct<a:int>", [(1,)])
    one = finding_of("R16", tmp_path, "spark")
    assert sorted(one.evidence["directories"]) == ["delta_0000001_0000001_0000", "delta_0000002_0000002_0000"]
    assert "2 directories, such as " in one.message


def test_three_originals_beside_a_base_are_named(tmp_path: Path) -> None:
    write_by_pyorc(tmp_path / "base_0000002", [insert(1, 0)])
    for bucket in range(5):
        write_orc(tmp_path / f"00000{bucket}_0", "struct<a:int>", [(1,)])
    one = finding_of("V18", tmp_path, "spark")
    assert all(f"00000{bucket}_0" in one.message for bucket in range(3))
    assert "2 more" in one.message
    assert one.message.startswith("5 original files or directories")
