"""A bucket's task reads and holds only the deletes that may hit its rows, wherever they lie."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest
from support.compacting import plan_compaction, run_compaction
from support.files.acid_files import Event, delete, insert, write_acid, write_plain
from support.files.orc_bytes import retailed
from support.tables import mark, read_rows, snapshot_of

from acidctl.acid.bucket import encode
from acidctl.acid.compaction_kind import CompactionKind
from acidctl.base.errors import BadDataError, RefusedError
from acidctl.compaction.plan import CompactionPlan
from acidctl.compaction.tasks import BucketTask
from acidctl.orc import orc_pb2 as pb
from acidctl.orc.read.reader import OrcFile
from acidctl.rows.read import events
from acidctl.rows.read.delete_set import StripeRange

BUCKETS, ROWS = 12, 6
NEXT = "delta_0000003_0000003_0000"
DELTA, DELETES = "delta_0000001_0000001_0000", "delete_delta_{0:07}_{0:07}_0000"


def plan_of(table: Path, kind: CompactionKind = CompactionKind.MAJOR) -> CompactionPlan:
    return plan_compaction(snapshot_of(table), kind, "_tmp_0")


def kills_of(plan: CompactionPlan) -> dict[int, list[str]]:
    """The delete files that the task of each bucket reads."""
    tasks = [task for task in plan.tasks if isinstance(task, BucketTask)]
    return {task.bucket: [one.file.path for one in task.kills] for task in tasks}


def write_bucketed(table: Path, version: int = 1, statement: int = 0) -> None:
    """Twelve buckets of six rows, of each of which two deltas delete the first and the third."""
    for number in range(BUCKETS):
        bucket = encode(number, statement if version else 0, version)
        rows = [insert(1, row, bucket=bucket) for row in range(ROWS)]
        write_acid(table / DELTA / f"bucket_{number:05}", *rows)
        for write_id, row in ((2, 0), (3, 2)):
            write_acid(table / DELETES.format(write_id) / f"bucket_{number:05}", delete(1, row, write_id, bucket))


def without_statistics(file: Path) -> None:
    """As compactions of Hive by MapReduce leave it."""

    def change(footer: pb.Footer, _: pb.PostScript) -> None:
        footer.rowIndexStride = 0

    file.write_bytes(retailed(file.read_bytes(), change))


@pytest.mark.parametrize(("version", "statement"), [(0, 0), (1, 0), (1, 3)])
@pytest.mark.parametrize("kind", CompactionKind)
@pytest.mark.parametrize("is_bare", [False, True])
def test_a_task_reads_the_delete_files_of_its_bucket(
    tmp_path: Path, version: int, statement: int, kind: CompactionKind, is_bare: bool
) -> None:
    write_bucketed(tmp_path, version, statement)
    if is_bare:
        for file in tmp_path.rglob("bucket_*"):
            without_statistics(file)
    expected = {n: [f"{DELETES.format(write_id)}/bucket_{n:05}" for write_id in (2, 3)] for n in range(BUCKETS)}
    assert kills_of(plan_of(tmp_path, kind)) == expected


def test_a_file_is_opened_as_often_however_many_buckets_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: Counter[str] = Counter()
    usual = OrcFile.__init__

    def counting(self: OrcFile, *args: object, **options: object) -> None:
        usual(self, *args, **options)  # type: ignore[arg-type]
        opened[self.tail.path] += 1

    monkeypatch.setattr(OrcFile, "__init__", counting)
    write_bucketed(tmp_path)
    assert run_compaction(tmp_path, CompactionKind.MAJOR) is not None
    assert {name: count for name, count in opened.items() if "delete_delta" in name and count > 1} == {}


def events_at_random(choice: random.Random) -> tuple[dict[str, list[Event]], dict[str, list[Event]]]:
    """Rows and deletes by file: buckets of both codecs and of several statements; one time in four a file is another's.

    Returns:
        Rows and deletes by the number of their file.
    """
    rows: dict[str, list[Event]] = {}
    deletes: dict[str, list[Event]] = {}
    for number, statement, version in [(n, s, v) for n in range(5) for s, v in ((0, 0), (0, 1), (2, 1))]:
        value = encode(number, statement, version)
        own, other = f"bucket_{number:05}", f"bucket_{(number + 1) % 7:05}"
        rows.setdefault(choice.choices((own, other), (9, 1))[0], []).extend(
            insert(1, r, bucket=value) for r in range(8)
        )
        for row in choice.sample(range(8), 3):
            deletes.setdefault(choice.choices((own, other), (40, 1))[0], []).append(delete(1, row, 2, value))
    return rows, deletes


@pytest.mark.parametrize("seed", range(16))
def test_every_delete_is_applied_or_the_compaction_is_refused(tmp_path: Path, seed: int) -> None:
    choice = random.Random(seed)
    rows, deletes = events_at_random(choice)
    for directory, files in ((DELTA, rows), (DELETES.format(2), deletes), (NEXT, {"bucket_00000": [insert(3, 0)]})):
        for name, found in files.items():
            written = write_acid(tmp_path / directory / name, *sorted(found, key=lambda one: one[1:4]))
            if choice.random() < 0.3:
                without_statistics(written)
        mark(tmp_path / directory)
    dead = {one[1:4] for found in deletes.values() for one in found}
    alive = [*sorted({one[1:4] for found in rows.values() for one in found} - dead), insert(3, 0)[1:4]]
    places = {one[1:4]: name for name, found in rows.items() for one in found}
    apart = any(places[one[1:4]] != name for name, found in deletes.items() for one in found)
    assert run_compaction(tmp_path, CompactionKind.MINOR) is not None
    assert [key for key, _ in read_rows(tmp_path)] == alive
    if apart:
        with pytest.raises(RefusedError, match="V21"):
            run_compaction(tmp_path, CompactionKind.MAJOR)
    else:
        assert run_compaction(tmp_path, CompactionKind.MAJOR) is not None
    assert [key for key, _ in read_rows(tmp_path)] == alive


def test_originals_with_deletes_of_either_codec(tmp_path: Path) -> None:
    """Hive 2 names rows of original files by the plain number, Hive 3 by its own form."""
    for version in (0, 1):
        table = tmp_path / str(version)
        for number in range(BUCKETS):
            write_plain(table / f"{number:06}_0", *[(row, row) for row in range(4)])
            write_acid(table / DELETES.format(1) / f"bucket_{number:05}", delete(0, 1, 1, encode(number, 0, version)))
        assert {len(files) for files in kills_of(plan_of(table)).values()} == {1}
        assert run_compaction(table, CompactionKind.MAJOR) is not None
        assert [key[2] for key, _ in read_rows(table)] == [0, 2, 3] * BUCKETS


@pytest.mark.parametrize("claimed", [0, 40])
def test_statistics_that_lie_lose_no_delete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, claimed: int) -> None:
    """The file of deletes is read by somebody, who finds out: by a task of the bucket it claims, or by any."""
    write_bucketed(tmp_path)
    write_acid(tmp_path / DELETES.format(4) / "bucket_00001", delete(1, 4, 4, encode(1)))
    usual = events.stripe_ranges

    def lying(tail: object) -> list[StripeRange | None]:
        found = usual(tail)  # type: ignore[arg-type]
        if DELETES.format(4) not in tail.path:  # type: ignore[attr-defined]
            return found
        return [StripeRange((1, 1), (encode(claimed),) * 2, (4, 4), (4, 4), False) for _ in found]

    monkeypatch.setattr(events, "stripe_ranges", lying)
    with pytest.raises(BadDataError, match="statistics"):
        run_compaction(tmp_path, CompactionKind.MAJOR)
    assert not list(tmp_path.glob("base_*"))


def test_planning_opens_no_file_where_statistics_tell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_bucketed(tmp_path)
    monkeypatch.setattr(OrcFile, "read_stripe", None)
    assert plan_of(tmp_path).buckets == BUCKETS
