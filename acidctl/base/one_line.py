"""Results as one line for who types them at a prompt: dataclasses print all that they hold, which may be a table's."""

from __future__ import annotations

from collections.abc import Sized
from dataclasses import fields
from typing import Any

_LONGEST = 80
"""Characters of one field."""


def one_line(self: Any) -> str:
    """The ``__repr__`` of a dataclass with long fields: of those it gives the beginning, or how much they hold."""
    shown = (f"{one.name}={_short(getattr(self, one.name))}" for one in fields(self) if one.repr)
    return f"{type(self).__name__}({', '.join(shown)})"


def _short(value: object) -> str:
    if isinstance(value, tuple | list | dict | set | frozenset) and len(value) > 1:
        return f"<{len(value):,}>"
    text = repr(value)
    if len(text) <= _LONGEST:
        return text
    return (
        f"<{len(value):,}>"
        if isinstance(value, Sized) and not isinstance(value, str | bytes)
        else f"{text[:_LONGEST]}..."
    )
