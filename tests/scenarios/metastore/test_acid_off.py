"""A metastore whose ACID is switched off (HIVE-29520): it lacks the methods of transactions, locks and the queue."""

from __future__ import annotations

import re

import pytest
from support.metastore.bad_days import COMMANDS, BadDay

_OF_ACID = re.compile("txn|write_id|lock|compact", re.IGNORECASE)
_LOOKS_AT_TABLES = {line for line in COMMANDS if line[:2] == ("hive", "tables")}
_SAYS_HIVE_4 = {line for line in COMMANDS if line[:3] == ("hive", "abort", "compaction")}


@pytest.mark.parametrize("line", sorted({*COMMANDS} - _LOOKS_AT_TABLES - _SAYS_HIVE_4), ids=" ".join)
def test_a_command_says_it_once_and_changes_nothing(day: BadDay, line: tuple[str, ...]) -> None:
    with day.metastore() as fake:
        for name in [name for name in fake.answers if _OF_ACID.search(name)]:
            del fake.answers[name]
        found = day.run(fake, fake.address, *line)
        assert found.status
        assert found.err.count("see whether Hive's ACID is switched off there") == 1, found.err
        assert day.files() == day.tree
