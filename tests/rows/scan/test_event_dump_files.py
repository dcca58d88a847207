"""`dump` names the files that hold no events, and prints the others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.command_line import Result
from support.files.acid_files import damage_stripe, insert, write_acid, write_plain

from acidctl.acid.names import FLUSH_LENGTH_SUFFIX, METADATA_ACID, ORC_ACID_VERSION

Acidctl = Callable[..., Result]
DELTA = "delta_0000001_0000002"
BUCKET = f"{DELTA}/bucket_00000"
TEXT = b"# Orders\n\nwritten by hand\n"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Return a table of one row, with one file of each kind that holds no events."""
    at = tmp_path / "orders"
    write_acid(at / BUCKET, insert(1, 0, (2, "b")))
    for name in (ORC_ACID_VERSION, METADATA_ACID, f"bucket_00001{FLUSH_LENGTH_SUFFIX}", "_tmp_space", "notes.txt"):
        (at / DELTA / name).write_bytes(TEXT)
    for name in ("README.md", "-tmp.delta_0000003_0000003_0000", "empty file"):
        (at / name).write_bytes(TEXT if name != "empty file" else b"")
    (at / "delta_0000004_0000004_0000" / "000000_0").mkdir(parents=True)
    return at


@pytest.mark.parametrize(
    ("name", "status"),
    [
        (BUCKET, 0), ("README.md", 4), ("-tmp.delta_0000003_0000003_0000", 4), ("empty file", 4),
        (f"{DELTA}/{ORC_ACID_VERSION}", 4), (f"{DELTA}/{METADATA_ACID}", 4), (f"{DELTA}/_tmp_space", 4),
        (f"{DELTA}/bucket_00001{FLUSH_LENGTH_SUFFIX}", 4), (f"{DELTA}/notes.txt", 4),
        ("delta_0000004_0000004_0000/000000_0", 3), ("none", 3),
    ],
)  # fmt: skip
def test_what_holds_no_events_is_named_itself_and_the_others_are_printed(
    acidctl: Acidctl, table: Path, name: str, status: int
) -> None:
    alone = acidctl("dump", table / name)
    assert alone.status == status
    assert (str(table / name) in alone.err) == bool(status)
    assert alone.err.count("error: ") == bool(status)
    beside = acidctl("dump", table / name, table / BUCKET)
    assert (beside.status, len(beside.lines())) == (status, 2 - bool(status))


def test_a_file_of_another_format_is_named_by_it(acidctl: Acidctl, table: Path, tmp_path: Path) -> None:
    (tmp_path / "events.avro").write_bytes(b"Obj\x01 and more of it")
    (tmp_path / "passwd").write_bytes(b"root:x:0\n" * 9)
    assert "text" in acidctl("dump", tmp_path / "passwd").err
    assert "Avro" in acidctl("dump", tmp_path / "events.avro").err
    assert "not an ORC file" in acidctl("dump", table / "README.md").err


@pytest.mark.parametrize("size", [0, 1, 30])
@pytest.mark.parametrize(
    ("name", "what"),
    [
        (METADATA_ACID, "what wrote the base"), (ORC_ACID_VERSION, "the version of the ACID format"),
        (f"bucket_00001{FLUSH_LENGTH_SUFFIX}", "are committed"),
    ],
)  # fmt: skip
def test_a_side_file_is_told_by_what_it_holds(acidctl: Acidctl, table: Path, name: str, what: str, size: int) -> None:
    (table / DELTA / name).write_bytes(b"2" * size)
    said = " ".join(acidctl("dump", table / DELTA / name).err.split())
    assert what in said
    assert "bytes long" not in said


def test_of_a_table_all_files_are_printed_but_the_bad_ones(acidctl: Acidctl, table: Path) -> None:
    (table / "README.md").unlink()
    (table / DELTA / "bucket_00001").write_bytes(TEXT)
    damage_stripe(write_acid(table / DELTA / "bucket_00002", insert(1, 0, (2, "c"))), 0)
    write_acid(table / DELTA / "bucket_00003", insert(1, 0, (3, "d")))
    (table / DELTA / "bucket_00004").touch()
    found = acidctl("dump", table)
    assert (found.status, [event["row"]["a"] for event in found.lines()]) == (4, [2, 3])
    assert [name in found.err for name in ("bucket_00001 ", "bucket_00002", "bucket_00003")] == [True, True, False]
    assert acidctl("dump", table / DELTA / "bucket_00004").status == 0


def test_rows_without_ids_after_a_bad_file_of_their_bucket_have_no_number(acidctl: Acidctl, tmp_path: Path) -> None:
    write_plain(tmp_path / "000000_0_copy_1", (1, 1))
    write_plain(tmp_path / "000001_0", (2, 2))
    (tmp_path / "000000_0").write_bytes(b"ORC" + TEXT)
    found = acidctl("dump", "--columns", "rowId,row.a", tmp_path)
    assert (found.status, found.lines()) == (4, [{"rowId": 0, "row": {"a": 2}}])
    assert acidctl("dump", tmp_path / "000000_0_copy_1").status == 4
    assert acidctl("dump", tmp_path / "000001_0").status == 0


def test_lines_of_text_are_events_of_an_insert_only_table_alone(acidctl: Acidctl, tmp_path: Path) -> None:
    lines = tmp_path / "delta_0000001_0000001_0000" / "lines.txt"
    lines.parent.mkdir()
    lines.write_bytes(b"a\nb\n")
    assert len(acidctl("dump", lines).lines()) == 2
    write_acid(tmp_path / "delta_0000002_0000002_0000" / "bucket_00000", insert(2, 0, (2, "b")))
    assert acidctl("dump", lines).status == 4
    assert acidctl("dump", lines.parent).status == 4
    lines.rename(tmp_path / "000000_0")
    found = acidctl("dump", tmp_path)
    assert (found.status, [event["row"]["a"] for event in found.lines()]) == (4, [2])


@pytest.mark.parametrize("content", [b"hi\n", TEXT])
def test_a_text_beside_buckets_is_called_text(acidctl: Acidctl, tmp_path: Path, content: bytes) -> None:
    write_acid(tmp_path / BUCKET, insert(1, 0, (2, "b")))
    (tmp_path / "README").write_bytes(content)
    found = acidctl("dump", tmp_path)
    assert (found.status, len(found.lines())) == (4, 1)
    assert "why: it is text" in found.err


def test_six_columns_of_an_insert_only_table_are_no_ids(acidctl: Acidctl, tmp_path: Path) -> None:
    """They have the names of ACID columns; Hive shows all six, and does not read such a file in a full-ACID table."""
    for directory in ("delta_0000001_0000001_0000", "base_0000001"):
        write_acid(tmp_path / directory / "bucket_00000", insert(1, 0, (2, "b"))).rename(
            tmp_path / directory / "000000_0"
        )
        found = acidctl("cat", tmp_path)
        assert (found.status, found.out) == (4, "")
