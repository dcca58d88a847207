"""Escape untrusted text for terminals: every name, value and message goes through this module.

A terminal acts on control characters, and hides or reorders others.  Names of files, columns and hosts are made by
others, and must do neither.  The escaped characters are

* the control characters of ASCII and of Latin 1 (C0, DEL, C1), line feeds and tabs among them;
* the separators of lines and paragraphs;
* format characters: the marks, embeddings, overrides and isolates of bidirectional text, joiners, annotations;
* what Unicode calls ignorable by default, which is invisible: zero-width spaces, byte order marks, fillers, variation
  selectors, tags;
* lone surrogates, with which Python keeps the bytes of a name that is not UTF-8.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sized
from dataclasses import fields
from typing import Any

RANGES = (
    (0x00, 0x1F), (0x7F, 0x9F), (0xAD, 0xAD), (0x34F, 0x34F), (0x600, 0x605), (0x61C, 0x61C), (0x6DD, 0x6DD),
    (0x70F, 0x70F), (0x890, 0x891), (0x8E2, 0x8E2), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F),
    (0x200B, 0x200F), (0x2028, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xD800, 0xDFFF), (0xFE00, 0xFE0F),
    (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFFB), (0x110BD, 0x110BD), (0x110CD, 0x110CD),
    (0x13430, 0x1343F), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF),
)  # fmt: skip
"""The characters that are escaped: the first and the last code point of each range, ascending."""

_UNSAFE = re.compile("[" + "".join(f"{chr(first)}-{chr(last)}" for first, last in RANGES) + "]")
_AFTER_JSON = re.compile("[" + "".join(f"{chr(first)}-{chr(last)}" for first, last in RANGES[1:]) + "]")
_LONGEST = 80  # characters of one field on one line
_SHORT = {"\t": "\\t", "\n": "\\n", "\r": "\\r"}


def printable(text: str) -> str:
    r"""Return the text on one line, with escapes (``\n``, ``\x1b``, ``\u202e``) for what a terminal acts on or hides.

    A byte that is not UTF-8 becomes ``\xff``.
    """
    if text.isascii() and text.isprintable():
        return text
    return _UNSAFE.sub(lambda match: escape_of(ord(match.group())), text)


def shell_line(words: Iterable[str]) -> str:
    r"""Return a line that bash and zsh take as these words; it is :func:`printable` as it is.

    A word with other characters becomes ``$'a\nb'``: in ``'a\nb'`` the escape would be another name.
    """
    return " ".join(_shell_word(word) if _UNSAFE.search(word) else shlex.quote(word) for word in words)


def _shell_word(word: str) -> str:
    plain = word.replace("\\", "\\\\").replace("'", "\\'")
    return f"$'{_UNSAFE.sub(_shell_escaped, plain)}'"


def _shell_escaped(match: re.Match[str]) -> str:
    char = match.group()
    errors = "surrogateescape" if "\udc80" <= char <= "\udcff" else "surrogatepass"
    return _SHORT.get(char) or "".join(f"\\x{byte:02x}" for byte in char.encode(errors=errors))


def printable_json(text: str) -> str:
    r"""Return JSON with the same characters as ``\u202e``, which leaves all values as they are.

    Args:
        text: JSON, in which C0 stands for itself only between the values.
    """
    if text.isascii() and "\x7f" not in text:
        return text
    return _AFTER_JSON.sub(lambda match: json_escape_of(ord(match.group())), text)


def escape_of(code: int) -> str:
    r"""Return the escape that :func:`printable` writes for a character."""
    char = chr(code)
    if char in _SHORT:
        return _SHORT[char]
    if 0xDC80 <= code <= 0xDCFF:  # how Python keeps a byte of a name that is not UTF-8
        return f"\\x{code - 0xDC00:02x}"
    return f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def json_escape_of(code: int) -> str:
    r"""Return the escape that :func:`printable_json` writes for a character: two surrogates above U+FFFF."""
    if code <= 0xFFFF:
        return f"\\u{code:04x}"
    high, low = divmod(code - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"


def one_line(self: Any) -> str:
    """Return the ``__repr__`` of a dataclass, with only the beginning or the size of a long field."""
    parts = (f"{field.name}={_short(getattr(self, field.name))}" for field in fields(self) if field.repr)
    return f"{type(self).__name__}({', '.join(parts)})"


def _short(value: object) -> str:
    if isinstance(value, tuple | list | dict | set | frozenset) and len(value) > 1:
        return f"<{len(value):,}>"
    text = repr(value)
    if len(text) <= _LONGEST:
        return text
    has_size = isinstance(value, Sized) and not isinstance(value, str | bytes)
    return f"<{len(value):,}>" if has_size else f"{text[:_LONGEST]}..."  # type: ignore[arg-type]
