"""Answers of a metastore that lies: one value of an honest answer replaced by one that a client should not trust."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from thrift.Thrift import TType

from acidctl.metastore.wire import Struct

NUMBERS = (-(2**63), -1, 0, 2**31, 2**63 - 1)
TEXTS = ("", "/", "..", "a/../../b", "\x1b]0;owned\x07\x1b[2J", "a\nb\r\tc", "\0", "\u202eabc", "\ufffd", "x" * 70_000)
LOCATIONS = (
    "file:/",
    "file:///../..",
    "hdfs://",
    "nosuch://host/x",
    "file://host\x1b[2J/x",
    "s3a://",
    "hive:db.t",
    "::",
)
"""Besides the texts, where a text is a place."""

Lie = tuple[str, Callable[[Any], Any]]
"""What is said, and what makes it of an honest answer."""


def lies_about(answer: Any, places: Sequence[str] = ()) -> Iterator[Lie]:
    """Every lie about one answer.

    Args:
        places: more locations.
    """
    yield from _lies(answer, "answer", (*LOCATIONS, *places))


def _lies(value: Any, name: str, places: Sequence[str], largest: int = 2**63 - 1) -> Iterator[Lie]:
    if isinstance(value, Struct):
        rows = {row[2]: row for row in value.thrift_spec if row}
        for field in dataclasses.fields(value):  # type: ignore[arg-type]
            inner, (_, code, _, detail, _) = getattr(value, field.name), rows[field.name]
            if inner is None:
                inner = {TType.I32: 0, TType.I64: 0, TType.STRING: ""}.get(code)
                if detail == "BINARY" or inner is None:
                    continue
            largest = 2**31 - 1 if code == TType.I32 else 2**63 - 1
            for said, change in _lies(inner, f"{name}.{field.name}", places, largest):
                yield said, _in_field(field.name, change)
            if getattr(value, field.name) is not None:
                yield f"{name}.{field.name} = None", _in_field(field.name, lambda _: None)
    elif isinstance(value, bool):
        yield f"{name} = {not value}", lambda old: not old
    elif isinstance(value, int):
        for number in (one for one in NUMBERS if -largest - 1 <= one <= largest):
            yield f"{name} = {number}", _fixed(number)
    elif isinstance(value, str):
        for text in (*TEXTS, *(places if "location" in name else ())):
            yield f"{name} = {text[:40]!r}", _fixed(text)
    elif isinstance(value, bytes):
        for data in (b"", b"\xff" * 16, bytes(1000)):
            yield f"{name} = {data[:10]!r}", _fixed(data)
    elif isinstance(value, Mapping):
        yield f"{name} = {{}}", _fixed({})
        for key in value:
            for said, change in _lies(value[key], f"{name}[{key!r}]", places):
                yield said, _in_map(key, change)
        if not value or isinstance(next(iter(value)), str):
            yield f"{name} with odd ones", lambda old: {**old, **dict.fromkeys(TEXTS, "\x1b[31m")}
    elif isinstance(value, tuple | frozenset):
        yield f"{name} = ()", _fixed(())
        if value:
            yield f"{name} twice", lambda old: tuple(old) * 2
            yield f"{name} reversed", lambda old: tuple(old)[::-1]
            for said, change in _lies(next(iter(value)), f"{name}[0]", places):
                yield said, _in_first(change)


def _fixed(value: Any) -> Callable[[Any], Any]:
    return lambda _: value


def _in_field(name: str, change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def changed(struct: Any) -> Any:
        old = getattr(struct, name)
        return dataclasses.replace(struct, **{name: change(old)})

    return changed


def _in_map(key: Any, change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda old: {**old, key: change(old[key])} if key in old else old


def _in_first(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda old: (change(old[0]), *old[1:]) if old else old
