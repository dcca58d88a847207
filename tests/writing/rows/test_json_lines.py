"""Blocks of JSON lines, and the first line of one that cannot be read."""

from __future__ import annotations

import io
from itertools import combinations

import pyarrow as pa
import pytest

from acidctl.writing.rows.json_lines import JsonParser, first_bad_line, whole_lines


@pytest.mark.parametrize("count", [1, 2, 3, 7, 8])
@pytest.mark.parametrize("end", [b"\n", b""])
def test_the_first_bad_line_is_found(count: int, end: bytes) -> None:
    def read(text: bytes) -> None:
        if b"bad" in text:
            raise ValueError(text)

    for bad in (*combinations(range(count), 1), *combinations(range(count), 2)):
        block = b"\n".join(b"bad" if at in bad else b"good" for at in range(count)) + end
        place, error = first_bad_line(block, read, ValueError)
        assert (place, str(error)) == (bad[0], str(ValueError(b"bad" + (end if bad[0] == count - 1 else b"\n"))))


def test_a_line_that_contradicts_those_before_it_is_found() -> None:
    block = b'{"op": 1}\n{"op": 2}\n{"op": "x"}\n{"op": 3}\n'
    place, _ = first_bad_line(block, lambda part: JsonParser({}, part).table(part), pa.ArrowInvalid)
    assert place == 2


def test_lines_are_whole_whatever_the_blocks_are(monkeypatch: pytest.MonkeyPatch) -> None:
    text = b"".join(b'{"a": %d}\n' % (10**number) for number in range(12)) + b'{"a": 1}'
    for size in range(1, 40):
        monkeypatch.setattr("acidctl.writing.rows.json_lines._BLOCK", size)
        blocks = list(whole_lines(io.BufferedReader(io.BytesIO(text))))  # type: ignore[arg-type]
        assert b"".join(blocks) == text
        assert all(block.endswith(b"\n") for block in blocks[:-1])


def test_a_line_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("_BLOCK", 10), ("MOST", 30)):
        monkeypatch.setattr(f"acidctl.writing.rows.json_lines.{name}", value)
    with pytest.raises(pa.ArrowInvalid, match="longer"):
        list(whole_lines(io.BytesIO(b"x" * 100)))
