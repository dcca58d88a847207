"""How a table of the conformance set is declared: its files by their paths, and what a metastore says of it.

    case("delta-twins", "format section 6.3", "Two deltas of one range.", {
        "delta_0000001_0000001_0000/bucket_00000": ins(1, 1, 2),
        "delete_delta_0000002_0000002_0000/bucket_00000": dels(2, (1, 0)),
    })

The columns are ``a int, b string`` unless the case says otherwise, and a row may be given as the number `a`.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyorc
from pyarrow import orc, parquet

from acidctl.acid.bucket import encode
from acidctl.acid.layout import TableType
from acidctl.acid.names import ACID_PREFIXES
from acidctl.acid.sidefiles import METADATA_ACID_COMPACTED
from acidctl.acid.writeids import ValidTxns, ValidWriteIds
from acidctl.orc.types import OrcType, arrow_type
from support.engines.hive_text import type_of
from support.files.acid_files import DELETE, INSERT, UPDATE, Event, write_acid, write_orc

AB = "struct<a:int,b:string>"
CONVERTED = 10_000_000
"""Write ids that a table has already when it becomes transactional: all of them count as committed."""
TXNS = "c" * 17 + "ao" + "c"
"""What became of the first transactions of every metastore: 18 was aborted, 19 is open, the others are committed."""


@dataclass(frozen=True)
class Content:
    """What is in a file.

    Attributes:
        events: with ids; None for a file without.
        rows: without ids.
        row: the type of the rows, where it is not the table's.
        by_pyorc: written as they are, in any order and with any operation.
        metadata: of pyorc's file, instead of what belongs to the events.
        parquet: a Parquet file.
        stride: rows of a row group of pyorc's file; 0 writes no index.
        tail: bytes behind the file, as a streaming writer has them before its next commit.
    """

    events: tuple[Event, ...] | None = None
    rows: tuple[Any, ...] = ()
    row: str = ""
    by_pyorc: bool = False
    metadata: Mapping[str, str | None] = field(default_factory=dict)
    parquet: bool = False
    stride: int = 10_000
    tail: bytes = b""

    def write(self, path: Path, table: str) -> None:
        """Make the file.

        Args:
            table: the type of the table's rows.
        """
        kind = self.row or table
        if self.parquet:
            rows = [_as_dict(row, kind) for row in self.rows]
            path.parent.mkdir(parents=True, exist_ok=True)
            made = pa.Table.from_struct_array(pa.array(rows, arrow_type(type_of(kind))))
            parquet.write_table(made, path, use_deprecated_int96_timestamps=True)
        elif self.events is None and self.by_pyorc:
            write_orc(path, kind, [_as_tuple(row) for row in self.rows])
        elif self.events is None:
            _write_rows(path, [_as_dict(row, kind) for row in self.rows], kind)
        elif self.by_pyorc:
            _write_events(path, self.events, kind, self.metadata, self.stride)
        else:
            events = [(*event[:5], None if event[5] is None else _as_dict(event[5], kind)) for event in self.events]
            write_acid(path, *events, row=type_of(kind))
        if self.tail:
            with path.open("ab") as file:
                file.write(self.tail)


@dataclass(frozen=True)
class Lengths:
    """The flush lengths of the file beside it, which is declared before.

    Attributes:
        lengths: numbers of bytes, negative ones from the file's end, None for the whole file.
        tail: further bytes, as a writer that died leaves them.
    """

    lengths: tuple[int | None, ...]
    tail: bytes = b""

    def write(self, path: Path, _: str) -> None:
        """Make the side file."""
        size = path.with_name(path.name.removesuffix("_flush_length")).stat().st_size
        numbers = [size if one is None else one if one >= 0 else size + one for one in self.lengths]
        path.write_bytes(b"".join(number.to_bytes(8, "big") for number in numbers) + self.tail)


def _write_rows(path: Path, rows: Sequence[dict[str, Any]], kind: str) -> None:
    node = type_of(kind)
    path.parent.mkdir(parents=True, exist_ok=True)
    orc.write_table(pa.Table.from_struct_array(pa.array(rows, arrow_type(node))), path)


def _write_events(
    path: Path, events: Sequence[Event], kind: str, changes: Mapping[str, str | None], stride: int
) -> None:
    counts = [sum(event[0] == operation for event in events) for operation in (INSERT, UPDATE, DELETE)]
    last = ",".join(str(part) for part in events[-1][1:4]) + ";" if events else ""
    metadata = {"hive.acid.key.index": last, "hive.acid.stats": ",".join(map(str, counts)), "hive.acid.version": "2"}
    ids = "operation:int,originalTransaction:bigint,bucket:int,rowId:bigint,currentTransaction:bigint"
    rows = [(*event[:5], None if event[5] is None else _as_tuple(event[5])) for event in events]
    kept = {key: value for key, value in (metadata | dict(changes)).items() if value is not None}
    write_orc(path, f"struct<{ids},row:{kind}>", rows, kept, row_index_stride=stride)


def _row(row: Any) -> tuple[Any, ...]:
    """A row of ``a int, b string`` by its number."""
    return (row, f"b{row}") if isinstance(row, int) else row


def _as_tuple(row: Any) -> tuple[Any, ...]:
    """The values for pyorc, which takes a time without a zone for one of this process's zone."""
    values = row.values() if isinstance(row, dict) else _row(row)
    return tuple(one.replace(tzinfo=UTC) if isinstance(one, datetime) else one for one in values)


