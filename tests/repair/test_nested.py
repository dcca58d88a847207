"""A directory in another of its name: a repetition goes, a lost one takes its place, all else is for a human being."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest
from support.files.acid_files import delete, insert, write_by_pyorc, write_plain
from support.repairing import FS, planned, repair, rows, rules, tree
from support.validating import healthy

from acidctl.base.errors import ConflictError
from acidctl.location.change.journal import RunState
from acidctl.repair.backup import backup_runs, undo_last
from acidctl.repair.plan import RepairKind

BASE = "base_0000003"
NESTED = f"{BASE}/{BASE}"
EVENTS = [insert(1, row) for row in range(3)]
COMPACTED = b'{"thisFileVersion":"0","dataFormat":"compacted"}'


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A base, with the same base in it."""
    table = tmp_path / "t"
    write_by_pyorc(table / BASE, EVENTS)
    (table / BASE / "_metadata_acid").write_bytes(COMPACTED)
    shutil.copytree(table / BASE, table / NESTED)
    return table


@pytest.fixture
def lost(table: Path) -> Path:
    """A base that holds nothing but its markers and the base that belongs there, which has none."""
    (table / BASE / "bucket_00000").unlink()
    for name in ("_metadata_acid", "_orc_acid_version"):
        (table / NESTED / name).unlink()
    return table


def test_repetition_of_a_directory_goes(table: Path) -> None:
    before, files = rows(table), tree(table)
    assert "V17" in rules(table)
    (fix,) = planned(table, RepairKind.NESTED).fixes
    assert (fix.path, fix.is_gap) == (NESTED, False)
    assert repair(table, RepairKind.NESTED)
    assert rows(table) == before
    assert not (table / NESTED).exists()
    assert "V17" not in rules(table)
    undo_last(FS, str(table))
    assert tree(table) == files


def test_the_same_events_in_other_bytes(table: Path) -> None:
    write_by_pyorc(table / NESTED, EVENTS, compression=0)
    assert repair(table, RepairKind.NESTED)


def test_a_lost_one_takes_its_place(lost: Path) -> None:
    files = tree(lost)
    (fix,) = planned(lost, RepairKind.NESTED).fixes
    assert fix.is_gap
    assert "3 events" in fix.problem
    assert repair(lost, RepairKind.NESTED)
    assert len(rows(lost)) == 3
    assert sorted(path.name for path in (lost / BASE).iterdir()) == [
        "_metadata_acid",
        "_orc_acid_version",
        "bucket_00000",
    ]
    assert not {rule for rule in rules(lost) if rule.startswith(("V17", "V15", "V13"))}
    undo_last(FS, str(lost))
    assert tree(lost) == files


def test_empty_nested_directory_goes(table: Path) -> None:
    shutil.rmtree(table / NESTED)
    (table / NESTED).mkdir()
    assert repair(table, RepairKind.NESTED)
    assert not (table / NESTED).exists()


def make_other_events(table: Path) -> None:
    write_by_pyorc(table / NESTED, [insert(1, 9)])


def make_more_files(table: Path) -> None:
    write_by_pyorc(table / NESTED, [insert(1, 0, bucket=536936448)], "bucket_00001")


def make_other_name(table: Path) -> None:
    (table / NESTED).rename(table / BASE / "delta_0000004_0000004_0000")


def make_deeper(table: Path) -> None:
    (table / NESTED / "more").mkdir()


def make_raw(table: Path) -> None:
    (table / NESTED / "bucket_00000").unlink()
    write_plain(table / NESTED / "000000_0", (1, 2))


def make_damage(table: Path) -> None:
    (table / NESTED / "bucket_00000").write_bytes(b"")


def make_no_orc(table: Path) -> None:
    (table / NESTED / "bucket_00000").write_bytes(b"this is not an ORC file")


def make_side_file(table: Path) -> None:
    (table / NESTED / "bucket_00000_flush_length").write_bytes(bytes(8))


@pytest.mark.parametrize(
    "change",
    [
        make_other_events,
        make_more_files,
        make_other_name,
        make_deeper,
        make_raw,
        make_damage,
        make_no_orc,
        make_side_file,
    ],
)
def test_what_is_doubtful_says_so(change, table: Path) -> None:  # type: ignore[no-untyped-def]
    change(table)
    before = tree(table)
    plan = planned(table, RepairKind.NESTED)
    assert (plan.fixes, len(plan.refused)) == ((), 1)
    assert plan.refused[0].why
    assert repair(table, RepairKind.NESTED) is None
    assert tree(table) == before


def test_nested_directory_with_another_marker_is_refused(lost: Path) -> None:
    (lost / NESTED / "_orc_acid_version").write_bytes(b"1")
    (refused,) = planned(lost, RepairKind.NESTED).refused
    assert "differ" in refused.why


def test_what_is_written_now_is_left_alone(table: Path) -> None:
    (refused,) = planned(table, RepairKind.NESTED, now=time.time()).refused
    assert "may be at work" in refused.why


def test_repetition_of_a_delete_delta_goes(tmp_path: Path) -> None:
    table = healthy(tmp_path / "t")
    name = "delete_delta_0000002_0000002_0000"
    write_by_pyorc(table / name / name, [delete(1, 2, 2)])
    before = rows(table)
    assert repair(table, RepairKind.NESTED)
    assert rows(table) == before


def test_a_healthy_table_needs_nothing(tmp_path: Path) -> None:
    plan = planned(healthy(tmp_path / "t"), RepairKind.NESTED)
    assert (plan.fixes, plan.refused) == ((), ())


def test_a_place_that_is_taken_meanwhile(lost: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the two renames somebody made the directory anew: theirs stays, and nothing is lost."""
    real = type(FS).rename

    def taken(self: object, source: str, target: str) -> None:
        real(self, source, target)  # type: ignore[arg-type]
        if source == str(lost / BASE):
            write_by_pyorc(lost / BASE, [insert(1, 7)])

    monkeypatch.setattr(type(FS), "rename", taken)
    with pytest.raises(ConflictError):
        repair(lost, RepairKind.NESTED)
    monkeypatch.undo()
    theirs = rows(lost)
    (run,) = backup_runs(FS, str(lost))
    assert run.state is RunState.INTERRUPTED
    with pytest.raises(ConflictError, match="changed meanwhile"):
        undo_last(FS, str(lost))
    assert rows(lost) == theirs
    (lost / BASE).rename(lost / "_theirs")
    undo_last(FS, str(lost))
    assert (lost / NESTED / "bucket_00000").is_file()
