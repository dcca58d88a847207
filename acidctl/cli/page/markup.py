"""HTML and SVG as trees: whatever text is put into one is escaped when it is written, and shows no control characters.

Names in a page are anybody's. No text here ever becomes markup, as none is ever joined with markup.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Iterable
from xml.etree import ElementTree as ET

from acidctl.cli.output.redact import hidden_in
from acidctl.printable import printable

Element = ET.Element
SVG = "http://www.w3.org/2000/svg"
Content = str | Element | Iterable["Content"] | None


def el(tag: str, *content: Content, **attributes: str | float | None) -> Element:
    """An element; attributes that are None are left out.

    Args:
        attributes: ``class_`` is class, ``aria_label`` is aria-label.
    """
    made = ET.Element(tag)
    for name, value in attributes.items():
        if value is not None:
            made.set(name.rstrip("_").replace("_", "-"), safe(value if isinstance(value, str) else f"{value:g}"))
    _fill(made, content)
    return made


def _fill(parent: Element, content: Iterable[Content]) -> None:
    for one in content:
        if isinstance(one, str):
            text = safe(one)
            if len(parent):
                parent[-1].tail = (parent[-1].tail or "") + text
            else:
                parent.text = (parent.text or "") + text
        elif isinstance(one, ET.Element):
            parent.append(one)
        elif one is not None:
            _fill(parent, one)


def safe(text: str) -> str:
    """The text without what a browser, or a reader of it, would act on, and without what is known to be secret."""
    return printable(str(hidden_in(text)))


def html_page(title: str, style: str, *body: Content) -> str:
    """A whole document, which loads nothing and runs nothing: its policy allows its own style alone."""
    digest = b64encode(hashlib.sha256(style.encode("utf-8")).digest()).decode("ascii")
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    sheet = ET.Element("style")
    sheet.text = style  # ours, and hashed as it stands
    head = el(
        "head",
        el("meta", charset="utf-8"),
        ET.Element("meta", {"http-equiv": "Content-Security-Policy", "content": policy}),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="generator", content=GENERATOR),
        el("meta", name="referrer", content="no-referrer"),
        el("meta", name="color-scheme", content="light dark"),
        el("title", title),
        sheet,
    )
    page = el("html", head, el("body", *body), lang="en")
    return "<!DOCTYPE html>\n" + ET.tostring(page, encoding="unicode", method="html") + "\n"


GENERATOR = "acidctl report"
"""By which a page is known as one of ours."""


def svg_document(picture: Element) -> str:
    """A picture as a file of its own."""
    picture.set("xmlns", SVG)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(picture, encoding="unicode") + "\n"
