"""Parquet files of an insert-only table with faults: what Arrow refuses is refused, and nothing else changes."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet
from support.command_line import Result

D1, D2 = "delta_0000001_0000001_0000", "delta_0000002_0000002_0000"
MAJOR = ("--assume-committed=0s", "--engine", "local", "--jobs", "1")
INSERT_ONLY = ("--table-type", "insert-only")
ROWS = 120


def written(seed: int) -> bytes:
    """A file of small pages with checksums, as Hive 4 writes them."""
    numbers = [seed + number for number in range(ROWS)]
    texts = [f"v{number % 7}" if number % 5 else None for number in numbers]
    lists = [[number] * (number % 3) for number in numbers]
    file = io.BytesIO()
    parquet.write_table(
        pa.table({"a": numbers, "b": texts, "c": lists}),
        file,
        row_group_size=60,
        data_page_size=128,
        write_page_checksum=True,
        compression="snappy" if seed % 2 else "none",
        data_page_version="2.0" if seed % 3 else "1.0",
    )
    return file.getvalue()


def mutated(whole: bytes, other: bytes, kind: str, luck: random.Random) -> bytes:
    """The bytes with one fault."""
    data = bytearray(whole)
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    match kind:
        case "page":
            data[luck.randrange(4, footer)] ^= 1 << luck.randrange(8)
        case "footer":
            data[footer + luck.randrange(len(data) - 8 - footer)] ^= 1 << luck.randrange(8)
        case "zeros":
            start = luck.randrange(4, footer - 16)
            data[start : start + 16] = bytes(16)
        case "cut":
            data = data[: luck.randrange(footer)] if luck.random() < 0.5 else data[: footer - 25] + data[footer:]
        case "footer of another":
            size = int.from_bytes(other[-8:-4], "little")
            data = data[:footer] + other[len(other) - 8 - size :]
        case "header":
            group = parquet.ParquetFile(io.BytesIO(whole)).metadata.row_group(luck.randrange(2))
            at = group.column(luck.randrange(3)).data_page_offset + luck.randrange(20)
            data[at] ^= 255
    return bytes(data)


def judged(data: bytes) -> list[int] | None:
    """Let Arrow read all columns, and return the values of the first; None if it fails."""
    try:
        found = parquet.ParquetFile(io.BytesIO(data), page_checksum_verification=True).read()
        return list(found.column("a").to_pylist())
    except (pa.ArrowException, OSError, KeyError):
        return None


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow), pytest.param(3, marks=pytest.mark.slow)])
def test_what_arrow_refuses_is_refused_and_kept(acidctl: Callable[..., Result], tmp_path: Path, seed: int) -> None:
    luck = random.Random(seed)
    table, known = tmp_path / "t", dict[Path, list[int] | None]()
    for number, kind in enumerate(["page", "footer", "zeros", "cut", "footer of another", "header"] * 2):
        place = table / f"day={number}"
        data = mutated(written(number), written(number + 50), kind, luck)
        for name, content in ((D1, data), (D2, written(1000))):
            (place / name).mkdir(parents=True)
            (place / name / "000000_0").write_bytes(content)
        rows = judged(data)
        known[place] = None if rows is None else sorted(rows + list(range(1000, 1000 + ROWS)))
    before = {path: path.read_bytes() for path in table.rglob("*_0") if path.is_file()}
    assert sum(rows is None for rows in known.values()) > 6

    def read(place: Path) -> list[int] | None:
        found = acidctl("cat", "-o", "jsonl", *INSERT_ONLY, place)
        assert found.status in (0, 4), found.err
        return sorted(row["a"] for row in found.lines()) if not found.status else None

    assert {place: read(place) for place in known} == known
    checked = acidctl("validate", "--deep", "-o", "json", "--jobs", "1", *INSERT_ONLY, table)
    bad = (one for one in checked.json() if one["summary"]["errors"] or one["summary"]["unchecked"])
    faulty = {Path(report["location"]) for report in bad}
    assert faulty == {place for place, rows in known.items() if rows is None}
    done = acidctl("compact", "--major", *MAJOR, "-o", "jsonl", *INSERT_ONLY, table)
    assert len({json.loads(line)["location"] for line in done.out.splitlines()}) == len(known), done.err
    assert {path: path.read_bytes() for path in before} == before
    made = {path.parent for path in table.glob("day=*/base_*")}
    assert made == {place for place, rows in known.items() if rows is not None}
    assert {place: read(place) for place in made} == {place: known[place] for place in made}
