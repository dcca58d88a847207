"""What a compaction refuses, what it notices, and what an interruption leaves behind."""

from __future__ import annotations

import time
import uuid
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import orc as pyarrow_orc
from support.compacting import plan_compaction
from support.files.acid_files import B0, write_acid
from support.tables import pairs_of, snapshot_of

from acidctl.acid.compaction_kind import CompactionKind, Hive
from acidctl.acid.listing import TableType
from acidctl.acid.writeids import ValidTxns, ValidWriteIds
from acidctl.base.errors import BadDataError, ConflictError, NotFoundError, RefusedError
from acidctl.cleaning.plan import plan_cleaning
from acidctl.cleaning.retention import AT_ONCE
from acidctl.compaction import kernel
from acidctl.compaction.output_settings import Writing
from acidctl.compaction.plan import CompactionPlan
from acidctl.compaction.publish import stage_directories
from acidctl.compaction.refusals import refuse_unsafe
from acidctl.compaction.run import Compacted, compact
from acidctl.location.change.publication import finish_half_published, half_published
from acidctl.orc.byte_source import ByteSource
from acidctl.orc.tail import read_tail
from acidctl.storage.local.filesystem import LocalFileSystem

MAJOR, MINOR = CompactionKind.MAJOR, CompactionKind.MINOR


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Three rows, one of them updated, that one deleted."""
    table = tmp_path / "t"
    write_acid(table / "delta_1_1_0" / "bucket_00000", *((0, 1, B0, i, 1, (i, i)) for i in range(3)))
    write_acid(table / "delete_delta_0000002_0000002_0000" / "bucket_00000", (2, 1, B0, 2, 2, None))
    write_acid(table / "delta_2_2_0" / "bucket_00000", (0, 2, B0, 0, 2, (9, 9)))
    write_acid(table / "delete_delta_0000003_0000003_0000" / "bucket_00000", (2, 2, B0, 0, 3, None))
    return table


def plan_of(table: Path, kind: CompactionKind) -> CompactionPlan:
    snapshot = snapshot_of(table, ValidWriteIds().for_compactor())
    writing = Writing(reader=Hive.HIVE2)
    return plan_compaction(snapshot, kind, f"_tmp_{uuid.uuid4()}", writing, table_type=TableType.FULL_ACID)


def run(plan: CompactionPlan) -> Compacted:
    (outcome,) = compact([plan], offline=True)
    return outcome


def contents(table: Path) -> set[str]:
    return {path.name for path in table.iterdir()}


@pytest.mark.parametrize("dies_at", [1, 2])
@pytest.mark.parametrize("how", [KeyboardInterrupt, OSError])
def test_a_minor_that_fails_between_its_renames_is_taken_back(
    table: Path, monkeypatch: pytest.MonkeyPatch, how: type[BaseException], dies_at: int
) -> None:
    before, rows = contents(table), pairs_of(table)
    plan = plan_of(table, MINOR)
    rename = LocalFileSystem.rename
    calls = []

    def fails(self: LocalFileSystem, source: str, target: str) -> None:
        if "/_tmp_" in source and "/_tmp_" not in target:
            calls.append(target)
            if len(calls) == dies_at:
                raise RefusedError("no") if how is OSError else how
        rename(self, source, target)

    monkeypatch.setattr(LocalFileSystem, "rename", fails)
    if how is KeyboardInterrupt:
        with pytest.raises(KeyboardInterrupt):
            run(plan)
    else:
        assert run(plan).error
    monkeypatch.undo()
    assert len(calls) == dies_at
    assert contents(table) == before
    assert pairs_of(table) == rows


@pytest.mark.parametrize("dies_at", [1, 2])
def test_a_minor_that_is_interrupted_after_a_rename_was_done(
    table: Path, monkeypatch: pytest.MonkeyPatch, dies_at: int
) -> None:
    """Ctrl-C comes at any moment: before anybody has written down that the directory is shown, too."""
    before, rows = contents(table), pairs_of(table)
    rename = LocalFileSystem.rename
    calls = []

    def interrupted(self: LocalFileSystem, source: str, target: str) -> None:
        rename(self, source, target)
        if "/_tmp_" in source and "/_tmp_" not in target:
            calls.append(target)
            if len(calls) == dies_at:
                raise KeyboardInterrupt

    monkeypatch.setattr(LocalFileSystem, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(plan_of(table, MINOR))
    monkeypatch.undo()
    assert pairs_of(table) == rows
    shown = {"delete_delta_0000001_0000003", "delta_0000001_0000003"} if dies_at == 2 else set()
    assert contents(table) == before | shown, "all of it, or nothing"


def test_a_minor_that_was_killed_between_its_renames_is_finished(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = pairs_of(table)
    plan = plan_of(table, MINOR)
    rename = LocalFileSystem.rename
    calls = []

    class Killed(BaseException):
        pass

    def dies(self: LocalFileSystem, source: str, target: str) -> None:
        # From the second rename on nothing works any more: as if the process were gone.
        if calls or "/_tmp_" not in target:
            calls.append(target)
            if len(calls) > 1:
                raise Killed
        rename(self, source, target)

    monkeypatch.setattr(LocalFileSystem, "rename", dies)
    monkeypatch.setattr(LocalFileSystem, "remove_tree", lambda *_: (_ for _ in ()).throw(Killed()))
    with pytest.raises(Killed):
        run(plan)
    monkeypatch.undo()
    snapshot = snapshot_of(table)
    assert half_published(snapshot)
    with pytest.raises(RefusedError, match="interrupted while it was published"):
        plan_cleaning(snapshot)
    assert finish_half_published(snapshot) == ("delta_0000001_0000003",)
    assert pairs_of(table) == rows
    assert not [name for name in contents(table) if name.startswith("_tmp")]
    assert plan_cleaning(snapshot_of(table), AT_ONCE).kept_back == ()


@pytest.mark.parametrize("change", ["grow", "add", "remove"])
def test_an_input_that_changes_meanwhile_is_noticed(
    table: Path, monkeypatch: pytest.MonkeyPatch, tasks_run_here: None, change: str
) -> None:
    plan = plan_of(table, MAJOR)
    file = table / "delta_2_2_0" / "bucket_00000"
    work = kernel.run_task

    def works(task):  # type: ignore[no-untyped-def]
        result = work(task)
        if change == "grow":
            file.write_bytes(file.read_bytes() + b"more")
        elif change == "add":
            (file.parent / "bucket_00001").write_bytes(file.read_bytes())
        else:
            file.unlink()
        return result

    monkeypatch.setattr("acidctl.compaction.run.run_task", works)
    outcome = run(plan)
    assert isinstance(outcome.error, ConflictError)
    assert "delta_2_2_0/bucket_0000" in outcome.error.why
    assert not [name for name in contents(table) if name.startswith(("_tmp", "base"))]


def test_of_two_compactions_one_wins(table: Path) -> None:
    rows = pairs_of(table)
    one, other = plan_of(table, MAJOR), plan_of(table, MAJOR)
    assert run(one).published == ("base_0000003",)
    assert isinstance(run(other).error, ConflictError)
    assert pairs_of(table) == rows
    assert not [name for name in contents(table) if name.startswith("_tmp")]


def test_unfinished_visibility_directories_are_not_built_on(table: Path) -> None:
    write_acid(table / "base_0000002_v0000100" / "bucket_00000", (0, 1, B0, 0, 1, (0, 0)))
    snapshot = snapshot_of(table, ValidWriteIds().for_compactor())
    with pytest.raises(RefusedError, match="cannot compact") as caught:
        refuse_unsafe(snapshot, time.time(), force=False)
    assert "--snapshot" in caught.value.hint
    refuse_unsafe(snapshot_of(table, ValidWriteIds().for_compactor(), ValidTxns(200)), time.time(), force=False)


@pytest.mark.parametrize(
    "sign",
    [
        "delta_4_5/bucket_00000_flush_length",
        "_tmp.delta_9_9_0/000000_0.manifest",
        "-tmp.delta_9_9_0/000000_0.manifest",
    ],
)
def test_writers_at_work_are_noticed(table: Path, sign: str) -> None:
    write_acid(table / "delta_4_5" / "bucket_00000", (0, 4, B0, 0, 4, (1, 1)))
    (table / sign).parent.mkdir(exist_ok=True)
    (table / sign).write_bytes(bytes(8))
    snapshot = snapshot_of(table, ValidWriteIds().for_compactor())
    with pytest.raises(RefusedError, match="a writer seems to be at work"):
        refuse_unsafe(snapshot, time.time(), force=False)
    refuse_unsafe(snapshot, time.time(), force=True)
    refuse_unsafe(snapshot_of(table, ValidWriteIds(3).for_compactor()), time.time(), force=False)


@pytest.mark.parametrize(
    ("extra", "rule"),
    [
        ("delta_0000001_0000001_0000/bucket_00001", "V5"),
        ("delta_1_2/bucket_00001", "overlap"),
        ("delta_1_1_0/bucket_00000_1", "V22"),
        ("delta_1_1_0/delta_1_1_0/bucket_00000", "V17"),
        ("delta_1_1_0/bucket_00000.fixacidindex", "not a bucket file"),
    ],
)
def test_layouts_that_hive_never_writes_are_not_merged(table: Path, extra: str, rule: str) -> None:
    if rule == "overlap":
        write_acid(table / "delta_2_4" / "bucket_00001", (0, 4, B0, 0, 4, (1, 1)))
        write_acid(table / "delta_3_5" / "bucket_00001", (0, 5, B0, 0, 5, (1, 1)))
    else:
        write_acid(table / extra, (0, 1, B0, 7, 1, (1, 1)))
    with pytest.raises(BadDataError, match="cannot compact") as caught:
        refuse_unsafe(snapshot_of(table, ValidWriteIds().for_compactor()), time.time(), force=True)
    assert rule in caught.value.why


def test_ids_of_rows_that_are_in_two_files_of_one_directory(table: Path) -> None:
    """Rows of a file without ids are numbered beside a file that has those numbers: one of each two would be lost."""
    pyarrow_orc.write_table(pa.table({"a": [7, 8], "b": [7, 8]}), str(table / "delta_1_1_0" / "000000_0"))
    before, rows = contents(table), pairs_of(table)
    snapshot = snapshot_of(table, ValidWriteIds().for_compactor())
    with pytest.raises(BadDataError, match="V25"):
        refuse_unsafe(snapshot, time.time(), force=True)
    assert (contents(table), pairs_of(table)) == (before, rows)


@pytest.mark.parametrize("txn", [0, 7])
def test_a_result_that_nobody_would_read(tmp_path: Path, txn: int) -> None:
    """No base of the highest number there is counts: the table could not be read any more."""
    last = 2**63 - 1
    write_acid(tmp_path / "t" / "delta_1_1_0" / "bucket_00000", (0, 1, B0, 0, 1, (1, 1)))
    write_acid(tmp_path / "t" / f"delta_{last}_{last}_0" / "bucket_00000", (0, last, B0, 0, last, (2, 2)))
    snapshot = snapshot_of(tmp_path / "t", ValidWriteIds().for_compactor())
    with pytest.raises(RefusedError) as caught:
        plan_compaction(snapshot, MAJOR, f"_tmp_{uuid.uuid4()}", visibility_txn=txn)
    assert "may not use" in caught.value.why
    assert plan_compaction(snapshot, MINOR, f"_tmp_{uuid.uuid4()}", visibility_txn=txn)


@pytest.mark.parametrize(
    "other", ["base_0000002_v0000007", "delta_0000001_0000002_v0000007", "delta_0000001_0000003_v0000007"]
)
def test_another_compaction_that_is_not_committed_yet(table: Path, other: str) -> None:
    """Its directory is there, but not read; once it is, its rows would come beside those of the new delta."""
    write_acid(table / other / "bucket_00000", (0, 1, B0, 0, 1, (0, 0)))
    for name in ("delta_1_1_0", "delete_delta_0000002_0000002_0000") if "1_0000002" in other else ():
        (table / name / "bucket_00000").unlink()
        (table / name).rmdir()
    snapshot = snapshot_of(table, ValidWriteIds().for_compactor(), ValidTxns.parse("9:7:7:"))
    with pytest.raises(RefusedError, match="to a delta") as caught:
        plan_compaction(snapshot, MINOR, f"_tmp_{uuid.uuid4()}")
    assert other in caught.value.why
    assert plan_compaction(snapshot, MAJOR, f"_tmp_{uuid.uuid4()}").insert_name == "base_0000003"
    aborted = snapshot_of(table, ValidWriteIds().for_compactor(), ValidTxns.parse(f"9:{2**63 - 1}::7"))
    assert plan_compaction(aborted, MINOR, f"_tmp_{uuid.uuid4()}")


@pytest.mark.parametrize(("kind", "shown"), [(MINOR, False), (MAJOR, True)])
def test_another_compaction_that_ends_meanwhile(table: Path, kind: CompactionKind, shown: bool) -> None:
    """Not read yet, once it is it would stand beside a delta of the same range; a base hides it."""
    snapshot = snapshot_of(table, ValidWriteIds().for_compactor(), ValidTxns.parse("9:7:7:"))
    plan = plan_compaction(snapshot, kind, f"_tmp_{uuid.uuid4()}", table_type=TableType.FULL_ACID)
    other = "delta_0000001_0000003_v0000007"
    write_acid(table / other / "bucket_00000", (0, 1, B0, 0, 1, (0, 0)))
    before = contents(table)
    outcome = run(plan)
    assert (outcome.error is None, contents(table)) == (shown, before | ({"base_0000003"} if shown else set()))
    if not shown:
        assert isinstance(outcome.error, ConflictError)
        assert f"{other} appeared" in str(outcome.error)


@pytest.mark.parametrize("txns", [None, "30:26:26,27:", "20:20:20:5"])
def test_the_transaction_of_the_compaction_itself_may_be_open(table: Path, txns: str | None) -> None:
    lists = ValidTxns.parse(txns) if txns else None
    for kind in (MAJOR, MINOR):
        snapshot = snapshot_of(table, ValidWriteIds().for_compactor(), lists)
        plan = plan_compaction(snapshot, kind, f"_tmp_{uuid.uuid4()}", visibility_txn=26)
        assert all(name.endswith("_v0000026") for name in plan.output_names)


def test_acid_v1_stays_without_a_version(tmp_path: Path) -> None:
    """With the marker of v2, readers would ignore the operations and show deleted rows (rule V12)."""
    table = tmp_path / "t"
    for write_id, operation in ((1, 0), (2, 1), (3, 2)):
        write_acid(table / f"delta_{write_id}_{write_id}" / "bucket_00000", (operation, 1, 0, 0, write_id, None))
    for file in table.rglob("bucket*"):
        rewrite_without_version(file)
    outcome = run(plan_of(table, MINOR))
    assert not outcome.error
    (name,) = outcome.published
    assert [path.name for path in (table / name).iterdir()] == ["bucket_00000"]
    fs = LocalFileSystem()
    assert read_tail(ByteSource(fs, str(table / name / "bucket_00000"))).acid_version is None


def rewrite_without_version(file: Path) -> None:
    """The file as Hive 1 would have written it."""
    from pyarrow import orc

    batches = [batch.replace_schema_metadata(None) for batch in orc.read_table(file).to_batches()]
    write_acid(file, *batches, acid_version=0)


def test_what_could_not_be_taken_back_is_kept_and_finished(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second rename fails, and so does undoing the first: the staging directory holds the only other half."""
    rows = pairs_of(table)
    plan = plan_of(table, MINOR)
    rename = LocalFileSystem.rename
    calls = []

    def fails(self: LocalFileSystem, source: str, target: str) -> None:
        if "/_attempts/" not in source:
            calls.append(target)
            if len(calls) > 1:
                raise RefusedError("no")
        rename(self, source, target)

    monkeypatch.setattr(LocalFileSystem, "rename", fails)
    error = run(plan).error
    monkeypatch.undo()
    assert error
    assert "appeared alone" in error.what
    assert finish_half_published(snapshot_of(table)) == ("delta_0000001_0000003",)
    assert pairs_of(table) == rows


def test_a_location_that_was_dropped_is_not_made_again(table: Path) -> None:
    """What makes directories makes those above them, too."""
    plan = plan_of(table, MAJOR)
    table.rename(table.parent / "dropped")
    assert isinstance(run(plan).error, NotFoundError)
    with pytest.raises(NotFoundError):
        stage_directories(plan)
    assert not table.exists()
