"""The metastore's interface as a text declares it: dataclasses that Apache Thrift reads and writes, and methods.

Missing fields get their default, unknown fields are skipped, and enums are plain numbers, because servers from Hive 2.3
to 4.x differ in all of these.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator
from enum import IntEnum
from threading import RLock
from typing import Any, ClassVar, NamedTuple

from thrift.protocol.TBase import TBase, TFrozenBase
from thrift.Thrift import TType

from acidctl.metastore.lossless import RawStruct


class WireType(NamedTuple):
    """A type of Thrift.

    Attributes:
        detail: further information for Thrift's library: the class of a struct, the elements of a container.
        empty: default of a field that is not optional.
    """

    code: int
    detail: Any = None
    empty: Any = None


SCALARS = {
    "bool": WireType(TType.BOOL, empty=False),
    "i16": WireType(TType.I16, empty=0),
    "i32": WireType(TType.I32, empty=0),
    "i64": WireType(TType.I64, empty=0),
    "string": WireType(TType.STRING, "UTF8", ""),
    "binary": WireType(TType.STRING, "BINARY", b""),
    "RawStruct": WireType(TType.STRUCT, [RawStruct, None]),
}


class Struct(TFrozenBase):  # type: ignore[misc]
    """Base of all structs that are sent or received."""

    __slots__ = ()
    thrift_spec: ClassVar[tuple[Any, ...]] = ()


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
class Refusal(Struct):
    """Any exception of the interface: all begin with a message."""

    thrift_spec = (None, (1, TType.STRING, "message", "UTF8", None))
    message: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Method:
    """A method of the interface.

    Attributes:
        raises: names of its exceptions, in the order of their numbers, which begin at 1.
        repeatable: whether it may be called again after a lost answer: it only reads, or a second call has no effect.
        loose: whether versions disagree on lists and sets, so that the answer is read without Thrift's accelerator.
        raw: whether its arguments have structs that keep unknown fields, which Thrift's accelerator cannot write.
        raw_answer: whether its answer has them, too.
    """

    name: str
    arguments: tuple[WireType, ...]
    raises: tuple[str, ...]
    answer: type[Reply]
    repeatable: bool
    loose: bool
    raw: bool
    raw_answer: bool


class Declaration(NamedTuple):
    """A declaration of an interface, not yet read.

    Attributes:
        kind: ``struct`` or ``enum``; empty for a method or a number.
        comment: the lines above it.
    """

    kind: str
    name: str
    text: str
    comment: str


class Field(NamedTuple):
    """A field of a struct, as it is declared.

    Attributes:
        default: the text after ``=``; empty without one.
    """

    number: int
    is_optional: bool
    type: str
    name: str
    default: str


_DECLARATION = re.compile(
    r"^(?P<comment>(?://.*\n)*)(?:(?P<kind>struct|enum) (?P<name>\w+) \{(?P<body>(?s:.*?))\n\}"
    r"|(?P<constant>\w+) = (?P<value>.+(?:\n +.+)*))",
    re.MULTILINE,
)
_FIELD = re.compile(r"(\d+): (optional )?(\S.*?) (\w+)(?: = (.+))?$", re.MULTILINE)
_METHOD = re.compile(r"(\S.*?) (\w+)\(\s*(.*)\)(?:\s+throws ([\w, ]+?))?(?: \[([\w, -]+)\])?")
_COMMA = re.compile(r", (?![^<]*>)")


class Interface:
    """The declarations of a text. ``interface[name]`` is what a name stands for, made when it is first asked for.

    Args:
        module: the module that has the classes as attributes.
    """

    def __init__(self, text: str, module: str) -> None:
        self.declarations = {
            match["name"] or match["constant"]: Declaration(
                match["kind"] or "",
                match["name"] or match["constant"],
                match["value"] or match["body"],
                match["comment"],
            )
            for match in _DECLARATION.finditer(text)
        }
        self._module = module
        self._made: dict[str, Any] = {}
        self._lock = RLock()  # two threads must not get two classes of one name

    def __getitem__(self, name: str) -> Any:
        with self._lock:
            if name not in self._made:
                if name not in self.declarations:
                    raise AttributeError(f"{self._module} has no {name}")
                self._made[name] = self._make(self.declarations[name])
            return self._made[name]

    def method(self, signature: str) -> Method:
        """Return a method by the signature ``RESULT name(ARGUMENTS) throws EXCEPTIONS [FLAGS]``."""
        match = _METHOD.fullmatch(signature)
        assert match, signature
        result, name, arguments, raises, flags = (part or "" for part in match.groups())
        names = tuple(_COMMA.split(raises)) if raises else ()
        rows: list[Any] = [None] if result == "void" else [(0, *self._row("success", self._wire_type(result)))]
        refusal = [Refusal, Refusal.thrift_spec]
        rows += [(at, TType.STRUCT, f"raised{at}", refusal, None) for at in range(1, len(names) + 1)]
        specification = () if rows == [None] else tuple(rows)
        answer = type(f"{name}_answer", (Reply,), {"__slots__": (), "thrift_spec": specification})
        types = tuple(map(self._wire_type, _COMMA.split(arguments))) if arguments else ()
        given = flags.split(", ")
        raw, sent = "raw" in given, "raw-sent" in given
        return Method(name, types, names, answer, "once" not in given, "loose" in given, raw or sent, raw)

    def _make(self, declared: Declaration) -> Any:
        if declared.kind == "struct":
            return self._struct(declared)
        if declared.kind == "enum":
            return IntEnum(declared.name, list(members_of(declared)), module=self._module)
        return int(declared.text) if declared.text.isdigit() else self.method(declared.text)

    def _struct(self, declared: Declaration) -> type[Struct]:
        """Return a frozen dataclass; its description for Thrift's library has a row for each number, or None."""
        fields: list[tuple[str, Any, Any]] = []
        rows: dict[int, tuple[Any, ...]] = {}
        for field in fields_of(declared):
            type_ = self._wire_type(field.type)
            default = None if field.is_optional else type_.empty
            if field.default:
                default = self._value(field.default, type_)
            fields.append((field.name, Any, dataclasses.field(default_factory=dict) if default == {} else default))
            rows[field.number] = (field.number, *self._row(field.name, type_))
        made = dataclasses.make_dataclass(
            declared.name,
            fields,
            bases=(Struct,),
            namespace={"__module__": self._module, "__doc__": documentation_of(declared)},
            frozen=True,
            slots=True,
        )
        made.thrift_spec = tuple(rows.get(number) for number in range(max(rows, default=-1) + 1))  # type: ignore[attr-defined]
        return made

    def _value(self, text: str, type_: WireType) -> Any:
        """Return a default: in JSON, ``Enum.MEMBER``, or ``{}`` for a struct of defaults."""
        enum, _, member = text.partition(".")
        if enum in self.declarations:
            return self[enum][member]
        value = json.loads(text)
        if type_.code == TType.STRUCT:
            return type_.detail[0]()
        return tuple(value) if isinstance(value, list) else value

    def _wire_type(self, text: str) -> WireType:
        if text in SCALARS:
            return SCALARS[text]
        kind, _, inner = text.removesuffix(">").partition("<")
        if not inner:
            return WireType(TType.STRUCT, [self[text], self[text].thrift_spec])  # Thrift's accelerator requires a list
        *key, value = map(self._wire_type, inner.split(", ", 1))
        if key:
            return WireType(TType.MAP, (key[0].code, key[0].detail, value.code, value.detail, False), {})
        code, empty = (TType.LIST, ()) if kind == "list" else (TType.SET, frozenset())
        return WireType(code, (value.code, value.detail, True), empty)

    @staticmethod
    def _row(name: str, type_: WireType) -> tuple[Any, ...]:
        return type_.code, name, type_.detail, None


def fields_of(declared: Declaration) -> Iterator[Field]:
    """Yield the fields of a struct, by their numbers."""
    for number, optional, type_, name, default in _FIELD.findall(declared.text):
        yield Field(int(number), bool(optional), type_, name, default)


def members_of(declared: Declaration) -> Iterator[tuple[str, int]]:
    """Yield the members of an enum."""
    for name, number in re.findall(r"(\w+) = (\d+)", declared.text):
        yield name, int(number)


def documentation_of(declared: Declaration) -> str:
    """Return the comment of a declaration, without its slashes."""
    return re.sub(r"^// ?", "", declared.comment, flags=re.MULTILINE).strip()
