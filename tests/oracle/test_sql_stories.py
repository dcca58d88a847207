"""Stories in SQL of two tables, which Hive 3.1.3 and 4.0.1 judge step by step, whatever time zones it is told in.

Many more of them, and with Java in a time zone that the first seed chooses:

    ACIDCTL_HIVE_STORIES=15 ACIDCTL_STORY_SEED=100 python -m pytest tests/oracle/test_sql_stories.py
"""

from __future__ import annotations

import os

import pytest
from support.engines.sql_stories import Story
from support.servers.hive_server import HiveServer

MANY = int(os.environ.get("ACIDCTL_HIVE_STORIES", "0"))
FIRST = int(os.environ.get("ACIDCTL_STORY_SEED", "1"))

pytestmark = [pytest.mark.server, pytest.mark.timeout(900), pytest.mark.in_turn("real_hive")]


@pytest.mark.parametrize("seed", range(FIRST, FIRST + (MANY or 1)))
def test_stories_are_read_compacted_and_cleaned_as_hive_goes_on_with_them(real_hive: HiveServer, seed: int) -> None:
    story = Story(real_hive, seed)
    story.live(8 if MANY else 3)
    for statement, said in story.refused:
        print(f"refused: {statement[:200]}: {said[:300]}")
