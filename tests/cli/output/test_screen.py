"""Tables that fit: nothing that names is cut, at any width; on a wide screen and in a pipe all columns are there."""

from __future__ import annotations

import errno
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from operator import itemgetter
from pathlib import Path

import pytest
from support.tables import without_log
from support.terminals import without_last_line

from acidctl.cli.output.console import broken
from acidctl.cli.output.redact import remember
from acidctl.cli.output.screen import Column, Layout, Pages, table_lines

NAME = "delete_delta_0000002_0000002_0000"
HEADINGS = ("name", "kind", "write ids", "stmt", "state", "size")
LAYOUT = Layout[tuple[str, ...]](
    (
        Column("name", itemgetter(0)),
        Column("kind", itemgetter(1), worth=2),
        Column("write ids", itemgetter(2), worth=3),
        Column("stmt", itemgetter(3), right=True, worth=1, beside=True),
        Column("state", itemgetter(4)),
        Column("size", itemgetter(5), right=True, worth=4),
        Column("rows", lambda _: "", optional=True),
    ),
    "reason",
    itemgetter(6),
    lambda row: row[0].startswith("base"),
)
ROWS = [
    ("base_0000003", "base", "3", "", "current", "934 B", "the base that readers use"),
    (NAME, "delete_delta", "2", "0", "obsolete", "1.2 KiB", "its write ids are in base_0000003"),
]


def lines(width: int) -> list[str]:
    return [line.plain for line in table_lines(LAYOUT, ROWS, width)]


def test_a_wide_screen_has_everything_in_one_line() -> None:
    shown = lines(140)
    assert len(shown) == 3
    assert shown[0].split() == ["name", "kind", "write", "ids", "stmt", "state", "size", "reason"]
    assert shown[2].split() == [
        NAME, "delete_delta", "2", "0", "obsolete", "1.2", "KiB", "its", "write", "ids", "are", "in",
        "base_0000003",
    ]  # fmt: skip
    assert lines(10_000) == shown


def test_columns_go_by_worth_and_the_remark_goes_below() -> None:
    below = "    its write ids are in base_0000003"
    for width, gone in (
        (113, {"stmt"}), (84, set()), (78, {"stmt"}), (70, {"stmt", "kind"}), (52, {"stmt", "kind", "write ids"}),
        (43, {"stmt", "kind", "write ids", "size"}),
    ):  # fmt: skip
        shown = lines(width)
        assert {heading for heading in HEADINGS if heading not in shown[0]} == gone
        assert max(map(len, shown)) <= width
        assert shown[2].startswith(f"{NAME}  ")
        assert "obsolete" in shown[2]
        assert shown[3:] == ([below] if width < 113 else [])


def test_on_a_narrow_screen_the_first_column_has_a_line_of_its_own() -> None:
    assert lines(36) == [
        "name", "  write ids  state        size", "base_0000003", "  3          current     934 B", NAME,
        "  2          obsolete  1.2 KiB", "    its write ids are in", "    base_0000003",
    ]  # fmt: skip
    assert lines(20)[:4] == ["name", "  state        size", "base_0000003", "  current     934 B"]
    assert lines(11)[:4] == ["name", "  state", "base_0000003", "  current"]


def test_names_are_made_safe_and_wide_characters_count_twice() -> None:
    layout = Layout[tuple[str, ...]](
        (Column("name", itemgetter(0)), Column("state", itemgetter(1))), "reason", itemgetter(2)
    )
    shown = [line.plain for line in table_lines(layout, [("表\x1b[2J", "ok", "a\tb"), ("x", "ok", "")], 80)]
    assert shown == ["name       state  reason", "表\\x1b[2J  ok     a\\tb", "x          ok"]


def test_later_pages_are_in_line_and_have_headings_if_other_columns_are_shown() -> None:
    pages = Pages()

    def page(*items: tuple[str, ...]) -> list[str]:
        return [line.plain for line in table_lines(LAYOUT, items, 60, pages=pages)]

    short = ("base_3", "base", "3", "", "current", "934 B", "")
    first, _ = page(short)
    assert first.split() == ["name", "kind", "write", "ids", "stmt", "state", "size"]
    (second,) = page(("base_4", "base", "4", "", "current", "9 B", ""))
    assert second.index("current") == first.index("state")
    heading, _ = page((NAME, *ROWS[1][1:6], ""))
    assert heading.split() == ["name", "state", "size"]
    (last,) = page(short)
    assert last.index("current") == heading.index("state")


