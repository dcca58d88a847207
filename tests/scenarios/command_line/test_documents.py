"""`-o json` is one document, whatever there is to say and however the run ends; `-o jsonl` is one object per line."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.tables import CLEAN_NOW

Acidctl = Callable[..., Any]
MAJOR = ("compact", "--assume-committed=0s", "--major", "--engine", "local")
VARIES = {"taskSeconds", "trashRun", "run", "modified", "since", "until"}

LOOKING = [
    ("ls",), ("ls", "-r", "--rows"), ("why",), ("history",), (*MAJOR, "--dry-run"),
    ("compact", "--assume-committed=0s", "--auto"), ("clean", "--dry-run"), ("validate",), ("restore", "--list"),
    ("purge", "--dry-run"), ("repair", "--dry-run"), ("repair", "--only", "nested"),
]  # fmt: skip


@pytest.fixture
def warehouse(acidctl: Acidctl, tmp_path: Path) -> Path:
    for name in ("a", "b", "c"):
        assert acidctl("demo", tmp_path / "w.db" / name).status == 0
    return tmp_path / "w.db"


def steady(value: Any) -> Any:
    """Without what differs from run to run."""
    if isinstance(value, list):
        return [steady(one) for one in value]
    if isinstance(value, dict):
        return {key: steady(one) for key, one in value.items() if key not in VARIES}
    return value


def both(acidctl: Acidctl, *line: str | Path) -> list[Any]:
    """What either form says; it is the same."""
    array, lines = acidctl(*line, "-o", "json"), acidctl(*line, "-o", "jsonl")
    assert array.status == lines.status, (array.err, lines.err)
    found: list[Any] = array.json()
    assert isinstance(found, list)
    if line[0] != "validate":  # whose lines are findings
        assert steady(found) == steady(lines.lines())
    return found


@pytest.mark.parametrize("line", LOOKING, ids="-".join)
def test_none_one_and_several_locations_are_one_array(
    acidctl: Acidctl, warehouse: Path, tmp_path: Path, line: tuple[str, ...]
) -> None:
    (tmp_path / "empty.db").mkdir()
    assert both(acidctl, *line, tmp_path / "empty.db") == []
    several = both(acidctl, *line, warehouse)
    trash = line[0] in ("restore", "purge")  # there is none
    assert [Path(one["location"]).name for one in several] == ([] if trash else ["a", "b", "c"])
    assert len(both(acidctl, *line, warehouse / "a")) == (0 if trash else 1)


def test_rows_are_one_document_in_json(acidctl: Acidctl, warehouse: Path) -> None:
    table = warehouse / "a"
    file = next(table.glob("delta_*/bucket_00000"))
    for line in (("cat", table), ("cat", "--limit", "0", table), ("cat", "--where", "id > 99", table), ("dump", file),
                 ("diff", table, "--from", "1"), ("diff", table, "--from", "1", "--key", "id")):  # fmt: skip
        both(acidctl, *line)


def test_rows_up_to_a_damaged_file(acidctl: Acidctl, warehouse: Path) -> None:
    table = warehouse / "a"
    for line in (("cat", warehouse / "none"), ("diff", warehouse / "none", "--from", "1"), ("dump", table / "none")):
        failed = acidctl(*line, "-o", "json")
        assert (failed.status, failed.json()) == (3, [])
    file = table / "delta_0000001_0000001_0000" / "bucket_00000"
    file.write_bytes(b"ORC" + b"\xff" * 258 + file.read_bytes()[261:])  # the rows, not the tail
    for line in (("cat", table), ("dump", table), ("diff", table, "--from", "1")):
        failed = acidctl(*line, "-o", "json")
        assert (failed.status, isinstance(failed.json(), list)) == (4, True)


def test_with_a_trash_and_backups(acidctl: Acidctl, warehouse: Path) -> None:
    assert acidctl(*MAJOR, warehouse).status == 0
    assert [one["result"] for one in acidctl(*CLEAN_NOW, "-o", "json", warehouse).json()] == ["cleaned"] * 3
    assert len(both(acidctl, "restore", "--list", warehouse)) == 3
    assert len(both(acidctl, "restore", "--dry-run", warehouse)) == 3
    assert len(both(acidctl, "purge", "--dry-run", warehouse)) == 3
    assert len(acidctl("restore", "--yes", "-o", "json", warehouse).json()) == 3
    assert acidctl(*CLEAN_NOW, warehouse).status == 0
    assert [one["result"] for one in acidctl("purge", "--yes", "-o", "json", warehouse).json()] == ["purged"] * 3
    assert both(acidctl, "restore", "--list", warehouse / "a") == []


def test_plans_are_one_document_in_json(acidctl: Acidctl, warehouse: Path, tmp_path: Path) -> None:
    assert acidctl(*MAJOR, warehouse).status == 0
    plan = tmp_path / "plan.json"
    saved = acidctl("clean", "--plan", plan, "--older-than", "0", "--unsafe-retention", "-o", "json", warehouse)
    assert len(saved.json()) == 3
    assert len(both(acidctl, "clean", "--dry-run", "--apply", plan)) == 3
    assert len(acidctl("clean", "--yes", "--unsafe-retention", "-o", "json", "--apply", plan).json()) == 3


def test_files_are_one_document_in_json(acidctl: Acidctl, warehouse: Path, tmp_path: Path) -> None:
    files = sorted(warehouse.rglob("bucket_00000"))[:3]
    assert [one["path"] for one in both(acidctl, "meta", *files)] == [str(path) for path in files]
    assert [one["path"] for one in both(acidctl, "meta", files[0], tmp_path / "missing", files[1])] == [
        str(files[0]), str(files[1]),
    ]  # fmt: skip


@pytest.mark.parametrize("line", LOOKING, ids="-".join)
def test_what_fails_as_a_whole(acidctl: Acidctl, tmp_path: Path, line: tuple[str, ...]) -> None:
    found = acidctl(*line, "-o", "json", tmp_path / "missing")
    assert found.status == 3
    assert found.json() == []


def test_run_that_is_not_confirmed_prints_an_empty_document(acidctl: Acidctl, warehouse: Path) -> None:
    acidctl(*MAJOR, warehouse)
    found = acidctl("clean", "--older-than", "0", "--unsafe-retention", "-o", "json", warehouse)
    assert (found.status, found.json()) == (7, [])
    assert acidctl(*CLEAN_NOW, warehouse).status == 0
    assert (acidctl("purge", "-o", "json", warehouse).status, found.json()) == (7, [])


def test_locations_that_fail_are_in_the_document(acidctl: Acidctl, warehouse: Path) -> None:
    (warehouse / "b" / "delta_0000001_0000001_0000" / "bucket_00000").write_bytes(b"bad")
    found = acidctl(*MAJOR, "-o", "json", warehouse)
    assert found.status == 4
    assert {Path(one["location"]).name: one["result"] for one in found.json()} == {
        "a": "compacted", "b": "failed", "c": "compacted",
    }  # fmt: skip
    assert [Path(one["location"]).name for one in both(acidctl, "history", warehouse)] == ["a", "c"]


def test_a_form_from_a_file(acidctl: Acidctl, warehouse: Path, tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text("[ls]\noutput = 'json'\n")
    assert len(acidctl("ls", "--config", config, warehouse).json()) == 3


def test_one_result_is_one_object(acidctl: Acidctl, crud: Path) -> None:
    for line in (
        ("blame", crud, "1:536870912:0"), ("diff", crud, "--from", "1", "--count"), ("doctor",),
    ):  # fmt: skip
        form = () if "--count" in line else ("-o", "json")
        assert isinstance(acidctl(*line, *form).json(), dict)


# --- interrupted ---

ENDLESS = """
import os, signal, sys, time
from types import SimpleNamespace
from acidctl.cli.main import main

