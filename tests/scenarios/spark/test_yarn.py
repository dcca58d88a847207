"""YARN 3.4 runs the executors: queues, dynamic allocation, a Python that comes with the job, a lost executor."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import tarfile
import venv
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from support.served import served
from support.servers.yarn_server import SMALL, YarnServer
from support.spark.processes import wait_until
from support.tables import read_rows

ETL = ("--conf", "spark.yarn.queue=etl")

pytestmark = [pytest.mark.spark, pytest.mark.server]

Run = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture(scope="module")
def yarn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[YarnServer]:
    with served(lambda: YarnServer(tmp_path_factory.mktemp("yarn"))) as server:
        yield server


@pytest.fixture
def run(yarn: YarnServer, child_environ: dict[str, str]) -> Run:
    """``run("compact", ..., conf=[...])``: acidctl with ``--master yarn``, in a process of its own."""

    def start(*arguments: object, conf: Sequence[str] = ()) -> subprocess.Popen[str]:
        settings = [part for item in (*SMALL, *conf) for part in ("--conf", item)]
        command = [sys.executable, "-m", "acidctl", *map(str, arguments), "--master", "yarn", *settings]
        environ = child_environ | {"HADOOP_CONF_DIR": str(yarn.conf)}
        return subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    return start


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=300)
    return process.returncode, out, err


def partitions(folder: Path, table: Path, count: int) -> Path:
    """A table of so many partitions, each a copy of `table`."""
    for number in range(count):
        shutil.copytree(table, folder / "t" / f"day={number}")
    return folder / "t"


def test_many_partitions_in_a_queue_by_executors_that_come_and_go(
    run: Run, yarn: YarnServer, crud: Path, tmp_path: Path
) -> None:
    table = partitions(tmp_path, crud, 200)
    rows = read_rows(crud)
    dynamic = ("enabled=true", "shuffleTracking.enabled=true", "maxExecutors=3", "minExecutors=0")
    conf = [f"spark.dynamicAllocation.{one}" for one in dynamic]
    options = ("--conf", "spark.yarn.queue=etl", "--conf", "spark.app.name=nightly", "-o", "jsonl")
    status, out, err = ended(run("compact", "--major", "--assume-committed=0s", table, *options, conf=conf))
    assert (status, "error" in err) == (0, False), err
    done = [json.loads(line) for line in out.splitlines()]
    assert len([one for one in done if one.get("result") == "compacted"]) == 200
    for number in (0, 57, 199):
        assert read_rows(table / f"day={number}") == rows
        assert list((table / f"day={number}").glob("base_*/bucket_*"))
    assert ["nightly", "root.etl", "SUCCEEDED"] in yarn.applications()


def test_an_executor_that_is_killed_takes_no_compaction_along(
    run: Run, yarn: YarnServer, crud: Path, tmp_path: Path
) -> None:
    table = partitions(tmp_path, crud, 60)
    rows = read_rows(crud)
    process = run(
        "compact", "--major", "--assume-committed=0s", table, "-o", "jsonl", conf=["spark.executor.instances=2"]
    )
    assert wait_until(lambda: list(table.glob("*/_tmp_*/_attempts/*")), 200)
    os.kill(yarn.processes("--executor-id ")[0], signal.SIGKILL)
    status, out, err = ended(process)
    assert status == 0, err
    assert "Lost executor" in err
    assert len([line for line in out.splitlines() if json.loads(line).get("result") == "compacted"]) == 60
    for number in range(60):
        assert read_rows(table / f"day={number}") == rows
        assert not list((table / f"day={number}").glob("_tmp_*"))


PACKAGES = (
    ("pyarrow", "pyarrow"), ("numpy", "numpy"), ("google", "protobuf"), ("fsspec", "fsspec"), ("isal", "isal"),
)  # fmt: skip
"""Packages that tasks need: the folder and the distribution."""


def python_archive(folder: Path) -> Path:
    """An environment in which there are the packages that tasks need, and no acidctl."""
    here = Path(sysconfig.get_path("purelib"))
    packages = folder / "packages"
    packages.mkdir()
    for top, distribution in PACKAGES:
        (packages / top).symlink_to(here / top)
        for metadata in here.glob(f"{distribution}-*.dist-info"):
            (packages / metadata.name).symlink_to(metadata)
    for name in ("tenacity", "pyarrow.libs", "numpy.libs"):
        if (here / name).exists():
            (packages / name).symlink_to(here / name)
    venv.create(folder / "env", symlinks=True)
    (site,) = (folder / "env").glob("lib/python3*/site-packages")
    (site / "packages.pth").write_text(f"{packages}\n")
    with tarfile.open(folder / "env.tar.gz", "w:gz") as archive:
        archive.add(folder / "env", ".")
    return folder / "env.tar.gz"


def test_a_python_that_comes_with_the_job_is_enough(run: Run, crud: Path, tmp_path: Path) -> None:
    rows = read_rows(crud)
    conf = [f"spark.archives={python_archive(tmp_path)}#env", "spark.pyspark.python=./env/bin/python"]
    status, _, err = ended(run("compact", "--major", "--assume-committed=0s", crud, conf=conf))
    assert status == 0, err
    assert list(crud.glob("base_*"))
    assert read_rows(crud) == rows


def test_a_compaction_says_what_is_missing_on_the_nodes(run: Run, crud: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "bare", symlinks=True)
    bare = tmp_path / "bare/bin/python"
    line = ("compact", "--major", "--assume-committed=0s", crud)
    status, _, err = ended(run(*line, conf=[f"spark.pyspark.python={bare}"]))
    assert status == 8, err
    assert f"{bare} -m pip install " in err  # the first package that the failing task lacks
    assert not list(crud.glob("base_*"))


def test_validation_finds_on_a_cluster_what_it_finds_here(run: Run, crud: Path, tmp_path: Path) -> None:
    table = partitions(tmp_path, crud, 12)
    for number in (3, 7):
        (file,) = (table / f"day={number}").glob("delta_0000001*/bucket_*")
        file.write_bytes(file.read_bytes()[:-40])
    # Nothing but what was sent can be acidctl there.
    conf = [f"spark.archives={python_archive(tmp_path)}#env", "spark.pyspark.python=./env/bin/python"]
    found = [
        ended(process)
        for process in (
            run(
                "validate",
                "--deep",
                "--engine",
                "spark",
                "--conf",
                "spark.yarn.queue=etl",
                table,
                "-o",
                "jsonl",
                conf=conf,
            ),
            subprocess.Popen(
                [sys.executable, "-m", "acidctl", "validate", "--deep", str(table), "-o", "jsonl"],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            ),
        )
    ]
    assert found[0][0] == found[1][0] != 0
    assert found[0][1] == found[1][1]


def test_a_queue_that_is_not_there_is_told(run: Run, crud: Path) -> None:
    before = sorted(path.name for path in crud.iterdir())
    status, _, err = ended(
        run("compact", "--major", "--assume-committed=0s", crud, "--conf", "spark.yarn.queue=nowhere")
    )
    assert status == 2, err
    assert "YARN knows no queue nowhere" in err
    assert sorted(path.name for path in crud.iterdir()) == before
