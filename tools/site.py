"""Build the documentation as a site with Zensical: `python tools/site.py FOLDER`.

The pages beside docs/ (README, CHANGELOG and others) become pages of the site, links to them follow, and the navigation
is that of docs/index.md.
"""

from __future__ import annotations

import posixpath
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml

REPO = Path(__file__).resolve().parents[1]
BESIDE = {
    "README.md": "about.md",  # README would be the first page itself
    "CHANGELOG.md": "CHANGELOG.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "RELEASING.md": "RELEASING.md",
    "SECURITY.md": "SECURITY.md",
    "LICENSE": "LICENSE.txt",
    "tests/bench/README.md": "benchmarks.md",
}
"""Files beside docs/, with their paths in the site."""

_LINK = re.compile(r"(\]\()([^)\s#:]+)((?:#[^)\s]*)?\))")


def build(site: Path) -> int:
    """Write the site into a folder, and return Zensical's exit status, which is not 0 if a link leads nowhere."""
    with tempfile.TemporaryDirectory() as folder:
        pages = Path(folder, "docs")
        shutil.copytree(REPO / "docs", pages)
        for name, page in BESIDE.items():
            shutil.copyfile(REPO / name, pages / page)
        for path in pages.rglob("*.md"):
            path.write_text(with_links_of_site(path.read_text("utf-8"), path.relative_to(pages).as_posix()), "utf-8")
        settings = yaml.safe_load((REPO / "mkdocs.yml").read_text("utf-8"))
        settings |= {"nav": navigation((REPO / "docs/index.md").read_text("utf-8"))}
        Path(folder, "mkdocs.yml").write_text(yaml.safe_dump(settings), "utf-8")
        line = [sys.executable, "-m", "zensical", "build", "--strict"]
        status = subprocess.run(line, cwd=folder, check=False).returncode
        if status == 0:
            shutil.copytree(Path(folder, "site"), site, dirs_exist_ok=True)
        return status


def navigation(index: str) -> list[dict[str, Any]]:
    """Return the sections of docs/index.md with the pages that each of them links to."""
    sections: list[dict[str, Any]] = [{"Home": ["index.md", "about.md"]}]
    for section in re.split(r"^## ", index, flags=re.MULTILINE)[1:]:
        title, _, text = section.partition("\n")
        pages = dict.fromkeys(_in_site("index.md", path) for _, path, _ in _LINK.findall(text))
        sections.append({title.strip(): [page for page in pages if page.endswith(".md")]})
    return sections


def with_links_of_site(markdown: str, page: str) -> str:
    """Return a page whose links lead to where their targets are in the site."""

    def moved(link: re.Match[str]) -> str:
        target = posixpath.relpath(_in_site(page, link[2]), posixpath.dirname(page) or ".")
        return f"{link[1]}{target}{link[3]}"

    return _LINK.sub(moved, markdown)


def _in_site(page: str, link: str) -> str:
    folder = "" if page in BESIDE.values() else posixpath.join("docs", posixpath.dirname(page))
    path = posixpath.normpath(posixpath.join(folder, link))
    return BESIDE.get(path, path.removeprefix("docs/"))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python tools/site.py FOLDER")
    sys.exit(build(Path(sys.argv[1])))
