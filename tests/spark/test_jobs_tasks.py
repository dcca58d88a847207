"""What is refused before any process is started, how tasks are batched, run and packed."""

from __future__ import annotations

import pickle
import shutil
import sys
import threading
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.spark.spark_toys import Toy, play

from acidctl.base.errors import AcidctlError, EnvironmentProblem, MemoryProblem, VerifyError
from acidctl.spark import shipping
from acidctl.spark.driver.session import Session
from acidctl.spark.jobs import SMALLEST_BATCH, TASK_BYTES, make_batches, run_tasks
from acidctl.spark.shipping import package_zip, process_dir, zip_package
from acidctl.spark.worker import Failure, as_acidctl_error, run_one, split_pickled

MB = 1 << 20
NO_SPARK: Session = None  # type: ignore[assignment]


def test_no_tasks_need_no_spark() -> None:
    assert list(run_tasks([], play, NO_SPARK)) == []


def test_functions_without_a_name_are_refused() -> None:
    def inner(toy: Toy) -> Toy:
        return toy

    for function in (lambda toy: toy, inner, threading.Lock().acquire):
        with pytest.raises(TypeError, match="importable by its name"):
            run_tasks([Toy("square")], function, NO_SPARK)


def test_functions_of_main_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def of_main(toy: Toy) -> Toy:
        return toy

    of_main.__module__ = "__main__"
    with pytest.raises(TypeError, match="what __main__ defines is not"):
        run_tasks([Toy("square")], of_main, NO_SPARK)


def test_weights_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="1 tasks, but 2 weights"):
        run_tasks([Toy("square")], play, NO_SPARK, [1, 2])


@given(
    weights=st.none() | st.lists(st.integers(0, 10**12) | st.integers(0, 10**4), max_size=200),
    count=st.integers(0, 200),
    parallelism=st.integers(0, 64),
)
def test_every_task_is_in_one_batch(weights: list[int] | None, count: int, parallelism: int) -> None:
    count = count if weights is None else len(weights)
    batches = make_batches(weights, count, parallelism)
    assert sorted(index for batch in batches for index in batch) == list(range(count))
    assert all(batches)
    slots = 4 * max(1, parallelism)
    if weights is None:
        assert len(batches) <= slots
    else:
        # Two neighbours in the order of filling hold more than one batch's share together.
        assert len(batches) <= 2 * slots + 1
        costs = [sum(weights[index] + TASK_BYTES for index in batch) for batch in batches]
        assert costs == sorted(costs, reverse=True)


def test_large_tasks_come_first_and_alone() -> None:
    batches = make_batches([1, 500 * MB, 3, 900 * MB, 2], 5, 2)
    assert batches[:2] == [(3,), (1,)]
    assert batches[2:] == [(2, 4, 0)]


def test_a_few_tiny_tasks_share_a_batch() -> None:
    assert make_batches([10, 20, 30], 3, 8) == [(2, 1, 0)]
    assert SMALLEST_BATCH == 4 * TASK_BYTES


def test_two_hundred_tiny_tasks_keep_every_core_busy() -> None:
    batches = make_batches([1000] * 200, 200, 2)
    assert 8 <= len(batches) <= 9
    assert max(map(len, batches)) <= 25


def test_unknown_weights_are_dealt_round() -> None:
    assert make_batches(None, 3, 2) == [(0,), (1,), (2,)]
    assert make_batches(None, 6, 1) == [(0, 4), (1, 5), (2,), (3,)]


def test_a_result_and_a_failure() -> None:
    function = pickle.dumps(play)
    assert pickle.loads(run_one(function, pickle.dumps(Toy("square", 7)))) == 49
    failure = pickle.loads(run_one(function, pickle.dumps(Toy("foreign"))))
    assert isinstance(failure, Failure)
    assert "ValueError: a value that is no good" in failure.traceback
    garbled = pickle.loads(run_one(function, b"no pickle"))
    assert isinstance(garbled, Failure)


def test_tasks_that_cannot_be_pickled() -> None:
    assert pickle.loads(split_pickled(["a", "b", "c"], [2, 0])) == [
        (2, pickle.dumps("c", 5)),
        (0, pickle.dumps("a", 5)),
    ]
    with pytest.raises(TypeError, match="task 1 cannot be pickled"):
        split_pickled([1, threading.Lock()], [0, 1])


@pytest.mark.parametrize(
    ("error", "kind", "what"),
    [
        (VerifyError("a", "b", "c"), VerifyError, "a"),
        (KeyError("k"), AcidctlError, "A task failed with KeyError"),
        (MemoryError(), MemoryProblem, "A task ran out of memory on "),
        (
            ModuleNotFoundError("No module named 'isal.igzip'", name="isal.igzip"),
            EnvironmentProblem,
            "The Python of the",
        ),
    ],
)
def test_errors_from_executors_are_told_as_ours(error: Exception, kind: type[AcidctlError], what: str) -> None:
    converted = as_acidctl_error(error)
    assert type(converted) is kind
    assert converted.what.startswith(what)


def test_a_missing_module_names_the_package_and_the_remedy() -> None:
    error = as_acidctl_error(ModuleNotFoundError("No module named 'isal.igzip'", name="isal.igzip"))
    assert "cannot import isal" in error.what
    assert f"{sys.executable} -m pip install isal" in error.hint


def test_the_zip_is_the_same_each_time(tmp_path: Path) -> None:
    package = tmp_path / "pack"
    (package / "inner" / "__pycache__").mkdir(parents=True)
    (package / "__init__.py").write_text("x = 1\n")
    (package / "inner" / "data.properties").write_text("a=b\n")
    (package / "inner" / "__pycache__" / "data.pyc").write_text("no")
    zip_package(package, tmp_path / "one.zip")
    (package / "__init__.py").touch()
    zip_package(package, tmp_path / "two.zip")
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()
    with zipfile.ZipFile(tmp_path / "one.zip") as archive:
        assert archive.namelist() == ["pack/__init__.py", "pack/inner/data.properties"]


def test_the_package_is_zipped_once_while_its_zip_is_there() -> None:
    made = package_zip()
    before = made.stat()
    assert package_zip() == made
    assert made.stat() == before


def test_a_zip_that_a_cleaner_of_temporary_files_removed_is_made_anew() -> None:
    package_zip().unlink()
    assert zipfile.is_zipfile(package_zip())


def test_a_folder_that_a_cleaner_of_temporary_files_removed_is_made_anew() -> None:
    before = package_zip()
    shutil.rmtree(process_dir())
    made = package_zip()
    assert zipfile.is_zipfile(made)
    assert made.parent == process_dir() != before.parent
    assert made.name == before.name
    assert process_dir().stat().st_mode & 0o777 == 0o700


def test_a_folder_that_others_put_in_the_place_of_ours_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = process_dir()
    shutil.rmtree(ours)
    ours.symlink_to(tmp_path)
    assert process_dir() != ours
    ours.unlink()
    theirs = process_dir()
    monkeypatch.setattr(shipping, "getuid", lambda: theirs.stat().st_uid + 1)
    assert process_dir() != theirs
