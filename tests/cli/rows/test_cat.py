"""`acidctl cat` from outside."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import orc, parquet
from support.command_line import redirected
from support.compacting import run_compaction
from support.files.acid_files import damage_stripe, insert, write_acid, write_deletes, write_delta
from support.tables import mark

from acidctl.acid.compaction_kind import CompactionKind
from acidctl.orc.byte_source import ByteSource
from acidctl.orc.tail import read_tail
from acidctl.orc.types import OrcType, hive_type
from acidctl.storage.registry import open_location

TYPES = OrcType(
    "struct",
    children=(OrcType("int"), OrcType("char", max_length=4), OrcType("varchar", max_length=9)),
    names=("id", "code", "name"),
)
Call = Callable[..., Any]


def batch(first: int, count: int) -> pa.RecordBatch:
    ids = range(first, first + count)
    return pa.RecordBatch.from_pydict(
        {"id": pa.array(ids, pa.int32()), "code": [f"c{i % 10}" for i in ids], "name": [f"n{i}" for i in ids]}
    )


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "t"
    write_delta(path / "k=1", 1, batch(0, 5), batch(5, 5), row=TYPES)
    write_deletes(path / "k=1", 2, 1, [3], row=TYPES)
    write_delta(path / "k=2", 3, batch(20, 2), row=TYPES)
    return path


def test_a_table_with_its_partitions(acidctl: Call, table: Path) -> None:
    lines = acidctl("cat", table).lines()
    assert len(lines) == 11
    assert lines[-1] == {"id": 21, "code": "c1  ", "name": "n21", "k": 2}
    assert [row["id"] for row in acidctl("cat", table, "--partition", "k=2").lines()] == [20, 21]
    assert acidctl("cat", table, "--partition", "k=7").status == 3
    assert acidctl("cat", table, "--partition", "k").status == 2


def test_a_partition_key_may_be_called_like_a_secret(acidctl: Call, table: Path) -> None:
    (table / "k=1").rename(table / "key=nights")
    shutil.rmtree(table / "k=2")
    assert len(acidctl("cat", table, "--partition", "key=nights").lines()) == 9
    assert "key=mornings" in acidctl("cat", table, "--partition", "key=mornings").err


def test_where_at_deleted_count_limit(acidctl: Call, table: Path) -> None:
    found = acidctl("cat", table, "--where", "code = 'c1' AND k = 1", "--columns", "name,k", "--row-id")
    assert found.lines() == [{"ROW__ID": {"writeid": 1, "bucketid": 536870912, "rowid": 1}, "name": "n1", "k": 1}]
    assert acidctl("cat", table, "--count").out == "11\n"
    assert acidctl("cat", table, "--count", "--at", "1").out == "10\n"
    assert acidctl("cat", table, "--count", "--limit", "4").out == "4\n"
    assert acidctl("cat", table, "--deleted").lines() == [{"id": 3, "code": "c3  ", "name": "n3", "k": 1}]
    assert len(acidctl("cat", table, "--limit", "3").lines()) == 3
    assert acidctl("cat", table, "--count", "--columns", "id").status == 2


def test_rows_of_before_a_compaction(acidctl: Call, table: Path) -> None:
    mark(table / "k=1" / "delta_0000001_0000001_0000")
    assert run_compaction(table / "k=1", CompactionKind.MAJOR) is not None
    found = acidctl("cat", table / "k=1", "--count", "--at", "1")
    assert (found.out, found.status) == ("10\n", 0)
    assert "which a cleaning may remove at any time" in found.err
    assert "obsolete" not in acidctl("cat", table / "k=1", "--count", "--at", "2").err
    assert acidctl("diff", table / "k=1", "--from", "1", "--to", "2").lines()[0]["id"] == 3
    shutil.rmtree(table / "k=1" / "delta_0000001_0000001_0000")
    found = acidctl("cat", table / "k=1", "--count", "--at", "1")
    assert found.status == 10 and "no directory is left of write id 1" in found.err


def test_the_rows_at_a_time_with_the_write_id_that_was_the_newest(acidctl: Call, tmp_path: Path) -> None:
    for write_id in (1, 2, 3):
        directory = tmp_path / f"t/delta_{write_id:07}_{write_id:07}_0000"
        write_acid(directory / "bucket_00000", insert(write_id, 0, (write_id,)))
        for path in (*directory.iterdir(), directory):
            os.utime(path, (1_000_000_000 + 60 * write_id,) * 2)  # 01:47:40 UTC is that of write id 1
    found = acidctl("cat", tmp_path / "t", "--count", "--at", "2001-09-09 01:49")
    assert found.out == "2\n"
    assert "the newest write id at 2001-09-09T01:49:00Z is 2" in found.err and "3 followed at 2001-09" in found.err
    assert acidctl("cat", tmp_path / "t", "--count", "--at", "2001-09-09T02:48+01:00").out == "1\n"
    found = acidctl("diff", tmp_path / "t", "--from", "2001-09-09 01:48", "--to", "2001-09-09 02:00", "--count")
    assert '"appeared":2' in found.out.replace(" ", "") and "is 1, by" in found.err and "none followed" in found.err
    assert acidctl("cat", tmp_path / "t", "--at", "2001-09-08").status == 10
    wrong = acidctl("cat", tmp_path / "t", "--at", "yesterday")
    assert wrong.status == 2 and "2026-11-20 12:00" in wrong.err


def test_an_earlier_write_id_says_which_have_left_no_directory(acidctl: Call, tmp_path: Path) -> None:
    for key, write_id in ((1, 1), (2, 2), (1, 3), (3, 4)):
        write_acid(
            tmp_path / f"t/k={key}/delta_{write_id:07}_{write_id:07}_0000/bucket_00000", insert(write_id, 0, (1,))
        )
    assert "no directory is left" not in acidctl("cat", tmp_path / "t", "--at", "4").err
    shutil.rmtree(tmp_path / "t/k=2")  # by DROP PARTITION
    for at, rows, said in (("1", "1", ""), ("3", "2", "of write id 2:"), ("4", "3", "of write id 2:")):
        found = acidctl("cat", tmp_path / "t", "--count", "--at", at)
        assert (found.out.strip(), "no directory is left" in found.err, said in found.err) == (rows, bool(said), True)
    assert "of write id 2:" in acidctl("cat", tmp_path / "t", "--partition", "k=3", "--at", "4").err
    for emptied in (tmp_path / "t").glob("k=*/*"):  # by Hive 3's TRUNCATE
        shutil.rmtree(emptied)
    write_acid(tmp_path / "t/k=3/delta_0000005_0000005_0000/bucket_00000", insert(5, 0, (1,)))
    assert "of write ids 1 to 4:" in acidctl("cat", tmp_path / "t", "--at", "5").err


def test_mistyped_column_suggests_the_near_one(acidctl: Call, table: Path) -> None:
    found = acidctl("cat", table, "--columns", "nmae")
    assert found.status == 3
    assert "did you mean name" in found.err
    found = acidctl("cat", table, "--where", "nmae = 'x'")
    assert found.status == 2
    assert "did you mean name" in found.err


@pytest.mark.parametrize("form", ["jsonl", "csv", "arrow", "parquet", "orc"])
def test_rows_are_a_whole_file_of_the_form(table: Path, tmp_path: Path, form: str) -> None:
    target = tmp_path / f"rows.{form}"
    redirected(target, "cat", table, "-o", form)
    readers: dict[str, Callable[[Path], int]] = {
        "jsonl": lambda path: len(path.read_text().splitlines()),
        "csv": lambda path: len(path.read_text().splitlines()) - 1,
        "arrow": lambda path: pa.ipc.open_stream(path.read_bytes()).read_all().num_rows,
        "parquet": lambda path: parquet.read_table(path).num_rows,
        "orc": lambda path: orc.read_table(path).num_rows,
    }
    assert readers[form](target) == 11


def test_orc_keeps_the_types(acidctl: Call, table: Path, tmp_path: Path) -> None:
    target = tmp_path / "new" / "000000_0"
    target.parent.mkdir()
    redirected(target, "cat", table, "-o", "orc")
    fs, path = open_location(str(target))
    tree = read_tail(ByteSource(fs, path)).type_tree
    assert hive_type(tree) == "struct<id:int,code:char(4),name:varchar(9),k:bigint>"
    assert acidctl("cat", target.parent).out == acidctl("cat", table).out


def test_bad_file_stops_or_is_skipped_and_told(acidctl: Call, table: Path) -> None:
    bad = table / "k=2" / "delta_0000003_0000003_0000" / "bucket_00000"
    damage_stripe(bad, 0)
    found = acidctl("cat", table)
    assert found.status == 4
    assert "rows 1 to 2 of its 2 cannot be read" in found.err
    found = acidctl("cat", table, "--skip-bad-files")
    assert found.status == 4
    assert len(found.lines()) == 9
    assert f"skipped {bad}: 2 rows are not shown" in found.err
    bad.write_bytes(b"rubbish")
    found = acidctl("cat", table, "--skip-bad-files", "--count")
    deletes = table / "k=1" / "delete_delta_0000002_0000002_0000" / "bucket_00000"
    deletes.write_bytes(b"ORC" + bytes(50))
    found = acidctl("cat", table, "--skip-bad-files", "--partition", "k=1")
    assert found.status == 4
    assert len(found.lines()) == 10
    assert "deleted rows may show" in found.err


@pytest.mark.parametrize("content", ["1,a\n2,b\n", "PAR1", "ORC"])
def test_rows_of_a_file_of_another_kind_are_not_called_lost(acidctl: Call, table: Path, content: str) -> None:
    """Whether it holds rows at all is not known."""
    bad = table / "k=2" / "delta_0000003_0000003_0000" / "bucket_00000"
    bad.write_text(content)
    for command in (("cat",), ("cat", "--skip-bad-files"), ("validate", "--deep")):
        found = acidctl(*command, table)
        assert found.status in (4, 14)
        shown = found.out + found.err
        assert (str(bad.relative_to(table / "k=2")) in shown, "lost" in shown) == (True, False), shown
    assert len(acidctl("cat", "--skip-bad-files", table).lines()) == 9


def test_a_broken_pipe_is_quiet(tmp_path: Path) -> None:
    write_delta(tmp_path / "t", 1, batch(0, 50_000), row=TYPES)
    command = f"{sys.executable} -m acidctl cat {tmp_path / 't'} | head -n 1"
    found = subprocess.run(["bash", "-c", command], capture_output=True, check=False, text=True)
    assert json.loads(found.stdout)["id"] == 0
    assert [line for line in found.stderr.splitlines() if not line.startswith("note:")] == []


def test_a_single_answer_is_printed_though_quiet(acidctl, crud: Path) -> None:  # type: ignore[no-untyped-def]
    """It was asked for; a quiet line without it would say nothing at all."""
    count = acidctl("cat", "--count", crud)
    quiet = acidctl("cat", "--count", "-q", crud)
    assert (quiet.out, quiet.err) == (count.out, "")
    for where, result in (("id = 1", "HELD: "), ("id = 999", "NONE: ")):
        (line,) = acidctl("erasure", "-q", "--where", where, crud).out.splitlines()
        assert line.startswith(result)
