"""The words of every command: a golden file each shows command lines and what a terminal prints for them.

`ACIDCTL_GOLDEN=write python -m pytest tests/scenarios/command_line/test_golden.py` writes them; read the change, and
commit it. Other tests assert statuses, codes, names and numbers.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest
from support.console_pages import COLUMNS, FOLDER, RUN_ID, steady, steps, without_owner, without_styles
from support.files.acid_files import delete, insert, write_acid
from support.metastore.fake_hive import FakeHive
from support.paths import TESTS
from support.tables import make
from support.terminals import Terminals, without_last_line
from support.writing import written_table

from acidctl.cli.command_table import GROUPS, SUMMARIES
from acidctl.location import metastore_state
from acidctl.rescue import look

GOLDEN = TESTS / "golden"
_SCENE = re.compile(r"^scene: (\S+)$", re.MULTILINE)


def broken(folder: Path) -> None:
    """Write a table with a dangling delete, one with a directory that Hive does not read, and a damaged file."""
    write_acid(folder / "dangling/delta_0000001_0000001_0000/bucket_00000", insert(1, 0, (1, "a")))
    write_acid(folder / "dangling/delete_delta_0000002_0000002_0000/bucket_00000", delete(1, 77, 2))
    make(folder / "aborted", "base_0000005", "delta_0000006_0000006_0000", "delta_0000007_0000007_0000")
    damaged = folder / "damaged/delta_0000001_0000001_0000/bucket_00000"
    write_acid(damaged, insert(1, 0, (1, "a")))
    damaged.write_bytes(damaged.read_bytes()[:-20])


@contextmanager
def metastore(folder: Path) -> Iterator[None]:
    """Run a metastore of Hive 4 with a table, an old query on it, a lock that waits, and a queue of compactions."""
    for number in range(1, 4):
        write_acid(folder / f"orders/delta_{number:07}_{number:07}_0000/bucket_00000", insert(number, 0, (1, "a")))
    with FakeHive(4) as hive, pytest.MonkeyPatch.context() as patch:
        written = [hive.begin() for _ in range(21)]
        for txn in written:
            hive.end(txn)
        hive.table("sales", "orders", str(folder / "orders"))
        hive.write_ids["sales.orders"] = written[:3]
        reader = hive.begin(user="ann", host="edge7", ago=72 * 60, silent=2, query="SELECT count(*) FROM sales.orders")
        held = hive.lock("sales", "orders", txn=reader, user="ann", host="edge7", ago=72 * 60)
        hive.lock("sales", "orders", type=4, user="etl", host="host7", ago=60, blocked_by=held)
        hive.entry("sales", "orders", "failed", enqueued=7200, started=7100, ended=7000, error="disk full")
        hive.entry("sales", "orders", "initiated", enqueued=600)
        configure(folder, hive, patch)
        yield


@contextmanager
def older_metastore(folder: Path) -> Iterator[None]:
    """Run a metastore of Hive 4 that has given two write ids of a table with four."""
    for number in range(1, 5):
        write_acid(folder / f"orders/delta_{number:07}_{number:07}_0000/bucket_00000", insert(number, 0, (1, "a")))
    with FakeHive(4) as hive, pytest.MonkeyPatch.context() as patch:
        for module in (metastore_state, look):
            patch.setattr(module, "_WAIT" if module is metastore_state else "_PAUSE", 0.0)
        hive.table("sales", "orders", str(folder / "orders"))
        hive.write_ids["sales.orders"] = [hive.begin() for _ in range(2)]
        for txn in list(hive.txns):
            hive.end(txn)
        configure(folder, hive, patch)
        yield


def configure(folder: Path, hive: FakeHive, patch: pytest.MonkeyPatch) -> None:
    uris = f"<property><name>hive.metastore.uris</name><value>{hive.address}</value></property>"
    (folder / "hive-site.xml").write_text(f"<configuration>{uris}</configuration>")
    patch.setenv("HIVE_CONF_DIR", str(folder))


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Run a metastore of Hive 4 with a table by day that has rows of one day, and write files with rows."""
    (folder / "new.csv").write_text("id,value,day\n3,CC,2026-11-20\n4,DD,2026-11-21\n")
    (folder / "wrong.csv").write_text("id,value,day\n3,CC,2026-11-20\nfour,DD,2026-11-21\n")
    (folder / "log.jsonl").write_text('{"id": 1, "day": "2026-11-20", "value": "A1", "op": "u", "lsn": 8}\n')
    columns, keys = {"id": "int", "value": "string"}, {"day": "date"}
    with written_table(folder / "orders", columns, keys) as table, pytest.MonkeyPatch.context() as patch:
        rows = {"id": [1, 2], "value": ["AA", "BB"], "day": ["2026-11-20"] * 2}
        table.door.table("db.t").insert(pa.table(rows))
        configure(folder, table.hive, patch)
        yield


