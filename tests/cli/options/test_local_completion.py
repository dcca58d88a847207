"""What a shell offers from the table on its line."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.shell_completion import BashComplete
from support.tables import CLEAN_NOW, age, make

from acidctl.cli.main import cli


def offered(line: list[str], incomplete: str) -> list[str]:
    found = BashComplete(cli, {}, "acidctl", "_ACIDCTL_COMPLETE").get_completions(line, incomplete)
    return [one.value for one in found]


def test_directories_and_columns_of_a_table(crud: Path) -> None:
    every = ["delete_delta_0000002_0000002_0000", "delete_delta_0000003_0000003_0000"]
    assert offered(["why", str(crud)], "delete") == every
    assert offered(["cat", str(crud), "--columns"], "") == ["id", "value"]
    assert offered(["cat", str(crud), "--columns"], "id,v") == ["id,value"]
    assert offered(["compact", "--major", str(crud), "--order-by"], "I") == ["id"]


def test_partitions(tmp_path: Path) -> None:
    for day in (1, 2):
        make(tmp_path / "t" / f"day={day}" / "hour=7", "delta_1_1")
    assert offered(["cat", str(tmp_path / "t"), "--partition"], "") == ["day=1", "day=2", "hour=7"]
    assert offered(["cat", str(tmp_path / "t"), "--partition"], "day=2") == ["day=2"]


def test_runs(acidctl, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    table = make(tmp_path / "t", "base_2", "delta_1_1")
    age(table, 48)
    assert acidctl(*CLEAN_NOW, table).status == 0
    (run,) = (path.name for path in (table / ".acidctl-trash").iterdir())
    assert offered(["restore", str(table), "--run"], run[:4]) == [run]
    assert offered(["restore", str(table), "--run"], "x") == []


def test_profiles_rules_and_columns_of_lists(tmp_path: Path) -> None:
    config = tmp_path / "c.toml"
    config.write_text('[profile.prod.ls]\nsort = "size"\n[profile.test.ls]\nsort = "name"\n')
    assert offered(["--config", str(config), "--profile"], "p") == ["prod"]
    assert "V26" in offered(["validate", "--rule"], "v2")
    assert offered(["ls", "--columns"], "location,delt") == ["location,deltas"]
    assert offered(["ls", "--sort"], "gai") == ["gain"]
    assert offered(["hive", "tables", "--columns"], "own") == ["owner"]


@pytest.mark.parametrize("place", ["nowhere", "hive:sales.orders", "s3://bucket/t", "/etc/hostname"])
def test_nothing_is_offered_of_what_cannot_be_read_at_once(place: str) -> None:
    assert offered(["why", place], "") == []
    assert offered(["cat", place, "--columns"], "") == []
    assert offered(["cat", place, "--partition"], "") == []
    assert offered(["restore", place, "--run"], "") == []


def test_names_that_a_terminal_would_act_on_are_left_out(tmp_path: Path) -> None:
    (make(tmp_path / "t", "delta_1_1") / "delta_2_2\x1b[2J").mkdir()
    assert offered(["why", str(tmp_path / "t")], "") == ["delta_1_1"]


def test_options_of_the_program_stand_behind_a_command_too(crud: Path) -> None:
    assert offered(["clean", str(crud)], "--col") == ["--color"]
    assert offered(["clean", str(crud), "--color"], "n") == ["never"]
    assert offered(["clean", "-q", str(crud)], "--lock-") == ["--lock-wait"]
