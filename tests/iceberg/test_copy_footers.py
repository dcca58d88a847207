"""Plans of tables with many files hold no footers, and find out if a file is another one when it is copied."""

from __future__ import annotations

import gc
from dataclasses import replace
from pathlib import Path
from threading import Barrier, get_ident

import pytest
from support.files.acid_files import inserts, write_acid
from support.migrating import COMMITTED, copy, rows

from acidctl.base.errors import BadDataError, ConflictError
from acidctl.iceberg.catalogs.open_target import open_target
from acidctl.iceberg.difference import ClosedFile
from acidctl.iceberg.request import CopyRequest
from acidctl.orc.tail import Tail
from acidctl.rows.read.events import EventFile
from acidctl.verbs.reading.cat import table_of
from acidctl.verbs.selection import Selection


def table_of_files(path: Path, count: int, first: int = 1) -> Path:
    for at in range(first, count + 1):
        write_acid(path / f"delta_{at:07}_{at:07}_0000" / "bucket_00000", *inserts(at, (at, "x"), (at, "y")))
    return path


def request(table: Path, to: Path) -> CopyRequest:
    found = table_of(Selection((str(table),), resolver=COMMITTED))
    return CopyRequest(found, open_target(str(to), {}, None, None), (), None)


def footers() -> int:
    gc.collect()
    return sum(isinstance(one, Tail) for one in gc.get_objects())


@pytest.mark.parametrize("is_first", [True, False])
def test_a_plan_holds_no_footers(tmp_path: Path, is_first: bool) -> None:
    table, to = table_of_files(tmp_path / "t", 3), tmp_path / "copy"
    if not is_first:
        copy(table, to)
        table_of_files(table, 6)
    asked, before = request(table, to), footers()
    plan = asked.plan()
    assert len(plan.files) == 3
    assert footers() <= before
    assert len({id(file.columns) for file in plan.files}) == 1, "files with the same columns share what is known"


@pytest.mark.parametrize("kind", ["orc", "parquet"])
def test_a_plan_reads_the_footer_of_a_new_file_again_only_for_orc(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In threads: a store may need long for each."""
    table, to, threads = table_of_files(tmp_path / "t", 1), tmp_path / "copy", set[int]()
    copy(table, to, format=kind)
    table_of_files(table, 3, first=2)
    real, together = ClosedFile.opened, Barrier(2)

    def opened(self: ClosedFile) -> EventFile:
        threads.add(get_ident())
        together.wait(10)
        return real(self)

    monkeypatch.setattr(ClosedFile, "opened", opened)
    assert len(request(table, to).plan().files) == 2
    assert len(threads) == (2 if kind == "orc" else 0)


def test_a_file_that_is_replaced_after_the_plan_is_not_copied(tmp_path: Path) -> None:
    table, to = table_of_files(tmp_path / "t", 2), tmp_path / "copy"
    asked = request(table, to)
    plan = asked.plan()
    file = table / "delta_0000002_0000002_0000" / "bucket_00000"
    file.unlink()
    write_acid(file, *inserts(2, *((number, "other") for number in range(500))))
    with pytest.raises(BadDataError):
        asked.carry_out(plan, 1, lambda _: None, proof="none")
    assert not list((to / "data").iterdir())
    copy(table, to)
    assert len(rows(to)) == 502


def test_a_file_with_other_stripes_than_in_the_plan(tmp_path: Path) -> None:
    plan = request(table_of_files(tmp_path / "t", 1), tmp_path / "copy").plan()
    file = plan.files[0].wanted.source.events
    assert isinstance(file, ClosedFile)
    assert file.opened().rows == 2
    with pytest.raises(ConflictError, match="was replaced meanwhile"):
        replace(file, stripes=((1, 2),)).opened()
