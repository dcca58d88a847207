"""Nothing that names hold reaches a terminal as more than text: every command, every form, on a terminal of its own."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from support.files.acid_files import write_delta
from support.tables import CLEAN_NOW
from support.terminals import Terminals
from support.trouble.unsafe import SAMPLES, is_unsafe

from acidctl.cli.main import main
from acidctl.orc.types import OrcType

EVIL = "".join(text for name, text in SAMPLES.items() if name != "null")
"""What a file's name can hold, and nothing that Python could not pass on a command line."""
VALUE = "".join(SAMPLES.values()).replace("\udc9b", "")

STRING = OrcType("string")
TYPES = OrcType(
    "struct",
    children=(
        OrcType("int"), STRING, OrcType("char", max_length=80), OrcType("map", children=(STRING, STRING)),
        OrcType("struct", children=(STRING,), names=(f"f{VALUE}",)),
    ),
    names=("id", f"s{VALUE}", "c", "m", "st"),
)  # fmt: skip


def batch(first: int) -> pa.RecordBatch:
    ids = list(range(first, first + 3))
    texts = [VALUE, *(f"a{text}b" for text in list(SAMPLES.values())[:2])]
    columns = [
        pa.array(ids, pa.int32()),
        pa.array(texts),
        pa.array(texts),
        pa.array([[(text, text)] for text in texts], pa.map_(pa.string(), pa.string())),
        pa.StructArray.from_arrays([pa.array(texts)], names=[f"f{VALUE}"]),
    ]
    return pa.RecordBatch.from_arrays(columns, names=list(TYPES.names))


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    """Two tables, one of them partitioned, in which everything that has a name has an evil one."""
    top = tmp_path / f"w{EVIL}"
    for location in (top / f"t{EVIL}", top / "parts" / f"p=1{EVIL}", top / "parts" / f"p=2{EVIL}"):
        location.mkdir(parents=True)
        write_delta(location, 1, batch(0), row=TYPES)
        write_delta(location, 2, batch(3), row=TYPES)
    table = top / f"t{EVIL}"
    (table / f"delta_{EVIL}").mkdir()
    (table / f"_tmp_{EVIL}").mkdir()
    (table / ".acidctl-trash" / "20260101T000000.000Z-0d9b0f3a" / f"delta_{EVIL}").mkdir(parents=True)
    return top


def assert_harmless(shown: str) -> None:
    shown = re.sub("\x1b\\[[0-2]m|\r\x1b\\[K", "", shown)  # bold, dim and back, a bar that goes away: ours
    found = {char for char in shown if is_unsafe(char)} - {"\n"}
    assert not found, re.findall(f"[^\n]*[{''.join(map(re.escape, found))}][^\n]*", shown)[:3]


LOOK = [
    ["ls", "{w}"], ["ls", "-r", "-a", "--rows", "{w}"], ["ls", "{t}", "{w}"],
    ["ls", "--state", "ignored", "{t}"],
    ["why", "{w}"], ["why", "{t}", "delta_1_1"], ["why", "{t}", "nope{evil}"],
    ["cat", "{t}"], ["cat", "{p}", "--row-id"], ["cat", "{t}", "--columns", "nope{evil}"], ["cat", "{t}", "--count"],
    ["cat", "{p}", "--partition", "p=9{evil}"], ["cat", "{t}", "--where", "s{evil} = 1"],
    ["dump", "{t}"], ["dump", "--decode", "{f}"], ["dump", "{w}"], ["dump", "{t}", "--columns", "row.nope{evil}"],
    ["meta", "{f}"], ["meta", "{f}", "{f}{evil}"],
    ["history", "{w}"], ["blame", "{t}", "1:536870912:1"], ["blame", "{t}", "9:536870912:1"], ["blame", "{w}", "1:1:1"],
    ["blame", "{t}", "1:{evil}"],
    ["diff", "{t}", "--from", "1"], ["diff", "{t}", "--from", "1", "--key", "id"],
    ["diff", "{t}", "--from", "1", "--count"],
    ["diff", "{t}", "--from", "1", "--key", "nope{evil}"],
    ["validate", "{w}"], ["validate", "--deep", "-v", "-a", "--for", "trino", "{w}"],
    ["validate", "{t}", "--rule", "V99{evil}"], ["validate", "{t}", "--schema", "x{evil} int"],
    ["compact", "--major", "--dry-run", "{w}"], ["compact", "--auto", "--dry-run", "{w}"],
    ["compact", "--major", "--engine", "local", "{w}", "--conf", "a{evil}"],
    ["compact", "--major", "{w}", "--snapshot", "x{evil}:1"],
    ["clean", "--dry-run", "--leftovers", "{w}"], ["status", "{w}"], ["log", "{w}"], ["explain", "x{evil}"],
    ["report", "-o", "md", "{w}"], ["report", "{w}"],
    ["report", "--out", "x{evil}/y", "{w}"],
    ["restore", "--list", "{w}"], ["purge", "--dry-run", "{w}"],
    ["repair", "--only", "key-index", "--dry-run", "{w}"], ["repair", "--only", "version-file", "--dry-run", "{w}"],
    ["doctor"], ["completion", "fish"], ["clean", "--apply", "{f}"],
    ["nope{evil}"], ["ls", "--nope{evil}"], ["ls", "-o", "{evil}"], ["ls", "{w}/missing{evil}"], ["ls", "s3x{evil}://b/x"],
    ["ls", "{w}", "--profile", "x{evil}"],
    ["ls", "{w}", "--config", "x{evil}"],
    ["cat", "--debug", "{w}/missing{evil}"],
]  # fmt: skip

