"""Durations: as users type them, and as the help shows the default of an option."""

from __future__ import annotations

import pytest

from acidctl.base.deadline import duration_seconds, duration_text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0, "0"), (25.0, "25s"), (90.0, "90s"), (600.0, "10m"), (86400.0, "24h"), (129600.0, "36h"), (604800.0, "7d")],
)
def test_a_default_is_shown_as_it_would_be_typed(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text
    assert duration_seconds(text) == seconds
