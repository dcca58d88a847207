"""`--leftovers`: abandoned staging goes, and nothing that may be the only sign, or copy, of somebody's work."""

from __future__ import annotations

import shutil
import uuid
from pathlib import Path

import pytest
from support import tables
from support.cleaning import apply_plan
from support.tables import age, snapshot_of

from acidctl.acid.names import MAXL
from acidctl.acid.reasons import Code
from acidctl.acid.writeids import ValidTxns, ValidWriteIds
from acidctl.base.errors import RefusedError
from acidctl.cleaning.leftovers import is_leftover
from acidctl.cleaning.plan import CleaningPlan, plan_cleaning
from acidctl.cleaning.retention import Policy
from acidctl.cleaning.trash import restore
from acidctl.location.change.own_files import Owner
from acidctl.wording import text_of

WITH = Policy(leftovers=True)


def make(table: Path, *names: str) -> Path:
    age(tables.make(table, *names), 30)
    return table


def plan_of(table: Path, ids: ValidWriteIds | None = None) -> CleaningPlan:
    return plan_cleaning(snapshot_of(table, ids, ValidTxns()), WITH)


def kept(plan: CleaningPlan) -> dict[str, str]:
    return {name: text_of(why) for name, why in plan.kept_back}


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        ("_tmp_1b2c", True), (".hive-staging_hive_2026-11-21_1", True), ("_tmp.delta_0000001_0000001_0000", True),
        ("_tmp.base_0000005", True), ("-tmp.base_0000005", True),
        ("-tmp.mine", False), ("_tmp.delete_delta_1_1", True), (".acidctl-trash", False),
        (".acidctl-lock-0123", True), (".acidctl-lock", False),
        ("_SUCCESS", False), ("_tmp", False), ("_tmp.", False), ("_tmp.mine", False),
        ("_temporary", False), ("_metadata", False), (".Trash", False), (".git", False), ("_files", False),
        ("_orc_acid_version", False), ("tmp_1", False), ("delta_1_1", False),
    ],
)  # fmt: skip
def test_names_of_staging_are_leftovers_and_others_not(name: str, is_one: bool) -> None:
    assert is_leftover(name) is is_one


def test_a_claim_on_a_lock(tmp_path: Path) -> None:
    """What is left of a run that was killed while it removed a stale lock."""
    table = make(tmp_path / "t", "delta_1_1_0")
    this = Owner.this()
    (table / ".acidctl-lock-aa").write_bytes(this.to_bytes())
    (table / ".acidctl-lock-bb").write_bytes(Owner("elsewhere", 1, 1, "etl", 0.0).to_bytes())
    assert [one.name for one in plan_of(table).waiting] == [".acidctl-lock-aa", ".acidctl-lock-bb"]
    age(table, 30)
    plan = plan_of(table)
    assert plan.names == (".acidctl-lock-bb",)
    assert "removes a stale lock" in kept(plan)[".acidctl-lock-aa"]
    done = apply_plan(plan)
    assert done.run
    restore(snapshot_of(table).fs, done.run)
    assert (table / ".acidctl-lock-bb").exists()


def test_a_directory_with_the_name_of_a_claim_stays(tmp_path: Path) -> None:
    """No run of acidctl makes one, so whose it is cannot be read from it."""
    table = make(tmp_path / "t", "delta_1_1_0", ".acidctl-lock-aa/x")
    plan = plan_of(table)
    assert plan.names == ()
    assert [(name, why.code) for name, why in plan.kept_back] == [(".acidctl-lock-aa", Code.OWNER_AT_WORK)]


def test_the_abandoned_go_when_asked_for_and_old(tmp_path: Path) -> None:
    names = ("_tmp_1/base_9/bucket_00000", ".hive-staging_1/-ext-10000/000000_0", "_tmp.delta_7_7_0/000000_0.manifest")
    table = make(tmp_path / "t", "delta_1_1_0", "_SUCCESS/x", *names)
    (table / "_tmp_file").write_bytes(b"x")  # a file is not a staging
    age(table, 30, "_tmp_file")
    assert plan_cleaning(snapshot_of(table)).removals == ()
    plan = plan_of(table)
    assert set(plan.names) == {"_tmp_1", ".hive-staging_1", "_tmp.delta_7_7_0"}
    assert all("abandoned" in text_of(removal.reason) for removal in plan.removals)
    (table / "_tmp_1" / "base_9" / "bucket_00001").write_bytes(b"new")
    plan = plan_of(table)
    assert set(plan.names) == {".hive-staging_1", "_tmp.delta_7_7_0"}
    assert [one.name for one in plan.waiting] == ["_tmp_1"]
    assert "may go after" in text_of(plan.waiting[0].reason)
    done = apply_plan(plan)
    assert {path.name for path in table.iterdir()} == {
        "delta_1_1_0",
        "_SUCCESS",
        "_tmp_file",
        "_tmp_1",
        ".acidctl-trash",
    }
    assert done.run
    restore(snapshot_of(table).fs, done.run)
    assert (table / ".hive-staging_1" / "-ext-10000" / "000000_0").exists()


