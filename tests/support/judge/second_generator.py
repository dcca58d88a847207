"""A second source of random tables, which shares no thought with `generate`: layouts first, many rows, small stripes.

`generate` plays what users do; this one lays out directories that a reader may meet, by rules of its own: native, raw
deltas and bases, originals with copies and union subdirectories, streaming batches whose writer died, deletes that hit
any of them, wide random types, stripes of a few rows (`pyorc` writes large files, Hive the rest). What a reader must
see is computed here from the list of everything that lies on disk.
"""

from __future__ import annotations

import json
import random
import re
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyorc

from support.judge.hive import DELETE, INSERT, UPDATE, Event, Hive, Row, RowKey, StoredEvent, event_schema, split_bucket
from support.judge.hivetypes import HiveType, parse_type
from support.judge.lazybinary import timestamp_parts, timestamp_text
from support.judge.txns import Txns

ORIGINALS = ""
"""The directory of files without one."""
COMPACTED = '{"thisFileVersion":"0","dataFormat":"compacted"}'
_LEAVES = [
    "boolean",
    "tinyint",
    "smallint",
    "int",
    "bigint",
    "float",
    "double",
    "string",
    "char(3)",
    "char(12)",
    "varchar(5)",
    "varchar(30)",
    "date",
    "timestamp",
    "decimal(5,2)",
    "decimal(18,0)",
    "decimal(19,19)",
    "decimal(38,0)",
    "decimal(38,10)",
    "binary",
]
_WORDS = ("", " ", "a", "A", "ab ", "~", "é", "\U0001f41d", "0", "\N{REPLACEMENT CHARACTER}", "x\ny", "\t", "NULL")
_BITS = {"tinyint": 7, "smallint": 15, "int": 31, "bigint": 63}
_UNUSUAL_DELETES = "struct<nothing:int>"


@dataclass(frozen=True, slots=True)
class Stored:
    """An event in a file: `row` holds the columns of the newest schema as stored, `hybrid` their calendar."""

    directory: str
    operation: int
    key: RowKey
    current: int
    statement: int
    row: tuple[Any, ...] | None = None
    hybrid: bool = True


@dataclass(slots=True)
class Made:
    """A table on disk and all that lies in it."""

    table: Path
    schemas: list[str]
    version: int
    events: list[Stored] = field(default_factory=list)
    bases: dict[str, tuple[int, bool]] = field(default_factory=dict)
    """Number and whether it was compacted, of every base."""
    last: int = 0
    open: set[int] = field(default_factory=set)
    aborted: set[int] = field(default_factory=set)
    unjudged: set[str] = field(default_factory=set)
    """What Hive 2.3 does not know or does wrong."""

    @property
    def schema(self) -> str:
        return self.schemas[-1]

    @property
    def newest(self) -> Txns:
        return Txns(self.last, frozenset(self.open), frozenset(self.aborted))

    def base_for(self, txns: Txns) -> str | None:
        """The base that a reader takes; None for no base. LookupError: history is gone (format section 6.2)."""
        usable = {
            name: number
            for name, (number, compacted) in self.bases.items()
            if (txns.accepts_base(number) if compacted else txns.is_valid(number))
        }
        if usable:
            return max(usable, key=lambda name: usable[name])
        if self.bases:
            oldest = min(self.bases.values())
            if oldest[1]:
                raise LookupError("history is gone")
        return None

    def read(self, txns: Txns) -> list[Stored]:
        """The events that count for a reader."""
        base = self.base_for(txns)
        floor = -1 if base is None else self.bases[base][0]

        def is_read(event: Stored) -> bool:
            if event.directory in self.bases:
                return event.directory == base and (event.current == 0 or txns.is_valid(event.current))
            if event.directory == ORIGINALS:
                return base is None
            return int(event.directory.removeprefix("delete_").split("_")[2]) > floor and txns.is_valid(event.current)

        return [event for event in self.events if is_read(event)]

    def visible(self, txns: Txns) -> dict[RowKey, Stored]:
        """The rows that a reader sees."""
        read = self.read(txns)
        if self.version == 2:
            dead = {event.key for event in read if event.operation == DELETE}
            return {event.key: event for event in read if event.operation == INSERT and event.key not in dead}
        newest: dict[RowKey, Stored] = {}
        for event in sorted(read, key=lambda one: (one.current, one.statement)):
            newest[event.key] = event
        return {key: event for key, event in newest.items() if event.operation != DELETE}

    def removed(self, txns: Txns) -> set[RowKey]:
        """The rows that deletes removed (version 2)."""
        read = self.read(txns)
        return {e.key for e in read if e.operation == DELETE} & {e.key for e in read if e.operation == INSERT}

    def rows(self, txns: Txns, *, labels: bool) -> list[tuple[RowKey, Row]]:
        """`visible` as rows of the newest schema; `labels` as acidctl shows dates, else as stored numbers."""
        node = parse_type(self.schema)
        found = []
        for key, event in self.visible(txns).items():
            values = [
                _label(value, child) if labels and event.hybrid else value
                for value, child in zip(event.row or (), node.children, strict=True)
            ]
            found.append((key, dict(zip(node.names, values, strict=True))))
        return found

    def snapshots(self, luck: random.Random, count: int) -> list[Txns]:
        """The newest, and some that see less."""
        found = [self.newest]
        while len(found) < count:
            hwm = luck.randint(0, self.last)
            more = {i for i in range(1, self.last + 1) if luck.random() < 0.15} - self.aborted
            found.append(Txns(hwm, frozenset(self.open | more), frozenset(self.aborted)))
        return found


