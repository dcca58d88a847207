"""Nothing is imported from the current directory: not by acidctl, and not by any Python that it starts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from acidctl.base import imports
from acidctl.spark.shipping import zip_package

NAMES = (
    "abc", "argparse", "click", "codecs", "concurrent", "contextlib", "csv", "dataclasses", "fsspec", "google",
    "gzip", "isal", "json", "logging", "multiprocessing", "numpy", "pickle", "platform", "py4j", "pyarrow",
    "pyorc", "pyspark", "queue", "random", "re", "rich", "select", "selectors", "shlex", "signal",
    "sitecustomize", "socket", "subprocess", "tempfile", "threading", "tomllib", "traceback", "typing", "usercustomize",
    "uuid", "zipfile",
)  # fmt: skip
PLANTED = (
    "import os\nopen({mark!r}, 'a').write(__name__ + ' ' + str(os.getpid()) + '\\n')\nraise SystemExit('planted')\n"
)

SETTINGS = """
import sys
import acidctl.compaction.local_engine as local
local.WORTH_A_PROCESS = 1
from acidctl.cli.main import main
if __name__ == "__main__":
    main(sys.argv[1:])
"""


@pytest.fixture
def trap(tmp_path: Path) -> Path:
    """A directory with a module of each name, which leave a mark when they are imported."""
    folder = tmp_path / "trap"
    folder.mkdir()
    (folder / "empty.py").write_text("import sys\nprint(*sys.modules)")
    # What Python itself imports for -m, before any code of ours, it takes from there.
    early = subprocess.run([sys.executable, "-m", "empty"], cwd=folder, capture_output=True, text=True, check=True)
    for name in set(NAMES) - set(early.stdout.split()):
        (folder / f"{name}.py").write_text(PLANTED.format(mark=str(tmp_path / "mark")))
    return folder


def run(trap: Path, *words: str | Path, **environ: str) -> str:
    """Run it there; what was imported from there."""
    own = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONSAFEPATH")}
    command = [sys.executable, *map(str, words)]
    done = subprocess.run(
        command, cwd=trap, env=own | environ, capture_output=True, text=True, check=False, timeout=300
    )
    mark = trap.parent / "mark"
    if mark.exists():
        return mark.read_text()
    assert done.returncode == 0, done.stderr + done.stdout
    return ""


@pytest.fixture
def table(trap: Path, tmp_path: Path) -> Path:
    made = tmp_path / "t"
    assert run(trap, "-m", "acidctl", "demo", made) == ""
    return made


LINES = [
    ("ls",), ("cat",), ("validate", "--deep"), ("history",), ("compact", "--auto", "--assume-committed=0s"),
    ("compact", "--major", "--engine", "local", "--assume-committed=0s"), ("clean", "--dry-run"),
]  # fmt: skip


def test_program_imports_nothing_from_the_current_directory(trap: Path, table: Path) -> None:
    for line in LINES:
        assert run(trap, "-m", "acidctl", *line, table) == "", line


def test_workers_of_the_local_engine(trap: Path, table: Path, tmp_path: Path) -> None:
    """From a script elsewhere, as the installed command is one; they do not run it again."""
    script = tmp_path / "elsewhere" / "script.py"
    script.parent.mkdir()
    script.write_text(SETTINGS)
    second = tmp_path / "t2"
    assert run(trap, script, "demo", second) == ""
    line = ("compact", "--major", "--engine", "local", "--jobs", "2", "--assume-committed=0s")
    assert run(trap, script, *line, table, second) == ""
    assert (table / "base_0000003").is_dir()
    assert (second / "base_0000003").is_dir()


@pytest.mark.slow
def test_pandas_is_left_out(trap: Path, table: Path, tmp_path: Path) -> None:
    """pyarrow would import it to look at a NumPy array, where it is installed."""
    packages = tmp_path / "packages"
    packages.mkdir()
    (packages / "pandas.py").write_text(PLANTED.format(mark=str(tmp_path / "mark")))
    here = tmp_path / "here"
    here.mkdir()
    for line in [*LINES, ("cat", "--where", "id > 0"), ("diff", "--from", "1"), ("dump",)]:
        assert run(here, "-m", "acidctl", *line, table, PYTHONPATH=str(packages)) == "", line


INTERACTIVE = """
import sys
sys.path.remove("")
import acidctl.base.worker_pool as isolate
import acidctl.compaction.local_engine as local
import acidctl.compaction.run
import multiprocessing.connection, subprocess
sys.path.insert(0, "")
class Task:
    weight = 1
