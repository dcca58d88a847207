"""Row counts of a table or partition after a statement."""

from __future__ import annotations

import pytest

from acidctl.writing.rows.files import StagedFile
from acidctl.writing.statistics import Growth, after

CLAIM = "COLUMN_STATS_ACCURATE"
BASIC = {CLAIM: '{"BASIC_STATS":"true"}'}
BEFORE = {"numRows": "10", "rawDataSize": "1000", "numFiles": "2", "totalSize": "500", "comment": "c"}
GROWTH = Growth(rows=-4, files=1, bytes=60)


def test_the_growth_of_each_location() -> None:
    files = [
        StagedFile("p=1", "delta_0000002_0000002_0000", "bucket_00000", 5, 100),
        StagedFile("p=1", "delete_delta_0000002_0000002_0000", "bucket_00000", 3, 40, is_delete=True),
        StagedFile("p=2", "delta_0000002_0000002_0000", "bucket_00000", 1, 10),
    ]
    assert Growth.of(files, replaces=False) == {"p=1": Growth(2, 2, 140), "p=2": Growth(1, 1, 10)}


def test_accurate_counts_stay_so_without_those_of_columns() -> None:
    claim = {CLAIM: '{"BASIC_STATS":"true","COLUMN_STATS":{"a":"true"}}'}
    new = {"numRows": "6", "rawDataSize": "600", "numFiles": "3", "totalSize": "560", "comment": "c"}
    assert after(BEFORE | claim, GROWTH) == new | BASIC


@pytest.mark.parametrize("claim", [
    None, "", "{}", "true", "[]", '{"COLUMN_STATS":{"a":"true"}}', '{"BASIC_STATS":"false"}', '{"BASIC_STATS":true}',
])  # fmt: skip
def test_counts_that_are_not_called_accurate_are_not_afterwards(claim: str | None) -> None:
    assert after(BEFORE | ({} if claim is None else {CLAIM: claim}), GROWTH) == BEFORE


@pytest.mark.parametrize("wrong", [{"numRows": "3"}, {"numRows": "-1"}, {"numRows": "many"}, {"totalSize": "-5"}])
def test_counts_that_cannot_be_right_are_given_up(wrong: dict[str, str]) -> None:
    assert after(BEFORE | wrong | BASIC, GROWTH) == BEFORE | wrong


def test_a_table_without_a_count_gets_none() -> None:
    assert after(BASIC | {"numFiles": "2"}, GROWTH) == {"numFiles": "2"}


def test_a_statement_that_replaces_all_rows_knows_their_number() -> None:
    new = {"numRows": "4", "rawDataSize": "0", "numFiles": "1", "totalSize": "60", "comment": "c"}
    assert after(BEFORE, Growth(4, 1, 60, replaces=True)) == new | BASIC
