"""Copies to Iceberg whose files are written by Spark's tasks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyiceberg.table import StaticTable
from support.files.acid_files import delete, insert, write_acid

from acidctl.base.errors import StorageError

pytestmark = [pytest.mark.spark, pytest.mark.slow]

HOOK = """
import functools, os
from pathlib import Path
from acidctl.base.errors import StorageError
from acidctl.iceberg import file_tasks

def dying(write):
    @functools.wraps(write)
    def write_file(task):
        made = write(task)
        if os.environ["HOOK"] == "fail" and "delta_0000002" in task.source.path:
            raise StorageError("the disk is gone", "it is a test", "")
        try:
            Path(os.environ["DIED"]).touch(exist_ok=False)
        except FileExistsError:
            return made
        os._exit(1)
    return write_file

file_tasks.write_file = dying(file_tasks.write_file)
"""


def made(table: Path) -> list[int]:
    """A table of several files; the first columns of its rows."""
    for at in range(1, 4):
        rows = (insert(at, n, (at * 10 + n, f"{n}")) for n in range(5))
        write_acid(table / f"delta_{at:07}_{at:07}_0000" / "bucket_00000", *rows)
    write_acid(table / "delete_delta_0000004_0000004_0000" / "bucket_00000", delete(1, 1, 4), delete(3, 4, 4))
    return [10, 12, 13, 14, 20, 21, 22, 23, 24, 30, 31, 32, 33]


def migrate(table: Path, to: Path, environ: dict[str, str], *more: str) -> subprocess.CompletedProcess[str]:
    line = ["migrate", "--assume-committed=0s", str(table), "--to", str(to), "--yes", "--engine=spark", *more]
    return subprocess.run(
        [sys.executable, "-m", "acidctl", *line, "--master=local[2]"],
        env=environ,
        cwd=table.parent,
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )


def hooked(folder: Path, environ: dict[str, str], how: str) -> dict[str, str]:
    """An environment in which workers die, or fail, after they have written a file."""
    (folder / "hook").mkdir()
    (folder / "hook" / "sitecustomize.py").write_text(HOOK)
    paths = f"{folder / 'hook'}{os.pathsep}{environ['PYTHONPATH']}"
    return environ | {"PYTHONPATH": paths, "DIED": str(folder / "died"), "HOOK": how}


def ids(to: Path) -> list[int]:
    return sorted(StaticTable.from_metadata(str(to)).scan().to_arrow()["a"].to_pylist())


@pytest.mark.parametrize("kind", ["orc", "parquet"])
def test_a_task_whose_worker_dies_is_tried_again(kind: str, tmp_path: Path, child_environ: dict[str, str]) -> None:
    expected = made(tmp_path / "t")
    environ = hooked(tmp_path, child_environ, "die")
    done = migrate(tmp_path / "t", tmp_path / "copy", environ, f"--format={kind}")
    assert done.returncode == 0, done.stderr
    assert "all values of 13 rows compared" in done.stdout
    assert (tmp_path / "died").exists()
    assert ids(tmp_path / "copy") == expected
    table = StaticTable.from_metadata(str(tmp_path / "copy"))
    listed = {task.file.file_path.rpartition("/")[2] for task in table.scan().plan_files()}
    data = {path.name for path in (tmp_path / "copy" / "data").iterdir() if "-deletes" not in path.name}
    assert len(listed) == 3
    assert data == listed, "the file of the attempt that died is gone"


def test_a_task_that_fails_leaves_nothing(tmp_path: Path, child_environ: dict[str, str]) -> None:
    made(tmp_path / "t")
    environ = hooked(tmp_path, child_environ, "fail")
    done = migrate(tmp_path / "t", tmp_path / "copy", environ, "--format=parquet")
    assert done.returncode == StorageError.exit_status, done.stderr
    assert "the disk is gone" in done.stderr
    assert not list((tmp_path / "copy" / "data").iterdir())
    assert not StaticTable.from_metadata(str(tmp_path / "copy")).snapshots()
