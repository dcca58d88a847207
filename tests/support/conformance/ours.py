"""acidctl's side of the conformance set: what it reads, what it finds, and what its compactions write."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyorc
from pyarrow import parquet

from acidctl import Location
from acidctl.acid.names import ACID_PREFIXES
from acidctl.base.errors import AcidctlError
from acidctl.compaction.request import NoWork
from acidctl.metastore import interface as wire
from acidctl.orc.types import OrcType
from acidctl.rows.scan.table_scan import TableScan
from acidctl.validation.findings import Severity
from acidctl.verbs.compact_options import CompactOptions, WriteOptions
from acidctl.verbs.options import LockOptions
from acidctl.verbs.reading.validate import ReadingTasks, ValidateOptions
from support.conformance.declared import CASES, TXNS, Case
from support.engines.hive_text import normal, printed
from support.files.json_text import encode_json_lines
from support.metastore.fake_hive import FakeHive
from support.metastore.fake_metastore import java_bits

MODES = ("minor", "major")
CRASH = "! crash:"
"""How the rows begin where acidctl ends with an error that is none of its own."""

MOST = 30
"""Partitions of a table, each of them three times."""

_SERDES = {
    "orc": ("ql.io.orc.OrcSerde", "ql.io.orc.OrcInputFormat"),
    "parquet": ("ql.io.parquet.serde.ParquetHiveSerDe", "ql.io.parquet.MapredParquetInputFormat"),
}


@dataclass(frozen=True)
class Compaction:
    """What acidctl did when it was asked for one.

    Attributes:
        outcome: ``compacted``, ``nothing``, or ``refused``.
        why: the kind of the error that refused it.
        output: a checksum of what it wrote, whatever the form of the files; empty without.
    """

    outcome: str
    why: str = ""
    output: str = ""


@contextmanager
def metastore(root: Path, cases: list[Case], version: int) -> Iterator[FakeHive]:
    """A metastore in this process that has a table for every group of cases, with partitions below `root`.

    Args:
        version: 3 or 4.
    """
    with FakeHive(version) as fake:
        for state in TXNS:
            txn = fake.begin()
            if state != "o":
                fake.end(txn, commit=state == "c")
        lists = {}
        for case in cases:
            name = table_of(case)
            if ("default", name) not in fake.tables:
                _add_table(fake, root, case)
                lists[f"default.{name}"] = case
            fake.partition("default", name, f"p={case.name}")
        fake.answers["get_valid_write_ids"] = lambda request: _write_ids(request, lists)
        yield fake


def table_of(case: Case) -> str:
    """The name of the table of Hive's whose partition a case is."""
    return _tables()[case.name]


def forget_tables() -> None:
    """Group the cases once more, after the set was changed."""
    _tables.cache_clear()


@cache
def _tables() -> dict[str, str]:
    """The tables of all cases: one for those that differ in their files alone, or several, none of them large."""
    members: dict[tuple[object, ...], int] = {}
    found = {}
    for case in CASES.values():
        place = members[case.group] = members.get(case.group, -1) + 1
        found[case.name] = f"g{list(members).index(case.group)}_{place // MOST}"
    return found


def _add_table(fake: FakeHive, root: Path, case: Case) -> None:
    kind = {"transactional_properties": "insert_only"} if case.insert_only else {}
    name = table_of(case)
    fake.table("default", name, str(root / name), ("p",), kind | dict(case.properties))
    serde, input_format = _SERDES.get(case.stored, ("serde2.lazy.LazySimpleSerDe", ""))
    before = fake.tables["default", name]
    assert before.storage
    columns = tuple(wire.FieldSchema(column, kind) for column, kind in case.declared.items())
    storage = replace(
        before.storage,
        columns=columns,
        serde=wire.SerDeInfo(serialization_lib=f"org.apache.hadoop.hive.{serde}"),
        input_format=f"org.apache.hadoop.hive.{input_format}"
        if input_format
        else "org.apache.hadoop.mapred.TextInputFormat",
    )
    fake.tables["default", name] = replace(before, storage=storage)


def _write_ids(request: Any, cases: dict[str, Case]) -> Any:
    found = []
    for name in request.tables:
        ids = cases[name].write_ids(name)
        invalid = tuple(sorted((*ids.open, *ids.aborted)))
        bits = java_bits([one in ids.aborted for one in invalid])
        found.append(wire.TableWriteIds(name, ids.high_watermark, invalid, min(ids.open, default=None), bits))
    return wire.ValidWriteIdsResponse(tuple(found))


