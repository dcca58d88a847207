"""A machine without the time zone database: one error of the installation, whatever reads a timestamp."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from support.files.acid_files import acid_batch, acid_file, insert, write_acid
from support.paths import PYTHONPATH

from acidctl.orc.types import OrcType
from acidctl.orc.write.writer_settings import WriterSettings

TIMES = OrcType("struct", children=(OrcType("int"), OrcType("timestamp")), names=("id", "t"))
ENVIRONMENT = 8


def acidctl(*line: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": PYTHONPATH, "TZDIR": "/nonexistent"}
    return subprocess.run(
        [sys.executable, "-m", "acidctl", *line], capture_output=True, text=True, env=env, timeout=300, check=False
    )


@pytest.fixture
def table(tmp_path: Path) -> Path:
    row = pa.StructArray.from_arrays([pa.array([1, 2], pa.int32()), pa.array([0, 1], pa.timestamp("ns"))], ["id", "t"])
    for number in (7, 8):
        path = tmp_path / "t" / f"delta_000000{number}_000000{number}_0000" / "bucket_00000"
        path.parent.mkdir(parents=True)
        path.write_bytes(acid_file(TIMES, [acid_batch(row, write_id=number)], WriterSettings("none"))[0])
    return tmp_path / "t"


@pytest.mark.parametrize(
    "line",
    [
        ("cat", "T"),
        ("cat", "--skip-bad-files", "T"),
        ("validate", "--deep", "T"),
        ("compact", "--major", "--assume-committed=0", "--verify", "full", "T"),
        ("doctor",),
    ],
    ids=" ".join,
)
def test_it_is_named_and_no_file_is_blamed(table: Path, line: tuple[str, ...]) -> None:
    done = acidctl(*(str(table) if word == "T" else word for word in line))
    assert done.returncode == ENVIRONMENT, done.stderr
    said = done.stdout + done.stderr
    assert "TZDIR" in done.stderr
    for wrong in ("damaged", "V24", "lost", "Traceback", "--skip-bad-files"):
        assert wrong not in said
    assert sorted(one.name for one in table.iterdir()) == [f"delta_000000{n}_000000{n}_0000" for n in (7, 8)]


def test_what_holds_no_timestamp_is_read(table: Path) -> None:
    done = acidctl("cat", "--columns", "id", str(table))
    assert (done.returncode, done.stdout.count("\n") >= 2) == (0, True), done.stderr


def test_a_check_of_many_locations_goes_on_and_says_what_it_could_not(table: Path) -> None:
    """A location without timestamps comes after, and an error in its listing is still found."""
    other = table.parent / "u"
    write_acid(other / "delta_0000001_0000001_0000" / "bucket_00000", insert(1, 0, (1, "x")))
    done = acidctl("validate", "--deep", str(table.parent))
    assert (done.returncode, "1 location could not be checked" in done.stderr) == (ENVIRONMENT, True), done.stderr
    assert "2 locations, 3 files, 1 row checked" in done.stdout
    shutil.rmtree(other / "delta_0000001_0000001_0000")
    (other / "delta_0000002_0000002_0000").mkdir(parents=True)
    (other / "delta_0000002_0000002_0000" / "bucket_00000").write_bytes(b"no ORC")
    assert acidctl("validate", "--deep", str(table.parent)).returncode == 14, "findings come first"
