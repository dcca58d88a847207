"""Read JSON lines as Arrow tables, and find the number of the first line that cannot be read."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.json as arrow_json

from acidctl.orc.types import hive_word
from acidctl.writing.rows.line_blocks import MOST

TOO_LONG = f"a row is longer than {MOST >> 20} MiB: write the rows as Parquet"
_HEAD, _BLOCK = 1 << 16, 1 << 20
_SPACE = re.compile(rb"(?:\A\xef\xbb\xbf)?[ \t\r]*")


def whole_lines(file: io.BufferedIOBase) -> Iterator[bytes]:
    """Yield the bytes of a file in blocks of whole lines of about 1 MiB; blank ones at the beginning are left out.

    Raises:
        pa.ArrowInvalid: a line is longer than MOST.
    """
    rest, is_first = b"", True
    while block := file.read(_BLOCK):
        while b"\n" not in block and (more := file.read(_BLOCK)):
            if len(block) >= MOST:
                raise pa.ArrowInvalid(TOO_LONG)
            block += more
        end = block.rfind(b"\n") + 1
        lines, rest = (rest + block[:end], block[end:]) if end else (b"", rest + block)
        if lines.strip() or (lines and not is_first):
            is_first = False
            yield lines
    if rest.strip():
        yield rest


class JsonParser:
    """Parses blocks of JSON lines into one schema.

    Args:
        types: the types of known columns by their names in lower case; other columns get the type of their first block.
        first: the first block, whose first 64 KiB show how the names are spelled.

    Attributes:
        seen: the names in these first lines.

    Raises:
        pa.ArrowInvalid: the first lines cannot be parsed.
    """

    def __init__(self, types: Mapping[str, pa.DataType], first: bytes) -> None:
        first = first.lstrip()
        end = max(first.rfind(b"\n", 0, _HEAD), first.find(b"\n")) + 1
        head = _parsed(first[: end or None], None)
        self.seen = head.schema.names
        spelled = {name.lower(): name for name in self.seen}
        fields = [(spelled.get(name, name), _as_read(kind)) for name, kind in types.items() if not _has_map(kind)]
        self._schema = pa.schema(fields)

    def table(self, block: bytes) -> pa.Table:
        """Return the rows of a block, with all known columns and those that were found so far.

        Raises:
            pa.ArrowInvalid: a line is not an object, or a value does not have the type of its column.
        """
        table = _parsed(block, self._schema)
        self._schema = table.schema
        return table


def first_bad_line(block: bytes, read: Callable[[bytes], object], kinds: type[Exception]) -> tuple[int, Exception]:
    """Return the place of the first line, from 0, with which `read` fails, and its error.

    Args:
        read: fails for the whole block.
        kinds: the errors of `read`.
    """
    ends = (np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n")) + 1).tolist()
    starts = [0, *ends, *([] if block.endswith(b"\n") else [len(block)])]
    for is_alone in (True, False):  # a line may contradict those before it, so that it is bad only after them
        good, bad, found = 0, len(starts) - 1, None
        while good < bad:
            middle = good + max((bad - good) // 2, 1)
            try:
                read(block[starts[good] if is_alone else 0 : starts[middle]])
            except kinds as error:
                bad, found = middle, error
                if middle == good + 1:
                    return good, found
            else:
                good = middle
    raise AssertionError("the block is read without an error")


def why_bad(block: bytes, place: int, types: Mapping[str, pa.DataType], error: Exception) -> str:
    """Return why a line cannot be read: the column and its value if that is alone to blame, else Arrow's words.

    Args:
        place: of the line in `block`, from 0.
        types: as for :class:`JsonParser`.
    """
    try:
        record = json.loads(block.split(b"\n", place + 1)[place])
        fields = [(name, value, types.get(name.lower())) for name, value in record.items()]
    except (ValueError, RecursionError, AttributeError):
        fields = []
    for name, value, kind in fields:
        if kind is None or _has_map(kind):
            continue
        text = json.dumps(value, ensure_ascii=False)
        try:
            _parsed(f"{{{json.dumps(name)}: {text}}}".encode(), pa.schema([(name, _as_read(kind))]))
        except (pa.ArrowInvalid, UnicodeEncodeError):
            shown = text if len(text) <= 60 else f"{text[:60]}..."
            return f"column {name} is {hive_word(kind)} and cannot hold {shown}"
    return str(error).partition(" in row ")[0][:200]


def _parsed(block: bytes, schema: pa.Schema | None) -> pa.Table:
    _require_objects(block)
    if not block.strip():
        return (schema or pa.schema([])).empty_table()
    read = arrow_json.ReadOptions(block_size=max(len(block), _BLOCK))
    parse = arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="infer")
    return arrow_json.read_json(io.BytesIO(block), read_options=read, parse_options=parse)


def _require_objects(block: bytes) -> None:
    """Refuse lines that are not objects: Arrow takes `null` for a row of NULLs, or crashes (pyarrow 21)."""
    data = np.frombuffer(block, np.uint8)
    starts = np.flatnonzero(data[:-1] == ord("\n")) + 1
    for start in (0, *starts[data[starts] != ord("{")].tolist()):
        match = _SPACE.match(block, start)
        assert match
        if block[match.end() : match.end() + 1] not in (b"{", b"\n", b""):
            raise pa.ArrowInvalid("it is not a JSON object")


def _as_read(kind: pa.DataType) -> pa.DataType:
    """Return the type to read a JSON column as: times stay texts, since errors of later parsing name the row."""
    return pa.string() if pa.types.is_temporal(kind) else kind


def _has_map(kind: pa.DataType) -> bool:
    if pa.types.is_map(kind):
        return True
    return any(_has_map(kind.field(at).type) for at in range(kind.num_fields))
