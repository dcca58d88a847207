"""Unions at all depths, with NULLs in them, as Python values."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa

from acidctl.orc.arrow import below, tags_of, with_children
from acidctl.orc.read.reader import OrcFile, open_orc
from acidctl.orc.read.union_nulls import has_null_member, with_nulls
from acidctl.orc.read.wide_timestamps import WideTimestamp
from acidctl.orc.types import OrcType
from support.files.orc_bytes import Remote

INT, TEXT, TIME = OrcType("int"), OrcType("string"), OrcType("timestamp")

PLAIN = OrcType("uniontype", children=(INT, TEXT))

DEEP = OrcType(
    "struct",
    names=("u", "l", "m", "uu", "s", "t"),
    children=(
        PLAIN,
        OrcType("array", children=(PLAIN,)),
        OrcType("map", children=(INT, PLAIN)),
        OrcType(
            "uniontype",
            children=(
                PLAIN,
                OrcType("struct", children=(PLAIN, TIME), names=("v", "t")),
                OrcType("array", children=(PLAIN,)),
                INT,
            ),
        ),
        OrcType("struct", children=(OrcType("struct", children=(PLAIN,), names=("b",)),), names=("a",)),
        OrcType("uniontype", children=(TIME,)),
    ),
)


def flags(*values: bool) -> Any:
    return pa.array(values, pa.bool_()).to_numpy(zero_copy_only=False)


def sprinkled(array: pa.Array, tree: OrcType, rng: random.Random) -> pa.Array:
    """The array with NULLs in its unions."""
    if isinstance(array.type, WideTimestamp):
        return array
    children = [sprinkled(child, kind, rng) for child, kind in zip(below(array), tree.children, strict=False)]
    if tree.kind == "uniontype":
        return with_nulls(tags_of(array), children, flags(*(rng.random() < 0.3 for _ in range(len(array)))))
    return with_children(array, children) if children else array


def plain(array: pa.Array) -> list[Any]:
    """Values in which NULL is None and a union holding NULL is (tag, None)."""
    kind = array.type
    if isinstance(kind, WideTimestamp):
        return [None if v is None else v["seconds"] * 10**9 + v["nanos"] for v in array.storage.to_pylist()]
    if pa.types.is_timestamp(kind) or pa.types.is_date32(kind):
        return array.cast(pa.int32() if pa.types.is_date32(kind) else pa.int64()).to_pylist()  # type: ignore[no-any-return]
    if pa.types.is_union(kind):
        members = [plain(array.field(i)) for i in range(kind.num_fields)]
        none = kind.num_fields - 1 if has_null_member(kind) else -1
        return [None if tag == none else (tag, members[tag][i]) for i, tag in enumerate(tags_of(array))]
    valid = array.is_valid().to_pylist()
    if pa.types.is_struct(kind):
        columns = [plain(array.field(i)) for i in range(kind.num_fields)]
        return [tuple(column[i] for column in columns) if there else None for i, there in enumerate(valid)]
    if pa.types.is_list(kind) or pa.types.is_map(kind):
        values = list(zip(*map(plain, below(array)), strict=True))
        starts = array.offsets.to_pylist()
        return [values[starts[i] : starts[i + 1]] if there else None for i, there in enumerate(valid)]
    return array.to_pylist()  # type: ignore[no-any-return]


def opened(data: bytes) -> OrcFile:
    return open_orc(Remote(file=data), "file")


def rows_of(data: bytes) -> list[Any]:
    with opened(data) as file:
        return [row for i in range(file.stripe_count) for row in plain(file.read_stripe(i, ["row"]).column(0))]
