"""One line below all others tells how far the work is; nothing of it stays, and nothing of it is glued to a result."""

from __future__ import annotations

import io
import re
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.compacting import plan_compaction
from support.memory_store import MemoryFileSystem
from support.terminals import Terminals

from acidctl.acid.compaction_kind import CompactionKind
from acidctl.base.task_progress import done, telling
from acidctl.cli.output.progress import Bar, bar_text, listings
from acidctl.cli.output.terminal import VERBOSITY, LastLine
from acidctl.compaction import local_engine
from acidctl.compaction.kernel import run_task
from acidctl.compaction.local_engine import LocalEngine
from acidctl.compaction.tasks import BucketResult, Task
from acidctl.location.walk import list_entries, listening, walk_locations
from acidctl.verbs.compact import _Bytes

Acidctl = Callable[..., Any]
GIB = 1 << 30


@pytest.mark.parametrize(
    ("done", "total", "seconds", "columns", "is_bytes", "line"),
    [
        (0, 4, 0.5, 80, False, "at it [........................]  0 of 4"),
        (1, 4, 3, 80, False, "at it [######..................]  1 of 4, 0.3/s, 9 s left"),
        (GIB, 4 * GIB, 4000, 80, True,
         "at it [######..................]  1.0 of 4.0 GiB, 262.1 KiB/s, 3 h left"),
        (GIB, 4 * GIB, 10, 60, True, "at it [######..................]  1.0 of 4.0 GiB"),
        (GIB, 4 * GIB, 10, 30, True, "at it: 1.0 of 4.0 GiB"),
        (9, 4, 9, 80, False, "at it [########################]  4 of 4, 1.0/s, 0 s left"),
        (7, 0, 9, 80, False, "at it: 7, 0.8/s"), (7, None, 0.5, 80, True, "at it: 7 B"),
    ],
)  # fmt: skip
def test_line_shows_share_and_time_within_the_width(
    done: int, total: int | None, seconds: float, columns: int, is_bytes: bool, line: str
) -> None:
    assert bar_text("at it", done, total, seconds, columns, is_bytes=is_bytes) == line


class Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


def screen(raw: str) -> list[str]:
    """What a terminal shows in the end: of a line that begins anew, what was written last."""
    lines = []
    for line in raw.split("\n"):
        cells: list[str] = []
        place = 0
        for part in re.findall(r"\r|\x1b\[K|\x1b\[[0-9;]*m|[^\r\x1b]", line):
            if part == "\r":
                place = 0
            elif part == "\x1b[K":
                del cells[place:]
            elif len(part) == 1:
                cells[place : place + 1] = [part]
                place += 1
        lines.append("".join(cells))
    return lines


SCRIPT = """
import sys
from acidctl.cli.output import progress
from acidctl.cli.output.terminal import LAST_LINE as last
from acidctl.cli.output.console import note, out_stream, put_line
from acidctl.cli.output.streams import standard_streams
progress._AFTER_SECONDS = 0
with standard_streams(), progress.progress("at it", 4) as bar:
    last.draw()
    put_line("first")
    bar.advance()
    last.draw()
    note("second")
    last.draw()
    sys.stdout.write("th")
    sys.stdout.flush()
    last.draw()
    out_stream().write(b"ird\\n")
    last.draw()
    out_stream().flush()
    last.draw()
    sys.stderr.write("fourth: ")
    last.draw()
    sys.stderr.write("here\\nfif")
    last.draw()
    sys.stderr.write("th\\n")
    bar.advance()
    last.draw()
print("done")
"""


def test_lines_stand_above_the_bar_and_none_is_cut(terminal: Terminals) -> None:
    status, raw = terminal.execute(sys.executable, "-c", SCRIPT, columns=60)
    assert status == 0, raw
    assert screen(raw) == ["first", "note: second", "third", "fourth: here", "fifth", "done", ""]
    assert raw.count("at it [######..") >= 3
    assert "of 4third" not in raw
    assert "at it [############" in raw


def test_a_terminal_that_understands_lines_alone_gets_no_bar(terminal: Terminals) -> None:
    status, raw = terminal.execute(sys.executable, "-c", SCRIPT, columns=60, environ={"TERM": "dumb"})
    assert (status, "at it" in raw, "\x1b" in raw) == (0, False, False), raw
    assert screen(raw) == ["first", "note: second", "third", "fourth: here", "fifth", "done", ""]


