"""What must never reach a terminal as it is, by Unicode's own tables: the judge of what acidctl escapes."""

from __future__ import annotations

import json
import unicodedata

# Default_Ignorable_Code_Point of Unicode's DerivedCoreProperties, and what newer versions of Unicode call a format
# character than some versions of Python.
_RANGES = (
    (0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F),
    (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x13430, 0x1343F), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A),
    (0xE0000, 0xE0FFF),
)  # fmt: skip
_INVISIBLE = {code for first, last in _RANGES for code in range(first, last + 1)}


def is_unsafe(char: str) -> bool:
    """Whether a terminal would act on it, or not show it."""
    return unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp") or ord(char) in _INVISIBLE


def quoted(text: str) -> str:
    """A JSON string in which all of these are escaped, and no other characters that need not be."""
    inner = (_in_json(char) if is_unsafe(char) else json.dumps(char, ensure_ascii=False)[1:-1] for char in text)
    return f'"{"".join(inner)}"'


def _in_json(char: str) -> str:
    return "\\u007f" if char == "\x7f" else json.dumps(char)[1:-1]


UNSAFE = [char for char in map(chr, range(0x110000)) if is_unsafe(char)]

SAMPLES = {
    "escape": "\x1b[31m", "title": "\x1b]0;owned\x07", "c1": "\x9b31m", "nel": "\x85", "del": "\x7f", "null": "\x00",
    "tab": "\t", "line feed": "\n", "return": "\r", "backspace": "\b", "right to left": "\u202e", "isolate": "\u2066",
    "mark": "\u200f", "arabic": "\u061c", "line": "\u2028", "paragraph": "\u2029", "zero width": "\u200b",
    "joiner": "\u200d", "word joiner": "\u2060", "bom": "\ufeff", "tag": "\U000e0041", "selector": "\ufe0f",
    "soft hyphen": "\xad", "byte": "\udc9b", "filler": "\u3164", "annotation": "\ufff9",
}  # fmt: skip
"""One of every kind; a file's name can hold all but the null."""
