"""Whatever was named and not looked at is counted and said; too little of it has an exit status of its own."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from support.command_line import Result
from support.files.acid_files import OrcType, insert, struct, write_acid, write_plain
from support.metastore.fake_hive import FakeHive

import acidctl as acidctl_library

Acidctl = Callable[..., Result]
TOLD = ("--assume-committed=0s",)
LOOKING = [("ls",), ("status",), ("validate",), ("report", "-o", "md")]
CHANGING = [("compact", "--auto", *TOLD), ("clean", "--yes", *TOLD), ("nightly", "--yes", *TOLD)]
COMMANDS = [*LOOKING, *CHANGING]
OF_RUNS = [("log",), ("purge", "--yes"), ("restore", "--list")]


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))


def table(path: Path, *ids: int) -> Path:
    for one in ids or (1, 2):
        write_acid(path / f"delta_{one:07}_{one:07}_0000" / "bucket_00000", insert(one, 0, (one, "x")))
    return path


@pytest.fixture
def sales(tmp_path: Path) -> Path:
    for name in ("orders", "items"):
        table(tmp_path / "w" / "sales.db" / name)
    return tmp_path / "w" / "sales.db"


def named(acidctl: Acidctl, *where: Path) -> list[str]:
    return sorted(Path(one["location"]).name for one in acidctl("ls", "-o", "jsonl", *where).lines())


# --- what hides nothing -------------------------------------------------------------------------------------------


def _empty(place: Path) -> None:
    (place / "dt=2026-11-01").mkdir()


def _with_a_file(place: Path) -> None:
    (place / "dt=2026-11-01").mkdir()
    (place / "dt=2026-11-01" / "000000_0").write_bytes(b"x")


def _nested(place: Path) -> None:
    (place / "dt=2026-11-01" / "h=1").mkdir(parents=True)


def _with_deltas(place: Path) -> None:
    table(place / "dt=2026-11-01")


@pytest.mark.parametrize("stray", [_empty, _with_a_file, _nested, _with_deltas])
@pytest.mark.parametrize("where", ["sales.db", ".", "plain"])
def test_a_stray_partition_hides_no_table(
    acidctl: Acidctl, sales: Path, stray: Callable[[Path], None], where: str
) -> None:
    if where == "plain":
        shutil.copytree(sales, sales.parent / "plain")
    place = sales.parent / where
    before = named(acidctl, place)
    stray(place)
    assert set(before) <= set(named(acidctl, place))
    for command in LOOKING:
        done = acidctl(*command, place)
        assert done.status in (0, 14), (command, done.err)
    assert acidctl("status", "-o", "json", place).json()["tables"] >= len(before)


def test_what_a_stray_hid_is_found_by_a_proof(acidctl: Acidctl, sales: Path) -> None:
    (sales / "dt=2026-11-01").mkdir()
    assert acidctl("erasure", "--prove", "--where", "a = 2", sales).status == 14


def test_a_real_partitioned_table_stays_one(acidctl: Acidctl, tmp_path: Path) -> None:
    root = tmp_path / "sales.db" / "orders"
    for name in ("ds=1", "ds=2/h=1", "ds=2/h=2"):
        table(root / name)
    (root / "junk" / "deep").mkdir(parents=True)
    (root / "junk" / "file").write_bytes(b"x")
    done = acidctl("ls", "-o", "jsonl", root)
    assert named(acidctl, root) == ["ds=1", "h=1", "h=2"]
    assert str(root / "junk") in done.err
    table(root / "backup")
    assert {"backup", "ds=1", "h=1", "h=2"} <= set(named(acidctl, root))
    assert acidctl("status", "-o", "json", root).json()["tables"] >= 2


# --- what is said -------------------------------------------------------------------------------------------------


def test_hidden_tables_are_said_and_a_proof_looks_into_them(acidctl: Acidctl, sales: Path) -> None:
    table(sales / "_orders", 7)
    (sales / ".hive-staging_x").mkdir()
    for command in LOOKING:
        assert str(sales / "_orders") in acidctl(*command, sales).err, command
    shown = acidctl("status", "-o", "json", sales).json()["notLookedAt"]
    assert (shown["count"], str(sales / "_orders") in shown["first"][0]) == (1, True)
    found = acidctl("erasure", "--prove", "--where", "a = 7", "-o", "json", sales)
    assert (found.status, found.json()["result"]) == (14, "held")


def close(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Let nobody list directories whose names end so."""
    real = os.scandir

    def scandir(path: str) -> object:
        if isinstance(path, str) and path.rstrip("/").endswith(name):
            raise PermissionError(13, "Permission denied", path)
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)


