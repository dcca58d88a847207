"""Scripts that play a Java."""

from __future__ import annotations

from pathlib import Path

TRIMMED = 'MODULES="java.base java.logging"\n'


def fake_java(home: Path, banner: str, *, release: str | None = None, more: str = "") -> Path:
    """A Java home whose java prints `banner` on stderr."""
    (home / "bin").mkdir(parents=True)
    (home / "lib").mkdir()
    binary = home / "bin" / "java"
    binary.write_text(f"#!/bin/sh\n{more}\nprintf '%s\\n' '{banner}' >&2\n")
    binary.chmod(0o755)
    if release is not None:
        (home / "release").write_text(release)
    return home


def banner(version: str) -> str:
    return f'openjdk version "{version}" 2025-01-01'
