"""Cleaning: Hive's own cases, what must never go, the order, the trash."""

from __future__ import annotations

import json
import pickle
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from support.cleaning import apply_plan
from support.paths import DATA
from support.tables import make, snapshot_of

from acidctl.acid.names import MAXL
from acidctl.acid.writeids import ValidTxns, ValidWriteIds
from acidctl.base.errors import BadDataError, ConflictError, HistoryError, NotFoundError, StorageError
from acidctl.cleaning.apply import How
from acidctl.cleaning.plan import CleaningPlan, plan_cleaning
from acidctl.cleaning.retention import AT_ONCE
from acidctl.cleaning.trash import TRASH, purge, restore, trash_runs
from acidctl.location.snapshot import Snapshot
from acidctl.storage.registry import open_location

CASES = json.loads((DATA / "cleaner-cases.json").read_text())


def plan_at_once(snapshot: Snapshot) -> CleaningPlan:
    return plan_cleaning(snapshot, AT_ONCE)


def names_of(table: Path) -> set[str]:
    return {path.name for path in table.iterdir() if path.name != TRASH}


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_published_tables_are_cleaned_as_hive_does(case, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    if case.get("table_properties"):
        pytest.skip("table properties (no_cleanup) are not on disk: they come with a metastore")
    table = make(tmp_path / "t", *case["dirs_before"])
    aborted = tuple(case.get("aborted_write_ids", ()))
    write_ids = ValidWriteIds(MAXL, aborted=aborted).for_cleaner(case["compaction_highest_write_id"])
    snapshot = snapshot_of(table, write_ids, ValidTxns())
    apply_plan(plan_at_once(snapshot))
    assert names_of(table) == set(case["dirs_after"])


def test_nothing_but_obsolete_and_aborted_is_planned(tmp_path: Path) -> None:
    kept = (
        "base_10", "delta_11_11_0000", "delta_12_12_0000", "delta_13_15", "delta_20_20_0000", "base_18_v99",
        "_tmp_1/base_99/bucket_00000", ".hive-staging_1/x", "delta_x",
    )  # fmt: skip
    gone = (
        "base_5",
        "delta_3_3_0000",
        "delete_delta_3_3_0000",
        "delta_14_14_0000",
        "000000_0",
        "HIVE_UNION_SUBDIR_1/000000_0",
    )
    table = make(tmp_path / "t", *kept, *gone)
    write_ids = ValidWriteIds(19, 12, (12, 15), (14,))
    plan = plan_at_once(snapshot_of(table, write_ids, ValidTxns(100, 99, (99,))))
    assert [removal.name for removal in plan.removals] == [
        "delta_14_14_0000", "delta_3_3_0000", "base_5", "000000_0", "HIVE_UNION_SUBDIR_1", "delete_delta_3_3_0000",
    ]  # fmt: skip
    files = [path for name in plan.names for path in (table / name, *(table / name).rglob("*")) if path.is_file()]
    assert plan.bytes == sum(path.stat().st_size for path in files)
    assert plan.files == len(files) == 11


def test_an_insert_delta_goes_before_its_delete_delta(tmp_path: Path) -> None:
    table = make(tmp_path / "t", "delta_1_9", "delete_delta_1_9", *(f"delta_{i}_{i}_0" for i in range(1, 9)))
    make(table, *(f"delete_delta_{i}_{i}_0" for i in range(1, 9)))
    order = [removal.name for removal in plan_at_once(snapshot_of(table)).removals]
    assert all(order.index(f"delta_{i}_{i}_0") < order.index(f"delete_delta_{i}_{i}_0") for i in range(1, 9))


def test_unknown_visibility_shadows_nothing(tmp_path: Path) -> None:
    table = make(tmp_path / "t", "base_5", "delta_6_6_0000", "delta_3_3_0000", "base_6_v20")
    unknown = plan_at_once(snapshot_of(table))
    assert [removal.name for removal in unknown.removals] == ["delta_3_3_0000"]
    assert [name for name, _ in unknown.kept_back] == ["base_5", "delta_6_6_0000"]
    known = plan_at_once(snapshot_of(table, txns=ValidTxns(30)))
    assert {removal.name for removal in known.removals} == {"base_5", "delta_6_6_0000", "delta_3_3_0000"}


def test_without_history_nothing_may_go(tmp_path: Path) -> None:
    table = make(tmp_path / "t", "base_10_v50", "delta_3_3_0000")
    with pytest.raises(HistoryError):
        plan_at_once(snapshot_of(table, ValidWriteIds(12, 8, (8,)), ValidTxns(100)))


def test_a_changed_location_is_refused(tmp_path: Path) -> None:
    table = make(tmp_path / "t", "base_5", "base_3", "delta_2_2")
    plan = plan_at_once(snapshot_of(table))
    shutil.rmtree(table / "base_5")
    with pytest.raises(ConflictError, match="changed since it was planned"):
        apply_plan(plan)
    assert names_of(table) == {"base_3", "delta_2_2"}


def test_cleaned_entries_are_restored_or_purged_from_the_trash(tmp_path: Path) -> None:
    table = make(tmp_path / "t", "base_5", "base_3", "delta_2_2_0000", "000000_0")
    before = names_of(table)
    fs, path = open_location(str(table))
    run = apply_plan(plan_at_once(snapshot_of(table))).run
    assert run and set(run.names) == {"base_3", "delta_2_2_0000", "000000_0"}
    assert names_of(table) == {"base_5"}
    assert trash_runs(fs, path) == [run]
    assert restore(fs, run) == ("000000_0", "base_3", "delta_2_2_0000")
    assert names_of(table) == before
    assert not (table / TRASH).exists()
    run = apply_plan(plan_at_once(snapshot_of(table))).run
    assert run
    purge(fs, [run])
    assert not (table / TRASH).exists()
    assert trash_runs(fs, path) == []
    assert apply_plan(plan_at_once(snapshot_of(table))).removed == ()


def test_without_trash_entries_are_deleted(tmp_path: Path) -> None:
    table = make(tmp_path / "t", "base_5", "base_3")
    assert apply_plan(plan_at_once(snapshot_of(table)), How.DELETE).run is None
    assert {path.name for path in table.iterdir()} == {"base_5"}


def test_an_interrupted_run_can_be_undone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make(tmp_path / "t", "base_5", "base_3", "delta_2_2_0000", "delta_1_1_0000")
    before = names_of(table)
    plan = plan_at_once(snapshot_of(table))
    fs, path = open_location(str(table))
    calls = []
    rename = type(fs).rename

    def dies(self: object, source: str, target: str) -> None:
        calls.append(source)
        if len(calls) == 3:
            raise KeyboardInterrupt
        rename(self, source, target)  # type: ignore[arg-type]

    monkeypatch.setattr(type(plan.snapshot.fs), "rename", dies)
    with pytest.raises(KeyboardInterrupt):
        apply_plan(plan)
    monkeypatch.undo()
    (run,) = trash_runs(fs, path)
    restore(fs, run)
    assert names_of(table) == before


@pytest.mark.parametrize("how", [How.TRASH, How.DELETE])
def test_an_error_half_way_says_what_was_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: How) -> None:
    table = make(tmp_path / "t", "base_5", "base_3", "delta_2_2_0000", "delta_1_1_0000")
    plan = plan_at_once(snapshot_of(table))
    kind = type(plan.snapshot.fs)
    call = "rename" if how is How.TRASH else "remove_tree"
    real = getattr(kind, call)

    def fails(self: object, source: str, *more: str) -> None:
        if source.endswith("base_3"):
            raise StorageError("cannot", "a snapshot protects it", "delete the snapshots")
        real(self, source, *more)

    monkeypatch.setattr(kind, call, fails)
    with pytest.raises(StorageError) as raised:
        apply_plan(plan, how)
    assert raised.value.hint.startswith("delete the snapshots; 2 of 3 are ")
    assert ("`acidctl restore`" in raised.value.hint) == (how is How.TRASH)
    assert names_of(table) == {"base_5", "base_3"}


