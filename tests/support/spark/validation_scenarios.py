"""The part of scenarios.py that test_validate.py looks at: locations checked here and on Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

from acidctl.location.walk import walk_locations
from acidctl.spark.driver.session import Session
from acidctl.spark.jobs import SparkRunner
from acidctl.storage.registry import open_location
from acidctl.validation import location
from acidctl.validation.findings import READERS, Depth
from acidctl.validation.report import CheckOptions, LocationToCheck
from acidctl.validation.run import check_locations
from support.files.acid_files import insert, write_by_pyorc
from support.made.planted import CASES
from support.trouble import crashers
from support.validating import NOW, healthy, three_stripes

SOME = list(CASES)[::8]


def places(folder: Path) -> Iterator[LocationToCheck]:
    """Every location below a folder."""
    fs, path = open_location(str(folder))
    for found, _ in walk_locations(fs, path):
        yield LocationToCheck(fs, found.path, partition=found.partition)


def checked(folder: Path, options: CheckOptions, runner: SparkRunner | None = None) -> list[dict[str, Any]]:
    """The reports as programs get them."""
    return [report.record() for report in check_locations(places(folder), options, runner=runner)]


def both(session: Session, folder: Path, depth: Depth) -> dict[str, Any]:
    """Here and on Spark."""
    options = CheckOptions(depth, READERS, processes=2, now=NOW)
    runner = SparkRunner(lambda stores: session, options.limits)
    return {"here": checked(folder, options), "spark": checked(folder, options, runner)}


def plant(folder: Path) -> int:
    """Tables with planted faults, healthy ones, a partitioned one, and an insert-only one; how many locations."""
    for number, name in enumerate(SOME):
        CASES[name][1](healthy(folder / f"t{number:03d}"))
    healthy(folder / "whole")
    healthy(folder / "parts" / "p=1")
    write_by_pyorc(folder / "parts" / "p=2" / "delta_0000001_0000001_0000", [insert(2, 0)])
    only = folder / "only" / "delta_0000001_0000001_0000"
    only.mkdir(parents=True)
    (only / "000000_0").write_text("1\tone\n")
    return len(SOME) + 4


def play(session: Session, folder: Path) -> dict[str, Any]:
    """Reports of planted tables by depth, and of one whose reader dies."""
    outcome: dict[str, Any] = {"locations": plant(folder / "planted")}
    for depth in (Depth.FOOTERS, Depth.DEEP):
        outcome[depth.value] = both(session, folder / "planted", depth)
    three_stripes(folder / "crashing" / "t")
    with patch.object(location, "RowTask", crashers.CrashingRows):
        outcome["crash"] = both(session, folder / "crashing", Depth.DEEP)
    return outcome
