"""What lies beside locations: unknown folders of a table, and the trashes of HDFS that may be looked into."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from support.memory_store import MemoryFileSystem

from acidctl.acid.listing import Listing
from acidctl.base.errors import AccessError, AcidctlError
from acidctl.erasure.beside import StrayFile, files_beside, hdfs_trash_files
from acidctl.erasure.holders import HolderKind
from acidctl.storage.port import FileSystemSpec


class Hdfs(MemoryFileSystem):
    """A store that is taken for HDFS, in which some directories are closed."""

    closed: frozenset[str] = frozenset()

    def list_dir(self, path: str) -> Listing:
        if path in self.closed:
            raise AccessError(f"cannot list {path}", "permission denied", "")
        return super().list_dir(path)

    def trash_root(self, path: str) -> str | None:
        return "/zone/.Trash/ann" if path.startswith("/zone/") else "/user/ann/.Trash"


@pytest.fixture
def store() -> Iterator[Hdfs]:
    fs = Hdfs(FileSystemSpec("webhdfs"))
    yield fs
    for top in ("/user", "/w", "/zone"):
        if fs.exists(top):
            fs.remove_tree(top)


def put(fs: Hdfs, *paths: str) -> None:
    for path in paths:
        fs.make_dirs(path.rpartition("/")[0])
        fs.write_bytes(path, b"x")


def paths(found: Iterator[StrayFile]) -> set[str]:
    return {one.file.path for one in found}


def test_trashes_of_all_users_and_of_a_zone(store: Hdfs) -> None:
    wanted = {
        "/user/ann/.Trash/Current/w/t/delta_1_1/bucket_00000",
        "/user/bob/.Trash/260101000000/w/t/day=1/delta_1_1/bucket_00000",
        "/user/bob/.Trash/260101000000/w/t1764100000000/base_5/bucket_00000",
    }
    put(store, *wanted, "/user/ann/.Trash/Current/w/t2/x", "/user/ann/.Trash/Current/w/t17/x", "/user/ann/data/w/t/x")
    told: dict[str, AcidctlError] = {}
    found = list(hdfs_trash_files(store, ["/w/t"], told.__setitem__))
    assert paths(iter(found)) == wanted
    assert {one.file.holder.kind for one in found} == {HolderKind.HDFS_TRASH}
    assert {one.partition for one in found} == {(), (("day", "1"),)}
    assert not told
    put(store, "/zone/.Trash/bob/Current/zone/t/delta_1_1/bucket_00000")
    assert len(paths(hdfs_trash_files(store, ["/zone/t"], told.__setitem__))) == 1


def test_a_closed_trash_is_told(store: Hdfs) -> None:
    put(store, "/user/ann/.Trash/Current/w/t/x", "/user/bob/.Trash/Current/w/t/x")
    store.closed = frozenset({"/user/bob/.Trash"})
    told: dict[str, AcidctlError] = {}
    assert len(list(hdfs_trash_files(store, ["/w/t"], told.__setitem__))) == 1
    assert set(told) == {"/user/bob/.Trash"}


def test_other_stores_have_no_such_trash(store: Hdfs) -> None:
    put(store, "/user/ann/.Trash/Current/w/t/x")
    store.spec = replace(store.spec, protocol="memory")
    assert not list(hdfs_trash_files(store, ["/w/t"], lambda *_: None))


def test_files_beside_the_locations_of_a_table(store: Hdfs) -> None:
    put(store, "/w/t/day=1/h=2/delta_1_1/bucket_00000", "/w/t/day=1/.hive-staging/x", "/w/t/README", "/w/t/day=2/h=7/x")
    put(store, "/w/t2/x")
    store.make_dirs("/w/t/_tmp/delta_1_1")
    store.write_bytes("/w/t/_tmp/delta_1_1/_orc_acid_version", b"2")
    found = list(files_beside(store, "/w/t", {"/w/t/day=1/h=2"}, lambda *_: None))
    kinds = {one.file.path: one.file.holder.kind.value for one in found}
    assert kinds == {"/w/t/day=1/.hive-staging/x": "staging", "/w/t/README": "other", "/w/t/day=2/h=7/x": "other"}
    partitions = {one.file.path: dict(one.partition) for one in found}
    assert partitions["/w/t/day=2/h=7/x"] == {"day": "2", "h": "7"}
    # Of a table that is a location itself, only partitions lie beside it.
    assert paths(files_beside(store, "/w/t", {"/w/t"}, lambda *_: None)) == {
        "/w/t/day=1/h=2/delta_1_1/bucket_00000", "/w/t/day=1/.hive-staging/x", "/w/t/day=2/h=7/x",
    }  # fmt: skip
