"""Nights that go wrong: killed anywhere, a full disk, a table that may not be written, two at once, Hive's names."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from support.command_line import Result
from support.made.due import write_deltas
from support.metastore.fake_hive import FakeHive
from support.paths import PYTHONPATH
from support.tables import age, read_rows
from support.terminals import Terminals
from support.trouble.crash import Death, Killed, a_dead_owner  # noqa: F401

import acidctl
from acidctl.base.errors import EnvironmentProblem
from acidctl.cleaning.retention import FLOOR_SECONDS
from acidctl.cleaning.trash import TRASH
from acidctl.location.change.lock import LOCK
from acidctl.location.change.own_files import Owner
from acidctl.metastore.interface import TxnState
from acidctl.verbs.maintain_options import NightlyOptions
from acidctl.verbs.nightly import Step
from acidctl.verbs.nightly_state import NightlyState
from acidctl.verbs.policy import Policies, TablePolicy

Acidctl = Callable[..., Result]
DUE = ("nightly", "--engine", "local", "--assume-committed=1h", "--min-deltas", "3", "--yes")
POLICIES = Policies({"*": TablePolicy(min_deltas=3, older_than=FLOOR_SECONDS, purge_older_than=0)})


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    """Three tables: one is due, one was compacted two days ago, and of one there is something in the trash, too."""
    sales = tmp_path / "warehouse" / "sales.db"
    for name in ("due", "old", "trash"):
        write_deltas(sales / name, 1, 4)
        age(sales / name, 60)
    night(sales / "old", tmp_path)
    night(sales / "trash", tmp_path)
    age(sales / "old", 48)
    age(sales / "trash", 48)
    night(sales / "trash", tmp_path)
    return sales.parent


def night(place: Path, tmp_path: Path) -> list[Step]:
    options = NightlyOptions(state=str(tmp_path / "state"))
    return [*acidctl.find(place, assume_committed=3600).nightly(options, POLICIES)]


def rows(warehouse: Path) -> dict[str, int]:
    return {table.name: len(read_rows(table)) for table in (warehouse / "sales.db").iterdir()}


def left(warehouse: Path) -> list[str]:
    """The directories, but for those of runs in the trash, and for staging that names no owner: a leftover."""
    found = [path for path in warehouse.rglob("*") if path.is_dir() and TRASH not in path.parts]
    owned = {path.parent for path in warehouse.rglob("_owner.json") if Owner.from_bytes(path.read_bytes())}
    found = [path for path in found if path in owned or not any(part.startswith("_tmp_") for part in path.parts)]
    return sorted(str(path.relative_to(warehouse)) for path in found)


def ends(said: str) -> list[dict[str, int]]:
    """How many locations each run compacted, cleaned, purged and failed at, by its last note; none is left out."""
    lines = re.findall(r"note: run \S+: [\d,]+ locations?: ([^\n]*)", said)
    counted = [re.findall(r"([\d,]+) (compacted|cleaned|purged|failed)\b", line) for line in lines]
    return [{what: int(count) for count, what in counts} for counts in counted]


@pytest.mark.sampled
@pytest.mark.parametrize("first", range(6))
def test_killed_anywhere_the_next_night_finishes(
    warehouse: Path, tmp_path: Path, first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy, undisturbed = tmp_path / "copy", tmp_path / "undisturbed"
    shutil.copytree(warehouse, copy)
    shutil.copytree(warehouse, undisturbed)
    before = rows(warehouse)
    night(undisturbed, tmp_path)
    step, at, is_killed = 24, first * 4, True
    while is_killed:
        shutil.rmtree(warehouse)
        shutil.copytree(copy, warehouse)
        is_killed = False
        with monkeypatch.context() as patch:
            Death(at).install(patch)
            try:
                night(warehouse, tmp_path)
            except Killed:
                is_killed = True
        assert rows(warehouse) == before, at
        steps = night(warehouse, tmp_path)
        assert not [one for one in steps if one.error], at
        night(warehouse, tmp_path)  # purges what was cleaned before the death
        assert rows(warehouse) == before, at
        assert left(warehouse) == left(undisturbed), at
        at += step


def test_a_full_disk_fails_what_needs_space_and_purges_all_the_same(warehouse: Path) -> None:
    if (
        shutil.which("unshare") is None
        or subprocess.run(
            ["unshare", "-rm", "mount", "-t", "tmpfs", "none", str(warehouse.parent)], check=False
        ).returncode
    ):
        pytest.skip("nothing may be mounted here, in a namespace of its own neither")
    root = warehouse.parent
    disk = root / "disk"
    disk.mkdir()
    config = root / "config.toml"
    config.write_text('[policy."*"]\npurge-older-than = "0"\nolder-than = "1h"\n')
    config.chmod(0o600)
    line = f"{sys.executable} -m acidctl --config {config} {' '.join(DUE)} --state {root}/state {disk}/warehouse"
    script = f"""mount -t tmpfs -o size=2m none {disk} && cp -a {warehouse} {disk}/ || exit 99
        dd if=/dev/zero of={disk}/big bs=1k 2>/dev/null
        {line}; echo first $?
        rm {disk}/big
        {line}; echo second $?
        {line}; echo third $?
        ls {disk}/warehouse/sales.db/*"""
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", script],
        capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": PYTHONPATH},
    )  # fmt: skip
    assert "first 6" in done.stdout, done.stderr
    assert "no space left" in done.stderr.lower()
    assert "second 0" in done.stdout, done.stderr
    assert "third 0" in done.stdout
    assert ends(done.stderr) == [{"failed": 3}, {"compacted": 1, "cleaned": 1, "purged": 1}, {"purged": 1}]
    assert "_tmp_" not in done.stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="another user is needed, and only root can become one")
def test_a_table_that_may_not_be_written_holds_up_no_other(
    terminal: Terminals, warehouse: Path, tmp_path: Path
) -> None:
    for table in (warehouse / "sales.db").iterdir():
        shutil.rmtree(table)
        write_deltas(table, 1, 4)
        age(table, 30)
        if table.name != "old":
            for path in (table, *table.rglob("*")):
                os.chown(path, 65534, 65534)
    for parent in (warehouse, *warehouse.parents):
        if len(parent.parts) > 2:
            parent.chmod(0o755)
    state = tmp_path / "nobody"
    state.mkdir()
    os.chown(state, 65534, 65534)
    status, said = terminal.run(*DUE, "--state", state, warehouse, nobody=True)
    assert status == 5, said
    assert ends(said) == [{"compacted": 2, "failed": 1}]
    assert "old" in said
    assert not list(warehouse.glob("*/old/base_*"))


