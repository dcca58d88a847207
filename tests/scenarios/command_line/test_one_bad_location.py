"""Whatever one location does to the code that looks at it, the others are looked at."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.command_line import Result
from support.files.acid_files import insert, write_acid

from acidctl.location.snapshot import Snapshot
from acidctl.repair import apply
from acidctl.repair.plan import RepairPlan
from acidctl.storage.local.filesystem import LocalFileSystem

Acidctl = Callable[..., Result]
TOLD = ("--assume-committed=0s",)
COMMANDS = {
    "ls": ("ls", "-o", "jsonl"),
    "status": ("status",),
    "report": ("report", "-o", "json"),
    "validate": ("validate", "-v"),
    "compact": ("compact", "--major", "--dry-run", "-v", *TOLD),
    "clean": ("clean", "--dry-run", "--older-than=0s", "--unsafe-retention", "-v", *TOLD),
    "nightly": ("nightly", "--dry-run", "-v", *TOLD),
    "purge": ("purge", "--dry-run", "-v"),
    "repair": ("repair", "--dry-run", "-v"),
    "restore": ("restore", "--list"),
    "log": ("log",),
    "history": ("history",),
    "erasure": ("erasure", "--where", "a = 1"),
    "why": ("why",),
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for table in ("a_good", "bad", "c_good"):
        for one in (1, 2):
            write_acid(
                tmp_path / "w" / table / f"delta_{one:07}_{one:07}_0000" / "bucket_00000", insert(one, 0, (one, "x"))
            )
    return tmp_path / "w"


@pytest.mark.parametrize("method", ["list_dir", "list_tree"])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_bug_in_one_location_costs_that_one(
    acidctl: Acidctl, tree: Path, monkeypatch: pytest.MonkeyPatch, method: str, command: str
) -> None:
    real = getattr(LocalFileSystem, method)

    def faulty(self: LocalFileSystem, path: str, *more: object) -> object:
        if Path(path).name == "bad":
            raise ValueError("boom")
        return real(self, path, *more)

    whole = acidctl(*COMMANDS[command], tree)
    monkeypatch.setattr(LocalFileSystem, method, faulty)
    seen = acidctl(*COMMANDS[command], tree)
    if (seen.out, seen.status) == (whole.out, whole.status):
        assert method == "list_tree", "it needs no such listing"
        return
    assert (seen.status in (1, 14, 15), "boom" in seen.out + seen.err) == (True, True), seen.err
    for table in ("a_good", "c_good"):
        assert whole.out.count(table) == seen.out.count(table)


@pytest.mark.parametrize("command", COMMANDS)
def test_odd_names_hide_nothing(acidctl: Acidctl, tree: Path, command: str) -> None:
    whole = acidctl(*COMMANDS[command], tree)
    odd = (b"\xff\xfe", b"%zz=%", b"a=\xff", b"=", b"a\nb=1", b"delta_" + b"9" * 40 + b"_1")
    for name in odd:
        (tree / os.fsdecode(name)).mkdir()
        (tree / "bad" / os.fsdecode(name)).mkdir()
    seen = acidctl(*COMMANDS[command], tree)
    assert seen.status != 1, seen.err
    for table in ("a_good", "c_good"):
        assert whole.out.count(table) <= seen.out.count(table)


def test_a_bug_in_the_plan_of_one_repair_costs_that_one(
    acidctl: Acidctl, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = apply.plan_repair

    def faulty(snapshot: Snapshot, *more: Any) -> RepairPlan:
        if Path(snapshot.path).name == "bad":
            raise ValueError("boom")
        return real(snapshot, *more)

    monkeypatch.setattr(apply, "plan_repair", faulty)
    seen = acidctl("repair", "--dry-run", "-v", tree)
    assert (seen.status, "boom" in seen.err) == (1, True)
    assert all(str(tree / table) in seen.out + seen.err for table in ("a_good", "c_good"))