def made(write: Callable[[Path], None]) -> Callable[[Path], AbstractContextManager[None]]:
    def scene(folder: Path) -> AbstractContextManager[None]:
        write(folder)
        return nullcontext()

    return scene


SCENES: dict[str, Callable[[Path], AbstractContextManager[None]]] = {
    "broken": made(broken),
    "metastore": metastore,
    "older-metastore": older_metastore,
    "writing": writing,
}


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder whose name has always the same length: tables show more columns where paths are longer."""
    with TemporaryDirectory(prefix="golden-", dir="/tmp") as name:
        folder = Path(name)
        monkeypatch.chdir(folder)
        for kind in ("STATE", "CONFIG", "CACHE"):
            monkeypatch.setenv(f"XDG_{kind}_HOME", str(folder / f".{kind.lower()}"))
        yield folder


def printed(terminal: Terminals, folder: Path, command: str) -> str:
    """Run a command line of a golden file; a status that is not 0 stands in a line of its own."""
    program, *words = shlex.split(command.replace(FOLDER, str(folder)))
    assert program == "acidctl"
    status, shown = terminal.run(*words, columns=COLUMNS + len(str(folder)) - len(FOLDER))
    text = without_owner(without_styles(without_last_line(shown)).replace("\r\n", "\n"))
    for name in (str(folder), str(folder).replace("_", r"\_")):  # as Markdown writes it
        text = text.replace(name, FOLDER)
    return "\n".join(line.rstrip() for line in text.splitlines()) + f"\n[status {status}]" * bool(status)


@pytest.mark.parametrize("page", sorted(path.stem for path in GOLDEN.glob("*.txt")))
def test_a_command_prints_what_its_golden_file_shows(page: str, terminal: Terminals, folder: Path) -> None:
    file = GOLDEN / f"{page}.txt"
    text = file.read_text("utf-8")
    head = text.partition("\n$ ")[0]
    written, runs = [head], [""]
    found = _SCENE.search(head)
    with SCENES[found[1]](folder) if found else nullcontext():
        for step in steps(text):
            shown = printed(terminal, folder, RUN_ID.sub(runs[-1], step.command))  # the run that was named last
            runs += RUN_ID.findall(shown)
            is_same = steady(shown) == steady(step.shown)
            written.append(f"$ {step.command}\n{(step.shown if is_same else shown).strip()}\n")
            assert is_same or os.environ.get("ACIDCTL_GOLDEN") == "write", f"{step.command} prints:\n{shown}"
    if os.environ.get("ACIDCTL_GOLDEN") == "write":
        file.write_text("\n".join(written), "utf-8")


def test_every_command_has_a_golden_file() -> None:
    commands = {*SUMMARIES, *(f"hive-{name}" for name in GROUPS["hive"])} - {"hive"}
    assert commands <= {path.stem for path in GOLDEN.glob("*.txt")}