def seen(case: Case, fake: FakeHive) -> dict[str, Any]:
    """What acidctl makes of a case by a metastore: its rows, or why it refuses, and what `validate` and `cat` say.

    Returns:
        ``rows`` as :func:`line` has them or a text that begins with ``! ``, and ``finds``: the rules of
        ``validate --deep`` whose findings are errors, and ``cat`` where that warned.
    """
    place = Location(f"hive:default.{table_of(case)}/p={case.name}", metastore=fake.address)
    finds: set[str] = set()
    rows: list[str] | str
    try:
        report = place.validate(ValidateOptions(deep=True, tasks=ReadingTasks(jobs=1)))
        finds |= {one.rule for one in report.findings if one.severity is Severity.ERROR}
        scan = place.rows().scan(row_id=not case.insert_only)
        rows = sorted(_lines(case, scan))
        finds |= {"cat"} if scan.warnings else set()
    except AcidctlError as error:
        rows = f"! {type(error).__name__}"
    except Exception as error:  # noqa: BLE001 - it is a fault, and to be recorded as one
        rows = f"{CRASH} {type(error).__name__}"
    return {"rows": rows, "finds": sorted(finds)}


def _lines(case: Case, scan: TableScan) -> Iterator[str]:
    for batch in scan.batches_as_read():
        for text in encode_json_lines(batch, scan.output_type).decode().splitlines():
            row = json.loads(text)
            values = [printed(kind, row[name]) for name, kind in case.kinds.items()]
            yield line(row.get("ROW__ID"), case, values)


def line(key: dict[str, int] | None, case: Case, values: list[str]) -> str:
    """A row as the results have it: ``1:536870912:0 7|b7``, without ROW__ID for insert-only tables."""
    shown = "|".join(readable(kind, text) for kind, text in zip(case.kinds.values(), values, strict=True))
    return f"{key['writeid']}:{key['bucketid']}:{key['rowid']} {shown}" if key else shown


def readable(kind: OrcType, text: str) -> str:
    """A value in the exact form of :func:`support.engines.hive_text.printed` as people read it."""
    if text == "NULL":
        return text
    if kind.kind == "string":
        return bytes.fromhex(text).decode(errors="replace")
    if kind.kind in ("float", "double"):
        (value,) = np.frombuffer(bytes.fromhex(text), np.float32 if kind.kind == "float" else np.float64)
        return str(value)
    return text


def of_hive(case: Case, texts: list[str]) -> list[str]:
    """The columns as Hive printed them, in the exact form."""
    return [normal(kind, text) for kind, text in zip(case.kinds.values(), texts, strict=True)]


def compact(case: Case, fake: FakeHive, place: Path, mode: str) -> Compaction:
    """Compact a copy of a case that nothing else reads, as Hive 3's metastore lets others do it.

    Args:
        fake: knows the case, and where the copy lies.
    """
    both = WriteOptions(reader="hive4")  # beside a metastore of Hive 3: what the two read differently is refused
    locks = LockOptions(lock=False)
    options = CompactOptions(**{mode: True}, force=True, offline=True, locks=locks, writing=both)  # type: ignore[arg-type]
    before = {child.name for child in place.iterdir()}
    try:
        location = Location(f"hive:default.{table_of(case)}/p={case.name}", metastore=fake.address)
        answer = location.compact(options)
    except AcidctlError as error:
        return Compaction("refused", type(error).__name__)
    except Exception as error:  # noqa: BLE001 - it is a fault, and to be recorded as one
        return Compaction("crashed", type(error).__name__)
    if isinstance(answer, NoWork):
        return Compaction("nothing")
    new = [child for child in place.iterdir() if child.name not in before and child.name.startswith(ACID_PREFIXES)]
    return Compaction("compacted", output=checksum(new))


def checksum(directories: list[Path]) -> str:
    """A checksum of the names and rows of directories, read by other libraries than acidctl's."""
    digest = hashlib.sha256()
    for directory in sorted(directories):
        for path in sorted(one for one in directory.rglob("*") if one.is_file()):
            digest.update(f"{directory.name}/{path.relative_to(directory)}\n".encode())
            digest.update(_content(path))
    return digest.hexdigest()[:16]


def _content(path: Path) -> bytes:
    """The rows of a file, or its bytes where it is not a whole file of rows."""
    data = path.read_bytes()
    if data.startswith(b"PAR1"):
        return repr(parquet.read_table(path).to_pylist()).encode()
    try:
        reader = pyorc.Reader(io.BytesIO(data))
        return f"{reader.schema}\n{list(reader)}".encode()
    except (pyorc.ParseError, ValueError, OverflowError):
        return data
