"""Rows of files in every form, as the types of a table."""

from __future__ import annotations

import datetime
import gzip
import io
import json
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import csv, orc, parquet

from acidctl.base.errors import AcidctlError, BadDataError, UsageProblem
from acidctl.orc.types import arrow_type, parse_type
from acidctl.writing.rows import json_lines, line_blocks, sources
from acidctl.writing.rows.conform import RowConformer
from acidctl.writing.rows.sources import FileSource, arrow_source

TYPES = {
    "a": "int", "b": "string", "d": "date", "x": "decimal(10,2)", "t": "timestamp", "f": "float", "l": "array<int>",
    "s": "struct<u:int,v:string>", "y": "boolean", "z": "binary",
}  # fmt: skip
KINDS = {name: parse_type(text) for name, text in TYPES.items()}
ROWS = [
    (1, "x", datetime.date(2026, 1, 2), Decimal("1.50"), datetime.datetime(2026, 1, 2, 10, 0, 0, 500000), 0.5),
    (None, "", None, None, None, None),
]


def read(source: Any, names: tuple[str, ...] = tuple(TYPES)) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    kinds = [KINDS[name] for name in names]
    for part in source({name: arrow_type(kind) for name, kind in KINDS.items()}):
        conformer = RowConformer(part.rows.schema, names, kinds, part)
        for batch in part.rows:
            columns = [column.to_pylist() for column in conformer.columns(batch)]
            found += zip(*columns, strict=True)
    return found


def table() -> pa.Table:
    kinds = [arrow_type(KINDS[name]) for name in "abdxtf"]
    columns = [pa.array(column, kind) for column, kind in zip(zip(*ROWS, strict=True), kinds, strict=True)]
    return pa.table(columns, list("abdxtf"))


def write(path: Path, form: str) -> None:
    rows = table()
    if form == "parquet":
        parquet.write_table(rows, path)
    elif form == "orc":
        orc.write_table(rows, path)
    elif form == "arrow":
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, rows.schema) as writer:
            writer.write_table(rows)
    elif form == "stream":
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, rows.schema) as writer:
            writer.write_table(rows)
    elif form == "csv":
        path.write_text('\ufeffT,A,b,D,x,f\n2026-01-02 10:00:00.5,1,x,2026-01-02,1.5,0.5\n,,"",,,\n', "utf-8")
    else:
        first = '{"A": 1, "b": "x", "d": "2026-01-02", "x": 1.50, "t": "2026-01-02T10:00:00.5", "f": 0.5}\n'
        path.write_text(first + '{"b": ""}\n')


FORMS = ["parquet", "orc", "arrow", "stream", "csv", "jsonl"]


