"""Retries without waits."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import stamina


@pytest.fixture(autouse=True)
def asked_again_at_once() -> Iterator[None]:
    """For modules and conftests that import it: what is asked again is asked again at once."""
    with stamina.set_testing(True, attempts=9, cap=True):
        yield
