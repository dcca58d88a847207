"""The engine on local[2]: all scenarios in one session of one process (see scenarios.py)."""

from __future__ import annotations

from typing import Any

import pytest
from support.spark.processes import marked, wait_until


@pytest.fixture(scope="module")
def outcome(played: dict[str, Any]) -> dict[str, Any]:
    """What the scenarios gave."""
    return played


pytestmark = pytest.mark.spark


def test_session_prints_nothing(outcome: dict[str, Any]) -> None:
    run = outcome["run"]
    assert run.stderr == ""
    assert (run.returncode, run.stdout) == (0, "")


def test_it_leaves_nothing_behind(outcome: dict[str, Any]) -> None:
    assert wait_until(lambda: not marked(f"ACIDCTL_TEST_MARK={outcome['folder']}"), 10)


def test_errors_of_tasks_are_their_results(outcome: dict[str, Any]) -> None:
    results = outcome["results"]
    assert sorted(results) == list(range(9))
    assert (results[0], results[8]) == (9, 16)
    assert results[1][:4] == (
        "BadDataError",
        "/t/base_5/bucket_00000: no ORC file",
        "the magic is missing",
        "look at it",
    )
    assert "raise BadDataError" in results[1][4]
    assert results[2][:3] == ("AcidctlError", "A task failed with ValueError", "a value that is no good")
    assert "spark_toys.py" in results[2][4]
    assert results[3][1] == "A task failed with TypeError"
    assert results[4][:4] == ("AcidctlError", "what", "why", "hint")
    assert results[5][:3] == ("AcidctlError", "A task failed with SystemExit", "3")
    assert isinstance(results[6], int)
    assert results[7][:3] == ("AcidctlError", "A task failed with RuntimeError", "not on this machine")


def test_progress_is_told_in_order_of_results(outcome: dict[str, Any]) -> None:
    arrivals = outcome["streaming"]
    assert sorted(arrivals) == [(0, True), (1, 0), (2, 1), (3, 4), (4, 9)]
    assert arrivals[-1] == (0, True)


def test_a_worker_that_dies_takes_no_other_task_along(outcome: dict[str, Any]) -> None:
    crashes = outcome["crashes"]
    for index in range(24):
        if index in {3, 17}:
            name, what, why, *_ = crashes[index]
            assert (name, what) == ("EnvironmentProblem", "The Python worker of a task died on localhost")
            # Spark 3.5 ends its sentence without a full stop.
            assert why.removesuffix(".") == "SparkException: Python worker exited unexpectedly (crashed)"
        else:
            assert crashes[index] == index**2


def test_many_small_tasks_have_all_their_results(outcome: dict[str, Any]) -> None:
    assert outcome["batched"] == {n: n * n for n in range(500)}


def test_closing_early_cancels_what_runs(outcome: dict[str, Any]) -> None:
    assert outcome["abandoned"]["first"] == (0, 1)
    assert outcome["abandoned"]["closed"] < 10
    assert outcome["abandoned"]["after"] == [(0, 25)]


def test_the_handler_for_interrupts_is_left_alone(outcome: dict[str, Any]) -> None:
    assert outcome["interrupted"] is True


def test_a_session_within_a_session(outcome: dict[str, Any]) -> None:
    refusal = (
        "UsageProblem",
        "Spark's master local[7] cannot be used, Spark runs on local[2] in this process already",
        "a process has one Spark at a time",
    )
    assert outcome["nested"] == {"same": True, "refused": [refusal, refusal], "after": [(0, 36)]}


def test_workers_import_what_the_driver_imports(outcome: dict[str, Any]) -> None:
    modules = outcome["modules"]
    assert modules["pyspark"].endswith("/pyspark/__init__.py")
    assert not [entry for entry in modules["path"] if entry.endswith(".zip") and "python/lib/py" in entry]
    assert str(outcome["folder"]) not in modules["path"]


def test_any_picklable_task_runs(outcome: dict[str, Any]) -> None:
    assert outcome["other_types"] == {0: "int", 1: "NoneType", 2: "bytes", 3: "list", 4: "dict"}


def test_java_that_dies_is_told(outcome: dict[str, Any]) -> None:
    name, what, why, hint, _ = outcome["killed"]["error"]
    assert name == "EnvironmentProblem"
    assert what == "The Java process of Spark was killed by signal 9"
    assert why
    assert hint
    assert outcome["killed"]["seconds"] < 10