@pytest.mark.parametrize("form", FORMS)
def test_a_file_of_any_form_gives_rows_of_the_table(tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / f"rows.{'arrow' if form == 'stream' else form}"
    write(path, form)
    assert read(FileSource([str(path)]), tuple("abdxtf")) == ROWS
    zipped = path.with_name(path.name + ".gz")
    zipped.write_bytes(gzip.compress(path.read_bytes()))
    assert read(FileSource([str(path), str(zipped)]), tuple("abdxtf")) == ROWS * 2
    pipe = io.BufferedReader(Unseekable(path.read_bytes()))  # type: ignore[arg-type]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(pipe))
    source = FileSource(["-"], "csv" if form == "csv" else None)
    assert read(source, tuple("abdxtf")) == ROWS


class Unseekable(io.RawIOBase):
    def __init__(self, data: bytes) -> None:
        self.inner = io.BytesIO(data)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self.inner.readinto(buffer)


def test_nested_values_are_read_from_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('{"l": [1, null], "s": {"u": 1, "v": "w"}, "y": true, "z": "abc"}\n')
    assert read(FileSource([str(path)]), tuple("lsyz")) == [([1, None], {"u": 1, "v": "w"}, True, b"abc")]


def test_a_column_that_json_lines_begin_without_is_no_column(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text('{"a": 1}\n{"a": 2}\n')
    (part,) = FileSource([str(path)])({name: arrow_type(kind) for name, kind in KINDS.items()})
    assert part.rows.schema.names == ["a"]
    path.write_text('{"a": 1}\n' + '{"a": 2}\n' * 20_000 + '{"a": 3, "b": "late"}\n')
    with pytest.raises(BadDataError, match="cannot read"):
        read(FileSource([str(path)]))


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("x.csv", b"a,b\n1\n", BadDataError), ("x.csv", b"", AcidctlError), ("x.bin", b"what", UsageProblem),
        ("x.parquet", b"PAR1nothing", BadDataError), ("x.orc", b"ORCnothing", BadDataError),
        ("x.arrow", b"ARROW1nothing", BadDataError), ("x.jsonl", b'{"a": 1}\n{"a": ', BadDataError),
        ("x.jsonl", b'{"a": 1}\n{"a": "x"}\n', BadDataError), ("x.csv", b"a,b\n1,x\n2147483648,x\n", BadDataError),
        ("x.csv", b"d\n2026-02-30\n", BadDataError), ("x.jsonl", b'{"d": "2026-13-01"}\n', BadDataError),
        ("x.jsonl", b'{"t": "2026-01-01 00:00:00+01:00"}\n', BadDataError),
        ("x.jsonl", b'{"x": "1.555"}\n', BadDataError),
        ("x.csv", b"\xff\xfe,b\n1,2\n", AcidctlError), ("x.csv", b"a,A\n1,2\n", UsageProblem),
        ("x.csv.gz", b"no gzip", BadDataError),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused(tmp_path: Path, name: str, content: bytes, kind: type[AcidctlError]) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(kind) as refusal:
        read(FileSource([str(path)]))
    assert refusal.value.what


def test_the_row_that_does_not_fit_is_named(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    rows = pa.table({"a": [str(number) for number in range(300_000)]})
    csv.write_csv(rows, path)
    with path.open("a") as file:
        file.write("x\n")
    with pytest.raises(BadDataError, match=r"row 300,001 of .*x\.csv"):
        read(FileSource([str(path)]))


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_a_value_and_a_line_may_be_long(tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / f"x.{form}"
    texts = ["z" * 3_000_000, "y", "x" * 5_000_000]
    lines = [json.dumps({"a": 1, "b": text}) if form == "jsonl" else f"1,{text}" for text in texts]
    path.write_text("\n".join(["a,b"] * (form == "csv") + lines))
    assert read(FileSource([str(path)]), ("a", "b")) == [(1, text) for text in texts]
    monkeypatch.setattr(line_blocks, "MOST", 1 << 20)
    monkeypatch.setattr(sources, "MOST", 1 << 20)
    monkeypatch.setattr(json_lines, "MOST", 1 << 20)
    with pytest.raises(BadDataError, match="longer than 64 MiB"):
        read(FileSource([str(path)]), ("a", "b"))


def test_a_long_value_in_quotes_may_have_many_lines(tmp_path: Path) -> None:
    path, text = tmp_path / "x.csv", "line\n" * 600_000
    path.write_text(f'a,b\n1,"{text}"\n2,y\n')
    assert read(FileSource([str(path)]), ("a", "b")) == [(1, text), (2, "y")]


def test_text_that_begins_like_a_binary_file_is_text(tmp_path: Path) -> None:
    for name, word in (("x.csv", "ORCID"), ("y.csv", "PAR1"), ("z.csv", "ARROW1")):
        (tmp_path / name).write_text(f"{word},a\nv,1\n")
        (part,) = FileSource([str(tmp_path / name)])({"a": pa.int32()})
        assert (part.rows.schema.names, part.is_text) == ([word, "a"], True)
        (tmp_path / "unnamed").write_text(f"{word},a\nv,1\n")
        with pytest.raises(UsageProblem, match="detect"):
            read(FileSource([str(tmp_path / "unnamed")]))


@pytest.mark.parametrize("form", ["parquet", "orc", "arrow", "stream"])
def test_a_binary_file_needs_no_name(tmp_path: Path, form: str) -> None:
    write(tmp_path / "unnamed", form)
    assert read(FileSource([str(tmp_path / "unnamed")]), tuple("abdxtf")) == ROWS


def test_json_lines_without_a_line_have_no_rows(tmp_path: Path) -> None:
    for text in ("", "\n\n"):
        (tmp_path / "x.jsonl").write_text(text)
        assert read(FileSource([str(tmp_path / "x.jsonl")])) == []


_ABANDON = """
import sys, pyarrow as pa
from acidctl.writing.rows.sources import FileSource
parts = FileSource([sys.argv[1]])({"a": pa.int32(), "b": pa.string()})
part = next(parts)
part.rows.read_next_batch()
sys.exit(4)
"""


@pytest.mark.parametrize(
    ("form", "line"), [("csv", f"2,{100 * 'z'}\n"), ("jsonl", f'{{"a": 2, "b": "{100 * "z"}"}}\n')]
)
def test_a_process_may_end_before_all_rows_are_read(tmp_path: Path, form: str, line: str) -> None:
    path = tmp_path / f"x.{form}"
    path.write_text("a,b\n" * (form == "csv") + line * 300_000)
    done = subprocess.run([sys.executable, "-c", _ABANDON, str(path)], check=False, capture_output=True)
    assert (done.returncode, done.stderr) == (4, b"")


def test_only_arrow_is_taken_from_python() -> None:
    rows = table()
    for given in (rows, rows.to_batches()[0], rows.to_reader()):
        assert read(arrow_source(given), tuple("abdxtf")) == ROWS
    with pytest.raises(UsageProblem):
        arrow_source([{"a": 1}])


@pytest.mark.parametrize("place", [0, 1, 70_000, 100_000])
@pytest.mark.parametrize(
    "bad", ["null", " null", "3", "[1]", '"x"', "oops", '{"a": ', '{"a": "x"}', '{"a": 1.5}', "\ufffd"]
)
def test_a_bad_json_line_is_refused_with_its_number(tmp_path: Path, bad: str, place: int) -> None:
    """Arrow takes `null` for a row of NULLs, or crashes."""
    lines = [f'{{"a": {number}, "b": "x"}}' for number in range(100_000)]
    (tmp_path / "x.jsonl").write_text("\n".join([*lines[:place], bad, *lines[place:]]))
    with pytest.raises(BadDataError, match=f"line {place + 1:,}: "):
        read(FileSource([str(tmp_path / "x.jsonl")], "jsonl"), ("a", "b"))


def test_blank_lines_count_and_are_no_rows(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text('\n \n{"a": 1}\r\n\t\n  {"a": 2}')
    assert read(FileSource([str(path)], "jsonl"), ("a",)) == [(1,), (2,)]
    path.write_text('\n \n{"a": 1}\r\n\t\nnull')
    with pytest.raises(BadDataError, match="line 5: "):
        read(FileSource([str(path)], "jsonl"), ("a",))
