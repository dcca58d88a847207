"""Killed at a storage call on HDFS 3.4, over WebHDFS and RPC: rows are what they were, and the next run finishes.

A file that is being written by then stays open, without an end, as NameNodes have it. All points, not some:

    ACIDCTL_CRASH_STEP=1 python -m pytest tests/scenarios/crashes/test_hdfs.py
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from support.cleaning import apply_plan
from support.compacting import compact_location
from support.files.acid_files import B0, write_acid
from support.servers.hdfs_server import HdfsServer
from support.tables import json_rows, without_log
from support.trouble.crash import HdfsDeath, a_dead_owner, each_death  # noqa: F401

from acidctl.acid.listing import TableType
from acidctl.base.errors import NotFoundError
from acidctl.cleaning.apply import How
from acidctl.cleaning.plan import plan_cleaning
from acidctl.cleaning.retention import AT_ONCE
from acidctl.cleaning.trash import TRASH, restore, trash_runs
from acidctl.compaction.output_settings import Writing
from acidctl.compaction.request import CompactionRequest, Mode
from acidctl.location.change.lock import Locking
from acidctl.location.change.publication import half_published
from acidctl.location.snapshot import take_snapshot
from acidctl.rows.scan.scan import Scan
from acidctl.storage.port import join, parent_of
from acidctl.storage.registry import open_location

pytestmark = [pytest.mark.server, pytest.mark.timeout(900)]

STEP = int(os.environ.get("ACIDCTL_CRASH_STEP", "0"))
"""Of so many points one is tried; without it, some of each work."""


WAYS = ("webhdfs", "hdfs")


def by(*ways: str) -> pytest.MarkDecorator:
    """By these ways, where not all points are tried; each start and end of a file takes its time."""
    return pytest.mark.parametrize("place", WAYS if STEP else ways, indirect=True)


@pytest.fixture
def place(request: pytest.FixtureRequest, hdfs3: HdfsServer) -> str:
    """A folder, by either way."""
    if request.param == "hdfs":
        pytest.importorskip("hdfs_native", reason="hdfs-native is not installed")
    authority = hdfs3.rpc_authority if request.param == "hdfs" else hdfs3.authority
    return f"{request.param}://root@{authority}/crashes-{uuid.uuid4().hex}"


@pytest.fixture
def local(tmp_path: Path) -> Path:
    """Two buckets, and deletes."""
    table = tmp_path / "t"
    for write_id in (1, 2):
        for bucket in (0, 1):
            path = table / f"delta_{write_id}_{write_id}_0" / f"bucket_{bucket:05d}"
            write_acid(path, *((0, write_id, B0 | bucket << 16, i, write_id, (i, i)) for i in range(3)))
    write_acid(
        table / "delete_delta_0000003_0000003_0000" / "bucket_00000", (2, 1, B0, 2, 3, None), (2, 2, B0, 1, 3, None)
    )
    return table


def put(local: Path, place: str, number: int = -1) -> str:
    """A copy of a local table; its URL."""
    url = f"{place}/t{number}"
    fs, root = open_location(url)
    for path in sorted(local.rglob("*")):
        if path.is_file():
            target = join(root, str(path.relative_to(local)))
            fs.make_dirs(parent_of(target))
            fs.write_bytes(target, path.read_bytes())
    return url


def remove(url: str) -> None:
    fs, root = open_location(url)
    fs.remove_tree(root)


def deaths(work: Callable[[str], None], local: Path, place: str, step: int) -> Iterator[tuple[int, str]]:
    """Both ways die at points of their own."""
    step = STEP or step
    first = 0 if place.startswith("webhdfs") else step // 2
    return each_death(work, partial(put, local, place), remove, HdfsDeath, first, step)


def rows_of(url: str) -> list[str]:
    return sorted(map(str, json_rows(Scan(take_snapshot(*open_location(url)), row_id=True))))


def names(url: str) -> set[str]:
    fs, root = open_location(url)
    return without_log(entry.path for entry in fs.list_dir(root).entries)


def compact(url: str, mode: Mode = Mode.MAJOR, task_bytes: int = 1 << 30) -> None:
    """What `acidctl compact --offline --no-lock` does."""
    request = CompactionRequest(
        mode,
        table_type=TableType.FULL_ACID,
        force=True,
        offline=True,
        writing=Writing(task_bytes=task_bytes),
        locking=Locking(hold=False),
    )
    compact_location(url, request)


def kill_compactions(mode: Mode, task_bytes: int, local: Path, place: str) -> None:
    rows = rows_of(put(local, place))
    points = 0
    for at, url in deaths(lambda url: compact(url, mode, task_bytes), local, place, 31):
        points += 1
        # Between the two renames of a minor compaction readers see wrong rows: that is why it asks for --offline.
        if not half_published(take_snapshot(*open_location(url))):
            assert rows_of(url) == rows, at
        compact(url, mode, task_bytes)
        assert rows_of(url) == rows, at
        assert ("base_0000003" if mode is Mode.MAJOR else "delta_0000001_0000003") in names(url), at
    assert points > 1


@by("webhdfs")
def test_a_major_compaction_in_segments_that_is_killed(local: Path, place: str) -> None:
    kill_compactions(Mode.MAJOR, 1, local, place)


@by("hdfs")
def test_a_minor_compaction_that_is_killed(local: Path, place: str) -> None:
    kill_compactions(Mode.MINOR, 1 << 30, local, place)


def clean(url: str) -> None:
    apply_plan(plan_cleaning(take_snapshot(*open_location(url)), AT_ONCE), How.TRASH)


def restore_all(url: str) -> None:
    fs, root = open_location(url)
    for run in reversed(trash_runs(fs, root)):
        if run.can_be_undone:
            restore(fs, run)


def compacted(local: Path) -> Path:
    compact(str(local))
    return local


@by("hdfs")
def test_a_cleaning_that_is_killed(local: Path, place: str) -> None:
    url = put(compacted(local), place)
    rows, before = rows_of(url), names(url)
    points = 0
    for at, copy in deaths(clean, local, place, 4):
        points += 1
        assert rows_of(copy) == rows, at
        clean(copy)
        assert names(copy) - {TRASH} == {"base_0000003"}, at
        assert rows_of(copy) == rows, at
        restore_all(copy)
        assert names(copy) - {TRASH} == before, at
        assert rows_of(copy) == rows, at
    assert points > 1


@by("webhdfs")
def test_a_restore_that_is_killed(local: Path, place: str) -> None:
    url = put(compacted(local), place)
    rows, before = rows_of(url), names(url)
    clean(str(local))
    points = 0
    for at, copy in deaths(restore_all, local, place, 4):
        points += 1
        assert rows_of(copy) == rows, at
        with suppress(NotFoundError):  # all came back, and the run's manifest had gone already
            restore_all(copy)
        assert names(copy) - {TRASH} == before, at
        assert rows_of(copy) == rows, at
    assert points > 1