@pytest.mark.parametrize("name", ["", ".", "..", "a/b"])
def test_nothing_but_children_is_removed(tmp_path: Path, name: str) -> None:
    """Whatever a store may list."""
    table = make(tmp_path / "t", "base_5", "delta_1_1_0000")
    plan = plan_at_once(snapshot_of(table))
    nameless = replace(plan, removals=(replace(plan.removals[0], name=name),))
    with pytest.raises(BadDataError, match="will not clean"):
        apply_plan(nameless, How.DELETE)
    assert names_of(table) == {"base_5", "delta_1_1_0000"}


@pytest.mark.parametrize("arrives", [False, True])
def test_a_run_that_moved_nothing_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arrives: bool
) -> None:
    """Unless a move whose answer was lost was done after all, and be it while the run is taken away."""
    table = make(tmp_path / "t", "base_5", "delta_1_1_0000")
    before = names_of(table)
    plan = plan_at_once(snapshot_of(table))
    fs, path = open_location(str(table))
    kind, late = type(fs), []
    rename, remove_empty = kind.rename, kind.remove_empty

    def fails(self: object, source: str, target: str) -> None:
        if source.endswith("manifest.json") or target.endswith("manifest.json"):
            return rename(self, source, target)  # type: ignore[arg-type]
        late.append((source, target))
        raise StorageError("no answer")

    def comes_late(self: object, directory: str) -> None:
        if arrives and late:
            rename(self, *late.pop())  # type: ignore[arg-type]
        remove_empty(self, directory)  # type: ignore[arg-type]

    monkeypatch.setattr(kind, "rename", fails)
    monkeypatch.setattr(kind, "remove_empty", comes_late)
    with pytest.raises(StorageError, match="no answer"):
        apply_plan(plan)
    monkeypatch.undo()
    if arrives:
        (run,) = trash_runs(fs, path)
        assert restore(fs, run) == ("delta_1_1_0000",)
    assert names_of(table) == before
    apply_plan(plan, should_stop=iter([False, True]).__next__)
    assert not (table / ".acidctl-trash").exists()
    assert names_of(table) == before


