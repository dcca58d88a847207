"""The lock of a location: one at a time, stale ones told and never taken without a word."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from support.cleaning import apply_plan
from support.tables import age, make, snapshot_of
from support.trouble.locks import locked

from acidctl.base.errors import ConflictError, NotFoundError, StorageError
from acidctl.cleaning.plan import plan_cleaning
from acidctl.cleaning.retention import AT_ONCE
from acidctl.location.change import own_files as owner_module
from acidctl.location.change.lock import LOCK, Locking, refuse_locked
from acidctl.location.change.own_files import Owner
from acidctl.storage.local.filesystem import LocalFileSystem
from acidctl.storage.options import StorageOptions
from acidctl.storage.registry import open_location

FS = LocalFileSystem()


def dead_owner() -> Owner:
    dead = subprocess.Popen(["true"])
    dead.wait()
    this = Owner.this()
    return Owner(this.host, dead.pid, 1, "etl", 0.0)


def put(table: Path, owner: Owner | bytes) -> None:
    (table / LOCK).write_bytes(owner if isinstance(owner, bytes) else owner.to_bytes())


def test_it_is_there_while_it_is_held(tmp_path: Path) -> None:
    with locked(FS, str(tmp_path)):
        owner = Owner.from_bytes((tmp_path / LOCK).read_bytes())
        assert owner
        assert owner.is_alive()
        refuse_locked(FS, str(tmp_path))  # our own
        with pytest.raises(ConflictError, match="is locked") as error, locked(FS, str(tmp_path)):
            raise AssertionError
        assert str(owner.pid) in error.value.why
    assert not list(tmp_path.iterdir())
    with pytest.raises(KeyboardInterrupt), locked(FS, str(tmp_path)):
        raise KeyboardInterrupt
    assert not list(tmp_path.iterdir())
    with pytest.raises(NotFoundError), locked(FS, str(tmp_path / "missing")):
        raise AssertionError
    assert not list(tmp_path.iterdir())


def test_that_of_a_process_that_has_ended_is_taken_over_with_a_word(tmp_path: Path) -> None:
    put(tmp_path, dead_owner())
    with pytest.raises(ConflictError, match="locked") as error:
        refuse_locked(FS, str(tmp_path))
    assert "has ended" in error.value.why
    assert "etl" in error.value.why
    said: list[str] = []
    with locked(FS, str(tmp_path), on_break=said.append):
        assert [path.name for path in tmp_path.iterdir()] == [LOCK]
    assert not list(tmp_path.iterdir())
    assert len(said) == 1
    assert "took over the lock of process" in said[0]
    assert "etl" in said[0]
    assert "which has ended" in said[0]
    with locked(FS, str(tmp_path), break_stale=True, on_break=said.append):
        pass
    assert len(said) == 1
    put(tmp_path, Owner("elsewhere", 1, 1, "etl", 1e300))
    with pytest.raises(ConflictError, match="nobody knows"), locked(FS, str(tmp_path)):
        raise AssertionError


def test_that_of_another_machine_may_be_broken_by_who_knows(tmp_path: Path) -> None:
    put(tmp_path, Owner("elsewhere", 1, 1, "hive", 0.0))
    with pytest.raises(ConflictError) as error, locked(FS, str(tmp_path)):
        raise AssertionError
    assert "only that machine can tell" in error.value.why
    with locked(FS, str(tmp_path), break_stale=True):
        pass
    assert not list(tmp_path.iterdir())


def test_that_of_a_living_process_is_never_broken(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        started = int(Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[19])
        owner = Owner(Owner.this().host, process.pid, started, "etl", time.time())
        put(tmp_path, owner)
        for breaking in (False, True):
            with pytest.raises(ConflictError, match="works there"), locked(FS, str(tmp_path), break_stale=breaking):
                raise AssertionError
        with pytest.raises(ConflictError, match="works there"):
            refuse_locked(FS, str(tmp_path))
        process.communicate(b"\n")


def test_a_torn_one_is_broken_only_when_it_is_old(tmp_path: Path) -> None:
    put(tmp_path, b'{"host"')
    with pytest.raises(ConflictError, match="torn"), locked(FS, str(tmp_path), break_stale=True):
        raise AssertionError
    age(tmp_path, 1)
    with locked(FS, str(tmp_path), break_stale=True):
        pass


@pytest.mark.parametrize(
    "content",
    [
        b"[" * 100_000,
        b'{"host": "x", "pid": 1e999, "started": 0, "user": "u", "since": 0}',
        b'{"host": "x", "pid": 99999999999999999999, "started": 0, "user": "u", "since": 0}',
        b'{"host": "x", "pid": -1, "started": 0, "user": "u", "since": 0}',
    ],
)
def test_one_that_nobody_wrote_is_a_torn_one(tmp_path: Path, content: bytes) -> None:
    put(tmp_path, content.replace(b'"x"', f'"{Owner.this().host}"'.encode()))
    with pytest.raises(ConflictError, match="torn"):
        refuse_locked(FS, str(tmp_path))


def test_one_that_took_our_place_is_left_alone(tmp_path: Path) -> None:
    other = Owner("elsewhere", 1, 1, "hive", 0.0)
    with locked(FS, str(tmp_path)):
        put(tmp_path, other)
    assert Owner.from_bytes((tmp_path / LOCK).read_bytes()) == other
    (tmp_path / LOCK).unlink()
    with locked(FS, str(tmp_path)):
        (tmp_path / LOCK).unlink()


def test_a_store_without_exclusive_creates_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def cannot(*_: object) -> None:
        raise StorageError("cannot create it exclusively", "sftp:// has no such create")

    monkeypatch.setattr(LocalFileSystem, "write_bytes", cannot)
    with pytest.raises(StorageError, match="cannot lock") as error, locked(FS, str(tmp_path)):
        raise AssertionError
    assert "--no-lock" in error.value.hint


def claim(table: Path, owner: Owner | bytes) -> Path:
    """What a run leaves that is killed while it removes the lock that is there."""
    path = table / f"{LOCK}-{hashlib.sha256((table / LOCK).read_bytes()).hexdigest()[:12]}"
    path.write_bytes(owner if isinstance(owner, bytes) else owner.to_bytes())
    return path


def test_a_claim_of_a_dead_run_hinders_nobody(tmp_path: Path) -> None:
    put(tmp_path, dead_owner())
    first = claim(tmp_path, dead_owner())
    dead = dead_owner()
    second = first.with_name(f"{first.name}-{hashlib.sha256(first.read_bytes()).hexdigest()[:12]}")
    second.write_bytes(dead.to_bytes())  # of one that was killed while it removed the claim
    with locked(FS, str(tmp_path), break_stale=True):
        assert [path.name for path in tmp_path.iterdir()] == [LOCK]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("owner", ["alive", "elsewhere", "torn"])
def test_a_claim_of_a_run_that_may_live_stays(tmp_path: Path, owner: str) -> None:
    put(tmp_path, dead_owner())
    parent = int(Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()[19])
    alive = Owner(Owner.this().host, os.getppid(), parent, "etl", 0.0)
    owners = {"alive": alive, "elsewhere": Owner("elsewhere", 1, 1, "hive", 0.0), "torn": b"{"}
    path = claim(tmp_path, owners[owner])
    with pytest.raises(ConflictError, match="is locked") as error, locked(FS, str(tmp_path), break_stale=True):
        raise AssertionError
    assert {found.name for found in tmp_path.iterdir()} == {LOCK, path.name}
    assert (str(path) in error.value.hint) is (owner != "alive")
    if owner == "torn":
        age(tmp_path, 1)
        with locked(FS, str(tmp_path), break_stale=True):
            pass
        assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("stale", ["", "lock", "claim"])
def test_of_many_one_has_it(tmp_path: Path, stale: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when all of them find the same stale lock, or claim on it, and were told to break it."""
    if stale:
        put(tmp_path, dead_owner())
    if stale == "claim":
        claim(tmp_path, dead_owner())
    inside = 0
    most = 0
    wins = 0
    start = threading.Barrier(8)

    def one() -> None:
        nonlocal inside, most, wins
        start.wait()
        try:
            with locked(FS, str(tmp_path), break_stale=bool(stale)):
                inside += 1
                most = max(most, inside)
                time.sleep(0.05)
                inside -= 1
                wins += 1
        except ConflictError:
            pass

    threads = [threading.Thread(target=one) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1
    assert wins >= 1
    assert not list(tmp_path.iterdir())


def test_only_the_lock_that_was_looked_at_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody else breaks the stale lock and takes its own, just before we would remove it."""
    put(tmp_path, dead_owner())
    other = Owner("elsewhere", 1, 1, "hive", 0.0)
    rename = LocalFileSystem.rename

    def late(self: LocalFileSystem, source: str, target: str) -> None:
        rename(self, source, target)
        if not target.endswith(LOCK):
            put(tmp_path, other)

    monkeypatch.setattr(LocalFileSystem, "rename", late)
    with pytest.raises(ConflictError, match="is locked"), locked(FS, str(tmp_path), break_stale=True):
        raise AssertionError
    assert [path.name for path in tmp_path.iterdir()] == [LOCK]
    assert Owner.from_bytes((tmp_path / LOCK).read_bytes()) == other


def test_a_plan_is_not_carried_out_under_a_foreign_lock(tmp_path: Path) -> None:
    make(tmp_path, "base_5", "base_3")
    plan = plan_cleaning(snapshot_of(tmp_path), AT_ONCE)
    put(tmp_path, Owner("elsewhere", 1, 1, "hive", 0.0))
    with pytest.raises(ConflictError, match="is locked"):
        apply_plan(plan)
    assert {path.name for path in tmp_path.iterdir()} == {"base_5", "base_3", LOCK}


def test_a_fault_at_its_removal_hinders_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was left for a person to break; now it names a process that has ended, and goes with the next run."""

    def broken(*_: object) -> None:
        raise StorageError("cannot remove it", "the connection broke")

    with monkeypatch.context() as patch:
        patch.setattr(LocalFileSystem, "remove_tree", broken)
        with locked(FS, str(tmp_path)):
            pass
    left = Owner.from_bytes((tmp_path / LOCK).read_bytes())
    assert left
    assert left.pid == Owner.this().pid
    with locked(FS, str(tmp_path)):  # a service lives on, and works there again
        pass
    assert not list(tmp_path.iterdir())
    put(tmp_path, dead_owner())
    with locked(FS, str(tmp_path)):
        pass
    assert not list(tmp_path.iterdir())


def test_it_is_waited_for(tmp_path: Path) -> None:
    said: list[str] = []
    entered = threading.Event()

    def hold() -> None:
        with locked(FS, str(tmp_path)):
            entered.set()
            time.sleep(0.7)

    thread = threading.Thread(target=hold)
    thread.start()
    entered.wait()
    with pytest.raises(ConflictError, match="is locked"), Locking(True).at(FS, str(tmp_path)):
        raise AssertionError
    with Locking(True, wait=30, tell=said.append).at(FS, str(tmp_path)):
        assert (tmp_path / LOCK).exists()
    thread.join()
    assert len(said) == 1
    assert said[0].endswith("waiting")
    assert not list(tmp_path.iterdir())


def test_who_takes_none_still_minds_that_of_others(tmp_path: Path) -> None:
    with Locking(False).at(FS, str(tmp_path)):
        assert not list(tmp_path.iterdir())
    with Locking(False).at(FS, str(tmp_path), always=True):
        assert (tmp_path / LOCK).exists()
    put(tmp_path, Owner("elsewhere", 1, 1, "hive", 0.0))
    with pytest.raises(ConflictError, match="is locked"), Locking(False).at(FS, str(tmp_path)):
        raise AssertionError


def test_where_no_lock_can_be_held_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fs, said = LocalFileSystem(), list[str]()
    fs.can_lock = False
    with Locking(tell=said.append).at(fs, str(tmp_path)):
        assert not list(tmp_path.iterdir())
    assert "is not locked, because its store cannot" in said[0]
    with Locking(True).at(fs, str(tmp_path)):
        assert (tmp_path / LOCK).exists(), "it was asked for: the store is asked, too"


@pytest.mark.parametrize("kind", ["directory", "huge", "empty"])
def test_what_others_planted_in_its_place(tmp_path: Path, kind: str) -> None:
    lock = tmp_path / LOCK
    if kind == "directory":
        (lock / "x").mkdir(parents=True)
    else:
        lock.write_bytes(b"[" * (50 << 20) if kind == "huge" else b"")
    for breaking in (False, True):
        with pytest.raises(ConflictError, match="is locked"), Locking(True, break_stale=breaking).at(FS, str(tmp_path)):
            raise AssertionError
    assert lock.exists()


HERE = "machine/boot/pid:[1]"


@pytest.mark.parametrize(
    ("where", "is_dead"),
    [
        (HERE, True),
        ("", True),
        ("machine/boot/pid:[2]", False),
        ("machine/other boot/pid:[2]", True),
        ("other machine/other boot/pid:[1]", False),
        ("/other boot/pid:[1]", False),
        ("machine", False),
    ],
)
def test_process_ids_of_another_container_say_nothing(
    where: str, is_dead: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Containers often have the name of their host; a machine that was started again has ended all that ran on it."""
    monkeypatch.setattr(owner_module, "_here", lambda: HERE)
    owner = replace(dead_owner(), where=where)
    assert Owner.from_bytes(owner.to_bytes()) == owner
    assert owner.is_dead() == is_dead
    assert not owner.is_alive()
    put(tmp_path, owner)
    if is_dead:
        with locked(FS, str(tmp_path)):
            return
    with pytest.raises(ConflictError, match="only the container that it is in can tell"), locked(FS, str(tmp_path)):
        raise AssertionError
    said: list[str] = []
    with locked(FS, str(tmp_path), break_stale=True, on_break=said.append):
        assert said[0].endswith("as --break-lock says")


def test_a_living_process_is_not_seen_from_a_container(tmp_path: Path) -> None:
    """Of the same name, with process ids of its own."""
    command = ["unshare", "-rpf", "--mount-proc", sys.executable, "-c", TRY_LOCK, str(tmp_path)]
    with locked(FS, str(tmp_path)):
        try:
            tried = subprocess.run(command, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            pytest.skip("there is no unshare")
        if "unshare" in tried.stderr or "mount" in tried.stderr:
            pytest.skip("this user may not make containers")
        assert "only the container" in tried.stderr
        refuse_locked(FS, str(tmp_path))


TRY_LOCK = """
import sys
from acidctl.location.change.lock import Locking
from acidctl.storage.local.filesystem import LocalFileSystem
with Locking(True).at(LocalFileSystem(), sys.argv[1]):
    pass
"""


def test_a_torn_one_from_a_time_to_come(tmp_path: Path) -> None:
    """The clock that it is from was wrong: it would be young for ever."""
    put(tmp_path, b"{")
    age(tmp_path, -100)
    with locked(FS, str(tmp_path), break_stale=True):
        pass


@pytest.mark.parametrize("kind", ["directory", "pipe", "link"])
@pytest.mark.parametrize("hold", [True, False])
def test_what_is_no_file_is_moved_away_by_hand(kind: str, hold: bool, tmp_path: Path) -> None:
    """And not waited for."""
    fs, path = open_location(str(tmp_path), StorageOptions(own_links=True))
    lock = tmp_path / LOCK
    if kind == "link" and os.geteuid() != 0:
        pytest.skip("only root can make links of somebody else")
    if kind == "link":
        lock.symlink_to("/etc/hostname")
        os.lchown(lock, 65534, 65534)
    else:
        (lock.mkdir if kind == "directory" else lambda: os.mkfifo(lock))()
    if kind == "directory" and not hold:
        return  # there is no lock
    with pytest.raises(ConflictError, match="is locked") as error, Locking(hold, break_stale=hold).at(fs, path):
        raise AssertionError
    assert f"find out who did, and move {lock} away" in error.value.hint


def test_one_that_stays_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The work is done; but the next run may be another machine's."""
    real, said = LocalFileSystem.remove_tree, list[str]()

    def cannot(self: LocalFileSystem, path: str) -> None:
        if path.endswith(LOCK):
            raise StorageError("cannot remove", "safe mode")
        real(self, path)

    with monkeypatch.context() as patch, Locking(True, tell=said.append).at(FS, str(tmp_path)):
        patch.setattr(LocalFileSystem, "remove_tree", cannot)
    assert "could not be removed" in said[0]
    assert "--break-lock" in said[0]