# --- calendars: the label that old Java gives to a day
def julian_label(days: int) -> str:
    """yyyy-MM-dd of a day in the Julian calendar (Richards' algorithm); 29 February of 1500, ... as 1 March."""
    f = days + 2440588 + 1401
    e = 4 * f + 3
    h = 5 * (e % 1461 // 4) + 2
    day, month = h % 153 // 5 + 1, (h // 153 + 2) % 12 + 1
    year = e // 1461 - 4716 + (14 - month) // 12
    try:
        return date(year, month, day).isoformat()
    except ValueError:
        return f"{year:04}-03-01"


def _hybrid(text: str) -> str:
    day = date.fromisoformat(text[:10])
    return text if day >= date(1582, 10, 15) else julian_label((day - date(1970, 1, 1)).days) + text[10:]


def _label(value: Any, node: HiveType) -> Any:
    if value is None:
        return None
    kind, inner = node.kind, node.children
    if kind in ("date", "timestamp"):
        return _hybrid(value)
    if kind == "array":
        return [_label(item, inner[0]) for item in value]
    if kind == "map":
        return [(_label(k, inner[0]), _label(v, inner[1])) for k, v in value]
    if kind == "struct":
        return {name: _label(value[name], child) for name, child in zip(node.names, inner, strict=True)}
    if kind == "uniontype":
        return (value[0], _label(value[1], inner[value[0]]))
    return value


# --- types and values
def random_type(luck: random.Random, *, unions: bool, depth: int = 2) -> str:
    """A type whose unions can be told apart without tags."""
    dice = luck.random()
    if depth == 0 or dice < 0.6:
        return luck.choice(_LEAVES)
    if dice < 0.7:
        return f"array<{random_type(luck, unions=unions, depth=depth - 1)}>"
    if dice < 0.8:
        key = luck.choice(("string", "int", "date", "varchar(30)"))
        return f"map<{key},{random_type(luck, unions=unions, depth=depth - 1)}>"
    if dice < 0.9 and unions:
        return "uniontype<bigint,string,boolean>" if luck.random() < 0.5 else "uniontype<double,array<int>,string>"
    fields = ",".join(f"f{i}:{random_type(luck, unions=unions, depth=depth - 1)}" for i in range(luck.randint(1, 3)))
    return f"struct<{fields}>"


def random_value(luck: random.Random, node: HiveType, nulls: float) -> Any:
    """In the plain form of `normal.py`."""
    if luck.random() < nulls:
        return None
    kind, inner = node.kind, node.children
    if kind in _BITS:
        top = 1 << _BITS[kind]
        return luck.choice((luck.randrange(-top, top), luck.randrange(20), top - 1, -top))
    if kind == "boolean":
        return luck.random() < 0.5
    if kind == "float":
        return luck.choice((0.0, -0.0, 0.5, -1.25, float("nan"), float("-inf"), luck.randrange(10**6) / 8))
    if kind == "double":
        return luck.choice((0.0, -0.0, 0.1, 5e-324, 1.7e308, float("nan"), float("inf"), luck.gauss(0, 100)))
    if kind in ("string", "char", "varchar"):
        text = luck.choice((*_WORDS, "w" * luck.randrange(40), f"word {luck.randrange(1000)}"))
        return text if kind == "string" else text[: node.arguments[0]].rstrip(" " if kind == "char" else "")
    if kind == "binary":
        return luck.randbytes(luck.randrange(6))
    if kind in ("date", "timestamp"):
        return _moment(luck, kind)
    if kind == "decimal":
        precision, scale = node.arguments
        unscaled = luck.randrange(10 ** luck.randint(1, precision)) * luck.choice((1, -1))
        return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -scale))
    if kind == "array":
        return [random_value(luck, inner[0], nulls) for _ in range(luck.choice((0, 1, 3)))]
    if kind == "map":
        keys = {random_value(luck, inner[0], 0) for _ in range(luck.choice((0, 1, 3)))}
        return [(key, random_value(luck, inner[1], nulls)) for key in sorted(keys)]
    if kind == "uniontype":
        tag = luck.randrange(len(inner))
        return (tag, random_value(luck, inner[tag], 0))
    return {name: random_value(luck, child, nulls) for name, child in zip(node.names, inner, strict=True)}