FORMS = {
    "ls": ("json", "jsonl", "csv"), "why": ("json", "jsonl"), "cat": ("csv", "table"), "dump": ("csv", "table"),
    "meta": ("json", "jsonl"), "history": ("json", "jsonl", "csv"), "blame": ("json",), "diff": ("csv", "table"),
    "status": ("json",), "report": ("json",), "log": ("json", "jsonl"),
    "validate": ("json", "jsonl"), "compact": ("json", "jsonl"),
    "clean": ("json", "jsonl"), "restore": ("json", "jsonl"), "purge": ("json", "jsonl"), "repair": ("json", "jsonl"),
}  # fmt: skip


Filled = Callable[[list[str]], list[str]]


@pytest.fixture
def filled(warehouse: Path) -> Filled:
    table = warehouse / f"t{EVIL}"
    places = {
        "w": str(warehouse), "t": str(table), "p": str(warehouse / "parts"), "evil": EVIL,
        "f": str(table / "delta_0000001_0000001_0000" / "bucket_00000"),
    }  # fmt: skip
    return lambda line: [word.format(**places) for word in line]


def test_commands_that_look_send_nothing_hostile(
    terminal: Terminals, filled: Filled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert Path(filled(["{f}"])[0]).is_file()
    config = tmp_path / "home" / "acidctl" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('[clean]\nolder-than = "24h"\n[cat]\nwhere = "x\\u202e\\u009b\\u001b"\n')
    project = tmp_path / f"project{EVIL}"
    project.mkdir()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(project)
    monkeypatch.setenv("ACIDCTL_CLEAN_OLDR_THAN", EVIL)
    seen: dict[str, int] = {}
    for line in LOOK:
        # Everything in its other forms too; where it is for a mistake, in one more.
        runs = [line, *([*line, "-o", form] for form in FORMS.get(line[0], ()))]
        for run in runs:
            options = () if line[0] == "cat" and "--where" in line else ("--config", "/dev/null")
            if any(word in line for word in ("--config", "--profile")) or line[0] in ("doctor", "completion"):
                options = ()
            status, shown = terminal.run(*filled(run), *options)
            assert status not in (1, 99), shown
            assert shown, run
            assert_harmless(shown)
            seen[run[0]] = seen.get(run[0], 0) + 1
    assert sum(seen.values()) > 100


COMPACT = ["compact", "--major", "--engine", "local", "--force", "{w}"]


@pytest.mark.slow
def test_a_hang_is_a_failure(terminal: Terminals) -> None:
    with pytest.raises(AssertionError, match="hung"):
        terminal.execute("/bin/sleep", "100", seconds=1)
    ignores = "import signal, time\nfor s in (1, 2, 14): signal.signal(s, signal.SIG_IGN)\ntime.sleep(100)"
    with pytest.raises(AssertionError, match="hung"):
        terminal.execute(sys.executable, "-c", ignores, seconds=1)
    assert terminal.execute("/bin/cat") == (0, "")


def test_commands_that_change_tables_send_nothing_hostile(terminal: Terminals, filled: Filled, tmp_path: Path) -> None:
    plan = str(tmp_path / f"plan{EVIL}")
    keep = ["--older-than", "0", "--unsafe-retention"]
    lines = [
        ["compact", "--major", "--engine", "local", "{w}"], [*COMPACT, "--assume-committed=0s"],
        ["clean", "--plan", plan, *keep, "{w}"],
        ["clean", "--yes", "--unsafe-retention", "--apply", plan], ["restore", "{t}"],
        [*CLEAN_NOW, "-o", "json", "{w}"],
        ["restore", "--yes", "{w}"], [*CLEAN_NOW, "{w}"], ["purge", "--yes", "{w}"],
        ["clean", "--metrics-file", plan, "{w}"], ["clean", "--metrics-file", "{t}/x", "{w}"],
        ["demo", "{t}"], ["demo", "{t}2"],
    ]  # fmt: skip
    for line in lines:
        status, shown = terminal.run(*filled(line))
        assert status not in (1, 99), shown
        assert shown, line
        assert_harmless(shown)


def test_damaged_file_sends_nothing_hostile(terminal: Terminals, filled: Filled) -> None:
    file = Path(filled(["{f}"])[0])
    file.write_bytes(file.read_bytes()[:-20])
    for line in (
        ["cat", "{t}"], ["cat", "--skip-bad-files", "{t}"], ["dump", "{t}"], ["meta", "{f}"],
        ["validate", "--deep", "{t}"],
        ["compact", "--major", "--engine", "local", "{t}"], ["history", "{t}"], ["ls", "--rows", "{t}"],
        ["repair", "--only", "key-index", "--dry-run", "{t}"], ["cat", "--debug", "{t}"],
    ):  # fmt: skip
        status, shown = terminal.run(*filled(line))
        assert status not in (0, 1, 99), (line, shown)
        assert_harmless(shown)


def test_help_with_defaults_from_a_file(terminal: Terminals, tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text('[compact]\nmax-bytes = "x\\u001b[31m\\u202e\\u009b"\n')
    status, shown = terminal.run("compact", "--help", "--config", config)
    assert status == 0
    assert "\\x1b[31m" in shown
    assert_harmless(shown)


def test_completion_sends_nothing_hostile(terminal: Terminals, monkeypatch: pytest.MonkeyPatch) -> None:
    words = f"acidctl ls a{EVIL.replace(chr(10), '')}"
    for shell in ("bash", "zsh", "fish"):
        monkeypatch.setenv("_ACIDCTL_COMPLETE", f"{shell}_complete")
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", "2" if shell != "fish" else words.rpartition(" ")[2])
        _, shown = terminal.run()
        assert "dir" in shown
        assert_harmless(shown)


LIBRARY = """
import logging, sys, threading, warnings
import acidctl.location.find as locations
from acidctl.cli.main import main

evil = sys.argv[1]

def fail():
    raise ValueError(evil)

def noisy(*_, **__):
    warnings.warn(f"of {evil}")
    logging.getLogger("somebody").warning("about %s", evil)
    print("words", evil)
    thread = threading.Thread(target=fail)
    thread.start()
    thread.join()
    raise ZeroDivisionError(evil)

locations.open_location = noisy
main(sys.argv[2:])
"""


@pytest.mark.parametrize("words", [(), ("--debug",)])
def test_warnings_of_libraries_send_nothing_hostile(terminal: Terminals, words: tuple[str, ...]) -> None:
    """Warnings, logs and the last words of threads quote what they failed on."""
    evil = EVIL.replace("\n", "")
    status, shown = terminal.execute(sys.executable, "-c", LIBRARY, evil, "ls", ".", *words)
    assert status == 1
    told = ("of \\x1b", "about \\x1b", "words \\x1b", "ValueError: \\x1b", "unexpected ZeroDivisionError")
    assert all(text in shown for text in told), shown
    assert_harmless(shown)


def test_data_on_a_pipe_stays_exact(warehouse: Path, acidctl: Callable[..., object]) -> None:
    import csv
    import io
    import json

    table = warehouse / f"t{EVIL}"
    texts = [VALUE, *(f"a{text}b" for text in list(SAMPLES.values())[:2])]
    rows = acidctl("cat", table).lines()  # type: ignore[attr-defined]
    assert [row[f"s{VALUE}"] for row in rows] == texts * 2
    assert [list(row["st"]) for row in rows] == [[f"f{VALUE}"]] * 6
    out = acidctl("cat", "-o", "csv", table).out  # type: ignore[attr-defined]
    header, *found = csv.reader(io.StringIO(out, newline=""))
    assert header[1] == f"s{VALUE}"
    assert [row[1] for row in found] == texts * 2
    # Names in our own listings are for people, wherever they go; JSON has them as they are.
    listed = acidctl("ls", "-o", "csv", table).out  # type: ignore[attr-defined]
    assert_harmless(listed)
    (one,) = (json.loads(line) for line in acidctl("ls", "-o", "jsonl", table).out.splitlines())  # type: ignore[attr-defined]
    assert os.fsencode(one["location"]) == os.fsencode(table)
    assert f"delta_{EVIL}" in [entry["name"] for entry in one["entries"]]


def test_modules_write_only_by_what_escapes() -> None:
    """No module writes by another way than those that escape, or escapes by itself."""
    package = Path(main.__code__.co_filename).parents[1]
    for path in package.rglob("*.py"):
        text = path.read_text("utf-8")
        name = path.relative_to(package).as_posix()
        if name not in ("cli/output/console.py", "cli/main.py", "cli/output/progress.py"):
            assert not re.search(r"click\.(secho|echo)\(", text), name
        if name not in ("cli/output/console.py", "cli/output/streams.py"):
            assert not re.search(r"sys\.stdout\.(write|buffer)", text), name
        if name != "printable.py":
            assert not re.search(r"encode\(.unicode_escape", text), name
            assert "unicodedata.category" not in text, name
