"""Read rows to write as Arrow batches, from files or standard input in Parquet, ORC, Arrow, CSV or JSON lines."""

from __future__ import annotations

import csv
import io
import re
import shutil
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.csv as arrow_csv

from acidctl.base.errors import BadDataError, UsageProblem
from acidctl.storage.registry import open_location
from acidctl.wording import human_count
from acidctl.writing.rows.json_lines import TOO_LONG, JsonParser, first_bad_line, whole_lines, why_bad
from acidctl.writing.rows.line_blocks import MOST, LineBlocks

FORMS = ("parquet", "orc", "arrow", "csv", "jsonl")
STDIN = "-"

ColumnTypes = Mapping[str, pa.DataType]
"""The types of the table's columns by their names in lower case; texts are parsed as these types."""


class RowPart(NamedTuple):
    """Rows of one source.

    Attributes:
        name: the name of the source for messages; may be empty.
        is_text: the values of the table's columns are texts, still to be parsed.
    """

    name: str
    rows: pa.RecordBatchReader
    is_text: bool = False

    @property
    def of(self) -> str:
        """Return the words after the number of a row; empty for a source without a name."""
        return f" of {self.name}{' (after its header)' * self.is_text}" if self.name else ""


RowSource = Callable[[ColumnTypes], Iterator[RowPart]]
"""Opens the rows of a statement, part by part; each part may have columns of its own."""

_HEAD, _BLOCK = 1 << 16, 1 << 20
_MAGIC = {b"PAR1": "parquet", b"ORC": "orc", b"ARROW1": "arrow", b"\xff\xff\xff\xff": "arrow"}
_TEXTS = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl"}
_BINARIES = {".parquet": "parquet", ".orc": "orc", ".arrow": "arrow"}
_CONTROL = bytes({*range(32)} - set(b"\t\n\f\r"))
_BAD_WIDTH = re.compile(r"CSV parse error: (?:Row #[0-9]+: )?Expected ([0-9]+) columns, got ([0-9]+): (.*)")
_ROW_NUMBER = re.compile(r"CSV parse error: Row #([0-9]+): ")
_COMPRESSED = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}


def arrow_source(rows: Any) -> RowSource:
    """Return the rows of an Arrow table, a batch, a reader, or anything else with ``__arrow_c_stream__``.

    Raises:
        UsageProblem: `rows` is of another type.
    """
    if isinstance(rows, pa.RecordBatch):
        rows = pa.Table.from_batches([rows])
    if not hasattr(rows, "__arrow_c_stream__"):
        why, hint = f"its type is {type(rows).__name__}", "give an Arrow table, or anything with __arrow_c_stream__"
        raise UsageProblem("these rows cannot be read", why, hint)
    return lambda _: iter((RowPart("", pa.RecordBatchReader.from_stream(rows)),))


@dataclass(frozen=True, slots=True)
class FileSource:
    """Rows of files, one after the other.

    Attributes:
        paths: paths or URLs; ``-`` is standard input.
        form: one of FORMS; None detects it by the end of the name or the first bytes.
        storage: options of the stores.
    """

    paths: Sequence[str]
    form: str | None = None
    storage: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, types: ColumnTypes) -> Iterator[RowPart]:
        """Open each file when the one before has been read.

        Raises:
            BadDataError: a file cannot be read in its format.
            UsageProblem: the format of a file cannot be detected.
        """
        for path in self.paths:
            with _opened(path, self.storage) as file, _explained(path, self.storage), ExitStack() as close:
                head = file.peek(_HEAD)[:_HEAD]
                form = self.form or _form_of(path, head)
                if form == "jsonl":
                    reader = _jsonl(file, types)
                elif form == "csv":
                    reader = _csv(close.enter_context(LineBlocks(file, has_quotes=True)), types)
                else:
                    reader = _OPENERS[form](file, head)
                if reader is None:
                    continue  # no rows
                if not reader.schema.names:  # some readers decode the names only here
                    raise pa.ArrowInvalid("it has no columns")
                rows = pa.RecordBatchReader.from_batches(reader.schema, _batches(path, self.storage, reader))
                yield RowPart(_display_name(path), rows, form == "csv")


def form_of(path: str, storage: Mapping[str, str]) -> str:
    """Return the format of a file, one of FORMS.

    Raises:
        UsageProblem: it cannot be detected.
    """
    with _opened(path, storage) as file:
        return _form_of(path, file.peek(_HEAD)[:_HEAD])


@contextmanager
def _opened(path: str, storage: Mapping[str, str]) -> Iterator[io.BufferedReader]:
    with ExitStack() as close:
        if path == STDIN:
            raw: Any = sys.stdin.buffer
        else:
            fs, inside = open_location(path, storage)
            raw = close.enter_context(fs.open_input(inside))
        if codec := _by_ending(path, _COMPRESSED):
            raw = close.enter_context(pa.CompressedInputStream(raw, codec))
        yield raw if isinstance(raw, io.BufferedReader) else io.BufferedReader(raw, _BLOCK)


@contextmanager
def _explained(path: str, storage: Mapping[str, str]) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, UnicodeDecodeError, OSError, csv.Error) as error:
        why = TOO_LONG if "straddl" in str(error) else str(error).splitlines()[0]
        if match := _BAD_WIDTH.search(why):
            number = _first_bad_row(path, storage)
            row = f"row {number:,} (after its header)" if number else "a row"
            why = f"{row} has {human_count(int(match[2]), 'value')}, not {match[1]}: {match[3][:60]}"
        raise BadDataError(
            f"cannot read the rows of {_display_name(path)}",
            why,
            "nothing was written; correct the file, or give its --format",
        ) from error