def _moment(luck: random.Random, kind: str) -> str:
    lowest, highest = -719_000, 2_932_895
    day = luck.choice(
        (luck.randint(lowest, highest), luck.randint(-4000, 20_000), luck.randint(-150_000, -140_000), lowest, highest)
    )
    if kind == "date":
        return (date(1970, 1, 1) + timedelta(days=day)).isoformat()
    nanos = luck.choice((0, 0, 1_000_000, 999_999_999, 1, 123_456_789))
    return timestamp_text(day * 86_400 + luck.choice((0, 86_399, luck.randrange(86_400))), nanos)


# --- writing with pyorc: fast, stripes of any size
class _Days:
    @staticmethod
    def to_orc(value: str) -> int:
        return (date.fromisoformat(value) - date(1970, 1, 1)).days

    @staticmethod
    def from_orc(value: int) -> int:
        return value


class _Seconds:
    @staticmethod
    def to_orc(value: str, zone: Any) -> tuple[int, int]:
        return timestamp_parts(value)

    @staticmethod
    def from_orc(seconds: int, nanos: int, zone: Any) -> tuple[int, int]:
        return seconds, nanos


def _for_pyorc(value: Any, node: HiveType) -> Any:
    if value is None:
        return None
    if node.kind == "array":
        return [_for_pyorc(item, node.children[0]) for item in value]
    if node.kind == "map":
        return {k: _for_pyorc(v, node.children[1]) for k, v in value}
    if node.kind == "struct":
        return {n: _for_pyorc(value[n], c) for n, c in zip(node.names, node.children, strict=True)}
    return value


