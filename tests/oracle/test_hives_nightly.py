"""A night of acidctl over tables of a whole Hive 4.0.1: through its queue, cleaned by it or left to its cleaner."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.command_line import Result
from support.engines.hive_compactor import READY, clean_by_hive, compactions, names
from support.engines.hive_histories import History
from support.servers.hive_server import HiveServer
from support.tables import age

pytestmark = [pytest.mark.server, pytest.mark.timeout(900)]


def test_a_night_goes_through_hives_queue_and_leaves_its_cleaner_what_is_young(
    real_hives: Callable[[int], HiveServer], acidctl: Callable[..., Result], tmp_path: Path
) -> None:
    hive = real_hives(4)
    young, old, out = (History(hive, f"night_{name}", seed) for name, seed in (("young", 7), ("old", 8), ("out", 9)))
    for history in (young, old, out):
        for _ in range(4):
            history.step()
    before = {history.name: history.judge() for history in (young, old, out)}
    config = tmp_path / "config.toml"
    config.write_text(
        '[policy."default.night_*"]\nmin-deltas = 2\nkind = "major"\nolder-than = "2h"\n'
        '[policy."default.night_out"]\nexclude = true\n'
    )
    config.chmod(0o600)
    line = (
        "--config", config, "nightly", "--yes", "--engine", "local", "--state", tmp_path / "state", "-o", "jsonl",
        "--metastore", hive.metastore, "hive:default.night_*",
    )  # fmt: skip
    planned = acidctl(*line, "--dry-run")
    assert {one["location"].rpartition("/")[2] for one in planned.lines() if one["result"] == "planned"} == {
        young.name, old.name,
    }, planned.err  # fmt: skip
    night = acidctl(*line)
    assert night.status == 0, night.err
    assert {one["result"] for one in night.lines() if one["part"] == "compact"} == {"compacted", "skipped"}
    kept = [one for one in night.lines() if one["part"] == "clean"]
    assert {one["code"] for step in kept for one in step["waiting"]} == {"too-young"}
    assert [compactions(hive, history.name) for history in (young, old, out)] == [[READY], [READY], []]
    assert {history.name: history.judge() for history in (young, old, out)} == before
    age(old.path, 30)
    replaced = {name for name in names(old.path) if "_v" not in name}
    second = acidctl(*line)
    assert second.status == 0, second.err
    cleaned = [one for one in second.lines() if one["result"] == "cleaned"]
    assert [one["location"].rpartition("/")[2] for one in cleaned] == [old.name], second.out
    assert not replaced & names(old.path)
    for history in (young, old):
        clean_by_hive(hive, history.name)
        assert compactions(hive, history.name) == ["succeeded"]
    assert not [name for name in names(young.path) if name.startswith("delta")]
    assert {history.name: history.judge() for history in (young, old, out)} == before
    assert acidctl(*line, "--exit-code").status == 12
    undone = acidctl("restore", "--yes", "--run", cleaned[0]["run"], old.path)
    assert undone.status == 0, undone.err
    for history in (young, old, out):
        assert history.judge() == before[history.name]
        history.step()
        history.judge()
