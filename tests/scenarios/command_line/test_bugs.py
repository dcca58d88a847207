"""A bug in the work on one location fails that location, with its name, and the others go on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pytest
from support.command_line import Result
from support.made.due import write_deltas
from support.trouble.dying_tasks import stumble_on_b

Call = Callable[..., Result]

COMPACT = ("compact", "--major", "--engine=local", "--assume-committed=0s")
CLEAN = ("clean", "--yes", "--older-than=0", "--unsafe-retention", "--assume-committed=0s")
NIGHTLY = ("nightly", "--yes", "--engine=local", "--assume-committed=0s", "--min-deltas=2")
STEPS = {
    "compact: plan": (COMPACT, "acidctl.verbs.compact.plan_location"),
    "compact: stage": (COMPACT, "acidctl.compaction.run.stage_directories"),
    "compact: task": (COMPACT, "acidctl.compaction.run.run_task"),
    "compact: joins": (COMPACT, "acidctl.compaction.run._Location._following"),
    "compact: publish": (COMPACT, "acidctl.compaction.run.publish"),
    "clean: plan": (CLEAN, "acidctl.verbs.clean.plan_location"),
    "clean: remove": (CLEAN, "acidctl.cleaning.apply._remove"),
    "nightly: plan": (NIGHTLY, "acidctl.verbs.compact.plan_location"),
    "nightly: task": (NIGHTLY, "acidctl.compaction.run.run_task"),
}


def names(table: Path) -> set[str]:
    return {path.name for path in table.iterdir() if path.name[0] not in "._"}


@pytest.fixture
def tables(tmp_path: Path, acidctl: Call) -> list[Path]:
    """Three tables with two deltas each."""
    return [write_deltas(tmp_path / "wh" / name, 1, 2) for name in "abc"]


def in_b(original: Callable[..., Any]) -> Callable[..., Any]:
    """A function that has a bug where one of its arguments is of the second table."""

    def odd(*values: Any, **more: Any) -> Any:
        if any("/wh/b" in str(_place(value)) for value in (*values, *more.values())):
            raise ValueError("nobody expected this")
        return original(*values, **more)

    return odd


def _place(value: Any) -> object:
    holder = getattr(value, "plan", None) or getattr(value, "snapshot", value)
    return getattr(holder, "shown", value)


@pytest.mark.parametrize("step", STEPS)
def test_the_other_locations_go_on(
    acidctl: Call, tables: list[Path], monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    line, target = STEPS[step]
    if line is CLEAN:
        assert acidctl(*COMPACT, *tables).status == 0
    before = [names(table) for table in tables]
    monkeypatch.setattr(target, stumble_on_b if "task" in step else in_b(resolve_name(target)))
    done = acidctl("--debug", *line, *tables)
    after = [names(table) for table in tables]
    assert (done.status, after[1]) == (1, before[1]), done.err
    assert (after[0] != before[0], after[2] != before[2]) == (True, True), done.err
    assert ("unexpected ValueError" in done.err, str(tables[1]) in done.err) == (True, True)
    assert ("a bug in acidctl" in done.err, "--debug" in done.err, "Traceback" in done.err) == (True, True, True)
    assert "Traceback" not in acidctl(*line, *tables).err


@pytest.mark.parametrize(
    "target", ["acidctl.validation.location.check_listing", "acidctl.location.table_location.TableLocation.resolve"]
)
def test_a_check_goes_on(acidctl: Call, tables: list[Path], monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    monkeypatch.setattr(target, in_b(resolve_name(target)))
    done = acidctl("--debug", "validate", "--assume-committed=0s", *tables)
    assert (done.status, "3 locations" in done.out, "1 could not be checked" in done.out) == (1, True, True), done.out
    assert (str(tables[1]) in done.out, "--debug" in done.err, "Traceback" in done.err) == (True, True, True)


def test_a_bug_after_a_removal_shows_its_trace_and_what_was_removed(
    acidctl: Call, tables: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert acidctl(*COMPACT, tables[0]).status == 0
    target = "acidctl.cleaning.apply._remove"
    steps = iter((resolve_name(target), None))

    def remove_once(*values: Any) -> Any:
        return next(steps)(*values)

    monkeypatch.setattr(target, remove_once)
    done = acidctl("--debug", *CLEAN, tables[0])
    assert (done.status, "unexpected TypeError" in done.err) == (1, True), done.err
    assert ("Traceback" in done.err, "1 of 2 are in the trash" in done.err) == (True, True), done.err
