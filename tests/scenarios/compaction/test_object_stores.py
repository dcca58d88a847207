"""Where nothing can be renamed results appear by copies: what is refused, what a reader sees, what a death leaves."""

from __future__ import annotations

import contextlib
import json
import shutil
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.compacting import compact_location, plan_compaction
from support.files.acid_files import B0, write_acid
from support.made.objects import OBJECTS, copy_of, files, names, opened, snapshot_at, table_of_buckets, upload
from support.memory_store import MemoryFileSystem
from support.tables import Row, read_rows
from support.trouble.crash import Killed, ObjectDeath, a_dead_owner, each_death  # noqa: F401
from support.trouble.locks import locked

from acidctl.acid.compaction_kind import CompactionKind
from acidctl.acid.listing import TableType
from acidctl.acid.writeids import ValidTxns
from acidctl.base.errors import AcidctlError, ConflictError, RefusedError, StorageError
from acidctl.cleaning.plan import plan_cleaning
from acidctl.cleaning.retention import AT_ONCE
from acidctl.compaction.plan import CompactionPlan
from acidctl.compaction.request import CompactionRequest, Mode
from acidctl.compaction.run import Compacted, compact
from acidctl.location.change.lock import LOCK, Locking
from acidctl.location.change.own_files import Owner
from acidctl.location.change.publication import (
    INTENT,
    finish_half_published,
    finish_interrupted,
    half_published,
    show_copies,
)
from acidctl.location.snapshot import take_snapshot
from acidctl.storage.registry import open_location

MAJOR, MINOR = CompactionKind.MAJOR, CompactionKind.MINOR


@pytest.fixture
def one(tmp_path: Path) -> str:
    """One bucket."""
    return upload(table_of_buckets(tmp_path / "one", 1))


@pytest.fixture
def two(tmp_path: Path) -> str:
    """Two buckets."""
    return upload(table_of_buckets(tmp_path / "two", 2))


@pytest.fixture
def three(tmp_path: Path) -> str:
    """Three buckets."""
    return upload(table_of_buckets(tmp_path / "three", 3))


@pytest.fixture
def inserts(tmp_path: Path) -> str:
    """One bucket, and nothing deleted."""
    table = tmp_path / "inserts"
    for write_id in (1, 2):
        write_acid(table / f"delta_{write_id}_{write_id}_0" / "bucket_00000", (0, write_id, B0, 0, write_id, (1, 1)))
    return upload(table)


def plan_of(url: str, kind: CompactionKind, txn: int = 0, txns: ValidTxns | None = None) -> CompactionPlan:
    snapshot = snapshot_at(url, txns)
    return plan_compaction(snapshot, kind, f"_tmp_{uuid.uuid4()}", None, txn, table_type=TableType.FULL_ACID)


def run(plan: CompactionPlan, *, offline: bool = False) -> Compacted:
    with locked(plan.snapshot.fs, plan.snapshot.path):
        (outcome,) = compact([plan], offline=offline)
    return outcome


def compact_once(url: str, kind: CompactionKind, *, offline: bool = False) -> None:
    request = CompactionRequest(Mode(kind.value), table_type=TableType.FULL_ACID, force=True, offline=offline)
    compact_location(url, request, storage=OBJECTS)
    with locked(*opened(url)):  # where nothing was left to do, a dead run's lock stays until something changes
        pass


def deaths(work: Callable[[str], None], original: str, first: int = 0) -> Iterator[tuple[int, str]]:
    """:func:`crash.each_death` on copies of a table of objects."""
    return each_death(work, lambda _: copy_of(original), remove, ObjectDeath, first)


def remove(url: str) -> None:
    fs, path = opened(url)
    fs.remove_tree(path)


def begin_of_publication(work: Callable[[str], None], original: str) -> int:
    """The first point after the note of intent."""
    copy, death, points = copy_of(original), ObjectDeath(-1), []
    fs, path = opened(copy)

    def look() -> None:
        if any(entry.path.endswith(INTENT) for entry in fs.list_tree(path).entries):
            points.append(death.count)

    death.on_point = look
    with pytest.MonkeyPatch.context() as patch:
        death.install(patch)
        work(copy)
    fs.remove_tree(path)
    return points[0]


