"""What a server sends, read into structs: right, or refused; no bytes end the process or fill memory."""

from __future__ import annotations

import dataclasses
import os
import pickle
import re
import struct as packing
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.metastore.fake_metastore import METHODS, FakeMetastore, LastWords, answer_bytes, fake_metastore
from support.paths import REPO
from thrift.protocol.TCompactProtocol import TCompactProtocolAccelerated
from thrift.Thrift import TType

from acidctl.base.errors import AcidctlError
from acidctl.metastore import interface
from acidctl.metastore.client import Metastore
from acidctl.metastore.errors import MetastoreError, Unreadable
from acidctl.metastore.wire import Interface, Method, Struct, WireType

_NUMBER = bytes([0, 0, 0, 2])
"""Of the question: one says who one is before it."""

_REPLY = packing.pack(">HH", 0x8001, 2)


@pytest.fixture(scope="module", params=[False, True], ids=["binary", "compact"])
def server(request: pytest.FixtureRequest) -> Iterator[FakeMetastore]:
    with fake_metastore({}, compact=request.param) as one:
        one.is_compact = request.param  # type: ignore[attr-defined]
        yield one


@pytest.fixture(scope="module")
def binary() -> Iterator[FakeMetastore]:
    with fake_metastore({}) as one:
        yield one


def client(server: FakeMetastore) -> Metastore:
    compact = {"compact": "true"} if getattr(server, "is_compact", False) else {}
    return Metastore(server.settings(**{"timeout": "5", "connect-timeout": "5", **compact}), rounds=1)


def asked(server: FakeMetastore, method: Method, answer: Any) -> Any:
    """What a client makes of an answer; after bytes the server hangs up."""
    server.answers[method.name] = _then_hang_up(answer) if isinstance(answer, bytes) else lambda *_: answer
    metastore = client(server)
    try:
        return metastore.call(method, *map(_argument, method.arguments))
    finally:
        metastore.close()


def _argument(wire_type: WireType) -> Any:
    if wire_type.code == TType.STRUCT:
        return wire_type.detail[0]()
    return {TType.STRING: "", TType.LIST: ()}.get(wire_type.code, 0)


# --- structs of every kind come back as they were -------------------------------------------------------------------

STRUCTS = {
    name: one
    for name, one in METHODS.items()
    if one.answer.thrift_spec and one.answer.thrift_spec[0] and not one.raw  # a RawStruct has no fields of its own
}
_NUMBERS = {TType.I16: 15, TType.I32: 31, TType.I64: 63}


def values(code: int, detail: Any) -> st.SearchStrategy[Any]:
    """Any value of a type of Thrift's."""
    if code in _NUMBERS:
        return st.integers(-(2 ** _NUMBERS[code]), 2 ** _NUMBERS[code] - 1)
    if code == TType.BOOL:
        return st.booleans()
    if code == TType.STRING:
        return st.binary(max_size=20) if detail == "BINARY" else st.text(st.characters(codec="utf-8"), max_size=20)
    if code == TType.LIST:
        return st.lists(values(*detail[:2]), max_size=3).map(tuple)
    if code == TType.SET:
        return st.frozensets(values(*detail[:2]), max_size=3)
    if code == TType.MAP:
        return st.dictionaries(values(*detail[:2]), values(*detail[2:4]), max_size=3)
    return structs(detail[0])


def structs(cls: type[Struct]) -> st.SearchStrategy[Any]:
    """Any struct; what may be missing is missing at times."""
    fields: dict[str, st.SearchStrategy[Any]] = {}
    rows = {row[2]: row for row in cls.thrift_spec if row}
    for field in dataclasses.fields(cls):  # type: ignore[arg-type]
        _, code, _, detail, _ = rows[field.name]
        found = values(code, detail)
        fields[field.name] = st.none() | found if field.default is None else found
    return st.fixed_dictionaries(fields).map(lambda made: cls(**made))


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_every_struct_comes_back_as_it_was_sent(server: FakeMetastore, data: st.DataObject) -> None:
    method = STRUCTS[data.draw(st.sampled_from(sorted(STRUCTS)))]
    sent = data.draw(values(method.answer.thrift_spec[0][1], method.answer.thrift_spec[0][3]))
    assert asked(server, method, sent) == sent


# --- an encoder of our own, for what Thrift's would not write -------------------------------------------------------


def text(data: bytes) -> bytes:
    return packing.pack(">i", len(data)) + data


def field(code: int, number: int, data: bytes) -> bytes:
    return packing.pack(">bh", code, number) + data


def reply(name: str, *fields: bytes) -> bytes:
    return _REPLY + text(name.encode()) + _NUMBER + b"".join(fields) + b"\0"