def test_a_terminal_that_does_not_tell_its_width(terminal: Terminals) -> None:
    """It tells 0 columns; lines were broken as for 20."""
    status, raw = terminal.execute(sys.executable, "-c", SCRIPT, columns=0)
    assert status == 0, raw
    assert "at it [######........" in raw
    words = "a note that is as long as sixty columns and stays on one line"
    code = f"from acidctl.cli.output.console import note; note({words!r})"
    assert words in terminal.execute(sys.executable, "-c", code, columns=0)[1]


STRESS = """
import sys
from acidctl.cli.output import progress, terminal
from acidctl.compaction import local_engine
terminal._EVERY = 0.0001
progress._AFTER_SECONDS = 0
from acidctl.cli.main import main
main(sys.argv[1:])
"""


@pytest.mark.sampled
@pytest.mark.parametrize(
    "line",
    [
        ("ls",), ("ls", "-o", "json"), ("why",), ("history",), ("validate", "--deep", "-v"),
        ("compact", "--major", "--engine", "local", "--assume-committed=0s", "-n"), ("clean", "-n"),
    ],
    ids=lambda line: "-".join(line[:3]),
)  # fmt: skip
def test_bar_that_is_drawn_all_the_time_leaves_the_screen_as_it_was(
    terminal: Terminals, acidctl: Acidctl, tmp_path: Path, line: tuple[str, ...]
) -> None:
    """The screen is in the end as it were without."""
    for number in range(8):
        assert acidctl("demo", tmp_path / "w.db" / f"t{number}").status == 0
    command = [*line, tmp_path / "w.db"]
    status, raw = terminal.execute(sys.executable, "-c", STRESS, *command, columns=300)
    plain_status, plain = terminal.run(*command)
    assert status == plain_status
    assert timeless(raw) == timeless(plain)


PIPED = """
import sys, time
from acidctl.cli.output import progress
from acidctl.cli.output.terminal import LAST_LINE
from acidctl.cli.output.streams import standard_streams
progress._AFTER_SECONDS = 0
with standard_streams(), progress.progress("at it", 4):
    LAST_LINE.draw()
    for word in ("first", "second"):
        print(word, flush=True)
        time.sleep(0.3)
        LAST_LINE.draw()
"""


def test_what_a_pipe_carries_to_the_same_terminal_stands_on_lines_of_its_own(terminal: Terminals) -> None:
    """The reader of the pipe does not make room for the bar."""
    status, raw = terminal.execute("/bin/sh", "-c", '"$0" -c "$1" | cat', sys.executable, PIPED)
    assert (status, screen(raw)) == (0, ["first", "second", ""])
    assert "at it" in raw


def timeless(raw: str) -> list[str]:
    """The screen without times; ``in 1.2 s`` stands there only from a second on."""
    return [re.sub(r" in \d+\.\d s|\d+\.\d s|\d+ (s|min) ago", "", one) for one in screen(raw)]


def test_a_compaction_on_a_terminal(terminal: Terminals, acidctl: Acidctl, tmp_path: Path) -> None:
    for number in range(8):
        assert acidctl("demo", tmp_path / "w.db" / f"t{number}").status == 0
    line = ["compact", "-v", "--major", "--engine", "local", "--assume-committed=0s", tmp_path / "w.db"]
    status, raw = terminal.execute(sys.executable, "-c", STRESS, *line, columns=300)
    assert status == 0, raw
    told = screen(raw)
    assert [one for one in told if ": major: " in one and one.startswith(str(tmp_path))] == told[-11:-3]
    assert not [one for one in told if "[#" in one or "[." in one]
    assert "compacting 8 buckets [" in raw


def test_nothing_where_there_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    monkeypatch.setattr(sys, "stderr", out)
    line = LastLine()
    before = threading.active_count()
    with line.showing(lambda _: "words"), listings():
        line.draw()
        assert threading.active_count() == before
    assert out.getvalue() == ""


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(VERBOSITY, "is_quiet", True)


@pytest.mark.usefixtures("quiet")
def test_nothing_where_it_is_to_be_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    out = Tty()
    monkeypatch.setattr(sys, "stderr", out)
    line = LastLine()
    with line.showing(lambda _: "words"):
        line.draw()
    assert out.getvalue() == ""


