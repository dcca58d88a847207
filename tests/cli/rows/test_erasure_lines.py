"""The lines of other commands that `erasure` prints say what was said to it, but for secrets."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
from support.tables import age

from acidctl.storage.registry import open_location


@pytest.fixture
def worn(acidctl: Any, tmp_path: Path) -> Path:
    acidctl("demo", tmp_path / "sales.db" / "worn")
    return tmp_path / "sales.db" / "worn"


def printed(acidctl: Any, *told: str | Path, before: tuple[str | Path, ...] = ()) -> list[str]:
    found = acidctl(*before, "erasure", "--where", "id > 0", "-o", "json", *told).json()["locations"]
    steps = [step["command"] for one in found for step in one["steps"]]
    return [line for line in steps if line and " compact " in line]


def test_of_the_storage_what_was_said(acidctl: Any, worn: Path, tmp_path: Path) -> None:
    """Of secrets the names: they would stand in logs."""
    url = "memory://advised/sales.db/worn"
    fs, path = open_location(url)
    for file in worn.rglob("*_*"):
        if file.is_file():
            fs.make_dirs(f"{path}/{file.parent.name}")
            fs.write_bytes(f"{path}/{file.parent.name}/{file.name}", file.read_bytes())
    config = tmp_path / "config"
    config.write_text("")
    told = ("--set", "storage.user=hive", "--set=storage.token=abcdefghij")
    (line,) = printed(acidctl, *told, url, before=("--config", config))
    words = "--set=storage.user=hive '--set=storage.token=***'"
    assert line == f"acidctl --config={config} compact --major {words} memory:///advised/sales.db/worn"


def test_of_the_metastore_what_was_said(acidctl: Any, worn: Path) -> None:
    told = ("--metastore=none", "--set=metastore.timeout=7", "--set", "metastore.password=abc", "--exclude=db.x")
    (line,) = printed(acidctl, *told, worn)
    words = "--metastore=none --set=metastore.timeout=7 '--set=metastore.password=***'"
    assert line == f"acidctl compact --major {words} {worn}"


@pytest.mark.parametrize(
    "told",
    [
        ("--assume-committed", "1h"),
        ("--assume-committed=90m", "--snapshot", "txns=5:5:5:"),
        ("--snapshot", "42$sales.worn:3:9223372036854775807::$sales.fresh:3:9223372036854775807::"),
        ("--snapshot", "@{lists}"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_they_are_not_refused(acidctl: Any, worn: Path, told: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "my lists").write_text("sales.worn:3:9223372036854775807::\nsales.fresh:3:9223372036854775807::\n")
    told = tuple(word.replace("{lists}", str(tmp_path / "my lists")) for word in told)
    age(worn, 2)
    (command,) = printed(acidctl, *told, worn)
    done = acidctl(*shlex.split(command)[1:], "--engine", "local")
    assert (done.status, " -> base_0000003, " in done.out) == (0, True), (command, done.err)
