"""What a shell offers: names of a metastore behind ``hive:``, and files for ``--tables``."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.shell_completion import BashComplete
from support.metastore.fake_hive import FakeHive
from support.paths import PYTHONPATH

from acidctl.cli.main import cli


@pytest.fixture
def fake() -> Iterator[FakeHive]:
    with FakeHive(4) as one:
        for name in ("orders", "old", "people"):
            one.table("sales", name, f"file:/w/{name}", ["day"] if name == "orders" else [])
        one.table("hr", "people", "file:/w/hr")
        one.partition("sales", "orders", "day=1")
        yield one


def offered(line: list[str], incomplete: str) -> list[str]:
    found = BashComplete(cli, {}, "acidctl", "_ACIDCTL_COMPLETE").get_completions(line, incomplete)
    return [one.value for one in found]


@pytest.mark.parametrize(
    ("typed", "names"),
    [
        ("hive:", ["hive:hr.", "hive:sales."]),
        ("hive:S", ["hive:sales."]),
        ("hive:sales.o", ["hive:sales.old", "hive:sales.orders"]),
        ("hive:sales.orders/", ["hive:sales.orders/day=1"]),
        ("hive:none.", []),
    ],
)
@pytest.mark.parametrize("command", ["ls", "clean", "cat", "hive request"])
def test_names(fake: FakeHive, command: str, typed: str, names: list[str]) -> None:
    assert offered([*command.split(), "--metastore", fake.address], typed) == names


def test_the_configured_metastore_is_asked(fake: FakeHive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "c.toml"
    config.write_text(f'[profile.p.metastore]\nuris = "{fake.address}"\n')
    assert offered(["--config", str(config), "--profile", "p", "ls"], "hive:h") == ["hive:hr."]
    assert offered(["--config", str(config), "ls"], "hive:h") == []
    (tmp_path / "hive-site.xml").write_text(
        f"<configuration><property><name>hive.metastore.uris</name><value>{fake.address}</value></property></configuration>"
    )
    monkeypatch.setenv("HIVE_CONF_DIR", str(tmp_path))
    assert offered(["ls"], "hive:h") == ["hive:hr."]
    words = {"_ACIDCTL_COMPLETE": "bash_complete", "COMP_WORDS": "acidctl ls hive:sales.p", "COMP_CWORD": "2"}
    done = subprocess.run(
        [sys.executable, "-m", "acidctl"],
        env={**os.environ, **words, "PYTHONPATH": PYTHONPATH},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("plain,hive:sales.people\n", "")


@pytest.mark.parametrize(
    "line",
    [
        ["ls"],
        ["ls", "--metastore", "thrift://127.0.0.1:1"],
        ["ls", "--metastore", "ftp://x"],
        ["ls", "--metastore", "thrift://x", "--set", "metastore.nothing"],
        ["--config", "/no/such/file", "ls"],
        ["--profile", "none", "ls"],
    ],
)
def test_nothing_is_said_where_nobody_answers(line: list[str]) -> None:
    assert offered(line, "hive:") == []


def test_files_are_left_to_the_shell(tmp_path: Path) -> None:
    found = BashComplete(cli, {}, "acidctl", "_ACIDCTL_COMPLETE").get_completions(["clean", "--tables"], "ni")
    assert [(one.type, one.value) for one in found] == [("file", "ni")]
    assert offered(["clean", "--tables", "/no/such/list"], "wa") == ["wa"]
