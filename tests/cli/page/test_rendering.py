"""No text that others chose becomes markup in HTML or Markdown."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import UndefinedError

from acidctl.cli.page.rendering import environment, plain, rendered, safe

HOSTILE = "<script>alert(1)</script>\"'&amp;</style>-->\x1b[31m\x00\u202egnp\ud800\n"


class Parsed(HTMLParser):
    """The tags, attribute values and text of a page, parsed as a browser parses them."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.values: list[str] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.values += [value or "" for _, value in attrs]

    def handle_data(self, data: str) -> None:
        self.text += data


def page_of(text: str) -> str:
    """Render a template with the text in elements and in attributes."""
    return environment(safe).from_string('<p title="{{ it }}">{{ it }}</p>').render(it=text)


@given(st.text(st.characters(exclude_categories=())))
def test_any_text_comes_back_as_text(text: str) -> None:
    page = page_of(text)
    found = Parsed(page)
    assert set(found.tags) == {"p"}
    assert safe(text) in found.values
    assert safe(text) in found.text
    assert page.encode()


def test_hostile_text_is_neither_markup_nor_control() -> None:
    page = page_of(HOSTILE)
    assert set(Parsed(page).tags) == {"p"}
    assert "<script" not in page
    assert not re.search("[\x00-\x09\x0b-\x1f\u202e\ud800]", page)


def test_nothing_in_markdown_is_special() -> None:
    assert plain("*a*|`b`<i>[c](d)") == r"\*a\*\|\`b\`\<i\>\[c\](d)"
    assert not re.search("[\x00-\x1f\u202e\ud800]", plain(HOSTILE))


def test_a_name_that_is_missing_is_an_error() -> None:
    with pytest.raises(UndefinedError):
        rendered("report.html.j2", {})
