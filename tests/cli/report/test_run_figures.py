"""``--metrics-file``: whole, true, and there however a run ends."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from support.tables import CLEAN_NOW

from acidctl.acid.triggers import SMALL_FILE
from acidctl.cli.report import metrics, run_figures
from acidctl.cli.report.metrics import samples_of, write_metrics
from acidctl.cli.report.run_figures import RunFigures, standing_of
from acidctl.location.change.own_files import replace_file
from acidctl.location.snapshot import take_snapshot
from acidctl.outcome import Outcome, Result
from acidctl.storage.local.filesystem import LocalFileSystem
from acidctl.storage.port import FileSystemSpec

Acidctl = Callable[..., Any]
MAJOR = ("compact", "--assume-committed=0s", "--major", "--engine", "local")


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, ...]:
    return "--metrics-file", str(tmp_path / "run.prom")


def results(tmp_path: Path) -> dict[str, float]:
    """Number of locations by result."""
    return {key[2]: value for key, value in series(tmp_path / "run.prom").items() if key[0] == "locations"}


def series(path: Path) -> dict[tuple[str, ...], float]:
    """Value by name and the values of the labels."""
    return {
        (sample.name.removeprefix("acidctl_"), *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(path.read_text())
        for sample in family.samples
    }


def test_a_compaction_and_a_cleaning(acidctl: Acidctl, crud: Path, tmp_path: Path, files: tuple[str, ...]) -> None:
    assert acidctl(*MAJOR, *files, crud).status == 0
    assert results(tmp_path) == {"compacted": 1}
    shown = series(tmp_path / "run.prom")
    written = sum(path.stat().st_size for path in crud.glob("base*/bucket*"))
    assert shown["bytes", "compact", "written"] == written
    states = {key[3]: value for key, value in shown.items() if key[:3] == ("directories", "compact", str(crud))}
    assert states == {"current": 1, "obsolete": 4, "aborted": 0, "small": 0}
    assert shown["failures", "compact"] == 0
    assert shown["oldest_obsolete_age_seconds", "compact", str(crud)] >= 0
    assert shown["last_success_timestamp_seconds", "compact"] == shown["last_run_timestamp_seconds", "compact"]

    assert acidctl(*CLEAN_NOW, *files, crud).status == 0
    both = series(tmp_path / "run.prom")
    assert both["locations", "clean", "cleaned"] == 1
    assert both["bytes", "clean", "removed"] > 0
    assert both["oldest_obsolete_age_seconds", "clean", str(crud)] == 0
    assert both["directories", "clean", str(crud), "obsolete"] == 0
    assert {key: value for key, value in both.items() if key[1] == "compact"} == shown, "another command's series stay"

    assert {key[1] for key in series(tmp_path / "run.prom")} == {"compact", "clean"}


def test_nothing_to_do_and_dry_runs(acidctl: Acidctl, crud: Path, tmp_path: Path, files: tuple[str, ...]) -> None:
    assert acidctl("compact", "--assume-committed=0s", "--auto", "--exit-code", *files, crud).status == 12
    assert results(tmp_path) == {"nothing-to-do": 1}
    assert series(tmp_path / "run.prom")["directories", "compact", str(crud), "current"] == 4
    assert series(tmp_path / "run.prom")["exit_status", "compact"] == 12
    assert acidctl(*MAJOR, "--dry-run", *files, crud).status == 0
    assert results(tmp_path) == {"planned": 1}


def test_saved_and_applied_plans_are_reported(
    acidctl: Acidctl, crud: Path, tmp_path: Path, files: tuple[str, ...]
) -> None:
    acidctl(*MAJOR, crud)
    plan = tmp_path / "plan.json"
    assert acidctl("clean", "--plan", plan, "--older-than", "0", "--unsafe-retention", *files, crud).status == 0
    assert results(tmp_path) == {"planned": 1}
    assert acidctl("clean", "--yes", "--unsafe-retention", *files, "--apply", plan).status == 0
    assert results(tmp_path) == {"cleaned": 1}


def test_findings_are_reported_and_fail_the_run(
    acidctl: Acidctl, crud: Path, tmp_path: Path, files: tuple[str, ...]
) -> None:
    assert acidctl("validate", *files, crud).status == 0
    assert series(tmp_path / "run.prom")["findings", "validate", "error"] == 0
    (crud / "delta_0000009_0000008").mkdir()
    (crud / "delta_0000002_0000002_0000" / "bucket_00000").write_bytes(b"")
    found = acidctl("validate", "--footers", *files, crud)
    assert found.status == 14
    assert series(tmp_path / "run.prom")["exit_status", "validate"] == 14
    assert series(tmp_path / "run.prom")["findings", "validate", "error"] >= 1


def test_a_failure_keeps_the_last_success(acidctl: Acidctl, crud: Path, tmp_path: Path, files: tuple[str, ...]) -> None:
    other = tmp_path / "other"
    acidctl("demo", other)
    assert acidctl("compact", "--assume-committed=0s", "--auto", *files, crud).status == 0
    before = series(tmp_path / "run.prom")
    (crud / "delta_0000002_0000002_0000" / "bucket_00000").write_bytes(b"ORC")
    assert acidctl(*MAJOR, *files, crud, other).status == 4
    assert results(tmp_path) == {"failed": 1, "compacted": 1}
    after = series(tmp_path / "run.prom")
    assert after["directories", "compact", str(crud), "current"] == 4
    assert after["directories", "compact", str(other), "current"] == 1
    key = ("last_success_timestamp_seconds", "compact")
    assert after[key] == before[key] < after["last_run_timestamp_seconds", "compact"]
    assert after["failures", "compact"] == 1


@pytest.mark.parametrize(
    "line", [(*MAJOR, "missing"), ("clean", "{0}"), ("compact", "--assume-committed=0s", "--major", "--minor", "{0}")]
)
def test_a_run_that_fails_as_a_whole(
    acidctl: Acidctl, crud: Path, line: tuple[str, ...], tmp_path: Path, files: tuple[str, ...]
) -> None:
    acidctl(*MAJOR, crud)
    old = time.time() - 100 * 3600
    for path in [*crud.rglob("*"), crud]:
        os.utime(path, (old, old))
    found = acidctl(*(part.format(crud) for part in line), *files)
    assert found.status in (2, 3, 7)
    assert series(tmp_path / "run.prom")["exit_status", line[0]] == found.status
    assert series(tmp_path / "run.prom")["failures", line[0]] == 1
    if line[0] == "clean":
        assert results(tmp_path) == {"not-reached": 1}
        age = series(tmp_path / "run.prom")["oldest_obsolete_age_seconds", "clean", str(crud)]
        assert 99 * 3600 < age < 101 * 3600


def test_interrupted_run_is_reported_as_such(crud: Path, tmp_path: Path, files: tuple[str, ...]) -> None:
    program = f"""
