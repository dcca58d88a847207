"""Where things lie in the repository, however deep the test lies that asks."""

from __future__ import annotations

from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
REPO = TESTS.parent

DATA = TESTS / "data"
"""Tables and cases that live in this repository."""

IMPORTABLE = (REPO, TESTS)
"""What PYTHONPATH must hold for a process that imports acidctl and `support`."""
