"""How far buckets are cut: as cores and sizes want it, and nothing is lost or there twice."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.compacting import copy_table, plan_compaction, run_compaction
from support.files.acid_files import AB, B0, delete, insert, write_acid, write_by_pyorc
from support.tables import ids_in, pairs_of, snapshot_of

from acidctl.acid.compaction_kind import CompactionKind
from acidctl.compaction import split
from acidctl.compaction.local_engine import LocalEngine
from acidctl.compaction.output_settings import Writing
from acidctl.compaction.plan import CompactionPlan
from acidctl.compaction.run import compact
from acidctl.compaction.split import cut, joined_groups, shared_out
from acidctl.compaction.tasks import BucketTask, ConcatTask, StripeGroup
from acidctl.orc.write.writer_settings import WriterSettings


def write_deltas(table: Path, buckets: Sequence[int]) -> None:
    """So many deltas of a row for each bucket, each file with a stripe; bucket 0 has deletes."""
    for bucket, count in enumerate(buckets):
        for write_id in range(1, count + 1):
            path = table / f"delta_{write_id}_{write_id}_0" / f"bucket_{bucket:05d}"
            write_acid(path, (0, write_id, B0 | bucket << 16, 0, write_id, (write_id, bucket)), row=AB)
    last = max(buckets) + 1
    write_acid(table / f"delete_delta_{last:07}_{last:07}_0000" / "bucket_00000", (2, 1, B0, 0, last, None))


def planned(table: Path, kind: CompactionKind = CompactionKind.MAJOR, **writing: int) -> CompactionPlan:
    return plan_compaction(snapshot_of(table), kind, "_tmp_1", Writing(**writing))


class Watched(LocalEngine):
    """Remembers what it was given first."""

    def __init__(self, jobs: int) -> None:
        super().__init__(jobs)
        self.tasks: list[BucketTask] = []

    def __call__(self, tasks, function) -> Iterator:  # type: ignore[no-untyped-def, type-arg]
        self.tasks = self.tasks or list(tasks)
        return super().__call__(tasks, function)


@pytest.fixture
def fine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every stripe of the tests is worth a task."""
    monkeypatch.setattr("acidctl.compaction.plan_tasks.FINEST", 1)
    monkeypatch.setattr(split, "FINEST", 1)


def cut_into(table: Path, cores: int) -> list[int]:
    """The sizes of the parts of each bucket, in stripes."""
    ((*tasks,),) = shared_out([planned(table).tasks], cores)
    return [len(task.inserts) for task in tasks]


@pytest.mark.usefixtures("fine")
def test_the_more_cores_the_more_segments(tmp_path: Path) -> None:
    write_deltas(tmp_path, [12])
    assert cut_into(tmp_path, 1) == [12]
    parts = [len(cut_into(tmp_path, cores)) for cores in (1, 2, 4, 100)]
    assert parts[0] < parts[1] < parts[2] <= parts[3] <= 12
    for cores in (2, 4, 100):
        assert sum(cut_into(tmp_path, cores)) == 12


@pytest.mark.usefixtures("fine")
def test_buckets_that_keep_all_cores_busy_are_left_whole(tmp_path: Path) -> None:
    write_deltas(tmp_path, [2] * 8)
    assert cut_into(tmp_path, 2) == [2] * 8
    (tmp_path / "wide").mkdir()
    write_deltas(tmp_path / "wide", [60, 2, 2])
    assert cut_into(tmp_path / "wide", 2)[-2:] == [2, 2]
    assert len(cut_into(tmp_path / "wide", 2)) > 4


def test_what_is_small_is_left_whole(tmp_path: Path) -> None:
    write_deltas(tmp_path, [12])
    assert cut_into(tmp_path, 1000) == [12]


@pytest.mark.usefixtures("fine")
def test_a_segment_is_no_smaller_than_the_deletes_that_it_reads(tmp_path: Path) -> None:
    write_deltas(tmp_path, [12])
    numbers = sorted(random.Random(1).sample(range(10**12), 5000))
    rows = ((2, 1, B0, row, 99, None) for row in numbers)
    write_acid(tmp_path / "delete_delta_0000099_0000099_0000" / "bucket_00000", *rows, settings=WriterSettings("none"))
    assert cut_into(tmp_path, 1000) == [12]


