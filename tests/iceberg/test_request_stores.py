"""Copies in every store: their directories, tables of catalogs that lie there, and two runs at once."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Barrier, BrokenBarrierError
from typing import Any

import pytest
from pyiceberg.catalog import load_catalog
from support.files.acid_files import delete, insert, write_acid
from support.memory_store import MemoryFileSystem
from support.migrating import COMMITTED
from support.stores import Store

from acidctl.base.errors import AcidctlError, RefusedError, UsageProblem
from acidctl.iceberg.catalogs.open_target import open_target
from acidctl.iceberg.private_api import DirectoryCatalog
from acidctl.outcome import Result
from acidctl.storage.local.filesystem import LocalFileSystem
from acidctl.storage.port import join
from acidctl.verbs.events import Events
from acidctl.verbs.iceberg.migrate import migrate
from acidctl.verbs.iceberg.options import Migrated, MigrateOptions
from acidctl.verbs.selection import Selection

Options = Mapping[str, str]


@pytest.fixture
def options(request: pytest.FixtureRequest, store: Store) -> Options:
    """Return the options of the store."""
    if store.kind == "objects":
        return {"objects": "true"}
    return request.getfixturevalue("s3_options") if store.kind == "s3" else {}


@pytest.fixture
def url(store: Store) -> str:
    return store.fs.display(join(store.root, "copy"))


def copy(table: Path, to: str, storage: Options, **options: Any) -> Migrated:
    selection = Selection((str(table),), resolver=COMMITTED, storage=storage)
    return list(migrate(selection, MigrateOptions(to=to, **options), Events()))[-1]


def rows(to: str, storage: Options, settings: Mapping[str, str] | None = None) -> list[int]:
    found = open_target(to, settings or {}, None, storage).find()
    return sorted(found.table.scan().to_arrow()["a"].to_pylist()) if found else []


def made(tmp_path: Path) -> Path:
    table = tmp_path / "source"
    write_acid(table / "delta_0000001_0000001_0000" / "bucket_00000", insert(1, 0, (1, "a")), insert(1, 1, (2, "b")))
    return table


def changed(table: Path) -> None:
    write_acid(table / "delta_0000002_0000002_0000" / "bucket_00000", insert(2, 0, (3, "c")))
    write_acid(table / "delete_delta_0000002_0000002_0000" / "bucket_00000", delete(1, 0, 2))


def test_a_directory_follows_its_table(tmp_path: Path, url: str, options: Options) -> None:
    table = made(tmp_path)
    assert (copy(table, url, options).rows, rows(url, options)) == (2, [1, 2])
    changed(table)
    assert copy(table, url, options, catch_up=True).result is Result.WRITTEN
    assert rows(url, options) == [2, 3]
    assert copy(table, url, options, catch_up=True).result is Result.NOTHING_TO_DO


def test_a_table_of_a_catalog_follows_its_table(tmp_path: Path, url: str, options: Options) -> None:
    warehouse = url.replace("s3://", "s3a://") if "://" in url else f"file://{url}"
    settings = {"type": "sql", "uri": f"sqlite:///{tmp_path / 'catalog.db'}", "warehouse": warehouse}
    load_catalog("prod", **settings).create_namespace("db")
    table, to, given = made(tmp_path), "iceberg:prod/db.t", {"catalog_option": tuple(settings.items())}
    copy(table, to, options, **given)
    changed(table)
    copy(table, to, options, catch_up=True, **given)
    assert rows(to, options, settings) == [2, 3]
    found = open_target(to, settings, None, options).find()
    assert found
    assert all(url.startswith(f"{warehouse}/") for url in found.files_of_all_snapshots())


@pytest.mark.parametrize("is_first", [True, False])
def test_of_two_runs_at_once_one_commits(
    tmp_path: Path, url: str, options: Options, monkeypatch: pytest.MonkeyPatch, is_first: bool
) -> None:
    table = made(tmp_path)
    if not is_first:
        copy(table, url, options)
        changed(table)
    real, both = DirectoryCatalog._write, Barrier(2)

    def together(self: DirectoryCatalog, version: int, metadata: Any) -> None:
        with suppress(BrokenBarrierError):
            both.wait(20)
        both.abort()
        real(self, version, metadata)

    monkeypatch.setattr(DirectoryCatalog, "_write", together)

    def one(_: int) -> Result | AcidctlError:
        try:
            return copy(table, url, options, catch_up=not is_first).result
        except AcidctlError as error:
            return error

    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(one, range(2)))
    assert sorted(type(one).__name__ for one in done) == ["ConflictError", "Result"], done
    assert rows(url, options) == ([1, 2] if is_first else [2, 3])
    if is_first:
        changed(table)
    copy(table, url, options, catch_up=True)
    assert rows(url, options) == [2, 3]


def test_a_store_where_nothing_holds_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("can_rename", "can_lock"):
        monkeypatch.setattr(MemoryFileSystem, name, property(lambda _: False, lambda *_: None), raising=False)
    with pytest.raises(RefusedError, match="two commits at once"):
        copy(made(tmp_path), "memory://refused/copy", {})


def test_a_kill_while_metadata_is_written_leaves_a_table_that_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, to = made(tmp_path), str(tmp_path / "copy")
    copy(table, to, {})
    changed(table)
    real = DirectoryCatalog._write

    def half(_: LocalFileSystem, path: str, data: bytes) -> None:
        Path(path).write_bytes(data[: len(data) // 2])
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:

        def killed(*given: Any) -> None:
            patch.setattr(LocalFileSystem, "write_bytes", half)
            patch.setattr(LocalFileSystem, "create_exclusive", half)
            real(*given)

        patch.setattr(DirectoryCatalog, "_write", killed)
        with pytest.raises(KeyboardInterrupt):
            copy(table, to, {}, catch_up=True)
    assert rows(to, {}) == [1, 2]
    copy(table, to, {}, catch_up=True)
    assert rows(to, {}) == [2, 3]


def test_settings_of_a_catalog_are_not_for_a_directory(tmp_path: Path) -> None:
    with pytest.raises(UsageProblem, match="--catalog-option is for catalogs"):
        copy(made(tmp_path), str(tmp_path / "copy"), {}, catalog_option=(("type", "sql"),))
