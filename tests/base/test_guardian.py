"""A parent that waits: it ends as its child ends, passes on what it is told, and returns only after a crash."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.paths import PYTHONPATH

from acidctl.base import guardian

ABOVE = """
import os, signal, sys, time
from acidctl.base import guardian
from acidctl.base.guardian import NOTES, watched
guardian._LOOK_SECONDS, guardian.SILENT_SECONDS = 0.05, 0.2
if watched(ends_hanging=True):
    print(NOTES.error, flush=True)
    sys.exit(4)
"""
CHILD = f"{ABOVE}print(os.getpid(), flush=True)\n"


def started(code: str) -> subprocess.Popen[str]:
    """A process that runs it, in a session of its own."""
    command = [sys.executable, "-c", code]
    environ = {**os.environ, "PYTHONPATH": PYTHONPATH}
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environ, start_new_session=True)


def state_of(pid: int) -> str:
    """``R``, ``S``, ``T``...; empty for a process that has ended."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return ""
    return "" if state == "Z" else state


def becomes(pid: int, *states: str) -> bool:
    """Whether a process comes into one of these states within some seconds."""
    for _ in range(200):
        if state_of(pid) in states:
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize(
    ("code", "status", "said"),
    [
        ("sys.exit(17)", 17, ""),
        ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL, ""),
        ("os.abort()", 4, "the command crashed: its process was ended by SIGABRT"),
        (
            "with NOTES.reading('/t/a'): pass\nos.kill(os.getpid(), signal.SIGSEGV)",
            4,
            "the command crashed: its process was ended by SIGSEGV; the last file that it read is /t/a",
        ),
        (
            "with NOTES.reading('/t/a'): os.kill(os.getpid(), signal.SIGBUS)",
            4,
            "/t/a cannot be read: the process that read it was ended by SIGBUS",
        ),
        (
            "with NOTES.reading('/t/a'): time.sleep(60)",
            4,
            "/t/a cannot be read: the process that read it did not answer for 0.2 seconds",
        ),
        ("time.sleep(0.6)", 0, ""),  # nothing is read: it may take its time
    ],
)
def test_the_parent_ends_as_its_child_and_goes_on_after_a_crash(code: str, status: int, said: str) -> None:
    with started(f"{ABOVE}{code}") as process:
        assert process.stdout
        assert process.stdout.read().strip() == said
    assert process.returncode == status


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_the_parent_reaches_the_child_once(number: signal.Signals) -> None:
    code = f"""
{CHILD}
got = []
signal.signal({int(number)}, lambda number, _: got.append(number))
print("ready", flush=True)
while not got:
    time.sleep(0.01)
time.sleep(0.2)
print(got, flush=True)
"""
    with started(code) as process:
        assert process.stdout
        assert [process.stdout.readline() for _ in range(2)][1] == "ready\n"
        process.send_signal(number)
        assert process.stdout.readline() == f"[{int(number)}]\n"
    assert process.returncode == 0


def test_a_child_ends_with_its_parent_whatever_it_does() -> None:
    with started(f"{CHILD}signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])\ntime.sleep(60)") as process:
        assert process.stdout
        child = int(process.stdout.readline())
        process.kill()
    assert becomes(child, "")


def test_both_stop_and_both_go_on() -> None:
    """`setsid` makes an orphan of the group, whose processes the kernel does not stop by SIGTSTP: so a shell waits."""
    shell = f"import subprocess, sys; sys.exit(subprocess.call([sys.executable, '-c', {CHILD + 'time.sleep(1)'!r}]"
    with started(f"{shell}, process_group=0))") as process:
        assert process.stdout
        child = int(process.stdout.readline())
        parent = int(Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[1])
        os.kill(parent, signal.SIGTSTP)
        assert becomes(parent, "T")
        assert becomes(child, "T")
        os.kill(parent, signal.SIGCONT)
        assert becomes(child, "S", "R", "")
    assert process.returncode == 0


def test_without_a_process_to_spare_the_command_runs_unwatched(monkeypatch: pytest.MonkeyPatch) -> None:
    def full() -> int:
        raise BlockingIOError

    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    monkeypatch.setattr(os, "fork", full)
    assert not guardian.watched()
    assert guardian.NOTES.shared is None
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == mask