def a_list(code: int, *items: bytes) -> bytes:
    return packing.pack(">bi", code, len(items)) + b"".join(items)


def number(value: int) -> bytes:
    return packing.pack(">q", value)


def scalars() -> st.SearchStrategy[tuple[int, bytes]]:
    return st.one_of(
        st.just((TType.BOOL, b"\1")),
        st.binary(min_size=1, max_size=1).map(lambda data: (TType.BYTE, data)),
        st.binary(min_size=2, max_size=2).map(lambda data: (TType.I16, data)),
        st.binary(min_size=4, max_size=4).map(lambda data: (TType.I32, data)),
        st.binary(min_size=8, max_size=8).map(lambda data: (TType.I64, data)),
        st.binary(min_size=8, max_size=8).map(lambda data: (TType.DOUBLE, data)),
        st.binary(max_size=30).map(lambda data: (TType.STRING, text(data))),
    )


def anything() -> st.SearchStrategy[tuple[int, bytes]]:
    """A type and a value of it, as they travel, whatever any version may have."""

    def deeper(inner: st.SearchStrategy[tuple[int, bytes]]) -> st.SearchStrategy[tuple[int, bytes]]:
        struct = st.lists(st.tuples(st.integers(-5, 300), inner), max_size=3).map(
            lambda made: (TType.STRUCT, b"".join(field(code, at, data) for at, (code, data) in made) + b"\0")
        )
        alike = st.tuples(inner, st.integers(0, 3))
        listed = alike.map(lambda made: (TType.LIST, a_list(made[0][0], *[made[0][1]] * made[1])))
        as_set = alike.map(lambda made: (TType.SET, a_list(made[0][0], *[made[0][1]] * made[1])))
        a_map = st.tuples(inner, inner).map(
            lambda made: (TType.MAP, packing.pack(">bbi", made[0][0], made[1][0], 1) + made[0][1] + made[1][1])
        )
        return st.one_of(struct, listed, as_set, a_map)

    return st.recursive(scalars(), deeper, max_leaves=6)


@settings(max_examples=60, deadline=None)
@given(fields=st.lists(st.tuples(st.integers(20, 30_000), anything()), max_size=4))
def test_fields_that_nobody_knows_are_skipped(binary: FakeMetastore, fields: list[tuple[int, Any]]) -> None:
    known = field(TType.STRING, 1, text(b"db")) + field(TType.STRING, 2, text(b"t"))
    unknown = b"".join(field(code, at, data) for at, (code, data) in fields)
    meta = a_list(TType.STRUCT, unknown + known + unknown + b"\0")
    sent = reply("get_table_meta", field(TType.LIST, 0, meta))
    assert asked(binary, interface.GET_TABLE_META, sent) == (interface.TableMeta("db", "t"),)


@settings(max_examples=100, deadline=None)
@given(at=st.sampled_from([0, 1, 2, 3, 4, 5, 9]), value=anything())
def test_a_field_of_another_type_counts_as_missing_or_the_answer_is_refused(
    binary: FakeMetastore, at: int, value: tuple[int, bytes]
) -> None:
    for method in (interface.GET_OPEN_TXNS_INFO, interface.GET_OPEN_TXNS, interface.SHOW_LOCKS):
        inner = field(value[0], at, value[1]) + b"\0"
        sent = reply(method.name, field(TType.STRUCT, 0, inner))
        try:
            found = asked(binary, method, sent)
        except MetastoreError:
            continue
        assert isinstance(found, Struct)


def test_sets_are_taken_for_lists_where_versions_disagree(binary: FakeMetastore) -> None:
    for code in (TType.LIST, TType.SET):
        txns = field(code, 2, a_list(TType.I64, number(3), number(5)))
        sent = reply("get_open_txns", field(TType.STRUCT, 0, field(TType.I64, 1, number(9)) + txns + b"\0"))
        assert asked(binary, interface.GET_OPEN_TXNS, sent) == interface.OpenTxns(9, (3, 5))


def test_enums_that_nobody_knows_are_numbers(binary: FakeMetastore) -> None:
    inner = field(TType.I64, 1, number(7)) + field(TType.I32, 2, packing.pack(">i", 99)) + b"\0"
    infos = field(TType.LIST, 2, a_list(TType.STRUCT, inner))
    found = asked(
        binary, interface.GET_OPEN_TXNS_INFO, reply("get_open_txns_info", field(TType.STRUCT, 0, infos + b"\0"))
    )
    assert (found.txns[0].id, found.txns[0].state, found.txns[0].agent) == (7, 99, None)


