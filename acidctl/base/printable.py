"""The one way from untrusted text to what a terminal may show: every name, value and message goes through it.

A terminal acts on control characters, and shows others not at all or in another order than they stand in: what names a
file, a column or a host is made by others, and must not do either.  Escaped are

* the control characters of ASCII and of Latin 1 (C0, DEL, C1), line feeds and tabs among them;
* the separators of lines and paragraphs;
* format characters: the marks, embeddings, overrides and isolates of bidirectional text, joiners, annotations;
* what Unicode calls ignorable by default, which is invisible: zero-width spaces, byte order marks, fillers, variation
  selectors, tags;
* lone surrogates, with which Python keeps the bytes of a name that is not UTF-8.
"""

from __future__ import annotations

import re
from collections.abc import Callable

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
_SHORT = {"\t": "\\t", "\n": "\\n", "\r": "\\r"}


def printable(text: str) -> str:
    r"""The text on one line that any terminal takes: ``\n``, ``\x1b``, ``\u202e`` for what it would act on, or hide.

    A byte that is not UTF-8 reads ``\xff``.
    """
    return text if text.isascii() and text.isprintable() else _UNSAFE.sub(_escaped, text)


def printable_json(text: str, astral: Callable[[int], str] | None = None) -> str:
    r"""JSON with the same characters as ``\u202e``: other letters, the same values.

    Args:
        text: JSON, in which C0 stands for itself only between the values.
        astral: how to write code points beyond U+FFFF, for what is like JSON; two surrogates by default.
    """
    if text.isascii() and "\x7f" not in text:
        return text
    escape = json_escape_of if astral is None else lambda code: (astral if code > 0xFFFF else json_escape_of)(code)
    return _AFTER_JSON.sub(lambda match: escape(ord(match.group())), text)


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


def _escaped(match: re.Match[str]) -> str:
    return escape_of(ord(match.group()))
