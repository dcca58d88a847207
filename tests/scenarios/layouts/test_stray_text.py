"""A README or a log of a job beside data: `cat` and `validate --deep` agree that its lines are no rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.command_line import Result
from support.files.acid_files import insert, write_acid, write_orc
from support.metastore.fake_hive import FakeHive
from support.metastore.writable import INSERT_ONLY, writable

from acidctl.base.errors import ExitStatus

D1, D2 = "delta_0000001_0000001_0000", "delta_0000002_0000002_0000"
PLACES = {
    "beside an original file": ("000000_0", "README.md"),
    "named like an original file": ("000000_0", "000001_0"),
    "in the delta": (f"{D1}/000000_0", f"{D1}/job.log"),
    "before the data": (f"{D2}/000000_0", f"{D1}/000000_0"),
    "in another partition": (f"k=1/{D1}/000000_0", f"k=2/{D1}/000000_0"),
    "in a partition before": (f"k=2/{D1}/000000_0", f"k=1/{D1}/000000_0"),
    "alone in a partition": ("k=1/000000_0", "k=2/README"),
}


def write(path: Path, text: str = "one\ntwo\nthree\n") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture(params=PLACES.values(), ids=PLACES)
def mixed(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Path]:
    """A table of two rows of ORC, and a text file of three lines in it."""
    data, stray = (tmp_path / "t" / place for place in request.param)
    write(stray)
    data.parent.mkdir(parents=True, exist_ok=True)
    write_orc(data, "struct<a:int>", [(1,), (2,)])
    return tmp_path / "t", stray


def test_cat_refuses_the_text_and_validate_says_so(acidctl: Callable[..., Result], mixed: tuple[Path, Path]) -> None:
    table, stray = mixed
    refused = acidctl("cat", table)
    assert refused.status == 4
    assert f"{stray} is text" in refused.err
    assert "--skip-bad-files" in refused.err
    checked = acidctl("validate", "--deep", "-o", "json", table)
    in_other = "k=" in str(stray)  # each partition alone is whole
    # A README may stand beside files that are not of a transactional table: it is a warning.
    assert checked.status == (15 if in_other else 0 if stray.name == "README.md" else 14)
    assert "is text" in checked.out + checked.err
    assert in_other or rows_checked(checked) == 2


def test_it_is_skipped_and_said(acidctl: Callable[..., Result], mixed: tuple[Path, Path]) -> None:
    table, stray = mixed
    rest = acidctl("cat", "--skip-bad-files", "-o", "jsonl", table)
    assert rest.status == 4
    assert [row["a"] for row in rest.lines()] == [1, 2]
    assert f"skipped {stray}" in rest.err
    counted = acidctl("cat", "--skip-bad-files", "--count", table)
    assert (counted.status, counted.out.strip()) == (4, "2")
    assert f"skipped {stray}" in counted.err


def test_partitions_of_another_format_are_not_read_where_they_are_not_wanted(
    acidctl: Callable[..., Result], tmp_path: Path
) -> None:
    write(tmp_path / "t" / "k=2" / D1 / "000000_0")
    (tmp_path / "t" / "k=1" / D1).mkdir(parents=True)
    write_orc(tmp_path / "t" / "k=1" / D1 / "000000_0", "struct<a:int>", [(1,), (2,)])
    assert len(acidctl("cat", "--partition", "k=1", "-o", "jsonl", tmp_path / "t").lines()) == 2
    assert acidctl("cat", "--partition", "k=2", tmp_path / "t").status == 4


def rows_checked(found: Result) -> Any:
    return sum(report["summary"]["rows"] for report in found.json())


def test_text_alone_is_rows_for_both(acidctl: Callable[..., Result], tmp_path: Path) -> None:
    write(tmp_path / "t" / D1 / "000000_0")
    write(tmp_path / "t" / D1 / "part-1.csv")
    assert acidctl("cat", "--count", tmp_path / "t").out.strip() == "6"
    assert rows_checked(acidctl("validate", "--deep", "-o", "json", tmp_path / "t")) == 6


def test_text_beside_events_is_no_row(acidctl: Callable[..., Result], tmp_path: Path) -> None:
    write_acid(tmp_path / "t" / "base_0000001" / "bucket_00000", insert(1, 0, (2, "b")))
    write(tmp_path / "t" / "base_0000001" / "job.log")
    write(tmp_path / "t" / "base_0000001" / "bucket_00001")
    for kind in ("full-acid", "insert-only"):
        rest = acidctl("cat", "--table-type", kind, "--skip-bad-files", "--count", tmp_path / "t")
        assert rest.out.strip() == "1", kind
        assert rest.err.count("skipped") == 2, kind
        checked = acidctl("validate", "--table-type", kind, "--deep", "-o", "json", tmp_path / "t")
        assert rows_checked(checked) == 1, kind
        assert checked.status == 14, kind
    for command in (("history",), ("blame", "1:536870912:0")):
        found = acidctl(command[0], tmp_path / "t", *command[1:])
        assert (found.status, found.out) == (ExitStatus.BAD_DATA, ""), found.err


def test_the_format_of_the_metastore_decides_for_both(acidctl: Callable[..., Result], tmp_path: Path) -> None:
    with FakeHive() as hive:
        writable(hive, tmp_path / "t", "a int", stored_as="orc", parameters={"transactional": "true", **INSERT_ONLY})
        write(tmp_path / "t" / D1 / "000000_0", "1\n2\n")
        hive.write_ids["db.t"] = list(hive.begin_many(1))
        hive.txns.clear()
        hive.remembers = True
        for stored_as, status, rows in (("orc", 14, 0), ("parquet", 14, 0), ("text", 0, 2)):
            writable(
                hive, tmp_path / "t", "a int", stored_as=stored_as, parameters={"transactional": "true", **INSERT_ONLY}
            )
            counted = acidctl("cat", "--count", "--metastore", hive.address, "hive:db.t")
            checked = acidctl("validate", "--deep", "-o", "json", "--metastore", hive.address, "hive:db.t")
            assert (counted.status != 0, checked.status) == (status != 0, status), (stored_as, checked.err)
            assert rows_checked(checked) == rows, stored_as
