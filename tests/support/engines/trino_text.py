"""Values of Trino's JSON in the form of :func:`support.engines.hive_text.printed`, to compare with other engines'."""

from __future__ import annotations

import base64
from typing import Any

from acidctl.orc.types import OrcType
from support.engines.hive_text import printed


def of_trino(node: OrcType, value: Any) -> str:
    """A column's value in the form of :func:`printed`."""
    return printed(node, _as_json(node, value))


def _as_json(node: OrcType, value: Any) -> Any:
    """As acidctl's JSON has it."""
    if value is None:
        return None
    if node.kind == "array":
        return [_as_json(node.children[0], item) for item in value]
    if node.kind == "map":
        key, inner = node.children
        # Trino's JSON is an object, whose names are the keys as text; acidctl's is a list of pairs.
        return [{"_key": _key(key, name), "_value": _as_json(inner, item)} for name, item in value.items()]
    if node.kind == "struct":
        return {name: _as_json(child, item) for (name, child), item in zip(node.fields(), value, strict=True)}
    if node.kind == "binary":
        return list(base64.b64decode(value))
    if node.kind in ("timestamp", "decimal"):
        return _shortest(value)
    return float(value) if node.kind in ("float", "double") else value


def _shortest(text: str) -> str:
    """Without zeros at the end of a fraction."""
    return text.rstrip("0").rstrip(".") if "." in text else text


def _key(node: OrcType, text: str) -> Any:
    return int(text) if node.kind in ("tinyint", "smallint", "int", "bigint") else text