def _first_bad_row(path: str, storage: Mapping[str, str]) -> int:
    """Read a CSV file again, and return the number of the first row with too few or too many values; 0 if unknown."""
    if path == STDIN:
        return 0
    try:
        with _opened(path, storage) as file, LineBlocks(file, has_quotes=True) as lines:
            deque(_csv(lines, {}, is_numbered=True), maxlen=0)
    except pa.ArrowInvalid as error:
        match = _ROW_NUMBER.search(str(error))
        return int(match[1]) - 1 if match else 0
    return 0


def _batches(path: str, storage: Mapping[str, str], reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    with _explained(path, storage):
        yield from reader


def _form_of(path: str, head: bytes) -> str:
    plain = path.removesuffix(next((name for name in _COMPRESSED if path.endswith(name)), "")).lower()
    if form := _by_ending(plain, _TEXTS):
        return form
    for magic, form in _MAGIC.items():
        if head.startswith(magic) and head.translate(None, _CONTROL) != head:  # else text that begins so: ORCID,name
            return form
    if form := _by_ending(plain, _BINARIES):
        return form
    if head.lstrip()[:1] == b"{":
        return "jsonl"
    raise UsageProblem(
        f"cannot detect the format of {_display_name(path)}",
        "neither its first bytes nor its name show it",
        f"give --format: {', '.join(FORMS)}",
    )


def _by_ending(name: str, endings: Mapping[str, str]) -> str | None:
    return next((form for ending, form in endings.items() if name.endswith(ending)), None)


def _display_name(path: str) -> str:
    return "standard input" if path == STDIN else path


def _parquet(file: io.BufferedReader, _: bytes) -> pa.RecordBatchReader:
    from pyarrow import parquet  # noqa: PLC0415 - a tenth of a second that other forms do not need

    opened = parquet.ParquetFile(_seekable(file))
    return pa.RecordBatchReader.from_batches(opened.schema_arrow, opened.iter_batches())


def _orc(file: io.BufferedReader, _: bytes) -> pa.RecordBatchReader:
    from pyarrow import orc  # noqa: PLC0415 - as above

    opened = orc.ORCFile(_seekable(file))
    return pa.RecordBatchReader.from_batches(opened.schema, map(opened.read_stripe, range(opened.nstripes)))


def _arrow(file: io.BufferedReader, head: bytes) -> pa.RecordBatchReader:
    if not head.startswith(b"ARROW1"):
        return pa.ipc.open_stream(file)
    opened = pa.ipc.open_file(_seekable(file))
    return pa.RecordBatchReader.from_batches(opened.schema, map(opened.get_batch, range(opened.num_record_batches)))


def _csv(lines: LineBlocks, types: ColumnTypes, *, is_numbered: bool = False) -> pa.RecordBatchReader:
    """Open CSV; `is_numbered` if errors are to have the number of the row, which costs Arrow its threads."""
    header = next(csv.reader(io.StringIO(lines.first.decode("utf-8-sig", "replace"))), [])
    convert = arrow_csv.ConvertOptions(
        column_types={name: pa.string() for name in header if name.lower() in types},
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,  # "" is an empty text, and nothing between two commas is NULL
    )
    parse = arrow_csv.ParseOptions(newlines_in_values=True)
    read = arrow_csv.ReadOptions(block_size=MOST, use_threads=not is_numbered)
    return arrow_csv.open_csv(lines, read_options=read, parse_options=parse, convert_options=convert)


def _jsonl(file: io.BufferedReader, types: ColumnTypes) -> pa.RecordBatchReader | None:
    blocks = whole_lines(file)
    if (first := next(blocks, None)) is None:
        return None
    tables = _tables(types, first, blocks)
    seen, head = next(tables)
    kept = [name for name in head.schema.names if name in seen]
    schema = pa.schema([head.schema.field(name) for name in kept])
    whole = chain([head], (table for _, table in tables))
    batches = (batch for table in whole for batch in _without_absent(kept, table).to_batches())
    return pa.RecordBatchReader.from_batches(schema, batches)


def _tables(types: ColumnTypes, first: bytes, blocks: Iterator[bytes]) -> Iterator[tuple[Sequence[str], pa.Table]]:
    """Yield the rows of blocks of JSON lines, and the names that the first lines have.

    Raises:
        pa.ArrowInvalid: a line cannot be read; the message has its number.
    """
    number, parser = 0, None
    for block in chain([first], blocks):
        try:
            parser = parser or JsonParser(types, first)
            table = parser.table(block)
        except pa.ArrowInvalid:
            read = parser.table if parser else lambda part: JsonParser(types, part).table(part)
            place, error = first_bad_line(block, read, pa.ArrowInvalid)
            why = why_bad(block, place, types, error)
            raise pa.ArrowInvalid(f"line {number + place + 1:,}: {why}") from error
        number += block.count(b"\n")
        yield parser.seen, table


def _without_absent(kept: Sequence[str], table: pa.Table) -> pa.Table:
    """Drop columns that the first lines lack: a merge then keeps their old values, and an insert writes NULL."""
    for name in table.schema.names:
        if name not in kept and table.column(name).null_count < table.num_rows:
            raise pa.ArrowInvalid(f"{name} is missing in the first lines; write it there, as null")
    return table.select(kept)


def _seekable(file: io.BufferedReader) -> Any:
    """Return a file that can seek, since formats with a footer need it: a stream is copied to a temporary file."""
    if file.seekable():
        return file
    copy = tempfile.TemporaryFile()  # noqa: SIM115 - its reader holds it
    shutil.copyfileobj(file, copy, _BLOCK)
    copy.seek(0)
    return copy


_Open = Callable[[io.BufferedReader, bytes], pa.RecordBatchReader]
_OPENERS: Mapping[str, _Open] = {"parquet": _parquet, "orc": _orc, "arrow": _arrow}
