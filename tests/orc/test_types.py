from __future__ import annotations

import pyarrow as pa
import pytest
from pyarrow import orc
from support.files.orc_bytes import tail_of, written

from acidctl.base.errors import BadDataError
from acidctl.orc import orc_pb2 as pb
from acidctl.orc.types import (
    ACID_COLUMNS,
    MAX_DEPTH,
    OrcType,
    acid_tree,
    arrow_type,
    hive_type,
    is_acid,
    renumbered,
    restricted,
    row_type,
    schema_of,
    to_proto,
)

EVERYTHING = (
    "struct<a:boolean,b:tinyint,c:smallint,d:int,e:bigint,f:float,g:double,h:string,i:binary,j:timestamp,"
    "k:timestamp with local time zone,l:array<int>,m:map<string,struct<x:int,y:array<date>>>,"
    "n:uniontype<int,string>,o:decimal(12,3),p:date,q:varchar(7),r:char(9)>"
)


def test_hive_type_gives_back_what_the_file_was_declared_as() -> None:
    assert hive_type(tail_of(written(EVERYTHING, [])).type_tree) == EVERYTHING


def test_arrow_type_is_what_pyarrow_gives() -> None:
    data = written(EVERYTHING, [])
    native = orc.ORCFile(pa.BufferReader(data)).schema
    assert arrow_type(tail_of(data).type_tree) == pa.struct(list(native))


def test_to_proto_and_type_tree_undo_each_other() -> None:
    tree = tail_of(written(EVERYTHING, [])).type_tree
    assert schema_of(to_proto(tree)).tree == tree
    assert [node.column_id for node in tree.walk()] == list(range(len(to_proto(tree))))
    assert tree.last_id == len(to_proto(tree)) - 1


def test_odd_names_are_quoted() -> None:
    tree = OrcType("struct", children=(OrcType("int"), OrcType("int"), OrcType("int")), names=("a b", "c`d", "ok_1"))
    assert hive_type(tree) == "struct<`a b`:int,`c``d`:int,ok_1:int>"


def test_acid_types_wrap_any_row_type() -> None:
    row = restricted(tail_of(written(EVERYTHING, [])).type_tree, {4, 12})
    assert row is not None
    tree = schema_of(to_proto(acid_tree(row))).tree
    assert is_acid(tree)
    assert tree == acid_tree(row)
    assert tree.names == ACID_COLUMNS
    assert row_type(tree).column_id == 6
    assert row_type(tree) == renumbered(row, 6)
    assert hive_type(row_type(tree)) == "struct<d:int,l:array<int>>"


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (ACID_COLUMNS, True),
        (tuple(map(str.lower, ACID_COLUMNS)), True),
        (tuple(reversed(ACID_COLUMNS)), False),
        (ACID_COLUMNS[:5], False),
        ((*ACID_COLUMNS, "more"), False),
    ],
)
def test_is_acid_looks_at_names_and_order_only(names: tuple[str, ...], expected: bool) -> None:
    tree = OrcType("struct", children=tuple(OrcType("int") for _ in names), names=names)
    assert is_acid(tree) is expected
    assert (row_type(tree) is tree) is not expected


def test_restricted_keeps_ids_and_the_structs_around() -> None:
    tree = tail_of(written("struct<a:int,s:struct<b:int,l:array<struct<c:int>>,d:int>>", [])).type_tree
    kept = restricted(tree, {7})
    assert kept is not None
    assert hive_type(kept) == "struct<s:struct<d:int>>"
    assert [node.column_id for node in kept.walk()] == [0, 2, 7]
    assert restricted(tree, {6}) is None  # inside a list: all or nothing
    assert restricted(tree, {0}) == tree


STRUCT, INT, LIST, MAP, UNION = pb.Type.STRUCT, pb.Type.INT, pb.Type.LIST, pb.Type.MAP, pb.Type.UNION


@pytest.mark.parametrize(
    "types",
    [
        [],
        [pb.Type()],
        [pb.Type(kind=LIST)],
        [pb.Type(kind=LIST, subtypes=[0])],
        [pb.Type(kind=LIST, subtypes=[1])],
        [pb.Type(kind=LIST, subtypes=[2]), pb.Type(kind=INT), pb.Type(kind=INT)],
        [pb.Type(kind=STRUCT, subtypes=[1, 1], fieldNames=["a", "b"]), pb.Type(kind=INT)],
        [pb.Type(kind=STRUCT, subtypes=[1], fieldNames=[]), pb.Type(kind=INT)],
        [pb.Type(kind=STRUCT, subtypes=[1], fieldNames=["a", "b"]), pb.Type(kind=INT)],
        [pb.Type(kind=STRUCT, subtypes=[1], fieldNames=["a"]), pb.Type(kind=STRUCT, subtypes=[0], fieldNames=["a"])],
        [pb.Type(kind=STRUCT, subtypes=[4294967295], fieldNames=["a"])],
        [pb.Type(kind=MAP, subtypes=[1]), pb.Type(kind=INT)],
        [pb.Type(kind=UNION)],
        [pb.Type(kind=INT, subtypes=[1]), pb.Type(kind=INT)],
        [pb.Type(kind=pb.Type.DECIMAL, precision=39)],
        [pb.Type(kind=pb.Type.DECIMAL, precision=5, scale=6)],
        [pb.Type(kind=pb.Type.GEOMETRY)],
        [pb.Type.FromString(b"\x08\x63")],  # a kind of the future
        [pb.Type.FromString(b"\x08\x0c\x12\x01\x01\x1a\x02\xff\xfe"), pb.Type(kind=INT)],  # a name that is not UTF-8
    ],
)
def test_nonsense_is_bad_data(types: list[pb.Type]) -> None:
    with pytest.raises(BadDataError, match="some/path"):
        schema_of(types, "some/path")


def test_type_nested_too_deep_is_refused() -> None:
    def chain(depth: int) -> list[pb.Type]:
        return [*(pb.Type(kind=LIST, subtypes=[i + 1]) for i in range(depth)), pb.Type(kind=INT)]

    assert hive_type(schema_of(chain(MAX_DEPTH)).tree).count("array<") == MAX_DEPTH
    with pytest.raises(BadDataError):
        schema_of(chain(MAX_DEPTH + 1))
    with pytest.raises(BadDataError):
        schema_of(chain(5_000))
