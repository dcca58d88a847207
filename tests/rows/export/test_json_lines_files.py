"""JSON lines of files that Hive and ORC's own tools wrote, against what those tools say is in them."""

from __future__ import annotations

import base64
import gzip
import json
import math
from decimal import Decimal
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
from support.files.json_text import encode_json_lines

from acidctl.orc.read.reader import open_orc
from acidctl.storage.registry import open_location


def dumped(path: Path) -> list[Any]:
    """Every row of an ORC file, through the encoder and back."""
    fs, inside = open_location(str(path))
    file = open_orc(fs, inside)
    text = b"".join(encode_json_lines(file.read_stripe(i), file.tail.type_tree) for i in range(file.stripe_count))
    return [json.loads(line, parse_float=Decimal) for line in text.decode().split("\n")[:-1]]


def test_rows_that_hive_wrote_are_what_hive_returned(own_data: Path) -> None:
    table = own_data / "hive23-written" / "alltypes_random"
    expected = {}
    for line in (table / "expected" / "1.rows.jsonl").read_text(encoding="utf-8").splitlines():
        event = json.loads(line, parse_float=Decimal)
        row = event["row"]
        # The folder's own forms: base64, pairs, and a union with its tag.
        row["bin"] = None if row["bin"] is None else list(base64.b64decode(row["bin"]))
        # Hive's reader makes a hash map, whose order is no one's.
        row["mp"] = row["mp"] and [
            {"_key": key, "_value": value} for key, value in sorted(row["mp"], key=itemgetter(0))
        ]
        row["un"] = row["un"] and row["un"][1]
        expected[tuple(event["id"])] = row
    found = {}
    for path in sorted((table / "table" / "delta_0000001_0000001_0000").glob("bucket_0000?")):
        for event in dumped(path):
            row = event["row"]
            row["mp"] = row["mp"] and sorted(row["mp"], key=lambda pair: pair["_key"])
            found[event["originalTransaction"], event["bucket"], event["rowId"]] = row
    assert len(expected) > 500
    assert found == expected


CORPUS = [
    "TestOrcFile.emptyFile",
    "TestOrcFile.metaData",
    "TestOrcFile.test1",
    "TestOrcFile.testMemoryManagementV11",
    "TestOrcFile.testMemoryManagementV12",
    "TestOrcFile.testPredicatePushdown",
    "TestOrcFile.testStringAndBinaryStatistics",
    "TestOrcFile.testStripeLevelStats",
    "TestOrcFile.testUnionAndTimestamp",
    "decimal",
    "orc-file-11-format",
    "orc_index_int_string",
    "orc_split_elim",
    "orc_split_elim_cpp",
    "orc_split_elim_new",
    "over1k_bloom",
]


def same(ours: Any, theirs: Any) -> bool:
    """Equal by value, where ``orc-contents`` writes decimals as numbers, floats short and unions with their tags."""
    if isinstance(theirs, dict) and theirs.keys() == {"tag", "value"}:
        return same(ours, theirs["value"])
    if isinstance(theirs, dict) and theirs.keys() == {"key", "value"}:
        return same([ours["_key"], ours["_value"]], list(theirs.values()))
    if isinstance(theirs, dict):
        return list(ours) == list(theirs) and all(same(ours[key], theirs[key]) for key in theirs)
    if isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(ours, str) and isinstance(theirs, Decimal | int) and not isinstance(theirs, bool):
        return Decimal(ours) == theirs
    if isinstance(ours, Decimal):
        return math.isclose(ours, theirs, rel_tol=1e-5)
    return type(ours) is type(theirs) and bool(ours == theirs)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", CORPUS)
def test_rows_of_the_orc_projects_files(shared_data: Path, name: str) -> None:
    folder = shared_data / "orc-corpus" / "apache-orc"
    with gzip.open(folder / "expected" / f"{name}.jsn.gz", "rt", encoding="utf-8") as file:
        theirs = [json.loads(line, parse_float=Decimal) for line in file if line.strip()]
    ours = dumped(folder / f"{name}.orc")
    assert len(ours) == len(theirs)
    for number, (our, their) in enumerate(zip(ours, theirs, strict=True)):
        assert same(our, their), f"row {number}: {our} is not {their}"


def test_every_readable_file_gives_valid_json(shared_data: Path) -> None:
    folder = shared_data / "orc-corpus" / "apache-orc"
    for name in (
        "TestOrcFile.testDate1900",
        "TestOrcFile.testDate2038",
        "complextypes_iceberg",
        "TestOrcFile.testSnappy",
    ):
        assert dumped(folder / f"{name}.orc")
