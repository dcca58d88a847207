"""Random types and rows for the tests of the writing half."""

from __future__ import annotations

import decimal
import io
import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from acidctl.acid.listing import Entry
from acidctl.orc.byte_source import ByteSource
from acidctl.orc.tail import Tail, read_tail
from acidctl.orc.types import ACID_COLUMNS, OrcType, arrow_type
from acidctl.orc.write.acid_writer import AcidFileResult, AcidWriter
from acidctl.orc.write.writer_settings import WriterSettings

BUCKET = 536870912


class MemoryFiles:
    """The one file that a tail is read from."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def stat(self, path: str) -> Entry:
        return Entry(path, len(self.data), None, False)

    def read_bytes(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        return self.data[offset : None if length is None else offset + length]

    def local_path(self, path: str) -> str | None:
        return None

    def open_input(self, path: str) -> Any:
        return io.BytesIO(self.data)


def tail_of(data: bytes) -> Tail:
    """The tail of a file in memory."""
    return read_tail(ByteSource(MemoryFiles(data), "file.orc", len(data)))


LEAVES = ["boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string", "binary", "date"]
LEAVES += ["timestamp", "timestamp with local time zone"]


def leaf_types() -> st.SearchStrategy[OrcType]:
    decimals = st.integers(1, 38).flatmap(
        lambda p: st.integers(0, p).map(lambda s: OrcType("decimal", precision=p, scale=s))
    )
    texts = st.builds(
        lambda kind, n: OrcType(kind, max_length=n), st.sampled_from(["char", "varchar"]), st.integers(1, 9)
    )
    return st.one_of(st.sampled_from(LEAVES).map(OrcType), decimals, texts)


def structs(children: st.SearchStrategy[OrcType], least: int = 0) -> st.SearchStrategy[OrcType]:
    return st.lists(children, min_size=least, max_size=4).map(
        lambda kinds: OrcType("struct", children=tuple(kinds), names=tuple(f"f{i}" for i in range(len(kinds))))
    )


def nested(children: st.SearchStrategy[OrcType]) -> st.SearchStrategy[OrcType]:
    return st.one_of(
        children.map(lambda one: OrcType("array", children=(one,))),
        st.tuples(leaf_types(), children).map(lambda pair: OrcType("map", children=pair)),
        structs(children),
        st.lists(children, min_size=1, max_size=3).map(lambda kinds: OrcType("uniontype", children=tuple(kinds))),
    )


def row_types() -> st.SearchStrategy[OrcType]:
    return structs(st.recursive(leaf_types(), nested, max_leaves=5), least=1)


def struct(**kinds: OrcType) -> OrcType:
    return OrcType("struct", children=tuple(kinds.values()), names=tuple(kinds))


def everything(unions: bool = True) -> OrcType:
    """The columns of a table with every type that ORC has."""
    number, long, text, time = OrcType("int"), OrcType("bigint"), OrcType("string"), OrcType("timestamp")
    union = OrcType("uniontype", children=(number, text, OrcType("uniontype", children=(time, OrcType("double")))))
    inner = struct(u=OrcType("uniontype", children=(text, long)), n=struct(x=number))
    plain = struct(
        b=OrcType("boolean"),
        i1=OrcType("tinyint"),
        i2=OrcType("smallint"),
        i4=number,
        i8=long,
        f=OrcType("float"),
        d=OrcType("double"),
        s=text,
        c=OrcType("char", max_length=5),
        v=OrcType("varchar", max_length=5),
        raw=OrcType("binary"),
        day=OrcType("date"),
        t=time,
        z=OrcType("timestamp with local time zone"),
        n=OrcType("decimal", precision=38, scale=10),
        m=OrcType("decimal", precision=9, scale=2),
        a=OrcType("array", children=(struct(x=number, t=time),)),
        k=OrcType("map", children=(text, OrcType("array", children=(long,)))),
        e=struct(),
        q=struct(i=number, n=struct(x=number, b=OrcType("boolean"))),
    )
    if not unions:
        return plain
    return struct(**dict(plain.fields()), u=union, w=inner)


_TEXTS = ("", "a", "ab ", "žluť", "\0", "x\0y", "日本", "z" * 40)


def _leaf(tree: OrcType, rng: random.Random) -> Any:
    kind = tree.kind
    if kind == "boolean":
        return rng.random() < 0.5
    if kind in ("tinyint", "smallint", "int", "bigint", "date"):
        bits = {"tinyint": 7, "smallint": 15, "int": 31, "bigint": 63, "date": 20}[kind]
        return rng.choice((0, -1, 1, 7, rng.randrange(-(1 << bits), 1 << bits), (1 << bits) - 1, -(1 << bits)))
    if kind in ("float", "double"):
        return rng.choice((0.0, -1.5, 1e10, float("inf"), float(np.float32(rng.random()))))
    if kind == "decimal":
        limit = 10**tree.precision - 1
        unscaled = rng.choice((0, 1, -1, limit, -limit, rng.randint(-limit, limit)))
        return decimal.Context(prec=40).create_decimal(unscaled).scaleb(-tree.scale, decimal.Context(prec=40))
    if kind.startswith("timestamp"):
        second = rng.choice((0, 1, -2, 86400, rng.randrange(-9_000_000_000, 9_000_000_000)))
        nanos = rng.choice((0, 1, 999, 999_999, 1_000_000, 123_456_789, 999_999_999, 500_000_000))
        return (second if second != -1 else 0) * 10**9 + nanos
    if kind == "binary":
        return bytes(rng.randrange(256) for _ in range(rng.randrange(5)))
    text = rng.choice(_TEXTS)
    if kind == "char":  # as every writer pads it
        text = text.ljust(tree.max_length)
    return text[: tree.max_length] if tree.max_length else text


def random_array(tree: OrcType, n: int, rng: random.Random, null_share: float = 0.2) -> pa.Array:
    """`n` values of `tree`, some of them null."""
    nulls = [rng.random() < null_share for _ in range(n)]
    mask = pa.array(nulls, pa.bool_())
    if tree.kind == "struct" and tree.children:
        children = [random_array(child, n, rng, null_share) for child in tree.children]
        return pa.StructArray.from_arrays(children, names=tree.names, mask=mask)
    if tree.kind == "struct":
        return pa.array([None if null else {} for null in nulls], pa.struct([]))
    if tree.kind in ("array", "map"):
        offsets = np.cumsum([0, *(0 if null else rng.randrange(4) for null in nulls)]).astype("i4")
        size = int(offsets[-1])
        if tree.kind == "array":
            return pa.ListArray.from_arrays(offsets, random_array(tree.children[0], size, rng, null_share), mask=mask)
        keys, items = (random_array(c, size, rng, s) for c, s in zip(tree.children, (0.0, null_share), strict=True))
        return pa.MapArray.from_arrays(pa.array(offsets), keys, items, type=pa.map_(keys.type, items.type), mask=mask)
    if tree.kind == "uniontype":
        children = [random_array(child, n, rng, null_share) for child in tree.children]
        codes = pa.array([rng.randrange(len(children)) for _ in range(n)], pa.int8())
        return pa.UnionArray.from_sparse(codes, children, [f"_union_{i}" for i in range(len(children))])
    values = [None if null else _leaf(tree, rng) for null in nulls]
    if tree.kind == "date" or tree.kind.startswith("timestamp"):
        return pa.array(values, pa.int32() if tree.kind == "date" else pa.int64()).cast(arrow_type(tree))
    return pa.array(values, arrow_type(tree))


def acid_batch(
    row: pa.Array, first: int = 0, *, operation: int = 0, write_id: int = 7, bucket: int = BUCKET
) -> pa.RecordBatch:
    """`row` as events with ascending row ids."""
    n = len(row)
    columns = [
        pa.array(np.full(n, operation, "i4")),
        pa.array(np.full(n, write_id, "i8")),
        pa.array(np.full(n, bucket, "i4")),
        pa.array(np.arange(first, first + n)),
        pa.array(np.full(n, write_id, "i8")),
        row,
    ]
    return pa.RecordBatch.from_arrays(columns, names=list(ACID_COLUMNS))


def acid_file(
    row: OrcType, batches: Sequence[pa.RecordBatch], settings: WriterSettings | None = None, **options: Any
) -> tuple[bytes, AcidFileResult]:
    """The file that an AcidWriter makes of `batches`."""
    sink = io.BytesIO()
    writer = AcidWriter(sink, row, settings, **options)
    for batch in batches:
        writer.write(batch)
    result = writer.close()
    return sink.getvalue(), result
