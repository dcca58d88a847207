"""Spark's settings on their way to Java: in files for nobody else's eyes, as every process sees every command line.

Files of properties are Java's (``java.util.Properties``), those of options what ``java @FILE`` reads.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
# A line that ends in a backslash goes on in the next one, behind its blanks.
_GOES_ON = r"\\(?:\r\n|\r|\n)[ \t\f]*+"
_BLANKS = rf"(?:[ \t\f]|{_GOES_ON})*+"
_ESCAPED = rf"{_GOES_ON}|\\(?:[\s\S]|$)"
_COMMENT_OR_PAIR = re.compile(
    rf"{_BLANKS}(?:[#!][^\r\n]*|(?=[^\r\n])"
    rf"((?:[^\\=: \t\f\r\n]|{_ESCAPED})*+){_BLANKS}[=:]?{_BLANKS}((?:[^\\\r\n]|{_ESCAPED})*+))"
)
_TRIMMED = "".join(map(chr, range(0x21))).replace("\r", "").replace("\n", "")

_QUOTED = r"""'([^']*)(?:'|\Z)|"((?:\\.|[^"\\])*)(?:"|\\?\Z)|\\(.)"""
_OPTION = re.compile(rf"(?:{_QUOTED}|[^\s'\"\\])+", re.DOTALL)
_ARGUMENT_FILE = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"})


def trimmed(value: str) -> str:
    """A value as Spark takes it from a file: without blanks and control characters at its ends, but for line ends."""
    return value.strip(_TRIMMED)


def parsed(text: str) -> dict[str, str]:
    """Return the pairs of a file of properties; the last of two wins."""
    pairs = [found for found in _COMMENT_OR_PAIR.finditer(text) if found.lastindex]
    return {_unescaped(found[1]): _unescaped(found[2]) for found in pairs}


def _unescaped(text: str) -> str:
    plain = re.sub(r"\\(u[0-9A-Fa-f]{4}|(?:\r\n|\r|\n)[ \t\f]*|[\s\S]|$)", _plain, text)
    # Two escapes may be one character.
    return plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _plain(match: re.Match[str]) -> str:
    code = match[1]
    if code[:1] in ("", "\r", "\n"):
        return ""
    return chr(int(code[1:], 16)) if len(code) == 5 else _ESCAPES.get(code, code)


def written(pairs: Mapping[str, str]) -> str:
    """Return a file of properties, in ASCII, from which Java reads the same pairs."""
    return "".join(f"{_escaped(key)}={_escaped(value)}\n" for key, value in pairs.items())


def _escaped(text: str) -> str:
    """Escape characters that have a meaning as ``\\uXXXX``, which stands for the character alone."""
    return re.sub(r"[^!-~]|[\\=:#!]", _code_units, text)


def _code_units(match: re.Match[str]) -> str:
    return re.sub("(....)", r"\\u\1", match[0].encode("utf-16-be", "surrogatepass").hex())


def split_options(text: str) -> list[str]:
    """Java's options in one string, as Spark's launcher splits it: by blanks, outside of quotes and escapes."""
    return [re.sub(_QUOTED, _unquoted, found[0], flags=re.DOTALL) for found in _OPTION.finditer(text)]


def _unquoted(match: re.Match[str]) -> str:
    in_single, in_double, escaped = match.groups()
    return in_single or escaped or re.sub(r"\\(.)", r"\1", in_double or "", flags=re.DOTALL)


def options_file(options: Iterable[str]) -> str:
    """Return the text of a file that ``java @FILE`` reads options from."""
    return "".join(f'"{option.translate(_ARGUMENT_FILE)}"\n' for option in options)


def moved_options(text: str, path: Path) -> str:
    """Put options into a file; the option for Spark's launcher that stands for them."""
    path.write_text(options_file(split_options(text)), encoding="utf-8")
    return f'"@{path}"'


def write_properties(pairs: Mapping[str, str], path: Path) -> None:
    """Put properties into a file."""
    path.write_text(written(pairs), encoding="ascii")
