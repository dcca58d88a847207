"""Locations of a store behind a network: listed ahead, and left at once when the caller stops."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator

import fsspec
import pytest

from acidctl.acid.listing import Listing
from acidctl.location import find as module
from acidctl.location.find import find
from acidctl.location.snapshot import DirectoryListing, list_location
from acidctl.location.snapshot_resolver import SnapshotResolver
from acidctl.storage.port import FileSystem

LOCATIONS = 30


class Gate:
    """Lets the listings of the locations through when a test says so."""

    def __init__(self, *, first_passes: bool) -> None:
        self.open, self.begun = threading.Event(), threading.Event()
        self._first_passes = first_passes

    def list(self, fs: FileSystem, path: str, top: Listing | None = None) -> DirectoryListing:
        if not (self._first_passes and path.endswith("/t00")):
            self.begun.set()
            assert self.open.wait(30)
        return list_location(fs, path, top)


@pytest.fixture
def store(request: pytest.FixtureRequest) -> Iterator[str]:
    """Give a store in memory with some locations."""
    name = f"/{request.node.name}"
    memory = fsspec.filesystem("memory")
    for number in range(LOCATIONS):
        memory.pipe(f"{name}/t{number:02d}/delta_0000001_0000001_0000/bucket_00000", b"x")
    yield f"memory://{name}"
    memory.rm(name, recursive=True)


def test_an_interrupt_during_a_listing_ends_the_search_at_once(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate(first_passes=False)
    monkeypatch.setattr(module, "list_location", gate.list)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def interrupt() -> None:
        gate.begun.wait(30)
        time.sleep(0.3)  # for the main thread to wait, too
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.3)
        gate.open.set()

    helper = threading.Thread(target=interrupt)
    helper.start()
    found: list[str] = []
    try:
        with pytest.raises(KeyboardInterrupt):
            found.extend(location.shown for location in find([store], {}, SnapshotResolver()))
        assert not gate.open.is_set()
    finally:
        helper.join()
        signal.signal(signal.SIGINT, before)
    assert found == []


def test_a_location_comes_as_soon_as_it_is_listed_and_an_end_waits_for_none(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(first_passes=True)
    monkeypatch.setattr(module, "list_location", gate.list)
    late = threading.Timer(5, gate.open.set)
    late.start()
    try:
        places = find([store], {}, SnapshotResolver())
        assert next(places).shown.endswith("/t00")
        places.close()  # type: ignore[attr-defined]
        assert not gate.open.is_set()
    finally:
        late.cancel()
        gate.open.set()
