"""Hatchling calls this for the readme of the package: a registry shows it outside of the repository."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class Readme(MetadataHookInterface):
    """The readme, with links to the files of the version's tag once pyproject.toml has a URL `Source`."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the readme of `metadata`, the table [project]."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": absolute(text, metadata)}


def absolute(text: str, metadata: dict[str, Any]) -> str:
    """Return `text` with links that lead out of a registry's page to the files of this version."""
    source = metadata.get("urls", {}).get("Source")
    if source is None:
        return text
    base = f"{source.rstrip('/')}/blob/v{metadata['version']}/"
    return re.sub(r"\]\((?!https?:|#)([^)\s]+)\)", lambda link: f"]({base}{link[1]})", text)
