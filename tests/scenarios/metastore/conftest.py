"""A warehouse for bad days of its metastore."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.command_line import Result
from support.metastore.bad_days import BadDay, make_warehouse

from acidctl.metastore import client


@pytest.fixture(scope="session")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its files, which nobody changes."""
    root = tmp_path_factory.mktemp("pristine")
    make_warehouse(root)
    return root


@pytest.fixture
def day(pristine: Path, tmp_path: Path, acidctl: Callable[..., Result], monkeypatch: pytest.MonkeyPatch) -> BadDay:
    """A copy of it, and a client that does not wait long between two tries."""
    monkeypatch.setattr(client, "_PAUSE", 0.001)
    monkeypatch.setattr(client, "PATIENCE", 0.5)
    return BadDay(pristine, tmp_path / "warehouse", acidctl)
