"""Rebalances of tables as they come: all rows, with the ids that Hive's own query would give them, and only then."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.compacting import plan_compaction
from support.files.acid_files import AB, B1, INSERT, UPDATE, acid_batch, delete, insert, write_acid, write_plain
from support.made.random_tables import ROW, make_table
from support.tables import ids_in, read_rows, snapshot_of
from support.trouble.crash import deaths
from support.validating import check

from acidctl.acid.bucket import encode
from acidctl.acid.compaction_kind import CompactionKind
from acidctl.acid.listing import TableType
from acidctl.acid.writeids import ValidTxns
from acidctl.base.errors import AcidctlError, RefusedError, VerifyError
from acidctl.compaction import plan_tasks
from acidctl.compaction.kernel import run_task
from acidctl.compaction.local_engine import LocalEngine
from acidctl.compaction.output_settings import Writing
from acidctl.compaction.plan import CompactionPlan
from acidctl.compaction.proof.checksum import Verify
from acidctl.compaction.run import Compacted, compact

Rows = list[Any]


def planned(table: Path, buckets: int, verify: Verify = Verify.FULL) -> CompactionPlan:
    return plan_compaction(
        snapshot_of(table),
        CompactionKind.MAJOR,
        f"_tmp_{uuid.uuid4()}",
        Writing(verify=verify),
        visibility_txn=99,
        rebalance=buckets,
    )


def rebalance(table: Path, buckets: int, verify: Verify = Verify.FULL, jobs: int = 1) -> Compacted:
    (outcome,) = compact([planned(table, buckets, verify)], LocalEngine(jobs))
    if outcome.error:
        raise outcome.error
    return outcome


def spread(before: Rows, buckets: int) -> Rows:
    """As Hive's query has it: ``row_number() - 1`` over the order of ids, ``DIV ceil(rows / buckets)``."""
    each = -(-len(before) // buckets)
    return sorted(((key[0], encode(n // each, 0), n), row) for n, (key, row) in enumerate(before))


def random_table(path: Path, seed: int) -> Path:
    """With a row that no base holds yet: a compacted base alone is refused."""
    last = make_table(path, seed).last + 1
    one = insert(last, 0, {"id": 0, "value": None})
    write_acid(path / f"delta_{last:07d}_{last:07d}_0000" / "bucket_00000", one, row=ROW)
    return path


def require_sound(table: Path, outcome: Compacted) -> None:
    """Each file holds its bucket alone, in order, all of it inserts of the write id that it says."""
    for file in (table / outcome.published[0]).glob("bucket_*"):
        ids = ids_in(file)
        assert {(operation, bucket) for operation, _, bucket, _, _ in ids} <= {(0, encode(int(file.name[7:]), 0))}
        assert all(original == current for _, original, _, _, current in ids)
        keys = [one[1:4] for one in ids]
        assert keys == sorted(keys)
    assert not [one for report in check(table) for one in report.findings if one.severity == "error"]


@pytest.mark.sampled
@pytest.mark.parametrize("verify", list(Verify))
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 6), st.integers(1, 9))
def test_a_table_with_any_past_is_spread_evenly(
    tmp_path_factory: pytest.TempPathFactory, verify: Verify, seed: int, buckets: int, at_once: int
) -> None:
    table = random_table(tmp_path_factory.mktemp("t") / "t", seed)
    before = read_rows(table)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan_tasks, "_FEWEST", at_once)
        patch.setattr(plan_tasks, "_AT_ONCE", 0)
        patch.setattr(plan_tasks, "_COUNTED", at_once * 200)
        outcome = rebalance(table, buckets, verify)
    assert read_rows(table) == spread(before, buckets)
    require_sound(table, outcome)


def test_original_files_and_loaded_ones_get_ids_of_their_own(tmp_path: Path) -> None:
    write_plain(tmp_path / "000000_0", (1, 2), (3, 4))
    write_plain(tmp_path / "000001_0", (5, 6))
    write_plain(tmp_path / "delta_0000001_0000001_0000" / "000000_0", (7, 8), (9, 10))
    write_acid(tmp_path / "delta_0000002_0000002_0000" / "bucket_00001", insert(2, 0, (11, 12), bucket=B1))
    write_acid(tmp_path / "delete_delta_0000003_0000003_0000" / "bucket_00000", delete(0, 1, 3))
    before = read_rows(tmp_path)
    assert len(before) == 5
    rebalance(tmp_path, 2)
    assert read_rows(tmp_path) == spread(before, 2)


def test_updates_of_acid_v1_are_refused(tmp_path: Path) -> None:
    """Rebalances are for Hive 4, which takes updates and deletes of version 1 for rows."""
    base = [(INSERT, 1, 0, row, 1, (row, 0)) for row in range(6)]
    write_acid(tmp_path / "base_0000001" / "bucket_00000", *base, row=AB, acid_version=0)
    changed = [(UPDATE, 1, 0, 2, 2, (2, 20)), (2, 1, 0, 4, 2, None)]
    write_acid(tmp_path / "delta_0000002_0000002" / "bucket_00000", *changed, row=AB, acid_version=0)
    with pytest.raises(RefusedError, match="V12"):
        rebalance(tmp_path, 2)


def test_without_rows_there_is_a_base_without_rows(tmp_path: Path) -> None:
    write_acid(tmp_path / "delta_0000001_0000001_0000" / "bucket_00000", insert(1, 0))
    write_acid(tmp_path / "delete_delta_0000002_0000002_0000" / "bucket_00000", delete(1, 0, 2))
    outcome = rebalance(tmp_path, 3)
    assert read_rows(tmp_path) == []
    assert outcome.published == ("base_0000002_v0000099",)


def test_the_base_of_an_insert_overwrite_is_replaced_by_one_of_its_write_id(tmp_path: Path) -> None:
    write_acid(tmp_path / "base_0000004" / "bucket_00000", *(insert(4, n) for n in range(5)))
    outcome = rebalance(tmp_path, 5)
    assert outcome.published == ("base_0000004_v0000099",)
    assert len(list((tmp_path / "base_0000004_v0000099").glob("bucket_*"))) == 5
    assert [key for key, _ in read_rows(tmp_path)] == [(4, encode(n, 0), n) for n in range(5)]


def test_a_compacted_base_alone_is_refused_as_hive_could_not_tell_it_from_the_result(tmp_path: Path) -> None:
    write_acid(tmp_path / "base_0000004_v0000007" / "bucket_00000", insert(4, 0), insert(4, 1))
    with pytest.raises(RefusedError, match="its write id is the same"):
        planned(tmp_path, 2)
    write_acid(tmp_path / "delete_delta_0000005_0000005_0000" / "bucket_00000", delete(4, 0, 5))
    rebalance(tmp_path, 2)
    assert [key for key, _ in read_rows(tmp_path)] == [(4, encode(0, 0), 0)]


def many(table: Path, buckets: int = 3, rows: int = 3_000) -> None:
    """A base of rows of four write ids, in stripes, and a few deletes in all of it."""
    for bucket in range(buckets):
        batches = []
        for write_id in range(1, 5):
            numbers = np.arange(rows, dtype=np.int64)
            row = pa.StructArray.from_arrays(
                [pa.array(numbers.astype(np.int32)), pa.array((numbers * 7 % 1000).astype(np.int32))], names=["a", "b"]
            )
            batches.append(acid_batch(row, write_id=write_id, bucket=encode(bucket)))
        write_acid(table / "base_0000004" / f"bucket_{bucket:05d}", *batches, row=AB)
        dead = [delete(write_id, n, 5, bucket=encode(bucket)) for write_id in (1, 3) for n in range(0, rows, 97)]
        write_acid(table / "delete_delta_0000005_0000005_0000" / f"bucket_{bucket:05d}", *dead)


@pytest.mark.sampled
@pytest.mark.parametrize("jobs", [1, 2])
def test_large_files_are_read_in_shares_by_several_processes(
    tmp_path: Path, jobs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan_tasks, "_COUNTED", 1)
    monkeypatch.setattr(plan_tasks, "_AT_ONCE", 0)
    monkeypatch.setattr(plan_tasks, "_FEWEST", 2_000)
    monkeypatch.setattr("acidctl.compaction.local_engine.WORTH_A_PROCESS", 1)
    many(tmp_path)
    before = read_rows(tmp_path)
    outcome = rebalance(tmp_path, 4, jobs=jobs)
    assert read_rows(tmp_path) == spread(before, 4)
    assert outcome.rows == len(before)
    require_sound(tmp_path, outcome)


# --- what is refused, and what is noticed ----------------------------------------------------------------------------


def two_deltas(table: Path) -> Path:
    for write_id in (1, 2):
        path = table / f"delta_{write_id:07d}_{write_id:07d}_0000" / "bucket_00000"
        write_acid(path, *(insert(write_id, n, (n,)) for n in range(4)))
    return table


def test_an_insert_only_table_is_refused(tmp_path: Path) -> None:
    write_plain(tmp_path / "delta_0000001_0000001_0000" / "000000_0", (1, 2))
    with pytest.raises(RefusedError, match="insert-only"):
        plan_compaction(
            snapshot_of(tmp_path),
            CompactionKind.MAJOR,
            "_tmp_1",
            table_type=TableType.INSERT_ONLY,
            rebalance=0,
        )


def test_one_that_was_planned_without_its_transaction_is_not_carried_out(tmp_path: Path) -> None:
    plan = plan_compaction(snapshot_of(two_deltas(tmp_path)), CompactionKind.MAJOR, "_tmp_1", rebalance=2)
    (outcome,) = compact([plan], LocalEngine(1))
    assert isinstance(outcome.error, RefusedError)
    assert {path.name[:6] for path in tmp_path.iterdir()} == {"delta_"}


def test_killed_at_any_moment_it_is_seen_by_nobody(tmp_path: Path) -> None:
    """Its transaction is never committed then, and the next one does it all."""
    table = two_deltas(tmp_path / "t")
    rows, without_it = read_rows(table), ValidTxns.parse("98:98::")
    count = 0
    for count, copy in deaths(lambda copy: rebalance(copy, 3, Verify.BYTES), table, tmp_path / "dead"):
        assert read_rows(copy, txns=without_it) == rows, count
        plan = plan_compaction(
            snapshot_of(copy, txns=ValidTxns.parse("99:98::99")),
            CompactionKind.MAJOR,
            f"_tmp_{uuid.uuid4()}",
            visibility_txn=100,
            rebalance=3,
        )
        (outcome,) = compact([plan])
        assert outcome.error is None, (count, outcome.error)
        assert read_rows(copy, txns=ValidTxns.parse("100:101::99")) == spread(rows, 3), count
    assert count > 20


def test_deletes_that_appear_above_it_meanwhile_stop_it(tmp_path: Path) -> None:
    """They name rows by the ids that these had."""
    plan = planned(two_deltas(tmp_path), 2)
    write_acid(tmp_path / "delete_delta_0000003_0000003_0000" / "bucket_00000", delete(1, 0, 3))
    (outcome,) = compact([plan], LocalEngine(1))
    assert "delete_delta_0000003_0000003_0000" in str(outcome.error)
    assert not list(tmp_path.glob("base*"))
    assert not list(tmp_path.glob("_tmp*"))


class Spoiled(LocalEngine):
    """Does something to each task of a rebalance that writes, before it is run."""

    def __init__(self, change: Callable[[Any], Any]) -> None:
        super().__init__(1)
        self._change = change

    def __call__(self, tasks, function):  # type: ignore[no-untyped-def]
        changed = [self._change(task) if getattr(task, "is_spread", False) else task for task in tasks]
        return super().__call__(changed, run_task)


def renumbered(task: Any) -> Any:
    from dataclasses import replace

    return replace(task, shares=tuple(replace(share, number=share.number + 1) for share in task.shares))


def shortened(task: Any) -> Any:
    from dataclasses import replace

    (share,) = task.shares
    return replace(task, shares=(replace(share, count=share.count - 1),))


def without_a_stripe(task: Any) -> Any:
    from dataclasses import replace

    (share,) = task.shares
    return replace(task, shares=(replace(share, spans={place: span for place, span in share.spans.items() if place}),))


@pytest.mark.parametrize("change", [renumbered, shortened, without_a_stripe])
def test_rows_that_are_lost_or_have_other_numbers_are_noticed(tmp_path: Path, change: Callable[[Any], Any]) -> None:
    (outcome,) = compact([planned(two_deltas(tmp_path), 1)], Spoiled(change))
    assert isinstance(outcome.error, VerifyError | AcidctlError)
    assert not list(tmp_path.glob("base*"))


def test_values_that_change_on_the_way_are_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from acidctl.compaction.merge import spread_rows

    write = spread_rows.with_ids

    def swapped(ids: Any, rows: Any) -> Any:
        return write(ids, pa.StructArray.from_arrays([pa.array([9] * len(rows), pa.int32())], names=["a"]))

    monkeypatch.setattr(spread_rows, "with_ids", swapped)
    (outcome,) = compact([planned(two_deltas(tmp_path), 2)], LocalEngine(1))
    assert isinstance(outcome.error, VerifyError)
    assert "values" in str(outcome.error)