def test_an_empty_one_goes_by_its_own_time(tmp_path: Path) -> None:
    table = make(tmp_path / "t", "delta_1_1_0")
    (table / "_tmp_1").mkdir()
    assert plan_of(table).names == ()
    age(table, 30, "_tmp_1")
    assert plan_of(table).names == ("_tmp_1",)


def test_the_manifest_of_an_insert_stays_beside_its_directory(tmp_path: Path) -> None:
    """It is the only sign that the base may be half-written: without it what the base hides would go next time."""
    table = make(tmp_path / "t", "delta_1_1_0", "base_2", "_tmp.base_2/000000_0.manifest")
    (table / "base_2" / "_metadata_acid").unlink()  # an INSERT OVERWRITE
    age(table, 30)
    plan = plan_of(table)
    assert plan.names == ()
    assert "it is not known whether the insert into base_2 was finished" in kept(plan)["_tmp.base_2"]
    assert "writer" in kept(plan)["delta_1_1_0"]
    # A list says that it was finished.
    assert "_tmp.base_2" in plan_of(table, ValidWriteIds(2)).names
    # It was not: both go.
    assert plan_of(table, ValidWriteIds(2, aborted=(2,))).names == ("base_2", "_tmp.base_2")
    # It may be at work.
    assert "_tmp.base_2" in kept(plan_of(table, ValidWriteIds(2, 2, (2,))))
    assert "_tmp.base_2" in kept(plan_of(table, ValidWriteIds(1)))
    shutil.rmtree(table / "base_2")
    assert plan_of(table).names == ("_tmp.base_2",)


def test_the_only_copy_of_a_delete_delta_stays(tmp_path: Path) -> None:
    """Hive's compactor died between its two renames: nothing else may hold these events any more."""
    table = make(tmp_path / "t", "delta_1_3", f"_tmp_{uuid.uuid4()}/delete_delta_1_3/bucket_00000")
    (staging,) = table.glob("_tmp_*")
    plan = plan_of(table)
    assert plan.names == ()
    assert "the missing twin of delta_1_3" in kept(plan)[staging.name]
    # Both are there: what is left is a copy.
    make(table, "delete_delta_1_3")
    assert plan_of(table).names == (staging.name,)
    # Neither is: the compaction showed nothing.
    shutil.rmtree(table / "delete_delta_1_3")
    shutil.rmtree(table / "delta_1_3")
    assert plan_of(table).names == (staging.name,)


def test_a_publication_that_can_be_finished_is_finished_first(tmp_path: Path) -> None:
    table = make(tmp_path / "t", "delta_1_3", "_tmp_1/delete_delta_1_3/bucket_00000", "_tmp_1/_publish.json")
    with pytest.raises(RefusedError, match="interrupted while it was published"):
        plan_of(table)


def test_the_staging_of_a_living_process_stays(tmp_path: Path) -> None:
    table = make(tmp_path / "t", "delta_1_1_0", "_tmp_1/base_9/bucket_00000")
    this = Owner.this()
    for owner, goes in (
        (this, False), (Owner(this.host, this.pid, 1, "x", 0), True), (Owner("elsewhere", 1, 1, "x", 0), True),
    ):  # fmt: skip
        (table / "_tmp_1" / "_owner.json").write_bytes(owner.to_bytes())
        age(table, 30)
        plan = plan_of(table)
        assert ("_tmp_1" in plan.names) is goes
        if not goes:
            assert "works in it" in kept(plan)["_tmp_1"]


def test_leftovers_go_last(tmp_path: Path) -> None:
    table = make(tmp_path / "t", "base_5", "base_3", "delta_2_2_0", "_tmp_1/x", ".hive-staging_1/x")
    assert plan_of(table, ValidWriteIds(MAXL)).names == ("delta_2_2_0", "base_3", ".hive-staging_1", "_tmp_1")
