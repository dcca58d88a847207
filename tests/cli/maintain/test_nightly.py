"""`nightly` by its options: what is decided, ranked, done, left for later and said."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.command_line import Result
from support.made.due import write_deltas
from support.tables import age, make, read_rows

import acidctl
from acidctl.cleaning.trash import TRASH
from acidctl.location.change.journal import MANIFEST
from acidctl.verbs.maintain_options import NightlyOptions
from acidctl.verbs.policy import Policies, TablePolicy

Acidctl = Callable[..., Result]
DUE = ("nightly", "--engine", "local", "--assume-committed=1h", "--min-deltas", "3")


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def warehouse(tmp_path: Path, state: Path) -> Path:
    """Due: sales.orders, two partitions of sales.days; not due: sales.small."""
    found = tmp_path / "warehouse"
    sales = found / "sales.db"
    write_deltas(sales / "orders", 1, 5)
    write_deltas(sales / "days" / "day=1", 1, 3)
    write_deltas(sales / "days" / "day=2", 1, 9)
    write_deltas(sales / "small", 1, 2)
    age(found, 30)
    return found


def ranked(found: Result, part: str, result: str = "planned") -> list[str]:
    steps = [step for step in found.lines() if (step["part"], step["result"]) == (part, result)]
    return [step["location"].partition("sales.db/")[2] for step in steps]


def write_config(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "config.toml"
    path.write_text(text)
    path.chmod(0o600)
    return path


def test_a_property_that_cannot_be_used_stops_all(acidctl: Acidctl, warehouse: Path) -> None:
    make(warehouse / "sales.db" / "old", "base_5", "delta_4_4_0")
    age(warehouse, 30)
    before = sorted(map(str, warehouse.rglob("*")))
    found = acidctl(*DUE, "--yes", "--property", "orc.compres=zlib", warehouse)
    assert (found.status, sorted(map(str, warehouse.rglob("*")))) == (2, before)
    assert "orc.compress" in found.err


def test_a_dry_run_ranks_by_gain_and_changes_nothing(acidctl: Acidctl, warehouse: Path, state: Path) -> None:
    before = sorted(map(str, warehouse.rglob("*")))
    found = acidctl(*DUE, "--dry-run", "-o", "jsonl", warehouse)
    assert found.status == 0, found.err
    steps = {step["location"]: step for step in found.lines() if step["part"] == "compact"}
    names = ranked(found, "compact")
    gains = [steps[str(warehouse / "sales.db" / name)]["gain"] for name in names]
    assert set(names) == {"orders", "days/day=1", "days/day=2"}
    assert gains == sorted(gains, reverse=True)
    assert gains[0] > gains[-1]
    listed = acidctl("ls", "-o", "json", warehouse).json()
    listed.sort(key=lambda one: one["gain"] or 0.0, reverse=True)
    assert [one["location"].partition("sales.db/")[2] for one in listed if one["gain"]][:3] == names
    assert sorted(map(str, warehouse.rglob("*"))) == before
    assert not state.exists()
    assert "3 to compact" in found.err


def test_nights_compact_then_clean_then_purge_under_one_id(acidctl: Acidctl, warehouse: Path, tmp_path: Path) -> None:
    rows = {table: len(read_rows(table)) for table in (warehouse / "sales.db").iterdir() if table.name != "days"}
    first = acidctl(*DUE, "--yes", "--metrics-file", tmp_path / "r.prom", warehouse)
    assert first.status == 0, first.err
    assert "3 compacted" in first.err
    figures = (tmp_path / "r.prom").read_text()
    assert 'acidctl_locations{command="nightly",result="compacted"} 3' in figures
    assert f'location="{warehouse}/sales.db/orders",state="obsolete"}} 5' in figures
    age(warehouse, 48)
    second = acidctl(*DUE, "--yes", "-o", "jsonl", warehouse)
    runs = {step["trashRun"] for step in second.lines() if step["result"] == "cleaned"}
    assert runs == {step["run"] for step in second.lines()}
    assert len(runs) == 1
    assert len(ranked(second, "clean", "cleaned")) == 3
    undone = acidctl("restore", "--yes", "--run", *runs, warehouse)
    assert "3 locations: 3 restored" in undone.err
    third = acidctl(*DUE, "--yes", "--purge-older-than", "0", warehouse)
    assert "3 cleaned" in third.err
    assert " purged" not in third.err, "nothing that this very run cleaned"
    assert "undo: acidctl restore --run" in third.err
    fourth = acidctl(*DUE, "--yes", "--purge-older-than", "0", warehouse)
    assert "3 purged" in fourth.err
    assert acidctl(*DUE, "--yes", "--exit-code", warehouse).status == 12
    assert {table: len(read_rows(table)) for table in rows} == rows


def test_what_one_night_cleaned_is_purged_by_its_id(acidctl: Acidctl, warehouse: Path) -> None:
    assert acidctl(*DUE, "--yes", warehouse).status == 0
    age(warehouse, 48)
    cleaned = acidctl(*DUE, "--yes", "-o", "jsonl", warehouse).lines()
    (night,) = {step["run"] for step in cleaned}
    assert acidctl("purge", "--yes", "--run", "20200101T000000.000Z-12345678", warehouse).status == 3
    purged = acidctl("purge", "--yes", "--run", night, "-o", "jsonl", warehouse)
    gone = {step["location"] for step in purged.lines() if step["result"] == "purged"}
    assert gone == {step["location"] for step in cleaned if step["result"] == "cleaned"}
    assert len(gone) == 3
    assert not [entry for entry in warehouse.rglob("*") if entry.name.startswith(night)]


def test_all_that_a_night_did_is_known_by_its_id(acidctl: Acidctl, warehouse: Path, tmp_path: Path) -> None:
    orders = warehouse / "sales.db" / "orders"
    runs = []
    for first in (6, 11):  # what a night compacts the next one cleans, and the third one purges
        done = acidctl(*DUE, "--yes", "-o", "jsonl", warehouse)
        assert done.status == 0, done.err
        runs.append(done.lines()[0]["run"])
        age(warehouse, 48)
        write_deltas(orders, first, first + 4)
        age(orders, 30)
    nothing = acidctl("restore", "--yes", "--run", runs[0], warehouse)
    assert nothing.status == 3
    assert f"that run compacted {warehouse}" in nothing.err
    assert "and 2 more locations" in nothing.err
    assert "readers see the same rows" in nothing.err
    assert f"night {runs[0]}" not in nothing.err, "that is what was asked for"
    logged = acidctl("log", "-o", "json", orders).json()
    assert [(one["verb"], one["run"], one["facts"]["night"]) for one in logged] == [
        ("clean", runs[1], runs[1]), ("compact", runs[1], runs[1]), ("compact", runs[0], runs[0]),
    ]  # fmt: skip
    assert acidctl("log", orders).out.count(f"run {runs[1]}") == 2
    rows = read_rows(orders)
    restored = acidctl("restore", "--run", runs[1], orders)
    assert restored.status == 0
    assert f"that run compacted {orders}, which stays as it is" in restored.err
    assert read_rows(orders) == rows
    days = warehouse / "sales.db" / "days" / "day=1"
    assert acidctl(*DUE, "--yes", "--purge-older-than", "0", warehouse).status == 0
    purged = acidctl("log", "-o", "json", "-n", "1", days).one()
    assert (purged["verb"], purged["run"]) == ("purge", runs[1])
    assert purged["facts"]["night"] > runs[1]


def test_what_bytes_do_not_reach_is_left(acidctl: Acidctl, warehouse: Path) -> None:
    every = acidctl(*DUE, "--dry-run", "-o", "jsonl", warehouse)
    sizes = {step["location"]: step["inputBytes"] for step in every.lines() if step["result"] == "planned"}
    *_, last = ranked(every, "compact")
    budget = sum(sizes.values()) - 1
    found = acidctl(*DUE, "--yes", "--exit-code", "--max-bytes", budget, "-o", "jsonl", warehouse)
    assert found.status == 13
    assert ranked(found, "compact", "postponed") == [last]
    assert ranked(acidctl(*DUE, "--dry-run", "-o", "jsonl", warehouse), "compact") == [last]


def test_when_the_time_is_up_all_is_left_for_later(acidctl: Acidctl, warehouse: Path) -> None:
    found = acidctl(*DUE, "--yes", "--exit-code", "--deadline", "0", "-o", "jsonl", warehouse)
    assert found.status == 13
    assert {(step["part"], step["result"]) for step in found.lines()} == {
        ("compact", "postponed"), ("clean", "postponed"), ("purge", "postponed"),
    }  # fmt: skip
    assert not list(warehouse.rglob("base_*"))
    assert acidctl(*DUE, "--yes", "--exit-code", "--deadline", "10m", warehouse).status == 0


def test_policies_exclude_choose_and_rank(acidctl: Acidctl, warehouse: Path, tmp_path: Path) -> None:
    config = write_config(
        tmp_path,
        '[policy."sales.*"]\nexclude = true\n[policy."sales.days"]\nexclude = false\npriority = 3\nmin-deltas = 4\n'
        '[policy."sales.orders"]\nexclude = false\nkind = "minor"\n[policy."*"]\npriority = 9\nolder-than = "2h"\n'
        '[policy."sales.small"]\nexclude = false\nmin-deltas = 2\n',
    )
    found = acidctl("--config", config, *DUE, "--dry-run", "-o", "jsonl", warehouse)
    assert found.status == 0, found.err
    assert ranked(found, "compact")[-1] == "days/day=2"
    assert set(ranked(found, "compact")) == {"orders", "small", "days/day=2"}
    steps = {step["location"].rpartition("/")[2]: step for step in found.lines() if step["part"] == "compact"}
    assert steps["orders"]["kind"] == "minor"
    assert steps["orders"]["policy"] == ["sales.orders", "sales.*", "*"]
    write_deltas(warehouse / "sales.db" / "tmp_x", 1, 8)
    age(warehouse, 30)
    left = acidctl("--config", config, *DUE, "--yes", "-o", "jsonl", warehouse)
    (skipped,) = [step for step in left.lines() if step["result"] == "skipped"]
    assert (skipped["code"], skipped["location"].rpartition("/")[2]) == ("excluded", "tmp_x")
    assert "the policy of sales.* excludes" in skipped["reason"]
    assert not list((warehouse / "sales.db" / "tmp_x").glob("base_*"))


def test_old_partitions_may_have_a_policy_of_their_own(acidctl: Acidctl, tmp_path: Path, state: Path) -> None:
    logs = tmp_path / "sales.db" / "logs"
    for day in ("2020-01-01", "2999-01-01"):
        write_deltas(logs / f"dt={day}", 1, 12)
    age(tmp_path, 30)
    config = write_config(tmp_path, '[policy."sales.*/older-than=30d"]\nexclude = true\n')
    found = acidctl("--config", config, *DUE, "--dry-run", "-o", "jsonl", tmp_path / "sales.db")
    results = {
        step["location"].rpartition("/")[2]: step["result"] for step in found.lines() if step["part"] == "compact"
    }
    assert results == {"dt=2020-01-01": "skipped", "dt=2999-01-01": "planned"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[policy."sales.*"]\nexlude = true\n', "did you mean exclude?"),
        ('[policy."sales.*"]\nolder_than = "2h"\n', "did you mean older-than"),
        ('[policy."sales.*"]\nnothing-near = 1\n', "keys: exclude, kind, priority, max-ratio"),
        ('[policy."sales.*"]\nolder-than = "10m"\n', "a retention below 1h is not safe"),
        ('[policy."sales.*"]\nolder-than = "soon"\n', "older-than is not a duration"),
        ('[policy."sales.*"]\nolder-than = 48\n', 'write it as "48h"'),
        ('[policy."sales.*"]\nmin-deltas = 0\n', "min-deltas cannot be 0"),
        ('[policy."sales.*"]\nkind = "majr"\n', "did you mean major?"),
        ('[policy."sales.*"]\nexclude = "yes"\n', "write true or false"),
        ('[policy."sales.*"]\npriority = true\n', "it is not a switch"),
        ('[policy."sales.*"]\nmax-ratio = "nan"\n', "nan"),
        ("[policy.sales.orders]\nexclude = true\n", '[policy."sales.orders"]'),
        ('[policy."/warehouse/sales.db"]\nexclude = true\n', "is not a pattern of names of tables"),
        ('[policy."hive:sales.*"]\nexclude = true\n', "is not a pattern of names of tables"),
        ("[policy]\nexclude = true\n", "it is not a table"),
        ('[polcy."sales.*"]\nexclude = true\n', "did you mean policy"),
        ('[profile.x.policy."sales.*"]\nexlude = true\n', "did you mean exclude?"),
    ],
)
def test_mistakes_in_policies_are_clear(
    acidctl: Acidctl, warehouse: Path, tmp_path: Path, text: str, said: str
) -> None:
    config = write_config(tmp_path, text)
    for line in ((*DUE, "--dry-run", warehouse), ("doctor",)):
        found = acidctl("--config", config, *line)
        assert found.status == 2, found.err
        assert said in found.err


def test_nobody_is_asked_without_a_terminal_and_nothing_is_assumed(acidctl: Acidctl, warehouse: Path) -> None:
    found = acidctl(*DUE, warehouse)
    assert found.status == 7
    assert "give --yes" in found.err
    assert "compact: " in found.out  # the plan
    untold = acidctl("nightly", "--engine", "local", "--yes", warehouse)
    assert untold.status == 7
    assert "--assume-committed" in untold.err
    unsafe = acidctl(*DUE, "--yes", "--older-than", "0", warehouse)
    assert unsafe.status == 2
    assert not list(warehouse.rglob("base_*"))


def test_the_verb_does_the_same(warehouse: Path, tmp_path: Path) -> None:
    policies = Policies({"sales.orders": TablePolicy(min_deltas=3)})
    tables, plan = acidctl.find(warehouse, assume_committed=3600), NightlyOptions(dry_run=True)
    planned = [*tables.nightly(plan, policies)]
    assert [step.location.rpartition("/")[2] for step in planned if step.result == "planned"] == ["orders"]
    assert not list(warehouse.rglob("base_*"))
    options = NightlyOptions(state=str(tmp_path / "state"))
    done = [*tables.nightly(options, policies)]
    assert [step.location.rpartition("/")[2] for step in done if step.is_changed] == ["orders"]
    assert not [step for step in done if step.error]


def test_a_damaged_run_in_the_trash_is_a_step_of_the_purge(acidctl: Acidctl, warehouse: Path) -> None:
    orders = warehouse / "sales.db" / "orders"
    for _ in range(2):
        assert acidctl(*DUE, "--yes", warehouse).status == 0
        age(warehouse, 48)
    (manifest,) = orders.glob(f"{TRASH}/*/{MANIFEST}")
    manifest.write_text("{")
    found = acidctl(*DUE, "--yes", "--purge-older-than", "0", "-o", "jsonl", warehouse)
    assert found.status == 4, found.err
    (failed,) = [step for step in found.lines() if step["result"] == "failed"]
    assert (failed["part"], failed["location"]) == ("purge", str(orders))
    assert len(ranked(found, "purge", "purged")) == 2
    assert manifest.exists()


def test_each_table_keeps_what_its_policy_says_and_the_largest_is_cleaned_first(
    acidctl: Acidctl, warehouse: Path, tmp_path: Path
) -> None:
    config = write_config(tmp_path, '[policy."sales.orders"]\nolder-than = "72h"\n')
    assert acidctl(*DUE, "--yes", warehouse).status == 0
    age(warehouse, 48)
    found = acidctl("--config", config, *DUE, "--yes", "--deadline", "1h", "-o", "jsonl", warehouse)
    assert found.status == 0, found.err
    assert ranked(found, "clean", "cleaned") == ["days/day=2", "days/day=1"]
    sizes = [step["bytes"] for step in found.lines() if step["result"] == "cleaned"]
    assert sizes == sorted(sizes, reverse=True)
    assert len(list((warehouse / "sales.db" / "orders").glob("delta_*"))) == 5