@pytest.mark.slow
def test_a_major_of_one_bucket_that_is_killed(one: str) -> None:
    """At every moment readers see the rows that they saw before, and the next run makes the rest of the files."""
    rows = read_rows(one)
    halves = points = 0
    for at, copy in deaths(lambda copy: compact_once(copy, MAJOR), one):
        points = at
        assert read_rows(copy) == rows, at
        if half_published(snapshot_at(copy)):
            halves += 1
            with pytest.raises(RefusedError, match="interrupted while it was published"):
                plan_cleaning(snapshot_at(copy))
        compact_once(copy, MAJOR)
        assert read_rows(copy) == rows, at
        assert files(copy, "base_0000003") == {"bucket_00000", "_metadata_acid", "_orc_acid_version"}, at
        assert not [name for name in names(copy) if name.startswith(("_tmp", LOCK))], at
    assert points > 20
    assert halves == 4  # after the data, before and after the first side file, before the second


@pytest.mark.sampled
@pytest.mark.parametrize("kind", [MAJOR, MINOR])
def test_several_files_that_nobody_reads(kind: CompactionKind, two: str) -> None:
    rows = read_rows(two)
    halves = 0

    def work(url: str) -> None:
        compact_once(url, kind, offline=True)

    for at, copy in deaths(work, two, begin_of_publication(work, two)):
        if half_published(snapshot_at(copy)):
            halves += 1
            with pytest.raises(RefusedError, match="interrupted while it was published"):
                plan_cleaning(snapshot_at(copy))
        else:
            assert read_rows(copy) == rows, at
        compact_once(copy, kind, offline=True)
        assert read_rows(copy) == rows, at
        assert plan_cleaning(snapshot_at(copy), AT_ONCE).kept_back == (), at
        assert not [name for name in names(copy) if name.startswith(("_tmp", LOCK))], at
    assert halves == (6 if kind is MAJOR else 8)


def test_killed_finishing_is_finished_by_the_next_run(two: str) -> None:
    rows = read_rows(two)

    def work(url: str) -> None:
        compact_once(url, MAJOR, offline=True)

    walk = deaths(work, two, begin_of_publication(work, two))
    half = next(copy for _, copy in walk if half_published(snapshot_at(copy)))
    for at, copy in deaths(work, half):
        assert half_published(snapshot_at(copy)) or read_rows(copy) == rows, at
        compact_once(copy, MAJOR, offline=True)
        assert read_rows(copy) == rows, at
        assert files(copy, "base_0000003") >= {"bucket_00001", "_metadata_acid", "_orc_acid_version"}, at


@pytest.mark.parametrize("kind", [MAJOR, MINOR])
def test_a_reader_at_every_call(kind: CompactionKind, one: str, inserts: str) -> None:
    """Whoever lists the location before or after any call of the compaction gets the same rows."""
    url = one if kind is MAJOR else inserts
    rows = read_rows(url)
    plan, death = plan_of(url, kind), ObjectDeath(-1)
    seen: list[list[Row]] = []

    def read() -> None:
        death.on_point = lambda: None  # the reader's own calls
        seen.append(read_rows(url))
        death.on_point = read

    death.on_point = read
    with pytest.MonkeyPatch.context() as patch:
        death.install(patch)
        assert not run(plan).error
    assert len(seen) > 15
    assert all(each == rows for each in seen)
    assert read_rows(url) == rows
    assert snapshot_at(url).state.current_names == {plan.insert_name}


