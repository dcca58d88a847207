"""Tasks of copies that fail, are tried again, or are given up; without Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.table import StaticTable
from support.command_line import Result as Run
from support.files.acid_files import insert, write_acid

import acidctl
from acidctl.base.errors import AcidctlError, BadDataError, NoSpaceError, StorageError, UsageProblem
from acidctl.spark import copy_engine


@pytest.fixture
def tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Rounds run in this process; the text names the class of the error of each attempt, in order."""
    errors: list[str] = []

    @contextmanager
    def session(_: object) -> Iterator[object]:
        yield object()

    def run(tasks: Sequence[Any], function: Callable[[Any], Any], *_: Any, **__: Any) -> Iterator[tuple[int, Any]]:
        for at, task in reversed(list(enumerate(tasks))):
            made = function(task)
            error = errors.pop(0) if errors else ""
            yield at, KINDS[error]("no", "", "") if error else made

    monkeypatch.setattr(copy_engine, "start_session", session)
    monkeypatch.setattr(copy_engine, "run_tasks", run)
    for at in (1, 2):
        write_acid(tmp_path / "t" / f"delta_{at:07}_{at:07}_0000" / "bucket_00000", insert(at, 0, (at, "a")))
    return errors


KINDS: dict[str, type[AcidctlError]] = {one.__name__: one for one in (BadDataError, NoSpaceError, StorageError)}


def copy(folder: Path, **options: Any) -> Any:
    return acidctl.migrate(
        folder / "t", folder / "copy", assume_committed=0, metastore="none", engine="spark", **options
    )


@pytest.mark.parametrize("errors", [[], ["StorageError"], ["", "StorageError"], ["StorageError", "StorageError"]])
def test_a_store_that_failed_is_asked_again(errors: list[str], tried: list[str], tmp_path: Path) -> None:
    tried += errors
    assert copy(tmp_path).rows == 2
    table = StaticTable.from_metadata(str(tmp_path / "copy"))
    assert sorted(table.scan().to_arrow()["a"].to_pylist()) == [1, 2]
    assert len(list((tmp_path / "copy" / "data").iterdir())) == 2, "files of attempts that failed are removed"


@pytest.mark.parametrize("errors", [["BadDataError"], ["NoSpaceError"], ["StorageError", "", "StorageError"]])
def test_what_fails_for_good_leaves_nothing(errors: list[str], tried: list[str], tmp_path: Path) -> None:
    tried += errors
    with pytest.raises(KINDS[errors[-1]]):
        copy(tmp_path, format="parquet")
    assert not list((tmp_path / "copy" / "data").iterdir())
    assert not StaticTable.from_metadata(str(tmp_path / "copy")).snapshots()
    assert not tried, "no attempt was left out"


def test_options_of_the_other_engine_are_refused(tried: list[str], tmp_path: Path, acidctl: Callable[..., Run]) -> None:
    with pytest.raises(UsageProblem, match="--jobs is for --engine local"):
        copy(tmp_path, jobs=2)
    line = ("migrate", "--assume-committed=0s", tmp_path / "t", "--to", tmp_path / "copy", "--yes")
    found = acidctl(*line, "--master=local[2]")
    assert (found.status, "are for --engine spark" in found.err) == (UsageProblem.exit_status, True)