def test_texts_that_are_not_utf_8_are_texts_all_the_same(binary: FakeMetastore) -> None:
    sent = reply(
        "get_all_databases", field(TType.LIST, 0, a_list(TType.STRING, text(b"a\xff\xfeb"), text(b"\xed\xa0\x80")))
    )
    found = asked(binary, interface.GET_ALL_DATABASES, sent)
    assert found[0] == "a\ufffd\ufffdb"
    assert all(one.encode() for one in found), "no half of a pair is in them"


# --- what is no answer ----------------------------------------------------------------------------------------------

HONEST = {
    interface.GET_OPEN_TXNS_INFO: interface.OpenTxnsInfo(5, (interface.TxnInfo(3, 3, "u", "h", "a", "q", 1, 2),) * 2),
    interface.GET_OPEN_TXNS: interface.OpenTxns(9, (3, 5), 3, b"\2"),
    interface.GET_TABLE_META: (interface.TableMeta("db", "t", "MANAGED_TABLE"),),
}


@pytest.mark.parametrize("method", HONEST, ids=lambda method: method.name)
def test_an_answer_that_ends_at_any_byte_is_none(server: FakeMetastore, method: Method) -> None:
    protocol = {"protocol": TCompactProtocolAccelerated} if getattr(server, "is_compact", False) else {}
    whole = answer_bytes(method, HONEST[method], 2, **protocol)  # type: ignore[arg-type]
    server.answers[method.name] = lambda *_: HONEST[method]
    expected = client(server).call(method, *map(_argument, method.arguments))
    for end in range(len(whole)):
        server.answers[method.name] = _then_hang_up(whole[:end])
        with pytest.raises(MetastoreError):
            client(server).call(method, *map(_argument, method.arguments))
    assert asked(server, method, HONEST[method]) == expected


def _then_hang_up(data: bytes) -> Callable[..., bytes]:
    def answer(*_: object) -> bytes:
        raise LastWords(data)

    return answer


@settings(max_examples=200, deadline=None)
@given(at=st.integers(0, 400), byte=st.integers(0, 255), method=st.sampled_from(list(HONEST)))
def test_an_answer_with_another_byte_is_read_or_refused(
    server: FakeMetastore, at: int, byte: int, method: Method
) -> None:
    protocol = {"protocol": TCompactProtocolAccelerated} if getattr(server, "is_compact", False) else {}
    changed = bytearray(answer_bytes(method, HONEST[method], 2, **protocol))  # type: ignore[arg-type]
    changed[at % len(changed)] = byte
    try:
        asked(server, method, bytes(changed))
    except AcidctlError as error:
        assert not isinstance(error, AssertionError)
        assert type(error) is not AcidctlError


@settings(max_examples=200, deadline=None)
@given(data=st.binary(max_size=200))
def test_bytes_of_any_kind_are_refused_in_our_words(server: FakeMetastore, data: bytes) -> None:
    with pytest.raises(MetastoreError):
        asked(server, interface.GET_OPEN_TXNS_INFO, data)


@pytest.mark.parametrize("depth", [100, 100_000, 3_000_000])
@pytest.mark.parametrize("kind", ["list", "struct", "map"])
def test_an_answer_however_deep_does_not_end_the_process(binary: FakeMetastore, depth: int, kind: str) -> None:
    level = {
        "list": packing.pack(">bi", TType.LIST, 1),
        "struct": field(TType.STRUCT, 9, b""),
        "map": packing.pack(">bbi", TType.BOOL, TType.MAP, 1) + b"\1",
    }[kind]
    code = {"list": TType.LIST, "struct": TType.STRUCT, "map": TType.MAP}[kind]
    for method in (interface.GET_OPEN_TXNS_INFO, interface.GET_OPEN_TXNS):  # with Thrift's accelerator, and without
        sent = reply(method.name, field(code, 9, level * depth))
        with pytest.raises(Unreadable):
            asked(binary, method, sent)


@pytest.mark.parametrize("size", [-1, 2**31 - 1, 300 << 20, 20_000_000])
def test_what_is_only_announced_takes_no_memory(binary: FakeMetastore, size: int) -> None:
    announced = [
        field(TType.LIST, 0, packing.pack(">bi", TType.STRING, size)),
        field(TType.STRING, 7, packing.pack(">i", size)),
        field(TType.MAP, 7, packing.pack(">bbi", TType.STRING, TType.STRING, size)),
        field(TType.SET, 7, packing.pack(">bi", TType.BOOL, size)),
    ]
    for one in announced:
        tracemalloc.start()
        try:
            with pytest.raises(MetastoreError):
                asked(binary, interface.GET_ALL_DATABASES, reply("get_all_databases", one))
            assert tracemalloc.get_traced_memory()[1] < 100 << 20
        finally:
            tracemalloc.stop()


