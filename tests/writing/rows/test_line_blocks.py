"""Blocks of text for Arrow's readers: each holds the end of a row."""

from __future__ import annotations

import io
from collections.abc import Iterator

import pytest

from acidctl.writing.rows import line_blocks
from acidctl.writing.rows.line_blocks import LineBlocks


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_blocks, "_BLOCK", 4)
    monkeypatch.setattr(line_blocks, "MOST", 32)


def blocks(text: bytes, *, has_quotes: bool = True) -> Iterator[bytes]:
    with LineBlocks(io.BufferedReader(io.BytesIO(text)), has_quotes=has_quotes) as lines:  # type: ignore[arg-type]
        while block := lines.read():
            yield block


@pytest.mark.parametrize(
    ("text", "has_quotes", "first"),
    [
        (b"a\nb\nc\nd\n", True, b"a\nb\n"), (b"abcdefghi\nj\nkl\n", True, b"abcdefghi\nj\nkl\n"),
        (b'"a\n\n\n\n"\nbc\nd', True, b'"a\n\n\n\n"\n'), (b'"a\n\n\n\n"\nbc\nd', False, b'"a\n\n'),
        (b'"a""\n\n"\r\r\r', True, b'"a""\n\n"\r'), (b"", True, b""), (b"ab", True, b"ab"),
    ],
)  # fmt: skip
def test_a_block_is_as_long_as_a_row_needs(text: bytes, has_quotes: bool, first: bytes) -> None:
    found = list(blocks(text, has_quotes=has_quotes))
    assert found[:1] == ([first] if first else [])
    assert b"".join(found) == text


def test_a_quote_that_opens_nothing_does_not_make_all_blocks_long() -> None:
    text = b'x"y\n' + b"line\n" * 40
    first, *others = blocks(text)
    assert (len(first), max(map(len, others))) == (32, 8)
    assert first + b"".join(others) == text


def test_nothing_is_read_after_the_end() -> None:
    file = io.BufferedReader(io.BytesIO(b"a\nb\nc\n" * 9))  # type: ignore[arg-type]
    with LineBlocks(file, has_quotes=True) as lines:
        assert lines.read() == b"a\nb\n"
    at = file.tell()
    assert (lines.read(), file.tell()) == (b"", at)