def test_a_known_secret_is_hidden_but_in_rows() -> None:
    remember("s3cr3t-value")
    layout = Layout[str]((Column("name", str),))
    assert [line.plain for line in table_lines(layout, ["s3cr3t-value"], 80, has_headings=False)] != ["s3cr3t-value"]
    assert [line.plain for line in table_lines(layout, ["s3cr3t-value"], 80, has_headings=False, hides=False)] == [
        "s3cr3t-value"
    ]


def test_table_without_rows_is_its_head() -> None:
    assert [line.plain for line in table_lines(LAYOUT, [], 80)] == ["name  kind  write ids  stmt  state  size  reason"]


def on_terminal(columns: int, *args: str | Path) -> str:
    """What a terminal of that width shows, standard error included."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES")}
    environment |= {"NO_COLOR": "1", "TERM": "xterm"}
    command = [sys.executable, "-m", "acidctl", *map(str, args)]
    process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=environment)
    os.close(slave)
    sent = b""
    while True:
        try:
            part = os.read(master, 65536)
        except OSError as error:
            assert error.errno == errno.EIO
            break
        if not part:
            break
        sent += part
    process.wait()
    os.close(master)
    return re.sub("\x1b\\[[0-9;]*m", "", without_last_line(sent.decode().replace("\r\n", "\n")))


@pytest.mark.parametrize("columns", [80, 40])
def test_ls_on_a_terminal_cuts_no_name(acidctl, crud: Path, columns: int) -> None:  # type: ignore[no-untyped-def]
    assert acidctl("compact", "--assume-committed=0s", "--major", "--engine", "local", crud).status == 0
    shown = on_terminal(columns, "ls", crud)
    assert "…" not in shown
    for name in without_log(path.name for path in crud.iterdir()):
        assert name in shown
    assert shown.count("its write ids are in base_0000003") == 4
    assert "the base that readers use" not in shown
    size = sum(path.stat().st_size for path in (crud / NAME).iterdir())
    if columns == 80:
        assert f"{NAME}  delete_delta          2  obsolete  {size} B\n" in shown
    else:
        assert f"{NAME}\n          2  obsolete  {size} B\n" in shown


def test_colours_are_for_terminals_unless_wanted_elsewhere(acidctl, terminal, crud: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    assert "\x1b[" not in acidctl("ls", crud).out
    assert "\x1b[" in acidctl("ls", "--color", "always", crud).out
    assert "\x1b[" in acidctl("--color=always", "ls", crud / "none").err
    line, wanted = (sys.executable, "-m", "acidctl", "ls", crud), {"NO_COLOR": ""}
    assert "\x1b[32m" in terminal.execute(*line, environ=wanted)[1]
    assert "\x1b[32m" not in terminal.execute(*line, "--color", "never", environ=wanted)[1]
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" in acidctl("ls", "--color", "always", crud).out


def test_a_message_breaks_between_words(tmp_path: Path) -> None:
    shown = on_terminal(60, "cat", "--columns", "nope", tmp_path / "missing")
    assert shown.startswith("error: ")
    noted = on_terminal(40, "ls", tmp_path)
    assert "every\n      write id on disk" in noted


@pytest.mark.parametrize(
    ("text", "width", "indent", "lines"),
    [
        ("one two three", 9, 4, ["one two three"]),
        ("one two three four five", 26, 4, ["one two three four five"]),
        ("one two three four five six seven", 26, 4, ["one two three four five", "    six seven"]),
        ("  label  " + "x" * 40 + " y", 30, 9, ["  label", "         " + "x" * 40, "         y"]),
        ("         " + "x" * 40 + " y", 30, 9, ["         " + "x" * 40, "         y"]),
        ("it would remove about 12.5 KiB of 3 B", 27, 0, ["it would remove about", "12.5 KiB of 3 B"]),
        ("nobody has looked for 25 h at it", 25, 0, ["nobody has looked for", "25 h at it"]),
        ("a  b", 40, 2, ["a  b"]),
        ("", 40, 2, [""]),
    ],
)
def test_sentences_break_between_words_and_hang(text: str, width: int, indent: int, lines: list[str]) -> None:
    assert broken(text, width, indent) == lines
