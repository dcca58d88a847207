"""``acidctl/metastore/interface.pyi``, made of ``interface.idl``: what type checkers and editors know of the module.

Its structs have no base: Thrift's classes have no types, and a subclass of theirs would have any attribute.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from acidctl.metastore.wire import Declaration, Interface, documentation_of, fields_of, members_of

PATH = "acidctl/metastore/interface.pyi"
_IDL = Path(__file__).resolve().parents[1] / "acidctl/metastore/interface.idl"
_TYPES = {"i16": "int", "i32": "int", "i64": "int", "string": "str", "binary": "bytes"}
_HEAD = '''"""Made of interface.idl by `python tools/make_docs.py`: do not edit."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

from acidctl.metastore.lossless import RawStruct
from acidctl.metastore.wire import Interface, Method

INTERFACE: Interface
'''


def stub() -> str:
    """Return the text of the file."""
    declarations = Interface(_IDL.read_text("utf-8"), "").declarations.values()
    return _HEAD + "\n".join(line for declared in declarations for line in _lines(declared)) + "\n"


def _lines(declared: Declaration) -> Iterator[str]:
    documentation = documentation_of(declared)
    if not declared.kind:
        yield f"{declared.name}: {'int' if declared.text.isdigit() else 'Method'}"
        if documentation:
            yield f'"""{documentation}"""'
        return
    yield ""
    if declared.kind == "struct":
        yield "@dataclass(frozen=True)"
    yield f"class {declared.name}{'(IntEnum)' if declared.kind == 'enum' else ''}:"
    if documentation:
        yield '    """' + documentation.replace("\n", "\n    ").replace("\n    \n", "\n\n") + '"""'
        yield ""
    if declared.kind == "enum":
        for name, number in members_of(declared):
            yield f"    {name} = {number}"
    else:
        if not declared.text:
            yield "    pass"
        for field in fields_of(declared):
            yield f"    {field.name}: {_python_type(field.type)}{' | None' if field.is_optional else ''} = ..."
    yield ""


def _python_type(text: str) -> str:
    kind, _, inner = text.removesuffix(">").partition("<")
    if not inner:
        return _TYPES.get(text, text)
    types = ", ".join(map(_python_type, inner.split(", ", 1)))
    return {"list": f"tuple[{types}, ...]", "set": f"frozenset[{types}]", "map": f"Mapping[{types}]"}[kind]
