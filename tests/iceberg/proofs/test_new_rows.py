"""The proofs of a catch-up find faults: the code is broken in many ways."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.files.acid_files import acid_batch, struct, write_acid, write_deletes, write_delta
from support.migrating import copy, rows, summary

from acidctl.base.errors import VerifyError
from acidctl.iceberg import copy as copying
from acidctl.iceberg import file_tasks
from acidctl.iceberg.orc_files.splice import Splice
from acidctl.iceberg.proofs import digests
from acidctl.iceberg.target import Target
from acidctl.orc.types import OrcType
from acidctl.outcome import Result

PAIR = struct(a=OrcType("int"), b=OrcType("int"))


def pairs(start: int, count: int = 10) -> pa.RecordBatch:
    numbers = pa.array(range(start, start + count), pa.int32())
    return pa.RecordBatch.from_arrays(
        [numbers, pa.array([7 * at for at in range(start, start + count)], pa.int32())], ["a", "b"]
    )


@pytest.fixture
def changed(tmp_path: Path) -> tuple[Path, Path]:
    """A partitioned table with a copy, and afterwards two new stripes, a deleted old row and deleted new rows."""
    table = tmp_path / "t"
    for part, start in (("p=1", 0), ("p=2", 100)):
        write_delta(table / part, 1, pairs(start), row=PAIR)
    copy(table, tmp_path / "copy")
    for part, start in (("p=1", 10), ("p=2", 110)):
        write_delta(table / part, 2, pairs(start), pairs(start + 10), row=PAIR)
        write_deletes(table / part, 3, 1, [4], row=PAIR)
        write_deletes(table / part, 4, 2, [5], row=PAIR)
    return table, tmp_path / "copy"


def _swapped_columns(patch: pytest.MonkeyPatch) -> None:
    real = file_tasks.file_columns

    def wrong(*args: Any) -> Any:
        found = real(*args)
        one, other = found.columns
        return replace(found, columns=(replace(one, ids=other.ids), replace(other, ids=one.ids)))

    patch.setattr(file_tasks, "file_columns", wrong)


def _source_without_deletes(part: str) -> Callable[[pytest.MonkeyPatch], None]:
    def broken(patch: pytest.MonkeyPatch) -> None:
        real = copying.source_file

        def wrong(*args: Any) -> Any:
            found = real(*args)
            dead = found.keys.dead[:0] if part in found.events.path else found.keys.dead
            return replace(found, keys=replace(found.keys, dead=dead))

        patch.setattr(copying, "source_file", wrong)

    return broken


def _other_positions(patch: pytest.MonkeyPatch) -> None:
    real = copying._write_deletes

    def wrong(new: Any, numbered: Any) -> Any:
        number, (url, positions, values) = numbered
        return real(new, (number, (url, positions + 1, values)))

    patch.setattr(copying, "_write_deletes", wrong)


def _other_stripes(patch: pytest.MonkeyPatch) -> None:
    real = Splice.__init__

    def wrong(self: Any, *args: Any) -> None:
        real(self, *args)
        self._stripes = [self._stripes[0]] * len(self._stripes)

    patch.setattr(Splice, "__init__", wrong)


def _stripes_in_another_order(patch: pytest.MonkeyPatch) -> None:
    real = Splice.__init__

    def wrong(self: Any, *args: Any) -> None:
        real(self, *args)
        self._stripes = list(reversed(self._stripes))

    patch.setattr(Splice, "__init__", wrong)


def _difference(change: Callable[[Any], Any]) -> Callable[[pytest.MonkeyPatch], None]:
    def broken(patch: pytest.MonkeyPatch) -> None:
        real = copying.difference
        patch.setattr(copying, "difference", lambda *args: change(real(*args)))

    return broken


def _another_partition(patch: pytest.MonkeyPatch) -> None:
    real = copying.PlannedFile
    patch.setattr(copying, "PlannedFile", lambda wanted, columns, _: real(wanted, columns, (1,)))


def _listed(change: Callable[[list[Any]], list[Any]]) -> Callable[[pytest.MonkeyPatch], None]:
    def broken(patch: pytest.MonkeyPatch) -> None:
        real = Target.commit
        patch.setattr(Target, "commit", lambda self, files, *more: real(self, change(list(files)), *more))

    return broken


def _deletes_not_listed(patch: pytest.MonkeyPatch) -> None:
    real = Target.commit
    patch.setattr(Target, "commit", lambda self, files, deletes, *more: real(self, files, list(deletes)[1:], *more))


BROKEN = {
    "columns in another order": _swapped_columns,
    "no deletes of old rows in the source": _source_without_deletes("delta_0000001"),
    "no deletes of new rows in the source": _source_without_deletes("delta_0000002"),
    "positions of other rows": _other_positions,
    "another stripe": _other_stripes,
    "stripes in another order than their keys": _stripes_in_another_order,
    "a file copied twice": _difference(lambda found: replace(found, wanted=found.wanted * 2)),
    "a file forgotten": _difference(lambda found: replace(found, wanted=())),
    "deleted rows forgotten": _difference(lambda found: replace(found, gone=())),
    "the wrong partition": _another_partition,
    "a file listed twice": _listed(lambda files: files + files[:1]),
    "a file not listed": _listed(lambda files: files[1:]),
    "deletes not listed": _deletes_not_listed,
}


@pytest.mark.parametrize("proof", ["new", "full"])
@pytest.mark.parametrize("how", BROKEN)
def test_a_fault_of_a_catch_up_is_found(
    changed: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, how: str, proof: str
) -> None:
    before = rows(changed[1])
    with monkeypatch.context() as patch:
        BROKEN[how](patch)
        with pytest.raises(VerifyError):
            copy(*changed, proof=proof)
    if "listed" not in how:  # these are faults of the catalog, which only its answer after the commit shows
        assert rows(changed[1]) == before
        done = copy(*changed, proof=proof)
        assert (done.rows, done.deleted, len(rows(changed[1]))) == (38, 2, 56)


def test_the_snapshot_says_how_it_was_compared(changed: tuple[Path, Path]) -> None:
    table, to = changed
    first = summary(to)
    assert first["acidctl.proof"] == "full"
    done = copy(table, to)
    assert done.proof == "all values of 38 new rows and the ids of 56 rows compared"
    assert summary(to)["acidctl.proof"].startswith("new since snapshot ")
    write_delta(table / "p=1", 5, pairs(50), row=PAIR)
    assert (copy(table, to, proof="none").proof, summary(to)["acidctl.proof"]) == ("", "none")
    write_delta(table / "p=1", 6, pairs(60), row=PAIR)
    assert copy(table, to).proof == "all values of 76 rows compared", "the last proof is not known"
    assert summary(to)["acidctl.proof"] == "full"


def test_a_full_proof_without_anything_new_counts_for_the_next_run(changed: tuple[Path, Path]) -> None:
    table, to = changed
    copy(table, to, proof="none")
    done = copy(table, to, proof="full")
    assert (done.result, done.proof) == (Result.NOTHING_TO_DO, "all values of 56 rows compared")
    write_delta(table / "p=1", 5, pairs(50), row=PAIR)
    assert copy(table, to).proof == "all values of 10 new rows and the ids of 66 rows compared"


def test_only_a_full_proof_finds_what_changed_under_old_keys(changed: tuple[Path, Path]) -> None:
    """A file of the copy that somebody replaced, with the keys of the old one."""
    table, to = changed
    copy(table, to)
    other = table.parent / "other"
    for part, start in (("p=1", 500), ("p=2", 600)):
        write_delta(other / part, 1, pairs(start), row=PAIR)
    copy(other, table.parent / "copy2")
    old, new = (
        sorted((at / "data").glob("*.orc"), key=lambda path: path.stat().st_mtime)[0]
        for at in (to, table.parent / "copy2")
    )
    shutil.copyfile(new, old)
    write_delta(table / "p=1", 5, pairs(50), row=PAIR)
    copy(table, to)
    with pytest.raises(VerifyError, match="values differ"):
        copy(table, to, proof="full")


def test_a_catch_up_reads_no_values_of_old_rows(changed: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[int] = []
    real = digests.row_and_column_checksums

    def counted(keys: Any, values: Any) -> Any:
        counts.append(len(values))
        return real(keys, values)

    monkeypatch.setattr(digests, "row_and_column_checksums", counted)
    copy(*changed)
    assert sum(counts) == 2 * 38


def test_some_rows_of_a_file_are_new(tmp_path: Path) -> None:
    """A compaction joined them with old ones in one stripe."""
    table, to = tmp_path / "t", tmp_path / "copy"
    write_delta(table, 1, pairs(0), row=PAIR)
    copy(table, to)
    shutil.rmtree(table)
    both = [acid_batch(pairs(start), 0, write_id=at) for at, start in ((1, 0), (2, 40))]
    write_acid(
        table / "base_0000002" / "bucket_00000", pa.Table.from_batches(both).combine_chunks().to_batches()[0], row=PAIR
    )
    done = copy(table, to)
    assert done.proof == "all values of 10 new rows and the ids of 20 rows compared"
    assert rows(to) == sorted([(at, 7 * at) for at in (*range(10), *range(40, 50))], key=str)