import os, signal
import acidctl.compaction.run as run
from acidctl.cli.main import main
def stop(*_, **__):
    os.kill(os.getpid(), signal.SIGTERM)
    signal.pause()
run.stage_directories = stop
main([*{MAJOR!r}, *{files!r}, {str(crud)!r}])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 130, done.stderr
    assert results(tmp_path) == {"not-reached": 1}
    shown = series(tmp_path / "run.prom")
    assert shown["directories", "compact", str(crud), "current"] == 4
    assert shown["failures", "compact"] == 0
    assert shown["exit_status", "compact"] == 130
    assert ("last_success_timestamp_seconds", "compact") not in shown
    assert not list(crud.glob("_tmp*"))


def test_an_interrupt_while_it_looks_once_more(
    acidctl: Acidctl, crud: Path, tmp_path: Path, files: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    def again(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("acidctl.cli.report.run_figures.LocationFigures.look_again", again)
    assert acidctl(*MAJOR, *files, crud).status == 130
    assert results(tmp_path) == {"compacted": 1}
    assert not [key for key in series(tmp_path / "run.prom") if key[0] == "directories"], "old figures would lie"


# --- the files ---


@pytest.mark.parametrize("content", ["precious", "node_load1 5\n"])
def test_other_files_are_not_replaced(acidctl: Acidctl, crud: Path, tmp_path: Path, content: str) -> None:
    path = tmp_path / "precious"
    path.write_text(content)
    found = acidctl(*MAJOR, "--metrics-file", path, crud)
    assert found.status == 7
    assert "will not replace" in found.err
    assert path.read_text() == content
    assert not list(crud.glob("base*")), "said before anything is done"


@pytest.mark.parametrize("where", ["run", "delta_0000001_0000001_0000/run"])
@pytest.mark.parametrize("option", ["--plan", "--metrics-file"])
def test_no_file_among_the_data_of_a_table(acidctl: Acidctl, crud: Path, option: str, where: str) -> None:
    """Readers would take it for rows written before the table was ACID."""
    found = acidctl("clean", option, crud / where, crud)
    assert (found.status, "readers would take it for data" in found.err) == (7, True)
    assert not (crud / where).exists()
    assert acidctl("clean", option, crud / "_run", crud).status == 0, "hidden names are nobody's data"
    (crud.parent / "base_images").mkdir()
    assert acidctl("clean", option, crud.parent / "run", crud).status == 0


@pytest.mark.parametrize("option", ["--metrics-file", "--plan"])
def test_standard_output_is_no_file(
    acidctl: Acidctl, crud: Path, tmp_path: Path, option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = acidctl("clean", option, "-", crud)
    assert found.status == 2
    assert "standard output holds the results" in found.err
    assert acidctl("clean", option, "./-", crud).status == 0
    assert (tmp_path / "-").exists()


@pytest.mark.parametrize("where", ["missing/run", ".", "a-file/run"])
def test_a_file_that_cannot_be_written(acidctl: Acidctl, crud: Path, tmp_path: Path, where: str) -> None:
    (tmp_path / "a-file").touch()
    found = acidctl(*MAJOR, "--metrics-file", tmp_path / where, crud)
    assert found.status == 3
    assert not list(crud.glob("base*"))


@pytest.mark.parametrize("works", [True, False])
def test_a_disk_that_is_full_at_the_end(
    acidctl: Acidctl, crud: Path, tmp_path: Path, files: tuple[str, ...], works: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def full(descriptor: int) -> None:
        asked.append(descriptor)
        if len(asked) == 1:
            raise OSError(28, "No space left on device")

    # Not the function itself: the compaction calls it too.
    monkeypatch.setattr("acidctl.location.change.own_files.os", SimpleNamespace(**vars(os) | {"fsync": full}))
    (tmp_path / "run.prom").write_text("acidctl_failures 9\n")
    found = acidctl(*MAJOR, *files, crud if works else tmp_path / "missing")
    assert found.status == (6 if works else 3), "the run's own failure is its status"
    assert "no space left on device" in found.err
    assert (tmp_path / "run.prom").read_text() == "acidctl_failures 9\n"
    assert len(list(crud.glob("base*"))) == works
    assert sorted(path.name for path in tmp_path.iterdir()) == ["crud_table", "run.prom"]


def test_replaced_file_keeps_links_pipes_and_permissions(tmp_path: Path) -> None:
    real, link = tmp_path / "real.json", tmp_path / "link.json"
    link.symlink_to(real)
    before = os.umask(0o022)
    replace_file(link, b"{}")
    os.umask(before)
    assert link.is_symlink()
    assert real.read_bytes() == b"{}"
    assert real.stat().st_mode & 0o777 == 0o644, "the collector is another user"
    read, write = os.pipe()
    replace_file(Path(f"/dev/fd/{write}"), b"piped")
    assert os.read(read, 10) == b"piped"
    write_metrics(ended(RunFigures("ls", is_wanted=True)), Path(f"/dev/fd/{write}"))
    assert os.read(read, 10_000).startswith(b"# HELP acidctl_")
    os.close(read)
    os.close(write)


# --- metrics ---


def ended(run: RunFigures, status: int = 0) -> RunFigures:
    run.end(status)
    return run


def test_hostile_names_are_escaped_in_labels(acidctl: Acidctl, tmp_path: Path, files: tuple[str, ...]) -> None:
    name = 'a"b\\c\nd\x1b\u202eé'
    table = tmp_path / name
    assert acidctl("demo", table).status == 0
    table.rename(tmp_path / os.fsdecode(b"\xff"))
    assert acidctl("demo", table).status == 0
    for location in (table, tmp_path / os.fsdecode(b"\xff")):
        assert acidctl("compact", "--assume-committed=0s", "--auto", *files, location).status == 0
        text = (tmp_path / "run.prom").read_text("utf-8")
        assert not {"\x1b", "\u202e"} & set(text)
        labels = {key[2] for key in series(tmp_path / "run.prom") if key[0] == "directories"}
        assert len(labels) == 1
        assert all(line.startswith(("#", "acidctl_")) for line in text.splitlines())


def test_an_old_file_that_is_damaged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.prom"
    path.write_text('acidctl_exit_status{command="x" oops\n')
    write_metrics(ended(RunFigures("clean")), path)
    assert "was damaged" in capsys.readouterr().err
    assert series(path)["exit_status", "clean"] == 0


def test_runs_at_the_same_time_keep_each_others_series(tmp_path: Path) -> None:
    program = f"""
import sys
from pathlib import Path
from acidctl.cli.report.metrics import write_metrics
from acidctl.cli.report.run_figures import RunFigures
for place in range(10):
    run = RunFigures(f"{{sys.argv[1]}}-{{place}}")
    run.end(0)
    write_metrics(run, Path({str(tmp_path / "run.prom")!r}))
"""
    runs = [subprocess.Popen([sys.executable, "-c", program, name]) for name in "abc"]
    assert [run.wait() for run in runs] == [0, 0, 0]
    assert len({key[1] for key in series(tmp_path / "run.prom")}) == 30
    assert [path.name for path in tmp_path.iterdir()] == ["run.prom"]


def test_locations_beyond_the_most_are_left_out_of_metrics_and_counted(
    monkeypatch: pytest.MonkeyPatch, crud: Path
) -> None:
    monkeypatch.setattr(metrics, "MOST_LOCATIONS", 2)
    run = RunFigures("clean", is_wanted=True)
    snapshot = take_snapshot(LocalFileSystem(FileSystemSpec("file")), str(crud))
    run.saw(snapshot)
    one = run.results[str(crud)]
    for name in "abc":
        run.results[name] = run_figures.LocationFigures(standing=one.standing)
    found = list(samples_of(ended(run)))
    assert {labels[0] for name, labels, _ in found if name == "acidctl_directories"} == {str(crud), "a"}
    assert ("acidctl_locations_left_out", (), 2.0) in found
    assert ("acidctl_locations", ("not-reached",), 4.0) in found


# --- the value ---


def test_nothing_is_kept_where_nobody_asked(crud: Path) -> None:
    run = RunFigures("clean")
    run.saw(take_snapshot(LocalFileSystem(FileSystemSpec("file")), str(crud)))
    run.take(Outcome(location="a", result=Result.CLEANED))
    run.failed("b")
    assert run.results == {}
    assert run.failures == 1


def test_figures_count_directories_and_ages(acidctl: Acidctl, crud: Path) -> None:
    acidctl(*MAJOR, crud)
    (crud / "delta_0000004_0000004_0000").mkdir()
    with (crud / "delta_0000004_0000004_0000" / "bucket_00000").open("wb") as file:
        file.truncate(SMALL_FILE)
    (crud / ".hidden").mkdir()
    (crud / ".hidden" / "x").write_bytes(b"123")
    for path in crud.rglob("*"):
        os.utime(path, (1000, 1000))
    os.utime(crud / "base_0000003", (2000, 2000))
    found = standing_of(take_snapshot(LocalFileSystem(FileSystemSpec("file")), str(crud)), now=2060)
    assert found.directories == {"current": 2, "obsolete": 4, "aborted": 0, "ignored": 0, "small": 0}
    assert found.oldest_obsolete == 60, "since the base that took their place was there"


def test_a_location_that_vanished_meanwhile(crud: Path) -> None:
    run = RunFigures("clean", is_wanted=True)
    run.saw(take_snapshot(LocalFileSystem(FileSystemSpec("file")), str(crud)))
    run.take(Outcome(location=str(crud), result=Result.CLEANED))
    crud.rename(crud.with_name("gone"))
    run.end(0)
    assert not [name for name, _, _ in samples_of(run) if name == "acidctl_directories"], "old figures would lie"


def test_sigterm_twice_leaves_whole_files(crud: Path, tmp_path: Path, files: tuple[str, ...]) -> None:
    program = f"""
import os, signal
import acidctl.compaction.run as run, acidctl.location.change.own_files as own_files
from acidctl.cli.main import main
def stop(*_, **__):
    os.kill(os.getpid(), signal.SIGTERM)
    signal.pause()
write = own_files.replace_file
def again(path, data):
    os.kill(os.getpid(), signal.SIGTERM)
    write(path, data)
run.stage_directories, own_files.replace_file = stop, again
main([*{MAJOR!r}, *{files!r}, {str(crud)!r}])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 130, done.stderr
    assert series(tmp_path / "run.prom")["exit_status", "compact"] == 130