def test_several_buckets_are_refused(three: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = names(three)
    monkeypatch.setattr("acidctl.compaction.run.run_task", lambda _: pytest.fail("work was done"))
    error = run(plan_of(three, MAJOR)).error
    assert isinstance(error, RefusedError)
    assert "3 files, one a bucket" in error.why
    assert "--offline" in error.hint
    assert "--visibility-txn" in error.hint
    assert names(three) == before


def test_several_files_are_refused_at_the_end_too(three: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """How many there will be is known for sure only then."""
    monkeypatch.setattr("acidctl.compaction.run.refuse_before_work", lambda *_: None)
    before = names(three)
    error = run(plan_of(three, MAJOR)).error
    assert isinstance(error, RefusedError)
    assert "--offline" in error.hint
    assert names(three) == before


def test_both_kinds_of_delta_are_refused(one: str) -> None:
    error = run(plan_of(one, MINOR)).error
    assert isinstance(error, RefusedError)
    assert "--major" in error.hint


def test_a_transaction_hides_them(three: str) -> None:
    rows = read_rows(three)
    known = ValidTxns.parse("50:9223372036854775807::")
    refused = run(plan_of(copy_of(three), MAJOR, 40, known)).error
    assert isinstance(refused, RefusedError)
    assert "committed already" in refused.why
    assert run(plan_of(three, MAJOR, 60, known)).published == ("base_0000003_v0000060",)
    assert read_rows(three, None, known) == rows
    assert files(three, "base_0000003_v0000060") >= {"bucket_00002", "_orc_acid_version"}
    assert read_rows(three) == rows


def test_buckets_without_rows_do_not_count(one: str, tmp_path: Path) -> None:
    write_acid(tmp_path / "x" / "bucket_00001", (0, 1, B0, 0, 1, (0, 0)))

    empty = write_acid(tmp_path / "empty")
    fs, path = opened(one)
    fs.write_bytes(f"{path}/delta_1_1_0/bucket_00001", empty.read_bytes())
    assert run(plan_of(one, MAJOR)).published == ("base_0000003",)


@pytest.mark.slow
def test_table_without_rows_becomes_an_empty_base(tmp_path: Path) -> None:
    table = tmp_path / "t"
    write_acid(table / "delta_1_1_0" / "bucket_00000", (0, 1, B0, 0, 1, (0, 0)))
    write_acid(table / "delete_delta_0000002_0000002_0000" / "bucket_00000", (2, 1, B0, 0, 2, None))
    url = upload(table)
    for at, copy in deaths(lambda copy: compact_once(copy, MAJOR), url):
        assert read_rows(copy) == [], at
        compact_once(copy, MAJOR)
        assert files(copy, "base_0000002") == {"bucket_00000", "_metadata_acid", "_orc_acid_version"}, at
        assert read_rows(copy) == [], at


def test_only_the_holder_of_the_lock_publishes(one: str) -> None:
    fs, path = opened(one)
    before = names(one)
    (outcome,) = compact([plan_of(one, MAJOR)])
    assert isinstance(outcome.error, ConflictError)
    assert "the lock" in outcome.error.what
    fs.write_bytes(f"{path}/{LOCK}", Owner("elsewhere", 7, 1, "etl", 0.0).to_bytes())
    (outcome,) = compact([plan_of(one, MAJOR)])
    assert outcome.error
    assert "etl on elsewhere" in outcome.error.why
    assert names(one) == before | {LOCK}


def test_dead_lock_is_broken_with_a_word(one: str) -> None:
    fs, path = opened(one)
    said: list[str] = []
    fs.write_bytes(f"{path}/{LOCK}", Owner.this().to_bytes())
    with locked(fs, path, on_break=said.append):
        pass
    assert "took over the lock" in said[0]
    fs.write_bytes(f"{path}/{LOCK}", Owner("elsewhere", 7, 1, "etl", 0.0).to_bytes())
    with pytest.raises(ConflictError, match="is locked"), locked(fs, path):
        raise AssertionError
    with locked(fs, path, break_stale=True):
        pass


@pytest.mark.parametrize("lost", [True, False])
def test_a_copy_without_an_answer(lost: bool, one: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may have been made: that is looked at; and may yet arrive: then the note stays, and the next run finishes."""
    rows = read_rows(one)
    copy, calls = MemoryFileSystem.copy, []

    def unanswered(self: MemoryFileSystem, source: str, target: str) -> None:
        calls.append((self, source, target))
        if lost:
            copy(self, source, target)
        raise StorageError("no answer")

    monkeypatch.setattr(MemoryFileSystem, "copy", unanswered)
    error = run(plan_of(one, MAJOR)).error
    monkeypatch.undo()
    assert (error is None) is lost
    if not lost:
        assert read_rows(one) == rows
        copy(*calls[0])  # late
        assert half_published(snapshot_at(one))
        compact_once(one, MAJOR)
    assert read_rows(one) == rows
    assert files(one, "base_0000003") == {"bucket_00000", "_metadata_acid", "_orc_acid_version"}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("arrives", [True, False])
@pytest.mark.parametrize("at", [0, 1, 2, 3])
@pytest.mark.parametrize("how", [KeyboardInterrupt, StorageError])
def test_an_end_in_the_middle_of_a_copy(
    how: type[BaseException], at: int, arrives: bool, two: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may arrive after the process has ended; nothing is lost by it."""
    rows = read_rows(two)
    copy, late = MemoryFileSystem.copy, []

    def ended(self: MemoryFileSystem, source: str, target: str) -> None:
        late.append((self, source, target))
        if len(late) > at:
            raise how("ended")
        copy(self, source, target)

    monkeypatch.setattr(MemoryFileSystem, "copy", ended)
    with contextlib.suppress(KeyboardInterrupt):
        error = run(plan_of(two, MAJOR), offline=True).error
        assert isinstance(error, StorageError)
        assert ("appeared, and what belongs to it did not" in error.what) is (at > 0)
    monkeypatch.undo()
    if arrives:
        copy(*late[at])
    is_whole = at == 3 and arrives
    assert bool(half_published(snapshot_at(two))) is ((at > 0 or arrives) and not is_whole)
    compact_once(two, MAJOR, offline=True)
    assert read_rows(two) == rows
    assert files(two, "base_0000003") == {"bucket_00000", "bucket_00001", "_metadata_acid", "_orc_acid_version"}


def test_what_fails_is_taken_back(three: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, before = read_rows(three), names(three)
    copy, calls = MemoryFileSystem.copy, []

    def denied(self: MemoryFileSystem, source: str, target: str) -> None:
        calls.append(target)
        if len(calls) > 2:
            raise ConflictError("somebody else's")
        copy(self, source, target)

    monkeypatch.setattr(MemoryFileSystem, "copy", denied)
    assert isinstance(run(plan_of(three, MAJOR), offline=True).error, ConflictError)
    assert len(calls) == 3
    assert names(three) == before
    assert read_rows(three) == rows


def test_what_cannot_be_taken_back_is_finished(three: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = read_rows(three)
    copy, remove = MemoryFileSystem.copy, MemoryFileSystem.remove_tree

    def fails(self: MemoryFileSystem, source: str, target: str) -> None:
        if target.endswith("bucket_00002"):
            raise ConflictError("no")
        copy(self, source, target)

    def kept(self: MemoryFileSystem, path: str) -> None:
        if "/base_" in path:
            raise StorageError("no")
        remove(self, path)

    monkeypatch.setattr(MemoryFileSystem, "copy", fails)
    monkeypatch.setattr(MemoryFileSystem, "remove_tree", kept)
    error = run(plan_of(three, MAJOR), offline=True).error
    monkeypatch.undo()
    assert error
    assert "base_0000003/bucket_00001 appeared" in error.what
    assert "`acidctl compact`" in error.hint
    assert finish_half_published(snapshot_at(three)) == ("base_0000003",)
    assert read_rows(three) == rows


def staged(table: Path, copies: object) -> None:
    (table / "_tmp_7").mkdir()
    (table / "_tmp_7" / "a").write_bytes(b"AA")
    (table / "_tmp_7" / "b").write_bytes(b"BB")
    (table / "_tmp_7" / INTENT).write_text(json.dumps({"copies": copies}))


def test_an_object_store_left_half_way_and_copied_to_a_disk(tmp_path: Path) -> None:
    table = tmp_path / "t"
    write_acid(table / "base_5" / "bucket_00000", (0, 1, B0, 0, 1, (0, 0)))
    staged(table, [["a", "base_5/bucket_00000"], ["b", "base_5/_metadata_acid"]])
    fs, path = open_location(str(table))
    assert half_published(take_snapshot(fs, path)) == []  # its file is another one
    (table / "_tmp_7" / "a").write_bytes((table / "base_5" / "bucket_00000").read_bytes())
    assert half_published(take_snapshot(fs, path)) == [("_tmp_7", ("base_5/_metadata_acid",))]
    assert finish_half_published(take_snapshot(fs, path)) == ("base_5",)
    assert sorted(path.name for path in table.iterdir()) == ["base_5"]
    assert (table / "base_5" / "_metadata_acid").read_bytes() == b"BB"


def test_a_note_that_was_removed_after_the_listing(tmp_path: Path) -> None:
    """Whoever removed it may have finished the publication: nothing is half done, and the listing is too old."""
    table = tmp_path / "t"
    write_acid(table / "base_5" / "bucket_00000", (0, 1, B0, 0, 1, (0, 0)))
    fs, path = open_location(str(table))
    assert finish_interrupted(take_snapshot(fs, path), Locking()) is None
    staged(table, [["a", "base_5/bucket_00000"], ["b", "base_5/bucket_00001"]])
    (table / "_tmp_7" / "a").write_bytes((table / "base_5" / "bucket_00000").read_bytes())
    old = take_snapshot(fs, path)
    assert half_published(old)
    (table / "base_5" / "bucket_00001").write_bytes(b"BB")
    shutil.rmtree(table / "_tmp_7")
    assert half_published(old) == []
    assert finish_interrupted(old, Locking()) == ()


def test_another_run_that_died_half_way_after_the_plan(three: str) -> None:
    rows, plan = read_rows(three), plan_of(three, MAJOR)
    copies = [["a", "delta_0000009_0000009/bucket_00000"], ["b", "delta_0000009_0000009/bucket_00001"]]
    fs, path = opened(three)
    for name, content in (("a", b"AA"), ("b", b"BB"), (INTENT, json.dumps({"copies": copies}).encode())):
        fs.write_bytes(f"{path}/_tmp_7/{name}", content)
    fs.write_bytes(f"{path}/delta_0000009_0000009/bucket_00000", b"AA")
    before = names(three)
    error = run(plan, offline=True).error
    assert error
    assert "interrupted while it was published" in error.what
    assert names(three) == before
    fs.remove_tree(f"{path}/delta_0000009_0000009")
    assert read_rows(three) == rows


@pytest.mark.parametrize(
    "copy",
    [
        ["../../secret", "base_5/b"], ["/secret", "base_5/b"], ["b", "../b"], ["b", "b"], ["b", "base_5/../../b"],
        ["b", "base_5/c/b"], ["b", "base_x/b"], ["b", "base_5/"], ["b"], "b", 5,
    ],
)  # fmt: skip
def test_a_note_of_something_else_is_no_note(copy: object, tmp_path: Path) -> None:
    table = tmp_path / "t"
    (table / "base_5").mkdir(parents=True)
    (table / "base_5" / "a").write_bytes(b"AA")
    staged(table, [["a", "base_5/a"], copy])
    snapshot = take_snapshot(*open_location(str(table)))
    assert half_published(snapshot) == []
    assert finish_half_published(snapshot) == ()


def test_a_rival_s_file_is_no_answer_of_ours(one: str) -> None:
    fs, path = opened(one)
    for name, data in (("_tmp_1/a", b"mine"), ("base_9/bucket_00000", b"their"), ("base_8/b", b"mine")):
        fs.write_bytes(f"{path}/{name}", data)
    with pytest.raises(ConflictError):
        show_copies(fs, path, f"{path}/_tmp_1", [("a", "base_7/b"), ("a", "base_9/bucket_00000")])
    assert files(one, "base_9") == {"bucket_00000"}
    assert "base_7" not in names(one)
    assert files(one, "_tmp_1") == {"a"}


def test_stores_without_copies_are_refused(one: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of(one, MAJOR)
    monkeypatch.setattr(plan.snapshot.fs, "can_copy", False)
    (outcome,) = compact([plan])
    assert isinstance(outcome.error, StorageError)
    assert "no rename and no copy" in outcome.error.why


def test_an_insert_only_table_without_rows_stays(tmp_path: Path) -> None:
    import pyarrow as pa
    from pyarrow import orc

    for write_id in (1, 2):
        path = tmp_path / "t" / f"delta_{write_id}_{write_id}_0" / "000000_0"
        path.parent.mkdir(parents=True)
        orc.write_table(pa.table({"a": pa.array([], pa.int32())}), path)
    url = upload(tmp_path / "t")
    before = names(url)
    plan = plan_compaction(snapshot_at(url), MINOR, "_tmp_1", table_type=TableType.INSERT_ONLY)
    error = run(plan).error
    assert isinstance(error, AcidctlError)
    assert "no rows" in error.why
    assert names(url) == before
