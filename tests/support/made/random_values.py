"""Random types and values, as Arrow arrays."""

from __future__ import annotations

import decimal
import random
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from acidctl.orc.types import OrcType, arrow_type
from support.files.acid_files import struct

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
