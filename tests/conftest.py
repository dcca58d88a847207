"""Fixtures that the whole suite shares."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of ORC files and tables that other projects published; they are never copied into this one."""
    path = Path(os.environ.get("ACIDCTL_SHARED_DATA", REPO.parent / "shared" / "data"))
    if not path.is_dir():
        pytest.skip(f"third-party test files are not here: {path} (set ACIDCTL_SHARED_DATA)")
    return path


@pytest.fixture(scope="session")
def own_data() -> Path:
    """Tables and cases that live in this repository."""
    return REPO / "tests" / "data"