_PARSED = {"decimal": Decimal, "date": date.fromisoformat, "timestamp": datetime.fromisoformat}
"""How a value of a type may be given as text."""


def _as_dict(row: Any, kind: str) -> dict[str, Any]:
    made = dict(row) if isinstance(row, dict) else dict(zip(type_of(kind).names, _row(row), strict=True))
    for name, child in type_of(kind).fields():
        if isinstance(made[name], str) and child.kind in _PARSED:
            made[name] = _PARSED[child.kind](made[name])
    return made


def ins(
    write_id: int,
    *rows: Any,
    first: int = 0,
    bucket: int = 0,
    statement: int = 0,
    current: int | None = None,
    **more: Any,
) -> Content:
    """Insert events of one write id, with row ids from `first` on.

    Args:
        current: the write id that wrote the events, where it is another.
        more: further fields of :class:`Content`.
    """
    code, now = encode(bucket, statement), write_id if current is None else current
    return Content(tuple((INSERT, write_id, code, first + i, now, row) for i, row in enumerate(rows)), **more)


def dels(current: int, *keys: tuple[int, int], bucket: int = 0, statement: int = 0, **more: Any) -> Content:
    """Delete events: (write id, row id) of each row that one write id deletes."""
    code = encode(bucket, statement)
    return Content(tuple((DELETE, write_id, code, row_id, current, None) for write_id, row_id in keys), **more)


def events(*given: Event, **more: Any) -> Content:
    """Events as they are, by a library that takes them in any order."""
    return Content(given, by_pyorc=True, **more)


def both(*contents: Content, **more: Any) -> Content:
    """The events of several contents in one file, in this order."""
    return Content(sum((one.events or () for one in contents), ()), **more)


def plain(*rows: Any, **more: Any) -> Content:
    """A file without ids."""
    return Content(None, rows, **more)


def in_parquet(*rows: Any, **more: Any) -> Content:
    """A Parquet file without ids."""
    return Content(None, rows, parquet=True, **more)


def text(*rows: Any) -> bytes:
    """A text file of Hive's for ``a int, b string``."""
    return b"".join(b"\x01".join(str(value).encode() for value in _row(row)) + b"\n" for row in rows)


def said(properties: Sequence[tuple[str, str]]) -> str:
    """How a sentence about a table goes on that has these properties."""
    return "".join(f"; {name} is {value}" for name, value in properties)


def flushed(*lengths: int | None, tail: bytes = b"") -> Lengths:
    """A side file with such lengths; see :class:`Lengths`."""
    return Lengths(lengths, tail)


def no_rows(schema: str = AB) -> bytes:
    """An ORC file without rows and without ids."""
    sink = io.BytesIO()
    with pyorc.Writer(sink, schema):
        pass
    return sink.getvalue()