def test_an_empty_warehouse_is_no_good_night_as_a_disk_may_be_missing(acidctl: Acidctl, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    found = acidctl(*DUE, "--state", tmp_path / "state", "-o", "json", tmp_path / "empty")
    assert found.status == 17, found.err
    assert {step["result"] for step in found.json()} <= {"nothing-to-do", "failed"}
    assert acidctl(*DUE, "--exit-code", "--state", tmp_path / "state", tmp_path / "empty").status == 17
    assert acidctl(*DUE, "--state", tmp_path / "state", tmp_path / "gone").status == 3


def test_the_second_of_two_nights_at_once_is_refused(acidctl: Acidctl, warehouse: Path, tmp_path: Path) -> None:
    with NightlyState(tmp_path / "state").alone():
        found = acidctl(*DUE, "--state", tmp_path / "state", warehouse)
        assert found.status == 9
        assert "another nightly run is at work" in found.err
        assert not list(warehouse.glob("*/due/base_*"))
        assert acidctl(*DUE, "--state", tmp_path / "other", warehouse).status == 0
    assert acidctl(*DUE, "--state", tmp_path / "state", warehouse).status == 0


def test_a_location_that_somebody_works_on_is_passed_over(acidctl: Acidctl, warehouse: Path, tmp_path: Path) -> None:
    write_deltas(warehouse / "sales.db" / "other", 1, 3)
    age(warehouse / "sales.db" / "other", 30)
    with subprocess.Popen(["sleep", "60"]) as other:
        owner = replace(Owner.this(), pid=other.pid, started=0)
        (warehouse / "sales.db" / "due" / LOCK).write_bytes(owner.to_bytes())
        found = acidctl(*DUE, "--state", tmp_path / "state", warehouse)
        other.kill()
    assert found.status == 9, found.err
    assert "1 compacted" in found.err
    assert list(warehouse.glob("*/other/base_*"))
    assert acidctl(*DUE, "--state", tmp_path / "state", warehouse).status == 0
    assert list(warehouse.glob("*/due/base_*"))


@pytest.mark.parametrize("version", [3, 4])
def test_names_of_a_metastore_are_compacted_in_its_queue(acidctl: Acidctl, tmp_path: Path, version: int) -> None:
    with FakeHive(version) as fake:
        for name in ("a", "b", "off"):
            write_deltas(tmp_path / name, 1, 12)
            age(tmp_path / name, 30)
            fake.table(
                "db", name, f"file:{tmp_path / name}", [], {"no_auto_compaction": "true"} if name == "off" else {}
            )
            for _ in range(12):
                txn = fake.begin()
                fake.end(txn)
                fake.write_ids.setdefault(f"db.{name}", []).append(txn)
        config = tmp_path / "config.toml"
        config.write_text('[policy."db.b"]\nexclude = true\n')
        config.chmod(0o600)
        line = ("--config", config, "nightly", "--yes", "--engine", "local", "--metastore", fake.address)
        found = acidctl(*line, "--state", tmp_path / "state", "hive:db.*")
        assert found.status == 0, found.err
        assert "1 skipped" in found.err
        assert ends(found.err) == [{"compacted": 1}]
        assert [path.parent.name for path in tmp_path.glob("*/base_*")] == ["a"]
        if version == 4:
            assert [(one.table, one.state) for one in fake.queue] == [("a", "ready for cleaning")]
        assert not [txn for txn in fake.txns.values() if txn.state == TxnState.OPEN]
        assert not fake.locks


def test_a_path_that_is_no_table_stops_a_night_before_it_changes_any(
    acidctl: Acidctl, warehouse: Path, tmp_path: Path
) -> None:
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "rows.csv").write_text("1")
    line = (*DUE, "--state", tmp_path / "state")
    before = sorted(warehouse.rglob("*"))
    found = acidctl(*line, tmp_path / "plain", tmp_path / "gone", warehouse)
    assert found.status == 7, found.err
    assert sorted(warehouse.rglob("*")) == before
    assert f"{tmp_path / 'plain'}" in found.err
    assert f"{tmp_path / 'gone'}" in found.err
    assert acidctl(*line, tmp_path / "plain").status == 7


