"""Retries without waits."""

from __future__ import annotations

import pytest

from acidctl.storage import retry


@pytest.fixture(autouse=True)
def asked_again_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """For modules and conftests that import it: what is asked again is asked again at once."""
    monkeypatch.setattr(retry, "_FIRST_WAIT", 0.0)
    monkeypatch.setattr(retry, "_JITTER", 0.0)
