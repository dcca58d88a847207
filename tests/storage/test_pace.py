"""Tests of :mod:`acidctl.storage.pace`."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from support.stores import Store, fill

from acidctl.base.errors import UsageProblem
from acidctl.storage import pace
from acidctl.storage.pace import Pace, pace_of
from acidctl.storage.port import FileSystem, FileSystemSpec
from acidctl.storage.registry import open_file_system
from acidctl.storage.remote import RemoteStore


class Clock:
    """A clock that sleeping advances, for the threads that share it."""

    def __init__(self) -> None:
        self.now, self.slept = 1000.0, list[float]()

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    clock = Clock()
    monkeypatch.setattr(pace, "time", clock)
    pace._pace.cache_clear()
    yield clock
    pace._pace.cache_clear()


def test_calls_of_all_threads_take_turns(clock: Clock) -> None:
    limits = Pace(calls=4)
    threads = [threading.Thread(target=limits.begin) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(clock.slept) == [0.25, 0.5, 0.75, 1.0]  # the first had none to wait for
    clock.now += 60
    limits.begin()
    assert len(clock.slept) == 4  # time that nobody used is not saved up


def test_bytes_take_their_time(clock: Clock) -> None:
    limits = Pace(size=100)
    limits.passed(300)
    limits.passed(100)
    assert (clock.slept, limits.turn()) == ([3.0], 4.0)


def test_without_limits_nothing_waits(clock: Clock) -> None:
    for _ in range(3):
        Pace().begin()
        Pace().passed(1 << 40)
    assert not clock.slept


@pytest.mark.parametrize(
    "option",
    [("calls_per_second", "0"), ("calls_per_second", "soon"), ("bytes_per_second", "x"), ("bytes_per_second", "0")],
)
def test_a_limit_is_a_number_above_0(option: tuple[str, str]) -> None:
    with pytest.raises(UsageProblem, match=f"not a limit: {option[0]}"):
        pace_of(FileSystemSpec("s3", (option,), "b"))


def test_every_store_keeps_to_the_limits(store: Store, clock: Clock) -> None:
    if not isinstance(store.fs, RemoteStore):
        pytest.skip("it is not behind a network")
    fill(store, "a", data=b"x" * 1000)
    fs, spec = limited(store, ("bytes_per_second", "16k"), ("calls_per_second", "128"))
    before = len(clock.slept)
    for _ in range(3):
        assert len(fs.read_bytes(f"{store.root}/a", 0, 512)) == 512
    assert clock.slept[before:]
    assert pace_of(spec).turn() >= 1536 / 16384
    fs.write_bytes(f"{store.root}/b", b"x" * 16384)
    assert pace_of(spec).turn() >= 1 + 1536 / 16384
    assert fs.spec == spec  # other processes keep to the limits, too


def test_every_request_is_a_call(store: Store, clock: Clock) -> None:
    if not isinstance(store.fs, RemoteStore):
        pytest.skip("it is not behind a network")
    fill(store, "a")
    fs, spec = limited(store, ("calls_per_second", "128"))
    for _ in range(3):
        fs.list_dir(store.root)
    assert pace_of(spec).turn() >= 3 / 128


def limited(store: Store, *limits: tuple[str, str]) -> tuple[FileSystem, FileSystemSpec]:
    """Return the file system of a store with limits, and its spec."""
    given = store.fs.spec
    spec = FileSystemSpec(given.protocol, tuple(sorted((*given.options, *limits))), given.authority)
    return open_file_system(spec), spec
