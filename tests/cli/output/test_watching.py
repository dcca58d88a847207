"""``--watch``: a listing again and again on one screen."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.command_line import Result
from support.metastore.fake_hive import FakeHive
from support.paths import PYTHONPATH
from support.tables import make

Acidctl = Callable[..., Result]
IN, OUT = "\x1b[?1049h", "\x1b[?1049l"
"""Of the alternate screen."""
_SECONDS = 60


class Watched:
    """A command on a terminal of its own.

    Attributes:
        sent: all that the terminal got so far.
    """

    def __init__(self, master: int, process: subprocess.Popen[bytes]) -> None:
        self._master, self._process = master, process
        self.sent = ""

    def until(self, text: str, times: int = 1) -> str:
        """Wait until it was sent so often."""
        end = time.monotonic() + _SECONDS
        while self.sent.count(text) < times:
            assert time.monotonic() < end, self.sent
            if select.select([self._master], [], [], 0.1)[0]:
                try:
                    self.sent += os.read(self._master, 1 << 16).decode()
                except OSError:
                    break
        return self.sent

    def end(self, number: int = signal.SIGINT) -> int:
        """Send a signal; the exit status."""
        self._process.send_signal(number)
        self.until("\0")
        return self._process.wait(_SECONDS)


@contextmanager
def watched(*line: str | Path, columns: int = 100, rows: int = 30) -> Iterator[Watched]:
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    environ = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES")}
    process = subprocess.Popen(
        [sys.executable, "-m", "acidctl", *map(str, line)], stdin=slave, stdout=slave, stderr=slave,
        env={**environ, "TERM": "xterm", "NO_COLOR": "1", "PYTHONPATH": PYTHONPATH}, start_new_session=True,
    )  # fmt: skip
    os.close(slave)
    try:
        yield Watched(master, process)
    finally:
        process.kill()
        process.wait()
        os.close(master)


def frames(sent: str) -> list[str]:
    """What each listing put on the screen."""
    return re.split(r"\d\d:\d\d:\d\d UTC  every ", sent)[1:]


def test_it_shows_what_changes_and_ctrl_c_ends_it_well(tmp_path: Path) -> None:
    table = make(tmp_path / "t", "delta_0000001_0000001_0000")
    with watched("ls", "--watch=1", table) as one:
        one.until("delta_0000001")
        make(table, "delta_0000002_0000002_0000")
        one.until("delta_0000002")
        assert one.end() == 0
        assert one.sent.index(IN) < one.sent.index("delta_0000001") < one.sent.index(OUT)
        assert "\x1b[2J" not in one.sent, "nothing is ever cleared: that would flicker"
        assert "1 s, Ctrl-C ends it  acidctl ls" in one.sent
        assert "listed" not in one.sent.partition(IN)[2], "no progress in the midst of it"


def test_a_later_error_stands_on_the_screen_and_goes_again(tmp_path: Path) -> None:
    table = make(tmp_path / "t", "delta_0000001_0000001_0000")
    with watched("ls", "--watch=1", table) as one:
        one.until("delta_0000001")
        table.rename(tmp_path / "gone")
        one.until("error: ")
        (tmp_path / "gone").rename(table)
        seen = len(frames(one.sent))
        one.until("UTC  every", seen + 2)
        assert "error: " not in frames(one.sent)[-2]
        assert one.end(signal.SIGTERM) == 0


def test_what_the_screen_has_no_room_for_is_counted(tmp_path: Path) -> None:
    table = make(tmp_path / "t", *(f"delta_{n:07d}_{n:07d}_0000" for n in range(1, 40)))
    with watched("ls", "-v", "--watch=1", table, rows=10, columns=90) as one:
        one.until("more lines: a larger window shows them")
        assert one.end() == 0
        assert max(map(len, re.sub(r"\x1b\[[?0-9;]*[a-zA-Z]", "", one.sent.partition(IN)[2]).split("\r\n"))) <= 180


def test_a_metastore_is_asked_anew_by_each_listing() -> None:
    with FakeHive(4) as fake:
        fake.table("db", "t", "file:/nowhere")
        with watched("compactions", "--watch=1", "--metastore", fake.address) as one:
            one.until("the metastore has no such compaction")
            fake.entry("db", "t", "initiated", enqueued=60)
            one.until("db.t")
            assert one.end() == 0


def test_where_the_first_listing_fails_there_is_nothing_to_watch(tmp_path: Path) -> None:
    with watched("status", "--watch", tmp_path / "missing") as one:
        one.until("\0")
        assert IN not in one.sent
        assert "error: " in one.sent


def test_it_is_for_terminals_and_tables_only(acidctl: Acidctl, tmp_path: Path) -> None:
    make(tmp_path / "t", "delta_1_1")
    for command in ("ls", "status"):
        found = acidctl(command, "--watch", tmp_path / "t")
        assert (found.status, found.out) == (2, "")
        assert "--watch needs a terminal" in found.err
        assert "leave out -o json" in acidctl(command, "--watch=5", "-o", "json", tmp_path / "t").err


@pytest.mark.parametrize(("value", "why"), [("0", "too often"), ("0.2s", "too often"), ("often", "not a duration")])
def test_seconds_are_one_at_least(acidctl: Acidctl, tmp_path: Path, value: str, why: str) -> None:
    found = acidctl("ls", f"--watch={value}", tmp_path)
    assert found.status == 2
    assert why in found.err