def write_with_pyorc(
    path: Path, schema: str, items: Sequence[dict[str, Any]], luck: random.Random, *, acid: bool, key_index: bool = True
) -> None:
    """`items` as dicts of the schema; a stripe for every few rows."""
    path.parent.mkdir(parents=True, exist_ok=True)
    node = parse_type(schema)
    batch, stride = luck.choice((7, 64, 500)), luck.choice((10, 1000, 10_000))
    codec = luck.choice((0, 1, 2, 4, 5))  # none, zlib, snappy, lz4, zstd

    def write(metadata: dict[str, bytes]) -> None:
        with path.open("wb") as out:
            writer = pyorc.Writer(
                out,
                schema,
                batch_size=batch,
                stripe_size=1,
                row_index_stride=stride,
                compression=pyorc.CompressionKind(codec),
                struct_repr=pyorc.StructRepr.DICT,
                converters={pyorc.TypeKind.DATE: _Days, pyorc.TypeKind.TIMESTAMP: _Seconds},
            )
            for item in items:
                writer.write(_for_pyorc(item, node))
            if metadata:
                writer.set_user_metadata(**metadata)
            writer.close()

    write({})
    if not (acid and key_index):
        return
    with path.open("rb") as data:
        counts = [len(stripe) for stripe in pyorc.Reader(data).iter_stripes()]
    ends, index = -1, ""
    for count in counts:
        ends += count
        last = items[ends]
        index += f"{last['originalTransaction']},{last['bucket']},{last['rowId']};"
    operations = [item["operation"] for item in items]
    stats = ",".join(str(operations.count(kind)) for kind in (INSERT, UPDATE, DELETE))
    write({"hive.acid.key.index": index.encode(), "hive.acid.stats": stats.encode()})


