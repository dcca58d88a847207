"""A file that ends the process of whoever reads it: commands name it, clear up, and go on with all else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support.command_line import Result
from support.files.acid_files import delete, insert, write_acid, write_plain
from support.paths import PYTHONPATH, TESTS

from acidctl.base import worker_pool
from acidctl.orc.read.reader import OrcFile

SITE = TESTS / "support" / "trouble" / "crash_site"
BAD = "b/delta_0000001_0000001_0000"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Three tables alike; a file of the second is the bad one."""
    for name in ("a", "b", "c"):
        table = tmp_path / "w" / name
        write_plain(table / "000000_0", (1, "old"))
        write_acid(
            table / "delta_0000001_0000001_0000" / "bucket_00000", insert(1, 0, (2, "x")), insert(1, 1, (3, "y"))
        )
        write_acid(table / "delta_0000002_0000002_0000" / "bucket_00000", insert(2, 0, (4, "z")))
        write_acid(table / "delete_delta_0000003_0000003_0000" / "bucket_00000", delete(1, 0, 3))
    return tmp_path / "w"


def run(*args: str | Path, number: int = signal.SIGSEGV) -> Result:
    """A command in processes of its own, each of which dies of the bad file."""
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join((str(SITE), PYTHONPATH))}
    environ |= {"CRASH_PATH": BAD, "CRASH_SIGNAL": str(int(number))}
    command = [sys.executable, "-m", "acidctl", *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True, env=environ, check=False, stdin=subprocess.DEVNULL)
    return Result(done.returncode, done.stdout, done.stderr)


def test_a_crash_is_an_error_that_names_the_file(tree: Path, tmp_path: Path) -> None:
    found = run("cat", tree / "b", number=signal.SIGABRT)
    error, why, _ = found.err.splitlines()[-3:]
    assert found.status == 4
    assert BAD in error
    assert "SIGABRT" in why
    assert sorted(path.name for path in tmp_path.iterdir()) == ["w"]


@pytest.mark.parametrize(
    "words", ["dump b/delta_0000001_0000001_0000/bucket_00000", "diff --from 0 b", "blame b 1:536870912:1"]
)
def test_commands_that_read_rows_end_with_the_status_of_damaged_data(tree: Path, words: str) -> None:
    found = run(*(tree / word if word.startswith("b") and word != "blame" else word for word in words.split()))
    assert found.status == 4
    assert f"{BAD}/bucket_00000 cannot be read" in found.err


def test_dump_and_cat_go_on_with_the_other_files(tree: Path) -> None:
    found = run("dump", tree / "b", tree / "c")
    assert (found.status, len(found.lines())) == (4, 8)
    assert BAD in found.err
    found = run("cat", "--skip-bad-files", tree / "b")
    assert (found.status, [row["a"] for row in found.lines()]) == (4, [1, 4])
    assert "2 rows are not shown" in found.err


def test_erasure_searches_the_other_tables(tree: Path) -> None:
    found = run("erasure", "-o", "json", "--where", "a = 3", tree)
    places = {Path(one["location"]).name: one for one in found.json()["locations"]}
    assert {name: one["events"] for name, one in places.items()} == {"a": 1, "b": 0, "c": 1}
    assert [one["result"] for one in places.values()] == ["held", "not-known", "held"]
    assert found.status == 14


def test_planning_reads_in_other_processes(
    tree: Path, acidctl: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The codec of the first file with ids numbers the originals."""
    native, here = OrcFile._native, os.getpid()

    def crash(file: OrcFile) -> object:
        assert os.getpid() != here
        if BAD in file.tail.path:
            os.kill(os.getpid(), signal.SIGSEGV)
        return native(file)

    monkeypatch.setattr(OrcFile, "_native", crash)
    monkeypatch.setattr(worker_pool, "_FORKS", 10**9)  # however many files other tests have read in this process
    found = acidctl("compact", "--major", "--engine", "local", "--assume-committed", "0s", "-o", "json", tree)
    results = {Path(one["location"]).name: one["result"] for one in found.json()}
    assert results == {"a": "compacted", "b": "failed", "c": "compacted"}
    assert found.status == 4
    assert sorted(path.name for path in (tree / "b").iterdir()) == [
        "000000_0",
        "delete_delta_0000003_0000003_0000",
        "delta_0000001_0000001_0000",
        "delta_0000002_0000002_0000",
    ]
