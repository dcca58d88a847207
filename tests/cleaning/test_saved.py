"""Plans in files: applied where nothing changed, refused where anything did, without a secret in them."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.cleaning import apply_plan
from support.tables import age, make, snapshot_of

from acidctl.acid.assumed_commits import Assumption
from acidctl.acid.writeids import ValidTxns, ValidWriteIds
from acidctl.base.errors import AccessError, AcidctlError, BadDataError, ConflictError, NotFoundError
from acidctl.cleaning.plan import plan_cleaning
from acidctl.cleaning.retention import AT_ONCE, Policy
from acidctl.cleaning.saved import SavedPlan, read_plans, write_plans
from acidctl.location.snapshot import list_location


def save(table: Path, path: Path, policy: Policy = AT_ONCE) -> SavedPlan:
    write_plans(str(path), [plan_cleaning(snapshot_of(table), policy)])
    (saved,) = read_plans(str(path))
    return saved


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return make(tmp_path / "t", "base_5", "base_3", "delta_2_2_0", "delta_6_6_0", "_tmp_1/x")


def test_it_is_the_same_plan(table: Path, tmp_path: Path) -> None:
    saved = save(table, tmp_path / "plan.json")
    plan = saved.plan({})
    assert plan == plan_cleaning(plan.snapshot, AT_ONCE)
    assert apply_plan(plan).run
    assert {path.name for path in table.iterdir()} == {"base_5", "delta_6_6_0", "_tmp_1", ".acidctl-trash"}
    with pytest.raises(ConflictError, match="changed since it was planned: base_3 went"):
        saved.plan({})


def test_a_plan_with_an_assumption_lists_its_location_once(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    age(table, 2)
    saved = replace(save(table, tmp_path / "plan.json"), assumption=Assumption(3600.0))
    listed = []

    def listing(*arguments: Any, **options: Any) -> Any:
        listed.append(arguments)
        return list_location(*arguments, **options)

    for module in ("table_location", "snapshot"):
        monkeypatch.setattr(f"acidctl.location.{module}.list_location", listing)
    saved.plan({})
    assert len(listed) == 1


def test_a_location_that_stands_twice_is_refused(table: Path, tmp_path: Path) -> None:
    """Two threads would work on it at once, in one run of its trash."""
    save(table, tmp_path / "plan.json")
    content = json.loads((tmp_path / "plan.json").read_text())
    content["locations"] *= 2
    (tmp_path / "plan.json").write_text(json.dumps(content))
    with pytest.raises(BadDataError, match="twice"):
        read_plans(str(tmp_path / "plan.json"))


def test_lists_and_options_are_kept(tmp_path: Path) -> None:
    table = make(tmp_path / "t", "base_5_v9", "delta_2_2_0", "delta_7_7_0", "_tmp_1/x")
    age(table, 30)
    ids, txns = ValidWriteIds.parse("sales.t:8:9223372036854775807::7"), ValidTxns(20, 15, (15,), (3,))
    plan = plan_cleaning(snapshot_of(table, ids, txns), Policy(7200, leftovers=True))
    write_plans(str(tmp_path / "plan.json"), [plan])
    (saved,) = read_plans(str(tmp_path / "plan.json"))
    assert (saved.write_ids, saved.txns, saved.policy) == (ids, txns, Policy(7200, leftovers=True))
    assert saved.plan({}).names == plan.names == ("delta_7_7_0", "delta_2_2_0", "_tmp_1")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda table: make(table, "delta_7_7_0"), "delta_7_7_0 came"),
        (lambda table: make(table, "base_3/bucket_00001"), "base_3 changed"),
        (lambda table: make(table, "base_5/bucket_00001"), "base_5 changed"),
        (lambda table: (table / "base_5" / "bucket_00000").write_bytes(b"y" * 11), "base_5 changed"),
        (lambda table: os.utime(table / "base_3" / "bucket_00000", (1, 1)), "base_3 changed"),
        (lambda table: (table / "delta_2_2_0").rename(table / "x"), "delta_2_2_0 went"),
        (lambda table: (table / "delta_6_6_0").rename(table / "_x"), "delta_6_6_0 went"),
    ],
)
def test_a_location_that_changed_is_refused(change, why: str, table: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    saved = save(table, tmp_path / "plan.json")
    change(table)
    with pytest.raises(ConflictError, match=why):
        saved.plan({})


def test_what_others_stage_meanwhile_is_no_change(table: Path, tmp_path: Path) -> None:
    saved = save(table, tmp_path / "plan.json")
    make(table, "_tmp_1/y", ".hive-staging_1/x")
    assert saved.plan({}).names == saved.names
    # Unless the plan takes it.
    age(table, 1, "_tmp_1")
    saved = save(table, tmp_path / "plan.json", Policy(0, leftovers=True))
    make(table, "_tmp_1/z")
    with pytest.raises(ConflictError, match="_tmp_1 changed"):
        saved.plan({})


def test_no_secret_is_written(table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_cleaning(snapshot_of(table), AT_ONCE)
    fs = type(plan.snapshot.fs)
    monkeypatch.setattr(fs, "display", lambda _, path: f"sftp://etl:hunter2@host{path}")
    write_plans(str(tmp_path / "plan.json"), [plan])
    text = (tmp_path / "plan.json").read_text()
    assert "hunter2" not in text
    assert json.loads(text)["locations"][0]["location"] == f"sftp://etl@host{table}"


def test_the_file_is_whole_or_what_it_was(table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "plan.json"
    save(table, path)
    before = path.read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(Exception, match="no space left"):
        save(table, path)
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert sorted(child.name for child in tmp_path.iterdir()) == ["plan.json", "t"]
    with pytest.raises(NotFoundError):
        save(table, tmp_path / "missing" / "plan.json")


@pytest.mark.parametrize(
    "change",
    [
        lambda _: b"",
        lambda _: b"[]",
        lambda _: b"{}",
        lambda _: b"\xff\xfe",
        lambda text: text[:-40],
        lambda text: text.replace(b"acidctl-cleaning-plan", b"something"),
        lambda text: text.replace(b'"schema_version": 1', b'"schema_version": 2'),
        lambda text: text.replace(b'"base_3": "', b'"base_3": "0'),
        lambda text: text.replace(b'"name": "base_3"', b'"name": "../base_3"'),
        lambda text: text.replace(b'"name": "base_3"', b'"name": 3'),
        lambda text: text.replace(b'"olderThanSeconds": 0', b'"olderThanSeconds": NaN'),
        lambda text: text.replace(b'"olderThanSeconds": 0', b'"olderThanSeconds": 1' + b"0" * 400),
        lambda text: re.sub(rb'"bytes": \d+', b'"bytes": Infinity', text),
        lambda text: re.sub(rb'"bytes": \d+', b'"bytes": "many"', text),
        lambda text: text.replace(b'"writeIds": null', b'"writeIds": "nonsense"'),
        lambda _: b"[" * 100_000,
        lambda text: text.replace(b'"removals": [', b'"removals": [{"name": "base_3"}, '),
    ],
)
def test_what_is_no_plan_is_refused(change, table: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "plan.json"
    save(table, path)
    before = path.read_bytes()
    path.write_bytes(change(before))
    assert path.read_bytes() != before
    with pytest.raises(BadDataError, match="cannot use") as error:
        read_plans(str(path))
    assert "it " in error.value.why, "not a sentence of Python's"
    with pytest.raises(NotFoundError):
        read_plans(str(tmp_path / "missing"))


def test_a_name_that_was_added_is_not_removed(table: Path, tmp_path: Path) -> None:
    """The file says what goes, but what may go is decided anew."""
    path = tmp_path / "plan.json"
    save(table, path)
    content = json.loads(path.read_text())
    content["locations"][0]["removals"].append({"name": "base_5"})
    path.write_text(json.dumps(content))
    (saved,) = read_plans(str(path))
    with pytest.raises(ConflictError, match="base_5 may no longer be removed"):
        saved.plan({})


def test_the_order_of_removal_is_decided_anew(table: Path, tmp_path: Path) -> None:
    make(table, "base_4", "delta_4_4_0")
    path = tmp_path / "plan.json"
    names = save(table, path).names
    content = json.loads(path.read_text())
    content["locations"][0]["removals"].reverse()
    path.write_text(json.dumps(content))
    (saved,) = read_plans(str(path))
    assert len(names) > 2
    assert saved.names == names[::-1]
    assert saved.plan({}).names == names


def test_names_that_are_no_utf8(tmp_path: Path) -> None:
    table = Path(os.fsdecode(os.fsencode(tmp_path) + b"/t\xff"))
    make(table, "base_5", "delta_3_3_0", os.fsdecode(b"x\xff/000000_0"))
    plan = save(table, tmp_path / "plan.json").plan({})
    assert set(plan.names) == {"delta_3_3_0"}
    assert [name for name, _ in plan.kept_back] == [os.fsdecode(b"x\xff")], "Hive gives no such name"


def test_plan_is_written_through_links_and_pipes(table: Path, tmp_path: Path) -> None:
    real, link = tmp_path / "real.json", tmp_path / "link.json"
    link.symlink_to(real)
    saved = save(table, link)
    assert link.is_symlink()
    assert read_plans(str(real)) == [saved]
    plan = plan_cleaning(snapshot_of(table), AT_ONCE)
    read, write = os.pipe()
    write_plans(f"/dev/fd/{write}", [plan])
    assert json.loads(os.read(read, 100_000))["locations"]
    os.close(read)
    os.close(write)
    with pytest.raises(AcidctlError, match="cannot write"):
        write_plans(str(table), [plan])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_place_that_may_not_be_written(table: Path, tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(AccessError):
        save(table, tmp_path / "plan.json")