@dataclass(frozen=True)
class Case:
    """One table.

    Attributes:
        name: unique, in words with dashes.
        source: the rule or the public report that it stands for.
        what: what is in it, in one sentence.
        files: contents by their paths; a path that ends with a slash is an empty directory.
        columns: of the table now, ``a int, b string``.
        was: of the table when its partitions were made, where its columns were changed since.
        alter: the statements that changed it, with ``{t}`` for its name.
        properties: further ones of the table.
        ids: ``c``, ``a`` or ``o`` for each write id that was committed, aborted, or is open; empty for all committed.
        converted: `ids` come after those of a table that was converted.
        insert_only: the type of the table.
        stored: its format.
        extra: what stands between its columns and its format, ``clustered by (a) into 2 buckets``.
        unmarked: no side files are put into its directories.
        kind: the chapter of the set.
    """

    name: str
    source: str
    what: str
    files: Mapping[str, Content | Lengths | bytes]
    columns: str = "a int, b string"
    was: str = ""
    alter: tuple[str, ...] = ()
    properties: tuple[tuple[str, str], ...] = ()
    ids: str = ""
    converted: bool = False
    insert_only: bool = False
    stored: str = "orc"
    extra: str = ""
    unmarked: bool = False
    kind: str = ""

    @cached_property
    def row_type(self) -> str:
        """The type of the rows in files that do not say another."""
        return struct_of(self.was or self.columns)

    @cached_property
    def kinds(self) -> dict[str, OrcType]:
        """The types of the columns as the table has them now, by name."""
        return dict(type_of(struct_of(self.columns)).fields())

    @cached_property
    def declared(self) -> dict[str, str]:
        """The types of the columns as Hive writes them, by name."""
        return dict(zip(self.kinds, _parts_of(self.columns), strict=True))

    @property
    def table_type(self) -> TableType:
        """Full ACID or insert-only."""
        return TableType.INSERT_ONLY if self.insert_only else TableType.FULL_ACID

    @property
    def group(self) -> tuple[Any, ...]:
        """What tables share that may be partitions of one table of Hive's."""
        alone = self.name if self.alter else ""
        how = self.converted, self.insert_only, self.stored, self.extra, self.properties
        return self.columns, self.was, self.ids, *how, alone

    @property
    def is_odd(self) -> bool:
        """Whether a Hive may well fail on it: it is read by a statement of its own."""
        known = re.compile(r"((delete_)?delta_\d+_\d+(_\d+)?|base_\d+)(/\S+)?|\d{6}_\d+(_copy_\d+)?")
        contents = [one for path, one in self.files.items() if not path.endswith(("/", "_metadata_acid"))]
        return not all(map(known.fullmatch, self.files)) or any(not isinstance(one, Content) for one in contents)

    def write_ids(self, table: str) -> ValidWriteIds:
        """What a reader is told, by the table's name."""
        first = CONVERTED if self.converted or not self.ids else 0
        by = {state: [first + n for n, one in enumerate(self.ids, 1) if one == state] for state in "ao"}
        least = min(by["o"], default=2**63 - 1)
        shown = ["", f"{table}:{first + len(self.ids)}:{least}", *(",".join(map(str, by[one])) for one in "oa")]
        return ValidWriteIds.parse(":".join(shown[1:]))

    def build(self, place: Path) -> None:
        """Write its files."""
        place.mkdir(parents=True)
        for path, content in self.files.items():
            target = place / path
            if path.endswith("/"):
                target.mkdir(parents=True, exist_ok=True)
            elif isinstance(content, bytes):
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)
            else:
                content.write(target, self.row_type)
        if not self.unmarked and not self.insert_only:
            for child in place.iterdir():
                if child.is_dir() and child.name.startswith(ACID_PREFIXES):
                    (child / "_orc_acid_version").write_bytes(b"2")


def txns() -> ValidTxns:
    """The transactions that :data:`TXNS` says, as a reader is told of them who comes later."""
    return ValidTxns.parse("1000000:19:19:18")


def struct_of(columns: str) -> str:
    """``a int, b string`` as a type of rows."""
    return f"struct<{','.join(':'.join(part.split(maxsplit=1)) for part in _split(columns))}>"


def _parts_of(columns: str) -> list[str]:
    return [part.split(maxsplit=1)[1] for part in _split(columns)]


def _split(columns: str) -> list[str]:
    depth, parts = 0, [""]
    for letter in columns:
        depth += (letter in "<(") - (letter in ">)")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


COMPACTED = METADATA_ACID_COMPACTED
CASES: dict[str, Case] = {}
_SHORT = re.compile(r"([bdx])(\d+)(?:-(\d+))?(?:\.(\d+))?(/.*)?")


class Chapter:
    """Cases of one kind, which put themselves into :data:`CASES`."""

    def __init__(self, kind: str, **common: Any) -> None:
        self._kind = kind
        self._common = common

    def __call__(
        self, name: str, source: str, what: str, files: Mapping[str, Content | Lengths | bytes], **more: Any
    ) -> None:
        """Declare a case; paths may be short, as :func:`long_path` takes them."""
        assert name not in CASES, name
        made = {long_path(path): content for path, content in files.items()}
        CASES[name] = Case(name, source, what, made, **{"kind": self._kind, **self._common, **more})


def long_path(path: str) -> str:
    """A path whose directory may be short: ``d1`` is the first bucket of ``delta_0000001_0000001_0000``, ``x2/`` a
    delete delta, ``d1-5/bucket_00001`` the delta of five write ids, ``d1.3`` the one of statement 3, ``b5`` a base.
    """
    found = _SHORT.fullmatch(path)
    if not found:
        return path
    kind, first, last, statement, rest = found.groups()
    if kind == "b":
        directory = f"base_{int(first):07}"
    else:
        directory = f"{'delta' if kind == 'd' else 'delete_delta'}_{int(first):07}_{int(last or first):07}"
        directory += "" if last else f"_{int(statement or 0):04}"
    return directory + (rest or "/bucket_00000")
