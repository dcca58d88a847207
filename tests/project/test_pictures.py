"""docs/pictures: each with words beside it, and nothing outside of its frame."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest
from support.paths import REPO

PAGE = (REPO / "docs/explanation/layout.md").read_text("utf-8")
SVG = "{http://www.w3.org/2000/svg}"
FOLDER = REPO / "docs/pictures"
PICTURES = sorted(path.name for path in FOLDER.iterdir())


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_shown_with_what_it_says(name: str) -> None:
    ((words, _),) = re.findall(rf"!\[([^\]]+)\]\((\.\./pictures/{re.escape(name)})\)", PAGE)
    root = ET.parse(FOLDER / name).getroot()
    names = {text.text for text in root.iter(f"{SVG}text") if text.get("class") == "name"}
    assert {one for one in names if one} <= set(re.findall(r"\w+", words))
    assert root.findtext(f"{SVG}title")
    assert "prefers-color-scheme:dark" in (root.findtext(f"{SVG}style") or "")


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_stays_inside_of_its_frame_and_words_inside_of_their_boxes(name: str) -> None:
    root = ET.parse(FOLDER / name).getroot()
    _, _, width, height = map(float, root.get("viewBox", "").split())
    boxes = [one for one in root.iter(f"{SVG}rect") if one.get("class") != "paper"]
    for box in boxes:
        assert float(box.get("x", "")) + float(box.get("width", "")) <= width - 8
        assert float(box.get("y", "")) + float(box.get("height", "")) <= height - 8
    for text in root.iter(f"{SVG}text"):
        wide = 8.6 * len(text.text or "")  # of one letter, at most
        at = float(text.get("x", ""))
        if text.get("class") == "in":
            around = [box for box in boxes if abs(float(box.get("x", "")) + float(box.get("width", "")) / 2 - at) < 1]
            assert any(wide <= float(box.get("width", "")) for box in around), text.text
        elif "mid" not in (text.get("class") or ""):
            assert at + wide <= width, text.text
