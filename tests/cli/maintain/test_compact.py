"""`acidctl compact`: when it works and when not, how it writes, what it says."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import orc, parquet
from support.tables import CLEAN_NOW, json_rows, snapshot_of

from acidctl.cli.options.param_types import DURATION, SIZE
from acidctl.orc.byte_source import ByteSource
from acidctl.orc.tail import Tail, read_tail
from acidctl.rows.scan.scan import Scan
from acidctl.storage.local.filesystem import LocalFileSystem

LOCAL = ("--engine", "local")


def rows_of(table: Path) -> list[str]:
    return sorted(json.dumps(row) for row in json_rows(Scan(snapshot_of(table))))


def tail_of(path: Path) -> Tail:
    return read_tail(ByteSource(LocalFileSystem(), str(path)))


def insert_only(folder: Path, write: Any) -> Path:
    table = folder / "mm"
    for write_id in (1, 2, 3):
        path = table / f"delta_{write_id}_{write_id}_0" / "000000_0"
        path.parent.mkdir(parents=True)
        write(pa.table({"a": [write_id * 10 + i for i in range(3)]}), str(path))
    return table


@pytest.mark.parametrize("mode", ["--major", "--minor"])
def test_parquet_says_itself_what_it_is(acidctl: Any, mode: str, tmp_path: Path) -> None:
    table = insert_only(tmp_path, parquet.write_table)
    rows = rows_of(table)
    done = acidctl("compact", "--assume-committed=0s", mode, *LOCAL, "--verify", "full", "-o", "json", table)
    assert done.status == 0, done.err
    name = {"--major": "base_0000003", "--minor": "delta_0000001_0000003"}[mode]
    assert done.one()["outputs"] == [name]
    files = {path.name for path in (table / name).iterdir()}
    assert files == {"000000_0"} | ({"_metadata_acid"} if mode == "--major" else set())
    assert rows_of(table) == rows
    assert acidctl(*CLEAN_NOW, table).status == 0
    assert {path.name for path in table.iterdir() if path.name[0] != "."} == {name}
    assert rows_of(table) == rows


def test_orc_without_ids_has_to_be_named(acidctl: Any, tmp_path: Path) -> None:
    table = insert_only(tmp_path, orc.write_table)
    rows = rows_of(table)
    refused = acidctl("compact", "--assume-committed=0s", "--major", *LOCAL, table)
    assert refused.status == 7
    assert "--table-type insert-only or --table-type full-acid" in refused.err
    done = acidctl("compact", "--assume-committed=0s", "--major", *LOCAL, "--table-type", "insert-only", table)
    assert done.status == 0, done.err
    assert rows_of(table) == rows


def test_what_is_said_of_the_table_must_be_so(acidctl: Any, crud: Path, tmp_path: Path) -> None:
    table = insert_only(tmp_path, parquet.write_table)
    for deletes in crud.glob("delete_delta_*"):
        shutil.rmtree(deletes)  # in an insert-only table they would be an error of their own
    for place, options, status, why in (
        (crud, ("--table-type", "insert-only"), 7, "it has bucket files"),
        (table, ("--table-type", "full-acid"), 4, "is not an ORC file"),
        (table, ("--property", "orc.compress=ZSTD"), 7, "settings such as compression"),
    ):
        wrong = acidctl("compact", "--assume-committed=0s", "--major", *LOCAL, *options, place)
        assert (wrong.status, why in wrong.err) == (status, True), wrong.err


def test_text_files_are_refused(acidctl: Any, tmp_path: Path) -> None:
    path = tmp_path / "t" / "delta_1_1_0" / "000000_0"
    path.parent.mkdir(parents=True)
    path.write_text("a\tb\n")
    other = tmp_path / "t" / "delta_2_2_0" / "000000_0"
    other.parent.mkdir(parents=True)
    other.write_text("c\td\n")
    refused = acidctl("compact", "--assume-committed=0s", "--major", *LOCAL, tmp_path / "t")
    assert (refused.status, "not known to be a transactional table" in refused.err) == (7, True)
    said = ("--table-type", "insert-only")
    refused = acidctl("compact", "--assume-committed=0s", "--major", *LOCAL, *said, tmp_path / "t")
    assert (refused.status, "is text" in refused.err) == (7, True)


def test_the_settings_of_the_output(acidctl: Any, crud: Path) -> None:
    wrong = acidctl(
        "compact", "--assume-committed=0s", "--major", *LOCAL, "--property", "orc.bloom.filter.columns=nonsense", crud
    )
    assert (wrong.status, "nonsense" in wrong.err) == (2, True)
    properties = ("compress=ZSTD", "row.index.stride=1000", "bloom.filter.columns=value", "stripe.size=1048576")
    settings = [word for item in properties for word in ("--property", f"orc.{item}")]
    done = acidctl(
        "compact", "--assume-committed=0s", "--major", *LOCAL, *settings, "--verify", "full", "-o", "json", crud
    )
    assert done.status == 0, done.err
    assert done.one()["stripesCopied"] == 0
    tail = tail_of(crud / "base_0000003" / "bucket_00000")
    assert (tail.compression, tail.stride) == ("zstd", 1000)
    assert acidctl("cat", crud).out.count("\n") == 2


@pytest.mark.parametrize(
    "options", [("--jobs", "2"), ("--engine", "local", "--master", "local[2]"), ("--property", "orc.stripe.size=x"),
                ("--deadline", "soon"), ("--property", "orc.compress=lzo"),
                ("--property", "orc.row.index.stride=0", "--property", "orc.bloom.filter.columns=value")],
)  # fmt: skip
def test_options_that_make_no_sense(acidctl: Any, crud: Path, options: tuple[str, ...]) -> None:
    assert acidctl("compact", "--assume-committed=0s", "--major", *options, crud).status == 2


def test_what_led_to_the_decision_is_shown(acidctl: Any, crud: Path) -> None:
    found = acidctl("compact", "--assume-committed=0s", "--auto", "--dry-run", "-o", "json", crud).one()
    assert (found["result"], found["reason"], found["reasonCodes"]) == (
        "nothing-to-do", "4 deltas <= 10", ["few-deltas"],
    )  # fmt: skip
    assert found["figures"]["deltas"] == 4
    assert found["figures"]["baseBytes"] == 0
    assert found["figures"]["deltaRatio"] is None
    found = acidctl(
        "compact", "--assume-committed=0s", "--auto", "--min-deltas", "4", "--dry-run", "-o", "json", crud
    ).one()
    assert (found["result"], found["kind"]) == ("planned", "major")
    found = acidctl("compact", "--assume-committed=0s", "--major", "--dry-run", "-o", "json", crud).one()
    assert (found["reason"], found["reasonCodes"]) == ("asked for", ["asked-for"])


def test_few_deltas_are_left_alone(acidctl: Any, crud: Path) -> None:
    found = acidctl("compact", "--assume-committed=0s", "--major", *LOCAL, "--min-deltas", "5", "--exit-code", crud)
    assert (found.status, "4 deltas < 5" in found.out) == (12, True)
    found = acidctl("compact", "--assume-committed=0s", "--major", *LOCAL, "--min-deltas", "4", "--exit-code", crud)
    assert found.status == 0


def test_the_ratio_of_the_user(acidctl: Any, crud: Path) -> None:
    acidctl("compact", "--assume-committed=0s", "--major", *LOCAL, crud)
    value = crud / "delta_0000004_0000004_0000" / "bucket_00000"
    value.parent.mkdir()
    value.write_bytes((crud / "delta_0000001_0000001_0000" / "bucket_00000").read_bytes())
    assert (
        acidctl("compact", "--assume-committed=0s", "--auto", "--dry-run", "-o", "json", crud).one()["kind"] == "major"
    )
    ratio = ("--property", "compactorthreshold.hive.compactor.delta.pct.threshold=5")
    found = acidctl("compact", "--assume-committed=0s", "--auto", "--dry-run", *ratio, "-o", "json", crud).one()
    assert found["result"] == "nothing-to-do"


def test_the_budget_takes_what_is_worth_most(acidctl: Any, tmp_path: Path) -> None:
    for name in ("a", "b"):
        acidctl("demo", tmp_path / "w" / name)
    budget = str(sum(f.stat().st_size for f in (tmp_path / "w" / "a").rglob("bucket*")))
    found = acidctl(
        "compact",
        "--assume-committed=0s",
        "--major",
        *LOCAL,
        "--max-bytes",
        budget,
        "--exit-code",
        "-o",
        "jsonl",
        tmp_path / "w",
    )
    assert sorted(result["result"] for result in found.lines()) == ["compacted", "postponed"]
    assert found.status == 13


def test_a_run_that_is_over_before_it_begins(acidctl: Any, crud: Path) -> None:
    before = sorted(crud.rglob("*"))
    found = acidctl("compact", "--assume-committed=0s", "--major", *LOCAL, "--deadline", "0s", crud)
    assert (found.status, "left for later: the time is up" in found.out) == (0, True)
    assert sorted(crud.rglob("*")) == before


@pytest.mark.parametrize(
    ("text", "bytes_"), [("1", 1), ("512m", 512 << 20), ("2GiB", 2 << 30), ("1.5k", 1536), ("7 TB", 7 << 40)]
)
def test_sizes_are_read_with_their_units(text: str, bytes_: int) -> None:
    assert SIZE.convert(text, None, None) == bytes_


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("1h30m", 5400), ("2d", 172800), ("1w", 604800)])
def test_durations_are_read_with_their_units(text: str, seconds: float) -> None:
    assert DURATION.convert(text, None, None) == seconds


def test_a_location_that_is_named_twice(acidctl, crud: Path) -> None:  # type: ignore[no-untyped-def]
    """Also below another one: it would meet its own lock."""
    done = acidctl(
        "compact",
        "--major",
        "--assume-committed=0s",
        *LOCAL,
        "-o",
        "jsonl",
        crud,
        f"{crud}/",
        crud.parent,
        "--exit-code",
    )
    assert (done.status, done.err.count("locked")) == (0, 0)
    assert [line["result"] for line in done.lines() if line["location"] == str(crud)] == ["compacted"]


def test_a_minor_compaction_applies_no_deletes(acidctl: Any, crud: Path) -> None:
    refused = acidctl("compact", "--minor", "--apply-all-deletes", "--assume-committed=0s", *LOCAL, crud)
    assert (refused.status, "--apply-all-deletes" in refused.err) == (2, True)
