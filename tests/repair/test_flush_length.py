"""A dead streaming writer's file is cut to what was committed; whatever is doubtful stays as it is."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from support.files.acid_files import write_by_pyorc
from support.files.stream import DELTA, FILE, FIRST, SECOND, SIDE
from support.repairing import FS, planned, repair, rows, rules, streamed, tail_of, tree

from acidctl.base.errors import ConflictError
from acidctl.repair.apply import apply_repair
from acidctl.repair.backup import undo_last
from acidctl.repair.plan import RepairKind


@pytest.fixture
def table(tmp_path: Path) -> Path:
    streamed(tmp_path / "t" / FILE, FIRST, SECOND)
    return tmp_path / "t"


def test_what_was_never_committed_goes(table: Path) -> None:
    before = rows(table)
    assert len(before) == 3
    size, committed = (table / FILE).stat().st_size, tail_of(table / FILE, length_of(table)).file_length
    (fix,) = planned(table, RepairKind.FLUSH_LENGTH).fixes
    assert f"{size - committed:,} bytes lie beyond" in fix.problem
    assert "they hold 4 rows" in fix.problem
    assert "3 rows" in fix.remedy
    assert repair(table, RepairKind.FLUSH_LENGTH)
    assert (table / FILE).stat().st_size == committed
    assert not (table / SIDE).exists()
    assert rows(table) == before
    assert not {rule for rule in rules(table) if rule.startswith("V36")}
    assert planned(table, RepairKind.FLUSH_LENGTH).fixes == ()


def length_of(table: Path) -> int:
    return int.from_bytes((table / SIDE).read_bytes()[-8:], "big")


def test_undone_it_is_as_it_was(table: Path) -> None:
    before = tree(table)
    repair(table, RepairKind.FLUSH_LENGTH)
    undo_last(FS, str(table))
    assert tree(table) == before


def test_without_a_footer_rows_are_not_counted(table: Path) -> None:
    with (table / FILE).open("r+b") as file:
        file.truncate(length_of(table) + 10)
    (fix,) = planned(table, RepairKind.FLUSH_LENGTH).fixes
    assert "10 bytes lie beyond" in fix.problem
    assert "cannot be counted" in fix.problem
    assert repair(table, RepairKind.FLUSH_LENGTH)
    assert len(rows(table)) == 3


def test_file_with_nothing_beyond_keeps_its_bytes(table: Path) -> None:
    with (table / FILE).open("r+b") as file:
        file.truncate(length_of(table))
    before = (table / FILE).read_bytes()
    assert repair(table, RepairKind.FLUSH_LENGTH)
    assert (table / FILE).read_bytes() == before
    assert not (table / SIDE).exists()


def test_file_of_which_nothing_was_committed_goes(table: Path) -> None:
    (table / SIDE).write_bytes(bytes(8))
    before = tree(table)
    assert repair(table, RepairKind.FLUSH_LENGTH)
    assert sorted(path.name for path in (table / DELTA).iterdir()) == ["_orc_acid_version"]
    assert rows(table) == []
    undo_last(FS, str(table))
    assert tree(table) == before


def test_a_torn_last_length_is_passed_over(table: Path) -> None:
    with (table / SIDE).open("ab") as side:
        side.write(b"\0\0\0")
    assert repair(table, RepairKind.FLUSH_LENGTH)
    assert len(rows(table)) == 3


@pytest.mark.parametrize(
    ("lengths", "why"),
    [
        ([], "no complete length"),
        ([0, 10**9], "bytes were committed"),
        ([0, 500, 400], "do not ascend"),
        ([-5], "do not ascend"),
        ([0, 57], ""),
    ],
)
def test_what_cannot_be_cut_safely_says_so(lengths: list[int], why: str, table: Path) -> None:
    (table / SIDE).write_bytes(b"".join(n.to_bytes(8, "big", signed=True) for n in lengths))
    before = tree(table)
    plan = planned(table, RepairKind.FLUSH_LENGTH)
    (refused,) = plan.refused
    assert (plan.fixes, refused.path) == ((), FILE)
    assert why in refused.why
    assert apply_repair(plan) is None
    assert tree(table) == before


def test_side_file_without_its_file_is_refused(table: Path) -> None:
    (table / FILE).unlink()
    plan = planned(table, RepairKind.FLUSH_LENGTH)
    (refused,) = plan.refused
    assert (plan.fixes, refused.path) == ((), SIDE)


@pytest.mark.parametrize("name", ["delta_0000001_0000001", "delta_0000001_0000003_v0000009"])
def test_where_no_stream_writes_nothing_is_cut(name: str, tmp_path: Path) -> None:
    file = write_by_pyorc(tmp_path / "t" / name, FIRST)
    file.with_name("bucket_00000_flush_length").write_bytes(bytes(8))
    plan = planned(tmp_path / "t", RepairKind.FLUSH_LENGTH)
    assert (plan.fixes, plan.refused) == ((), ())


def test_a_living_writer_is_left_alone(table: Path) -> None:
    now = time.time()
    (refused,) = planned(table, RepairKind.FLUSH_LENGTH, now=now).refused
    assert "may be at work" in refused.why
    assert planned(table, RepairKind.FLUSH_LENGTH, now=now + 3700).fixes
    assert planned(table, RepairKind.FLUSH_LENGTH, now=now, force=True).fixes


def test_a_file_that_grows_meanwhile(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from acidctl.repair import apply

    real = apply._stage

    def grows(*given: object) -> None:
        real(*given)  # type: ignore[arg-type]
        with (table / FILE).open("ab") as file:
            file.write(b"more")

    monkeypatch.setattr(apply, "_stage", grows)
    with pytest.raises(ConflictError, match="changed while it was repaired"):
        repair(table, RepairKind.FLUSH_LENGTH)
    assert (table / SIDE).exists()
    assert (table / FILE).read_bytes().endswith(b"more")
    assert not (table / ".acidctl-backup").exists()