@pytest.mark.usefixtures("fine")
@pytest.mark.parametrize("kind", list(CompactionKind))
@pytest.mark.parametrize("cores", [1, 2, 3])
def test_the_result_is_the_same_however_it_is_cut(tmp_path: Path, kind: CompactionKind, cores: int) -> None:
    write_deltas(tmp_path, [9, 4])
    rows = pairs_of(tmp_path)
    engine = Watched(cores)
    (outcome,) = compact([planned(tmp_path, kind)], engine, offline=True)
    assert outcome.error is None
    assert any(task.segment is not None for task in engine.tasks) == (cores > 1)
    assert not any(task.pieces for task in engine.tasks), "nothing is sent that no task needs"
    assert pairs_of(tmp_path) == rows
    assert outcome.rows == {CompactionKind.MAJOR: 12, CompactionKind.MINOR: 14}[kind]


@pytest.mark.usefixtures("fine")
def test_who_says_a_size_gets_it(tmp_path: Path) -> None:
    write_deltas(tmp_path, [12])
    engine = Watched(4)
    (outcome,) = compact([planned(tmp_path, task_bytes=1 << 30)], engine)
    assert outcome.error is None
    assert len(engine.tasks) == 1


PIECES = st.lists(st.builds(lambda size, rows: (size, rows), st.integers(0, 50), st.integers(0, 9)), max_size=30)


@given(PIECES, st.integers(1, 200))
def test_joined_pieces_hold_what_they_held(sizes: list[tuple[int, int]], limit: int) -> None:
    pieces = [StripeGroup({at % 3: (at // 3, at // 3 + 1)}, size, rows) for at, (size, rows) in enumerate(sizes)]
    larger = joined_groups(pieces, limit)
    assert sum(piece.bytes for piece in larger) == sum(size for size, _ in sizes)
    assert sum(piece.rows for piece in larger) == sum(rows for _, rows in sizes)
    assert all(piece.bytes >= limit for piece in larger[:-1])
    stripes = [(file, n) for piece in larger for file, (first, end) in piece.spans.items() for n in range(first, end)]
    assert sorted(stripes) == sorted((at % 3, at // 3) for at in range(len(sizes)))


def test_what_is_put_together_without_ids_is_never_cut(tmp_path: Path) -> None:
    write_deltas(tmp_path, [3])
    (task,) = planned(tmp_path).tasks
    assert isinstance(task, BucketTask)
    concat = ConcatTask(
        **{name: getattr(task, name) for name in (*_SHARED, "sources")},
        format="orc",  # type: ignore[arg-type]
    )
    assert shared_out([[concat]], 8) == [(concat,)]
    assert [part.segment for part in cut(task, 1)] == [None], "a piece is at least as large as it is worth"


_SHARED = ("storage", "bucket", "attempts", "row", "settings", "calendar", "weight", "rows", "may_copy", "verify")


def test_a_cut_minor_compaction_leaves_out_what_deletes_nothing(tmp_path: Path) -> None:
    """An event older than its row lies beside it in the wider directory, where Hive 4 would apply it."""
    made = tmp_path / "t"
    for write_id in (2, 5, 6, 7):
        rows = [insert(write_id, row) for row in range(50)]
        write_by_pyorc(made / f"delta_{write_id:07}_{write_id:07}_0000", rows)
    write_by_pyorc(made / "delete_delta_0000003_0000003_0000", [delete(2, 0, 3), delete(5, 0, 3)])
    for name, size in (("whole", None), ("cut", 600)):
        table = copy_table(made, tmp_path / name)
        assert run_compaction(table, CompactionKind.MINOR, writing=Writing(task_bytes=size)) is not None
        assert ids_in(table / "delete_delta_0000002_0000007" / "bucket_00000") == [(2, 2, B0, 0, 3)]
