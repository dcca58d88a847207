"""Limits of one file as users set and meet them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import orc, parquet
from support.files import parquet_made
from support.files.parquet_made import LIST_OF_NUMBERS, Column

from acidctl.orc import limits

Acidctl = Callable[..., Any]
VARIABLE = limits.STRIPE_MEMORY.variable


@pytest.fixture(autouse=True)
def own_world(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("ACIDCTL_")]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(limits, "_configured", set())


@pytest.fixture
def config(tmp_path: Path) -> Callable[[str], Path]:
    def write(text: str) -> Path:
        path = tmp_path / "config.toml"
        path.write_text(text)
        path.chmod(0o600)
        return path

    return write


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """An insert-only table whose two files take 1 MB each."""
    for i in (1, 2):
        directory = tmp_path / "t" / f"delta_000000{i}_000000{i}_0000"
        directory.mkdir(parents=True)
        orc.write_table(pa.table({"a": ["x" * 10_000] * 100, "b": range(100)}), str(directory / "000000_0"))
    return tmp_path / "t"


def shape(table: Path) -> list[tuple[str, bytes]]:
    return sorted((str(path), path.read_bytes()) for path in table.rglob("*") if path.is_file())


def test_limits_of_a_configuration_count(acidctl: Acidctl, table: Path, config: Callable[[str], Path]) -> None:
    small = config('[limits]\nstripe-memory = "100K"\n[profile.large.limits]\nstripe-memory = "1G"')
    result = acidctl("--config", small, "cat", table)
    assert result.status == 4
    assert "or larger than the limit max-stripe-memory (100 KiB)" in result.err
    assert "set ACIDCTL_LIMIT_STRIPE_MEMORY, or stripe-memory below [limits] in the configuration, higher" in result.err
    assert acidctl("--config", small, "--profile", "large", "cat", table).status == 0
    assert acidctl("cat", table).status == 0


def test_the_environment_is_stronger(
    acidctl: Acidctl, table: Path, config: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    small = config('[limits]\nstripe-memory = "100K"')
    monkeypatch.setenv(VARIABLE, "1G")
    assert acidctl("--config", small, "cat", table).status == 0
    shown = acidctl("--config", small, "doctor").out
    assert "limits.stripe-memory" in shown
    assert f"{VARIABLE}=1G from environment" in " ".join(shown.split())


def test_shown_with_the_place_they_come_from(acidctl: Acidctl, config: Callable[[str], Path]) -> None:
    path = config('[limits]\nstripe-memory = "8G"\nstripes = 5')
    found = json.loads(acidctl("--config", path, "doctor", "-o", "json").out)["configuration"]["settings"]
    assert [(one["name"], one["value"], one["origin"]) for one in found] == [
        ("limits.stripe-memory", "8G", f"user file {path}"), ("limits.stripes", "5", f"user file {path}")
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[limits]\nstripe-memori = "8G"', "did you mean stripe-memory"),
        ('[limits]\nstripe-memory = "much"', "it is not a size"),
        ("[limits]\nstripe-memory = [1]", "it takes one value"),
        ("limits = 5", "it is not a table"),
        ("[limits]\nstripe-memory = -1", "it is not a size"),
    ],
)
def test_limit_that_is_no_size_is_refused(
    acidctl: Acidctl, config: Callable[[str], Path], text: str, words: str
) -> None:
    result = acidctl("--config", config(text), "ls", "/none")
    assert result.status == 2
    assert words in result.err


def test_a_variable_for_no_limit(acidctl: Acidctl, table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACIDCTL_LIMIT_STRIPES_MEMORY", "1G")
    done = acidctl("ls", table)
    assert done.status == 2
    assert "ACIDCTL_LIMIT_STRIPES_MEMORY is set, but there is no such limit" in done.err
    assert "ACIDCTL_LIMIT_STRIPE_MEMORY" in done.err


def bomb() -> bytes:
    """One list of more than 4 GiB."""
    from support.files.parquet_made import NUMBERS, in_one_list

    column = Column(2, ["a", "list", "element"], 1, NUMBERS + in_one_list(1 << 28), len(NUMBERS))
    return parquet_made.parquet(LIST_OF_NUMBERS, [column], 1)


@pytest.mark.parametrize("kind", ["--major", "--minor"])
@pytest.mark.parametrize("form", ["ORC", "Parquet", "encoded"])
def test_compactions_leave_nothing_behind(
    acidctl: Acidctl, table: Path, kind: str, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = table / "delta_0000001_0000001_0000" / "000000_0"
    if form == "Parquet":
        first.write_bytes(bomb())
        monkeypatch.setenv(VARIABLE, "100M")
        numbers = pa.table({"a": [[1, 2]]})
        parquet.write_table(numbers, table / "delta_0000002_0000002_0000" / "000000_0")
    else:
        monkeypatch.setenv(VARIABLE, "100K")  # workers have it, too
    before = shape(table)
    line = ("compact", kind, "--engine", "local", "--assume-committed=0s", "--table-type", "insert-only")
    more = ("--property", "orc.compress=snappy") if form == "encoded" else ()
    result = acidctl(*line, *more, table)
    assert (result.status, "larger than the limit max-" in result.err) == (4, True), result.err
    assert shape(table) == before
    assert sorted(path.name for path in table.iterdir()) == sorted({Path(name).parent.name for name, _ in before})
