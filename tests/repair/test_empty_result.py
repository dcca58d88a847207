"""A compaction's result without a file: its rows come back, what was deleted stays deleted, and nothing is cleaned."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from support.command_line import Result
from support.compacting import plan_compaction
from support.files.acid_files import delete, insert, write_by_pyorc
from support.repairing import FS, NOW, planned, repair, rows, rules, scope_of, tree
from support.tables import CLEAN_NOW, snapshot_of

from acidctl.acid.compaction_kind import CompactionKind
from acidctl.acid.reasons import Code
from acidctl.acid.writeids import ValidTxns, ValidWriteIds
from acidctl.base.errors import BadDataError, ConflictError
from acidctl.cleaning.plan import plan_cleaning
from acidctl.cleaning.retention import AT_ONCE
from acidctl.location.snapshot import take_snapshot
from acidctl.repair.apply import apply_repair, plan_repair
from acidctl.repair.backup import undo_last
from acidctl.repair.plan import RepairKind

KIND = RepairKind.EMPTY_RESULT
INPUTS = ["delta_0000001_0000001_0000", "delta_0000002_0000002_0000", "delete_delta_0000003_0000003_0000"]


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    """Six rows, of which two are deleted."""
    table = tmp_path / "t"
    write_by_pyorc(table / INPUTS[0], [insert(1, row) for row in range(3)])
    write_by_pyorc(table / INPUTS[1], [insert(2, row) for row in range(3)])
    write_by_pyorc(table / INPUTS[2], [delete(1, 0, 3), delete(2, 2, 3)])
    return table


def empty(table: Path, name: str) -> str:
    """A result of Hive 4 that has no file but its marker."""
    (table / name).mkdir()
    (table / name / "_orc_acid_version").write_text("2")
    return name


@pytest.fixture(params=["base_0000003_v0000007", "delta_0000001_0000003_v0000007"])
def table(request: pytest.FixtureRequest, inputs: Path) -> Path:
    empty(inputs, request.param)
    return inputs


def result_of(table: Path) -> str:
    (name,) = (path.name for path in table.iterdir() if "_v" in path.name)
    return name


def seen(table: Path) -> object:
    """By a reader who knows that all transactions are committed."""
    return take_snapshot(FS, str(table), ValidWriteIds(high_watermark=9), ValidTxns(high_watermark=99))


def test_the_rows_come_back_and_the_deleted_ones_do_not(table: Path) -> None:
    name = result_of(table)
    files = tree(table)
    assert rows(table) == []
    (fix,) = planned(table, KIND, force=True).fixes
    assert (fix.path, fix.is_gap, fix.away) == (name, False, (name,))
    more = "" if name.startswith("base") else ", and it has 2 delete events"
    assert fix.problem == f"it has no file, and 4 rows of what it replaced were never deleted{more}"
    assert fix.remedy == f"move {name} into the backup: readers see these events again"
    assert "V43" in rules(table)
    assert repair(table, KIND, force=True)
    assert len(rows(table)) == 4
    assert "V43" not in rules(table)
    undo_last(FS, str(table))
    assert tree(table) == files


def test_nothing_of_it_is_cleaned(table: Path) -> None:
    plan = plan_cleaning(seen(table), AT_ONCE, NOW)  # type: ignore[arg-type]
    assert plan.removals == ()
    assert {name for name, _ in plan.kept_back} <= set(INPUTS)
    assert {why.code for _, why in plan.kept_back} == {Code.LOST_ROWS}


def test_it_is_not_compacted(table: Path) -> None:
    with pytest.raises(BadDataError, match="4 rows of what it replaced were never deleted") as refused:
        plan_compaction(snapshot_of(table), CompactionKind.MAJOR, "_tmp_x")
    assert "repair" in refused.value.hint


def test_where_all_rows_were_deleted_nothing_is_wrong(inputs: Path) -> None:
    shutil.rmtree(inputs / INPUTS[2])
    write_by_pyorc(inputs / INPUTS[2], [delete(w, row, 3) for w in (1, 2) for row in range(3)])
    name = empty(inputs, "base_0000003_v0000007")
    assert planned(inputs, KIND).fixes == ()
    assert "V43" not in rules(inputs)
    assert set(plan_cleaning(seen(inputs), AT_ONCE, NOW).names) == set(INPUTS)  # type: ignore[arg-type]
    assert (inputs / name).exists()


def test_both_halves_of_a_minor_compaction_go_together(inputs: Path) -> None:
    """Either of them alone would hide what the other one replaced."""
    both = [empty(inputs, f"{kind}_0000001_0000003_v0000007") for kind in ("delta", "delete_delta")]
    assert rows(inputs) == []
    (fix,) = planned(inputs, KIND, force=True).fixes
    assert sorted(fix.away) == sorted(both)
    assert repair(inputs, KIND, force=True)
    assert len(rows(inputs)) == 4


@pytest.mark.parametrize("left", ["delta", "delete_delta"])
def test_a_repair_that_was_killed_between_the_two_leaves_nothing_to_be_cleaned(inputs: Path, left: str) -> None:
    empty(inputs, f"{left}_0000001_0000003_v0000007")
    assert "V43" in rules(inputs)
    assert plan_cleaning(seen(inputs), AT_ONCE, NOW).names == ()  # type: ignore[arg-type]
    assert repair(inputs, KIND, force=True)
    assert len(rows(inputs)) == 4


@pytest.mark.parametrize("of_one_kind", [True, False])
def test_an_empty_one_below_goes_with_the_one_that_hides_it(inputs: Path, of_one_kind: bool) -> None:
    empty(inputs, "base_0000003_v0000007" if of_one_kind else "delta_0000001_0000003_v0000007")
    write_by_pyorc(inputs / "delta_0000004_0000004_0000", [insert(4, 0)])
    empty(inputs, "base_0000004_v0000009")
    plan = planned(inputs, KIND, force=True)
    assert (plan.refused, len(plan.fixes)) == ((), 1)
    assert repair(inputs, KIND, force=True)
    assert len(rows(inputs)) == 5


def test_without_the_transactions_a_compaction_may_be_at_work(table: Path) -> None:
    """What readers who know them see is not touched because somebody does not."""
    (refused,) = planned(table, KIND).refused
    assert "whether transaction 7 is committed is not known" in refused.why
    assert "SHOW COMPACTIONS" in refused.hint
    assert len(plan_repair(seen(table), KIND, scope_of()).fixes) == 1  # type: ignore[arg-type]


def test_a_cleaning_that_was_cut_short_makes_no_loss_of_what_was_deleted(inputs: Path) -> None:
    """Delete deltas go last: whatever is left, none of it is a row that nobody deleted."""
    shutil.rmtree(inputs / INPUTS[2])
    write_by_pyorc(inputs / "base_0000001", [insert(1, row) for row in range(3)])
    write_by_pyorc(inputs / INPUTS[2], [delete(w, row, 3) for w in (1, 2) for row in range(3)])
    empty(inputs, "base_0000003_v0000007")
    order = plan_cleaning(seen(inputs), AT_ONCE, NOW).names  # type: ignore[arg-type]
    assert len(order) == 4
    for name in order:
        assert "V43" not in rules(inputs)
        shutil.rmtree(inputs / name)


def test_what_changed_since_it_was_shown_is_not_done(inputs: Path) -> None:
    empty(inputs, "base_0000003_v0000007")
    plan = planned(inputs, KIND, force=True)
    shutil.rmtree(inputs / INPUTS[0])
    with pytest.raises(ConflictError, match="changed since it was planned"):
        apply_repair(plan)
    assert (inputs / "base_0000003_v0000007").exists()


@pytest.mark.parametrize("kind", ["delta", "delete_delta"])
def test_a_half_that_has_events_is_left_to_a_human_being(inputs: Path, kind: str) -> None:
    """It was made of what it replaced, of which a cleaning may have taken something."""
    other, events = {
        "delta": ("delete_delta", [delete(1, 0, 3), delete(2, 2, 3)]),
        "delete_delta": ("delta", [insert(w, row) for w in (1, 2) for row in range(3)]),
    }[kind]
    write_by_pyorc(inputs / f"{other}_0000001_0000003_v0000007", events)
    name = empty(inputs, f"{kind}_0000001_0000003_v0000007")
    (refused,) = planned(inputs, KIND).refused
    lost = "4 rows of what it replaced were never deleted;" if kind == "delta" else "replaced has 2 delete events;"
    assert lost in refused.why
    assert f"{other}_0000001_0000003_v0000007 hides what it replaced as well" in refused.why
    assert "V43" in rules(inputs)
    assert plan_cleaning(seen(inputs), AT_ONCE, NOW).names == ()  # type: ignore[arg-type]
    assert (inputs / name).exists()


def test_another_compaction_went_by_it(inputs: Path) -> None:
    """What came later holds none of the rows: nothing brings them back, and nothing of them is cleaned."""
    name = empty(inputs, "base_0000003_v0000007")
    write_by_pyorc(inputs / "base_0000004_v0000009", [insert(4, 0)])
    plan = planned(inputs, KIND)
    assert plan.fixes == ()
    (refused,) = plan.refused
    assert "base_0000004_v0000009, which readers go by, was made without them" in refused.why
    assert "V43" in rules(inputs)
    cleaning = plan_cleaning(seen(inputs), AT_ONCE, NOW)  # type: ignore[arg-type]
    assert cleaning.names == ()
    assert {kept for kept, _ in cleaning.kept_back} == {*INPUTS, name}
    write_by_pyorc(inputs / "delta_0000005_0000005", [insert(5, 0)])
    plan_compaction(snapshot_of(inputs), CompactionKind.MAJOR, "_tmp_x")  # which changes nothing about that


def test_what_is_below_another_empty_one_is_not_told_as_if_it_were_lost(inputs: Path) -> None:
    """Nobody inserts again what comes back with the one above it."""
    empty(inputs, "base_0000003_v0000007")
    write_by_pyorc(inputs / "delta_0000004_0000004_0000", [insert(4, 0)])
    empty(inputs, "base_0000004_v0000009")
    (refused,) = planned(inputs, KIND).refused
    assert refused.path == "base_0000004_v0000009"


def test_a_young_one_may_be_in_the_making(table: Path) -> None:
    young = scope_of(now=(table / result_of(table) / "_orc_acid_version").stat().st_mtime + 9)
    (refused,) = plan_repair(seen(table), KIND, young).refused  # type: ignore[arg-type]
    assert "its writer may be at work" in refused.why
    assert len(planned(table, KIND, now=(table / result_of(table)).stat().st_mtime, force=True).fixes) == 1


def test_a_truncated_table_has_lost_nothing(inputs: Path) -> None:
    (inputs / "base_0000003").mkdir()
    (inputs / "base_0000003/_orc_acid_version").write_text("2")
    (inputs / "base_0000003/_metadata_acid").write_text('{"thisFileVersion":"0","dataFormat":"truncated"}')
    assert planned(inputs, KIND).fixes == ()
    assert "V43" not in rules(inputs)


def test_write_ids_of_which_nothing_is_here_are_told(inputs: Path) -> None:
    (inputs / INPUTS[1]).rename(inputs / "delta_0000005_0000005_0000")
    empty(inputs, "base_0000005_v0000007")
    (fix,) = planned(inputs, KIND, force=True).fixes
    had = "had a cleaning begun, rows that were deleted may be back, too"
    assert fix.remedy.endswith(f"; nothing is here of write ids 2 and 4: {had}")
    (inputs / INPUTS[0]).rename(inputs / "base_0000001")
    (fix,) = planned(inputs, KIND, force=True).fixes
    assert fix.remedy.endswith(f"; nothing is here of write ids 2 and 4: {had}")
    (inputs / "base_0000001").rename(inputs / "base_0000002")
    (fix,) = planned(inputs, KIND, force=True).fixes
    assert fix.remedy.endswith(f"; nothing is here of write id 4: {had}")
    (inputs / INPUTS[2]).rename(inputs / "delete_delta_0000004_0000004_0000")
    (fix,) = planned(inputs, KIND, force=True).fixes
    assert fix.remedy.endswith(f"; nothing is here of write id 3: {had}")


def test_what_cannot_be_read_is_kept_and_left_to_a_human_being(table: Path) -> None:
    (file,) = (table / INPUTS[0]).glob("bucket_*")
    file.write_bytes(file.read_bytes()[:-40])
    (refused,) = planned(table, KIND).refused
    assert "not all of what it replaced can be read" in refused.why
    assert plan_cleaning(seen(table), AT_ONCE, NOW).removals == ()  # type: ignore[arg-type]


def test_the_command_brings_them_back(table: Path, acidctl: Callable[..., Result]) -> None:
    name = result_of(table)
    said = acidctl("validate", table)
    assert said.status == 14, said.err
    assert "V43" in said.out
    lists = ("--snapshot", "db.t:9:9223372036854775807::\ntxns=99:9223372036854775807::")
    cleaned = acidctl(*CLEAN_NOW, *lists, table)
    assert cleaned.status == 0
    assert "4 rows of what it replaced were never deleted" in cleaned.out
    assert all((table / one).exists() for one in INPUTS)
    why = acidctl("why", *lists, table, INPUTS[0])
    assert "acidctl repair" in why.out
    done = acidctl("repair", "--only", "empty-result", "--yes", "--force", table)
    assert (done.status, (table / name).exists()) == (0, False), done.err
    assert len(rows(table)) == 4