def test_restore_refuses_what_would_be_lost(tmp_path: Path) -> None:
    table = make(tmp_path / "t", "base_5", "base_3")
    fs, _ = open_location(str(table))
    run = apply_plan(plan_at_once(snapshot_of(table))).run
    assert run
    make(table, "base_3")
    with pytest.raises(ConflictError):
        restore(fs, run)
    shutil.rmtree(table / "base_3")
    fs.remove_tree(f"{run.path}/base_3")
    with pytest.raises(NotFoundError):
        restore(fs, run)


@pytest.mark.parametrize(
    "manifest",
    [
        "",
        "[]",
        "{}",
        "[" * 100_000,
        '{"version": 9, "names": [], "bytes": 0}',
        '{"version":1,"names":["../x"],"bytes":0}',
        '{"version":1,"names":[],"bytes":Infinity}',
        '{"version":1,"names":[],"bytes":0,"writeIds":5}',
        '{"version":1,"names":[],"bytes":0,"validTxns":"nonsense"}',
    ],
)
def test_a_foreign_manifest_is_refused(manifest: str, tmp_path: Path) -> None:
    table = make(tmp_path / "t", f"{TRASH}/1/x")
    (table / TRASH / "1" / "manifest.json").write_text(manifest)
    fs, path = open_location(str(table))
    (run,) = trash_runs(fs, path)
    for refused in (lambda: restore(fs, run), lambda: purge(fs, [run])):
        with pytest.raises(BadDataError, match="not a manifest"):
            refused()
    assert (table / TRASH / "1" / "x").exists()


def test_one_half_of_a_minor_compaction_hides_nothing_for_good(tmp_path: Path) -> None:
    """Rule V11: a lone wide delta does not hold the deletes of the narrower delete deltas it hides."""
    table = make(tmp_path / "t", "delta_1_3", "delta_1_1_0", "delete_delta_2_2_0", "delta_3_3_0")
    plan = plan_at_once(snapshot_of(table))
    assert [removal.name for removal in plan.removals] == ["delta_1_1_0", "delta_3_3_0"]
    assert [name for name, _ in plan.kept_back] == ["delete_delta_2_2_0"]
    table = make(tmp_path / "u", "delete_delta_1_3", "delta_1_1_0", "delete_delta_2_2_0")
    plan = plan_at_once(snapshot_of(table))
    assert [removal.name for removal in plan.removals] == ["delete_delta_2_2_0"]
    assert [name for name, _ in plan.kept_back] == ["delta_1_1_0"]


