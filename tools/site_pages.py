"""Hooks of MkDocs: the pages beside docs/ (README, CHANGELOG and others) become pages of the site, and so do links to
them; the navigation is that of docs/index.md.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

REPO = Path(__file__).resolve().parents[1]
BESIDE = {
    "README.md": "about.md",  # README would be the first page itself
    "CHANGELOG.md": "CHANGELOG.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "SECURITY.md": "SECURITY.md",
    "LICENSE": "LICENSE.txt",
    "tests/bench/README.md": "benchmarks.md",
}
"""What lies beside docs/, and what it is called in the site."""

_LINK = re.compile(r"(\]\()([^)\s#:]+)((?:#[^)\s]*)?\))")


def on_config(config: Any) -> Any:
    """The sections of docs/index.md, with the pages that each names."""
    sections: list[Any] = [{"Home": ["index.md", "about.md"]}]
    for section in re.split(r"^## ", (REPO / "docs/index.md").read_text("utf-8"), flags=re.MULTILINE)[1:]:
        title, _, text = section.partition("\n")
        pages = dict.fromkeys(_in_site("index.md", path) for _, path, _ in _LINK.findall(text))
        sections.append({title.strip(): [page for page in pages if page.endswith(".md")]})
    config["nav"] = sections
    return config


def on_files(files: Files, config: Any) -> Files:
    """Pages that lie beside docs/."""
    for name, shown in BESIDE.items():
        files.append(File.generated(config, shown, content=(REPO / name).read_text("utf-8")))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Links as they are in the site, where README and the others lie among the pages of docs/."""
    here = page.file.src_uri

    def moved(found: re.Match[str]) -> str:
        target = _in_site(here, found[2])
        return f"{found[1]}{posixpath.relpath(target, posixpath.dirname(here) or '.')}{found[3]}"

    return _LINK.sub(moved, markdown)


def _in_site(page: str, link: str) -> str:
    """Where a link of a page leads to, from the root of the site."""
    folder = "" if page in BESIDE.values() else posixpath.join("docs", posixpath.dirname(page))
    path = posixpath.normpath(posixpath.join(folder, link))
    return BESIDE.get(path, path.removeprefix("docs/"))
