"""Readers that die or hang: their file is a finding, and the rest goes on."""

from __future__ import annotations

import multiprocessing
import time
from pathlib import Path

import pytest

from acidctl.errors import NotFoundError
from acidctl.validation import location
from acidctl.validation.isolate import Crash, Limits, Pool
from validation import crashers
from validation.planted import BUCKET, check, found, healthy, insert, write_events


def run(*what: str, limits: Limits | None = None, size: int = 2) -> dict[str, object]:
    results: dict[str, object] = {}
    with Pool(size, limits or Limits()) as pool:
        for one in what:
            pool.submit(one, crashers.Toy(one))
        while pool.unfinished:
            results.update(pool.results())
    return results


def test_a_death_is_the_result_of_its_task() -> None:
    results = run("fine", "abort", "exit", "raise", "refuse", "greedy", "well")
    assert results["fine"] == "fine"
    assert results["well"] == "well"
    assert results["abort"] == Crash("the reader's process was ended by SIGABRT")
    assert results["exit"] == Crash("the reader's process ended with status 3")
    assert results["raise"] == Crash("the reader failed with ValueError: of a kind that nobody expected")
    assert isinstance(results["refuse"], NotFoundError)
    greedy = results["greedy"]
    assert isinstance(greedy, Crash)
    assert "MemoryError" in greedy.reason


def test_no_sign_of_life() -> None:
    results = run("hang", "fine", limits=Limits(seconds=5))
    assert results["hang"] == Crash("the reader gave no sign of life for 5 seconds")
    assert results["fine"] == "fine"


def test_signs_of_life_count() -> None:
    assert run("slow", limits=Limits(seconds=5), size=1) == {"slow": "slow"}


def test_closing_ends_the_processes() -> None:
    with Pool(1) as pool:
        pool.submit("hang", crashers.Toy("hang"))
        pool.submit("fine", crashers.Toy("fine"))
        pool._hand_out()
        time.sleep(0.2)
    assert multiprocessing.active_children() == []


def three_stripes(table: Path) -> Path:
    healthy(table)
    events = [insert(3, row, BUCKET | 1 << 16) for row in range(30_000)]
    directory = table / "delta_0000003_0000003_0000"
    path = write_events(
        directory, events, "bucket_00001", stripe_size=1, batch_size=1000, metadata={"hive.acid.key.index": None}
    )
    write_events(directory, [insert(3, 1)])  # a fault beside it, which must still be found
    return path


def test_a_tail_that_ends_its_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    three_stripes(tmp_path / "t")
    monkeypatch.setattr(location, "TailTask", crashers.CrashingTails)
    (report,) = check(tmp_path / "t", processes=2)
    assert found(report) == {"V24", "V29 warning"}
    (finding,) = [one for one in report.findings if one.rule == "V24"]
    assert finding.path.endswith("bucket_00001")
    assert "SIGABRT" in finding.message


@pytest.mark.parametrize("task", [crashers.CrashingRows, crashers.DyingRows])
def test_rows_that_end_their_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, task: type) -> None:
    three_stripes(tmp_path / "t")
    monkeypatch.setattr(location, "RowTask", task)
    (report,) = check(tmp_path / "t", processes=2)
    assert found(report) == {"V24", "V29 warning", "V30 warning"}
    broken = [one.message for one in report.findings if one.rule == "V24"]
    assert "stripe 1: the reader's process was ended by SIGABRT" in broken
    assert len(broken) == (1 if task is crashers.CrashingRows else 2)
    # All other stripes were read all the same.
    whole = 30_000 + 5 + 1
    assert report.rows == whole if task is crashers.CrashingRows else report.rows < whole


def test_a_hanging_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = healthy(tmp_path / "t")
    monkeypatch.setattr(location, "MarkerTask", crashers.HangingMarkers)
    (report,) = check(table, processes=2, seconds=2.0)
    assert report.files == 3
    assert report.rows == 5
    assert found(report) == {"V24"}
    assert len(report.findings) == 3


def test_reports_come_in_the_order_of_the_locations(tmp_path: Path) -> None:
    tables = [healthy(tmp_path / f"t{place}") for place in range(12)]
    reports = check(*tables, processes=2)
    assert [report.location for report in reports] == [str(table) for table in tables]
    assert all(report.rows == 5 for report in reports)
