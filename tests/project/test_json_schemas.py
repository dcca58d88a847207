"""The JSON Schema files of docs/reference/schemas/ hold for what the commands print, to the last key."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from json_schemas import SHAPES, schema_files, schema_of
from jsonschema import Draft202012Validator
from support.metastore.fake_hive import FakeHive
from support.paths import REPO
from support.tables import CLEAN_NOW, make

from acidctl.cli.command_table import command_in

Acidctl = Callable[..., Any]
COMPACT = ("compact", "--assume-committed=0s", "--major", "--engine", "local")
NIGHTLY = ("nightly", "--assume-committed=0s", "--engine", "local", "--min-deltas", "2")
CLOSED = {name: Draft202012Validator(schema_of(name, is_closed=True)) for name in SHAPES}


def problems(name: str, text: str) -> list[str]:
    """What a schema says of a document, an object or an array of them."""
    document = json.loads(text)
    objects = document if isinstance(document, list) else [document]
    assert objects, text
    return [f"{'/'.join(map(str, one.path))}: {one.message}" for o in objects for one in CLOSED[name].iter_errors(o)]


def test_the_files_are_the_shapes_and_valid_themselves() -> None:
    files = dict(schema_files())
    folder = REPO / "docs" / "reference" / "schemas"
    assert {f"docs/reference/schemas/{path.name}" for path in folder.iterdir()} == set(files)
    for path, text in files.items():
        assert (REPO / path).read_text() == text, "run python tools/make_docs.py"
        Draft202012Validator.check_schema(json.loads(text))


def lines(table: Path) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """The schemas, and the lines whose output they are of, in an order in which each has something to say."""
    yield "status", ("status", table)
    yield "ls", ("ls", "--rows", table)
    yield "why", ("why", table)
    yield "blame", ("blame", table, "1:536870912:2")
    yield "validate", ("validate", "--deep", table)
    yield "meta", ("meta", table / "delta_0000001_0000001_0000" / "bucket_00000")
    yield "explain", ("explain", "few-deltas", "14", "V26", "conflict")
    yield "explain", ("explain",)
    yield "doctor", ("doctor",)
    yield "repair", ("repair", "--only", "key-index", "--dry-run", table)
    yield "nightly", (*NIGHTLY, "--dry-run", table)
    yield "compact", ("compact", "--assume-committed=0s", "--auto", "--dry-run", table)
    yield "compact", (*COMPACT, "--dry-run", table)
    yield "compact", (*COMPACT, table)
    yield "compact", (*COMPACT, table)
    yield "status", ("status", table)
    yield "ls", ("ls", table)
    yield "why", ("why", table)
    yield "clean", ("clean", "--dry-run", table)
    yield "clean", (*CLEAN_NOW, "--dry-run", table)
    yield "clean", (*CLEAN_NOW, table)
    yield "clean", (*CLEAN_NOW, table)
    yield "restore", ("restore", "--list", table)
    yield "restore", ("restore", table)
    yield "clean", (*CLEAN_NOW, table)
    yield "nightly", (*NIGHTLY, "--yes", "--state", table.parent / "state", table)
    yield "restore", ("purge", "--yes", table)
    yield "history", ("history", table)
    yield "log", ("log", table)
    yield "report", ("report", table)
    yield "report", ("report", table.parent)
    yield "erasure", ("erasure", "--prove", "--where", "id = 1", table)
    yield "erasure", ("erasure", "--where", "id = 1", table.parent)


def test_every_output_is_as_its_schema_says(acidctl: Acidctl, crud: Path) -> None:
    assert problems("diff-count", acidctl("diff", "--from", "1", "--count", crud).out) == []
    assert problems("cat-checksum", acidctl("cat", "--checksum", crud).out) == []
    for name, line in lines(crud):
        found = acidctl(*line, "-o", "json")
        assert found.out, (line, found.err)
        assert problems(name, found.out) == [], line


def test_findings_repairs_and_failures(acidctl: Acidctl, crud: Path) -> None:
    (crud / "delta_0000001_0000001_0000" / "_orc_acid_version").unlink()
    (crud / "delta_0000002_0000002_0000" / "bucket_00000").write_bytes(b"bad")
    mend = ("repair", "--only", "version-file")
    for name, line in (
        ("validate", ("validate", "--footers", crud)),
        ("repair", (*mend, "--dry-run", crud)),
        ("repair", (*mend, "--force", "--yes", crud)),
        ("restore", ("restore", "--list", crud)),
        ("restore", ("restore", crud)),
        ("compact", (*COMPACT, crud)),
        ("clean", ("clean", crud / "missing")),
    ):
        found = acidctl(*line, "-o", "json")
        if found.out.strip() not in ("", "[]"):
            assert problems(name, found.out) == [], line


def test_what_a_metastore_knows(acidctl: Acidctl, tmp_path: Path) -> None:
    with FakeHive(4) as fake:
        fake.table("db", "t", f"file:{tmp_path}", ["day"], {"compactor.a": "b"})
        fake.partition("db", "t", "day=1")
        txn = fake.begin(ago=9000, query="q")
        held = fake.lock("db", "t", txn=txn)
        fake.lock("db", "t", blocked_by=held, ago=9000)
        fake.entry("db", "t", "ready for cleaning", "day=1", committed=9000, next_txn=txn + 1)
        fake.entry("db", "t", "initiated", "day=2", enqueued=90_000)
        for line in (
            ("hive", "tables", "--partitions"), ("hive", "txns"), ("hive", "txns", "--blocking"), ("hive", "locks"),
            ("hive", "compactions"),
            ("hive", "compactions", "--stuck"), ("doctor",),
        ):  # fmt: skip
            found = acidctl(*line, "-o", "json", "--metastore", fake.address)
            assert problems(command_in(line).replace(" ", "-"), found.out) == [], line


def test_what_is_changed_in_a_metastore(acidctl: Acidctl, tmp_path: Path) -> None:
    with FakeHive(4) as fake:
        for name in ("t", "u"):
            fake.table("db", name, f"file:{tmp_path / name}")
            (tmp_path / name).mkdir()
        alive, dead, failing = fake.begin(), fake.begin(ago=9000), fake.begin(ago=9000)
        fake.lock("db", "t", txn=dead)
        fake.lock("db", "t", ago=9000)
        waiting = fake.entry("db", "t", "initiated")
        lines: tuple[tuple[str, tuple[Any, ...], set[str]], ...] = (
            ("hive-request", ("hive", "request", "--major", "--dry-run", "hive:db.*"), {"planned"}),
            ("hive-request", ("hive", "request", "--major", "hive:db.*"), {"refused", "requested"}),
            ("hive-rescue", ("hive", "rescue", "--dry-run", "hive:db.*"), {"nothing-found"}),
            ("hive-abort-txn", ("hive", "abort", "txn", "--dry-run", alive, dead), {"planned"}),
            ("hive-abort-txn", ("hive", "abort", "txn", "--yes", alive), {"aborted"}),
            ("hive-abort-compaction", ("hive", "abort", "compaction", "--dry-run", waiting), {"planned"}),
            ("hive-abort-compaction", ("hive", "abort", "compaction", "--yes", waiting), {"aborted"}),
            ("hive-housekeep", ("hive", "housekeep", "--dry-run"), {"planned"}),
            ("hive-abort-txn", ("hive", "abort", "txn", "--yes", failing), {"failed"}),
            ("hive-housekeep", ("hive", "housekeep", "--yes"), {"ended"}),
            ("hive-worker", ("hive", "worker", "--once", "--engine", "local"), {"nothing-to-do"}),
            ("hive-request", ("hive", "request", "--minor", "hive:db.t"), {"failed"}),
        )
        for name, line, results in lines:
            if "failed" in results:
                fake.fault("abort_txn" if name == "hive-abort-txn" else "compact2", "failed")
            form = "jsonl" if name == "hive-worker" else "json"
            found = acidctl(*map(str, line), "-o", form, "--metastore", fake.address)
            text = f"[{','.join(found.out.splitlines())}]" if form == "jsonl" else found.out
            assert problems(name, text) == [], line
            assert {one["result"] for one in json.loads(text)} == results, (line, found.err)


def test_what_one_look_says_of_a_metastore(acidctl: Acidctl, tmp_path: Path) -> None:
    with FakeHive(4) as fake:
        fake.table("db", "t", f"file:{make(tmp_path / 't', 'base_5_v9', 'delta_4_4_0', 'delta_3_3_0')}")
        txn = fake.begin(ago=90_000, query="q")
        fake.lock("db", "t", txn=txn, ago=90_000)
        fake.entry("db", "t", "ready for cleaning", committed=9000, next_txn=txn + 1)
        fake.entry("db", "t", "initiated", enqueued=90_000)
        for name in ("status", "report"):
            found = acidctl(name, "-o", "json", "--metastore", fake.address, "hive:db.*")
            assert problems(name, found.out) == [], name
            one = json.loads(found.out)
            assert one["stuck"]["first"], one
            assert one["blocked"]["first"], one


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"schema_version": 1, "disappeared": "1", "appeared": 0, "snapshotSource": {"from": "x", "server": null, '
         '"at": null}}', "disappeared: '1' is not of type 'integer'"),
        ('{"schema_version": 2, "disappeared": 1, "appeared": 0, "snapshotSource": {"from": "x", "server": null, '
         '"at": null}}', "schema_version: 1 was expected"),
        ('{"schema_version": 1, "disappeared": 1, "appeared": 0, "snapshotSource": {"from": "x", "server": null, '
         '"at": null}, "more": 1}', ": Additional properties are not allowed ('more' was unexpected)"),
    ],
)  # fmt: skip
def test_what_is_otherwise_is_found(text: str, problem: str) -> None:
    assert problems("diff-count", text) == [problem]
