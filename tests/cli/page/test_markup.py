"""HTML and SVG: no text of others becomes markup, whatever it is."""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from acidctl.cli.page.markup import el, html_page, safe, svg_document

HOSTILE = "<script>alert(1)</script>\"'&amp;</style>-->\x1b[31m\x00\u202egnp\ud800\n"


class Parsed(HTMLParser):
    """What a browser would make of a page."""

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


@given(st.text(st.characters(exclude_categories=())))
def test_any_text_comes_back_as_text(text: str) -> None:
    page = html_page("t", "", el("p", text, title=text))
    found = Parsed(page)
    assert set(found.tags) == {"html", "head", "meta", "title", "style", "body", "p"}
    assert safe(text) in found.values
    assert safe(text) in found.text
    assert page.encode()


def test_hostile_text_is_neither_markup_nor_control() -> None:
    page = html_page(HOSTILE, "", el("p", HOSTILE, title=HOSTILE))
    picture = svg_document(el("svg", el("text", HOSTILE)))
    assert set(Parsed(page).tags) == {"html", "head", "meta", "title", "style", "body", "p"}
    assert "<script" not in picture
    for text in (page, picture):
        assert not re.search("[\x00-\x09\x0b-\x1f\u202e\ud800]", text)


def test_the_policy_allows_the_style_and_nothing_else() -> None:
    style = "p{color:red}"
    page = html_page("t", style, el("p", "x"))
    digest = b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'" in page
    assert f"<style>{style}</style>" in page


def test_texts_stand_where_they_were_put() -> None:
    made = el("p", "a", el("b", "c"), "d", [el("i"), "e"], None, class_="x", data_y=1.5)
    assert svg_document(made).partition("\n")[2].strip() == (
        '<p class="x" data-y="1.5" xmlns="http://www.w3.org/2000/svg">a<b>c</b>d<i />e</p>'
    )