def test_a_link_to_nothing_is_a_failure(acidctl: Acidctl, sales: Path) -> None:
    (sales.parent / "gone.db").symlink_to("/nowhere/at/all")
    assert named(acidctl, sales.parent) == ["items", "orders"]
    for command in (("ls",), ("status",)):
        done = acidctl(*command, sales.parent)
        assert (done.status, "gone.db" in done.err) == (3, True), command


def test_a_closed_directory_is_a_failure_and_hides_nothing_else(
    acidctl: Acidctl, sales: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    close(monkeypatch, "items")
    done = acidctl("ls", "-o", "jsonl", sales)
    assert done.status == 5
    assert [Path(one["location"]).name for one in done.lines()] == ["orders"]


def test_a_closed_directory_beside_a_stray_is_a_failure(
    acidctl: Acidctl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "w" / "dt=1").mkdir(parents=True)
    table(tmp_path / "w" / "closed")
    close(monkeypatch, "closed")
    assert acidctl("ls", tmp_path / "w").status == 5


# --- nothing, and fewer -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["mnt", "empty.db"])
@pytest.mark.parametrize(
    "command",
    [
        ("cat", "{}"), ("cat", "--count", "{}"), ("cat", "--checksum", "{}"), ("diff", "--from", "1", "{}"),
        ("history", "{}"), ("blame", "{}", "1:536870912:0"), ("why", "{}"), ("erasure", "--where", "a = 1", "{}"),
        ("erasure", "--prove", "--where", "a = 1", "{}"),
    ],
)  # fmt: skip
def test_rows_are_not_read_from_nothing(acidctl: Acidctl, tmp_path: Path, command: tuple[str, ...], name: str) -> None:
    (tmp_path / name).mkdir()
    done = acidctl(*(word.format(tmp_path / name) for word in command))
    assert (done.status, str(tmp_path / name) in done.err) == (17, True), done.err
    assert done.out == "" or command[0] not in ("cat", "diff", "blame")
    with FakeHive(4) as hive:  # a table of a metastore may be empty
        hive.table("d", "t", str(tmp_path / name))
        words = [word.format("hive:d.t") for word in command]
        assert acidctl(*words, "--metastore", hive.address).status in (0, 3, 15)


@pytest.mark.parametrize("name", ["mnt", "empty.db"])
def test_nothing_at_all_has_a_status_of_its_own(acidctl: Acidctl, tmp_path: Path, sales: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    for command in COMMANDS:
        assert acidctl(*command, tmp_path / name).status == 17, command
        assert acidctl(*command, sales, tmp_path / name).status in (17, 14), command
    assert acidctl("status", "-o", "json", tmp_path / name).json()["verdict"] == "trouble"


def test_what_holds_no_transactional_table_is_not_looked_at(acidctl: Acidctl, tmp_path: Path, sales: Path) -> None:
    (tmp_path / "mnt" / "notes").mkdir(parents=True)
    (tmp_path / "mnt" / "notes" / "README.md").write_text("the disk is not mounted")
    metrics = tmp_path / "run.prom"
    for command in (("status",), ("validate",), *CHANGING, ("nightly", "--dry-run", *TOLD)):
        assert acidctl(*command, tmp_path / "mnt").status == 17, command
        assert acidctl(*command, tmp_path / "mnt", sales).status == 0, command
    assert acidctl("clean", "--yes", *TOLD, "--metrics-file", metrics, tmp_path / "mnt").status == 17
    assert "acidctl_last_success" not in metrics.read_text()
    with pytest.raises(StopIteration):
        night = acidctl_library.find(tmp_path / "mnt", assume_committed=0).nightly()
        assert next(night).error
        next(night)


@pytest.mark.parametrize("command", [("status",), ("validate",), ("validate", "--deep"), ("report", "-o", "md")])
@pytest.mark.parametrize("stray", ["README.md", "part-00000.parquet", "docs/notes"])
def test_a_named_folder_without_a_table_is_not_looked_at(
    acidctl: Acidctl, tmp_path: Path, sales: Path, command: tuple[str, ...], stray: str
) -> None:
    folder = tmp_path / "folder"
    (folder / stray).parent.mkdir(parents=True)
    (folder / "top").write_text("the disk is not mounted")
    (folder / stray).write_text("the disk is not mounted")
    found = acidctl(*command, folder)
    assert (found.status, str(folder) in found.err) == (17, True)
    found = acidctl(*command, sales, folder)
    assert (found.status, str(folder) in found.err) == (0, True), found.err
    write_plain(folder / "000000_0", (1, "x"))
    assert acidctl(*command, folder).status == 0, "it may be a table from before it was transactional"


def test_a_folder_that_a_metastore_has_is_looked_at_whatever_it_holds(acidctl: Acidctl, tmp_path: Path) -> None:
    with FakeHive(4) as hive:
        (tmp_path / "t").mkdir()
        (tmp_path / "t" / "README.md").write_text("x")
        hive.table("d", "t", str(tmp_path / "t"))
        for command in (("status",), ("validate",)):
            assert acidctl(*command, "--metastore", hive.address, "hive:d.t").status == 0, command
            assert acidctl(*command, "--metastore", hive.address, tmp_path / "t").status == 0, command


@pytest.mark.parametrize("command", OF_RUNS)
def test_what_was_done_is_not_looked_for_in_nothing(
    acidctl: Acidctl, tmp_path: Path, sales: Path, command: tuple[str, ...]
) -> None:
    (tmp_path / "mnt").mkdir()
    assert acidctl(*command, tmp_path / "mnt").status == 17
    assert acidctl(*command, sales).status == 0
    assert acidctl(*command, sales, tmp_path / "mnt").status == 17
    (tmp_path / "mnt" / ".acidctl-log-x").touch()
    assert acidctl(*command, tmp_path / "mnt").status == 0, "acidctl was there"
    with FakeHive(4) as hive:
        hive.table("d", "p", str(sales / "orders"), ["ds"])
        told = (*command, "--metastore", hive.address)
        assert acidctl(*told, "hive:d.p").status == 17
        hive.table("d", "t", str(sales / "orders"))
        found = acidctl(*told, "hive:d.*")
        assert found.status == 0, found.err
        (tmp_path / "new").mkdir()
        hive.table("d", "new", str(tmp_path / "new"))
        assert acidctl(*told, "hive:d.new").status == 0, "a new table is empty"
        found = acidctl(*told, "hive:d.t", "hive:d.p")
        assert (found.status, "hive:d.p" in found.err) == (0, True)


def test_a_file_beside_tables_leaves_a_proof_open(acidctl: Acidctl, sales: Path) -> None:
    proof = ("erasure", "--prove", "--where", "a = 7", "-o", "json")
    (sales / "empty").touch()
    assert acidctl(*proof, sales).status == 0
    for at in (sales, sales.parent):
        stray = write_acid(at / "delta" / "bucket_00000", insert(7, 0, (7, "x"))).rename(at / "bucket_00000")
        (at / "delta").rmdir()
        found = acidctl(*proof, sales.parent)
        assert (found.status, found.json()["result"]) == (15, "not-known")
        assert [str(stray) in one for one in found.json()["notEntered"]] == [True]
        stray.unlink()


@pytest.mark.parametrize("folder", ["w/sales.db", "w", "lake"])
def test_a_file_beside_tables_is_counted_and_a_warning(
    acidctl: Acidctl, sales: Path, tmp_path: Path, folder: str
) -> None:
    if folder == "lake":
        sales.rename(tmp_path / "lake")
    stray = tmp_path / folder / "000000_0"
    write_plain(stray, (7, 7), row=struct(a=OrcType("int"), b=OrcType("int")))
    beside = stray.parent if folder != "lake" else tmp_path
    for command in (("status",), ("report",)):
        found = acidctl(*command, "-o", "json", beside)
        assert found.json()["notLookedAt"]["count"] == 1
        assert str(stray) in found.json()["notLookedAt"]["first"][0]
    assert str(stray) in acidctl("status", beside).err
    rules = [line for line in acidctl("validate", "-o", "jsonl", beside).lines() if line["rule"] == "V41"]
    assert [(line["location"], line["severity"]) for line in rules] == [(str(stray.parent), "warning")]


def test_a_table_that_a_metastore_knows_may_be_empty(acidctl: Acidctl, tmp_path: Path) -> None:
    with FakeHive(4) as hive:
        (tmp_path / "t").mkdir()
        hive.table("d", "t", str(tmp_path / "t"))
        for place in ("hive:d.t", tmp_path / "t"):
            for command in (("ls",), ("status",), ("validate",), ("compact", "--auto")):
                assert acidctl(*command, "--metastore", hive.address, place).status == 0, (command, place)
        hive.table("d", "p", str(tmp_path / "p"), ["ds"])
        assert acidctl("status", "--metastore", hive.address, "hive:d.p").status == 17, "its partitions are lost"


def succeeded(metrics: Path) -> str:
    (line,) = [one for one in metrics.read_text().splitlines() if one.startswith("acidctl_last_success")]
    return line


def move_away(table: Path) -> None:
    table.rename(table.parents[1] / "away")


def put_a_text_in_its_place(table: Path) -> None:
    shutil.rmtree(table)
    table.mkdir()
    (table / "x.txt").write_bytes(b"x")


@pytest.mark.parametrize("change", [move_away, put_a_text_in_its_place])
@pytest.mark.parametrize("command", [*CHANGING, ("validate",)])
def test_fewer_than_the_last_time_renews_no_success(
    acidctl: Acidctl, sales: Path, tmp_path: Path, command: tuple[str, ...], change: Callable[[Path], None]
) -> None:
    metrics = tmp_path / "run.prom"
    words = (*command, "--metrics-file", metrics, sales)
    assert acidctl(*words).status == 0
    good = succeeded(metrics)
    change(sales / "items")
    for _ in range(2):
        assert acidctl(*words).status == 17
        assert succeeded(metrics) == good
    assert acidctl(*words, "--accept-fewer").status == 0
    assert acidctl(*words).status == 0
    assert succeeded(metrics) != good


def test_an_entry_that_hides_partitions_renews_no_success(acidctl: Acidctl, sales: Path) -> None:
    for day in (1, 2):
        table(sales / "parts" / f"ds={day}")
    night = ("nightly", "--yes", *TOLD, sales)
    assert acidctl(*night).status == 0
    (sales / "parts" / "base_5").mkdir()
    assert acidctl(*night).status == 17
    assert acidctl("status", sales).status == 17


def test_a_night_remembers_it_by_itself(acidctl: Acidctl, sales: Path, tmp_path: Path) -> None:
    night = ("nightly", "--yes", *TOLD, sales)
    assert acidctl(*night).status == 0
    (sales / "items").rename(tmp_path / "away")
    assert acidctl("status", sales).status == 17
    assert acidctl(*night).status == 17
    assert acidctl(*night, "--dry-run").status == 17
    (tmp_path / "away").rename(sales / "items")
    assert acidctl(*night).status == 0
    assert acidctl("nightly", "--yes", *TOLD, sales / "items").status == 0, "another place has a record of its own"
    kept = json.loads((tmp_path / "state" / "nightly.json").read_text())["looked"]
    assert sorted(kept.values()) == [1, 2]


@pytest.mark.parametrize("command", [*CHANGING, ("validate",)])
def test_fewer_that_match_a_pattern_renew_no_success(
    acidctl: Acidctl, sales: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    words = (*command, "--metrics-file", tmp_path / "run.prom", f"{sales}/*")
    assert acidctl(*words).status == 0
    (sales / "items").rename(tmp_path / "away")
    assert acidctl(*words).status == 17
    assert acidctl(*words, "--accept-fewer").status == 0


def test_what_a_metastore_dropped_is_told_once(acidctl: Acidctl, sales: Path, tmp_path: Path) -> None:
    with FakeHive(4) as hive:
        for name in ("items", "orders"):
            hive.table("d", name, str(sales / name))
            hive.write_ids[f"d.{name}"] = list(hive.begin_many(2))
        hive.txns.clear()
        metrics = ("--metrics-file", tmp_path / "run.prom", "--metastore", hive.address, "hive:d.*")
        for command in (("nightly", "--yes"), ("validate",)):
            assert acidctl(*command, *metrics).status == 0
        del hive.tables["d", "items"]
        for command in (("nightly", "--yes"), ("validate",)):
            assert [acidctl(*command, *metrics).status for _ in range(2)] == [17, 0], command


def test_a_state_on_a_tree_lists_those_that_have_it(acidctl: Acidctl, sales: Path) -> None:
    write_acid(sales / "orders" / "base_0000002" / "bucket_00000", insert(2, 0, (1, "x")))
    shown = acidctl("ls", "--state", "obsolete", sales).out
    assert ("orders" in shown, "items" in shown) == (True, False)
    assert named(acidctl, sales) == ["items", "orders"]


def test_a_partition_beside_acid_directories_is_not_compacted(acidctl: Acidctl, tmp_path: Path) -> None:
    """For Hive its files may be those of the table above, which then has no partitions."""
    above = table(tmp_path / "t")
    inside = table(above / "k=v")
    before = sorted(tmp_path.rglob("*"))
    for place in (above, inside, tmp_path):
        done = acidctl("compact", "--major", "--engine", "local", "--assume-committed=0s", "--force", place)
        assert done.status != 0 or "left alone" in done.err, place
    assert sorted(tmp_path.rglob("*")) == before


def test_a_plan_of_locations_that_are_gone_was_applied_to_nothing(
    acidctl: Acidctl, sales: Path, tmp_path: Path
) -> None:
    for name in ("orders", "items"):
        write_acid(sales / name / "base_0000002" / "bucket_00000", insert(2, 0, (1, "x")))
    plan, metrics = tmp_path / "plan.json", tmp_path / "run.prom"
    apply = ("clean", "--yes", "--unsafe-retention", "--metrics-file", metrics, "--apply")
    assert acidctl("clean", "--plan", plan, *TOLD, "--older-than", "0s", "--unsafe-retention", sales).status == 0
    assert acidctl(*apply, plan).status == 0
    good = succeeded(metrics)
    shutil.rmtree(sales / "items")
    assert acidctl(*apply, plan).status != 0
    shutil.rmtree(sales)
    assert acidctl(*apply, plan).status != 0
    assert succeeded(metrics) == good


def test_a_repair_that_looked_at_nothing_says_so(acidctl: Acidctl, sales: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    words = ("repair", "--only", "version-file", "--yes", "--force")
    assert acidctl(*words, tmp_path / "empty").status == 17
    assert acidctl(*words, sales).status == 0
