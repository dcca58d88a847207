"""The tutorial and all other pages with ``console`` blocks, command by command: they show what a terminal shows."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.console_pages import COLUMNS, FOLDER, RUN_ID, Step, steady, steps, without_styles
from support.files.acid_files import delete, insert, write_acid
from support.metastore.fake_hive import FakeHive
from support.paths import REPO
from support.tables import make
from support.terminals import Terminals, without_last_line

DEMO = "acidctl demo crud_table"
MAJOR = "acidctl compact --major --engine local --assume-committed=0s"
CLEAN_NOW = "acidctl clean --yes --older-than 0 --unsafe-retention"
BEFORE: dict[str, tuple[str, ...]] = {
    "README.md": (DEMO, f"{MAJOR} crud_table"),
    "docs/how-to/blocked.md": ("acidctl demo orders", f"{MAJOR} orders"),
    "docs/how-to/dead-streamer.md": (),
    "docs/how-to/history.md": (DEMO,),
    "docs/how-to/iceberg.md": ("acidctl demo orders",),
    "docs/how-to/undo.md": ("acidctl demo orders", "acidctl demo lines", f"{MAJOR} .", f"{CLEAN_NOW} ."),
    "docs/how-to/validate.md": (),
    "docs/how-to/why.md": (),
    "docs/tutorial.md": (),
}
"""The pages, and what is run before their own commands."""


def commands_of(page: str) -> Iterator[Step]:
    """Yield every command of the ``console`` blocks of a page, in their order."""
    for block in re.findall(r"^```console\n(.*?)^```", (REPO / page).read_text("utf-8"), re.MULTILINE | re.DOTALL):
        yield from steps(block)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / ".state"))  # no other test's night is the last one
    return tmp_path


def dead_streamer(folder: Path) -> None:
    """A table `clicks` in which a streaming writer died three hours ago, after it had committed two of its rows."""
    file = folder / "clicks" / "delta_0000002_0000005" / "bucket_00000"
    write_acid(file.parents[1] / "delta_0000001_0000001" / "bucket_00000", insert(1, 0, (1, "a")))
    write_acid(file, insert(2, 0, (2, "b")), insert(2, 1, (3, "c")))
    committed = file.stat().st_size
    with file.open("ab") as stream:
        stream.write(bytes(260))
    side = file.with_name("bucket_00000_flush_length")
    side.write_bytes(committed.to_bytes(8, "big"))
    for path in (folder / "clicks").rglob("*"):
        os.utime(path, (time.time() - 10800,) * 2)


def above_an_open_write(folder: Path) -> None:
    """A table `orders` with a compacted base above the open write id 9, and a delta in which 12 is aborted."""
    make(folder / "orders", "base_0000005", "base_0000010_v0000026", "delta_0000011_0000012")


def dangling_delete(folder: Path) -> None:
    """A table `orders` in which one of two delete events names a row that is nowhere."""
    write_acid(
        folder / "orders/delta_0000001_0000001_0000/bucket_00000", insert(1, 0, (1, "a")), insert(1, 1, (2, "b"))
    )
    write_acid(folder / "orders/delete_delta_0000002_0000002_0000/bucket_00000", delete(1, 0, 2), delete(1, 77, 2))
    for directory in (folder / "orders").iterdir():
        (directory / "_orc_acid_version").write_text("2")


@contextmanager
def metastore(folder: Path) -> Iterator[None]:
    """A metastore of Hive 4 that knows `orders` as `sales.orders`; a query on it began before its compaction."""
    with FakeHive(4) as hive, pytest.MonkeyPatch.context() as patch:
        written = [hive.begin() for _ in range(21)]
        for txn in written:
            hive.end(txn)
        hive.table("sales", "orders", str(folder / "orders"))
        hive.write_ids["sales.orders"] = written[:3]
        txn = hive.begin(user="ann", host="edge7", ago=72, silent=2, query="SELECT count(*) FROM sales.orders")
        hive.lock("sales", "orders", txn=txn, user="ann", host="edge7", ago=72)
        site = folder / "hive-site.xml"
        uris = f"<property><name>hive.metastore.uris</name><value>{hive.address}</value></property>"
        site.write_text(f"<configuration>{uris}</configuration>")
        patch.setenv("HIVE_CONF_DIR", str(folder))
        yield


MADE = {
    "docs/how-to/dead-streamer.md": dead_streamer,
    "docs/how-to/validate.md": dangling_delete,
    "docs/how-to/why.md": above_an_open_write,
}
"""What is written for a page."""


def run(terminal: Terminals, folder: Path, command: str) -> str:
    program, *words = shlex.split(command.replace(FOLDER, str(folder)))
    assert program == "acidctl"
    status, shown = terminal.run(*words, columns=COLUMNS)
    assert status == (14 if words[0] == "validate" else 0), shown
    return without_styles(without_last_line(shown)).replace(str(folder), FOLDER)


@pytest.mark.parametrize("page", sorted(BEFORE))
def test_a_page_shows_what_its_commands_print(page: str, terminal: Terminals, folder: Path) -> None:
    for command in BEFORE[page]:
        run(terminal, folder, command)
    with ExitStack() as scene:
        if page in MADE:
            MADE[page](folder)
        if page == "docs/how-to/blocked.md":
            scene.enter_context(metastore(folder))
        found = list(commands_of(page))
        runs = [""]
        for step in found:
            shown = run(terminal, folder, RUN_ID.sub(runs[-1], step.command))  # the run that was named last
            assert steady(step.shown) == steady(shown), f"{step.command} prints:\n{shown}"
            runs += RUN_ID.findall(shown)
    assert found


def test_every_page_with_commands_and_their_output_is_run() -> None:
    pages = [REPO / "README.md", *(REPO / "docs").rglob("*.md")]
    assert {str(page.relative_to(REPO)) for page in pages if "```console" in page.read_text("utf-8")} == set(BEFORE)


def test_the_tutorial_goes_from_the_demo_table_to_an_empty_trash() -> None:
    commands = [step.command.split()[1] for step in commands_of("docs/tutorial.md")]
    assert commands[0] == "demo"
    assert {"ls", "why", "cat", "dump", "history", "blame", "compact", "clean", "restore", "purge"} <= set(commands)


def test_the_file_of_the_configuration_page_is_taken(terminal: Terminals, folder: Path) -> None:
    page = (REPO / "docs" / "how-to" / "configure.md").read_text("utf-8")
    (text,) = re.findall(r"^```toml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    file = folder / "config.toml"
    file.touch(0o600)
    file.write_text(text)
    shown = run(terminal, folder, "acidctl doctor --config config.toml --profile prod")
    for word in ("clean.older-than", "72h", "compact.engine", "limits.stripe-memory", "webhdfs://nn:9870"):
        assert word in shown, shown


@pytest.mark.spark
def test_the_first_command_of_the_readme_does_the_main_job(folder: Path) -> None:
    """But for the installation, which the tests do not repeat."""
    (first, _) = re.findall(r"^```sh\n(.*?)\n```", (REPO / "README.md").read_text("utf-8"), re.MULTILINE | re.DOTALL)
    installing, _, rest = first.partition(" && pip install . && ")
    assert installing == "python3 -m venv .venv && . .venv/bin/activate"
    program = folder / "bin" / "acidctl"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m acidctl "$@"\n')
    program.chmod(0o755)
    environment = {**os.environ, "TMPDIR": str(folder), "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", rest], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-2:] == ['{"id":1,"value":"A"}', '{"id":2,"value":"B"}']


def test_the_python_page_runs_on_the_demo_table(terminal: Terminals, folder: Path) -> None:
    run(terminal, folder, DEMO)
    page = (REPO / "docs" / "how-to" / "python.md").read_text("utf-8")
    names: dict[str, Any] = {}
    counts = [0, 0]
    for block in re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
        away = "webhdfs://" in block  # a store that is not here
        counts[away] += 1
        if not away:
            exec(compile(block, "docs/how-to/python.md", "exec"), names)
    assert counts == [4, 1]
    assert names["scan"].to_table().column_names == ["ROW__ID", "id", "value"]
    assert names["done"].published == ("base_0000003",)


def test_the_iceberg_page_catches_up_with_the_demo_table(terminal: Terminals, folder: Path) -> None:
    run(terminal, folder, "acidctl demo orders")
    run(terminal, folder, "acidctl migrate --assume-committed 0s orders --to orders_ice --yes")
    page = (REPO / "docs" / "how-to" / "iceberg.md").read_text("utf-8")
    (block,) = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(block, "docs/how-to/iceberg.md", "exec"), names)
    assert names["done"].result == "nothing-to-do"
