"""The small files that a publication depends on are read again before it happens, wherever it happens."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
from support.compacting import plan_compaction
from support.made.objects import names, table_of_buckets, upload
from support.memory_store import MemoryFileSystem
from support.tables import read_rows, snapshot_of
from support.trouble.locks import locked

from acidctl.acid.compaction_kind import CompactionKind
from acidctl.acid.names import METADATA_ACID, ORC_ACID_VERSION
from acidctl.acid.writeids import ValidWriteIds
from acidctl.base.errors import StorageError
from acidctl.compaction.run import Compacted, compact
from acidctl.location.change.own_files import OWNER
from acidctl.location.change.publication import INTENT, half_published
from acidctl.location.snapshot import Snapshot, take_snapshot
from acidctl.storage.port import base_name, join
from acidctl.storage.registry import open_location

MAJOR, MINOR = CompactionKind
LIES = {"short": lambda data: data[:-1], "nothing": lambda _: b"", "other": lambda data: b"?" + data[1:]}


@pytest.fixture(params=["renames", "copies"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Snapshot:
    """Two buckets, an update and a delete, in memory."""
    url = upload(table_of_buckets(tmp_path / "t", 2))
    fs, path = open_location(url, {"objects": "true"} if request.param == "copies" else None)
    return take_snapshot(fs, path, ValidWriteIds().for_compactor())


def run(snapshot: Snapshot, kind: CompactionKind) -> Compacted:
    plan = plan_compaction(snapshot, kind, f"_tmp_{uuid.uuid4()}")
    with locked(snapshot.fs, snapshot.path):
        (outcome,) = compact([plan], offline=True)
    return outcome


def lie(patch: pytest.MonkeyPatch, call: str, name: str, how: str) -> list[str]:
    """From now on files of a name are kept wrongly, and the answer is that all is well; the list fills with them."""
    real, told = getattr(MemoryFileSystem, call), []

    def untrue(self: MemoryFileSystem, path: str, more: object) -> None:
        real(self, path, more)
        target = str(more) if call == "copy" else path
        if base_name(target) == name:
            file = self._fs.store[target]
            data = LIES[how](file.getvalue())
            file.seek(0)
            file.truncate()
            file.write(data)
            told.append(target)

    patch.setattr(MemoryFileSystem, call, untrue)
    return told


@pytest.mark.sampled(7)
@pytest.mark.parametrize("how", LIES)
@pytest.mark.parametrize(
    ("kind", "name"),
    [(MAJOR, METADATA_ACID), (MAJOR, ORC_ACID_VERSION), (MAJOR, OWNER), (MINOR, ORC_ACID_VERSION), (MINOR, INTENT)],
)
def test_nothing_appears_when_the_store_keeps_something_else(
    table: Snapshot, kind: CompactionKind, name: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = table.fs.display(table.path)
    before, rows = names(url), read_rows(url)
    told = lie(monkeypatch, "write_bytes", name, how)
    outcome = run(table, kind)
    monkeypatch.undo()
    assert told
    assert isinstance(outcome.error, StorageError)
    assert name in str(outcome.error)
    assert {one for one in names(url) if not one.startswith("_tmp_")} == before
    assert read_rows(url) == rows
    assert run(take_snapshot(table.fs, table.path, table.write_ids), kind).published
    assert read_rows(url) == rows


@pytest.mark.parametrize("name", ["bucket_00000", METADATA_ACID, ORC_ACID_VERSION])
def test_a_copy_with_other_bytes_is_taken_back(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    url = upload(table_of_buckets(tmp_path / "t", 1))
    fs, path = open_location(url, {"objects": "true"})
    rows = read_rows(url)
    told = lie(monkeypatch, "copy", name, "other")
    outcome = run(take_snapshot(fs, path, ValidWriteIds().for_compactor()), MAJOR)
    monkeypatch.undo()
    assert isinstance(outcome.error, StorageError)
    (target,) = told
    assert not fs.exists(target)
    assert read_rows(url) == rows
    shown = fs.exists(join(path, "base_0000003"))
    assert shown is (name != "bucket_00000")
    if shown:  # what has appeared is finished by the next run
        assert "`acidctl compact`" in outcome.error.hint
        assert half_published(take_snapshot(fs, path))
    assert half_published(snapshot_of(url)) or not shown
