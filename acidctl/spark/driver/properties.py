"""Spark's settings on their way to Java: in files for nobody else's eyes, as every process sees every command line.

Files of properties are Java's (``java.util.Properties``), those of options what ``java @FILE`` reads.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_NATURAL_LINE = re.compile(r"\r\n|\r|\n")
_BLANK = " \t\f"
_TRIMMED = "".join(map(chr, range(0x21))).replace("\r", "").replace("\n", "")


def trimmed(value: str) -> str:
    """A value as Spark takes it from a file: without blanks and control characters at its ends, but for line ends."""
    return value.strip(_TRIMMED)


def parsed(text: str) -> dict[str, str]:
    """The pairs of a file of properties; the last of two wins."""
    pairs = (_pair(line) for line in _logical_lines(text))
    return {_unescaped(key): _unescaped(value) for key, value in pairs}


def written(pairs: Mapping[str, str]) -> str:
    """A file of properties, in ASCII, from which Java reads the same pairs."""
    return "".join(f"{_escaped(key, key=True)}={_escaped(value)}\n" for key, value in pairs.items())


def split_options(text: str) -> list[str]:
    """Java's options in one string, as Spark's launcher splits it: by blanks, outside of quotes and escapes."""
    options: list[str] = []
    current: list[str] | None = None
    quote = ""
    is_escaped = False
    for char in text:
        if is_escaped:
            current = [*(current or []), char]
            is_escaped = False
        elif char == "\\" and quote != "'":
            is_escaped = True
        elif char in "'\"" and quote in ("", char):
            quote = "" if quote else char
            current = current or []
        elif quote or not char.isspace():
            current = [*(current or []), char]
        elif current is not None:
            options.append("".join(current))
            current = None
    return options if current is None else [*options, "".join(current)]


def options_file(options: Iterable[str]) -> str:
    """What ``java @FILE`` reads the options from."""
    return "".join(f'"{_quoted(option)}"\n' for option in options)


def write_private(path: Path, text: str) -> None:
    """A file for this user's eyes only, in a folder that is so too."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)


def _quoted(option: str) -> str:
    for plain, escaped in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t"), ("\f", "\\f")):
        option = option.replace(plain, escaped)
    return option


def _logical_lines(text: str) -> Iterator[str]:
    """Without comments and blank lines; what ends in an odd number of backslashes goes on in the next one."""
    held = ""
    for natural in _NATURAL_LINE.split(text):
        line = natural.lstrip(_BLANK)
        if not held and (not line or line[0] in "#!"):
            continue
        if (len(line) - len(line.rstrip("\\"))) % 2:
            held += line[:-1]
            continue
        yield held + line
        held = ""
    if held:
        yield held


def _pair(line: str) -> tuple[str, str]:
    end = next((place for place in range(len(line)) if line[place] in "=: \t\f" and not _is_escaped(line, place)), None)
    if end is None:
        return line, ""
    rest = line[end:].lstrip(_BLANK)
    return line[:end], rest[1:].lstrip(_BLANK) if rest[:1] in ("=", ":") else rest


def _is_escaped(line: str, place: int) -> bool:
    before = line[:place]
    return (len(before) - len(before.rstrip("\\"))) % 2 == 1


def _unescaped(text: str) -> str:
    plain = re.sub(r"\\(u[0-9A-Fa-f]{4}|[\s\S]|$)", _plain, text)
    # Two escapes may be one character.
    return plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _plain(match: re.Match[str]) -> str:
    code = match[1]
    return chr(int(code[1:], 16)) if len(code) == 5 else _ESCAPES.get(code, code)


def _escaped(text: str, *, key: bool = False) -> str:
    special = "=: \t\f#!\\" if key else "\\"
    lead = len(text) - len(text.lstrip(_BLANK))
    return "".join(_escape(char, is_special=char in special or place < lead) for place, char in enumerate(text))


def _escape(char: str, *, is_special: bool) -> str:
    if not " " <= char <= "~":
        units = char.encode("utf-16-be", "surrogatepass")
        return "".join(f"\\u{int.from_bytes(units[place : place + 2]):04x}" for place in range(0, len(units), 2))
    return f"\\{char}" if is_special else char