@pytest.mark.parametrize("mark", ["_", "-"])
def test_what_is_being_written_shadows_nothing(tmp_path: Path, mark: str) -> None:
    table = make(tmp_path / "t", "delta_1_1_0", f"{mark}tmp.base_0000002/000000_0.manifest", "base_0000002")
    plan = plan_at_once(snapshot_of(table))
    assert (plan.removals, [name for name, _ in plan.kept_back]) == ((), ["delta_1_1_0"])
    table = make(tmp_path / "u", "delta_1_1_0")
    (table / "base_0000002").mkdir()
    for write_ids in (None, ValidWriteIds(2)):  # for Hive 4 an empty directory is not there
        plan = plan_at_once(snapshot_of(table, write_ids))
        assert (plan.removals, [name for name, _ in plan.kept_back]) == ((), ["delta_1_1_0"])
    (table / "base_0000002" / "_orc_acid_version").write_text("2")
    known = plan_at_once(snapshot_of(table, ValidWriteIds(2)))
    assert [removal.name for removal in known.removals] == ["delta_1_1_0"]


def test_files_of_other_names_stay(tmp_path: Path) -> None:
    table = make(tmp_path / "t", "base_5", "000000_0", "backup/notes.txt")
    (table / "README.txt").write_text("x")
    plan = plan_at_once(snapshot_of(table))
    assert [removal.name for removal in plan.removals] == ["000000_0"]
    assert [name for name, _ in plan.kept_back] == ["README.txt", "backup"]


def test_a_run_without_a_manifest_can_be_purged(tmp_path: Path) -> None:
    table = make(tmp_path / "t", "base_5", f"{TRASH}/20260101T000000Z-1/base_3/x")
    fs, path = open_location(str(table))
    (run,) = trash_runs(fs, path)
    assert not run.can_be_undone
    with pytest.raises(NotFoundError, match="cannot restore"):
        restore(fs, run)
    purge(fs, [run])
    assert not (table / TRASH).exists()


@pytest.mark.parametrize(("mark", "goes"), [("", False), ("_orc_acid_version", True)])
def test_a_base_that_hive_2_may_have_compacted_stays(mark: str, goes: bool, tmp_path: Path) -> None:
    """Its highest write id was aborted; Hive 3 would take the unmarked base for an aborted INSERT OVERWRITE."""
    table = make(tmp_path / "t", "base_2", "delta_3_3")
    for side in {"_metadata_acid", "_orc_acid_version"} - {mark}:
        (table / "base_2" / side).unlink()
    plan = plan_at_once(snapshot_of(table, ValidWriteIds(3, aborted=(2,)), ValidTxns()))
    assert [removal.name for removal in plan.removals] == (["base_2"] if goes else [])
    assert [name for name, _ in plan.kept_back] == ([] if goes else ["base_2"])


def test_several_purges_at_once_do_not_disturb_each_other(tmp_path: Path) -> None:
    table = make(tmp_path / "t", "base_5", "base_3", "delta_2_2_0")
    fs, _ = open_location(str(table))
    run = apply_plan(plan_at_once(snapshot_of(table))).run
    assert run
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda _: purge(fs, [run]), range(4))) == [None] * 4
    assert names_of(table) == {"base_5"}
    assert not (table / TRASH).exists()


def test_a_plan_is_a_value(tmp_path: Path) -> None:
    table = make(tmp_path / "t", "base_5", "base_3", "delta_2_2_0")
    plan = plan_at_once(snapshot_of(table))
    again = pickle.loads(pickle.dumps(plan))
    assert (again.removals, again.policy, again.snapshot.listing) == (plan.removals, plan.policy, plan.snapshot.listing)
    assert len(apply_plan(again).removed) == 2


def test_a_part_of_a_plan_begins_at_its_beginning(tmp_path: Path) -> None:
    table = make(tmp_path / "t", "base_9", *(f"delta_{i}_{i}_0" for i in range(1, 9)))
    for side in table.glob("delta_*/_*"):
        side.unlink()
    plan = plan_at_once(snapshot_of(table))
    for budget in (-5, 0, 9, 10, 35, 80, 1000):
        part = plan.within(budget)
        assert part.names == plan.names[: max(0, min(budget // 10, 8))]
        assert part.names + part.postponed == plan.names
