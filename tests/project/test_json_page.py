"""docs/reference/json.md names every key that the commands print."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.metastore.fake_hive import FakeHive
from support.paths import REPO
from support.tables import CLEAN_NOW

from acidctl.cli.command_table import command_in

Acidctl = Callable[..., Any]
PAGE = (REPO / "docs" / "reference" / "json.md").read_text("utf-8")
MAJOR = ("compact", "--assume-committed=0s", "--major", "--engine", "local")
LOCAL = ("location", "result", "schema_version", "error", "code", "reason", "snapshotSource", "from", "server", "at")
"""Said of all commands at once."""
BY_VALUE = {"userMetadata", "evidence", "thresholds", "job", "calls", "compactions"}
"""Objects whose keys are those of a file or of a rule."""


def said(command: str) -> set[str]:
    """What stands in back quotes in the section of a command, and in the sections that it refers to."""
    sections = dict(re.findall(r"^## ((?:hive )?[\w-]+).*?\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
    more = {"why": ["ls"], "purge": ["restore"], "hive abort": ["hive txns", "hive compactions"],
            "hive housekeep": ["hive txns"], "report": ["status", "ls"],
            "nightly": ["compact", "clean", "restore"]}.get(command, [])  # fmt: skip
    text = "".join(sections.get(name, "") for name in (command, *more))
    return {word for span in re.findall(r"`([^`\n]+)`", text) for word in re.findall(r"\w+", span)}


def keys(value: Any) -> Iterator[str]:
    """Of all objects in a document."""
    if isinstance(value, list):
        for one in value:
            yield from keys(one)
    if isinstance(value, dict):
        for key, one in value.items():
            yield key
            if key not in BY_VALUE:
                yield from keys(one)


def undocumented(command: str, text: str) -> set[str]:
    return set(keys(json.loads(text))) - said(command) - set(LOCAL)


@pytest.mark.parametrize(
    "line",
    [
        ("ls", "T"), ("why", "T"), ("history", "T"), ("blame", "T", "1:536870912:2"), ("doctor",),
        ("report", "T"),
        ("diff", "T", "--from", "1", "--count"), ("validate", "--deep", "T"),
        ("meta", "T/delta_0000001_0000001_0000/bucket_00000"), (*MAJOR, "--dry-run", "T"), (*MAJOR, "T"),
        ("compact", "--assume-committed=0s", "--auto", "--dry-run", "T"),
        ("repair", "T"), ("clean", "T"), ("erasure", "--where", "id = 9", "-o", "json", "T"),
        ("nightly", "--assume-committed=0s", "--engine", "local", "--min-deltas", "2", "--dry-run", "T"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_keys_are_on_the_page(acidctl: Acidctl, crud: Path, line: tuple[str, ...]) -> None:
    words = [word.replace("T", str(crud), 1) if word[0] == "T" else word for word in line]
    found = acidctl(*words, *(() if "--count" in words else ("-o", "json")))
    assert found.status == 0, found.err
    assert undocumented(line[0], found.out) == set()


def test_who_says_what_counts_stands_in_every_object(acidctl: Acidctl, crud: Path) -> None:
    everything = {"from": "everything", "server": None, "at": None}
    assert all(f"`{key}`" in PAGE.partition("\n## ")[0] for key in ("snapshotSource", *everything))
    for line in (("ls",), ("why",), ("history",), ("clean",), ("validate",)):
        assert acidctl(*line, crud, "-o", "json").one()["snapshotSource"] == everything, line
    told = ("--snapshot", "crud_table:3:9223372036854775807::")
    for line in (("diff", "--from", "1", "--count", crud), ("blame", "-o", "json", crud, "1:536870912:2")):
        assert acidctl(*line).json()["snapshotSource"] == everything, line
        assert acidctl(*line, *told).json()["snapshotSource"]["from"] == "write-ids", line
    for line in ((*MAJOR, "--dry-run"), MAJOR):
        assert acidctl(*line, crud, "-o", "json").one()["snapshotSource"]["from"] == "assumption"


def test_the_example_has_the_keys_of_ls(acidctl: Acidctl, crud: Path) -> None:
    (example,) = re.findall(r"^```json\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert set(keys(json.loads(example))) == set(keys(acidctl("ls", "-o", "json", crud).json()))


def test_keys_of_a_cleaning_from_its_plan_to_its_end(acidctl: Acidctl, crud: Path) -> None:
    assert acidctl(*MAJOR, crud).status == 0
    assert undocumented("clean", acidctl("clean", "-o", "json", crud).out) == set()  # too young
    for line in (
        (*CLEAN_NOW, "--dry-run"), CLEAN_NOW, ("restore", "--list"), ("restore", "--dry-run"), ("restore", "--yes"),
        CLEAN_NOW, ("purge", "--yes"),
    ):  # fmt: skip
        found = acidctl(*line, "-o", "json", crud)
        assert json.loads(found.out), found.err
        assert undocumented(line[0], found.out) == set()


def test_keys_of_what_a_metastore_knows(acidctl: Acidctl, tmp_path: Path) -> None:
    with FakeHive(4) as fake:
        fake.table("db", "t", f"file:{tmp_path}", ["day"], {"compactor.a": "b"})
        fake.partition("db", "t", "day=1")
        txn = fake.begin(ago=9000, query="q")
        held = fake.lock("db", "t", txn=txn)
        fake.lock("db", "t", blocked_by=held, ago=9000)
        fake.entry("db", "t", "ready for cleaning", "day=1", committed=9000, next_txn=txn + 1)
        waits = fake.entry("db", "t", "initiated", "day=2", enqueued=90_000)
        for line in (
            ("hive", "tables", "--partitions"), ("hive", "txns"), ("hive", "txns", "--blocking"), ("hive", "locks"),
            ("hive", "compactions"),
            ("hive", "compactions", "--stuck"), ("hive", "request", "--major", "hive:db.t"),
            ("hive", "request", "--minor", "hive:db.t"), ("hive", "housekeep", "-n"),
            ("hive", "abort", "txn", "-n", str(txn)), ("hive", "abort", "compaction", "--yes", str(waits)),
            ("doctor",),
        ):  # fmt: skip
            found = acidctl(*line, "-o", "json", "--metastore", fake.address)
            assert json.loads(found.out), (line, found.err)
            assert undocumented(command_in(line), found.out) == set(), line


def test_keys_of_findings_and_of_a_repair(acidctl: Acidctl, crud: Path) -> None:
    (crud / "delta_0000001_0000001_0000" / "_orc_acid_version").unlink()
    (crud / "delta_0000002_0000002_0000" / "bucket_00000").write_bytes(b"bad")
    found = acidctl("validate", "--footers", "-o", "json", crud)
    assert found.one()["findings"]
    assert undocumented("validate", found.out) == set()
    refused = acidctl("repair", "--only", "version-file", "--dry-run", "-o", "json", crud)  # it is young
    assert refused.one()["refused"]
    assert undocumented("repair", refused.out) == set()
    mend = ("repair", "--only", "version-file", "--force")
    for line in ((*mend, "--dry-run"), (*mend, "--yes"), ("restore", "--list"), ("restore",)):
        found = acidctl(*line, "-o", "json", crud)
        assert found.status == 0, found.err
        assert undocumented(line[0], found.out) == set()


def test_a_missing_key_is_found() -> None:
    assert undocumented("ls", '[{"entries": [{"colour": 1}], "base": null}]') == {"colour"}
    assert undocumented("cat", '{"x": 1}') == {"x"}
