"""A big bucket cut into segments gives the file that one task gives."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from support.compacting import copy_table, plan_compaction, run_compaction
from support.files.acid_files import AB, B0, acid_batch, write_acid
from support.tables import ids_in, pairs_of, snapshot_of

from acidctl.acid.compaction_kind import CompactionKind
from acidctl.base.errors import BadDataError, VerifyError
from acidctl.compaction.kernel import run_task
from acidctl.compaction.local_engine import LocalEngine
from acidctl.compaction.merge import written
from acidctl.compaction.output_settings import Writing
from acidctl.compaction.publish import publish, stage_directories
from acidctl.compaction.run import compact
from acidctl.compaction.split import split
from acidctl.compaction.tasks import JoinTask
from acidctl.orc.write.stripe_encoder import WriterSettings
from acidctl.rows.read.events import open_event_files

MAJOR, MINOR = CompactionKind
FINE = Writing(task_bytes=1)


def write_stripes(path: Path, write_id: int, rows: int, compression: str = "zlib") -> None:
    """A file with many stripes of one write id."""
    batches = []
    for start in range(0, rows, 1000):
        numbers = np.arange(start, min(start + 1000, rows)).astype(np.int32)
        values = pa.StructArray.from_arrays([pa.array(numbers), pa.array(numbers % 7)], names=["a", "b"])
        batches.append(acid_batch(values, start, write_id=write_id))
    write_acid(path, *batches, row=AB, settings=WriterSettings(compression, stride=100))


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A base of five stripes, two deltas of two, deletes that hit three of the nine."""
    table = tmp_path / "t"
    write_stripes(table / "base_5" / "bucket_00000", 5, 4500)
    for write_id in (6, 7):
        write_stripes(table / f"delta_{write_id}_{write_id}_0" / "bucket_00000", write_id, 1500)
    dead = [(5, 7), (5, 8), (5, 3200), (7, 1400)]
    write_acid(table / "delete_delta_0000008_0000008_0000" / "bucket_00000", *((2, w, B0, i, 8, None) for w, i in dead))
    write_acid(table / "delta_6_6_0" / "bucket_00001", (0, 6, B0 | 1 << 16, 0, 6, (1, 2)))
    return table


@pytest.mark.parametrize("kind", [MAJOR, MINOR])
@pytest.mark.parametrize("small", [0, 1 << 20], ids=["copied", "encoded"])
def test_segments_give_what_one_task_gives(
    kind: CompactionKind, small: int, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(written, "SMALL_STRIPE", small)
    whole, cut = copy_table(table, tmp_path / "whole"), copy_table(table, tmp_path / "cut")
    rows = pairs_of(table)
    one = run_compaction(whole, kind)
    many = run_compaction(cut, kind, writing=FINE)
    assert one
    assert many
    tasks = [task for task in many.plan.tasks if task.bucket == 0]
    assert len(tasks) == {MAJOR: 9, MINOR: 5}[kind]  # a minor compaction: four stripes, and the delete events
    assert one.stripes[0] == many.stripes[0] == (0 if small else {MAJOR: 6, MINOR: 4}[kind])
    assert pairs_of(cut) == pairs_of(whole) == rows
    for name in one.published:
        for file in (whole / name).glob("bucket_*"):
            assert ids_in(cut / name / file.name) == ids_in(file)
        assert {f.name for f in (cut / name).iterdir()} == {f.name for f in (whole / name).iterdir()}
    assert not list(cut.glob("_tmp*"))
    assert (many.rows, many.rows_dropped) == (one.rows, one.rows_dropped)


def test_what_travels_is_small_and_can_be_pickled(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(written, "SMALL_STRIPE", 0)
    plan = plan_compaction(snapshot_of(table), MAJOR, "_tmp_1", FINE)
    stage_directories(plan)
    results = [pickle.loads(pickle.dumps(run_task(pickle.loads(pickle.dumps(task))))) for task in plan.tasks]
    segments = tuple(result.segment for result in results if result.segment)
    join = JoinTask(plan.tasks[0], segments)
    assert len(pickle.dumps(join)) < 100_000
    results.append(pickle.loads(pickle.dumps(run_task(pickle.loads(pickle.dumps(join))))))
    assert publish(plan, results, offline=False) == ("base_0000008",)


def test_a_lost_segment_is_noticed(table: Path) -> None:
    class Forgetful(LocalEngine):
        def __call__(self, tasks, function):  # type: ignore[no-untyped-def]
            for place, result in super().__call__(tasks, function):
                task = tasks[place]
                is_join = isinstance(task, JoinTask)
                yield place, function(JoinTask(task.like, task.segments[:-1])) if is_join else result

    before = sorted(path.name for path in table.iterdir())
    (outcome,) = compact([plan_compaction(snapshot_of(table), MAJOR, "_tmp_1", FINE)], Forgetful(1))
    assert isinstance(outcome.error, VerifyError)
    assert "put together" in outcome.error.why
    assert sorted(path.name for path in table.iterdir() if path.name != "_tmp_1") == before


def test_a_wrong_key_index_stops_the_join(tmp_path: Path) -> None:
    """Its file claims that the keys of two stripes do not interleave; they do."""
    table = tmp_path / "t"
    path = table / "base_5" / "bucket_00000"
    write_stripes(path, 5, 2000, "none")
    data = path.read_bytes()
    wrong = data.replace(f"5,{B0},999;".encode(), f"5,{B0},099;".encode())
    assert wrong != data
    path.write_bytes(wrong)
    write_acid(table / "delta_6_6_0" / "bucket_00000", (0, 5, B0, 500, 6, (1, 2)))
    with pytest.raises(BadDataError, match="out of order"):
        run_compaction(table, MAJOR, writing=FINE)
    assert sorted(child.name for child in table.iterdir()) == ["base_5", "delta_6_6_0"]


def test_stripes_whose_keys_interleave_stay_together(tmp_path: Path) -> None:
    """Write ids 1 and 3 in one stripe, 2 in another file, 4 in a third: only before the last is a cut."""
    table = tmp_path / "t"
    write_acid(table / "delta_1_3" / "bucket_00000", *((0, w, B0, 0, w, (w, w)) for w in (1, 3)))
    write_acid(table / "delta_1_3" / "bucket_00001", (0, 2, B0 | 1 << 16, 0, 2, (2, 2)))
    write_acid(table / "delta_4_4_0" / "bucket_00000", (0, 4, B0, 0, 4, (4, 4)))
    snapshot = snapshot_of(table)
    files = sorted(open_event_files(snapshot, snapshot.files()), key=lambda file: file.path)
    assert [piece.spans for piece in split(files, 1)] == [{0: (0, 1), 1: (0, 1)}, {2: (0, 1)}]
