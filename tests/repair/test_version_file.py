"""The marker is written only where every file beyond doubt is of version 2."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest
from support.files.acid_files import insert, write_by_pyorc, write_plain
from support.repairing import FS, planned, repair, rows, rules, tree
from support.validating import healthy

from acidctl.base.errors import ConflictError
from acidctl.repair import apply
from acidctl.repair.backup import RepairRun, undo_last
from acidctl.repair.plan import RepairKind
from acidctl.storage.port import FileSystem

DELTA = "delta_0000001_0000001_0000"
DELETES = "delete_delta_0000002_0000002_0000"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return healthy(tmp_path / "t")


def test_missing_marker_is_written(table: Path) -> None:
    before = rows(table)
    for name in (DELTA, DELETES):
        (table / name / "_orc_acid_version").unlink()
    files = tree(table)
    assert "V13 warning" in rules(table)
    run = repair(table, RepairKind.VERSION_FILE)
    assert run and set(run.paths) == {DELTA, DELETES}
    assert rules(table) == set()
    assert rows(table) == before
    assert (table / DELTA / "_orc_acid_version").read_bytes() == b"2"
    undo_last(FS, str(table))
    assert tree(table) == files


def test_what_went_meanwhile_is_not_repaired(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As by a DROP: a store that makes missing parents takes the manifest all the same."""
    (table / DELTA / "_orc_acid_version").unlink()
    write = apply.write_note

    def dropped(fs: FileSystem, run: RepairRun) -> None:
        shutil.rmtree(table)
        fs.make_dirs(run.path)
        write(fs, run)

    monkeypatch.setattr(apply, "write_note", dropped)
    with pytest.raises(ConflictError, match="changed while it was repaired") as raised:
        repair(table, RepairKind.VERSION_FILE)
    assert f"{DELTA}/_orc_acid_version is not there" in raised.value.why


@pytest.mark.parametrize("content", [b"", b"\n2", b"x"])
def test_torn_marker_is_written_anew(content: bytes, table: Path) -> None:
    marker = table / DELTA / "_orc_acid_version"
    marker.write_bytes(content)
    assert repair(table, RepairKind.VERSION_FILE)
    assert marker.read_bytes() == b"2"
    assert rules(table) == set()
    undo_last(FS, str(table))
    assert marker.read_bytes() == content


def test_the_ids_tell_where_no_footer_does(table: Path) -> None:
    write_by_pyorc(
        table / DELTA, [insert(1, row) for row in range(3)], metadata={"hive.acid.version": None}, marker=None
    )
    (table / DELTA / "_orc_acid_version").unlink()
    (fix,) = planned(table, RepairKind.VERSION_FILE).fixes
    assert "the ids in 1 file" in fix.problem


OLD: dict[str, str | None] = {"hive.acid.version": None}


@pytest.mark.parametrize(
    ("name", "events", "metadata", "why"),
    [
        ("delta_0000003_0000003", [insert(3, 0, bucket=0)], OLD, "plain bucket numbers"),
        ("delta_0000003_0000003", [insert(3, 0), (1, 1, 536870912, 1, 3, (1, "x"))], OLD, "version 1"),
        ("delta_0000003_0000003", [(2, 1, 536870912, 1, 3, None)], {}, "version 1"),
        ("delete_delta_0000003_0000003", [insert(3, 0)], {}, "version 1"),
        ("delta_0000003_0000003", [insert(3, 0)], {"hive.acid.version": "3"}, "version 3"),
        ("delta_0000003_0000003", [insert(3, 0)], {"hive.acid.version": "two"}, "not a number"),
        ("delta_0000003_0000003", [], OLD, "no file in it has rows"),
    ],
)
def test_what_is_of_another_version_gets_none(name: str, events, metadata, why: str, table: Path) -> None:  # type: ignore[no-untyped-def]
    write_by_pyorc(table / name, events, marker=None, metadata=metadata)
    plan = planned(table, RepairKind.VERSION_FILE)
    (refused,) = plan.refused
    assert (plan.fixes, refused.path) == ((), name)
    assert why in refused.why
    assert repair(table, RepairKind.VERSION_FILE) is None
    assert not (table / name / "_orc_acid_version").exists()


def test_a_table_of_hive_2_needs_none(tmp_path: Path) -> None:
    table = tmp_path / "t"
    write_by_pyorc(table / "delta_0000001_0000001", [insert(1, 0, bucket=0)], marker=None, metadata=OLD)
    plan = planned(table, RepairKind.VERSION_FILE)
    assert (plan.fixes, plan.refused) == ((), ())


def test_another_version_is_not_overwritten(table: Path) -> None:
    (table / DELTA / "_orc_acid_version").write_bytes(b"1")
    (refused,) = planned(table, RepairKind.VERSION_FILE).refused
    assert "says 1" in refused.why


def test_raw_directories_get_none(table: Path) -> None:
    write_plain(table / "delta_0000003_0000003_0000" / "000000_0", (1, 2))
    plan = planned(table, RepairKind.VERSION_FILE)
    assert (plan.fixes, plan.refused) == ((), ())


def test_a_file_that_is_no_acid_file(table: Path) -> None:
    write_plain(table / "delta_0000003_0000003_0000" / "bucket_00000", (1, 2))
    (refused,) = planned(table, RepairKind.VERSION_FILE).refused
    assert "no ACID columns" in refused.why


def test_what_is_written_now_is_left_alone(table: Path) -> None:
    (table / DELTA / "_orc_acid_version").unlink()
    (refused,) = planned(table, RepairKind.VERSION_FILE, now=time.time()).refused
    assert "may be at work" in refused.why
    assert planned(table, RepairKind.VERSION_FILE, now=time.time(), force=True).fixes
