"""Tables that Hive wrote, and layouts without ids, give no error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet as pq
from support.compacting import copy_table, run_compaction
from support.engines.written_by_hive import HIVE23
from support.files.acid_files import B0, Event, delete, write_by_pyorc, write_orc
from support.validating import check, found, healthy

from acidctl.acid.compaction_kind import CompactionKind
from acidctl.base.errors import RefusedError
from acidctl.validation.findings import Depth, Severity


def errors(table: Path, **options: object) -> list[str]:
    return [
        f"{report.location} {finding.rule} {finding.path} {finding.message}"
        for report in check(table, **options)  # type: ignore[arg-type]
        for finding in report.findings
        if finding.severity is Severity.ERROR
    ] + [str(one.error) for report in check(table, **options) for one in report.unchecked]  # type: ignore[arg-type]


@pytest.mark.parametrize("name", sorted(path.name for path in HIVE23.iterdir() if path.is_dir()))
def test_tables_of_hive_2_have_no_errors(name: str) -> None:
    table = HIVE23 / name / "table"
    assert errors(table) == []


@pytest.mark.parametrize(
    "name", ["nation-25k/table", "originals-with-copies/table", "streaming-two-txns/table", "hdp3-hcube"]
)
def test_tables_of_hive_3_have_no_errors(shared_data: Path, name: str) -> None:
    assert errors(shared_data / "hive-written" / name) == []


def test_acid_v1_is_told(own_data: Path) -> None:
    (report,) = check(own_data / "hive23-written" / "alltypes_v1" / "table")
    assert "V12 info" in found(report)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("kind", list(CompactionKind))
@pytest.mark.parametrize("name", sorted(path.name for path in HIVE23.iterdir() if path.is_dir()))
def test_what_acidctl_compacts_has_no_findings(tmp_path: Path, name: str, kind: CompactionKind) -> None:
    table = copy_table(HIVE23 / name / "table", tmp_path / "t")
    try:
        run_compaction(table, kind)
    except RefusedError:
        pytest.skip("this table cannot be compacted so")
    assert errors(table) == []


def test_insert_only_table_has_no_errors(tmp_path: Path) -> None:
    table = tmp_path / "t"
    write_orc(table / "delta_0000001_0000001_0000/000000_0", "struct<a:int>", [(1,), (2,)])
    write_orc(table / "delta_0000002_0000004_v0000009/000000_0", "struct<a:int>", [(1,)])
    write_orc(table / "delta_0000005_0000005_0000/HIVE_UNION_SUBDIR_1/000000_0", "struct<a:int>", [(1,)])
    (table / "delta_0000006_0000006_0000").mkdir()
    pq.write_table(pa.table({"a": [1, 2]}), table / "delta_0000006_0000006_0000/000001_0")
    (report,) = check(table)
    assert found(report) == {"V45 warning"}, "Hive 3 does not read the folder of a UNION ALL"
    assert report.rows == 6


def test_originals_alone_are_only_noted(tmp_path: Path) -> None:
    for name in ("000000_0", "000000_0_copy_1", "000001_0"):
        write_orc(tmp_path / "t" / name, "struct<a:int>", [(1,), (2,)])
    (report,) = check(tmp_path / "t")
    assert found(report) == {"V42 info"}, "a table of original files looks like one that was never ACID"
    assert report.rows == 6


def test_deletes_of_rows_without_ids(tmp_path: Path) -> None:
    table = tmp_path / "t"
    for name in ("000000_0", "000000_0_copy_1"):
        write_orc(table / name, "struct<a:int>", [(1,), (2,)])
    write_orc(table / "delta_0000003_0000003_0001/000000_0", "struct<a:int>", [(1,), (2,)])
    events = [delete(0, 3, 4), delete(3, 1, 4, B0 + 1)]
    write_by_pyorc(table / "delete_delta_0000004_0000004_0000", events)
    (report,) = check(table)
    assert found(report) == set()
    write_by_pyorc(table / "delete_delta_0000005_0000005_0000", [delete(0, 4, 5), delete(3, 2, 5, B0 + 1)])
    (report,) = check(table)
    assert found(report) == {"V33", "V33 warning"}


def test_deletes_of_rows_that_cannot_be_numbered(tmp_path: Path) -> None:
    table = tmp_path / "t"
    for name in ("000000_0", "000000_0_copy_1", "000001_0"):
        write_orc(table / name, "struct<a:int>", [(1,), (2,)])
    (table / "000000_0").write_bytes(b"ORC, once")
    write_by_pyorc(table / "delete_delta_0000004_0000004_0000", [delete(0, 3, 4)])
    (report,) = check(table)
    assert found(report) == {"V24", "V33 warning"}


def test_acid_v1_without_a_row_index(tmp_path: Path) -> None:
    events: list[Event] = [(0, 1, 0, 0, 1, (1, "x")), (0, 1, 0, 1, 1, (1, "x"))]
    changes: list[Event] = [(1, 1, 0, 0, 2, (1, "y")), (2, 1, 0, 1, 2, None)]
    kw: dict[str, object] = {"marker": None, "metadata": {"hive.acid.version": None}, "row_index_stride": 0}
    write_by_pyorc(tmp_path / "t/delta_0000001_0000001", events, **kw)  # type: ignore[arg-type]
    write_by_pyorc(tmp_path / "t/delta_0000002_0000002", changes, **kw)  # type: ignore[arg-type]
    (report,) = check(tmp_path / "t", readers=("hive3",))
    assert found(report) == {"V12 info", "R13", "R15 info"}
    kw["metadata"] = {"hive.acid.version": None, "hive.acid.stats": None}
    write_by_pyorc(tmp_path / "t/delta_0000002_0000002", changes, **kw)  # type: ignore[arg-type]
    (report,) = check(tmp_path / "t")
    assert found(report) == {"V12 info", "V31 warning"}


@pytest.mark.parametrize("depth", list(Depth)[1:])
@pytest.mark.parametrize("has_index", [True, False])
def test_updates_in_a_base_of_acid_v1_need_no_compaction(tmp_path: Path, depth: Depth, *, has_index: bool) -> None:
    """A major compaction of Hive 2 leaves them. Without an index only rows show updates, and a base has none then."""
    kw: dict[str, Any] = {"marker": None, "metadata": {"hive.acid.version": None}}
    if not has_index:
        kw = {"marker": None, "metadata": {"hive.acid.version": None, "hive.acid.stats": None}, "row_index_stride": 0}
    is_seen = has_index or depth is Depth.DEEP

    def remarks() -> list[str]:
        (report,) = check(tmp_path / "t", depth=depth)
        assert "V12" not in found(report)
        return [finding.message for finding in report.findings if finding.rule == "V12"]

    write_by_pyorc(tmp_path / "t/base_0000003", [(1, 1, 0, 0, 2, (1, "y"))], **kw)
    assert ["compact before" in text for text in remarks()] == [False] * has_index
    write_by_pyorc(tmp_path / "t/delta_0000004_0000004", [(1, 1, 0, 0, 4, (1, "z"))], **kw)
    assert ["compact before" in text for text in remarks()] == [True] * is_seen + [False] * has_index


def test_updates_in_a_base_beside_rows_of_version_2_are_no_error(tmp_path: Path) -> None:
    """As a major compaction of Hive 3 leaves them after the upgrade."""
    write_by_pyorc(tmp_path / "t/base_0000003", [(1, 1, 0, 0, 2, (1, "y")), (0, 3, B0, 0, 3, (1, "z"))])
    (report,) = check(tmp_path / "t")
    assert "V12" not in found(report)


def test_a_stream_that_has_just_begun(tmp_path: Path) -> None:
    table = healthy(tmp_path / "t")
    (table / "delta_0000003_0000012").mkdir()
    (table / "delta_0000003_0000012/_orc_acid_version").write_text("2")
    (table / "delta_0000003_0000012/bucket_00000").touch()
    (table / "delta_0000003_0000012/bucket_00000_flush_length").write_bytes(bytes(8))
    (report,) = check(table)
    assert found(report) == set()


def test_store_in_memory_is_checked(tmp_path: Path) -> None:
    from acidctl.storage.registry import open_location

    table = healthy(tmp_path / "t")
    fs, root = open_location("memory://validated/t")
    for path in sorted(table.rglob("*")):
        target = f"{root}/{path.relative_to(table)}"
        if path.is_dir():
            fs.make_dirs(target)
        else:
            fs.write_bytes(target, path.read_bytes())
    (report,) = check("memory://validated/t", processes=2)
    assert found(report) == set()
    assert report.rows == 5
