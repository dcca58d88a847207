"""Folders that look like a Java's home."""

from __future__ import annotations

from pathlib import Path


def fake_java(home: Path, version: str, *, modules: str = "", script: str = "") -> Path:
    """Make a home whose file ``release`` tells a version and, if any are given, the modules."""
    (home / "bin").mkdir(parents=True)
    binary = home / "bin" / "java"
    binary.write_text(f"#!/bin/sh\n{script}\n")
    binary.chmod(0o755)
    listed = f'MODULES="{modules}"\n' if modules else ""
    (home / "release").write_text(f'IMPLEMENTOR="nobody"\nJAVA_VERSION="{version}"\n{listed}')
    return home