def test_an_answer_to_another_question_is_none(binary: FakeMetastore) -> None:
    other = reply("get_all_\x1b[2Jtables", field(TType.LIST, 0, a_list(TType.STRING)))
    with pytest.raises(Unreadable) as refused:
        asked(binary, interface.GET_ALL_DATABASES, other)
    assert "\x1b" not in str(refused.value)
    late = reply("get_all_databases", field(TType.LIST, 0, a_list(TType.STRING))).replace(_NUMBER, bytes([0, 0, 0, 1]))
    with pytest.raises(Unreadable, match="number 1 and not 2"):
        asked(binary, interface.GET_ALL_DATABASES, late)
    with pytest.raises(Unreadable, match="no answer"):
        asked(binary, interface.GET_ALL_DATABASES, reply("get_all_databases"))


# --- declarations ---------------------------------------------------------------------------------------------------

TEXT = """
// Some colours.
enum Colour {
  RED = 1, BLUE = 7
}

// A point of a drawing.
//
// Attributes:
//     x: to the right.
struct Point {
  1: i64 x
  4: optional string name
  5: i32 colour = Colour.BLUE
  6: map<string, list<Point2>> others
  7: Point2 centre = {}
}

struct Point2 {
  2: list<i32> parts = [3, 4]
  3: set<i64> ids
  4: binary raw
  5: string word = "a b"
  6: optional bool is_big
}

MOST = 12
MOVE = void move(
    Point, map<string, i64>, bool)
    throws Gone, Never [once, raw]
FIND = list<Point> find()
"""


def test_a_declaration_says_types_numbers_and_defaults() -> None:
    made = Interface(TEXT, __name__)
    point = made["Point"]()
    assert (point.x, point.name, point.colour, point.others) == (0, None, made["Colour"].BLUE, {})
    assert point.centre == made["Point2"]((3, 4), frozenset(), b"", "a b", None)
    assert [row and row[:3] for row in made["Point"].thrift_spec] == [
        None, (1, TType.I64, "x"), None, None, (4, TType.STRING, "name"), (5, TType.I32, "colour"),
        (6, TType.MAP, "others"), (7, TType.STRUCT, "centre"),
    ]  # fmt: skip
    assert made["Point"].__doc__ == "A point of a drawing.\n\nAttributes:\n    x: to the right."
    assert list(made["Colour"]) == [1, 7]
    assert made["MOST"] == 12
    move, find = made["MOVE"], made["FIND"]
    assert (move.name, move.raises, move.repeatable, move.raw, move.loose) == (
        "move", ("Gone", "Never"), False, True, False,
    )  # fmt: skip
    assert [one.code for one in move.arguments] == [TType.STRUCT, TType.MAP, TType.BOOL]
    assert [row and row[2] for row in move.answer.thrift_spec] == [None, "raised1", "raised2"]
    assert (find.raises, find.repeatable, find.answer.thrift_spec[0][1]) == ((), True, TType.LIST)
    with pytest.raises(AttributeError, match="Nobody"):
        made["Nobody"]


def test_no_line_of_the_interface_is_passed_over() -> None:
    names = set(interface.INTERFACE.declarations)
    text = (REPO / "acidctl/metastore/interface.idl").read_text("utf-8")
    assert names == set(re.findall(r"^(?:struct |enum )?(\w+) (?:=|\{)", text, re.MULTILINE))
    for name in names:
        made = getattr(interface, name)
        if isinstance(made, type) and issubclass(made, Struct):
            body = interface.INTERFACE.declarations[name].text
            assert len(dataclasses.fields(made)) == len(re.findall(r"^  \d+:", body, re.MULTILINE)), name  # type: ignore[arg-type]


def test_threads_that_ask_at_once_get_one_class() -> None:
    made = Interface(TEXT, __name__)
    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(lambda _: made["Point"], range(64)))) == 1


def test_structs_travel_between_processes() -> None:
    entry = interface.QueueEntry(3, "db", "t", type=interface.CompactionType.MINOR)
    assert pickle.loads(pickle.dumps(entry)) == entry
    with pytest.raises(dataclasses.FrozenInstanceError):
        entry.id = 4  # type: ignore[misc]


def test_the_interface_is_read_from_a_zip(tmp_path: Path) -> None:
    """So Spark's executors have the package."""
    from acidctl.spark.shipping import zip_package

    zip_package(REPO / "acidctl", tmp_path / "acidctl.zip")
    code = "from acidctl.metastore import interface as i; print(i.__file__, i.GET_TABLE.name, i.LockType.EXCLUSIVE)"
    environ = {**os.environ, "PYTHONPATH": str(tmp_path / "acidctl.zip")}
    run = subprocess.run([sys.executable, "-P", "-c", code], env=environ, capture_output=True, text=True, check=True)
    assert run.stdout.split() == [f"{tmp_path}/acidctl.zip/acidctl/metastore/interface.py", "get_table_req", "3"]
