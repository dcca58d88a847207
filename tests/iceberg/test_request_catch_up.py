"""Copies that follow their tables: first copies and catch-ups, read by PyIceberg, against models."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.table import StaticTable
from support.command_line import Result as Run
from support.files.acid_files import delete, insert, struct, write_acid, write_delta, write_plain
from support.made.random_tables import Made, step
from support.migrating import copy, rows
from support.paths import REPO

from acidctl.base.errors import (
    ConflictError,
    EnvironmentProblem,
    NoSpaceError,
    NotFoundError,
    RefusedError,
    StorageError,
    UsageProblem,
    VerifyError,
)
from acidctl.iceberg import target as target_module
from acidctl.iceberg.catalogs.store_io import store_io
from acidctl.iceberg.difference import difference
from acidctl.iceberg.orc_files.splice import Splice
from acidctl.iceberg.private_api import DirectoryCatalog
from acidctl.orc.types import OrcType
from acidctl.outcome import Result
from acidctl.storage.registry import open_location
from acidctl.wording import human_count

Acidctl = Callable[..., Run]
D1, D2 = "delta_0000001_0000001_0000", "delta_0000002_0000002_0000"
NUMBERS = struct(id=OrcType("int"))


@pytest.mark.parametrize(("kind", "proof"), [("auto", "new"), ("auto", "full"), ("parquet", "new")])
@pytest.mark.parametrize("seed", range(8))
def test_a_copy_follows_its_table(seed: int, kind: str, proof: str, tmp_path: Path) -> None:
    choice, made = random.Random(seed), Made(tmp_path / "t")
    made.path.mkdir()
    while not made.values:
        step(made, choice)
    for at in range(9):
        done = copy(made.path, tmp_path / "copy", format=kind, proof=proof)
        expected = sorted((tuple(row.values()) for row in made.rows_at(made.last).values()), key=str)
        assert rows(tmp_path / "copy") == expected
        whole = human_count(len(expected), "row")
        if proof == "full" or not at:
            assert done.proof == f"all values of {whole} compared"
        elif done.result is not Result.NOTHING_TO_DO:
            assert done.proof == f"all values of {human_count(done.rows, 'new row')} and the ids of {whole} compared"
        again = copy(made.path, tmp_path / "copy")
        assert (again.result, again.snapshot) == (Result.NOTHING_TO_DO, None)
        step(made, choice)


def test_stripes_without_new_rows_are_left_out(tmp_path: Path) -> None:
    def batch(*numbers: int) -> pa.RecordBatch:
        return pa.RecordBatch.from_pydict({"id": pa.array(numbers, pa.int32())})

    table = tmp_path / "t"
    write_delta(table, 1, batch(*range(100)), row=NUMBERS)
    copy(table, tmp_path / "copy")
    shutil.rmtree(table / D1)
    write_delta(table, 1, batch(*range(100)), batch(*range(100, 160)), row=NUMBERS, base=True)
    done = copy(table, tmp_path / "copy")
    assert (done.rows, done.deleted, done.files) == (60, 0, 1)
    files = StaticTable.from_metadata(str(tmp_path / "copy")).scan().plan_files()
    assert sorted(task.file.record_count for task in files) == [60, 100]
    assert rows(tmp_path / "copy") == sorted(((at,) for at in range(160)), key=str)


def test_partitions_come_and_go(tmp_path: Path) -> None:
    table = tmp_path / "t"
    write_acid(table / "day=2026-01-01" / D1 / "bucket_00000", insert(1, 0, (1, "a")))
    write_acid(table / "day=__HIVE_DEFAULT_PARTITION__" / D1 / "bucket_00000", insert(1, 0, (2, "b")))
    copy(table, tmp_path / "copy")
    assert {row[0] for row in rows(tmp_path / "copy")} == {1, 2}
    write_acid(table / "day=2026-01-02" / D2 / "bucket_00000", insert(2, 0, (3, "c")))
    shutil.rmtree(table / "day=2026-01-01")
    done = copy(table, tmp_path / "copy")
    assert (done.rows, done.deleted) == (1, 1)
    assert {row[0] for row in rows(tmp_path / "copy")} == {2, 3}


def test_locations_that_do_not_show_ids_are_compared_by_them_if_another_one_does(tmp_path: Path) -> None:
    table, to = tmp_path / "t", tmp_path / "copy"
    write_acid(table / "p=1" / D1 / "bucket_00000", *(insert(1, at, (at, "a")) for at in range(5)))
    write_plain(table / "p=2" / "000000_0", (7, "original"))
    (table / "p=3").mkdir()
    copy(table, to)
    write_acid(table / "p=1" / "delete_delta_0000002_0000002_0000" / "bucket_00000", delete(1, 0, 2))
    done = copy(table, to)
    assert (done.rows, done.deleted) == (0, 1), "the other rows of the file are not copied again"
    assert done.proof == "all values of 0 new rows and the ids of 5 rows compared"
    write_acid(table / "p=2" / D2 / "bucket_00000", insert(2, 0, (8, "new")))
    done = copy(table, to)
    assert (done.rows, done.deleted, len(rows(to))) == (1, 0, 6)


def test_an_overwrite_replaces_all_rows(tmp_path: Path) -> None:
    table = tmp_path / "t"
    write_acid(table / D1 / "bucket_00000", insert(1, 0, (1, "a")), insert(1, 1, (2, "b")))
    copy(table, tmp_path / "copy")
    write_acid(table / "base_0000002" / "bucket_00000", insert(2, 0, (9, "z")))
    done = copy(table, tmp_path / "copy")
    assert (done.rows, done.deleted) == (1, 2)
    assert rows(tmp_path / "copy") == [(9, "z")]


def test_original_files_keep_their_keys_after_a_compaction(tmp_path: Path) -> None:
    table = tmp_path / "t"
    write_plain(table / "000000_0", (1, 2), (3, 4))
    write_acid(table / "delete_delta_0000001_0000001_0000" / "bucket_00000", delete(0, 1, 1))
    first = copy(table, tmp_path / "copy")
    assert (first.rows, rows(tmp_path / "copy")) == (1, [(1, 2)])


def test_rows_of_one_key_stop_a_catch_up(tmp_path: Path) -> None:
    table = tmp_path / "t"
    write_acid(table / D1 / "bucket_00000", insert(1, 0, (1, "a")), insert(1, 0, (2, "b")))
    copy(table, tmp_path / "copy")
    assert rows(tmp_path / "copy") == [(1, "a"), (2, "b")]
    write_acid(table / D2 / "bucket_00000", insert(2, 0, (3, "c")))
    shutil.rmtree(table / D1)
    write_acid(
        table / "base_0000001" / "bucket_00000", insert(1, 0, (2, "b")), insert(1, 0, (1, "a")), insert(1, 5, (5, "e"))
    )
    with pytest.raises(RefusedError, match="cannot catch up"):
        copy(table, tmp_path / "copy")
    assert rows(tmp_path / "copy") == [(1, "a"), (2, "b")]


def test_the_state_of_the_copy_decides_what_may_be_done(tmp_path: Path) -> None:
    table, to = tmp_path / "t", tmp_path / "copy"
    write_acid(table / D1 / "bucket_00000", insert(1, 0, (1, "a")))
    with pytest.raises(NotFoundError, match="was not made yet"):
        copy(table, to, catch_up=True)
    assert not to.exists()
    copy(table, to)
    with pytest.raises(UsageProblem, match="exists already"):
        copy(table, to, catch_up=False)
    shutil.copytree(table, tmp_path / "other")
    with pytest.raises(RefusedError, match="will not write to this Iceberg table"):
        copy(tmp_path / "other", to)


def test_rows_of_somebody_else_stop_a_catch_up(tmp_path: Path) -> None:
    table, to = tmp_path / "t", tmp_path / "copy"
    write_acid(table / D1 / "bucket_00000", insert(1, 0, (1, "a")))
    copy(table, to)
    theirs = pa.table({"a": pa.array([7], pa.int32()), "b": ["theirs"]})
    iceberg = DirectoryCatalog(*open_location(str(to)), store_io(None)).load_table()
    with iceberg.transaction() as change:
        change.set_properties({"write.format.default": "parquet"})
    iceberg.append(theirs)
    with pytest.raises(RefusedError, match="somebody wrote to the copy"):
        copy(table, to)
    assert rows(to) == [(1, "a"), (7, "theirs")]


def test_a_run_with_nothing_new_reads_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, to = tmp_path / "t", tmp_path / "copy"
    write_acid(table / D1 / "bucket_00000", insert(1, 0, (1, "a")))
    copy(table, to)
    shutil.copytree(table / D1, table / "base_0000001")
    assert copy(table, to).result is Result.NOTHING_TO_DO, "a compaction"
    snapshots = len(StaticTable.from_metadata(str(to)).snapshots())
    monkeypatch.setattr("acidctl.iceberg.request.plan_copy", lambda *_: pytest.fail("files are compared"))
    assert copy(table, to).result is Result.NOTHING_TO_DO
    assert snapshots == 1


def test_of_two_runs_at_once_one_commits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, to = tmp_path / "t", tmp_path / "copy"
    write_acid(table / D1 / "bucket_00000", insert(1, 0, (1, "a")))
    copy(table, to)
    write_acid(table / D2 / "bucket_00000", insert(2, 0, (2, "b")))
    commit = target_module.Target.commit
    raced: list[bool] = []

    def overtaken(self: Any, *args: Any) -> int:
        if not raced:
            raced.append(True)
            copy(table, to)
        return commit(self, *args)

    monkeypatch.setattr(target_module.Target, "commit", overtaken)
    before = {path.name for path in (to / "data").iterdir()}
    with pytest.raises(ConflictError, match="changed by somebody else"):
        copy(table, to)
    assert rows(to) == [(1, "a"), (2, "b")]
    assert len({path.name for path in (to / "data").iterdir()} - before) == 1, "the loser removes its files"


def test_a_copy_that_failed_leaves_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, to = tmp_path / "t", tmp_path / "copy"
    write_acid(table / D1 / "bucket_00000", insert(1, 0, (1, "a")), insert(1, 1, (2, "b")))
    write_acid(table / D2 / "bucket_00000", insert(2, 0, (3, "c")))
    write = Splice.write

    def full(self: Any, *args: Any) -> Any:
        if D2 in self._source.path:
            raise NoSpaceError("cannot write", "no space left on the device", "")
        return write(self, *args)

    with monkeypatch.context() as patched:
        patched.setattr(Splice, "write", full)
        with pytest.raises(NoSpaceError):
            copy(table, to, jobs=1)
    assert not list((to / "data").iterdir())
    copy(table, to, catch_up=False)
    assert len(rows(to)) == 3


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_lost_answer_of_the_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str) -> None:
    """The snapshot may be there, so that its files stay; the next run finds out."""
    table, to = tmp_path / "t", tmp_path / "copy"
    write_acid(table / D1 / "bucket_00000", insert(1, 0, (1, "a")))
    commit = DirectoryCatalog.commit_table

    def lost(self: Any, *args: Any) -> Any:
        if when == "after":
            commit(self, *args)
        raise OSError("connection reset")

    with monkeypatch.context() as patched:
        patched.setattr(DirectoryCatalog, "commit_table", lost)
        with pytest.raises(StorageError, match="nobody knows whether"):
            copy(table, to)
    assert len(list((to / "data").iterdir())) == 1
    done = copy(table, to, catch_up=when == "after")
    assert (done.result is Result.NOTHING_TO_DO, rows(to)) == (when == "after", [(1, "a")])


def test_unions_reserved_and_double_names_are_refused_by_name(tmp_path: Path, acidctl: Acidctl) -> None:
    write_acid(tmp_path / "t" / D1 / "bucket_00000", insert(1, 0, (1,)), row=struct(_file=OrcType("int")))
    found = acidctl("migrate", tmp_path / "t", "--to", tmp_path / "copy", "--assume-committed=0s", "--yes")
    assert found.status == RefusedError.exit_status
    assert "_file" in found.err
    assert not (tmp_path / "copy").exists()
    found = acidctl("migrate", tmp_path / "t", "--to", "iceberg:nothing", "--assume-committed=0s", "--yes")
    assert found.status == UsageProblem.exit_status


@pytest.mark.parametrize("target", ["sales/t", "sales/t/copy", "sales/t/k=1/copy", "sales"])
def test_a_target_at_in_or_around_the_table_is_refused(target: str, tmp_path: Path) -> None:
    write_acid(tmp_path / "sales" / "t" / "k=1" / D1 / "bucket_00000", insert(1, 0, (1, "a")))
    with pytest.raises(RefusedError, match="will not write to"):
        copy(tmp_path / "sales" / "t", tmp_path / target)
    assert not [path for path in tmp_path.rglob("*") if path.name in ("metadata", "data")]


def test_a_catalog_and_its_errors(tmp_path: Path, acidctl: Acidctl) -> None:
    write_acid(tmp_path / "t" / D1 / "bucket_00000", insert(1, 0, (1, "a")))
    settings = {"type": "sql", "uri": f"sqlite:///{tmp_path}/c.db", "warehouse": f"file://{tmp_path}/w"}
    catalog = load_catalog("p", **settings)
    catalog.create_namespace("s")
    given = [word for key, value in settings.items() for word in ("--catalog-option", f"{key}={value}")]

    def run(target: str, *more: str) -> Run:
        line = ("--assume-committed=0s", tmp_path / "t", "--to", target, "--yes")
        return acidctl("migrate", *line, *(more or given))

    assert run("iceberg:p/s.t").status == 0
    assert catalog.load_table("s.t").scan().to_arrow()["b"].to_pylist() == ["a"]
    missing = run("iceberg:p/none.t")
    assert (missing.status, "create the namespace" in missing.err) == (NotFoundError.exit_status, True)
    away = run("iceberg:p/s.t", "--catalog-option", "type=sql", "--catalog-option", "uri=sqlite:////nowhere/at/all.db")
    assert away.status in (StorageError.exit_status, UsageProblem.exit_status)
    assert "this is a bug" not in away.err


def test_a_table_without_rows(tmp_path: Path) -> None:
    table, to = tmp_path / "t", tmp_path / "copy"
    write_acid(table / D1 / "bucket_00000", insert(1, 0, (1, "a")))
    write_acid(table / "delete_delta_0000002_0000002_0000" / "bucket_00000", delete(1, 0, 2))
    done = copy(table, to)
    assert (done.rows, done.snapshot) == (0, None)
    metadata = sorted((to / "metadata").iterdir())
    assert copy(table, to).result is Result.NOTHING_TO_DO
    assert sorted((to / "metadata").iterdir()) == metadata
    write_acid(table / "delta_0000003_0000003_0000" / "bucket_00000", insert(3, 0, (3, "c")))
    assert (copy(table, to).rows, rows(to)) == (1, [(3, "c")])


def test_columns_stay_left_out(tmp_path: Path) -> None:
    table, to = tmp_path / "t", tmp_path / "copy"
    write_acid(table / D1 / "bucket_00000", insert(1, 0, (1, "a")))
    copy(table, to, drop_column=("b",))
    write_acid(table / D2 / "bucket_00000", insert(2, 0, (2, "b")))
    assert (copy(table, to).notes, rows(to)) == ((), [(1,), (2,)])
    with pytest.raises(UsageProblem, match="was made without b"):
        copy(table, to, drop_column=("a",))


def test_rows_that_would_differ_are_not_committed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, to = tmp_path / "t", tmp_path / "copy"
    write_acid(table / D1 / "bucket_00000", insert(1, 0, (1, "a")))
    copy(table, to)
    write_acid(table / D2 / "bucket_00000", insert(2, 0, (2, "b")))
    files = len(list((to / "data").iterdir()))

    def without_its_row(sources: Any, targets: Any) -> Any:
        found = difference(sources, targets)
        return replace(found, wanted=tuple(replace(one, dead=np.array([0])) for one in found.wanted))

    with monkeypatch.context() as patched:
        patched.setattr("acidctl.iceberg.copy.difference", without_its_row)
        with pytest.raises(VerifyError, match="would differ"):
            copy(table, to)
    assert (rows(to), len(list((to / "data").iterdir()))) == ([(1, "a")], files)
    assert copy(table, to).rows == 1


def test_a_target_below_a_directory_that_is_missing(tmp_path: Path, acidctl: Acidctl) -> None:
    write_acid(tmp_path / "t" / D1 / "bucket_00000", insert(1, 0, (1, "a")))
    line = ("migrate", "--assume-committed=0s", tmp_path / "t", "--yes", "--to")
    found = acidctl(*line, tmp_path / "no" / "such" / "copy")
    assert found.status == NotFoundError.exit_status, found.err
    assert "bug" not in found.err
    assert acidctl(*line, tmp_path / "copy").status == 0


def test_metadata_of_another_directory_is_refused(tmp_path: Path) -> None:
    table, to = tmp_path / "t", tmp_path / "copy"
    write_acid(table / D1 / "bucket_00000", insert(1, 0, (1, "a")))
    copy(table, to)
    shutil.move(to, tmp_path / "moved")
    with pytest.raises(RefusedError, match="will not write to"):
        copy(table, tmp_path / "moved")
    assert not to.exists()


def test_without_pyiceberg_the_extra_is_named(tmp_path: Path) -> None:
    write_acid(tmp_path / "t" / D1 / "bucket_00000", insert(1, 0, (1, "a")))
    program = "import sys; sys.modules['pyiceberg'] = None; from acidctl.cli.main import main; main()"
    line = ("migrate", "--assume-committed=0s", tmp_path / "t", "--to", tmp_path / "copy", "--yes")
    found = subprocess.run(
        [sys.executable, "-c", program, *map(str, line)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=REPO,
    )
    assert found.returncode == EnvironmentProblem.exit_status
    assert "pip install 'acidctl[iceberg]'" in found.stderr


def test_it_must_be_known_what_is_committed(tmp_path: Path, acidctl: Acidctl) -> None:
    write_acid(tmp_path / "t" / D1 / "bucket_00000", insert(1, 0, (1, "a")))
    found = acidctl("migrate", tmp_path / "t", "--to", tmp_path / "copy", "--yes")
    assert (found.status, (tmp_path / "copy").exists()) == (RefusedError.exit_status, False)
    assert "which write ids are committed" in found.err


def test_a_column_is_left_out(tmp_path: Path) -> None:
    write_acid(tmp_path / "t" / D1 / "bucket_00000", insert(1, 0, (1, "a")))
    copy(tmp_path / "t", tmp_path / "copy", drop_column=("B",))
    assert rows(tmp_path / "copy") == [(1,)]
    with pytest.raises(UsageProblem, match="no column"):
        copy(tmp_path / "t", tmp_path / "copy2", drop_column=("x",))
    with pytest.raises(UsageProblem, match="no column would be left"):
        copy(tmp_path / "t", tmp_path / "copy2", drop_column=("A", "b"))
    assert not (tmp_path / "copy2").exists()
    copy(tmp_path / "t", tmp_path / "copy2")
    with pytest.raises(UsageProblem, match="the copy was made with all columns"):
        copy(tmp_path / "t", tmp_path / "copy2", drop_column=("a",))
