"""A metastore in this process does nothing late, but where a test says so."""

from __future__ import annotations

import pytest

from acidctl.metastore import client


@pytest.fixture(autouse=True)
def in_haste(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits long for what it may still do."""
    monkeypatch.setattr(client, "PATIENCE", 0.5)
