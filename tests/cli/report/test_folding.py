"""Lines of many locations on one screen."""

from __future__ import annotations

from collections import Counter

import pytest

from acidctl.cli.output.terminal import VERBOSITY
from acidctl.cli.report.folding import MOST_TABLES, Totals, folder_of_table, put_folded, put_idle
from acidctl.wording import names_in_short


@pytest.mark.parametrize(
    ("location", "folder"),
    [
        ("/w/t/day=1/hour=2", "/w/t"),
        ("/w/t", "/w/t"),
        ("hdfs://nn:9/w/t/day=1/", "hdfs://nn:9/w/t"),
        ("day=1", "day=1"),
        ("/w/a=b/t", "/w/a=b/t"),
    ],
)
def test_the_folder_of_a_table_has_no_partition(location: str, folder: str) -> None:
    assert folder_of_table(location) == folder


@pytest.mark.parametrize(
    ("names", "short"),
    [
        (["delta_1_1", "delta_2_2", "delta_3_3", "delete_delta_2_2"], "delta 1-3, delete_delta_2_2"),
        (["delta_1_1", "delta_3_4", "base_9"], "delta 1, delta 3-4, base_9"),
        ([f"delta_{i}_{i}" for i in range(2, 40, 2)], "delta 2-38 (19)"),
        (["delta_1_1_0001", "delta_1_1_0000"], "delta 1"),
        (["000000_0", "_tmp_x"], "000000_0, _tmp_x"),
        ([], ""),
    ],
)
def test_names_in_short_say_what_is_missing(names: list[str], short: str) -> None:
    assert names_in_short(names) == short


def test_the_largest_tables_have_lines_and_the_rest_a_sum(capsys: pytest.CaptureFixture[str]) -> None:
    VERBOSITY.set()  # a test before this one may have asked for colours
    totals = Totals()
    for i in range(MOST_TABLES + 5):
        totals.add(f"/w/t{i}", {"entries": 2, "bytes": i})
    for i in range(3):
        totals.add(f"/w/p/day={i}", {"entries": 1, "bytes": 1000})
    put_folded("to remove", totals)
    first, heading, *lines, last = capsys.readouterr().out.splitlines()
    assert first == "to remove: 46 tables, 48 locations, 93 entries, 3.9 KiB"
    assert heading.split() == ["table", "partitions", "entries", "size"]
    assert lines[0].split() == ["/w/p", "3", "3", "2.9", "KiB"]
    assert lines[1].split() == ["/w/t44", "2", "44", "B"]
    assert (len(lines), last) == (MOST_TABLES, "and 6 tables more, 12 entries, 15 B: -v shows all")


def test_idle_locations_are_counted_by_reason(capsys: pytest.CaptureFixture[str]) -> None:
    put_idle("nothing to do", Counter({"few-deltas": 1200}))
    put_idle("left for later", Counter({"time-is-up": 3, "locked": 1}))
    assert capsys.readouterr().out.splitlines() == [
        "nothing to do in 1,200 locations: few deltas",
        "left for later in 4 locations: time is up (3), locked (1)",
    ]
