"""A tree of a Hive type string, small enough to read at a glance."""

from __future__ import annotations

from dataclasses import dataclass

_OPEN = {"struct": ">", "array": ">", "map": ">", "uniontype": ">"}


@dataclass(frozen=True, slots=True)
class HiveType:
    """One node: `names` only for structs, `arguments` for char(n), varchar(n) and decimal(p,s)."""

    kind: str
    children: tuple[HiveType, ...] = ()
    names: tuple[str, ...] = ()
    arguments: tuple[int, ...] = ()

    def __str__(self) -> str:
        if self.kind == "struct":
            return "struct<" + ",".join(f"{n}:{c}" for n, c in zip(self.names, self.children, strict=True)) + ">"
        if self.kind in _OPEN:
            return f"{self.kind}<{','.join(map(str, self.children))}>"
        return self.kind + (f"({','.join(map(str, self.arguments))})" if self.arguments else "")


def parse_type(text: str) -> HiveType:
    """Parse `struct<a:int,b:array<char(3)>>`; ValueError when it is not one whole type."""
    node, end = _type(text, 0)
    if end != len(text):
        raise ValueError(f"left over after the type: {text[end:]!r}")
    return node


def _word(text: str, at: int) -> tuple[str, int]:
    end = at
    while end < len(text) and text[end] not in "<>(),:":
        end += 1
    return text[at:end], end


def _type(text: str, at: int) -> tuple[HiveType, int]:
    kind, at = _word(text, at)
    if kind in _OPEN:
        names: list[str] = []
        children: list[HiveType] = []
        at += 1  # <
        while text[at] != ">":
            if text[at] == ",":
                at += 1
            if kind == "struct":
                name, at = _word(text, at)
                names.append(name)
                at += 1  # :
            child, at = _type(text, at)
            children.append(child)
        return HiveType(kind, tuple(children), tuple(names)), at + 1
    arguments: tuple[int, ...] = ()
    if at < len(text) and text[at] == "(":
        end = text.index(")", at)
        arguments = tuple(int(part) for part in text[at + 1 : end].split(","))
        at = end + 1
    if kind == "decimal" and not arguments:
        arguments = (10, 0)
    return HiveType(kind, (), (), arguments), at
