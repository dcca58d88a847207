"""The documentation as a site: built without a warning, every page can be found, nothing is fetched elsewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from support.paths import REPO

_HREF = re.compile(r'(?:href|src)="?([^"\s>]+)')
_ID = re.compile(r'\bid="?([^"\s>]+)')


pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    line = [sys.executable, "tools/site.py", str(folder)]
    done = subprocess.run(line, cwd=REPO, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return folder


def test_every_page_is_there_and_in_the_navigation(site: Path) -> None:
    pages = [str(path.relative_to(REPO / "docs").with_suffix(".html")) for path in (REPO / "docs").rglob("*.md")]
    pages += [f"{name}.html" for name in ("about", "CHANGELOG", "CONTRIBUTING", "RELEASING", "SECURITY")]
    home = (site / "index.html").read_text("utf-8")
    linked = {urlsplit(link).path for link in _HREF.findall(home)}
    for page in pages:
        assert (site / page).is_file()
        assert page in linked, f"{page} is in no list"


def test_every_link_inside_leads_somewhere(site: Path) -> None:
    ids = {path: set(_ID.findall(path.read_text("utf-8"))) for path in site.rglob("*.html")}
    for path in ids:
        if path.name == "404.html":
            continue  # which has links from the root of wherever it is shown
        for link in set(_HREF.findall(path.read_text("utf-8"))):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or link.startswith("data:"):
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            assert target.exists(), f"{path.relative_to(site)}: {link}"
            if parts.fragment and target in ids:
                assert unquote(parts.fragment) in ids[target] | {"__toc", "__drawer"}, (
                    f"{path.relative_to(site)}: {link}"
                )


def test_pages_fetch_nothing_from_elsewhere(site: Path) -> None:
    loads = re.compile(
        r'<(?:script|img|iframe)[^>]*\bsrc="?(?:https?:)?//|<link[^>]*rel="?(?:stylesheet|preconnect)[^>]*//'
    )
    for path in site.rglob("*.html"):
        assert not loads.search(path.read_text("utf-8")), path.name
