"""Structs of the metastore's interface, and how one is declared: dataclasses that Apache Thrift reads and writes.

What a server leaves out has its default, what it sends besides is skipped, and enums are plain numbers: servers from
Hive 2.3 to 4.x differ in all of it.
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
    """A type of Thrift's.

    Attributes:
        code: its number on the wire.
        detail: what Thrift's library wants to know besides: of a struct its class, of a container its elements.
    """

    code: int
    detail: Any = None


BOOL = WireType(TType.BOOL)
I16 = WireType(TType.I16)
I32 = WireType(TType.I32)
I64 = WireType(TType.I64)
STRING = WireType(TType.STRING, "UTF8")
BINARY = WireType(TType.STRING, "BINARY")


def list_of(element: WireType) -> WireType:
    """A list, which is read as a tuple."""
    return WireType(TType.LIST, (element.code, element.detail, True))


def set_of(element: WireType) -> WireType:
    """A set, which is read as a frozenset."""
    return WireType(TType.SET, (element.code, element.detail, True))


def map_of(key: WireType, value: WireType) -> WireType:
    """A map, which is read as a dictionary."""
    return WireType(TType.MAP, (key.code, key.detail, value.code, value.detail, False))


def struct_type(struct: type[Struct]) -> WireType:
    """A struct that was declared before."""
    return WireType(TType.STRUCT, [struct, struct.thrift_spec])  # its accelerator takes nothing but a list


class Struct(TFrozenBase):  # type: ignore[misc]
    """What the dataclasses of this package that travel have in common."""

    __slots__ = ()
    thrift_spec: ClassVar[tuple[Any, ...]] = ()


def field(number: int, wire_type: WireType, default: Any = None) -> Any:
    """A field of a struct.

    Args:
        number: by which it travels.
        default: where a server does not send it; None is not sent.
    """
    if isinstance(default, dict):
        return dataclasses.field(default_factory=dict, metadata={"wire": (number, wire_type)})
    return dataclasses.field(default=default, metadata={"wire": (number, wire_type)})


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def struct(cls: type[_T]) -> type[_T]:
    """Make a frozen dataclass of a class whose attributes are all :func:`field`, for Thrift's library too."""
    made = dataclasses.dataclass(frozen=True, slots=True)(cls)
    numbered = {each.metadata["wire"][0]: each for each in dataclasses.fields(made)}  # type: ignore[arg-type]
    made.thrift_spec = _specification({n: (each.name, each.metadata["wire"][1]) for n, each in numbered.items()})  # type: ignore[attr-defined]
    return made


def _specification(fields: Mapping[int, tuple[str, WireType]]) -> tuple[Any, ...]:
    """What Thrift's library wants: a row for each number, None where there is no field."""
    rows: list[Any] = [None] * (max(fields, default=-1) + 1)
    for number, (name, wire_type) in fields.items():
        rows[number] = (number, wire_type.code, name, wire_type.detail, None)
    return tuple(rows)


# --- methods --------------------------------------------------------------------------------------------------------


@struct
class Refusal(Struct):
    """Any exception of the interface: all begin with a message."""

    message: str = field(1, STRING, "")


class Reply(TBase):  # type: ignore[misc]
    """What a call brings back: its result, or one of its exceptions."""

    __slots__ = ("raised1", "raised2", "raised3", "raised4", "success")
    thrift_spec: ClassVar[tuple[Any, ...]] = ()

    def __init__(self) -> None:
        self.success: Any = None
        self.raised1: Refusal | None = None
        self.raised2: Refusal | None = None
        self.raised3: Refusal | None = None
        self.raised4: Refusal | None = None

    @property
    def raised(self) -> tuple[int, Refusal] | None:
        """The place of an exception in the list of the method's, and the exception; None without one."""
        found = (self.raised1, self.raised2, self.raised3, self.raised4)
        return next(((at, refusal) for at, refusal in enumerate(found) if refusal is not None), None)


@dataclasses.dataclass(frozen=True, slots=True)
class Method:
    """A method of the interface.

    Attributes:
        name: by which it is called.
        arguments: the types of what it takes, numbered from 1.
        raises: the names of its exceptions, in the order of their numbers, which begin at 1.
        answer: the class of what comes back.
        repeatable: whether it may be called again where an answer was lost: it reads, or does the same twice.
        loose: whether versions disagree on what is a list and what is a set: read without Thrift's accelerator.
    """

    name: str
    arguments: tuple[WireType, ...]
    raises: tuple[str, ...]
    answer: type[Reply]
    repeatable: bool
    loose: bool


def method(
    name: str,
    arguments: Sequence[WireType] = (),
    result: WireType | None = None,
    raises: str = "",
    *,
    repeatable: bool = True,
    loose: bool = False,
) -> Method:
    """Declare a method.

    Args:
        raises: names of exceptions, separated by blanks.
    """
    names = tuple(raises.split())
    fields = {at + 1: (f"raised{at + 1}", struct_type(Refusal)) for at in range(len(names))}
    if result:
        fields[0] = ("success", result)
    answer = type(f"{name}_answer", (Reply,), {"__slots__": (), "thrift_spec": _specification(fields)})
    return Method(name, tuple(arguments), names, answer, repeatable, loose)