def endless(*_):
    for place in range(1000000):
        entry = {"place": "\\n" * size}
        yield SimpleNamespace(shown="x", is_given=False), SimpleNamespace(
            closed=(), damaged=(), status=SimpleNamespace(record=lambda: entry, notes=(), warnings=())
        )

import acidctl.verbs.reading.inspect as inspecting
size = int(sys.argv[1])
inspecting.inspect = endless
print("ready", file=sys.stderr, flush=True)
main(["ls", "-o", sys.argv[2], "x"])
"""


@pytest.mark.sampled(5)
@pytest.mark.parametrize("form", ["json", "jsonl"])
@pytest.mark.parametrize("size", [5, 300_000])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_document_is_whole(form: str, size: int, number: signal.Signals) -> None:
    """Whatever is being written when the signal comes; a reader that is slow makes the writing long."""
    chance = random.Random(size)
    for _ in range(4):
        command = [sys.executable, "-c", ENDLESS, str(size), form]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            assert process.stderr.readline() == "ready\n"
            head = process.stdout.read(1)
            time.sleep(chance.uniform(0, 0.2))
            process.send_signal(number)
            out = head + process.stdout.read()
            assert process.wait(30) == 130
        found = json.loads(out) if form == "json" else [json.loads(line) for line in out.splitlines()]
        assert found
        assert all(one == {"schema_version": 1, "place": "\n" * size} for one in found)


def test_a_second_interrupt_does_not_wait(tmp_path: Path) -> None:
    """Nobody reads any more: the first signal waits for the object that is being written, the second ends it."""
    read, write = os.pipe()
    command = [sys.executable, "-c", ENDLESS, "300000", "json"]
    with subprocess.Popen(command, stdout=write, stderr=subprocess.PIPE, text=True) as process:
        os.close(write)
        time.sleep(2)  # the pipe is full
        process.send_signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)
        process.send_signal(signal.SIGINT)
        try:
            assert process.wait(30) == 130
        finally:
            process.kill()
    os.close(read)


@pytest.mark.parametrize("form", ["json", "jsonl"])
def test_reader_that_ends_early_ends_the_run_silently(warehouse: Path, form: str) -> None:
    line = f"{sys.executable} -m acidctl ls -o {form} {warehouse} {' '.join([str(warehouse)] * 200)} | head -c 100"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
    assert (done.stderr, len(done.stdout)) == ("", 100)