def test_without_an_engine_the_rest_is_done(
    acidctl: Acidctl, warehouse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(*_: object, **__: object) -> None:
        raise EnvironmentProblem("there is no Spark")

    with monkeypatch.context() as patch:
        patch.setattr("acidctl.verbs.engine.open_engine", missing)
        found = acidctl(*DUE, "--state", tmp_path / "state", warehouse)
    assert found.status == 8
    assert ends(found.err) == [{"failed": 1, "cleaned": 1}]
    assert acidctl(*DUE, "--state", tmp_path / "state", warehouse).status == 0
    assert list(warehouse.glob("*/due/base_*"))


def test_a_metastore_that_goes_away_leaves_the_purge(acidctl: Acidctl, tmp_path: Path) -> None:
    table = write_deltas(tmp_path / "a", 1, 4)
    age(table, 60)
    night(table, tmp_path)
    age(table, 48)
    night(table, tmp_path)
    with FakeHive(4) as fake:
        fake.table("db", "a", f"file:{table}")
        fake.write_ids["db.a"] = [*range(1, 5)]
        fake.before["show_compact"] = lambda: fake.fault("get_open_txns_req", "failed", 9)  # when all is decided
        found = acidctl(
            "nightly", "--yes", "--engine", "local", "--purge-older-than", "0", "--state", tmp_path / "state",
            "--metastore", fake.address, "hive:db.a",
        )  # fmt: skip
    assert found.status == 6, found.err
    assert ends(found.err) == [{"failed": 1, "purged": 1}]


def test_a_signal_ends_a_night_and_the_next_one_finishes(tmp_path: Path) -> None:
    for number in range(40):
        write_deltas(tmp_path / "warehouse" / "sales.db" / f"t{number}", 1, 4)
    age(tmp_path / "warehouse", 30)
    command = [sys.executable, "-m", "acidctl", *DUE, "--state", str(tmp_path / "state"), "--metrics-file"]
    command += [str(tmp_path / "r.prom"), str(tmp_path / "warehouse")]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": PYTHONPATH}
    ) as first:
        assert first.stdout
        first.stdout.readline()  # the first is compacted
        first.terminate()
        _, said = first.communicate(timeout=60)
    assert first.returncode == 130, said
    assert "the next run" in said
    assert 'acidctl_exit_status{command="nightly"} 130' in (tmp_path / "r.prom").read_text()
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": PYTHONPATH}
    )
    assert done.returncode == 0, done.stderr
    assert len(list(tmp_path.glob("warehouse/sales.db/*/base_*"))) == 40
    assert not list(tmp_path.glob("warehouse/sales.db/*/_tmp_*"))
    assert not list(tmp_path.glob(f"warehouse/sales.db/*/{LOCK}"))
