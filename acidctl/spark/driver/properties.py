"""Write Spark's settings for Java into private files, as every process sees every command line.

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

_SPECIAL = r"[^!-~]|[\\=:#!]"
_QUOTED = r"""'([^']*)(?:'|\Z)|"((?:\\.|[^"\\])*)(?:"|\\?\Z)|\\(.)"""
_OPTION = re.compile(rf"(?:{_QUOTED}|[^\s'\"\\])+", re.DOTALL)
_ARGUMENT_FILE = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"})


def trimmed(value: str) -> str:
    """Return a value as Spark takes it from a file: its ends lose blanks and control characters, but no line ends."""
    return value.strip(_TRIMMED)


def parsed(text: str) -> dict[str, str]:
    """Return the pairs of a file of properties; the last of two wins."""
    pairs = [match for match in _COMMENT_OR_PAIR.finditer(text) if match.lastindex]
    return {_unescaped(match[1]): _unescaped(match[2]) for match in pairs}


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
    """Return a file of properties, in ASCII, from which Java reads the same pairs.

    Characters that have a meaning are written as ``\\uXXXX``, which stands for the character alone.
    """

    def code_units(match: re.Match[str]) -> str:
        return re.sub("(....)", r"\\u\1", match[0].encode("utf-16-be", "surrogatepass").hex())

    escaped = {re.sub(_SPECIAL, code_units, key): re.sub(_SPECIAL, code_units, value) for key, value in pairs.items()}
    return "".join(f"{key}={value}\n" for key, value in escaped.items())


def split_options(text: str) -> list[str]:
    """Split Java's options as Spark's launcher does: by blanks, outside of quotes and escapes."""

    def plain(match: re.Match[str]) -> str:
        in_single, in_double, escaped = match.groups()
        return in_single or escaped or re.sub(r"\\(.)", r"\1", in_double or "", flags=re.DOTALL)

    return [re.sub(_QUOTED, plain, match[0], flags=re.DOTALL) for match in _OPTION.finditer(text)]


def moved_options(options: Iterable[str], path: Path) -> str:
    """Put Java's options into a file that ``java @FILE`` reads, and return the option that stands for them."""
    lines = [f'"{option.translate(_ARGUMENT_FILE)}"\n' for option in options]
    path.write_text("".join(lines), encoding="utf-8")
    return f'"@{path}"'


def write_properties(pairs: Mapping[str, str], path: Path) -> None:
    """Write properties into a file."""
    path.write_text(written(pairs), encoding="ascii")
