"""Where things lie in the repository, however deep the test lies that asks."""

from __future__ import annotations

import os
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
REPO = TESTS.parent

DATA = TESTS / "data"
"""Tables and cases that live in this repository."""

PYTHONPATH = os.pathsep.join((str(REPO), str(TESTS)))
"""Of processes that tests start and that import acidctl and `support`, as pytest's own setting has it for tests."""