with isolate.Pool(1) as pool:
    worker = pool._start()
    worker.connection.send(None)
    try:
        print(worker.connection.recv())
    except EOFError:
        pass
    worker = pool._start()
    worker.connection.send(local._InWorker(len, ()))
    assert worker.connection.recv() == ("beat", 0)
    assert worker.connection.recv() == ("done", 0)
"""


def test_workers_of_an_interactive_python(trap: Path) -> None:
    """Whose own path begins with the current directory."""
    assert run(trap, "-c", INTERACTIVE) == ""


@pytest.mark.sampled
@pytest.mark.parametrize("gap", [":", "::/nowhere", ".:/nowhere", "./:/nowhere", "/nowhere:"])
def test_a_gap_in_the_path(tmp_path: Path, gap: str) -> None:
    """What is set as PYTHONPATH=$PYTHONPATH:/x, where nothing was set before."""
    trap = tmp_path / "trap"
    trap.mkdir()
    (trap / "fsspec.py").write_text(PLANTED.format(mark=str(tmp_path / "mark")))
    (trap / "pyarrow.py").write_text(PLANTED.format(mark=str(tmp_path / "mark")))
    (trap / "sitecustomize.py").write_text(
        "import os\nif os.getppid() != int(os.environ['OURS']):\n    import fsspec\n"
    )
    ours = {"OURS": str(os.getpid()), "PYTHONPATH": gap}
    assert run(trap, "-m", "acidctl", "demo", tmp_path / "t", **ours) == ""
    assert run(trap, "-m", "acidctl", "validate", "--deep", tmp_path / "t", **ours) == ""


def test_a_path_that_was_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}")
    monkeypatch.setattr(sys, "path", [str(tmp_path), "", "relative", "/x.zip"])
    imports.forget_current_directory()
    assert sys.path == ["/x.zip"] if not sys.flags.safe_path else [str(tmp_path), "/x.zip"]
    monkeypatch.setattr(sys, "path", [str(tmp_path), str(tmp_path), "/x.zip"])
    imports.forget_current_directory()
    assert sys.path == [str(tmp_path), "/x.zip"]
    assert imports.child_environment()["PYTHONPATH"] == str(tmp_path)


def test_an_archive_by_a_relative_name(tmp_path: Path) -> None:
    """As Spark's executors have it, whose processes begin others."""
    zip_package(Path(imports.__file__).parents[1], tmp_path / "sent.zip")
    asked = (
        "import sys; sys.path[:0] = ['./sent.zip', './other.zip']; from acidctl.base.imports import import_path; "
        "print(import_path()[0])"
    )
    done = subprocess.run([sys.executable, "-P", "-c", asked], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == f"{tmp_path}/sent.zip\n"


def test_a_directory_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    monkeypatch.setattr(sys, "path", ["", "/x.zip"])
    imports.forget_current_directory()
    assert sys.path == ["/x.zip"]


@pytest.mark.slow
@pytest.mark.spark
def test_workers_of_spark_import_nothing_from_the_current_directory(trap: Path, table: Path) -> None:
    line = ("compact", "--major", "--engine", "spark", "--master", "local[1]", "--assume-committed=0s")
    assert run(trap, "-m", "acidctl", *line, table) == ""
    assert (table / "base_0000003").is_dir()
    assert run(trap, "-m", "acidctl", "validate", "--deep", "--engine", "spark", table) == ""
