"""The walk-through with the demo table: what each command must say and leave behind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.made.big_tables import big_table
from support.tables import CLEAN_NOW, without_log

FOUR = [
    "delete_delta_0000002_0000002_0000", "delete_delta_0000003_0000003_0000", "delta_0000001_0000001_0000",
    "delta_0000002_0000002_0000",
]  # fmt: skip


def event(operation: int, original: int, row_id: int, current: int, row: str) -> str:
    return (
        f'{{"operation":{operation},"originalTransaction":{original},"bucket":536870912,"rowId":{row_id},'
        f'"currentTransaction":{current},"row":{row}}}'
    )


EVENTS = {
    FOUR[2]: [
        event(0, 1, 0, 1, '{"id":1,"value":"A"}'),
        event(0, 1, 1, 1, '{"id":2,"value":"B"}'),
        event(0, 1, 2, 1, '{"id":3,"value":"C"}'),
    ],
    FOUR[0]: [event(2, 1, 2, 2, "null")],
    FOUR[3]: [event(0, 2, 0, 2, '{"id":3,"value":"CC"}')],
    FOUR[1]: [event(2, 2, 0, 3, "null")],
}


def test_demo_is_what_the_article_shows(acidctl, crud: Path) -> None:  # type: ignore[no-untyped-def]
    assert sorted(path.name for path in crud.iterdir()) == FOUR
    for name, events in EVENTS.items():
        assert sorted(path.name for path in (crud / name).iterdir()) == ["_orc_acid_version", "bucket_00000"]
        assert (crud / name / "_orc_acid_version").read_bytes() == b"2"
        assert acidctl("dump", crud / name / "bucket_00000").out.splitlines() == events


def test_cat_prints_what_hive_prints(acidctl, crud: Path) -> None:  # type: ignore[no-untyped-def]
    assert acidctl("cat", "--row-id", crud).out == (
        '{"ROW__ID":{"writeid":1,"bucketid":536870912,"rowid":0},"id":1,"value":"A"}\n'
        '{"ROW__ID":{"writeid":1,"bucketid":536870912,"rowid":1},"id":2,"value":"B"}\n'
    )
    for lists, rows in (
        ("db.crud_table:1:9223372036854775807::", ["A", "B", "C"]),
        ("db.crud_table:2:9223372036854775807::", ["A", "B", "CC"]),
        ("db.crud_table:3:9223372036854775807::", ["A", "B"]),
        ("db.crud_table:3:9223372036854775807::3", ["A", "B", "CC"]),
        ("db.crud_table:0:9223372036854775807::", []),
    ):
        found = acidctl("cat", "--snapshot", lists, "--columns", "value", crud)
        assert [row["value"] for row in found.lines()] == rows


@pytest.mark.parametrize("engine", ["local", pytest.param("spark", marks=pytest.mark.spark)])
def test_compact_major_then_clean(acidctl, crud: Path, engine: str) -> None:  # type: ignore[no-untyped-def]
    result = acidctl("compact", "--assume-committed=0s", "--major", "--engine", engine, crud)
    assert result.status == 0, result.err
    assert "base_0000003" in result.out
    assert sorted(path.name for path in (crud / "base_0000003").iterdir()) == [
        "_metadata_acid", "_orc_acid_version", "bucket_00000",
    ]  # fmt: skip
    assert acidctl("dump", crud / "base_0000003" / "bucket_00000").out.splitlines() == EVENTS[FOUR[2]][:2]
    report = acidctl("ls", "-o", "json", crud).one()
    assert report["base"] == "base_0000003"
    assert {e["name"] for e in report["entries"] if e["state"] == "obsolete"} == set(FOUR)

    again = acidctl("compact", "--assume-committed=0s", "--major", "--engine", "local", "--exit-code", crud)
    assert again.status == 12
    assert "nothing to do" in again.out

    young = acidctl("clean", crud)
    assert young.status == 0
    assert "nothing to clean yet" in young.out
    assert "may go after" in young.err
    refused = acidctl("clean", "--older-than", "0", "--unsafe-retention", crud)
    assert refused.status == 7
    assert "--yes" in refused.err
    for unsafe in (("--older-than", "0"), ("--older-than", "59m")):
        refused = acidctl("clean", "--yes", *unsafe, crud)
        assert refused.status == 7
        assert "--unsafe-retention" in refused.err
    assert without_log(p.name for p in crud.iterdir()) == {"base_0000003", *FOUR}
    assert acidctl(*CLEAN_NOW, crud).status == 0
    assert without_log(p.name for p in crud.iterdir()) == {".acidctl-trash", "base_0000003"}
    assert [row["value"] for row in acidctl("cat", crud).lines()] == ["A", "B"]
    assert acidctl("restore", crud).status == 0
    assert without_log(p.name for p in crud.iterdir()) == {"base_0000003", *FOUR}
    assert acidctl(*CLEAN_NOW, crud).status == 0
    assert acidctl("purge", "--yes", crud).status == 0
    assert without_log(p.name for p in crud.iterdir()) == {"base_0000003"}


def test_minor_needs_offline(acidctl, crud: Path) -> None:  # type: ignore[no-untyped-def]
    refused = acidctl("compact", "--assume-committed=0s", "--minor", "--engine", "local", crud)
    assert refused.status == 7
    assert "--offline" in refused.err
    assert sorted(path.name for path in crud.iterdir()) == FOUR
    done = acidctl("compact", "--assume-committed=0s", "--minor", "--offline", "--engine", "local", crud)
    assert done.status == 0
    found = acidctl("dump", crud / "delta_0000001_0000003").out.splitlines()
    assert found == [*EVENTS[FOUR[2]], *EVENTS[FOUR[3]]]
    assert acidctl("dump", crud / "delete_delta_0000001_0000003").out.splitlines() == [
        *EVENTS[FOUR[0]], *EVENTS[FOUR[1]],
    ]  # fmt: skip
    assert [row["value"] for row in acidctl("cat", crud).lines()] == ["A", "B"]


def test_dump_decodes_and_picks_what_is_asked_for(acidctl, crud: Path) -> None:  # type: ignore[no-untyped-def]
    decoded = acidctl("dump", "--decode", crud / FOUR[0]).lines()
    assert [list(row) for row in decoded] == [
        ["operation", "originalTransaction", "bucket", "rowId", "currentTransaction", "operationName", "bucketId",
         "statementId", "row"],
    ]  # fmt: skip
    assert (decoded[0]["operationName"], decoded[0]["bucketId"], decoded[0]["statementId"]) == ("DELETE", 0, 0)
    found = acidctl("dump", "--where", "operation = 2 and originalTransaction > 1", "--columns", "rowId,row.id", crud)
    assert found.lines() == [{"rowId": 0, "row": None}]
    assert len(acidctl("dump", "--limit", "2", crud).lines()) == 2
    csv = acidctl("dump", "-o", "csv", "--columns", "rowId,row", crud / FOUR[3])
    assert csv.out == 'rowId,row\n0,"{""id"":3,""value"":""CC""}"\n'
    assert "CC" in acidctl("dump", "-o", "table", crud).out
    near = acidctl("dump", "--columns", "rowid,operatio", crud)
    assert near.status == 3
    assert "operation" in near.err


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_binary_forms_go_to_files_but_no_terminal(acidctl, crud: Path, form: str, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = tmp_path / "out"
    with path.open("wb") as out:
        subprocess.run([sys.executable, "-m", "acidctl", "cat", "-o", form, str(crud)], stdout=out, check=True)
    table = pq.read_table(path) if form == "parquet" else pa.ipc.open_stream(path.read_bytes()).read_all()
    assert table.to_pydict() == {"id": [1, 2], "value": ["A", "B"]}


def test_meta_tells_what_the_tail_says(acidctl, crud: Path) -> None:  # type: ignore[no-untyped-def]
    shown = acidctl("meta", crud / FOUR[2] / "bucket_00000")
    assert "3 inserts" in shown.out
    found = acidctl("meta", "-o", "json", crud / FOUR[2] / "bucket_00000").one()
    assert found["acid"]["stats"] == {"inserts": 3, "updates": 0, "deletes": 0}
    assert found["stripes"][0]["lastKey"] == {"originalTransaction": 1, "bucket": 536870912, "rowId": 2}


def test_a_big_table_is_reproducible(acidctl, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    for name in ("a", "b"):
        big_table(tmp_path / name, rows=5000, write_ids=3, deletes=70, buckets=2, partitions=2, base=True)
    one, other = (acidctl("cat", "--row-id", tmp_path / name / "p=1").out for name in ("a", "b"))
    assert one == other
    assert len(one.splitlines()) == 5000 - 70
    assert one != acidctl("cat", "--row-id", tmp_path / "a" / "p=0").out
    reports = acidctl("ls", "-o", "jsonl", tmp_path / "a").lines()
    assert [report["base"] for report in reports] == ["base_0000001"] * 2
    assert acidctl("demo", tmp_path / "a").status == 9