# --- making tables
class Maker:
    """Lays one table out."""

    def __init__(self, seed: int, table: Path, hive: Hive | None) -> None:
        self.luck = random.Random(f"second {seed}")
        self.hive = hive
        luck = self.luck
        columns = [f"c{i}:{random_type(luck, unions=hive is not None)}" for i in range(luck.randint(1, 6))]
        self.made = Made(table, [f"struct<{','.join(columns)}>"], 1 if luck.random() < 0.15 else 2)
        self.codec = 0 if self.made.version == 1 else luck.choice((0, 1))
        self.mixed = self.made.version == 2 and luck.random() < 0.2
        self.buckets = luck.choice((1, 2, 5))
        self.nulls = luck.choice((0, 0.1, 0.6))
        table.mkdir(parents=True)

    def make(self) -> Made:
        luck, made = self.luck, self.made
        if made.version == 2 and luck.random() < 0.4:
            self.mixed = False
            self.originals()
        for _ in range(luck.randint(2, 7)):
            kinds = [self.insert, self.insert, self.change, self.change, self.change, self.stream]
            if made.version == 2:
                kinds += [self.load, self.overwrite, self.compact]
            luck.choice(kinds)()
            if luck.random() < 0.15:
                self.evolve()
        if not any(event.operation == INSERT for event in made.events):
            self.insert()
        return made

    # --- what happens
    def originals(self) -> None:
        names = [f"{bucket:06}_0" for bucket in range(self.buckets)]
        if self.luck.random() < 0.5:
            more = [f"{name}_copy_{n}" for name in names for n in (1, 2, 10) if self.luck.random() < 0.5]
            more += [f"HIVE_UNION_SUBDIR_{n}/{name}" for name in names for n in (1, 2, 15) if self.luck.random() < 0.4]
            names += more
            self.made.unjudged |= {"copies"} if more else set()
        if self.codec == 1:
            self.made.unjudged.add("V1 originals")
        self._without_ids(ORIGINALS, names, 0, 0)
        # Delete events alone leave open which codec numbers these rows: a native file tells.
        self.insert()

    def insert(self) -> None:
        write_id = self._next()
        statements = self.luck.choice((1, 1, 2)) if self._values() and not self.mixed else 1
        for statement in range(statements):
            self._insert(write_id, statement if self._values() or self.luck.random() < 0.5 else -1)
        self._settle(write_id)

    def change(self) -> None:
        """Deletes, or updates: at once, of rows of any kind, now and then of rows that are not there."""
        made, luck = self.made, self.luck
        try:
            keys = sorted(made.visible(Txns(made.last, frozenset(), frozenset(made.aborted))))
        except LookupError:
            keys = []
        if not keys:
            return self.insert()
        write_id = self._next()
        chosen = luck.sample(keys, min(len(keys), luck.choice((1, 5, len(keys) // 3 + 1, len(keys)))))
        is_update = luck.random() < 0.4
        statement = luck.choice((0, 1)) if self._values() else 0
        node = parse_type(made.schema)
        events = []
        for key in chosen:
            if made.version == 1 and is_update:
                row = random_value(luck, node, self.nulls)
                row = row or dict.fromkeys(node.names)
                events.append(StoredEvent(UPDATE, *key, write_id, row))
            else:
                events.append(StoredEvent(DELETE, *key, write_id, None))
        if made.version == 2 and luck.random() < 0.3:
            events.append(StoredEvent(DELETE, 999_999, chosen[0].bucket, 5, write_id, None))  # kills nothing
        kind = "delta" if made.version == 1 else "delete_delta"
        self._native(kind, (write_id, write_id), statement, events)
        if made.version == 2 and is_update:
            self._insert(write_id, statement if luck.random() < 0.5 else statement + 1)
        self._settle(write_id)
        return None

    def stream(self) -> None:
        """A batch of transactions in one file per bucket, some aborted; its writer may have died."""
        made, luck = self.made, self.luck
        span = (made.last + 1, made.last + luck.randint(2, 4))
        made.last = span[1]
        for bucket in range(self.buckets):
            if luck.random() < 0.3:
                continue
            groups = [(i, self._rows(luck.choice((1, 4, 40)))) for i in range(span[0], span[1] + 1)]
            died = self.hive is not None and self.codec == 0 and luck.random() < 0.3
            if self.hive is not None and self.codec == 0:
                transactions = [(i, [Event(INSERT, row) for row in rows]) for i, rows in groups]
                unflushed = transactions.pop() if died and len(transactions) > 1 else None
                self.hive.write_streaming(
                    made.table,
                    made.schema,
                    *span,
                    transactions,
                    bucket=bucket,
                    version=made.version,
                    orc=self._orc(),
                    leave_open=died,
                    unflushed=unflushed,
                )
                if unflushed is not None:
                    groups.pop()
                if died:
                    made.unjudged.add("side file")
                name = f"delta_{span[0]:07}_{span[1]:07}"
                self._note(name, self._numbered(groups, bucket, 0, value=bucket), -1, hybrid=True)
            else:
                events = self._numbered(groups, bucket, 0)
                self._native("delta", span, -1, events)
        for write_id in range(span[0], span[1] + 1):
            self._settle(write_id, may_be_open=False)

    def load(self) -> None:
        """LOAD DATA: files without ids in a delta of their own."""
        write_id = self._next()
        statement = self.luck.choice((0, 1))
        name = f"delta_{write_id:07}_{write_id:07}_{statement:04}"
        self._without_ids(name, self._raw_names(), write_id, statement)
        self._settle(write_id)

    def overwrite(self) -> None:
        """LOAD DATA OVERWRITE or INSERT OVERWRITE."""
        write_id = self._next()
        name = f"base_{write_id:07}"
        self.made.bases[name] = (write_id, False)
        self.made.unjudged.add("overwrite")
        if self.luck.random() < 0.5:
            self._without_ids(name, self._raw_names(), write_id, 0)
        else:
            groups = [(write_id, self._rows(self.luck.choice((3, 60))))]
            self._native("base", (write_id, write_id), -1, self._numbered(groups, 0, 0))
        self._settle(write_id)

    def compact(self) -> None:
        """What a major compaction leaves; the old directories stay, or go."""
        made = self.made
        top = min([made.last, *(i - 1 for i in made.open)])
        txns = Txns(top, frozenset(), frozenset(made.aborted))
        name = f"base_{top:07}"
        try:
            rows = made.visible(txns)
        except LookupError:
            return
        if top < 1 or name in made.bases or not rows:
            return
        schema = parse_type(made.schema)
        events = [
            StoredEvent(INSERT, *key, event.current, dict(zip(schema.names, event.row or (), strict=True)))
            for key, event in sorted(rows.items())
        ]
        hybrid = {event.hybrid for event in rows.values()}
        if len(hybrid) > 1:
            return  # a file has one calendar
        self._native("base", (top, top), -1, events, hybrid=hybrid.pop())
        made.bases[name] = (top, True)
        (made.table / name / "_metadata_acid").write_text(COMPACTED)
        if self.luck.random() < 0.5:
            self._clean(name, top)

    def _clean(self, base: str, top: int) -> None:
        """Remove what the base made obsolete."""
        made = self.made
        for child in list(made.table.iterdir()):
            number = re.fullmatch(r"(?:base_|(?:delete_)?delta_[0-9]+_)([0-9]+).*", child.name)
            if child.name != base and (number is None or int(number[1]) <= top):
                shutil.rmtree(child) if child.is_dir() else child.unlink()
                made.bases.pop(child.name, None)
        left = {child.name for child in made.table.iterdir()}
        made.events = [event for event in made.events if event.directory in left]

    def evolve(self) -> None:
        """Columns added, numbers widened, names changed: all by position."""
        made, luck = self.made, self.luck
        node = parse_type(made.schema)
        fields = [[name, str(child)] for name, child in zip(node.names, node.children, strict=True)]
        wider = {"tinyint": "smallint", "smallint": "int", "int": "bigint", "float": "double"}
        for one in fields:
            if luck.random() < 0.5:
                one[1] = wider.get(one[1], one[1])
            if luck.random() < 0.2:
                one[0] += "x"
                made.unjudged.add("renamed")  # Hive takes columns by name where names are real: NULL here
        fields += [
            [f"added{len(fields) + i}", random_type(luck, unions=self.hive is not None)]
            for i in range(luck.randint(0, 2))
        ]
        made.schemas.append("struct<" + ",".join(":".join(one) for one in fields) + ">")
        more = len(fields) - len(node.names)
        made.events = [
            event
            if event.row is None
            else Stored(
                event.directory,
                event.operation,
                event.key,
                event.current,
                event.statement,
                (*event.row, *[None] * more),
                event.hybrid,
            )
            for event in made.events
        ]
        self.insert()  # so that the newest files declare it

    # --- files
    def _insert(self, write_id: int, statement: int) -> None:
        for bucket in sorted(self.luck.sample(range(self.buckets), self.luck.randint(1, self.buckets))):
            size = self.luck.choice((1, 7, 50, 400))
            self._native(
                "delta",
                (write_id, write_id),
                statement,
                self._numbered([(write_id, self._rows(size))], bucket, statement),
            )

    def _numbered(
        self,
        groups: Iterable[tuple[int, Sequence[Row]]],
        bucket: int,
        statement: int,
        value: int | None = None,
    ) -> list[StoredEvent]:
        value = self._bucket(bucket, statement) if value is None else value
        return [
            StoredEvent(INSERT, write_id, value, number, write_id, row)
            for write_id, rows in groups
            for number, row in enumerate(rows)
        ]

    def _native(
        self,
        kind: str,
        span: tuple[int, int],
        statement: int,
        events: Sequence[StoredEvent],
        hybrid: bool | None = None,
    ) -> None:
        """Write events to the files of their buckets."""
        made, luck = self.made, self.luck
        name = f"base_{span[1]:07}" if kind == "base" else f"{kind}_{span[0]:07}_{span[1]:07}"
        name += f"_{statement:04}" if statement >= 0 and kind != "base" else ""
        files: dict[int, list[StoredEvent]] = {}
        for event in sorted(events, key=lambda one: (one.key, -one.current)):
            files.setdefault(split_bucket(event.bucket)[0], []).append(event)
        schema = made.schema
        if kind == "delete_delta" and luck.random() < 0.3:
            schema = luck.choice((made.schemas[0], _UNUSUAL_DELETES))
        for bucket, whole in files.items():
            group = whole
            by_hive = self.hive is not None and (hybrid or (hybrid is None and len(group) <= 60))
            if "uniontype" in schema:
                assert self.hive is not None
                by_hive = hybrid is not False
                group = whole if len(whole) <= 60 or kind == "base" else whole[:60]
            path = made.table / name / f"bucket_{bucket:05}"
            if path.exists():
                continue
            if by_hive and self.hive is not None:
                self.hive.write_events(
                    made.table,
                    schema,
                    span,
                    group,
                    kind=kind,
                    bucket=bucket,
                    statement=statement,
                    orc=self._orc(),
                )
            else:
                node = parse_type(schema)
                plain = [event._asdict() for event in group]
                items = [
                    {
                        "operation": one["operation"],
                        "originalTransaction": one["txn"],
                        "bucket": one["bucket"],
                        "rowId": one["row_id"],
                        "currentTransaction": one["current"],
                        "row": one["row"],
                    }
                    for one in plain
                ]
                assert node.kind == "struct"
                indexed = luck.random() < 0.9
                made.unjudged |= set() if indexed else {"key index"}
                write_with_pyorc(path, event_schema(schema), items, luck, acid=True, key_index=indexed)
            if luck.random() < 0.15:
                path.rename(path.with_name(path.name + "_0"))
                made.unjudged.add("attempt")
            self._note(name, group, statement, hybrid=bool(by_hive))

    def _without_ids(self, name: str, files: Sequence[str], write_id: int, statement: int) -> None:
        made = self.made
        counts: dict[int, int] = {}
        codec = self.codec if name == ORIGINALS else 1
        made.unjudged |= {"raw"} if name else set()
        for file in sorted(files, key=lambda path: f"{name}/{path}"):
            bucket = int(file.rpartition("/")[2][:6])
            rows = self._rows(self.luck.choice((0, 1, 5, 50)))
            path = made.table / name / file if name else made.table / file
            path.parent.mkdir(parents=True, exist_ok=True)
            by_hive = self.hive is not None and (len(rows) < 20 or "uniontype" in made.schema)
            if by_hive and self.hive is not None:
                self.hive.write_original(path, made.schema, rows, self._orc())
            else:
                write_with_pyorc(path, made.schema, rows, self.luck, acid=False)
            value = bucket if codec == 0 else 1 << 29 | bucket << 16 | max(statement, 0)
            first = counts.get(bucket, 0)
            counts[bucket] = first + len(rows)
            events = [StoredEvent(INSERT, write_id, value, first + i, write_id, row) for i, row in enumerate(rows)]
            self._note(name, events, statement, hybrid=by_hive)

    def _note(self, name: str, events: Iterable[StoredEvent], statement: int, *, hybrid: bool) -> None:
        for event in events:
            row = None if event.row is None else tuple(event.row.values())
            self.made.events.append(Stored(name, event.operation, event.key, event.current, statement, row, hybrid))

    # --- small choices
    def _values(self) -> bool:
        """Whether bucket values carry statements."""
        return self.codec == 1

    def _bucket(self, bucket: int, statement: int) -> int:
        if self.mixed:
            self.codec = self.luck.choice((0, 1))
        return bucket if self.codec == 0 else 1 << 29 | bucket << 16 | max(statement, 0)

    def _rows(self, count: int) -> list[Row]:
        node = parse_type(self.made.schema)
        if "uniontype" in self.made.schema:
            count = min(count, 60)
        return [random_value(self.luck, node, self.nulls) or dict.fromkeys(node.names) for _ in range(count)]

    def _raw_names(self) -> list[str]:
        names = [f"{bucket:06}_0" for bucket in range(self.buckets)]
        return names + [f"{name}_copy_{n}" for name in names for n in (1, 10, 2) if self.luck.random() < 0.3]

    def _orc(self) -> dict[str, str]:
        return {
            "orc.compress": self.luck.choice(("NONE", "ZLIB", "SNAPPY", "ZSTD", "LZ4")),
            "orc.row.index.stride": self.luck.choice(("1000", "10000")),
            "orc.stripe.row.count": self.luck.choice(("5", "1000000")),
        }

    def _next(self) -> int:
        self.made.last += 1
        return self.made.last

    def _settle(self, write_id: int, may_be_open: bool = True) -> None:
        dice = self.luck.random()
        if dice < 0.12:
            self.made.aborted.add(write_id)
        elif dice < 0.18 and may_be_open:
            self.made.open.add(write_id)


def make_table(seed: int, table: Path, hive: Hive | None) -> Made:
    """The table of a seed, below `table` (made here). Without Hive there are no unions."""
    return Maker(seed, table, hive).make()


def described(made: Made) -> str:
    """For a failing test's message."""
    names = sorted(str(path.relative_to(made.table)) for path in made.table.rglob("*") if path.is_file())
    return json.dumps({"schemas": made.schemas, "files": names, "newest": str(made.newest)}, indent=1)
