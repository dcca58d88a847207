"""The page of `report` in a real browser: quiet, alone, readable by everybody, on every screen."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.browser import Page, axe, browser
from support.files.acid_files import insert, write_acid
from support.paths import PYTHONPATH
from support.servers.hdfs_server import ServerUnavailable
from support.tables import age, make

pytestmark = pytest.mark.server
ENVIRONMENT = {**os.environ, "PYTHONPATH": PYTHONPATH}
TEN = [f"delta_{n:07d}_{n:07d}_0000" for n in range(1, 11)]
HOSTILE = ("<script>document.write('run')<", '"><img src onerror>', "\u202egnp", "x" * 200)
WIDTHS = (360, 800, 1400)
FOCUSED = (
    "(e => [e.getAttribute('href'), e.getAttribute('aria-label') || e.textContent, "
    "[...document.querySelectorAll('*')].indexOf(e)])(document.activeElement)"
)


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    try:
        with browser() as one:
            yield one
    except ServerUnavailable as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with every part: large and small tables, hostile names, trash, compactions."""
    folder = tmp_path_factory.mktemp("report")
    tree, out = folder / "w", folder / "report.html"
    for number in range(50):
        table = make(tree / "sales.db" / f"table_{number}", "base_0000010", *TEN[: number % 10], "_tmp_9/x")
        (table / "base_0000010" / "bucket_00000").write_bytes(b"x" * (60_000 // (1 + number)))
        age(table, 24 * (number % 9))
    for name in HOSTILE:
        make(tree / "web.db" / name, *TEN, "delta_0000011_0000011_0000")
    done = tree / "sales.db" / "done"
    for number in (1, 2):
        write_acid(
            done / f"delta_000000{number}_000000{number}_0000" / "bucket_00000", insert(number, 0, (number, "b"))
        )
    for words in (
        ("compact", "--major", "--engine", "local", "--assume-committed=0s", done),
        ("clean", "--yes", "--older-than", "0", "--unsafe-retention", done),
        ("report", "--out", out, tree),
    ):
        subprocess.run([sys.executable, "-m", "acidctl", *map(str, words)], check=True, env=ENVIRONMENT)
    return out


def test_it_asks_for_nothing_says_nothing_and_runs_nothing(page: Page, report: Path) -> None:
    for width in WIDTHS:
        page.open(report, width)
        assert page.requests() == [report.as_uri()]
        assert page.complaints() == []
    assert page.run("document.scripts.length + document.images.length") == 0
    assert page.run("document.body.textContent.includes(\"<script>document.write('run')<\")")


def test_no_screen_scrolls_sideways(page: Page, report: Path) -> None:
    for width in WIDTHS:
        page.open(report, width)
        assert page.run("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize(("width", "dark"), [(1400, False), (360, True)], ids=["light", "dark"])
def test_everybody_can_use_it(page: Page, report: Path, width: int, dark: bool) -> None:
    """By axe-core: contrast, names, roles, order of headings, tables, what can be reached."""
    found = judged(page, report, width=width, dark=dark)
    assert found["violations"] == []
    passed = {"color-contrast", "document-title"} | ({"scrollable-region-focusable"} if width < 400 else set())
    assert passed <= set(found["passes"])


def judged(page: Page, path: Path, width: int = 1200, *, dark: bool = False) -> Any:
    try:
        source = axe()
    except ServerUnavailable as error:
        pytest.skip(str(error))
    page.open(path, width, dark=dark)
    page.run(source)
    return page.run(
        "axe.run().then(r => ({passes: r.passes.map(p => p.id), "
        "violations: r.violations.map(v => [v.id, v.nodes.slice(0, 3).map(n => n.html)])}))"
    )


def test_axe_finds_what_is_wrong(page: Page, tmp_path: Path) -> None:
    """The judge can say no."""
    (tmp_path / "bad.html").write_text('<html><body><p style="color:#aaa">pale</p><a href="#x"></a></body></html>')
    found = judged(page, tmp_path / "bad.html")
    assert {"color-contrast", "link-name"} <= {name for name, _ in found["violations"]}


def test_the_keyboard_goes_from_part_to_part_and_shows_where_it_is(page: Page, report: Path) -> None:
    page.open(report, 1400)
    seen = []
    for _ in range(70):
        page.press("Tab")
        if (at := page.run(FOCUSED)) in seen or page.run("document.activeElement === document.body"):
            break
        seen.append(at)
    assert [place for _, _, place in seen] == sorted(place for _, _, place in seen), "in the order of the page"
    names = [name for _, name, _ in seen]
    for part in ("Bytes that cleaning can free, and when", "Tables by score, the lowest first"):
        assert part in names
    page.open(report, 1400)
    page.press("Tab")
    assert page.run("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_a_screen_reader_meets_headings_pictures_and_tables(page: Page, report: Path) -> None:
    page.open(report, 1400)
    spoken = page.spoken()
    headings = [name for role, name in spoken if role == "heading"]
    for title in ("Bytes by table", "Space that cleaning can free", "Slowest to read"):
        assert title in headings
    assert all(name for role, name in spoken if role in ("img", "image")), "each picture has a name"
    assert len([role for role, _ in spoken if role == "columnheader"]) > 20


def test_dark_is_dark_and_light_is_light(page: Page, report: Path) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    page.open(report, dark=False)
    light = page.run(ground)
    page.open(report, dark=True)
    assert (light, page.run(ground)) == ("rgb(245, 246, 248)", "rgb(15, 19, 24)")
