"""What the properties of a table, its database and its partitions say."""

from __future__ import annotations

import pytest

from acidctl.location.metastore_schema import table_properties

OFF, ON = {"no_auto_compaction": "true"}, {"no_auto_compaction": "false"}


@pytest.mark.parametrize(
    ("table", "database", "hive_4", "hive_3"),
    [
        ({}, {}, "", ""),
        (OFF, {}, "table", "table"),
        ({"NO_AUTO_COMPACTION": "TRUE"}, {}, "table", "table"),
        ({"No_Auto_Compaction": "true"}, {}, "", ""),  # Hive does not hear it either
        ({}, OFF, "database", "database"),
        (ON, OFF, "database", "database"),
        (OFF, ON, "", "table"),
        ({"no_auto_compaction": "yes"}, {}, "", ""),
    ],
)
def test_who_switches_automatic_compaction_off(
    table: dict[str, str], database: dict[str, str], hive_4: str, hive_3: str
) -> None:
    assert table_properties(table, database).auto_off_by == hive_4
    assert table_properties(table, database, database_wins=False).auto_off_by == hive_3


def test_who_wants_nothing_cleaned() -> None:
    kept = {"no_cleanup": "True"}
    assert table_properties({}).no_cleanup_by == ""
    assert table_properties({"no_cleanup": "false"}, {"no_cleanup": "no"}).no_cleanup_by == ""
    assert table_properties(kept, kept, kept).no_cleanup_by == "table"
    assert table_properties({}, {}, kept).no_cleanup_by == "partition"
    assert table_properties({}, kept).no_cleanup_by == "database"


def test_the_job_and_its_queue() -> None:
    job = {
        "compactor.mapred.job.queue.name": "old",
        "compactor.mapreduce.map.memory.mb": "4096",
        "orc.compress": "ZLIB",
    }
    assert table_properties(job).job == {"mapred.job.queue.name": "old", "mapreduce.map.memory.mb": "4096"}
    assert table_properties(job).queue == "old"
    assert table_properties({**job, "compactor.hive.compactor.job.queue": "new"}).queue == "new"
    assert table_properties({}).queue == ""


def test_thresholds_that_are_no_numbers_change_nothing() -> None:
    key = "compactorthreshold.hive.compactor.delta.num.threshold"
    assert table_properties({key: "4"}).thresholds.delta_count == 4
    assert table_properties({key: "four"}).thresholds.delta_count == 10