@pytest.mark.parametrize("quiet", [(), ("-q",)], ids=["loud", "quiet"])
def test_a_command_that_is_quiet_leaves_the_terminal_alone(
    terminal: Terminals, acidctl: Acidctl, tmp_path: Path, quiet: tuple[str, ...]
) -> None:
    assert acidctl("demo", tmp_path / "t").status == 0
    line = [*quiet, "--major", "--engine", "local", "--assume-committed=0s", tmp_path / "t"]
    status, raw = terminal.execute(sys.executable, "-c", STRESS, "compact", *line)
    assert status == 0, raw
    assert (raw == "") == bool(quiet), raw


def test_the_last_that_has_something_to_show(monkeypatch: pytest.MonkeyPatch) -> None:
    out = Tty()
    monkeypatch.setattr(sys, "stderr", out)
    line = LastLine()
    with line.showing(lambda columns: "x" * 2 * columns):
        line.draw()
        with line.showing(lambda _: "inner"):
            line.draw()
            with line.showing(lambda _: ""):
                line.draw()
        line.draw()
    assert [part.rstrip() for part in out.getvalue().split("\r\x1b[K")][1:] == ["x" * 79, "inner", "x" * 79, ""]


def test_every_listing_is_told_once(tmp_path: Path) -> None:
    fs = MemoryFileSystem()
    for table in range(3):
        for delta in range(2):
            fs.make_dirs(f"/w.db/t{table}/delta_{delta + 1}_{delta + 1}")
            fs.write_bytes(f"/w.db/t{table}/delta_{delta + 1}_{delta + 1}/bucket_00000", b"x")
    told: list[tuple[int, int]] = []
    with listening(lambda *counts: told.append(counts)):
        for location, top in walk_locations(fs, "/w.db"):
            list_entries(fs, location.path, top)
    assert [sum(column) for column in zip(*told, strict=True)] == [4, 12]
    list_entries(fs, "/w.db/t1")
    assert len(told) == 7, "nobody listens any more"


def test_listings_are_shown_only_after_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    listed = Bar("entries listed", None)
    now[0] = 0.5
    assert listed.text(80) == "", "nothing is listed yet"
    listed.advance(2000)
    assert listed.text(80) == "entries listed: 2,000"
    now[0] = 5.0
    assert listed.text(80) == "entries listed: 2,000, 400/s"


def tasks_of(acidctl: Acidctl, tmp_path: Path, kind: CompactionKind = CompactionKind.MAJOR) -> list[Task]:
    from support.made.big_tables import big_table
    from support.tables import snapshot_of

    table = tmp_path / "t"
    big_table(table, rows=4000, deletes=400, buckets=2)
    plan = plan_compaction(snapshot_of(table), kind, "_tmp_1")
    for name in (plan.staging, f"{plan.staging}/_attempts"):
        Path(name).mkdir(parents=True, exist_ok=True)
    return list(plan.tasks)


@pytest.mark.parametrize("kind", list(CompactionKind))
def test_bytes_come_from_inside(acidctl: Acidctl, tmp_path: Path, kind: CompactionKind) -> None:
    tasks = tasks_of(acidctl, tmp_path, kind)
    for task in tasks:
        told: list[int] = []
        with telling(told.append):
            run_task(task)
        assert told
        assert all(count > 0 for count in told)
        assert task.weight / 2 < sum(told) <= task.weight, "stripes, without tails"
    told.clear()
    done(5)
    assert not told, "nobody listens any more"


def tell_slowly(task: Task) -> BucketResult:
    event = threading.Event()
    for _ in range(20):
        done(1)
        event.wait(0.02)
    return run_task(task)


def test_workers_tell_while_they_work(acidctl: Acidctl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_engine, "WORTH_A_PROCESS", 1)
    tasks = tasks_of(acidctl, tmp_path)
    assert len(tasks) > 1
    told: dict[int, list[int]] = {}
    engine = LocalEngine(2, on_bytes=lambda task, count: told.setdefault(id(task), []).append(count))
    ended: list[int] = []
    for place, _ in engine(tasks, tell_slowly):
        assert told.get(id(tasks[place])), "before its end"
        ended.append(place)
    assert sorted(ended) == list(range(len(tasks)))


def test_a_task_is_never_more_than_done() -> None:
    class OneTask:
        weight = 100

    bar = Bar("at it", 200, is_bytes=True)
    working = _Bytes(bar)
    first, second = OneTask(), OneTask()
    for count in (30, 90, 5):
        working.bytes(first, count)  # type: ignore[arg-type]
    assert bar._done == 100
    working.ended(first)  # type: ignore[arg-type]
    working.ended(second)  # type: ignore[arg-type]
    assert bar._done == 200
