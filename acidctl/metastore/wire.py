"""Declarations of structs and methods of the metastore's interface: dataclasses that Apache Thrift reads and writes.

Missing fields get their default, unknown fields are skipped, and enums are plain numbers, because servers from Hive 2.3
to 4.x differ in all of these.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, TypeVar, dataclass_transform

from thrift.protocol.TBase import TBase, TFrozenBase
from thrift.Thrift import TType

_T = TypeVar("_T")


@dataclasses.dataclass(frozen=True, slots=True)
class WireType:
    """A type of Thrift.

    Attributes:
        detail: further information for Thrift's library: the class of a struct, the elements of a container.
    """

    code: int
    detail: Any = None


BOOL = WireType(TType.BOOL)
I16 = WireType(TType.I16)
I32 = WireType(TType.I32)
I64 = WireType(TType.I64)
STRING = WireType(TType.STRING, "UTF8")
BINARY = WireType(TType.STRING, "BINARY")


class Struct(TFrozenBase):  # type: ignore[misc]
    """Base of all structs that are sent or received."""

    __slots__ = ()
    thrift_spec: ClassVar[tuple[Any, ...]] = ()


Declared = WireType | type[Struct]
"""A type as declarations write it: a struct stands for its own type."""


def wire_type(declared: Declared) -> WireType:
    """Return the type of a declaration."""
    if isinstance(declared, WireType):
        return declared
    return WireType(TType.STRUCT, [declared, declared.thrift_spec])  # Thrift's accelerator requires a list


def list_of(element: Declared) -> WireType:
    """Return the type of a list, which is read as a tuple."""
    element = wire_type(element)
    return WireType(TType.LIST, (element.code, element.detail, True))


def set_of(element: WireType) -> WireType:
    """Return the type of a set, which is read as a frozenset."""
    return WireType(TType.SET, (element.code, element.detail, True))


def map_of(key: WireType, value: Declared) -> WireType:
    """Return the type of a map, which is read as a dictionary."""
    value = wire_type(value)
    return WireType(TType.MAP, (key.code, key.detail, value.code, value.detail, False))


def field(number: int, declared: Declared, default: Any = None) -> Any:
    """Declare a field of a struct.

    Args:
        default: value if a server does not send the field; None is not sent.
    """
    metadata = {"wire": (number, wire_type(declared))}
    if isinstance(default, dict):
        return dataclasses.field(default_factory=dict, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def struct(cls: type[_T]) -> type[_T]:
    """Make a frozen dataclass, readable by Thrift's library, of a class whose attributes are all :func:`field`."""
    made = dataclasses.dataclass(frozen=True, slots=True)(cls)
    numbered = {each.metadata["wire"][0]: each for each in dataclasses.fields(made)}  # type: ignore[arg-type]
    made.thrift_spec = _specification({n: (each.name, each.metadata["wire"][1]) for n, each in numbered.items()})  # type: ignore[attr-defined]
    return made


def untyped_struct(name: str, /, **fields: Any) -> Any:
    """Return a struct of some fields, for a message that only asks or answers and is made or read at one place.

    Messages that change something are typed by :func:`struct`.
    """
    return struct(type(name, (Struct,), {"__annotations__": dict.fromkeys(fields, Any), **fields}))


def _specification(fields: Mapping[int, tuple[str, WireType]]) -> tuple[Any, ...]:
    """Return a struct's description for Thrift's library: a row for each number, None without a field."""
    rows: list[Any] = [None] * (max(fields, default=-1) + 1)
    for number, (name, type_) in fields.items():
        rows[number] = (number, type_.code, name, type_.detail, None)
    return tuple(rows)


# --- methods --------------------------------------------------------------------------------------------------------


@struct
class Refusal(Struct):
    """Any exception of the interface: all begin with a message."""

    message: str = field(1, STRING, "")


class Reply(TBase):  # type: ignore[misc]
    """The answer to a call: its result, or one of its exceptions."""

    __slots__ = ("raised1", "raised2", "raised3", "raised4", "success")
    thrift_spec: ClassVar[tuple[Any, ...]] = ()

    def __init__(self) -> None:
        self.success: Any = None
        self.raised1 = self.raised2 = self.raised3 = self.raised4 = None

    @property
    def raised(self) -> tuple[int, Refusal] | None:
        """The exception and its index in the method's exceptions; None without an exception."""
        refusals: tuple[Refusal | None, ...] = (self.raised1, self.raised2, self.raised3, self.raised4)
        return next(((at, refusal) for at, refusal in enumerate(refusals) if refusal is not None), None)


@dataclasses.dataclass(frozen=True, slots=True)
class Method:
    """A method of the interface.

    Attributes:
        raises: names of its exceptions, in the order of their numbers, which begin at 1.
        repeatable: whether it may be called again after a lost answer: it only reads, or a second call has no effect.
        loose: whether versions disagree on lists and sets, so that the answer is read without Thrift's accelerator.
        raw: whether it has structs that keep unknown fields, which Thrift's accelerator cannot read or write.
    """

    name: str
    arguments: tuple[WireType, ...]
    raises: tuple[str, ...]
    answer: type[Reply]
    repeatable: bool
    loose: bool
    raw: bool


def method(
    name: str,
    arguments: Sequence[Declared] = (),
    result: Declared | None = None,
    raises: str = "",
    *,
    repeatable: bool = True,
    loose: bool = False,
    raw: bool = False,
) -> Method:
    """Declare a method.

    Args:
        raises: names of exceptions, separated by spaces.
    """
    names = tuple(raises.split())
    fields = {at + 1: (f"raised{at + 1}", wire_type(Refusal)) for at in range(len(names))}
    if result:
        fields[0] = ("success", wire_type(result))
    answer = type(f"{name}_answer", (Reply,), {"__slots__": (), "thrift_spec": _specification(fields)})
    return Method(name, tuple(map(wire_type, arguments)), names, answer, repeatable, loose, raw)
