"""The one escaper: everything that a terminal acts on, or hides, and nothing else."""

from __future__ import annotations

import json
import os
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.trouble.unsafe import UNSAFE, is_unsafe, quoted

from acidctl.base.printable import RANGES, printable, printable_json, shell_line

# Two surrogates may be one character in JSON: names have those of Python's surrogateescape only.
ANY = st.text(st.characters() | st.sampled_from([char for char in UNSAFE if not "\ud800" <= char <= "\udbff"]))


def test_exactly_the_unsafe_code_points_are_escaped() -> None:
    escaped = {char for char in map(chr, range(0x110000)) if printable(char) != char}
    assert escaped == set(UNSAFE)
    assert sorted(RANGES) == list(RANGES)


def test_escapes_are_as_short_as_python_writes_them() -> None:
    assert printable("a\r\udcff\u2028\ud800") == "a\\r\\xff\\u2028\\ud800"
    assert printable("\x1b\t\n\x9b\u202e\U000e0041") == "\\x1b\\t\\n\\x9b\\u202e\\U000e0041"
    assert printable("日本 é \xa0 \U0001f600 C:\\x1b") == "日本 é \xa0 \U0001f600 C:\\x1b"


@given(ANY)
def test_what_is_shown_is_safe_and_shown_once(text: str) -> None:
    shown = printable(text)
    assert not any(map(is_unsafe, shown))
    assert printable(shown) == shown
    if not any(map(is_unsafe, text)):
        assert shown == text


@given(st.recursive(ANY | st.none() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(ANY, inner)))
def test_json_is_the_same_value(value: object) -> None:
    text = printable_json(json.dumps(value, ensure_ascii=False))
    assert not any(map(is_unsafe, text))
    assert json.loads(text) == value
    if isinstance(value, str):
        assert text == quoted(value)


@pytest.mark.parametrize(
    "word",
    [
        "a b",
        "-rf",
        "a\nb",
        "a\\nb",
        "it's\x1b[31m",
        "\udcff'\\",
        "\u202ex",
        "$(id)",
        "\x7f0",
        "\x85",
        "é\t",
        "",
        "~",
        "\u200bff",
    ],
)
def test_a_line_is_taken_by_a_shell_as_its_words_and_does_nothing_to_a_terminal(word: str) -> None:
    line = shell_line(["printf", "%s", word])
    assert line == printable(line)
    done = subprocess.run(["bash", "-c", line], capture_output=True, check=True)
    assert done.stdout == os.fsencode(word)
